"""The parts of the workbench: one module per diagnostic and of its name; one for all the others.

A module has ``draw(query_id)``, its own section. It may have ``part(query_id)``, what it adds to the answer
and the passages above all sections, ``overview()``, which draws its figure on the Overview and tells whether
it had one, and ``method()``, how its
numbers come about, for the methods page.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core import diagnostics
from core.socket import Diagnostic
from ui import headlines, questions, show


@dataclass(frozen=True, slots=True)
class Part:
    """What a diagnostic adds to the answer and the passages of a question; texts are raw.

    ``badge`` (label, icon, colour) is on the answer it judges; ``beside`` has texts of the data to be read
    with it, each with a title. ``claims`` is the answer cut at its claims (`ui.components.evidence.rows`).
    ``rows`` has, by passage id, any of ``bar`` (``value, low, high, noise, within, text``), ``facts`` (pairs
    of a name and a text), ``flags`` (texts), ``claims`` (pairs of a claim's place and a text). ``says`` are
    sentences in Markdown: what is wrong, what is undefined or missing, and what to do.
    """

    badge: tuple[str, str, str] | None = None
    beside: tuple[tuple[str, str], ...] = ()
    claims: Mapping[str, Any] | None = None
    rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    says: tuple[str, ...] = ()


def parts(query_id: str) -> list[Part]:
    """Return what the diagnostics that have something to say of the run add to a question."""
    own = [of(one.name) for one in diagnostics.DIAGNOSTICS if headlines.lacks(one.name) is None]
    return [module.part(query_id) for module in own if hasattr(module, "part")]


def overview() -> None:
    """Draw one figure: that of the last diagnostic that has one, since it has read those before it."""
    own = [of(one.name) for one in diagnostics.DIAGNOSTICS if headlines.lacks(one.name) is None]
    any(module.overview() for module in reversed(own) if hasattr(module, "overview"))


def draw(diagnostic: Diagnostic, query_id: str) -> None:
    """Draw what a diagnostic says of a question: by its own module, or its columns."""
    own = of(diagnostic.name)
    if own is not None:
        own.draw(query_id)
        return
    row = questions.row(query_id, diagnostic.name)
    headlines.why(diagnostic.name, row.get("reason"))
    show.cards([(column.title, column.text(row[column.name]), "", "") for column in diagnostic.columns])


def of(name: str) -> Any:
    """Return the module of a diagnostic's own section, or None."""
    path = f"{__name__}.{name}"
    return importlib.import_module(path) if importlib.util.find_spec(path) is not None else None
