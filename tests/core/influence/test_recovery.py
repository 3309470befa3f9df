"""What was planted against what was found: shares and errors worked out by hand."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest
from scipy import stats

from core.analyses import RECOVERED
from core.influence.measures import MEASURES
from core.influence.recovery import recover, recovery
from core.run import Run

# Planted case, planted ρ, ρ, reason, redundant, parametric.
QUESTIONS = [
    (None, 0.5, 0.7, None, False, False),
    (None, 0.3, 0.2, None, False, False),
    (None, -0.5, math.nan, "inert", False, False),
    (None, math.nan, math.nan, "incomplete", False, False),
    ("empty", math.nan, math.nan, "empty_baseline", False, False),
    ("empty", math.nan, math.nan, "all_equal", False, False),
    ("inert", math.nan, math.nan, "inert", False, False),
    ("redundant", math.nan, math.nan, "inert", True, False),
    ("redundant", math.nan, math.nan, "inert", False, True),
    ("parametric", math.nan, math.nan, "inert", False, True),
    ("parametric", math.nan, math.nan, "all_equal", False, False),
]
# Planted influence, above the noise floor.
PASSAGES = [
    (0.4, True), (0.001, False), (0.3, None), (0.0, True), (0.0, False), (0.0, False), (math.nan, True),
]  # fmt: skip


def planted(questions=QUESTIONS, passages=PASSAGES):
    """A run with what was planted in it, and the parts that count of an analysis of it."""
    case, planted_rho, rho, reason, redundant, parametric = map(list, zip(*questions, strict=True))
    ids = [f"q{i}" for i in range(len(questions))]
    run = Run.create(
        {"source": "simulation"},
        queries=pd.DataFrame(
            {"query_id": ids, "question": "?", "planted_case": case, "planted_rho": planted_rho}
        ),
        passages=pd.DataFrame(
            {
                "query_id": "q0",
                "passage_id": [f"p{i}" for i in range(len(passages))],
                "retrieval_rank": range(1, len(passages) + 1),
                "planted_influence": [influence for influence, _ in passages],
            }
        ),
    )
    found = SimpleNamespace(
        queries=pd.DataFrame(
            {"rho": rho, "reason": pd.Series(reason, dtype="str"), "redundant": redundant,
             "parametric": parametric}
        ),
        passages=pd.DataFrame({"above_noise": pd.array([above for _, above in passages], dtype="boolean")}),
    )  # fmt: skip
    return run, found


def share(hits, n):
    interval = stats.binomtest(hits, n).proportion_ci(method="wilson")
    return [hits / n, interval.low, interval.high]


def test_every_check_by_hand():
    found = recovery(*planted())
    assert [*found.columns] == [*RECOVERED]
    recognised = "Share of questions planted as {} that are recognised as such."
    texts = [
        ("Bias of ρ", 0.0, 2, "Mean of measured minus planted ρ; 0 is unbiased.", "queries.planted_rho:..,rho:.."),
        ("Mean absolute error of ρ", 0.0, 2, "Mean distance of measured from planted ρ.",
         "queries.planted_rho:..,rho:.."),
        ("Power", 1.0, 2, "Share of planted influential passages above the noise floor.",
         "passages.planted_influence:0.001..,above_noise:False"),
        ("False alarms", 0.0, 3, "Share of passages without planted influence above it.",
         "passages.planted_influence:0,above_noise:True"),
        *[(f"Recognised: {case}", 1.0, n, recognised.format(case), f"queries.planted_case:{case}")
          for case, n in (("empty", 2), ("inert", 1), ("redundant", 2), ("parametric", 2))],
        ("Wrongly undefined", 0.0, 4, "Share of ordinary questions without a ρ.", ""),
    ]  # fmt: skip
    kept = found[["check", "planted", "n", "meaning", "cases"]]
    assert [*kept.itertuples(index=False, name=None)] == texts
    # ρ is 0.2 too large and 0.1 too small.
    low, high = stats.t.interval(0.95, 1, loc=0.05, scale=stats.sem([0.2, -0.1]))
    values = [
        [0.05, low, high], [0.15, math.nan, math.nan], share(1, 2), share(1, 3),
        share(1, 2), share(1, 1), share(1, 2), share(1, 2), share(1, 4),
    ]  # fmt: skip
    for row, expected in zip(found[["recovered", "low", "high"]].to_numpy(), values, strict=True):
        assert row.tolist() == pytest.approx(expected, nan_ok=True)


def test_where_nothing_can_be_compared_there_is_no_value():
    found = recovery(*planted([(None, math.nan, 0.5, None, False, False)], [(math.nan, None)]))
    found = found.set_index("check")
    assert found["n"].to_list() == [0] * 8 + [1]
    assert found.drop("Wrongly undefined")[["recovered", "low", "high"]].isna().all(axis=None)
    assert found.loc["Wrongly undefined", "recovered"] == 0


@pytest.mark.parametrize("measure", MEASURES)
def test_only_what_one_removal_does_was_planted(measure):
    class Stand(dict):
        run, analysis = planted()

    Stand.analysis.measure = MEASURES[measure]
    found = recover(Stand(influence=Stand.analysis))
    assert len(found) == (9 if measure in ("rouge", "logprob") else 0) and [*found.columns] == [*RECOVERED]
