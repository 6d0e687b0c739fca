"""What XLNet has of its own: two streams, a memory, permutations, files of the original, special tokens at the end."""

import json
import re
import unicodedata
from contextlib import nullcontext

import keras
import material
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
import torch
import transformers
from families import FAMILIES, gap, inputs, reference_outputs, run
from keras import ops

import garden
from garden import tasks
from garden.layers import TwoStreamAttention, XLAttention
from garden.presets import CheckpointError, export_to_transformers

XLNET = next(row for row in FAMILIES if row.backbone is garden.XlnetBackbone)
PLACES = 7
LEFT = np.array([[1] * 11, [0] * 4 + [1] * 7])


def two_stream_inputs(rows=4, seed=0):
    """Random inputs whose third place all may see, with a row of a target mapping that maps nothing."""
    rng = np.random.default_rng(seed)
    x = inputs(np.ones((rows, PLACES), "int32"), seed=seed)
    permutation = rng.integers(0, 2, (rows, PLACES, PLACES)).astype("int32")
    permutation[:, :, :3] = 0
    targets = np.eye(PLACES, dtype="int32")[rng.integers(0, PLACES, (rows, 3))]
    targets[0, 1] = 0
    return {**x, "permutation_mask": permutation, "target_mapping": targets}


def random_memory(rows=4, places=5):
    memory = np.random.default_rng(9).normal(size=(rows, 3, places, 60)).astype("float32")
    return {"memory": memory, "memory_mask": np.ones((rows, places), "int32")}


def asked(model, x):
    """What transformers says to garden's inputs, as (output, memory (b, l, m, d))."""
    said = {"input_ids": x["token_ids"], "token_type_ids": x["segment_ids"]}
    said |= {"attention_mask": x["padding_mask"].astype("float32")} if not x["padding_mask"].all() else {}
    if "permutation_mask" in x:
        said |= {"perm_mask": x["permutation_mask"].astype("float32")}
        said |= {"target_mapping": x["target_mapping"].astype("float32")}
    said = {name: torch.tensor(array) for name, array in said.items()}
    if "memory" in x:
        said["mems"] = [torch.tensor(x["memory"][:, i]).transpose(0, 1) for i in range(3)]
    with torch.no_grad():
        out = model(**said, use_mems=True)
    return out.last_hidden_state, torch.stack([memory.transpose(0, 1) for memory in out.mems], 1)


def model_for(backbone, x):
    if "permutation_mask" in x:
        return backbone.two_stream(memory="memory" in x)
    return backbone.recurrent() if "memory" in x else backbone


SETTINGS = [
    {},
    {"clamp_len": 2},
    {"bi_data": True, "clamp_len": 4},
    {"attn_type": "uni"},
    {"attn_type": "uni", "same_length": True, "mem_len": 6, "reuse_len": 4},
    {"attn_type": "uni", "bi_data": True},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_streams_and_memory_equal_the_reference(settings, tmp_path):
    reference = XLNET.save_reference(tmp_path, transformers.XLNetModel, **{"mem_len": None, **settings})
    backbone = garden.XlnetBackbone.from_preset(tmp_path)
    both, memory = two_stream_inputs(), random_memory()
    content = {name: both[name].copy() for name in backbone.input_names}
    if settings == {}:
        content["padding_mask"][0, :2] = content["padding_mask"][1, 5:] = 0
    for x in (content, content | memory, both, both | memory):
        # transformers adds a permutation mask to the causal one of one row in place, which fails for several.
        one_by_one = "permutation_mask" in x and settings.get("attn_type") == "uni"
        if one_by_one and "bi_data" in settings:
            continue
        rows = [{n: a[i : i + 1] for n, a in x.items()} for i in range(4)] if one_by_one else [x]
        theirs, remembered = map(torch.cat, zip(*(asked(reference, row) for row in rows), strict=True))
        ours = run(model_for(backbone, x), x)
        if "permutation_mask" in x:
            assert gap(ours["query_output"], theirs) <= 1e-5
        else:
            assert gap(ours["sequence_output"], theirs, x["padding_mask"]) <= 1e-5
        if "memory" in x:
            assert gap(ours["memory"][2:], remembered[2:]) <= 1e-5


def test_all_models_have_the_same_weights():
    backbone = XLNET.build()
    for model in (backbone.recurrent(), backbone.two_stream(), backbone.two_stream(memory=True)):
        assert {id(v) for v in model.weights} == {id(v) for v in backbone.weights}
    assert {type(block.attention) for block in backbone.blocks} == {TwoStreamAttention}
    assert issubclass(TwoStreamAttention, XLAttention)


def test_a_memory_that_holds_nothing_is_none():
    backbone = XLNET.build(memory_length=5)
    x = XLNET.inputs(np.ones((2, PLACES), "int32"))
    plain, recurrent = run(backbone, x), backbone.recurrent()
    for length, left in ((None, 5), (0, 5), (3, 5)):
        outputs = run(recurrent, x | backbone.empty_memory(2, length))
        assert gap(outputs["sequence_output"], plain["sequence_output"]) <= 1e-5
        assert outputs["memory"].shape == (2, 2, left, 60) and outputs["memory_mask"].all()
    full = run(recurrent, x | backbone.empty_memory(2) | {"memory_mask": np.ones((2, 5), "int32")})
    assert gap(full["sequence_output"], plain["sequence_output"]) > 1e-3


def test_segments_with_a_memory_equal_one_pass_only_where_none_looks_ahead():
    x = XLNET.inputs(np.ones((2, 12), "int32"))
    x["segment_ids"][:] = 0  # a memory has no segment but 0
    for attention_type, close in (("uni", True), ("bi", False)):
        backbone = XLNET.build(attention_type=attention_type, memory_length=8)
        whole, recurrent, memory = run(backbone, x)["sequence_output"], backbone.recurrent(), backbone.empty_memory(2)
        parts = []
        for start in range(0, 12, 4):
            outputs = run(recurrent, {name: array[:, start : start + 4] for name, array in x.items()} | memory)
            memory = {name: outputs[name] for name in memory}
            parts.append(outputs["sequence_output"])
        assert (gap(np.concatenate(parts, 1), whole) <= 1e-5) is close
        assert memory["memory"].shape[2] == 8


def test_a_memory_of_reused_places_is_what_the_next_segment_begins_behind():
    backbone = XLNET.build(attention_type="uni", memory_length=20, reuse_length=4)
    x = XLNET.inputs(np.ones((1, 10), "int32"))
    x["segment_ids"][:] = 0
    recurrent = backbone.recurrent()
    first = run(recurrent, {name: array[:, :8] for name, array in x.items()} | backbone.empty_memory(1))
    memory = {name: first[name] for name in ("memory", "memory_mask")}
    assert memory["memory_mask"][0].tolist() == [0] * 16 + [1] * 4
    second = run(recurrent, {name: array[:, 4:] for name, array in x.items()} | memory)
    assert gap(second["sequence_output"], run(backbone, x)["sequence_output"][:, 4:]) <= 1e-5


def test_padding_is_not_remembered():
    backbone = XLNET.build()
    x = XLNET.inputs(np.array([[0, 0, 1, 1, 1]]))
    outputs = run(backbone.recurrent(), x | backbone.empty_memory(1))
    assert outputs["memory_mask"].tolist() == [[0, 0, 1, 1, 1]]


def test_a_memory_has_no_gradient():
    backbone = XLNET.build(memory_length=4)
    x = XLNET.inputs(np.ones((2, PLACES), "int32"))
    model = backbone.recurrent()
    model = keras.Model(model.input, ops.mean(ops.square(model.output["memory"]), (1, 2, 3)))
    before = [v.numpy() for v in model.trainable_variables]
    model.compile(optimizer=keras.optimizers.SGD(1.0), loss="mean_absolute_error")
    refuses = pytest.raises((ValueError, RuntimeError), match="(?i)grad")  # JAX alone takes a loss without a gradient
    with nullcontext() if keras.backend.backend() == "jax" else refuses:
        model.fit(x | backbone.empty_memory(2), np.zeros(2), verbose=0)
    assert all((v.numpy() == old).all() for v, old in zip(model.trainable_variables, before, strict=True))


def order_inputs():
    """Tokens predicted in a random order behind the first, which all may see; every place is a target."""
    x = inputs(np.ones((1, PLACES), "int32"))
    order = np.array([0, 4, 2, 6, 1, 5, 3])
    mask = (order[None, :] >= order[:, None]).astype("int32")
    mask[:, 0] = 0
    return order, x | {"permutation_mask": mask[None], "target_mapping": np.eye(PLACES, dtype="int32")[None]}


def test_a_query_sees_what_comes_earlier_in_the_order_and_not_its_own_token():
    order, x = order_inputs()
    model = XLNET.build(num_layers=3).two_stream()
    before = run(model, x)["query_output"][0]
    for i in range(1, PLACES):
        changed = {**x, "token_ids": x["token_ids"].copy()}
        changed["token_ids"][0, i] = (x["token_ids"][0, i] + 7) % 97
        moved = np.abs(run(model, changed)["query_output"][0] - before).max(-1)
        assert ((moved > 0) == (order > order[i])).all()


def test_a_querys_output_has_no_gradient_in_its_own_tokens_vector():
    """Ids 10, 11, ... stand once each, so that a row of the table is one token's vector."""
    _, x = order_inputs()
    x["token_ids"] = np.arange(10, 10 + PLACES, dtype="int32")[None]
    backbone = XLNET.build()
    for target in (3, 5):
        x["target_mapping"] = np.eye(PLACES, dtype="int32")[None, target : target + 1]
        model = backbone.two_stream()
        model = keras.Model(model.input, model.output["query_output"])
        table = backbone.token_embedding.embeddings
        before = table.numpy()
        model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mean_absolute_error")
        model.fit(x, np.ones((1, 1, 60)), verbose=0)
        moved = np.abs(table.numpy() - before).max(-1)
        assert moved[10 + target] == 0 and moved[10] > 0


def test_every_weight_learns_from_predictions():
    backbone = XLNET.build()
    model = backbone.two_stream(memory=True)
    model = keras.Model(model.input, model.output["query_output"])
    before = {v.path: v.numpy() for v in backbone.trainable_variables}
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mean_squared_error")
    x = two_stream_inputs() | {"memory": random_memory()["memory"][:, :2], "memory_mask": np.ones((4, 5), "int32")}
    model.fit(x, np.ones((4, 3, 60)), verbose=0)
    assert not [v.path for v in backbone.trainable_variables if (v.numpy() == before[v.path]).all()]


def test_segments_count_by_equality_only():
    backbone, x, rng = XLNET.build(), XLNET.inputs(np.ones((2, PLACES), "int32")), np.random.default_rng(3)
    for block in backbone.blocks:
        for weight in (block.attention.seg_embed, block.attention.r_s_bias):
            weight.assign(rng.normal(size=weight.shape))
    before = run(backbone, x)["sequence_output"]
    renamed = {**x, "segment_ids": np.array([5, 1, 9])[x["segment_ids"]].astype("int32")}
    assert gap(run(backbone, renamed)["sequence_output"], before) == 0
    memory = {"memory": random_memory(2)["memory"][:, :2], "memory_mask": np.ones((2, 5), "int32")}
    first, second = (run(backbone.recurrent(), y | memory)["sequence_output"] for y in (x, renamed))
    assert gap(first, second) > 1e-3  # what is remembered is of segment 0


@pytest.mark.parametrize("dtype", ["float16", "mixed_bfloat16"])
def test_half_precision_is_finite_with_a_memory_of_nothing_and_queries_that_see_nothing(dtype):
    backbone = XLNET.build(dtype=dtype, memory_length=5)
    x = two_stream_inputs() | backbone.empty_memory(4)
    x["permutation_mask"][:] = 1
    for name, output in backbone.two_stream(memory=True)(x).items():
        assert np.isfinite(ops.convert_to_numpy(ops.cast(output, "float32"))).all(), name


def test_heads_may_be_wider_than_the_model_divided():
    backbone = XLNET.build(head_dim=7)
    assert backbone.blocks[0].attention.query.units == 35
    assert run(backbone, XLNET.inputs())["sequence_output"].shape == (3, 11, 60)
    with pytest.raises(CheckpointError, match="heads of 12, and this model of 7"):
        export_to_transformers(backbone, "unwritten")


def test_what_cannot_be_is_said():
    with pytest.raises(ValueError, match="attention_type='both' is neither of bi and uni"):
        XLNET.build(attention_type="both")
    with pytest.raises(ValueError, match="num_heads=7 does not divide hidden_dim=60"):
        XLNET.build(num_heads=7)
    with pytest.raises(ValueError, match="hidden_dim=5 is odd"):
        XLNET.build(hidden_dim=5)


# --- files


def as_original(model):
    """A Hugging Face classifier's weights under zihangdai/xlnet's names, with a trace of its optimizer."""
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    scope, layers = "model/transformer", range(model.config.n_layer)
    found = {
        f"{scope}/word_embedding/lookup_table": state["transformer.word_embedding.weight"],
        f"{scope}/mask_emb/mask_emb": state["transformer.mask_emb"],
        "model/lm_loss/bias": np.zeros(97, "float32"),
        "model/sequnece_summary/summary/kernel": state["sequence_summary.summary.weight"].T,
        "model/sequnece_summary/summary/bias": state["sequence_summary.summary.bias"],
        "model/classification_imdb/logit/kernel": state["logits_proj.weight"].T,
        "model/classification_imdb/logit/bias": state["logits_proj.bias"],
        "global_step": np.array(7),
    }
    for name in ("r_w_bias", "r_r_bias", "r_s_bias", "seg_embed"):
        found[f"{scope}/{name}"] = np.stack([state[f"transformer.layer.{i}.rel_attn.{name}"] for i in layers])
    for i in layers:
        theirs, own = f"transformer.layer.{i}", f"{scope}/layer_{i}"
        found |= {f"{own}/rel_attn/{x}/kernel": state[f"{theirs}.rel_attn.{x}"] for x in "qkvro"}
        for part, norm in (("rel_attn", "LayerNorm"), ("ff", "LayerNorm")):
            found[f"{own}/{part}/{norm}/gamma"] = state[f"{theirs}.{part}.layer_norm.weight"]
            found[f"{own}/{part}/{norm}/beta"] = state[f"{theirs}.{part}.layer_norm.bias"]
        for dense in ("layer_1", "layer_2"):
            found[f"{own}/ff/{dense}/kernel"] = state[f"{theirs}.ff.{dense}.weight"].T
            found[f"{own}/ff/{dense}/bias"] = state[f"{theirs}.ff.{dense}.bias"]
        found[f"{own}/rel_attn/q/kernel/Adam"] = np.zeros(1, "float32")
    return found


def write_original(folder, model, variables, activation):
    """The layout of the published archives: xlnet_config.json, xlnet_model.ckpt and spiece.model."""
    folder.mkdir()
    sizes = {name: getattr(model.config, name) for name in ("n_layer", "d_model", "n_head", "d_head", "d_inner")}
    config = {**sizes, "ff_activation": activation, "untie_r": True, "n_token": model.config.vocab_size}
    (folder / "xlnet_config.json").write_text(json.dumps(config), "utf-8")
    XLNET.write_vocabulary(folder, 97)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        made = [tf.compat.v1.get_variable(name, initializer=array) for name, array in variables.items()]
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver(made).save(session, str(folder / "xlnet_model.ckpt"))
    return folder


def test_the_originals_files_equal_their_twin(tmp_path):
    model = XLNET.build_reference(transformers.XLNetForSequenceClassification, ff_activation="relu", num_labels=3)
    folder = write_original(tmp_path / "xlnet_cased", model, as_original(model), "relu")
    x = XLNET.inputs(LEFT)
    classifier = tasks.TextClassifier.from_preset(folder)
    assert classifier.num_classes == 3 and not classifier.load_report.fresh
    assert gap(run(classifier, x), reference_outputs(model, x).logits) <= 1e-5
    assert type(classifier.preprocessor.tokenizer) is garden.XlnetTokenizer
    hidden = reference_outputs(model.transformer, x).last_hidden_state
    for path in (folder, folder / "xlnet_model.ckpt"):
        backbone = garden.XlnetBackbone.from_preset(path)
        assert gap(run(backbone, x)["sequence_output"], hidden, x["padding_mask"]) <= 1e-5


def test_the_originals_gelu_is_the_tanh_form_and_its_biases_may_be_tied(tmp_path):
    model = XLNET.build_reference(transformers.XLNetForSequenceClassification, ff_activation="gelu_new")
    variables = as_original(model)
    for name in ("r_w_bias", "r_r_bias", "r_s_bias"):
        variables[f"model/transformer/{name}"] = variables[f"model/transformer/{name}"][0]
        for i in (1, 2):
            getattr(model.transformer.layer[i].rel_attn, name).data = getattr(model.transformer.layer[0].rel_attn, name)
    backbone = garden.XlnetBackbone.from_preset(write_original(tmp_path / "it", model, variables, "gelu"))
    x = XLNET.inputs(LEFT)
    hidden = reference_outputs(model.transformer, x).last_hidden_state
    assert backbone.activation == "gelu_tanh"
    assert gap(run(backbone, x)["sequence_output"], hidden, x["padding_mask"]) <= 1e-5


def test_a_pretraining_checkpoint_explains_its_tied_table(tmp_path):
    reference = XLNET.save_reference(tmp_path, transformers.XLNetLMHeadModel)
    tensors = {name: tensor.clone() for name, tensor in reference.state_dict().items()}
    torch.save(tensors, tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    backbone = garden.XlnetBackbone.from_preset(tmp_path)
    assert backbone.load_report.ignored == {
        "lm_loss.weight": "a copy of transformer.word_embedding.weight",
        "lm_loss.bias": "the bias of pretraining's predictions",
    }
    with pytest.raises(TypeError, match="MaskedLM needs a family that is trained to fill masks, which a XlnetBackbone"):
        tasks.MaskedLM.from_preset(tmp_path)


def test_an_export_says_how_it_is_to_be_run(tmp_path):
    backbone = XLNET.build(attention_type="uni", clamp_length=9, memory_length=4, reuse_length=2, same_length=True)
    export_to_transformers(backbone, tmp_path)
    config = transformers.XLNetConfig.from_pretrained(tmp_path)
    assert (config.attn_type, config.clamp_len, config.mem_len, config.reuse_len) == ("uni", 9, 4, 2)
    assert config.same_length and config.d_head == 12
    again = garden.XlnetBackbone.from_preset(tmp_path)
    assert again.hyperparameters == {**backbone.hyperparameters, "head_dim": 12, "attention_dropout": 0.1}


# --- text


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A SentencePiece model with the ids of the published ones, with pieces that end in a number's comma."""
    folder = tmp_path_factory.mktemp("xlnet")
    numbers = [f"in {year}, {year} and {n},{n:03} of {n}, {n}, or" for n, year in enumerate(range(1900, 2000))]
    (folder / "text.txt").write_text("\n".join(material.movie_sentences()[:2000] + numbers * 3), "utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text.txt"),
        model_prefix=str(folder / "spiece"),
        vocab_size=1200,
        control_symbols="<cls>,<sep>,<pad>,<mask>,<eod>,<eop>",
        split_by_unicode_script=False,
        split_by_number=False,
        minloglevel=2,
    )
    return folder


@pytest.fixture(scope="module")
def tokenizer(folder):
    return garden.XlnetTokenizer.from_files(folder)


def original_ids(model, text):
    """preprocess_text and encode_pieces of the original's prepro_utils.py, from their description."""
    text = " ".join(text.strip().split()).replace("``", '"').replace("''", '"')
    text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    pieces = []
    for piece in model.encode(text, out_type=str):
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            cut = model.encode(piece[:-1].replace("▁", ""), out_type=str)
            if piece[0] != "▁" and cut[0][0] == "▁":
                cut = cut[1:] if len(cut[0]) == 1 else [cut[0][1:], *cut[1:]]
            pieces += [*cut, piece[-1]]
        else:
            pieces.append(piece)
    return [model.piece_to_id(piece) for piece in pieces]


def test_ids_equal_the_originals(folder, tokenizer):
    model = sentencepiece.SentencePieceProcessor(str(folder / "spiece.model"))
    assert any(re.search(r"\d,$", model.id_to_piece(i)) for i in range(model.get_piece_size()))
    texts = [
        "In 1939, it was 9, or 1,234.5",
        "naïve  ``café''",
        "中文，标点",
        "",
        *material.movie_sentences()[2000:2300],
    ]
    for text in texts:
        assert tokenizer(text) == original_ids(model, text), text
    names = ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>")
    assert [tokenizer.token_to_id(name) for name in names] == list(range(9))


def test_special_tokens_stand_behind_and_padding_in_front(tokenizer):
    a, b = tokenizer("a fine film"), tokenizer("and a funny one")
    preprocessor = tasks.XlnetTextClassifierPreprocessor(tokenizer, sequence_length=24)
    x = preprocessor(["a fine film", ""])
    room = 24 - len(a) - 2
    assert x["token_ids"].tolist() == [[5] * room + [*a, 4, 3], [5] * 22 + [4, 3]]
    assert x["segment_ids"].tolist() == [[0] * 23 + [2]] * 2
    assert x["padding_mask"].tolist() == [[0] * room + [1] * (len(a) + 2), [0] * 22 + [1, 1]]
    pair = preprocessor(("a fine film", "and a funny one"))
    length = len(a) + len(b) + 3
    assert pair["token_ids"].tolist() == [5] * (24 - length) + [*a, 4, *b, 4, 3]
    segments = [0] * (len(a) + 1) + [1] * (len(b) + 1) + [2]
    assert pair["segment_ids"].tolist() == [0] * (24 - length) + segments
    encoding = tokenizer.encode("a fine film", "and a funny one")
    assert (encoding.ids, encoding.type_ids) == ([*a, 4, *b, 4, 3], segments)
    short = tasks.XlnetTextClassifierPreprocessor(tokenizer, sequence_length=5)(("a fine film", "and a funny one"))
    assert short["token_ids"].tolist() == [a[0], 4, b[0], 4, 3]
    with pytest.raises(ValueError, match="sequence_length=3 leaves no room for text beside 3 special tokens"):
        tasks.XlnetTextClassifierPreprocessor(tokenizer, sequence_length=3)(("a", "b"))


def test_rows_equal_those_of_transformers(folder, tokenizer, tmp_path):
    tokenizer.rust.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "XLNetTokenizer"}), "utf-8")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    texts = ["a fine film", "and a funny one, or not"]
    said = theirs(texts, padding="max_length", max_length=20)
    ours = tasks.XlnetTextClassifierPreprocessor(tokenizer, sequence_length=20)(texts)
    assert ours["token_ids"].tolist() == said["input_ids"] and ours["padding_mask"].tolist() == said["attention_mask"]
    assert garden.XlnetTokenizer.from_files(tmp_path)("a fine film") == tokenizer("a fine film")


def test_labels_of_words_stand_where_their_pieces_do(tokenizer):
    preprocessor = tasks.XlnetTokenClassifierPreprocessor(tokenizer, sequence_length=16)
    x, y, weights = preprocessor([["a", "marvellous", "film"]], [[1, 2, 3]])
    first = [i for i, weight in enumerate(weights[0]) if weight]
    assert y[0, first].tolist() == [1, 2, 3] and x["token_ids"][0, -2:].tolist() == [4, 3]
    assert x["padding_mask"][0].tolist() == sorted(x["padding_mask"][0].tolist()) and weights[0, -2:].tolist() == [0, 0]
    pieces = [tokenizer.id_to_token(i) for i in x["token_ids"][0, first]]
    assert all(piece.startswith("▁") for piece in pieces)


def test_a_passage_stands_in_front_of_its_question_and_no_answer_at_the_end(tokenizer):
    passage, question = "the film was made in paris by a young director , and it is funny", "who made the film ?"
    preprocessor = tasks.XlnetQuestionAnsweringPreprocessor(tokenizer, sequence_length=20, doc_stride=8)
    windows, q = preprocessor.windows(question, passage), tokenizer(question)
    assert len(windows) > 1
    for window in windows:
        assert window.first == 0 and window.token_ids[-len(q) - 3 :].tolist() == [4, *q, 4, 3]
        assert window.segment_ids[-1] == 2 and window.positions(None) == (len(window.token_ids) - 1,) * 2
    backbone = XLNET.build(vocabulary_size=1200)
    task = tasks.XlnetQuestionAnswering(backbone, preprocessor)
    answer = task.predict_answers([question], [passage], null_threshold=0.0)[0]
    assert passage[answer.start : answer.end] == answer.text
    example = tasks.Example("1", question, passage, [tasks.AnswerSpan("paris", passage.index("paris"))])
    unanswerable = tasks.Example("2", question, passage, [])
    task.compile()
    history = task.fit([example, unanswerable], epochs=1, batch_size=4, verbose=0).history
    assert np.isfinite(history["loss"]).all()


def test_a_classifier_learns_from_text_and_comes_back(folder, tokenizer, tmp_path):
    preprocessor = tasks.XlnetTextClassifierPreprocessor(tokenizer, sequence_length=16)
    backbone = XLNET.build(vocabulary_size=1200)
    classifier = tasks.XlnetTextClassifier(backbone, preprocessor=preprocessor, class_names=["bad", "good"])
    texts = ["a fine film", "a dull film"] * 8
    classifier.compile(keras.optimizers.Adam(3e-3))
    classifier.fit(texts, [1, 0] * 8, epochs=8, verbose=0)
    labels, probabilities = classifier.predict_labels(["a fine film", "a dull film"])
    assert labels == ["good", "bad"]
    classifier.save_to_preset(tmp_path)
    again = tasks.TextClassifier.from_preset(tmp_path)
    assert type(again) is tasks.XlnetTextClassifier and again.preprocessor.tokenizer.pads_left
    assert gap(again.predict_labels(texts[:2])[1], probabilities) <= 1e-6


def test_as_a_language_model_it_equals_the_reference_whose_permutation_is_the_order_of_the_text(tmp_path):
    """The state of place t is the reference's query at t + 1, which may look at t and what is before."""
    reference = XLNET.save_reference(tmp_path, transformers.XLNetLMHeadModel)
    model = tasks.CausalLM.from_preset(tmp_path)
    assert not model.load_report.fresh
    ids = np.random.default_rng(0).integers(9, 97, (2, 7)).astype("int32")
    later = np.append(ids, [[6], [6]], axis=1)  # something stands at the place that the last query asks for
    permutation = np.triu(np.ones((8, 8)))[None].repeat(2, 0)  # t may not look at itself nor at what comes
    mapping = np.eye(8)[None, 1:].repeat(2, 0)
    with torch.no_grad():
        theirs = reference(
            torch.tensor(later).long(),
            perm_mask=torch.tensor(permutation).float(),
            target_mapping=torch.tensor(mapping).float(),
        ).logits
    assert gap(run(model, {"token_ids": ids, "padding_mask": np.ones_like(ids)}), theirs) <= 1e-4
    cache, parts = model.backbone.empty_cache(2, 9), []
    for start, stop in ((0, 3), (3, 4), (4, 7)):
        logits, _, cache = model.call_with_cache(ids[:, start:stop], cache, start)
        parts.append(ops.convert_to_numpy(logits))
    assert gap(np.concatenate(parts, axis=1), theirs) <= 1e-4
    model.compile(sampler="greedy")
    assert model.generate("w1 w2", max_length=9).startswith("w1 w2")
    export_to_transformers(model, tmp_path / "out")
    reloaded, report = transformers.XLNetLMHeadModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    assert gap(reloaded.lm_loss.bias.detach(), reference.lm_loss.bias.detach()) == 0
