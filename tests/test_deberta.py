"""What DeBERTa has of its own: terms with a position, buckets, a convolution, the decoder of masks, two tokenizers."""

import itertools
import json

import keras_hub
import numpy as np
import pytest
import torch
import transformers
from families import FAMILIES, gap, reference_outputs, run
from keras import ops

import garden
from garden import tasks
from garden.layers import (
    DisentangledAttention,
    RelativeEmbedding,
    block_distances,
    log_buckets,
    relative_scores,
    relative_shift,
)
from garden.presets import CheckpointError, export_to_transformers

V1, V2 = (
    next(row for row in FAMILIES if row.backbone is cls) for cls in (garden.DebertaBackbone, garden.DebertaV2Backbone)
)
LONG = np.array([[1] * 23, [0] * 3 + [1] * 18 + [0] * 2])
TERMS = [[], ["c2p"], ["p2c"], ["c2p", "p2c"]]


# --- buckets and shifts


@pytest.mark.parametrize(
    "size, farthest, expected",
    [
        (256, 512, {1: 1, 127: 127, 128: 128, 129: 129, 130: 130, 150: 143, 200: 169, 256: 192, 300: 207, 400: 233}),
        (256, 512, {500: 254, 511: 255, 512: 256}),
        (4, 8, {1: 1, 2: 2, 3: 3, 4: 3, 5: 3, 6: 3, 7: 3}),
    ],
)
def test_buckets_of_the_published_code(size, farthest, expected):
    buckets = log_buckets(size, farthest)
    assert {distance: int(buckets[distance]) for distance in expected} == expected


@pytest.mark.parametrize("size, farthest", [(256, 512), (4, 8), (32, 100), (64, 1024)])
def test_rows_of_the_table_are_those_of_transformers(size, farthest):
    from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

    distances = np.arange(-2 * farthest, 2 * farthest)
    theirs = make_log_bucket_position(torch.tensor(distances), size, farthest).long().numpy()
    ours = ops.convert_to_numpy(RelativeEmbedding(size, 4, farthest).rows(distances.astype("int32")))
    assert (ours == np.clip(theirs + size, 0, 2 * size - 1)).all()


def test_larger_rows_are_farther_in_the_past():
    table, rows = RelativeEmbedding(bucket_size=4, hidden_dim=2)(np.ones((1, 2)))
    assert table.shape[0] == 3  # those of distances -1, 0 and 1
    by_query = np.broadcast_to(ops.convert_to_numpy(rows)[0, 0], (1, 1, 2, 4))
    assert ops.convert_to_numpy(relative_shift(ops.convert_to_tensor(by_query), 2))[0, 0].tolist() == [[1, 0], [2, 1]]


@pytest.mark.parametrize("queries, keys, columns", [(1, 1, 1), (1, 1, 2), (3, 3, 5), (3, 3, 6), (3, 5, 7), (1, 4, 4)])
def test_the_shift_reads_each_distance_where_it_stands(queries, keys, columns):
    scores = np.random.default_rng(0).normal(size=(2, 3, queries, columns))
    shifted = ops.convert_to_numpy(relative_shift(ops.convert_to_tensor(scores), keys))
    for t, s in itertools.product(range(queries), range(keys)):
        assert (shifted[:, :, t, s] == scores[:, :, t, queries - 1 - t + s].astype(shifted.dtype)).all()


@pytest.mark.parametrize("length, block", [(6, 2), (7, 2), (6, 9), (1, 1)])
def test_scores_by_blocks_are_those_of_every_pair(length, block):
    rng = np.random.default_rng(0)
    x, vectors = rng.normal(size=(2, length, 3, 4)), rng.normal(size=(2 * length, 3, 4))
    distances = ops.convert_to_numpy(block_distances(length, block))
    found = ops.convert_to_numpy(relative_scores(ops.convert_to_tensor(x), ops.convert_to_tensor(vectors[distances])))
    for t, s in itertools.product(range(length), range(length)):
        assert np.abs(found[:, :, t, s] - (x[:, t] * vectors[t - s]).sum(-1)).max() <= 1e-5


# --- attention


@pytest.mark.parametrize("terms", TERMS, ids="|".join)
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("size", [0, 3])
def test_every_kind_of_version_2_equals_the_reference(terms, shared, size, tmp_path):
    reference = V2.save_reference(
        tmp_path, V2.reference, pos_att_type=terms, share_att_key=shared, conv_kernel_size=size
    )
    backbone, x = V2.backbone.from_preset(tmp_path), V2.inputs(LONG)
    theirs = reference_outputs(reference, x).last_hidden_state
    assert gap(run(backbone, x)["sequence_output"], theirs, LONG) <= 1e-5


@pytest.mark.parametrize("terms", TERMS, ids="|".join)
@pytest.mark.parametrize("reach", [-1, 8])
def test_every_kind_of_version_1_equals_the_reference(terms, reach, tmp_path):
    reference = V1.save_reference(tmp_path, V1.reference, pos_att_type=terms, max_relative_positions=reach)
    backbone, x = V1.backbone.from_preset(tmp_path), V1.inputs(LONG)
    theirs = reference_outputs(reference, x).last_hidden_state
    assert gap(run(backbone, x)["sequence_output"], theirs, LONG) <= 1e-5


def test_version_2_without_buckets_equals_the_reference(tmp_path):
    reference = V2.save_reference(tmp_path, V2.reference, position_buckets=-1)
    backbone, x = V2.backbone.from_preset(tmp_path), V2.inputs(LONG)
    assert gap(run(backbone, x)["sequence_output"], reference_outputs(reference, x).last_hidden_state, LONG) <= 1e-5


def test_lengths_at_which_buckets_are_full_equal_the_reference(tmp_path):
    """600 places: more than `max_position_embeddings`, so that far keys share the first and the last row."""
    reference = V2.save_reference(
        tmp_path, V2.reference, max_relative_positions=-1, max_position_embeddings=512, position_buckets=256
    )
    backbone, x = V2.backbone.from_preset(tmp_path), V2.inputs(np.ones((1, 600), "int32"))
    with torch.no_grad():  # whose own positions end at 512, though it does not read them
        embedded = reference.embeddings.LayerNorm(
            reference.embeddings.word_embeddings(torch.tensor(x["token_ids"]).long())
        )
        theirs = reference.encoder(embedded, torch.ones(1, 600)).last_hidden_state
    assert gap(run(backbone, x)["sequence_output"], theirs) <= 1e-5


def test_position_to_position_is_a_bias_of_every_distance():
    x = np.random.default_rng(0).normal(size=(1, 5, 8)).astype("float32")
    table, rows = RelativeEmbedding(bucket_size=8, hidden_dim=8)(np.ones((1, 5)))
    layer = DisentangledAttention(num_heads=2, pos_att_type="p2p")
    layer.build(x.shape)
    scores = ops.convert_to_numpy(layer.explicit(x, table=table, rows=rows)[1]["attention_scores"])[0]
    query, key = (ops.convert_to_numpy(dense(x))[0].reshape(5, 2, 4) for dense in (layer.query, layer.key))
    position = [ops.convert_to_numpy(d(table)).reshape(-1, 2, 4) for d in (layer.position_query, layer.position_key)]
    by_row = (position[0] * position[1]).sum(-1)
    for t, s in itertools.product(range(5), range(5)):
        expected = ((query[t] * key[s]).sum(-1) + by_row[4 + t - s]) / np.sqrt(4 * 2)
        assert np.abs(scores[:, t, s] - expected).max() <= 1e-6


def test_only_known_terms():
    with pytest.raises(ValueError, match="pos_att_type has p2x; there are c2p, p2c, p2p"):
        V1.build(pos_att_type="c2p|p2x")


def test_a_head_of_the_fused_matrix_moves_that_head_alone(tmp_path):
    reference = V1.save_reference(tmp_path, V1.reference)
    width = 60 // 5
    fused = reference.encoder.layer[0].attention.self.in_proj.weight
    kept = fused.detach().clone()
    kept[: 3 * width], kept[6 * width :] = 0, 0
    with torch.no_grad():
        fused.copy_(kept)
    reference.save_pretrained(tmp_path)
    block = V1.backbone.from_preset(tmp_path).get_layer("block_0")
    for name in ("query", "key", "value"):
        by_head = ops.convert_to_numpy(getattr(block.attention, name).kernel).reshape(60, 5, width)
        assert [bool(np.abs(by_head[:, n]).max() > 0) for n in range(5)] == [False, True, False, False, False]


# --- padding


@pytest.mark.parametrize("row", [V1, V2], ids=["v1", "v2"])
def test_ids_of_padding_do_not_matter(row):
    backbone, x = row.build(), row.inputs()
    other = {**x, "token_ids": np.where(x["padding_mask"] > 0, x["token_ids"], 7).astype("int32")}
    ours, theirs = (ops.convert_to_numpy(run(backbone, each)["sequence_output"]) for each in (x, other))
    assert np.abs(ours - theirs).max() == 0
    seen = run(backbone.features("hidden_states"), x)["hidden_states"]
    assert np.abs(ops.convert_to_numpy(seen[0])[x["padding_mask"] == 0]).max() == 0


# --- heads


@pytest.mark.parametrize("row", [V1, V2], ids=["v1", "v2"])
def test_both_spellings_of_the_masked_lm_head_and_the_old_scope(row, tmp_path):
    cls = row.own_heads[tasks.MaskedLM]
    x = row.inputs(np.ones((2, 9), "int32"))
    positions = {"mask_positions": np.tile(np.arange(9, dtype="int32"), (2, 1))}
    for legacy, scope in itertools.product((True, False), ("deberta.", "bert.")):
        folder = tmp_path / f"{legacy}{scope}"
        reference = row.save_reference(folder, cls, legacy=legacy, num_hidden_layers=1)
        (folder / "model.safetensors").unlink()
        state = {name.replace("deberta.", scope): tensor for name, tensor in reference.state_dict().items()}
        torch.save(state, folder / "pytorch_model.bin")
        model = tasks.MaskedLM.from_preset(folder)
        assert not model.load_report.fresh and model.queries is None
        assert gap(run(model, {**x, **positions}), reference_outputs(reference, x).logits) <= 1e-5


def as_version_2(reference):
    """A DeBERTa 1 in the layout of 2, whose blocks in transformers take queries of their own."""
    sizes = {**V2.sizes, "position_buckets": -1, "norm_rel_ebd": "none", "share_att_key": False, "conv_kernel_size": 0}
    sizes["num_hidden_layers"] = reference.config.num_hidden_layers
    twin = transformers.DebertaV2Model(transformers.DebertaV2Config(**sizes, attn_implementation="eager")).eval()
    state = {}
    for name, tensor in reference.state_dict().items():
        if "in_proj" in name:
            by_head = tensor.view(5, 3, 12, 60)
            for i, part in enumerate(("query", "key", "value")):
                state[name.replace("in_proj", f"{part}_proj")] = by_head[:, i].reshape(60, 60)
            state[name.replace("in_proj.weight", "key_proj.bias")] = torch.zeros(60)
            state[name.replace("self.in_proj.weight", "self.pos_key_proj.bias")] = torch.zeros(60)
        for theirs, ours in {"q_bias": "query_proj.bias", "v_bias": "value_proj.bias"}.items():
            if name.endswith(theirs):
                state[name.replace(theirs, ours)] = tensor
        state[name.replace("pos_q_proj", "pos_query_proj").replace("pos_proj", "pos_key_proj")] = tensor
    twin.load_state_dict({name: state[name] for name in twin.state_dict()})
    return twin


@pytest.mark.parametrize("row", [V1, V2], ids=["v1", "v2"])
def test_the_decoder_of_masks_equals_the_reference_s_blocks_with_queries_of_their_own(row, tmp_path):
    cls = row.own_heads[tasks.MaskedLM]
    reference = row.save_reference(tmp_path, cls, legacy=False, num_hidden_layers=2)
    table = torch.randn(33, 60)
    (tmp_path / "model.safetensors").unlink()
    state = {**reference.state_dict(), "deberta.embeddings.position_embeddings.weight": table}
    torch.save(state, tmp_path / "pytorch_model.bin")
    model = tasks.MaskedLM.from_preset(tmp_path)
    assert model.queries and not model.load_report.fresh

    mask = np.array([[1] * 9, [1] * 7 + [0] * 2])
    x = row.inputs(mask)
    encoder = (as_version_2(reference.deberta) if row is V1 else reference.deberta).encoder
    with torch.no_grad():
        embedded = reference.deberta.embeddings(torch.tensor(x["token_ids"]).long(), mask=torch.tensor(mask))
        keys = encoder(embedded, torch.tensor(mask)).hidden_states[-2]
        query = keys + table[:9]
        beside = {"attention_mask": encoder.get_attention_mask(torch.tensor(mask)).bool()}
        beside |= {"relative_pos": encoder.get_rel_pos(keys), "rel_embeddings": encoder.get_rel_embedding()}
        for _ in range(2):
            query = encoder.layer[-1](keys, query_states=query, **beside)[0]
        theirs = reference.lm_predictions(query, reference.deberta.embeddings.word_embeddings)
    positions = np.tile(np.arange(9, dtype="int32"), (2, 1))
    ours = run(model, {**x, "mask_positions": positions})
    assert gap(ours, theirs, mask) <= 1e-5

    model.save_to_preset(tmp_path / "saved")
    export_to_transformers(model, tmp_path / "exported")
    for folder in ("saved", "exported"):
        again = tasks.MaskedLM.from_preset(tmp_path / folder)
        assert again.queries and gap(run(again, {**x, "mask_positions": positions}), ours, mask) <= 1e-6
    plain = tasks.MaskedLM.from_preset(tmp_path, mask_decoder=False)
    assert gap(run(plain, {**x, "mask_positions": positions}), reference_outputs(reference, x).logits, mask) <= 1e-5


def test_the_decoder_of_masks_knows_as_many_places_as_its_table():
    model = tasks.MaskedLM.for_backbone(V2.backbone)(V2.build(), mask_decoder=True)
    x = V2.inputs(np.ones((1, 34), "int32"))
    with pytest.raises(ValueError, match="34 tokens but the decoder of masks has 33 positions"):
        model({**x, "mask_positions": np.zeros((1, 1), "int32")})
    with pytest.raises(ValueError, match="A BertBackbone has no decoder of masks"):
        bert = garden.BertBackbone(9, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
        tasks.BertMaskedLM(bert, mask_decoder=True)


def test_the_decoder_of_masks_learns():
    model = tasks.MaskedLM.for_backbone(V2.backbone)(V2.build(dropout=0.0), mask_decoder=True)
    x = {**V2.inputs(np.ones((8, 9), "int32")), "mask_positions": np.tile(np.array([[1, 4]], "int32"), (8, 1))}
    y = x["token_ids"][:, [1, 4]]
    model.compile("adam", loss="sparse_categorical_crossentropy")
    before = ops.convert_to_numpy(model.queries.position_embedding.embeddings).copy()
    model.fit(x, y, epochs=1, verbose=0)
    assert np.abs(ops.convert_to_numpy(model.queries.position_embedding.embeddings) - before).max() > 0


def test_the_detector_adds_the_first_token_before_the_norm(tmp_path):
    reference = V2.save_reference(tmp_path, V2.reference)
    dense, classifier = torch.nn.Linear(60, 60), torch.nn.Linear(60, 1)
    norm = torch.nn.LayerNorm(60, eps=1e-7)
    state = {f"deberta.{name}": tensor for name, tensor in reference.state_dict().items()}
    for name, module in {"dense": dense, "classifier": classifier, "LayerNorm": norm}.items():
        state |= {f"mask_predictions.{name}.{part}": tensor for part, tensor in module.state_dict().items()}
    (tmp_path / "model.safetensors").unlink()
    torch.save(state, tmp_path / "pytorch_model.bin")
    detector, x = tasks.ReplacedTokenDetector.from_preset(tmp_path), V2.inputs(np.ones((2, 9), "int32"))
    assert not detector.load_report.fresh
    with torch.no_grad():
        hidden = reference_outputs(reference, x).last_hidden_state
        theirs = classifier(torch.nn.functional.gelu(dense(norm(hidden + hidden[:, :1])))).squeeze(-1)
    assert gap(run(detector, x), theirs) <= 1e-5
    packed = V2.inputs(np.array([[1] * 5 + [2] * 4]))
    alone = {name: array[:, 5:] for name, array in packed.items()}
    assert (
        gap(run(detector, packed)[:, 5:], run(detector, {**alone, "padding_mask": alone["padding_mask"] // 2})) <= 1e-5
    )


def test_multiple_choice_of_version_2_equals_the_reference(tmp_path):
    reference = V2.save_reference(tmp_path, transformers.DebertaV2ForMultipleChoice)
    model, x = tasks.MultipleChoice.from_preset(tmp_path), V2.inputs(np.ones((6, 9), "int32"))
    x = {name: array.reshape(2, 3, 9) for name, array in x.items()}
    with torch.no_grad():
        mask = torch.tensor(x["padding_mask"])
        theirs = reference(input_ids=torch.tensor(x["token_ids"]).long(), attention_mask=mask).logits
    assert not model.load_report.fresh and gap(run(model, x), theirs) <= 1e-5


def test_keras_hubs_presets_equal_keras_hub(tmp_path):
    V2.write_vocabulary(tmp_path, 97)
    theirs = keras_hub.models.DebertaV3Backbone(97, 3, 5, 60, 70, max_sequence_length=33, bucket_size=4)
    tokenizer = keras_hub.tokenizers.DebertaV3Tokenizer(str(tmp_path / "spm.model"))
    preprocessor = keras_hub.models.DebertaV3TextClassifierPreprocessor(tokenizer, 16)
    task = keras_hub.models.DebertaV3TextClassifier(theirs, 4, preprocessor)
    for variable in task.weights:
        variable.assign(np.random.default_rng(1).normal(0.1, 0.2, variable.shape))
    task.save_to_preset(tmp_path / "preset")
    x, padding = V2.inputs(), V2.inputs()["padding_mask"]
    backbone = garden.DebertaV2Backbone.from_preset(tmp_path / "preset")
    assert gap(run(backbone, x)["sequence_output"], ops.convert_to_numpy(theirs(x)), padding) <= 1e-5
    classifier = tasks.TextClassifier.from_preset(tmp_path / "preset", sequence_length=16)
    assert not classifier.load_report.fresh
    texts = ["w1 w2", "w3 w4 w5 nothing"]
    assert gap(classifier.predict(texts, verbose=0), task.predict(texts, verbose=0)) <= 1e-5


@pytest.mark.parametrize(
    "changes",
    [{"position_biased_input": True}, {"type_vocab_size": 2}, {"norm_rel_ebd": "none"}, {"relative_attention": False}],
)
def test_what_no_release_has_is_refused(changes, tmp_path):
    V2.config(**{**V2.sizes, **changes}).save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=next(iter(changes))):
        garden.DebertaV2Backbone.from_preset(tmp_path)


def test_an_export_is_configured_like_a_release(tmp_path):
    export_to_transformers(V2.build(), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    published = {**V2.sizes, "type_vocab_size": 0, "pos_att_type": "c2p|p2c", "num_hidden_layers": 2}
    assert {name: config[name] for name in published} == published


# --- tokenizers


def test_version_1_puts_one_separator_between_two_texts(tmp_path):
    V1.write_vocabulary(tmp_path, 97)
    tokenizer = garden.DebertaTokenizer.from_files(tmp_path)
    assert [tokenizer.token_to_id(t) for t in ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")] == [0, 1, 2, 3, 96]
    encoding = tokenizer.encode("w1", "w2 [MASK]")
    assert encoding.tokens == ["[CLS]", "w", "1", "[SEP]", "w", "2", " [MASK]", "[SEP]"]
    assert encoding.ids[-2] == 96
    assert encoding.type_ids == [0, 0, 0, 0, 1, 1, 1, 1]
    x = tasks.DebertaTextClassifierPreprocessor(tokenizer, sequence_length=10)((["w1"], ["w2 [MASK]"]))
    assert x["token_ids"].tolist() == [[*encoding.ids, 0, 0]] and list(x) == ["token_ids", "padding_mask"]


def test_version_2_appends_the_mask(tmp_path):
    V2.write_vocabulary(tmp_path, 97)
    tokenizer = garden.DebertaV2Tokenizer.from_files(tmp_path)
    size = tokenizer.vocabulary_size()
    assert [tokenizer.token_to_id(t) for t in ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")] == [0, 1, 2, 3, size - 1]
    assert tokenizer.encode("w1", "w2 [MASK]").ids.count(2) == 2 and tokenizer.mask_token_id == size - 1
    assert tokenizer("W1") != garden.DebertaV2Tokenizer.from_files(tmp_path, lowercase=True)("W1") == tokenizer("w1")
    apart = garden.DebertaV2Tokenizer.from_files(tmp_path, split_by_punct=True)
    assert apart.encode("w1,w2").tokens.count("▁") > tokenizer.encode("w1,w2").tokens.count("▁")
    preprocessor = tasks.DebertaV2MaskedLMPreprocessor(apart, sequence_length=16)
    tasks.DebertaV2MaskedLM(V2.build(), preprocessor).save_to_preset(tmp_path / "saved")
    again = garden.DebertaV2Tokenizer.from_preset(tmp_path / "saved")
    assert again.split_by_punct and not again.lowercase and again("w1,w2") == apart("w1,w2")
