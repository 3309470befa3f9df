"""Docstrings in sections (numpydoc) as Markdown."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

_NAMED = {"Parameters", "Attributes", "Returns", "Raises", "Yields"}  # sections of names with what they are


def entry_markdown(path: str) -> str:
    """Return name, import, signature and docstring of something that can be imported: ``core.run.Run``."""
    module, _, name = path.rpartition(".")
    thing = getattr(importlib.import_module(module), name)
    code = f"```text\nfrom {module} import {name}\n{name}{_signature(thing)}\n```"
    return f"### {name}\n\n{code}\n\n{docstring_markdown(inspect.getdoc(thing) or '')}"


def docstring_markdown(text: str) -> str:
    """Return a docstring: headings of sections as bold lines, named things as a list, examples as code.

    >>> docstring_markdown("Return ``a``.")
    'Return `a`.'
    """
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    parts = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", text, flags=re.MULTILINE)
    done = [_prose(parts[0])]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        done.append(f"**{title}**\n\n{_named(body) if title in _NAMED else _prose(body)}")
    return "\n\n".join(filter(None, done))


def _signature(thing: Any) -> str:
    """Return the parameters with their defaults; types are in the docstring."""
    parameters = inspect.signature(thing).parameters.values()
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in parameters]
    return re.sub(r"<[^<>]*(<[^<>]*>)?[^<>]*>", "…", str(inspect.Signature(bare)))


def _named(body: str) -> str:
    """Return ``name : type`` with its indented text as a list."""
    found = re.findall(r"^(\S[^\n]*)\n?((?:[ \t]+[^\n]*\n?|\n)*)", body, re.MULTILINE)
    lines = (f"- `{head.strip()}`: {' '.join(text.split())}" for head, text in found)
    return "\n".join(line.removesuffix(": ") for line in lines)


def _prose(text: str) -> str:
    """Return paragraphs; lines that a reader types, and what they print, as code."""
    blocks = re.split(r"\n\s*\n", text.strip())
    code = (
        f"```text\n{inspect.cleandoc(one)}\n```" if one.lstrip().startswith(">>>") else one for one in blocks
    )
    return "\n\n".join(filter(None, code))
