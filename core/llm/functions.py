"""A user's own function, or another library's client, in place of a language model."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import json
import threading
import time
from collections.abc import AsyncIterable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Generic, TypeVar, cast

from core.errors import Cancelled, InputError, TransientError
from core.llm.backends import BACKENDS, open_llm
from core.llm.prompts import DEFAULT_STYLE, FUNCTION_STYLE, NumberedPassage, passage_message
from core.llm.redact import error_text
from core.llm.remote import estimate_tokens, run_on_loop
from core.llm.types import (
    CANCEL_SECONDS,
    LLM,
    Capabilities,
    Completion,
    IsCancelled,
    Message,
    OnDone,
    Request,
    stop_if,
)
from core.text.strict import clean

T = TypeVar("T")
ASYNC_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """The result of one call: its value, or the error it raised; and its seconds."""

    value: T | None
    error: Exception | None
    seconds: float


class UserFunction(Generic[T]):
    """A foreign function, plain or async, whose exceptions are results too; ``read`` converts its value.

    Plain functions run in the caller's thread, async ones on one background loop, up to 8 at once;
    ``parallel`` sets the calls at once, for plain ones in other threads. ``role`` is the name in messages.
    """

    def __init__(
        self, function: Callable[..., Any], role: str, read: Callable[[Any], T], parallel: int | None = None
    ) -> None:
        inner: Any = function
        while isinstance(inner, functools.partial):
            inner = inner.func
        candidates = (inner, type(inner).__call__)
        is_async = any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f) for f in candidates)
        self.role = role
        self.name = str(getattr(inner, "__qualname__", type(inner).__qualname__))
        self.parallel = parallel or (ASYNC_AT_ONCE if is_async else 1)
        self._function, self._read = function, read
        self._pool: ThreadPoolExecutor | None = None
        if self.parallel > 1:
            self._pool = ThreadPoolExecutor(self.parallel, thread_name_prefix=f"leadline-{role}")

    def each(
        self,
        calls: Sequence[tuple[Any, ...]],
        done: Callable[[int, Outcome[T]], None],
        cancelled: IsCancelled | None = None,
    ) -> None:
        """Call the function with each of the arguments; ``done`` gets every outcome in this thread."""
        if self._pool is not None:
            return self._at_once(self._pool, calls, done, cancelled)
        for index, arguments in enumerate(calls):
            done(index, self._outcome(arguments, cancelled))

    def _at_once(
        self,
        pool: ThreadPoolExecutor,
        calls: Sequence[tuple[Any, ...]],
        done: Callable[[int, Outcome[T]], None],
        cancelled: IsCancelled | None,
    ) -> None:
        left = threading.Event()

        def given_up() -> bool:
            return left.is_set() or (cancelled is not None and cancelled())

        pending: dict[Future[Outcome[T]], int] = {}
        waiting = enumerate(calls)

        def begin() -> None:
            # No more than may run at once: an outcome that waits to be delivered would be lost in a kill.
            for index, arguments in islice(waiting, self.parallel - len(pending)):
                pending[pool.submit(self._outcome, arguments, given_up)] = index

        try:
            begin()
            while pending:
                finished, _ = wait(pending, CANCEL_SECONDS, FIRST_COMPLETED)
                for future in sorted(finished, key=pending.__getitem__):
                    done(pending.pop(future), future.result())
                begin()
                if pending:
                    stop_if(cancelled)
        except Cancelled:
            # Outcomes that have arrived are still delivered: they are paid for.
            for future in [future for future in pending if future.done() and not future.exception()]:
                with contextlib.suppress(Cancelled):
                    done(pending.pop(future), future.result())
            raise
        finally:
            left.set()  # also after Ctrl-C: async calls under way end
            for future in pending:
                future.cancel()

    def reason(self, error: Exception) -> str:
        """Return an error message for people: the exception's type and message."""
        return f"{self.role} raised {error_text(error)}"

    def close(self) -> None:
        """Release the threads; calls under way end in the background."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _outcome(self, arguments: tuple[Any, ...], cancelled: IsCancelled | None) -> Outcome[T]:
        stop_if(cancelled)
        start = time.perf_counter()
        try:
            value = self._function(*arguments)
            if inspect.isawaitable(value) or isinstance(value, AsyncIterable):
                # One loop for all calls: a client made in one run still works in the next.
                value = run_on_loop(_awaited(value), cancelled)
            return Outcome(self._read(value), None, time.perf_counter() - start)
        except Exception as error:
            if isinstance(error, Cancelled) and cancelled is not None and cancelled():
                raise
            return Outcome(None, error, time.perf_counter() - start)


async def _awaited(value: Any) -> object:
    try:
        if inspect.isawaitable(value):
            value = await value
        # As an iterator, so that pieces of one answer are told from a list of several.
        return iter([item async for item in value]) if isinstance(value, AsyncIterable) else value
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise  # our own cancel
        raise RuntimeError("an asyncio.CancelledError without a cancel request") from error


_ERRORS_KEPT = 100
_TEXT_NAMES = ("text", "content", "response", "answer", "result")
_LLM_PARTS = ("generate", "count_tokens", "options", "capabilities")


def as_llm(given: object, name: str = "llm_client") -> LLM:
    """Return the language model that a user's object is, or stands for.

    ``given``: a model of `open_llm`; a back end or a model of one (``embedded``, ``ollama:qwen3:4b``), or the
    name of an Ollama model; the package ``ollama`` or a client of it, for the default model at its address; a
    function ``answer(question, passages)`` or ``answer(prompt)``, plain or async. `InputError`, with ``name``
    of the argument, for anything else.

    >>> as_llm(lambda prompt: "Paris").generate([Request((Message("user", "Where?"),))])[0].text
    'Paris'
    """
    if all(hasattr(given, part) for part in _LLM_PARTS):
        return cast(LLM, given)
    if isinstance(given, str) and given.strip():
        kind, _, model = given.partition(":")
        return open_llm(kind, model or None) if kind in BACKENDS else open_llm("ollama", given)
    package = getattr(given, "__name__", None) if inspect.ismodule(given) else type(given).__module__
    if str(package).partition(".")[0] == "ollama" and hasattr(given, "chat"):
        address = getattr(getattr(given, "_client", None), "base_url", None)
        return open_llm("ollama", base_url=None if address is None else str(address))
    if not callable(given) or isinstance(given, type):
        what = repr(given) if given is None or isinstance(given, str) else type(given).__name__
        raise InputError(
            f"{name} must be a language model, the name of one, a client of ollama or a function, got "
            f'{what}; open a model with core.llm.open_llm, such as open_llm("openai", "name", base_url="http://…").'
        )
    return FunctionLLM(given, style=DEFAULT_STYLE if _takes_one(given) else FUNCTION_STYLE.name)


def _takes_one(function: Callable[..., Any]) -> bool:
    """Return whether a function can be called with one argument, and not with two."""
    try:
        signature = inspect.signature(function)
        signature.bind("prompt")
    except (TypeError, ValueError):  # it needs more, or is built in and does not say
        return False
    try:
        signature.bind("question", [])
    except TypeError:
        return True
    return False


class FunctionLLM:
    """A user's ``answer(question, passages)``, plain or async, in place of a language model.

    It returns a text, a `Completion`, None for no answer, an object with an obvious text (`answer_text`), or
    yields pieces of these. In `core.llm.prompts.FUNCTION_STYLE` it gets the objects given to `hand`, and
    texts for other passages; in any other style the whole prompt. ``name`` is its identity in caches and
    runs, by default the function's own; ``parallel`` as in `UserFunction`.

    An exception becomes the error of that call and is kept in ``errors`` by its message; `TransientError` is
    passed on, so that the call is tried again.
    """

    kind = "function"

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        parallel: int | None = None,
        style: str = FUNCTION_STYLE.name,
    ) -> None:
        if not callable(function):
            raise InputError(f"answer must be a function, got {type(function).__name__}.")
        self._function = UserFunction(function, "answer", _read_answer, parallel)
        self.name, self.style = name or self._function.name, style
        self.options: Mapping[str, object] = {"backend": self.kind}
        self.capabilities = Capabilities(parallel=self._function.parallel)
        self.errors: dict[str, Exception] = {}
        self._objects: dict[tuple[str, str], object] = {}

    def hand(self, question: str, passages: Sequence[NumberedPassage], objects: Sequence[object]) -> None:
        """Keep the objects that represent the passages of a question."""
        for passage, value in zip(passages, objects, strict=True):
            self._objects.setdefault((question, passage_message(passage).content), value)

    def generate(
        self, requests: Sequence[Request], on_done: OnDone | None = None, cancelled: IsCancelled | None = None
    ) -> list[Completion]:
        """Call the function once for each request; see `LLM.generate`."""
        results: dict[int, Completion] = {}
        transient: list[TransientError] = []

        def done(index: int, outcome: Outcome[str | Completion]) -> None:
            if isinstance(outcome.error, TransientError):
                transient.append(outcome.error)
                return
            results[index] = self._completion(outcome)
            if on_done is not None:
                on_done(index, results[index])

        self._function.each([self._arguments(request) for request in requests], done, cancelled)
        if transient:
            worst = max(transient, key=lambda error: error.retry_after or 0.0)
            raise TransientError(self._reason(worst), worst.retry_after) from worst
        return [results[index] for index in range(len(requests))]

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """Estimate the tokens of the question and its passages; the function's own prompt is unknown."""
        return estimate_tokens(messages)

    def close(self) -> None:
        """Release the function's threads."""
        self._function.close()

    def _arguments(self, request: Request) -> tuple[Any, ...]:
        # The beginning of an answer, where a style has one, is for models that continue it.
        turns = [turn.content for turn in request.messages if turn.role not in ("passage", "assistant")]
        passages = [turn.content for turn in request.messages if turn.role == "passage"]
        question = "\n\n".join(turns)
        if self.style != FUNCTION_STYLE.name:
            return (question,)
        return question, [self._object(question, passage) for passage in passages]

    def _object(self, question: str, turn: str) -> object:
        if (question, turn) in self._objects:
            return self._objects[question, turn]
        passage = json.loads(turn)
        return f"{passage['title']}: {passage['text']}" if passage["title"] else passage["text"]

    def _reason(self, error: Exception) -> str:
        reason = self._function.reason(error)
        if len(self.errors) < _ERRORS_KEPT:
            self.errors.setdefault(reason, error)
        return reason

    def _completion(self, outcome: Outcome[str | Completion]) -> Completion:
        value = outcome.value
        if isinstance(value, Completion):
            return replace(value, text=clean(value.text.strip()), latency=value.latency or outcome.seconds)
        if outcome.error is not None:
            return Completion.failed(self._reason(outcome.error), latency=outcome.seconds)
        # The tokens of the function's own model are unknown.
        return Completion(clean((value or "").strip()), "stop", 0, 0, outcome.seconds)


def answer_text(value: object) -> str | None:
    """Return the text of an answer, or None where none is obvious.

    A text, or what has ``text``, ``content``, ``response``, ``answer`` or ``result``, or such a ``message``;
    text blocks are joined, and of ``replies`` the first counts: LangChain, LlamaIndex, Haystack.
    """
    if isinstance(value, str):
        return str(value)
    for name in _TEXT_NAMES:
        part = _field(value, name)
        if isinstance(part, str):
            return str(part)
        if isinstance(part, (list, tuple)) and part:
            blocks = [block if isinstance(block, str) else _field(block, "text") for block in part]
            return "".join(block for block in blocks if isinstance(block, str))
    replies = _field(value, "replies")
    if isinstance(replies, (list, tuple)) and replies:
        return answer_text(replies[0])
    message = _field(value, "message")
    return answer_text(message) if message is not None and message is not value else None


def _read_answer(value: object) -> str | Completion:
    if isinstance(value, Completion):
        return value
    if value is None:
        return ""
    stream = getattr(value, "response_gen", value)  # LlamaIndex's streaming response
    if isinstance(stream, Iterator):
        # Some pieces carry the passages or the token counts and no text.
        pieces = [piece for piece in map(answer_text, stream) if piece is not None]
        text = "".join(pieces) if pieces else None
    else:
        text = answer_text(value)
    if text is None:
        raise InputError(
            f"answer must return a text, got {type(value).__name__}; return the text that is in it."
        )
    return text


def _field(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
