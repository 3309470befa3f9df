"""A TCP proxy that spoils the answers of an HTTP server by a schedule, and writes down what it did.

One request for each connection; what is not spoilt is passed on as it arrives, streams included. With no
server behind it, it answers from the schedule alone: a server that says whatever a test wants.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from tests.servers.faults import (
    OK,
    Exchange,
    Fault,
    Schedule,
    delay,
    garbage,
    hang_up,
    loris,
    rate_limited,
    reply,
    reset,
    scripted,
    seeded,
    server_error,
    truncate,
)

__all__ = [
    "OK",
    "Exchange",
    "Fault",
    "FaultProxy",
    "Schedule",
    "delay",
    "fault_proxy",
    "garbage",
    "hang_up",
    "loris",
    "rate_limited",
    "reply",
    "reset",
    "scripted",
    "seeded",
    "server_error",
    "truncate",
]
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "te", "upgrade"}
_POLL = 0.02


class FaultProxy:
    """The running proxy; ``schedule`` and ``target`` may be exchanged at any time."""

    def __init__(self, target: str | None, schedule: Schedule | None = None) -> None:
        self.schedule: Schedule = schedule or (lambda _: OK)
        self.log: list[Exchange] = []
        self.target = target
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener: socket.socket | None = None
        self._accepting: threading.Thread | None = None
        self._port = 0
        self.up()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def requests(self, path: str = "") -> list[Exchange]:
        """The exchanges whose path ends so."""
        with self._lock:
            return [e for e in self.log if e.path.split("?")[0].endswith(path)]

    def up(self) -> None:
        """Listen (again), always on the same port."""
        listener = socket.create_server(("127.0.0.1", self._port), backlog=64)
        listener.settimeout(_POLL)
        self._port = listener.getsockname()[1]
        self._listener = listener
        self._accepting = threading.Thread(target=self._accept, args=(listener,), daemon=True)
        self._accepting.start()

    def down(self) -> None:
        """Refuse connections and reset the open ones, as when a server is killed."""
        listener, self._listener = self._listener, None
        if listener is None:
            return
        assert self._accepting is not None
        self._accepting.join()
        listener.close()
        with self._lock:
            for client in self._open:
                with contextlib.suppress(OSError):
                    _reset_at_close(client)
                    client.shutdown(socket.SHUT_RDWR)  # wakes the thread that serves it
            self._open.clear()

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        """Down inside, up again afterwards."""
        self.down()
        try:
            yield
        finally:
            self.up()

    def close(self) -> None:
        self._stop.set()
        self.down()
        for thread in self._threads:
            thread.join(10)

    def _accept(self, listener: socket.socket) -> None:
        while self._listener is listener:
            try:
                client, _ = listener.accept()
            except TimeoutError:
                continue
            client.settimeout(30)
            with self._lock:
                self._open.add(client)
            thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
            self._threads = [t for t in self._threads if t.is_alive()] + [thread]
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        try:
            exchange = self._receive(client)
            if exchange is not None:
                try:
                    self._answer(client, exchange)
                finally:
                    exchange.ended = time.monotonic()
        except (OSError, ValueError, http.client.HTTPException, _Gone):
            _reset_at_close(client)  # the client, the server or the whole proxy went away
        finally:
            with self._lock:
                self._open.discard(client)
            client.close()

    def _receive(self, client: socket.socket) -> Exchange | None:
        with client.makefile("rb") as stream:
            first = stream.readline().decode("latin-1").split()
            if len(first) < 2:
                return None
            headers = {}
            while line := stream.readline().strip():
                name, _, value = line.decode("latin-1").partition(":")
                headers[name.strip().lower()] = value.strip()
            body = _read_body(stream, headers)
        with self._lock:
            exchange = Exchange(len(self.log), first[0], first[1], headers, body)
            self.log.append(exchange)
        exchange.fault = self.schedule(exchange)
        return exchange

    def _answer(self, client: socket.socket, exchange: Exchange) -> None:
        fault = exchange.fault
        if fault.kind == "delay":
            self._wait(fault.seconds)
        if fault.kind == "hang_up":
            return
        if fault.kind == "reply":
            self._send_whole(client, exchange, fault.status, list(fault.headers), fault.body)
        elif fault.kind in ("ok", "delay"):
            self._pass_on(client, exchange)
        else:
            with self._ask(exchange) as answer:
                content = answer.read()
                self._spoil(client, exchange, answer.status, _kept(answer), content)

    @contextlib.contextmanager
    def _ask(self, exchange: Exchange) -> Iterator[http.client.HTTPResponse]:
        assert self.target is not None, "no server behind the proxy: every answer needs a reply()"
        upstream = http.client.HTTPConnection(urlsplit(self.target).netloc, timeout=120)
        try:
            kept = {k: v for k, v in exchange.headers.items() if k not in _HOP_BY_HOP | {"host"}}
            upstream.request(exchange.method, exchange.path, exchange.body or None, kept)
            yield upstream.getresponse()
        finally:
            upstream.close()

    def _pass_on(self, client: socket.socket, exchange: Exchange) -> None:
        with self._ask(exchange) as answer:
            exchange.status = answer.status
            length = answer.getheader("Content-Length")
            headers = _kept(answer)
            headers.append(("Content-Length", length) if length else ("Transfer-Encoding", "chunked"))
            client.sendall(_head(answer.status, headers))
            while piece := answer.read1(65536):
                exchange.answer += piece
                client.sendall(piece if length else b"%x\r\n%s\r\n" % (len(piece), piece))
            if not length:
                client.sendall(b"0\r\n\r\n")
            self._hand_over(client, exchange)

    def _send_whole(
        self,
        client: socket.socket,
        exchange: Exchange,
        status: int,
        headers: list[tuple[str, str]],
        body: bytes,
    ) -> None:
        exchange.status, exchange.answer = status, body
        if not any(name.lower() == "content-type" for name, _ in headers):
            headers.append(("Content-Type", "application/json"))
        client.sendall(_head(status, [*headers, ("Content-Length", str(len(body)))]) + body)

    def _spoil(
        self,
        client: socket.socket,
        exchange: Exchange,
        status: int,
        headers: list[tuple[str, str]],
        body: bytes,
    ) -> None:
        fault = exchange.fault
        exchange.status, exchange.answer = status, body
        head = _head(status, [*headers, ("Content-Length", str(len(body)))])
        part = body[: int(len(body) * fault.share)]
        if fault.kind in ("reset", "truncate"):
            client.sendall(head + part)
            if fault.kind == "reset":
                self._wait(0.05)  # a reset overtakes what is still on its way
                _reset_at_close(client)
            return
        assert fault.kind == "loris", fault.kind
        quick, slow = (b"", head + body) if fault.where == "headers" else (head, body)
        client.sendall(quick)
        for byte in slow:
            self._wait(fault.seconds)
            client.sendall(bytes([byte]))
        self._hand_over(client, exchange)

    def _hand_over(self, client: socket.socket, exchange: Exchange) -> None:
        with self._lock:
            if client not in self._open:
                raise _Gone
            self._open.discard(client)  # from here on nothing takes it back
            exchange.delivered = True

    def _wait(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise _Gone


class _Gone(Exception):
    """The proxy is being closed."""


def _read_body(stream, headers: dict[str, str]) -> bytes:
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = b""
        while size := int(stream.readline().split(b";")[0], 16):
            body += stream.read(size)
            stream.readline()
        stream.readline()
        return body
    return stream.read(int(headers.get("content-length", 0)))


def _kept(answer: http.client.HTTPResponse) -> list[tuple[str, str]]:
    return [(name, value) for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP]


def _head(status: int, headers: Sequence[tuple[str, str]]) -> bytes:
    reason = http.client.responses.get(status, "Odd")
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{n}: {v}" for n, v in headers), "Connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1")


def _reset_at_close(client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@contextlib.contextmanager
def fault_proxy(target: str | None = None, schedule: Schedule | None = None) -> Iterator[FaultProxy]:
    """Run a proxy in front of ``target`` (an address like ``http://127.0.0.1:8080``), or of nothing.

    Clients use ``proxy.address`` instead of the server's own.
    """
    proxy = FaultProxy(target, schedule)
    try:
        yield proxy
    finally:
        proxy.close()
