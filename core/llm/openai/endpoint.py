"""The address and credentials of an OpenAI-compatible server; no text from this module contains a secret."""

from __future__ import annotations

import base64
import ipaddress
import logging
import os
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from core.errors import BackendError, InputError
from core.llm.redact import one_line

OPENAI_URL = "https://api.openai.com/v1"
CONNECT_SECONDS = 20.0
_NO_KEY = "none"  # the client does not open without one; it is not sent
_ACCOUNT = ("Authorization", "OpenAI-Organization", "OpenAI-Project")
_SHORTEST_SECRET = 4  # shorter ones are not secrets, and occur in ordinary words
_SHORTEST_IN_ANSWERS = 16  # the made-up keys of local servers may occur in an answer


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server's address, and separately what must not be shown."""

    url: str  # without user, password and query; no slash at the end
    key: str | None = field(default=None, repr=False)
    login: str | None = field(default=None, repr=False)  # ``user:password`` of the address
    query: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # sent with every call

    @property
    def root(self) -> str:
        """The address without its version, for calls outside the API."""
        return self.url.removesuffix("/v1")

    @property
    def local(self) -> bool:
        """Whether the server is on this machine or in a private network."""
        host = urlsplit(self.url).hostname or ""
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return "." not in host or host.endswith((".local", ".internal", ".lan"))
        return address.is_private

    def scrub(self, text: str) -> str:
        """Make a server's text safe to store: one line, not long, and without secrets."""
        for secret in self._secrets():
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "…")
        return one_line(text)

    def without_key(self, answer: str) -> str:
        """Remove secrets from an answer, should the server repeat them there."""
        for secret in self._secrets():
            if len(secret) >= _SHORTEST_IN_ANSWERS:
                answer = answer.replace(secret, "…")
        return answer

    def check_key(self) -> None:
        """Raise BackendError for a call to OpenAI itself without a key."""
        if self.key is None and self.login is None and urlsplit(self.url).hostname == "api.openai.com":
            raise BackendError(
                f"{self.url} asks for an API key and none was given; set OPENAI_API_KEY, or OPENAI_BASE_URL "
                "to another server."
            )

    def client(self, timeout: float) -> Any:
        """Return a new client of the official package, without its retries."""
        import openai

        for name in ("httpx", "httpx2"):
            logging.getLogger(name).addFilter(_FILTER)  # the same filter twice is added once
        headers = {"Authorization": f"Basic {_basic(self.login)}"} if self.login else None
        hooks = {"request": [] if self.key else [self._anonymous]}
        return openai.AsyncOpenAI(
            api_key=self.key or _NO_KEY,
            base_url=self.url,
            timeout=openai.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(event_hooks=hooks),
            default_headers=headers,
            default_query=dict(self.query) or None,
        )

    async def _anonymous(self, request: Any) -> None:
        # The client sends a key in any case, and the account that the environment names.
        for name in _ACCOUNT[self.login is not None :]:
            request.headers.pop(name, None)

    def _secrets(self) -> list[str]:
        found = [self.key] if self.key else []
        if self.login:
            found += [self.login, self.login.partition(":")[2], _basic(self.login)]
        found += [value for _, value in self.query]
        return sorted({*found, *(quote(s, safe="") for s in found)} - {""}, key=len, reverse=True)


def find_endpoint(base_url: str | None = None, api_key: str | None = None) -> Endpoint:
    """Return the endpoint of a server; `InputError`, which repeats no secret, where it is malformed.

    ``base_url`` None is ``OPENAI_BASE_URL``, else OpenAI; ``api_key`` None is ``OPENAI_API_KEY``, "" none.
    """
    given = (base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL).strip()
    key = (os.environ.get("OPENAI_API_KEY", "") if api_key is None else api_key).strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise InputError("The API key contains a blank or a character that no key has; copy it again.")
    try:
        parts = urlsplit(given)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, parts, port = None, urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host or any(c.isspace() for c in given):
        shown = given.rpartition("@")[2].partition("?")[0][:100]
        raise InputError(f"base_url must look like http://localhost:8000/v1, got {shown!r}.")
    host = f"[{host}]" if ":" in host else host
    url = f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    login = f"{user}:{password}" if user or password else None
    return Endpoint(url, key or None, login, tuple(parse_qsl(parts.query, keep_blank_values=True)))


def server_address(base_url: str | None = None) -> str:
    """Return the address that texts go to, without user, password and query; see `find_endpoint`."""
    return find_endpoint(base_url, "").url


def _basic(login: str) -> str:
    return base64.b64encode(login.encode()).decode()


class _WithoutQuery(logging.Filter):
    """HTTP clients log the address of every call; its query may hold a key."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                str(arg).partition("?")[0] if type(arg).__name__ == "URL" else arg for arg in record.args
            )
        return True


_FILTER = _WithoutQuery()
