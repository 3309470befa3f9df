"""Passages as other people's code hands them around, read by what they look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.errors import InputError
from core.sources.fields import MAX_TEXT
from core.sources.question import PassageIn
from core.text.strict import clean, finite

_TEXT = ("text", "page_content", "content", "passage")
_META = ("metadata", "meta")
_ID = ("id", "id_", "node_id", "passage_id")


def as_passage(value: object, place: int = 1) -> PassageIn:
    """Read one retrieved passage; ``place``, from 1, names one that has no id.

    ``value`` is a text; a pair of a passage and its score; a mapping with ``text`` and, if known, ``title``,
    ``id``, ``score``, ``is_gold``; or an object with such attributes: a ``Document`` of LangChain
    (``page_content``, ``metadata``) or Haystack (``content``, ``meta``, ``score``), a node of LlamaIndex,
    with its score or without. The title may also be in the metadata. An empty text stays one: a retriever
    that returns empty passages should be seen doing so. InputError without a text, or for too long a one.

    Examples
    --------
    >>> as_passage(("Bern is the capital.", 0.5)).score
    0.5
    """
    value, score = _pair(value)
    node = _first(value, ("node",))
    body = value if node is None else node
    text = _text(body)
    if text is None:
        raise InputError(
            f"Passage {place} is of the type {type(body).__name__} and holds no text; expected a text, a "
            "mapping with text, or a document of LangChain, LlamaIndex or Haystack."
        )
    if len(text) > MAX_TEXT:
        raise InputError(f"Passage {place} holds {len(text):,} characters; expected at most {MAX_TEXT:,}.")
    meta = _first(body, _META)
    meta = meta if isinstance(meta, Mapping) else {}
    title = _first(body, ("title",)) or meta.get("title")
    identifier = _first(body, _ID)
    is_gold = next(
        (g for g in (_first(body, ("is_gold",)), meta.get("is_gold")) if isinstance(g, bool)), None
    )
    return PassageIn(
        clean(str(identifier)) if isinstance(identifier, (str, int)) and identifier != "" else f"p{place}",
        clean(title) if isinstance(title, str) else "",
        clean(text),
        finite(_first(value, ("score",)) if score is None else score),
        is_gold,
    )


def _pair(value: Any) -> tuple[Any, object]:
    """Split a pair of a passage and its score; a record that happens to have two fields is not one."""
    is_pair = isinstance(value, (tuple, list)) and len(value) == 2 and not hasattr(value, "_fields")
    if is_pair and (value[1] is None or hasattr(value[1], "__float__")):
        return value[0], value[1]
    return value, None


def _first(value: object, names: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return None
    for name in names:
        found = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if found is not None:
            return found
    return None


def _text(body: object) -> str | None:
    if isinstance(body, str):
        return body
    read = getattr(body, "get_content", None)  # LlamaIndex: the text without the metadata
    text = read() if callable(read) else _first(body, _TEXT)
    return text if isinstance(text, str) else None
