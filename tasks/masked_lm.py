"""Masked language modelling, and filling in masks."""

from typing import NamedTuple

import keras
import keras_hub
import numpy as np

from .checks import check_labels
from .task import Task


class Filling(NamedTuple):
    """One candidate for one mask: the token and its probability."""

    token: str
    probability: float


class MaskedLM(Task, keras_hub.models.MaskedLM):
    """The pretraining task of BERT (Devlin et al. 2018, section 3.1): predict the tokens at the masked positions.

    `fit` and `evaluate` take raw strings; the preprocessor masks them.

    Args:
        backbone: a garden backbone with a `token_embedding` to tie to.
        preprocessor: from strings to masked inputs; None to feed ids and `mask_positions`.
        mask_decoder: whether the backbone's decoder of masks stands in front of the head, as in DeBERTa's pretraining
            (He et al. 2020, section 3.2). `from_preset` takes it where the checkpoint has its positions.

    Returns:
        Logits (b, p, v) at `mask_positions` (b, p).

    Raises:
        ValueError: `mask_decoder` for a backbone that has none.

    ```python
    masked_lm = garden.tasks.MaskedLM.from_preset("bert_base_en_uncased")
    masked_lm.fill_mask("i am going to [MASK] to study math")[0][0].token
    ```
    """

    needs = "a family that is trained to fill masks"

    def __init__(self, backbone, preprocessor=None, mask_decoder=False, **kwargs):
        self.backbone = backbone
        self.preprocessor = preprocessor
        if mask_decoder and not backbone.mask_queries:
            raise ValueError(f"A {type(backbone).__name__} has no decoder of masks: leave mask_decoder out.")
        self.head = backbone.masked_lm_head(
            backbone.token_embedding,
            backbone.activation,
            backbone.layer_norm_epsilon,
            dtype=backbone.dtype_policy,
            name="masked_lm",
        )
        inputs = {**backbone.input, "mask_positions": keras.Input((None,), dtype="int32", name="mask_positions")}
        self.queries = None
        if mask_decoder:
            self.queries = backbone.mask_queries(dtype=backbone.dtype_policy, name="mask_queries")
            sequence = backbone.decode_masks(self.queries, backbone.input)
        else:
            sequence = backbone(backbone.input)[self.reads]
        super().__init__(inputs=inputs, outputs=self.head(sequence, inputs["mask_positions"]), **kwargs)

    @classmethod
    def fits(cls, backbone_cls):
        return super().fits(backbone_cls) and backbone_cls.masked_lm_head is not None

    def fill_mask(self, text: str, top_k: int = 5) -> list[list[Filling]]:
        """The most probable tokens for every mask in a text.

        Args:
            text: a string with at least one mask token, `[MASK]` in BERT's vocabulary.
            top_k: candidates a mask.

        Returns:
            For every mask, from left to right, `top_k` fillings, the most probable first.

        Raises:
            ValueError: no mask in the text, or none that truncation leaves.
        """
        tokenizer = self.preprocessor.tokenizer
        ids = np.array([tokenizer.encode(text).ids[: self.backbone.max_sequence_length]], "int32")
        masks = np.flatnonzero(ids[0] == tokenizer.mask_token_id)
        if not masks.size:
            limit = self.backbone.max_sequence_length
            raise ValueError(f"There is no {tokenizer.mask_token} among the first {limit} tokens of {text!r}.")
        inputs = {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": np.ones_like(ids)}
        inputs = {name: inputs[name] for name in self.backbone.input}
        logits = keras.ops.convert_to_numpy(self({**inputs, "mask_positions": masks[None].astype("int32")}))[0]
        logits = logits[:, : tokenizer.vocabulary_size()]  # the table may have more rows than there are tokens
        return [_fillings(row.astype("float64"), tokenizer, top_k) for row in logits]

    @property
    def num_outputs(self):
        return self.backbone.vocabulary_size

    @classmethod
    def complete(cls, arguments, checkpoint):
        published = checkpoint.holds("mask_queries/position_embedding/embeddings", "MaskedLM")
        return {"mask_decoder": True, **arguments} if published else arguments

    def get_config(self):
        return {**super().get_config(), "mask_decoder": self.queries is not None}

    def check_targets(self, y):
        return y if y is None or self.preprocessor else check_labels(y, self.num_outputs)


def _fillings(logits, tokenizer, top_k):
    probabilities = np.exp(logits - logits.max())
    probabilities /= probabilities.sum()
    best = np.argsort(-probabilities, kind="stable")[:top_k]
    return [Filling(tokenizer.id_to_token(int(i)), float(probabilities[i])) for i in best]
