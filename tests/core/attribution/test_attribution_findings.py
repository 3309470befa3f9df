"""What attribution says of a run: from analyses made by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from core.attribution.analysis import READABLE, UNREADABLE, UNTOLD, AttributionAnalysis, analyse
from core.attribution.diagnostic import ATTRIBUTION, numbers
from core.attribution.findings import findings
from core.run import Run
from core.socket import QuestionColumn

EMPTY = analyse(
    Run.create({"source": "upload"}, queries=pd.DataFrame({"query_id": ["q"], "question": ["?"]}))
)


def analysis(n=20, pairs=(), reading=READABLE, **columns) -> AttributionAnalysis:
    q = EMPTY.queries.head(0).reindex(range(n))
    q = q.assign(query_id=[f"q{i}" for i in range(n)], n_either=0, n_both=0, n_calls=9, n_near_duplicates=0)
    readings = [reading] * n if isinstance(reading, str) else reading
    lds = np.array([0.7 if one == READABLE else 0.1 for one in readings]) + 0.01 * (np.arange(n) % 2)
    verdict = {READABLE: True, UNREADABLE: False, UNTOLD: None}
    readable = [verdict[one] for one in readings]
    q = q.assign(lds=lds, concordance=0.8, reading=readings, readable=readable)
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
    assert one.sentence == (
        "The scores predict what leaving passages out does: of two removals they tell the worse one in 80 % of "
        "cases (50 % by chance; 20 questions)."
    )
    assert one.query_ids == ()


def test_bars_that_predict_nothing_are_not_to_be_read():
    one = found(analysis(reading=UNREADABLE))["readable"]
    assert (one.tone, one.n) == ("unclear", 20) and one.advice.startswith("Do not read these bars.")


def test_too_few_subsets_are_no_verdict_on_the_scores():
    """Eight subsets of each answer cannot tell of one answer, but the answers together do."""
    one = found(analysis(reading=UNTOLD))["readable"]
    assert one.tone == "good" and "In 20 there are too few subsets to tell" in one.sentence
    assert "cannot be read" not in one.sentence


def test_some_bars_can_be_read_only_where_all_answers_together_predict():
    """Of four answers one is not to be read: whether the others are depends on the mean LDS."""
    readings = [READABLE, READABLE, UNREADABLE, UNTOLD]
    # Mean 0.7, deviation 0.141: above 0. Mean 0.05, deviation 0.83: not above 0.
    clear = found(analysis(4, lds=[0.9, 0.7, 0.6, 0.6], reading=readings))["readable"]
    assert (clear.tone, clear.n, clear.of, clear.query_ids) == ("good", 2, 4, ("q2", "q3"))
    assert clear.sentence.endswith(
        "(50 % by chance; 4 questions). In 1 there are too few subsets to tell it of the single answer. "
        "In 1 do not read the bars."
    )
    unclear = found(analysis(4, lds=[0.9, 0.6, -0.9, -0.4], reading=readings))["readable"]
    assert (unclear.tone, unclear.n, unclear.of, unclear.query_ids) == ("unclear", 2, 4, ("q2", "q3"))
    assert unclear.clause == "in 2 of 4 questions the bars of influence cannot be read"
    assert unclear.sentence == (
        "In 2 of 4 questions the bars of influence cannot be read: that they predict removals cannot be told "
        "from chance."
    )


def test_where_each_bar_can_be_read_the_mean_need_not_tell():
    """Two values, 0.1 and 0.9: their mean is not told from 0, but each answer has its own verdict."""
    one = found(analysis(2, lds=[0.1, 0.9]))["readable"]
    assert (one.tone, one.n, one.of) == ("good", 2, 2)
    # Half of the answers, and not more, may be unreadable.
    half = found(analysis(2, lds=[0.5, 0.51], reading=[READABLE, UNREADABLE]))["readable"]
    assert (half.tone, half.n, half.of) == ("good", 1, 2)


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
    what = {
        "either": "two passages hold the same evidence (either is enough)",
        "both": "two passages are needed together",
    }
    said = {
        name: "40 % of 20 questions" if one is leading else "none of 20 questions"
        for name, one in both.items()
        if name in what
    }
    first = ", such as 1 and 3 in the first of them"
    for name, part in said.items():
        assert both[name].sentence == (
            f"In {part} {what[name]}{first * (both[name] is leading)}; chance alone gives at most 1.0."
        )
    assert leading.query_ids == tuple(f"q{i}" for i in range(8))
    assert both["either"].clause == (
        f"in {said['either']} {what['either']}, so that leaving out one shows no influence"
    )
    assert both["both"].clause == ""


def test_near_duplicates_are_counted():
    one = found(analysis(n_near_duplicates=[2] * 5 + [0] * 15))["near_duplicates"]
    assert (one.n, one.of, one.query_ids) == (5, 20, ("q0", "q1", "q2", "q3", "q4"))
    assert one.sentence == "In 25 % of 20 questions the prompt has near-duplicate passages."
    assert "near_duplicates" not in found(analysis())
    assert found(analysis(n_near_duplicates=[1] + [0] * 19))["near_duplicates"].n == 1
    # Questions of which nothing was measured do not count.
    measured = found(analysis(n_near_duplicates=[2] * 5 + [0] * 15, n_calls=[9] * 10 + [None] * 10))
    assert (measured["near_duplicates"].n, measured["near_duplicates"].of) == (5, 10)


def placed(shares, *slots, swap=0.1, effects=(), passage_share=0.4):
    n = len(shares)
    one = analysis(n, slot_share=shares, passage_share=passage_share, slot_p_value=0.5, swap=swap)
    rows = [
        {"query_id": f"q{i}", "slot": slot, "slot_effect": effect}
        for i, first in enumerate(effects or ([0.1, -0.1] * n)[:n])
        for slot, effect in ((1, first), (2, -first))
    ]
    one = replace(one, passages=pd.DataFrame(rows))
    return found(replace(one, slots=pd.DataFrame(slots, columns=["slot", "mean", "low", "high", "n"]))).get(
        "slot_share"
    )


def test_places_are_named_where_their_interval_says_so():
    shares = 0.2 + 0.01 * (np.arange(20) % 3)
    one = placed(shares, (1, 0.5, 0.2, 0.8, 20), (2, -0.5, -1.1, 0.1, 20))
    assert one.tone == "bad" and one.p_value < 1e-9 and one.fix == "ranking:improve"
    assert one.clause == (
        "the place in the prompt matters: a passage counts most at place 1 (0.50, 95 % interval 0.20 to 0.80)"
    )
    # The mean share is 0.2 + 0.01 (7 + 2 * 6) / 20.
    said = (
        "21 % of the variance of the answer's score depends on the place in the prompt and 40 % on the "
        "passage, over 20 questions."
    )
    assert one.sentence == f"T{one.clause[1:]}. {said}"
    assert one.otherwise is not None and one.otherwise.tone == "unclear"
    assert one.otherwise.sentence == (
        f"That the place in the prompt matters cannot be told from chance: {said}"
    )


def test_places_that_matter_less_than_a_swap_ask_for_nothing():
    """The same small effect in every answer: the shares tell nothing, the means do."""
    effects = [0.3 + 0.05 * (-1) ** i for i in range(20)]
    ends = ((1, 0.3, 0.28, 0.32, 20), (2, -0.3, -0.32, -0.28, 20))
    one = placed(np.tile([0.1, -0.1], 10), *ends, swap=0.6, effects=effects)
    # Of one column Hotelling's test is Student's: t = 0.3 / (0.0513 / sqrt(20)) = 26.2 with 19 degrees.
    assert one.p_value < 1e-14 and one.tone == "good" and one.advice == "" and one.fix == ""
    assert one.sentence == (
        "The place in the prompt matters, but less than a swap of two neighbours, which changes the score by 0.60 "
        "ROUGE-L F1: a passage counts most at place 1 (0.30, 95 % interval 0.28 to 0.32) and least at place 2 "
        "(−0.30, 95 % interval −0.32 to −0.28). 0 % of the variance of the answer's score depends on the place in "
        "the prompt and 40 % on the passage, over 20 questions."
    )


def test_shares_around_0_tell_nothing():
    ends = ((1, 0.5, -0.2, 1.2, 20), (2, -0.5, -1.2, 0.2, 20))
    one = placed(np.tile([0.1, -0.1], 10), *ends, passage_share=-0.2)
    assert (one.tone, round(one.p_value, 9)) == ("unclear", 1)
    # A share below chance is none.
    assert one.sentence == (
        "That the place in the prompt matters cannot be told from chance: 0 % of the variance of the answer's "
        "score depends on the place in the prompt and 0 % on the passage, over 20 questions."
    )


def test_places_are_told_from_two_questions_on():
    """Student's t of 0.1 and 0.3 is 2 with one degree, p = 1 - 2 arctan(2) / pi; twice, for the second test."""
    ends = ((1, 0.5, -0.2, 1.2, 2), (2, -0.5, -1.2, 0.2, 2))
    one = placed([0.1, 0.3], *ends)
    assert (one.n, one.of, one.tone) == (2, 2, "bad")
    assert one.p_value == pytest.approx(2 * (1 - 2 * np.arctan(2) / np.pi))
    assert one.clause == "the place in the prompt matters"  # no place by itself
    assert placed([0.1], *ends) is None and placed([0.1, 0.3]) is None


def test_places_count_from_a_swap_on_and_where_their_interval_leaves_0():
    """As much as a swap is not less; an interval that ends at 0 names no place."""
    shares, ends = [0.1, 0.3], ((1, 0.5, 0.0, 1.0, 2), (2, -0.5, -1.0, 0.0, 2))
    one = placed(shares, *ends, swap=0.5)
    assert one.tone == "bad" and one.clause == "the place in the prompt matters"
    assert placed(shares, *ends, swap=0.51).tone == "good"
    # Two equal shares have no test of their own, and effects of 0.1 and -0.1 none that tells: p = 1.
    assert placed([0.2, 0.2], *ends).p_value == 1
    # Shares that are 0 in the mean say nothing.
    assert placed([-0.2, 0.2], *ends).tone == "unclear"


def test_headlines_have_their_n_and_ranges():
    shown = {one.key: one for one in numbers(analysis())}
    assert shown["mean_concordance"].n == 20 and shown["mean_concordance"].chance == 0.5
    assert shown["n_readable_attributions"].text == "20 of 20"
    unknown = {one.key: one for one in numbers(EMPTY)}
    assert unknown["mean_lds"].text == "—" == unknown["n_readable_attributions"].text


def test_every_headline_by_hand():
    """Of two values a and b the 95 % interval is their mean with 12.7062 |a - b| / 2 on both sides."""
    q = analysis(
        3, lds=[-0.5, 0.5, None], readable=[True, False, None], concordance=[0.2, 0.8, None],
        ceiling=[0.9, 0.8, None], drop_1=[3.0, 1.0, None], drop_1_random=[1.0, 0.5, None],
        n_either=[2, 0, None], n_both=[1, 0, None], passage_share=[0.2, 0.6, None],
        slot_share=[0.1, -0.3, None], swap=[0.5, 1.5, None], n_calls=[9, 7, None],
    ).queries  # fmt: skip
    told = [("q0", "c0", "p0", True), ("q0", "c0", "p1", True), ("q0", "c1", "p0", False), ("q1", "c0", "p0", None)]  # fmt: skip
    claims = pd.DataFrame(told, columns=["query_id", "claim_id", "passage_id", "disagrees"])
    shown = {one.key: one for one in numbers(replace(EMPTY, queries=q, claims=claims))}
    means = {
        "mean_lds": ("LDS", 0.0, (-1, 1), "lds", 0.0, "card"),
        "mean_concordance": ("Removals told apart", 0.5, (0, 1), "concordance", 0.5, "card"),
        "mean_lds_ceiling": ("Ceiling of the LDS", 0.85, (0.2147, 1), "ceiling", None, "row"),
        "mean_top_drop": ("Lost without the first passage (ROUGE-L F1)", 2.0, (-10.7062, 14.7062), "top_drop", 0.75, "row"),
        "mean_passage_share": ("Share of the passages", 0.4, (-2.1412, 1), "passage_share", 0.0, "row"),
        "mean_slot_share": ("Share of the place", -0.1, (-2.6412, 1), "slot_share", 0.0, "row"),
        "mean_swap": ("Swap of neighbours (ROUGE-L F1)", 1.0, (0, 7.3531), "swap", None, "row"),
    }  # fmt: skip
    for key, (title, mean, interval, define, chance, place) in means.items():
        one = shown[key]
        assert (one.title, one.define, one.chance, one.place, one.n) == (title, define, chance, place, 2), key
        assert one.value == pytest.approx(mean) and one.interval == pytest.approx(interval, abs=1e-4), key
    counts = {  # half of the readable ones by 0.025 of 2, pairs by 0.05 of 2
        "n_readable_attributions": (
            "Bars can be read",
            "readable",
            "queries.readable:True",
            "card",
            0.05,
            "",
        ),
        "n_either_enough": ("Either is enough", "either", "pairs.either:True", "row", 0.1, "at most"),
        "n_both_needed": ("Needs both", "both", "pairs.either:False", "row", 0.1, "at most"),
        "n_claims_disagree": ("Claims: influence against support", "claim_disagreement", "", "row", None, ""),
    }
    for key, wanted in counts.items():
        one = shown[key]
        assert (one.title, one.define, one.cases, one.place, one.chance, one.note) == wanted, key
        assert one.text == "1 of 2" and one.noun == ("claim" if "claims" in key else "question"), key
    assert shown["attribution_by"].value == "rouge"
    calls = shown["n_attribution_calls"]
    assert (calls.title, calls.value, calls.place) == ("Prompts measured", 16, "setup")
    assert shown.keys() == {*means, *counts, "attribution_by", "n_attribution_calls"}


def test_questions_with_pairs_are_counted_once():
    shown = {one.key: one for one in numbers(analysis(4, n_either=[2, 0, 0, None], n_both=[1, 3, 0, None]))}
    assert shown["n_either_enough"].text == "1 of 3" and shown["n_both_needed"].text == "2 of 3"


def test_headlines_of_nothing_have_no_chance():
    for one in numbers(EMPTY):
        assert (one.chance, one.interval, one.note) == (None, None, ""), one.key
        assert one.value in (None, 0, "rouge"), one.key


def test_columns_of_a_question():
    assert ATTRIBUTION.columns == (
        QuestionColumn("lds", "Faithfulness", "{:.2f}", (-1.0, 1.0), "better"),
        QuestionColumn("concordance", "Removals told apart", "{:.2f}", (0.0, 1.0), is_secondary=True),
        QuestionColumn("readable", "Bars can be read", "bool", None, is_secondary=True),
    )
