"""From a question and a passage to the rows of a question-answering model."""

import keras
import keras_hub
import numpy as np

from garden.strings import as_strings

from .packing import check_settings, padded_rows
from .text_packer import TextPacker, run
from .windows import Window, cut


class PassagePreprocessor(TextPacker, keras_hub.models.Preprocessor):
    """What the preprocessors of passages share; see `QuestionAnsweringPreprocessor`."""

    truncate = "waterfall"  # the question stays and the passage is cut, for `export_saved_model`

    def __init__(
        self,
        tokenizer,
        sequence_length=384,
        doc_stride=128,
        max_query_length=64,
        *,
        pad_to_multiple_of=None,
        **kwargs,
    ):
        check_settings(3, sequence_length, self.truncate, pad_to_multiple_of)
        for name, value in (("doc_stride", doc_stride), ("max_query_length", max_query_length)):
            if value < 1:
                raise ValueError(f"{name}={value} has to be 1 or more.")
        super(TextPacker, self).__init__(**kwargs)  # its own constructor is for bases that take a tokenizer
        self.tokenizer = tokenizer
        self.sequence_length = sequence_length
        self.doc_stride = doc_stride
        self.max_query_length = max_query_length
        self.pad_to_multiple_of = pad_to_multiple_of

    def call(self, x, y=None, sample_weight=None):
        if not isinstance(x, dict) and not (isinstance(x, tuple) and len(x) == 2):
            raise ValueError("Question answering takes a tuple of questions and passages, not one column of text.")
        packed = x if isinstance(x, dict) else run(self.pack_strings, x, self.packed_spec())
        return keras.utils.pack_x_y_sample_weight(packed, y, sample_weight)

    def get_config(self) -> dict:
        own = ("sequence_length", "doc_stride", "max_query_length")
        return {**super().get_config(), **{name: getattr(self, name) for name in own}}

    def pack_strings(self, questions, passages) -> dict[str, np.ndarray]:
        """The first window of each question: the arrays of `input_names`, (b, t), or (t,) of single strings."""
        (questions, batched), (passages, _) = map(as_strings, (questions, passages))
        check_pairs(questions, passages)
        rows = []
        for i, pair in enumerate(zip(questions, passages, strict=True)):
            rows.append(self.windows(*pair, name=f"Row {i}")[0])
        packed = self.pack_windows(rows)
        return packed if batched else {name: array[0] for name, array in packed.items()}

    def windows(self, question: str, passage: str, name: str = "The question") -> list[Window]:
        """All windows of one passage behind its question.

        Args:
            question, passage: the texts.
            name: what an error calls them.
        """
        passage_first = bool(self.tokenizer.suffix_ids)
        encoding = self.tokenizer.encode(*((passage, question) if passage_first else (question, passage)))
        try:
            return cut(encoding, self.sequence_length, self.doc_stride, self.max_query_length, passage_first)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    def pack_windows(self, windows) -> dict[str, np.ndarray]:
        """The arrays of `input_names`, int32 (b, t), of some windows."""
        ids, types = [window.token_ids for window in windows], [window.segment_ids for window in windows]
        size = (self.sequence_length, self.pad_to_multiple_of)
        packed = {
            "token_ids": padded_rows(ids, self.tokenizer.pad_token_id, *size),
            "segment_ids": padded_rows(types, 0, *size),
            "padding_mask": padded_rows([np.ones_like(row) for row in ids], 0, *size),
        }
        return {name: packed[name] for name in self.input_names}


@keras.saving.register_keras_serializable(package="garden")
class QuestionAnsweringPreprocessor(PassagePreprocessor):
    """Questions and passages to the inputs of an encoder, in windows where a passage is longer than a row.

    A call makes one row of each question, its first window. `windows` makes all of them, which is what
    `QuestionAnswering` trains on and answers from.

    Args:
        tokenizer: a garden tokenizer.
        sequence_length: the most tokens of a row, special tokens included.
        doc_stride: tokens from the start of one window of a passage to that of the next.
        max_query_length: the most tokens of a question; what is behind them is cut off, as is what fills more than half
            of a row.
        pad_to_multiple_of: None pads every row to `sequence_length`; a number pads each batch to its longest row,
            rounded up to that multiple.

    Call arguments:
        x: a tuple of questions and passages, strings or batches (b,) of them. A dict of packed rows stays as it is.
        y: first and last token of the answer, int (b, 2); passed on like `sample_weight`.

    Returns:
        As `TextClassifierPreprocessor` for pairs.

    Raises:
        ValueError: a setting that cannot work, or a question or passage without a token.

    Reference: [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), section 4.2, and its `run_squad.py`.

    >>> from garden.tokenizers import BertTokenizer
    >>> tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "who", "a", "b"])
    >>> preprocessor = QuestionAnsweringPreprocessor(tokenizer, sequence_length=7)
    >>> preprocessor(("who", "a b"))["token_ids"].tolist()
    [2, 5, 3, 6, 7, 3, 0]
    """


def check_pairs(questions: list[str], passages: list[str]) -> None:
    """Raises the ValueError that says how many questions and passages there are, where that is not the same number."""
    if len(questions) != len(passages):
        raise ValueError(f"There are {len(questions)} questions but {len(passages)} passages: give as many of each.")
