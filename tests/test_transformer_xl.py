"""Transformer-XL: against its definition, from a memory, with a cache, and in its three published layouts."""

import json

import numpy as np
import pytest
import torch
from families import gap, run
from keras import ops
from transformer_xl_reference import TransfoXLConfig, TransfoXLLMHeadModel, TransfoXLModel

import garden
from garden import tasks
from garden.presets import CheckpointError, export_to_transformers

SIZES = {"vocab_size": 31, "d_model": 20, "d_embed": 20, "n_head": 3, "d_head": 6, "d_inner": 14, "n_layer": 2}
SIZES |= {"mem_len": 4, "clamp_len": -1, "same_length": False, "cutoffs": [7, 19], "div_val": 2}
KINDS = {
    "bands of their own width": {"tie_projs": [False, True, True]},
    "one width": {"div_val": 1, "tie_projs": [False, True, False], "untie_r": False},
    "narrow tables of one width": {"div_val": 1, "d_embed": 12, "tie_projs": [False, True, True]},
    "no bands": {"cutoffs": [], "div_val": 1, "clamp_len": 3},
    "narrow tables": {"cutoffs": [], "div_val": 1, "d_embed": 12, "tie_projs": [True]},
    "norms in front": {"pre_lnorm": True, "same_length": True, "clamp_len": 2},
}
kinds = pytest.mark.parametrize("kind", KINDS)
RNG = np.random.default_rng(0)


def reference(kind, model_cls=TransfoXLLMHeadModel):
    torch.manual_seed(0)
    model = model_cls(TransfoXLConfig(**{**SIZES, **KINDS[kind]})).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if name.endswith("layer_norm.weight") else 0.0, 0.2)
    return model


def save(model, folder):
    model.save_pretrained(folder)
    words = ["<eos>", "<unk>", *(f"w{i}" for i in range(SIZES["vocab_size"] - 2))]
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words), "utf-8")
    return folder


def inputs(rows=2, length=7, padding_mask=None):
    ids = RNG.integers(0, SIZES["vocab_size"], (rows, length)).astype("int32")
    return {"token_ids": ids, "padding_mask": np.ones_like(ids) if padding_mask is None else padding_mask}


def backbone(**changes):
    arguments = dict(num_layers=2, num_heads=3, hidden_dim=20, intermediate_dim=14, head_dim=6, **changes)
    model = garden.TransformerXlBackbone(SIZES["vocab_size"], **arguments)
    rng = np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(rng.normal(weight.path.endswith("gamma"), 0.3, weight.shape))
    return model


def segments(model, x, length, memory):
    """The outputs of a row read segment by segment, and the memory behind it."""
    recurrent, outputs = model.recurrent(), []
    for start in range(0, x["token_ids"].shape[1], length):
        segment = {name: array[:, start : start + length] for name, array in x.items()}
        found = run(recurrent, {**segment, **memory})
        outputs.append(ops.convert_to_numpy(found["sequence_output"]))
        memory = {name: ops.convert_to_numpy(found[name]) for name in ("memory", "memory_mask")}
    return np.concatenate(outputs, axis=1), memory


# --- the published definition


@kinds
def test_log_probabilities_and_states_equal_the_definition(kind, tmp_path):
    model = reference(kind)
    language_model = tasks.CausalLM.from_preset(save(model, tmp_path))
    assert not language_model.load_report.fresh
    x = inputs(padding_mask=np.array([[1] * 5 + [0] * 2, [0] * 2 + [1] * 3 + [2] * 2], "int32"))
    ids, mask = (torch.tensor(x[name]) for name in ("token_ids", "padding_mask"))
    with torch.no_grad():
        states = model.transformer(ids.long(), attention_mask=mask)
        theirs = model(ids.long(), attention_mask=mask).logits
    assert gap(run(language_model, x), theirs) <= 1e-5
    seen = run(language_model.backbone.features("hidden_states", "attention_probs"), x)
    for ours, other in zip(seen["hidden_states"], states.hidden_states, strict=True):
        assert gap(ours, other) <= 1e-5
    for ours, other in zip(seen["attention_probs"], states.attentions, strict=True):
        assert gap(ours, other) <= 1e-5


@kinds
def test_a_memory_equals_the_definition(kind, tmp_path):
    """Hugging Face's first memory is rows of zeros that are attended; the original's is empty."""
    model = reference(kind)
    ours = garden.TransformerXlBackbone.from_preset(save(model, tmp_path))
    x = inputs()
    ids = torch.tensor(x["token_ids"]).long()
    zeros = [torch.zeros(2, 4, 20)] * 2
    for mems in (None, zeros):
        memory = ours.empty_memory(2)
        if mems:
            memory["memory_mask"] = np.ones_like(memory["memory_mask"])
        with torch.no_grad():
            first = model.transformer(ids[:, :3], mems=mems)
            second = model.transformer(ids[:, 3:], mems=first.mems)
        found, after = segments(ours, {name: array[:, :3] for name, array in x.items()}, 3, memory)
        assert gap(found, first.last_hidden_state) <= 1e-5
        found, after = segments(ours, {name: array[:, 3:] for name, array in x.items()}, 4, after)
        assert gap(found, second.last_hidden_state) <= 1e-5
        assert gap(after["memory"][:, 1], second.mems[1]) <= 1e-5


# --- memory


@pytest.mark.parametrize("changes", [{}, {"pre_norm": True}, {"share_biases": True, "clamp_length": 3}])
def test_segments_equal_one_pass(changes):
    model, x = backbone(memory_length=9, **changes), inputs(length=9)
    whole = run(model, x)["sequence_output"]
    for empty in (model.empty_memory(2), model.empty_memory(2, length=0)):
        assert gap(segments(model, x, 3, empty)[0], whole) <= 1e-5
    zeros = {**model.empty_memory(2), "memory_mask": np.ones((2, 9), "int32")}
    assert gap(segments(model, x, 3, zeros)[0], whole) > 1e-2  # zeros that are attended take their share


def test_a_short_memory_is_a_sliding_window():
    """With one layer, segments of one token behind a memory of m see what `same_length` m + 1 lets them see."""
    rng = np.random.default_rng(2)
    weights = None
    for layers in (1, 2):
        sizes = dict(num_layers=layers, num_heads=2, hidden_dim=8, intermediate_dim=6)
        slow = garden.TransformerXlBackbone(31, **sizes, memory_length=3)
        fast = garden.TransformerXlBackbone(31, **sizes, memory_length=4, same_length=True)
        weights = [rng.normal(0, 0.4, weight.shape) for weight in slow.weights]
        slow.set_weights(weights), fast.set_weights(weights)
        x = inputs(length=9)
        found = segments(slow, x, 1, slow.empty_memory(2))[0]
        assert gap(found, run(fast, x)["sequence_output"]) <= 1e-5
        # A token's reach grows by a memory a layer.
        other = {**x, "token_ids": x["token_ids"].copy()}
        other["token_ids"][:, 0] = (other["token_ids"][:, 0] + 1) % 31
        changed = np.abs(segments(slow, other, 1, slow.empty_memory(2))[0] - found).max(axis=(0, 2)) > 1e-6
        assert np.flatnonzero(changed).max() == 3 * layers


def test_same_length_shows_as_many_places_to_every_token():
    model = backbone(memory_length=3, same_length=True)
    memory = {**model.empty_memory(1), "memory_mask": np.ones((1, 3), "int32")}
    model_with_scores = model.recurrent()
    x = inputs(rows=1, length=3)
    before = ops.convert_to_numpy(run(model_with_scores, {**x, **memory})["sequence_output"])
    seen = np.zeros((3, 6), int)
    for s in range(3):  # a place of the memory matters to the tokens that see it in the first layer
        changed = {**memory, "memory": memory["memory"].copy()}
        changed["memory"][:, 0, s] = np.linspace(-1, 1, 20)
        after = ops.convert_to_numpy(run(model_with_scores, {**x, **changed})["sequence_output"])
        seen[:, s] = np.abs(after - before).max(axis=(0, 2)) > 1e-6
    assert seen[0, :3].tolist() == [0, 1, 1]  # t = 0 sees keys 1 to 3
    with pytest.raises(ValueError, match="give memory_length"):
        backbone(same_length=True)


def test_a_memory_has_no_gradient_and_padding_leaves_none():
    model = backbone(memory_length=4)
    x = inputs(length=5, padding_mask=np.array([[1] * 3 + [0] * 2, [0] * 2 + [1] * 3], "int32"))
    _, memory = segments(model, x, 5, model.empty_memory(2))
    assert memory["memory_mask"].tolist() == [[1, 1, 0, 0], [0, 1, 1, 1]]


# --- decoding


@pytest.mark.parametrize("changes", [{}, {"pre_norm": True}, {"memory_length": 3, "same_length": True}])
def test_a_cache_equals_one_pass(changes):
    model, x = backbone(**changes), inputs(length=6)
    whole = ops.convert_to_numpy(run(model, x)["sequence_output"])
    states, cache = model.cached(x["token_ids"][:, :3], model.empty_cache(2, 8), 0)
    assert gap(states, whole[:, :3]) <= 1e-5
    for i in range(3, 6):
        states, cache = model.cached(x["token_ids"][:, i : i + 1], cache, i)
        assert gap(states, whole[:, i : i + 1]) <= 1e-5


def test_generation_follows_the_most_probable_word():
    model = tasks.CausalLM.for_backbone(garden.TransformerXlBackbone)(backbone(cutoffs=(7, 19), div_val=2))
    model.compile(sampler="greedy")
    x = inputs(rows=1, length=6)
    prompt = {**x, "padding_mask": np.array([[1, 1, 1, 0, 0, 0]], "int32")}
    found = ops.convert_to_numpy(model.generate(prompt, stop_token_ids=None)["token_ids"])
    expected = x["token_ids"].copy()
    for i in range(3, 6):
        probs = ops.convert_to_numpy(run(model, {"token_ids": expected, "padding_mask": np.ones((1, 6), "int32")}))
        expected[0, i] = probs[0, i - 1].argmax()
    assert found.tolist() == expected.tolist()


# --- files


@kinds
def test_an_export_reloads(kind, tmp_path):
    model = reference(kind)
    ours = tasks.CausalLM.from_preset(save(model, tmp_path / "in") if (tmp_path / "in").mkdir() is None else None)
    export_to_transformers(ours, tmp_path / "out")
    again, report = TransfoXLLMHeadModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    x = inputs()
    with torch.no_grad():
        assert gap(run(ours, x), again.eval()(torch.tensor(x["token_ids"]).long()).logits) <= 1e-5
    ours.save_to_preset(tmp_path / "preset")
    saved = tasks.CausalLM.from_preset(tmp_path / "preset")
    assert gap(run(saved, x), run(ours, x)) == 0 and saved.backbone.cutoffs is not None
    export_to_transformers(ours.backbone, tmp_path / "bare")
    bare, report = TransfoXLModel.from_pretrained(tmp_path / "bare", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]


@pytest.mark.parametrize("div_val", [1, 2])
def test_the_original_state_dict_counts_clusters_from_the_end(div_val, tmp_path):
    """Its layers share their biases, which stand at the top, and torch writes what is shared under every name."""
    KINDS["original"] = {"div_val": div_val, "untie_r": False, "tie_projs": [False, True, True], "clamp_len": -1}
    model = reference("original")
    state = {name.removeprefix("transformer."): tensor for name, tensor in model.state_dict().items()}
    for name in ("crit.cluster_weight", "crit.cluster_bias"):
        state[name] = state[name].flip(0)
    for name in [name for name in state if name.startswith("word_emb.emb_layers")]:
        state[name.replace("word_emb.emb_layers", "crit.out_layers")] = state[name]
    for i in (1, 2) if div_val > 1 else ():
        state[f"crit.out_projs.{i}"] = state[f"word_emb.emb_projs.{i}"]
    state["pos_emb.inv_freq"] = torch.ones(10)
    torch.save(state, tmp_path / "model.pt")
    save(model, tmp_path)
    for name in ("model.safetensors", "config.json"):
        (tmp_path / name).unlink()
    if div_val == 1:
        with pytest.raises(CheckpointError, match='say where they begin, in a config.json with "cutoffs"'):
            tasks.CausalLM.from_preset(tmp_path)
        stated = {"model_type": "transfo-xl", "cutoffs": [7, 19], "tie_projs": [True] * 3}
        (tmp_path / "config.json").write_text(json.dumps(stated), "utf-8")
    ours = tasks.CausalLM.from_preset(tmp_path)
    assert ours.backbone.share_biases and list(ours.backbone.cutoffs) == [7, 19] and ours.backbone.div_val == div_val
    x = inputs()
    with torch.no_grad():
        assert gap(run(ours, x), model(torch.tensor(x["token_ids"]).long()).logits) <= 1e-5


def as_tensorflow(model):
    """The model's weights under the names and in the shapes of the original TensorFlow code."""
    config, state, found = model.config, model.state_dict(), {}
    for i in range(config.n_layer):
        ours, theirs = f"transformer.layers.{i}", f"transformer/layer_{i}"
        for name in ("qkv", "r", "o"):
            found[f"{theirs}/rel_attn/{name}/kernel"] = state[f"{ours}.dec_attn.{name}_net.weight"].T
        for place, name in ((0, "layer_1"), (3, "layer_2")):
            found[f"{theirs}/ff/{name}/kernel"] = state[f"{ours}.pos_ff.CoreNet.{place}.weight"].T
            found[f"{theirs}/ff/{name}/bias"] = state[f"{ours}.pos_ff.CoreNet.{place}.bias"]
        for part, scope in (("dec_attn", "rel_attn"), ("pos_ff", "ff")):
            found[f"{theirs}/{scope}/LayerNorm/gamma"] = state[f"{ours}.{part}.layer_norm.weight"]
            found[f"{theirs}/{scope}/LayerNorm/beta"] = state[f"{ours}.{part}.layer_norm.bias"]
    for name in ("r_w_bias", "r_r_bias"):
        shared, layers = f"transformer.{name}", [f"transformer.layers.{i}.dec_attn.{name}" for i in range(2)]
        biases = torch.stack([state[layer] for layer in layers]) if config.untie_r else state[shared]
        found[f"transformer/{name}"] = biases
    embed, softmax = "transformer/adaptive_embed", "transformer/adaptive_softmax"
    one = config.div_val == 1
    for name, tensor in state.items():
        kind, _, i = name.removesuffix(".weight").removesuffix(".bias").rpartition(".")
        if kind == "transformer.word_emb.emb_layers":
            found[f"{embed}/lookup_table" if one else f"{embed}/cutoff_{i}/lookup_table"] = tensor
        elif kind == "transformer.word_emb.emb_projs":
            found[f"{embed}/proj_W" if one else f"{embed}/cutoff_{i}/proj_W"] = tensor.T
        elif kind == "crit.out_projs":
            found[f"{softmax}/cutoff_{i}/proj"] = tensor.T
        elif kind == "crit.out_layers" and not config.cutoffs:
            found[f"{softmax}/bias"] = tensor
        elif kind == "crit.out_layers" and one:
            for band, part in enumerate(tensor.split([7, 12, 12])):
                found[f"{softmax}/cutoff_{band}/b"] = part
        elif kind == "crit.out_layers":
            found[f"{softmax}/cutoff_{i}/b"] = tensor
    if config.cutoffs:
        found[f"{softmax}/cutoff_0/cluster_W"] = state["crit.cluster_weight"]
        found[f"{softmax}/cutoff_0/cluster_b"] = state["crit.cluster_bias"]
    return {name: np.ascontiguousarray(tensor.numpy()) for name, tensor in found.items()}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "norms in front"])
def test_tensorflows_names_equal_their_twin(kind, tmp_path):
    import tensorflow as tf

    model = reference(kind)
    save(model, tmp_path)
    variables = as_tensorflow(model)
    variables["global_step"] = np.int64(3)
    names = sorted(variables)
    tf.raw_ops.SaveV2(
        prefix=f"{tmp_path}/model.ckpt",
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[variables[name] for name in names],
    )
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "config.json").unlink()
    clamp = KINDS[kind].get("clamp_len")
    if clamp:  # the tensors do not tell
        (tmp_path / "config.json").write_text(json.dumps({"model_type": "transfo-xl", "clamp_len": clamp}), "utf-8")
    ours = tasks.CausalLM.from_preset(tmp_path)
    assert not ours.load_report.fresh
    x = inputs()
    with torch.no_grad():
        assert gap(run(ours, x), model(torch.tensor(x["token_ids"]).long()).logits) <= 1e-5


def test_biases_that_are_said_to_be_shared_must_be(tmp_path):
    save(reference("bands of their own width"), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    (tmp_path / "config.json").write_text(json.dumps({**config, "untie_r": False}), "utf-8")
    with pytest.raises(CheckpointError, match="r_w_bias differ: set it to true"):
        garden.TransformerXlBackbone.from_preset(tmp_path)


def test_published_sizes_have_their_weights():
    row = garden.presets.find("transformer_xl_large_en_wt103")
    assert row.backbone_config["cutoffs"] == (20000, 40000, 200000)
    assert row.backbone_config["tie_projections"] == (False, True, True, True)
