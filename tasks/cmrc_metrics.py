"""Exact match and F1 for Chinese answers, as CMRC2018's official script counts them (Cui et al. 2018)."""

import re

from .squad_metrics import Rule

_PUNCTUATION = frozenset("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")

# How NLTK's word tokenizer, which the script calls, cuts what is not Chinese: (what is found, what stands instead).
_CUTS = (
    (re.compile(r"'(?!re|ve|ll|m|t|s|d|n)(?=\w\b)"), "' "),
    (re.compile(r"""([«‘„»;@#$%&?!\[\](){}<>"]|\.{2,}|'')"""), r" \1 "),
    (re.compile(r",(?!\d)"), " , "),
    (re.compile(r"(?<!\.)\.(?=[\])}>\"'» ]*$)"), " . "),
    (re.compile(r"(?<![' ])('s|'m|'d|'ll|'re|'ve|n't|')(?= |$)"), r" \1"),
)


def segments(text: str) -> list[str]:
    """Chinese characters one by one and the words between them, lower-cased, without the script's list of punctuation.

    Words are cut as NLTK cuts them, but for its list of English contractions in one word, such as "cannot", for ends of
    sentences inside a stretch of English, which take a trained model to find, for opening quotation marks, which NLTK
    tells from closing ones, and for a few runs of commas and apostrophes.

    >>> segments("约1,546年，在Berlin（德国）")
    ['约', '1,546', '年', '在', 'berlin', '德', '国']
    """
    spaced = "".join(
        f"\n{character}\n" if "\u4e00" <= character <= "\u9fa5" else character
        for character in text.lower().strip()
        if character not in _PUNCTUATION
    )
    return [word for stretch in spaced.split("\n") for word in _words(stretch)]


def cmrc_exact_match(prediction: str, answer: str) -> bool:
    """Whether the texts are equal in lower case and without the script's list of punctuation.

    >>> cmrc_exact_match("《泡泡战士》", "泡泡战士。")
    True
    """
    return _bare(prediction) == _bare(answer)


def cmrc_f1(prediction: str, answer: str) -> float:
    """Harmonic mean of the shares that the longest common run of segments has in both texts.

    Two texts without a segment score 1, so that "" is right for an unanswerable question, of which CMRC2018 has none.

    >>> round(cmrc_f1("在1546年出生", "1546年"), 3)  # two of five segments, and two of two
    0.571
    """
    predicted, right = segments(prediction), segments(answer)
    common = _longest_common_run(predicted, right)
    # precision = common / predicted and recall = common / right, put together
    return 2 * common / (len(predicted) + len(right)) if common else float(predicted == right == [])


CMRC = Rule(cmrc_exact_match, cmrc_f1)


def _words(stretch):
    for cut, instead in _CUTS:
        stretch = cut.sub(instead, stretch)
    return stretch.split()


def _bare(text):
    return "".join(character for character in text.lower().strip() if character not in _PUNCTUATION)


def _longest_common_run(first, second):
    longest, ending = 0, [0] * (len(second) + 1)
    for one in first:
        ending = [0] + [ending[i] + 1 if one == other else 0 for i, other in enumerate(second)]
        longest = max(longest, *ending)
    return longest
