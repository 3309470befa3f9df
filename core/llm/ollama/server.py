"""An Ollama server: its address, its models, and how to fetch more."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from core.errors import BackendError, InputError
from core.llm.ollama.errors import client_errors, explain, missing_model, not_fetched
from core.llm.types import PullProgress

DEFAULT_PORT = 11434
DEFAULT_MODEL = "llama3.2:3b"
_CONNECT_SECONDS = 10.0
_LOOKUP_SECONDS = 60.0
_PULL_SECONDS = 600.0  # while the digest of a large model is checked, nothing is sent for minutes


@dataclass(frozen=True, slots=True)
class Server:
    """A server's address ``scheme://host:port`` with any path, and separately the user and password in it."""

    url: str
    login: tuple[str, str] | None = field(default=None, repr=False)

    def client(self, seconds: float) -> Any:
        """Open the official client for a few questions."""
        import ollama

        return ollama.Client(self.url, **self._settings(seconds))

    def async_client(self, seconds: float) -> Any:
        """Open the official client for chats, whose prompts must not be truncated."""
        import httpx
        import ollama

        # A connection for each call is cheap, and none is kept that the server may have closed meanwhile,
        # by a restart for example.
        single_use = httpx.Limits(max_keepalive_connections=0)
        hooks = {"request": [_never_truncate]}
        return ollama.AsyncClient(self.url, limits=single_use, event_hooks=hooks, **self._settings(seconds))

    def _settings(self, seconds: float) -> dict[str, Any]:
        import httpx

        return {"timeout": httpx.Timeout(seconds, connect=_CONNECT_SECONDS), "auth": self.login}


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What the server reports about a model.

    ``name`` is the one it lists, ``digest`` covers everything that makes the model (weights, chat format,
    settings), ``context_length`` is the max tokens it reads, and ``thinks`` whether it reasons before it
    answers by default.
    """

    name: str
    digest: str
    context_length: int | None
    thinks: bool


def find_server(base_url: str | None = None) -> Server:
    """Return the server at an address, with or without scheme, port, user and password.

    None is ``OLLAMA_HOST``, else this machine. `InputError` where it is not an address.
    """
    given = (base_url or os.environ.get("OLLAMA_HOST") or "").strip()
    scheme, separator, rest = given.rpartition("://")
    # As in the official client: without a scheme, the port is Ollama's own.
    default = {"http": 80, "https": 443}.get(scheme.lower()) if separator else DEFAULT_PORT
    try:
        parts = urlsplit(f"//{rest}")
        host, port = parts.hostname or "127.0.0.1", parts.port or default
    except ValueError:
        port = None
    if port is None or default is None or re.search(r"\s", given):
        raise InputError(
            "The address of the Ollama server must look like http://127.0.0.1:11434, got "
            f"{re.sub(r'[^/]*@', '', given)!r}."
        )
    # Clients cannot connect to a listening address everywhere.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    host = f"[{host}]" if ":" in host else host
    login = (unquote(parts.username or ""), unquote(parts.password or "")) if "@" in parts.netloc else None
    return Server(f"{scheme.lower() or 'http'}://{host}:{port}{parts.path.rstrip('/')}", login)


def server_address(base_url: str | None = None) -> str:
    """Return the address that texts go to, without user and password; see `find_server`."""
    return find_server(base_url).url


def full_name(model: str) -> str:
    """Return a model's name as Ollama lists it: with the tag ``latest`` where it has none."""
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"


def list_models(base_url: str | None = None) -> list[str]:
    """Return the names of the server's models, newest first; `BackendError` where it does not answer."""
    return [name for name, _ in _ask(find_server(base_url), _names_and_digests)]


def model_facts(model: str, server: Server) -> ModelFacts:
    """Return what the server reports about a model; `BackendError` where it does not."""
    # Servers other than Ollama's own list names without a tag, and may know them by no other name.
    listed = {full_name(name).casefold(): (name, digest) for name, digest in _ask(server, _names_and_digests)}
    if model.casefold() not in listed:
        raise missing_model(model, server.url)
    name, digest = listed[model.casefold()]
    about = _ask(server, lambda client: client.show(name), model)
    lengths = (v for k, v in (about.modelinfo or {}).items() if k.endswith(".context_length"))
    length = next((v for v in lengths if isinstance(v, int) and v > 0), None)
    return ModelFacts(name, digest, length, "thinking" in (about.capabilities or ()))


def pull(model: str, base_url: str | None = None) -> Iterator[PullProgress]:
    """Fetch a model onto the server, yielding the progress of its current part; stop iterating to stop it.

    ``model`` is named as in the Ollama library, e.g. ``llama3.2:3b``. `BackendError` where there is no such
    model, the server cannot be reached, or it stopped before the model was complete.
    """
    server, name = find_server(base_url), full_name(model)
    status = ""
    try:
        with (
            closing(server.client(_PULL_SECONDS)) as client,
            closing(client.pull(name, stream=True)) as parts,
        ):
            for part in parts:
                status = part.status or ""
                yield PullProgress(status, part.completed or (0 if part.total else None), part.total)
    except client_errors() as error:
        raise not_fetched(error, server.url, name) from error
    if status != "success":
        raise BackendError(f"Ollama at {server.url} stopped before {name} was fetched; try again.")


def _ask(server: Server, question: Callable[[Any], Any], model: str = "") -> Any:
    try:
        with closing(server.client(_LOOKUP_SECONDS)) as client:
            return question(client)
    except client_errors() as error:
        raise BackendError(str(explain(error, server.url, model))) from error


def _names_and_digests(client: Any) -> list[tuple[str, str]]:
    return [(m.model, m.digest or "") for m in client.list().models if m.model]


async def _never_truncate(request: Any) -> None:
    # The official client has no parameter for it.
    import httpx

    if request.url.path.endswith("/api/chat"):
        content = json.dumps({**json.loads(request.content), "truncate": False}).encode()
        request.stream = httpx.ByteStream(content)
        request.headers["Content-Length"] = str(len(content))
