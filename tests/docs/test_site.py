"""The site: it builds offline without a warning, nothing on it is fetched from elsewhere, every page has its place."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NAV = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]


def in_nav(entry) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    values = entry.values() if isinstance(entry, dict) else entry
    return [path for value in values for path in in_nav(value)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` does; broken links and anchors are warnings, and warnings are errors."""
    folder = tmp_path_factory.mktemp("docs")
    shutil.copytree(DOCS, folder / "docs")
    shutil.copy(ROOT / "zensical.toml", folder)
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "No issues found" in done.stderr, done.stdout + done.stderr
    return folder / "build/site"


def test_every_page_is_in_the_menu_once():
    pages = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
    assert sorted(in_nav(NAV)) == pages, "name the page in zensical.toml"


def test_every_page_is_built_and_has_one_heading_of_the_first_level(site):
    for page in in_nav(NAV):
        html = (site / page).with_suffix(".html").read_text(encoding="utf-8")
        assert len(re.findall(r"<h1\b", html)) == 1, page


def test_nothing_is_fetched_from_elsewhere(site):
    for path in site.rglob("*.html"):
        html = path.read_text(encoding="utf-8")
        fetched = re.findall(
            r"<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=[\"']?(https?:[^\s\"'>]+)", html
        )
        assert not fetched, path.name
        # A diagram would make the browser load its library from elsewhere.
        assert 'class="mermaid"' not in html, path.name
    for path in site.rglob("*.css"):
        assert not re.findall(r"url\([\"']?https?:", path.read_text(encoding="utf-8")), path.name


def test_a_broken_link_or_anchor_fails_the_build(tmp_path):
    (tmp_path / "docs").mkdir()
    config = "[project]\nsite_name = 'x'\n"
    (tmp_path / "zensical.toml").write_text(config, encoding="utf-8")
    (tmp_path / "docs/index.md").write_text("# X\n\n[there](#nowhere)\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode != 0 and "anchor does not exist" in done.stderr
