"""What the context test leaves out and adds, and which questions it cannot test."""

import pandas as pd
import pytest

from core.run import Run
from core.uncertainty.conditions import ADDED, UNCHANGED, WITHOUT, designed


def run_of(questions, **tables):
    """Return a run of questions, each with an answer and passages as (text, further columns)."""
    queries = [
        {"query_id": name, "question": f"{name}?", "answer": answer}
        for name, (answer, _) in questions.items()
    ]
    passages = [
        {"query_id": name, "passage_id": f"p{i}", "title": "T", "text": text, "retrieval_rank": i, **more}
        for name, (_, given) in questions.items()
        for i, (text, more) in enumerate(given, start=1)
    ]
    frames = {name: pd.DataFrame(rows) for name, rows in tables.items()}
    return Run.create(
        {"source": "upload"}, queries=pd.DataFrame(queries), passages=pd.DataFrame(passages), **frames
    )


GOLD, OTHER = {"is_gold": True}, {"is_gold": False}
PLAIN = {
    "a": ("red", [("a one", OTHER), ("a two", GOLD), ("a three", OTHER)]),
    "b": ("blue", [("b one", GOLD), ("b two", OTHER), ("b three", OTHER)]),
    "c": ("green", [("c one", OTHER), ("c two", OTHER), ("c three", GOLD)]),
}


def ids(shown):
    return [(one.label, one.query_id, one.passage_id) for one in shown]


def test_gold_passages_are_left_out_and_the_others_keep_their_labels():
    design = designed(run_of(PLAIN), 9)
    assert list(design.tests) == ["a", "b", "c"] and not design.passed_over
    a = design.tests["a"]
    assert ids(a[UNCHANGED]) == [(1, "a", "p1"), (2, "a", "p2"), (3, "a", "p3")]
    assert ids(a[WITHOUT]) == [(1, "a", "p1"), (3, "a", "p3")]
    assert [(one.title, one.text) for one in a[WITHOUT]] == [("T", "a one"), ("T", "a three")]


def test_as_many_passages_of_other_questions_are_added_at_drawn_places():
    run = run_of(PLAIN)
    shown = designed(run, 1).tests["a"][ADDED]
    assert [one.label for one in shown] == [1, 2, 3, 4, 5, 6]
    assert [one.text for one in shown if one.query_id == "a"] == ["a one", "a two", "a three"]
    added = [one for one in shown if one.query_id != "a"]
    assert len(added) == 3 == len({one.text for one in added})
    # The text is that of the passage which is named.
    words = {"p1": "one", "p2": "two", "p3": "three"}
    assert all(one.text == f"{one.query_id} {words[one.passage_id]}" for one in added)
    # The same whatever else is tested, another draw by another seed.
    assert designed(run, 3).tests["a"][ADDED] == shown
    draws = {designed(run, 1, seed).tests["a"][ADDED] for seed in range(8)}
    assert len(draws) > 1
    assert len({tuple(one.query_id == "a" for one in draw) for draw in draws}) > 1


def test_related_passages_and_those_that_hold_the_answer_are_not_added():
    questions = {
        "a": ("red", [("shared", OTHER), ("a two", GOLD)]),
        "b": ("blue", [("shared", OTHER), ("b two", GOLD)]),  # shares a passage with a
        "c": ("green", [("It was RED, they say.", OTHER), ("redder", GOLD)]),  # one holds the answer
        "d": ("grey", [("d one", OTHER), ("redder", GOLD)]),  # the same text twice is one passage
        "e": ("x", [("", OTHER)]),
    }
    for seed in range(5):
        added = [one for one in designed(run_of(questions), 1, seed).tests["a"][ADDED] if one.query_id != "a"]
        assert sorted(one.text for one in added) == ["d one", "redder"]


def test_a_question_with_many_passages_gets_as_many_more():
    many = {
        name: (name, [(f"{name} {i}", GOLD if i == 1 else OTHER) for i in range(1, n + 1)])
        for name, n in (("a", 300), ("b", 400))
    }
    shown = designed(run_of(many), 1).tests["a"][ADDED]
    assert len(shown) == 600 and sum(one.query_id == "b" for one in shown) == 300


def test_reference_answers_count_as_answers():
    run = run_of(PLAIN)
    queries = run.queries.assign(reference_answers=[["b one"], None, None])
    for seed in range(5):
        added = designed(run.derive(queries=queries), 1, seed).tests["a"][ADDED]
        assert "b one" not in [one.text for one in added]


SUPPORT = {
    "claims": [
        {"query_id": "a", "claim_id": "c1", "text": "x", "side": "answer"},
        {"query_id": "a", "claim_id": "r1", "text": "y", "side": "reference"},
    ],
    "support": [
        {"query_id": "a", "claim_id": "c1", "passage_id": "p1", "probability": 0.5},
        {"query_id": "a", "claim_id": "c1", "passage_id": "p2", "probability": 0.49},
        {"query_id": "a", "claim_id": "r1", "passage_id": "p2", "probability": 0.9},
        {"query_id": "a", "claim_id": "c1", "passage_id": "p3", "probability": 0.9},
    ],
}


@pytest.mark.parametrize(
    ("marks", "tables", "left"),
    [
        # Marked for some passages only: a gold one is enough.
        ([None, True, None], SUPPORT, ["p1", "p3"]),
        ([False, None, False], SUPPORT, ["p2"]),
        ([None, None, None], {}, ["p1", "p2"]),
    ],
    ids=["gold", "claims", "influence"],
)
def test_what_supports_an_answer(marks, tables, left):
    ablated = ["red and blue", "red and green", "grey"]
    given = [
        (f"a {i}", {"is_gold": mark, "ablated_answer": answer})
        for i, (mark, answer) in enumerate(zip(marks, ablated, strict=True))
    ]
    run = run_of({"a": ("red and green", given), "b": PLAIN["b"], "c": PLAIN["c"]}, **tables)
    assert [one.passage_id for one in designed(run, 1).tests["a"][WITHOUT]] == left


def test_influence_can_be_a_number_without_an_answer():
    given = [("a 1", {"influence_score": 0.1}), ("a 2", {"influence_score": 0.4}), ("a 3", {})]
    run = run_of({"a": ("red", given), "b": PLAIN["b"], "c": PLAIN["c"]})
    assert [one.passage_id for one in designed(run, 1).tests["a"][WITHOUT]] == ["p1", "p3"]


def test_questions_that_cannot_be_tested_are_passed_over_with_the_reason():
    none, all_of_it = [("z 1", OTHER), ("z 2", OTHER)], [("y 1", GOLD), ("y 2", GOLD)]
    unmoved = [("x 1", {"ablated_answer": "red"}), ("x 2", {"ablated_answer": "red"})]
    long = [(f"w {i}", GOLD if i else OTHER) for i in range(20)]
    questions = {
        "refused": ("I don't know.", PLAIN["a"][1]),
        "empty": ("", PLAIN["a"][1]),
        "failed": (None, PLAIN["a"][1]),
        "gold_not_found": ("red", none),
        "nothing_changes_it": ("red", unmoved),
        "no_passages": ("red", []),
        "all_support": ("red", all_of_it),
        "long": ("red", long),
        "fine": PLAIN["b"],
        "later": ("", PLAIN["a"][1]),
    }
    design = designed(run_of(questions), 1)
    assert list(design.tests) == ["fine"]
    reasons = {"no_answer": 3, "no_support": 3, "nothing_left": 1, "few_unrelated": 1}
    assert design.passed_over == reasons
    # Whoever wants more learns of those behind, too.
    assert designed(run_of(questions), 2).passed_over == {**reasons, "no_answer": 4}
    assert designed(run_of(questions), 0).tests == {} == designed(run_of(questions), 0).passed_over


def test_a_guess_takes_questions_without_an_answer():
    asked = {name: (None, [(text, {}) for text, _ in given]) for name, (_, given) in PLAIN.items()}
    run = run_of(asked)
    assert designed(run, 2).tests == {}
    guess = designed(run, 2, guess=True)
    assert list(guess.tests) == ["a", "b"]
    assert ids(guess.tests["a"][WITHOUT]) == [(2, "a", "p2"), (3, "a", "p3")]
    assert len(guess.tests["a"][ADDED]) == 6
