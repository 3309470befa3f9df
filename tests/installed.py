"""The wheel in an empty environment, for tests of whatever is installed; `tests.conftest` offers the fixtures."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def python_of(page: Path) -> str:
    """Return the Python of a page, as who has installed the package writes it."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return re.sub(r"\bcore\b", "leadline", "\n".join(blocks))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    # Building leaves files behind; a clean copy also shows that nothing untracked is needed.
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".venv", ".git", "build", "__pycache__", ".*_cache", "runs", "tests", "bench"))  # fmt: skip
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel"], cwd=source, check=True, capture_output=True)  # fmt: skip
    (found,) = (source / "build/wheel").glob("*.whl")
    return found


@pytest.fixture(scope="session")
def project(wheel, tmp_path_factory):
    """A folder with another `core`, and how to run a command of the environment in it."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "core").mkdir()
    (folder / "core/__init__.py").write_text("raise RuntimeError('This is the package of the user.')\n")
    uv, environment = [sys.executable, "-m", "uv"], folder / "env"
    subprocess.run([*uv, "venv", "-q", "--python", sys.executable, str(environment)], check=True)
    python = str(environment / "bin/python")
    subprocess.run([*uv, "pip", "install", "-q", "--python", python, "-c", str(ROOT / "constraints.txt"), str(wheel)], check=True)  # fmt: skip

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("LEADLINE", "PYTHON"))
        }
        command = [str(environment / "bin" / words[0]), *words[1:]]
        return subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, check=False)

    return folder, run
