"""The matrix of all claims of a run, by hand."""

import time
from urllib.parse import parse_qsl

import numpy as np
import pandas as pd
import pytest

from core.charts.claims.evidence_matrix import ROWS, evidence_matrix, n_pages
from core.charts.theme import alt_text
from core.diagnosis import Diagnosis
from core.run import Run
from tests.core.charts.chart_claims import claims_analysis
from tests.core.charts.chart_runs import HOSTILE, shown_strings

#: An answer that is supported, one with one claim of three unsupported, one of two passages with two of two.
MATRICES = (
    [[0.9, 0.8, 0.1]],
    [[0.7, 0.1, 0.0], [0.2, 0.1, 0.1], [None, 0.2, None]],
    [[0.1, 0.2], [0.3, 0.1]],
)


@pytest.fixture(scope="module")
def figure():
    return evidence_matrix(claims_analysis(MATRICES))


def heat(figure):
    (trace,) = [trace for trace in figure.data if trace.type == "heatmap"]
    return trace


def opened(trace):
    return [dict(parse_qsl(door))["question"] for door, _ in trace.customdata]


def named(figure, name):
    (trace,) = [trace for trace in figure.data if trace.name == name]
    return trace


@pytest.mark.parametrize(
    ("ranks", "shown"), [(12, range(1, 13)), (13, range(1, 14, 2)), (25, range(1, 26, 3))]
)
def test_of_many_ranks_some_have_a_label(ranks, shown):
    across = evidence_matrix(claims_analysis([[[0.5] * ranks]])).layout.xaxis
    assert across.tickvals == (*shown, ranks + 1)
    assert across.ticktext == (*map(str, shown), "<br>State") and across.range == (0.5, ranks + 1.6)


def test_all_claims_by_answer_those_with_most_unsupported_claims_first(figure):
    z = np.array(heat(figure).z, dtype=float)
    wanted = [[0.1, 0.2, np.nan], [0.3, 0.1, np.nan], *MATRICES[1], *MATRICES[0]]
    np.testing.assert_allclose(z, np.array(wanted, dtype=float))
    assert list(heat(figure).x) == [1, 2, 3], "columns are retrieval ranks"
    # A line before each further answer.
    assert [shape.y0 for shape in figure.layout.shapes] == [1.5, 4.5]
    assert alt_text(figure) == (
        "Claims 1 to 6 of 6 claims of 3 answers against the passages by retrieval rank: 1 well supported, "
        "1 fragile, 3 unsupported, 1 unscored."
    )


def test_what_was_not_scored_is_crossed_and_a_missing_passage_is_not(figure):
    crosses = named(figure, "Not scored")
    assert sorted(zip(crosses.y, crosses.x, strict=True)) == [(4, 1), (4, 3)]
    assert crosses.customdata[0].endswith("Not scored")


def test_the_state_of_each_claim_leads_to_its_question(figure):
    unsupported = named(figure, "Unsupported")
    assert (list(unsupported.y), set(unsupported.x)) == ([0, 1, 3], {4})
    assert opened(unsupported) == ["q3", "q3", "q2"] and opened(named(figure, "Well supported")) == ["q1"]
    # U(c) of 0.1 and 0.2: 1 less their mean.
    assert "unsupported, U(c) 0.85, best support 0.20" in unsupported.customdata[0][1]


def test_cells_say_claim_question_rank_and_probability(figure):
    assert heat(figure).text[2][0].split("<br>") == [
        "Claim 1 is so.", "Question 2?", "Rank 1: p1", "Probability 0.70",
    ]  # fmt: skip


def test_irrelevant_claims_have_nothing_missing():
    figure = evidence_matrix(claims_analysis([[[None, None]]], irrelevant={(0, 0)}))
    assert [trace.name for trace in figure.data if trace.type != "heatmap"] == ["Irrelevant"]


def test_a_run_without_claims_says_so():
    figure = evidence_matrix(claims_analysis([[]], n_passages=2))
    assert not figure.data and alt_text(figure) == "No claim was extracted from any answer."


def test_hostile_text_arrives_escaped():
    figure = evidence_matrix(claims_analysis([[[0.9, None]]], texts=[[HOSTILE]], title=HOSTILE))
    assert not any("<script" in text or "<img" in text for text in shown_strings(figure))


def test_a_hundred_thousand_claims_go_page_by_page():
    """Every page is drawn in a moment, whatever the size of the run, and no claim is left out."""
    n, k = 20_000, 5
    ids = [f"q{i}" for i in range(n)]
    rng = np.random.default_rng(1)
    queries = pd.DataFrame({"query_id": ids, "question": ids, "answer": "So."})
    passages = pd.DataFrame(
        {"query_id": np.repeat(ids, k), "passage_id": [f"p{j}" for j in range(k)] * n,
         "retrieval_rank": list(range(1, k + 1)) * n}
    )  # fmt: skip
    claims = pd.DataFrame(
        {"query_id": np.repeat(ids, k), "claim_id": [f"c{j}" for j in range(k)] * n, "text": "It is so.",
         "relevance": "RELEVANT"}
    )  # fmt: skip
    support = claims[["query_id", "claim_id"]].assign(passage_id="p0", probability=rng.random(n * k))
    run = Run.create({"source": "upload"}, queries=queries, passages=passages, claims=claims, support=support)
    analysis = Diagnosis(run)["claims"]
    assert n_pages(analysis) == -(-n * k // ROWS)
    assert sorted(analysis.reading_order.tolist()) == list(range(n * k))
    evidence_matrix(analysis)
    began = time.perf_counter()
    last = evidence_matrix(analysis, n_pages(analysis))
    assert time.perf_counter() - began < 1
    assert alt_text(last).startswith("Claims 99,991 to 100,000 of 100,000 claims of 20,000 answers")
    assert len(last.to_json()) < 100_000
