"""The wheel: the checkout's `core` becomes the package `leadline`, the dashboard its part `leadline.app`.

A user's project often has a package named `core`, so the wheel must not. Source files keep the short absolute
imports, which a reader can follow and a linter checks; what is copied into the wheel has them rewritten. Only
names in code and documentation change (`core.run` becomes `leadline.run`), never data.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PACKAGE, APP = "leadline", "leadline/app"
# What is copied, from where to where, and which files of it: in the order of the text below.
TREES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "core": (PACKAGE, ("*",)),
    "ui": (f"{APP}/ui", ("*",)),
    "pages": (f"{APP}/pages", ("*.py",)),
    "sample_data": (f"{APP}/sample_data", ("*.json", "*.jsonl", "*.parquet", "*.csv", "*.md")),
}
FILES = ("dashboard.py", ".streamlit/config.toml")
EXTRAS = {
    "embedded": "requirements-embedded.txt",
    "scale": "requirements-scale.txt",
    "dev": "requirements-dev.txt",
}
# `core` and `ui` where they name the package: an import, a dotted name (also in a text), `python -m core`.
_NAMES = (
    (re.compile(r"python -m core(?=[\s`'\"])"), PACKAGE),
    (re.compile(r"\b(from|import) (core|ui)\b(?=[. \n])"), r"\1 @\2"),
    (re.compile(r"(?<![\w./@-])(core|ui)(?=\.[a-z_]+)"), r"@\1"),
    (re.compile(r"@core\b"), PACKAGE),
    (re.compile(r"@ui\b"), f"{PACKAGE}.app.ui"),
)


def renamed(source: str) -> str:
    r"""Return Python source with the package names of the wheel.

    >>> renamed("from core.run import Run\nfrom ui import state\nscore.run()\n`core.stats.holm`")
    'from leadline.run import Run\nfrom leadline.app.ui import state\nscore.run()\n`leadline.stats.holm`'
    """
    for pattern, name in _NAMES:
        source = pattern.sub(name, source)
    return source


def copied(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file of the wheel and its path in it."""
    for tree, (target, kinds) in TREES.items():
        for path in sorted((root / tree).rglob("*")):
            hidden = any(part.startswith((".", "__pycache__")) for part in path.relative_to(root).parts)
            if path.is_file() and not hidden and any(path.match(kind) for kind in kinds):
                yield path, f"{target}/{path.relative_to(root / tree).as_posix()}"
    for name in FILES:
        yield root / name, f"{APP}/{name}"


def requirements(path: Path) -> list[str]:
    """Return the requirements of a file, without those of other files that it names."""
    lines = (line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("-")]


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the rewritten files into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write them to a folder of their own, and name each to the builder."""
        if version == "editable":
            raise RuntimeError("A checkout needs no installation: run python -m core, or make run, in it.")
        root, staged = Path(self.root), Path(self.directory) / "staged"
        shutil.rmtree(staged, ignore_errors=True)
        for path, target in copied(root):
            place = staged / target
            place.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".py":
                place.write_text(renamed(path.read_text(encoding="utf-8")), encoding="utf-8")
            else:
                shutil.copyfile(path, place)
            build_data["force_include"][str(place)] = target


class CustomMetadataHook(MetadataHookInterface):
    """Takes dependencies and extras from the files that the checkout installs."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add them to the project's metadata."""
        root = Path(self.root)
        metadata["dependencies"] = requirements(root / "requirements.txt")
        metadata["optional-dependencies"] = {
            extra: requirements(root / f"requirements-{extra}.txt") for extra in EXTRAS
        }
