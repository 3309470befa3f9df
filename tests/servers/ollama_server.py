"""A server that follows Ollama's API to the letter and generates through a real llama.cpp server.

What a client can see is as in Ollama: paths, NDJSON streams, error bodies, counts and durations, the model
list, pulls, and how a prompt is cut that is longer than ``num_ctx``. Behind it are no weights of its own:
every answer comes from llama.cpp, from exactly the tokens that were left of the prompt.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.servers.ollama_http import ApiError, BrokenOff, Handler, said

MODEL = "smollm2:135m"
_INTEGERS = ("num_ctx", "num_predict", "seed", "top_k", "num_keep")
_NUMBERS = ("temperature", "top_p", "min_p", "repeat_penalty", "presence_penalty", "frequency_penalty")
_BUSY = "server busy, please try again.  maximum pending requests exceeded"
_TOO_LONG = "request ({} tokens) exceeds the available context size ({} tokens), try increasing it"


@dataclass(frozen=True)
class Model:
    """One model: what it can read, what it can do, and a digest of its own for each ``version``."""

    name: str
    context_length: int = 8192
    capabilities: tuple[str, ...] = ("completion",)
    version: int = 1

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.name} {self.version}".encode()).hexdigest()

    @property
    def details(self) -> dict[str, object]:
        return {
            "parent_model": "",
            "format": "gguf",
            "family": "llama",
            "families": ["llama"],
            "parameter_size": "134.52M",
            "quantization_level": "Q4_1",
        }


@dataclass(frozen=True)
class Habits:
    """Which Ollama this is, and what goes wrong with it.

    ``honours_truncate``: versions since autumn 2025 refuse a prompt that is too long when told to.
    ``overflow``: what is left of one otherwise, ``half`` of the context (2026) or all it holds (``full``).
    ``token_weight``: a prompt counts as so many times its tokens, as if the vocabulary were that much finer.
    ``exact``: nothing is taken from the prompt cache, so that answers do not depend on earlier calls.
    ``thought``: so many tokens of every answer of a model that thinks are its thinking.
    ``thinks_anyway``: a model that does not obey ``think: false``.
    After so many lines of an answer ``break_off_after`` drops the connection, ``end_after`` ends the stream
    as if it were whole, ``error_after`` sends an error line, ``garbage_after`` a line that is no JSON.
    """

    honours_truncate: bool = True
    overflow: str = "half"
    default_num_ctx: int = 4096
    token_weight: int = 1
    gives_logprobs: bool = True
    counts_cached: bool = True
    exact: bool = False
    thought: int = 8
    thinks_anyway: bool = False
    queue: int = 512
    memory_for: int | None = None
    break_off_after: int | None = None
    end_after: int | None = None
    error_after: int | None = None
    garbage_after: int | None = None


@dataclass
class Chat:
    """One chat call as the server saw it."""

    body: dict
    num_ctx: int = 0
    tokens: int = 0  # of the whole prompt
    read: int = 0  # of what was left of it
    finished: bool = False


class OllamaServer:
    """The running server; ``habits`` may be exchanged at any time."""

    def __init__(
        self, llama: str, models: tuple[Model, ...], library: tuple[Model, ...], habits: Habits
    ) -> None:
        self.habits = habits
        self.models = {model.name: model for model in models}
        self.library = {model.name: model for model in library}
        self.chats: list[Chat] = []
        self.loads: list[int] = []  # the num_ctx of every time the model was loaded
        self.pulls_stopped: list[str] = []
        self._llama = urlsplit(llama)
        self._lock = threading.Lock()
        self._running = 0
        self._seen: set[bytes] = set()
        answers = {
            "gets": {"/api/tags": self.tags, "/api/version": lambda: {"version": "0.34.0"}},
            "posts": {"/api/chat": self.chat, "/api/show": self.show, "/api/pull": self.pull},
        }
        handler = type("OllamaHandler", (Handler,), answers)
        self._http = _Quiet(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def running(self) -> int:
        """Calls under way."""
        return self._running

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def find(self, body: dict) -> Model:
        name = body.get("model") or body.get("name")
        if not isinstance(name, str) or not name:
            raise ApiError(400, "model is required")
        full = _full_name(name)
        for model in self.models.values():
            if model.name.casefold() == full.casefold():
                return model
        raise ApiError(404, f"model '{name}' not found")

    def tags(self) -> dict:
        return {
            "models": [
                {
                    "name": model.name,
                    "model": model.name,
                    "modified_at": _now(),
                    "size": 91_727_520,
                    "digest": model.digest,
                    "details": model.details,
                }
                for model in self.models.values()
            ]
        }

    def show(self, body: dict) -> dict:
        model = self.find(body)
        return {
            "license": "Apache-2.0",
            "modelfile": f'# Modelfile generated by "ollama show"\nFROM {model.name}\n',
            "template": "{{ .Prompt }}",
            "details": model.details,
            "model_info": {
                "general.architecture": "llama",
                "general.parameter_count": 134_515_008,
                "llama.attention.head_count": 9,
                "llama.context_length": model.context_length,
                "llama.embedding_length": 576,
            },
            "capabilities": list(model.capabilities),
            "modified_at": _now(),
        }

    def pull(self, body: dict) -> Iterator[dict]:
        name = body.get("model") or body.get("name")
        if not isinstance(name, str) or not name:
            raise ApiError(400, "model is required")
        model = self.library.get(_full_name(name))
        yield {"status": "pulling manifest"}
        if model is None:
            yield {"error": "pull model manifest: file does not exist"}
            return
        total = 1_000_000
        layer = {"status": f"pulling {model.digest[:12]}", "digest": f"sha256:{model.digest}", "total": total}
        try:
            yield layer
            for completed in range(100_000, total + 1, 100_000):
                time.sleep(0.01)
                yield {**layer, "completed": completed}
        except GeneratorExit:
            self.pulls_stopped.append(model.name)
            raise
        yield {"status": "verifying sha256 digest"}
        yield {"status": "writing manifest"}
        self.models = {model.name: model, **self.models}
        yield {"status": "success"}

    def chat(self, body: dict) -> Iterator[dict | bytes]:
        """Yield the lines of an answer; what is refused before the first one raises `ApiError`."""
        started = time.monotonic_ns()
        model = self.find(body)
        options = _checked(body)
        if body.get("think") and "thinking" not in model.capabilities:
            raise ApiError(400, f'"{body["model"]}" does not support thinking')
        with self._place():
            num_ctx = min(options.get("num_ctx", self.habits.default_num_ctx), model.context_length)
            loading = self._load(num_ctx)
            head = {"model": body["model"], "created_at": _now()}
            if not body.get("messages"):
                yield head | {"message": said(""), "done_reason": "load", "done": True}
                return
            chat = Chat(body, num_ctx)
            self.chats.append(chat)
            tokens = self._prompt(chat)
            last: dict = {}
            for number, event in enumerate(self._generate(tokens, body, options)):
                yield from self._fault(number)
                if number == self.habits.end_after:
                    return
                if event["stop"]:
                    last = event
                    break
                yield {
                    "model": body["model"],
                    "created_at": _now(),
                    **self._piece(number, event, chat, model),
                }
            yield {
                "model": body["model"],
                "created_at": _now(),
                "message": said(""),
                "done": True,
                "done_reason": "length" if last["stop_type"] == "limit" else "stop",
                "total_duration": time.monotonic_ns() - started,
                "load_duration": loading,
                **self._read_count(tokens, chat),
                "prompt_eval_duration": int(last["timings"]["prompt_ms"] * 1e6),
                "eval_count": last["tokens_predicted"],
                "eval_duration": int(last["timings"]["predicted_ms"] * 1e6),
            }
            chat.finished = True

    @contextlib.contextmanager
    def _place(self) -> Iterator[None]:
        with self._lock:
            if self._running >= self.habits.queue:
                raise ApiError(503, _BUSY)
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1

    def _load(self, num_ctx: int) -> int:
        if self.habits.memory_for is not None and num_ctx > self.habits.memory_for:
            message = "model requires more system memory (9.1 GiB) than is available (3.2 GiB)"
            raise ApiError(500, message)
        with self._lock:
            if self.loads[-1:] == [num_ctx]:
                return 1_000_000
            self.loads.append(num_ctx)
            self._seen.clear()
            return 50_000_000

    def _prompt(self, chat: Chat) -> list[int]:
        """The tokens the model gets to read: everything, or what is left of it."""
        messages, habits = chat.body["messages"], self.habits
        room = chat.num_ctx // habits.token_weight
        tokens = self._tokens(messages)
        chat.tokens = len(tokens) * habits.token_weight
        if habits.honours_truncate and chat.body.get("truncate") is False:
            if len(tokens) > room:
                inner = {
                    "code": 400,
                    "message": _TOO_LONG.format(chat.tokens, chat.num_ctx),
                    "type": "exceed_context_size_error",
                    "n_prompt_tokens": chat.tokens,
                    "n_ctx": chat.num_ctx,
                }
                raise ApiError(400, json.dumps({"error": inner}))
        else:
            for first in range(len(messages)):
                system = [m for m in messages[:first] if m["role"] == "system"]
                tokens = self._tokens(system + messages[first:])
                if len(tokens) <= room:
                    break
            chat.read = len(tokens) * habits.token_weight
            if len(tokens) > room:
                keep = min(chat.body.get("options", {}).get("num_keep", 4), room - 1)
                half = chat.num_ctx - max((chat.num_ctx - keep) // 2, 1)
                chat.read = chat.num_ctx if habits.overflow == "full" else half
                end = chat.read // habits.token_weight - keep
                return tokens[:keep] + tokens[len(tokens) - end :]
        chat.read = len(tokens) * habits.token_weight
        return tokens

    def _tokens(self, messages: list[dict]) -> list[int]:
        plain = [{"role": m["role"], "content": m.get("content", "")} for m in messages]
        prompt = self._ask("/apply-template", {"messages": plain})["prompt"]
        wanted = {"content": prompt, "add_special": True, "parse_special": True}
        return self._ask("/tokenize", wanted)["tokens"]

    def _read_count(self, tokens: list[int], chat: Chat) -> dict:
        # Old versions did not count what they had in their prompt cache, and left out a count of zero.
        known = repr(tokens).encode()
        if not self.habits.counts_cached and known in self._seen:
            return {}
        self._seen.add(known)
        return {"prompt_eval_count": chat.read}

    def _piece(self, number: int, event: dict, chat: Chat, model: Model) -> dict:
        thinks = "thinking" in model.capabilities
        thinks = thinks and (chat.body.get("think") is not False or self.habits.thinks_anyway)
        thought = thinks and number < self.habits.thought
        message = {**said(""), "thinking": event["content"]} if thought else said(event["content"])
        piece = {"message": message, "done": False}
        if chat.body.get("logprobs") and self.habits.gives_logprobs:
            piece["logprobs"] = [
                {"token": t["token"], "logprob": t["logprob"], "bytes": t["bytes"]}
                for t in event.get("completion_probabilities", ())
            ]
        return piece

    def _fault(self, number: int) -> Iterator[dict | bytes]:
        if number == self.habits.error_after:
            yield {"error": "an error was encountered while running the model: unexpected EOF"}
            raise BrokenOff
        if number == self.habits.garbage_after:
            yield b"<html>"
        if number == self.habits.break_off_after:
            raise BrokenOff

    def _generate(self, tokens: list[int], body: dict, options: dict) -> Iterator[dict]:
        wanted = {
            "prompt": tokens,
            "stream": True,
            "cache_prompt": not self.habits.exact,
            "n_predict": options.get("num_predict", -1),
            "temperature": options.get("temperature", 0.8),
            "top_k": options.get("top_k", 40),
            "top_p": options.get("top_p", 0.9),
            "min_p": options.get("min_p", 0.0),
            "repeat_penalty": options.get("repeat_penalty", 1.1),
            "seed": options.get("seed", -1),
            "stop": options.get("stop", []),
        }
        if body.get("logprobs"):
            wanted["n_probs"] = 1
        if body.get("format"):
            wanted["json_schema"] = {"type": "object"} if body["format"] == "json" else body["format"]
        with self._request("/completion", wanted) as answer:
            for line in answer:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])

    def _ask(self, path: str, body: dict) -> dict:
        with self._request(path, body) as answer:
            return json.load(answer)

    @contextlib.contextmanager
    def _request(self, path: str, body: dict) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(str(self._llama.hostname), self._llama.port, timeout=120)
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            if answer.status != 200:
                raise ApiError(answer.status, answer.read().decode())
            yield answer
        finally:
            connection.close()


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Clients that go away are part of the tests."""


def _checked(body: dict) -> dict:
    wanted = body.get("format")
    if wanted not in (None, "", "json") and not isinstance(wanted, dict):
        raise ApiError(
            400, f'invalid format: {json.dumps(wanted)}; expected "json" or a valid JSON Schema object'
        )
    options = body.get("options") or {}
    for name, value in options.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if name in _INTEGERS and not isinstance(value, int):
            raise ApiError(400, f'option "{name}" must be of type integer')
        if name in _NUMBERS and not number:
            raise ApiError(400, f'option "{name}" must be of type float32')
    return options


def _full_name(name: str) -> str:
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


@contextlib.contextmanager
def ollama_server(
    llama_address: str,
    *,
    models: tuple[Model, ...] = (Model(MODEL),),
    library: tuple[Model, ...] = (),
    **habits: object,
) -> Iterator[OllamaServer]:
    """Run the server in this process; ``server.address`` is where."""
    server = OllamaServer(llama_address, models, library, Habits(**habits))
    try:
        yield server
    finally:
        server.close()
