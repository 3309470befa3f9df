"""Influence as the drop of the answer's log-probability: expected values by hand."""

import csv
import io
import math

import numpy as np
import pandas as pd
import pytest

from core.charts.influence import influence_by_rank, rank_slope
from core.cli import main
from core.diagnosis import Diagnosis
from core.errors import InputError
from core.influence import analyse
from core.influence.diagnostic import influence_csv
from core.influence.reported import compare_reported
from core.run import Run


def run_of(*drops, answers=None, **columns):
    """One question per list of drops, with words that change in the first passage only."""
    ids = [f"q{i}" for i in range(1, len(drops) + 1)]
    queries = {"query_id": ids, "question": "Who?", "answer": answers or "Ada", "answer_status": "answered"}
    passages = [
        {
            "query_id": query_id,
            "passage_id": f"p{i}",
            "retrieval_rank": i,
            "logprob_drop": drop,
            "ablated_answer": "Bea" if i == 1 else "Ada",
            "ablated_status": "answered",
        }
        for query_id, own in zip(ids, drops, strict=True)
        for i, drop in enumerate(own, start=1)
    ]
    tables = {"queries": pd.DataFrame(queries | columns), "passages": pd.DataFrame(passages)}
    return Run.create({"source": "upload", "name": "Drops"}, **tables)


def of(run):
    return Diagnosis(run, {"influence": "logprob"})


def test_ranks_use_the_sign_and_shares_take_what_speaks_against_the_answer_as_nothing():
    found = of(run_of([2.0, -1.0, 1.0, 1.0]))["influence"]
    row, passages = found.queries.iloc[0], found.passages
    assert passages["influence"].tolist() == [2.0, -1.0, 1.0, 1.0]
    assert passages["influence_rank"].tolist() == [1, 4, 2.5, 2.5]
    assert passages["influence_share"].tolist() == [0.5, 0.0, 0.25, 0.25]
    assert row["dominance"] == 0.5 and row["influences"] == [2.0, -1.0, 1.0, 1.0]
    assert math.isclose(row["entropy"], 1.5 * math.log(2))
    # Spearman of 1 2 3 4 with 1 4 2.5 2.5: 2.25 − 0.75 over the roots of 5 and 4.5.
    assert math.isclose(row["rho"], 1.5 / math.sqrt(5 * 4.5), abs_tol=1e-12)
    # In the order of retrieval 2 + 1/2 + 1/log2(5), at best 2 + 1/log2(3) + 1/2.
    assert math.isclose(row["influence_ndcg"], (2.5 + 1 / math.log2(5)) / (2.5 + 1 / math.log2(3)))
    assert found.measure.name == "logprob" and pd.isna(row["reason"])


def test_without_a_positive_drop_there_are_ranks_and_no_shares():
    found = of(run_of([-1.0, -2.0, -3.0]))["influence"]
    row = found.queries.iloc[0]
    assert row["rho"] == 1 and pd.isna(row["reason"])
    assert np.isnan([row["dominance"], row["entropy"], row["influence_ndcg"]]).all()
    assert found.passages["influence_share"].isna().all()


def test_drops_that_cancel_out_are_not_inert():
    q = of(run_of([1.0, -1.0, 0.0], [0.0, 0.0, 0.0]))["influence"].queries
    assert q["reason"].isna().tolist() == [True, False] and q["reason"][1] == "inert"


def test_what_was_not_scored_is_undefined_and_says_what_to_do():
    run = run_of([None] * 3, [1.0, None, 2.0], [1.0, 2.0, 3.0], answers=["Ada", "Ada", ""])
    run = Run.create(
        run.manifest,
        queries=run.queries.assign(answer_status=["answered", "answered", "empty"]),
        passages=run.passages,
    )
    diagnosis = of(run)
    q = diagnosis["influence"].queries
    assert q["reason"].tolist() == ["not_scored", "incomplete", "empty_baseline"]
    assert q[["rho", "dominance", "entropy"]].isna().all(axis=None)
    assert diagnosis["influence"].reasons["not_scored"].meaning == "Not scored: run the step likelihood."
    gold = Run.create(
        run.manifest,
        queries=run.queries.assign(n_gold=1),
        passages=run.passages.assign(is_gold=[True, False, False] * 3),
    )
    assert of(gold)["retrieval_quality"].queries["influence_reason"][0] == "not_scored"


def test_a_run_without_scores_says_how_to_get_them():
    diagnosis = of(run_of([None] * 3, [None] * 3))
    (finding,) = [one for one in diagnosis.findings_of("influence") if one.name == "not_scored"]
    assert (finding.n, finding.of) == (2, 2) and "--steps likelihood" in finding.advice
    assert "run the step likelihood" in finding.sentence
    assert influence_by_rank(diagnosis["influence"]).layout.annotations[0].text.startswith("Not scored")


def test_a_fixed_answer_has_no_noise_floor():
    run = run_of([1.0, 2.0, 3.0])
    repeats = pd.DataFrame({"query_id": "q1", "repeat": [1], "answer": "Bea", "answer_status": "answered"})
    run = Run.create(run.manifest, **{**run.tables, "repeats": repeats})
    assert Diagnosis(run)["influence"].queries["noise_quantile"][0] == 1.0
    found = of(run)["influence"]
    assert found.queries["noise_quantile"].isna().all() and found.passages["above_noise"].isna().all()
    assert found.passages[["influence_low", "influence_high"]].isna().all(axis=None)


def test_by_words_nothing_depends_on_the_scores():
    scored, not_scored = run_of([3.0, 2.0, 9.0]), run_of([None] * 3)
    by_default, named = analyse(scored), Diagnosis(not_scored, {"influence": "rouge"})["influence"]
    pd.testing.assert_frame_equal(by_default.queries, named.queries)
    pd.testing.assert_frame_equal(by_default.passages, named.passages)
    assert by_default.passages["influence"].tolist() == [1.0, 0.0, 0.0]


def test_figures_are_in_nats():
    found = of(run_of([-1.0, 4.0, 1.0], [-2.0, 6.0, 1.0]))["influence"]
    figure = influence_by_rank(found)
    assert figure.layout.yaxis.title.text == "Mean influence (nats)"
    (means,) = [trace for trace in figure.data if trace.name == "Mean, 95 % interval"]
    assert list(means.y) == [-1.5, 5.0, 1.0]
    # 5 ± 12.706 · sd √2 / √2, neither cut at 1 nor at 0.
    assert math.isclose(means.error_y.array[1], 12.706, abs_tol=1e-3)
    assert math.isclose(means.error_y.arrayminus[1], 12.706, abs_tol=1e-3)
    assert rank_slope(found, "q1").data


def test_the_export_names_what_it_holds():
    run = run_of([1.5, -1.0, 0.5])
    rows = list(csv.DictReader(io.StringIO(influence_csv(of(run)).decode("utf-8-sig"))))
    assert [row["logprob_drop"] for row in rows] == ["1.5", "-1.0", "0.5"]
    assert not {"rouge_l", "influence_score"} & set(rows[0])
    rows = list(csv.DictReader(io.StringIO(influence_csv(Diagnosis(run)).decode("utf-8-sig"))))
    assert [row["influence_score"] for row in rows] == ["1.0", "0.0", "0.0"] and "logprob_drop" not in rows[0]
    assert [row["rouge_l"] for row in rows] == ["0.0", "1.0", "1.0"]


def test_verdicts_of_a_file_are_about_words():
    run = run_of([1.0, 2.0, 3.0], reported_rho=0.9)
    assert len(compare_reported(run, Diagnosis(run)["influence"])) == 1
    assert compare_reported(run, of(run)["influence"]).empty


def test_another_measure_is_refused():
    with pytest.raises(
        InputError, match="influence must be rouge or logprob or surrogate or shapley, got 'words'"
    ):
        Diagnosis(run_of([1.0] * 3), {"influence": "words"})


def test_on_the_command_line(tmp_path, capsys):
    run_of([1.0, 2.0, 3.0, 4.0]).save(tmp_path / "run")
    assert main(["summary", str(tmp_path / "run"), "--influence", "logprob", "--json"]) == 0
    out = capsys.readouterr().out
    assert '"influence": "logprob"' in out and '"mean_rho": -1.0' in out
    assert main(["summary", str(tmp_path / "run"), "--influence", "words"]) != 0
    assert "influence must be rouge or logprob or surrogate" in capsys.readouterr().err
