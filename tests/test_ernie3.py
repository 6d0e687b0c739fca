"""The paper's ERNIE 3.0: against NumPy, its two branches apart, and its two kinds of memory."""

import math

import keras
import keras_hub
import numpy as np
import pytest
from families import gap, run
from keras import ops

import garden
from garden import tasks

SIZES = dict(vocabulary_size=31, num_layers=2, num_heads=3, hidden_dim=12, intermediate_dim=14)
SIZES |= dict(task_num_layers=2, task_num_heads=2, task_hidden_dim=8, task_intermediate_dim=10)
RNG = np.random.default_rng(0)
BRANCHES = [garden.Ernie3UnderstandingBackbone, garden.Ernie3GenerationBackbone]
branches = pytest.mark.parametrize("branch", BRANCHES)


def build(branch, **changes):
    model = branch(**{**SIZES, **changes})
    for weight in model.weights:
        weight.assign(RNG.normal(weight.path.endswith("gamma"), 0.3, weight.shape))
    return model


def inputs(rows=2, length=7, padding_mask=None):
    ids = RNG.integers(0, 31, (rows, length)).astype("int32")
    return {"token_ids": ids, "padding_mask": np.ones_like(ids) if padding_mask is None else padding_mask}


def output(model, x):
    return ops.convert_to_numpy(run(model, x)["sequence_output"])


def by_hand(model, x, memory=None, task_memory=None):
    """The forward pass in NumPy, one query and one key at a time; memories are lists of (b, m, d), one a layer."""
    weights = {weight.path: ops.convert_to_numpy(weight) for weight in model.weights}
    mask, kind = x["padding_mask"], model.module
    h = weights["embeddings/embeddings"][x["token_ids"]]
    h = stack(weights, "universal", h, mask, model.causal, SIZES["num_heads"], memory)
    h = h @ weights[f"{kind}_bridge/kernel"] + weights[f"{kind}_bridge/bias"]
    h = norm(weights, f"{kind}_bridge_norm", h)
    return stack(weights, kind, h, mask, model.causal, SIZES["task_num_heads"], task_memory)


def stack(weights, name, h, mask, causal, heads, memories):
    for i in range(2):
        memory = h[:, :0] if memories is None else memories[i]
        scope = f"{name}_{i}"
        h = norm(weights, f"{scope}/attention_norm", h + attention(weights, scope, h, memory, mask, causal, heads))
        f = h @ weights[f"{scope}/feedforward/intermediate_dense/kernel"]
        f = gelu(f + weights[f"{scope}/feedforward/intermediate_dense/bias"])
        f = f @ weights[f"{scope}/feedforward/output_dense/kernel"] + weights[f"{scope}/feedforward/output_dense/bias"]
        h = norm(weights, f"{scope}/feedforward_norm", h + f)
    return h


def attention(weights, scope, h, memory, mask, causal, heads):
    b, t, d = h.shape
    m = memory.shape[1]
    part = {name: weights[f"{scope}/attention/{name}/kernel"] for name in ("query", "key", "value", "output_dense")}
    u, v = (weights[f"{scope}/attention/biases/{name}"] for name in ("r_w_bias", "r_r_bias"))
    seen = np.concatenate([memory, h], axis=1)
    query, key, value = (
        (a @ part[n]).reshape(b, -1, heads, d // heads) for a, n in zip((h, seen, seen), part, strict=False)
    )
    rates = 10000.0 ** (-2 * np.arange(d // 2) / d)
    context = np.zeros((b, t, heads, d // heads))
    for row in range(b):
        for i in range(t):
            keys = [
                j for j in range(m + t) if (j < m or mask[row, j - m] == mask[row, i]) and (j <= m + i or not causal)
            ]
            scores = []
            for j in keys:
                angles = (m + i - j) * rates
                r = (
                    np.concatenate([np.sin(angles), np.cos(angles)])
                    @ weights[f"{scope}/attention/relative_dense/kernel"]
                )
                meet = (query[row, i] + u) * key[row, j] + (query[row, i] + v) * r.reshape(heads, -1)
                scores.append(meet.sum(-1) / np.sqrt(d // heads))
            probs = np.exp(np.array(scores) - np.max(scores, axis=0))
            probs /= probs.sum(0)
            context[row, i] = np.einsum("sn,snh->nh", probs, value[row, keys])
    return context.reshape(b, t, d) @ part["output_dense"]


def norm(weights, name, h):
    mean, variance = h.mean(-1, keepdims=True), h.var(-1, keepdims=True)
    return (h - mean) / np.sqrt(variance + 1e-5) * weights[f"{name}/gamma"] + weights[f"{name}/beta"]


def gelu(x):
    erf = np.vectorize(math.erf)
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


# --- the definition


@branches
def test_a_branch_equals_numpy(branch):
    model = build(branch)
    x = inputs(padding_mask=np.array([[1] * 5 + [0] * 2, [0] * 2 + [1] * 3 + [2] * 2], "int32"))
    assert gap(output(model, x), by_hand(model, x)) <= 1e-5


def test_a_memory_equals_numpy():
    model, x = build(garden.Ernie3GenerationBackbone, memory_length=4), inputs(length=5)
    memory, task_memory = RNG.normal(size=(2, 2, 4, 12)), RNG.normal(size=(2, 2, 4, 8))
    held = {"memory": memory, "task_memory": task_memory, "memory_mask": np.ones((2, 4), "int32")}
    expected = by_hand(model, x, [memory[:, 0], memory[:, 1]], [task_memory[:, 0], task_memory[:, 1]])
    found = run(model.recurrent(), {**x, **held})["sequence_output"]
    assert gap(found, expected) <= 1e-5


def test_understanding_looks_both_ways_and_generation_back():
    x = inputs()
    later = {**x, "token_ids": np.where(np.arange(7) == 6, (x["token_ids"] + 1) % 31, x["token_ids"])}
    for branch, moves in zip(BRANCHES, (True, False), strict=True):
        model = build(branch)
        assert (gap(output(model, x)[:, :6], output(model, later)[:, :6]) > 1e-3) is moves


def test_understanding_has_no_memory():
    with pytest.raises(TypeError, match="Understanding has no memory"):
        build(garden.Ernie3UnderstandingBackbone).recurrent()
    with pytest.raises(ValueError, match="no recurrence 'deeper'; there are same_layer and shifted"):
        build(garden.Ernie3GenerationBackbone, recurrence="deeper")


# --- memory


def segments(model, x, length):
    recurrent, memory, outputs = model.recurrent(), model.empty_memory(2), []
    for start in range(0, x["token_ids"].shape[1], length):
        segment = {name: array[:, start : start + length] for name, array in x.items()}
        found = run(recurrent, {**segment, **memory})
        outputs.append(ops.convert_to_numpy(found["sequence_output"]))
        memory = {name: ops.convert_to_numpy(found[name]) for name in memory}
    return np.concatenate(outputs, axis=1), memory


def test_a_shifted_memory_equals_one_pass_and_one_of_the_same_layer_does_not():
    x = inputs(length=9)
    for recurrence in ("shifted", "same_layer"):
        model = build(garden.Ernie3GenerationBackbone, memory_length=9, recurrence=recurrence)
        whole, parts = output(model, x), segments(model, x, 3)[0]
        assert gap(parts[:, :3], whole[:, :3]) <= 1e-5
        assert (gap(parts, whole) <= 1e-5) is (recurrence == "shifted")


def test_what_is_remembered():
    """Entry i of the memory is what goes into layer i, or what comes out of it, in both modules."""
    x = inputs(length=4)
    for recurrence, first in (("shifted", 0), ("same_layer", 1)):
        model = build(garden.Ernie3GenerationBackbone, memory_length=4, recurrence=recurrence)
        states = run(model.features("hidden_states"), x)["hidden_states"]
        _, memory = segments(model, x, 4)
        for i in range(2):
            assert gap(memory["memory"][:, i], states[first + i]) <= 1e-5
            assert gap(memory["task_memory"][:, i], states[3 + first + i]) <= 1e-5


def test_the_reach_of_a_same_layer_memory_grows_with_every_segment():
    x = inputs(length=12)
    other = {**x, "token_ids": np.where(np.arange(12) == 0, (x["token_ids"] + 1) % 31, x["token_ids"])}
    for recurrence, reaches in (("shifted", False), ("same_layer", True)):
        model = build(garden.Ernie3GenerationBackbone, memory_length=2, recurrence=recurrence)
        change = np.abs(segments(model, x, 2)[0] - segments(model, other, 2)[0]).max(axis=(0, 2))
        assert bool(change[10] > 1e-9) is reaches  # four layers with a memory of two see eight places back


# --- two branches over one module


def test_branches_share_the_universal_module():
    understanding = build(garden.Ernie3UnderstandingBackbone)
    generation = garden.Ernie3GenerationBackbone(**SIZES, universal=understanding)
    shared = {id(weight) for weight in understanding.weights} & {id(weight) for weight in generation.weights}
    names = {weight.path.split("/")[0] for weight in understanding.weights if id(weight) in shared}
    assert names == {"embeddings", "universal_0", "universal_1"}
    assert len(shared) == len([w for w in generation.weights if w.path.startswith(("embeddings", "universal"))])


def test_training_one_branch_leaves_the_others_module():
    understanding = build(garden.Ernie3UnderstandingBackbone, dropout=0.0)
    generation = garden.Ernie3GenerationBackbone(**SIZES, dropout=0.0, universal=understanding)
    classifier = tasks.Ernie3UnderstandingTextClassifier(understanding, num_classes=2)
    language_model = tasks.Ernie3GenerationCausalLM(generation)
    x = inputs()
    for model, y in ((classifier, np.array([0, 1])), (language_model, x["token_ids"])):
        before = {w.path: ops.convert_to_numpy(w).copy() for w in (*understanding.weights, *generation.weights)}
        model.compile(keras.optimizers.SGD(1.0), loss=model.loss)
        model.train_on_batch(x, y)
        after = {w.path: ops.convert_to_numpy(w) for w in (*understanding.weights, *generation.weights)}
        moved = {path.split("/")[0].rstrip("_0123456789") for path in before if gap(before[path], after[path]) > 0}
        own, foreign = model.backbone.module, ({"understanding", "generation"} - {model.backbone.module}).pop()
        assert {"universal", own} <= moved and foreign not in moved


# --- what every backbone does


@branches
def test_saved_models_come_back_equal(branch, tmp_path):
    model, x = build(branch), inputs()
    model.save_to_preset(tmp_path)
    again = keras_hub.models.Backbone.from_preset(str(tmp_path))
    assert type(again) is branch and again.hyperparameters == model.hyperparameters
    assert gap(output(again, x), output(model, x)) == 0


@branches
def test_packing_and_left_padding_change_nothing(branch):
    model, x = build(branch), inputs(rows=1, length=9)
    packed = output(model, {**x, "padding_mask": np.array([[0, 0, 1, 1, 1, 2, 2, 2, 2]], "int32")})
    for start, stop in ((2, 5), (5, 9)):
        ids = x["token_ids"][:, start:stop]
        alone = output(model, {"token_ids": ids, "padding_mask": np.ones_like(ids)})
        assert gap(packed[:, start:stop], alone) <= 1e-5


@branches
@pytest.mark.parametrize("dtype", ["float16", "mixed_bfloat16"])
def test_a_row_of_padding_is_finite(branch, dtype):
    model = branch(**SIZES, dtype=dtype)
    for found in model(inputs(padding_mask=np.array([[0] * 7, [1] * 7], "int32"))).values():
        assert np.isfinite(ops.convert_to_numpy(ops.cast(found, "float32"))).all()


def test_generation_has_a_cache_that_equals_one_pass():
    model, x = build(garden.Ernie3GenerationBackbone), inputs(length=6)
    whole = output(model, x)
    states, cache = model.cached(x["token_ids"][:, :3], model.empty_cache(2, 8), 0)
    assert gap(states, whole[:, :3]) <= 1e-5
    for i in range(3, 6):
        states, cache = model.cached(x["token_ids"][:, i : i + 1], cache, i)
        assert gap(states, whole[:, i : i + 1]) <= 1e-5


def test_a_stream_is_read_with_both_memories():
    model = tasks.Ernie3GenerationCausalLM(
        build(garden.Ernie3GenerationBackbone, memory_length=60, recurrence="shifted")
    )
    stream = RNG.integers(0, 31, 40)
    x = {"token_ids": stream[None, :-1].astype("int32"), "padding_mask": np.ones((1, 39), "int32")}
    expected = keras.losses.sparse_categorical_crossentropy(stream[None, 1:], run(model, x), from_logits=True)
    reader = tasks.StreamLM(model, num_rows=1, sequence_length=8)
    reader.compile()
    assert abs(np.log(reader.evaluate(stream, verbose=0)["perplexity"]) - float(ops.mean(expected))) <= 1e-5


def test_masked_and_pooled_heads_stand_on_understanding():
    model, x = build(garden.Ernie3UnderstandingBackbone), inputs()
    masked_lm = tasks.Ernie3UnderstandingMaskedLM(model)
    assert tuple(masked_lm({**x, "mask_positions": np.array([[1], [2]])}).shape) == (2, 1, 31)
    assert tuple(run(model, x)["pooled_output"].shape) == (2, 8)
    with pytest.raises(TypeError, match="CausalLM needs"):
        tasks.CausalLM.for_backbone(garden.Ernie3UnderstandingBackbone)
