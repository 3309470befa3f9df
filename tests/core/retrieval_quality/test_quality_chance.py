"""What random orders of the same passages give, against every order of them."""

import re
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from core.retrieval_quality.diagnostic import RETRIEVAL_QUALITY, findings, numbers
from core.retrieval_quality.metrics import hit_at_k, ndcg_at_k, recall_at_k, reciprocal_rank
from core.socket import BAD, GOOD, UNCLEAR
from tests.core.retrieval_quality.test_quality import make_run, one, quality, row

CASES = [
    (2, [True, False, False, True]),
    (3, [False, True, False, False, False]),
    (1, [True]),
    (2, [False, False, False]),
    (4, [True, True, False, True]),
]


@pytest.mark.parametrize(("n_gold", "marks"), CASES)
@pytest.mark.parametrize("k", [1, 2, 4])
def test_chance_is_the_mean_over_all_orders(n_gold, marks, k):
    orders = list(permutations(marks))
    q = one(n_gold, marks, ks=(k,))
    if k > len(marks):
        assert np.isnan(q[f"hit_at_{k}_by_chance"])
        return
    for name, values in (
        (f"hit_at_{k}", [hit_at_k(order, k) for order in orders]),
        (f"recall_at_{k}", [recall_at_k(order, k, n_gold) for order in orders]),
        (f"ndcg_at_{k}", [ndcg_at_k(order, k, n_gold) for order in orders]),
        ("reciprocal_rank", [reciprocal_rank(order) for order in orders]),
    ):
        assert q[f"{name}_by_chance"] == pytest.approx(np.mean(values)), name


@pytest.mark.parametrize("influences", [[0.4, 0.3, 0.2, 0.1], [0.4, 0.4, 0.2, 0.0], [0.4, 0.4, 0.4, 0.0]])
def test_gold_used_most_by_chance_is_the_share_of_all_deals(influences):
    marks = [True, False, True, False]
    dealt = [one(2, marks, influences=list(order)) for order in permutations(influences)]
    expected = np.mean([q["gold_most_influential"] for q in dealt])
    assert dealt[0]["gold_most_influential_by_chance"] == pytest.approx(expected)


def test_the_summary_has_the_mean_by_chance_of_the_questions_that_count():
    result = quality(make_run([(1, [True, False], None, None), (1, [False, True, False, False], None, None),
                               *[(None, [None, None], None, None)] * 2]), (1,))  # fmt: skip
    assert row(result, "hit_at_k", 1)["chance"] == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert row(result, "mrr")["chance"] == pytest.approx((0.75 + (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4) / 2)
    assert np.isnan(row(result, "gold_most_influential")["chance"])
    hit = row(result, "hit_at_k", 1)
    assert (hit["n"], hit["n_left_out"]) == (2, 2)
    assert hit["left_out"] == "2: No gold passage is known for the question."


def found(n_first, n_used, n=20, k=4, gold=1):
    """The findings of n questions of which so many have gold first, and so many use it most."""
    questions = []
    for i in range(n):
        place, used = (0 if i < n_first else k - 1), i < n_used
        influences = [0.1] * k
        influences[place if used else 1] = 0.9
        questions.append((gold, [j == place for j in range(k)], None, influences))
    return findings(quality(make_run(questions)))


def test_gold_first_and_hardly_used():
    first, used = found(19, 4)
    assert (first.tone, first.severity, first.n, first.of) == (GOOD, "low", 19, 20)
    assert first.expected_by_chance == pytest.approx(5)
    assert first.p_value == pytest.approx(stats.binom.sf(18, 20, 0.25))
    assert first.interval == pytest.approx(tuple(stats.binomtest(19, 20).proportion_ci(method="wilson")))
    assert first.query_ids == ("q20",)
    assert (
        first.clause
        == "retrieval puts a gold passage first in 95 % of 20 questions (76–99 %; 25 % by chance)"
    )
    # At least 58 % do not: surely more than a quarter loses evidence, and a loss is at most of medium weight.
    assert (used.tone, used.severity, used.n, used.topic) == (BAD, "medium", 4, first.topic)
    assert used.sentence == (
        "A gold passage is the most influential one in 4 of 20 questions; chance alone gives 5."
    )
    assert used.clause == "it is the most influential passage in only 20 % of 20 (8–42 %; 25 % by chance)"
    # Those with gold in the first place come first: what was found best and is not used.
    assert used.query_ids == tuple(f"q{i}" for i in range(5, 21))
    # What to work on first is said of all incorrect answers together, not here.
    assert (used.fix, "retriev" in used.advice) == ("reader:improve", False)


def test_labels_name_what_is_true_of_the_questions_they_stand_on():
    """*Gold passage first* stood on exactly the questions where it is not; *Evidence used most* likewise."""
    first, used = found(19, 4)
    assert (first.label, first.reads) == ("Gold not first", "where gold is not first")
    assert used.label == "Gold not used most"
    missed = found(20, 20, gold=2)[0]
    assert (missed.label, missed.reads) == ("Gold missing", "that lack a gold passage")


def test_gold_that_was_not_retrieved_is_a_finding_without_any_ablation():
    """*Missed evidence* needed the influence of a run whose passages were never left out."""
    run = make_run(
        [(2, [True, False], None, None)] * 3
        + [(1, [True, False], None, None), (None, [None] * 2, None, None)]
        + [(1, [True, True], None, None), (0, [True, False], None, None)]  # more than there are said to be
        + [(0, [False, False], None, None)]
    )
    missed = next(one for one in findings(quality(run)) if one.name == "missed_evidence")
    assert (missed.n, missed.of, missed.query_ids) == (3, 4, ("q1", "q2", "q3"))
    assert missed.sentence == "In 3 of 4 questions a gold passage was not retrieved."
    assert (missed.severity, missed.p_value, missed.fix) == ("medium", None, "retrieval:improve")


def test_the_most_telling_questions_come_first():
    marks = {place: [i == place for i in range(1, 5)] for place in range(5)}  # 0: gold was not retrieved
    run = make_run(
        [
            (2, marks[2], None, [0.9, 0.5, 0.1, 0.0]),
            (1, marks[0], None, None),
            (1, marks[4], None, [0.9, 0.5, 0.2, 0.1]),
            (1, marks[3], None, [0.9, 0.5, 0.2, 0.1]),
            (1, marks[1], None, [0.5, 0.9, 0.1, 0.0]),
            (1, marks[1], None, [0.3, 0.9, 0.5, 0.0]),
            (1, marks[1], None, [0.9, 0.5, 0.1, 0.0]),
        ]
    )
    missed, first, used = findings(quality(run))
    assert missed.query_ids == ("q2", "q1")  # where least was found
    assert first.query_ids == ("q2", "q3", "q4", "q1")  # where gold is farthest down
    assert used.query_ids == ("q6", "q5", "q1", "q4", "q3")  # where gold is highest up, and then least used


def test_numbers_by_hand():
    questions = [(1, [True, False], None, [0.9, 0.1]), (1, [False, True], None, [0.9, 0.1])]
    found = {one.key: one for one in numbers(quality(make_run(questions), (1, 2, 3)))}
    half, both = (tuple(stats.binomtest(n, 2).proportion_ci(method="wilson")) for n in (1, 2))
    late = 1 / np.log2(3)  # nDCG of the second place
    used = "queries.gold_most_influential:True"
    expected = {
        "hit_at_1": ("Gold passage first", 0.5, 0.5, True, "queries.first_gold_rank:1", "card", half),
        "hit_at_2": ("Hit at 2", 1, 1, True, "", "row", both),
        "recall_at_1": ("Recall at 1", 0.5, 0.5, False, "", "row", (0, 1)),
        "recall_at_2": ("Recall at 2", 1, 1, False, "", "row", both),
        "ndcg_at_1": ("nDCG at 1", 0.5, 0.5, False, "", "row", (0, 1)),
        "ndcg_at_2": ("nDCG at 2", (1 + late) / 2, (1 + late) / 2, False, "", "row", (0, 1)),
        "mrr": ("Mean reciprocal rank", 0.75, 0.75, False, "", "row", (0, 1)),
        "gold_most_influential": ("Gold used most", 0.5, 0.5, True, used, "card", half),
    }
    beyond = {f"{name}_at_3" for name in ("hit", "recall", "ndcg")}
    assert set(found) == {*expected, *beyond}
    for key, (title, value, chance, is_share, cases, place, interval) in expected.items():
        one = found[key]
        assert (one.title, one.is_share, one.cases, one.place, one.n) == (title, is_share, cases, place, 2)
        assert (one.value, one.chance) == pytest.approx((value, chance)), key
        assert one.interval == pytest.approx(interval, abs=1e-6), key
        assert one.define == re.sub("[0-9]", "k", key)
    for key in beyond:  # no question has three passages
        one = found[key]
        assert (one.value, one.n, one.interval, one.chance, one.text) == (None, 0, None, None, "—")


def test_the_ranks_depend_on_how_many_passages_there_are_and_on_gold():
    """Runs of different depth are not held against each other by them, and no signal knows them beforehand."""
    for column in RETRIEVAL_QUALITY.columns:
        assert (column.by_passages, column.needs_labels, column.higher_is) == (True, True, "worse")
        assert [column.text(rank) for rank in (3.0, 1.5)] == ["3", "1.5"]


def test_half_is_unclear_and_a_retriever_no_better_than_chance_is_grave():
    first, used = found(10, 18)
    assert (first.tone, used.tone, used.fix) == (UNCLEAR, GOOD, "")
    assert used.otherwise.tone == UNCLEAR and found(6, 18)[0].tone == UNCLEAR
    lazy = found(5, 18)[0]
    # That gold is rarely first is bad by chance or not: chance does not take the finding back.
    assert (lazy.tone, lazy.otherwise.tone, lazy.severity) == (BAD, BAD, "medium") and lazy.p_value > 0.05
    assert found(0, 18)[0].clause == (
        "retrieval puts a gold passage first in none of 20 questions (0–16 %; 25 % by chance)"
    )


def test_a_share_that_chance_may_explain_says_how_many_questions_it_takes():
    # 6 of 20 against 5: mean difference 0.05, sd 0.47.
    assert found(6, 18)[0].clause.endswith("25 % by chance; about 700 questions would be needed to tell)")
    # What is as rare as by chance, or rarer, is no news that more questions could bring.
    for n_first in (2, 5):
        first = found(n_first, 18)[0]
        assert first.otherwise.clause == first.clause and "needed" not in first.clause


def test_without_gold_there_is_nothing_to_find():
    assert findings(quality(make_run([(None, [None, None], None, None)]))) == ()
