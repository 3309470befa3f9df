"""Steps that call the model question by question: a subclass defines the calls and reads the answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from core.llm.types import Completion
from core.pipeline.asking import Asker
from core.pipeline.rows import AskedQuestion, Rows, questions_of
from core.pipeline.steps import Answered, Call, Step, StepPlan, StepWork, options_of
from core.rows import is_among
from core.run import Run

Answers = Mapping[tuple[str, int], Completion]


class PerQuestion(Step):
    """Base class of such a step; a subclass is a frozen dataclass, see `core.pipeline.steps.Step`.

    ``kinds`` describes its calls. ``grows`` names options that only say how much is asked: rows made with
    less are kept, in ``question.filled``. ``apart``, `tell` and `hear`: see `core.pipeline.steps.StepWork`.
    """

    noun: ClassVar[str] = "call"
    kinds: ClassVar[Mapping[str, str]] = {}
    grows: ClassVar[tuple[str, ...]] = ()

    @property
    def apart(self) -> str:
        """What another process must have."""
        return "rows"

    def tell(self) -> Any:
        """Return what `facts` needs beside the rows."""
        return None

    def hear(self, told: Any) -> None:
        """Take what another process has told."""
        return

    @property
    def needs_llm(self) -> bool:
        """Whether it calls a language model."""
        return True

    @abstractmethod
    def calls(self, question: AskedQuestion) -> Sequence[Call]:
        """Return the calls for a question; no two share kind and number."""

    def expected(self, question: AskedQuestion) -> Sequence[Call]:
        """Return the calls to expect, where they depend on what another step has not made yet."""
        return self.calls(question)

    @abstractmethod
    def rows(self, question: AskedQuestion, answers: Answers) -> Rows:
        """Return the question's rows from the completions, by kind and number of their calls."""

    def missing(self, run: Run) -> Sequence[str]:
        """Return the ids of the questions that lack a row or have an empty cell."""
        ids = run.queries["query_id"]
        missing = np.zeros(len(ids), dtype=bool)
        for table, columns in self.fills.items():
            frame = run[table]
            empty = frame[list(columns)].isna().any(axis=1)
            missing |= ~is_among(ids, frame["query_id"]) | is_among(ids, frame.loc[empty, "query_id"])
        return ids[missing].to_list()

    def failed(self, question: AskedQuestion, reason: str) -> Rows:
        """Return rows that record why a question failed."""
        return {}

    def facts(self, run: Run) -> Mapping[str, Any]:
        """Return more facts, see `core.pipeline.steps.StepWork.facts`."""
        return {}

    def kept(self, run: Run) -> Mapping[str, pd.DataFrame]:
        """Return tables with what is not to be cleared, see `core.pipeline.steps.StepWork.kept`."""
        return {}

    def open(self, run: Run, asker: Asker) -> StepWork:
        """Return the step at work."""
        return _Work(self, run, asker)


class _Work(StepWork):
    parallel = True

    def __init__(self, step: PerQuestion, run: Run, asker: Asker) -> None:
        self.settings = {name: value for name, value in options_of(step).items() if name not in step.grows}
        self._step, self._asker, self.apart = step, asker, step.apart
        self._question = questions_of(run, step.fills.keys() - {"queries", "passages"} if step.grows else ())
        # As many questions at once as fill a batch of the model.
        each = [len(step.calls(self._question(query_id))) for query_id in run.queries["query_id"][:1]]
        at_once = asker.llm.capabilities.batch if asker.llm is not None else 1
        self.batch = max(1, at_once // max([1, *each]))

    def todo(self, run: Run) -> Sequence[str]:
        return self._step.missing(run)

    def work(self, ids: Sequence[str]) -> Rows:
        questions = [self._question(query_id) for query_id in ids]
        calls = [self._step.calls(question) for question in questions]
        asked = [(q.query_id, call) for q, listed in zip(questions, calls, strict=True) for call in listed]

        def on_done(place: int, completion: Completion) -> None:
            query_id, call = asked[place]
            self._asker.on_call(Answered(query_id, call.kind, call.number, completion))

        requests = [call.request for _, call in asked]
        completions = iter(self._asker.ask(requests, on_done) if requests else ())
        made: dict[str, list[Any]] = {}
        for question, listed in zip(questions, calls, strict=True):
            answers = {(call.kind, call.number): next(completions) for call in listed}
            for table, rows in self._step.rows(question, answers).items():
                made.setdefault(table, []).extend(
                    rows.to_dict("records") if isinstance(rows, pd.DataFrame) else rows
                )
        return made

    def failed(self, query_id: str, reason: str) -> Rows:
        return self._step.failed(self._question(query_id), reason)

    def tell(self, ids: Sequence[str]) -> Any:
        return self._step.tell()

    def hear(self, ids: Sequence[str], told: Any) -> None:
        self._step.hear(told)

    def plan(self, ids: Sequence[str]) -> StepPlan:
        questions = map(self._question, ids)
        calls = tuple(call for question in questions for call in self._step.expected(question))
        return StepPlan(calls, kinds=self._step.kinds)

    def kept(self, run: Run) -> Mapping[str, pd.DataFrame]:
        return self._step.kept(run)

    def facts(self, run: Run) -> Mapping[str, Any]:
        return self._step.facts(run)
