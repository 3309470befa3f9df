"""``run.json``: what the manifest of a run holds, checked entry by entry."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.errors import RunFormatError
from core.files import read_file
from core.schema import SCHEMA_VERSION
from core.text.display import shorten
from core.text.strict import read_json

MANIFEST_FILE = "run.json"
LARGEST_MANIFEST = 10_000_000

# What a manifest holds, where it holds it: a type, a list of one kind, or the entries of an object ("*" for
# those of any name); of a tuple one of the kinds, where None is null. Everything else may be anything. A
# number or a free object, {}, may be null, but not a `Mapping`.
_REASONS = {"*": int}
_MANIFEST: dict[str, Any] = {
    "run_id": str,
    "name": str,
    "source": str,
    "created": str,
    "complete": bool,
    "schema_version": int,
    "parent": str,
    "person": str,
    "notes": [str],
    "dataset": ({"rows": int, "rejected": int, "format": str}, None),
    "model": {},
    "prompt": {},
    "retriever": {},
    "options": {},
    "environment": {},
    "cost": {"*": float},
    "sample": {"of": str, "questions": int},
    "planted": {"*": {"*": (float, {"*": float}, None)}},
    "steps": {
        "*": {
            "options": Mapping,
            "model": {},
            "samples": int,
            "n_done": int,
            "n_left": int,
            "n_calls": int,
            "seconds": float,
            "complete": bool,
            "notes": [str],
            "reasons": _REASONS,
            "unscored_reasons": _REASONS,
            "decomposition_reasons": _REASONS,
            "context_passed_over": _REASONS,
            "n_not_extracted": int,
            "n_by_rules": int,
            "tries": int,
            "joint_left": [str],
            "decomposition": str,
            "verifier": str,
            "own_arms": {"*": [str]},
        }
    },
    "tables": {"*": {"file": str, "sha256": str, "rows": int}},
}
_NOUNS = {
    str: "a text", int: "a whole number", float: "a number", bool: "true or false", Mapping: "an object",
}  # fmt: skip
_LARGEST_NUMBER = 2**63  # what is counted or measured is less, and arithmetic on more overflows


def read_manifest(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read only ``run.json`` of a saved run, checked; raises `RunFormatError`."""
    path = Path(folder) / MANIFEST_FILE
    try:
        manifest = read_json(read_file(path, LARGEST_MANIFEST).decode())
    except FileNotFoundError as error:
        raise RunFormatError(f"{folder} is not a saved run: it has no {MANIFEST_FILE}.") from error
    except OSError as error:
        raise RunFormatError(f"{path} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise RunFormatError(f"{path} cannot be read as JSON: {error}.") from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("tables"), dict):
        raise RunFormatError(f"{path} is not the manifest of a run: it names no tables.")
    version = manifest.get("schema_version")
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise RunFormatError(
            f"The run in {folder} has schema version {shorten(repr(version))}; "
            f"this program reads up to {SCHEMA_VERSION}."
        )
    missing = (f"it has no {name}" for name in ("run_id", "source") if name not in manifest)
    if wrong := wrong_entry(manifest) or next(missing, None):
        raise RunFormatError(f"{path} is not the manifest of a run: {wrong}.")
    return manifest


def n_questions(manifest: Mapping[str, Any]) -> int:
    """Return how many questions a saved run has, as its manifest says."""
    return int(manifest["tables"].get("queries", {}).get("rows", 0))


def wrong_entry(manifest: Mapping[str, Any]) -> str | None:
    """Return which entry of a manifest is of another type than it should be; None where all are right."""
    return _wrong(manifest, _MANIFEST)


def _wrong(value: Any, wanted: Any, place: str = "") -> str | None:
    """Return the first entry that is of another type than the table of types says; missing ones may be."""
    if isinstance(wanted, tuple):
        found = [_wrong(value, one, place) for one in wanted if one is not None]
        return None if None in found or (value is None and None in wanted) else found[0]
    if isinstance(wanted, type):
        kinds = (int, float) if wanted is float else wanted
        fits = isinstance(value, kinds) and (wanted is bool or not isinstance(value, bool))
        fits = fits and not (isinstance(value, int) and abs(value) >= _LARGEST_NUMBER)
        return None if fits else f"{place} must be {_NOUNS[wanted]}, got {shorten(repr(value))}"
    kind, noun = (list, "a list") if isinstance(wanted, list) else (Mapping, "an object")
    if not isinstance(value, kind):
        return f"{place} must be {noun}, got {shorten(repr(value))}"
    if isinstance(wanted, list):
        inside = [(place, one, wanted[0]) for one in value]
    else:
        types = {name: wanted.get(name, wanted.get("*")) for name in value}
        inside = [
            (f"{place}.{name}" if place else str(name), value[name], kind)
            for name, kind in types.items()
            if kind is not None and not (value[name] is None and kind in ({}, float))
        ]
    return next(filter(None, (_wrong(one, kind, where) for where, one, kind in inside)), None)
