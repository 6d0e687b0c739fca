"""Vocabularies of BertTokenizer: files, presets, published folders, and what is wrong with them."""

import json
import shutil

import keras_hub
import material
import pytest

import garden
from garden import vocabulary
from garden.tokenizers import BertTokenizer


@pytest.fixture(scope="module")
def english():
    return BertTokenizer(material.english_vocabulary(), lowercase=True)


@pytest.fixture(scope="module")
def chinese():
    return BertTokenizer(material.chinese_vocabulary(), lowercase=True)


def test_line_separator_is_a_token(chinese, tmp_path):
    assert chinese.vocabulary_size() == 21128
    assert chinese.id_to_token(343) == "\u2028"
    assert "\u2028" in chinese.id_to_token(13502)
    chinese.save_assets(tmp_path)
    again = BertTokenizer(tmp_path / "vocabulary.txt", lowercase=True)
    assert again.get_vocabulary() == chinese.get_vocabulary()
    assert [file.name for file in tmp_path.iterdir()] == ["vocabulary.txt"]


@pytest.mark.parametrize("content", [b"a\n[UNK]\n", b"a\n[UNK]", b"a\r\n[UNK]\r\n"])
def test_ends_of_lines(tmp_path, content):
    (tmp_path / "vocab.txt").write_bytes(content)
    assert vocabulary.read_vocabulary(tmp_path / "vocab.txt") == ["a", "[UNK]"]


SMALL = ["[CLS]", "[SEP]", "[MASK]", "[UNK]", "a", "b", "a", "[PAD]"]


def test_vocabularies_given_in_memory():
    assert BertTokenizer(SMALL)("a b") == [6, 5]  # a token that occurs twice: the later id
    assert BertTokenizer(SMALL).id_to_token(4) == "a"
    assert BertTokenizer({token: i for i, token in enumerate(reversed(SMALL[:6] + SMALL[7:]))})("b [PAD]") == [1, 0]


def test_preset_round_trip(chinese, tmp_path):
    garden.BertBackbone(21128, 1, 1, 2, 2).save_to_preset(tmp_path)
    saved = BertTokenizer(chinese.get_vocabulary(), lowercase=True, strip_accents=False, max_chars_per_word=7)
    saved.save_to_preset(tmp_path)
    texts = [*material.chinese_reviews()[:50], "ÖÄÜ abcdefgh"]
    for cls in (keras_hub.tokenizers.Tokenizer, BertTokenizer):
        again = cls.from_preset(str(tmp_path))
        assert type(again) is BertTokenizer
        assert again.get_vocabulary() == chinese.get_vocabulary()
        assert again(texts) == saved(texts) != chinese(texts)


def folder_with(tmp_path, **files):
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return tmp_path


def test_from_files(english, tmp_path):
    shutil.copy(material.english_vocabulary(), tmp_path / "vocab.txt")
    assert BertTokenizer.from_files(tmp_path, {"lowercase": True})("Naïve") == [15743]
    folder_with(tmp_path, tokenizer_config={"do_lower_case": False, "tokenize_chinese_chars": False})
    tokenizer = BertTokenizer.from_files(tmp_path, {"lowercase": True})
    assert (tokenizer.lowercase, tokenizer.split_on_cjk) == (False, False)


def test_from_the_rust_file_alone(english, tmp_path):
    shutil.copy(material.english_tokenizer_json(), tmp_path / "tokenizer.json")
    tokenizer = BertTokenizer.from_files(tmp_path)
    assert tokenizer.get_vocabulary() == english.get_vocabulary()
    assert {**tokenizer.get_config(), "name": ""} == {**english.get_config(), "name": ""}
    assert tokenizer("naïve café") == [15743, 7668]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "has no vocabulary: none of vocab.txt"),
        ({"tokenizer": []}, "holds no JSON object"),
        ({"tokenizer": {"model": {"type": "BPE"}}}, "no BERT tokenizer: its model and its normalizer are BPE and None"),
    ],
)
def test_folders_that_cannot_be_read(tmp_path, files, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        BertTokenizer.from_files(folder_with(tmp_path, **files))


def test_wrong_vocabularies(tmp_path):
    with pytest.raises(FileNotFoundError, match="no vocabulary file .*missing.txt"):
        BertTokenizer(tmp_path / "missing.txt")
    path = tmp_path / "vocab.txt"
    contents = {b"": "is empty", b"caf\xe9\n": "is not UTF-8 at byte 3", b"a\n[UNK]\n": "of 2 tokens lacks .CLS.,"}
    for content, message in contents.items():
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            BertTokenizer(path)
    for wrong, message in (
        ([], "of 0 tokens lacks"),
        ([*SMALL, "x\n"], "Entry 8 .* without an end of line"),
        ([*SMALL, None], "Entry 8 .* is None"),
        ({"[UNK]": 0, "a": 2}, "from 0 to 1, but 1 is free"),
    ):
        with pytest.raises(ValueError, match=message):
            BertTokenizer(wrong)
    with pytest.raises(ValueError, match="names the file"):
        BertTokenizer.from_config({"vocabulary": str(path)})


def test_a_lone_vocabulary_tells_whether_it_is_cased(tmp_path):
    for words, text, tokens in (
        (["good", "film"], "Good Film", ["good", "film"]),
        (["Good"], "Good film", ["Good", "[UNK]"]),
    ):
        vocabulary.write_vocabulary(tmp_path / "vocab.txt", ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
        assert BertTokenizer.from_files(tmp_path).encode(text).tokens[1:-1] == tokens
