"""What a file says of its own answers becomes labels and confidences, whatever its format."""

import json

import pandas as pd
import pytest

from core.diagnosis import Diagnosis
from core.sources.formats import FORMATS, import_file
from core.sources.formats.records import records_of


def read(rows, **options):
    return import_file(json.dumps(rows).encode(), "f.json", **options).run


def asked(**fields):
    return {"question": "Who?", "answer": "Ada", **fields}


def said(run):
    return [None if one is pd.NA else bool(one) for one in run.queries["correct"]]


@pytest.mark.parametrize("name", ["correct", "is_correct", "label", "score", "answers.correct", "Is Correct"])
@pytest.mark.parametrize(
    "yes, no", [(1, 0), (True, False), ("yes", "No"), ("Correct", "incorrect"), ("1.0", "0")]
)
def test_a_label_is_read_under_any_of_its_names(name, yes, no):
    run = read([asked(**{name: yes}), asked(**{name: no}), asked(**{name: None})])
    assert said(run) == [True, False, None]
    assert run.queries["correct_by"].fillna("").tolist() == [name, name, ""]


@pytest.mark.parametrize("values", [[1, 0.5], [1, 2], ["yes", "perhaps"], [True, [1]]])
def test_what_is_more_than_yes_or_no_is_no_label(values):
    assert read([asked(score=one) for one in values]).queries["correct"].isna().all()


def test_judges_who_disagree_label_nothing():
    votes = [[1, 1], [1, 0], [0, 0]]
    rows = [
        asked(reported=[{"name": "correct", "by": by, "value": v} for by, v in zip("ab", one, strict=True)])
        for one in votes
    ]
    run = read(rows)
    assert said(run) == [True, None, False]
    assert run.queries["correct_by"].fillna("").tolist() == ["a, b", "", "a, b"]


def test_a_label_goes_before_the_comparison_with_references():
    rows = [
        asked(answers=["Ada"], correct=False),
        asked(answers=["Ada"]),
        asked(answers=["Bo"], correct=True),
    ]
    found = Diagnosis(read(rows))["answers"].queries["correct"]
    assert found.tolist() == [False, True, True]


def test_every_column_of_confidences_is_a_signal_and_the_first_is_the_confidence():
    rows = [
        asked(confidence=0.25 * n, **{"Judge's confidence": str(1 - 0.25 * n)}, confident="no")
        for n in range(4)
    ]
    run = read(rows)
    assert run["confidences"]["name"].unique().tolist() == ["confidence", "judge_s_confidence"]
    found = Diagnosis(run)["confidence"]
    assert found.confidence.tolist() == [0, 0.25, 0.5, 0.75]
    assert found.used.choices[1].values.tolist() == [1, 0.75, 0.5, 0.25]


def test_a_number_beyond_one_is_no_confidence():
    assert read([asked(confidence=80), asked(confidence=0.3)])["confidences"].empty


def test_a_labelled_table_needs_neither_answers_nor_passages():
    data = b"question,confidence,correct\nWho?,0.9,1\nWhere?,0.2,0\n"
    imported = import_file(data, "labels.csv")
    assert imported.run.queries["correct"].tolist() == [True, False]
    assert imported.report.ignored == () and not any("passages" in line for line in imported.report.missing)


def test_a_label_of_any_file_is_exported_again():
    data = b"query,doc_id,retrieval_rank,influence_score,is_correct\nWho?,a,1,0.5,no\nWho?,b,2,0.1,no\n"
    run = import_file(data, "f.csv").run
    again = import_file(FORMATS["jsonl"].write(records_of(run)), "f.jsonl").run
    assert run.queries["correct"].tolist() == again.queries["correct"].tolist() == [False]
