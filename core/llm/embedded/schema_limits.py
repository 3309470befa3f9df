"""Which JSON Schemas an automaton over a model's tokens can represent, and how large it would be."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]
_REFERENCES = 3  # as deep as outlines-core follows a schema that refers to itself
_LENGTHS = frozenset({"minLength", "maxLength"})
_COUNTS = frozenset({"minItems", "maxItems"})
_SAID_ELSEWHERE = frozenset({"enum", "const", "$ref", "anyOf", "oneOf", "allOf", "not", "if"})


def unsupported_part(schema: Schema) -> str | None:
    """Say which part of a schema outlines-core would misread or take minutes for; None where there is none.

    Parts that outlines-core rejects itself are not checked.
    """
    for node in _schemas_in(schema):
        if len(node.get("allOf", ())) > 1:
            return "allOf cannot be combined while generating; write its parts as one schema"
        for name in node.get("properties", ()):
            if json.dumps(name, ensure_ascii=False) != f'"{name}"':
                return f"the property name {name!r} has characters that JSON must escape"
        if _is_open(node):
            text = json.dumps(node, ensure_ascii=False)[:100]
            return f"{text} leaves open what is inside; name the properties of an object, the items of a list"
    return None


def fit_to_size(schema: Schema, most: int) -> Schema | None:
    """Return the schema with as many of its lengths as fit into an automaton of that size.

    ``most`` limits the positions of free text: the characters that strings with a max length may have, times
    their repetitions; 1 for a string of any length. Drops first the lengths of strings, then also those of
    lists, but keeps a min length of 1; None where even that is too large.
    """
    looser = (schema, _without(schema, _LENGTHS), _without(schema, _LENGTHS | _COUNTS))
    return next((s for s in looser if _text_places(s, s, _REFERENCES) <= most), None)


def _schemas_in(schema: Schema) -> Iterator[Schema]:
    todo: list[Any] = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, Mapping):
            yield node
            todo.extend(_parts(node))
            for key in ("$defs", "definitions"):
                todo.extend(node.get(key, {}).values())


def _parts(node: Schema) -> list[Any]:
    parts = [node[key] for key in ("items", "additionalProperties") if key in node]
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        parts.extend(node.get(key, ()))
    return [*parts, *node.get("properties", {}).values()]


def _is_open(node: Schema) -> bool:
    if not _SAID_ELSEWHERE.isdisjoint(node):
        return False
    kinds = _kinds(node)
    others = node.get("additionalProperties")
    members = bool(node.get("properties")) or (isinstance(others, Mapping) and bool(others))
    items = bool(node.get("items")) or bool(node.get("prefixItems"))
    if not kinds:
        return not members and not items
    return ("object" in kinds and not members) or ("array" in kinds and not items)


def _kinds(node: Schema) -> set[str]:
    kinds = node.get("type", ())
    return {kinds} if isinstance(kinds, str) else set(kinds)


def _without(tree: Any, keys: Collection[str]) -> Any:
    if isinstance(tree, list):
        return [_without(part, keys) for part in tree]
    if not isinstance(tree, dict):
        return tree
    least = {key: 1 for key in ("minLength", "minItems") if key in keys and _number(tree.get(key))}
    kept = {k: _without(v, keys) for k, v in tree.items() if k not in keys or not _number(v)}
    return kept | least


def _number(value: Any) -> int:
    """Return a bound's value; 0 for a property that merely has a bound's name."""
    return int(value) if isinstance(value, int | float) else 0


def _text_places(node: Any, root: Schema, references: int) -> int:
    if not isinstance(node, Mapping):
        return 0
    if "$ref" in node:
        target = _referred(str(node["$ref"]), root) if references else None
        return _text_places(target, root, references - 1)
    inside = sum(_text_places(part, root, references) for part in _parts(node))
    if "items" in node:
        return (_number(node.get("maxItems")) or _number(node.get("minItems")) or 1) * inside
    if "string" in _kinds(node) and "enum" not in node:
        return inside + (_number(node.get("maxLength")) or _number(node.get("minLength")) or 1)
    return inside


def _referred(reference: str, root: Schema) -> Any:
    node: Any = root
    for step in reference.removeprefix("#").split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        node = node.get(step) if isinstance(node, Mapping) else None
    return node
