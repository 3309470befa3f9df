"""The layer rules, read from the imports themselves."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = {
    "torch",
    "transformers",
    "sentence_transformers",
    "streamlit",
    "plotly",
    "ollama",
    "gguf",
    "accelerate",
    "bm25s",
    "datasets",
    "httpx",
    "jsonschema",
    "openai",
    "outlines_core",
    "sklearn",
}
FILES = [p for d in ("core", "ui", "pages") for p in sorted((ROOT / d).rglob("*.py"))] + [
    ROOT / "dashboard.py"
]


def imports(path: Path, top_level_only: bool = False) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import"
            found.add(node.module or "")
    return found


def roots(path: Path, **options) -> set[str]:
    return {name.split(".")[0] for name in imports(path, **options)}


def within(path: Path, *folders: str) -> bool:
    return any(path.is_relative_to(ROOT / folder) for folder in folders)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_import_directions(path):
    found = roots(path)
    if within(path, "core"):
        assert not found & {"streamlit", "ui", "pages", "dashboard"}
        if not within(path, "core/charts", "core/report"):
            assert "plotly" not in found
        assert not roots(path, top_level_only=True) & (HEAVY - {"plotly"}), (
            "heavy libraries load inside functions"
        )
    if within(path, "core/influence", "core/text", "core/run.py", "core/schema.py", "core/definitions.py"):
        modules = imports(path)
        assert not any(
            m.startswith(("core.pipeline", "core.llm", "core.sources", "core.charts")) for m in modules
        )
    if within(path, "core/stats.py"):
        assert "core" not in found
    if within(path, "ui"):
        assert not found & {"pages", "dashboard"}
    if within(path, "pages"):
        assert not found & {"numpy", "scipy", "pandas", "plotly", "dashboard"}


@pytest.mark.parametrize("path", [p for p in FILES if within(p, "pages")], ids=lambda p: p.name)
def test_pages_stay_short_and_render_no_html(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 90, "move logic to core and glue to ui"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_nothing_hostile_is_rendered_evaluated_or_unpickled(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            assert name not in (
                "eval",
                "exec",
                "pickle.load",
                "pickle.loads",
                "st.html",
                "components.html",
            ), name
            assert not any(k.arg == "unsafe_allow_html" for k in node.keywords), f"{path}:{node.lineno}"


def test_importing_the_engine_is_light():
    ours = HEAVY - {"sklearn"}  # rouge_score imports nltk, and nltk scikit-learn where it is installed
    code = (
        "import sys, core, core.run, core.influence, core.text, core.retrieval, core.llm, core.pipeline, core.sources\n"
        f"print(*sorted(set(sys.modules) & {ours!r}))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout.strip() == ""
