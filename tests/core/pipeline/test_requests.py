import re

from core.pipeline import RunOptions
from core.pipeline.requests import question_calls
from core.pipeline.retrieve import PassageFinder, Retrieved


def labels(call):
    return [int(n) for n in re.findall(r"^\[(\d+)\]", call.request.messages[0].content, re.MULTILINE)]


def test_calls_come_in_order_with_unchanged_labels(make_dataset):
    question = make_dataset(k=3).questions[0]
    options = RunOptions(repeats=2, seed=5)
    calls = question_calls(question.question, PassageFinder(options).find(question), options)
    assert [(c.kind, c.number) for c in calls] == [
        ("baseline", 1), ("ablation", 1), ("ablation", 2), ("ablation", 3), ("repeat", 1), ("repeat", 2), ("closed book", 1),
    ]  # fmt: skip
    assert [labels(c) for c in calls] == [[1, 2, 3], [2, 3], [1, 3], [1, 2], [1, 2, 3], [1, 2, 3], []]
    assert [c.request.seed for c in calls] == [5, 5, 5, 5, 6, 7, 5]
    assert {c.request.temperature for c in calls} == {0.0}
    assert calls[4].request.messages == calls[0].request.messages


def test_closed_book_can_be_left_out_and_no_passage_means_no_call(make_dataset):
    question = make_dataset(k=3).questions[0]
    options = RunOptions(closed_book=False, max_tokens=7)
    calls = question_calls(question.question, PassageFinder(options).find(question), options)
    assert [c.kind for c in calls] == ["baseline"] + ["ablation"] * 3
    assert {c.request.max_tokens for c in calls} == {7}
    assert question_calls("q", Retrieved(problem="none"), options) == []
