"""What a language model is asked about label words: rows of ids, the places to look at, the tokens expected there.

One class for each kind of model says how a prompt and a label become a row; a `Row` is what all of them make.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from keras import ops

from .compiled import compiled
from .packing import padded_rows
from .prompt_template import PromptTemplate


class Row(NamedTuple):
    """A row to run once.

    Attributes:
        inputs: name of an input of the model -> its ids; the mask that belongs to them is all ones.
        positions: where the model says something about a token of a label.
        tokens: for each label, the token at each of its positions: (label, place in `positions`, id).
    """

    inputs: dict[str, list[int]]
    positions: list[int]
    tokens: list[tuple[int, int, int]]


class Continuation:
    """A causal language model writes the label behind the prompt (Brown et al. 2020, section 2.4).

    Args:
        model: a `garden.tasks.CausalLM`.
        template: a template without `{mask}`.
    """

    cloze = False
    ids_name = "token_ids"

    def __init__(self, model, template: PromptTemplate):
        self.model, self.template = model, template
        self.tokenizer = model.preprocessor.tokenizer
        self.step = compiled(_chosen(self), model.variables)

    def ids(self, word: str) -> list[int]:
        """The tokens of a label."""
        return self.tokenizer.ids([word])[0]

    def prompt(self, example, demonstrations) -> tuple[dict[str, list[int]], list[int]]:
        """The ids of the model's other inputs, and those behind which a label is written."""
        [ids] = self.model.preprocessor.rows([self.template.prompt(example, demonstrations)], end=False)
        if not ids:
            raise ValueError("The prompt is empty: give the template some text beside the slot.")
        return {}, ids

    def rows(self, example, demonstrations, labels: Sequence[str]) -> list[Row]:
        """The rows of one example; labels that differ in their last token only share one."""
        others, ids = self.prompt(example, demonstrations)
        by_beginning = {}
        for label, word in enumerate(labels):
            *beginning, _ = written = self.ids(word)
            by_beginning.setdefault(tuple(beginning), []).append((label, written))
        made = []
        for beginning, written in by_beginning.items():
            positions = [len(ids) - 1 + i for i in range(len(beginning) + 1)]
            tokens = [(label, place, token) for label, word in written for place, token in enumerate(word)]
            made.append(Row({**others, self.ids_name: [*ids, *beginning]}, positions, tokens))
        return made

    def logits(self, inputs, positions):
        """Logits (b, p, v) at `positions` (b, p)."""
        states = ops.take_along_axis(self.model.states(inputs), positions[:, :, None], axis=1)
        return self.model.head(states)


class Answer(Continuation):
    """An encoder-decoder reads the prompt and writes the label (Raffel et al. 2020, section 2.4).

    Args:
        model: a `garden.tasks.Seq2SeqLM`.
        template: a template without `{mask}`.
    """

    ids_name = "decoder_token_ids"

    def ids(self, word):
        return self.tokenizer.target_ids([word])[0]

    def prompt(self, example, demonstrations):
        preprocessor = self.model.preprocessor
        [ids] = self.tokenizer.ids([self.template.prompt(example, demonstrations)])
        return {"encoder_token_ids": [*ids, preprocessor.end]}, [preprocessor.start]


class Cloze(Continuation):
    """A masked language model fills the label in at `{mask}` (Schick and Schuetze 2021, section 3).

    A label of k tokens is asked for at k masks at once.

    Args:
        model: a `garden.tasks.MaskedLM`.
        template: a template with `{mask}`.
    """

    cloze = True

    def ids(self, word):
        return super().ids(word.strip())

    def rows(self, example, demonstrations, labels):
        by_length = {}
        for label, word in enumerate(labels):
            written = self.ids(word)
            by_length.setdefault(len(written), []).append((label, written))
        mask, made = self.tokenizer.mask_token_id, []
        for length, words in by_length.items():
            blanks = " ".join([self.tokenizer.mask_token] * length)
            encoding = self.tokenizer.encode(self.template.prompt(example, demonstrations, blanks))
            positions = np.flatnonzero(np.array(encoding.ids) == mask).tolist()
            if len(positions) != length:
                raise ValueError(f"The example holds a {self.tokenizer.mask_token} itself: take it out.")
            tokens = [(label, place, token) for label, word in words for place, token in enumerate(word)]
            made.append(Row({self.ids_name: encoding.ids}, positions, tokens))
        return made

    def logits(self, inputs, positions):
        return self.model({**inputs, "mask_positions": positions})


def log_probabilities(asker: Continuation, rows: Sequence[Row], batch_size: int = 16, multiple: int = 16) -> list:
    """The logarithm of the probability of each row's tokens, in the order of its `tokens`.

    Rows of similar length are run together, padded to a multiple of tokens so that few shapes are compiled.

    Args:
        asker: what made the rows.
        rows: any number.
        batch_size: rows a step.
        multiple: of the padded length.

    Returns:
        A list of float32 arrays, one a row.
    """
    places = max((len(row.positions) for row in rows), default=0)
    wanted = max((len(row.tokens) for row in rows), default=0)
    order = np.argsort([max(map(len, row.inputs.values())) for row in rows], kind="stable")
    found = [None] * len(rows)
    for start in range(0, len(rows), batch_size):
        batch = [rows[i] for i in order[start : start + batch_size]]
        filled = batch + [batch[-1]] * (batch_size - len(batch))  # one number of rows for all batches
        positions = _array([row.positions for row in filled], places)
        tokens = np.stack([_array([[t[part] for t in row.tokens] for row in filled], wanted) for part in (1, 2)])
        values = ops.convert_to_numpy(asker.step(_inputs(asker, filled, multiple), positions, *tokens))
        for i, row, value in zip(order[start : start + batch_size], batch, values, strict=False):
            found[i] = value[: len(row.tokens)]
    return found


def _chosen(asker):
    """The function from inputs, positions (b, p), and places and ids of tokens (b, k) to log-probabilities (b, k)."""

    def chosen(inputs, positions, places, tokens):
        logits = ops.cast(asker.logits(inputs, positions), "float32")
        rows, positions, size = logits.shape
        log_probs = ops.reshape(ops.log_softmax(logits, axis=-1), (rows, positions * size))
        return ops.take_along_axis(log_probs, places * size + tokens, axis=1)

    return chosen


def _inputs(asker, rows, multiple):
    limit, arrays = asker.model.backbone.max_sequence_length, {}
    pad = asker.tokenizer.pad_token_id
    for name in rows[0].inputs:
        ids = [row.inputs[name] for row in rows]
        longest = max(map(len, ids))
        width = -(-longest // multiple) * multiple
        width = width if limit is None else max(min(width, limit), longest)
        arrays[name] = padded_rows(ids, pad, width)
        arrays[name.replace("token_ids", "padding_mask")] = padded_rows([[1] * len(row) for row in ids], 0, width)
    further = set(asker.model.backbone.input_names) - arrays.keys()  # segments, all of them the first
    return arrays | {name: np.zeros_like(arrays[asker.ids_name]) for name in further}


def _array(rows, width):
    return padded_rows(rows, 0, width)
