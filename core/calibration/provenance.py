"""What identifies a calibrated score: two scores can be compared only where all of it is the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any

from core.text.display import one_line, shorten
from core.text.strict import json_value

UNKNOWN = "unknown"
_DIGITS = 12
_LONGEST = 120  # characters of a part that are shown
# How a model is run, not what it is; and a prompt that has no passages, so no score of theirs.
_NOT_OF_SCORES = {"model": ("dtype", "device", "batch_size"), "prompt": ("closed_book",)}
_OF_STEP = ("options", "samples", "temperatures", "top_ps")


@dataclass(frozen=True, slots=True)
class Provenance:
    """Score function, model, prompt and retriever of a score, each as ``name · 12 hexadecimal digits``.

    The digits change with every setting that changes scores. ``unknown`` where a run does not say.
    """

    score: str
    model: str
    prompt: str
    retriever: str

    def differences(self, other: Provenance, ignore: Collection[str] = ()) -> tuple[str, ...]:
        """Say in which parts, but those of ``ignore``, another score differs from the calibrated ones, these.

        >>> Provenance("s", "A", "p", "r").differences(Provenance("s", "B", "p", "r"))
        ('calibrated with the model A, this one is B',)
        """
        return tuple(
            f"calibrated with the {one.name} {_shown(own)}, this one is {_shown(theirs)}"
            for one in fields(self)
            if one.name not in ignore
            and (own := getattr(self, one.name)) != (theirs := getattr(other, one.name))
        )


def provenance_of(
    manifest: Mapping[str, Any], score: str, step: str | None = None, method: Mapping[str, Any] | None = None
) -> Provenance:
    """Return what identifies the scores of a run (its ``manifest``), by the name of the score.

    ``step`` computes its answers: number, temperatures and model of samples are part of the score function.
    ``method`` is how several signals become the score: another one has other digits.

    >>> provenance_of({"model": {"name": "m", "options": {"revision": "1", "device": "cpu"}}}, "length")
    Provenance(score='length', model='m · ce1d2cf52823', prompt='unknown', retriever='unknown')
    """
    facts = _mapping(_mapping(manifest.get("steps")).get(step or ""))
    if facts or method:
        kept = {name: facts[name] for name in _OF_STEP if name in facts}
        known = {**kept, "model": _plain(facts.get("model"), "model"), **(method or {})}
        score = f"{score} · {_digest(known)}"
    return Provenance(
        score,
        _part(manifest, "model", "name"),
        _part(manifest, "prompt", "style"),
        _part(manifest, "retriever", "name"),
    )


def _part(manifest: Mapping[str, Any], part: str, name: str) -> str:
    found = _mapping(manifest.get(part))
    if not found:
        return UNKNOWN
    shown = one_line(shorten(found.get(name) or UNKNOWN))
    return f"{shown} · {_digest(_plain(found, part))}"


def _plain(found: object, part: str) -> dict[str, Any]:
    """Return the settings without those that change no score, where they are given in ``options``, too."""
    ignored = _NOT_OF_SCORES.get(part, ())
    kept = {key: value for key, value in _mapping(found).items() if key not in ignored}
    if isinstance(kept.get("options"), Mapping):
        kept["options"] = {key: value for key, value in kept["options"].items() if key not in ignored}
    return kept


def _shown(part: str) -> str:
    """Return a part for a sentence: whole if `provenance_of` made it, but a store can hold any text."""
    return one_line(part[:_LONGEST])


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _digest(value: object) -> str:
    text = json.dumps(json_value(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
