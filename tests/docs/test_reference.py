"""The generated pages: complete, current, and nothing that a user can name is missing."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import core
from core.diagnosis import Diagnosis
from core.diagnostics import DIAGNOSTICS
from core.report import reference
from core.report.docstrings import docstring_markdown, entry_markdown
from core.run import Run
from core.schema import TABLES
from core.socket import MODE, REASON

ROOT = Path(__file__).parents[2]
PAGES = reference.pages()
SETTINGS, COMMANDS = PAGES["reference/settings.md"], PAGES["reference/command-line.md"]
FINDINGS = PAGES["how-to/act-on-findings.md"]
# Findings that say that something is in order: there is nothing to do.
IN_ORDER = {
    "certificate",
    "stops_incorrect",
    "reliable_objection",
    "confidence_ranks",
    "wrong_answers_stopped",
}
# Set by others for programs in general; nobody sets them for this one.
OTHERS = {"LOCALAPPDATA", "PYTHONPATH", "RAY_USAGE_STATS_ENABLED", "XDG_CACHE_HOME"}


@pytest.mark.parametrize("path", PAGES)
def test_the_page_is_that_of_the_code(path):
    assert (ROOT / "docs" / path).read_text(encoding="utf-8") == PAGES[path], "run make glossary"


def found_in(run) -> set[tuple[str, str]]:
    """Every finding that the diagnostics make of a run before chance is taken out."""
    diagnosis, names = Diagnosis(run), set()
    for one in DIAGNOSTICS:
        for finding in one.findings(diagnosis[one.name]) if one.lacks(run) is None else ():
            while finding is not None:
                names.add((one.name, finding.name))
                finding = finding.otherwise
    return names


def literals(module) -> set[str]:
    return {n.value for n in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(n, ast.Constant) and isinstance(n.value, str)}  # fmt: skip


def test_every_finding_is_announced():
    known = {(one.name, name) for one in DIAGNOSTICS for name in one.finds}
    made = found_in(Run.load(ROOT / "sample_data/recorded_run_short"))
    assert made <= known and len(made) > 25


def test_a_failure_mode_is_announced_unless_nothing_is_found_of_it():
    """So is whatever the code of a diagnostic calls a finding and defines with advice."""
    elsewhere = {("influence", "missed_evidence")}  # counted there, found by retrieval_quality
    for one in DIAGNOSTICS:
        kinds = {d.name for d in one.definitions if d.kind == MODE and not d.name[0].isupper()}
        assert {(one.name, name) for name in kinds - set(one.finds)} <= elsewhere
        package = inspect.getmodule(one.findings)
        said = literals(package) & {d.name for d in one.definitions if d.advice and d.kind != "Stages"}
        assert said - {"missed_evidence"} <= set(one.finds), one.name


def test_every_finding_has_its_entry_with_what_to_do():
    for one in DIAGNOSTICS:
        section = FINDINGS.split(f"\n## {one.title}\n")[1].split("\n## ")[0]
        for name in one.finds:
            assert f"`{name}`" in section, name
            kinds = {d.kind: d for d in one.definitions if d.name == name}
            [*own] = [d for kind, d in kinds.items() if kind != REASON] or [*kinds.values()]
            assert own[0].meaning
            assert own[0].advice or own[0].kind == REASON or name in IN_ORDER, f"{name} says not what to do"
    assert FINDINGS.count("Nothing: this is in order.") == len(IN_ORDER)


def test_every_metric_setting_table_and_command_has_its_entry():
    from typer.main import get_command

    from core.cli.app import build_app

    for one in DIAGNOSTICS:
        for definition in one.definitions:
            assert f"(`{definition.name}`)" in PAGES["glossary.md"], definition.name
        for setting in one.settings:
            assert f"| `{setting.option}` | `{setting.name}` |" in SETTINGS, setting.name
    for table in TABLES.values():
        section = PAGES["reference/tables.md"].split(f"\n## {table.name}\n")[1].split("\n## ")[0]
        assert [*re.findall(r"^\| `(\w+)`", section, re.MULTILINE)] == [*table.names]
    for name, command in get_command(build_app()).commands.items():
        section = COMMANDS.split(f"\n## {name}\n")[1].split("\n## ")[0]
        assert all(f"`{opt}`" in section for p in command.params for opt in p.opts if opt.startswith("-"))


def test_every_public_name_has_its_entry():
    page = PAGES["reference/python.md"]
    assert "`core.charts`" in page
    assert {name for name in core.__all__ if f"\n### {name}\n" not in page} == {"charts"}


def test_every_environment_variable_has_its_entry():
    read = set()
    for folder in ("core", "ui", "pages"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            read |= set(re.findall(r"environ(?:\.\w+\(|\[)\s*\"([A-Z_]+)\"", text))
            read |= set(re.findall(r"\"((?:LEADLINE|RAG|VALIDATOR|ENABLE)_[A-Z_]*[A-Z])\"", text))
    assert {"LEADLINE_RUNS", "RAG_CONFIDENCE_THRESHOLD", "OPENAI_API_KEY"} <= read
    missing = read - OTHERS - {one.name for one in reference.VARIABLES}
    assert not missing, "name it in VARIABLES of core/report/reference.py"
    assert all(f"| `{one.name}` |" in SETTINGS for one in reference.VARIABLES)


def test_a_docstring_in_sections_becomes_markdown():
    text = """Return ``a``.

Parameters
----------
a : int
    A number,
    of two lines.
b, c : float, optional
    Others.

Returns
-------
int
    The same.

Notes
-----
Plain.

>>> f(1)
1"""
    assert docstring_markdown(text) == (
        "Return `a`.\n\n**Parameters**\n\n- `a : int`: A number, of two lines.\n- `b, c : float, optional`: Others.\n\n"
        "**Returns**\n\n- `int`: The same.\n\n**Notes**\n\nPlain.\n\n```text\n>>> f(1)\n1\n```"
    )


def test_an_entry_shows_how_to_import_it():
    entry = entry_markdown("core.conformal.conformal_threshold")
    assert entry.startswith(
        "### conformal_threshold\n\n```text\nfrom core.conformal import conformal_threshold\n"
    )
    assert "conformal_threshold(scores, alpha" in entry
