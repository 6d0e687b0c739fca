"""From raw strings, or pairs of them, to what a task's model is fed."""

import threading

import keras
import keras_hub
import numpy as np

from .masking import mask_tokens, select_positions
from .text_packer import TextPacker, run


@keras.saving.register_keras_serializable(package="garden")
class TextClassifierPreprocessor(TextPacker, keras_hub.models.TextClassifierPreprocessor):
    """Strings, or pairs of strings, to the inputs of an encoder.

    Args:
        tokenizer: a garden tokenizer.
        sequence_length: the most tokens of a row, special tokens included.
        truncate: what a pair that is too long loses, with "round_robin" the end of the longer segment, as BERT does,
            with "waterfall" the end of the second as long as it has one, with "first" the end of the first.
        pad_to_multiple_of: None pads every row to `sequence_length`, one shape for all batches, which a TPU needs. A
            number pads each batch to its longest row, rounded up to that multiple.

    Call arguments:
        x: a string, or a batch (b,) of them in a list, an array or a tensor; a tuple of two for pairs.
        y, sample_weight: passed on as they are.

    Returns:
        A dict of int32 arrays (b, t), or (t,) for a single string, `token_ids`, `padding_mask` and, for backbones with
        segments, `segment_ids`: NumPy arrays when called eagerly, tensors inside `tf.data`. With `y` a tuple, as Keras
        passes it.

    Raises:
        ValueError: a row is not text, the segments differ in size, or `sequence_length` leaves no room for text.

    >>> from garden.tokenizers import BertTokenizer
    >>> tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film"])
    >>> preprocessor = TextClassifierPreprocessor(tokenizer, sequence_length=6)
    >>> x, y = preprocessor(["good film", "bad"], [1, 0])
    >>> x["token_ids"].tolist()
    [[2, 5, 7, 3, 0, 0], [2, 6, 3, 0, 0, 0]]
    >>> preprocessor(("good film", "bad"))["segment_ids"].tolist()
    [0, 0, 0, 0, 1, 1]
    """

    def call(self, x, y=None, sample_weight=None):
        packed = run(self.pack_strings, x, self.packed_spec())
        return keras.utils.pack_x_y_sample_weight(packed, y, sample_weight)


@keras.saving.register_keras_serializable(package="garden")
class MaskedLMPreprocessor(TextPacker, keras_hub.models.MaskedLMPreprocessor):
    """Strings, or pairs of strings, to inputs, targets and weights of a masked language model, masked anew each call.

    Of the n tokens of a row, special ones included, `round(mask_selection_rate * n)` are selected, at least one and at
    most `mask_selection_length`: Google's rule. Special tokens, `[UNK]` among them, and padding never are; a row of
    nothing else has no target, and weights 0. Of the selected ones `mask_token_rate` become `[MASK]`,
    `random_token_rate` any entry of the vocabulary, and the rest stay.

    Args:
        tokenizer, sequence_length, truncate, pad_to_multiple_of: as in `TextClassifierPreprocessor`, the last by name.
        mask_selection_rate: the share of tokens to predict, above 0.
        mask_selection_length: p, the columns of the targets.
        mask_token_rate, random_token_rate: together at most 1.
        seed: makes a sequence of calls repeatable; threads of a pipeline get their draws in the order they ask.

    Call arguments:
        x: as in `TextClassifierPreprocessor`. What comes as `y` and `sample_weight` is dropped.

    Returns:
        `(x, y, sample_weight)`. `x` is the dict of `TextClassifierPreprocessor` and `mask_positions` (b, p); `y` are
        the original ids (b, p); `sample_weight` (b, p) is 1.0 for a target and 0.0 for a filling, whose position and
        id are 0.

    Reference: [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), section 3.1.

    >>> from garden.tokenizers import BertTokenizer
    >>> tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "film"])
    >>> rates = {"mask_token_rate": 1.0, "random_token_rate": 0.0}
    >>> preprocessor = MaskedLMPreprocessor(tokenizer, sequence_length=6, mask_selection_length=2, **rates)
    >>> x, y, sample_weight = preprocessor(["film", ""])
    >>> x["token_ids"].tolist(), y.tolist(), sample_weight.tolist()
    ([[2, 4, 3, 0, 0, 0], [2, 3, 0, 0, 0, 0]], [[5, 0], [0, 0]], [[1.0, 0.0], [0.0, 0.0]])
    """

    def __init__(
        self,
        tokenizer,
        sequence_length=512,
        truncate="round_robin",
        mask_selection_rate=0.15,
        mask_selection_length=96,
        mask_token_rate=0.8,
        random_token_rate=0.1,
        seed=None,
        **kwargs,
    ):
        if not 0 < mask_selection_rate <= 1:
            raise ValueError(f"mask_selection_rate={mask_selection_rate} has to be above 0 and at most 1.")
        if min(mask_token_rate, random_token_rate) < 0 or mask_token_rate + random_token_rate > 1:
            rates = f"mask_token_rate={mask_token_rate} and random_token_rate={random_token_rate}"
            raise ValueError(f"{rates} have to be 0 or more and at most 1 together.")
        super().__init__(
            tokenizer,
            sequence_length,
            truncate,
            mask_selection_rate=mask_selection_rate,
            mask_selection_length=mask_selection_length,
            mask_token_rate=mask_token_rate,
            random_token_rate=random_token_rate,
            **kwargs,
        )
        self.seed = seed
        self._rng = np.random.default_rng(seed)
        self._rng_lock = threading.Lock()

    def call(self, x, y=None, sample_weight=None):
        width = self.mask_selection_length
        targets = {"mask_positions": ("int32", width), "mask_ids": ("int32", width), "mask_weights": ("float32", width)}
        x = run(self.mask_strings, x, self.packed_spec() | targets)
        mask_ids, mask_weights = x.pop("mask_ids"), x.pop("mask_weights")
        return x, mask_ids, mask_weights

    def get_config(self) -> dict:
        return {**super().get_config(), "seed": self.seed}

    def mask_strings(self, *segments) -> dict[str, np.ndarray]:
        """`pack_strings` with tokens masked, and `mask_positions`, `mask_ids`, `mask_weights` (b, p), or (p,)."""
        packed = self.pack_strings(*segments)
        token_ids, real = np.atleast_2d(packed["token_ids"], packed["padding_mask"])
        positions, corrupted = self._mask(token_ids, real == 1)
        chosen = positions < token_ids.shape[1]
        positions = np.where(chosen, positions, 0)
        masked = {
            "token_ids": corrupted,
            "mask_positions": positions.astype(np.int32),
            "mask_ids": np.where(chosen, np.take_along_axis(token_ids, positions, axis=1), 0).astype(np.int32),
            "mask_weights": chosen.astype(np.float32),
        }
        if packed["token_ids"].ndim == 1:
            masked = {name: rows[0] for name, rows in masked.items()}
        return packed | masked

    def _mask(self, token_ids: np.ndarray, real: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with self._rng_lock:  # threads cannot share a generator, but each can have a child of it
            rng = self._rng.spawn(1)[0]
        selectable = real & ~np.isin(token_ids, self.tokenizer.special_token_ids)
        width = self.mask_selection_length
        counts = np.clip(np.rint(real.sum(axis=1) * self.mask_selection_rate), 1, width)
        positions = select_positions(selectable, counts, width, rng)
        rates = (self.mask_token_rate, self.random_token_rate)
        vocabulary_size = self.tokenizer.vocabulary_size()
        return positions, mask_tokens(token_ids, positions, self.tokenizer.mask_token_id, vocabulary_size, *rates, rng)
