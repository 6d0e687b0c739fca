"""The part that turns raw strings into packed rows of ids, eagerly in NumPy or inside a `tf.data` pipeline."""

import keras_hub
import numpy as np

from garden.strings import as_one_leaf, as_strings, in_graph, is_text

from .packing import check_settings, pack


class TextPacker:
    """What the preprocessors share, mixed in before a KerasHub preprocessor: strings in, packed rows of ids out.

    Of the tokenizer it asks `ids(texts)`, the ids of its special tokens, and on which side it pads.

    Attributes:
        input_names: the arrays that the backbone takes.
        pairs_share_a_row: whether the texts of a pair are one row, and not a row each.
    """

    input_names = ("token_ids", "segment_ids", "padding_mask")
    pairs_share_a_row = True

    def __init__(self, tokenizer, sequence_length=512, truncate="round_robin", *, pad_to_multiple_of=None, **kwargs):
        check_settings(2, sequence_length, truncate, pad_to_multiple_of)
        super().__init__(tokenizer=tokenizer, sequence_length=sequence_length, truncate=truncate, **kwargs)
        self.pad_to_multiple_of = pad_to_multiple_of

    def build(self, input_shape):
        pass  # KerasHub would build a packer of its own here

    def __call__(self, *args, **kwargs):
        args = tuple(map(as_one_leaf, args))
        # KerasHub reads a lone tuple as (x, y), but a second column of text is the second sentence of each pair.
        if len(args) == 1 and isinstance(args[0], tuple) and len(args[0]) == 2 and is_text(args[0][1]):
            return super().__call__(x=args[0], **kwargs)
        return super().__call__(*args, **kwargs)

    def get_config(self) -> dict:
        return {**super().get_config(), "pad_to_multiple_of": self.pad_to_multiple_of}

    def pack_strings(self, *segments) -> dict[str, np.ndarray]:
        """The arrays of `input_names`: (b, t) of one or two columns of text, (t,) of single strings."""
        if len(segments) > 2:
            raise ValueError(f"An example has {len(segments)} segments of text: give one, or a pair.")
        columns = [as_strings(segment) for segment in segments]
        sizes = [len(texts) if batched else "one string" for texts, batched in columns]
        if len(set(sizes)) > 1:
            raise ValueError(f"The segments of a pair differ in size, {sizes[0]} and {sizes[1]}: give as many of each.")
        packed = self.pack_ids(*(self.tokenizer.ids(texts) for texts, _ in columns))
        return packed if columns[0][1] else {name: rows[0] for name, rows in packed.items()}

    def pack_ids(self, *segments: list[list[int]]) -> dict[str, np.ndarray]:
        """The arrays (b, t) of `input_names`, of one or two segments of b rows of ids."""
        packed = pack(
            segments,
            start=self.tokenizer.start_token_id,
            end=self.tokenizer.end_token_id,
            pad=self.tokenizer.pad_token_id,
            sequence_length=self.sequence_length,
            truncate=self.truncate,
            pad_to_multiple_of=self.pad_to_multiple_of,
            between=self.tokenizer.between_ids,
            suffix=self.tokenizer.suffix_ids,
            pads_left=self.tokenizer.pads_left,
        )
        packed["segment_ids"] *= self.tokenizer.numbers_segments
        return {name: packed[name] for name in self.input_names}

    def packed_spec(self) -> dict[str, tuple[str, int | None]]:
        """The dtype and the last axis of each array of `pack_strings`; None where it differs from batch to batch."""
        width = self.sequence_length if self.pad_to_multiple_of is None else None
        return dict.fromkeys(self.input_names, ("int32", width))


class TextPreprocessor(keras_hub.models.Preprocessor):
    """What KerasHub's preprocessors of text hold, as the base of one for a task that it does not have.

    Args:
        tokenizer, sequence_length, truncate: as in `garden.tasks.TextClassifierPreprocessor`.
    """

    def __init__(self, tokenizer, sequence_length, truncate, **kwargs):
        super().__init__(**kwargs)
        self.tokenizer = tokenizer
        self.sequence_length = sequence_length
        self.truncate = truncate

    def get_config(self) -> dict:
        return {**super().get_config(), "sequence_length": self.sequence_length, "truncate": self.truncate}


def run(function, x, spec: dict[str, tuple[str, int | None]], rows: tuple | None = None) -> dict:
    """The dict of arrays `function(*segments)` of the text `x`: at once, or in a graph whenever a batch reaches it.

    Args:
        function: takes one or two columns of text and gives the arrays that `spec` names.
        x: a string or a batch of them, or a tuple of two such segments.
        spec: for each array its dtype and last axis, None where that is open.
        rows: the other axes; None for those of the last segment.
    """
    segments = x if isinstance(x, tuple) else (x,)
    if not in_graph():
        return function(*segments)
    import tensorflow as tf

    segments = [tf.convert_to_tensor(segment) for segment in segments]

    def arrays(*segments):
        result = function(*segments)
        return [result[name] for name in spec]

    tensors = tf.numpy_function(arrays, segments, [dtype for dtype, _ in spec.values()])
    for tensor, (_, width) in zip(tensors, spec.values(), strict=True):
        tensor.set_shape(tf.TensorShape(segments[-1].shape if rows is None else rows).concatenate([width]))
    return dict(zip(spec, tensors, strict=True))
