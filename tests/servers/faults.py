"""What a `fault_proxy` does to the answers that pass through it, and what it writes down."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Fault:
    """What happens to one answer.

    ``kind`` is one of: ok, delay (``seconds`` before the request is passed on), reply (``status``,
    ``headers``, ``body``; the server is not asked), hang_up (closed without a byte), reset and truncate
    (after the headers and ``share`` of the body), loris (one byte every ``seconds``, from ``where`` on:
    "headers" or "body").
    """

    kind: str = "ok"
    seconds: float = 0.0
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    share: float = 0.5
    where: str = "body"


OK = Fault()


def delay(seconds: float) -> Fault:
    return Fault("delay", seconds=seconds)


def reply(status: int, body: object = b"", **headers: str) -> Fault:
    """An answer of the proxy's own; ``body`` is sent as JSON unless it is bytes."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Fault("reply", status=status, body=content, headers=named)


def rate_limited(retry_after: str = "1") -> Fault:
    return reply(429, {"error": {"message": "Slow down.", "type": "rate_limit"}}, Retry_After=retry_after)


def server_error(status: int = 500) -> Fault:
    return reply(status, {"error": {"message": "Something broke."}})


def garbage(body: bytes = b'{"choices": [{"mess') -> Fault:
    return reply(200, body, Content_Type="application/json")


def hang_up() -> Fault:
    return Fault("hang_up")


def reset(share: float = 0.5) -> Fault:
    return Fault("reset", share=share)


def truncate(share: float = 0.5) -> Fault:
    return Fault("truncate", share=share)


def loris(seconds: float = 0.2, where: str = "body") -> Fault:
    return Fault("loris", seconds=seconds, where=where)


@dataclass
class Exchange:
    """One request as the proxy saw it.

    ``delivered``: the server's own answer, whole and unspoilt, was handed to the client.
    """

    number: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    fault: Fault = OK
    status: int | None = None
    answer: bytes = b""
    delivered: bool = False
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None

    def json(self) -> object:
        return json.loads(self.body)


Schedule = Callable[[Exchange], Fault]


def scripted(faults: Iterable[Fault], then: Fault = OK, path: str = "") -> Schedule:
    """One fault for each request whose path ends with ``path``, in order of arrival; ``then`` afterwards."""
    waiting = iter(faults)
    lock = threading.Lock()

    def choose(exchange: Exchange) -> Fault:
        if not exchange.path.split("?")[0].endswith(path):
            return OK
        with lock:
            return next(waiting, then)

    return choose


def seeded(seed: int, faults: Sequence[Fault], share: float, path: str = "") -> Schedule:
    """Spoil this share of the requests with faults drawn from a list, the same ones for the same seed."""
    draw = random.Random(seed)
    lock = threading.Lock()

    def choose(exchange: Exchange) -> Fault:
        if not exchange.path.split("?")[0].endswith(path):
            return OK
        with lock:
            return draw.choice(faults) if draw.random() < share else OK

    return choose
