"""Every table that is exported is read back: the same rows, and nothing of a question lost."""

import io

import pandas as pd
import pytest

from core.diagnosis import Diagnosis
from core.report.exports import exporters
from core.run import Run
from core.sources.formats import import_file
from core.sources.formats.records import records_of
from core.spreadsheet import restore


@pytest.fixture(scope="module")
def exported():
    diagnosis = Diagnosis(Run.load("sample_data/recorded_run_short"))
    return diagnosis.run, {
        name: exporters()[name].write(diagnosis) for name in exporters() if name.endswith("csv")
    }


def back(exported, name):
    run, files = exported
    imported = import_file(files[name], "f.csv")
    assert imported.report.n_rejected == 0 and not imported.report.issues
    return run, imported.run


def same(one, other, columns):
    keys = columns[:3]
    one, other = (frame[columns].sort_values(keys).reset_index(drop=True) for frame in (one, other))
    pd.testing.assert_frame_equal(one, other, check_dtype=False)


def test_claims_and_their_support_come_back(exported):
    run, again = back(exported, "claims-csv")
    answers = run["claims"][run["claims"]["side"].fillna("answer").eq("answer")]
    same(answers, again["claims"], ["query_id", "claim_id", "text"])
    of_answers = run["support"].merge(answers[["query_id", "claim_id"]])
    of_answers = of_answers[of_answers["probability"].notna()]
    same(of_answers, again["support"], ["query_id", "claim_id", "passage_id", "probability", "judge"])


def test_samples_come_back(exported):
    run, again = back(exported, "samples-csv")
    same(run["samples"], again["samples"], ["query_id", "sample_id", "answer", "temperature", "top_p"])


@pytest.mark.parametrize(
    "name", ["confidence-csv", "conformal-csv", "worklist-csv", "queries-csv", "uncertainty-csv"]
)
def test_a_row_for_each_question_comes_back_whole(exported, name):
    _, again = back(exported, name)
    table = pd.read_csv(io.BytesIO(exported[1][name]), dtype="str", keep_default_na=False)
    records = records_of(again)
    assert len(records) == len(table)
    for record, row in zip(records, table.to_dict("records"), strict=True):
        held = {
            "query_id": record.record_id,
            "question": record.question,
            "kind": record.kind,
            **record.signals,
        }
        held |= {key: value for (key, _), value in record.reported.items()}
        for column in table.columns.drop("data_source"):
            cell = restore(pd.Series([row[column]], dtype="str"))[0]
            value = held.get(column)
            assert (float(cell) == value) if isinstance(value, float) else (cell == (value or "")), (
                column,
                cell,
            )


def test_labels_and_signals_come_back(exported):
    run, again = back(exported, "confidence-csv")
    before, after = (Diagnosis(one)["answers"].queries["correct"] for one in (run, again))
    assert before.equals(after) and before.notna().any()
    same(run["signals"], again["signals"], ["query_id", "similarity", "lexical", "llm_score"])
