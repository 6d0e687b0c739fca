"""What RoBERTa has of its own: positions behind the padding's, byte-level BPE, two separators, fairseq's files."""

import argparse
import json

import keras_hub
import material
import numpy as np
import pytest
import torch
import transformers
from families import FAMILIES, gap, inputs, run, write_byte_pairs

import garden
from garden import tasks
from garden.presets import CheckpointError, export_to_transformers

ROBERTA = next(row for row in FAMILIES if row.backbone is garden.RobertaBackbone)


# --- positions


@pytest.mark.parametrize("padding_id", [1, 3])
def test_positions_equal_the_reference_that_counts_them_itself(padding_id, tmp_path):
    reference = ROBERTA.save_reference(tmp_path, ROBERTA.reference, pad_token_id=padding_id)
    backbone = ROBERTA.backbone.from_preset(tmp_path)
    assert backbone.max_sequence_length == 35 - padding_id - 1
    x = ROBERTA.inputs()
    x["token_ids"] = np.where(x["padding_mask"] == 0, padding_id, x["token_ids"]).astype("int32")
    mask = torch.tensor(x["padding_mask"])
    with torch.no_grad():
        theirs = reference(input_ids=torch.tensor(x["token_ids"]).long(), attention_mask=mask).last_hidden_state
    assert gap(run(backbone, x)["sequence_output"], theirs, x["padding_mask"]) <= 1e-5


def test_a_table_of_514_rows_holds_512_tokens_and_with_padding_at_3_only_510(tmp_path):
    for padding_id, length in ((1, 512), (3, 510)):
        ROBERTA.save_reference(tmp_path, ROBERTA.reference, max_position_embeddings=514, pad_token_id=padding_id)
        backbone = ROBERTA.backbone.from_preset(tmp_path)
        assert backbone.max_sequence_length == length
        x = {"token_ids": np.full((1, length), 5, "int32"), "padding_mask": np.ones((1, length), "int32")}
        assert run(backbone, x)["sequence_output"].shape[1] == length
        with pytest.raises(ValueError, match=f"{length + 1} tokens but the position table has {length}"):
            backbone({name: np.pad(array, ((0, 0), (0, 1)), mode="edge") for name, array in x.items()})


def test_a_segments_vector_is_not_dropped(tmp_path):
    """Hugging Face's own training leaves it non-zero; a second row, its class's default, is for segments never used."""
    reference = ROBERTA.save_reference(tmp_path, ROBERTA.reference, type_vocab_size=2)
    backbone, x = ROBERTA.backbone.from_preset(tmp_path), ROBERTA.inputs(np.ones((2, 9), "int32"))

    def theirs():
        with torch.no_grad():
            return reference(input_ids=torch.tensor(x["token_ids"]).long()).last_hidden_state

    assert gap(run(backbone, x)["sequence_output"], theirs()) <= 1e-5
    reference.embeddings.token_type_embeddings.weight.data[0] = 0
    assert gap(run(backbone, x)["sequence_output"], theirs()) > 1e-2


def test_an_export_says_which_id_is_padding(tmp_path):
    ROBERTA.save_reference(tmp_path / "in", transformers.RobertaForMaskedLM, do_lower_case=False)  # as some say
    export_to_transformers(tasks.MaskedLM.from_preset(tmp_path / "in"), tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text("utf-8"))
    assert (config["pad_token_id"], config["max_position_embeddings"], config["type_vocab_size"]) == (1, 35, 1)


# --- fairseq


def as_fairseq(state, old):
    """A Hugging Face state dict with the names that fairseq gave its layers, before 2019's end or since."""
    names = {"encoder.layer": "layers", "attention.self": "self_attn", "query": "q_proj", "key": "k_proj"}
    names |= {"value": "v_proj", "attention.output.dense": "self_attn.out_proj", "intermediate.dense": "fc1"}
    names |= {"attention.output.LayerNorm": "self_attn_layer_norm", "output.dense": "fc2"}
    names |= {"output.LayerNorm": "final_layer_norm", "embeddings.word_embeddings": "embed_tokens"}
    names |= {"embeddings.position_embeddings": "embed_positions"}
    names |= {"embeddings.LayerNorm": "layernorm_embedding" if not old else "emb_layer_norm"}
    scope = "decoder" if old else "encoder"
    found = {}
    for name, tensor in state.items():
        if name.startswith("roberta."):
            name = name.replace("roberta.", "sentence_encoder.")
            for theirs, ours in names.items():
                name = name.replace(theirs, ours)
            name = f"{scope}.{name}"
        elif name.startswith("lm_head."):
            name = f"{scope}.{name.replace('decoder.', '')}"
        else:
            name = name.replace("classifier.", "classification_heads.film.")
        found[name] = tensor
    if old:
        for i in range(3):
            layer = f"decoder.sentence_encoder.layers.{i}.self_attn"
            for part in ("weight", "bias"):
                thirds = [found.pop(f"{layer}.{letter}_proj.{part}") for letter in "qkv"]
                found[f"{layer}.in_proj_{part}"] = torch.cat(thirds)
    return {name: tensor for name, tensor in found.items() if "token_type" not in name and "position_ids" not in name}


def write_fairseq(folder, model, old=False):
    model.roberta.embeddings.token_type_embeddings.weight.data[:] = 0  # fairseq has none
    arguments = argparse.Namespace(
        arch="roberta_base", encoder_layers=3, encoder_attention_heads=5, encoder_ffn_embed_dim=70, activation_fn="gelu"
    )
    folder.mkdir()
    saved = {"args": arguments, "model": as_fairseq(model.state_dict(), old), "extra_state": {"epoch": 3}}
    torch.save(saved, folder / "model.pt", _use_new_zipfile_serialization=not old)
    entries = [*"abcdefghijklmnopqrstuvwxyz", *(f"madeupword{i:04}" for i in range(97 - 5 - 26))]
    (folder / "dict.txt").write_text("".join(f"{entry} 1\n" for entry in entries), "utf-8")
    return model


@pytest.mark.parametrize("old", [False, True])
def test_fairseq_files_equal_their_twin(old, tmp_path):
    x = inputs(np.ones((2, 9), "int32"))
    token_ids = torch.tensor(x["token_ids"]).long()
    model = write_fairseq(tmp_path / "lm", ROBERTA.build_reference(transformers.RobertaForMaskedLM), old)
    masked_lm = tasks.MaskedLM.from_preset(tmp_path / "lm")
    assert type(masked_lm.backbone) is garden.RobertaBackbone and not masked_lm.load_report.fresh
    positions = np.tile(np.arange(9, dtype="int32"), (2, 1))
    taken = {name: x[name] for name in ("token_ids", "padding_mask")}
    with torch.no_grad():
        assert gap(masked_lm({**taken, "mask_positions": positions}), model(input_ids=token_ids).logits) <= 1e-5
    model = ROBERTA.build_reference(transformers.RobertaForSequenceClassification, num_labels=3)
    write_fairseq(tmp_path / "classifier", model, old)
    classifier = tasks.TextClassifier.from_preset(tmp_path / "classifier")
    assert classifier.num_classes == 3 and not classifier.load_report.fresh
    with torch.no_grad():
        assert gap(classifier(taken), model(input_ids=token_ids).logits) <= 1e-5


def test_fairseq_folders_without_gpt2s_files_or_arguments_say_what_is_missing(tmp_path):
    model = write_fairseq(tmp_path / "it", ROBERTA.build_reference(transformers.RobertaForMaskedLM))
    (tmp_path / "it" / "dict.txt").write_text("31414 5\n232 4\n", "utf-8")
    with pytest.raises(FileNotFoundError, match="encoder.json and vocab.bpe"):
        garden.RobertaTokenizer.from_preset(tmp_path / "it")
    torch.save({"model": as_fairseq(model.state_dict(), old=False)}, tmp_path / "it" / "model.pt")
    with pytest.raises(CheckpointError, match="training arguments"):
        garden.RobertaBackbone.from_preset(tmp_path / "it")


# --- the tokenizer

# text, GPT-2's ids, and those with a blank in front of the first word
TABLE = [
    ("Hello world", [15496, 995], [18435, 995]),
    ("Hello, World!", [15496, 11, 2159, 0], [18435, 11, 2159, 0]),
    ("hello  world", [31373, 220, 995], [23748, 220, 995]),
    ("a\n\nb", [64, 198, 198, 65], [257, 198, 198, 65]),
    ("don't", [9099, 470], [836, 470]),
    ("DON'T", [41173, 6, 51], [23917, 6, 51]),
    ("can’t", [5171, 447, 247, 83], [460, 447, 247, 83]),
    ("12345678", [10163, 2231, 30924], [17031, 2231, 30924]),
    ("naïve", [2616, 38776], [41492]),
    ("日本", [33768, 98, 17312, 105], [10545, 245, 98, 17312, 105]),
    ("👍", [41840, 235], [50169, 235]),
    ("the\u00a0fox", [1169, 1849, 12792], [262, 1849, 12792]),
    ("\u3000x", [5099, 222, 87], [220, 5099, 222, 87]),
    ("  ", [220, 220], [220, 220]),
    ("", [], []),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """fairseq's layout with GPT-2's ids in their own order, so that an id of RoBERTa's is GPT-2's and 4."""
    folder = tmp_path_factory.mktemp("fairseq")
    for name in ("encoder.json", "vocab.bpe"):
        (folder / name).symlink_to(material.byte_pairs() / name)
    (folder / "dict.txt").write_text("".join(f"{i} {50257 - i}\n" for i in range(50257)), "utf-8")
    return folder


@pytest.fixture(scope="module")
def tokenizer(folder):
    return garden.RobertaTokenizer.from_files(folder)


def test_ids_are_gpt2s_behind_four_special_tokens(folder, tokenizer):
    prefixed = garden.RobertaTokenizer.from_files(folder, add_prefix_space=True)
    for text, ids, ids_with_blank in TABLE:
        assert tokenizer(text) == [i + 4 for i in ids], text
        assert prefixed(text) == [i + 4 for i in ids_with_blank], text
        assert tokenizer.detokenize(tokenizer(text)) == text
    assert tokenizer([text for text, _, _ in TABLE]) == [[i + 4 for i in ids] for _, ids, _ in TABLE]


def test_a_dictionary_orders_the_ids(folder, tmp_path):
    """fairseq's own example: "Hello world" is 0 31414 232 2, because GPT-2's 15496 and 995 stand in those lines."""
    entries = [f"madeupword{i}" for i in range(31415)]
    entries[31414 - 4], entries[232 - 4] = "15496", "995"
    (tmp_path / "dict.txt").write_text("".join(f"{entry} 1\n" for entry in entries), "utf-8")
    (tmp_path / "encoder.json").symlink_to(folder / "encoder.json")
    merges = (folder / "vocab.bpe").read_text("utf-8").split("\n")
    (tmp_path / "vocab.bpe").write_text("\n".join(merges[:1]), "utf-8")
    tokens = garden.RobertaTokenizer.from_files(tmp_path).get_vocabulary()
    assert (tokens[31414], tokens[232], tokens[-1], len(tokens)) == ("Hello", "Ġworld", "<mask>", 31420)


def test_a_mask_takes_the_blank_in_front_of_it(tokenizer):
    encoding = tokenizer.encode("Paris is the <mask> of France")
    assert encoding.ids[4] == tokenizer.mask_token_id and encoding.offsets[4] == (13, 19)
    assert encoding.tokens[5] == "Ġof"
    blank = tokenizer.token_to_id("Ġ")
    assert blank not in encoding.ids


def test_special_tokens_in_text_may_be_text(folder):
    plain = garden.RobertaTokenizer.from_files(folder, special_tokens_in_strings=False)
    assert plain.mask_token_id not in plain("a <mask> b") and plain.detokenize(plain("a <mask> b")) == "a <mask> b"


def test_offsets_point_into_the_text(tokenizer):
    text = "naïve 👍 日本 fox"
    encoding = tokenizer.encode(text)
    start, end = encoding.offsets[-2]
    assert encoding.tokens[-2] == "Ġfox" and text[start:end] == "fox"


def test_pairs_stand_around_two_separators(tokenizer):
    preprocessor = tasks.RobertaTextClassifierPreprocessor(tokenizer, sequence_length=10)
    x = preprocessor((["Hello world"], ["Hello"]))
    assert list(x) == ["token_ids", "padding_mask"]
    assert x["token_ids"].tolist() == [[0, 15500, 999, 2, 2, 15500, 2, 1, 1, 1]]
    assert x["token_ids"][0, :7].tolist() == tokenizer.encode("Hello world", "Hello").ids
    short = tasks.RobertaTextClassifierPreprocessor(tokenizer, sequence_length=6)(("Hello world", "Hello"))
    assert short["token_ids"].tolist() == [0, 15500, 2, 2, 15500, 2]
    with pytest.raises(ValueError, match="sequence_length=4 leaves no room for text beside 4 special tokens"):
        tasks.RobertaTextClassifierPreprocessor(tokenizer, sequence_length=4)(("Hello", "world"))


def test_the_tokenizer_comes_back(folder, tmp_path):
    made = garden.RobertaTokenizer.from_files(folder, add_prefix_space=True)
    preprocessor = tasks.RobertaMaskedLMPreprocessor(made, sequence_length=16)
    tasks.RobertaMaskedLM(ROBERTA.build(vocabulary_size=50262), preprocessor).save_to_preset(tmp_path)
    for loader in (garden.RobertaTokenizer, keras_hub.tokenizers.Tokenizer):
        again = loader.from_preset(str(tmp_path))
        assert type(again) is garden.RobertaTokenizer and again.add_prefix_space
        assert again("naïve 日本 👍") == made("naïve 日本 👍")
    again = tasks.MaskedLM.from_preset(tmp_path)
    again.save_to_preset(tmp_path / "again")
    filling = tasks.MaskedLM.from_preset(tmp_path / "again").fill_mask("naïve <mask>", top_k=1)[0][0]
    assert filling == again.fill_mask("naïve <mask>", top_k=1)[0][0]


def test_published_folders_agree(tokenizer, tmp_path):
    """vocab.json with merges.txt, and the Rust library's own file alone."""
    settings = tokenizer.save_published(tmp_path)
    assert settings == {"add_prefix_space": False}
    text = "Hello, naïve 日本"
    assert garden.RobertaTokenizer.from_files(tmp_path)(text) == tokenizer(text)
    reference = transformers.RobertaTokenizer.from_pretrained(tmp_path)
    assert reference(text)["input_ids"] == tokenizer.encode(text).ids
    assert reference("a", "b")["input_ids"] == tokenizer.encode("a", "b").ids
    for name in ("vocab.json", "merges.txt"):
        (tmp_path / name).unlink()
    with pytest.raises(FileNotFoundError, match="has no vocabulary"):
        garden.RobertaTokenizer.from_files(tmp_path)
    tokenizer.rust.save(str(tmp_path / "tokenizer.json"))
    assert garden.RobertaTokenizer.from_files(tmp_path)(text) == tokenizer(text)


def test_broken_files_are_named(tmp_path):
    write_byte_pairs(tmp_path, 97)
    merges = (tmp_path / "merges.txt").read_text("utf-8")
    for content, message in ((merges + "Ġw 1 2\n", "no pair of tokens"), (merges + "x y\n", "do not belong")):
        (tmp_path / "merges.txt").write_text(content, "utf-8")
        with pytest.raises(ValueError, match=message):
            garden.RobertaTokenizer.from_files(tmp_path)
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(FileNotFoundError, match="merges.txt"):
        garden.RobertaTokenizer.from_files(tmp_path)
    (tmp_path / "vocab.json").write_text('{"a": 0', "utf-8")
    with pytest.raises(ValueError, match="not JSON"):
        garden.RobertaTokenizer.from_files(tmp_path)
    with pytest.raises(ValueError, match="lacks <mask>"):
        garden.RobertaTokenizer(["<s>", "<pad>", "</s>", "<unk>"], [])


def test_masked_language_modelling_masks_no_special_token(tokenizer):
    preprocessor = tasks.RobertaMaskedLMPreprocessor(tokenizer, sequence_length=12, mask_selection_length=3, seed=0)
    x, y, weights = preprocessor(["Hello world, naïve 日本", ""])
    assert weights.sum(1).tolist()[1] == 0 and not np.isin(y[weights > 0], [0, 1, 2]).any()
