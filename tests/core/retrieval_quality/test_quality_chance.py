"""What random orders of the same passages give, against every order of them."""

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from core.retrieval_quality.diagnostic import findings
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
                               (None, [None, None], None, None)]), (1,))  # fmt: skip
    assert row(result, "hit_at_k", 1)["chance"] == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert row(result, "mrr")["chance"] == pytest.approx((0.75 + (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4) / 2)
    assert np.isnan(row(result, "gold_most_influential")["chance"])


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
    )
    missed = next(one for one in findings(quality(run)) if one.name == "missed_evidence")
    assert (missed.n, missed.of, missed.query_ids) == (3, 4, ("q1", "q2", "q3"))
    assert missed.sentence == "In 3 of 4 questions a gold passage was not retrieved."
    assert (missed.severity, missed.p_value, missed.fix) == ("medium", None, "retrieval:improve")


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


def test_without_gold_there_is_nothing_to_find():
    assert findings(quality(make_run([(None, [None, None], None, None)]))) == ()
