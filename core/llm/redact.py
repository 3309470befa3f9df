"""Error messages of foreign code, made safe to store: one line, no key, no address with a password."""

from __future__ import annotations

import os
import re

from core.text.strict import clean

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SHORTEST_SECRET = 8  # shorter values occur in ordinary words
# What servers and their clients put into messages: `Bearer …`, keys that begin like those of known services.
_KEYS = re.compile(
    r"(?<![\w-])(?:sk|pk|rk|hf|gsk|xai|ghp|AIza)[-_]?[\w-]{16,}|(?<=Bearer )\S+", re.IGNORECASE
)
_USER = re.compile(r"(?<=://)[^\s/@]+@")
_QUERY = re.compile(r"(?<=://)([^\s?]*)\?[^\s'\"<>]+")


def error_text(error: BaseException) -> str:
    """Return an exception as ``Type: message``: one line of at most 500 characters, without secrets."""
    try:
        message = str(error).strip()
    except Exception:  # the exception is foreign code, so is its text
        message = ""
    name = type(error).__name__
    return one_line(f"{name}: {message}" if message else name, 500)


def one_line(text: str, longest: int = 300) -> str:
    """Return a message without secrets, on one line of at most ``longest`` characters."""
    # Before joining lines, for secrets that contain line breaks; after, for those that one had hidden.
    text = without_secrets(" ".join(without_secrets(text).split()))
    return text if len(text) <= longest else text[: longest - 1] + "…"


def without_secrets(text: str) -> str:
    """Remove anything that looks like a key, and the values of secret environment variables.

    >>> without_secrets("GET https://me:pw@api.example/v1?key=abc failed")
    'GET https://…@api.example/v1?… failed'
    """
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST_SECRET and _SECRET_NAME.search(name):
            text = text.replace(value, "…")
    text = _QUERY.sub(r"\1?…", _USER.sub("…@", text))
    return clean(_KEYS.sub("…", text))
