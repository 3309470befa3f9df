"""The text of chat messages, in the few shapes in which tools write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.sources.corpus import text_problem

USER = ("user", "human")
ASSISTANT = ("assistant", "agent", "ai", "model")


def content_text(content: object) -> str | None:
    """Return the text of a message's content.

    Parameters
    ----------
    content : object
        A text, or a list of parts (texts, or objects with a field ``text``); parts without text are
        left out.

    Returns
    -------
    str or None
        None where there is no usable text at all.
    """
    if isinstance(content, str):
        return None if text_problem(content) else content
    if isinstance(content, Mapping):
        return content_text(content["text"]) if isinstance(content.get("text"), str) else None
    if not isinstance(content, Sequence):
        return None
    parts = [content_text(part) for part in content if isinstance(part, (str, Mapping))]
    texts = [part for part in parts if part is not None]
    return "\n".join(texts) if texts else None


def message_text(message: object, roles: Sequence[str]) -> str | None:
    """Return the text of a message if one of these roles wrote it, else None."""
    if not isinstance(message, Mapping):
        return None
    role = message.get("role", message.get("speaker"))
    if not isinstance(role, str) or role.lower() not in roles:
        return None
    return content_text(message.get("content", message.get("text")))


def last_text(messages: object, roles: Sequence[str]) -> str | None:
    """Return the text of the last message that one of these roles wrote and that has any."""
    if not isinstance(messages, (list, tuple)):
        return None
    texts: list[Any] = [message_text(message, roles) for message in reversed(messages)]
    return next((text for text in texts if text is not None), None)
