"""Packed rows against the Rust library's own padding and truncation, and Google's rule for pairs, written out here."""

import keras
import keras_hub
import material
import numpy as np
import pytest
import tensorflow as tf
import tokenizers as rust

import garden
from garden.tasks import TextClassifierPreprocessor
from garden.tokenizers import BertTokenizer

NAMES = ("token_ids", "segment_ids", "padding_mask")


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(material.english_vocabulary(), lowercase=True)


@pytest.fixture(scope="module")
def rust_rows():
    reference = rust.Tokenizer.from_file(str(material.english_tokenizer_json()))

    def rows(texts, length):
        reference.enable_padding(length=length)
        reference.enable_truncation(length)
        encodings = reference.encode_batch(texts)
        return {
            "token_ids": np.array([encoding.ids for encoding in encodings], "int32"),
            "segment_ids": np.array([encoding.type_ids for encoding in encodings], "int32"),
            "padding_mask": np.array([encoding.attention_mask for encoding in encodings], "int32"),
        }

    return rows


def assert_same(ours, expected):
    assert ours.keys() == expected.keys()
    for name, array in expected.items():
        assert ours[name].dtype == array.dtype
        np.testing.assert_array_equal(ours[name], array)


def test_every_sentence(tokenizer, rust_rows):
    sentences = material.movie_sentences()
    expected = rust_rows(sentences, 32)
    preprocessor = TextClassifierPreprocessor(tokenizer, sequence_length=32)
    packed = preprocessor(sentences)
    assert all(type(array) is np.ndarray for array in packed.values())
    assert_same(packed, expected)
    dataset = tf.data.Dataset.from_tensor_slices(sentences).batch(1000).map(preprocessor, num_parallel_calls=4)
    assert {name: spec.shape.as_list() for name, spec in dataset.element_spec.items()} == dict.fromkeys(
        NAMES, [None, 32]
    )
    batches = list(dataset.as_numpy_iterator())
    assert_same({name: np.concatenate([batch[name] for batch in batches]) for name in NAMES}, expected)


def test_pairs_that_fit(tokenizer, rust_rows):
    first, second = material.movie_sentences()[:500], material.movie_sentences()[500:1000]
    preprocessor = TextClassifierPreprocessor(tokenizer, sequence_length=256)
    expected = rust_rows(list(zip(first, second, strict=True)), 256)
    assert_same(preprocessor((first, second)), expected)
    dataset = tf.data.Dataset.from_tensor_slices(((first, second), [1] * 500)).batch(500).map(preprocessor)
    packed, labels = next(dataset.as_numpy_iterator())
    assert_same(packed, expected)
    assert labels.tolist() == [1] * 500


def googles_rule(first, second, budget):
    while len(first) + len(second) > budget:
        (first if len(first) > len(second) else second).pop()
    return first, second


def waterfall(first, second, budget):
    first = first[:budget]
    return first, second[: budget - len(first)]


def first_loses(first, second, budget):
    return tuple(reversed(waterfall(second, first, budget)))


@pytest.mark.parametrize(
    ("truncate", "rule"), [("round_robin", googles_rule), ("waterfall", waterfall), ("first", first_loses)]
)
def test_pairs_that_are_cut(truncate, rule):
    tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnop"])
    pairs = [(list("abcdefgh"[:a]), list("ijklmnop"[:b])) for a in range(9) for b in range(9)]
    first, second = ([" ".join(words) for words in column] for column in zip(*pairs, strict=True))
    for length in range(4, 20):
        packed = TextClassifierPreprocessor(tokenizer, length, truncate)((first, second))
        for row, (a, b) in enumerate(pairs):
            a, b = rule(list(a), list(b), length - 3)
            tokens = ["[CLS]", *a, "[SEP]", *b, "[SEP]"]
            padding = length - len(tokens)
            assert packed["token_ids"][row].tolist() == [tokenizer.token_to_id(t) for t in tokens] + [0] * padding
            assert packed["segment_ids"][row].tolist() == [0] * (len(a) + 2) + [1] * (len(b) + 1) + [0] * padding
            assert packed["padding_mask"][row].tolist() == [1] * len(tokens) + [0] * padding


def test_single_strings(tokenizer):
    preprocessor = TextClassifierPreprocessor(tokenizer, sequence_length=8)
    packed, label = preprocessor("Hello, World!", 1)
    assert packed["token_ids"].tolist() == [101, 7592, 1010, 2088, 999, 102, 0, 0]
    assert (packed["padding_mask"].tolist(), label) == ([1, 1, 1, 1, 1, 1, 0, 0], 1)
    packed = preprocessor(("hello", "world"))
    assert packed["token_ids"].tolist() == [101, 7592, 102, 2088, 102, 0, 0, 0]
    assert packed["segment_ids"].tolist() == [0, 0, 0, 1, 1, 0, 0, 0]
    dataset = tf.data.Dataset.from_tensor_slices((["hello", ""], [0, 1])).map(preprocessor)
    assert dataset.element_spec[0]["token_ids"].shape.as_list() == [8]
    assert [x["token_ids"].tolist() for x, _ in dataset.as_numpy_iterator()] == [
        [101, 7592, 102] + [0] * 5,
        [101, 102] + [0] * 6,
    ]


def test_padding_is_where_no_token_is(tokenizer):
    packed = TextClassifierPreprocessor(tokenizer, sequence_length=6)(["a [PAD] b", ""])
    assert packed["token_ids"].tolist() == [[101, 1037, 0, 1038, 102, 0], [101, 102, 0, 0, 0, 0]]
    assert packed["padding_mask"].tolist() == [[1, 1, 1, 1, 1, 0], [1, 1, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("words", "multiple", "width"), [(1, 8, 8), (6, 8, 8), (7, 8, 16), (15, 8, 20), (99, 8, 20), (3, 1, 5)]
)
def test_padding_to_a_multiple(tokenizer, words, multiple, width):
    preprocessor = TextClassifierPreprocessor(tokenizer, sequence_length=20, pad_to_multiple_of=multiple)
    texts = ["a " * words, "b"]
    packed = preprocessor(texts)
    assert {array.shape for array in packed.values()} == {(2, width)}
    assert_same(
        {name: array[:, :width] for name, array in TextClassifierPreprocessor(tokenizer, 20)(texts).items()}, packed
    )
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(2).map(preprocessor)
    assert dataset.element_spec["token_ids"].shape.as_list() == [None, None]
    assert_same(next(dataset.as_numpy_iterator()), packed)


def test_empty_batch(tokenizer):
    for multiple, width in ((None, 9), (4, 4)):
        packed = TextClassifierPreprocessor(tokenizer, 9, pad_to_multiple_of=multiple)(np.array([], object))
        assert {array.shape for array in packed.values()} == {(0, width)}


@pytest.mark.parametrize("form", [list, np.array, lambda x: np.array(x, object), np.char.encode, tf.constant])
def test_forms_of_a_batch(tokenizer, form):
    preprocessor = TextClassifierPreprocessor(tokenizer, sequence_length=5)
    texts = form(["café", "C++"])
    rows = [[101, 7668, 102, 0, 0], [101, 1039, 1009, 1009, 102]]
    assert preprocessor(texts)["token_ids"].tolist() == rows
    packed, labels, weights = preprocessor(texts, [0, 1], [1.0, 2.0])
    assert (packed["token_ids"].tolist(), labels, weights) == (rows, [0, 1], [1.0, 2.0])
    packed, labels = preprocessor((texts, np.array([0, 1])))
    assert (packed["token_ids"].tolist(), labels.tolist()) == (rows, [0, 1])
    assert preprocessor((texts, form(["", "a"])))["token_ids"].tolist() == [
        [101, 7668, 102, 102, 0],
        [101, 1039, 102, 1037, 102],
    ]


def test_tuples_in_a_pipeline(tokenizer):
    preprocessor = TextClassifierPreprocessor(tokenizer, sequence_length=5)
    texts = ["hello", "world"]
    for tensors in (((texts, [0, 1]),), ((texts, texts),)):
        packed = next(tf.data.Dataset.from_tensor_slices(tensors).batch(2).map(preprocessor).as_numpy_iterator())
        expected = preprocessor(tensors[0])
        if isinstance(expected, tuple):
            (packed, labels), (expected, _) = packed, expected
            assert labels.tolist() == [0, 1]
        assert_same(packed, expected)


@pytest.mark.parametrize("name", ["round_robin", "waterfall"])
def test_preset_round_trip(tokenizer, tmp_path, name):
    garden.BertBackbone(30522, 1, 1, 2, 2).save_to_preset(tmp_path)
    preprocessor = garden.tasks.BertTextClassifierPreprocessor(tokenizer, 16, name, pad_to_multiple_of=8)
    preprocessor.save_to_preset(tmp_path)
    texts = material.movie_sentences()[:4]
    for cls in (keras_hub.models.TextClassifierPreprocessor, garden.tasks.BertTextClassifierPreprocessor):
        again = cls.from_preset(str(tmp_path))
        assert type(again) is garden.tasks.BertTextClassifierPreprocessor
        assert {**again.get_config(), "tokenizer": 0} == {**preprocessor.get_config(), "tokenizer": 0}
        assert_same(again((texts, texts)), preprocessor((texts, texts)))


def test_raw_strings_through_a_model(tokenizer):
    preprocessor = garden.tasks.BertTextClassifierPreprocessor(tokenizer, 8)
    backbone = garden.BertBackbone(30522, 1, 1, 2, 2, dropout=0.0)
    model = garden.tasks.BertTextClassifier(backbone, 2, preprocessor, dropout=0.0)
    texts = ["good", "very bad", "good good", "no"] * 3
    expected = keras.ops.convert_to_numpy(model(preprocessor(texts)))
    for x in (texts, tf.data.Dataset.from_tensor_slices(texts).batch(32)):
        np.testing.assert_allclose(model.predict(x, verbose=0), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (["a", None], "Row 1 of the batch is None, not a string"),
        (["a", float("nan")], "Row 1 of the batch is nan"),
        ([3], "Row 0 of the batch is 3"),
        ([b"\xff"], "Row 0 of the batch is not UTF-8, byte 0xff"),
        ((["a", "b"], ["c"]), "segments of a pair differ in size, 2 and 1"),
        ((["a"], "b"), "differ in size, 1 and one string"),
        ((["a"], ["b", "c"], ["d"]), "3 segments of text: give one, or a pair"),
    ],
)
def test_wrong_text(tokenizer, x, message):
    with pytest.raises(ValueError, match=message):
        TextClassifierPreprocessor(tokenizer, 8)(x=x)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sequence_length": 2}, "sequence_length=2 leaves no room for text beside 2 special tokens: use at least 3"),
        ({"truncate": "left"}, "truncate='left' is no rule: take round_robin or waterfall"),
        ({"pad_to_multiple_of": 0}, "pad_to_multiple_of=0 has to be 1 or more"),
    ],
)
def test_wrong_settings(tokenizer, settings, message):
    with pytest.raises(ValueError, match=message):
        TextClassifierPreprocessor(tokenizer, **settings)
    preprocessor = TextClassifierPreprocessor(tokenizer)
    for name, value in settings.items():
        setattr(preprocessor, name, value)
    with pytest.raises(ValueError, match=message):
        preprocessor("a")


def test_too_short_for_a_pair(tokenizer):
    with pytest.raises(ValueError, match="sequence_length=3 leaves no room for text beside 3 special tokens"):
        TextClassifierPreprocessor(tokenizer, 3)(("a", "b"))
