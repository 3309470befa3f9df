import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from core.errors import InputError
from core.influence import analyse
from core.influence.definitions import REASONS as INFLUENCE_REASONS
from core.retrieval_quality.analysis import DEPTHS, retrieval_quality
from core.retrieval_quality.definitions import METRICS, REASONS
from core.run import Run


def make_run(questions):
    """A run of ``(n_gold, marks, ranks or None, influences or None)``, one for each question."""
    queries, passages = [], []
    for number, (n_gold, marks, ranks, influences) in enumerate(questions, start=1):
        queries.append({"query_id": f"q{number}", "question": "?", "n_gold": n_gold, "answer": "a b"})
        for place, mark in enumerate(marks):
            passages.append(
                {
                    "query_id": f"q{number}",
                    "passage_id": f"p{place}",
                    "retrieval_rank": ranks[place] if ranks else place + 1,
                    "is_gold": mark,
                    "influence_score": influences[place] if influences else None,
                }
            )
    columns = ["query_id", "passage_id", "retrieval_rank", "is_gold", "influence_score"]
    return Run.create(
        {"source": "upload"}, queries=pd.DataFrame(queries), passages=pd.DataFrame(passages, columns=columns)
    )


def quality(run, ks=DEPTHS):
    return retrieval_quality(run, analyse(run), ks)


def one(n_gold, marks, ranks=None, influences=None, ks=(1, 2)):
    return quality(make_run([(n_gold, marks, ranks, influences)]), ks).queries.iloc[0]


def row(result, metric, k=None):
    frame = result.to_frame()
    return frame[(frame["metric"] == metric) & (frame["k"].isna() if k is None else frame["k"] == k)].iloc[0]


def test_one_question_by_hand():
    q = one(3, [False, True, False, True], ks=(1, 2, 4))
    assert (q["k"], q["n_gold"], q["n_found"], q["first_gold_rank"]) == (4, 3, 2, 2)
    assert q["reciprocal_rank"] == 0.5
    assert q[["hit_at_1", "hit_at_2", "hit_at_4"]].tolist() == [0, 1, 1]
    assert q[["recall_at_1", "recall_at_2", "recall_at_4"]].tolist() == pytest.approx([0, 1 / 3, 2 / 3])
    gain = 1 / math.log2(3) + 1 / math.log2(5)
    assert q["ndcg_at_4"] == pytest.approx(gain / (1 + 1 / math.log2(3) + 0.5))
    assert q[["reason", "recall_reason"]].isna().all()


def test_the_order_is_that_of_the_ranks_not_of_the_rows():
    q = one(1, [True, False, False], ranks=[3, 1, 2])
    assert (q["first_gold_rank"], q["hit_at_2"]) == (3, 0)


@pytest.mark.parametrize(
    ("n_gold", "marks", "ranks", "reason", "recall_reason"),
    [
        (None, [None, None], None, "no_gold", "no_gold"),
        (0, [False, False], None, "no_gold", "no_gold"),
        (0, [None, None], None, "no_gold", "no_gold"),
        (2, [None, None], None, "gold_not_marked", "gold_not_marked"),
        (2, [None], None, "gold_not_marked", "gold_not_marked"),
        (1, [True, True], None, "gold_miscounted", "gold_miscounted"),
        (0, [True, False], None, "gold_miscounted", "gold_miscounted"),
        (1, [True, False, False], [1, 1, 2], "tied_ranks", "tied_ranks"),
        (1, [False, True, False], [1, 2, 2], "tied_ranks", "tied_ranks"),
        (1, [False, True], [1, 1], "tied_ranks", "tied_ranks"),
        (None, [True, False], None, None, "gold_not_counted"),
        (2, [True, True, False], [1, 1, 2], None, None),  # both are gold: the tie changes nothing
        (1, [True, None], None, None, None),  # a passage without a mark counts as not gold
    ],
)
def test_why_a_question_is_undefined(n_gold, marks, ranks, reason, recall_reason):
    q = one(n_gold, marks, ranks)
    for column, expected in (("reason", reason), ("recall_reason", recall_reason)):
        assert (None if pd.isna(q[column]) else q[column]) == expected
    assert pd.isna(q["hit_at_1"]) == pd.isna(q["reciprocal_rank"]) == (reason is not None)
    assert pd.isna(q["recall_at_1"]) == pd.isna(q["ndcg_at_1"]) == (recall_reason is not None)


def test_a_tie_counts_in_its_own_question_only():
    # The last passage of the first question has the rank of the first one of the second.
    tied, free = (1, [True, False], [2, 2], None), (1, [True, False], [2, 3], None)
    reasons = quality(make_run([tied, free, tied])).queries["reason"]
    assert reasons.fillna("").tolist() == ["tied_ranks", "", "tied_ranks"]


def test_without_a_count_of_gold_a_question_without_any_is_a_miss():
    result = quality(make_run([(None, [True, False], None, None), (None, [False, False], None, None)]))
    hit = row(result, "hit_at_k", 1)
    assert (hit["mean"], hit["n"], hit["n_left_out"]) == (0.5, 2, 0)
    recall = row(result, "recall_at_k", 1)
    assert (recall["n"], recall["n_left_out"]) == (0, 2)
    assert recall["left_out"] == "2: How many gold passages the collection holds is not known."


def test_a_question_for_which_nothing_was_retrieved_is_a_miss_where_gold_exists():
    q = quality(make_run([(2, [], None, None), (1, [True], None, None)]), [1]).queries.iloc[0]
    metrics = ["hit_at_1", "recall_at_1", "ndcg_at_1", "reciprocal_rank"]
    assert q[[*metrics, "n_found"]].tolist() == [0] * 5
    assert q[[f"{name}_by_chance" for name in metrics]].tolist() == [0] * 4  # in whatever order


def test_depths_that_no_question_reaches_have_no_values():
    result = quality(make_run([(1, [True, False], None, None), (1, [False], None, None)]), [1, 2, 3])
    assert result.queries["hit_at_2"].tolist() == [1, 0]  # the second gave one passage and no more
    assert result.queries["hit_at_3"].isna().all()
    beyond = row(result, "ndcg_at_k", 3)
    assert np.isnan(beyond["mean"])
    assert row(result, "ndcg_at_k", 2)["left_out"] == ""
    assert beyond["left_out"] == "2: No question has as many passages as the depth asks for."


@pytest.mark.parametrize(
    ("marks", "influences", "rank", "most", "reason"),
    [
        ([False, True, False], [0.1, 0.9, 0.2], 1, True, None),
        ([False, True, False], [0.9, 0.5, 0.2], 2, False, None),
        ([True, True, False], [0.2, 0.9, 0.5], 1, True, None),  # the better of two
        ([True, False, False], [0.9, 0.9, 0.2], 1.5, False, None),  # as influential as another
        ([True, True, False], [0.9, 0.9, 0.2], 1.5, True, None),  # as another gold one
        ([True, False, False], [0.0, 0.0, 0.0], None, None, "inert"),
        ([True, False, False], [0.5, 0.5, 0.5], None, None, "all_equal"),
        ([True, False, False], [0.5, None, 0.5], None, None, "incomplete"),
        ([True, False, False], None, None, None, "no_ablations"),
        ([False, False, False], [0.1, 0.9, 0.2], None, None, "gold_not_retrieved"),
        ([None, None, None], [0.1, 0.9, 0.2], None, None, "no_gold"),
        ([True, False], [0.1, 0.9], 2, False, None),  # two passages have an order, if no correlation
    ],
)  # fmt: skip
def test_beside_the_influence_view(marks, influences, rank, most, reason):
    q = one(None if None in marks else 2, marks, influences=influences)
    assert (None if pd.isna(q["gold_influence_rank"]) else q["gold_influence_rank"]) == rank
    assert (None if pd.isna(q["gold_most_influential"]) else q["gold_most_influential"]) == most
    assert (None if pd.isna(q["influence_reason"]) else q["influence_reason"]) == reason


def test_an_empty_baseline_has_no_influence_to_stand_beside():
    run = make_run([(1, [True, False], None, [0.1, 0.9])])
    run = run.derive(queries=run.queries.assign(answer="", answer_status="empty"))
    q = quality(run).queries.iloc[0]
    assert (q["influence_reason"], q["hit_at_1"]) == ("empty_baseline", 1)


def test_means_and_intervals():
    # Recalls 1, 0.5, 0; first places 1, 1, none.
    result = quality(
        make_run(
            [(1, [True, False], None, None), (2, [True, False], None, None), (1, [False, False], None, None)]
        ),
        [2],
    )
    recall, hit, mrr = row(result, "recall_at_k", 2), row(result, "hit_at_k", 2), row(result, "mrr")
    assert recall["mean"] == pytest.approx(0.5)
    low, high = stats.t.interval(0.95, 2, loc=0.5, scale=stats.sem([1, 0.5, 0]))
    assert (recall["low"], recall["high"]) == (max(0, low), min(1, high)) == (0, 1)
    wilson = stats.binomtest(2, 3).proportion_ci(method="wilson")
    assert (hit["low"], hit["high"]) == pytest.approx((wilson.low, wilson.high), abs=1e-6)
    assert mrr["mean"] == pytest.approx(2 / 3)


def test_equal_values_still_have_a_width():
    result = quality(make_run([(1, [True, False], None, None)] * 20), [1])
    recall = row(result, "recall_at_k", 1)
    wilson = stats.binomtest(20, 20).proportion_ci(method="wilson")
    assert (recall["mean"], recall["high"]) == (1, 1)
    assert recall["low"] == pytest.approx(wilson.low, abs=1e-6)


def test_many_questions_agree_with_each_worked_out_by_its_own():
    rng = np.random.default_rng(3)
    questions = []
    for _ in range(200):
        marks = (rng.random(rng.integers(1, 13)) < 0.3).tolist()
        questions.append((sum(marks) + int(rng.integers(1, 3)), marks, None, None))
    queries = quality(make_run(questions), [1, 4, 12]).queries
    for (n_gold, marks, _, _), q in zip(questions, queries.to_dict("records"), strict=True):
        places = [place for place, mark in enumerate(marks, start=1) if mark]
        assert q["reciprocal_rank"] == (1 / places[0] if places else 0)
        for k in (1, 4, 12):
            found = [place for place in places if place <= k]
            ideal = sum(1 / math.log2(1 + place) for place in range(1, min(n_gold, k) + 1))
            assert q[f"hit_at_{k}"] == bool(found)
            assert q[f"recall_at_{k}"] == pytest.approx(len(found) / n_gold)
            assert q[f"ndcg_at_{k}"] == pytest.approx(sum(1 / math.log2(1 + p) for p in found) / ideal)


def test_twenty_thousand_questions_need_no_loop():
    n, k = 20_000, 10
    rng = np.random.default_rng(4)
    ids = np.array([f"q{i}" for i in range(n)])
    gold = rng.random(n * k) < 0.1
    run = Run.create(
        {"source": "upload"},
        queries=pd.DataFrame({"query_id": ids, "question": "?", "n_gold": gold.reshape(n, k).sum(1) + 1}),
        passages=pd.DataFrame(
            {
                "query_id": np.repeat(ids, k),
                "passage_id": np.tile([f"p{j}" for j in range(k)], n),
                "retrieval_rank": np.tile(np.arange(1.0, k + 1), n),
                "is_gold": gold,
                "influence_score": rng.random(n * k).round(2),
            }
        ),
    )
    result = quality(run)
    assert row(result, "hit_at_k", 1)["mean"] == pytest.approx(0.1, abs=0.005)
    assert row(result, "hit_at_k", 10)["mean"] == pytest.approx(1 - 0.9**10, abs=0.005)
    found = result.queries["n_found"] > 0
    assert result.queries.loc[found, "gold_influence_rank"].notna().all()


def test_a_given_analysis_is_used():
    run = make_run([(1, [True, False], None, [0.1, 0.9])])
    other = analyse(run)
    swapped = other.passages.assign(influence=[0.9, 0.1], influence_rank=[1.0, 2.0])
    other = dataclasses.replace(other, passages=swapped)
    assert retrieval_quality(run, other).queries["gold_influence_rank"].tolist() == [1]


@pytest.mark.parametrize(
    ("influences", "rank", "most", "reason"),
    [
        ([0.0, -0.5, -0.2], 1, True, None),
        ([0.0, 0.0, -0.2], 1.5, False, None),
        ([-0.2, -0.1, -0.9], 2, False, None),
        ([0.0, 0.0, 0.0], None, None, "inert"),
        ([-0.1, -0.1, -0.1], None, None, "all_equal"),
    ],
)
def test_influences_are_inert_where_all_are_0_not_where_the_largest_is(influences, rank, most, reason):
    """Log-probabilities and weights may be negative."""
    run = make_run([(1, [True, False, False], None, [0.3, 0.2, 0.1])])
    analysis = analyse(run)
    ranks = stats.rankdata([-value for value in influences])
    passages = analysis.passages.assign(influence=influences, influence_rank=ranks)
    q = retrieval_quality(run, dataclasses.replace(analysis, passages=passages)).queries.iloc[0]
    assert (None if pd.isna(q["gold_influence_rank"]) else q["gold_influence_rank"]) == rank
    assert (None if pd.isna(q["gold_most_influential"]) else q["gold_most_influential"]) == most
    assert (None if pd.isna(q["influence_reason"]) else q["influence_reason"]) == reason


def test_a_run_without_questions():
    result = quality(Run.create({"source": "upload"}))
    assert len(result.queries) == 0
    assert (result.to_frame()["n"] == 0).all()
    assert result.to_frame()["k"].dropna().tolist() == [1, 3, 5, 10] * 3
    assert len(result.to_frame()) == 3 * 4 + 2


def test_every_metric_and_reason_is_described():
    result = quality(make_run([(1, [True], None, None)]))
    assert set(result.to_frame()["metric"]) <= set(METRICS)
    assert not set(REASONS) & set(INFLUENCE_REASONS)


@pytest.mark.parametrize(
    ("ks", "got"),
    [([], "none"), ([0], "0"), ([1, -3], "-3"), ([-1, 0], "-1"), ([1.5], "1.5"), ([True], "True")],
)
def test_wrong_depths(ks, got):
    with pytest.raises(InputError, match=f"whole numbers from 1, got {got}"):
        quality(make_run([(1, [True], None, None)]), ks)


def test_chance_of_using_gold_most_by_hand():
    # One top of four, two of them gold: 2 of 4. Two tie for the top and both would have to be gold: 1 of 6 pairs.
    q = one(2, [True, False, True, False], influences=[0.9, 0.1, 0.2, 0.3])
    assert q["gold_most_influential_by_chance"] == pytest.approx(2 / 4)
    q = one(2, [True, False, True, False], influences=[0.9, 0.9, 0.2, 0.3])
    assert q["gold_most_influential_by_chance"] == pytest.approx(1 / 6)
    q = one(1, [True, False, False], influences=[0.9, 0.9, 0.2])
    assert q["gold_most_influential_by_chance"] == 0
    assert math.isnan(one(1, [True, False, False], influences=[0, 0, 0])["gold_most_influential_by_chance"])
