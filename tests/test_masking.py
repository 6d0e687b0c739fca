"""MaskedLMPreprocessor: Google's counts, what may be masked, and what it becomes."""

import keras_hub
import material
import numpy as np
import pytest
import tensorflow as tf

import garden
from garden.tasks import MaskedLMPreprocessor, TextClassifierPreprocessor
from garden.tokenizers import BertTokenizer

SPECIAL = [0, 100, 101, 102, 103]


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(material.english_vocabulary(), lowercase=True)


@pytest.fixture(scope="module")
def sentences():
    return material.movie_sentences()[:3000]


@pytest.fixture(scope="module")
def plain(tokenizer, sentences):
    return TextClassifierPreprocessor(tokenizer, 64)(sentences)


@pytest.fixture(scope="module")
def masked(tokenizer, sentences):
    return MaskedLMPreprocessor(tokenizer, 64, mask_selection_length=8, seed=1)(sentences)


def test_shapes(masked):
    x, y, weights = masked
    assert {name: (array.shape, array.dtype.name) for name, array in x.items()} == {
        "token_ids": ((3000, 64), "int32"),
        "segment_ids": ((3000, 64), "int32"),
        "padding_mask": ((3000, 64), "int32"),
        "mask_positions": ((3000, 8), "int32"),
    }
    assert (y.shape, y.dtype.name, weights.shape, weights.dtype.name) == ((3000, 8), "int32", (3000, 8), "float32")


def test_targets_restore_the_text(plain, masked):
    x, y, weights = masked
    restored = x["token_ids"].copy()
    rows, slots = np.nonzero(weights)
    restored[rows, x["mask_positions"][rows, slots]] = y[rows, slots]
    np.testing.assert_array_equal(restored, plain["token_ids"])
    assert not np.isin(y[rows, slots], SPECIAL).any()
    assert not y[weights == 0].any() and not x["mask_positions"][weights == 0].any()


def test_positions_rise(masked):
    x, _, weights = masked
    assert (np.diff(weights) <= 0).all()
    assert (np.diff(x["mask_positions"])[weights[:, 1:] == 1] > 0).all()


def test_googles_counts(plain, masked):
    expected = [min(8, max(1, round(int(n) * 0.15))) for n in plain["padding_mask"].sum(axis=1)]
    assert masked[2].sum(axis=1).tolist() == expected


@pytest.mark.parametrize(("tokens", "count"), [(20, 3), (30, 4), (3, 1), (64, 10)])
def test_counts_of_the_specification(tokenizer, tokens, count):
    _, _, weights = MaskedLMPreprocessor(tokenizer, 64, mask_selection_length=20)("a " * (tokens - 2))
    assert weights.sum() == count


def test_nothing_to_select(tokenizer):
    x, y, weights = MaskedLMPreprocessor(tokenizer, 8, mask_selection_length=3)(["", "[MASK] [UNK]", "a"])
    assert weights.tolist() == [[0, 0, 0], [0, 0, 0], [1, 0, 0]]
    assert y.tolist() == [[0, 0, 0], [0, 0, 0], [1037, 0, 0]]
    assert x["token_ids"][:2].tolist() == [[101, 102] + [0] * 6, [101, 103, 100, 102] + [0] * 4]


def test_more_columns_than_tokens(tokenizer):
    preprocessor = MaskedLMPreprocessor(tokenizer, 5, mask_selection_rate=1.0, mask_selection_length=9)
    x, y, weights = preprocessor("a b c d e")
    assert (x["mask_positions"].tolist(), weights.tolist()) == ([1, 2, 3] + [0] * 6, [1.0] * 3 + [0.0] * 6)
    assert y.tolist() == [1037, 1038, 1039] + [0] * 6


def test_shares_of_mask_random_and_kept(tokenizer, sentences):
    x, y, weights = MaskedLMPreprocessor(tokenizer, 64, mask_selection_rate=1.0, mask_selection_length=62, seed=2)(
        sentences
    )
    chosen = weights == 1
    shown = np.take_along_axis(x["token_ids"], x["mask_positions"], axis=1)[chosen]
    kept, mask = shown == y[chosen], shown == 103
    random = shown[~kept & ~mask]
    assert chosen.sum() > 70_000
    np.testing.assert_allclose([mask.mean(), kept.mean(), random.size / shown.size], [0.8, 0.1, 0.1], atol=0.005)
    assert np.isin(random, SPECIAL).any() and random.min() < 20 and random.max() > 30500  # the whole vocabulary
    np.testing.assert_allclose(random.mean(), 30522 / 2, rtol=0.02)


def test_every_token_is_as_likely(tokenizer):
    x, _, _ = MaskedLMPreprocessor(tokenizer, 12, mask_selection_length=1, seed=3)(["a b c d e f g h i j"] * 20_000)
    share = np.bincount(x["mask_positions"][:, 0], minlength=12) / 20_000
    np.testing.assert_allclose(share, [0] + [0.1] * 10 + [0], atol=0.01)


@pytest.mark.parametrize(("rates", "expected"), [((1.0, 0.0), 103), ((0.0, 0.0), 1037)])
def test_one_fate_for_all(tokenizer, rates, expected):
    preprocessor = MaskedLMPreprocessor(
        tokenizer, 6, mask_selection_rate=1.0, mask_token_rate=rates[0], random_token_rate=rates[1]
    )
    x, _, _ = preprocessor("a a a a")
    assert x["token_ids"].tolist() == [101, *[expected] * 4, 102]


def test_seed(tokenizer, sentences):
    def draws(seed):
        preprocessor = MaskedLMPreprocessor(tokenizer, 32, seed=seed)
        return [preprocessor(sentences[:50])[0]["token_ids"].tolist() for _ in range(2)]

    assert draws(5) == draws(5)
    assert draws(5)[0] != draws(5)[1]
    assert draws(5) != draws(6)
    assert draws(None) != draws(None)


def test_pipeline_masks_anew_each_epoch(tokenizer, sentences, plain):
    preprocessor = MaskedLMPreprocessor(tokenizer, 64, mask_selection_length=8)
    dataset = tf.data.Dataset.from_tensor_slices(sentences).batch(300, drop_remainder=True).map(preprocessor, 4)
    assert dataset.element_spec[0]["mask_positions"].shape.as_list() == [300, 8]
    epochs = []
    for _ in range(2):
        x, y, weights = zip(*dataset.as_numpy_iterator(), strict=True)
        ids, positions = (np.concatenate([part[name] for part in x]) for name in ("token_ids", "mask_positions"))
        rows, slots = np.nonzero(np.concatenate(weights))
        epochs.append(ids.copy())
        ids[rows, positions[rows, slots]] = np.concatenate(y)[rows, slots]
        np.testing.assert_array_equal(ids, plain["token_ids"])
    assert (epochs[0] != epochs[1]).any(axis=1).mean() > 0.9


def test_pairs_and_multiples(tokenizer):
    x, _, _ = MaskedLMPreprocessor(tokenizer, 32, pad_to_multiple_of=4)((["a b", "a"], ["c", "d e"]))
    assert x["segment_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1, 0, 0]]


def test_preset_round_trip(tokenizer, tmp_path):
    garden.BertBackbone(30522, 1, 1, 2, 2).save_to_preset(tmp_path)
    settings = {"mask_selection_rate": 0.3, "mask_selection_length": 5, "mask_token_rate": 0.5, "seed": 7}
    preprocessor = garden.tasks.BertMaskedLMPreprocessor(tokenizer, 16, random_token_rate=0.2, **settings)
    preprocessor.save_to_preset(tmp_path)
    again = keras_hub.models.MaskedLMPreprocessor.from_preset(str(tmp_path))
    assert type(again) is garden.tasks.BertMaskedLMPreprocessor
    assert {**again.get_config(), "tokenizer": 0} == {**preprocessor.get_config(), "tokenizer": 0}
    assert again("a b c d e")[0]["token_ids"].tolist() == preprocessor("a b c d e")[0]["token_ids"].tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mask_selection_rate": 0}, "mask_selection_rate=0 has to be above 0"),
        ({"mask_token_rate": 0.95}, "mask_token_rate=0.95 and random_token_rate=0.1 have to be"),
        ({"random_token_rate": -0.1}, "random_token_rate=-0.1 have to be 0 or more"),
        ({"sequence_length": 1}, "leaves no room for text"),
    ],
)
def test_wrong_settings(tokenizer, settings, message):
    with pytest.raises(ValueError, match=message):
        MaskedLMPreprocessor(tokenizer, **settings)
