"""The step that answers: its calls, and what becomes of their answers."""

import json
import re
from dataclasses import replace

import pandas as pd
import pytest

from core.errors import InputError
from core.influence.step import InfluenceStep
from core.llm.types import Completion
from core.pipeline import RunOptions, begin
from core.pipeline.rows import AskedQuestion, questions_of
from core.run import Run
from core.sources.dataset import read_dataset
from tests.scripted import ScriptedLLM


def asked(step, passages):
    """Return the calls of one question."""
    row = {"id": "q", "question": "What is it?", "passages": [f"fact {i}" for i in range(1, 4)]}
    run = begin(read_dataset(json.dumps(row).encode(), "t.jsonl"), RunOptions(k=3), ScriptedLLM({}), step)
    question = questions_of(run)("q")
    return step.calls(question if passages else replace(question, passages=()))


def labels(call):
    return [int(n) for n in re.findall(r"^\[(\d+)\]", call.request.messages[0].content, re.MULTILINE)]


def test_calls_come_in_order_with_unchanged_labels():
    calls = asked(InfluenceStep(repeats=2, seed=5), True)
    assert [(c.kind, c.number) for c in calls] == [
        ("baseline", 1), ("ablation", 1), ("ablation", 2), ("ablation", 3), ("repeat", 1), ("repeat", 2), ("closed book", 1),
    ]  # fmt: skip
    assert [labels(c) for c in calls] == [[1, 2, 3], [2, 3], [1, 3], [1, 2], [1, 2, 3], [1, 2, 3], []]
    assert [c.request.seed for c in calls] == [5, 5, 5, 5, 6, 7, 5]
    assert {c.request.temperature for c in calls} == {0.0}
    assert calls[4].request.messages == calls[0].request.messages


def test_closed_book_can_be_left_out_and_no_passage_means_no_call():
    step = InfluenceStep(closed_book=False, max_tokens=7)
    calls = asked(step, True)
    assert [c.kind for c in calls] == ["baseline"] + ["ablation"] * 3
    assert {c.request.max_tokens for c in calls} == {7}
    assert asked(step, False) == []


def of_two(**query):
    """A question with two passages."""
    row = {"question": "What?", "status_reason": None} | query
    return AskedQuestion("q", row, tuple({"passage_id": one, "title": "", "text": one} for one in "ab"))


def said(text, finish_reason="stop", n_tokens=12, error=None):
    return Completion(text, finish_reason, n_tokens, 3, 0.5, error=error)


FAILED = Completion.failed("Timed out.", 12, 0.5)
SPENT = (
    "The token limit was spent on reasoning before any answer; raise the max answer tokens (--max-tokens)."
)


@pytest.mark.parametrize(
    ("step", "n_passages", "n"),
    [
        (InfluenceStep(), 0, 0),
        (InfluenceStep(), 1, 3),
        (InfluenceStep(repeats=2), 3, 7),
        (InfluenceStep(repeats=4, closed_book=False), 2, 7),
    ],
)
def test_number_of_calls(step, n_passages, n):
    assert step.n_calls(n_passages) == n


def test_unless_told_the_seed_is_0():
    assert {call.request.seed for call in InfluenceStep().calls(of_two())} == {0}


def test_number_of_calls_is_that_of_the_calls():
    for step in (InfluenceStep(), InfluenceStep(repeats=3, closed_book=False)):
        assert len(step.calls(of_two())) == step.n_calls(2)


@pytest.mark.parametrize(
    ("name", "low", "high", "span"),
    [
        ("repeats", 0, 100, "0 to 100"),
        ("seed", 0, 2_147_483_647, "0 to 2,147,483,647"),
        ("max_tokens", 1, 4096, "1 to 4,096"),
    ],
)
def test_options_have_ranges_with_both_ends(name, low, high, span):
    for value in (low, high):
        assert getattr(InfluenceStep(**{name: value}), name) == value
    for value in (low - 1, high + 1):
        with pytest.raises(InputError, match=f"{name} must be a whole number from {span}, got {value}"):
            InfluenceStep(**{name: value})


def test_rows_of_a_question():
    answers = {
        ("baseline", 1): said("Cafe\u0301"), ("ablation", 1): said("Bea"), ("ablation", 2): FAILED,
        ("repeat", 1): said("I don't know."), ("repeat", 2): said("", "reasoning"), ("repeat", 3): said("Ada"),
        ("closed book", 1): said(""),
    }  # fmt: skip
    none = dict.fromkeys(("logprob_drop", "reference_logprob_drop", "approximate_drop", "screened_drop"))
    assert InfluenceStep(repeats=3).rows(of_two(), answers) == {
        "queries": [
            {"query_id": "q", "answer": "Café", "answer_status": "answered", "status_reason": None,
             "closed_book_answer": "", "latency": 0.5, "prompt_tokens": 12, "completion_tokens": 3},
        ],
        "passages": [
            {"query_id": "q", "passage_id": "a", "ablated_answer": "Bea", "ablated_status": "answered", **none},
            {"query_id": "q", "passage_id": "b", "ablated_answer": None, "ablated_status": "error", **none},
        ],
        "repeats": [
            {"query_id": "q", "repeat": 1, "answer": "I don't know.", "answer_status": "abstained"},
            {"query_id": "q", "repeat": 2, "answer": None, "answer_status": "error"},
            {"query_id": "q", "repeat": 3, "answer": "Ada", "answer_status": "answered"},
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("completion", "answer", "status", "reason", "latency", "tokens"),
    [
        (said("Ada"), "Ada", "answered", None, 0.5, (12, 3)),
        (said("Ada", n_tokens=1), "Ada", "answered", None, 0.5, (1, 3)),
        (said("Ada", n_tokens=0), "Ada", "answered", None, 0.5, (None, None)),
        (said("Ada", "length"), "Ada", "answered", None, 0.5, (12, 3)),
        (said(""), "", "empty", "The model returned no text.", 0.5, (12, 3)),
        (said("", "length"), "", "empty", "The token limit was used up without an answer.", 0.5, (12, 3)),
        (said("", "reasoning"), "", "empty", SPENT, 0.5, (12, 3)),
        (said("", "content_filter"), "", "empty", "The server's content filter withheld the answer.", 0.5, (12, 3)),
        (FAILED, None, "error", "Timed out.", None, (None, None)),
    ],
)  # fmt: skip
def test_an_answer_its_status_and_what_it_took(completion, answer, status, reason, latency, tokens):
    rows = InfluenceStep(closed_book=False).rows(
        of_two(), {("baseline", 1): completion, ("ablation", 1): said("a"), ("ablation", 2): said("b")}
    )
    assert rows["queries"] == [
        {"query_id": "q", "answer": answer, "answer_status": status, "status_reason": reason,
         "closed_book_answer": None, "latency": latency, "prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
    ]  # fmt: skip
    assert [row["ablated_answer"] for row in rows["passages"]] == ["a", "b"] and rows["repeats"] == []


@pytest.mark.parametrize(
    ("completion", "answer", "status"),
    [
        (said("", "reasoning"), None, "error"),
        (said("", "content_filter"), None, "error"),
        (said("", "length"), "", "empty"),
        (said("Ada", "content_filter"), "Ada", "answered"),
        (None, None, "error"),
    ],
)
def test_a_withheld_answer_says_nothing_of_a_passage(completion, answer, status):
    answers = {("baseline", 1): said("Ada"), ("ablation", 1): completion}
    first, second = InfluenceStep(closed_book=False).rows(of_two(), answers)["passages"]
    assert (first["ablated_answer"], first["ablated_status"]) == (answer, status)
    assert second["ablated_status"] == "error"


def test_a_question_without_passages_or_answer():
    step, bare = InfluenceStep(), replace(of_two(), passages=())
    row = {"query_id": "q", "answer_status": "error"}
    assert step.rows(bare, {}) == {
        "queries": [row | {"status_reason": "The question has no passage to answer from."}], "passages": [],
    }  # fmt: skip
    other = replace(bare, query=of_two(status_reason="No such document.").query)
    assert step.rows(other, {})["queries"] == [row | {"status_reason": "No such document."}]
    failed = step.failed(of_two(), "Out of memory.")
    assert failed["queries"] == [row | {"status_reason": "Out of memory."}]
    assert [(one["passage_id"], one["ablated_status"]) for one in failed["passages"]] == [
        ("a", "error"), ("b", "error"),
    ]  # fmt: skip


# Status, closed-book answer, statuses without each passage, statuses of the repeats.
QUESTIONS = {
    "done": ("answered", "Bea", ["answered", "empty"], ["answered", "empty"]),
    "more": ("abstained", "Bea", ["answered"], ["answered"] * 3),
    "not asked": (None, None, [None, None], []),
    "failed": ("error", "Bea", ["answered"], ["answered"] * 2),
    "bare": ("error", None, [], []),
    "new": (None, None, [], []),
    "book": ("answered", None, ["answered"], ["answered"] * 2),
    "gap": ("answered", "Bea", ["answered", None], ["answered"] * 2),
    "lost": ("answered", "Bea", ["error", "answered"], ["answered"] * 2),
    "few": ("answered", "Bea", ["answered"], ["answered"]),
    "none": ("answered", "Bea", ["answered"], []),
    "again": ("answered", "Bea", ["answered"], ["answered", "error"]),
}


def asked_run(names=QUESTIONS):
    chosen = {name: QUESTIONS[name] for name in names}
    passages = [(name, f"p{i}", i, one) for name, row in chosen.items() for i, one in enumerate(row[2], 1)]
    repeats = [(name, i, "x", one) for name, row in chosen.items() for i, one in enumerate(row[3], 1)]
    return Run.create(
        {"source": "live"},
        queries=pd.DataFrame(
            [(name, "?", row[0], f"why {row[0]}", row[1]) for name, row in chosen.items()],
            columns=["query_id", "question", "answer_status", "status_reason", "closed_book_answer"],
        ),
        passages=pd.DataFrame(
            passages, columns=["query_id", "passage_id", "retrieval_rank", "ablated_status"]
        ),
        repeats=pd.DataFrame(repeats, columns=["query_id", "repeat", "answer", "answer_status"]),
    )


@pytest.mark.parametrize(
    ("step", "missing"),
    [
        (InfluenceStep(), "not asked, failed, new, book, gap, lost"),
        (InfluenceStep(closed_book=False), "not asked, failed, new, gap, lost"),
        (InfluenceStep(repeats=1), "not asked, failed, new, book, gap, lost, none"),
        (InfluenceStep(repeats=2), "not asked, failed, new, book, gap, lost, few, none, again"),
    ],
)
def test_what_is_missing(step, missing):
    assert step.missing(asked_run()) == missing.split(", ")


def test_facts_count_questions_and_ablations_without_an_answer():
    run = asked_run(["done", "failed", "bare", "gap", "new"])
    frame = run.passages.assign(ablated_status=["error", "error", "error", "answered", None])
    # Of the three the last is of a question without an answer.
    found = InfluenceStep().facts(Run.create(run.manifest, **{**run.tables, "passages": frame}))
    assert found == {
        "reasons": {"why error": 2},
        "notes": [
            "Without an answer: 2 of 4 questions; the table has the reasons.",
            "Missing: 2 ablated answers; their questions are undefined (incomplete).",
        ],
    }
    assert InfluenceStep().facts(asked_run(["done", "book", "new"])) == {"reasons": {}, "notes": []}
    assert InfluenceStep().facts(asked_run(["bare"]))["notes"] == [
        "Without an answer: 1 of 1 question; the table has the reasons."
    ]
    assert InfluenceStep().facts(asked_run(["done", "lost"]))["notes"] == [
        "Missing: 1 ablated answer; its question is undefined (incomplete)."
    ]
