"""Published weights, from the package indexes: the figures that they are known for, and other code's outputs."""

import json
import re

import material
import numpy as np
import onnx
import onnxruntime
import pytest
import transformers
from families import gap, reference_outputs
from safetensors.numpy import save_file

import garden
from garden import tasks
from garden.presets import locate
from garden.vocabulary import read_vocabulary

SENTENCES = ["A man is eating food.", "Someone is having a meal.", "The stock market fell sharply today."]
TEXTS = [*SENTENCES, "Grüße 😀👩‍👩‍👧 from 北京!", "the quick brown fox " * 200]


def packed(tokenizer, texts):
    return tasks.TextClassifierPreprocessor(tokenizer, sequence_length=512, pad_to_multiple_of=64)(texts)


def mean_pool(states, padding_mask):
    weights = padding_mask[:, :, None] / padding_mask.sum(1)[:, None, None]
    return (states * weights).sum(1)


@pytest.fixture(scope="module")
def minilm():
    """The backbone of the built-in preset, some texts as it takes them, and what it says to them."""
    backbone = garden.BertBackbone.from_preset("all_minilm_l6_v2_en")
    x = packed(garden.BertTokenizer.from_preset("all_minilm_l6_v2_en"), TEXTS)
    return backbone, x, backbone.predict(x, verbose=0)


def test_minilm_loads_whole(minilm):
    backbone, _, _ = minilm
    assert backbone.count_params() == 22_713_216
    assert list(backbone.load_report.ignored) == ["embeddings.position_ids"] and backbone.load_report.fresh == []


def test_minilm_knows_which_sentences_mean_the_same(minilm):
    _, x, outputs = minilm
    pooled = mean_pool(outputs["sequence_output"], x["padding_mask"])[:3]
    unit = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.testing.assert_allclose([cosines[0, 1], cosines[0, 2], cosines[1, 2]], [0.6888, 0.0037, -0.0226], atol=1e-4)


def test_minilm_equals_transformers(minilm):
    _, x, outputs = minilm
    folder = locate("all_minilm_l6_v2_en")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    reference = tokenizer(TEXTS, padding="max_length", truncation=True, max_length=512)
    assert x["token_ids"].tolist() == reference["input_ids"]
    assert x["padding_mask"].sum(1).tolist()[-1] == 512
    theirs = reference_outputs(transformers.BertModel.from_pretrained(folder).eval(), x)
    assert gap(outputs["sequence_output"], theirs.last_hidden_state, x["padding_mask"]) < 1e-5
    assert gap(outputs["pooled_output"], theirs.pooler_output) < 1e-5


def masked_in_turn(ids, mask_id):
    """A row for every token between the first and the last, with that token masked."""
    positions = np.arange(1, len(ids) - 1, dtype="int32")[:, None]
    token_ids = np.tile(np.array(ids, "int32"), (len(positions), 1))
    np.put_along_axis(token_ids, positions, mask_id, axis=1)
    x = {"token_ids": token_ids, "segment_ids": np.zeros_like(token_ids), "padding_mask": np.ones_like(token_ids)}
    return {**x, "mask_positions": positions}


def every(step, x):
    return {name: array[::step] for name, array in x.items()}


def reference_logits(folder, x, cls=transformers.BertForMaskedLM):
    reference = cls.from_pretrained(folder).eval()
    return np.take_along_axis(reference_outputs(reference, x).logits.numpy(), x["mask_positions"][:, :, None], axis=1)


def fill_reaction(folder, reference_cls):
    """The model in a folder, and how many of 37 tokens of a reaction it finds where they are masked one at a time."""
    atoms = re.findall(r"\[[^]]+]|Br|Cl|>>|%\d\d|.", "CC(=O)O.OCCc1ccccc1>>CC(=O)OCCc1ccccc1")
    vocabulary = read_vocabulary(folder / "vocab.txt")
    ids = [vocabulary.index(token) for token in ["[CLS]", *atoms, "[SEP]"]]
    x = masked_in_turn(ids, vocabulary.index("[MASK]"))
    masked_lm = tasks.MaskedLM.from_preset(folder, preprocessor=None)
    logits = masked_lm.predict(x, batch_size=len(atoms), verbose=0)
    assert gap(logits[::9], reference_logits(folder, every(9, x), reference_cls)) < 1e-4 and len(atoms) == 37
    return masked_lm, (logits[:, 0].argmax(-1) == ids[1:-1]).sum()


def test_reaction_albert_recovers_36_of_37_tokens():
    masked_lm, found = fill_reaction(material.reaction_albert(), transformers.AlbertForMaskedLM)
    assert found == 36 and type(masked_lm.backbone) is garden.AlbertBackbone
    assert masked_lm.load_report.fresh == [] and masked_lm.backbone.activation == "gelu_erf"


def test_reaction_bert_recovers_35_of_37_tokens():
    masked_lm, found = fill_reaction(material.reaction_bert(), transformers.BertForMaskedLM)
    assert found == 35
    assert masked_lm.load_report.ignored.keys() == {
        "cls.predictions.decoder.weight",
        "cls.seq_relationship.bias",
        "cls.seq_relationship.weight",
    }


# The variable region of the human germline gene IGHV3-23, with valine at place 5.
HEAVY_CHAIN = "EVQLVESGGGLVQPGGSLRLSCAASGFTFSSYAMSWVRQAPGKGLEWVSAISGSGGSTYYADSVKGRFTISRDNSKNTLYLQMNSLRAEDTAVYYCAK"


@pytest.fixture(scope="module")
def antibody_bert():
    return tasks.MaskedLM.from_preset(material.antibody_bert(), preprocessor=None)


def test_antibody_bert_leaves_its_other_heads(antibody_bert):
    ignored = antibody_bert.load_report.ignored
    heads = [name for name, reason in ignored.items() if reason == "a head of another task"]
    assert heads == [f"cls.{head}.{part}" for head in ("chain", "graft", "species") for part in ("bias", "weight")]
    assert ignored.keys() - set(heads) == {
        "bert.embeddings.position_ids",
        "cls.predictions.decoder.bias",
        "cls.predictions.decoder.weight",
    }
    assert antibody_bert.load_report.fresh == []


def test_antibody_bert_recovers_97_of_98_residues(antibody_bert):
    folder = material.antibody_bert()
    tokenizer = garden.BertTokenizer(folder / "vocab.txt")
    ids = tokenizer.encode(" ".join(HEAVY_CHAIN)).ids
    x = masked_in_turn(ids, tokenizer.mask_token_id)
    logits = antibody_bert.predict(x, batch_size=49, verbose=0)
    assert (logits[:, 0].argmax(-1) == ids[1:-1]).sum() == 97 and len(HEAVY_CHAIN) == 98
    assert gap(logits[::14], reference_logits(folder, every(14, x))) < 1e-4


def test_antibody_roberta_recovers_88_of_98_residues():
    masked_lm = tasks.MaskedLM.from_preset(material.antibody_roberta(), preprocessor=None)
    tokenizer = garden.RobertaTokenizer.from_preset(material.antibody_roberta())
    assert masked_lm.load_report.fresh == []
    ids = tokenizer.encode(HEAVY_CHAIN).ids
    assert len(ids) == 100
    x = masked_in_turn(ids, tokenizer.mask_token_id)
    logits = masked_lm.predict({name: x[name] for name in masked_lm.input}, batch_size=49, verbose=0)
    assert (logits[:, 0].argmax(-1) == ids[1:-1]).sum() == 88


def write_as_hugging_face(graph, folder):
    """The folder that the graph was exported from: its scopes are the names, but products have lost theirs."""
    scope = re.compile(r".*auto_model[./]")
    arrays = {weight.name: onnx.numpy_helper.to_array(weight) for weight in graph.initializer}
    tensors = {scope.sub("", name): array for name, array in arrays.items() if scope.match(name)}
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in arrays:
            layer = scope.sub("", node.name).removesuffix("/MatMul").replace("/", ".")
            tensors[f"{layer}.weight"] = np.ascontiguousarray(arrays[node.input[1]].T)
    save_file(tensors, folder / "model.safetensors")
    sizes = {"hidden_size": 384, "num_hidden_layers": 3, "num_attention_heads": 12, "intermediate_size": 1536}
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "vocab_size": 30522, **sizes}))


def test_backbone_equals_the_onnx_graph(tmp_path):
    model = onnx.load(material.paraphrase_onnx())
    write_as_hugging_face(model.graph, tmp_path)
    x = packed(garden.BertTokenizer(material.english_vocabulary(), lowercase=True), TEXTS[:4])
    session = onnxruntime.InferenceSession(material.paraphrase_onnx())
    ids, mask = (x[name].astype("int64") for name in ("token_ids", "padding_mask"))
    states, means = session.run(None, {"input_ids": ids, "attention_mask": mask})[2:]
    with pytest.warns(UserWarning, match="fresh .*: pooler/dense/kernel, pooler/dense/bias"):
        backbone = garden.BertBackbone.from_preset(tmp_path)
    ours = backbone.predict(x, verbose=0)["sequence_output"]
    assert gap(ours, states, x["padding_mask"]) < 1e-5
    assert gap(mean_pool(ours, x["padding_mask"]), means) < 1e-5


def test_chinese_text_with_emoji_is_filled_as_by_transformers(tmp_path):
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    transformers.set_seed(0)
    config = transformers.BertConfig(vocab_size=21128, initializer_range=0.5, **sizes)
    reference = transformers.BertForMaskedLM(config).eval()
    reference.save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_bytes(material.chinese_vocabulary().read_bytes())
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)

    text = "今天天[MASK]真好😀👍🏽,我们去[MASK]山吧!🏔️"
    theirs = transformers.pipeline("fill-mask", reference, tokenizer=tokenizer, top_k=7)(text)
    ours = tasks.MaskedLM.from_preset(tmp_path).fill_mask(text, top_k=7)
    assert [[filling.token for filling in mask] for mask in ours] == [
        [tokenizer.convert_ids_to_tokens(filling["token"]) for filling in mask] for mask in theirs
    ]
    probabilities = [[filling.probability for filling in mask] for mask in ours]
    np.testing.assert_allclose(probabilities, [[filling["score"] for filling in mask] for mask in theirs], rtol=1e-4)
