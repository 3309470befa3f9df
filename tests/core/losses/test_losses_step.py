"""The step of *losses* and its analysis, case by case: the outcome of each is named."""

from __future__ import annotations

import re
import threading
from collections import Counter
from types import SimpleNamespace

import pandas as pd
import pytest

import core
from core.errors import InputError
from core.llm import CompletionCache
from core.llm.types import Capabilities, Completion
from core.losses import ladder as stages
from core.losses.arms import ARMS, Arm, Shown
from core.losses.step import LossesStep, least_support, verified
from core.pipeline.asking import Asker
from core.pipeline.steps import fill, options_of
from tests.core.losses.losses_runs import (
    SPOKEN,
    Asked,
    Reader,
    answer_of,
    blocks,
    gold_text,
    losses_of,
    other_texts,
    question_in,
    reading,
    rows_of,
    run_of,
    stage_of,
    tried,
)
from tests.scripted import ScriptedLLM

QUESTION = "Who built bridge 1?"
FACT = f"{SPOKEN} 1"


def reader(**limits):
    return reading({QUESTION: Reader(**limits)})


def among(place, k=3):
    """A question with the gold passage at this place, from 0."""
    others = other_texts(1, k - 1)
    return Asked([*others[:place], ("g", gold_text(1)), *others[place:]], ("g",), evidence={"g": [FACT]})


# --- gold ---


@pytest.mark.parametrize("place", range(5))
def test_gold_in_every_slot_is_placed_too_late_but_in_the_first(place):
    asked = among(place, 5)
    llm = reader(reach=place, others=99) if place else reader(reads=False)
    run = tried(run_of([asked], llm), llm)
    rows = rows_of(run)
    assert losses_of(run).queries["stage"].iloc[0] == (stages.PLACE if place else stages.READING)
    assert rows["gold_first"]["prompt"] == ("changed" if place else "unchanged")
    rest = [f"o{j}" for j in range(1, 5)]
    assert list(rows["gold_first"]["passages"]) == ["g", *rest]
    # In its slot, while the others change theirs.
    assert rows["placebo"]["passages"][place] == "g"
    assert list(rows["placebo"]["passages"]) != [*rest[:place], "g", *rest[place:]]


def test_several_gold_passages_are_all_needed():
    two = {"g1": "Unwin built bridge 1 with Parker.", "g2": "Unwin built bridge 1 in 1901."}
    others = other_texts(1, 3)
    llm = reader(needs=2)
    asked = Asked([*others[:2], ("g1", two["g1"]), others[2]], ("g1",), {"g2": two["g2"]})
    run = tried(run_of([asked], llm), llm)
    rows = rows_of(run)
    assert losses_of(run).queries["stage"].iloc[0] == stages.RETRIEVAL
    # The last passage that is not gold leaves; g1 stays where it was.
    assert list(rows["gold_added"]["passages"]) == ["o1", "o2", "g1", "g2"]
    assert list(rows["gold_alone"]["passages"]) == ["g1", "g2"]
    assert list(rows["gold_sentences"]["passages"]) == ["g1", "g2"]
    assert rows["gold_alone"]["answer"] == "It was Unwin."


def test_several_gold_passages_of_which_one_has_no_text_tell_nothing_of_retrieval():
    asked = Asked([*other_texts(1, 2), ("g1", gold_text(1))], ("g1",), {"g2": ""})
    llm = reader(needs=2)
    run = tried(run_of([asked], llm), llm)
    assert losses_of(run).queries["stage"].iloc[0] == stages.UNKNOWN
    assert {arm: row["prompt"] for arm, row in rows_of(run).items() if arm.startswith("gold")} == {
        "gold_added": "none", "gold_first": "changed", "gold_alone": "none", "gold_sentences": "none",
    }  # fmt: skip


def test_gold_that_stands_twice_in_the_prompt_is_moved_and_kept_together():
    text = gold_text(1)
    asked = Asked([("o1", "Coffee."), ("g1", text), ("o2", "Tea."), ("g2", text)], ("g1", "g2"))
    llm = reader(others=0)
    run = tried(run_of([asked], llm), llm)
    rows = rows_of(run)
    assert losses_of(run).queries["stage"].iloc[0] == stages.DISTRACTED
    assert rows["gold_added"]["prompt"] == "unchanged"
    assert list(rows["gold_first"]["passages"]) == ["g1", "g2", "o1", "o2"]
    assert list(rows["gold_alone"]["passages"]) == ["g1", "g2"]
    assert list(rows["placebo"]["passages"]) == ["o2", "g1", "o1", "g2"]


def test_missing_gold_that_has_the_words_of_a_retrieved_passage_is_another_prompt_of_the_same_words():
    text = gold_text(1)
    llm = reader(reads=False)
    run = tried(run_of([Asked([("o1", "Coffee."), ("g1", text)], ("g1",), {"g2": text})], llm), llm)
    assert list(rows_of(run)["gold_added"]["passages"]) == ["g1", "g2"]
    assert losses_of(run).queries["stage"].iloc[0] == stages.READING


@pytest.mark.parametrize(
    ("asked", "limits", "stage"),
    [
        (Asked([("o1", "Coffee.")], missing={"g": gold_text(1)}), {}, stages.RETRIEVAL),
        (Asked([("g", gold_text(1))], ("g",), evidence={"g": [FACT]}), {"longest": 12}, stages.BURIED),
        (Asked([("g", gold_text(1))], ("g",)), {"reads": False}, stages.READING),
        (Asked([("g", gold_text(1))], ("g",)), {}, stages.UNSPLIT),
    ],
)
def test_one_passage(asked, limits, stage):
    llm = reader(**limits)
    run = tried(run_of([asked], llm), llm)
    rows = rows_of(run)
    assert losses_of(run).queries["stage"].iloc[0] == stage
    # There is no other order, nothing to move and nothing to leave out.
    prompts = {arm: rows[arm]["prompt"] for arm in ("gold_first", "fewer", "reversed", "placebo")}
    assert prompts == {"gold_first": "unchanged", "fewer": "unchanged", "reversed": "unchanged", "placebo": "none"}  # fmt: skip


def test_without_gold_the_words_of_the_reference_show_the_evidence():
    asked = Asked([*other_texts(1, 2), ("g", gold_text(1))], marks=False)
    llm = reader(reach=1)
    run = tried(run_of([asked], llm), llm)
    losses = losses_of(run)
    assert losses.queries[["stage", "gold_by"]].iloc[0].tolist() == [stages.PLACE, "reference"]
    assert rows_of(run)["gold_first"]["passages"][0] == "g"


def test_where_no_gold_is_known_and_no_passage_says_the_reference_the_stage_is_not_known():
    asked = Asked(other_texts(1, 3), marks=False, closed_book="It was Parker.")
    llm = reader()
    run = tried(run_of([asked], llm), llm)
    losses = losses_of(run)
    assert losses.queries["stage"].iloc[0] == stages.UNKNOWN
    assert losses.queries["gold_by"].isna().all()
    # Fixes that need no gold were tried all the same.
    assert {f.arm: f.asked for f in losses.fixes} == {
        "gold_added": 0, "gold_first": 0, "gold_alone": 0, "gold_sentences": 0, "fewer": 1, "reversed": 1,
    }  # fmt: skip
    # In the order of the table of arms, whatever their names.
    assert [fix.arm for fix in losses.fixes] == [arm.name for arm in ARMS if arm.fix]


def test_gold_whose_text_is_not_known_is_not_looked_for_in_other_passages():
    asked = Asked([("o1", "Unwin liked coffee."), ("o2", "Tea.")], missing={"g": ""})
    llm = reader()
    losses = losses_of(tried(run_of([asked], llm), llm))
    assert losses.queries[["stage", "gold_by"]].iloc[0].tolist() == [stages.UNKNOWN, "labelled"]


def test_marked_passages_are_all_of_the_gold_where_nobody_counted_it():
    llm = reader()
    run = run_of([among(0)], llm)
    run = run.derive(queries=run.queries.assign(n_gold=None), gold=run["gold"].iloc[:0])
    rows = rows_of(tried(run, llm))
    assert list(rows["gold_alone"]["passages"]) == ["g"] and rows["gold_alone"]["gold_by"] == "labelled"


def test_where_no_document_has_gold_none_was_found():
    llm = reader()
    run = tried(run_of([Asked(other_texts(1, 2), n_gold=0)], llm), llm)
    assert losses_of(run).queries["gold_by"].isna().all()


def test_alone_finds_the_passages_that_suffice():
    # Another spelling than the reference's: no passage says it word for word.
    shown = [("o1", "Coffee and tea."), ("s", "R. U. did the work."), ("o2", "Rain and wind.")]

    def rule(request):
        texts = blocks(request)
        return "It was Unwin." if texts[0].startswith("R. U.") else "It was Parker."

    llm = ScriptedLLM(rule)
    run = run_of([Asked(shown, marks=False)], llm)
    without = tried(run, ScriptedLLM(rule))
    assert losses_of(without).queries["stage"].iloc[0] == stages.UNKNOWN
    found = tried(run, llm, alone=True)
    alone = found["arms"][found["arms"]["arm"].eq("alone")]
    assert [(row.repeat, list(row.passages), row.answer) for row in alone.itertuples()] == [
        (1, ["o1"], "It was Parker."), (2, ["s"], "It was Unwin."), (3, ["o2"], "It was Parker."),
    ]  # fmt: skip
    losses = losses_of(found)
    assert losses.queries[["stage", "gold_by"]].iloc[0].tolist() == [stages.PLACE, "sufficient"]
    facts = found.manifest["steps"]["losses"]
    assert (facts["n_done"], facts["n_left"]) == (1, 0)
    llm.requests.clear()
    assert tried(found, llm, alone=True) is found and not llm.requests
    # What finds the evidence is no fix.
    assert "alone" not in {fix.arm for fix in losses.fixes}


def test_what_suffices_for_one_question_is_not_gold_of_another_with_the_same_ids():
    # Each text is the answer to its own question: the first passage suffices for one, the second for the other.
    texts = {QUESTION: ("R. U. did it.", "Tea."), "Who built bridge 2?": ("Tea.", "R. U. did it.")}

    def rule(request):
        return "It was Unwin." if blocks(request) == ["R. U. did it."] else "It was Parker."

    asked = [
        Asked([("p1", first), ("p2", second)], marks=False, question=question)
        for question, (first, second) in texts.items()
    ]
    llm = ScriptedLLM(rule)
    llm.capabilities = Capabilities(seed=True, batch=64, prefill=True)
    rows = tried(run_of(asked, llm), llm, alone=True)["arms"]
    gold = rows[rows["arm"].eq("gold_alone")].set_index("query_id")["passages"]
    assert {name: list(ids) for name, ids in gold.items()} == {"q1": ["p1"], "q2": ["p2"]}


def test_the_plan_with_each_passage_alone_names_only_calls_that_are_missing():
    llm = reader()
    asked = [
        Asked(other_texts(1, 3), marks=False),
        Asked(other_texts(2, 3), ("o1",), question="Who built bridge 2?"),
    ]
    run = run_of(asked, reading({QUESTION: Reader(), "Who built bridge 2?": Reader()}))

    def alone(run, **options):
        calls = LossesStep(**options).open(run, Asker(llm)).plan(["q1", "q2"]).calls
        return [call.number for call in calls if call.kind == "alone"]

    # Of the second question gold is known.
    assert alone(run) == [] and alone(run, alone=True) == [1, 2, 3]
    done = tried(run_of(asked[:1], llm), llm, alone=True)
    rows = done["arms"][~(done["arms"]["arm"].eq("alone") & done["arms"]["repeat"].eq(2))]
    assert alone(run.derive(arms=rows), alone=True) == [2]


def test_gold_is_what_suffices_alone_and_not_what_came_first_where_another_prompt_helped():
    shown = [("o1", "Coffee and tea."), ("s", "R. U. did the work."), ("o2", "Rain and wind.")]

    def rule(request):
        texts = blocks(request)
        right = "R. U. did the work." in texts and (len(texts) < 3 or request.seed == 1)
        return "It was Unwin." if right else "It was Parker."

    llm = ScriptedLLM(rule)
    done = tried(run_of([Asked(shown, marks=False)], llm), llm, alone=True)
    # Fewer passages, and the same ones once more, make the answer correct, too: there coffee comes first.
    assert rows_of(done)["fewer"]["answer"] == rows_of(done)["again"]["answer"] == "It was Unwin."
    left = done.derive(arms=done["arms"][done["arms"]["arm"].ne("gold_alone")])
    (call,) = LossesStep(alone=True).open(left, Asker(llm)).plan(["q1"]).calls
    assert (call.kind, blocks(call.request)) == ("gold_alone", ["R. U. did the work."])
    assert list(rows_of(tried(left, llm, alone=True))["gold_alone"]["passages"]) == ["s"]


def test_marked_gold_comes_before_what_suffices():
    llm = reader(others=0)
    run = tried(run_of([among(1)], llm), llm, alone=True)
    assert not run["arms"]["arm"].eq("alone").any()
    assert losses_of(run).queries[["stage", "gold_by"]].iloc[0].tolist() == [stages.DISTRACTED, "labelled"]


# --- answers ---


def test_an_abstention_is_lost_like_a_wrong_answer_and_right_where_no_document_answers():
    lost = among(2)
    lost.answer = "I don't know."
    llm = reader(reach=1)
    losses = losses_of(
        tried(run_of([lost, Asked(other_texts(2, 3), n_gold=0, answer="I don't know.")], llm), llm)
    )
    assert losses.queries["state"].tolist() == ["abstained", "abstained"]
    assert losses.queries["stage"].tolist() == [stages.PLACE, stages.DOUBTFUL]


def test_a_wrong_answer_where_no_document_answers_is_lost_there():
    llm = reader()
    assert stage_of(Asked(other_texts(1, 3), n_gold=0), llm) == stages.ABSENT


def test_an_empty_answer_is_lost_and_an_arm_that_says_nothing_fixes_nothing():
    asked = among(1)
    asked.answer = ""
    silent = ScriptedLLM(lambda _: " ")
    run = tried(run_of([asked], silent), silent)
    losses = losses_of(run)
    assert losses.queries[["state", "stage"]].iloc[0].tolist() == ["empty", stages.READING]
    assert {fix.fixed for fix in losses.fixes} == {0} and losses.fix("gold_alone").n == 1


def test_a_question_nobody_can_judge_is_not_in_the_ladder():
    asked = [
        among(1),
        Asked(other_texts(2, 3), references=None, answer="It was Parker.", question="Who built bridge 2?"),
    ]
    llm = reading({QUESTION: Reader(reach=1), "Who built bridge 2?": Reader()})
    run = tried(run_of(asked, llm), llm)
    losses = losses_of(run)
    assert (losses.n, losses.n_tried) == (1, 2)
    assert losses.queries["stage"].isna().tolist() == [False, True]
    assert all(fix.n == 1 for fix in losses.fixes)


def test_an_abstention_from_a_question_without_references_is_not_judged():
    asked = [
        among(0),
        Asked(other_texts(2, 3), references=None, answer="I don't know.", question="Who built bridge 2?"),
    ]
    llm = reading({QUESTION: Reader(), "Who built bridge 2?": Reader()})
    assert losses_of(tried(run_of(asked, llm), llm)).n == 1


@pytest.mark.parametrize(
    ("question", "reference", "gold", "right", "unknown"),
    [
        ("谁设计了这座桥？", "詹天佑", "这座桥由詹天佑设计。它的石头来自北方。", "是詹天佑。", "我不知道。"),
        ("Ai xây cây cầu này?", "Nguyễn Văn An", "Cây cầu do Nguyễn Văn An xây. Đá đến từ miền Bắc.",
         "Đó là Nguyễn Văn An.", "Tôi không biết."),
    ],
)  # fmt: skip
def test_chinese_and_vietnamese(question, reference, gold, right, unknown):
    def rule(request):
        return right if blocks(request)[0] == gold else unknown

    asked = Asked([("o", "Coffee."), ("g", gold)], ("g",), question=question, references=(reference,))
    llm = ScriptedLLM(rule)
    run = tried(run_of([asked], llm), llm)
    losses = losses_of(run)
    assert losses.queries[["state", "stage"]].iloc[0].tolist() == ["abstained", stages.PLACE]
    sentence = next(
        r for r in llm.requests if len(blocks(r)) == 1 and blocks(r)[0] != gold and reference in blocks(r)[0]
    )
    assert blocks(sentence)[0] == gold[: gold.index("。" if "。" in gold else ".") + 1]


@pytest.mark.parametrize(
    ("closed_book", "order", "stage"),
    [
        ("It was Unwin.", (), stages.WITHOUT),
        ("It was Parker.", (), stages.GROUNDED),
        (None, (), stages.GROUNDED),
        ("I don't know.", (), stages.GROUNDED),
        ("It was Parker.", tuple(text for _, text in other_texts(1, 2)), stages.LUCK),
        # What the model knows cannot be luck.
        ("It was Unwin.", tuple(text for _, text in other_texts(1, 2)), stages.WITHOUT),
    ],
)
def test_what_a_correct_answer_rests_on(closed_book, order, stage):
    asked = among(0)
    asked.closed_book = closed_book
    assert stage_of(asked, reader(order=order)) == stage


# --- people ---


def test_a_label_that_contradicts_the_references_makes_other_answers_unjudged():
    asked = among(2)
    asked.answer, asked.correct = "It was Parker.", True  # says a person; the reference is Unwin
    llm = reader(reach=1)
    run = tried(run_of([asked], llm), llm)
    losses = losses_of(run)
    states = losses.answers.set_index("arm")["state"]
    # Parker, in the same words, is right; Unwin cannot be judged.
    assert states["again"] == "correct" and states["gold_first"] == "not judged"
    assert losses.queries[["state", "stage"]].iloc[0].tolist() == ["correct", stages.GROUNDED]
    assert losses.fix("gold_first").n == 0


def test_a_label_that_says_what_the_references_say_changes_nothing():
    asked = among(2)
    asked.answer, asked.correct = "It was Parker.", False
    assert stage_of(asked, reader(reach=1)) == stages.PLACE


def test_an_abstention_that_a_person_calls_incorrect_is_judged_by_the_references_elsewhere():
    asked = among(2)
    asked.answer, asked.correct = "I don't know.", False
    assert stage_of(asked, reader(reach=1)) == stages.PLACE


def test_a_label_without_an_answer_or_references_is_kept_but_no_arm_can_be_judged():
    asked = among(2)
    asked.answer, asked.correct, asked.references = "It was Parker.", False, None
    assert stage_of(asked, reader(reach=1)) == stages.UNKNOWN


# --- calls ---


class Failing(ScriptedLLM):
    """Calls with so many passages fail."""

    def __init__(self, inner, fails):
        super().__init__(
            lambda r: answer_of("", "The server refused this.") if fails(blocks(r)) else inner._rule(r)
        )


def test_a_failed_call_of_one_arm_loses_that_arm_only_and_is_asked_again_alone():
    asked = [among(2, 4)]
    ends = [("g", gold_text(1))]
    base = run_of(asked, reader(reach=1))
    failing = Failing(reader(reach=1), lambda texts: texts == [text for _, text in ends])
    broken = tried(base, failing)
    rows = rows_of(broken)
    assert (rows["gold_alone"]["answer_status"], rows["gold_alone"]["status_reason"]) == ("error", "The server refused this.")  # fmt: skip
    others = {arm: row["answer"] for arm, row in rows.items() if arm != "gold_alone"}
    # Gold first was enough: what came later was not needed to know the stage.
    assert losses_of(broken).queries["stage"].iloc[0] == stages.PLACE
    assert losses_of(broken).fix("gold_alone").n == 0
    assert "1 answer to a tried fix failed; run the step again to ask once more." in broken.manifest["notes"]
    assert not broken.manifest["steps"]["losses"]["n_done"]

    well = reader(reach=1)
    mended = tried(broken, well)
    assert [blocks(r) for r in well.requests] == [[gold_text(1)]]
    assert rows_of(mended)["gold_alone"]["answer"] == "It was Unwin."
    assert {arm: row["answer"] for arm, row in rows_of(mended).items() if arm != "gold_alone"} == others
    assert not mended.manifest["notes"]
    whole = tried(base, reader(reach=1))
    assert mended["arms"].equals(whole["arms"])


def test_a_failed_call_before_the_fix_makes_the_stage_unknown():
    # The call with gold first fails: whether its place or the others lost the answer is not known.
    failing = Failing(reader(others=0), lambda texts: texts[0] == gold_text(1) and len(texts) > 1)
    run = tried(run_of([among(2, 4)], reader(others=0)), failing)
    assert rows_of(run)["gold_alone"]["answer"] == "It was Unwin."
    assert losses_of(run).queries["stage"].iloc[0] == stages.UNKNOWN


def test_the_same_prompt_is_asked_once():
    # Two passages: reversed, gold first and nothing else differ; gold alone is its one sentence.
    asked = Asked([("o1", "Coffee and tea."), ("g", f"{FACT}.")], ("g",))
    llm = reader(reads=False)
    base = run_of([asked], llm)
    llm.requests.clear()
    with CompletionCache() as cache:
        run = fill(base, LossesStep(), llm=llm, cache=cache)
    asked_for = Counter(tuple(blocks(r)) for r in llm.requests)
    assert asked_for == {
        (f"{FACT}.", "Coffee and tea."): 1,  # gold first, reversed
        (f"{FACT}.",): 1,  # gold alone, gold sentences
        ("Coffee and tea.",): 1,  # fewer
        ("Coffee and tea.", f"{FACT}."): 1,  # as it is, again
    }
    rows = rows_of(run)
    assert rows["gold_first"]["answer"] == rows["reversed"]["answer"] == "It was Parker."
    assert rows["gold_added"]["prompt"] == "unchanged" and not isinstance(rows["gold_added"]["answer"], str)


def test_as_it_is_again_has_another_seed():
    llm = reader()
    base = run_of([among(1)], llm)
    llm.requests.clear()
    tried(base, llm)
    as_it_is = [text for _, text in among(1).passages]
    assert [(blocks(r) == as_it_is, r.seed) for r in llm.requests if r.seed or blocks(r) == as_it_is] == [
        (True, 1)
    ]
    assert {r.max_tokens for r in llm.requests} == {64}


def test_the_tokens_of_an_answer_are_kept_where_the_model_counts_them():
    def tokens(counted):
        llm = ScriptedLLM(lambda _: Completion("By Unwin.", "stop", *counted, 0.0))
        row = rows_of(tried(run_of([among(0)], reader()), llm))["fewer"]
        return row["prompt_tokens"], row["completion_tokens"]

    assert tokens((90, 2)) == (90, 2)
    # A function counts none: that is not 0.
    assert all(map(pd.isna, tokens((0, 0))))


def test_titles_stand_in_every_prompt_also_those_of_gold_that_was_not_retrieved():
    llm = reader()
    run = run_of([Asked([("o1", "Coffee."), ("o2", "Tea.")], missing={"g": f"{FACT}."})], llm)
    llm.requests.clear()
    tried(
        run.derive(passages=run.passages.assign(title="Drinks"), gold=run["gold"].assign(title="Bridges")),
        llm,
    )
    assert {tuple(blocks(r)) for r in llm.requests if r.seed == 0} == {
        (f"Bridges: {FACT}.",),  # gold alone, its sentences
        ("Drinks: Coffee.",),  # fewer
        ("Drinks: Coffee.", f"Bridges: {FACT}."),  # gold added
        ("Drinks: Tea.", "Drinks: Coffee."),  # reversed, the placebo
    }


def test_the_passages_of_every_prompt_are_numbered_anew():
    llm = reader()
    tried(run_of([among(2)], llm), llm)
    for request in llm.requests:
        numbers = re.findall(r"^\[(\d+)\]", request.messages[0].content, re.MULTILINE)
        assert numbers == [str(i) for i in range(1, len(blocks(request)) + 1)]


@pytest.mark.parametrize(("style", "prompt", "calls"), [("full", "changed", 1), ("short", "unchanged", 0)])
def test_an_arm_may_ask_the_same_passages_in_another_style(style, prompt, calls):
    llm = reader()
    run = run_of([among(1)], llm)
    llm.requests.clear()
    arms = (Arm("style", "Another style", lambda case: case.passages, style=style),)
    done = tried(run, llm, arms=arms)
    assert rows_of(done)["style"]["prompt"] == prompt
    assert ["in full sentences" in r.messages[0].content for r in llm.requests] == [True] * calls


def test_a_function_gets_its_own_objects_whatever_their_order():
    chunks = [SimpleNamespace(text=text) for text in ("Coffee.", "Unwin built it.", "Tea.")]
    seen = []

    def answer(question, passages):
        seen.append(passages)
        return "Unwin"

    core.analyze(
        [{"question": "Who built it?", "answers": ["Unwin"]}],
        retrieve=lambda question: chunks,
        answer=answer,
        closed_book=False,
        steps=("influence", LossesStep(arms=tuple(arm for arm in ARMS if arm.name == "reversed"))),
    )
    assert seen[-1] == chunks[::-1]


def test_the_plan_names_the_calls_that_are_made():
    asked = [
        among(2, 4),
        Asked(other_texts(2, 3), missing={"g": gold_text(2)}, question="Who built bridge 2?"),
    ]
    llm = reading({QUESTION: Reader(reach=1), "Who built bridge 2?": Reader()})
    run = run_of(asked, llm)
    plan = LossesStep().open(run, Asker(llm)).plan(["q1", "q2"])
    kinds = Counter(call.kind for call in plan.calls)
    # Of the first nothing is missing; of the second gold is nowhere to be moved.
    assert kinds == {
        "gold_added": 1, "gold_first": 1, "gold_alone": 2, "gold_sentences": 2, "fewer": 2, "reversed": 2, "placebo": 2, "again": 2,
    }  # fmt: skip
    llm.requests.clear()
    done = tried(run, llm)
    sent = {(r.messages, r.seed) for r in llm.requests}
    assert sent == {(call.request.messages, call.request.seed) for call in plan.calls}
    assert LossesStep().open(done, Asker(llm)).plan(["q1", "q2"]).calls == ()
    llm.requests.clear()
    assert tried(done, llm) is done and not llm.requests


def test_another_model_than_the_runs_is_asked_as_it_is_and_compared_with_itself():
    first = among(2, 4)
    run = run_of([first], reader(reach=1))
    assert run.queries["answer"].iloc[0] == "It was Parker."
    other = ScriptedLLM(reader()._rule, name="larger")
    done = tried(run, other)
    losses = losses_of(done)
    assert rows_of(done)["as_it_is"]["answer"] == "It was Unwin."
    assert losses.model == "larger"
    # The other model needs no fix: what the run's own model lost is not its loss.
    assert (losses.n_lost, losses.fix("gold_first").fixed) == (0, 0)
    assert losses.queries["stage"].iloc[0] == stages.GROUNDED


def test_the_closed_book_answer_of_another_model_says_nothing():
    first = among(0, 4)
    first.closed_book = "It was Unwin."
    done = tried(run_of([first], reader()), ScriptedLLM(reader()._rule, name="larger"))
    assert losses_of(done).queries["stage"].iloc[0] == stages.GROUNDED


def test_an_arm_of_ones_own_is_tried_and_named():
    own = Arm(
        "last", "The last passage only", lambda case: case.passages[-1:], "Only the last passage.", "k:one"
    )
    llm = reader(others=0)
    done = tried(run_of([among(2)], llm), llm, arms=(*ARMS, own))
    losses = losses_of(done)
    assert list(rows_of(done)["last"]["passages"]) == ["g"]
    assert losses.fix("last").fixed == 1
    frame = losses.to_frame()
    assert [*frame.columns[:3]] == ["arm", "title", "n"]
    assert frame.set_index("arm")["title"]["last"] == "The last passage only"
    assert frame["arm"].tolist()[-3:] == ["last", "placebo", "again"]
    assert done.manifest["steps"]["losses"]["own_arms"] == {"last": ["The last passage only", "Only the last passage.", "k:one"]}  # fmt: skip


def test_an_arm_that_is_added_later_is_all_that_is_asked():
    llm = reader(others=0)
    done = tried(run_of([among(2)], llm), llm)
    llm.requests.clear()
    more = tried(done, llm, arms=(*ARMS, Arm("last", "Last", lambda case: case.passages[-1:])))
    assert [blocks(r) for r in llm.requests] == [[gold_text(1)]]
    assert [*more["arms"]["arm"]] == [*done["arms"]["arm"], "last"]
    assert more["arms"].iloc[:-1].equals(done["arms"])


def test_an_arm_of_ones_own_that_makes_nothing_leaves_the_answers_as_they_are():
    own = Arm("never", "Never", lambda case: None)
    llm = reader()
    done = tried(run_of([among(0)], llm), llm, arms=(own,))
    assert rows_of(done)["never"]["prompt"] == "none"
    fix = losses_of(done).fix("never")
    assert (fix.n, fix.asked, fix.net) == (1, 0, 0)


@pytest.mark.parametrize("names", [("alone",), ("as_it_is",), ("a", "a"), ()])
def test_arms_need_names_of_their_own(names):
    with pytest.raises(InputError, match="arms must have names of their own, not alone or as_it_is"):
        LossesStep(arms=tuple(Arm(name, name, lambda case: case.passages) for name in names))


def test_options_of_the_step_are_plain():
    assert options_of(LossesStep(alone=True))["alone"] is True


def test_the_questions_of_a_batch_do_not_mix():
    asked = [
        among(2, 4),
        Asked(other_texts(2, 3), missing={"g": gold_text(2)}, question="Who built bridge 2?"),
    ]
    rule = reading({QUESTION: Reader(reach=1), "Who built bridge 2?": Reader(reads=False)})._rule
    one, many = ScriptedLLM(rule), ScriptedLLM(rule)
    many.capabilities = Capabilities(seed=True, batch=64, prefill=True)
    run = run_of(asked, one)
    both = tried(run, many)
    # All calls of both questions go at once.
    assert many.batches == [len(many.requests)]
    assert both["arms"].equals(tried(run, one)["arms"])
    assert losses_of(both).queries["stage"].tolist() == [stages.PLACE, stages.READING]


def test_two_questions_are_asked_at_the_same_time_of_a_model_that_answers_two():
    met = threading.Barrier(2, timeout=5)

    def rule(request):
        met.wait()  # an error where the other call does not come
        return "It was Unwin."

    asked = [among(0), Asked(other_texts(2, 3), question="Who built bridge 2?")]
    arms = tuple(arm for arm in ARMS if arm.name == "reversed")
    run = run_of(asked, ScriptedLLM(lambda _: "It was Unwin."))
    done = tried(run, ScriptedLLM(rule, parallel=2), arms=arms)
    assert done["arms"]["answer"].tolist() == ["It was Unwin."] * 2


# --- without references ---


def test_without_references_what_counts_is_that_every_claim_is_supported():
    asked = [
        Asked([("a", "Unwin built bridge 1 in 1901."), ("b", "Coffee grows in the south.")], references=None, marks=False,
              answer="Unwin built bridge 1 in 1901."),
        Asked([("a", "Tea is grown in the hills."), ("b", "Rain falls in autumn.")], references=None, marks=False,
              question="Who built bridge 2?", answer="Parker designed the harbour of Lisbon in 1755."),
    ]  # fmt: skip
    llm = ScriptedLLM(
        lambda r: "Unwin built bridge 1 in 1901." if "bridge 1" in question_in(r) else "I don't know."
    )
    run = tried(run_of(asked, llm), llm)
    losses = losses_of(run)
    assert losses.outcome.name == "supported"
    assert losses.queries["state"].tolist() == ["correct", "incorrect"]
    # No gold passage can be told without references: only fixes that need none were tried.
    assert losses.queries["stage"].tolist() == [stages.GROUNDED, stages.UNKNOWN]
    assert losses.fix("fewer").n == 2
    assert rows_of(run)["as_it_is"]["answer"] == "Unwin built bridge 1 in 1901."
    llm.requests.clear()
    assert tried(run, llm) is run and not llm.requests


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"verifier": "offline", "verifier_model": None},
        {"verifier": "judge", "verifier_model": "larger"},
        {"verifier": "gain"},
        {"verifier": "a function of the user's"},
    ],
)
def test_what_needs_a_model_or_is_not_there_is_verified_offline(options):
    facts = verified([("0", QUESTION, "By Unwin.", ())], options).manifest["steps"]["claims"]["options"]
    # The best passage alone decides: pairs and references are not looked at.
    assert (facts["verifier"], facts["joint"], facts["references"]) == ("offline", False, False)


def test_the_support_of_an_answer_is_that_of_its_weakest_claim_by_the_passages_of_its_own_prompt():
    shown = (Shown("a", "", "Coffee grows in the south."), Shown("b", "", "Unwin built bridge 1 in 1901."))
    said, more = "Unwin built bridge 1 in 1901.", "Parker designed a harbour in Lisbon."
    run = verified([("0", QUESTION, said, shown), ("1", QUESTION, f"{said} {more}", shown), ("2", QUESTION, said, shown[:1])], {})  # fmt: skip
    assert run.passages["slot"].tolist() == [1, 2, 1, 2, 1]
    support = least_support(run)
    assert support["0"] >= 0.5 > max(support["1"], support["2"])


def test_a_runs_own_verifier_that_needs_no_language_model_verifies_what_is_tried():
    run = verified([("0", QUESTION, "Unwin built it.", ())], {"verifier": "nli", "verifier_model": "a/model"})
    facts = run.manifest["steps"]["claims"]["options"]
    assert (facts["verifier"], facts["verifier_model"]) == ("nli", "a/model")


def test_what_was_asked_while_there_were_references_is_judged_by_claims_once_there_are_none():
    run = run_of([among(0)], reader())
    silent = ScriptedLLM(lambda _: "I don't know.", name="silent")
    done = tried(run, silent)
    assert done["arms"]["judged"].isna().all()
    silent.requests.clear()
    again = tried(done.derive(queries=done.queries.assign(reference_answers=None)), silent)
    assert again["arms"]["judged"].tolist() == [True] * len(done["arms"]) and not silent.requests


def test_before_the_step_nothing_is_judged_without_references():
    asked = Asked([("a", "Unwin built bridge 1.")], references=None, marks=False, answer="Unwin built it.")
    losses = losses_of(run_of([asked]))
    assert (losses.n, losses.n_lost, losses.n_tried) == (0, 0, 0)
    assert losses.queries["state"].tolist() == ["not judged"]


def test_a_question_without_passages_is_left_out():
    llm = reader(reach=1)
    asked = [among(1), Asked([], question="Who built bridge 2?", answer="It was Parker.")]
    run = tried(run_of(asked, llm), llm)
    assert {*run["arms"]["query_id"]} == {"q1"}
    assert losses_of(run).queries["stage"].tolist() == [stages.PLACE, stages.UNKNOWN]


def test_a_cancelled_step_keeps_what_was_asked_and_goes_on_there():
    asked = [among(1, 4) for _ in range(4)]
    for i, one in enumerate(asked, start=1):
        one.question = f"Who built bridge {i}?"
    readers = {one.question: Reader(reach=1) for one in asked}
    base, whole = run_of(asked, reading(readers)), reading(readers)
    expected = tried(base, whole)
    llm, stop = reading(readers), threading.Event()
    part = fill(base, LossesStep(), llm=llm, cancelled=lambda: llm.calls >= 10 or stop.is_set())
    assert not part.manifest["steps"]["losses"]["complete"]
    n = part["arms"]["query_id"].nunique()
    assert 1 <= n < 4
    assert losses_of(part).step(stages.UNKNOWN).n == 4 - n
    rest = reading(readers)
    assert tried(part, rest)["arms"].equals(expected["arms"])
    # A question that was finished is not asked again.
    assert not {question_in(r) for r in rest.requests} & {f"Who built bridge {i}?" for i in range(1, n + 1)}


def test_evidence_of_a_question_is_looked_up_by_its_own_id():
    """Two questions share passage ids, and gold of one is not gold of the other."""
    asked = [
        Asked([("p1", gold_text(1)), ("p2", "Coffee.")], ("p1",)),
        Asked([("p1", "Coffee."), ("p2", gold_text(2))], ("p2",), question="Who built bridge 2?"),
    ]
    llm = reading({QUESTION: Reader(others=0), "Who built bridge 2?": Reader(reach=1)})
    assert losses_of(tried(run_of(asked, llm), llm)).queries["stage"].tolist() == [
        stages.DISTRACTED,
        stages.PLACE,
    ]
