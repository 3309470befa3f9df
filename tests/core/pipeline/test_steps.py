"""Steps of a few lines, driven by `fill`: what is kept, cleared, tried again, told and written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pandas as pd
import pytest

from core.errors import BackendError, Cancelled, InputError
from core.influence.step import InfluenceStep
from core.llm import CompletionCache, Message, Request
from core.pipeline import Call, ModelChoice, PerQuestion, RetryPolicy, StepPlan, StepWork, another_run, fill
from core.run import Run
from tests.live_runs import live_run
from tests.scripted import ScriptedLLM

QUICK = RetryPolicy(attempts=2, first_wait=0.001, longest_wait=0.001)


@dataclass(frozen=True)
class Score(PerQuestion):
    name: ClassVar[str] = "score"
    title: ClassVar[str] = "Ask how sure it is"
    fills: ClassVar[Mapping[str, tuple[str, ...]]] = {"signals": ("llm_score",)}
    scale: int = 10

    def calls(self, question):
        return [Call("score", 1, Request((Message("user", f"How good is {question.query['answer']!r}?"),)))]

    def rows(self, question, answers):
        score = float(answers["score", 1].text) / self.scale
        return {"signals": [{"query_id": question.query_id, "llm_score": score}]}


@dataclass(frozen=True)
class Words:
    """Counts words in batches, and needs no model."""

    name: ClassVar[str] = "words"
    title: ClassVar[str] = "Count words"
    noun: ClassVar[str] = "answer"
    fills: ClassVar[Mapping[str, tuple[str, ...]]] = {"verdicts": ()}
    needs_llm: ClassVar[bool] = False
    odd: str = ""
    seen: list = field(default_factory=list, compare=False)

    def model(self, live):
        return None

    def open(self, run, asker):
        return WordsWork(self, run, asker)


class WordsWork(StepWork):
    batch = 3

    def __init__(self, step, run, asker):
        self.settings = {"odd": step.odd}
        self.step, self.asker = step, asker
        self.answers = dict(zip(run.queries["query_id"], run.queries["answer"], strict=True))

    def todo(self, run):
        return [i for i in self.answers if i not in set(run["verdicts"]["query_id"])]

    def work(self, ids):
        self.step.seen.append(list(ids))
        if self.step.odd in ids:
            raise ValueError("odd")
        rows = [
            {"query_id": i, "validator": "words", "detail": str(len(self.answers[i].split()))} for i in ids
        ]
        return {"verdicts": pd.DataFrame(rows)}

    def plan(self, ids):
        return StepPlan(about=0)

    def facts(self, run):
        return {"n_words": 3, "notes": [f"{len(run['verdicts'])} counted."]}


@pytest.fixture
def run():
    ids = [f"q{i}" for i in range(7)]
    queries = pd.DataFrame(
        {"query_id": ids, "question": "What?", "answer": [f"a {i}" for i in ids], "answer_status": "answered"}
    )
    passages = pd.DataFrame({"query_id": ids, "passage_id": "p", "text": "t", "retrieval_rank": 1.0})
    return Run.create({"source": "upload", "notes": ["Read."]}, queries=queries, passages=passages)


def scores(run):
    return dict(zip(run["signals"]["query_id"], run["signals"]["llm_score"], strict=True))


def test_rows_of_an_imported_run_are_filled_once_and_then_kept(run):
    llm = ScriptedLLM(lambda _: "7")
    filled = fill(run, Score(), llm=llm)
    assert scores(filled) == {f"q{i}": 0.7 for i in range(7)}
    assert (filled.run_id, filled.queries.equals(run.queries)) == (run.run_id, True)
    facts = filled.manifest["steps"]["score"]
    assert facts["options"] == {"scale": 10}
    assert facts["model"] == {"backend": "", "name": "scripted", "options": {}}
    assert {name: facts[name] for name in ("n_done", "n_left", "reasons", "n_calls", "complete")} == {
        "n_done": 7, "n_left": 0, "reasons": {}, "n_calls": 7, "complete": True,
    }  # fmt: skip
    # What the run says of its answers is not this step's to change.
    assert "cost" not in filled.manifest and filled.manifest["complete"] == run.manifest["complete"]
    assert fill(filled, Score(), llm=llm) is filled
    assert llm.calls == 7


def test_a_step_that_fills_a_column_leaves_those_of_others_alone(run):
    signals = pd.DataFrame({"query_id": ["q1", "q4"], "similarity": [0.1, 0.4]})
    run = Run.create(run.manifest, **{**run.tables, "signals": signals})
    filled = fill(run, Score(), llm=ScriptedLLM(lambda _: "7"))
    assert scores(filled) == {f"q{i}": 0.7 for i in range(7)}
    assert filled["signals"]["similarity"].dropna().to_dict() == {1: 0.1, 4: 0.4}
    again = fill(filled, Score(20), llm=ScriptedLLM(lambda _: "7"), cancelled=lambda: True)
    assert again["signals"]["query_id"].to_list() == ["q1", "q4"]
    assert again["signals"]["llm_score"].isna().all()


@pytest.mark.parametrize("change", ["options", "model", "model options"])
def test_rows_made_under_other_settings_are_made_again(run, tmp_path, change):
    llm, step = ScriptedLLM(lambda _: "7"), Score()
    saved = Run.load(fill(run, step, llm=llm).save(tmp_path / "r"))
    other = ScriptedLLM(
        lambda _: "8",
        name="other" if change == "model" else "scripted",
        options={"dtype": "x"} if change == "model options" else {},
    )
    again = fill(saved, replace(step, scale=20) if change == "options" else step, llm=other)
    assert set(scores(again).values()) == ({0.4} if change == "options" else {0.8})
    assert other.calls == 7 == again.manifest["steps"]["score"]["n_calls"]


def test_a_cancel_under_other_settings_leaves_no_rows_of_the_old_ones(run):
    old = fill(run, Score(), llm=ScriptedLLM(lambda _: "7"))
    llm = ScriptedLLM(lambda _: "8")
    partial = fill(old, Score(20), llm=llm, cancelled=lambda: llm.calls >= 2)
    assert scores(partial) == {"q0": 0.4, "q1": 0.4}
    facts = partial.manifest["steps"]["score"]
    assert (facts["n_done"], facts["n_left"], facts["complete"]) == (2, 5, False)
    rest = fill(partial, Score(20), llm=llm)
    assert len(scores(rest)) == 7 == rest.manifest["steps"]["score"]["n_calls"] == llm.calls


def test_one_odd_reply_costs_its_question_and_is_tried_again(run):
    replies = iter("123x567")
    llm, cache = ScriptedLLM(lambda _: next(replies)), CompletionCache()
    filled = fill(run, Score(), llm=llm, cache=cache)
    assert sorted(scores(filled)) == ["q0", "q1", "q2", "q4", "q5", "q6"]
    facts = filled.manifest["steps"]["score"]
    assert (facts["n_done"], facts["n_left"], facts["complete"]) == (6, 1, True)
    (reason,) = facts["reasons"]
    assert "ValueError" in reason
    again = fill(filled, Score(), llm=ScriptedLLM(lambda _: "4"))
    assert list(scores(again)) == [f"q{i}" for i in range(7)]
    assert again.manifest["steps"]["score"]["reasons"] == {}


def test_a_model_that_fails_on_the_last_question_left_does_not_sink_the_run(run):
    def rule(request):
        if "q3" in request.messages[0].content:
            raise BackendError("Not this one.")
        return "5"

    filled = fill(run, Score(), llm=ScriptedLLM(rule), retry=QUICK)
    again = fill(filled, Score(), llm=ScriptedLLM(rule), retry=QUICK)
    assert again.manifest["steps"]["score"]["reasons"] == {"Not this one.": 1}
    with pytest.raises(BackendError, match="down"):
        fill(run, Score(), llm=ScriptedLLM(rule, down=True), retry=QUICK)


def test_a_step_that_needs_a_model_says_so(run):
    with pytest.raises(InputError, match="The step score needs llm"):
        fill(run, Score())


def test_questions_share_the_batches_of_a_model(run):
    llm = ScriptedLLM(lambda _: "5")
    llm.capabilities = replace(llm.capabilities, batch=4)
    assert len(scores(fill(run, Score(), llm=llm))) == 7
    assert llm.batches == [4, 3]


def test_batches_progress_facts_and_notes_of_a_step_without_a_model(run):
    seen, step = [], Words()
    filled = fill(run, step, progress=lambda *state: seen.append(state), on_part=lambda part: None)
    assert step.seen == [["q0", "q1", "q2"], ["q3", "q4", "q5"], ["q6"]]
    assert [state[:2] for state in seen] == [(0, 7), (3, 7), (6, 7), (7, 7)]
    assert seen[-1][2] == "question 7 of 7"
    facts = filled.manifest["steps"]["words"]
    assert (facts["model"], facts["n_words"], facts["n_calls"]) == (None, 3, 0)
    assert filled.manifest["notes"] == ["Read.", "7 counted."]
    # The note of the step is replaced by the next one, that of the import stays.
    again = fill(filled, Words("q9"))
    assert again.manifest["notes"] == ["Read.", "7 counted."]


def test_a_batch_that_fails_is_worked_one_by_one(run):
    step = Words("q4")
    filled = fill(run, step)
    assert step.seen == [["q0", "q1", "q2"], ["q3", "q4", "q5"], ["q3"], ["q4"], ["q5"], ["q6"]]
    assert sorted(filled["verdicts"]["query_id"]) == ["q0", "q1", "q2", "q3", "q5", "q6"]
    assert list(filled.manifest["steps"]["words"]["reasons"].values()) == [1]


def test_rows_stay_in_the_order_of_the_questions(run):
    filled = fill(run, Words("q1"))
    rows = filled["verdicts"][filled["verdicts"]["query_id"] != "q3"]
    gap = Run.create(filled.manifest, **{**filled.tables, "verdicts": rows})
    gap = Run.create(
        {**gap.manifest, "steps": {"words": {**gap.manifest["steps"]["words"], "options": {"odd": ""}}}},
        **gap.tables,
    )
    assert fill(gap, Words())["verdicts"]["query_id"].to_list() == [f"q{i}" for i in range(7)]


def test_partial_runs_hold_what_is_done(run):
    parts = []
    fill(run, Words(), on_part=parts.append)
    assert len(parts[0]["verdicts"]) == 3 and not parts[0].manifest["steps"]["words"]["complete"]


def test_an_error_of_who_listens_ends_the_step(run):
    def broken(_):
        raise RuntimeError("The disk is full.")

    with pytest.raises(RuntimeError, match="disk is full"):
        fill(run, Words(), on_part=broken)


def test_new_answers_make_what_was_said_of_the_old_ones_void(make_dataset):
    failing = [True]

    def rule(request):
        text = request.messages[0].content
        if failing and "number 1" in text:
            raise BackendError("Not yet.")
        return "x" if "How good" not in text else "5"

    llm, step = ScriptedLLM(rule), InfluenceStep(closed_book=False)
    answered = live_run(make_dataset(3, k=2), llm, step=step, retry=QUICK)
    assert answered.manifest["steps"]["influence"]["reasons"] == {"Not yet.": 1}
    scored = fill(answered, Score(), llm=llm)
    assert len(scores(scored)) == 3 and scored.manifest["steps"]["score"]["complete"]
    failing.clear()
    whole = fill(scored, step, llm=llm, retry=QUICK)
    assert sorted(scores(whole)) == ["q0", "q2"]
    assert not whole.manifest["steps"]["score"]["complete"]
    assert len(scores(fill(whole, Score(), llm=llm))) == 3
    # Under another seed every answer is another one.
    anew = fill(whole, replace(step, seed=1), llm=llm, cancelled=lambda: True)
    assert not scores(anew) and "score" not in anew.manifest["steps"]
    assert anew.queries["answer"].isna().all() and not anew.manifest["complete"]
    assert anew.passages["text"].equals(answered.passages["text"])


def test_answers_cost_what_all_tries_together_cost(make_dataset):
    llm, step = ScriptedLLM(lambda _: "x"), InfluenceStep(closed_book=False)
    partial = live_run(make_dataset(3, k=2), llm, step=step, cancelled=lambda: llm.calls >= 3)
    llm.notes = ("The server does not take seed.",)
    whole = fill(partial, step, llm=llm)
    assert whole.manifest["cost"]["calls"] == 9 == whole.manifest["steps"]["influence"]["n_calls"]
    # Nothing that is found out about the server is lost, or told twice.
    assert whole.manifest["notes"] == ["The server does not take seed."]
    again = fill(whole, replace(step, seed=3), llm=ScriptedLLM(lambda _: "x"))
    assert (again.manifest["notes"], again.manifest["cost"]["calls"]) == ([], 9)


def test_a_question_without_passages_keeps_its_reason(make_dataset):
    data = make_dataset(2)
    data = replace(data, questions=(replace(data.questions[0], problem="Retrieve broke."), data.questions[1]))
    llm = ScriptedLLM(lambda _: "x")
    first = live_run(data, llm)
    again = fill(first, InfluenceStep(seed=1), llm=llm)
    for found in (first, again):
        assert found.queries["status_reason"][0] == "Retrieve broke."
        assert found.queries["answer_status"].to_list() == ["error", "answered"]
        assert found.manifest["steps"]["influence"]["n_left"] == 0


def test_another_run_names_its_parent_and_is_found_again(run):
    llm = ScriptedLLM(lambda _: "5")
    derived = another_run(run, [Score()], {"score": llm})
    assert derived.manifest["parent"] == run.run_id
    assert derived.name == f"{run.name}, score"
    assert another_run(run, [Score()], {"score": llm}).run_id == derived.run_id
    others = [
        another_run(run, [Score(5)], {"score": llm}),
        another_run(run, [Score()], {"score": ScriptedLLM(lambda _: "", name="other")}),
        another_run(run, [Score(), Words()], {"score": llm}),
    ]
    assert len({derived.run_id, *(other.run_id for other in others)}) == 4


def test_a_step_asks_the_model_of_the_answers_unless_it_says_otherwise():
    live = ModelChoice("embedded", "m")
    assert Score().model(live) is live
    assert Words().model(live) is None


def test_a_cancel_is_no_failure_of_a_question(run):
    class Stops(ScriptedLLM):
        def generate(self, requests, on_done=None, cancelled=None):
            raise Cancelled("Stopped.")

    partial = fill(run, Score(), llm=Stops(lambda _: "5"))
    assert partial.manifest["steps"]["score"]["reasons"] == {}
    assert partial.manifest["steps"]["score"]["n_left"] == 7


@dataclass(frozen=True)
class Twice(Score):
    """Asks the same thing twice in one batch."""

    name: ClassVar[str] = "twice"

    def calls(self, question):
        (call,) = super().calls(question)
        return [call, replace(call, number=2)]


def test_identical_calls_of_a_question_bring_progress_to_the_total(run):
    llm, seen = ScriptedLLM(lambda _: "5"), []
    fill(run, Twice(), llm=llm, progress=lambda done, total, what: seen.append((done, total)))
    assert llm.calls == 7
    assert seen == [(2 * n, 14) for n in range(1, 8)]
