"""The glossary as a document: ``python -m core.report.glossary > docs/glossary.md``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from core.socket import Definition, Diagnostic

_FACTS = (
    ("formula", "Computed as"),
    ("range", "Range"),
    ("unit", "Unit"),
    ("direction", "Direction"),
    ("undefined_when", "Undefined when"),
    ("source", "Source"),
    ("advice", "What to do"),
)


def glossary_markdown(diagnostics: Sequence[Diagnostic]) -> str:
    """Return the definitions of all numbers, states, failure modes and reasons, by diagnostic and kind."""
    lines = [
        "# Glossary",
        "",
        "Made from the definitions in the code; the page *Methods and glossary* shows the same.",
    ]
    for diagnostic in diagnostics:
        lines += ["", f"## {diagnostic.title}", "", diagnostic.question]
        if diagnostic.settings:
            lines += ["", "### Settings", ""]
            lines += [
                f"- **{s.title}** (`{s.option}`, default {s.default}): {s.help}" for s in diagnostic.settings
            ]
        for kind in dict.fromkeys(definition.kind for definition in diagnostic.definitions):
            lines += ["", f"### {kind}", ""]
            lines += [_entry(d) for d in diagnostic.definitions if d.kind == kind]
    return "\n".join(lines) + "\n"


def facts(definition: Definition) -> Iterator[tuple[str, str]]:
    """Yield title and text of each further fact of a definition."""
    for name, title in _FACTS:
        if value := getattr(definition, name):
            yield title, value


def _entry(definition: Definition) -> str:
    more = "".join(f" *{title}:* {text.rstrip('.')}." for title, text in facts(definition))
    return f"- **{definition.title}** (`{definition.name}`): {definition.meaning}{more}"


if __name__ == "__main__":
    from core.diagnostics import DIAGNOSTICS

    sys.stdout.write(glossary_markdown(DIAGNOSTICS))
