"""The conditional random field against the enumeration of every label sequence."""

from itertools import product

import keras
import numpy as np
import pytest
from keras import ops

from garden.layers import CRF

C = 3
# Gaps before, inside and behind the chain; a chain of one, of none, of all.
MASK = np.array([[0, 1, 0, 0, 1, 1, 0], [0, 0, 0, 1, 0, 0, 0], [0] * 7, [1] * 7], bool)


@pytest.fixture(scope="module")
def crf():
    made, rng = CRF(name="crf"), np.random.default_rng(0)
    made.build((None, None, C))
    for variable in made.weights:
        variable.assign(rng.normal(size=variable.shape))
    return made


@pytest.fixture(scope="module")
def logits():
    return np.random.default_rng(1).normal(size=(*MASK.shape, C)).astype("float32")


def every_score(crf, logits):
    """The score of every label sequence of one chain (n, c): {labels: score}."""
    transitions, start, end = (np.asarray(v.numpy(), "float64") for v in (crf.transitions, crf.start, crf.end))
    found = {}
    for labels in product(range(C), repeat=len(logits)):
        score = start[labels[0]] + end[labels[-1]] + sum(row[label] for row, label in zip(logits, labels, strict=True))
        found[labels] = score + sum(transitions[pair] for pair in zip(labels[:-1], labels[1:], strict=True))
    return found


def test_log_likelihood_is_that_of_the_enumeration(crf, logits):
    labels = np.random.default_rng(2).integers(0, C, MASK.shape)
    ours = ops.convert_to_numpy(crf.log_likelihood(logits, np.where(MASK, labels, -100), MASK))
    for row, mask in enumerate(MASK):
        if not mask.any():
            assert ours[row] == 0
            continue
        scores = every_score(crf, logits[row][mask])
        expected = scores[tuple(labels[row][mask])] - np.log(np.sum(np.exp(list(scores.values()))))
        assert abs(ours[row] - expected) <= 1e-5


def test_decode_is_the_best_of_all_paths(crf, logits):
    ours = ops.convert_to_numpy(crf.decode(logits, MASK))
    assert not ours[~MASK].any()
    for row, mask in enumerate(MASK):
        if mask.any():
            scores = every_score(crf, logits[row][mask])
            assert tuple(ours[row][mask]) == max(scores, key=scores.get)
    assert (ours[3] != logits[3].argmax(-1)).any()  # and the transitions matter here


def test_marginals_are_sums_over_all_paths(crf, logits):
    ours = ops.convert_to_numpy(crf.marginals(logits, MASK))
    assert np.allclose(ours.sum(-1), 1, atol=1e-6)
    for row, mask in enumerate(MASK):
        if not mask.any():
            continue
        scores = every_score(crf, logits[row][mask])
        paths, weights = np.array(list(scores)), np.exp(list(scores.values()))
        for place, position in enumerate(np.flatnonzero(mask)):
            for label in range(C):
                expected = weights[paths[:, place] == label].sum() / weights.sum()
                assert abs(ours[row, position, label] - expected) <= 1e-5


def test_probabilities_of_all_paths_sum_to_one(crf, logits):
    paths = np.array(list(product(range(C), repeat=4)))
    rows = np.repeat(logits[3:, :4], len(paths), axis=0)
    likelihoods = ops.convert_to_numpy(crf.log_likelihood(rows, paths, np.ones(paths.shape, bool)))
    assert abs(np.exp(likelihoods).sum() - 1) <= 1e-5


def test_zero_tables_are_independent_softmaxes(logits):
    crf = CRF()
    assert crf(logits) is not None and not any(np.asarray(v.numpy()).any() for v in crf.weights)
    labels = logits.argmax(-1)
    log_softmax = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = (log_softmax.max(-1) * MASK).sum(1)
    assert np.allclose(ops.convert_to_numpy(crf.log_likelihood(logits, labels, MASK)), expected, atol=1e-5)
    assert (ops.convert_to_numpy(crf.decode(logits, MASK)) == labels * MASK).all()


def test_rows_of_one_position_and_long_rows(crf):
    one = np.ones((2, 1, C), "float32")
    assert ops.convert_to_numpy(crf.decode(one, np.ones((2, 1), bool))).shape == (2, 1)
    assert np.isfinite(ops.convert_to_numpy(crf.log_likelihood(one, [[1], [2]], np.ones((2, 1), bool)))).all()
    rng = np.random.default_rng(3)
    long = 50 * rng.normal(size=(1, 600, C)).astype("float32")
    assert np.isfinite(ops.convert_to_numpy(crf.log_likelihood(long, np.zeros((1, 600)), np.ones((1, 600))))).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "mixed_float16"])
def test_half_precision_computes_in_float32(crf, logits, dtype):
    half = CRF(dtype=dtype)
    half.build((None, None, C))
    for mine, theirs in zip(half.weights, crf.weights, strict=True):
        mine.assign(ops.cast(theirs, mine.dtype))
    likelihood = half.log_likelihood(ops.cast(logits, half.compute_dtype), np.zeros(MASK.shape), MASK)
    assert keras.backend.standardize_dtype(likelihood.dtype) == "float32"
    exact = ops.convert_to_numpy(crf.log_likelihood(logits, np.zeros(MASK.shape), MASK))
    assert np.abs(ops.convert_to_numpy(likelihood) - exact).max() < 0.2
