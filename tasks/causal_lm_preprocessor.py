"""From raw text to the rows of a causal language model, and from generated rows back to text."""

import keras
import keras_hub
import numpy as np

from garden.strings import as_strings

from .decoding import check_prompts, texts
from .packing import padded_rows
from .text_packer import run


@keras.saving.register_keras_serializable(package="garden")
class CausalLMPreprocessor(keras_hub.models.CausalLMPreprocessor):
    """Strings to inputs and targets of a causal language model: at each place the token behind it.

    Args:
        tokenizer: a garden tokenizer.
        sequence_length: t, the tokens of a row; a longer text loses its end.
        add_start_token: whether a row begins with the tokenizer's start token; GPT was not trained so.
        add_end_token: whether a row to train on ends with the tokenizer's end token, where it has one.

    Call arguments:
        x: a string, or a batch (b,) of them in a list, an array or a tensor. What comes as `y` is dropped.

    Returns:
        `(x, y, sample_weight)`: `x` a dict of int32 `token_ids` and `padding_mask` (b, t), `y` the next ids (b, t),
        `sample_weight` float32 (b, t), 1 for a token to predict and 0 behind the text.

    Raises:
        ValueError: a row is not text, or the start token is wanted of a tokenizer without one.

    >>> import garden
    >>> tokenizer = garden.Gpt2Tokenizer(["a", "b", "Ġ", "ab", "Ġab", "<|endoftext|>"], ["a b", "Ġ ab"])
    >>> preprocessor = CausalLMPreprocessor(tokenizer, sequence_length=4)
    >>> x, y, sample_weight = preprocessor(["ab ab", "a"])
    >>> x["token_ids"].tolist(), y.tolist(), sample_weight.tolist()
    ([[3, 4, 5, 5], [0, 5, 5, 5]], [[4, 5, 5, 5], [5, 5, 5, 5]], [[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    """

    def __init__(self, tokenizer, sequence_length=1024, add_start_token=False, add_end_token=True, **kwargs):
        if sequence_length < 1:
            raise ValueError(f"sequence_length={sequence_length} leaves no room for text: use 1 or more.")
        super().__init__(tokenizer, sequence_length, add_start_token, add_end_token, **kwargs)
        if add_start_token and self.start is None:
            raise ValueError(f"A {type(tokenizer).__name__} has no start token: leave add_start_token out.")

    @property
    def start(self) -> int | None:
        """The id that begins a row, for tokenizers that have one."""
        return getattr(self.tokenizer, "start_token_id", None)

    @property
    def end(self) -> int | None:
        """The id that ends a row, for tokenizers that have one."""
        return getattr(self.tokenizer, "end_token_id", None)

    def build(self, input_shape):
        pass  # KerasHub would build a packer of its own here

    def call(self, x, y=None, sample_weight=None, sequence_length=None):
        width = sequence_length or self.sequence_length
        spec = {name: ("int32", width) for name in ("token_ids", "padding_mask", "targets")}
        packed = run(lambda texts: self._shifted(texts, width), x, {**spec, "weights": ("float32", width)})
        targets, weights = packed.pop("targets"), packed.pop("weights")
        return packed, targets, weights

    def _shifted(self, texts, width):
        """Inputs, and targets one place ahead of them."""
        texts, batched = as_strings(texts)
        rows = [row[: width + 1] for row in self.rows(texts, self.add_end_token)]
        ids, real = self._padded(rows, width + 1)
        arrays = {
            "token_ids": ids[:, :-1],
            "padding_mask": real[:, :-1],
            "targets": ids[:, 1:],
            "weights": real[:, 1:].astype(np.float32),
        }
        return arrays if batched else {name: array[0] for name, array in arrays.items()}

    def rows(self, texts: list[str], end: bool) -> list[list[int]]:
        """The ids of each text, with the special tokens that frame it."""
        first = [self.start] if self.add_start_token else []
        last = [self.end] if end and self.end is not None else []
        return [[*first, *ids, *last] for ids in self.tokenizer.ids(texts)]

    def generate_preprocess(self, x, sequence_length=None):
        """Prompts to rows with room for what follows.

        Args:
            x: a list of strings.
            sequence_length: the tokens of a row, prompt and continuation; None means the preprocessor's own.

        Returns:
            A dict of int32 `token_ids` and `padding_mask` (b, t).

        Raises:
            ValueError: a prompt that fills the row, or an empty one where no token can start a row.
        """
        width = sequence_length or self.sequence_length
        rows = self.rows(as_strings(x)[0], end=False)
        rows = [row or self._unprompted() for row in rows]
        check_prompts(rows, width)
        ids, real = self._padded(rows, width)
        return {"token_ids": ids, "padding_mask": real}

    def _unprompted(self):
        if self.start is None:
            raise ValueError(f"The prompt is empty, and a {type(self.tokenizer).__name__} has no token to start with.")
        return [self.start]

    def _padded(self, rows, width):
        real = padded_rows([[1] * len(row) for row in rows], 0, width)
        return padded_rows(rows, self.tokenizer.pad_token_id, width), real

    def generate_postprocess(self, x):
        """The text of each generated row, without special tokens.

        Args:
            x: a dict of `token_ids` and `padding_mask` (b, t).
        """
        return texts(self.tokenizer, x["token_ids"], x["padding_mask"])
