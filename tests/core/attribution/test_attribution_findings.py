"""What attribution says of a run: from analyses made by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from core.attribution.analysis import READABLE, UNREADABLE, UNTOLD, AttributionAnalysis, analyse
from core.attribution.diagnostic import numbers
from core.attribution.findings import findings
from core.run import Run

EMPTY = analyse(
    Run.create({"source": "upload"}, queries=pd.DataFrame({"query_id": ["q"], "question": ["?"]}))
)


def analysis(n=20, pairs=(), reading=READABLE, **columns) -> AttributionAnalysis:
    q = EMPTY.queries.head(0).reindex(range(n))
    q = q.assign(query_id=[f"q{i}" for i in range(n)], n_either=0, n_both=0, n_calls=9, n_near_duplicates=0)
    lds = 0.7 if reading == READABLE else 0.1
    readable = {READABLE: True, UNREADABLE: False, UNTOLD: None}[reading]
    q = q.assign(lds=lds + 0.01 * (np.arange(n) % 2), concordance=0.8, reading=reading, readable=readable)
    rows = [
        {"query_id": f"q{i}", "first_slot": 1, "second_slot": 3, "p_value": 0.001 * i, "either": either}
        for i, either in enumerate(pairs)
    ]
    frame = pd.DataFrame(rows) if rows else EMPTY.pairs
    return replace(EMPTY, queries=q.assign(**columns), pairs=frame)


def found(one):
    return {finding.name: finding for finding in findings(one)}


def test_an_unmeasured_run_says_nothing():
    assert findings(EMPTY) == ()


def test_bars_that_can_be_read_say_so_with_n_and_chance():
    one = found(analysis())["readable"]
    assert (one.tone, one.n, one.of, one.expected_by_chance) == ("good", 20, 20, 0.5)
    assert "80 % of cases (50 % by chance; 20 questions)" in one.sentence and one.query_ids == ()


def test_bars_that_predict_nothing_are_not_to_be_read():
    one = found(analysis(reading=UNREADABLE))["readable"]
    assert (one.tone, one.n) == ("unclear", 20) and one.advice.startswith("Do not read these bars.")


def test_too_few_subsets_are_no_verdict_on_the_scores():
    """Eight subsets of each answer cannot tell of one answer, but the answers together do."""
    one = found(analysis(reading=UNTOLD))["readable"]
    assert one.tone == "good" and "In 20 there are too few subsets to tell" in one.sentence
    assert "cannot be read" not in one.sentence


@pytest.mark.parametrize(
    ("pairs", "p_values"), [((True,) * 8, (2.857e-6, 1.0)), ((False,) * 8, (1.0, 2.857e-6))]
)
def test_pairs_are_tested_against_one_answer_in_twenty(pairs, p_values):
    """Eight or more of 20 answers, each by mistake with 5 %: 2.659e-6 for 8, 0.187e-6 for 9, 0.011e-6 for 10."""
    both = found(analysis(pairs=pairs))
    for name, expected in zip(("either", "both"), p_values, strict=True):
        assert (
            both[name].p_value == pytest.approx(expected, rel=1e-3) and both[name].expected_by_chance == 1.0
        )
    assert {both["either"].n, both["both"].n} == {0, 8}
    leading = both["either" if pairs[0] else "both"]
    assert leading.query_ids[0] == "q0" and "such as 1 and 3" in leading.sentence


def test_near_duplicates_are_counted():
    one = found(analysis(n_near_duplicates=[2] * 5 + [0] * 15))["near_duplicates"]
    assert (one.n, one.of, len(one.query_ids)) == (5, 20, 5)


def placed(shares, *slots, swap=0.1, effects=()):
    one = analysis(slot_share=shares, passage_share=0.4, slot_p_value=0.5, swap=swap)
    rows = [
        {"query_id": f"q{i}", "slot": slot, "slot_effect": effect}
        for i, first in enumerate(effects or [0.1, -0.1] * 10)
        for slot, effect in ((1, first), (2, -first))
    ]
    one = replace(one, passages=pd.DataFrame(rows))
    return found(replace(one, slots=pd.DataFrame(slots, columns=["slot", "mean", "low", "high", "n"])))[
        "slot_share"
    ]


def test_places_are_named_where_their_interval_says_so():
    shares = 0.2 + 0.01 * (np.arange(20) % 3)
    one = placed(shares, (1, 0.5, 0.2, 0.8, 20), (2, -0.5, -1.1, 0.1, 20))
    assert one.tone == "bad" and one.p_value < 1e-9 and one.fix == "ranking:improve"
    assert (
        "most at place 1 (0.50, 95 % interval 0.20 to 0.80)" in one.sentence and "least" not in one.sentence
    )
    assert one.otherwise is not None and one.otherwise.tone == "unclear"


def test_places_that_matter_less_than_a_swap_ask_for_nothing():
    """The same small effect in every answer: the shares tell nothing, the means do."""
    effects = [0.3 + 0.05 * (-1) ** i for i in range(20)]
    ends = ((1, 0.3, 0.28, 0.32, 20), (2, -0.3, -0.32, -0.28, 20))
    one = placed(np.tile([0.1, -0.1], 10), *ends, swap=0.6, effects=effects)
    # Of one column Hotelling's test is Student's: t = 0.3 / (0.0513 / sqrt(20)) = 26.2 with 19 degrees.
    assert one.p_value < 1e-14 and one.tone == "good" and one.advice == "" and one.fix == ""
    assert "less than a swap of two neighbours" in one.sentence and "most at place 1" in one.sentence


def test_shares_around_0_tell_nothing():
    one = placed(np.tile([0.1, -0.1], 10), (1, 0.5, -0.2, 1.2, 20), (2, -0.5, -1.2, 0.2, 20))
    assert (one.tone, round(one.p_value, 9)) == ("unclear", 1) and "0 % of the variance" in one.sentence


def test_headlines_have_their_n_and_ranges():
    shown = {one.key: one for one in numbers(analysis())}
    assert shown["mean_concordance"].n == 20 and shown["mean_concordance"].chance == 0.5
    assert shown["n_readable_attributions"].text == "20 of 20"
    unknown = {one.key: one for one in numbers(EMPTY)}
    assert unknown["mean_lds"].text == "—" == unknown["n_readable_attributions"].text
