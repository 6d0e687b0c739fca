"""A passage that is longer than a row, cut into overlapping windows behind its question: pure functions."""

from typing import NamedTuple

import numpy as np
import tokenizers as rust


class Window(NamedTuple):
    """One row: the question, and p tokens of the passage.

    Attributes:
        token_ids, segment_ids: int32 (t,), the whole row, special tokens included, without padding.
        first: where in the row the passage's tokens begin.
        span: their range (start, stop) among all tokens of the passage.
        offsets: int32 (p, 2), the characters of the passage behind each.
        most_context: bool (p,), for each whether no other window sees more around it, see `max_context`.
        null: where in the row the token stands whose place means that there is no answer.
    """

    token_ids: np.ndarray
    segment_ids: np.ndarray
    first: int
    span: tuple[int, int]
    offsets: np.ndarray
    most_context: np.ndarray
    null: int = 0

    def positions(self, tokens: tuple[int, int] | None) -> tuple[int, int]:
        """Where in the row the first and the last token of an answer stand; twice `null` without one.

        An answer that this window holds only in part counts as none, as in Google's training data.

        Args:
            tokens: the first and the last of the answer among all tokens of the passage, or None.
        """
        if tokens is None or tokens[0] < self.span[0] or tokens[1] >= self.span[1]:
            return self.null, self.null
        shift = self.first - self.span[0]
        return tokens[0] + shift, tokens[1] + shift


def window_spans(num_tokens: int, size: int, stride: int) -> list[tuple[int, int]]:
    """Ranges (start, stop) of at most `size` tokens, `stride` apart, up to the first that reaches the end.

    A stride that would leave tokens out is the size.

    >>> window_spans(9, size=4, stride=3)
    [(0, 4), (3, 7), (6, 9)]
    """
    spans = [(0, min(size, num_tokens))]
    while spans[-1][1] < num_tokens:
        start = spans[-1][0] + min(size, stride)
        spans.append((start, min(start + size, num_tokens)))
    return spans


def max_context(spans: list[tuple[int, int]], num_tokens: int) -> np.ndarray:
    """int (n,): which window sees most around each token, so that its scores there count (`run_squad.py` of BERT).

    That is the window in which the smaller of the token's left and right context, plus a hundredth of the window's
    length, is largest; the earlier one where two tie.

    >>> max_context([(0, 4), (3, 7), (6, 9)], 9).tolist()
    [0, 0, 0, 0, 1, 1, 1, 2, 2]
    """
    start, stop = np.array(spans)[:, :, None].swapaxes(0, 1)
    tokens = np.arange(num_tokens)
    left, right = tokens - start, stop - 1 - tokens
    scores = np.minimum(left, right) + 0.01 * (stop - start)
    return np.where((left >= 0) & (right >= 0), scores, -np.inf).argmax(0)


def covering_tokens(offsets: np.ndarray, start: int, end: int) -> tuple[int, int] | None:
    """The first and the last token that share a character with [start, end); None where no token does.

    An answer that begins or ends inside a token gets the whole token.

    Args:
        offsets: int (n, 2), the characters behind each token.
        start, end: characters of the passage.

    >>> covering_tokens(np.array([[0, 3], [4, 8], [8, 9]]), 5, 9)
    (1, 2)
    """
    tokens = np.flatnonzero((offsets[:, 0] < end) & (offsets[:, 1] > start))
    return (int(tokens[0]), int(tokens[-1])) if tokens.size else None


def cut(
    encoding: rust.Encoding, sequence_length: int, stride: int, max_query_length: int, passage_first: bool = False
) -> list[Window]:
    """The windows of a question and its passage.

    The frame, whatever special tokens a family has, is that of the encoding. Of the question stay `max_query_length`
    tokens, and no more than fill half of the row, so that a passage always has the other half.

    Args:
        encoding: `tokenizer.encode(question, passage)`, not truncated, or with both in the other order.
        sequence_length: the most tokens of a row.
        stride: tokens from the start of one window to that of the next.
        max_query_length: the most tokens of the question.
        passage_first: whether the passage stands in front of the question, and the last token of the row for "no
            answer", as in XLNet, and not the first.

    Raises:
        ValueError: the question or the passage has no token, or `sequence_length` leaves no room for both.

    >>> from garden.tokenizers import BertTokenizer
    >>> tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "who", "a", "b", "c"])
    >>> [window.token_ids.tolist() for window in cut(tokenizer.encode("who", "a b c"), 6, 1, 64)]
    [[2, 5, 3, 6, 7, 3], [2, 5, 3, 7, 8, 3]]
    """
    sequences = np.array([-1 if i is None else i for i in encoding.sequence_ids])
    question, passage = (np.flatnonzero(sequences == i) for i in (passage_first, not passage_first))
    for name, tokens in (("question", question), ("passage", passage)):
        if not tokens.size:
            raise ValueError(f"the {name} is empty: leave this question out.")
    special = len(sequences) - question.size - passage.size
    room = sequence_length - special
    if room < 2:
        raise ValueError(
            f"sequence_length={sequence_length} leaves no room for question and passage beside {special} special "
            f"tokens: use at least {special + 2}."
        )
    question, dropped = np.split(question, [min(max_query_length, room // 2)])
    before = np.setdiff1d(np.arange(passage[0]), dropped)
    after = np.setdiff1d(np.arange(passage[-1] + 1, len(sequences)), dropped)
    spans = window_spans(passage.size, room - question.size, stride)
    best = max_context(spans, passage.size)
    ids, types = np.array([encoding.ids, encoding.type_ids], "int32")
    offsets = np.array(encoding.offsets, "int32")[passage]
    rows = [np.concatenate([before, passage[start:stop], after]) for start, stop in spans]
    return [
        Window(ids[row], types[row], before.size, (a, b), offsets[a:b], best[a:b] == i, passage_first * (len(row) - 1))
        for i, (row, (a, b)) in enumerate(zip(rows, spans, strict=True))
    ]
