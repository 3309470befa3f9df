"""An Ollama server: its address and models, and what its errors mean."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from core.errors import BackendError, InputError, LeadlineError, TransientError
from core.llm.redact import one_line
from core.llm.remote import Overloaded
from core.llm.types import PullProgress

_TOO_LONG = re.compile(
    r"exceed\w*_context|exceeds the (available )?context|longer than the context", re.IGNORECASE
)
_PROMPT_TOKENS = re.compile(r"n_prompt_tokens\W+(\d{1,12})|request \((\d{1,12}) tokens\)")
# The server stops a model that repeats itself; a repeated call would end the same way.
_FINAL = re.compile(r"token repeat limit", re.IGNORECASE)
_NO_MEMORY = re.compile(r"requires more system memory|out of memory", re.IGNORECASE)
DEFAULT_PORT = 11434
DEFAULT_MODEL = "llama3.2:3b"
_CONNECT_SECONDS = 10.0
_LOOKUP_SECONDS = 60.0
_PULL_SECONDS = 600.0  # while the digest of a large model is checked, nothing is sent for minutes


class PromptTooLong(LeadlineError):
    """The server refused a prompt longer than ``num_ctx``; ``tokens`` is its length, where reported."""

    def __init__(self, message: str, tokens: int | None) -> None:
        super().__init__(message)
        self.tokens = tokens


class CallRefused(LeadlineError):
    """The server will not answer this call, however often it is repeated."""


class Unreadable(TransientError):
    """The server sent something other than a whole answer."""


def client_errors() -> tuple[type[Exception], ...]:
    """Return everything that the official client raises when a server fails."""
    import httpx
    import ollama

    # ConnectionError is the client's own; a line that is not JSON or not the expected kind of object raises
    # ValueError (as pydantic's errors do), AttributeError or TypeError.
    return (ollama.ResponseError, httpx.HTTPError, ConnectionError, ValueError, AttributeError, TypeError)


def explain(error: Exception, address: str, model: str) -> LeadlineError:
    """Convert one of `client_errors` into an error to raise."""
    import httpx
    import ollama

    if isinstance(error, ollama.ResponseError):
        return _explain_status(error.status_code, server_message(error), address, model)
    if isinstance(error, ConnectionError | httpx.ConnectError | httpx.ConnectTimeout):
        return TransientError(f"Ollama cannot be reached at {address}; start it with `ollama serve`.")
    if isinstance(error, httpx.TimeoutException):
        return Overloaded(f"Ollama at {address} did not answer in time.")
    if isinstance(error, httpx.HTTPError):
        return TransientError(f"The connection to Ollama at {address} broke ({type(error).__name__}).")
    return Unreadable(f"Ollama at {address} sent a reply that cannot be read.")


def missing_model(model: str, address: str) -> BackendError:
    """Return the error of a model that is not on the server."""
    return BackendError(
        f"The model {model} is not on the Ollama server at {address}; fetch it with `ollama pull {model}`, "
        "or with the button on the Live page."
    )


def not_fetched(error: Exception, address: str, name: str) -> BackendError:
    """Return the error of a download that failed with one of `client_errors`."""
    import ollama

    if not isinstance(error, ollama.ResponseError):
        return BackendError(f"{str(explain(error, address, name)).rstrip('.')}; {name} was not fetched.")
    reason = server_message(error)
    advice = "check the name at ollama.com/library" if "does not exist" in reason else "try again"
    return BackendError(f"Ollama at {address} cannot fetch {name} ({reason}); {advice}.")


def server_message(error: Exception) -> str:
    """Return the server's message: on one line, not too long, and without keys."""
    return one_line(str(getattr(error, "error", error)))


def _explain_status(status: int, reason: str, address: str, model: str) -> LeadlineError:
    if _TOO_LONG.search(reason):
        found = _PROMPT_TOKENS.search(reason)
        return PromptTooLong(
            f"Ollama refused the prompt: {reason}", int(found[1] or found[2]) if found else None
        )
    if _FINAL.search(reason):
        return CallRefused(f"Ollama gave up on this answer ({reason}).")
    if _NO_MEMORY.search(reason):
        return BackendError(
            f"Ollama at {address} has too little memory for {model} ({reason}); "
            "choose a smaller model or a smaller context."
        )
    if status == 404:
        wrong = BackendError(f"There is no Ollama server at {address} ({reason}); check the address.")
        return missing_model(model, address) if "model" in reason else wrong
    if status in (401, 403):
        return BackendError(f"Ollama at {address} denies access ({reason}).")
    if status in (429, 503):
        return Overloaded(f"Ollama at {address} is busy ({reason}).")
    if 400 <= status < 500:
        return CallRefused(f"Ollama did not accept the call ({reason}).")
    # No status: an error line in the middle of a stream.
    return TransientError(f"Ollama at {address} failed ({reason}).")


@dataclass(frozen=True, slots=True)
class Server:
    """A server's address ``scheme://host:port`` with any path, and separately what must not be shown."""

    url: str
    login: tuple[str, str] | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)

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

        timeout = httpx.Timeout(seconds, connect=_CONNECT_SECONDS)
        return {"timeout": timeout, "auth": self.login or self._authorize}

    def _authorize(self, request: Any) -> Any:
        # The official client adds the environment's key to calls of any address.
        request.headers.pop("Authorization", None)
        if self.key:
            request.headers["Authorization"] = f"Bearer {self.key}"
        return request


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What the server reports of a model; ``digest`` covers all of it, ``thinks``: it reasons first."""

    name: str
    digest: str
    context_length: int | None
    thinks: bool


def find_server(base_url: str | None = None, api_key: str | None = None) -> Server:
    """Return the server at an address; None: ``OLLAMA_HOST`` or this machine. `InputError` for none.

    ``api_key`` None is ``OLLAMA_API_KEY``, "" none.
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
    key = (os.environ.get("OLLAMA_API_KEY", "") if api_key is None else api_key).strip()
    return Server(f"{scheme.lower() or 'http'}://{host}:{port}{parts.path.rstrip('/')}", login, key or None)


def server_address(base_url: str | None = None) -> str:
    """Return the address that texts go to, without user and password; see `find_server`."""
    return find_server(base_url, "").url


def full_name(model: str) -> str:
    """Return a model's name as Ollama lists it: with the tag ``latest`` where it has none."""
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"


def list_models(base_url: str | None = None, api_key: str | None = None) -> list[str]:
    """Return the names of the server's models, newest first; `BackendError` where it does not answer."""
    return [name for name, _ in _ask(find_server(base_url, api_key), _names_and_digests)]


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


def pull(model: str, base_url: str | None = None, api_key: str | None = None) -> Iterator[PullProgress]:
    """Fetch a model onto the server while iterated; `BackendError` where that fails or ends too soon.

    ``model`` is named as in the Ollama library, e.g. ``llama3.2:3b``; progress is that of the current part.
    """
    server, name = find_server(base_url, api_key), full_name(model)
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
