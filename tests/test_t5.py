"""T5: buckets, both stacks against transformers, the cache, mesh TensorFlow's files, sentinels, published sizes."""

import keras
import keras_hub
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
import torch
import transformers
from families import gap, run, t5_pieces, write_t5
from keras import ops
from safetensors.torch import load_file, save_file

import garden
from garden.layers import Attention, GatedFeedForward, PositionBias, relative_buckets, weights_to_be_loaded
from garden.presets import CheckpointError, export_to_transformers, presets

SIZES = {
    "vocab_size": 97,
    "d_model": 60,
    "d_kv": 9,
    "d_ff": 70,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "num_heads": 5,
}
SMALL = dict(vocabulary_size=97, num_layers=2, num_heads=5, hidden_dim=60, intermediate_dim=70, key_value_dim=9)
GATED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
VERSIONS = pytest.mark.parametrize("version", [{}, GATED], ids=["1.0", "1.1"])

# Right padding, none, left padding; the decoder's rows are shorter.
SOURCE_MASK = np.array([[1] * 6 + [0] * 5, [1] * 11, [0] * 4 + [1] * 7])
TARGET_MASK = np.array([[1] * 5 + [0] * 2, [1] * 7, [0] * 2 + [1] * 5])


def pairs(source_mask=SOURCE_MASK, target_mask=TARGET_MASK, seed=0):
    rng = np.random.default_rng(seed)
    x = {
        "encoder_token_ids": rng.integers(3, 97, source_mask.shape),
        "encoder_padding_mask": source_mask,
        "decoder_token_ids": rng.integers(3, 97, target_mask.shape),
        "decoder_padding_mask": target_mask,
    }
    return {name: array.astype("int32") for name, array in x.items()}


def save_reference(
    folder, version=(), config=transformers.T5Config, cls=transformers.T5ForConditionalGeneration, spread=0.1
):
    """A reference with random weights; without tying, its output matrix is not the table."""
    torch.manual_seed(0)
    model = cls(config(**{**SIZES, "attn_implementation": "eager", **dict(version)})).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if "norm.weight" in name else 0.0, spread)
    if version:
        model.lm_head.weight = torch.nn.Parameter(0.1 * torch.randn_like(model.lm_head.weight))
    model.save_pretrained(folder)
    write_t5(folder, 97)
    return model


def answer(model, x, **options):
    with torch.no_grad():
        return model(
            input_ids=torch.tensor(x["encoder_token_ids"]).long(),
            attention_mask=torch.tensor(x["encoder_padding_mask"]),
            decoder_input_ids=torch.tensor(x["decoder_token_ids"]).long(),
            decoder_attention_mask=torch.tensor(x["decoder_padding_mask"]),
            **options,
        )


def logits(backbone, x):
    return backbone.logits(ops.convert_to_tensor(run(backbone, x)["decoder_sequence_output"]))


# --- the parts


def test_buckets_of_both_directions():
    """Sheet, section 8; written there as the key's place minus the query's."""
    known = {0: 0, -1: 1, -7: 7, -8: 8, -11: 8, -12: 9, -16: 10, -20: 10, -32: 12, -64: 14, -127: 15, -200: 15}
    known |= {1: 17, 8: 24, 16: 26, 64: 30, 128: 31}
    found = ops.convert_to_numpy(relative_buckets(-np.array(list(known))))
    assert found.tolist() == list(known.values())
    first = [ops.convert_to_numpy(relative_buckets(np.arange(400))).tolist().index(bucket) for bucket in range(9, 16)]
    assert first == [12, 16, 23, 32, 46, 64, 91]


def test_buckets_of_one_direction():
    known = {-15: 15, -16: 16, -20: 17, -32: 21, -64: 26, -127: 31, 0: 0, 3: 0, 200: 0}
    found = ops.convert_to_numpy(relative_buckets(-np.array(list(known)), bidirectional=False))
    assert found.tolist() == list(known.values())
    buckets = ops.convert_to_numpy(relative_buckets(np.arange(400), bidirectional=False)).tolist()
    first = [buckets.index(bucket) for bucket in range(17, 32)]
    assert first == [19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]


@pytest.mark.parametrize("bidirectional", [True, False])
def test_a_bias_is_the_row_of_its_bucket(bidirectional):
    layer = PositionBias(3, bidirectional=bidirectional)
    distance = np.arange(300)[:, None] - np.arange(280)[None]
    bias = ops.convert_to_numpy(layer(distance))
    table = ops.convert_to_numpy(layer.embeddings)
    assert bias.shape == (1, 3, 300, 280)
    assert (
        np.abs(
            bias[0]
            - np.moveaxis(table[ops.convert_to_numpy(relative_buckets(distance, 32, 128, bidirectional))], -1, 0)
        ).max()
        == 0
    )


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_bias_and_a_mask_mean_the_same_fused_and_step_by_step(dtype):
    rng = np.random.default_rng(0)
    layer = Attention(2, use_bias=False, scale=1.0, head_dim=5, dtype=dtype)
    x = ops.cast(rng.normal(size=(2, 6, 8)), dtype)
    bias = ops.cast(rng.normal(size=(1, 2, 6, 6)), dtype)
    mask = rng.random((2, 1, 6, 6)) > 0.4
    mask[0, 0, 2] = False  # a query that may attend nothing
    fused, explicit = layer(x, mask, bias=bias), layer.explicit(x, mask, bias=bias)[0]
    fused, explicit = (ops.convert_to_numpy(ops.cast(y, "float32")) for y in (fused, explicit))
    assert np.isfinite(fused).all() and np.isfinite(explicit).all()
    some = np.ones((2, 6), bool)
    some[0, 2] = False
    assert np.abs(fused - explicit)[some].max() <= {"float32": 1e-6, "float16": 1e-3, "bfloat16": 1e-2}[dtype]


def test_an_rms_norm_ignores_the_size_of_its_input_and_not_its_mean():
    norm = garden.layers.normalization("rms_norm", 1e-6)
    x = np.random.default_rng(0).normal(size=(2, 3, 8)).astype("float32")
    expected = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
    assert gap(norm(x), expected) <= 1e-6
    assert gap(norm(10 * x), expected) <= 1e-5
    assert gap(norm(x + 1), expected) > 0.1


def test_a_gate_multiplies():
    layer = GatedFeedForward(7, "gelu_tanh", use_bias=False)
    x = np.random.default_rng(0).normal(size=(2, 3, 5)).astype("float32")
    y = layer(x)
    wi, gate, wo = (
        ops.convert_to_numpy(d.kernel) for d in (layer.intermediate_dense, layer.gate_dense, layer.output_dense)
    )
    h = x @ wi
    gelu = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
    assert gap(y, (gelu * (x @ gate)) @ wo) <= 1e-6


# --- against transformers


@VERSIONS
def test_every_state_and_every_attention_matrix_equal_the_reference(version, tmp_path):
    reference = save_reference(tmp_path, version)
    backbone = garden.Backbone.from_preset(tmp_path)
    assert type(backbone) is garden.T5Backbone and not backbone.load_report.fresh
    x = pairs()
    theirs = answer(reference, x, output_hidden_states=True, output_attentions=True)
    names = ("hidden_states", "encoder_hidden_states", "attention_probs", "encoder_attention_probs")
    ours = run(backbone.features(*names, "cross_attention_probs"), x)
    assert gap(run(backbone, x)["encoder_sequence_output"], theirs.encoder_last_hidden_state, SOURCE_MASK) <= 1e-5
    assert gap(logits(backbone, x), theirs.logits, TARGET_MASK) <= 1e-5
    for name, states, mask in (
        ("hidden_states", theirs.decoder_hidden_states, TARGET_MASK),
        ("encoder_hidden_states", theirs.encoder_hidden_states, SOURCE_MASK),
    ):
        assert len(ours[name]) == len(states)
        assert max(gap(mine, other, mask) for mine, other in zip(ours[name], states, strict=True)) <= 1e-5
    for name, matrices, mask in (
        ("attention_probs", theirs.decoder_attentions, TARGET_MASK),
        ("encoder_attention_probs", theirs.encoder_attentions, SOURCE_MASK),
        ("cross_attention_probs", theirs.cross_attentions, TARGET_MASK),
    ):
        for mine, other in zip(ours[name], matrices, strict=True):
            queries_first = [np.moveaxis(matrix, 1, 2) for matrix in (ops.convert_to_numpy(mine), other.numpy())]
            assert gap(*queries_first, mask) <= 1e-5


@VERSIONS
def test_an_export_reloads_equal(version, tmp_path):
    reference, x = save_reference(tmp_path / "in", version), pairs()
    model = garden.tasks.Seq2SeqLM.from_preset(tmp_path / "in")
    for name, exported in (("task", model), ("backbone", model.backbone)):
        export_to_transformers(exported, tmp_path / name)
        cls = transformers.T5ForConditionalGeneration
        reloaded, report = cls.from_pretrained(tmp_path / name, output_loading_info=True)
        assert not report["missing_keys"] and not report["unexpected_keys"]
        assert gap(answer(reloaded.eval(), x).logits, answer(reference, x).logits, TARGET_MASK) <= 1e-5
    again = garden.Backbone.from_preset(tmp_path / "task")
    assert gap(logits(again, x), answer(reference, x).logits, TARGET_MASK) <= 1e-5
    assert again.hyperparameters == model.backbone.hyperparameters
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "task")
    for text in ("w1 w2 w90", "W3 <extra_id_0> w4", "", "w5 nothing 👍"):
        assert tokenizer(text)["input_ids"] == model.preprocessor.tokenizer.encode(text).ids


def test_mt5_never_scales_whatever_is_tied(tmp_path):
    """transformers 5 ties a new mT5's output to its table and does not multiply; published ones have two matrices."""
    version = {"feed_forward_proj": "gated-gelu"}
    torch.manual_seed(0)
    tied = transformers.MT5ForConditionalGeneration(transformers.MT5Config(**SIZES, **version)).eval()
    tied.save_pretrained(tmp_path)
    backbone, x = garden.Backbone.from_preset(tmp_path), pairs()
    assert type(backbone) is garden.T5Backbone and not backbone.tie_embedding_weights
    assert gap(logits(backbone, x), answer(tied, x).logits, TARGET_MASK) <= 1e-4  # a table of N(0, 1), not divided


def test_old_files_repeat_the_table_and_keep_a_bias_that_nothing_reads(tmp_path):
    reference = save_reference(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    for name in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"):
        tensors[name] = tensors["shared.weight"].clone()
    tensors["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] = torch.ones(32, 5)
    save_file(tensors, tmp_path / "model.safetensors")
    backbone = garden.T5Backbone.from_preset(tmp_path)
    assert gap(logits(backbone, pairs()), answer(reference, pairs()).logits, TARGET_MASK) <= 1e-5
    assert backbone.load_report.ignored["lm_head.weight"] == "a copy of shared.weight"
    tensors["lm_head.weight"] += 1
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"does not explain: lm_head\.weight"):
        garden.T5Backbone.from_preset(tmp_path)


@VERSIONS
def test_the_encoder_comes_out_of_any_t5(version, tmp_path):
    reference = save_reference(tmp_path, version)
    encoder, x = garden.T5EncoderBackbone.from_preset(tmp_path), pairs()
    states = run(encoder, {"token_ids": x["encoder_token_ids"], "padding_mask": SOURCE_MASK.astype("int32")})
    assert gap(states["sequence_output"], answer(reference, x).encoder_last_hidden_state, SOURCE_MASK) <= 1e-5
    embedder = garden.tasks.TextEmbedder.from_preset(tmp_path)
    assert type(embedder.backbone) is garden.T5EncoderBackbone
    assert embedder.embed(["w1 w2", "w3"]).shape == (2, 60)


# --- the cache


@pytest.mark.parametrize("gated", [False, True])
def test_a_cache_gives_the_states_of_whole_rows(gated):
    backbone = garden.T5Backbone(**SMALL, use_gated_activation=gated, tie_embedding_weights=not gated)
    backbone.decoder_bias.embeddings.assign(np.random.default_rng(0).normal(size=(32, 5)))
    x = pairs(target_mask=np.ones((3, 7)))
    whole = run(backbone, x)["decoder_sequence_output"]
    mask = x["encoder_padding_mask"]
    cache = backbone.empty_cache(backbone.encode_alone(x["encoder_token_ids"], mask), mask, length=9)
    ids, parts = x["decoder_token_ids"], []
    for start, stop in ((0, 3), (3, 4), (4, 6), (6, 7)):
        states, cache = backbone.cached(ids[:, start:stop], cache, start)
        parts.append(ops.convert_to_numpy(states))
    assert gap(np.concatenate(parts, axis=1), whole) <= 1e-5
    whole_logits, stepwise = (backbone.logits(ops.convert_to_tensor(s)) for s in (whole, np.concatenate(parts, axis=1)))
    assert gap(stepwise, ops.convert_to_numpy(whole_logits)) <= 1e-4


# --- the contracts of every backbone


def test_left_padding_changes_nothing():
    backbone, x = garden.T5Backbone(**SMALL), pairs(np.ones((3, 11)), np.ones((3, 7)))
    padded = {name: np.pad(array, ((0, 0), (4, 0))) for name, array in x.items()}
    ours, shifted = run(backbone, x), run(backbone, padded)
    for name, output in ours.items():
        assert gap(np.asarray(shifted[name])[:, 4:], output) <= 1e-5


def test_packed_rows_equal_separate_rows():
    backbone = garden.T5Backbone(**SMALL)
    x = pairs(np.array([[1] * 5 + [2] * 4 + [3] * 2]), np.array([[1] * 2 + [2] * 4 + [3] * 1]))
    together = run(backbone, x)
    for source, target in (((0, 5), (0, 2)), ((5, 9), (2, 6)), ((9, 11), (6, 7))):
        places = {"encoder": slice(*source), "decoder": slice(*target)}
        alone = {name: array[:, places[name[:7]]] for name, array in x.items()}
        alone = {name: np.ones_like(array) if "mask" in name else array for name, array in alone.items()}
        for name, output in run(backbone, alone).items():
            assert gap(output, np.asarray(together[name])[:, places[name[:7]]]) <= 1e-5


@pytest.mark.parametrize("dtype", ["float16", "mixed_bfloat16"])
def test_rows_of_padding_are_finite(dtype):
    x = pairs(np.array([[0] * 9, [1] * 9]), np.array([[1] * 4, [0] * 4]))
    for output in garden.T5Backbone(**SMALL, dtype=dtype)(x).values():
        assert np.isfinite(ops.convert_to_numpy(ops.cast(output, "float32"))).all()


def test_saved_models_come_back_equal(tmp_path):
    backbone, x = garden.T5Backbone(**SMALL, use_gated_activation=True, tie_embedding_weights=False), pairs()
    before = np.asarray(logits(backbone, x).detach() if hasattr(logits(backbone, x), "detach") else logits(backbone, x))
    backbone.save(tmp_path / "model.keras")
    backbone.save_to_preset(tmp_path / "preset")
    for model in (
        keras.saving.load_model(tmp_path / "model.keras"),
        keras_hub.models.Backbone.from_preset(str(tmp_path / "preset")),
        garden.Backbone.from_preset(tmp_path / "preset"),
    ):
        assert type(model) is garden.T5Backbone and model.hyperparameters == backbone.hyperparameters
        assert gap(logits(model, x), before) == 0


def test_int8_and_lora():
    backbone, x = garden.T5Backbone(**SMALL), pairs()
    before = run(backbone, x)["decoder_sequence_output"]
    backbone.quantize("int8")
    assert gap(run(backbone, x)["decoder_sequence_output"], before, TARGET_MASK) < 0.3
    backbone = garden.T5Backbone(**SMALL)
    backbone.enable_lora(rank=2)
    names = {variable.path.rsplit("/", 1)[-1] for variable in backbone.trainable_variables}
    assert names == {"lora_kernel_a", "lora_kernel_b"}


def test_without_its_table_the_encoder_does_not_see_order():
    backbone = garden.T5EncoderBackbone(**SMALL)
    ids = np.random.default_rng(0).permutation(97)[None, :8].astype("int32")
    order = np.array([3, 1, 0, 2, 7, 6, 5, 4])

    def moved():
        states = [
            run(backbone, {"token_ids": i, "padding_mask": np.ones_like(i)})["sequence_output"]
            for i in (ids, ids[:, order])
        ]
        return gap(states[1], np.asarray(states[0])[:, order])

    backbone.encoder_bias.embeddings.assign(np.random.default_rng(0).normal(size=(32, 5)))
    assert moved() > 1e-2
    backbone.encoder_bias.embeddings.assign(np.zeros((32, 5)))
    assert moved() <= 1e-5


def test_initial_values_are_those_of_the_paper():
    d, n, h, f = 128, 4, 32, 256
    backbone = garden.T5Backbone(500, 1, n, d, f, h, use_gated_activation=True, tie_embedding_weights=False)
    block = backbone.decoder_blocks[0]
    expected = [
        (backbone.token_embedding.embeddings, 1.0),
        (backbone.decoder_bias.embeddings, d**-0.5),
        (block.attention.query.kernel, (d * h) ** -0.5),
        (block.cross_attention.query.kernel, (d * h) ** -0.5),
        (block.attention.key.kernel, d**-0.5),
        (block.attention.value.kernel, d**-0.5),
        (block.attention.output_dense.kernel, (n * h) ** -0.5),
        (block.feedforward.intermediate_dense.kernel, d**-0.5),
        (block.feedforward.gate_dense.kernel, d**-0.5),
        (block.feedforward.output_dense.kernel, f**-0.5),
    ]
    for variable, deviation in expected:
        found = float(ops.std(variable))
        assert abs(found / deviation - 1) < (0.25 if "bias" in variable.path else 0.05), variable.path


# --- published sizes


@pytest.mark.parametrize("name", ["t5_small_multi", "t5_1.1_small"])
def test_published_parameter_counts_are_exact(name):
    with weights_to_be_loaded():
        assert garden.T5Backbone.from_preset(name, load_weights=False).count_params() == presets("t5")[name].parameters
        encoder = garden.T5EncoderBackbone.from_preset(name, load_weights=False)
    assert encoder.count_params() == {"t5_small_multi": 35_330_816, "t5_1.1_small": 35_332_800}[name]


# --- mesh TensorFlow


def mesh_name(name, gated):
    """The name of a Hugging Face tensor in Google's checkpoints."""
    name = name.removesuffix(".weight")
    if name == "shared":
        return "shared/embedding"
    if name == "lm_head":
        return "decoder/logits/kernel"
    parts = name.split(".")
    if parts[1] == "final_layer_norm":
        return f"{parts[0]}/{'rms_norm' if gated else 'final_layer_norm'}/scale"
    stack, _, i, _, j, *rest = parts
    scope = f"{stack}/block_{int(i):03}/layer_{int(j):03}/"
    if rest == ["layer_norm"]:
        return scope + ("rms_norm" if gated else "layer_norm") + "/scale"
    return scope + "/".join(rest) + ("/kernel" if rest[0] == "DenseReluDense" else "")


@VERSIONS
def test_a_mesh_tensorflow_checkpoint_equals_its_twin(version, tmp_path):
    reference = save_reference(tmp_path / "twin", version)
    (tmp_path / "mesh").mkdir()
    variables = {"global_step": np.int64(1000000)}
    for name, tensor in load_file(tmp_path / "twin" / "model.safetensors").items():
        array = tensor.numpy()
        own = mesh_name(name, bool(version))
        variables[own] = array if array.ndim == 1 or own == "shared/embedding" else array.T.copy()
        if array.ndim == 2:
            variables[own + "_slot_vr"] = array[0].copy()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        made = [tf.compat.v1.get_variable(name, initializer=array) for name, array in variables.items()]
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver(made).save(session, str(tmp_path / "mesh" / "model.ckpt-1000000"))
    backbone = garden.Backbone.from_preset(tmp_path / "mesh")
    assert (backbone.num_layers, backbone.num_decoder_layers, backbone.key_value_dim) == (3, 2, 9)
    assert gap(logits(backbone, pairs()), answer(reference, pairs()).logits, TARGET_MASK) <= 1e-5
    encoder = garden.T5EncoderBackbone.from_preset(tmp_path / "mesh")
    x = {"token_ids": pairs()["encoder_token_ids"], "padding_mask": SOURCE_MASK.astype("int32")}
    assert (
        gap(run(encoder, x)["sequence_output"], run(backbone, pairs())["encoder_sequence_output"], SOURCE_MASK) <= 1e-5
    )


# --- the tokenizer


def test_sentinels_count_down_from_the_last_id():
    tokenizer = garden.T5Tokenizer(t5_pieces(), extra_ids=9)
    size = tokenizer.vocabulary_size()
    assert [tokenizer.sentinel_id(i) for i in (0, 8)] == [size - 1, size - 9]
    assert tokenizer("w1 <extra_id_0> w2") == [*tokenizer("w1"), size - 1, *tokenizer("w2")]
    assert (tokenizer.pad_token_id, tokenizer.end_token_id, tokenizer.unk_token_id) == (0, 1, 2)
    assert tokenizer.encode("w1", "w2").ids == [*tokenizer("w1"), 1, *tokenizer("w2"), 1]
    with pytest.raises(ValueError, match="no sentinel <extra_id_9> in the vocabulary"):
        tokenizer.sentinel_id(9)


def test_ids_are_those_of_sentencepiece():
    model = sentencepiece.SentencePieceProcessor(model_proto=t5_pieces())
    tokenizer = garden.T5Tokenizer(t5_pieces())
    for text in ("w1 w2", "  nothing   w9 ", "MASK", "W3w4", ""):
        assert tokenizer(text) == model.encode(text)


def test_sentinels_of_the_model_file_are_kept_as_in_mt5():
    model, lines = __import__("io").BytesIO(), iter([f"w{i} nothing" for i in range(10)] * 9)
    sentinels = [f"▁<extra_id_{i}>" for i in (1, 0)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines, model_writer=model, vocab_size=30, hard_vocab_limit=False, minloglevel=2,
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
    )  # fmt: skip
    from sentencepiece import sentencepiece_model_pb2 as pb2

    proto = pb2.ModelProto.FromString(model.getvalue())
    for piece in sentinels:
        proto.pieces.add(piece=piece, score=0.0, type=pb2.ModelProto.SentencePiece.USER_DEFINED)
    tokenizer = garden.T5Tokenizer(proto.SerializeToString())
    assert tokenizer.vocabulary_size() == len(proto.pieces)
    assert tokenizer.sentinel_id(0) == len(proto.pieces) - 1
    assert tokenizer("w1 <extra_id_0> w2") == [*tokenizer("w1"), len(proto.pieces) - 1, *tokenizer("w2")]
