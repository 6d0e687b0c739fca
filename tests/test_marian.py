"""Marian's Transformer against transformers: states, logits, what it writes, and its files."""

import io
import json
import warnings

import keras_hub
import numpy as np
import pytest
import sentencepiece
import torch
import transformers
from families import gap, run
from keras import ops
from safetensors.torch import load_file, save_file
from test_t5 import answer, pairs

import garden
from garden import tasks
from garden.presets import CheckpointError, export_to_transformers
from garden.sentence_piece import read_model

SIZES = dict(
    vocab_size=97,
    d_model=60,
    encoder_layers=3,
    decoder_layers=2,
    encoder_attention_heads=5,
    decoder_attention_heads=5,
    encoder_ffn_dim=70,
    decoder_ffn_dim=70,
    max_position_embeddings=33,
    scale_embedding=True,
    activation_function="swish",
    pad_token_id=96,
    decoder_start_token_id=96,
    eos_token_id=0,
)
SOURCE_MASK = np.array([[1] * 6 + [0] * 5, [1] * 11, [1] * 10 + [0]])
TARGET_MASK = np.array([[1] * 5 + [0] * 2, [1] * 7, [1] * 7])


def save_reference(folder, **changes):
    torch.manual_seed(0)
    config = transformers.MarianConfig(**{**SIZES, "attn_implementation": "eager", **changes})
    model = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.normal_(1.0 if "norm.weight" in name else 0.0, 0.2)
        model.final_logits_bias.normal_()
    model.save_pretrained(folder)
    return model


def logits(backbone, x):
    return backbone.logits(ops.convert_to_tensor(run(backbone, x)["decoder_sequence_output"]))


def test_states_and_logits_equal_the_reference_and_go_back(tmp_path):
    reference, x = save_reference(tmp_path / "in"), pairs(SOURCE_MASK, TARGET_MASK)
    backbone = garden.Backbone.from_preset(tmp_path / "in")
    assert type(backbone) is garden.MarianBackbone and not backbone.load_report.fresh
    theirs = answer(reference, x, output_hidden_states=True)
    seen = run(backbone.features("hidden_states", "encoder_hidden_states"), x)
    for mine, other in zip(seen["hidden_states"], theirs.decoder_hidden_states, strict=True):
        assert gap(mine, other, TARGET_MASK) <= 1e-5
    for mine, other in zip(seen["encoder_hidden_states"], theirs.encoder_hidden_states, strict=True):
        assert gap(mine, other, SOURCE_MASK) <= 1e-5
    assert gap(logits(backbone, x), theirs.logits, TARGET_MASK) <= 1e-4
    export_to_transformers(backbone, tmp_path / "out")
    reloaded, report = transformers.MarianMTModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not report["unexpected_keys"] and all("embed_positions" in name for name in report["missing_keys"])
    assert gap(answer(reloaded.eval(), x).logits, theirs.logits, TARGET_MASK) <= 1e-4
    again = garden.Backbone.from_preset(tmp_path / "out")
    assert again.hyperparameters == backbone.hyperparameters


def test_it_writes_what_transformers_writes(tmp_path):
    reference, x = save_reference(tmp_path), pairs(SOURCE_MASK, np.ones((3, 9)))
    model = tasks.MarianSeq2SeqLM(garden.MarianBackbone.from_preset(tmp_path))
    model.compile(sampler="greedy")
    x["decoder_token_ids"][:] = 96
    x["decoder_padding_mask"][:, 1:] = 0
    found = model.generate(x, stop_token_ids=None)["decoder_token_ids"]
    source, mask = (torch.tensor(x[f"encoder_{name}"]).long() for name in ("token_ids", "padding_mask"))
    options = {"max_length": 9, "min_length": 9, "do_sample": False, "forced_eos_token_id": None, "eos_token_id": None}
    theirs = reference.generate(input_ids=source, attention_mask=mask, num_beams=1, **options).numpy()
    assert len(np.unique(found)) > 3 and found.tolist() == theirs.tolist()


def test_old_files_repeat_the_table_and_the_positions(tmp_path):
    reference, x = save_reference(tmp_path), pairs(SOURCE_MASK, TARGET_MASK)
    tensors = load_file(tmp_path / "model.safetensors")
    for name in ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"):
        tensors[name] = tensors["model.shared.weight"].clone()
    tensors["model.encoder.embed_positions.weight"] = torch.zeros(33, 60)
    save_file(tensors, tmp_path / "model.safetensors")
    assert gap(logits(garden.MarianBackbone.from_preset(tmp_path), x), answer(reference, x).logits, TARGET_MASK) <= 1e-4


def test_other_marians_are_refused(tmp_path):
    save_reference(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    for change, said in (({"scale_embedding": False}, "are scaled"), ({"decoder_ffn_dim": 71}, "ffn_dim differ")):
        (tmp_path / "config.json").write_text(json.dumps({**config, **change}), "utf-8")
        with pytest.raises(CheckpointError, match=said):
            garden.Backbone.from_preset(tmp_path)


# --- the tokenizer


def pieces(lines):
    """A SentencePiece model with Marian's two special pieces."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 9),
        model_writer=model,
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
        bos_id=-1,
        eos_id=0,
        unk_id=1,
    )
    return model.getvalue()


def write_marian(folder):
    """source.spm, target.spm and vocab.json of the words of two languages, and a token for one of a third."""
    protos = pieces([f"w{i} nothing house" for i in range(10)]), pieces([f"w{i} nichts Haus" for i in range(10)])
    known = [piece for proto in protos for piece, _ in read_model(proto).pieces]
    tokens = dict.fromkeys(["</s>", "<unk>", *known, ">>fra<<", "<pad>"])
    for name, proto in zip(("source.spm", "target.spm"), protos, strict=True):
        (folder / name).write_bytes(proto)
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}), "utf-8")
    return len(tokens)


@pytest.mark.filterwarnings("ignore:Recommended")
def test_ids_are_those_of_transformers(tmp_path):
    write_marian(tmp_path)
    ours = garden.MarianTokenizer.from_files(tmp_path)
    theirs = transformers.MarianTokenizer.from_pretrained(tmp_path)
    for text in ("w1 house", "  nothing   w9 ", "w3w4", "", "nichts", "w1 Xq w2", ">>fra<< house"):
        assert [*ours(text), 0] == theirs(text)["input_ids"], text
        assert [*ours.target_ids([text])[0], 0] == theirs(text_target=text)["input_ids"], text
    assert ours("house") != ours.target_ids(["house"])[0] and ours("Haus") != ours.target_ids(["Haus"])[0]
    assert ours.detokenize(ours.target_ids(["nichts Haus w3"])[0]) == "nichts Haus w3"
    assert (ours.pad_token_id, ours.end_token_id, ours.unk_token_id) == (ours.vocabulary_size() - 1, 0, 1)


def test_a_folder_of_opus_mt_translates_goes_back_and_is_saved(tmp_path):
    (tmp_path / "in").mkdir()
    size = write_marian(tmp_path / "in")
    changes = {"vocab_size": size, "pad_token_id": size - 1, "decoder_start_token_id": size - 1}
    reference = save_reference(tmp_path / "in", **changes)
    model = tasks.Seq2SeqLM.from_preset(tmp_path / "in", encoder_sequence_length=12, decoder_sequence_length=9)
    model.compile(sampler="greedy")
    texts = ["w1 house", "nothing w2 w3"]
    written = model.generate(texts)
    export_to_transformers(model, tmp_path / "out")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert type(tokenizer).__name__ == "MarianTokenizer"
    inputs = tokenizer(texts, return_tensors="pt", padding=True)
    options = {"max_length": 9, "do_sample": False, "num_beams": 1, "forced_eos_token_id": None}
    theirs = tokenizer.batch_decode(reference.generate(**inputs, **options), skip_special_tokens=True)
    assert [text.replace(" ", "") for text in written] == [text.replace(" ", "") for text in theirs]
    model.save_to_preset(tmp_path / "preset")
    again = keras_hub.models.Seq2SeqLM.from_preset(str(tmp_path / "preset"))
    again.compile(sampler="greedy")
    assert type(again) is tasks.MarianSeq2SeqLM and again.generate(texts) == written
