"""GPT-1, 2 and 3: OpenAI's own files, the band, and decoding with a cache."""

import json

import numpy as np
import pytest
import tensorflow as tf
import torch
import transformers
from families import FAMILIES, gap, inputs, run, write_gpt, write_gpt2
from keras import ops

import garden
from garden import tasks
from garden.layers import weights_to_be_loaded
from garden.presets import CheckpointError

ROWS = {row.backbone: row for row in FAMILIES}
SIZES = dict(vocabulary_size=97, num_layers=4, num_heads=5, hidden_dim=60, intermediate_dim=70, max_sequence_length=33)


def randomised(backbone, seed=0):
    """The same backbone with weights that leave nothing equal, norms and biases included."""
    rng = np.random.default_rng(seed)
    for variable in backbone.weights:
        variable.assign(rng.normal(1.0 if variable.path.endswith("gamma") else 0.0, 0.2, variable.shape))
    return backbone


def arrays_of_openai(model, names):
    """The reference's tensors as OpenAI stored them: matrices (1, in, out)."""
    tensors = {name.removeprefix("transformer."): t.numpy() for name, t in model.state_dict().items()}
    stored = {}
    for name in names:
        array = tensors[name]
        stored[name] = array[None] if name.endswith("weight") and ("attn" in name or "mlp" in name) else array
    return stored


def test_the_first_gpt_loads_from_numpy_shards(tmp_path):
    family = ROWS[garden.GptBackbone]
    sizes = {"n_embd": 128, "n_head": 2}  # OpenAI's files do not say that a head is 64 wide
    reference = family.build_reference(transformers.OpenAIGPTModel, **sizes)
    names = ["positions_embed.weight", "tokens_embed.weight"]
    for i in range(3):
        for layer in ("attn.c_attn", "attn.c_proj", "ln_1", "mlp.c_fc", "mlp.c_proj", "ln_2"):
            names += [f"h.{i}.{layer}.weight", f"h.{i}.{layer}.bias"]
    arrays = list(arrays_of_openai(reference, names).values())
    (tmp_path / "params_shapes.json").write_text(json.dumps([array.shape for array in arrays]))
    flat = np.concatenate([array.reshape(-1) for array in arrays])
    for i, shard in enumerate(np.array_split(flat, 11)):  # more than ten: params_10 stands behind params_9
        np.save(tmp_path / f"params_{i}.npy", shard)
    write_gpt(tmp_path, 97)
    model = tasks.CausalLM.from_preset(tmp_path)
    assert type(model.backbone) is garden.GptBackbone and not model.load_report.fresh
    x = family.inputs(np.ones((2, 11), "int32"))
    with torch.no_grad():
        theirs = reference(torch.tensor(x["token_ids"]).long()).last_hidden_state
    assert gap(run(model.backbone, x)["sequence_output"], theirs) <= 1e-5
    (tmp_path / "params_3.npy").unlink()
    with pytest.raises(CheckpointError, match="no whole checkpoint: its 10 shards hold"):
        garden.GptBackbone.from_preset(tmp_path)


def test_gpt2_loads_from_openais_tensorflow_checkpoint(tmp_path):
    family = ROWS[garden.Gpt2Backbone]
    reference = family.build_reference(transformers.GPT2Model, n_inner=240)
    state = {name: t for name, t in reference.state_dict().items() if not name.endswith((".attn.bias", ".masked_bias"))}
    words = {"weight": "w", "bias": "b"}
    stored = {}
    for name, array in arrays_of_openai(reference, state).items():
        layer, variable = name.rsplit(".", 1)
        word = "g" if "ln_" in layer and variable == "weight" else words[variable]
        foreign = layer.replace("h.", "h", 1).replace(".", "/") if layer.startswith("h.") else layer
        stored["model/" + (foreign if layer in ("wte", "wpe") else f"{foreign}/{word}")] = array
    names, values = list(stored), [tf.constant(array) for array in stored.values()]
    tf.raw_ops.SaveV2(
        prefix=f"{tmp_path}/model.ckpt", tensor_names=names, shape_and_slices=[""] * len(names), tensors=values
    )
    hparams = {"n_vocab": 97, "n_ctx": 33, "n_embd": 60, "n_head": 5, "n_layer": 3}
    (tmp_path / "hparams.json").write_text(json.dumps(hparams))
    write_gpt2(tmp_path, 97)
    (tmp_path / "vocab.json").rename(tmp_path / "encoder.json")
    (tmp_path / "merges.txt").rename(tmp_path / "vocab.bpe")
    model = tasks.CausalLM.from_preset(tmp_path)
    assert not model.load_report.fresh
    assert model.preprocessor.tokenizer.get_vocabulary()[-1] == "<|endoftext|>"
    x = family.inputs(np.ones((2, 11), "int32"))
    with torch.no_grad():
        theirs = reference(torch.tensor(x["token_ids"]).long()).last_hidden_state
    assert gap(run(model.backbone, x)["sequence_output"], theirs) <= 1e-5


def test_a_band_as_wide_as_the_row_is_gpt2():
    gpt2 = randomised(garden.Gpt2Backbone(**SIZES))
    x = {name: array for name, array in inputs().items() if name != "segment_ids"}
    for width, equal in ((11, True), (3, False)):
        gpt3 = randomised(garden.Gpt3Backbone(**SIZES, band_width=width))
        difference = gap(run(gpt3, x)["sequence_output"], run(gpt2, x)["sequence_output"])
        assert (difference <= 1e-5) == equal
    with pytest.raises(ValueError, match="band_width=0 lets a query see nothing"):
        garden.Gpt3Backbone(**SIZES, band_width=0)


def test_a_banded_block_sees_the_last_places_only():
    """Odd blocks look w - 1 places back; the even ones are made blind here, so that the band alone carries anything."""
    model = randomised(garden.Gpt3Backbone(**{**SIZES, "num_layers": 2}, band_width=3))
    model.blocks[0].attention.output_dense.kernel.assign(np.zeros((60, 60)))
    x = {"token_ids": np.arange(5, 16, dtype="int32")[None], "padding_mask": np.ones((1, 11), "int32")}
    before = ops.convert_to_numpy(run(model, x)["sequence_output"])
    changed = {**x, "token_ids": np.where(np.arange(11) == 4, 90, x["token_ids"]).astype("int32")}
    moved = np.abs(ops.convert_to_numpy(run(model, changed)["sequence_output"]) - before).max(-1)[0] > 1e-6
    assert moved.tolist() == [False] * 4 + [True] * 3 + [False] * 4


@pytest.mark.parametrize(
    ("cls", "more"),
    [(garden.GptBackbone, {}), (garden.Gpt2Backbone, {"head_dim": 7}), (garden.Gpt3Backbone, {"band_width": 3})],
)
def test_decoding_with_a_cache_equals_the_whole_row(cls, more):
    model = randomised(cls(**SIZES, **more))
    ids = inputs(np.ones((2, 9), "int32"))["token_ids"]
    whole = run(model, {"token_ids": ids, "padding_mask": np.ones_like(ids)})["sequence_output"]
    for cuts in ((3, 5), (1, 2, 3, 4, 5, 6, 7, 8)):
        cache, parts = model.empty_cache(2, 12), []
        for start, stop in zip((0, *cuts), (*cuts, 9), strict=True):
            part, cache = model.cached(ids[:, start:stop], cache, start)
            parts.append(ops.convert_to_numpy(part))
        assert gap(np.concatenate(parts, axis=1), whole) <= 1e-5


def test_sizes_of_gpt3_are_those_of_its_paper():
    with weights_to_be_loaded():
        small = garden.Gpt3Backbone.from_preset("gpt3_small_en", load_weights=False)
    assert small.count_params() == garden.presets.find("gpt3_small_en").parameters
    billions = {"gpt3_extra_large_en": 1.3, "gpt3_2.7b_en": 2.7, "gpt3_6.7b_en": 6.7, "gpt3_175b_en": 175}
    for name, printed in billions.items():
        assert garden.presets.find(name).parameters / 1e9 == pytest.approx(printed, rel=0.2)
    with pytest.raises(ValueError, match="never published"):
        garden.Gpt3Backbone.from_preset("gpt3_13b_en")
