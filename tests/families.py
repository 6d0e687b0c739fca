"""One row per family: its odd-sized model, its reference in transformers, its published heads."""

from dataclasses import dataclass, field

import numpy as np
import torch
import transformers

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
COMMON_HEADS = {tasks.TokenClassifier: "ForTokenClassification"}

SMALL = dict(vocabulary_size=97, num_layers=2, num_heads=5, hidden_dim=60, intermediate_dim=70, max_sequence_length=33)


@dataclass(frozen=True)
class FamilyRow:
    """What the tests need to know of one family.

    Attributes:
        backbone: garden's class.
        config: the reference's configuration class.
        sizes: its odd sizes.
        activation_key: the configuration's name for the activation.
        arguments: garden's arguments for a small model, where they are not `SMALL`.
        reference: the reference's bare model.
        own_heads: garden's task -> the reference with that head, beside `COMMON_HEADS`.
        presets: built-in names small enough to build, whose published parameter counts are checked.
    """

    backbone: type
    config: type
    reference: type
    own_heads: dict
    presets: tuple[str, ...]
    sizes: dict = field(default_factory=lambda: ODD)
    activation_key: str = "hidden_act"
    arguments: dict = field(default_factory=lambda: {"num_segments": 3})

    @property
    def heads(self) -> dict:
        """All of garden's tasks that are published for this family, and the reference of each."""
        family = self.reference.__name__.removesuffix("Model")
        return self.own_heads | {task: getattr(transformers, family + name) for task, name in COMMON_HEADS.items()}

    def build(self, **changes):
        """A small model of garden's with random weights."""
        return self.backbone(**{**SMALL, **self.arguments, **changes})

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
                parameter.normal_(offset, 0.2)
        return model

    def save_reference(self, folder, model_cls: type, **changes):
        """Saves such a model with a vocabulary, and returns it."""
        model = self.build_reference(model_cls, **changes)
        model.save_pretrained(folder)
        write_vocabulary(folder / "vocab.txt", model.config.vocab_size)
        return model


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
]

# Right padding, none, left padding.
PADDING = np.array([[1] * 6 + [0] * 5, [1] * 11, [0] * 4 + [1] * 7])


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
    segments = {"token_type_ids": torch.tensor(x["segment_ids"]).long()} if "segment_ids" in x else {}
    with torch.no_grad():
        return model(
            input_ids=torch.tensor(x["token_ids"]).long(),
            **segments,
            attention_mask=torch.tensor(x["padding_mask"]),
            position_ids=torch.tensor(position_ids),
            **options,
        )


def gap(ours, theirs, padding_mask=None) -> float:
    """The largest difference, at the positions that are no padding."""
    import keras

    ours = keras.ops.convert_to_numpy(ours).astype("float32")
    difference = np.abs(ours - np.asarray(theirs, "float32"))
    return float(difference.max() if padding_mask is None else difference[padding_mask > 0].max())
