"""A run's analysis: influence, ranks, agreement, labels and reasons of all questions at once."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import ndcg_score

from core.influence import (
    analyse,
    chance_band,
    compare_reported,
    influence_entropy,
    ndcg_by_chance,
    rank_biased_overlap,
    summary,
)
from core.influence.reported import WHY, cause_text, changes_sentence
from core.run import Run


def make(influences, *, ranks=None, query=None, passage=None, source="upload", **tables):
    """A run of one question per list of influences; further columns per question or passage."""
    n = len(influences)
    queries = pd.DataFrame({"query_id": [f"q{i}" for i in range(n)], "question": ["?"] * n} | (query or {}))
    ids = [f"q{i}" for i, row in enumerate(influences) for _ in row]
    passages = pd.DataFrame(
        {
            "query_id": ids,
            "passage_id": [str(j) for row in influences for j in range(len(row))],
            "retrieval_rank": ranks or [float(j + 1) for row in influences for j in range(len(row))],
            "influence_score": [float(v) for row in influences for v in row],
        }
        | (passage or {})
    )
    return Run.create({"source": source}, queries=queries, passages=passages, **tables)


def test_influences_stand_in_retrieval_order_with_gaps_and_none_where_none_is_known():
    rows = [[0.1, math.nan, 0.9], [math.nan, math.nan], [0.5]]
    found = analyse(make(rows, ranks=[3.0, 2.0, 1.0, 1.0, 2.0, 1.0])).queries["influences"].to_list()
    assert repr(found) == "[[0.9, nan, 0.1], None, [0.5]]"


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 0.2, 0.2, 0.5, 1.0]), min_size=1, max_size=9), min_size=1, max_size=6
    ),
    st.randoms(use_true_random=False),
)
def test_many_at_once_equals_one_at_a_time_worked_out_elsewhere(influences, random):
    run = make(influences)
    shuffled = list(range(len(run.passages)))
    random.shuffle(shuffled)
    analysis = analyse(run.derive(passages=run.passages.iloc[shuffled]))
    for i, row in enumerate(influences):
        found, order = analysis.queries.iloc[i], list(range(1, len(row) + 1))
        constant = "all_equal" if any(row) else "inert"
        reason = "too_few_passages" if len(row) < 3 else constant if len(set(row)) == 1 else None
        assert (found["reason"] if isinstance(found["reason"], str) else None) == reason
        expected = (math.nan, math.nan) if reason else stats.spearmanr(order, [-v for v in row])
        assert found["rho"] == pytest.approx(expected[0], nan_ok=True)
        assert found["p_value"] == pytest.approx(expected[1], nan_ok=True, abs=1e-6)
        # The best that these ties allow: both sides in the same order.
        best = math.nan if reason else stats.spearmanr(order, sorted(-v for v in row)).statistic
        assert found["attainable_rho"] == pytest.approx(best, nan_ok=True)
        # Of one question, these are held against all its orders in test_chance.py and test_ndcg.py.
        band = chance_band(order, row)
        assert (found["chance_low"], found["chance_high"]) == pytest.approx(
            (band.low, band.high), nan_ok=True
        )
        dominance = max(row) / sum(row) if any(row) else math.nan
        assert found["dominance"] == pytest.approx(dominance, nan_ok=True)
        entropy = stats.entropy(row) if any(row) else math.nan
        assert found["entropy"] == pytest.approx(entropy, nan_ok=True, abs=1e-9)
        assert influence_entropy(row) == pytest.approx(entropy, nan_ok=True, abs=1e-9)
        ndcg = math.nan
        if any(row):  # scikit-learn wants two documents
            ndcg = ndcg_score([row], [[-o for o in order]]) if len(row) > 1 else 1.0
        assert found["influence_ndcg"] == pytest.approx(ndcg, nan_ok=True)
        chance = found["ndcg_by_chance"], found["ndcg_p_value"]
        assert chance == pytest.approx(tuple(ndcg_by_chance(order, row)), nan_ok=True)
        overlap = rank_biased_overlap(order, row)
        assert found["rank_biased_overlap"] == pytest.approx(overlap, nan_ok=True)
        mine = analysis.passages[analysis.passages["query_id"] == f"q{i}"].sort_values("retrieval_rank")
        assert mine["influence_rank"].tolist() == stats.rankdata([-v for v in row]).tolist()
        assert found["has_ties"] == (len(set(row)) < len(row))


def test_influence_is_computed_from_the_answers_not_read():
    run = make(
        [[0.9, 0.9, 0.9]],
        query={"answer": ["The capital is Paris"], "answer_status": ["answered"]},
        passage={"ablated_answer": ["The capital is Paris", "The capital is Rome", "I don't know"]},
    )
    assert analyse(run).passages["influence"].tolist() == pytest.approx([0, 0.25, 1])


def test_empty_baseline_and_error_are_undefined_not_aligned():
    run = make(
        [[1, 1, 1], [1, 0.5, 0]],
        query={"answer": ["", None], "answer_status": ["empty", "error"]},
    )
    analysis = analyse(run)
    assert analysis.queries["reason"].tolist() == ["empty_baseline", "error"]
    assert analysis.queries["label"].tolist() == ["Undefined"] * 2
    assert analysis.passages["influence"].isna().all() and analysis.queries["dominance"].isna().all()


def test_a_failed_ablation_is_missing_and_never_averaged_in():
    run = make(
        [[0.1, 0.2, 0.3]],
        query={"answer": ["a"], "answer_status": ["answered"]},
        passage={"ablated_status": [None, "error", None]},
    )
    found = analyse(run).queries.iloc[0]
    assert found["reason"] == "incomplete" and math.isnan(found["rho"]) and math.isnan(found["dominance"])


def test_records_without_ablations_say_so():
    assert analyse(make([[np.nan] * 4])).queries["reason"].tolist() == ["no_ablations"]


def test_rank_shift_is_positive_where_a_passage_is_used_more_than_retrieved():
    shifts = analyse(make([[0.1, 0.5, 0.5]], ranks=[1.0, 2.0, 3.0])).passages["rank_shift"]
    assert shifts.tolist() == [1 - 3, 2 - 1.5, 3 - 1.5]
    # Ranks of a file may have gaps and ties; what counts is the place they give.
    shifts = analyse(make([[0.5, 0.9, 0.1, 0.7]], ranks=[10.0, 20.0, 20.0, 90.0])).passages["rank_shift"]
    assert shifts.tolist() == [1 - 3, 2.5 - 1, 2.5 - 4, 4 - 2]


def test_rank_modes_follow_each_questions_own_k():
    # k = 6: the first in retrieval is least influential (rank 6 >= 4), the last most (rank 1).
    six = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    # k = 5: the first three and the last three overlap, so the rank modes do not apply.
    analysis = analyse(make([six, six[:5]]))
    assert analysis.queries["ignored_top_hit"].tolist() == [True, False]
    assert analysis.queries["buried_evidence"].tolist() == [True, False]
    # Inverted: of 720 orders of six and 120 of five, fewer than 5 % are as far upside down.
    assert analysis.queries["inverted"].tolist() == [True, True]
    first = analysis.passages.head(6)
    assert first["ignored_top_hit"].tolist() == [True, True, True, False, False, False]
    assert first["buried_evidence"].tolist() == [False, False, False, True, True, True]


def test_one_influential_passage_among_ties_is_not_an_ignored_top_hit():
    # Nine ties share rank 6, which is below k - 2 = 8.
    analysis = analyse(make([[0] * 9 + [1]]))
    assert not analysis.queries["ignored_top_hit"].any()
    assert analysis.queries["buried_evidence"].tolist() == [True]
    assert analysis.queries["over_reliance"].tolist() == [True]


def test_inert_parametric_and_redundant():
    run = make(
        [[0, 0, 0]] * 4,
        query={
            "answer": ["It is Paris"] * 3 + ["I don't know"],
            "answer_status": ["answered"] * 3 + ["abstained"],
            "closed_book_answer": ["It is Paris", "No idea at all", None, "I don't know"],
        },
    )
    q = analyse(run).queries
    assert q["inert"].tolist() == [True] * 4
    assert q["parametric"].tolist() == [True, False, False, False]
    # Without a closed-book call nobody can tell parametric from redundant.
    assert q["redundant"].tolist() == [False, True, False, True]
    assert analyse(run).testable | {"inert": 4, "parametric": 2, "redundant": 3} == analyse(run).testable
    assert analyse(run).testable["missed_evidence"] == analyse(run).testable["harmful_passage"] == 0


def test_harmful_passage_and_missed_evidence():
    run = make(
        [[1, 0, 0]] * 3,
        query={
            "answer": ["Rome", "Paris", "I don't know"],
            "answer_status": ["answered", "answered", "abstained"],
            "reference_answers": [["Paris"]] * 3,
            "n_gold": [2, 1, None],
        },
        passage={
            "ablated_answer": ["Paris", "Rome", "Rome", "Rome", "Paris", "Paris", "Paris", "x", "x"],
            "is_gold": [True, None, None, True, False, False, False, False, False],
        },
    )
    analysis = analyse(run)
    correct = analysis.queries["correct"]
    assert correct.tolist()[:2] == [False, True] and correct.isna().tolist() == [False, False, True]
    assert analysis.queries["harmful_passage"].tolist() == [True, False, False]
    assert analysis.passages["harmful_passage"].tolist() == [True] + [False] * 8
    assert analysis.queries["missed_evidence"].tolist() == [True, False, False]
    # Both in the first; in the first two all influence is on one passage.
    assert analysis.queries["n_modes"].tolist() == [3, 1, 0]
    # The third says nothing, so that it is not incorrect, and its gold passages are not known.
    tested = {"harmful_passage": 2, "missed_evidence": 2, "over_reliance": 3}
    assert {name: analysis.testable[name] for name in tested} == tested


def wrong_answers(outcomes, answers=None):
    """A run of answers; for each the passages whose removal makes it Paris."""
    answers = answers or ["Rome"] * len(outcomes)
    return make(
        [[1, 0, 0]] * len(outcomes),
        query={
            "answer": answers,
            "answer_status": ["abstained" if one == "I don't know" else "answered" for one in answers],
            "reference_answers": [["Paris"]] * len(outcomes),
        },
        passage={"ablated_answer": [{1: "Paris", 0: "Oslo"}.get(one) for row in outcomes for one in row]},
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from([0, 1, None]), min_size=3, max_size=3), st.booleans()),
        min_size=1, max_size=5,
    )
)  # fmt: skip
def test_removals_against_the_placebo_as_all_ways_to_choose_the_placebo_give_it(drawn):
    run = wrong_answers([row for row, _ in drawn])
    given_ = pd.Series([right for _, right in drawn], index=run.queries["query_id"])
    found = analyse(run, by_placebo=given_).against_placebo
    tried = [([one for one in row if one is not None], right) for row, right in drawn]
    tried = [(row, right) for row, right in tried if row]
    expected = (
        len(tried), sum(right for _, right in tried), sum(len(row) for row, _ in tried),
        sum(sum(row) for row, _ in tried),
    )  # fmt: skip
    assert (found.n, found.by_placebo, found.tries, found.fixed) == expected
    # Had the placebo been another of a question's tries: in how many of all cases does it succeed no more often?
    ways = [sum(chosen) for chosen in itertools.product(*([*row, right] for row, right in tried))]
    if tried:
        assert found.p_value == pytest.approx(np.mean(np.array(ways) <= found.by_placebo))
    else:
        assert math.isnan(found.p_value)


def test_only_incorrect_answers_with_a_placebo_count():
    run = wrong_answers([[1, 0, 0]] * 4, ["Rome", "Paris", "I don't know", "Rome"])
    found = analyse(run, by_placebo=pd.Series([True] * 3, index=run.queries["query_id"][:3])).against_placebo
    assert (found.n, found.by_placebo, found.tries, found.fixed, found.p_value) == (1, 1, 3, 1, 1.0)
    for nothing in (None, pd.Series([True], index=["of another run"])):
        none = analyse(run, by_placebo=nothing).against_placebo
        assert (none.n, none.tries) == (0, 0) and math.isnan(none.p_value)


def test_a_wrong_count_of_gold_passages_says_nothing_of_what_was_missed():
    """Two are retrieved of the one that there is: not counted, as on Retrieval quality. Of none nothing is missed."""
    run = make([[1, 0]] * 3, query={"n_gold": [1, 3, 0]}, passage={"is_gold": [True, True] * 2 + [False] * 2})
    analysis = analyse(run)
    assert analysis.queries["missed_evidence"].tolist() == [False, True, False]
    assert analysis.testable["missed_evidence"] == 2


def test_from_80_percent_on_one_passage_is_relied_on():
    analysis = analyse(make([[0.8, 0.1, 0.1], [0.79, 0.11, 0.1], [0.4, 0.4], [0.4]]))
    assert analysis.queries["over_reliance"].tolist() == [True, False, False, True]
    # Of one passage there is nothing to normalise by.
    normalised = analysis.queries["entropy_normalised"].tolist()
    assert normalised[0] == pytest.approx(stats.entropy([8, 1, 1]) / math.log(3))
    assert normalised[2:] == pytest.approx([1, math.nan], nan_ok=True)


def test_an_answer_that_shares_nine_of_ten_words_with_its_closed_book_answer_is_parametric():
    words = "one two three four five six seven eight nine ten"
    closed = [words.replace("ten", "x"), words.replace("nine ten", "x y"), ""]
    run = make(
        [[0, 0, 0]] * 3,
        query={
            "answer": [words] * 2 + [""],
            "answer_status": ["answered"] * 2 + ["empty"],
            "closed_book_answer": closed,
        },
    )
    assert analyse(run).queries["parametric"].tolist() == [True, False, False]


def test_agreement_is_rounded_to_twelve_places():
    q = analyse(make([[0.5, 0.5, 0.1]])).queries.iloc[0]
    for name, exact in (("rho", math.sqrt(3) / 2), ("chance_high", math.sqrt(3) / 2)):
        assert q[name] == round(exact, 12) != round(exact, 11)


def test_noise_floor_and_interval():
    repeats = pd.DataFrame(
        {
            "query_id": ["q0", "q0"],
            "repeat": [1, 2],
            "answer": ["The capital is Rome", "The capital is Paris"],
        }
    )
    run = make(
        [[0, 0, 0]],
        query={"answer": ["The capital is Paris"], "answer_status": ["answered"]},
        passage={"ablated_answer": ["The capital is Paris", "The capital is Rome", "Nobody knows"]},
        repeats=repeats,
    )
    analysis = analyse(run)
    q, p = analysis.queries.iloc[0], analysis.passages
    assert q["n_repeats"] == 2 and q["noise_quantile"] == 0.25
    assert p["above_noise"].tolist() == [False, False, True] and q["n_above_noise"] == 1
    # Against the repeat "The capital is Rome" the first ablated answer differs by 0.25, the second by 0.
    assert p["influence_low"].tolist() == pytest.approx([0, 0, 1])
    assert p["influence_high"].tolist() == pytest.approx([0.25, 0.25, 1])


def test_an_ablation_in_error_has_no_range_even_if_it_has_text():
    run = make(
        [[0.1, 0.2, 0.3]],
        query={"answer": ["Paris"], "answer_status": ["answered"]},
        passage={"ablated_answer": ["Paris", "Rome", "Rome"], "ablated_status": ["answered", "error", None]},
        repeats=pd.DataFrame({"query_id": ["q0"], "repeat": [1], "answer": ["Paris"]}),
    )
    p = analyse(run).passages
    assert p["influence_low"].tolist() == pytest.approx([0, math.nan, 1], nan_ok=True)
    assert p["influence_high"].tolist() == pytest.approx([0, math.nan, 1], nan_ok=True)


def test_an_empty_repeat_counts_and_one_in_error_does_not():
    run = make(
        [[0, 0, 0]],
        query={"answer": ["Paris"], "answer_status": ["answered"]},
        passage={"ablated_answer": ["Paris", "Rome", "Paris"]},
        repeats=pd.DataFrame(
            {"query_id": "q0", "repeat": [1, 2, 3], "answer": ["", "Paris", "Rome"],
             "answer_status": ["empty", "answered", "error"]}
        ),
    )  # fmt: skip
    analysis = analyse(run)
    # Influences of the repeats 1 and 0, the larger counts. Against an empty repeat no range is known.
    assert analysis.queries["noise_quantile"].tolist() == [1.0]
    assert analysis.queries["n_repeats"].tolist() == [2]
    assert analysis.passages["influence_low"].isna().all()


def test_without_repeats_the_noise_floor_is_unknown():
    analysis = analyse(make([[0.1, 0.2, 0.9]]))
    assert analysis.queries["noise_quantile"].isna().all() and analysis.queries["n_above_noise"].isna().all()
    assert analysis.passages["above_noise"].isna().all()


def test_summary_counts_what_each_number_is_about():
    run = make(
        [[0.9, 0.5, 0.1], [0.1, 0.5, 0.9], [0, 0, 0], [1, 1, 1], [0.1, 0.9, 0.5]],
        query={
            "answer": ["a", "I don't know", "a", "", "a"],
            "answer_status": ["answered", "abstained", "answered", "empty", "answered"],
        },
    )
    found = summary(analyse(run))
    assert (found["n_defined"], found["n_undefined"]) == (3, 2)
    assert found["undefined_reasons"] == found["label_reasons"] == {"inert": 1, "empty_baseline": 1}
    assert (found["n_aligned"], found["n_divergent"], found["n_unlabelled"]) == (1, 2, 2)
    # ρ is 1, −1 and −0.5.
    assert found["mean_rho"] == pytest.approx(-1 / 6) and found["median_rho"] == pytest.approx(-0.5)
    expected = stats.t.interval(0.95, 2, loc=-1 / 6, scale=stats.sem([1, -1, -0.5]))
    assert found["rho_ci"] == [-1.0, 1.0] and expected[1] > 1  # cut at what ρ can be
    assert found["mean_dominance"] == pytest.approx(0.6) and found["n_dominance"] == 3
    assert found["failure_modes"]["inert"] == found["n_inert"] == 1
    assert found["p_random_divergent"] == pytest.approx(5 / 6)
    # Mean gain times the discounts, over the best order; the same for all three, whatever the threshold.
    discounts = (1, 1 / math.log2(3), 1 / 2)
    by_chance = 0.5 * sum(discounts) / (0.9 * discounts[0] + 0.5 * discounts[1] + 0.1 * discounts[2])
    assert found["influence_ndcg_by_chance"] == pytest.approx(by_chance)
    assert summary(analyse(run, 0.1))["influence_ndcg_by_chance"] == pytest.approx(by_chance)


def test_summary_of_nothing_has_no_numbers():
    found = summary(analyse(Run.create({"source": "upload"})))
    assert found["n_defined"] == 0 and found["mean_rho"] is None and found["rho_ci"] is None
    assert found["mean_influence_ndcg"] is None and found["p_random_divergent"] is None


def test_chance_of_divergent_is_averaged_over_questions_of_every_size():
    # k = 3: 5 of 6 orders are below 0.7; k = 4: ρ is 0.8 or 1 in 4 of 24.
    found = summary(analyse(make([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1], [0.4, 0.3, 0.2, 0.1]])))
    assert found["p_random_divergent"] == pytest.approx((5 / 6 + 5 / 6 + 20 / 24) / 3)
    # At 0.9 only the perfect order of four stays.
    # Two questions of three count twice.
    found = summary(analyse(make([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1], [0.4, 0.3, 0.2, 0.1]]), 0.9))
    assert found["p_random_divergent"] == pytest.approx((5 / 6 + 5 / 6 + 23 / 24) / 3)


def test_threshold_drives_the_labels_and_is_checked():
    run = make([[0.9, 0.1, 0.5]])  # rho = 0.5
    assert analyse(run, 0.5).queries["label"].tolist() == ["Aligned"]
    assert analyse(run, 0.7).queries["label"].tolist() == ["Divergent"]
    for threshold in (-1, 1):
        assert analyse(run, threshold).threshold == threshold
    for threshold in (-1.01, 1.01, 2):
        with pytest.raises(ValueError, match=rf"\[-1, 1\], got {threshold}\.$"):
            analyse(run, threshold)


def test_an_analysis_is_shown_without_what_is_long():
    shown = repr(analyse(make([[0.9, 0.1, 0.5]])))
    assert "threshold=0.7" in shown
    assert not [name for name in ("modes", "random_rhos", "run") if f", {name}=" in shown]


def test_a_label_that_ties_decide_is_undefined_but_not_as_published():
    # One of ten reaches 0.52 at most; two of three 0.87.
    run = make([[1] + [0] * 9, [0] * 9 + [1], [0.5, 0.5, 0.1], [0.1, 0.2, 0.3], [0, 0, 0]])
    analysis = analyse(run)
    assert analysis.queries["rho"].notna().tolist() == [True] * 4 + [False]
    assert analysis.queries["label"].tolist() == [
        "Undefined",
        "Undefined",
        "Aligned",
        "Divergent",
        "Undefined",
    ]
    reasons = analysis.queries["label_reason"].fillna("").tolist()
    assert reasons == ["ties_cannot_reach", "ties_cannot_reach", "", "", "inert"]
    found = summary(analysis)
    counts = ("n_defined", "n_aligned", "n_divergent", "n_unlabelled", "n_divergent_published")
    assert [found[key] for key in counts] == [4, 1, 1, 3, 3]
    assert found["undefined_reasons"] == {"inert": 1}
    assert found["label_reasons"] == {"ties_cannot_reach": 2, "inert": 1}

    published = analysis.labelled(0.7, as_published=True)
    assert published.queries["label"].tolist() == [
        "Divergent",
        "Divergent",
        "Aligned",
        "Divergent",
        "Undefined",
    ]
    found = summary(published)
    assert [found[key] for key in counts] == [4, 1, 3, 1, 3]
    assert found["label_reasons"] == {"inert": 1} and found["as_published"] is True
    assert published.queries["divergent_by_chance"].tolist()[:2] == [1.0, 1.0]
    assert published.labelled(0.7).queries.equals(analysis.queries), "as published only if told"


def test_other_labels_leave_all_else_as_it_is():
    run = make([[0.9, 0.1, 0.5], [0.1, 0.2, 0.3, 0.9], [0, 0, 0]])
    first, again = analyse(run, 0.4), analyse(run, 0.8, as_published=True)
    assert first.labelled(0.8, as_published=True).queries.equals(again.queries)
    assert first.labelled(0.8).passages.drop(columns="label").equals(first.passages.drop(columns="label"))


def published_shape():
    """43 questions x 10 as the published tool writes them: 16 empty baselines, 8 inert, 19 others."""
    rng = np.random.default_rng(3)
    influences = [*[[1.0] * 10] * 16, *[[0.0] * 10] * 8]
    influences += [rng.choice([0, 0, 0, 0.25, 0.5, 0.8], 10) for _ in range(18)] + [[0] * 9 + [0.6]]
    rho = [
        stats.spearmanr(range(10), stats.rankdata(-np.array(row), method="ordinal")).statistic
        for row in influences
    ]
    query = {
        "answer": [""] * 16 + ["a"] * 27,
        "answer_status": ["empty"] * 16 + ["answered"] * 27,
        "reported_rho": rho,
        "reported_divergent": [value < 0.7 for value in rho],
    }
    return make(influences, query=query)


def test_published_figures_stay_comparable_through_the_switch():
    run = published_shape()
    found = summary(analyse(run, as_published=True))
    assert (found["n_unlabelled"], found["n_undefined"]) == (24, 24)
    assert found["label_reasons"] == {"empty_baseline": 16, "inert": 8}
    assert found["n_divergent"] == found["n_divergent_published"]
    default = summary(analyse(run))
    assert default["n_divergent_published"] == found["n_divergent"] > default["n_divergent"]
    assert default["mean_rho"] == found["mean_rho"]


def test_reported_verdicts_that_only_ties_decide_say_so():
    run = published_shape()
    published = compare_reported(run, analyse(run, as_published=True))
    sentence = "24 of 43 reported verdicts change when recomputed: 16 empty baselines, 8 inert."
    assert changes_sentence(published) == sentence
    assert (published["n_ranks_changed"] == 0).all()  # the file reports no ranks
    default = compare_reported(run, analyse(run)).set_index("query_id")
    assert default.loc["q42", ["reported_label", "label", "cause"]].tolist() == [
        "Divergent", "Undefined", "ties_cannot_reach",
    ]  # fmt: skip
    assert default.loc["q42", "why"].startswith("With these ties no order")


def test_ranks_of_a_file_are_compared_as_an_order():
    # Counted from 0, in row order: of three tied passages the first and the last differ from their mean.
    run = make(
        [[0.5, 0.2, 0.2, 0.2]],
        query={"reported_rho": [1.0]},
        passage={"reported_influence_rank": [0, 1, 2, 3]},
    )
    assert compare_reported(run, analyse(run))["n_ranks_changed"].tolist() == [2]
    # By influence the passages are third, first and second.
    run = make(
        [[0.1, 0.9, 0.5]] * 2,
        query={"reported_rho": [1.0, 1.0]},
        passage={"reported_influence_rank": [1, 2, 3, 30, 10, 20]},
    )
    assert compare_reported(run, analyse(run))["n_ranks_changed"].tolist() == [3, 0]


def test_every_cause_is_counted_in_words_of_its_own():
    assert [cause_text(cause, n) for cause in WHY for n in (1, 2)] == [
        "1 empty baseline", "2 empty baselines", "1 inert", "2 inert",
        "1 with equal influences", "2 with equal influences", "1 tie", "2 ties",
        "1 flag against its own ρ", "2 flags against their own ρ",
        "1 with missing numbers", "2 with missing numbers",
        "1 with too many ties", "2 with too many ties",
        "1 ρ that its scores do not give", "2 ρ that their scores do not give",
    ]  # fmt: skip
    assert cause_text("other", 1_000) == "1,000 other"


def test_a_file_whose_verdicts_hold_says_so():
    frame = pd.DataFrame({"changed": [False, False], "cause": [None, None]})
    assert changes_sentence(frame) == "No verdict changes when recomputed: all 2 reported ones hold."


def test_reported_verdicts_are_compared_and_explained():
    influences = [
        [1, 1, 1],
        [0, 0, 0],
        [0, 0, 1],
        [0.9, 0.5, 0.1],
        [0.9, 0.5, 0.1],
        [0.1, 0.5, 0.9],
        [0.3, 0.2, 0.1],
        [0.3, 0.2, 0.1],
    ]
    run = make(
        influences,
        query={
            "answer": [""] + ["a"] * 7,
            "answer_status": ["empty"] + ["answered"] * 7,
            "reported_rho": [1.0, 1.0, 0.75, 1.0, 1.0, 0.9, None, 0.8],
            "reported_divergent": [False, False, False, False, True, None, None, True],
        },
    )
    found = compare_reported(run, analyse(run)).set_index("query_id")
    assert "q6" not in found.index
    assert found["changed"].tolist() == [True, True, True, False, True, True, True]
    # The last has a flag against its own ρ, but that ρ is wrong as well.
    causes = ["empty_baseline", "inert", "ties", "", "flag", "values", "values"]
    assert found["cause"].fillna("").tolist() == causes
    assert found["reported_label"].tolist() == ["Aligned"] * 4 + ["Divergent", "Aligned", "Divergent"]
