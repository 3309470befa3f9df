"""The text of chat messages and of values that may be JSON, in the shapes in which tools write them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from core.sources.fields import literal, text_problem
from core.text.strict import read_json

USER = ("user", "human")
ASSISTANT = ("assistant", "agent", "ai", "model")
QUESTION_FIELDS = (
    "query", "question", "user_input", "input", "user_query", "query_str", "prompt", "messages",
    "message", "content", "text", "kwargs",
)  # fmt: skip
ANSWER_FIELDS = (
    "answer", "output", "response", "result", "output_text", "completion", "choices", "generations",
    "messages", "message", "content", "text", "kwargs",
)  # fmt: skip
_JSON = "application/json"
_MAX_DEPTH = 8
_CHAT_TEXT = re.compile(r"""TextContent\(text=('(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")\)""", re.DOTALL)


def content_text(content: object) -> str | None:
    """Return the text of a message: a text, or its parts that have any; None without."""
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


def value_text(value: object, mime_type: object, names: Sequence[str]) -> str | None:
    """Return the text in a value, which may be JSON (as ``mime_type`` says) or parsed already.

    ``names`` are the fields to read from an object, most specific first. None without an obvious text.
    """
    if isinstance(value, str):
        if mime_type != _JSON:
            return content_text(value)
        try:
            value = read_json(value, repair=True)
        except ValueError:
            # Some tools label plain text as JSON.
            return content_text(value)
    return _inside(value, names, 0)


def last_reply(value: object) -> str | None:
    """Return the last of the ``replies`` of a Haystack component, or of a pipeline of components."""
    try:
        found = read_json(value, repair=True) if isinstance(value, str) else value
    except ValueError:
        return None
    if not isinstance(found, Mapping):
        return None
    outputs = [found, *(output for output in found.values() if isinstance(output, Mapping))]
    replies = [output["replies"] for output in outputs if isinstance(output.get("replies"), list)]
    last = next((given[-1] for given in reversed(replies) if given), None)
    if isinstance(last, str) and last.startswith("ChatMessage("):
        last = match[1] if (match := _CHAT_TEXT.search(last)) else None
        last = None if last is None else literal(f"[{last}]")[0]
    return content_text(last)


def _inside(value: Any, names: Sequence[str], depth: int) -> str | None:
    if isinstance(value, str):
        return content_text(value)
    if depth >= _MAX_DEPTH:
        return None
    if isinstance(value, Mapping):
        for name in names:
            if value.get(name) is not None:
                found = _inside(value[name], names, depth + 1)
                if found is not None and found.strip():
                    return found
        # An object of one field leaves no doubt.
        only = next(iter(value.values())) if len(value) == 1 else None
        return content_text(only) if isinstance(only, str) else None
    if isinstance(value, Sequence) and value:
        # Of messages, batches and choices the last (mostly only) one counts; of content parts all do.
        is_content = all(
            isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)
            for part in value
        )
        parts = content_text(value) if is_content else None
        return parts if parts is not None else _inside(value[-1], names, depth + 1)
    return None
