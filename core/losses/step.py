"""The step that asks every question again, the way each fix would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import pandas as pd

from core.claims.step import ClaimsStep
from core.errors import InputError
from core.llm.prompts import FUNCTION_STYLE, answer_messages, prompt_style
from core.llm.types import Completion, Request
from core.losses.arms import ALONE, ARMS, AS_IT_IS, BY_REFERENCE, LABELLED, SUFFICIENT, Arm, Case, Shown
from core.losses.ladder import CHANGED, NONE, UNCHANGED
from core.losses.outcomes import CORRECT, Judge
from core.pipeline.asking import Asker
from core.pipeline.rows import AskedQuestion, Rows, prompt_of, questions_of
from core.pipeline.sampling import sampled
from core.pipeline.steps import (
    Answered,
    Call,
    Option,
    Step,
    StepPlan,
    StepWork,
    fill,
    model_facts,
)
from core.run import Run
from core.text import answer_status
from core.text.display import count
from core.text.matching import labelled, says

_OWN = Arm(AS_IT_IS, "As it is", lambda case: case.passages, "The prompt of the run, asked of this model.")
_SEED_AGAIN = 1  # beyond the seed of the answers: that of the first noise repeat
_Row = dict[str, Any]
_Rows = dict[tuple[str, str, int], _Row]


@dataclass(frozen=True)
class LossesStep(Step):
    """Ask every question again under each arm of a table, and keep the answers.

    ``alone`` finds the evidence of questions without gold passages: each passage is asked about on its own,
    and one whose answer is correct is *sufficient* (Salemi & Zamani 2024, arXiv 2404.13781). ``arms`` are
    those of `core.losses.arms.ARMS`; yours may be added.

    Prompt style, max answer tokens and seed are those of the run's own answers. Where these are another
    model's, or an unknown one's, each question is asked *as it is* once more, and that is what arms are
    compared with. A prompt that an arm does not change is not asked again. Without reference answers and
    labels, the claims of all answers are extracted by rules and verified offline.

    Cost: for a question with k passages, up to one call for each arm; with ``alone`` and no gold k short
    ones more. A failed call is asked again by the next run.
    """

    name: ClassVar[str] = "losses"
    title: ClassVar[str] = "Try the fixes"
    noun: ClassVar[str] = "call"
    fills: ClassVar[Mapping[str, tuple[str, ...]]] = {"arms": ()}
    needs_llm = True
    takes_function: ClassVar[bool] = True

    alone: Annotated[
        bool,
        Option(
            "--alone",
            "Ask with each passage alone where no gold passage is known: k short calls per question.",
            title="Each passage alone",
        ),
    ] = False
    arms: tuple[Arm, ...] = field(default=ARMS, repr=False)

    def __post_init__(self) -> None:
        names = [arm.name for arm in self.arms]
        wrong = next((name for name in names if names.count(name) > 1 or name in (ALONE, AS_IT_IS)), None)
        if wrong is not None or not names:
            raise InputError(f"arms must have names of their own, not {ALONE} or {AS_IT_IS}, got {names!r}.")

    def open(self, run: Run, asker: Asker) -> StepWork:
        """Return the step at work, with the prompt that the run was answered with."""
        return _Work(self, run, asker)


class _Work(StepWork):
    parallel = True
    apart = "run"  # whether claims decide is a matter of all questions

    def __init__(self, step: LossesStep, run: Run, asker: Asker) -> None:
        self._style, self._max_tokens, self._seed = prompt_of(run)
        self.settings = {"style": self._style, "max_tokens": self._max_tokens, "seed": self._seed}
        self._step, self._asker = step, asker
        self._question = questions_of(run, ("arms", "gold"))
        of_run = run.manifest.get("model")
        self._is_other = asker.llm is not None and (of_run or {}) != model_facts(asker.llm)
        self._by_claims = not labelled(run.queries).any()
        self._claims = claims_options(run)
        at_once = asker.llm.capabilities.batch if asker.llm is not None else 1
        self.batch = max(1, at_once // len(step.arms))

    @property
    def _arms(self) -> tuple[Arm, ...]:
        return (_OWN, *self._step.arms) if self._is_other or self._by_claims else self._step.arms

    def todo(self, run: Run) -> Sequence[str]:
        rows = run["arms"]
        done = rows[
            rows["prompt"].ne(CHANGED) | rows["answer_status"].notna() & rows["answer_status"].ne("error")
        ]
        if self._by_claims:
            done = done[done["prompt"].eq(NONE) | done["judged"].fillna(False)]
        have: dict[str, set[str]] = {}
        alone: dict[str, set[int]] = {}
        for query_id, arm, place in done[["query_id", "arm", "repeat"]].itertuples(index=False):
            have.setdefault(query_id, set()).add(arm)
            if arm == ALONE:
                alone.setdefault(query_id, set()).add(place)
        names = {arm.name for arm in self._arms}
        passages = {*run.passages["query_id"]}
        return [
            query_id
            for query_id in run.queries["query_id"]
            if query_id in passages
            and (names - have.get(query_id, set()) or self._lacks_alone(query_id, alone.get(query_id, set())))
        ]

    def _lacks_alone(self, query_id: str, there: set[int]) -> bool:
        return bool(self._step.alone and self._alone_calls(self._question(query_id), there))

    def work(self, ids: Sequence[str]) -> Rows:
        questions = {query_id: self._question(query_id) for query_id in ids}
        rows: _Rows = {
            (row["query_id"], row["arm"], row["repeat"]): dict(row)
            for question in questions.values()
            for row in _answered(question)
        }
        if self._step.alone:
            self._ask(
                [(one, call, shown) for one in questions.values() for call, shown in self._alone_calls(one)],
                rows,
            )
        wanted = []
        for question in questions.values():
            alone = [
                row for row in rows.values() if row["query_id"] == question.query_id and row["arm"] == ALONE
            ]
            case = case_of(question, alone)
            for arm in self._arms:
                key = (question.query_id, arm.name, 1)
                row, call, shown = self._planned(question, case, arm)
                if not _is_same(rows.get(key), row):
                    rows[key] = row
                    if call is not None:
                        wanted.append((question, call, shown))
                rows[key]["gold_by"] = row["gold_by"]
        self._ask(wanted, rows)
        if self._by_claims:
            self._judge(questions, rows)
        # Rows that are asked again stand where they would have stood.
        order = {name: i for i, name in enumerate((ALONE, *(arm.name for arm in self._arms)))}
        return {
            "arms": sorted(rows.values(), key=lambda row: (order.get(row["arm"], len(order)), row["repeat"]))
        }

    def _planned(
        self, question: AskedQuestion, case: Case, arm: Arm
    ) -> tuple[_Row, Call | None, Sequence[Shown]]:
        """Return the row of an arm, without an answer yet, and its call where the prompt is another one."""
        made = arm.make(case)
        shown = tuple(made or ())
        is_same = shown == case.passages and arm.style in (None, self._style)
        asked = bool(shown) and (not is_same or arm.again or arm.name == AS_IT_IS)
        if arm.name == AS_IT_IS and not self._is_other:
            asked = False
        prompt = NONE if not shown else UNCHANGED if is_same else CHANGED
        row: _Row = {
            "query_id": question.query_id, "arm": arm.name, "repeat": 1,
            "prompt": CHANGED if asked else prompt, "passages": [one.passage_id for one in shown] or None,
            "gold_by": case.gold_by or None, "answer": None, "answer_status": None,
        }  # fmt: skip
        if arm.name == AS_IT_IS and not asked:
            row |= {"answer": question.query["answer"], "answer_status": question.query["answer_status"]}
        seed = self._seed + (_SEED_AGAIN if arm.again else 0)
        return row, self._call(arm.name, 1, question, shown, arm.style, seed) if asked else None, shown

    def _alone_calls(
        self, question: AskedQuestion, there: set[int] | None = None
    ) -> list[tuple[Call, Sequence[Shown]]]:
        """Return a call for each passage on its own that has no answer yet, where gold is not known."""
        if case_of(question, ()).gold_by == LABELLED or not question.query["reference_answers"]:
            return []
        if there is None:
            there = {row["repeat"] for row in _answered(question) if row["arm"] == ALONE}
        return [
            (self._call(ALONE, place, question, [shown]), [shown])
            for place, shown in enumerate(shown_of(question), start=1)
            if place not in there
        ]

    def _call(
        self,
        arm: str,
        number: int,
        question: AskedQuestion,
        shown: Sequence[Shown],
        style: str | None = None,
        seed: int | None = None,
    ) -> Call:
        style = style or self._style
        # A function gets back the objects that it retrieved: they are known by their first number.
        keeps = style == FUNCTION_STYLE.name
        numbered = [
            (one.label if keeps and one.label else i, one.title, one.text)
            for i, one in enumerate(shown, start=1)
        ]
        messages = answer_messages(str(question.query["question"]), numbered, style)
        seed = self._seed if seed is None else seed
        return Call(
            arm,
            number,
            Request(messages, seed=seed, max_tokens=self._max_tokens, stop=prompt_style(style).stop),
        )

    def _ask(
        self,
        wanted: Sequence[tuple[AskedQuestion, Call, Sequence[Shown]]],
        rows: dict[tuple[str, str, int], _Row],
    ) -> None:
        """Ask, and put the answers into the rows."""

        def on_done(place: int, completion: Completion) -> None:
            question, call, _ = wanted[place]
            self._asker.on_call(Answered(question.query_id, call.kind, call.number, completion))

        found = self._asker.ask([call.request for _, call, _ in wanted], on_done) if wanted else []
        for (question, call, shown), completion in zip(wanted, found, strict=True):
            answer = sampled(completion)
            row = rows.setdefault(
                (question.query_id, call.kind, call.number),
                {
                    "query_id": question.query_id, "arm": call.kind, "repeat": call.number, "prompt": CHANGED,
                    "passages": [one.passage_id for one in shown], "gold_by": None,
                },
            )  # fmt: skip
            row |= {
                "answer": answer,
                "answer_status": "error" if answer is None else answer_status(answer),
                "status_reason": completion.error,
                "prompt_tokens": completion.prompt_tokens or None,
                "completion_tokens": completion.completion_tokens if completion.prompt_tokens else None,
                "support": None,
                "judged": None,
            }

    def _judge(
        self, questions: Mapping[str, AskedQuestion], rows: Mapping[tuple[str, str, int], _Row]
    ) -> None:
        """Verify the claims of the answers of all arms, and of those of the run, alike."""
        texts = {
            (query_id, one.passage_id): one
            for query_id, question in questions.items()
            for one in (*shown_of(question), *_missing(question))
        }
        new = [row for row in rows.values() if row["answer_status"] == "answered" and not row.get("judged")]
        asked = []
        for i, row in enumerate(new):
            keys = [(row["query_id"], passage_id) for passage_id in row["passages"] or ()]
            shown = [texts[key] for key in keys if key in texts]
            asked.append((str(i), str(questions[row["query_id"]].query["question"]), row["answer"], shown))
        support = least_support(verified(asked, self._claims)) if asked else {}
        for i, row in enumerate(new):
            row["support"] = support.get(str(i))
        for row in rows.values():
            row["judged"] = True

    def failed(self, query_id: str, reason: str) -> Rows:
        return {"arms": list(self._question(query_id).filled["arms"])}

    def plan(self, ids: Sequence[str]) -> StepPlan:
        calls: list[Call] = []
        for question in map(self._question, ids):
            known = {(row["arm"], row["repeat"]): row for row in _answered(question)}
            if self._step.alone:
                calls += [call for call, _ in self._alone_calls(question)]
            case = case_of(question, [row for row in known.values() if row["arm"] == ALONE])
            for arm in self._arms if question.passages else ():
                row, call, _ = self._planned(question, case, arm)
                if call is not None and not _is_same(known.get((arm.name, 1)), row):
                    calls.append(call)
        kinds = {arm.name: arm.meaning for arm in self._arms} | {ALONE: "each passage on its own"}
        return StepPlan(tuple(calls), kinds=kinds)

    def facts(self, run: Run) -> Mapping[str, Any]:
        rows = run["arms"]
        lost = int(rows["answer_status"].eq("error").sum())
        notes = (
            [f"{count(lost, 'answer')} to a tried fix failed; run the step again to ask once more."]
            if lost
            else []
        )
        own = {arm.name: [arm.title, arm.meaning, arm.fix] for arm in self._step.arms if arm not in ARMS}
        return {"notes": notes, **({"own_arms": own} if own else {}), "by_claims": self._by_claims}


def _answered(question: AskedQuestion) -> list[Mapping[str, Any]]:
    """Return the rows of a question that need not be asked again."""
    return [row for row in question.filled["arms"] if row["answer_status"] != "error"]


def shown_of(question: AskedQuestion) -> tuple[Shown, ...]:
    """Return the passages of the run's prompt."""
    return tuple(
        Shown(str(one["passage_id"]), one["title"] or "", one["text"] or "", i)
        for i, one in enumerate(question.passages, start=1)
    )


def _is_same(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> bool:
    """Tell whether a row that is there is of the same prompt."""
    if old is None or old["prompt"] != new["prompt"]:
        return False
    return list(old["passages"] or ()) == list(new["passages"] or ())


def _missing(question: AskedQuestion) -> tuple[Shown, ...]:
    """Return the gold passages that were not retrieved and whose texts are known."""
    there = {one["passage_id"] for one in question.passages}
    return tuple(
        Shown(row["passage_id"], row["title"] or "", row["text"])
        for row in question.filled.get("gold", ())
        if row["passage_id"] not in there and row["text"]
    )


def case_of(question: AskedQuestion, alone: Sequence[Mapping[str, Any]]) -> Case:
    """Return what arms need of a question: its passages, and which of them hold the evidence.

    ``alone`` are its rows of the table ``arms`` with one passage each. Gold that is marked comes first, then
    passages that are *sufficient*, then those that contain a reference answer.
    """
    query, shown = question.query, shown_of(question)
    references = tuple(query["reference_answers"] or ())
    case = Case(question.query_id, str(query["question"]), shown, references=references)
    marked = frozenset(str(one["passage_id"]) for one in question.passages if one["is_gold"] is True)
    missing, n_gold = _missing(question), query["n_gold"]
    evidence = {row["passage_id"]: tuple(row["evidence"] or ()) for row in question.filled.get("gold", ())}
    if marked or missing or (n_gold is not None and n_gold == n_gold and n_gold > 0):
        whole = n_gold is None or n_gold != n_gold or len(marked) + len(missing) >= n_gold
        return replace(case, gold=marked, missing=missing, whole=whole, gold_by=LABELLED, evidence=evidence)
    judge = Judge(case.question, references)
    found = frozenset(
        row["passages"][0] for row in alone if judge.state(row["answer"], row["answer_status"]) == CORRECT
    )
    if found:
        return replace(case, gold=found, gold_by=SUFFICIENT)
    found = frozenset(one.passage_id for one in shown if says(one.text, references))
    return replace(case, gold=found, gold_by=BY_REFERENCE) if found else case


def claims_options(run: Run) -> Mapping[str, Any]:
    """Return the options with which a run's own claims were verified; none where they were not."""
    found: Mapping[str, Any] = run.manifest.get("steps", {}).get("claims", {}).get("options", {})
    return found


def verified(asked: Sequence[tuple[str, str, str, Sequence[Shown]]], options: Mapping[str, Any]) -> Run:
    """Return a run of answers whose claims are extracted by rules and verified without a language model.

    ``asked`` has id, question, answer and passages of each; ``options``: see `claims_options`.
    """
    queries = [
        {"query_id": key, "question": question, "answer": answer, "answer_status": "answered"}
        for key, question, answer, _ in asked
    ]
    passages = [
        {
            "query_id": key, "passage_id": one.passage_id, "retrieval_rank": float(slot), "slot": slot,
            "title": one.title, "text": one.text,
        }
        for key, _, _, shown in asked
        for slot, one in enumerate(shown, start=1)
    ]  # fmt: skip
    given = {"queries": queries, "passages": passages}
    tables = {name: pd.DataFrame(rows) for name, rows in given.items() if rows}
    facts = {"source": "live", "run_id": "verified", "name": "verified"}
    return fill(Run.create(facts, **tables), _verifying(options))


def _verifying(options: Mapping[str, Any]) -> ClaimsStep:
    """Return a step that verifies claims without a language model: the run's own, else the offline one."""
    chosen = {name: options[name] for name in ("verifier", "verifier_model") if options.get(name)}
    offline = ClaimsStep(references=False, joint=False)
    try:
        step = replace(offline, **chosen)
    except InputError:  # a verifier of the user's own
        return offline
    return offline if step.needs_llm else step


def least_support(run: Run) -> dict[str, float]:
    """Return by question the best support that its weakest claim has; without claims nothing."""
    support = run["support"]
    best = support.groupby(["query_id", "claim_id"], sort=False)["probability"].max()
    weakest = best.groupby("query_id", sort=False).min() if len(best) else best
    return {str(query_id): float(value) for query_id, value in weakest.items()}
