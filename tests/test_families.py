"""What every family must show, on the backend of this run: DESIGN 7, one test a clause, one row a family."""

import keras
import keras_hub
import numpy as np
import pytest
import transformers
from families import FAMILIES, PADDING, gap, reference_outputs
from keras import ops

import garden
from garden.presets import export_to_transformers

pytestmark = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.backbone.__name__)
ACTIVATIONS = {"gelu": "gelu_erf", "gelu_new": "gelu_tanh", "relu": "relu"}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_hidden_state_and_attention_matrix_equals_the_reference(family, activation, tmp_path):
    reference = family.save_reference(tmp_path, family.reference, **{family.activation_key: activation})
    backbone = family.backbone.from_preset(tmp_path)
    assert backbone.activation == ACTIVATIONS[activation]
    x = family.inputs(family.padding)
    ours = backbone.features("hidden_states", "attention_probs")(x)
    theirs = reference_outputs(reference, x, output_hidden_states=True, output_attentions=True)
    assert gap(backbone(x)["sequence_output"], theirs.last_hidden_state, family.padding) <= 1e-5
    assert len(ours["hidden_states"]) == len(theirs.hidden_states) == len(backbone.blocks) + 1
    for mine, other in zip(ours["hidden_states"], theirs.hidden_states, strict=True):
        assert gap(mine, other, family.padding) <= 1e-5
    for mine, other in zip(ours["attention_probs"], theirs.attentions, strict=True):
        queries_first = [np.moveaxis(matrix, 1, 2) for matrix in (ops.convert_to_numpy(mine), other.numpy())]
        assert gap(*queries_first, family.padding) <= 1e-5


def test_pooled_output_equals_the_reference(family, tmp_path):
    reference = family.save_reference(tmp_path, family.reference)
    x = family.inputs(np.array([[1] * 11, [1] * 7 + [0] * 4]))
    ours, theirs = family.backbone.from_preset(tmp_path)(x), reference_outputs(reference, x)
    assert ("pooled_output" in ours) == ("pooler_output" in theirs) == (family.backbone.classifier_pooler is None)
    if "pooled_output" in ours:
        assert gap(ours["pooled_output"], theirs.pooler_output) <= 1e-5


def test_left_padding_changes_nothing(family):
    backbone = family.build()
    x = family.inputs(np.ones((2, 7), "int32"))
    padded = {name: np.pad(array, ((0, 0), (4, 0))) for name, array in x.items()}
    ours, shifted = backbone(x), backbone(padded)
    shifted["sequence_output"] = shifted["sequence_output"][:, 4:]
    for name, output in ours.items():
        assert gap(shifted[name], ops.convert_to_numpy(output)) <= 1e-5


def test_published_heads_load_and_equal_the_reference(family, tmp_path):
    for task, model_cls in family.heads.items():
        folder = tmp_path / task.__name__
        reference = family.save_reference(folder, model_cls, num_labels=2)
        x = family.inputs(np.array([[1] * 11, [1] * 7 + [0] * 4]))
        theirs = reference_outputs(reference, x).logits
        model = task.from_preset(folder)
        unread_pooler = {variable.path for variable in model.backbone.weights if "pooler" in variable.path}
        assert set(model.load_report.fresh) <= unread_pooler
        if "mask_positions" in model.input:
            positions = np.tile(np.arange(11, dtype="int32"), (2, 1))
            assert gap(model({**x, "mask_positions": positions}), theirs, x["padding_mask"]) <= 1e-5
        else:
            every_token = theirs.shape[:2] == (2, 11)
            assert gap(model(x), theirs, x["padding_mask"] if every_token else None) <= 1e-5


def test_packed_rows_equal_separate_rows(family):
    backbone = family.build()
    packed = family.inputs(np.array([[1] * 5 + [2] * 4 + [3] * 2 + [0]]))
    together = ops.convert_to_numpy(backbone(packed)["sequence_output"])
    for start, stop in ((0, 5), (5, 9), (9, 11)):
        alone = {name: array[:, start:stop] for name, array in packed.items()}
        alone["padding_mask"] = np.ones_like(alone["padding_mask"])
        assert gap(backbone(alone)["sequence_output"], together[:, start:stop]) <= 1e-5


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16"])
def test_a_row_of_padding_is_finite(family, dtype):
    outputs = family.build(dtype=dtype)(family.inputs(np.array([[0] * 9, [1] * 9])))
    for name, output in outputs.items():
        assert np.isfinite(ops.convert_to_numpy(ops.cast(output, "float32"))).all(), name


def test_features_share_the_weights_and_do_not_change_the_output(family):
    backbone = family.build()
    names = ("hidden_states", "attention_probs", "attention_scores", "queries", "keys", "values")
    seen = backbone.features(*names)
    assert {id(v) for v in seen.weights} == {id(v) for v in backbone.weights}
    x = family.inputs()
    outputs = seen(x)
    plain = ops.convert_to_numpy(backbone(x)["sequence_output"])
    assert gap(outputs["sequence_output"], plain, PADDING) <= 1e-5
    assert [len(outputs[name]) for name in names] == [3, 2, 2, 2, 2, 2]
    assert tuple(outputs["queries"][0].shape) == (3, 11, 5, 12)
    # Probabilities are the softmax of the scores where attention is allowed.
    scores, probs = (ops.convert_to_numpy(outputs[name][1])[1] for name in ("attention_scores", "attention_probs"))
    assert np.abs(np.exp(scores) / np.exp(scores).sum(-1, keepdims=True) - probs).max() <= 1e-5
    with pytest.raises(ValueError, match="no features named attentions"):
        backbone.features("attentions")


def test_saved_models_come_back_equal(family, tmp_path):
    backbone = family.build()
    x = family.inputs()
    before = ops.convert_to_numpy(backbone(x)["sequence_output"])
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
        assert gap(model(x)["sequence_output"], before) == 0
    restored[-1].save_to_preset(tmp_path / "again")
    again = family.backbone.from_preset(tmp_path / "again")
    assert gap(again(x)["sequence_output"], before) == 0


def test_exports_reload_in_transformers_with_equal_outputs(family, tmp_path):
    for task, model_cls in {None: family.reference, **family.heads}.items():
        name = model_cls.__name__
        family.save_reference(tmp_path / f"in-{name}", model_cls)
        model = (task or family.backbone).from_preset(tmp_path / f"in-{name}")
        export_to_transformers(model, tmp_path / name)
        reloaded, report = model_cls.from_pretrained(tmp_path / name, output_loading_info=True)
        assert not report["missing_keys"] and not report["unexpected_keys"]
        x = family.inputs(np.array([[1] * 11]))
        theirs = reference_outputs(reloaded.eval(), x)
        if task is None:
            assert gap(model(x)["sequence_output"], theirs.last_hidden_state) <= 1e-5
        elif "mask_positions" in model.input:
            positions = np.arange(11, dtype="int32")[None]
            assert gap(model({**x, "mask_positions": positions}), theirs.logits) <= 1e-5
        else:
            assert gap(model(x), theirs.logits) <= 1e-5


def test_exported_tokenizer_gives_transformers_the_same_ids(family, tmp_path):
    task, model_cls = next(iter(family.heads.items()))
    family.save_reference(tmp_path / "in", model_cls)
    model = task.from_preset(tmp_path / "in")
    export_to_transformers(model, tmp_path / "out")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    for text in ("w1 w2 w90", "W3 [MASK] w4", "", "w5 nothing 👍"):
        assert theirs(text)["input_ids"] == model.preprocessor.tokenizer.encode(text).ids


def test_compiled_predict_equals_eager(family):
    backbone = family.build()
    x = family.inputs()
    eager = ops.convert_to_numpy(backbone(x)["sequence_output"])
    assert gap(backbone.predict(x, verbose=0)["sequence_output"], eager, PADDING) <= 1e-5


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_training_lowers_the_loss(family, dtype):
    backbone = family.build(dtype=dtype, dropout=0.1)
    classifier = garden.tasks.TextClassifier.for_backbone(family.backbone)(backbone, num_classes=2)
    x = family.inputs(np.ones((16, 9), "int32"))
    y = (x["token_ids"][:, 0] > 50).astype("int32")
    classifier.compile(optimizer=keras.optimizers.Adam(3e-3), loss=classifier.loss)
    losses = classifier.fit(x, y, batch_size=8, epochs=12, verbose=0).history["loss"]
    assert np.isfinite(losses).all() and losses[-1] < 0.7 * losses[0]


def test_int8_quantization_runs_and_shrinks(family):
    backbone = family.build()
    x = family.inputs()
    before, size = ops.convert_to_numpy(backbone(x)["sequence_output"]), nbytes(backbone)
    backbone.quantize("int8")
    assert gap(backbone(x)["sequence_output"], before, PADDING) < 0.1
    assert nbytes(backbone) < 0.4 * size


def test_lora_trains_only_its_own_weights(family):
    backbone = family.build()
    backbone.enable_lora(rank=2)
    names = {variable.path.rsplit("/", 1)[-1] for variable in backbone.trainable_variables}
    assert names <= {"lora_kernel_a", "lora_kernel_b", "bias"} and "lora_kernel_a" in names
    frozen = [v for v in backbone.weights if v.path.endswith("query/kernel")]
    assert frozen and not any(v.trainable for v in frozen)


def test_too_long_a_sequence_raises(family):
    backbone = family.build()
    with pytest.raises(ValueError, match="34 tokens but the position table has 33"):
        backbone(family.inputs(np.ones((1, 34), "int32")))
    with pytest.raises(ValueError, match="34 tokens but the position table has 33"):
        backbone.predict(family.inputs(np.ones((1, 34), "int32")), verbose=0)


def test_published_parameter_counts_are_exact(family):
    for name in family.presets:
        backbone = family.backbone.from_preset(name, load_weights=False)
        assert backbone.count_params() == garden.presets.find(name).parameters, name


def nbytes(model):
    sizes = {"int8": 1, "float32": 4}
    return sum(int(np.prod(v.shape)) * sizes[keras.backend.standardize_dtype(v.dtype)] for v in model.weights)
