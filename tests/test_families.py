"""What every family must show, on the backend of this run: DESIGN 7, one test a clause, one row a family."""

import keras
import keras_hub
import numpy as np
import pytest
import transformers
from families import FAMILIES, PADDING, TWINS, gap, reference_outputs, run
from keras import ops

import garden
from garden.layers import weights_to_be_loaded
from garden.presets import export_to_transformers
from garden.presets.checkpoint import read_checkpoint

_SHARED = {}


def pytest_generate_tests(metafunc):
    """Every test runs over every family; one that asks for a `twin`, over those that transformers has too."""
    name, rows = ("twin", TWINS) if "twin" in metafunc.fixturenames else ("family", FAMILIES)
    metafunc.parametrize(name, rows, ids=lambda row: row.backbone.__name__)


def shared(family):
    """One small model for all tests that only read it."""
    if family.backbone not in _SHARED:
        _SHARED[family.backbone] = family.build()
    return _SHARED[family.backbone]


def test_every_hidden_state_and_attention_matrix_equals_the_reference(twin, tmp_path):
    reference = twin.save_reference(tmp_path, twin.reference)
    backbone = twin.backbone.from_preset(tmp_path)
    x = twin.inputs(twin.padding)
    ours = run(backbone.features("hidden_states", "attention_probs"), x)
    theirs = reference_outputs(reference, x, output_hidden_states=True, output_attentions=True)
    plain = run(backbone, x)
    assert gap(plain["sequence_output"], theirs.last_hidden_state, twin.padding) <= 1e-5
    assert ("pooled_output" in plain) == ("pooler_output" in theirs) == (twin.backbone.classifier_pooler is None)
    if "pooled_output" in plain:  # transformers reads the first place of a row, also where padding stands there
        rows = twin.padding[:, 0] > 0
        assert gap(ops.convert_to_numpy(plain["pooled_output"])[rows], theirs.pooler_output[rows]) <= 1e-5
    assert len(ours["hidden_states"]) == len(theirs.hidden_states) == len(backbone.blocks) + 1
    for mine, other in zip(ours["hidden_states"], theirs.hidden_states, strict=True):
        assert gap(mine, other, twin.padding) <= 1e-5
    for mine, other in zip(ours["attention_probs"], theirs.attentions, strict=True):
        queries_first = [np.moveaxis(matrix, 1, 2) for matrix in (ops.convert_to_numpy(mine), other.numpy())]
        assert gap(*queries_first, twin.padding) <= 1e-5


def test_the_activation_is_that_of_the_configuration(twin, tmp_path):
    for theirs, ours in twin.activations.items():
        twin.config(**{**twin.sizes, twin.activation_key: theirs}).save_pretrained(tmp_path)
        assert read_checkpoint(tmp_path).arguments["activation"] == ours


def test_left_padding_changes_nothing(family):
    backbone = shared(family)
    x = family.inputs(np.ones((3, 11), "int32"))
    padded = {name: np.pad(array, ((0, 0), (4, 0))) for name, array in x.items()}
    ours, shifted = run(backbone, x), run(backbone, padded)
    shifted["sequence_output"] = shifted["sequence_output"][:, 4:]
    for name, output in ours.items():
        assert gap(shifted[name], ops.convert_to_numpy(output)) <= 1e-5


def logits(outputs):
    """What a head of the reference says, in the shape of garden's."""
    if hasattr(outputs, "start_logits"):
        return np.stack([outputs.start_logits, outputs.end_logits], axis=-1)
    return getattr(outputs, "logits", outputs[0])


def test_published_heads_load_and_go_back_to_transformers(twin, tmp_path):
    """Each equals the reference that was saved, and the reference that the export reloads as."""
    x = twin.inputs(twin.padded(np.array([[1] * 11, [1] * 7 + [0] * 4])))
    positions = {"mask_positions": np.tile(np.arange(11, dtype="int32"), (2, 1))}
    for task, model_cls in twin.heads.items():
        folder = tmp_path / task.__name__
        reference = twin.save_reference(folder, model_cls, num_labels=2)
        model = task.from_preset(folder)
        unread_pooler = {variable.path for variable in model.backbone.weights if "pooler" in variable.path}
        assert set(model.load_report.fresh) <= unread_pooler
        ours = run(model, {**x, **positions} if "mask_positions" in model.input else x)
        export_to_transformers(model, folder / "out")
        reloaded, report = model_cls.from_pretrained(folder / "out", output_loading_info=True)
        assert not report["missing_keys"] and not report["unexpected_keys"]
        if task is garden.tasks.QuestionAnswering:  # scores of starts and of ends
            ours = ours.swapaxes(1, 2)
        for theirs in (reference, reloaded.eval()):
            theirs = logits(reference_outputs(theirs, x))
            assert ours.shape == tuple(theirs.shape)
            assert gap(ours, theirs, x["padding_mask"] if ours.shape[:2] == (2, 11) else None) <= 1e-5
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "out")
    for text in ("w1 w2 w90", "W3 [MASK] w4", "", "w5 nothing 👍"):
        assert tokenizer(text)["input_ids"] == model.preprocessor.tokenizer.encode(text).ids


def test_a_backbone_alone_goes_back_to_transformers(twin, tmp_path):
    twin.save_reference(tmp_path / "in", twin.reference)
    model, x = twin.backbone.from_preset(tmp_path / "in"), twin.inputs(np.array([[1] * 11]))
    export_to_transformers(model, tmp_path / "out")
    reloaded, report = twin.reference.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    assert gap(run(model, x)["sequence_output"], reference_outputs(reloaded.eval(), x).last_hidden_state) <= 1e-5


def test_packed_rows_equal_separate_rows(family):
    backbone = shared(family)
    packed = family.inputs(np.array([[1] * 5 + [2] * 4 + [3] * 2]))
    together = run(backbone, packed)["sequence_output"]
    for start, stop in ((0, 5), (5, 9), (9, 11)):
        alone = {name: array[:, start:stop] for name, array in packed.items()}
        alone["padding_mask"] = np.ones_like(alone["padding_mask"])
        assert gap(run(backbone, alone)["sequence_output"], together[:, start:stop]) <= 1e-5


@pytest.mark.parametrize("dtype", ["float16", "mixed_bfloat16"])
def test_a_row_of_padding_is_finite(family, dtype):
    outputs = run(family.build(dtype=dtype), family.inputs(np.array([[0] * 9, [1] * 9])))
    for name, output in outputs.items():
        assert np.isfinite(ops.convert_to_numpy(ops.cast(output, "float32"))).all(), name


def test_features_share_the_weights_and_do_not_change_the_output(family):
    backbone = shared(family)
    names = ("hidden_states", "attention_probs", "attention_scores", "queries", "keys", "values")
    seen = backbone.features(*names)
    assert {id(v) for v in seen.weights} == {id(v) for v in backbone.weights}
    x = family.inputs()
    outputs = run(seen, x)
    plain = run(backbone, x)["sequence_output"]
    assert gap(outputs["sequence_output"], plain, PADDING) <= 1e-5
    assert [len(outputs[name]) for name in names] == [3, 2, 2, 2, 2, 2]
    assert tuple(outputs["queries"][0].shape) == (3, 11, 5, 12)
    # Probabilities are the softmax of the scores where attention is allowed.
    scores, probs = (ops.convert_to_numpy(outputs[name][1])[1] for name in ("attention_scores", "attention_probs"))
    weights = np.exp(scores) * (np.tril(np.ones((11, 11))) if family.causal else 1)
    assert np.abs(weights / weights.sum(-1, keepdims=True) - probs).max() <= 1e-5
    with pytest.raises(ValueError, match="no features named attentions"):
        backbone.features("attentions")


def test_saved_models_come_back_equal(family, tmp_path):
    backbone = shared(family)
    x = family.inputs()
    before = run(backbone, x)["sequence_output"]
    backbone.save(tmp_path / "model.keras")
    backbone.save_to_preset(tmp_path / "preset")
    restored = [
        keras.saving.load_model(tmp_path / "model.keras"),
        keras_hub.models.Backbone.from_preset(str(tmp_path / "preset")),
        family.backbone.from_preset(tmp_path / "preset"),
        garden.Backbone.from_preset(tmp_path / "preset"),
    ]
    for model in restored:
        assert type(model) is family.backbone
        assert model.hyperparameters == backbone.hyperparameters
        assert gap(run(model, x)["sequence_output"], before) == 0
    restored[-1].save_to_preset(tmp_path / "again")
    again = family.backbone.from_preset(tmp_path / "again")
    assert gap(run(again, x)["sequence_output"], before) == 0


def test_compiled_predict_equals_eager(family):
    backbone = shared(family)
    x = family.inputs()
    eager = ops.convert_to_numpy(backbone(x)["sequence_output"])
    assert gap(backbone.predict(x, verbose=0)["sequence_output"], eager, PADDING) <= 1e-5


def test_training_lowers_the_loss(family):
    model, x, y = family.trains(family.build(dtype="mixed_bfloat16", dropout=0.1))
    model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=model.loss)
    losses = model.fit(x, y, batch_size=8, epochs=12, verbose=0).history["loss"]
    assert np.isfinite(losses).all() and losses[-1] < 0.7 * losses[0]


def test_int8_quantization_runs_and_shrinks(family):
    backbone = family.build(num_layers=1)
    x = family.inputs()
    before, size = run(backbone, x)["sequence_output"], nbytes(backbone)
    backbone.quantize("int8")
    assert gap(run(backbone, x)["sequence_output"], before, PADDING) < 0.1
    assert nbytes(backbone) < 0.4 * size


def test_lora_trains_only_its_own_weights(family):
    backbone = family.build()
    backbone.enable_lora(rank=2)
    names = {variable.path.rsplit("/", 1)[-1] for variable in backbone.trainable_variables}
    assert names <= {"lora_kernel_a", "lora_kernel_b", "bias"} and "lora_kernel_a" in names
    frozen = [v for v in backbone.weights if v.path.endswith("query/kernel")]
    assert frozen and not any(v.trainable for v in frozen)


def test_too_long_a_sequence_raises(family):
    backbone = family.build()  # TensorFlow would trace a model that has seen other lengths for any length
    if not family.is_limited:
        assert backbone(family.inputs(np.ones((1, 600), "int32")))["sequence_output"].shape[1] == 600
        return
    with pytest.raises(ValueError, match="34 tokens but the position table has 33"):
        backbone(family.inputs(np.ones((1, 34), "int32")))
    with pytest.raises(ValueError, match="34 tokens but the position table has 33"):
        backbone.predict(family.inputs(np.ones((1, 34), "int32")), verbose=0)


def test_published_parameter_counts_are_exact(family):
    for name in family.presets:
        with weights_to_be_loaded():  # their number is asked for and not their values
            backbone = family.backbone.from_preset(name, load_weights=False)
        assert backbone.count_params() == garden.presets.find(name).parameters, name


def nbytes(model):
    sizes = {"int8": 1, "float32": 4}
    return sum(int(np.prod(v.shape)) * sizes[keras.backend.standardize_dtype(v.dtype)] for v in model.weights)
