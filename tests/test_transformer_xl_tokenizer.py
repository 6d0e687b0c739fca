"""Words as tokens: WikiText's rules, vocabularies from text, published files, and pickles that must not run."""

import collections
import io
import pickle
import zipfile

import keras_hub
import numpy as np
import pytest
import torch

import garden
from garden import tasks
from garden.pickled_words import read_pickled_words

WORDS = ["<eos>", "the", "<unk>", "cat", "'s", "12", "@,@", "000", "well", "@-@", "known", "."]

# text, and the words into which Moses's tokenizer and the original's rule for numbers cut it
TABLE = [
    ("It's 12,000.50 dollars.", "It 's 12 @,@ 000 @.@ 50 dollars ."),
    ("Mr. Smith left, at 5 p.m. or so.", "Mr. Smith left , at 5 p.m. or so ."),
    ("The U.S. and Dr. No", "The U.S. and Dr. No"),
    ("a well-known so-and-so", "a well @-@ known so @-@ and @-@ so"),
    ("the dogs' tails", "the dogs ' tails"),
    ("don't I'll 90's", "don 't I 'll 90 's"),
    ("wait... what?!", "wait ... what ? !"),
    ('He said: "go" (now); end.', 'He said : " go " ( now ) ; end .'),
    ("“quoted” – and ‘this’ — too…", "\" quoted \" - and ' this ' - too ..."),
    ("e.g. this, i.e. that", "e.g. this , i.e. that"),
    ("$5.00 & 100%", "$ 5 @.@ 00 & 100 %"),
    ("naïve Straße 日本", "naïve Straße 日本"),
    ("<unk> and <eos>", "<unk> and <eos>"),
    ("  blanks \t and\u00a0more ", "blanks and more"),
    ("", ""),
]


def test_text_is_split_by_wikitexts_rules():
    tokenizer = garden.TransformerXlTokenizer(WORDS)
    for text, words in TABLE:
        assert tokenizer.split(text) == words.split(), text


def test_words_that_are_not_there_are_unknown():
    tokenizer = garden.TransformerXlTokenizer(WORDS)
    assert tokenizer(["the cat's hat.", "12,000 <eos>"]) == [[1, 3, 4, 2, 11], [5, 6, 7, 0]]
    assert tokenizer.detokenize([1, 8, 9, 10, 3]) == "the well-known cat"
    assert tokenizer.detokenize([5, 6, 7]) == "12,000"
    assert tokenizer.encode("the cat").ids == [0, 1, 3, 0]
    assert tokenizer.encode("the cat", "cat").ids == [0, 1, 3, 0, 3, 0]
    plain = garden.TransformerXlTokenizer(WORDS, special_tokens_in_strings=False, lowercase=True)
    assert plain("The") == [1]
    with pytest.raises(ValueError, match="lacks <unk>"):
        garden.TransformerXlTokenizer(["<eos>", "the"])


def test_pretokenized_text_is_split_at_blanks_only():
    tokenizer = garden.TransformerXlTokenizer(WORDS, pretokenized=True)
    assert tokenizer.split(" well @-@ known cat's 12,000 . ") == ["well", "@-@", "known", "cat's", "12,000", "."]


def test_a_vocabulary_of_a_text_is_sorted_by_frequency():
    lines = [" b a <unk> a ", "c b a", "d"]
    made = garden.TransformerXlTokenizer.from_text(lines, pretokenized=True)
    assert made.get_vocabulary() == ["<eos>", "a", "b", "<unk>", "c", "d"] and made.pretokenized
    assert garden.TransformerXlTokenizer.from_text(["b a a"], max_size=3).get_vocabulary() == ["<eos>", "a", "<unk>"]
    assert garden.TransformerXlTokenizer.from_text(["b a a"], min_count=2).get_vocabulary() == ["<eos>", "a", "<unk>"]


def test_the_tokenizer_comes_back(tmp_path):
    made = garden.TransformerXlTokenizer(WORDS, pretokenized=True, lowercase=True)
    sizes = dict(num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
    backbone = garden.TransformerXlBackbone(len(WORDS), **sizes)
    preprocessor = tasks.TransformerXlCausalLMPreprocessor(made, sequence_length=8)
    tasks.TransformerXlCausalLM(backbone, preprocessor).save_to_preset(tmp_path / "preset")
    again = keras_hub.tokenizers.Tokenizer.from_preset(str(tmp_path / "preset"))
    assert type(again) is garden.TransformerXlTokenizer and again.pretokenized and again.lowercase
    assert again("The cat") == made("The cat")
    (tmp_path / "published").mkdir()
    settings = made.save_published(tmp_path / "published")
    assert settings["pretokenized"] and settings["unk_token"] == "<unk>"
    assert garden.TransformerXlTokenizer.from_files(tmp_path / "published").get_vocabulary() == WORDS
    (tmp_path / "published" / "vocab.txt").unlink()
    with pytest.raises(FileNotFoundError, match="none of vocab.txt, vocab.pkl, vocab.bin, tokenizer.json"):
        garden.TransformerXlTokenizer.from_files(tmp_path / "published")
    made.rust.save(str(tmp_path / "published" / "tokenizer.json"))
    assert garden.TransformerXlTokenizer.from_files(tmp_path / "published").get_vocabulary() == WORDS


# --- pickles


def published():
    """What Hugging Face pickles: the attributes of the original's vocabulary."""
    ids = collections.OrderedDict((word, i) for i, word in enumerate(WORDS))
    counter = collections.Counter({"the": 3, "cat": 1})
    return {
        "counter": counter,
        "special": ["<eos>"],
        "idx2sym": WORDS,
        "sym2idx": ids,
        "unk_idx": 2,
        "lower_case": False,
    }


@pytest.mark.parametrize("kind", ["vocab.pkl", "vocab.bin", "old vocab.bin"])
def test_published_pickles_are_read(kind, tmp_path):
    path = tmp_path / kind.removeprefix("old ")
    if path.suffix == ".pkl":
        path.write_bytes(pickle.dumps(published()))
    else:
        torch.save(published(), path, _use_new_zipfile_serialization=not kind.startswith("old"))
    assert garden.TransformerXlTokenizer.from_files(tmp_path).get_vocabulary() == WORDS


class Hostile:
    def __reduce__(self):
        return (print, ("this ran",))


def test_a_pickle_calls_nothing(tmp_path, capsys):
    path = tmp_path / "vocab.pkl"
    path.write_bytes(pickle.dumps({"sym2idx": {"a": 0}, "x": Hostile()}))
    with pytest.raises(ValueError, match="names builtins.print, which is no plain data"):
        read_pickled_words(path)
    assert "this ran" not in capsys.readouterr().out
    state = b"ccollections\nCounter\n(dS'update'\nNsb."  # sets an attribute of the class itself
    path.write_bytes(state)
    with pytest.raises(ValueError):
        read_pickled_words(path)
    assert collections.Counter("aa").most_common() == [("a", 2)] and collections.Counter.update is not None


@pytest.mark.parametrize("content", [b"", b"garbage", pickle.dumps([1]), pickle.dumps({"sym2idx": {"a": 1}})])
def test_broken_pickles_are_named(content, tmp_path):
    path = tmp_path / "vocab.pkl"
    path.write_bytes(content)
    with pytest.raises(ValueError):
        read_pickled_words(path)


def test_a_zip_without_a_pickle_is_named(tmp_path):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x", "y")
    (tmp_path / "vocab.bin").write_bytes(file.getvalue())
    with pytest.raises(ValueError, match="damaged"):
        read_pickled_words(tmp_path / "vocab.bin")


def test_ids_fit_an_adaptive_softmax():
    lines = ["the cat sat on the mat"] * 3
    tokenizer = garden.TransformerXlTokenizer.from_text(lines)
    counts = np.bincount([i for row in tokenizer(lines) for i in row], minlength=tokenizer.vocabulary_size())
    words = counts[1:-1]
    assert (np.diff(words) <= 0).all()
