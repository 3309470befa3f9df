import json

import pandas as pd
import pytest

from core.errors import InputError, RunFormatError
from core.run import Run
from core.sources.dataset import PassageIn, dataset_of, open_questions, read_dataset
from core.sources.formats import import_file
from core.sources.formats.jsonl import FORMAT
from core.sources.formats.records import Record, RecordPassage, records_of, run_of
from core.sources.simulation import SimulationOptions, simulate

GOOD = Record(
    "canal",
    "When did it open?",
    "In 1914.",
    (
        RecordPassage("b", "It opened in 1914.", "Canal", 7.5, True),
        RecordPassage("a", "Coffee.", "", 2.0, False),
    ),
    ("1914",),
    kind="single",
    language="en",
)


def run(*records, **manifest):
    return run_of(records, {"source": "upload", "name": "mine", **manifest})


def test_questions_come_with_the_passages_of_the_run():
    dataset = dataset_of(run(GOOD))
    assert dataset.name == "mine"
    question = dataset.questions[0]
    assert (question.query_id, question.question, question.documents) == ("canal", "When did it open?", ())
    assert question.passages == (
        PassageIn("b", "Canal", "It opened in 1914.", 7.5, True),
        PassageIn("a", "", "Coffee.", 2.0, False),
    )
    assert (question.reference_answers, question.kind, question.language) == (("1914",), "single", "en")
    assert (dataset.report.n_rows, dataset.report.n_kept, dataset.report.n_issues) == (1, 1, 0)
    assert "influence vs retrieval" in dataset.report.enables


def test_the_order_is_that_of_the_retrieval_ranks():
    queries = pd.DataFrame({"query_id": ["x"], "question": ["X?"]})
    passages = pd.DataFrame(
        {"query_id": "x", "passage_id": ["third", "first", "tied"], "retrieval_rank": [2.0, 1.0, 2.0], "text": ["3", "1", "2"]}
    )  # fmt: skip
    made = Run.create({"source": "live"}, queries=queries, passages=passages)
    assert [p.passage_id for p in dataset_of(made).questions[0].passages] == ["first", "third", "tied"]


def test_what_has_no_text_is_left_out_and_named():
    dataset = dataset_of(
        run(
            Record("none", "No passages?"),
            Record("blank", "No text?", passages=(RecordPassage("p1", None), RecordPassage("p2", " "))),
            Record("some", "One?", passages=(RecordPassage("p1", None), RecordPassage("p2", "text"))),
            Record("many", "Many?", passages=tuple(RecordPassage(f"p{n}", "t") for n in range(201))),
            GOOD,
        )
    )
    assert [q.query_id for q in dataset.questions] == ["some", "canal"]
    assert [p.passage_id for p in dataset.questions[0].passages] == ["p2"]
    report = dataset.report
    assert (report.n_rows, report.n_kept, report.n_rejected, report.n_errors, report.n_warnings) == (
        5,
        2,
        3,
        3,
        1,
    )
    assert [(i.row, i.column, i.value, i.severity) for i in report.issues] == [
        (1, "passages", "none: 0 passages without text", "error"),
        (2, "passages", "blank: 2 passages without text", "error"),
        (3, "passages", "p1", "warning"),
        (4, "passages", "201 passages", "error"),
    ]
    assert report.rejected["id"].to_list() == ["none", "blank", "many"]
    assert report.rejected["question"].to_list() == ["No passages?", "No text?", "Many?"]


def test_no_question_left_is_an_error():
    with pytest.raises(
        InputError, match="The run 'mine' cannot be continued live: none of its 1 questions has a passage"
    ):
        dataset_of(run(Record("none", "No passages?", "An answer.")))


def test_any_run_can_be_asked_again():
    simulated = simulate(SimulationOptions(queries=10, passages=4))
    dataset = dataset_of(simulated)
    assert [q.question for q in dataset.questions] == simulated.queries["question"].to_list()
    assert all(len(q.passages) == 4 for q in dataset.questions)


def test_the_same_questions_as_from_the_file_itself(tmp_path):
    data = FORMAT.write([GOOD])
    dataset = dataset_of(import_file(data, "mine").run)
    assert dataset.digest == read_dataset(data, "mine").digest
    assert records_of(run(GOOD)) == [GOOD]


def test_a_folder_is_a_run_and_a_file_is_a_data_set(tmp_path):
    folder, file = tmp_path / "run", tmp_path / "set.jsonl"
    run(GOOD).save(folder)
    file.write_text(json.dumps({"question": "q", "documents": ["d"]}), encoding="utf-8")
    assert open_questions(folder).questions == dataset_of(run(GOOD)).questions
    assert open_questions(str(file)).questions[0].question == "q"
    with pytest.raises(RunFormatError, match=r"not a saved run"):
        open_questions(tmp_path)
    with pytest.raises(InputError, match="no file"):
        open_questions(tmp_path / "gone")
