import json
import re
from dataclasses import replace

from core.influence.step import InfluenceStep
from core.pipeline import RunOptions, begin
from core.pipeline.rows import questions_of
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
