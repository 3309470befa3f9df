"""The user's ``retrieve`` function, called for every question before the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from core.errors import BackendError, InputError
from core.llm.functions import FunctionLLM
from core.llm.user_function import Outcome, UserFunction
from core.pipeline.steps import ProgressCallback
from core.sources.dataset import Dataset, make_dataset
from core.sources.objects import as_passage
from core.sources.question import PassageIn, Question, with_gold


@dataclass(frozen=True, slots=True)
class Found:
    """The objects that ``retrieve`` returned for a question, and the passages read from them."""

    objects: tuple[object, ...]
    passages: tuple[PassageIn, ...]


class Retrieval:
    """Calls ``retrieve``, up to ``parallel`` calls at once, and keeps the first k objects of each result."""

    def __init__(self, function: Callable[[str], Any], k: int, parallel: int | None) -> None:
        if not callable(function):
            raise InputError(f"retrieve must be a function, got {type(function).__name__}.")
        self.function = UserFunction(function, "retrieve", lambda value: found(value, k), parallel)
        self._found: dict[int, tuple[str, Found]] = {}

    def of(self, data: Dataset, progress: ProgressCallback | None = None) -> Dataset:
        """Return the data set with the passages of each question, or the reason for none.

        BackendError where the function failed on every question; its cause is the first exception.
        """
        n = len(data.questions)
        outcomes: dict[int, Outcome[Found]] = {}

        def done(index: int, outcome: Outcome[Found]) -> None:
            outcomes[index] = outcome
            if progress is not None:
                progress(len(outcomes), n, "retrieve")

        self.function.each([(question.question,) for question in data.questions], done)
        if all(outcome.error is not None for outcome in outcomes.values()):
            first = outcomes[0].error
            assert first is not None
            raise BackendError(
                f"retrieve failed on every question; first: {self.function.reason(first)}"
            ) from first
        questions = [
            self._with_passages(question, index, outcomes[index])
            for index, question in enumerate(data.questions)
        ]
        return replace(make_dataset(data.name, questions), report=data.report)

    def hand_to(self, llm: FunctionLLM) -> None:
        """Let ``answer`` receive the objects that ``retrieve`` returned."""
        for question, result in self._found.values():
            labelled = [(i, p.title, p.text) for i, p in enumerate(result.passages, start=1)]
            llm.hand(question, labelled, result.objects)

    def _with_passages(self, question: Question, index: int, outcome: Outcome[Found]) -> Question:
        bare = replace(question, documents=(), passages=None)
        if outcome.value is None:
            assert outcome.error is not None
            return replace(bare, problem=self.function.reason(outcome.error))
        if not outcome.value.passages:
            return replace(bare, problem="retrieve returned no passage.")
        self._found[index] = (question.question, outcome.value)
        return replace(bare, passages=with_gold(outcome.value.passages, question.gold))


def found(value: object, k: int) -> Found:
    """Read at most k passages from the result of ``retrieve``, any iterable."""
    single = isinstance(value, (str, bytes, Mapping)) or hasattr(value, "columns")
    if single or not isinstance(value, Iterable):
        raise InputError(
            f"retrieve must return a list of passages, got {type(value).__name__}; a single passage goes "
            "into a list, and of a result with several parts only the passages are returned."
        )
    objects = tuple(islice(value, k))
    return Found(objects, tuple(as_passage(entry, place) for place, entry in enumerate(objects, start=1)))
