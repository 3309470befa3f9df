"""Reference against answer: what is read off and what a verifier is asked."""

from functools import partial

import numpy as np
import pytest

from core.claims.questions import ANSWER, REFERENCE
from core.claims.types import Claim
from core.claims.verification import compare, entailment_label, is_value, premise

compare_answer, compare_reference = partial(compare, ANSWER), partial(compare, REFERENCE)
Q = "Which canal opened first?"
FULL = "The Suez Canal opened first."
WRONG = "The Panama Canal opened first."


def claims(*texts):
    return [Claim(text) for text in texts]


def test_a_value_and_a_statement():
    assert is_value("Suez Canal", Q) and is_value(" Suez\n Canal ", Q)
    assert not is_value(FULL, Q) and not is_value("  ", Q)
    assert premise("Suez Canal", Q) == f"{Q} Suez Canal"
    assert premise(FULL, Q) == f"{Q}\n{FULL}"


@pytest.mark.parametrize("literal", [True, False])
@pytest.mark.parametrize(
    ("answer", "references"),
    [
        ("Suez Canal", ["Suez Canal"]),
        ("the Suez Canal", ["Suez", "Suez Canal"]),
        ("Suez", ["The Panama Canal", "Suez Canal"]),  # what the reference says holds the answer
        ("Suez Canal", [FULL]),
    ],
)
def test_a_value_that_the_reference_has_is_entailed(answer, references, literal):
    found = compare_answer(Q, answer, claims(f"{Q} {answer}"), references, literal)
    assert (found.settled, found.asked) == ({0: True}, {})


def test_another_value_is_for_a_verifier_that_understands():
    said = claims(f"{Q} Panama Canal")
    found = compare_answer(Q, "Panama Canal", said, ["Suez Canal"], literal=True)
    assert (found.settled, found.asked) == ({0: False}, {})
    found = compare_answer(Q, "Panama Canal", said, ["Suez Canal", FULL], literal=False)
    assert (found.settled, found.asked) == ({}, {(f"{Q} Suez Canal", f"{Q}\n{FULL}"): (0,)})


def test_statements_against_a_value():
    said = [*claims(FULL, "It was dug by hand."), Claim("Hello!", relevant=False)]
    answer = " ".join(claim.text for claim in said)
    shown = (f"{Q} Suez Canal",)
    found = compare_answer(Q, answer, said, ["Suez Canal"], literal=True)
    assert (found.settled, found.asked) == ({1: False}, {shown: (0,)})
    found = compare_answer(Q, answer, said, ["Suez Canal"], literal=False)
    assert (found.settled, found.asked) == ({}, {shown: (0, 1)})


def test_statements_against_several_references():
    said = claims(FULL, WRONG)
    found = compare_answer(
        Q, f"{FULL} {WRONG}", said, ["Suez Canal", "Suez was the first one."], literal=True
    )
    value, full = f"{Q} Suez Canal", f"{Q}\nSuez was the first one."
    assert (found.settled, found.asked) == ({}, {(value, full): (0,), (full,): (1,)})


@pytest.mark.parametrize("literal", [True, False])
def test_a_reference_value_in_any_spelling_is_in_the_answer(literal):
    found = compare_reference(Q, FULL, claims(f"{Q} Canal of Suez"), ["Canal of Suez", "Suez Canal"], literal)
    assert (found.settled, found.asked) == ({0: True}, {})


def test_a_reference_value_that_the_answer_has_not():
    said = claims(f"{Q} Suez Canal")
    assert compare_reference(Q, WRONG, said, ["Suez Canal"], literal=True).settled == {0: False}
    found = compare_reference(Q, WRONG, said, ["Suez Canal"], literal=False)
    assert (found.settled, found.asked) == ({}, {(f"{Q}\n{WRONG}",): (0,)})
    # Half of it is not the whole.
    assert compare_reference(Q, "Suez", said, ["Suez Canal"], literal=True).settled == {0: False}


def test_a_reference_statement_against_a_value():
    said = claims(FULL, "It was dug by hand.")
    reference = f"{FULL} It was dug by hand."
    found = compare_reference(Q, "Suez Canal", said, [reference], literal=True)
    assert (found.settled, found.asked) == ({1: False}, {(f"{Q} Suez Canal",): (0,)})
    found = compare_reference(Q, "Panama Canal", said, [reference], literal=True)
    assert (found.settled, found.asked) == ({0: False, 1: False}, {})
    found = compare_reference(Q, WRONG, said, [reference], literal=True)
    assert found.asked == {(f"{Q}\n{WRONG}",): (0, 1)}


@pytest.mark.parametrize(
    ("probabilities", "label"),
    [
        ([0.5], "Entailment"),
        ([0.49], "Neutral"),
        ([np.nan], None),
        ([0.2, np.nan, 0.6], "Entailment"),
        ([0.2, np.nan], None),
        ([0.2, 0.1], "Neutral"),
    ],
)
def test_the_best_text_decides(probabilities, label):
    assert entailment_label(np.array(probabilities)) == label
