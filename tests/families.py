"""One row per family: its odd-sized model, its reference in transformers, its published heads."""

import functools
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import sentencepiece
import torch
import transformers
from transformer_xl_reference import TransfoXLConfig, TransfoXLLMHeadModel, TransfoXLModel

import garden
from garden import tasks

# Sizes that no two axes share, so that a transposed or misread axis shows.
ODD = {
    "vocab_size": 97,
    "hidden_size": 60,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "intermediate_size": 70,
    "max_position_embeddings": 33,
    "type_vocab_size": 3,
}


# Heads that transformers gives every encoder: garden's task -> what the reference's class is called behind the family.
COMMON_HEADS = {tasks.QuestionAnswering: "ForQuestionAnswering", tasks.TokenClassifier: "ForTokenClassification"}

ACTIVATIONS = {"gelu": "gelu_erf", "gelu_new": "gelu_tanh", "relu": "relu"}

# Right padding, none, left padding.
PADDING = np.array([[1] * 6 + [0] * 5, [1] * 11, [0] * 4 + [1] * 7])

SMALL = dict(vocabulary_size=97, num_layers=2, num_heads=5, hidden_dim=60, intermediate_dim=70, max_sequence_length=33)


@dataclass(frozen=True)
class FamilyRow:
    """What the tests need to know of one family.

    Attributes:
        backbone: garden's class.
        config: the reference's configuration class.
        sizes: its odd sizes.
        activation_key: the configuration's name for the activation.
        arguments: garden's arguments for a small model, where they are not `SMALL`; None for one that it has not.
        padding: the padding masks (b, t) at which the reference is asked.
        spread: standard deviation of the reference's random weights.
        reference: the reference's bare model.
        own_heads: garden's task -> the reference with that head, beside `COMMON_HEADS`.
        common_heads: those of `COMMON_HEADS`, or what the reference has of them.
        activations: what the reference calls an activation -> garden's name.
        causal: whether a token sees those before it only.
        trains: makes a task of garden's on a backbone with inputs and targets that it can learn.
        presets: built-in names small enough to build, whose published parameter counts are checked.

    A family that transformers does not have has neither configuration nor reference, and its numbers elsewhere.
    """

    backbone: type
    config: type | None
    reference: type | None
    own_heads: dict
    presets: tuple[str, ...]
    sizes: dict = field(default_factory=lambda: ODD)
    activation_key: str = "hidden_act"
    write_vocabulary: Callable = lambda folder, size: write_vocabulary(folder / "vocab.txt", size)
    arguments: dict = field(default_factory=lambda: {"num_segments": 3})
    padding: np.ndarray = field(default_factory=lambda: PADDING)
    spread: float = 0.2
    common_heads: dict = field(default_factory=lambda: COMMON_HEADS)
    activations: dict = field(default_factory=lambda: ACTIVATIONS)
    causal: bool = False
    trains: Callable = lambda backbone: classification(backbone)

    @property
    def word_piece(self) -> bool:
        """Whether its tokenizer is BERT's."""
        return issubclass(self.backbone.tokenizer_cls, garden.BertTokenizer)

    @property
    def heads(self) -> dict:
        """All of garden's tasks that are published for this family, and the reference of each."""
        family = self.reference.__name__.removesuffix("Model")
        common = {task: getattr(transformers, family + name) for task, name in self.common_heads.items()}
        return self.own_heads | common

    @property
    def is_limited(self) -> bool:
        """Whether a table of positions limits its rows."""
        return self.backbone.longest_row is not None and self.arguments.get("max_sequence_length", 0) is not None

    def build(self, **changes):
        """A small model of garden's with random weights."""
        arguments = {**SMALL, **self.arguments}
        return self.backbone(**{name: value for name, value in arguments.items() if value is not None} | changes)

    def padded(self, mask) -> np.ndarray:
        """A mask (b, t) of right padding, with the padding where the tokenizer puts it, which heads may rely on."""
        return mask[:, ::-1] if self.backbone.tokenizer_cls.pads_left else mask

    def inputs(self, *args, **kwargs):
        """Random inputs, those that the backbone takes."""
        x = inputs(*args, **kwargs)
        return {name: x[name] for name in self.backbone.input_names}

    def build_reference(self, model_cls: type, **changes):
        """A reference model with random weights, biases and norms included, so that none of them can be forgotten."""
        torch.manual_seed(0)
        model = model_cls(self.config(**{**self.sizes, "attn_implementation": "eager", **changes})).eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                offset = 1.0 if "norm.weight" in name.lower() else 0.0
                parameter.normal_(offset, self.spread)
        return model

    def save_reference(self, folder, model_cls: type, **changes):
        """Saves such a model with a vocabulary, and returns it."""
        model = self.build_reference(model_cls, **changes)
        model.save_pretrained(folder)
        self.write_vocabulary(folder, model.config.vocab_size)
        return model


def classification(backbone):
    """A classifier, and rows whose first token tells the class."""
    x = inputs(np.ones((16, 9), "int32"))
    classifier = tasks.TextClassifier.for_backbone(type(backbone))(backbone, num_classes=2)
    return classifier, {name: x[name] for name in backbone.input_names}, (x["token_ids"][:, 0] > 50).astype("int32")


def next_tokens(backbone):
    """A language model, and rows in which each token is the same as the one before."""
    x = inputs(np.ones((16, 9), "int32"))
    x["token_ids"] = np.repeat(x["token_ids"][:, :1] % 7, 9, axis=1)
    model = tasks.CausalLM.for_backbone(type(backbone))(backbone)
    return model, {name: x[name] for name in backbone.input_names}, x["token_ids"]


class RobertaModel(transformers.RobertaModel):
    """Without the pooler that transformers adds to a bare model and that pretraining never had."""

    def __init__(self, config):
        super().__init__(config, add_pooling_layer=False)


class XLMRobertaModel(transformers.XLMRobertaModel):
    """Likewise."""

    def __init__(self, config):
        super().__init__(config, add_pooling_layer=False)


def write_byte_pairs(folder, size: int, first=("<s>", "<pad>", "</s>", "<unk>"), last="<mask>") -> list[str]:
    """vocab.json and merges.txt of special tokens, RoBERTa's by default, some bytes, w1 to w9 and fillings."""
    digits = "0123456789"
    tokens = [*first, *digits, *"ĠwWnothigðŁĳį", "Ġw"]
    tokens = list(dict.fromkeys([*tokens, *"MASK[]", *(f"Ġw{i}" for i in range(1, 10))]))
    tokens += [f"madeupword{i:04}" for i in range(size - len(tokens) - 1)]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate([*tokens, last])}), "utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\nĠ w\n" + "".join(f"Ġw {i}\n" for i in range(1, 10)), "utf-8")
    return tokens


def write_gpt2(folder, size: int) -> None:
    """GPT-2's files."""
    write_byte_pairs(folder, size, first=(), last="<|endoftext|>")


def write_gpt(folder, size: int) -> None:
    """The first GPT's: letters, inside and at the end of a word, and w1 to w9 as words."""
    letters = [*"wnothigmask0123456789[]", *(f"{letter}</w>" for letter in "wnothigmask0123456789[]")]
    tokens = list(dict.fromkeys(["<unk>", *letters, *(f"w{i}</w>" for i in range(1, 10))]))
    tokens += [f"madeupword{i:04}" for i in range(size - len(tokens))]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}), "utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"w {i}</w>\n" for i in range(1, 10)), "utf-8")


def write_words(folder, size: int) -> None:
    """Transformer-XL's words."""
    words = ["<eos>", "<unk>", *(f"w{i}" for i in range(size - 2))]
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words), "utf-8")


def write_deberta(folder, size: int) -> None:
    """DeBERTa's byte pairs."""
    write_byte_pairs(folder, size, first=("[PAD]", "[CLS]", "[SEP]", "[UNK]"), last="[MASK]")


@functools.cache
def _pieces(**special) -> bytes:
    """A SentencePiece model of the letters of some words and a few of their pieces."""
    model = io.BytesIO()
    lines = iter([f"w{i} nothing MASK W{i}" for i in range(10)] * 9)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines, model_writer=model, vocab_size=40, hard_vocab_limit=False, minloglevel=2, **special
    )
    return model.getvalue()


@functools.cache
def t5_pieces() -> bytes:
    """A SentencePiece model with T5's special ids, of the same words."""
    model = io.BytesIO()
    lines = iter([f"w{i} nothing MASK W{i}" for i in range(10)] * 9)
    special = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines, model_writer=model, vocab_size=40, hard_vocab_limit=False, minloglevel=2, **special
    )
    return model.getvalue()


def write_t5(folder, size: int) -> None:
    """T5's model file and how many sentinels stand on top of it."""
    (folder / "spiece.model").write_bytes(t5_pieces())
    (folder / "tokenizer_config.json").write_text(json.dumps({"extra_ids": 9}), "utf-8")


def write_pieces(folder, size: int) -> None:
    """XLM-R's model file, of fewer pieces than the table has rows."""
    (folder / "sentencepiece.bpe.model").write_bytes(_pieces())


def write_xlnet_pieces(folder, size: int) -> None:
    """XLNet's model file, whose special tokens are its own."""
    (folder / "spiece.model").write_bytes(_pieces(control_symbols="<cls>,<sep>,<pad>,<mask>,<eod>,<eop>"))


def write_deberta_v2_pieces(folder, size: int) -> None:
    """DeBERTa 2's model file, whose first pieces are its special tokens."""
    names = {"pad": "[PAD]", "bos": "[CLS]", "eos": "[SEP]", "unk": "[UNK]"}
    ids = {f"{name}_id": i for i, name in enumerate(names)}
    pieces = {f"{name}_piece": piece for name, piece in names.items()}
    (folder / "spm.model").write_bytes(_pieces(**ids, **pieces))


DEBERTA = {
    **{name: size for name, size in ODD.items() if name != "type_vocab_size"},
    "relative_attention": True,
    "position_biased_input": False,
    "pos_att_type": ["c2p", "p2c"],
}

FAMILIES = [
    FamilyRow(
        backbone=garden.AlbertBackbone,
        config=transformers.AlbertConfig,
        reference=transformers.AlbertModel,
        own_heads={
            tasks.MaskedLM: transformers.AlbertForMaskedLM,
            tasks.TextClassifier: transformers.AlbertForSequenceClassification,
        },
        presets=("albert_base_zh", "albert_base_en_uncased", "albert_tiny_zh_google"),
        # Two groups of two blocks, four passes: eight blocks run, four exist.
        sizes={**ODD, "num_hidden_layers": 4, "embedding_size": 24, "num_hidden_groups": 2, "inner_group_num": 2},
        arguments={"num_segments": 3, "embedding_dim": 24},
    ),
    FamilyRow(
        backbone=garden.BertBackbone,
        config=transformers.BertConfig,
        reference=transformers.BertModel,
        own_heads={
            tasks.MaskedLM: transformers.BertForMaskedLM,
            tasks.NextSentence: transformers.BertForNextSentencePrediction,
            tasks.TextClassifier: transformers.BertForSequenceClassification,
        },
        presets=("bert_tiny_en_uncased", "bert_mini_en_uncased", "all_minilm_l6_v2_en", "tiny_bert_4l_312d_en_uncased"),
    ),
    FamilyRow(
        backbone=garden.BrightmartAlbertBackbone,
        config=None,  # test_brightmart_albert.py holds the original's arithmetic
        reference=None,
        own_heads={},
        presets=("albert_tiny_zh_brightmart", "albert_base_zh_brightmart"),
        arguments={"num_segments": 3, "embedding_dim": 24},
    ),
    FamilyRow(
        backbone=garden.DebertaBackbone,
        config=transformers.DebertaConfig,
        reference=transformers.DebertaModel,
        own_heads={
            tasks.MaskedLM: transformers.DebertaForMaskedLM,
            tasks.TextClassifier: transformers.DebertaForSequenceClassification,
        },
        presets=("deberta_base_en",),
        # Rows of eleven are longer than the eight distances that have a vector of their own.
        sizes={**DEBERTA, "type_vocab_size": 0, "max_relative_positions": 8},
        arguments={"max_relative_positions": 8},
        write_vocabulary=write_deberta,
    ),
    FamilyRow(
        backbone=garden.DebertaV2Backbone,
        config=transformers.DebertaV2Config,
        reference=transformers.DebertaV2Model,
        own_heads={
            tasks.MaskedLM: transformers.DebertaV2ForMaskedLM,
            tasks.TextClassifier: transformers.DebertaV2ForSequenceClassification,
        },
        presets=("deberta_v3_extra_small_en",),
        # Rows of eleven go beyond the buckets, which end at a distance of seven.
        sizes={**DEBERTA, "max_relative_positions": 8, "position_buckets": 4, "norm_rel_ebd": "layer_norm"}
        | {"share_att_key": True, "conv_kernel_size": 3, "conv_act": "gelu"},
        arguments={"max_relative_positions": 8, "bucket_size": 4, "conv_kernel_size": 3},
        write_vocabulary=write_deberta_v2_pieces,
    ),
    FamilyRow(
        backbone=garden.DistilBertBackbone,
        config=transformers.DistilBertConfig,
        reference=transformers.DistilBertModel,
        own_heads={
            tasks.MaskedLM: transformers.DistilBertForMaskedLM,
            tasks.TextClassifier: transformers.DistilBertForSequenceClassification,
        },
        presets=("distil_bert_base_en",),
        sizes={
            "vocab_size": 97,
            "dim": 60,
            "n_layers": 3,
            "n_heads": 5,
            "hidden_dim": 70,
            "max_position_embeddings": 33,
        },
        activation_key="activation",
        arguments={},
    ),
    FamilyRow(
        backbone=garden.ElectraBackbone,
        config=transformers.ElectraConfig,
        reference=transformers.ElectraModel,
        own_heads={
            tasks.MaskedLM: transformers.ElectraForMaskedLM,
            tasks.ReplacedTokenDetector: transformers.ElectraForPreTraining,
            tasks.TextClassifier: transformers.ElectraForSequenceClassification,
        },
        presets=(
            "electra_small_discriminator_uncased_en",
            "electra_small_generator_zh",
            "electra_small_ex_generator_zh",
        ),
        sizes={**ODD, "embedding_size": 24},
        arguments={"num_segments": 3, "embedding_dim": 24},
    ),
    FamilyRow(
        backbone=garden.ErnieBackbone,
        config=transformers.ErnieConfig,
        reference=transformers.ErnieModel,
        own_heads={
            tasks.MaskedLM: transformers.ErnieForMaskedLM,
            tasks.NextSentence: transformers.ErnieForNextSentencePrediction,
            tasks.TextClassifier: transformers.ErnieForSequenceClassification,
        },
        presets=("ernie_3.0_nano_zh", "ernie_3.0_micro_zh"),
        sizes={**ODD, "use_task_id": True, "task_type_vocab_size": 3, "layer_norm_eps": 1e-5},
        arguments={"num_segments": 3, "num_task_types": 3},
    ),
    FamilyRow(
        backbone=garden.GptBackbone,
        config=transformers.OpenAIGPTConfig,
        reference=transformers.OpenAIGPTModel,
        own_heads={tasks.CausalLM: transformers.OpenAIGPTLMHeadModel},
        presets=("gpt_base_en",),
        sizes={"vocab_size": 97, "n_embd": 60, "n_layer": 3, "n_head": 5, "n_positions": 33},
        activation_key="afn",
        activations={"gelu": "gelu_tanh", "relu": "relu"},
        arguments={},
        write_vocabulary=write_gpt,
        common_heads={},
        causal=True,
        trains=next_tokens,
    ),
    FamilyRow(
        backbone=garden.Gpt2Backbone,
        config=transformers.GPT2Config,
        reference=transformers.GPT2Model,
        own_heads={tasks.CausalLM: transformers.GPT2LMHeadModel},
        presets=("gpt2_base_en",),
        sizes={"vocab_size": 97, "n_embd": 60, "n_layer": 3, "n_head": 5, "n_positions": 33, "n_inner": 70}
        | {"bos_token_id": 96, "eos_token_id": 96},
        activation_key="activation_function",
        arguments={},
        write_vocabulary=write_gpt2,
        common_heads={},
        causal=True,
        trains=next_tokens,
    ),
    FamilyRow(
        backbone=garden.MobileBertBackbone,
        config=transformers.MobileBertConfig,
        reference=transformers.MobileBertModel,
        own_heads={
            tasks.MaskedLM: transformers.MobileBertForMaskedLM,
            tasks.NextSentence: transformers.MobileBertForNextSentencePrediction,
            tasks.TextClassifier: transformers.MobileBertForSequenceClassification,
        },
        presets=("mobile_bert_en_uncased", "mobile_bert_tiny_en_uncased"),
        sizes={
            **ODD,
            "hidden_size": 44,
            "embedding_size": 24,
            "intra_bottleneck_size": 60,
            "num_feedforward_networks": 2,
        },
        arguments={
            "num_segments": 3,
            "hidden_dim": 44,
            "embedding_dim": 24,
            "bottleneck_dim": 60,
            "num_feedforwards": 2,
        },
        # transformers lets a token see the padding on its left as a neighbour; garden's left padding changes nothing.
        padding=np.array([[1] * 6 + [0] * 5, [1] * 11, [1] * 10 + [0]]),
        spread=0.1,  # nothing normalises what passes through, so that 0.2 would grow into thousands
    ),
    FamilyRow(
        backbone=garden.RobertaBackbone,
        config=transformers.RobertaConfig,
        reference=RobertaModel,
        own_heads={
            tasks.MaskedLM: transformers.RobertaForMaskedLM,
            tasks.TextClassifier: transformers.RobertaForSequenceClassification,
        },
        presets=("distil_roberta_base_en",),
        sizes={**ODD, "max_position_embeddings": 35, "type_vocab_size": 1, "pad_token_id": 1, "layer_norm_eps": 1e-5},
        arguments={},
        write_vocabulary=write_byte_pairs,
    ),
    FamilyRow(
        backbone=garden.TransformerXlBackbone,
        config=TransfoXLConfig,
        reference=TransfoXLModel,
        own_heads={tasks.CausalLM: TransfoXLLMHeadModel},
        presets=("transformer_xl_base_en_wt103", "transformer_xl_large_en_wt103"),
        sizes={"vocab_size": 97, "d_model": 60, "d_embed": 60, "n_head": 5, "d_head": 12, "d_inner": 70, "n_layer": 3}
        | {"mem_len": 8, "cutoffs": [40, 70], "div_val": 2},
        activations={"relu": "relu"},
        arguments={"max_sequence_length": None, "cutoffs": [40, 70], "div_val": 2},
        write_vocabulary=write_words,
        common_heads={},
        causal=True,
        trains=next_tokens,
    ),
    FamilyRow(
        backbone=garden.T5EncoderBackbone,
        config=transformers.T5Config,
        reference=transformers.T5EncoderModel,
        own_heads={tasks.TokenClassifier: transformers.T5ForTokenClassification},
        presets=(),  # a preset counts the decoder too
        sizes={"vocab_size": 97, "d_model": 60, "num_layers": 3, "num_heads": 5, "d_kv": 12, "d_ff": 70},
        activation_key="feed_forward_proj",
        activations={"relu": "relu", "gelu": "gelu_erf", "gated-gelu": "gelu_tanh", "gated-silu": "silu"},
        arguments={"max_sequence_length": None},
        write_vocabulary=write_t5,
        spread=0.1,  # scores are not divided
        common_heads={},
    ),
    FamilyRow(
        backbone=garden.XlmRobertaBackbone,
        config=transformers.XLMRobertaConfig,
        reference=XLMRobertaModel,
        own_heads={
            tasks.MaskedLM: transformers.XLMRobertaForMaskedLM,
            tasks.TextClassifier: transformers.XLMRobertaForSequenceClassification,
        },
        presets=("xlm_roberta_base_multi",),
        sizes={**ODD, "max_position_embeddings": 35, "type_vocab_size": 1, "pad_token_id": 1, "layer_norm_eps": 1e-5},
        arguments={},
        write_vocabulary=write_pieces,
    ),
    FamilyRow(
        backbone=garden.XlnetBackbone,
        config=transformers.XLNetConfig,
        reference=transformers.XLNetModel,
        own_heads={
            tasks.QuestionAnswering: transformers.XLNetForQuestionAnsweringSimple,
            tasks.TextClassifier: transformers.XLNetForSequenceClassification,
        },
        common_heads={tasks.TokenClassifier: "ForTokenClassification"},
        presets=("xlnet_base_en",),
        sizes={"vocab_size": 97, "d_model": 60, "n_layer": 3, "n_head": 5, "d_inner": 70},
        activation_key="ff_activation",
        arguments={"max_sequence_length": None},
        write_vocabulary=write_xlnet_pieces,
    ),
]

# The families that transformers has too.
TWINS = [row for row in FAMILIES if row.reference]
# Those on which heads for understanding stand.
ENCODERS = [row for row in FAMILIES if row.backbone.is_encoder]

# Where the reference counts positions from another number than 0.
FIRST_POSITION = {"roberta": 2, "xlm-roberta": 2}


def write_vocabulary(file, size: int) -> list[str]:
    """A vocabulary of BERT's special tokens and words w0, w1, ..."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words += [f"w{i}" for i in range(size - len(words))]
    file.write_text("\n".join(words) + "\n", "utf-8")
    return words


def inputs(padding_mask=PADDING, vocabulary_size=97, num_segments=3, seed=0) -> dict[str, np.ndarray]:
    """Random ids for a padding mask (b, t), as garden takes them."""
    rng = np.random.default_rng(seed)
    return {
        "token_ids": rng.integers(5, vocabulary_size, padding_mask.shape).astype("int32"),
        "segment_ids": rng.integers(0, num_segments, padding_mask.shape).astype("int32"),
        "padding_mask": padding_mask.astype("int32"),
    }


def reference_outputs(model, x, **options):
    """What the reference says to garden's inputs; its positions are told to start at the first token."""
    position_ids = np.maximum(np.cumsum(x["padding_mask"] > 0, axis=1) - 1, 0)
    position_ids += FIRST_POSITION.get(model.config.model_type, 0)
    segments = {"token_type_ids": torch.tensor(x["segment_ids"]).long()} if "segment_ids" in x else {}
    with torch.no_grad():
        return model(
            input_ids=torch.tensor(x["token_ids"]).long(),
            **segments,
            attention_mask=torch.tensor(x["padding_mask"]),
            position_ids=torch.tensor(position_ids),
            **options,
        )


def run(model, x):
    """What a model says to ready inputs, compiled as a whole: JAX would compile every operation of an eager call."""
    import keras

    return keras.Model.predict_on_batch(model, x)  # a task's own would look for text


def gap(ours, theirs, padding_mask=None) -> float:
    """The largest difference, at the positions that are no padding."""
    import keras

    ours = keras.ops.convert_to_numpy(ours).astype("float32")
    difference = np.abs(ours - np.asarray(theirs, "float32"))
    return float(difference.max() if padding_mask is None else difference[padding_mask > 0].max())
