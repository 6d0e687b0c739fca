"""Words: where they stand in a text, the pieces a tokenizer cuts them into, and the windows over long rows of these."""

import unicodedata

import numpy as np
import tokenizers as rust

# Chinese characters and punctuation are words of their own, whatever the tokenizer of the family does with them.
_SPACED = rust.normalizers.BertNormalizer(strip_accents=False, lowercase=False)
_SPLIT = rust.pre_tokenizers.BertPreTokenizer()


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where the words of a text begin and end, as BERT divides it: at blanks, punctuation and Chinese characters.

    Blanks belong to no word; an accent or a variation selector that follows a word belongs to it.

    >>> from garden.tasks.words import word_spans
    >>> word_spans("Well, 你好")
    [(0, 4), (4, 5), (6, 7), (7, 8)]
    """
    pieces = rust.PreTokenizedString(text)
    pieces.normalize(_SPACED.normalize)
    _SPLIT.pre_tokenize(pieces)
    found = [span for _, span, _ in pieces.get_splits(offset_referential="original", offset_type="char")]
    trimmed = (_trimmed(text, start, end) for start, end in found)
    return [(start, end) for start, end in trimmed if start < end]


def word_pieces(rows: list[list[str]], tokenizer) -> list[tuple[list[int], np.ndarray]]:
    """The ids of rows of words, and for each id the number of its word.

    The words are joined by blanks, so that a tokenizer which marks the beginnings of words marks these. A word of which
    the tokenizer leaves nothing, such as a blank or U+200B, is the unknown token: every word has a piece.

    Args:
        rows: words, none of them empty.
        tokenizer: a garden tokenizer.

    >>> from garden.tokenizers import BertTokenizer
    >>> tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "fox", "##es", "the"])
    >>> ids, words = word_pieces([["the", "foxes", " "]], tokenizer)[0]
    >>> ids, words.tolist()
    ([7, 5, 6, 1], [0, 1, 1, 2])
    """
    encodings = tokenizer.encode_batch([" ".join(row) for row in rows])
    return [_numbered(row, encoding, tokenizer) for row, encoding in zip(rows, encodings, strict=True)]


def first_pieces(words: np.ndarray) -> np.ndarray:
    """Which pieces are the first of their word: bool (t,), given the number of each piece's word (t,).

    >>> first_pieces(np.array([0, 1, 1, 2])).tolist()
    [True, True, False, True]
    """
    return np.diff(words, prepend=-1) > 0


def windows(ids: list[int], words: np.ndarray, width: int) -> list[tuple[list[int], np.ndarray]]:
    """A row of pieces cut into windows that overlap by half, and the words that each has to say something about.

    A word falls to the window in whose middle its first piece comes closest to stand, where it sees most to both sides.

    Args:
        ids: the pieces' ids.
        words: the number of each piece's word.
        width: the most pieces of a window.

    Returns:
        For each window its ids, and for each of them the number of its word where that word begins and falls to this
        window, -1 elsewhere.

    >>> [(ids, marks.tolist()) for ids, marks in windows([5, 6, 7, 8], np.array([0, 0, 1, 2]), 3)]
    [([5, 6, 7], [0, -1, -1]), ([6, 7, 8], [-1, 1, 2])]
    """
    last = max(len(ids) - width, 0)
    starts = np.array([*range(0, last, max(width // 2, 1)), last])
    first = np.flatnonzero(first_pieces(words))
    middles = starts + (width - 1) / 2
    falls_to = np.searchsorted((middles[:-1] + middles[1:]) / 2, first)
    found = []
    for i, start in enumerate(starts):
        part, own = ids[start : start + width], first[falls_to == i]
        marks = np.full(len(part), -1)
        marks[own - start] = words[own]
        found.append((part, marks))
    return found


def _trimmed(text, start, end):
    """A span without the blanks that some tokenizers count to a word, and with the marks that others drop."""
    start += len(text[start:end]) - len(text[start:end].lstrip())
    while end > start and text[end - 1].isspace():
        end -= 1
    while start < end < len(text) and unicodedata.category(text[end]).startswith("M"):
        end += 1
    return start, end


def _numbered(row, encoding, tokenizer):
    # The blank before a word belongs to it: there stands the mark of its beginning, if the tokenizer has one.
    owner = [i for i, word in enumerate(row) for _ in range(len(word) + (i > 0))]
    ids, words = encoding.ids, np.array([owner[max(start, end - 1)] for start, end in encoding.offsets], int)
    dropped = np.setdiff1d(np.arange(len(row)), words)
    if dropped.size:
        places = np.searchsorted(words, dropped)
        ids = np.insert(ids, places, tokenizer.unk_token_id).astype(int).tolist()
        words = np.insert(words, places, dropped)
    return ids, words
