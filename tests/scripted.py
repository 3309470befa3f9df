"""A language model that follows a rule or replays a record. For tests: it cannot be chosen by a user."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from core.errors import BackendError, TransientError
from core.llm.cache import request_key
from core.llm.types import Capabilities, Completion, IsCancelled, Message, OnDone, Request

Rule = Callable[[Request], "str | Completion"]


class ScriptedLLM:
    """Answers by a rule, deterministically.

    Parameters
    ----------
    rule : callable or Mapping
        From a request to its answer (or to a whole completion; what it raises reaches the caller),
        or the answers recorded by request key.
    name, options
        Identity, as for any model.
    delay : float
        Seconds each call takes.
    transient_failures : int
        So many calls fail with `TransientError` before calls succeed.
    down : bool
        Every call fails with `BackendError`.
    log : path, optional
        A line ``key`` is appended and flushed when a call *starts*, so that calls can be counted
        across processes that are killed.
    parallel, context_length
        As in `Capabilities`.
    """

    def __init__(
        self,
        rule: Rule | Mapping[str, str],
        *,
        name: str = "scripted",
        options: Mapping[str, object] | None = None,
        delay: float = 0.0,
        transient_failures: int = 0,
        retry_after: float | None = None,
        down: bool = False,
        log: str | os.PathLike[str] | None = None,
        parallel: int = 1,
        context_length: int | None = None,
    ) -> None:
        self.name = name
        self.options: Mapping[str, object] = dict(options or {})
        self.capabilities = Capabilities(
            seed=True, parallel=parallel, context_length=context_length, prefill=True
        )
        self.requests: list[Request] = []
        self.batches: list[int] = []
        self._rule = rule
        self._delay = delay
        self._failures = transient_failures
        self._retry_after = retry_after
        self._down = down
        self._log = Path(log) if log is not None else None
        self._lock = threading.Lock()

    @property
    def calls(self) -> int:
        """How many calls were made."""
        return len(self.requests)

    def __getstate__(self):
        """Return everything but the lock, so that workers of a cluster can have a copy."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state):
        vars(self).update(state, _lock=threading.Lock())

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """Return the number of words separated by white space."""
        return sum(len(message.content.split()) for message in messages)

    def generate(
        self,
        requests: Sequence[Request],
        on_done: OnDone | None = None,
        cancelled: IsCancelled | None = None,
    ) -> list[Completion]:
        """Answer every request by the rule, one after another."""
        with self._lock:
            self.batches.append(len(requests))
        results = []
        for index, request in enumerate(requests):
            completion = self._answer(request)
            results.append(completion)
            if on_done is not None:
                on_done(index, completion)
        return results

    def _answer(self, request: Request) -> Completion:
        with self._lock:
            self.requests.append(request)
            if self._log is not None:
                with self._log.open("a", encoding="utf-8") as file:
                    file.write(request_key(self, request) + "\n")
            failing = self._failures > 0
            self._failures -= failing
        if self._delay:
            time.sleep(self._delay)
        if self._down:
            raise BackendError("The scripted model is down.")
        if failing:
            raise TransientError("The scripted model is busy.", self._retry_after)
        rule = self._rule
        answer = rule[request_key(self, request)] if isinstance(rule, Mapping) else rule(request)
        if isinstance(answer, Completion):
            return answer
        text = answer.strip()
        return Completion(text, "stop", self.count_tokens(request.messages), len(text.split()), self._delay)
