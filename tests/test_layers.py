"""The layers alone: masks against hand-made tables, attention against torch, and what a user can build from them."""

import keras
import numpy as np
import pytest
import torch
from families import gap
from keras import ops

from garden import layers


def test_attention_mask_by_hand():
    mask = ops.convert_to_numpy(layers.attention_mask(np.array([[0, 1, 1, 2]])))
    assert mask.shape == (1, 1, 4, 4)
    assert mask[0, 0].astype(int).tolist() == [[1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]


@pytest.mark.parametrize(
    ("padding_mask", "expected"),
    [
        ([1, 1, 1, 0, 0], [0, 1, 2, 0, 1]),
        ([0, 0, 1, 1, 1], [0, 1, 0, 1, 2]),
        ([1, 1, 2, 2, 3], [0, 1, 0, 1, 0]),
        ([0, 0, 0, 0, 0], [0, 1, 2, 3, 4]),
    ],
)
def test_positions_by_hand(padding_mask, expected):
    assert ops.convert_to_numpy(layers.positions(np.array([padding_mask]))).tolist() == [expected]


def test_first_token_mask_by_hand():
    mask = layers.first_token_mask(np.array([[0, 0, 1, 1], [1, 2, 0, 0], [0, 0, 0, 0]]))
    assert ops.convert_to_numpy(mask).astype(int).tolist() == [[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]]


def test_both_ways_through_attention_equal_torch():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 7, 12)).astype("float32")
    mask = rng.random((2, 1, 7, 7)) > 0.3
    mask |= np.eye(7, dtype=bool)
    attention = layers.Attention(num_heads=3)
    attention.build(x.shape)
    for variable in attention.weights:
        variable.assign(rng.normal(0, 0.3, variable.shape))
    reference = torch.nn.MultiheadAttention(12, 3, batch_first=True)
    state = {"/".join(v.path.split("/")[-2:]): v for v in attention.weights}
    kernels = [ops.convert_to_numpy(state[f"{name}/kernel"]).T for name in ("query", "key", "value")]
    biases = [ops.convert_to_numpy(state[f"{name}/bias"]) for name in ("query", "key", "value")]
    with torch.no_grad():
        reference.in_proj_weight.copy_(torch.tensor(np.concatenate(kernels)))
        reference.in_proj_bias.copy_(torch.tensor(np.concatenate(biases)))
        reference.out_proj.weight.copy_(torch.tensor(ops.convert_to_numpy(state["output_dense/kernel"]).T))
        reference.out_proj.bias.copy_(torch.tensor(ops.convert_to_numpy(state["output_dense/bias"])))
        blocked = torch.tensor(~np.repeat(mask[:, 0], 3, axis=0))
        expected, probs = reference(*[torch.tensor(x)] * 3, attn_mask=blocked, average_attn_weights=False)
    explicit, seen = attention.explicit(ops.convert_to_tensor(x), ops.convert_to_tensor(mask))
    assert gap(attention(x, attention_mask=mask), expected) <= 1e-5
    assert gap(explicit, expected) <= 1e-5
    assert gap(seen["attention_probs"], probs) <= 1e-6


def test_attention_dropout_drops_in_training_only():
    attention = layers.Attention(num_heads=2, dropout=0.5)
    x = np.random.default_rng(0).normal(size=(1, 6, 8)).astype("float32")
    still = ops.convert_to_numpy(attention(x))
    assert gap(attention(x, training=False), still) <= 1e-6
    assert gap(attention(x, training=True), still) > 1e-3


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(ValueError, match="num_heads=5 does not divide hidden_dim=12"):
        layers.Attention(num_heads=5).build((None, None, 12))


def test_the_two_gelus_differ_where_they_should():
    x = np.linspace(-4, 4, 101).astype("float32")
    erf, tanh = (ops.convert_to_numpy(layers.activation(name)(x)) for name in ("gelu_erf", "gelu_tanh"))
    tensor = torch.tensor(x)
    assert gap(erf, torch.nn.functional.gelu(tensor)) <= 1e-6
    assert gap(tanh, torch.nn.functional.gelu(tensor, approximate="tanh")) <= 1e-6
    assert 3e-4 < np.abs(erf - tanh).max() < 6e-4


def test_factorized_embeddings_project_to_the_model():
    embeddings = layers.Embeddings(11, 4, 8, num_segments=2, hidden_dim=6)
    ids = np.array([[3, 4, 5]])
    assert tuple(embeddings(ids, ids % 3, ids % 2).shape) == (1, 3, 6)
    assert [tuple(v.shape) for v in embeddings.weights] == [(11, 4), (8, 4), (2, 4), (4,), (4,), (4, 6), (6,)]


@pytest.mark.parametrize("block_cls", [layers.PostNormBlock, layers.PreNormBlock])
def test_blocks_survive_saving_in_a_model_of_the_users_own(block_cls, tmp_path):
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    inputs = keras.Input((None, 8))
    block = block_cls(layers.Attention(2), layers.FeedForward(16, "gelu_tanh"), dropout=0.1, layer_norm_epsilon=1e-6)
    model = keras.Model(inputs, block(inputs))
    model.save(tmp_path / "model.keras")
    restored = keras.saving.load_model(tmp_path / "model.keras")
    assert gap(restored(x), ops.convert_to_numpy(model(x))) == 0


def test_pre_norm_and_post_norm_put_the_norm_where_their_papers_do():
    x = np.random.default_rng(0).normal(3, 2, size=(1, 4, 8)).astype("float32")
    post = layers.PostNormBlock(layers.Attention(2), layers.FeedForward(16))
    pre = layers.PreNormBlock(layers.Attention(2), layers.FeedForward(16))
    assert np.abs(ops.convert_to_numpy(post(x)).mean(-1)).max() < 1e-5
    assert np.abs(ops.convert_to_numpy(pre(x)).mean(-1)).max() > 1


def test_masked_lm_head_is_tied_and_owns_no_table():
    table = keras.layers.ReversibleEmbedding(10, 8)
    table.build()
    head = layers.MaskedLMHead(table)
    sequence, positions = np.ones((2, 3, 8), "float32"), np.array([[0, 2], [1, 1]])
    before = ops.convert_to_numpy(head(sequence, positions))
    assert sum(int(np.prod(v.shape)) for v in head.weights) == 8 * 8 + 8 + 8 + 8 + 10
    table.embeddings.assign(2 * ops.convert_to_numpy(table.embeddings))
    assert gap(head(sequence, positions), 2 * before) <= 1e-5
