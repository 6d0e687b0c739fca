"""What ERNIE has of its own: the table of tasks, which one switch of the configuration announces."""

import json

import numpy as np
import pytest
import transformers
from families import FAMILIES, gap, reference_outputs, write_vocabulary
from keras import ops
from safetensors.torch import load_file, save_file

import garden
from garden.presets import CheckpointError, export_to_transformers

ERNIE = next(row for row in FAMILIES if row.backbone is garden.ErnieBackbone)
X = ERNIE.inputs(np.array([[1] * 9, [1] * 6 + [0] * 3]))


@pytest.mark.parametrize("task_type", [0, 2])
def test_every_row_of_the_task_table_equals_the_reference(task_type, tmp_path):
    model = ERNIE.save_reference(tmp_path, transformers.ErnieModel)
    backbone = garden.ErnieBackbone.from_preset(tmp_path, task_type=task_type)
    ids = np.full(X["token_ids"].shape, task_type)
    expected = reference_outputs(model, X, task_type_ids=model.embeddings.position_ids.new_tensor(ids))
    assert gap(backbone(X)["sequence_output"], expected.last_hidden_state, X["padding_mask"]) <= 1e-5


def test_without_the_switch_there_is_no_table(tmp_path):
    """Baidu's English configurations state 16 task types and no switch."""
    changes = {"use_task_id": False, "task_type_vocab_size": 16}
    model = ERNIE.save_reference(tmp_path / "in", transformers.ErnieModel, **changes)
    backbone = garden.ErnieBackbone.from_preset(tmp_path / "in")
    assert backbone.num_task_types == 0
    expected = reference_outputs(model, X).last_hidden_state
    assert gap(backbone(X)["sequence_output"], expected, X["padding_mask"]) <= 1e-5
    export_to_transformers(backbone, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["use_task_id"] is False
    reloaded = transformers.ErnieModel.from_pretrained(tmp_path / "out")
    again = reference_outputs(reloaded.eval(), X).last_hidden_state
    assert gap(backbone(X)["sequence_output"], again, X["padding_mask"]) <= 1e-5


def test_a_file_that_calls_itself_bert_does_not_lose_its_task_table(tmp_path):
    """Older converted files say model_type "bert": read as BERT they would silently compute something else."""
    ERNIE.save_reference(tmp_path, transformers.ErnieModel)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "model_type": "bert"}))
    assert "embeddings.task_type_embeddings.weight" in load_file(tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="task_type_embeddings.weight"):
        garden.Backbone.from_preset(tmp_path)


def test_a_task_type_beyond_the_table_raises():
    with pytest.raises(ValueError, match="task_type=3 is not a row of a table of num_task_types=3"):
        ERNIE.build(task_type=3)


def test_the_norms_have_paddles_epsilon():
    assert garden.presets.find("ernie_3.0_nano_zh").layer_norm_epsilon == 1e-5
    assert ERNIE.build().layer_norm_epsilon == 1e-5
    assert ops.shape(ERNIE.build()(X)["pooled_output"]) == (2, 60)


def older(folder, **changes):
    """An upload of the early converters: BERT's scope, gamma and beta, and a configuration with these changes."""
    tensors = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        name = name.replace("ernie.", "bert.").replace("LayerNorm.weight", "LayerNorm.gamma")
        tensors[name.replace("LayerNorm.bias", "LayerNorm.beta")] = tensor
    save_file(tensors, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    config = {name: value for name, value in (config | changes).items() if value is not None}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("model_type", ["bert", "ernie"])
def test_older_conversions_without_a_task_table(model_type, tmp_path):
    """ERNIE 1.0 as it was first uploaded: the network is BERT's, with ReLU and Paddle's epsilon."""
    sizes = {"use_task_id": False, "hidden_act": "relu"}
    model = ERNIE.save_reference(tmp_path, transformers.ErnieForPreTraining, **sizes)
    masked_lm = garden.tasks.MaskedLM.from_preset(older(tmp_path, model_type=model_type))
    assert type(masked_lm.backbone) is {"bert": garden.BertBackbone, "ernie": garden.ErnieBackbone}[model_type]
    assert not masked_lm.load_report.fresh and masked_lm.backbone.layer_norm_epsilon == 1e-5
    x = {**X, "mask_positions": np.tile(np.arange(9, dtype="int32"), (2, 1))}
    assert gap(masked_lm(x), reference_outputs(model, X).prediction_logits, X["padding_mask"]) <= 1e-5


def test_older_conversions_with_a_task_table_and_without_an_epsilon(tmp_path):
    model = ERNIE.save_reference(tmp_path, transformers.ErnieForPreTraining)
    backbone = garden.ErnieBackbone.from_preset(older(tmp_path, layer_norm_eps=None))
    assert backbone.layer_norm_epsilon == 1e-5 and backbone.num_task_types == 3
    expected = reference_outputs(model.ernie, X).last_hidden_state
    assert gap(backbone(X)["sequence_output"], expected, X["padding_mask"]) <= 1e-5


def test_a_conversion_that_lost_the_transform_of_the_masked_lm_head_says_so(tmp_path):
    ERNIE.save_reference(tmp_path, transformers.ErnieForPreTraining)
    tensors = load_file(tmp_path / "model.safetensors")
    save_file({name: t for name, t in tensors.items() if "transform" not in name}, tmp_path / "model.safetensors")
    with pytest.warns(UserWarning, match="fresh and in need of training: masked_lm/"):
        masked_lm = garden.tasks.MaskedLM.from_preset(tmp_path)
    assert masked_lm.load_report.loaded["masked_lm/bias"] == "cls.predictions.bias"


def test_a_table_padded_beyond_its_vocabulary_fills_masks_with_words(tmp_path):
    """ERNIE 1.0 has 18,000 rows and 17,964 words: the rows behind them are no tokens."""
    model = ERNIE.build_reference(transformers.ErnieForMaskedLM)
    model.cls.predictions.bias.data[90:] = 100.0
    model.save_pretrained(tmp_path)
    write_vocabulary(tmp_path / "vocab.txt", 90)
    masked_lm = garden.tasks.MaskedLM.from_preset(tmp_path)
    (fillings,) = masked_lm.fill_mask("w1 [MASK] w2", top_k=90)
    words = (tmp_path / "vocab.txt").read_text().split()
    assert sorted(filling.token for filling in fillings) == sorted(words)
    assert abs(sum(filling.probability for filling in fillings) - 1) < 1e-6
