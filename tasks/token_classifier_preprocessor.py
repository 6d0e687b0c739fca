"""From words and their labels to what a token classifier is fed."""

import keras
import keras_hub
import numpy as np

from garden.strings import in_graph

from .packing import check_settings, pack
from .words import first_pieces, word_pieces, word_spans

SPLITS = ("words", "characters")


@keras.saving.register_keras_serializable(package="garden")
class TokenClassifierPreprocessor(keras_hub.models.Preprocessor):
    """Rows of words to the inputs of an encoder, and labels of words to labels of their first pieces.

    Args:
        tokenizer: a garden tokenizer.
        sequence_length: the most tokens of a row, special tokens included; the words behind them are not learned from.
        split: how a row that is a plain string becomes words: `"words"` as BERT divides it, at blanks and
            punctuation and around Chinese characters; `"characters"`, each of which is then a word.
        pad_to_multiple_of: None pads every row to `sequence_length`; a number pads each batch to its longest row,
            rounded up to that multiple.

    Call arguments:
        x: a batch of rows, each a list of words or a string; a `tf.RaggedTensor` of words inside `tf.data`.
        y: for each row the ids of its words' labels.
        sample_weight: None, or one number a row (b,).

    Returns:
        A dict of int32 arrays (b, t), `token_ids`, `padding_mask` and, for backbones with segments, `segment_ids`. With
        `y` a tuple of that, the labels int32 (b, t), and weights float32 (b, t): that of the row at the first piece of
        each word, 0 at other pieces, special tokens and padding.

    Raises:
        ValueError: a word is empty or no string, or a row has more or fewer labels than words.

    >>> from garden.tokenizers import BertTokenizer
    >>> tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "fox", "##es", "the"])
    >>> x, y, sample_weight = TokenClassifierPreprocessor(tokenizer, 6)([["the", "foxes"]], [[0, 3]])
    >>> x["token_ids"].tolist(), y.tolist(), sample_weight.tolist()
    ([[2, 7, 5, 6, 3, 0]], [[0, 0, 3, 0, 0, 0]], [[0.0, 1.0, 1.0, 0.0, 0.0, 0.0]])
    """

    input_names = ("token_ids", "segment_ids", "padding_mask")

    def __init__(self, tokenizer, sequence_length=512, split="words", *, pad_to_multiple_of=None, **kwargs):
        check_settings(2, sequence_length, "round_robin", pad_to_multiple_of)
        if split not in SPLITS:
            raise ValueError(f"split={split!r} is no way to split a string: take {' or '.join(SPLITS)}.")
        super().__init__(**kwargs)
        self.tokenizer = tokenizer
        self.sequence_length = sequence_length
        self.split = split
        self.pad_to_multiple_of = pad_to_multiple_of

    def __call__(self, x, y=None, sample_weight=None):
        return self.call(x, y, sample_weight)  # Keras would look at every word of a nested list

    def call(self, x, y=None, sample_weight=None):
        packed = self._in_graph(x, y, sample_weight) if in_graph() else self.pack_words(x, y, sample_weight)
        inputs = {name: packed[name] for name in self.input_names}
        return inputs if y is None else (inputs, packed["labels"], packed["weights"])

    def get_config(self) -> dict:
        own = {name: getattr(self, name) for name in ("sequence_length", "split", "pad_to_multiple_of")}
        return {**super().get_config(), **own}

    def pack_words(self, x, y=None, sample_weight=None) -> dict[str, np.ndarray]:
        """The arrays of `input_names` and, where labels are given, `labels` and `weights`: all (b, t)."""
        rows = self.rows(x)
        pieces = word_pieces(rows, self.tokenizer)
        packed = self.pack_ids([ids for ids, _ in pieces])
        if y is None:
            return packed
        labels = [_ids(row, f"Row {i}") for i, row in enumerate(check_lengths(rows, y))]
        marks = [np.where(first_pieces(words), row[words], -1) for (_, words), row in zip(pieces, labels, strict=True)]
        labels = self.pack_marks([row.tolist() for row in marks])
        row_weights = 1.0 if sample_weight is None else np.reshape(sample_weight, (-1, 1))
        weights = ((labels >= 0) * row_weights).astype(np.float32)
        return {**packed, "labels": np.maximum(labels, 0), "weights": weights}

    def pack_ids(self, rows: list[list[int]]) -> dict[str, np.ndarray]:
        """Rows of ids, cut, framed and padded: the arrays of `garden.tasks.packing.pack`."""
        tokens = (self.tokenizer.start_token_id, self.tokenizer.end_token_id, self.tokenizer.pad_token_id)
        return self._pack(rows, *tokens, suffix=self.tokenizer.suffix_ids)

    def pack_marks(self, rows: list[list[int]]) -> np.ndarray:
        """Numbers for ids, where `pack_ids` puts these, and -1 at special tokens and padding: int32 (b, t)."""
        start = None if self.tokenizer.start_token_id is None else -1
        return self._pack(rows, start, -1, -1, suffix=[-1] * len(self.tokenizer.suffix_ids))["token_ids"]

    def _pack(self, rows, start, end, pad, suffix):
        size = {"sequence_length": self.sequence_length, "pad_to_multiple_of": self.pad_to_multiple_of}
        return pack([rows], start, end, pad, suffix=suffix, pads_left=self.tokenizer.pads_left, **size)

    def rows(self, x) -> list[list[str]]:
        """The words of each row of `x`."""
        rows = [x] if isinstance(x, (str, bytes)) else _listed(x)
        return [self._words(row, f"Row {i}") for i, row in enumerate(rows)]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the words of a plain string begin and end."""
        return word_spans(text) if self.split == "words" else [(i, i + 1) for i in range(len(text))]

    def _words(self, row, where):
        if isinstance(row, (str, bytes)):
            text = _string(row, where)
            return [text[start:end] for start, end in self.spans(text)]
        if not hasattr(row, "__len__"):
            raise ValueError(f"{where} is {row!r}, not a list of words or a string.")
        words = [_string(word, f"{where}, word {i}") for i, word in enumerate(_listed(row))]
        if "" in words:
            raise ValueError(f"{where}, word {words.index('')} is empty: drop it together with its label.")
        return words

    def _in_graph(self, x, y, sample_weight):
        import tensorflow as tf

        columns = [_flat(x), [] if y is None else _flat(y), [] if sample_weight is None else [sample_weight]]
        sizes = [len(column) for column in columns]
        names = {**dict.fromkeys(self.input_names, tf.int32)}
        names |= {} if y is None else {"labels": tf.int32, "weights": tf.float32}

        def arrays(*flat):
            given = [flat[sum(sizes[:i]) : sum(sizes[: i + 1])] for i in range(3)]
            packed = self.pack_words(_unflat(given[0]), _unflat(given[1]), *given[2])
            return [packed[name] for name in names]

        tensors = tf.numpy_function(arrays, sum(columns, []), list(names.values()))
        width = self.sequence_length if self.pad_to_multiple_of is None else None
        for tensor in tensors:
            tensor.set_shape([x.shape[0], width])
        return dict(zip(names, tensors, strict=True))


def check_lengths(rows: list[list[str]], y) -> list:
    """The rows of labels in `y`, or a ValueError where a row has not one label a word."""
    y = _listed(y)
    if len(y) != len(rows):
        raise ValueError(f"Columns of different length: {len(rows)} texts, {len(y)} rows of labels.")
    for i, (words, labels) in enumerate(zip(rows, y, strict=True)):
        count = len(labels) if hasattr(labels, "__len__") else "no list of"
        if count != len(words):
            raise ValueError(
                f"Row {i} has {len(words)} words but {count} labels: give one label a word, or with plain strings as "
                f"rows split='characters' and one label a character."
            )
    return y


def _listed(x):
    """The rows of a list, an array, a column or a ragged tensor."""
    return x.to_list() if hasattr(x, "to_list") else list(x)


def _string(word, where):
    if isinstance(word, bytes):
        try:
            return word.decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{where} is not UTF-8: decode it from its own encoding first.") from None
    if not isinstance(word, str):
        raise ValueError(f"{where} is {word!r}, not a string.")
    return str(word)


def _ids(labels, where):
    ids = np.asarray(labels)
    if ids.size and (ids.dtype.kind not in "iu" or ids.min() < 0):
        raise ValueError(f"{where} has labels that are no ids: {list(labels)}.")
    return ids.astype(int)


def _flat(x):
    """The tensors of a ragged tensor (b, None), or of a dense one."""
    return [x.flat_values, x.row_lengths()] if hasattr(x, "row_lengths") else [x]


def _unflat(arrays):
    """The inverse of `_flat`, as a list of rows; None of nothing."""
    if len(arrays) < 2:
        return arrays[0] if arrays else None
    flat, lengths = arrays
    return [flat[stop - length : stop] for stop, length in zip(np.cumsum(lengths), lengths, strict=True)]
