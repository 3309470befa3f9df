import io
import json

import numpy as np
import pandas as pd
import pytest

from core.diagnosis import Diagnosis
from core.diagnostics import DIAGNOSTICS
from core.influence import analyse
from core.report.exports import exporters
from core.run import Run
from core.sources.formats import FORMATS, import_file
from core.sources.mapping import PUBLISHED_COLUMNS
from core.sources.simulation import SimulationOptions, simulate
from core.spreadsheet import csv_bytes
from tests.core.claims.claim_runs import CANAL, analysed

WRITTEN = [name for name, file_format in FORMATS.items() if file_format.write is not None]


def written(name, run, **settings):
    """What the export called ``name`` writes of a run."""
    return exporters()[name].write(Diagnosis(run, settings))


def table(data):
    return pd.read_csv(io.BytesIO(data), encoding="utf-8-sig", keep_default_na=False, dtype=str)


@pytest.fixture(scope="module")
def simulated():
    return simulate(SimulationOptions(queries=30, noise=0.05))


@pytest.fixture
def hostile():
    queries = pd.DataFrame(
        {
            "query_id": ["a"],
            "question": ["=cmd|' /C calc'!A0"],
            "answer": ["\t+1"],
            "answer_status": ["answered"],
        }
    )
    passages = pd.DataFrame(
        {
            "query_id": "a",
            "passage_id": ["-1", "p2", "p3"],
            "text": ["@SUM(A1)", "<script>alert(1)</script>", " =HYPERLINK()"],
            "retrieval_rank": [1.0, 2.0, 3.0],
            "retrieval_score": [-3.5, -4.0, None],
            "influence_score": [0.5, 0.25, 0.0],
        }
    )
    return Run.create({"source": "live"}, queries=queries, passages=passages)


def test_csv_is_utf8_with_its_mark_and_safe():
    frame = pd.DataFrame(
        {
            "=head": pd.Series(["=1", "ü", None], dtype="str"),
            "number": [-1.5, np.nan, 2],
            "flag": pd.array([True, None, False], dtype="boolean"),
            "list": [["=a", 1], None, np.array(["b"])],
            "mixed": ["@x", -2, 0.5],
            "kind": pd.Categorical(["-a", "b", "-a"]),
        }
    )
    data = csv_bytes(frame)
    assert data.startswith(b"\xef\xbb\xbf")
    read = table(data)
    assert list(read.columns) == ["'=head", "number", "flag", "list", "mixed", "kind"]
    assert read["'=head"].to_list() == ["'=1", "ü", ""]
    assert read["number"].to_list() == ["-1.5", "", "2.0"]
    assert read["flag"].to_list() == ["True", "", "False"]
    assert read["list"].to_list() == ['["=a", 1]', "", '["b"]']
    assert read["mixed"].to_list() == ["'@x", "-2", "0.5"]
    assert read["kind"].to_list() == ["'-a", "b", "'-a"]
    assert frame.columns[0] == "=head" and frame["=head"][0] == "=1"  # the argument is untouched


def test_the_source_of_the_data_stands_in_every_row():
    read = table(csv_bytes(pd.DataFrame({"a": [1, 2]}), "simulated"))
    assert list(read.columns) == ["a", "data_source"]
    assert read["data_source"].to_list() == ["simulated", "simulated"]


def test_empty_frame_and_texts_that_no_file_can_hold():
    assert csv_bytes(pd.DataFrame({"a": []})) == b"\xef\xbb\xbfa\n"
    assert "\ufffd".encode() in csv_bytes(pd.DataFrame({"a": pd.Series(["\ud800"], dtype="object")}))


def test_run_csv_has_the_published_columns_and_ours(hostile):
    read = table(written("csv", hostile))
    assert tuple(read.columns) == (*PUBLISHED_COLUMNS, "label", "reason", "data_source")
    first = read.iloc[0]
    assert first["query"] == "'=cmd|' /C calc'!A0"
    assert first["baseline_answer"] == "'\t+1"
    assert (first["doc_id"], first["passage"]) == ("'-1", "'@SUM(A1)")
    assert (first["retrieval_score"], first["influence_score"], first["rouge_l"]) == ("-3.5", "0.5", "0.5")
    assert (first["spearman_rho"], first["is_divergent"], first["label"]) == ("1.0", "False", "Aligned")
    assert set(read["data_source"]) == {"live"}
    assert read["passage"].to_list()[1:] == ["<script>alert(1)</script>", "' =HYPERLINK()"]


def test_what_run_csv_writes_comes_back(hostile):
    run = hostile
    imported = import_file(written("csv", run), "back")
    assert imported.report.n_issues == 0
    assert imported.run.queries["question"].to_list() == run.queries["question"].to_list()
    assert imported.run.queries["answer"].to_list() == run.queries["answer"].to_list()
    for column in ("passage_id", "text", "retrieval_rank", "influence_score"):
        assert imported.run.passages[column].to_list() == run.passages[column].to_list()


def test_a_simulation_comes_back_the_same_and_still_marked(simulated):
    analysis, data = analyse(simulated), written("csv", simulated)
    assert set(table(data)["data_source"]) == {"simulated"}
    imported = import_file(data, "back")
    assert imported.run.simulated
    assert imported.report.n_issues == 0
    again = analyse(imported.run)
    np.testing.assert_allclose(again.queries["rho"], analysis.queries["rho"], atol=1e-12)
    assert again.queries["reason"].fillna("").to_list() == analysis.queries["reason"].fillna("").to_list()


def test_undefined_is_an_empty_cell(simulated):
    read = table(written("csv", simulated))
    empty = read[read["reason"] == "empty_baseline"]
    assert len(empty) > 0
    assert (
        empty[["spearman_rho", "is_divergent", "influence_score", "rouge_l", "influence_rank"]] == ""
    ).all(axis=None)
    inert = read[read["reason"] == "inert"]
    assert set(inert["spearman_rho"]) <= {""} and set(inert["label"]) <= {"Undefined"}
    assert "nan" not in written("csv", simulated).decode().lower().split(",")


def test_queries_csv(simulated):
    read = table(written("queries-csv", simulated))
    assert len(read) == 30 and set(read["data_source"]) == {"simulated"}
    assert read["label"].to_list() == analyse(simulated).queries["label"].to_list()


def test_summary_json_has_null_and_never_nan(simulated):
    content = json.loads(written("json", simulated), parse_constant=lambda name: pytest.fail(name))
    assert content["data_source"] == "simulated"
    assert content["summary"]["n_queries"] == 30 and content["summary"]["screen_off"] is None
    assert content["manifest"]["options"]["noise"] == 0.05
    assert 1 <= len(content["verdict"]) <= 3 and all(text.endswith(".") for text in content["verdict"])


def test_claims_csv_has_a_row_per_claim_and_passage_and_is_safe():
    run, found = analysed(
        [
            {
                "query_id": "a",
                "question": "=cmd|' /C calc'!A0",
                "answer": "+1 is so. Paris",
                "passages": [
                    {"passage_id": "-1", "title": "@t", "text": "=HYPERLINK()"},
                    {"passage_id": "p2"},
                ],
                "claims": [
                    {
                        "text": "+1 is so",
                        "cells": {"-1": {"probability": 0.75, "judge": "=judge", "start": 0, "end": 12}},
                    },
                    {"text": "Paris", "cells": {"-1": 0.25, "p2": 0.5}},
                ],
            },
            {"answer": "Rome", "claims": [{"text": "Rome"}]},
        ]
    )
    read = table(written("claims-csv", run))
    assert len(read) == 5 and set(read["data_source"]) == {"upload"}
    pairs = ["second_passage_id", "joint_probability", "joint_judge"]
    assert list(read.columns) == [*found.to_frame().columns, *pairs, "support_threshold", "data_source"]
    assert set(read["support_threshold"]) == {"0.5"}
    stricter = table(written("claims-csv", run, support=0.8))
    assert set(stricter["support_threshold"]) == {"0.8"} and stricter["verdict"].iloc[0] == "UNSCORED"
    first = read.iloc[0]
    assert (first["question"], first["claim"]) == ("'=cmd|' /C calc'!A0", "'+1 is so")
    assert (first["passage_id"], first["title"], first["judge"]) == ("'-1", "'@t", "'=judge")
    assert first["sentence"] == "'=HYPERLINK()"
    assert (first["probability"], first["state"], first["verdict"]) == ("0.75", "fragile", "SUPPORTED")
    # No cell for the second passage: nothing is known, and nothing stands there.
    second = read.iloc[1]
    assert (second["passage_id"], second["probability"], second["causal"]) == ("p2", "", "unknown")
    assert read["support_maximum"].to_list() == ["0.75", "0.75", "0.5", "0.5", ""]
    last = read.iloc[4]
    assert (last["claim"], last["passage_id"], last["state"], last["verdict"]) == (
        "Rome",
        "",
        "unscored",
        "UNSCORED",
    )


def test_claims_csv_without_claims_is_its_head_only(simulated):
    bare = Run.create({"source": "simulation"}, queries=simulated.queries, passages=simulated.passages)
    assert written("claims-csv", bare).count(b"\n") == 1


def test_summary_json_has_the_claims():
    run, _ = analysed([CANAL])
    content = json.loads(written("json", run))["summary"]
    assert (content["n_claims"], content["mean_grounding"], content["claims_judge"]) == (2, 1, "hand")


def test_every_export_of_questions_holds_them(hostile):
    own = {one.name: one.about for diagnostic in DIAGNOSTICS for one in diagnostic.exports}
    assert set(exporters()) == {"html", "worklist-csv", "signals-csv", "json", *WRITTEN, *own}
    of_questions = {name for name, about in own.items() if about.startswith("One row per question")}
    assert {"queries-csv", "conformal-csv", "confidence-csv", "uncertainty-csv"} <= of_questions
    # The run has no verdicts.
    for name in {"worklist-csv", *WRITTEN, *of_questions} - {"verdicts-csv"}:
        assert "cmd|" in written(name, hostile).decode("utf-8-sig"), name


def test_gapped_and_tied_ranks_and_numbers_without_a_value_survive():
    passages = pd.DataFrame(
        {
            "query_id": "q",
            "passage_id": list("abcd"),
            "retrieval_rank": [2.0, 2.0, 7.0, 9.0],
            "influence_score": [0.5, np.nan, 0.0, 0.25],
        }
    )
    queries = pd.DataFrame(
        {"query_id": ["q"], "question": ["?"], "answer": ["x"], "answer_status": ["answered"]}
    )
    run = Run.create({"source": "upload"}, queries=queries, passages=passages)
    read = table(written("csv", run))
    assert read["retrieval_rank"].to_list() == ["2.0", "2.0", "7.0", "9.0"]
    assert read["influence_score"].to_list() == ["0.5", "", "0.0", "0.25"]
    summary = json.loads(written("json", run))["summary"]
    assert summary["mean_rho"] is None and summary["mean_dominance"] is None


def values(data, name):
    return [json.loads(part) for part in (data.splitlines() if FORMATS[name].suffix == ".jsonl" else [data])]


@pytest.mark.parametrize("name", WRITTEN)
def test_a_simulated_run_stays_marked_in_every_format(simulated, name):
    data = written(name, simulated)
    assert json.dumps("simulated").encode() in data
    imported = import_file(data, "back")
    assert imported.run.manifest["dataset"]["format"] == name and imported.run.simulated
    assert imported.run.queries["question"].to_list() == simulated.queries["question"].to_list()
    assert "data_source" not in set(imported.run["reported"]["name"])
    assert values(written(name, imported.run), name) == values(data, name)


@pytest.mark.parametrize("name", WRITTEN)
def test_other_runs_carry_no_mark(hostile, name):
    data = written(name, hostile)
    assert b"data_source" not in data
    assert not import_file(data, "back", name).run.simulated


def numbers(value):
    if isinstance(value, dict | list):
        return [n for one in (value.values() if isinstance(value, dict) else value) for n in numbers(one)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


@pytest.mark.parametrize("name", [name for name, one in FORMATS.items() if one.write is not None])
def test_what_has_no_value_is_no_number_in_any_format(name):
    def run(score, influence):
        return Run.create(
            {"source": "upload"},
            queries=pd.DataFrame({"query_id": ["q"], "question": ["?"], "answer": ["x"]}),
            passages=pd.DataFrame(
                {
                    "query_id": "q",
                    "passage_id": list("abc"),
                    "text": list("xyz"),
                    "retrieval_rank": [2.0, 2.0, 7.0],
                    "retrieval_score": [3.5, 2.5, score],
                    "influence_score": [0.5, influence, 0.25],
                }
            ),
        )

    def parts(data):
        lines = data.splitlines() if FORMATS[name].suffix == ".jsonl" else [data]
        return [json.loads(line, parse_constant=lambda constant: pytest.fail(constant)) for line in lines]

    known = numbers(parts(written(name, run(1.5, 0.75))))
    unknown = numbers(parts(written(name, run(np.nan, np.nan))))
    for value in unknown:
        known.remove(value)
    assert set(known) <= {1.5, 0.75}
