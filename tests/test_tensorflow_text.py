"""The TensorFlow form of a tokenizer against the Rust one: equal but for what the docstring of the class lists."""

import os
import subprocess
import sys

import material
import numpy as np
import pytest
import tensorflow as tf

from garden.tasks import TextClassifierPreprocessor
from garden.tensorflow_text import TensorFlowForm
from garden.tokenizers import BertTokenizer

TEXTS = [
    "i am [MASK] hello[MASK]world [mask] [UNK] [PAD]x",
    "ΣΑΣ ΣΑΣ. Ὀδυσσεύς ǅ ŉ",
    "İstanbul naïve ÖÄÜ? Hello",
    "a\ue000b [MA\ue001SK] \U0010ff00",
    "",
    " \t\r\n ",
    "a" * 100,
    "a" * 101,
    "é" * 100,
    "é" * 101,
    "的" * 120,
    "日本語テスト한국어 ß ẞ ２０２０年 ＡＢＣ 中文，标点。！",
    "\u9fff\u3400\U00020000\U0002b820\U0002b91f\U0002b920\uf900\U0002fa1f",
    "👍🏽 ok",
    "x\x00y\ufffdz\x07w\u200bv\u00adu",
    "a\u2028b\u0085c\x1fd\u00a0e\u3000f\x0bg\u2009h\ufeffi",
    "…—“hi” don't don’t 1,234.5 C++ ##ing",
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~€½",
]
SETTINGS = [
    {"lowercase": True},
    {"lowercase": False},
    {"lowercase": True, "strip_accents": False},
    {"lowercase": False, "strip_accents": True},
    {"lowercase": True, "special_tokens_in_strings": False},
    {"split_on_cjk": False},
    {"max_chars_per_word": 200},
    {"max_chars_per_word": 5},
]
VOCABULARIES = {"english": material.english_vocabulary, "chinese": material.chinese_vocabulary}


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("language", VOCABULARIES)
def test_edge_cases(language, settings):
    tokenizer = BertTokenizer(VOCABULARIES[language](), **settings)
    assert TensorFlowForm(tokenizer, 8).ids(tf.constant(TEXTS)).to_list() == tokenizer(TEXTS)


@pytest.mark.parametrize("truncate", ["round_robin", "waterfall"])
@pytest.mark.parametrize(("language", "texts"), [("english", "movie_sentences"), ("chinese", "chinese_reviews")])
def test_every_text(language, texts, truncate):
    tokenizer, texts = BertTokenizer(VOCABULARIES[language](), lowercase=True), getattr(material, texts)()
    assert len(texts) == {"english": 10605, "chinese": 2000}[language]
    form = TensorFlowForm(tokenizer, 31, truncate)
    preprocessor = TextClassifierPreprocessor(tokenizer, 31, truncate)
    for segments in ((texts,), (texts, texts[1:] + texts[:1])):
        ours = form(*map(tf.constant, segments))
        expected = preprocessor(segments if len(segments) > 1 else texts)
        assert ours.keys() == expected.keys()
        for name, array in expected.items():
            assert ours[name].dtype == tf.int32
            np.testing.assert_array_equal(ours[name], array)


# text, words by the Rust library, words by TensorFlow
DIFFERENCES = [
    ("a\u07fdb", "a\u07fdb", "ab"),  # a mark of Unicode 11
    ("a\u0898b", "a\u0898b", "ab"),  # a mark of Unicode 14
    ("a\u061db", "a\u061db", "a \u061d b"),  # punctuation of Unicode 14
    ("a\u0890b", "a\u0890b", "ab"),  # a format character of Unicode 14
    ("a\ua7c0b", "a\ua7c1b", "a\ua7c0b"),  # a capital of Unicode 14
    ("a\u166db", "a \u166d b", "a\u166db"),  # punctuation, then a symbol since Unicode 12
    ("a\u1734b", "ab", "a\u1734b"),  # a mark, then a spacing mark since Unicode 14
    ("a\U000111c9b", "a \U000111c9 b", "ab"),  # punctuation, then a mark since Unicode 11
]


@pytest.mark.parametrize(("text", "by_rust", "by_tensorflow"), DIFFERENCES, ids=lambda text: ascii(text))
def test_listed_differences(text, by_rust, by_tensorflow):
    words = list(dict.fromkeys(f"{by_rust} {by_tensorflow}".split()))
    tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words], lowercase=True)
    found = tokenizer(text), TensorFlowForm(tokenizer, 8).ids(tf.constant([text])).to_list()[0]
    assert found[0] != found[1]
    assert [" ".join(map(tokenizer.id_to_token, ids)) for ids in found] == [by_rust, by_tensorflow]


def test_saved_model_takes_raw_strings(tmp_path):
    tokenizer = BertTokenizer(material.chinese_vocabulary(), lowercase=True)
    module = tf.Module()
    module.form = TensorFlowForm(tokenizer, 16)
    module.serve = tf.function(module.form, input_signature=[tf.TensorSpec([None], tf.string)] * 2)
    tf.saved_model.save(module, str(tmp_path))
    first, second = material.chinese_reviews()[:20], material.chinese_reviews()[-20:]
    served = tf.saved_model.load(str(tmp_path)).serve(tf.constant(first), tf.constant(second))
    for name, array in TextClassifierPreprocessor(tokenizer, 16)((first, second)).items():
        assert served[name].shape == (20, 16)
        np.testing.assert_array_equal(served[name], array)


def test_a_token_that_occurs_twice():
    tokenizer = BertTokenizer(["[PAD]", "a", "", "[UNK]", "[CLS]", "", "[MASK]", "[SEP]", "[MASK]", "a", "b"])
    text = "a b 1 2 [MASK]"
    assert TensorFlowForm(tokenizer, 8).ids(tf.constant([text])).to_list() == [tokenizer(text)]


def test_turkish_process():
    program = (
        "import tensorflow as tf; from garden.tensorflow_text import *\n"
        "tokenizer = BertTokenizer(['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', 'title'], lowercase=True)\n"
        "print(TensorFlowForm(tokenizer, 8).ids(tf.constant(['TITLE'])).to_list())"
    )
    environment = {**os.environ, "LC_ALL": "tr_TR.UTF-8", "TF_CPP_MIN_LOG_LEVEL": "3"}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[[5]]"


def test_wrong_rule():
    with pytest.raises(ValueError, match="truncate='left' is no rule: take round_robin or waterfall"):
        TensorFlowForm(BertTokenizer(material.english_vocabulary()), 8, "left")
