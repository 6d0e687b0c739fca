"""Adaptive embedding and softmax: by hand, as probabilities, and the loss that never makes them all."""

import keras
import numpy as np
import pytest
from families import gap
from keras import ops

from garden.layers import AdaptiveEmbedding, AdaptiveSoftmax

RNG = np.random.default_rng(0)
SIZES = [
    {"cutoffs": (7, 19), "div_val": 2, "tie_projections": (False, True, True)},
    {"cutoffs": (7, 19), "div_val": 1, "tie_projections": True},
    {"cutoffs": (7, 19), "div_val": 1, "embedding_dim": 6, "tie_projections": (True, False, True)},
    {"cutoffs": (), "div_val": 1, "tie_projections": True},
]
sizes = pytest.mark.parametrize("settings", SIZES)


def pair(tie_projections, embedding_dim=8, **settings):
    embedding = AdaptiveEmbedding(31, embedding_dim, 8, **settings)
    embedding.build((None, None))
    softmax = AdaptiveSoftmax(embedding, tie_projections)
    softmax.build((None, None, 8))
    for weight in embedding.weights + softmax.weights:
        weight.assign(RNG.normal(0, 0.5, weight.shape))
    return embedding, softmax


def numpy(x):
    return ops.convert_to_numpy(x)


def test_a_word_has_the_vector_of_its_band_and_the_scale_of_the_model():
    embedding, _ = pair(**SIZES[0])
    for word, band, place in ((0, 0, 0), (6, 0, 6), (7, 1, 0), (18, 1, 11), (19, 2, 0), (30, 2, 11)):
        vector = numpy(embedding.bands[band].embeddings)[place] @ numpy(embedding.projection(band).kernel)
        assert gap(embedding(np.array([[word]]))[0, 0], vector * np.sqrt(8)) <= 1e-5
    plain, _ = pair(**SIZES[3])
    assert gap(plain(np.array([[5]]))[0, 0], numpy(plain.bands[0].embeddings)[5] * np.sqrt(8)) <= 1e-6
    assert not plain.projections and len(plain.weights) == 1


@sizes
def test_probabilities_sum_to_one(settings):
    _, softmax = pair(**settings)
    found = numpy(softmax(RNG.normal(size=(2, 3, 8)).astype("float32")))
    assert found.shape == (2, 3, 31) and np.abs(np.exp(found).sum(-1) - 1).max() <= 1e-5


def test_without_cutoffs_it_is_a_plain_softmax():
    embedding, softmax = pair(**SIZES[3])
    x = RNG.normal(size=(2, 3, 8)).astype("float32")
    logits = x @ numpy(embedding.bands[0].embeddings).T + numpy(softmax.biases[0])
    assert gap(softmax(x), numpy(ops.log_softmax(logits, axis=-1))) <= 1e-5


def test_the_first_cluster_is_the_column_behind_the_words():
    """Exchanging the clusters' columns exchanges the mass of the two bands, whatever is in them."""
    _, softmax = pair(**SIZES[0])
    x = RNG.normal(size=(1, 1, 8)).astype("float32")
    mass = [np.exp(numpy(softmax(x)))[0, 0, first:last].sum() for first, last in ((7, 19), (19, 31))]
    for weight in (softmax.clusters.kernel, softmax.clusters.bias):
        weight.assign(numpy(weight)[..., ::-1].copy())
    found = np.exp(numpy(softmax(x)))[0, 0]
    assert abs(found[7:19].sum() - mass[1]) <= 1e-5 and abs(found[19:].sum() - mass[0]) <= 1e-5


@sizes
def test_the_loss_of_targets_and_its_gradient_are_those_of_all_probabilities(settings):
    class Model(keras.Model):
        def __init__(self, cheap):
            super().__init__()
            self.embedding, self.softmax = pair(**settings)
            self.cheap, self.built = cheap, True

        def call(self, token_ids):
            return self.embedding(token_ids)

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            if self.cheap:
                return ops.mean(self.softmax.losses_of(y_pred, y))
            return -ops.mean(ops.take_along_axis(self.softmax(y_pred), y[..., None], axis=-1))

    ids, targets = RNG.integers(0, 31, (2, 4, 9))
    cheap, dear = Model(True), Model(False)
    dear.set_weights(cheap.get_weights())
    for model in (cheap, dear):
        model.compile(keras.optimizers.SGD(1.0))
    for _ in range(2):
        assert abs(float(cheap.train_on_batch(ids, targets)) - float(dear.train_on_batch(ids, targets))) <= 1e-5
    for ours, theirs in zip(cheap.get_weights(), dear.get_weights(), strict=True):
        assert gap(ours, theirs) <= 1e-5


def test_a_quantised_embedding_serves_the_softmax():
    embedding, softmax = pair(**SIZES[0])
    x = RNG.normal(size=(2, 3, 8)).astype("float32")
    before = numpy(softmax(x))
    for layer in (*embedding.bands, *embedding.projections):
        layer.quantize("int8")
    assert 0 < gap(softmax(x), before) < 0.2


def test_what_cannot_be_is_said():
    with pytest.raises(ValueError, match=r"cutoffs=\(7, 7\) have to ascend between 0 and vocabulary_size=31"):
        AdaptiveEmbedding(31, 8, 8, cutoffs=(7, 7))
    with pytest.raises(ValueError, match=r"cutoffs=\(40,\) have to ascend"):
        AdaptiveEmbedding(31, 8, 8, cutoffs=(40,))
    with pytest.raises(ValueError, match="embedding_dim=8 cannot be divided by div_val=4 2 times"):
        AdaptiveEmbedding(31, 8, 8, cutoffs=(7, 9), div_val=4)
    with pytest.raises(ValueError, match="tie_projections has 2 entries for 3 bands"):
        AdaptiveSoftmax(AdaptiveEmbedding(31, 8, 8, cutoffs=(7, 9)), (True, False))
