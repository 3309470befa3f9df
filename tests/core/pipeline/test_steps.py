"""Steps of a few lines, driven by `fill`: what is kept, cleared, tried again, told and written down."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import ClassVar

import pandas as pd
import pytest

from core.errors import BackendError, Cancelled, InputError
from core.influence.step import InfluenceStep
from core.llm import CompletionCache, Message, Request
from core.pipeline import Call, ModelChoice, PerQuestion, RetryPolicy, StepPlan, StepWork, another_run, fill
from core.pipeline.steps import Option, PlanChoice, Step, drive, model_facts, open_models
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


# --- the time that is told and taken


class Clock:
    """Time that passes only where somebody lets it."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr("core.pipeline.steps.time", SimpleNamespace(perf_counter=lambda: self.now))

    def takes(self, seconds, then=None):
        self.now += seconds
        return then


def test_partial_runs_take_a_twentieth_of_the_time_at_most(run, monkeypatch):
    clock, offered = Clock(monkeypatch), []

    def on_part(part):
        offered.append(len(scores(part)))
        clock.takes(1.0)

    llm = ScriptedLLM(lambda _: clock.takes(5.0, "7"))
    fill(run, Score(), llm=llm, on_part=on_part)
    # After the first question: it took a second, so the next may begin twenty seconds after it.
    assert offered == [1, 5]
    # The last question is followed by the whole run.
    offered.clear()
    fill(Run.create(run.manifest, queries=run.queries[:1]), Score(), llm=llm, on_part=on_part)
    assert offered == []


def test_after_a_cancel_no_partial_run_is_offered(run, monkeypatch):
    Clock(monkeypatch)  # what takes no time is offered after each question
    llm, offered = ScriptedLLM(lambda _: "7"), []
    fill(
        run,
        Score(),
        llm=llm,
        on_part=lambda part: offered.append(len(scores(part))),
        cancelled=lambda: llm.calls >= 3,
    )
    assert offered == [1, 2, 3]


def test_questions_that_failed_alike_are_counted_together(run):
    filled = fill(
        run, Score(), llm=ScriptedLLM(lambda request: "7" if "q1" in request.messages[0].content else "x")
    )
    ((reason, n),) = filled.manifest["steps"]["score"]["reasons"].items()
    assert n == 6 and "ValueError" in reason


def test_seconds_and_calls_of_all_tries_are_added_up(run, monkeypatch):
    clock = Clock(monkeypatch)
    llm = ScriptedLLM(lambda _: clock.takes(0.52, "7"))
    partial = fill(run, Score(), llm=llm, cancelled=lambda: llm.calls >= 2)
    assert partial.manifest["steps"]["score"]["seconds"] == 1.0
    whole = fill(partial, Score(), llm=llm)
    assert whole.manifest["steps"]["score"]["seconds"] == 3.6
    assert whole.manifest["steps"]["score"]["n_calls"] == 7


def test_answers_cost_the_seconds_and_tokens_of_all_tries(make_dataset, monkeypatch):
    clock = Clock(monkeypatch)
    llm, step = ScriptedLLM(lambda _: clock.takes(0.51, "two words")), InfluenceStep(closed_book=False)
    partial = live_run(make_dataset(2, k=1), llm, step=step, cancelled=lambda: llm.calls >= 2)
    n_read = sum(llm.count_tokens(one.messages) for one in llm.requests)
    assert partial.manifest["cost"] == {
        "calls": 2, "cached": 0, "prompt_tokens": n_read, "completion_tokens": 4, "seconds": 1.0,
    }  # fmt: skip
    whole = fill(partial, step, llm=llm)
    assert whole.manifest["cost"] == {
        "calls": 4, "cached": 0, "prompt_tokens": 2 * n_read, "completion_tokens": 8, "seconds": 2.0,
    }  # fmt: skip
    anew = fill(whole, replace(step, seed=1), llm=llm)
    assert (anew.manifest["cost"]["calls"], anew.manifest["cost"]["seconds"]) == (4, 2.0)


class Many(StepWork):
    """All questions in one go; each has a call by plan, and one is made."""

    settings: ClassVar = {}
    batch = 10_000

    def __init__(self, step, run, asker):
        self.ids, self.step, self.asker = run.queries["query_id"].to_list(), step, asker

    def todo(self, run):
        return [] if self.step.seen else self.ids

    def work(self, ids):
        self.step.seen.append(len(ids))
        self.asker.ask([Request((Message("user", "all"),))])
        return {}

    def plan(self, ids):
        self.step.planned.append(len(ids))
        return StepPlan(tuple(Call("one", 1, Request(())) for _ in ids))


@dataclass(frozen=True)
class ManyStep(Words):
    name: ClassVar[str] = "many"
    planned: list = field(default_factory=list, compare=False)

    def open(self, run, asker):
        return Many(self, run, asker)


@pytest.mark.parametrize(
    ("n", "planned"), [(250, [100, 100, 50]), (1999, [100] * 19 + [99]), (4001, [100] * 13 + [34])]
)
def test_calls_of_many_questions_are_counted_on_a_sample(n, planned):
    ids = [f"q{i}" for i in range(n)]
    run = Run.create({"source": "upload"}, queries=pd.DataFrame({"query_id": ids, "question": "What?"}))
    step, seen = ManyStep(), []
    fill(run, step, llm=ScriptedLLM(lambda _: "x"), progress=lambda *told: seen.append(told))
    assert (step.planned, step.seen) == (planned, [n])
    assert seen == [(1, n, f"question 1 of {n}")]


# --- several steps, and their models


def test_each_model_is_opened_once_for_all_steps(monkeypatch):
    opened = []

    def open_llm(backend, model, **more):
        opened.append((backend, model, more))
        return f"{model} opened"

    monkeypatch.setattr("core.pipeline.steps.open_llm", open_llm)

    @dataclass(frozen=True)
    class Judged(Score):
        name: ClassVar[str] = "judged"
        judge: str = "j"

        def model(self, live):
            return ModelChoice("openai", self.judge, "http://there")

    live, steps = ModelChoice("embedded", "m"), [Score(), Twice(), Words(), Judged()]
    assert open_models(steps, live) == {
        "score": "m opened", "twice": "m opened", "words": None, "judged": "j opened",
    }  # fmt: skip
    assert opened == [("embedded", "m", {}), ("openai", "j", {"base_url": "http://there"})]
    opened.clear()
    assert open_models(steps, live, {live: "known"})["score"] == "known"
    assert [model for _, model, _ in opened] == ["j"]


def test_steps_are_driven_in_turn_each_on_the_run_of_the_one_before(run):
    entered, told = [], []

    @contextmanager
    def around(step, before):
        entered.append((step.name, len(before["verdicts"])))
        yield lambda *state: told.append((step.name, *state[:2]))
        entered.append("left")

    steps, llm = [Words(), Score()], ScriptedLLM(lambda _: "7")
    found = [
        (step.name, len(before["signals"]), len(after["signals"]), len(after["verdicts"]))
        for step, before, after in drive(run, steps, {"words": None, "score": llm}, around)
    ]
    assert found == [("words", 0, 0, 7), ("score", 0, 7, 7)]
    assert entered == [("words", 0), "left", ("score", 7), "left"]
    assert told[-1] == ("score", 7, 7) and ("words", 7, 7) in told
    # Before anything is done it is seen that the second one lacks its model.
    entered.clear()
    with pytest.raises(InputError, match="The step score needs llm"):
        list(drive(run, steps, {"words": None}, around))
    assert entered == []


def test_another_run_of_the_same_steps_has_their_names_once(run):
    llm = ScriptedLLM("5")
    first = another_run(run, [Score(), Words()], {"score": llm})
    assert first.name == f"{run.name}, score, words" and len(first.run_id) == 12
    again = another_run(first, [Score(), Words()], {"score": llm})
    assert again.name == first.name and again.run_id != first.run_id
    # A model that a step does not ask makes no difference.
    assert another_run(run, [Score(), Words()], {"score": llm, "words": llm}).run_id == first.run_id


def test_the_facts_of_a_model_are_its_kind_name_and_options():
    llm = ScriptedLLM("x", name="m", options={"path": {1: "odd"}})
    assert model_facts(llm) == {"backend": "", "name": "m", "options": {"path": {"1": "odd"}}}
    llm.kind = "embedded"
    assert model_facts(llm)["backend"] == "embedded"


def test_a_choice_is_described_in_words():
    choice = PlanChoice("exact", 5, 12_345, "as measured", True)
    assert choice.note == "chosen; about 12,345 prompt tokens; as measured"
    assert (
        replace(choice, chosen=False, expected="", seconds=0.0).note
        == "about 12,345 prompt tokens; about 0 s"
    )


# --- calls, question by question


@dataclass(frozen=True)
class Growing(PerQuestion):
    """Asks as often as it is told, but for what is there; fills rows of its own and a cell of the passages."""

    name: ClassVar[str] = "growing"
    title: ClassVar[str] = "Grow"
    fills: ClassVar = {
        "confidences": (),
        "signals": ("llm_score", "lexical"),
        "passages": ("influence_score",),
    }
    grows: ClassVar[tuple[str, ...]] = ("most",)
    kinds: ClassVar = {"one": "a call"}
    seed: int = 0
    most: int = 1
    filled: list = field(default_factory=list, compare=False)

    def calls(self, question):
        there = len(question.filled["confidences"])
        self.filled.append(sorted(question.filled))
        return [
            Call("one", n, Request((Message("user", f"{question.query_id} {n}"),)))
            for n in range(there + 1, self.most + 1)
        ]

    def missing(self, run):
        known = run["confidences"].groupby("query_id").size()
        return [i for i in run.queries["query_id"] if known.get(i, 0) < self.most]

    def rows(self, question, answers):
        new = [{"query_id": question.query_id, "name": str(n), "value": 0.5} for _, n in answers]
        return {"confidences": [*question.filled["confidences"], *new]}


def test_rows_made_with_less_are_kept_where_only_more_is_asked(run):
    llm = ScriptedLLM("x")
    llm._rule = lambda _: "x"
    first = fill(run, Growing(), llm=llm)
    step = Growing(most=3)
    more = fill(first, step, llm=llm)
    assert llm.calls == 7 + 2 * 7 and len(more["confidences"]) == 3 * 7
    assert "most" not in more.manifest["steps"]["growing"]["options"]
    # What comes with the questions and passages is theirs already.
    assert step.filled[0] == ["confidences", "signals"]
    assert len(fill(more, Growing(seed=1), llm=llm)["confidences"]) == 7


def test_a_batch_is_filled_by_the_calls_of_as_many_questions_as_fit(run):
    @dataclass(frozen=True)
    class Thrice(Score):
        name: ClassVar[str] = "thrice"

        def calls(self, question):
            texts = (f"{question.query_id} {n}" for n in (1, 2, 3))
            return [Call("score", n, Request((Message("user", t),))) for n, t in enumerate(texts, start=1)]

    llm = ScriptedLLM(lambda _: "5")
    llm.capabilities = replace(llm.capabilities, batch=8)
    assert len(scores(fill(run, Thrice(), llm=llm))) == 7
    assert llm.batches == [6, 6, 6, 3]


@pytest.mark.parametrize("empty", ["llm_score", "lexical"])
def test_a_question_with_one_empty_cell_is_missing(run, empty):
    rows = {"query_id": ["q0", "q2"], "llm_score": [0.1, 0.2], "lexical": [0.3, 0.4]}
    signals = pd.DataFrame(rows)
    signals.loc[1, empty] = None
    partly = Run.create(run.manifest, queries=run.queries, passages=run.passages, signals=signals)

    @dataclass(frozen=True)
    class Both(Score):
        fills: ClassVar = {"signals": ("llm_score", "lexical")}

    assert Both().missing(partly) == ["q1", "q2", "q3", "q4", "q5", "q6"]
    assert Score().missing(partly) == [
        f"q{i}" for i in range(7) if i not in ((0,) if empty == "llm_score" else (0, 2))
    ]


def test_what_a_step_says_by_itself_is_nothing(run):
    step = Score()
    assert (step.noun, step.kinds, step.grows, step.apart, step.needs_llm) == ("call", {}, (), "rows", True)
    assert (step.tell(), step.failed(None, "why"), step.facts(run), step.kept(run)) == (None, {}, {}, {})


def test_a_step_that_calls_no_model_need_not_say_so():
    class Plain(Step):
        pass

    class Own(Score):
        needs_llm = False

    live = ModelChoice("embedded", "m")
    assert (Plain().needs_llm, Plain().model(live), Own().model(live)) == (False, None, None)


def test_an_option_shows_its_default_unless_it_says_otherwise():
    option = Option("--x", "An x.")
    assert (option.shows_default, option.title, option.choices, option.where, option.names) == (
        True,
        "",
        (),
        None,
        "",
    )
