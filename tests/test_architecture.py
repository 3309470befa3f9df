"""The layer rules, read from the imports themselves and held against one table."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from core import _HOMES
from core.diagnostics import DIAGNOSTICS

ROOT = Path(__file__).parent.parent
NAMES = [diagnostic.name for diagnostic in DIAGNOSTICS]
PATHS = [p for d in ("core", "ui", "pages") for p in sorted((ROOT / d).rglob("*.py"))] + [
    ROOT / "dashboard.py"
]


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# What each part of the project may import beside itself. A module belongs to the longest part that its name
# starts with. {d} stands for each diagnostic in turn; a part that is missing here fails.
BASE = (
    "core.errors core.schema core.run core.text core.arrays core.stats core.severity core.socket core.analyses "
    "core.signals core.html "
    "core.spreadsheet core.context_score core.rows"
)
RULES = {
    # The public names: each is imported when it is asked for.
    "core": " ".join(f"core.{home}" for home in _HOMES)
    + " core.charts core.report core.sources core.uncertainty",
    "core.serving": "core.errors core.manifest core.run",
    "core.errors": "",
    "core.text": "core.errors",
    "core.files": "",
    # Values by the names of settings and options: it knows no diagnostic.
    "core.presets": "core.errors",
    "core.arrays": "",
    "core.database": "core.errors core.migrations",
    "core.migrations": "core.database",
    "core.rows": "core.arrays",
    "core.stats": "core.errors core.arrays",
    "core.schema": "core.errors core.rows core.text",
    "core.kept": "core.files",
    "core.html": "",
    "core.manifest": "core.errors core.files core.schema core.text",
    "core.saved_tables": "core.errors core.files core.schema core.text",
    "core.run": "core.errors core.files core.html core.manifest core.saved_tables core.schema core.text",
    "core.spreadsheet": "core.text",
    "core.beside": "core.errors core.files core.text",
    "core.reviews": "core.errors core.run core.beside core.database core.stats core.text",
    "core.conditions": "core.errors core.schema core.text core.diagnosis core.socket",
    "core.worklist": "core.errors core.run core.severity core.text core.spreadsheet core.diagnosis core.socket core.reviews core.conditions",
    "core.socket": "core.errors core.run core.text core.analyses",
    "core.analyses": "core.errors core.kept core.run core.severity core.socket core.stats",
    "core.diagnosis": "core.html core.run core.socket core.analyses core.diagnostics core.verdict",
    "core.severity": "core.text",
    "core.verdict": "core.analyses core.html core.socket core.severity core.text",
    "core.signals": "core.arrays core.schema core.text core.socket core.analyses",
    "core.diagnostics": "core.socket " + " ".join(f"core.{name}.diagnostic" for name in NAMES),
    "core.{d}": BASE,
    "core.{d}.step": f"{BASE} core.{{d}} core.pipeline core.llm",
    "core.{d}.diagnostic": f"{BASE} core.calibration core.{{d}} core.{{d}}.step",
    "core.claims": f"{BASE} core.claims.decomposition core.claims.verifiers",
    "core.claims.step": f"{BASE} core.claims core.claims.decomposition core.claims.verifiers core.pipeline core.llm",
    # Where nobody knows the correct answers, the claims of every answer decide whether a fix helps.
    "core.losses.step": f"{BASE} core.claims core.claims.step core.losses core.pipeline core.llm",
    # One change for one question or for all: it asks as the step of losses asks, and is kept as reviews are.
    "core.whatif": f"{BASE} core.losses core.losses.step core.pipeline core.llm core.retrieval core.beside",
    "core.uncertainty.diagnostic": f"{BASE} core.uncertainty core.uncertainty.step core.llm",
    "core.uncertainty.mc_dropout": f"{BASE} core.uncertainty core.pipeline core.llm",
    # Neither knows the other: who extracts claims must not know who verifies them.
    "core.claims.decomposition": f"{BASE} core.claims core.llm",
    "core.claims.verifiers": f"{BASE} core.claims core.llm",
    # What the two roads from labels to a decision share; its scores are in a file that several processes share.
    "core.calibration": f"{BASE} core.database",
    "core.conformal": f"{BASE} core.calibration core.conformal.labelled core.conformal.rag",
    "core.conformal.step": f"{BASE} core.calibration core.conformal core.conformal.labelled core.pipeline core.llm",
    "core.conformal.labelled": f"{BASE} core.calibration core.conformal core.llm core.pipeline",
    "core.conformal.rag": f"{BASE} core.calibration core.conformal core.conformal.labelled core.pipeline core.llm",
    # The names of the source documents are found here too, though they belong to the other two.
    "core.confidence": f"{BASE} core.calibration core.conformal core.conformal.rag core.uncertainty core.uncertainty.mc_dropout",
    # Lexical scores are those of the retriever, and a calibration is a file.
    "core.confidence.step": f"{BASE} core.files core.calibration core.confidence core.pipeline core.llm core.retrieval",
    "core.context_score": "core.errors",
    # What it counts over time is kept in a file that several processes share.
    "core.validation": f"{BASE} core.database",
    "core.llm": "core.errors core.files core.database core.text core.llm.backends",
    # A back end knows what all of them share; only the table of back ends knows them.
    "core.llm.backends": "core.errors core.llm core.llm.embedded core.llm.openai core.llm.ollama",
    "core.llm.embedded": "core.errors core.llm",
    "core.llm.openai": "core.errors core.llm core.text",
    "core.llm.ollama": "core.errors core.llm",
    "core.retrieval": "core.errors core.text core.llm",
    "core.sources": "core.errors core.files core.schema core.run core.text core.arrays core.stats core.spreadsheet",
    "core.pipeline": "core.errors core.schema core.rows core.run core.text core.presets core.llm core.retrieval core.sources",
    "core.own_rag": "core.errors core.manifest core.run core.text core.llm core.sources core.pipeline core.socket core.diagnostics",
    "core.charts": "core.text core.stats core.diagnosis core.socket",
    # Compares diagnostics, so it takes a report and knows none of them.
    "core.charts.signals": "core.text core.signals core.conditions core.charts core.report",
    "core.charts.trend": "core.text core.charts core.report",
    "core.charts.{d}": "core.text core.calibration core.arrays core.stats core.socket core.conditions core.context_score core.rows "
    "core.charts core.{d}",
    "core.report": "core.errors core.files core.html core.schema core.arrays core.run core.text core.stats core.severity core.spreadsheet core.sources core.diagnosis core.socket core.signals core.diagnostics "
    "core.reviews core.verdict core.worklist",
    # The pages of the reference are made of everything that a user can name.
    "core.report.reference": "core.schema core.socket core.diagnostics core.report core.cli",
    "core.cli": "core.errors core.files core.manifest core.run core.text core.presets core.llm core.retrieval core.sources core.pipeline core.severity core.diagnosis core.socket "
    "core.diagnostics core.report core.reviews core.serving core.cli.calibrate core.cli.validate",
    # A command that has no meaning without its diagnostics: it fills the store of a calibration.
    "core.cli.calibrate": "core.errors core.run core.text core.llm core.sources core.pipeline core.diagnosis core.socket "
    "core.diagnostics core.cli core.stats core.calibration core.confidence core.conformal core.conformal.labelled core.conformal.rag",
    # Its own business is one answer, not a run.
    "core.cli.validate": "core.errors core.text core.sources core.cli core.context_score core.validation",
    "core.__main__": "core.cli",
    "ui": "core.errors core.schema core.manifest core.run core.text core.spreadsheet core.llm core.retrieval core.sources "
    "core.pipeline core.presets core.charts core.charts.trend core.diagnosis core.socket core.diagnostics core.report core.reviews core.verdict core.conditions core.rows core.worklist core.whatif",
    "ui.sections.{d}": "ui core.errors core.run core.text core.sources core.pipeline core.llm core.diagnosis core.socket "
    "core.charts core.charts.{d} core.calibration core.conditions core.context_score core.rows core.{d} core.{d}.step core.{d}.diagnostic",
    "pages": "ui",
    "pages.{d}": "ui ui.sections.{d}",
    "dashboard": "ui",
}
ALLOWED = {
    part.format(d=name): {*allowed.format(d=name).split(), part.format(d=name)}
    for name in NAMES
    for part, allowed in sorted(RULES.items(), key=lambda rule: "{d}" not in rule[0])
}
# Libraries that only some parts may import.
LIBRARIES = {
    "streamlit": "ui pages dashboard",
    "plotly": "core.charts core.report ui",
    "sklearn": "core.stats",
    "numpy": "core ui",
    "pandas": "core ui",
    "scipy": "core",
}
# Imported inside functions, so that `import core` needs none of them and takes no time.
HEAVY = {
    "accelerate", "datasets", "gguf", "httpx", "jsonschema", "ollama", "openai", "opencc", "outlines_core",
    "py3langid", "ray", "rouge_score", "scipy.stats", "sentence_transformers", "sklearn", "Stemmer", "torch", "transformers",
}  # fmt: skip
# Modules that need such a library for what they define; so they are themselves imported inside functions.
HEAVY_MODULES = {"core.llm.embedded.arithmetic", "core.llm.embedded.prefixes"}
# Alembic itself loads these, from their files.
HEAVY_MODULES |= {module for path in PATHS if (module := module_of(path)).startswith("core.migrations.")}


MODULES = {module_of(path): path for path in PATHS}


def tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def imports(module: str, top_level_only: bool = False) -> frozenset[str]:
    """Every module or library that a module imports; names imported from a package count as its modules."""
    tree, found = tree_of(module), set()
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}: relative import"
            inside = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
            found |= inside or {node.module or ""}
    return frozenset(found)


def within(module: str, part: str) -> bool:
    return module == part or module.startswith(part + ".")


def part_of(module: str) -> str:
    return max((part for part in ALLOWED if within(module, part)), key=len, default="")


def test_every_module_has_a_part():
    assert [module for module in MODULES if not part_of(module)] == []
    assert part_of("core.influence.step") == "core.influence.step"
    assert part_of("core.claims.verifiers.judge") == "core.claims.verifiers"


def test_imports_go_the_ways_of_the_table():
    wrong = [
        f"{module} may not import {imported}"
        for module in MODULES
        for imported in sorted(imports(module) & MODULES.keys())
        if part_of(imported) not in ALLOWED[part_of(module)]
    ]
    assert not wrong


@pytest.mark.parametrize("name", NAMES)
def test_nobody_names_a_diagnostic_but_the_tuple_and_its_own_parts(name):
    own = (f"core.{name}", f"core.charts.{name}", f"ui.sections.{name}", f"pages.{name}")
    # Where a line of the table names it, everybody can see that.
    named = {part for part, allowed in RULES.items() if f"core.{name}" in allowed.split()}
    hidden = [
        (module, imported)
        for module in MODULES
        if module != "core.diagnostics" and not any(within(module, part) for part in own)
        if part_of(module) not in named
        for imported in imports(module)
        if any(within(imported, part) for part in own)
    ]
    assert hidden == []


def libraries(imported: frozenset[str]) -> set[str]:
    return {name.split(".")[0] for name in imported}


def test_libraries_stay_where_they_belong():
    wrong = [
        f"{module}: {library}"
        for module in MODULES
        for library in libraries(imports(module)) & LIBRARIES.keys()
        if not any(within(module, part) for part in LIBRARIES[library].split())
    ]
    assert not wrong


def test_heavy_libraries_load_inside_functions():
    wrong = []
    for module in (module for module in MODULES if module.startswith("core")):
        top = imports(module, top_level_only=True)
        if top & HEAVY_MODULES or (module not in HEAVY_MODULES and libraries(top) & HEAVY):
            wrong.append(module)
    assert not wrong


def test_no_circle_of_imports_has_more_than_five_files():
    """Whatever a module imports, inside functions too: who must be read together is a circle (Tarjan 1972)."""
    seen, lowest, open_, circles = {}, {}, [], []

    def visit(module):
        seen[module] = lowest[module] = len(seen)
        open_.append(module)
        for imported in sorted(imports(module) & MODULES.keys()):
            if imported not in seen:
                visit(imported)
            if imported in open_:
                lowest[module] = min(lowest[module], lowest[imported])
        if lowest[module] == seen[module]:
            start = open_.index(module)
            circles.append(open_[start:])
            del open_[start:]

    for module in MODULES:
        if module not in seen:
            visit(module)
    assert sum(map(len, circles)) == len(MODULES)
    assert [circle for circle in circles if len(circle) > 5] == []


@pytest.mark.parametrize("module", [m for m in MODULES if m.startswith("pages.")])
def test_pages_stay_short(module):
    assert MODULES[module].read_text(encoding="utf-8").count("\n") <= 90, "move logic to core and glue to ui"


def test_nothing_hostile_is_rendered_evaluated_or_unpickled():
    forbidden = ("eval", "exec", "pickle.load", "pickle.loads", "st.html", "components.html")
    calls = [
        (module, node)
        for module in MODULES
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.Call)
    ]
    # The style sheet is a file of ours; nothing of a run is in it.
    own_style = "st.html(library.ROOT / 'ui' / 'leadline.css')"
    wrong = [
        f"{module}:{node.lineno}"
        for module, node in calls
        if (ast.unparse(node.func) in forbidden and ast.unparse(node) != own_style)
        or any(k.arg == "unsafe_allow_html" for k in node.keywords)
    ]
    assert len(calls) > len(MODULES) and not wrong


def test_importing_the_engine_is_light():
    code = (
        "import sys, core, core.run, core.diagnostics, core.text, core.retrieval, core.llm, core.pipeline, core.sources\n"
        f"print(*sorted(set(sys.modules) & {HEAVY | {'streamlit', 'plotly'}!r}))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout.strip() == ""
