"""The Transformer of 2017 and its relative form of 2018: states against NumPy, the cache, and what both can learn."""

import keras
import keras_hub
import numpy as np
import pytest
from families import gap, run, t5_pieces
from keras import ops
from test_t5 import SOURCE_MASK, TARGET_MASK, pairs
from vaswani import forward

import garden
from garden import tasks
from garden.layers import PositionSinusoids, RelativeAttention, clipped_places, distances, position_sinusoids
from garden.presets import CheckpointError, export_to_transformers

SMALL = dict(vocabulary_size=97, num_layers=2, num_decoder_layers=3, num_heads=5, hidden_dim=60, intermediate_dim=70)
KINDS = pytest.mark.parametrize(
    "kind",
    [
        (garden.TransformerBackbone, {"max_sequence_length": 33}, None),
        (garden.ShawBackbone, {"max_relative_position": 3}, 3),
        (garden.ShawBackbone, {"max_relative_position": 2, "share_relative_heads": True}, 2),
    ],
    ids=["transformer", "shaw", "shaw_shared"],
)


def build(kind, **changes):
    """A small model with random weights, biases and norms included."""
    cls, arguments, _ = kind
    model = cls(**{**SMALL, **arguments, **changes})
    rng = np.random.default_rng(0)
    for variable in model.weights:
        offset = 1.0 if variable.path.endswith("gamma") else 0.0
        variable.assign(rng.normal(offset, 0.2, variable.shape))
    return model


# --- the parts


def test_sinusoids_are_interleaved_as_in_the_paper():
    """Sheet, section 8: place 1 of 8 channels."""
    table = np.array(position_sinusoids(2, 8))
    assert table[0].tolist() == [0, 1] * 4
    expected = [0.841471, 0.540302, 0.099833, 0.995004, 0.01, 0.99995, 0.001, 1.0]
    assert np.abs(table[1] - expected).max() < 1e-6
    halves = np.array(position_sinusoids(9, 8, interleaved=False))
    assert np.array_equal(halves[:, [0, 4, 1, 5, 2, 6, 3, 7]], position_sinusoids(9, 8))


def test_sinusoids_have_an_end_and_an_even_width():
    with pytest.raises(ValueError, match="34 tokens but the position table has 33"):
        PositionSinusoids(4, 33)(np.zeros((1, 34), "int32"))
    with pytest.raises(ValueError, match="hidden_dim=5 is odd"):
        PositionSinusoids(5, 33)


def test_places_are_clipped_and_counted_from_the_farthest_past():
    places = ops.convert_to_numpy(clipped_places(distances(np.ones((1, 5))), 2)).argmax(-1)
    assert places.tolist() == [[2, 3, 4, 4, 4], [1, 2, 3, 4, 4], [0, 1, 2, 3, 4], [0, 0, 1, 2, 3], [0, 0, 0, 1, 2]]


@pytest.mark.parametrize("share_heads", [False, True])
def test_relative_attention_equals_the_sum_over_pairs(share_heads):
    """Equations 3 and 4 of the paper, pair by pair."""
    rng = np.random.default_rng(0)
    layer = RelativeAttention(2, num_heads=3, share_heads=share_heads, use_bias=False)
    x = rng.normal(size=(2, 7, 12)).astype("float32")
    places = clipped_places(distances(np.ones((1, 7))), 2)
    ours = layer(x, places=places)
    tables = [ops.convert_to_numpy(table) for table in (layer.relative_keys, layer.relative_values)]
    assert tables[0].shape == (1 if share_heads else 3, 5, 4)
    q, k, v = ((x @ ops.convert_to_numpy(d.kernel)).reshape(2, 7, 3, 4) for d in (layer.query, layer.key, layer.value))
    z = np.zeros_like(q)
    for b, n, i in np.ndindex(2, 3, 7):
        place = [int(np.clip(j - i, -2, 2)) + 2 for j in range(7)]
        own = 0 if share_heads else n
        e = np.array([q[b, i, n] @ (k[b, j, n] + tables[0][own, place[j]]) / 2 for j in range(7)])
        a = np.exp(e) / np.exp(e).sum()
        z[b, i, n] = sum(a[j] * (v[b, j, n] + tables[1][own, place[j]]) for j in range(7))
    assert gap(ours, z.reshape(2, 7, 12) @ ops.convert_to_numpy(layer.output_dense.kernel)) <= 1e-5


# --- the models


@KINDS
def test_states_equal_numpy(kind):
    backbone, x = build(kind), pairs()
    source, target = forward(backbone, x, kind[2])
    ours = run(backbone, x)
    assert gap(ours["encoder_sequence_output"], source, SOURCE_MASK) <= 1e-5
    assert gap(ours["decoder_sequence_output"], target, TARGET_MASK) <= 1e-5
    table = ops.convert_to_numpy(backbone.token_embedding.embeddings)
    logits = backbone.logits(ops.convert_to_tensor(ours["decoder_sequence_output"]))
    assert gap(logits, target @ table.T, TARGET_MASK) <= 1e-4


@KINDS
def test_features_have_one_entry_a_layer(kind):
    backbone, x = build(kind), pairs()
    names = ("hidden_states", "attention_probs", "cross_attention_probs", "encoder_hidden_states", "encoder_queries")
    seen = run(backbone.features(*names), x)
    assert [len(seen[name]) for name in names] == [4, 3, 3, 3, 2]
    assert gap(seen["hidden_states"][-1], run(backbone, x)["decoder_sequence_output"]) <= 1e-5
    assert seen["cross_attention_probs"][0].shape == (3, 5, 7, 11)
    with pytest.raises(ValueError, match="no features named encoder_cross_keys; there are hidden_states"):
        backbone.features("encoder_cross_keys")


@KINDS
def test_a_cache_gives_the_states_of_whole_rows(kind):
    backbone, x = build(kind), pairs(target_mask=np.ones((3, 7)))
    whole, mask = run(backbone, x)["decoder_sequence_output"], x["encoder_padding_mask"]
    cache = backbone.empty_cache(backbone.encode_alone(x["encoder_token_ids"], mask), mask, length=9)
    parts = []
    for start, stop in ((0, 3), (3, 4), (4, 6), (6, 7)):
        states, cache = backbone.cached(x["decoder_token_ids"][:, start:stop], cache, start)
        parts.append(ops.convert_to_numpy(states))
    assert gap(np.concatenate(parts, axis=1), whole) <= 1e-5


@KINDS
def test_no_token_sees_a_later_one_or_padding(kind):
    backbone, x = build(kind), pairs()
    before = run(backbone, x)["decoder_sequence_output"]
    changed = {name: array.copy() for name, array in x.items()}
    changed["decoder_token_ids"][1, 4:] = 5
    changed["encoder_token_ids"][SOURCE_MASK == 0] = 5
    after = run(backbone, changed)["decoder_sequence_output"]
    assert gap(np.asarray(after)[1, :4], np.asarray(before)[1, :4]) <= 1e-5
    assert gap(np.asarray(after)[1, 4:], np.asarray(before)[1, 4:]) > 1e-2
    assert gap(np.asarray(after)[[0, 2]], np.asarray(before)[[0, 2]], TARGET_MASK[[0, 2]]) <= 1e-5


@KINDS
def test_packing_and_left_padding_change_nothing(kind):
    backbone = build(kind)
    x = pairs(np.array([[1] * 5 + [2] * 4 + [0] * 2]), np.array([[1] * 2 + [2] * 4 + [0] * 1]))
    together = run(backbone, x)
    for source, target in (((0, 5), (0, 2)), ((5, 9), (2, 6))):
        places = {"encoder": slice(*source), "decoder": slice(*target)}
        alone = {name: array[:, places[name[:7]]] for name, array in x.items()}
        alone = {name: np.ones_like(array) if "mask" in name else array for name, array in alone.items()}
        padded = run(backbone, {name: np.pad(array, ((0, 0), (4, 0))) for name, array in alone.items()})
        for name, output in run(backbone, alone).items():
            assert gap(output, np.asarray(together[name])[:, places[name[:7]]]) <= 1e-5
            assert gap(np.asarray(padded[name])[:, 4:], output) <= 1e-5


@KINDS
@pytest.mark.parametrize("dtype", ["float16", "mixed_bfloat16"])
def test_rows_of_padding_are_finite(kind, dtype):
    x = pairs(np.array([[0] * 9, [1] * 9]), np.array([[1] * 4, [0] * 4]))
    for output in build(kind, dtype=dtype)(x).values():
        assert np.isfinite(ops.convert_to_numpy(ops.cast(output, "float32"))).all()


@KINDS
def test_saved_models_come_back_equal(kind, tmp_path):
    backbone, x = build(kind), pairs()
    before = run(backbone, x)["decoder_sequence_output"]
    backbone.save(tmp_path / "model.keras")
    backbone.save_to_preset(tmp_path / "preset")
    for model in (
        keras.saving.load_model(tmp_path / "model.keras"),
        keras_hub.models.Backbone.from_preset(str(tmp_path / "preset")),
        garden.Backbone.from_preset(tmp_path / "preset"),
    ):
        assert type(model) is kind[0] and model.hyperparameters == backbone.hyperparameters
        assert gap(run(model, x)["decoder_sequence_output"], before) == 0


@KINDS
def test_int8_and_lora(kind):
    backbone, x = build(kind), pairs()
    before = run(backbone, x)["decoder_sequence_output"]
    backbone.quantize("int8")
    assert gap(run(backbone, x)["decoder_sequence_output"], before, TARGET_MASK) < 0.5
    backbone = build(kind)
    backbone.enable_lora(rank=2)
    names = {variable.path.rsplit("/", 1)[-1] for variable in backbone.trainable_variables}
    assert names <= {"lora_kernel_a", "lora_kernel_b", "bias"}


@KINDS
def test_it_learns_to_copy(kind, tmp_path):
    tokenizer = garden.TransformerTokenizer(t5_pieces())
    model = tasks.Seq2SeqLM.for_backbone(kind[0])(
        kind[0](**{**SMALL, **kind[1], "dropout": 0.0}),
        tasks.Seq2SeqLMPreprocessor(tokenizer, encoder_sequence_length=9, decoder_sequence_length=9),
    )
    texts = [f"w{i % 10} w{i * 3 % 10}" for i in range(40)]
    model.compile(optimizer=keras.optimizers.Adam(3e-3), sampler="greedy")
    losses = model.fit((texts, texts), batch_size=20, epochs=60, verbose=0).history["loss"]
    assert losses[-1] < 0.1 * losses[0]
    assert model.generate(texts[:5]) == texts[:5]
    model.compile(sampler=keras_hub.samplers.BeamSampler(num_beams=3))
    assert model.generate(texts[5:8]) == texts[5:8]


def test_the_ends_of_sinusoids_are_errors_and_relative_positions_have_none():
    backbone = garden.TransformerBackbone(**SMALL, max_sequence_length=33)
    with pytest.raises(ValueError, match="34 tokens but the position table has 33"):
        backbone(pairs(np.ones((1, 34)), np.ones((1, 7))))
    long = pairs(np.ones((1, 70)), np.ones((1, 7)))
    assert run(garden.ShawBackbone(**SMALL), long)["encoder_sequence_output"].shape == (1, 70, 60)


def test_the_base_model_has_the_published_size():
    """65 million in the paper, with about 37,000 tokens: its table, and four biases of a vector each a layer pair."""
    with garden.layers.weights_to_be_loaded():
        model = garden.TransformerBackbone(37000, 6, 8, 512, 2048)
    attention, feedforward, norm = 4 * 512 * 512, 2 * 512 * 2048 + 2048 + 512, 2 * 512
    stacks = 6 * (attention + feedforward + 2 * norm) + 6 * (2 * attention + feedforward + 3 * norm)
    assert model.count_params() == 37000 * 512 + stacks == 63_045_632


def test_there_is_no_other_format_to_write(tmp_path):
    with pytest.raises(CheckpointError, match="names for the layers of a ShawBackbone: save it as a garden preset"):
        export_to_transformers(garden.ShawBackbone(**SMALL), tmp_path / "out")
    assert not (tmp_path / "out").exists()
