"""A change of one question's prompt, as a value: it is applied, asked, kept, and shared as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.errors import InputError
from core.llm.prompts import STYLES
from core.losses.arms import Shown
from core.text.display import count, shorten
from core.text.strict import finite, is_clean, read_json

MOST = 200  # passages of a prompt
LONGEST = {"passage": 20_000, "question": 5_000, "title": 500, "id": 500}  # characters
LARGEST = 1_000_000  # characters of a change as JSON
HOTTEST = 2.0


@dataclass(frozen=True, slots=True)
class Added:
    """A passage that was not in the prompt; ``id`` tells it from the others of the question."""

    id: str
    text: str
    title: str = ""

    def __post_init__(self) -> None:
        _text(self.id, "id", "The id of an added passage")
        _text(self.text, "passage", "An added passage")
        _text(self.title, "title", "The title of an added passage", empty=True)


@dataclass(frozen=True, slots=True)
class Change:
    """What differs from the prompt that a question was answered with; InputError for what is no change.

    Attributes
    ----------
    keep : tuple of str or None
        Ids of the passages that are in the prompt, the added ones among them; None: all of them.
    order : tuple of str
        Ids in prompt order; passages that are not named follow as they were.
    edits : Mapping of str
        New texts by passage id, at most 20,000 characters each.
    added : tuple of Added
        Further passages, behind the others unless ``order`` says where.
    question : str or None
        Another wording, at most 5,000 characters.
    style : str or None
        Another prompt style, one of `core.llm.prompts.STYLES`.
    temperature : float
        That of the call, 0 to 2.

    Examples
    --------
    >>> shown = [Shown("a", "", "One.", 1), Shown("b", "", "Two.", 2), Shown("c", "", "Three.", 3)]
    >>> [one.passage_id for one in Change(keep=("a", "c"), order=("c", "b", "a")).apply(shown)]
    ['c', 'a']
    """

    keep: tuple[str, ...] | None = None
    order: tuple[str, ...] = ()
    edits: Mapping[str, str] = field(default_factory=dict)
    added: tuple[Added, ...] = ()
    question: str | None = None
    style: str | None = None
    temperature: float = 0.0

    def __post_init__(self) -> None:
        _ids(self.keep or (), "keep")
        _ids(self.order, "order")
        _ids([one.id for one in self.added], "added")
        _ids(list(self.edits), "edits")
        for text in self.edits.values():
            _text(text, "passage", "An edited passage", empty=True)
        if self.question is not None:
            _text(self.question, "question", "The question")
        if self.style is not None and self.style not in tuple(STYLES):
            raise InputError(f"style must be one of {', '.join(STYLES)}, got {shorten(repr(self.style))}.")
        if finite(self.temperature) is None or not 0 <= self.temperature <= HOTTEST:
            raise InputError(
                f"temperature must be a number from 0 to {HOTTEST:g}, got {shorten(repr(self.temperature))}."
            )

    def arranged(self, passages: Sequence[Shown]) -> tuple[tuple[Shown, bool], ...]:
        """Return all passages in the order of the new prompt, each with whether it is in it.

        InputError where the change names a passage that the question does not have.
        """
        there = {one.passage_id: one for one in passages}
        clash = next((one.id for one in self.added if one.id in there), None)
        if clash is not None:
            raise InputError(f"The change adds a passage {shorten(clash)}, which the question has already.")
        there |= {one.id: Shown(one.id, one.title, one.text) for one in self.added}
        named = (*(self.keep or ()), *self.order, *self.edits)
        stray = next((one for one in named if one not in there), None)
        if stray is not None:
            raise InputError(
                f"The change names the passage {shorten(stray)}, which this question does not have."
            )
        places = {name: place for place, name in enumerate(self.order)}
        ordered = sorted(there.values(), key=lambda one: places.get(one.passage_id, len(places)))
        return tuple(
            (
                Shown(one.passage_id, one.title, self.edits.get(one.passage_id, one.text), one.label),
                self.keep is None or one.passage_id in self.keep,
            )
            for one in ordered
        )

    def apply(self, passages: Sequence[Shown]) -> tuple[Shown, ...]:
        """Return the passages of the new prompt, in its order; InputError as `arranged`. No calls."""
        return tuple(one for one, kept in self.arranged(passages) if kept)

    def words(self, passages: Sequence[Shown]) -> str:
        """Return in words what is changed in a prompt with these passages; "" for nothing."""
        shown, texts = self.apply(passages), {one.passage_id: one.text for one in passages}
        left = {one.passage_id for one in shown}
        own = [one.passage_id for one in passages if one.passage_id in left]
        n_off = len(passages) - len(own)
        n_added = sum(one.id in left for one in self.added)
        n_edited = sum(name in left and text != texts.get(name) for name, text in self.edits.items())
        at_end = [*own, *(one.id for one in self.added if one.id in left)]
        said = [
            f"{count(n_off, 'passage')} switched off" if n_off else "",
            "another order" if [one.passage_id for one in shown] != at_end else "",
            f"{count(n_edited, 'passage')} edited" if n_edited else "",
            f"{count(n_added, 'passage')} added" if n_added else "",
            "another question" if self.question is not None else "",
            f"prompt style {self.style}" if self.style is not None else "",
            f"temperature {self.temperature:g}" if self.temperature else "",
        ]
        return ", ".join(filter(None, said))

    def to_dict(self) -> dict[str, Any]:
        """Return the change as plain JSON; what is not changed is left out."""
        found = {
            "keep": None if self.keep is None else list(self.keep),
            "order": list(self.order) or None,
            "edits": dict(self.edits) or None,
            "added": [
                {"id": one.id, "text": one.text} | ({"title": one.title} if one.title else {})
                for one in self.added
            ]
            or None,
            "question": self.question,
            "style": self.style,
            "temperature": self.temperature or None,
        }
        return {name: value for name, value in found.items() if value is not None}

    def to_json(self) -> str:
        """Return the change as compact JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"))


def read_change(value: Any) -> Change:
    """Return the change that plain JSON, or its text, stands for.

    Parameters
    ----------
    value : str or Mapping
        As `Change.to_json` and `Change.to_dict` return it, of any origin; at most 1,000,000 characters.

    Raises
    ------
    InputError
        It is no JSON, has an entry that no change has, or one of another type or size.
    """
    if isinstance(value, str):
        value = read_object(value, "a change")
    if not isinstance(value, Mapping):
        raise InputError(f"A change is a JSON object, not {shorten(repr(value))}.")
    strange = next((name for name in value if name not in Change.__slots__), None)
    if strange is not None:
        raise InputError(
            f"A change has no {shorten(repr(strange))}; it may have {', '.join(Change.__slots__)}."
        )
    given = {name: entry for name, entry in value.items() if entry is not None}
    for name in ("keep", "order", "added"):
        if name in given:
            given[name] = tuple(_listed(given[name], name))
    if not isinstance(given.get("edits", {}), Mapping):
        raise InputError(f"edits must be an object of texts, got {shorten(repr(given['edits']))}.")
    if "added" in given:
        given["added"] = tuple(map(_added, given["added"]))
    return Change(**given)


def read_object(text: str, what: str) -> Any:
    """Return the value of a JSON text of any origin; InputError where it cannot be used."""
    if len(text) > LARGEST:
        raise InputError(f"The JSON of {what} has at most {LARGEST:,} characters, got {len(text):,}.")
    try:
        return read_json(text)
    except ValueError as error:
        raise InputError(f"This cannot be read as the JSON of {what}: {shorten(error)}.") from error


def _added(value: Any) -> Added:
    if not isinstance(value, Mapping) or not {"id", "text"} <= value.keys() <= {"id", "text", "title"}:
        raise InputError(f"An added passage has id, text and title, got {shorten(repr(value))}.")
    return Added(**value)


def _listed(value: Any, name: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise InputError(f"{name} must be a list, got {shorten(repr(value))}.")
    return value


def _ids(ids: Sequence[Any], name: str) -> None:
    if len(ids) > MOST:
        raise InputError(f"{name} may name at most {MOST} passages, got {len(ids):,}.")
    for one in ids:
        _text(one, "id", f"A passage id in {name}")
    twice = next((one for one in ids if list(ids).count(one) > 1), None)
    if twice is not None:
        raise InputError(f"{name} names the passage {shorten(twice)} twice.")


def _text(value: Any, kind: str, what: str, *, empty: bool = False) -> None:
    if not isinstance(value, str):
        raise InputError(f"{what} must be a text, got {shorten(repr(value))}.")
    if not value.strip() and not empty:
        raise InputError(f"{what} must not be empty.")
    if len(value) > LONGEST[kind]:
        raise InputError(f"{what} has at most {LONGEST[kind]:,} characters, got {len(value):,}.")
    if not is_clean(value):
        raise InputError(f"{what} holds half a surrogate pair.")
