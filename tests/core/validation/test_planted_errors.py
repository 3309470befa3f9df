"""The planted errors of the worked answers that validators find and miss, and why."""

from __future__ import annotations

from collections import Counter

import pytest

from core.run import Run
from core.validation import validate

# A number is looked for in the passages, not what it is said of: these stand there for something else, in
# these words; the last is no number.
ELSEWHERE = {
    "London was not reached before 1351.": "a statute of parliament in 1351",
    "Wait for the letter S and hold the right key for fifteen seconds.": "usually takes 15 seconds",
    "Anyone who has been at the wheel for more than 9 hours in one day has to stay overnight.": "flights of more than 9 hours",
    "Trains have been able to run from Moscow to the Pacific entirely within Russia since 1926.": "Until 1926 the town",
    "It runs from 0 to 10.": "about ten times more",
    "Voyager 1 had been launched on 20 August 1977.": "Voyager 2 was launched first, on 20 August 1977",
    "Nước biển lấn vào đất liền hàng trăm ki-lô-mét.": "",
}
# What NumericUnits is made to see, by kind of what was planted: claims, and those with a mark. Nothing else has
# a place in the text: citations are missing from whole answers, and every answer has ground.
SEEN = {
    "none": (162, 0),
    "number": (16, 12),  # but for the four above
    "date": (19, 16),  # but for the three above
    "name": (17, 0),
    "negated": (21, 0),  # the same numbers with the contrary said of them
    "overclaimed": (13, 0),
    "wrong_passage": (14, 0),  # the number is there, of something else
    "in_no_passage": (13, 6),  # those with a number: 43 years, 27 days, 1903, 1803, 2011 and five metres
    # Numbers that follow from two passages are in neither: 14 differences, such as "four years after". The
    # other claims have none, or one that the passages have, too, as "eight pounds" and "two years".
    "two_passages": (26, 14),
}
FOLLOWS = {
    "That allowance is eight pounds higher than it was under the policy of 2022.": "more than 8 pounds",
    # A bare number goes with any unit.
    "A commission certified that the disease was gone about two years after Maalin had fallen ill.": "two of the three",
}


@pytest.fixture(scope="module")
def checked():
    """Return for each claim its kind of error, its text, its passages, who marks it, and all verdicts."""
    run = Run.load("sample_data/worked_answers")
    texts, claims = run.passages, run.tables["planted_claims"]
    found = []
    for row in run.queries.itertuples():
        passages = list(texts.loc[texts.query_id == row.query_id, "text"])
        outcome = validate(row.question, row.answer, passages)
        verdicts = {verdict.validator: verdict for verdict in outcome.verdicts}
        for claim in claims[claims.query_id == row.query_id].itertuples():
            marked = {
                verdict.validator
                for verdict in outcome.failed
                if any(a < claim.end and b > claim.start for a, b in verdict.spans)
            }
            found.append((claim.planted, claim.text, passages, marked, verdicts))
    return found


def test_no_number_of_a_correct_claim_is_marked(checked):
    assert [text for kind, text, _, marked, _ in checked if kind == "none" and marked] == []


def test_numbers_and_dates_are_found_unless_they_stand_elsewhere(checked):
    missed = {
        text: passages
        for kind, text, passages, marked, _ in checked
        if kind in ("number", "date") and not marked
    }
    assert missed.keys() == ELSEWHERE.keys()
    for text, passages in missed.items():
        assert ELSEWHERE[text] in " ".join(" ".join(passages).split())
    kinds = Counter(kind for kind, *_ in checked)
    assert kinds["number"] + kinds["date"] - len(missed) == 28


def test_what_each_validator_finds_of_each_kind_of_error(checked):
    kinds = Counter(kind for kind, *_ in checked)
    marks = Counter((kind, validator) for kind, _, _, marked, _ in checked for validator in marked)
    assert {kind: (n, marks[kind, "NumericUnits"]) for kind, n in kinds.items()} == SEEN
    assert {validator for _, validator in marks} == {"NumericUnits"}


def test_a_number_that_follows_is_let_through_only_where_the_passages_have_it(checked):
    told = {text: (passages, marked) for kind, text, passages, marked, _ in checked if kind == "two_passages"}
    for text, words in FOLLOWS.items():
        passages, marked = told[text]
        assert not marked and words in " ".join(" ".join(passages).split())


def test_words_of_the_passages_let_every_worked_answer_through(checked):
    # Each has nine claims in ten from its passages, and none cites them.
    for *_, verdicts in checked:
        assert verdicts["EvidenceOverlap"].passed is True
        assert verdicts["ConfidenceValidator"].passed is True
        assert verdicts["CitationRequired"].passed is False
