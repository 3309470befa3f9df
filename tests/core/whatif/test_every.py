"""The same change for all questions: the passages it leaves, and the run that an arm gives."""

from __future__ import annotations

import pandas as pd
import pytest

from core.diagnosis import Diagnosis
from core.errors import InputError
from core.losses.arms import Arm, Case, Shown
from core.losses.fixes import fixes
from core.losses.step import LossesStep
from core.pipeline import fill
from core.pipeline.steps import model_facts
from core.report.compare import setup_differences, sides_of
from core.run import Run
from core.whatif.every import ASKED_ANEW, RunChange, arm_of, run_of_arm, said, step_for
from core.whatif.finding import Elsewhere
from tests.scripted import ScriptedLLM


def rule(request):
    """Read the first passage: an arm that moves it changes the answer."""
    first = request.messages[0].content.split("[1] ")[1].split("\n")[0]
    return first.split()[-1].strip(".")


LLM = ScriptedLLM(rule)


def some_run(model=None, **columns):
    """Three questions with three passages of the years 1, 2, 3; the answer is that of the first."""
    ids = ["q1", "q2", "q3"]
    queries = {
        "query_id": ids, "question": ["When one?", "When two?", "When three?"], "answer": ["1901", "1902", "1903"],
        "answer_status": "answered", "reference_answers": [["1931"], ["1902"], ["1933"]],
        "closed_book_answer": "1800", "n_gold": [1, 1, 1], "kind": "year",
    } | columns  # fmt: skip
    passages = [
        {"query_id": one, "passage_id": name, "title": "", "text": f"The year {year + i}.",
         "retrieval_rank": float(rank), "retrieval_score": score, "slot": slot, "ablated_answer": "x",
         "is_gold": name == "c"}
        for i, one in enumerate(ids, start=1)
        for slot, (name, year, rank, score) in enumerate(
            [("a", 1900, 2, 5.0), ("b", 1920, 1, 9.0), ("c", 1930, 3, 1.0)], start=1)
    ]  # fmt: skip
    manifest = {"source": "live", "name": "Years", "run_id": "parent", "model": model or model_facts(LLM),
                "options": {"k": 3}, "notes": ["A note."]}  # fmt: skip
    return Run.create(manifest, queries=pd.DataFrame(queries), passages=pd.DataFrame(passages),
                      repeats=pd.DataFrame({"query_id": ["q1"], "repeat": [1], "answer": ["1901"]}))  # fmt: skip


def case(run):
    return Case(
        "q1", "When?", tuple(Shown(name, "", f"The year {name}.", i) for i, name in enumerate("abc", 1))
    )


@pytest.mark.parametrize(
    ("change", "expected", "title"),
    [
        (RunChange(), "abc", ""),
        (RunChange(k=2), "ab", "At most 2 passages"),
        (RunChange(k=9), "abc", "At most 9 passages"),
        (RunChange(order="retrieval"), "bac", "By retrieval rank"),
        (RunChange(order="reversed"), "cba", "Reversed"),
        (RunChange(k=2, order="reversed"), "ba", "At most 2 passages, reversed"),
        (RunChange(drop_below=5), "ab", "No score below 5"),
        (RunChange(drop_below=100), "b", "No score below 100"),
        (RunChange(style="full"), "abc", "Prompt style full"),
    ],
)
def test_the_passages_that_a_change_leaves(change, expected, title):
    run = some_run()
    arm = change.arm(run)
    assert "".join(one.passage_id for one in arm.make(case(run))) == expected
    assert change.title == title and arm.style == change.style
    assert arm.name == change.arm(run).name and (
        change == RunChange() or arm.name != RunChange().arm(run).name
    )


def test_a_passage_without_a_score_stays():
    run = some_run()
    bare = run.derive(passages=run.passages.assign(retrieval_score=[None, 9.0, 1.0] * 3))
    assert [one.passage_id for one in RunChange(drop_below=5).arm(bare).make(case(bare))] == ["a", "b"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"k": 0}, "k must be a whole number from 1 to 100, got 0"),
        ({"order": "best"}, "order must be one of as_it_is, retrieval, reversed, got 'best'"),
        ({"style": []}, "style must be one of short, full"),
        ({"drop_below": float("nan")}, "drop_below must be a number, got nan"),
    ],
)
def test_what_is_no_change_is_said(wrong, message):
    with pytest.raises(InputError, match=message):
        RunChange(**wrong)


REVERSED = RunChange(order="reversed")


def asked(run, change=REVERSED, llm=LLM):
    step = step_for(change, run)
    return fill(run.derive({"run_id": "child"}), step, llm=llm), arm_of(step)


def test_the_run_of_an_arm_has_its_answers_and_its_prompts():
    child, arm = asked(some_run())
    found = run_of_arm(child, arm)
    # Reversed, the last passage is the first: the years of the thirties.
    assert found.queries["answer"].tolist() == ["1931", "1932", "1933"]
    assert found.queries["reference_answers"].tolist() == [["1931"], ["1902"], ["1933"]]
    first = found.passages[found.passages["query_id"].eq("q1")]
    assert first[["passage_id", "slot", "retrieval_rank"]].to_numpy().tolist() == [
        ["c", 1, 3.0], ["b", 2, 1.0], ["a", 3, 2.0],
    ]  # fmt: skip
    assert first["is_gold"].tolist() == [True, False, False]
    # What was measured of the old answers is gone.
    assert first["ablated_answer"].isna().all() and found.repeats.empty and found["arms"].empty
    assert found.queries["closed_book_answer"].isna().all() and found.manifest["steps"] == {}
    assert (
        found.manifest["parent"] == "child" and found.run_id == run_of_arm(child, arm.name).run_id != "child"
    )
    assert found.name == "Years, reversed"
    assert found.manifest["notes"] == ["Every question was asked again with one change: Reversed.", "A note."]


def test_compare_opens_both_and_says_what_differs(tmp_path):
    run = some_run()
    child, arm = asked(run)
    found = Run.load(run_of_arm(child, arm).save(tmp_path / "run"))
    differences = setup_differences(sides_of([Diagnosis(run), Diagnosis(found)]))
    row = differences[differences["Setting"].eq("Change")].iloc[0].tolist()
    assert row == ["Change", "—", "Reversed"]


def test_where_nothing_changes_the_answer_and_its_label_stay():
    run = some_run(correct=[True, False, None], correct_by="Ann")
    child, arm = asked(run, RunChange(k=3))
    found = run_of_arm(child, arm)
    assert found.queries["answer"].tolist() == ["1901", "1902", "1903"]
    assert found.queries["correct"].astype(object).where(found.queries["correct"].notna(), None).tolist() == [
        True, False, None,
    ]  # fmt: skip
    assert found.queries["closed_book_answer"].tolist() == ["1800"] * 3


def test_a_label_is_of_one_answer_and_not_of_others():
    # Ann's labels contradict the references of the first two questions, so no other answer can be judged by them.
    run = some_run(correct=[True, False, False], correct_by="Ann")
    found = run_of_arm(*asked(run)).queries
    assert found["correct"].isna().all()
    assert [one if one is None else list(one) for one in found["reference_answers"]] == [None, None, ["1933"]]
    same = run_of_arm(*asked(run, RunChange(order="reversed"), ScriptedLLM(lambda request: "1901."))).queries
    assert same["correct"][0] and same["correct_by"][0] == "Ann"


def test_another_model_gives_two_runs():
    child, arm = asked(some_run({"backend": "", "name": "old", "options": {}}))
    as_it_is = run_of_arm(child, ASKED_ANEW)
    assert as_it_is.queries["answer"].tolist() == ["1901", "1902", "1903"]
    assert (
        as_it_is.manifest["model"]["name"] == "scripted" == run_of_arm(child, arm).manifest["model"]["name"]
    )
    assert as_it_is.run_id != run_of_arm(child, arm).run_id


def test_texts_that_an_arm_edits_and_passages_that_were_not_retrieved():
    def short(one):
        return (Shown("d", "New", "The year 1999."), Shown("a", "", "Year 1950."))

    arm = Arm("mine", "Mine", short)
    run = some_run()
    gold = pd.DataFrame(
        {"query_id": ["q1"], "passage_id": ["d"], "title": ["New"], "text": ["The year 1999."]}
    )
    child = fill(run.derive({"run_id": "child"}, gold=gold), LossesStep(arms=(arm,)), llm=LLM)
    first = run_of_arm(child, arm).passages.head(2)
    assert first["text"].tolist() == ["The year 1999.", "Year 1950."]
    # The one that was not retrieved follows the last rank, and is gold.
    assert first["retrieval_rank"].tolist() == [4.0, 2.0] and first["is_gold"].tolist() == [True, False]


@pytest.mark.parametrize("name", ["none", "alone"])
def test_an_arm_that_was_not_asked_is_said(name):
    with pytest.raises(InputError, match=f"The run has no answers of the arm '{name}'"):
        run_of_arm(asked(some_run())[0], name)


def test_the_paired_test_in_words():
    arm = RunChange(k=2).arm(some_run())
    base, after = [0.0] * 6 + [1.0, 0.0], [1.0] * 6 + [1.0, 0.0]
    (fix,) = fixes(pd.Series(base).to_numpy(), {arm.name: pd.Series(after).to_numpy()},
                   {arm.name: pd.Series([True] * 8).to_numpy()})  # fmt: skip
    first, second = said(arm, fix)
    # Six of six discordant pairs: p = 2 / 2 ** 6.
    assert first.startswith(
        "At most 2 passages: of 8 questions that are judged, 6 became correct and 0 stopped being correct; net +6"
    )
    assert "p = 0.031 (exact McNemar test)" in first and second == "This change helps."
    assert said(arm, None) == [
        "At most 2 passages: no answer can be judged; references or labels are needed."
    ]


def test_other_passages_are_found_by_their_words():
    found = Elsewhere(some_run()).find("1932", frozenset({"The year 1931."}))
    assert [one.text for one in found] == ["The year 1932."]
    assert Elsewhere(some_run()).find("1931", frozenset({"The year 1931."})) == ()
    assert Elsewhere(some_run()).find("xyz") == ()
