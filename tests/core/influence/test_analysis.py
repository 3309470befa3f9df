import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.influence import (
    analyse,
    average_ranks,
    compare_reported,
    dominance_ratio,
    influence_entropy,
    rank_biased_overlap,
    spearman,
    summary,
)
from core.run import Run
from core.stats import mean_interval


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


@settings(max_examples=50)
@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 0.2, 0.2, 0.5, 1.0]), min_size=1, max_size=9), min_size=1, max_size=6
    ),
    st.randoms(use_true_random=False),
)
def test_many_at_once_equals_one_at_a_time(influences, random):
    run = make(influences)
    shuffled = list(range(len(run.passages)))
    random.shuffle(shuffled)
    mixed = run.derive(passages=run.passages.iloc[shuffled])
    for analysis in (analyse(run), analyse(mixed)):
        for i, row in enumerate(influences):
            found = analysis.queries.iloc[i]
            expected = spearman(range(1, len(row) + 1), row)
            assert found["rho"] == pytest.approx(expected.rho, nan_ok=True)
            assert found["p_value"] == pytest.approx(expected.p_value, nan_ok=True, abs=1e-9)
            assert (found["reason"] if isinstance(found["reason"], str) else None) == expected.reason
            assert found["dominance"] == pytest.approx(dominance_ratio(row), nan_ok=True)
            assert found["entropy"] == pytest.approx(influence_entropy(row), nan_ok=True)
            overlap = rank_biased_overlap(range(1, len(row) + 1), row)
            assert found["rank_biased_overlap"] == pytest.approx(overlap, nan_ok=True)
            mine = analysis.passages[analysis.passages["query_id"] == f"q{i}"].sort_values("retrieval_rank")
            assert mine["influence_rank"].tolist() == average_ranks(row).tolist()
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


def test_rank_modes_follow_each_questions_own_k():
    # k = 6: the first in retrieval is least influential (rank 6 >= 4), the last most (rank 1).
    six = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    # k = 5: the first three and the last three overlap, so the rank modes do not apply.
    analysis = analyse(make([six, six[:5]]))
    assert analysis.queries["ignored_top_hit"].tolist() == [True, False]
    assert analysis.queries["buried_evidence"].tolist() == [True, False]
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
            "is_gold": [True, False, False, True, False, False, False, False, False],
        },
    )
    analysis = analyse(run)
    correct = analysis.queries["correct"]
    assert correct.tolist()[:2] == [False, True] and correct.isna().tolist() == [False, False, True]
    assert analysis.queries["harmful_passage"].tolist() == [True, False, False]
    assert analysis.passages["harmful_passage"].tolist() == [True] + [False] * 8
    assert analysis.queries["missed_evidence"].tolist() == [True, False, False]


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
    assert q["n_repeats"] == 2 and q["noise_quantile"] == pytest.approx(0.2375)
    assert p["above_noise"].tolist() == [False, True, True] and q["n_above_noise"] == 2
    # Against the repeat "The capital is Rome" the first ablated answer differs by 0.25, the second by 0.
    assert p["influence_low"].tolist() == pytest.approx([0, 0, 1])
    assert p["influence_high"].tolist() == pytest.approx([0.25, 0.25, 1])


def test_without_repeats_the_noise_floor_is_unknown():
    analysis = analyse(make([[0.1, 0.2, 0.9]]))
    assert analysis.queries["noise_quantile"].isna().all() and analysis.queries["n_above_noise"].isna().all()
    assert analysis.passages["above_noise"].isna().all()


def test_summary_counts_what_each_number_rests_on():
    run = make(
        [[0.9, 0.5, 0.1], [0.1, 0.5, 0.9], [0, 0, 0], [1, 1, 1]],
        query={
            "answer": ["a", "I don't know", "a", ""],
            "answer_status": ["answered", "abstained", "answered", "empty"],
        },
    )
    found = summary(run, analyse(run))
    assert (found["n_queries"], found["n_defined"], found["n_undefined"]) == (4, 2, 2)
    assert found["undefined_reasons"] == {"inert": 1, "empty_baseline": 1}
    assert (found["n_aligned"], found["n_divergent"]) == (1, 1)
    assert found["mean_rho"] == pytest.approx(0.0) and found["median_rho"] == pytest.approx(0.0)
    # Two values, 1 and -1: mean 0, sd sqrt(2), t(0.975, 1) = 12.706, cut at what a rho can be.
    assert found["rho_ci"] == [-1.0, 1.0]
    assert mean_interval(np.array([1.0, -1.0])) == pytest.approx([-12.7062, 12.7062], abs=1e-3)
    assert found["mean_dominance"] == pytest.approx(0.6) and found["n_dominance"] == 2
    assert (found["n_abstained"], found["n_empty_answers"]) == (1, 1)
    assert found["mean_claim_uncertainty"] is None and found["mean_confidence"] is None
    assert found["failure_modes"]["inert"] == 1


def test_summary_of_nothing_has_no_numbers():
    run = Run.create({"source": "upload"})
    found = summary(run, analyse(run))
    assert found["n_queries"] == 0 and found["mean_rho"] is None and found["rho_ci"] is None


def test_threshold_drives_the_labels_and_is_checked():
    run = make([[0.9, 0.1, 0.5]])  # rho = 0.5
    assert analyse(run, 0.5).queries["label"].tolist() == ["Aligned"]
    assert analyse(run, 0.7).queries["label"].tolist() == ["Divergent"]
    with pytest.raises(ValueError, match=r"\[-1, 1\], got 2"):
        analyse(run, 2)


def test_reported_verdicts_are_compared_and_explained():
    influences = [
        [1, 1, 1],
        [0, 0, 0],
        [0, 0, 1],
        [0.9, 0.5, 0.1],
        [0.9, 0.5, 0.1],
        [0.1, 0.5, 0.9],
        [0.3, 0.2, 0.1],
    ]
    run = make(
        influences,
        query={
            "answer": [""] + ["a"] * 6,
            "answer_status": ["empty"] + ["answered"] * 6,
            "reported_rho": [1.0, 1.0, 0.75, 1.0, 1.0, 0.9, None],
            "reported_divergent": [False, False, False, False, True, None, None],
        },
    )
    found = compare_reported(run, analyse(run)).set_index("query_id")
    assert "q6" not in found.index
    assert found["changed"].tolist() == [True, True, True, False, True, True]
    assert found["cause"].fillna("").tolist() == ["empty_baseline", "inert", "ties", "", "flag", "values"]
    assert found["reported_label"].tolist() == ["Aligned"] * 4 + ["Divergent", "Aligned"]
