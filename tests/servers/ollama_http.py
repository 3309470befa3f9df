"""How Ollama's API travels: paths, NDJSON streams, error bodies; and what its answers look like."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import ClassVar

Answer = Callable[[dict], dict | Iterator[dict | bytes]]


class ApiError(Exception):
    """An error body with its status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class BrokenOff(Exception):
    """The connection ends here."""


def said(content: str) -> dict:
    return {"role": "assistant", "content": content}


class Handler(BaseHTTPRequestHandler):
    """Serves what ``gets`` and ``posts`` of the subclass answer, by path.

    A posted path gives an object, or lines of a stream; what it refuses before the first one is an `ApiError`.
    """

    protocol_version = "HTTP/1.1"
    gets: ClassVar[dict[str, Callable[[], dict]]] = {}
    posts: ClassVar[dict[str, Answer]] = {}

    def do_GET(self) -> None:
        if self.path == "/":
            self._send(200, b"Ollama is running", "text/plain; charset=utf-8")
        elif self.path in self.gets:
            self._send_json(200, self.gets[self.path]())
        else:
            self._send(404, b"404 page not found", "text/plain")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path not in self.posts:
            return self._send(404, b"404 page not found", "text/plain")
        try:
            body = _body(raw)
            result = self.posts[self.path](body)
            if isinstance(result, dict):
                return self._send_json(200, result)
            with contextlib.closing(result):
                self._send_parts(result, body.get("stream", True))
        except ApiError as error:
            self._send_json(error.status, {"error": str(error)})
        except (OSError, BrokenOff):
            self.close_connection = True  # the client is gone, or is to be left without an end

    def _send_parts(self, parts: Iterator[dict], stream: bool) -> None:
        first = next(parts)  # a refusal comes before the status is sent
        if not stream:
            return self._send_json(200, _joined([first, *parts]))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._send_line(first)
        for part in parts:
            self._send_line(part)
        self.wfile.write(b"0\r\n\r\n")

    def _send_line(self, part: dict | bytes) -> None:
        line = (part if isinstance(part, bytes) else json.dumps(part).encode()) + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.flush()

    def _send_json(self, status: int, value: object) -> None:
        self._send(status, json.dumps(value).encode(), "application/json; charset=utf-8")

    def _send(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def _body(raw: bytes) -> dict:
    if not raw:
        raise ApiError(400, "missing request body")
    try:
        body = json.loads(raw)
    except ValueError:
        raise ApiError(400, "invalid character in request body") from None
    if not isinstance(body, dict):
        raise ApiError(400, "json: cannot unmarshal into Go value of type api.ChatRequest")
    return body


def _joined(parts: list[dict]) -> dict:
    """One object of a whole stream, as ``stream: false`` asks for."""
    for part in parts:
        if "error" in part:
            raise ApiError(500, part["error"])
    whole = dict(parts[-1])
    if "message" in whole:
        message = said("".join(p["message"]["content"] for p in parts))
        thinking = "".join(p["message"].get("thinking", "") for p in parts)
        whole["message"] = {**message, "thinking": thinking} if thinking else message
        logprobs = [token for p in parts for token in p.get("logprobs", ())]
        whole |= {"logprobs": logprobs} if logprobs else {}
    return whole
