"""From questions with choices to the inputs of an encoder, a row of tokens for every choice."""

import keras
import numpy as np

from garden.strings import as_strings

from .text_packer import TextPacker, TextPreprocessor, run


@keras.saving.register_keras_serializable(package="garden")
class MultipleChoicePreprocessor(TextPacker, TextPreprocessor):
    """`[CLS] context [SEP] question choice [SEP]` for each choice of each question.

    Args:
        tokenizer: a garden tokenizer.
        sequence_length: the most tokens of a row, special tokens included.
        truncate: what a row that is too long loses: with "first" the end of the context, and the end of question and
            choice only where they alone are too long; with "round_robin" the end of the longer of the two, as in
            BERT's published code for RACE.
        pad_to_multiple_of: as in `TextClassifierPreprocessor`.

    Call arguments:
        x: a tuple of contexts (b,), questions (b,) and choices (b, c), all strings; a list of lists of different
            length is filled up with empty strings, which are no choices.
        y, sample_weight: passed on as they are.

    Returns:
        A dict of int32 arrays (b, c, t), all padding where there is no choice.

    Raises:
        ValueError: something is no string, or the three differ in length.

    >>> from garden.tokenizers import BertTokenizer
    >>> tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "it", "is", "wet", "dry"])
    >>> preprocessor = MultipleChoicePreprocessor(tokenizer, sequence_length=7)
    >>> preprocessor((["wet", "dry"], ["it is", "it"], [["wet", "dry"], ["dry"]]))["token_ids"].tolist()
    [[[2, 7, 3, 5, 6, 7, 3], [2, 7, 3, 5, 6, 8, 3]], [[2, 8, 3, 5, 8, 3, 0], [0, 0, 0, 0, 0, 0, 0]]]
    """

    def __init__(self, tokenizer, sequence_length=512, truncate="first", **kwargs):
        super().__init__(tokenizer, sequence_length, truncate, **kwargs)

    def __call__(self, x, y=None, sample_weight=None):
        # A list of lists has as many leaves as strings, and Keras looks at every one.
        columns = tuple(choice_array(x[2]) if i == 2 and isinstance(x[2], list) else x[i] for i in range(len(x)))
        return super().__call__(columns, y=y, sample_weight=sample_weight)

    def call(self, x, y=None, sample_weight=None):
        return keras.utils.pack_x_y_sample_weight(run(self.pack_choices, x, self.packed_spec()), y, sample_weight)

    def pack_choices(self, contexts, questions, choices) -> dict[str, np.ndarray]:
        """The arrays (b, c, t) of `input_names`."""
        (contexts, _), (questions, _), choices = as_strings(contexts), as_strings(questions), choice_array(choices)
        count = choices.shape[1]
        exists = choices != ""
        endings = [f"{questions[i]} {choice}" for i, row in enumerate(choices) for choice in row]
        ids = [row for row in self.tokenizer.ids(contexts) for _ in range(count)]
        packed = self.pack_ids(ids, self.tokenizer.ids(endings))
        packed = {name: rows.reshape(*choices.shape, -1) for name, rows in packed.items()}
        empty = {"token_ids": self.tokenizer.pad_token_id}
        return {name: np.where(exists[:, :, None], rows, np.int32(empty.get(name, 0))) for name, rows in packed.items()}


def choice_array(choices) -> np.ndarray:
    """Choices (b, c) as an object array of strings, filled up with empty ones.

    Raises:
        ValueError: a row is no list of strings.

    >>> from garden.tasks.multiple_choice_preprocessing import choice_array
    >>> choice_array([["yes", "no"], ["yes"]]).tolist()
    [['yes', 'no'], ['yes', '']]
    """
    rows = []
    for i, row in enumerate(choices):
        if isinstance(row, (str, bytes)) or not hasattr(row, "__len__"):
            raise ValueError(f"The choices of question {i} are {row!r}: give a list of strings for each question.")
        rows.append(as_strings(np.array(row, dtype=object))[0])
    width = max(map(len, rows), default=0)
    array = np.full((len(rows), width), "", dtype=object)
    for i, row in enumerate(rows):
        array[i, : len(row)] = row
    return array
