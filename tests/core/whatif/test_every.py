"""The same change for all questions: the passages it leaves, and the run that an arm gives."""

from __future__ import annotations

import hashlib
import json

import pandas as pd
import pytest

from core.diagnosis import Diagnosis
from core.errors import InputError
from core.losses.arms import ARMS, Arm, Case, Shown
from core.losses.fixes import Fix, fixes
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
        (RunChange(k=1), "a", "At most 1 passage"),
        (RunChange(k=100), "abc", "At most 100 passages"),
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
        ({"k": 101}, "k must be a whole number from 1 to 100, got 101"),
        ({"k": 0}, "k must be a whole number from 1 to 100, got 0"),
        ({"order": "best"}, "order must be one of as_it_is, retrieval, reversed, got 'best'"),
        ({"style": []}, "style must be one of short, full"),
        ({"drop_below": float("nan")}, "drop_below must be a number, got nan"),
    ],
)
def test_what_is_no_change_is_said(wrong, message):
    with pytest.raises(InputError, match=message):
        RunChange(**wrong)


def test_a_change_has_the_same_name_in_every_version_and_run():
    plain = '{"drop_below": null, "k": 2, "order": "as_it_is", "style": null}'
    arm = RunChange(k=2).arm(some_run())
    assert arm.name == f"change_{hashlib.sha256(plain.encode()).hexdigest()[:8]}"
    assert (arm.title, arm.meaning) == ("At most 2 passages",) * 2
    nothing = RunChange().arm(some_run())
    assert (nothing.title, nothing.meaning) == ("Nothing changed", "")


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
    assert found.manifest["options"] == {"k": 3, "change": "Reversed"} and "prompt" not in found.manifest
    assert (found.manifest["complete"], found.manifest["cost"]) == (True, {})
    model = json.dumps(model_facts(LLM), sort_keys=True)
    digest = hashlib.sha256(f'["child", "{arm.name}", {model}]'.encode()).hexdigest()
    assert found.run_id == digest[:12]
    assert found.manifest["notes"] == ["Every question was asked again with one change: Reversed.", "A note."]


def test_another_style_is_told_with_its_prompt():
    run = some_run().derive({"prompt": {"style": "short", "max_tokens": 9}, "options": None})
    prompt = run_of_arm(*asked(run, RunChange(style="full"))).manifest
    assert prompt["options"] == {"change": "Prompt style full", "style": "full"}
    assert (prompt["prompt"]["style"], prompt["prompt"]["max_tokens"]) == ("full", 9)
    for part in ("instruction", "closed_book", "template"):
        assert "full sentences" in prompt["prompt"][part]
    bare = run_of_arm(*asked(some_run(), RunChange(style="full"))).manifest
    assert (bare["prompt"]["style"], bare["options"]["k"]) == ("full", 3)


@pytest.mark.parametrize("unknown", [{"passages": None}, {"prompt": "none"}])
def test_where_the_prompt_of_an_arm_is_not_known_the_passages_are_the_runs_own(unknown):
    child, arm = asked(some_run())
    edited = child.derive(arms=child["arms"].assign(**unknown))
    first = run_of_arm(edited, arm).passages.head(3)
    assert first[["passage_id", "slot"]].to_numpy().tolist() == [["a", 1], ["b", 2], ["c", 3]]


def test_passages_without_slots_get_those_of_their_prompt():
    run = some_run()
    bare = run.derive(passages=run.passages.drop(columns="slot"))
    first = run_of_arm(*asked(bare, RunChange(k=3))).passages.head(3)
    assert first[["passage_id", "slot"]].to_numpy().tolist() == [["b", 1], ["a", 2], ["c", 3]]


def test_passages_of_a_question_that_has_none_are_ranked_from_one():
    child, arm = asked(some_run())
    rest = child.derive(passages=child.passages[child.passages["query_id"].ne("q1")])
    found = run_of_arm(rest, arm).passages
    first = found[found["query_id"].eq("q1")]
    assert first["retrieval_rank"].tolist() == [1.0, 2.0, 3.0] and first["is_gold"].isna().all()


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


def test_where_nobody_judged_an_answer_nobody_judged_another_in_its_words():
    same = ScriptedLLM(lambda request: "1901.")
    assert run_of_arm(*asked(some_run(), llm=same)).queries["correct"].isna().all()
    # A label of an answer that is not there.
    lost = some_run(correct=[True, None, None], answer=[None, "1902", "1903"])
    found = run_of_arm(*asked(lost, llm=same)).queries
    assert found["correct"].isna().all() and list(found["reference_answers"][0]) == ["1931"]


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


def test_the_evidence_that_was_found_by_asking_with_each_passage_alone_is_edited_again():
    run = some_run(question=["When did the bridge open?"] * 3, n_gold=None)
    texts = ["The bridge did open then. It was sunny.", "Nothing.", "Nothing."] * 3
    run = run.derive(passages=run.passages.assign(text=texts, is_gold=None))
    llm = ScriptedLLM(lambda request: "1931" if "did open then" in request.messages[0].content else "1888")
    (arm,) = (one for one in ARMS if one.name == "gold_sentences")
    child = fill(run.derive({"run_id": "child"}), LossesStep(alone=True, arms=(arm,)), llm=llm)
    # No passage says the year, and only the first one alone makes the answer right.
    first = run_of_arm(child, "gold_sentences").passages.head(1)
    assert first[["passage_id", "text"]].to_numpy().tolist() == [["a", "The bridge did open then."]]


def test_an_arm_may_have_any_name_but_that_of_the_passages_on_their_own():
    mine = Arm("aaa", "Mine", lambda one: one.passages[::-1])
    child = fill(some_run().derive({"run_id": "child"}), LossesStep(arms=(mine,)), llm=LLM)
    assert run_of_arm(child, "aaa").queries["answer"].tolist() == ["1931", "1932", "1933"]
    alone = child.derive(arms=child["arms"].assign(arm="alone"))
    with pytest.raises(InputError, match="The run has no answers of the arm 'alone'; ask it first"):
        run_of_arm(alone, "alone")


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


NAN = float("nan")
HELPED = (6, 0, 2.0, 8.0, 0.03125)
UNCLEAR = (2, 1, -3.0, 5.0, 1.0)
NET_6 = (
    "Mine: of 8 questions that are judged, 6 became correct and 0 stopped being correct; net +6 (95 % interval +2 to +8), "
    "p = 0.031 (exact McNemar test)."
)
NET_1 = (
    "Mine: of 8 questions that are judged, 2 became correct and 1 stopped being correct; net +1 (95 % interval −3 to +5), "
    "p = 1 (exact McNemar test)."
)
NET_MINUS_6 = (
    "Mine: of 8 questions that are judged, 0 became correct and 6 stopped being correct; net −6 (95 % interval −8 to −2), "
    "p = 0.031 (exact McNemar test)."
)


@pytest.mark.parametrize(
    ("n", "asked", "counts", "p_placebo", "p_adjusted", "needed", "sentences"),
    [
        (8, 8, HELPED, NAN, 0.03125, None, [NET_6, "This change helps."]),
        (8, 8, HELPED, NAN, 0.03125, 40, [NET_6, "This change helps."]),
        (8, 1, (0, 6, -8.0, -2.0, 0.03125), NAN, 0.03125, None, [NET_MINUS_6, "This change harms."]),
        (8, 8, UNCLEAR, NAN, 1.0, None, [NET_1, "Chance alone could give this."]),
        (8, 8, UNCLEAR, NAN, 1.0, 1200,
         [NET_1, "Chance alone could give this. About 1,200 questions would tell."]),
        (8, 8, HELPED, 0.25, 0.5, None,
         [NET_6, "Chance alone could give this. Against a change that should not matter, p = 0.25; over all changes that "
                 "were tried, p = 0.5."]),
        (8, 0, (0, 0, 0.0, 0.0, 1.0), NAN, 1.0, None, ["Mine: no prompt is changed."]),
        (0, 0, (0, 0, NAN, NAN, NAN), NAN, NAN, None,
         ["Mine: no answer can be judged; references or labels are needed."]),
    ],
)  # fmt: skip
def test_what_is_said_of_a_change(n, asked, counts, p_placebo, p_adjusted, needed, sentences):
    fixed, broken, low, high, p_value = counts
    fix = Fix("mine", n, asked, fixed, broken, low, high, p_value, p_placebo, NAN, p_adjusted, needed, None)
    assert said(Arm("mine", "Mine", lambda one: one.passages), fix) == sentences


def test_other_passages_are_found_by_their_words():
    found = Elsewhere(some_run()).find("1932", frozenset({"The year 1931."}))
    assert [one.text for one in found] == ["The year 1932."]
    assert Elsewhere(some_run()).find("1931", frozenset({"The year 1931."})) == ()
    assert Elsewhere(some_run()).find("xyz") == ()
    # "The year" is in all nine of them.
    assert len(Elsewhere(some_run()).find("the year")) == 5
    assert len(Elsewhere(some_run()).find("the year", n=20)) == 9


@pytest.mark.parametrize("text", ["Red apple.", "Blue sky."])
def test_a_word_in_half_of_the_passages_is_found_though_it_scores_nothing(text):
    queries = pd.DataFrame({"query_id": ["q"], "question": ["Which?"], "answer": ["This."]})
    passages = pd.DataFrame(
        {
            "query_id": "q",
            "passage_id": ["a", "b"],
            "text": ["Red apple.", "Blue sky."],
            "retrieval_rank": [1, 2],
        }
    )
    run = Run.create({"source": "live"}, queries=queries, passages=passages)
    assert [one.text for one in Elsewhere(run).find(text)] == [text]


def test_a_known_passage_takes_no_others_place():
    elsewhere = Elsewhere(some_run())
    (best,) = elsewhere.find("the year 1932", n=1)
    assert best.text == "The year 1932."
    second = elsewhere.find("the year 1932", frozenset({best.text}), n=1)
    assert len(second) == 1 and second[0].text != best.text


def test_found_passages_have_their_titles_and_are_distinct():
    run = some_run()
    texts = [
        "Stone bridge.",
        "Iron gate.",
        " ",
        "Stone bridge.",
        None,
        None,
        "Green hill.",
        "Blue sea.",
        "Red sun.",
    ]
    titles = ["Of stone", None, ""] * 3
    gold = pd.DataFrame(
        {"query_id": ["q1"], "passage_id": ["d"], "title": ["Gold"], "text": ["Wooden door."]}
    )
    elsewhere = Elsewhere(run.derive(passages=run.passages.assign(title=titles, text=texts), gold=gold))
    found = elsewhere.find("stone, iron or wooden")
    assert {(one.passage_id, one.title, one.text) for one in found} == {
        ("a", "Of stone", "Stone bridge."), ("b", "", "Iron gate."), ("d", "Gold", "Wooden door."),
    }  # fmt: skip
    assert len(found) == 3
