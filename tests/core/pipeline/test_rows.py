"""A step's rows: how they come into a run, and how they are cleared from it."""

import pandas as pd
import pytest

from core.errors import InputError
from core.llm.prompts import FUNCTION_STYLE
from core.pipeline.rows import AskedQuestion, cleared, merged, prompt_of, questions_of
from core.run import Run

IDS = ["q0", "q1", "q2"]


def frame(columns, *rows):
    return pd.DataFrame(list(rows), columns=columns.split())


def run_with(manifest=None, **tables):
    queries = pd.DataFrame({"query_id": IDS, "question": "What?", "answer": [f"a {i}" for i in IDS]})
    passages = frame(
        "query_id passage_id text retrieval_rank slot",
        ("q0", "c", "third", 1.0, 3),
        ("q0", "a", "first", 3.0, 1),
        ("q0", "b", "second", 2.0, 2),
        ("q1", "y", "later", 2.0, None),
        ("q1", "x", "sooner", 1.0, None),
    )
    return Run.create({"source": "upload", **(manifest or {})}, queries=queries, passages=passages, **tables)


def listed(run, table, columns):
    return run[table][columns.split()].astype("object").to_numpy().tolist()


def verdicts(*ids):
    return frame("query_id validator detail", *((i, "words", f"old {i}") for i in ids))


def test_a_question_has_its_passages_in_prompt_order_and_its_rows_of_the_named_tables():
    question = questions_of(run_with(verdicts=verdicts("q1", "q0")), ["verdicts"])
    first, second, last = map(question, IDS)
    assert (first.query_id, first.query["answer"]) == ("q0", "a q0")
    assert [one["passage_id"] for one in first.passages] == ["a", "b", "c"]  # by slot
    assert [one["passage_id"] for one in second.passages] == ["x", "y"]  # by rank where there is none
    assert [one["detail"] for one in second.filled["verdicts"]] == ["old q1"]
    assert (last.passages, last.filled) == ((), {"verdicts": ()})
    assert questions_of(run_with())("q1").filled == {}


def test_a_prompt_takes_passages_by_number_title_and_text():
    passages = ({"title": "T", "text": "one"}, {"title": None, "text": None})
    assert AskedQuestion("q", {}, passages).numbered == [(1, "T", "one"), (2, "", "")]


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        ({}, ("short", 24, 0)),
        ({"prompt": {"style": "full", "max_tokens": 7}, "options": {"seed": 3}}, ("full", 7, 3)),
        ({"prompt": {"style": "of another program"}, "options": {"seed": None}}, ("short", 24, 0)),
        ({"prompt": {"style": FUNCTION_STYLE.name}}, ("function", 24, 0)),
    ],
)
def test_the_prompt_of_a_run_is_that_of_its_answers_or_the_default(manifest, expected):
    assert prompt_of(run_with(manifest)) == expected


def test_whole_rows_of_the_questions_worked_on_are_replaced_in_the_order_of_the_questions():
    run = run_with(verdicts=verdicts("q0", "q1", "q2"))
    new = [{"query_id": "q1", "validator": v, "detail": "new"} for v in ("one", "two")]
    found = merged(run, [(("q2",), {"verdicts": []}), (("q1",), {"verdicts": new})], {"verdicts": ()})
    assert listed(found, "verdicts", "query_id validator detail") == [
        ["q0", "words", "old q0"],
        ["q1", "one", "new"],
        ["q1", "two", "new"],
    ]


@pytest.mark.parametrize("nothing", [[], pd.DataFrame()])
def test_a_question_whose_new_rows_are_none_loses_the_old_ones(nothing):
    run = run_with(verdicts=verdicts("q0", "q1"))
    found = merged(run, [(("q1",), {"verdicts": nothing})], {"verdicts": ()})
    assert found["verdicts"]["query_id"].to_list() == ["q0"]
    # Cells that a step fills stay as they are where it has none.
    kept = merged(run, [(("q1",), {"verdicts": nothing})], {"verdicts": ("detail",)})
    assert kept["verdicts"].equals(run["verdicts"])


def test_frames_and_lists_of_several_parts_come_together():
    parts = [
        (("q2",), {"verdicts": [{"query_id": "q2", "validator": "words", "detail": "a list"}]}),
        (("q0",), {"verdicts": verdicts("q0")}),
        (("q1",), {}),
    ]
    found = merged(run_with(), parts, {"verdicts": ()})
    assert listed(found, "verdicts", "query_id detail") == [["q0", "old q0"], ["q2", "a list"]]


def test_without_a_part_the_run_is_the_same():
    run = run_with()
    assert merged(run, [], {"verdicts": ()}) is run


def test_cells_are_filled_by_key_and_rows_with_other_keys_are_added():
    signals = frame("query_id similarity llm_score", ("q0", 0.1, None), ("q2", 0.3, 0.9))
    new = [{"query_id": "q2", "llm_score": 0.5}, {"query_id": "q1", "llm_score": 0.4}]
    found = merged(run_with(signals=signals), [(("q1", "q2"), {"signals": new})], {"signals": ("llm_score",)})
    assert found["signals"]["query_id"].to_list() == IDS
    assert found["signals"]["similarity"].fillna(-1).to_list() == [0.1, -1, 0.3]
    assert found["signals"]["llm_score"].fillna(-1).to_list() == [-1, 0.4, 0.5]


@pytest.mark.parametrize(
    ("table", "row", "message"),
    [
        ("queries", {"query_id": "q9", "answer": "x"}, "Table queries has no row for q9."),
        (
            "passages",
            {"query_id": "q0", "passage_id": "z", "ablated_answer": "x"},
            "Table passages has no row for q0, z.",
        ),
    ],
)
def test_questions_and_passages_are_not_added(table, row, message):
    filled = set(row) - {"query_id", "passage_id"}
    with pytest.raises(InputError) as error:
        merged(run_with(), [(("q0",), {table: [row]})], {table: tuple(filled)})
    assert str(error.value) == message


def test_what_is_cleared_are_a_step_s_cells_rows_facts_and_notes():
    signals = frame("query_id similarity llm_score", ("q0", 0.1, 0.5), ("q1", None, 0.6))
    manifest = {
        "notes": ["Of the import.", "Of the step."],
        "steps": {"score": {"notes": ["Of the step."]}, "words": {"n_done": 3}},
    }
    run = run_with(manifest, signals=signals, verdicts=verdicts("q0", "q1"))
    cells = {"signals": ("llm_score",), "verdicts": (), "queries": ("answer",), "claims": ()}
    found = cleared(run, cells, ["score", "never run"], now={"score": {"model": None}})
    # A row that says nothing more goes, but the questions stay.
    assert found["signals"]["query_id"].to_list() == ["q0"]
    assert found["signals"]["similarity"].to_list() == [0.1]
    assert found["signals"]["llm_score"].isna().all()
    assert len(found["verdicts"]) == 0
    assert found.queries["query_id"].to_list() == IDS and found.queries["answer"].isna().all()
    assert found.queries["question"].to_list() == ["What?"] * 3
    assert found.manifest["notes"] == ["Of the import."]
    assert found.manifest["steps"] == {"score": {"model": None}, "words": {"n_done": 3}}
    assert run.manifest["notes"] == ["Of the import.", "Of the step."]


def test_rows_of_others_are_kept_from_clearing():
    run = run_with(verdicts=verdicts("q0", "q1"))
    found = cleared(run, {"verdicts": ()}, ["words"], {"verdicts": verdicts("q1")})
    assert found["verdicts"]["query_id"].to_list() == ["q1"]
