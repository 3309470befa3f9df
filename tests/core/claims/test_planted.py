"""Planted errors found: counts, intervals and chance by hand."""

import numpy as np
import pandas as pd
import pytest

from core.claims.planted import planted_errors, wrong_verdict
from core.claims.step import ClaimsStep
from core.diagnosis import Diagnosis
from core.pipeline.steps import another_run, fill
from core.run import Run
from core.schema import PLANTED
from core.stats import wilson_interval

# What is planted, and the support of p1 and p2: two numbers of which one is found, one negation missed, a date
# that failed, a joint claim that is found, three correct ones of which one is flagged.
CLAIMS = (
    ("number", 0.1, 0.2),
    ("number", 0.9, 0.2),
    ("negated", 0.7, 0.6),
    ("date", None, 0.1),
    ("two_passages", 0.3, 0.4),
    ("none", 0.9, 0.9),
    ("none", 0.2, 0.1),
    ("none", 0.8, 0.1),
)


def composed():
    """Return a run of one composed answer."""
    texts = [f"This is statement {place}." for place in range(1, len(CLAIMS) + 1)]
    starts = np.cumsum([0, *(len(text) + 1 for text in texts[:-1])])
    planted = [
        {
            "query_id": "q", "claim_id": f"a{place}", "text": text, "start": start, "end": start + len(text),
            "planted": claim[0], "passages": ["p1"],
        }
        for place, (text, start, claim) in enumerate(zip(texts, starts, CLAIMS, strict=True), start=1)
    ]  # fmt: skip
    return Run.create(
        {"source": "composed"},
        queries=pd.DataFrame({"query_id": ["q"], "question": ["Which?"], "answer": [" ".join(texts)]}),
        passages=pd.DataFrame(
            {"query_id": "q", "passage_id": ["p1", "p2"], "text": ["One.", "Two."], "retrieval_rank": [1, 2]}
        ),
        planted_claims=pd.DataFrame(planted),
    )


def verified():
    """Return the run above, verified by hand."""
    ids = [f"a{place}" for place in range(1, len(CLAIMS) + 1)]
    claims = pd.DataFrame({"query_id": "q", "claim_id": ids, "text": ids, "relevance": "RELEVANT"})
    support = [
        {"query_id": "q", "claim_id": claim_id, "passage_id": passage_id, "probability": p, "judge": "hand"}
        for claim_id, (_, *row) in zip(ids, CLAIMS, strict=True)
        for passage_id, p in zip(("p1", "p2"), row, strict=True)
    ]
    pair = {"query_id": "q", "claim_id": "a5", "passage_id": "p1", "second_passage_id": "p2"}
    joint = pd.DataFrame([{**pair, "probability": 0.8}])
    return composed().derive(claims=claims, support=pd.DataFrame(support), joint_support=joint)


@pytest.fixture(scope="module")
def found():
    return planted_errors(Diagnosis(verified())["claims"])


def test_counts_by_hand(found):
    assert (found.judge, found.n_verified, found.n_flagged) == ("hand", 7, 2)
    table = found.to_frame().set_index("planted")
    assert list(table.index) == ["errors", *PLANTED[1:], "none"]
    counted = table[["n", "n_unscored", "n_found"]].apply(tuple, axis=1)
    assert counted["errors"] == (3, 1, 1)
    assert counted["number"] == (2, 0, 1) and counted["negated"] == (1, 0, 0)
    assert counted["date"] == (0, 1, 0) and counted["name"] == (0, 0, 0)
    assert counted["two_passages"] == (1, 0, 1)  # found means supported
    assert counted["none"] == (3, 0, 1)  # a false alarm
    wrong = table["n_questions"]
    assert set(wrong.index[wrong == 1]) == {"errors", "number", "negated", "none"} and wrong.max() == 1
    assert np.isnan(table.at["date", "share"]) and np.isnan(table.at["date", "chance"])
    assert (table["judge"] == "hand").all()


def test_intervals_and_chance_by_hand(found):
    errors = found.row("errors")
    assert (errors["low"], errors["high"]) == wilson_interval(1 / 3, 3)
    # 2 of 7 flags fall on 3 of 7 claims: none with 4/7 · 3/6 = 2/7, two with 3/7 · 2/6 = 1/7.
    assert errors["chance"] == pytest.approx(6 / 7)
    assert (errors["chance_low"], errors["chance_high"]) == (0, 2)
    assert found.row("two_passages")["chance"] == pytest.approx(5 / 7)  # of seven claims five are supported


def test_the_threshold_decides_what_is_found():
    strict = planted_errors(Diagnosis(verified(), {"support": 0.95})["claims"])
    assert strict.row("errors")["n_found"] == 3 and strict.row("none")["n_found"] == 3
    assert strict.row("errors")["chance"] == pytest.approx(3)  # whatever flags everything finds everything


def test_a_run_without_planted_claims_has_nothing_to_find():
    bare = verified().derive(planted_claims=pd.DataFrame())
    assert planted_errors(Diagnosis(bare)["claims"]) is None
    assert planted_errors(Diagnosis(composed())["claims"]) is None  # nobody has looked at its claims yet


@pytest.mark.parametrize(
    ("planted", "wrong"),
    [
        ("errors", "SUPPORTED"),
        ("number", "SUPPORTED"),
        ("none", "NOT_SUPPORTED"),
        ("two_passages", "NOT_SUPPORTED"),
    ],
)
def test_the_wrong_verdict_lets_an_error_pass_or_doubts_what_is_right(planted, wrong):
    assert wrong_verdict(planted) == wrong


@pytest.mark.parametrize("decompose", ["auto", "rules"])
def test_any_verifier_checks_the_composed_claims(decompose):
    run = composed()
    by_rules = fill(
        run, ClaimsStep(decompose=decompose, own=lambda claims, passages: np.ones((len(claims), 2)))
    )
    assert by_rules["claims"]["text"].tolist() == run["planted_claims"]["text"].tolist()
    assert by_rules["claims"]["start"].tolist() == run["planted_claims"]["start"].tolist()
    assert by_rules.manifest["steps"]["claims"]["decomposition"] == "composed"
    assert planted_errors(Diagnosis(by_rules)["claims"]).row("errors")["n_found"] == 0


def test_verified_again_by_another_verifier_the_claims_and_their_errors_stay():
    def none(claims, passages):
        return np.zeros((len(claims), len(passages)))

    first = fill(composed(), ClaimsStep(own=lambda claims, passages: np.ones((len(claims), 2)), repeats=2))
    step = ClaimsStep(own=none)
    again = fill(another_run(first, [step], {}), step)
    assert again.mark == "composed" and again.run_id != first.run_id
    assert planted_errors(Diagnosis(again)["claims"]).row("errors")["n_found"] == 4
