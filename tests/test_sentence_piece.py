"""The SentencePiece tokenizers of English ALBERT and of XLM-RoBERTa, and XLM-R itself, against three other codes."""

import re
import unicodedata

import keras_hub
import material
import numpy as np
import pytest
import sentencepiece
import transformers
from families import FAMILIES

import garden
from garden import tasks
from garden.presets import export_to_transformers
from garden.sentence_piece import read_model

ROBERTA = next(row for row in FAMILIES if row.backbone is garden.RobertaBackbone)
ALBERT = next(row for row in FAMILIES if row.backbone is garden.AlbertBackbone)
TEXTS = [
    "A fine film, and a funny one.",
    "two  blanks\tand\n\nlines ",
    "naïve café, İstanbul",
    "``quoted'' text",
    "1,234.5 and 9, 10,000",
    "中文，标点。日本語 한국어",
    "👍🏽 ok 👩‍👩‍👧",
    "ﬁne １２３ ＡＢＣ",
    "the\u00a0fox the\u3000fox a\u200bb a\u00adb",
    "",
    "   ",
    "word" * 60,
]


def train(folder, **ids):
    """A model of 1,200 pieces of film reviews, in seconds."""
    text = folder / "text.txt"
    text.write_text("\n".join(material.movie_sentences()[:3000]), "utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(folder / "it"), vocab_size=1200, model_type="unigram", minloglevel=2, **ids
    )
    return folder / "it.model"


@pytest.fixture(scope="module")
def xlm(tmp_path_factory):
    """The folder of an XLM-R whose model file has SentencePiece's own first three ids."""
    folder = tmp_path_factory.mktemp("xlm")
    train(folder).rename(folder / "sentencepiece.bpe.model")
    return folder


@pytest.fixture(scope="module")
def albert(tmp_path_factory):
    """The folder of an ALBERT with the special ids of the published ones, lower-cased text inside."""
    folder = tmp_path_factory.mktemp("albert")
    special = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": "[CLS],[SEP],[MASK]"}
    train(folder, normalization_rule_name="nmt_nfkc_cf", **special).rename(folder / "spiece.model")
    return folder


def test_a_model_file_is_read_whole(xlm):
    model = read_model(xlm / "sentencepiece.bpe.model")
    theirs = sentencepiece.SentencePieceProcessor(str(xlm / "sentencepiece.bpe.model"))
    ids = range(theirs.get_piece_size())
    assert [piece for piece, _ in model.pieces] == [theirs.id_to_piece(i) for i in ids]
    np.testing.assert_array_equal([score for _, score in model.pieces], [theirs.get_score(i) for i in ids])
    assert model.unknown_id == theirs.unk_id() == 0 and len(model.charsmap) > 1000


def test_xlm_ids_are_the_models_and_one(xlm):
    tokenizer = garden.XlmRobertaTokenizer.from_files(xlm)
    theirs = sentencepiece.SentencePieceProcessor(str(xlm / "sentencepiece.bpe.model"))
    for text in [*TEXTS, *material.movie_sentences()[3000:3400]]:
        expected = [i + 1 if i > 2 else 3 for i in theirs.encode(text)]
        assert tokenizer(text) == expected, text
    assert tokenizer.vocabulary_size() == 1200 + 2 and tokenizer.mask_token_id == 1201
    assert tokenizer.detokenize(tokenizer("a fine film")) == "a fine film"


def normalised_as_albert(text):
    """google-research/albert's preprocess_text, with the quotes that XLNet's and Hugging Face's replace."""
    text = " ".join(text.strip().split()).replace("``", '"').replace("''", '"')
    text = unicodedata.normalize("NFKD", text)
    return "".join(c for c in text if not unicodedata.combining(c)).lower()


def test_albert_ids_equal_the_original_preprocessing(albert):
    tokenizer = garden.AlbertSentencePieceTokenizer.from_files(albert)
    theirs = sentencepiece.SentencePieceProcessor(str(albert / "spiece.model"))
    for text in [*TEXTS, *material.movie_sentences()[3000:3400]]:
        if not re.search(r"\d,", text):
            assert tokenizer(text) == theirs.encode(normalised_as_albert(text)), text
    assert tokenizer("A FINE film") == tokenizer("a fine film")
    cased = garden.AlbertSentencePieceTokenizer.from_files(albert, lowercase=False)
    assert not cased.lowercase


def test_the_comma_of_a_number_stands_alone(albert):
    tokenizer = garden.AlbertSentencePieceTokenizer(albert / "spiece.model")
    for text in ("in 1939, 9, and 10,000", "1,234"):
        tokens = tokenizer.encode(text).tokens
        assert not [token for token in tokens if re.search(r"\d,$", token)], tokens


@pytest.mark.parametrize(
    ("name", "ours", "theirs"),
    [
        ("xlm", garden.XlmRobertaTokenizer, transformers.XLMRobertaTokenizer),
        ("albert", garden.AlbertSentencePieceTokenizer, transformers.AlbertTokenizer),
    ],
)
def test_transformers_agrees_and_reads_what_is_written(name, ours, theirs, request, tmp_path):
    tokenizer = ours.from_files(request.getfixturevalue(name))
    tokenizer.rust.save(str(tmp_path / "tokenizer.json"))
    reference = theirs.from_pretrained(tmp_path)
    again = ours.from_files(tmp_path)  # from the Rust file alone
    mask = tokenizer.mask_token
    for text in [*TEXTS, f"a {mask} film{mask}."]:
        encoding = tokenizer.encode(text)
        assert encoding.ids == reference(text)["input_ids"] == again.encode(text).ids, text
        assert encoding.ids[1:-1] == tokenizer(text)
    pair = tokenizer.encode("a film", "a play")
    assert pair.ids == reference("a film", "a play")["input_ids"]
    text = "naïve 👍 film"
    start, end = tokenizer.encode(text).offsets[-2]
    assert text[:end].endswith("film")


def test_albert_tokenizer_finds_its_kind_and_comes_back(albert, tmp_path):
    ALBERT.build_reference(transformers.AlbertForMaskedLM, vocab_size=1200).save_pretrained(albert)
    model = tasks.MaskedLM.from_preset(albert)
    tokenizer = model.preprocessor.tokenizer
    assert type(tokenizer) is type(garden.AlbertTokenizer.from_preset(albert)) is garden.AlbertSentencePieceTokenizer
    model.save_to_preset(tmp_path / "it")
    for again in (
        tasks.MaskedLM.from_preset(tmp_path / "it").preprocessor.tokenizer,
        garden.AlbertTokenizer.from_preset(tmp_path / "it"),
        keras_hub.tokenizers.Tokenizer.from_preset(str(tmp_path / "it")),
    ):
        assert type(again) is garden.AlbertSentencePieceTokenizer and again.lowercase
        assert again("A fine film") == tokenizer("A fine film")
    export_to_transformers(model, tmp_path / "out")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert theirs("A fine film")["input_ids"] == tokenizer.encode("A fine film").ids


def test_pairs_stand_around_two_separators(xlm):
    tokenizer = garden.XlmRobertaTokenizer.from_files(xlm)
    pair = tasks.XlmRobertaTextClassifierPreprocessor(tokenizer, 16)(("a film", "a play"))
    ids = tokenizer.encode("a film", "a play").ids
    assert pair["token_ids"][: len(ids)].tolist() == ids and ids.count(tokenizer.end_token_id) == 3


def test_a_bert_may_have_the_vocabulary_of_xlm(xlm, tmp_path):
    """Microsoft's multilingual MiniLM."""
    sizes = dict(hidden_size=20, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24)
    config = transformers.BertConfig(vocab_size=1202, **sizes)
    transformers.BertModel(config).save_pretrained(tmp_path)
    (tmp_path / "sentencepiece.bpe.model").symlink_to(xlm / "sentencepiece.bpe.model")
    tokenizer = garden.BertTokenizer.from_preset(tmp_path)
    assert type(tokenizer) is garden.XlmRobertaTokenizer
    classifier = tasks.TextClassifier.from_preset(tmp_path, num_classes=2, sequence_length=8)
    x = classifier.preprocessor((["a fine film"], ["a play"]))
    assert classifier(x).shape == (1, 2)
    assert x["segment_ids"].tolist() == [[0] * 8]  # as transformers gives them with this tokenizer


def test_broken_files_are_named(xlm, albert, tmp_path):
    whole = (xlm / "sentencepiece.bpe.model").read_bytes()
    for content in (whole[: len(whole) // 2], b"\xff" * 40, b""):
        (tmp_path / "spiece.model").write_bytes(content)
        with pytest.raises(ValueError, match="spiece.model is"):
            garden.XlmRobertaTokenizer.from_files(tmp_path)
    with pytest.raises(ValueError, match=r"lacks <pad>, \[CLS\], \[MASK\], \[SEP\]"):
        garden.AlbertSentencePieceTokenizer(whole)
    (tmp_path / "spiece.model").unlink()
    with pytest.raises(FileNotFoundError, match="tokenizer.json"):
        garden.XlmRobertaTokenizer.from_files(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "BPE"}}', "utf-8")
    with pytest.raises(ValueError, match="no Unigram SentencePiece"):
        garden.XlmRobertaTokenizer.from_files(tmp_path)
