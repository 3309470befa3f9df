"""The documents stay true: their Python runs, their commands exist, their links lead somewhere."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from core.diagnostics import DIAGNOSTICS
from core.report.glossary import glossary_markdown

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "sample_data/README.md", *sorted((ROOT / "docs").rglob("*.md"))]  # fmt: skip
# Not needed to run anything: tests/core/own_rag/test_own_rag_frameworks.py runs these, and says what is not there.
FRAMEWORKS = re.compile(r"^from (langchain_core|llama_index|haystack)\b", re.MULTILINE)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(path: Path, language: str) -> list[str]:
    return [code for kind, code in BLOCK.findall(path.read_text(encoding="utf-8")) if kind == language]


# tests/docs/test_tutorials.py runs these, with their commands.
FOLLOWED = {p for p in DOCUMENTS if p.parent.name == "tutorials" or p.stem == "threshold"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [p for p in DOCUMENTS if blocks(p, "python") and p not in FOLLOWED],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_python_in_the_documents_runs(path, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "sample_data", tmp_path / "sample_data")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for code in blocks(path, "python"):
        if FRAMEWORKS.search(code):
            continue
        exec(compile(code, str(path), "exec"), namespace)
    assert "__builtins__" in namespace


def test_every_command_in_the_readme_exists():
    from typer.main import get_command

    from core.cli.app import build_app

    command = get_command(build_app())
    lines = [
        ln for p in DOCUMENTS for b in blocks(p, "bash") for ln in b.splitlines() if "python -m core" in ln
    ]
    assert lines
    for line in lines:
        words = line.split("#")[0].split("python -m core ")[1].split()
        sub = command.commands[words[0]]
        options = {name for p in sub.params for name in (*p.opts, *p.secondary_opts)}
        assert {w for w in words if w.startswith("--")} <= options, line


def test_make_targets_named_in_the_documents_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {t for p in DOCUMENTS for t in re.findall(r"`make ([a-z-]+)`|^make ([a-z-]+)", p.read_text(), re.MULTILINE) for t in t if t}  # fmt: skip
    assert {"run", "test"} <= named <= targets


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    links = re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (path.parent / link).exists()]
    assert not missing


def test_files_and_names_in_the_guide_for_contributors_exist():
    """It named core/stats.py and grouped.py long after they were gone."""
    files = [
        p
        for d in ("core", "ui", "pages", "tests", "bench", "docs", "sample_data")
        for p in (ROOT / d).rglob("*.*")
    ]
    files += [*ROOT.glob("*.*"), *ROOT.glob(".ci/*")]
    words = {w for p in files if p.suffix == ".py" for w in re.findall(r"\w+", p.read_text(encoding="utf-8"))}
    for span in set(re.findall(r"`([^`\n]+)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))):
        if span.startswith("make "):
            continue
        if re.search(r"/|\.(py|md|txt)$", span):
            path = span.replace("<name>", "*").rstrip("/")
            assert any(ROOT.glob(path)) or span in {p.name for p in files}, span
        else:
            assert {*re.findall(r"\w+", span)} <= words, span


def test_no_placeholder_is_left():
    for path in DOCUMENTS:
        assert not re.search(r"@[A-Z_]+@|TODO|TBD", path.read_text(encoding="utf-8")), path


def test_every_dependency_has_its_line_in_the_readme():
    table = (ROOT / "README.md").read_text(encoding="utf-8").split("## Dependencies")[1].split("##")[0]
    for line in (ROOT / "requirements.txt").read_text().splitlines():
        name = re.match(r"[a-z0-9-]*", line).group()
        assert not name or name in table, name


def test_the_glossary_is_that_of_the_code():
    written = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    assert written == glossary_markdown(DIAGNOSTICS), "run make glossary"
