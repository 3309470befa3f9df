"""Docstrings: their sections are well formed, their parameters exist, their examples run."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PATHS = sorted(path for part in ("core", "ui") for path in (ROOT / part).rglob("*.py"))
SECTIONS = (
    "Attributes", "Examples", "Methods", "Notes", "Parameters", "Raises", "References", "Returns", "See Also",
    "Warns", "Yields",
)  # fmt: skip


def documented(path: Path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield node, text.split("\n")


def problems(lines: list[str]) -> list[str]:
    """Headings without their line of dashes, and lines of dashes without a heading."""
    found = []
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line in SECTIONS and below != "-" * len(line):
            found.append(f"{line!r} is not underlined by {len(line)} dashes")
        if re.fullmatch(r"-{3,}", below) and line not in SECTIONS:
            found.append(f"{line!r} is no section")
        if re.match(rf"({'|'.join(SECTIONS)})\s+-{{3,}}", line):
            found.append(f"{line!r} runs into its text")
    return found


def parameters(lines: list[str]) -> set[str]:
    """The names that a section Parameters documents."""
    if "Parameters" not in lines:
        return set()
    names: set[str] = set()
    start = lines.index("Parameters") + 2
    for line, below in zip(lines[start:], [*lines[start + 1 :], ""], strict=True):
        if below.startswith("---"):
            break
        if line and not line.startswith(" "):
            names |= {name.strip().lstrip("*") for name in line.split(" : ")[0].split(",")}
    return names


def arguments(node: ast.AST) -> set[str]:
    """The names that a function takes, or the ``__init__`` and the fields of a class."""
    if isinstance(node, ast.ClassDef):
        fields = {
            n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
        }
        inits = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
        return fields | {name for init in inits for name in arguments(init)}
    given = node.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return {argument.arg for argument in every if argument is not None}


def test_sections_and_parameters():
    wrong, n_parameters = [], 0
    for path in PATHS:
        for node, lines in documented(path):
            where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
            wrong += [f"{where}: {problem}" for problem in problems(lines)]
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                named = parameters(lines)
                n_parameters += len(named)
                wrong += [f"{where}: there is no {name}" for name in named - arguments(node)]
    assert n_parameters > 100 and not wrong


def test_broken_sections_are_seen():
    assert problems(["Notes ----- Cost: none."]) == ["'Notes ----- Cost: none.' runs into its text"]
    assert problems(["Returns", "------"]) == ["'Returns' is not underlined by 7 dashes"]
    assert problems(["Result", "------"]) == ["'Result' is no section"]
    assert parameters(
        ["x", "Parameters", "----------", "a, b : int", "    One.", "*c", "Returns", "---"]
    ) == {"a", "b", "c"}


WITH_EXAMPLES = [path for path in PATHS if ">>>" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_run(path, monkeypatch):
    monkeypatch.chdir(ROOT)
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0 and result.failed == 0
