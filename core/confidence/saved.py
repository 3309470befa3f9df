"""A calibration as a small file: written as JSON, checked when it is read, never evaluated."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from core.calibration.mapping import KINDS, ConfidenceMap
from core.calibration.weighted import Weighting
from core.confidence.weights import METHODS
from core.errors import InputError

VERSION = 2
FORMAT = "leadline confidence calibration"
MAX_BYTES = 5_000_000
_KEYS = {"format", "version", "weights", "ranges", "threshold", "map", "n", "n_correct"}
_SINCE_2 = {"method", "learned_from"}
_DIGITS = 10  # of the digest of a question: enough to recognise it, too few to be worth guessing at
_MAP_KEYS = {"kind", "slope", "intercept", "x", "y"}


@dataclass(frozen=True)
class SavedCalibration:
    """What is needed to score new answers as the calibrated ones were.

    Attributes
    ----------
    weighting : Weighting
        Weights, ranges and threshold.
    map : ConfidenceMap
        From confidence to probability.
    n, n_correct : int
        Labelled answers that it was learned from, and the correct ones among them.
    method : str
        That the weights were learned by (`core.confidence.weights.METHODS`); empty for the default weights.
    learned_from : frozenset of str or None
        Of the questions that it was learned from, `digest`; None where a file of version 1 does not say.
    """

    weighting: Weighting
    map: ConfidenceMap
    n: int
    n_correct: int
    method: str = ""
    learned_from: frozenset[str] | None = None


def digest(question: str) -> str:
    """Return what identifies a question without giving it away."""
    return hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def to_json(saved: SavedCalibration) -> bytes:
    """Return the content of a file that `from_json` reads back to the same value."""
    way, mapped = saved.weighting, saved.map
    record: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "weights": dict(way.weights),
        "ranges": {name: [*way.ranges[name]] for name in way.weights},
        "threshold": way.threshold,
        "map": {
            "kind": mapped.kind, "slope": mapped.slope, "intercept": mapped.intercept,
            "x": [*mapped.x], "y": [*mapped.y],
        },
        "n": saved.n,
        "n_correct": saved.n_correct,
    }  # fmt: skip
    if saved.learned_from is None:
        record["version"] = 1
    else:
        record |= {"method": saved.method, "learned_from": " ".join(sorted(saved.learned_from))}
    return (json.dumps(record, indent=1, allow_nan=False) + "\n").encode()


def from_json(content: bytes) -> SavedCalibration:
    """Read a calibration file.

    Parameters
    ----------
    content : bytes
        At most 5 MB.

    Raises
    ------
    InputError
        It is not such a file, is of a newer version, has a key too few or too many, or a value is not what it
        should be. The message says which.
    """
    if len(content) > MAX_BYTES:
        raise InputError(f"The calibration file is larger than {MAX_BYTES / 1e6:g} MB.")
    try:
        record = json.loads(content.decode(), object_pairs_hook=_unique, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise InputError("The calibration file is not valid JSON.") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise InputError(f'The file is no calibration of the confidence: its "format" must be "{FORMAT}".')
    version = _whole(record.get("version"), "version")
    if version not in (1, VERSION):
        raise InputError(f"The calibration file has version {version}; this program reads 1 and {VERSION}.")
    _same_keys(record, _KEYS if version == 1 else _KEYS | _SINCE_2, "The calibration file")
    weights, ranges = _named(record["weights"], "weights"), _named(record["ranges"], "ranges")
    if weights.keys() != ranges.keys():
        raise InputError("weights and ranges must name the same signals.")
    n, n_correct = _whole(record["n"], "n"), _whole(record["n_correct"], "n_correct")
    if n_correct > n:
        raise InputError(f"n_correct must be at most n = {n}, got {n_correct}.")
    weighting = Weighting(
        {name: _number(value, f"weights.{name}") for name, value in weights.items()},
        {name: _pair(value, f"ranges.{name}") for name, value in ranges.items()},
        _number(record["threshold"], "threshold"),
    )
    method, questions = record.get("method", ""), record.get("learned_from")
    if method not in ("", *METHODS):
        raise InputError(f"method must be empty or one of {', '.join(METHODS)}, got {method!r:.40}.")
    if version > 1 and not (isinstance(questions, str) and set(questions) <= set("0123456789abcdef ")):
        raise InputError("learned_from must be digests of questions, with a space between them.")
    learned_from = None if questions is None else frozenset(questions.split())
    return SavedCalibration(weighting, _map(record["map"]), n, n_correct, method, learned_from)


def _map(given: Any) -> ConfidenceMap:
    record = _named(given, "map")
    _same_keys(record, _MAP_KEYS, "map")
    kind, x, y = record["kind"], _numbers(record["x"], "map.x"), _numbers(record["y"], "map.y")
    slope, intercept = _number(record["slope"], "map.slope"), _number(record["intercept"], "map.intercept")
    if kind not in KINDS:
        raise InputError(f"map.kind must be one of {', '.join(KINDS)}, got {kind!r:.40}.")
    if (kind == "isotonic") != bool(x) or len(x) != len(y):
        raise InputError("map.x and map.y must be of equal length, and empty but for isotonic.")
    if kind != "platt" and (slope or intercept):
        raise InputError("map.slope and map.intercept must be 0 but for platt.")
    rising = all(a < b for a, b in pairwise(x))
    if not rising or any(a > b for a, b in pairwise(y)):
        raise InputError("map.x must rise, and map.y must not fall.")
    if any(not 0 <= one <= 1 for one in (*x, *y)):
        raise InputError("map.x and map.y must lie in [0, 1].")
    return ConfidenceMap(kind, slope, intercept, x, y)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _same_keys(record: Mapping[str, Any], keys: set[str], what: str) -> None:
    if record.keys() != keys:
        odd = ", ".join(sorted(record.keys() ^ keys))
        raise InputError(f"{what} must have the keys {', '.join(sorted(keys))}; check {odd:.80}.")


def _named(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not value:
        raise InputError(f"{name} must be an object with at least one key.")
    return value


def _number(value: Any, name: str) -> float:
    found = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
        found = float(value)
    if not math.isfinite(found):
        raise InputError(f"{name} must be a finite number.")
    return found


def _numbers(value: Any, name: str) -> tuple[float, ...]:
    if not isinstance(value, list):
        raise InputError(f"{name} must be a list of numbers.")
    return tuple(_number(one, name) for one in value)


def _pair(value: Any, name: str) -> tuple[float, float]:
    found = _numbers(value, name)
    if len(found) != 2:
        raise InputError(f"{name} must be two numbers.")
    return found[0], found[1]


def _whole(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 10**12:
        raise InputError(f"{name} must be a whole number of at least 0.")
    return value
