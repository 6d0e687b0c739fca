"""Entities in labels: conlleval's rules, and the numbers of seqeval's own examples."""

import pytest

from garden.tasks.entities import Score, bio_labels, entity_scores, spans


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        # IOB2, and the example in seqeval's docstring
        ("B-PER I-PER O B-LOC", [("PER", 0, 2), ("LOC", 3, 4)]),
        ("B-PER B-PER I-PER", [("PER", 0, 1), ("PER", 1, 3)]),
        # IOB1: an entity starts with I, and B only divides neighbours
        ("I-PER I-PER O I-LOC", [("PER", 0, 2), ("LOC", 3, 4)]),
        ("I-PER B-PER I-PER", [("PER", 0, 1), ("PER", 1, 3)]),
        # I of another type starts an entity
        ("B-PER I-LOC I-LOC", [("PER", 0, 1), ("LOC", 1, 3)]),
        ("I-PER I-LOC I-PER", [("PER", 0, 1), ("LOC", 1, 2), ("PER", 2, 3)]),
        # IOBES: E closes, S stands alone, and what is not closed ends all the same
        ("B-PER I-PER E-PER S-LOC S-LOC", [("PER", 0, 3), ("LOC", 3, 4), ("LOC", 4, 5)]),
        ("B-PER E-PER I-PER E-PER", [("PER", 0, 2), ("PER", 2, 4)]),
        ("E-PER E-PER", [("PER", 0, 1), ("PER", 1, 2)]),
        ("S-PER I-PER", [("PER", 0, 1), ("PER", 1, 2)]),
        ("B-PER S-PER", [("PER", 0, 1), ("PER", 1, 2)]),
        ("B-PER O E-PER", [("PER", 0, 1), ("PER", 2, 3)]),
        # BILOU and BMES
        ("B-PER I-PER L-PER U-LOC", [("PER", 0, 3), ("LOC", 3, 4)]),
        ("B-LOC M-LOC E-LOC S-PER", [("LOC", 0, 3), ("PER", 3, 4)]),
        # a type with a hyphen, and none
        ("B-ORG-CORP I-ORG-CORP", [("ORG-CORP", 0, 2)]),
        ("B I O", [("_", 0, 2)]),
        ("O O", []),
        ("", []),
    ],
)
def test_spans_follow_conlleval(labels, expected):
    assert spans(labels.split()) == expected


def test_bio_labels_are_the_inverse():
    entities = [("PER", 0, 2), ("PER", 2, 3), ("LOC", 4, 6)]
    assert bio_labels(entities, 7) == ["B-PER", "I-PER", "B-PER", "O", "B-LOC", "I-LOC", "O"]
    assert spans(bio_labels(entities, 7)) == entities
    for wrong in ([("PER", 1, 1)], [("PER", 6, 8)], [("PER", -1, 1)], [("PER", 0, 2), ("LOC", 1, 3)]):
        with pytest.raises(ValueError, match="is empty, beyond 7 words or over another span"):
            bio_labels(wrong, 7)


@pytest.mark.parametrize("label", ["PER", "X-PER", "b-PER", "", "-PER", "o"])
def test_labels_of_another_form_are_refused(label):
    with pytest.raises(ValueError, match="is no label of an entity"):
        spans(["O", label])


def rows(*texts):
    return [text.split() for text in texts]


def test_scores_of_seqevals_own_example():
    # Its README: precision, recall and f1 are 0.50; MISC 0.00 of 1, PER 1.00 of 1, the macro average 0.50 of 2.
    true = rows("O O O B-MISC I-MISC I-MISC O", "B-PER I-PER O")
    predicted = rows("O O B-MISC I-MISC I-MISC I-MISC O", "B-PER I-PER O")
    scores = entity_scores(true, predicted)
    assert scores.micro == scores.macro == Score(0.5, 0.5, 0.5, 2)
    assert scores.types == {"MISC": Score(0.0, 0.0, 0.0, 1), "PER": Score(1.0, 1.0, 1.0, 1)}


def test_default_mode_accepts_what_strict_mode_does_not():
    # The example by which seqeval explains its modes: 1.00 by default, 0.00 in strict IOB2.
    assert entity_scores(rows("B-NP I-NP O"), rows("I-NP I-NP O")).micro.f1 == 1.0


def test_scores_by_hand():
    # True: PER 0-2, LOC 3-4, LOC 5-6 | ORG 0-1. Predicted: PER 0-2, LOC 3-5, LOC 5-6, PER 6-7 | nothing.
    true = rows("B-PER I-PER O B-LOC O B-LOC O", "B-ORG O")
    predicted = rows("B-PER I-PER O B-LOC I-LOC B-LOC B-PER", "O O")
    scores = entity_scores(true, predicted)
    assert scores.micro == Score(2 / 4, 2 / 4, 2 / 4, 4)
    assert scores.types["PER"] == Score(1 / 2, 1.0, 2 / 3, 1)
    assert scores.types["LOC"] == Score(1 / 2, 1 / 2, 1 / 2, 2)
    assert scores.types["ORG"] == Score(0.0, 0.0, 0.0, 1)
    assert scores.macro == pytest.approx(((1 / 2 + 1 / 2) / 3, (1 + 1 / 2) / 3, (2 / 3 + 1 / 2) / 3, 4))


def test_the_same_span_in_another_text_is_another_entity():
    assert entity_scores(rows("B-PER", "O"), rows("O", "B-PER")).micro == Score(0.0, 0.0, 0.0, 1)


def test_nothing_to_find_scores_zero():
    assert entity_scores(rows("O O"), rows("O O")) == (Score(0.0, 0.0, 0.0, 0), Score(0.0, 0.0, 0.0, 0), {})
    assert entity_scores([], []).micro.support == 0


def test_rows_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="2 true rows of labels but 1 predicted"):
        entity_scores(rows("O", "O"), rows("O"))
    with pytest.raises(ValueError, match="Row 1 has 2 true labels but 1 predicted"):
        entity_scores(rows("O", "O O"), rows("O", "O"))
