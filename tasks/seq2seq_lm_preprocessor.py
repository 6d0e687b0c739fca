"""From pairs of texts to the rows of an encoder-decoder, and from generated rows back to text."""

import keras
import keras_hub
import numpy as np

from garden.strings import as_one_leaf, as_strings, is_text

from .decoding import check_prompts, texts
from .packing import padded_rows
from .text_packer import run


@keras.saving.register_keras_serializable(package="garden")
class Seq2SeqLMPreprocessor(keras_hub.models.Seq2SeqLMPreprocessor):
    """Pairs of strings to inputs and targets of an encoder-decoder.

    The encoder reads `A [end]`. The decoder is given `[start] B` and has to say `B [end]`; where a tokenizer has no
    start token, as T5's, padding starts a row.

    Args:
        tokenizer: a garden tokenizer.
        encoder_sequence_length: s, the tokens of a row of the encoder; a longer text loses its end.
        decoder_sequence_length: t, likewise of the decoder.

    Call arguments:
        x: a tuple of two strings, or of two batches (b,) of them in lists, arrays or tensors; or a dict of
            `encoder_text` and `decoder_text`. What comes as `y` is dropped.

    Returns:
        `(x, y, sample_weight)`: `x` a dict of int32 `encoder_token_ids`, `encoder_padding_mask` (b, s),
        `decoder_token_ids`, `decoder_padding_mask` (b, t); `y` the ids to predict (b, t); `sample_weight` float32
        (b, t), 1 for a token to predict and 0 behind the text.

    Raises:
        ValueError: a row is not text, there are not as many of each, or a length leaves no room.

    >>> import garden
    >>> issubclass(garden.tasks.T5Seq2SeqLMPreprocessor, Seq2SeqLMPreprocessor)
    True
    """

    def __init__(self, tokenizer, encoder_sequence_length=512, decoder_sequence_length=512, **kwargs):
        shortest = min(encoder_sequence_length, decoder_sequence_length)
        if shortest < 2:
            raise ValueError(f"A sequence length of {shortest} leaves no room for text: use 2 or more.")
        super().__init__(tokenizer, encoder_sequence_length, decoder_sequence_length, **kwargs)

    def get_config(self) -> dict:
        lengths = ("encoder_sequence_length", "decoder_sequence_length")
        return {**super().get_config(), **{name: getattr(self, name) for name in lengths}}

    @property
    def start(self) -> int:
        """The id that a decoder's row begins with."""
        start = self.tokenizer.start_token_id
        return self.tokenizer.pad_token_id if start is None else start

    @property
    def end(self) -> int:
        """The id that ends a row."""
        return self.tokenizer.end_token_id

    def build(self, input_shape):
        pass  # KerasHub would build packers of its own here

    def __call__(self, *args, **kwargs):
        args = tuple(map(as_one_leaf, args))
        # KerasHub reads a lone tuple as (x, y), but a second column of text is what is to be written.
        if len(args) == 1 and isinstance(args[0], tuple) and len(args[0]) == 2 and is_text(args[0][1]):
            return super().__call__(x=args[0], **kwargs)
        return super().__call__(*args, **kwargs)

    @staticmethod
    def pair(x):
        """The tuple of two columns in a dict of `encoder_text` and `decoder_text`; a tuple of two as it is."""
        if isinstance(x, dict) and {"encoder_text", "decoder_text"} <= x.keys():
            return x["encoder_text"], x["decoder_text"]
        if isinstance(x, tuple) and len(x) == 2:
            return x
        raise ValueError(
            "An encoder-decoder learns from pairs of texts: give a tuple of two lists of strings, or a dictionary of "
            "encoder_text and decoder_text."
        )

    def call(self, x, y=None, sample_weight=None):
        source, target = self.encoder_sequence_length, self.decoder_sequence_length
        spec = {f"encoder_{name}": ("int32", source) for name in ("token_ids", "padding_mask")}
        spec |= {f"decoder_{name}": ("int32", target) for name in ("token_ids", "padding_mask")}
        spec |= {"targets": ("int32", target), "weights": ("float32", target)}
        packed = run(self._shifted, self.pair(x), spec)
        targets, weights = packed.pop("targets"), packed.pop("weights")
        return packed, targets, weights

    def _shifted(self, sources, targets):
        """Inputs, and targets one place ahead of the decoder's."""
        (sources, batched), (targets, _) = as_strings(sources), as_strings(targets)
        if len(sources) != len(targets):
            raise ValueError(
                f"There are {len(sources)} texts to read but {len(targets)} to write: give as many of each."
            )
        width = self.decoder_sequence_length
        rows = [[self.start, *ids, self.end][: width + 1] for ids in self.tokenizer.target_ids(targets)]
        ids, real = self._padded(rows, width + 1)
        arrays = self._read(sources, self.encoder_sequence_length) | {
            "decoder_token_ids": ids[:, :-1],
            "decoder_padding_mask": real[:, :-1],
            "targets": ids[:, 1:],
            "weights": real[:, 1:].astype(np.float32),
        }
        return arrays if batched else {name: array[0] for name, array in arrays.items()}

    def generate_preprocess(self, x, sequence_length=None, encoder_sequence_length=None):
        """Texts to read to rows with room for what is to be written.

        Args:
            x: a list of strings, or a dict of `encoder_text` and `decoder_text`, the latter how the texts to write
                begin.
            sequence_length: the tokens of a row of the decoder; None means the preprocessor's own.
            encoder_sequence_length: likewise of the encoder.

        Returns:
            A dict of the model's inputs, int32 (b, s) and (b, t).

        Raises:
            ValueError: a beginning that fills the row.
        """
        sources, _ = as_strings(x["encoder_text"] if isinstance(x, dict) else x)
        begun = (
            as_strings(x.get("decoder_text", [""] * len(sources)))[0] if isinstance(x, dict) else [""] * len(sources)
        )
        width = sequence_length or self.decoder_sequence_length
        rows = [[self.start, *ids] for ids in self.tokenizer.target_ids(begun)]
        check_prompts(rows, width)
        ids, real = self._padded(rows, width)
        read = self._read(sources, encoder_sequence_length or self.encoder_sequence_length)
        return read | {"decoder_token_ids": ids, "decoder_padding_mask": real}

    def generate_postprocess(self, x):
        """The text of each generated row, without special tokens.

        Args:
            x: a dict of `decoder_token_ids` and `decoder_padding_mask` (b, t).
        """
        return texts(self.tokenizer, x["decoder_token_ids"], x["decoder_padding_mask"])

    def _read(self, sources, width):
        ids, real = self._padded([[*ids[: width - 1], self.end] for ids in self.tokenizer.ids(sources)], width)
        return {"encoder_token_ids": ids, "encoder_padding_mask": real}

    def _padded(self, rows, width):
        return padded_rows(rows, self.tokenizer.pad_token_id, width), padded_rows(
            [[1] * len(row) for row in rows], 0, width
        )
