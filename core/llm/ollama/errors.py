"""What a failed call to an Ollama server means."""

from __future__ import annotations

import re

from core.errors import BackendError, LeadlineError, TransientError
from core.llm.redact import one_line
from core.llm.remote import Overloaded

_TOO_LONG = re.compile(
    r"exceed\w*_context|exceeds the (available )?context|longer than the context", re.IGNORECASE
)
_PROMPT_TOKENS = re.compile(r"n_prompt_tokens\W+(\d{1,12})|request \((\d{1,12}) tokens\)")
# The server stops a model that repeats itself; a repeated call would end the same way.
_FINAL = re.compile(r"token repeat limit", re.IGNORECASE)
_NO_MEMORY = re.compile(r"requires more system memory|out of memory", re.IGNORECASE)


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
