"""The order of calls in which a server finds most of a prompt in its cache."""

from __future__ import annotations

import random
from itertools import pairwise, permutations, takewhile
from operator import eq

import pytest

from core.influence.step import InfluenceStep
from core.llm.remote import prefix_order
from core.llm.types import Message, Request
from core.pipeline.rows import AskedQuestion


def asked(*prompts):
    return [Request((Message("user", prompt),)) for prompt in prompts]


def shared(prompts, order):
    """How many characters are found in what was read just before."""
    return sum(len(list(takewhile(bool, map(eq, prompts[a], prompts[b])))) for a, b in pairwise(order))


def test_nothing_to_order():
    assert prefix_order([]) == []
    assert prefix_order(asked("one")) == [0]


def test_of_equals_the_first_comes_first():
    assert prefix_order(asked("a", "b", "c", "a")) == [0, 3, 1, 2]


def test_a_begun_answer_and_roles_are_part_of_the_prompt():
    first = Request((Message("user", "a"), Message("assistant", "b")))
    other = Request((Message("user", "a"), Message("assistant", "c")))
    assert prefix_order([first, *asked("a\nb"), other]) == [0, 2, 1]


def test_what_does_not_begin_alike_shares_nothing_however_it_goes_on():
    """The second letters of "user" and "assistant" are the same."""
    assert prefix_order([Request((Message(role, "a"),)) for role in ("user", "system", "assistant")]) == [
        0,
        1,
        2,
    ]


@pytest.mark.parametrize("seed", range(20))
def test_no_other_order_shares_more(seed):
    rng = random.Random(seed)
    prompts = ["".join(rng.choices("ab", k=rng.randint(1, 6))) for _ in range(6)]
    best = max(shared(prompts, (0, *rest)) for rest in permutations(range(1, 6)))
    assert shared(prompts, prefix_order(asked(*prompts))) == best


def test_the_calls_of_a_question_go_from_the_last_passage_to_the_first():
    passages = [{"passage_id": f"p{i}", "title": "T", "text": f"Fact {i}."} for i in range(1, 5)]
    question = AskedQuestion("q", {"question": "Which fact?"}, passages, {})
    calls = InfluenceStep(repeats=2).calls(question)
    order = prefix_order([call.request for call in calls])
    assert [(calls[i].kind, calls[i].number) for i in order] == [
        ("baseline", 1),
        ("repeat", 1),
        ("repeat", 2),
        ("ablation", 4),
        ("ablation", 3),
        ("ablation", 2),
        ("ablation", 1),
        ("closed book", 1),
    ]
