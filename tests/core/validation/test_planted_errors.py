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


@pytest.fixture(scope="module")
def checked():
    """Return for each claim its kind of error, its text, its passages and whether a number in it was marked."""
    run = Run.load("sample_data/worked_answers")
    texts, claims = run.passages, run.tables["planted_claims"]
    found = []
    for row in run.queries.itertuples():
        passages = list(texts.loc[texts.query_id == row.query_id, "text"])
        outcome = validate(row.question, row.answer, passages)
        verdicts = {verdict.validator: verdict for verdict in outcome.verdicts}
        for claim in claims[claims.query_id == row.query_id].itertuples():
            marked = any(a < claim.end and b > claim.start for a, b in verdicts["NumericUnits"].spans)
            found.append((claim.planted, claim.text, passages, marked, verdicts))
    return found


def test_no_number_of_a_correct_claim_is_marked(checked):
    assert [text for kind, text, _, marked, _ in checked if kind == "none" and marked] == []
    assert Counter(kind for kind, *_ in checked)["none"] > 150


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


def test_other_errors_are_not_for_numbers_to_tell(checked):
    blind = ("wrong_passage", "name", "negated", "overclaimed")
    assert not any(marked for kind, _, _, marked, _ in checked if kind in blind)


def test_words_of_the_passages_let_every_worked_answer_through(checked):
    # Each has nine claims in ten from its passages, and none cites them.
    for *_, verdicts in checked:
        assert verdicts["EvidenceOverlap"].passed is True
        assert verdicts["ConfidenceValidator"].passed is True
        assert verdicts["CitationRequired"].passed is False
