"""A newcomer's way through each tutorial: its Python and its commands, in the order of the page, one folder."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from core.cli.app import main

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs/tutorials").glob("*.md")), ROOT / "docs/how-to/threshold.md"]
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What asks a model has its own tests; here a recorded run takes the place of its result.
ASKS = {"analyze", "plan", "calibrate"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_page_can_be_followed(path, tmp_path, monkeypatch, capsys):
    shutil.copytree(ROOT / "sample_data", tmp_path / "sample_data")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    blocks = BLOCK.findall(path.read_text(encoding="utf-8"))
    assert blocks
    for kind, code in blocks:
        if kind == "python":
            exec(compile(code, str(path), "exec"), namespace)
            continue
        for line in re.findall(r"^python -m core (.*)$", code, re.MULTILINE):
            words = shlex.split(line, comments=True)
            if words[0] in ASKS:
                if "--out" in words:
                    out = words[words.index("--out") + 1]
                    shutil.copytree("sample_data/worked_losses", out, dirs_exist_ok=True)
            else:
                assert main(words) == 0, line
                assert capsys.readouterr().out
