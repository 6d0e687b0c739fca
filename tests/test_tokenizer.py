"""BertTokenizer against the Rust library's own file, a recipe written out here, and ids from real vocabularies."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import keras
import material
import numpy as np
import pytest
import tensorflow as tf
import tokenizers as rust

from garden.tokenizers import BertTokenizer

# text, ids with the vocabulary of bert-base-uncased, ids with that of bert-base-chinese (None: not stated)
TABLE = [
    ("Hello, World!", [7592, 1010, 2088, 999], [8701, 117, 8572, 106]),
    ("unaffable", [14477, 20961, 3468], [163, 8374, 9049, 9609]),
    ("naïve café", [15743, 7668], [11469, 8857, 8377]),
    ("the\u00a0fox", [1996, 4419], [8174, 10872]),
    ("the\u3000fox", [1996, 4419], [8174, 10872]),
    ("the\u2009fox", [1996, 4419], [8174, 10872]),
    ("a\u200bb", [11113], [9386]),
    ("a\u00adb", [11113], [9386]),
    ("i am going to [MASK] to study math", [1045, 2572, 2183, 2000, 103, 2000, 2817, 8785], None),
    ("[mask]", [1031, 7308, 1033], [138, 9622, 8998, 140]),
    ("hello[MASK]world", [7592, 103, 2088], [8701, 103, 8572]),
    ("don't", [2123, 1005, 1056], [9524, 112, 162]),
    ("don’t", [2123, 1521, 1056], [9524, 100, 162]),
    ("1,234.5", [1015, 1010, 22018, 1012, 1019], [122, 117, 10129, 119, 126]),
    ("C++", [1039, 1009, 1009], [145, 116, 116]),
    ("##ing", [1001, 1001, 13749], [108, 108, 10139]),
    (
        "使用语言模型来预测下一个词的probability。",
        [100, 100, 100, 100, 100, 100, 100, 100, 100, 1743, 1740, 100, 100, 1916, 9723, 1636],
        [886, 4500, 6427, 6241, 3563, 1798, 3341, 7564, 3844, 678, 671, 702, 6404, 4638, 8376, 8668, 13254, 511],
    ),
    ("你好world", [100, 100, 2088], [872, 1962, 8572]),
    ("中文，标点。！", [1746, 1861, 1989, 100, 100, 1636, 1986], [704, 3152, 8024, 3403, 4157, 511, 8013]),
    ("２０２０年", [100, 1840], [10327, 8929, 8569, 2399]),
    ("ＡＢＣ", [100], [8051, 12641, 10675]),
    ("日本語テスト", [1864, 1876, 1950, 1713, 30233, 30240], [3189, 3315, 6295, 612, 10579]),
    (
        "한국어",
        [1469, 30006, 30021, 29991, 30014, 30020, 29999, 30008],
        [303, 10928, 9877, 13454, 13479, 11953, 13463, 13472],
    ),
    ("…—“hi”", [1529, 1517, 1523, 7632, 1524], None),
    ("ß", [1096], None),
    ("ẞ", [1096], None),
    ("İstanbul", [9960], None),
    ("👍🏽 ok", [100, 7929], [100, 8270]),
    ("a" * 101, [100], [100]),
    ("", [], []),
    (" \t\u3000", [], []),
]


@pytest.fixture(scope="module")
def english():
    return BertTokenizer(material.english_vocabulary(), lowercase=True)


@pytest.fixture(scope="module")
def chinese():
    return BertTokenizer(material.chinese_vocabulary(), lowercase=True)


@pytest.fixture(scope="module")
def english_reference():
    reference = rust.Tokenizer.from_file(str(material.english_tokenizer_json()))
    reference.no_padding()
    reference.no_truncation()
    return reference


@pytest.fixture(scope="module")
def chinese_reference():
    lines = material.chinese_vocabulary().read_bytes().decode().split("\n")
    ids = {token: i for i, token in enumerate(lines[:21128])}
    reference = rust.Tokenizer(rust.models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    reference.normalizer = rust.normalizers.BertNormalizer(lowercase=True)
    reference.pre_tokenizer = rust.pre_tokenizers.BertPreTokenizer()
    reference.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    return reference


def reference_ids(reference, texts):
    return [encoding.ids for encoding in reference.encode_batch(texts, add_special_tokens=False)]


@pytest.mark.parametrize(("text", "in_english", "in_chinese"), TABLE)
def test_edge_cases(english, chinese, text, in_english, in_chinese):
    assert english(text) == in_english
    if in_chinese is not None:
        assert chinese(text) == in_chinese


def test_longest_word(english):
    assert len(english("a" * 100)) == 50
    assert len(BertTokenizer(english.get_vocabulary(), max_chars_per_word=200)("a" * 200)) == 100


def test_every_english_sentence(english, english_reference):
    sentences = material.movie_sentences()
    assert len(sentences) == 10605
    expected = reference_ids(english_reference, sentences)
    assert english(sentences) == expected
    dataset = tf.data.Dataset.from_tensor_slices(sentences).batch(500).map(english, num_parallel_calls=4)
    assert [row for batch in dataset for row in batch.to_list()] == expected


def test_every_chinese_review(chinese, chinese_reference):
    reviews = material.chinese_reviews()
    assert len(reviews) == 2000
    expected = reference_ids(chinese_reference, reviews)
    assert chinese(reviews) == expected
    dataset = tf.data.Dataset.from_tensor_slices(reviews).batch(500).map(chinese)
    assert [row for batch in dataset for row in batch.to_list()] == expected


def test_batch_equals_single(english):
    texts = [text for text, _, _ in TABLE]
    assert english(texts) == [english(text) for text in texts]
    singles = tf.data.Dataset.from_tensor_slices(texts).map(english)
    assert [row.numpy().tolist() for row in singles] == english(texts)


def test_empty_batch(english):
    assert english([]) == []
    assert english(np.array([], dtype=object)) == []


@pytest.mark.parametrize("form", [list, tuple, np.array, lambda x: np.array(x, object), np.char.encode, tf.constant])
def test_forms_of_a_batch(english, form):
    assert english(form(["naïve café", "C++"])) == [[15743, 7668], [1039, 1009, 1009]]


def test_forms_of_a_string(english):
    forms = ("café", "café".encode(), np.str_("café"), np.array("café"), tf.constant("café"))
    assert [english(form) for form in forms] == [[7668]] * 5


@pytest.mark.parametrize(
    ("settings", "text", "tokens"),
    [
        ({"lowercase": True, "strip_accents": False}, "ÖÄÜ?", ["ö", "##ä", "##ü", "?"]),
        ({"lowercase": True, "strip_accents": None}, "ÖÄÜ?", ["o", "##a", "##u", "?"]),
        ({"lowercase": False}, "ÖÄÜ hello", ["[UNK]", "hello"]),
        ({"lowercase": False}, "Hello", ["[UNK]"]),
        ({"lowercase": False, "strip_accents": True}, "é", ["e"]),
        ({"lowercase": True, "special_tokens_in_strings": False}, "a [MASK]", ["a", "[", "mask", "]"]),
        ({"split_on_cjk": False}, "日本", ["日", "##本"]),
    ],
)
def test_settings(settings, text, tokens):
    pieces = ["ö", "##ä", "##ü", "o", "##a", "##u", "?", "hello", "e", "a", "[", "mask", "]", "日", "##本", "本"]
    tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces], **settings)
    expected = [tokenizer.token_to_id(token) for token in tokens]
    assert tokenizer(text) == expected
    assert tokenizer([text, text]) == [expected, expected]
    assert BertTokenizer.from_config(tokenizer.get_config()).get_config() == tokenizer.get_config()


def test_no_text_yields_a_chinese_suffix(chinese):
    assert "##鹅" in chinese.get_vocabulary()
    assert chinese("企鹅") == [821, chinese.token_to_id("鹅")]


def test_offsets_lie_in_the_original_string(english, english_reference):
    texts = [*material.movie_sentences()[:300], "İstanbul 👍🏽 naïve\u200b café [MASK]日本 한국어", ""]
    for text, pair in zip(texts, texts[::-1], strict=True):
        ours, theirs = english.encode(text, pair), english_reference.encode(text, pair)
        for field in ("ids", "tokens", "type_ids", "offsets", "word_ids", "sequence_ids"):
            assert getattr(ours, field) == getattr(theirs, field)
    text = "Naïve 👍🏽 [MASK] unaffable"
    offsets = english.encode(text).offsets[1:-1]
    assert [text[a:b] for a, b in offsets] == ["Naïve", "👍🏽", "[MASK]", "una", "ffa", "ble"]


def test_special_ids(english):
    ids = [getattr(english, f"{name}_token_id") for name in ("pad", "unk", "cls", "sep", "mask", "start", "end")]
    assert ids == [0, 100, 101, 102, 103, 101, 102]
    assert sorted(english.special_token_ids) == [0, 100, 101, 102, 103]


def test_detokenize(english, english_reference):
    ids = english("The naïve foxes don't stop.")
    assert english.detokenize(ids) == english_reference.decode(ids)
    for batch in ([ids, []], tf.ragged.constant([ids, []])):
        assert english.detokenize(batch) == [english_reference.decode(ids), ""]
    assert english.detokenize(keras.ops.array([ids])) == [english_reference.decode(ids)]


def test_copies_and_threads(english):
    texts = material.movie_sentences()[:200]
    expected = english(texts)
    for copied in (copy.deepcopy(english), pickle.loads(pickle.dumps(english))):
        assert copied(texts) == expected
    with ThreadPoolExecutor(4) as pool:
        assert all(ids == expected for ids in pool.map(english, [texts] * 20))


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (["a", None], "Row 1 of the batch is None, not a string"),
        (["a", "b", float("nan")], "Row 2 of the batch is nan"),
        (np.array(["a", 3], object), "Row 1 of the batch is 3"),
        ([b"ok", b"caf\xe9"], "Row 1 of the batch is not UTF-8, byte 0xe9 at position 3"),
        (["a", "b\ud83d"], "Row 1 of the batch has half of a surrogate pair, U.D83D, at position 1"),
        (np.array([["a"], ["b"]]), "shape .2, 1. has more than one axis"),
        (7, "The text is 7, not a string"),
    ],
)
def test_wrong_text(english, batch, message):
    with pytest.raises(ValueError, match=message):
        english(batch)


def test_wrong_text_for_offsets(english):
    for text, message in ((None, "Row 0 of the batch is None"), ("a\ud83d", "U.D83D")):
        with pytest.raises(ValueError, match=message):
            english.encode(text)


def test_wrong_text_in_a_pipeline(english):
    dataset = tf.data.Dataset.from_tensor_slices([b"ok", b"caf\xe9"]).batch(2).map(english)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Row 1 of the batch is not UTF-8"):
        next(iter(dataset))


def test_unknown_tokens_and_ids(english):
    for call, value in ((english.token_to_id, "nope!"), (english.id_to_token, 30522), (english.detokenize, [-1])):
        with pytest.raises(ValueError, match="not in the vocabulary"):
            call(value)
    with pytest.raises(ValueError, match="BertTokenizer has no vocabulary yet"):
        BertTokenizer()("a")
