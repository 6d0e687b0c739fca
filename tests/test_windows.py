"""Windows against the Rust library's own strides, and answers against BERT's run_squad.py, in loops."""

import math

import material
import numpy as np
import pytest
import tokenizers as rust

from garden.tasks import decode
from garden.tasks.span_decoding import whole_characters
from garden.tasks.windows import Window, covering_tokens, cut, max_context, window_spans
from garden.tokenizers import BertTokenizer

QUESTION = "who went to the store?"
PASSAGE = "The man, né Müller, went to the 商店 store and bought 👍🏽 a gallon of ＡＢＣ milk. " * 3


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(material.english_vocabulary(), lowercase=True)


@pytest.mark.parametrize(("length", "stride"), [(32, 8), (32, 16), (24, 1), (17, 100), (384, 128)])
def test_windows_are_those_of_the_rust_library(tokenizer, length, stride):
    other = rust.Tokenizer.from_str(tokenizer.rust.to_str())
    size = length - 3 - len(tokenizer.ids([QUESTION])[0])
    other.enable_truncation(length, stride=max(0, size - stride), strategy="only_second")
    encoding = other.encode(QUESTION, PASSAGE)
    expected = [encoding, *encoding.overflowing]
    windows = cut(tokenizer.encode(QUESTION, PASSAGE), length, stride, 64)
    assert len(windows) == len(expected)
    for ours, theirs in zip(windows, expected, strict=True):
        passage = [i for i, sequence in enumerate(theirs.sequence_ids) if sequence == 1]
        assert ours.token_ids.tolist() == theirs.ids and ours.segment_ids.tolist() == theirs.type_ids
        assert ours.first == passage[0] and ours.span[1] - ours.span[0] == len(passage)
        assert ours.offsets.tolist() == [list(theirs.offsets[i]) for i in passage]


def test_every_token_counts_in_exactly_one_window(tokenizer):
    windows = cut(tokenizer.encode(QUESTION, PASSAGE), 20, 3, 64)
    counted = np.zeros(windows[-1].span[1], int)
    for window in windows:
        counted[slice(*window.span)] += window.most_context
    assert (counted == 1).all()


def test_context_is_largest_where_google_says():
    # The example in run_squad.py: of "to the store and bought" and "and bought a gallon of", the latter for "bought".
    spans = [(0, 5), (3, 8), (6, 11)]
    assert max_context(spans, 13)[7] == 2
    rng = np.random.default_rng(0)
    for _ in range(50):
        tokens, size, stride = (int(n) for n in rng.integers(1, 40, 3))
        spans = window_spans(tokens, size, stride)
        assert spans[0][0] == 0 and spans[-1][1] == tokens
        for token, found in enumerate(max_context(spans, tokens)):
            best, winner = None, None
            for i, (start, stop) in enumerate(spans):
                if start <= token < stop:
                    score = min(token - start, stop - 1 - token) + 0.01 * (stop - start)
                    if best is None or score > best:
                        best, winner = score, i
            assert found == winner


def test_a_question_leaves_the_passage_half_of_the_row(tokenizer):
    long = " ".join(["who"] * 500)
    for length, kept in ((11, 4), (128, 62), (384, 64)):
        windows = cut(tokenizer.encode(long, "a passage of six words here"), length, 128, 64)
        assert windows[0].first == kept + 2 and all(len(window.token_ids) <= length for window in windows)
    with pytest.raises(ValueError, match="sequence_length=4 leaves no room .* use at least 5"):
        cut(tokenizer.encode("who", "a"), 4, 128, 64)


@pytest.mark.parametrize("nothing", ["", " ", "\n\t", "\u200b"])
def test_nothing_to_read_is_refused(tokenizer, nothing):
    with pytest.raises(ValueError, match="the passage is empty"):
        cut(tokenizer.encode("who", nothing), 16, 4, 64)
    with pytest.raises(ValueError, match="the question is empty"):
        cut(tokenizer.encode(nothing, "a"), 16, 4, 64)


def test_answers_find_their_tokens(tokenizer):
    encoding = tokenizer.encode("q", "The Japanese, né Müller 商店👍🏽 (1895-1943).")
    passage = [i for i, sequence in enumerate(encoding.sequence_ids) if sequence == 1]
    text = "The Japanese, né Müller 商店👍🏽 (1895-1943)."
    offsets = np.array([encoding.offsets[i] for i in passage])

    def covered(answer):
        start = text.index(answer)
        first, last = covering_tokens(offsets, start, start + len(answer))
        return text[offsets[first, 0] : offsets[last, 1]]

    for exact in ("1895", "Müller", "商", "商店", "né Müller", "👍🏽", "The Japanese"):
        assert covered(exact) == exact
    assert covered("Japan") == "Japanese"  # a part of a token gets the whole, as in run_squad.py
    assert covered("Müll") == "Müller"
    assert covering_tokens(offsets, 3, 4) is None  # a blank


def test_answers_outside_a_window_are_its_first_token(tokenizer):
    windows = cut(tokenizer.encode(QUESTION, PASSAGE), 20, 5, 64)
    for window in windows:
        (start, stop), first = window.span, window.first
        assert window.positions((start, stop - 1)) == (first, first + stop - start - 1)
        assert window.positions((start, start)) == (first, first)
        assert window.positions((start, stop)) == window.positions((start - 1, start)) == (0, 0)
        assert window.positions(None) == (0, 0)


def logits_of(windows, seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(2, len(window.token_ids))).astype("float32") for window in windows]


def google(passage, windows, logits, n_best, null_threshold, max_answer_length):
    """The nested loops of write_predictions, with all starts and ends in place of the best few: (answer, n-best)."""
    found, null = [], min(start[0] + end[0] for start, end in logits)
    for window, (start, end) in zip(windows, logits, strict=True):
        count = len(window.offsets)
        for i in range(count):
            for j in range(count):
                if window.most_context[i] and i <= j and j - i + 1 <= max_answer_length:
                    text = passage[window.offsets[i, 0] : window.offsets[j, 1]]
                    found.append((float(start[window.first + i]) + float(end[window.first + j]), text))
    if null_threshold is not None:
        found.append((float(null), ""))
    best = {}
    for score, text in sorted(found, reverse=True, key=lambda pair: pair[0]):
        if len(best) < n_best:
            best.setdefault(text, score)
    if null_threshold is not None:
        best.setdefault("", float(null))
    total = sum(math.exp(score - max(best.values())) for score in best.values())
    n_best = [(text, math.exp(score - max(best.values())) / total) for text, score in best.items()]
    text = next(text for text in best if text)
    return "" if null_threshold is not None and null - best[text] > null_threshold else text, n_best


@pytest.mark.parametrize("null_threshold", [None, 0.0, -5.0, -100.0])
@pytest.mark.parametrize("max_answer_length", [1, 4, 30])
def test_answers_are_those_of_google(tokenizer, null_threshold, max_answer_length):
    for seed, length in enumerate((16, 21, 384)):
        windows = cut(tokenizer.encode(QUESTION, PASSAGE), length, 5, 64)
        logits = logits_of(windows, seed)
        answer = decode(PASSAGE, windows, logits, 20, null_threshold, max_answer_length)
        text, n_best = google(PASSAGE, windows, logits, 20, null_threshold, max_answer_length)
        assert answer.text == text and [candidate.text for candidate in answer.n_best] == [text for text, _ in n_best]
        assert np.allclose([c.probability for c in answer.n_best], [p for _, p in n_best], atol=1e-6)
        assert math.isclose(sum(c.probability for c in answer.n_best), 1, abs_tol=1e-6)
        scores = [candidate.score for candidate in answer.n_best]
        assert scores == sorted(scores, reverse=True)
        for candidate in (answer, *answer.n_best):
            assert PASSAGE[candidate.start : candidate.end] == candidate.text
        with_text = [candidate.score for candidate in answer.n_best if candidate.text]
        assert math.isclose(answer.null_odds, answer.null_score - with_text[0], abs_tol=1e-9)


def test_lists_of_any_length(tokenizer):
    windows = cut(tokenizer.encode("who", "Ada"), 16, 4, 64)
    assert len(windows) == 1 and windows[0].span == (0, 1)
    row = np.zeros((2, len(windows[0].token_ids)), "float32")
    answer = decode("Ada", windows, [row])
    assert (answer.text, answer.start, answer.end, answer.probability, len(answer.n_best)) == ("Ada", 0, 3, 1.0, 1)
    unsure = decode("Ada", windows, [row], n_best=1, null_threshold=1.0)
    assert unsure.text == "Ada" and {candidate.text for candidate in unsure.n_best} == {"Ada", ""}
    row[:, 0] = 3.0  # the first token says that there is no answer
    nothing = decode("Ada", windows, [row], n_best=1, null_threshold=1.0)
    assert nothing.text == "" and (nothing.start, nothing.end, nothing.null_odds) == (0, 0, 6.0)
    assert decode("Ada", windows, [row], null_threshold=7.0).text == "Ada"


@pytest.mark.parametrize(
    ("text", "span", "whole"),
    [
        ("the cafe\u0301 !", (4, 8), "cafe\u0301"),  # uncased tokenizers drop the accent, so that no token has it
        ("I ❤\ufe0f it", (2, 3), "❤\ufe0f"),
        ("e\u0301a", (1, 3), "e\u0301a"),
        ("a word ", (1, 7), "word"),
        ("  ", (0, 2), ""),
        ("商店", (0, 1), "商"),
    ],
)
def test_letters_keep_their_marks(text, span, whole):
    start, end = whole_characters(text, *span)
    assert text[start:end] == whole


def test_no_token_with_a_text_is_no_answer():
    blank = Window(np.zeros(3, "int32"), np.zeros(3, "int32"), 1, (0, 1), np.array([[0, 1]]), np.array([True]))
    assert decode(" a", [blank], [np.zeros((2, 3))]).text == ""
