"""Attention over relative positions and a memory: the shift, the table, and what a cache and a memory must equal."""

import numpy as np
import pytest
from families import gap, run
from keras import ops

import garden
from garden.layers import (
    RelativeBiases,
    RelativePositions,
    XLAttention,
    causal_mask,
    relative_distances,
    relative_shift,
    sinusoids,
)

# Three queries behind a memory of two: by query, the distances of five keys.
DISTANCES = [[2, 1, 0, -1, -2], [3, 2, 1, 0, -1], [4, 3, 2, 1, 0]]


def shifted(causal):
    row = np.asarray(relative_distances(3, 5, causal=causal))
    return ops.convert_to_numpy(relative_shift(np.tile(row, (2, 7, 3, 1)), 5))


def test_the_shift_brings_every_distance_to_its_key():
    assert (shifted(causal=False) == np.array(DISTANCES)).all()
    for t, row in enumerate(shifted(causal=True)[1, 6]):
        assert row[: 3 + t].tolist() == DISTANCES[t][: 3 + t]  # what lies ahead means nothing


def test_sinusoids_are_sines_and_then_cosines():
    assert np.allclose(sinusoids(np.ones(1), 4), [[0.841471, 0.01, 0.540302, 0.99995]], atol=1e-6)


def test_the_table_holds_every_distance_clamped_and_reversed():
    x, memory = np.zeros((4, 3, 2), "float32"), np.zeros((4, 2, 2), "float32")
    table = ops.convert_to_numpy(RelativePositions(clamp_length=2, bi_data=True)(x, memory))
    expected = np.clip([4, 3, 2, 1, 0, -1, -2], -2, 2)
    for row, sign in enumerate((1, 1, -1, -1)):
        assert np.allclose(table[row, :, 0], np.sin(sign * expected), atol=1e-6)
    causal = ops.convert_to_numpy(RelativePositions(causal=True)(x, memory))
    assert np.allclose(causal[0, :, 0], np.sin([4, 3, 2, 1, 0]), atol=1e-6)
    with pytest.raises(ValueError, match="3 rows have no half"):
        RelativePositions(bi_data=True)(x[:3])
    with pytest.raises(ValueError, match="hidden_dim=5 is odd"):
        RelativePositions()(np.zeros((1, 2, 5), "float32"))


def attention(**kwargs):
    layer = XLAttention(num_heads=5, head_dim=6, **kwargs)
    layer.build((None, None, 20))
    rng = np.random.default_rng(0)
    for weight in layer.weights:
        weight.assign(rng.normal(0, 0.5, weight.shape))
    return layer


def by_the_formula(layer, x, memory, mask):
    """Equation 1 of section 3.3, one query and one key at a time."""
    weights = {weight.path.rsplit("/", 2)[-2] + "/" + weight.name: weight.numpy() for weight in layer.weights}
    u, v = weights["biases/r_w_bias"], weights["biases/r_r_bias"]
    seen, (b, t, _) = np.concatenate([memory, x], axis=1), x.shape
    query, key, value = (
        (array @ weights[f"{name}/kernel"]).reshape(b, -1, 5, 6)
        for name, array in (("query", x), ("key", seen), ("value", seen))
    )
    s = seen.shape[1]
    logits = np.zeros((b, 5, t, s))
    for i in range(t):
        for j in range(s):
            r = np.asarray(sinusoids(np.array([s - t + i - j]), 20))[0] @ weights["relative_dense/kernel"]
            meet = (query[:, i] + u) * key[:, j] + (query[:, i] + v) * r.reshape(5, 6)
            logits[:, :, i, j] = meet.sum(-1) / np.sqrt(6)
    logits = np.where(mask, logits, -np.inf)
    probs = np.exp(logits - logits.max(-1, keepdims=True))
    probs /= probs.sum(-1, keepdims=True)
    return np.einsum("bnts,bsnh->btnh", probs, value).reshape(b, t, 30) @ weights["output_dense/kernel"]


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_the_papers_formula(causal):
    rng = np.random.default_rng(1)
    x, memory = rng.normal(size=(2, 4, 20)).astype("float32"), rng.normal(size=(2, 3, 20)).astype("float32")
    ones = np.ones((2, 4), "int32"), np.ones((2, 3), "int32")
    mask = ops.convert_to_numpy(causal_mask(*ones)) if causal else np.ones((2, 1, 4, 7), bool)
    layer, relative = attention(), RelativePositions(causal)(x, memory)
    expected = by_the_formula(layer, x, memory, mask)
    assert gap(layer(x, mask, memory=memory, relative=relative), expected) <= 1e-5
    assert gap(layer.explicit(x, mask, memory=memory, relative=relative)[0], expected) <= 1e-5
    dropping = attention(dropout=1e-9)
    assert gap(dropping(x, mask, training=True, memory=memory, relative=relative), expected) <= 1e-5


def test_a_cache_equals_one_pass():
    rng = np.random.default_rng(2)
    x, memory = rng.normal(size=(2, 4, 20)).astype("float32"), rng.normal(size=(2, 3, 20)).astype("float32")
    layer = attention()
    mask = causal_mask(np.ones((2, 4), "int32"), np.ones((2, 3), "int32"))
    whole = layer(x, mask, memory=memory, relative=RelativePositions(causal=True)(x, memory))
    cache = np.zeros((2, 2, 9, 5, 6), "float32")  # two places more than are ever filled
    cache[:, :, :3] = ops.convert_to_numpy(layer.remember(memory))
    positions = RelativePositions()
    for i in range(4):
        step, index = x[:, i : i + 1], 3 + i
        seen = np.arange(9)[None, None, None] <= index
        relative = positions(step, memory=cache[:, 0, :8, 0], last=index)
        out, cache = layer.cached(step, ops.convert_to_numpy(cache), index, seen, relative=relative)
        assert gap(out, ops.convert_to_numpy(whole)[:, i : i + 1]) <= 1e-5


def test_layers_may_share_their_biases():
    biases = RelativeBiases(5, 6)
    first, second = attention(biases=biases), attention(biases=biases)
    assert first.biases is second.biases
    again = XLAttention.from_config(first.get_config())
    assert isinstance(again.biases, RelativeBiases) and again.head_dim == 6
    assert XLAttention.from_config(attention(scale=3.0).get_config()).scale == 3.0


@pytest.mark.parametrize(
    ("memory", "mask"), [((1, 2, 4, 9), (1, 4)), ((1, 3, 4, 8), (1, 4)), ((1, 2, 4, 8), (1, 5)), ((2, 2, 4, 8), (2, 4))]
)
def test_a_memory_of_the_wrong_shape_is_named_and_harms_nothing(memory, mask):
    backbone = garden.TransformerXlBackbone(50, 2, 2, 8, 16, memory_length=4)
    model, ids = backbone.recurrent(), np.array([[7, 8, 9]], "int32")
    x = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    wrong = {"memory": np.zeros(memory, "float32"), "memory_mask": np.ones(mask, "int32")}
    before = run(model, {**x, **backbone.empty_memory(1)})["sequence_output"]
    with pytest.raises(ValueError, match="it must be"):
        model.predict({**x, **wrong}, verbose=0)
    assert gap(run(model, {**x, **backbone.empty_memory(1)})["sequence_output"], before) == 0
