"""What is said of a run: sentences, clauses and what must hold for them."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from core.diagnosis import Diagnosis
from core.influence import analyse, summary
from core.influence.definitions import MODES
from core.influence.diagnostic import INFLUENCE
from core.influence.findings import _WORDINGS, _modes, _order_of_use, _visible, findings
from core.influence.measures import MEASURES
from core.influence.modes import AgainstPlacebo, mode_counts
from core.influence.ndcg import OrderOfUse
from core.run import Run
from core.severity import SEVERITIES
from core.socket import BAD, GOOD, UNCLEAR
from core.text.display import p_text
from tests.core.influence.test_analysis import make

STRAIGHT = [0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
UPSIDE_DOWN = STRAIGHT[::-1]


def found(run, *options):
    return {finding.name: finding for finding in findings(analyse(run, *options))}


def modes(run):
    return analyse(run).modes.set_index("name")


def shuffled(n, seed=0, influence=STRAIGHT):
    rng = np.random.default_rng(seed)
    return [rng.permutation(influence).tolist() for _ in range(n)]


def test_chances_of_rank_modes_by_hand():
    q = analyse(make([STRAIGHT, [1, 0, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0], STRAIGHT[:5]])).queries
    # Six without ties: three retrieved first, three used last; they miss each other in 1 of 20 orders.
    assert q["ignored_top_hit_by_chance"].tolist()[0] == pytest.approx(0.95)
    # One of six: the others tie, below only one; k = 7: three tie at the end, below four others.
    assert q["ignored_top_hit_by_chance"].tolist()[1:3] == pytest.approx([0, 1 - 4 / 35])
    # One of six is used first: it is among the last three in half of all orders; four tied at 2.5 of seven.
    assert q["buried_evidence_by_chance"].tolist()[1:3] == pytest.approx([0.5, 1 - 1 / 35])
    assert q[["ignored_top_hit_by_chance", "buried_evidence_by_chance"]].iloc[3].isna().all()


def test_chances_of_rank_modes_are_those_of_dealing_at_random():
    rng = np.random.default_rng(1)
    influence = rng.integers(0, 4, 9) / 4
    ranks = [1.0, 2.5, 2.5, 4, 5, 6, 8, 8, 8]
    q = analyse(make([influence.tolist()], ranks=ranks)).queries.iloc[0]
    dealt = [rng.permutation(influence).tolist() for _ in range(4_000)]
    many = analyse(make(dealt, ranks=ranks * len(dealt))).queries
    for mode in ("ignored_top_hit", "buried_evidence", "inverted"):
        assert many[mode].mean() == pytest.approx(q[f"{mode}_by_chance"], abs=0.03)


def test_inverted_is_below_the_lower_five_percent_of_its_own_orders():
    # Of 24 orders of four, ρ is −1 in one and −0.8 in three more: 4 % and 17 %.
    q = analyse(make([[0.1, 0.2, 0.3, 0.4], [0.2, 0.1, 0.3, 0.4], [0.1, 0.2, 0.3], [0] * 9 + [1]])).queries
    assert q["rho"].round(2).tolist() == [-1, -0.8, -1, -0.52]
    assert q["inverted"].tolist() == [True, False, False, False]
    # No order of three is as rare as that, and none of ten with a single influential passage.
    assert q["inverted_by_chance"].tolist() == pytest.approx([1 / 24, 1 / 24, np.nan, 0], nan_ok=True)


def test_counts_against_chance():
    table = modes(make([UPSIDE_DOWN] * 8 + [STRAIGHT] * 2 + [[0] * 6]))
    row = table.loc["inverted"]
    p = 21 / 720  # orders of six with ρ below −0.771, the 5 % point
    assert (row["n"], row["of"], row["expected"]) == (8, 10, pytest.approx(10 * p))
    assert row["p_value"] == pytest.approx(stats.binom.sf(7, 10, row["expected"] / 10))
    wilson = stats.binomtest(8, 10).proportion_ci(method="wilson")
    assert (row["low"], row["high"]) == pytest.approx((wilson.low, wilson.high))
    assert (row["expected_low"], row["expected_high"]) == (
        0,
        stats.binom.ppf(0.975, 10, row["expected"] / 10),
    )
    assert table.loc["ignored_top_hit", "p_value"] > 0.5
    assert table.loc["inert", ["expected", "p_value"]].isna().all() and table.loc["inert", "n"] == 1


def test_modes_that_cannot_be_tested_have_no_p_value():
    # Five passages: of the modes that depend on the order only inverted applies.
    row = modes(make([STRAIGHT[:5][::-1]] * 4)).loc["inverted"]
    assert row["expected"] == pytest.approx(4 * 5 / 120)  # ρ is −1 in one order of five, −0.9 in four more
    assert row["p_value"] == pytest.approx(stats.binom.sf(3, 4, row["expected"] / 4))
    assert modes(make([[0.5, 0.1]]))["p_value"].isna().all()


def test_a_mode_that_chance_explains_is_no_finding():
    run = make(shuffled(60))
    counts = summary(analyse(run))
    assert counts["failure_modes"]["ignored_top_hit"] > 50
    told = {one.name for one in Diagnosis(run).findings()}
    assert not {"ignored_top_hit", "buried_evidence", "inverted"} & told


def test_a_mode_beyond_chance_is_one_with_all_that_belongs_to_it():
    worst = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    finding = found(make([[0.2, 0.1, 0.3, 0.4, 0.5, 0.6], worst, worst, *[STRAIGHT] * 10]))["inverted"]
    # Surely 8 % and more, which is a small loss.
    assert (finding.n, finding.of) == (3, 13) and finding.severity == "low"
    assert finding.query_ids == ("q1", "q2", "q0")  # the lowest ρ first
    assert finding.expected_by_chance == pytest.approx(13 * 21 / 720) and finding.p_value <= 0.05


def test_sentences():
    run = make([UPSIDE_DOWN] * 5)
    finding = found(run)["inverted"]
    assert finding.sentence == (
        "In 5 of 5 questions the passages are used in the reverse of the retriever's order; chance alone gives 0."
    )
    assert finding.advice == MODES["inverted"].advice
    assert finding.interval == pytest.approx(tuple(stats.binomtest(5, 5).proportion_ci(method="wilson")))
    # Wilson's interval of 5 of 5 begins at 1 / (1 + 1.96² / 5) = 57 %; 21 of 720 orders are 3 %.
    assert finding.clause == (
        "in 5 of 5 questions the passages are used in the reverse of the retriever's order "
        "(57–100 %; 3 % by chance)"
    )
    assert (finding.topic, finding.reads) == ("order", "with an inverted order")


def stand_in(excess, *differences):
    """An analysis with an order of use, and by how much each question is above chance."""
    n = len(differences)
    return SimpleNamespace(
        order_of_use=OrderOfUse(n, 0.75, 0.6, 0.9, 0.7, excess, -0.1, 0.6, 0.04),
        queries=pd.DataFrame(
            {
                "query_id": [f"q{i}" for i in range(n)],
                "influence_ndcg": 0.5,
                "ndcg_by_chance": [0.5 - one for one in differences],
                "answer_status": "answered",
                "n_repeats": 1,
            }
        ),
        measure=MEASURES["rouge"],
    )


@pytest.mark.parametrize(
    ("excess", "barely"), [(0.01, ", but not by much"), (0.33, ", but not by much"), (1 / 3, ""), (0.5, "")]
)
def test_use_that_follows_retrieval_in_words(excess, barely):
    (finding,) = _order_of_use(stand_in(excess, 0.25, -0.25, 0.5))
    values = "mean nDCG by influence 0.75, 0.70 by chance"
    assert finding.sentence == f"What the model uses tends to be retrieved first: {values}."
    assert finding.clause == (
        f"what the model uses is retrieved earlier than chance would put it{barely} "
        "(mean nDCG 0.75 against 0.70 by chance, 3 questions)"
    )
    assert (finding.tone, finding.fix, finding.topic, finding.label) == (GOOD, "", "order", "Order of use")
    assert finding.query_ids == ("q1", "q0", "q2")  # those furthest below chance first
    assert (finding.n, finding.of, finding.p_value) == (3, 3, 0.04)
    unclear = finding.otherwise
    assert unclear.sentence == f"The order of use is indistinguishable from a random one: {values}."
    assert (unclear.tone, unclear.fix) == (UNCLEAR, "passages:fewer")


def test_use_that_runs_against_retrieval_in_words():
    # Two of six questions are below chance: surely 10 %, which is no large part. Those at chance are not.
    (finding,) = _order_of_use(stand_in(-0.2, -0.5, -0.25, 0, 0, 0, 0))
    assert finding.sentence == (
        "What the model uses tends to be retrieved last: mean nDCG by influence 0.75, 0.70 by chance."
    )
    assert finding.clause == (
        "what the model uses is retrieved later than chance would put it "
        "(mean nDCG 0.75 against 0.70 by chance, 6 questions)"
    )
    assert (finding.tone, finding.severity, finding.fix) == (BAD, "low", "")
    assert finding.advice == MODES["inverted"].advice
    (finding,) = _order_of_use(stand_in(-0.2, -0.5, -0.25, -0.1, -0.1, -0.1, 0))
    assert finding.severity == "medium"


def test_what_is_just_what_chance_gives_is_not_said_to_follow_retrieval():
    (finding,) = _order_of_use(stand_in(0.0, 0.0))
    assert finding.tone != GOOD
    assert finding.otherwise.clause == (
        "the order in which the model uses the passages is indistinguishable from a random one "
        "(mean nDCG 0.75 against 0.70 by chance, 1 question); too few questions to tell"
    )
    assert _order_of_use(stand_in(math.nan, 0.0)) == []


@pytest.mark.parametrize(
    ("measure", "status", "n_repeats", "further"),
    [
        ("rouge", ["answered"] * 2, [0, 0], "; repeat the unchanged calls to see how much of the change is noise"),
        ("rouge", ["answered"] * 2, [0, 1], ""),
        ("logprob", ["answered"] * 2, [0, 0], ""),
        ("shapley", ["answered"] * 7 + ["empty", "error"], [0] * 9,
         "; take a model that answers (no answer to 2 of 9 questions)"),
        ("shapley", ["answered"] * 8 + ["abstained", "error"], [0] * 10,
         "; take a model that answers (no answer to 2 of 10 questions)"),
        ("shapley", ["answered"] * 9 + ["abstained", "error"], [0] * 11, ""),
    ],
)  # fmt: skip
def test_what_would_make_an_order_visible(measure, status, n_repeats, further):
    queries = pd.DataFrame({"answer_status": status, "n_repeats": n_repeats})
    assert _visible(SimpleNamespace(queries=queries, measure=MEASURES[measure])) == (
        "To make an order visible, give the model fewer or shorter passages, so that each matters more"
        f"{further}."
    )


def counted(name, n, of, redundant=0, placebo=None, **tested):
    """An analysis in which one mode was found in the first of the questions."""
    row = {"n": 0, "of": of, "low": math.nan, "high": math.nan, "expected": math.nan, "p_value": math.nan}
    rows = dict.fromkeys(MODES, row) | {name: row | {"n": n, "low": 0.3, "high": 0.7} | tested}
    # Each shows it more than the one before.
    queries = pd.DataFrame(
        [(f"q{i}", -0.1 * i, 3 + i, 0.8 + 0.01 * i) for i in range(of)],
        columns=["query_id", "rho", "k", "dominance"],
    )
    queries = queries.assign(**dict.fromkeys(MODES, False))
    queries[name] = [i < n for i in range(of)]
    modes = pd.DataFrame.from_dict(rows, orient="index").rename_axis("name").reset_index()
    against = AgainstPlacebo(*(placebo or (0, 0, 0, 0, math.nan)))
    return SimpleNamespace(
        modes=modes, queries=queries, testable={"redundant": redundant}, against_placebo=against
    )


@pytest.mark.parametrize(
    ("name", "sentence", "reads", "severity", "fix"),
    [
        ("harmful_passage", "leaving out one passage makes an incorrect answer correct",
         "with a harmful passage", "high", "distractors:remove"),
        ("inverted", "the passages are used in the reverse of the retriever's order",
         "with an inverted order", "medium", ""),
        ("buried_evidence", "the model relies on a passage from the end of the retrieved list",
         "with buried evidence", "medium", "retrieval:improve"),
        ("ignored_top_hit", "a passage the retriever put in its first three is hardly used",
         "with an ignored top hit", "medium", "retrieval:improve"),
        ("parametric", "the answer is the same without any passage",
         "answered the same without passages", "medium", ""),
        ("redundant", "no single removal changes the answer, but leaving out all passages does",
         "that need passages, but no single one", "medium", ""),
        # Without closed-book answers nothing else says what is behind inert ones: then they are a loss.
        ("inert", "no single removal changes the answer", "where no single passage matters", "medium", ""),
        ("over_reliance", "one passage carries at least 80 % of the influence",
         "where one passage carries the answer", "low", ""),
    ],
)  # fmt: skip
def test_every_mode_in_words(name, sentence, reads, severity, fix):
    (finding,) = _modes(counted(name, 2, 4))
    assert finding.sentence == f"In 2 of 4 questions {sentence}."
    assert finding.clause == ("" if name == "over_reliance" else f"in 2 of 4 questions {sentence} (30–70 %)")
    assert (finding.name, finding.n, finding.of, finding.interval) == (name, 2, 4, (0.3, 0.7))
    assert (finding.reads, finding.severity, finding.fix) == (reads, severity, fix)
    assert finding.query_ids == ("q1", "q0")
    assert finding.advice == MODES[name].advice
    assert finding.expected_by_chance is finding.p_value is None and finding.topic == ""
    (finding,) = _modes(counted(name, 1, 1))
    assert finding.sentence == f"In 1 of 1 question {sentence}."


def test_where_redundant_ones_are_known_inert_is_a_note():
    (finding,) = _modes(counted("inert", 2, 4, redundant=4))
    assert (finding.clause, finding.severity) == ("", "low")


def test_a_mode_that_chance_can_give_is_tested_even_where_it_is_not_found():
    (finding,) = _modes(counted("inverted", 0, 4, expected=0.6, p_value=1.0))
    told = "n 0 of 4 questions the passages are used in the reverse of the retriever's order"
    assert finding.sentence == f"I{told}; chance alone gives 1."
    assert finding.clause == f"i{told} (30–70 %; 15 % by chance)"
    assert (finding.expected_by_chance, finding.p_value, finding.topic) == (0.6, 1.0, "order")
    assert _modes(counted("inverted", 0, 4, expected=0.0, p_value=1.0)) == []
    assert _modes(counted("inert", 0, 4)) == []


def test_a_harmful_passage_is_tested_against_the_placebo_where_that_was_tried():
    (finding,) = _modes(counted("harmful_passage", 2, 4, placebo=(3, 1, 9, 3, 0.031)))
    told, tries = (
        "n 2 of 4 questions leaving out one passage makes an incorrect answer correct",
        "33 % of 9 tries do, and 33 % of 3 with the placebo",
    )
    assert finding.sentence == f"I{told}: {tries}." and finding.p_value == 0.031
    assert finding.clause == f"i{told} (30–70 %; {tries})"
    assert (finding.tone, finding.fix, finding.topic) == (BAD, "distractors:remove", "")
    assert (finding.advice, finding.expected_by_chance) == (
        "Without this passage the answer is correct: read it, and filter it or rank it lower.", None,
    )  # fmt: skip
    # What it says where the p-value, corrected for all tests of the run, is not small.
    unclear = finding.otherwise
    assert (unclear.tone, unclear.fix, unclear.clause, unclear.query_ids) == (UNCLEAR, "", "", ("q1", "q0"))
    # No word of harm that is not shown.
    assert (unclear.label, unclear.reads) == (
        "Correct without one passage",
        "that are correct without one passage",
    )
    assert (finding.label, finding.reads) == ("", "with a harmful passage")
    assert (unclear.sentence, unclear.p_value) == (finding.sentence, 0.031)
    assert unclear.advice == (
        "These data cannot tell it from what any change of the prompt does: filter no passage for this alone."
    )
    # Tested as well where there is none, so that the number of tests does not depend on it; then nothing is said.
    (finding,) = _modes(counted("harmful_passage", 0, 4, placebo=(3, 1, 9, 0, 1.0)))
    assert (finding.n, finding.p_value, finding.otherwise) == (0, 1.0, None)
    assert _modes(counted("harmful_passage", 0, 4)) == []


def test_modes_without_chance_are_findings_when_seen():
    run = make(
        [[0.9, 0.05, 0.05], [0.85, 0.1, 0.05], [0.3, 0.2, 0.1]],
    )
    seen = found(run)
    assert seen["over_reliance"].query_ids == ("q0", "q1")  # the largest dominance first
    assert seen["over_reliance"].severity == "low"
    assert seen["over_reliance"].expected_by_chance is None and seen["over_reliance"].p_value is None
    assert "harmful_passage" not in seen


def test_of_answers_that_no_passage_changes_those_with_most_passages_come_first():
    run = make(
        [[0] * 3, [0] * 4, [0] * 3, [0] * 4],
        query={
            "answer": ["It is Paris"] * 4,
            "answer_status": ["answered"] * 4,
            "closed_book_answer": ["It is Paris"] * 2 + ["Nobody knows"] * 2,
        },
    )
    seen = found(run)
    assert seen["parametric"].query_ids == ("q1", "q0") and seen["redundant"].query_ids == ("q3", "q2")
    assert seen["inert"].query_ids == ("q1", "q3", "q0", "q2")


def test_harmful_passages_come_first_of_all():
    run = Run.create(
        {"source": "upload"},
        queries=pd.DataFrame(
            {"query_id": ["a"], "question": ["?"], "answer": ["wrong one"], "reference_answers": [["right"]]}
        ),
        passages=pd.DataFrame(
            {"query_id": ["a"] * 3, "passage_id": ["1", "2", "3"], "retrieval_rank": [1, 2, 3],
             "ablated_answer": ["wrong one", "right", "wrong two"]}
        ),
    )  # fmt: skip
    # One of one: surely more than 21 %, which makes it of medium weight.
    assert found(run)["harmful_passage"].severity == "medium"
    assert found(run)["harmful_passage"].sentence == (
        "In 1 of 1 question leaving out one passage makes an incorrect answer correct."
    )


def test_use_that_follows_retrieval_is_said():
    finding = found(make([STRAIGHT, *[[0.9, 0.3, 0.2, 0, 0.1, 0]] * 9]))["influence_ndcg"]
    assert (finding.tone, finding.otherwise.tone) == (GOOD, UNCLEAR) and finding.p_value == pytest.approx(
        2e-4
    )
    assert finding.sentence.startswith(
        "What the model uses tends to be retrieved first: mean nDCG by influence 1.00"
    )
    assert (finding.n, finding.of, len(finding.query_ids)) == (10, 10, 10)


def test_use_that_runs_against_retrieval_and_use_at_random():
    against = found(make([UPSIDE_DOWN] * 10))["influence_ndcg"]
    # In all ten questions use comes later than by chance: surely in more than a quarter.
    assert (against.tone, against.severity) == (BAD, "medium") and "retrieved last" in against.sentence
    assert against.p_value <= 0.001
    run = make(shuffled(40))
    at_random = next(one for one in Diagnosis(run).findings() if one.name == "influence_ndcg")
    assert at_random.sentence.startswith("The order of use is indistinguishable from a random one: mean nDCG")
    assert at_random.p_value > 0.05 and (at_random.tone, at_random.severity) == (UNCLEAR, "low")
    # The card, the figure and the finding show one p-value.
    card = next(one for one in Diagnosis(run).numbers("influence") if one.key == "mean_influence_ndcg")
    assert card.note == f"{p_text(at_random.p_value)}, two-sided"
    assert "influence_ndcg" not in found(make([[0.4] * 6] * 3))


def test_common_reasons_for_no_rho_or_label():
    few = make([[0.3, 0.2]] * 2 + [[0.3, 0.2, 0.1]] * 3)
    finding = found(few)["too_few_passages"]
    assert (finding.n, finding.of, finding.query_ids) == (2, 5, ("q0", "q1"))
    assert finding.sentence == (
        "2 of 5 questions have no ρ: fewer than three passages: a rank correlation says nothing."
    )
    assert "too_few_passages" not in found(make([[0.3, 0.2]] + [[0.3, 0.2, 0.1]] * 3))
    assert "too_few_passages" not in found(make([[0.3, 0.2]] * 2 + [[0.3, 0.2, 0.1]] * 9))
    assert (finding.reads, finding.clause, finding.tone) == ("without a ρ", "", UNCLEAR)
    assert finding.interval == pytest.approx(tuple(stats.binomtest(2, 5).proportion_ci(method="wilson")))
    unmeasured = found(make([[np.nan] * 3] * 2))["no_ablations"]
    assert unmeasured.sentence == (
        "2 of 2 questions have no ρ: the passages were never left out one by one: no influence is known."
    )
    assert unmeasured.clause == (
        "it is not known which passages the model uses: "
        "in all 2 questions not every passage was left out once"
    )
    assert unmeasured.advice == (
        "Leave each passage out once: load the questions on the Live page and run the influence step."
    )
    tied = make([[1] + [0] * 9] * 2)
    assert found(tied)["ties_cannot_reach"].sentence.startswith("2 of 2 questions have no label: with these")
    assert found(tied)["ties_cannot_reach"].reads == "without a label"
    assert "ties_cannot_reach" not in found(tied, 0.7, True)


def test_of_tied_passages_none_is_ignored():
    """With k = 6 and one influential passage every question was flagged: "30 of 30; 30.0 by chance"."""
    table = modes(make([[0.9, 0, 0, 0, 0, 0]] * 15 + [[0, 0, 0, 0, 0, 0.9]] * 15))
    assert (table.loc["ignored_top_hit", "n"], table.loc["ignored_top_hit", "expected"]) == (0, 0)
    # Two tie below three others: they are below k − 3 others, and one of them was retrieved second.
    flagged = analyse(make([[0.9, 0.1, 0.5, 0.4, 0.1, 0.3]])).passages["ignored_top_hit"]
    assert flagged.tolist() == [False, True, False, False, False, False]


def test_what_was_not_tried_is_not_zero():
    """The worked answers, whose passages were never left out, had "0 of 32 harmful" and six empty figures."""
    run = Run.load("sample_data/worked_answers")
    assert "No passage was left out" in INFLUENCE.lacks(run)
    assert analyse(run).testable["harmful_passage"] == 0
    # Scores alone, without answers, do not tell whether a passage is harmful either.
    scored = make(
        [STRAIGHT] * 2,
        query={"answer": ["no"] * 2, "answer_status": ["answered"] * 2, "reference_answers": [["yes"]] * 2},
    )
    assert INFLUENCE.lacks(scored) is None and analyse(scored).testable["harmful_passage"] == 0


def test_the_count_above_noise_has_its_chance_and_the_repeats_that_it_takes():
    repeats = pd.DataFrame({"query_id": "q0", "repeat": [1, 2, 3], "answer": ["Paris", "Rome", "Oslo"]})
    run = make(
        [[0, 0, 0, 0]],
        query={"answer": ["Paris"], "answer_status": ["answered"]},
        passage={"ablated_answer": ["Paris", "Rome", "Oslo", "Bonn"]},
        repeats=repeats,
    )
    card = next(one for one in Diagnosis(run).numbers("influence") if one.key == "n_passages_above_noise")
    # The floor is 1, as large as an influence can be; 4 / (3 + 1) passages without effect are above a floor.
    assert (card.text, card.chance) == ("0 of 4", 1.0)
    assert (
        card.context == "1.0 by chance; without any effect, R = 3; it takes 19 repeats to keep them below 5 %"
    )


def test_inert_questions_are_one_finding():
    run = make([[0, 0, 0]] * 3)
    assert [one.name for one in findings(analyse(run))] == ["inert"]


def test_reported_verdicts_that_change():
    run = make([[0, 0, 0], [0.3, 0.2, 0.1], [0.1, 0.2, 0.3]], query={"reported_rho": [1.0, 1.0, 1.0]})
    finding = found(run)["reported_verdicts"]
    assert (
        finding.sentence
        == "2 of 3 reported verdicts change when recomputed: 1 inert, 1 ρ that its scores do not give."
    )
    assert (finding.n, finding.of, finding.query_ids) == (2, 3, ("q0", "q2"))
    assert finding.clause == "2 of 3 verdicts in the file change when recomputed"
    # Two of three: surely 21 %, which is a small loss.
    assert finding.severity == "low" and finding.interval[0] == pytest.approx(0.2077, abs=1e-4)
    assert "reported_verdicts" not in found(make([[0.3, 0.2, 0.1]], query={"reported_rho": [1.0]}))


def test_every_mode_has_its_wording_and_every_finding_its_definition():
    # Missed evidence is a finding of retrieval: no passage has to be left out to see it.
    assert {*_WORDINGS, "missed_evidence"} == set(MODES)
    run = Run.load("sample_data/recorded_run")
    for finding in findings(analyse(run)):
        assert finding.name in {definition.name for definition in INFLUENCE.definitions}
        assert finding.severity in SEVERITIES and finding.sentence.endswith(".")


def test_moving_a_setting_measures_nothing_again(monkeypatch):
    diagnosis = Diagnosis(make([STRAIGHT, [1] + [0] * 9]))
    first = diagnosis["influence"]
    monkeypatch.setattr("core.influence.analysis.passage_frame", None)  # must not be called again
    other = diagnosis.at({"influence_threshold": 0.5, "as_published": True})["influence"]
    assert other.queries["label"].tolist() == ["Aligned", "Aligned"]
    assert first.queries["label"].tolist() == ["Aligned", "Undefined"]
    assert other.passages.drop(columns="label").equals(first.passages.drop(columns="label"))


def test_mode_counts_of_a_part_of_a_run():
    analysis = analyse(make([UPSIDE_DOWN] * 3 + shuffled(5)))
    part = mode_counts(analysis.queries.head(3), {**analysis.testable, "inverted": 3}).set_index("name")
    assert (part.loc["inverted", "n"], part.loc["inverted", "of"]) == (3, 3)
