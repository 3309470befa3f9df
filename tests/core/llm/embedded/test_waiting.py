"""How torch's threads wait, in fresh processes: OpenMP reads its settings once, when torch is loaded."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


def in_a_new_process(code, **settings):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=kept | settings,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.parametrize(
    "first", ["core", "core.cli", "core.llm.embedded.loading", "ui.library", "tests.conftest"]
)
def test_threads_do_not_spin_wherever_the_program_begins(first):
    code = f"import os, sys, {first}; print('torch' in sys.modules, os.environ['OMP_WAIT_POLICY'])"
    assert in_a_new_process(code).stdout.split() == ["False", "PASSIVE"]


def test_torch_is_told_in_time():
    # OpenMP itself says what it has read.
    code = "from core.llm.embedded.loading import choose_device; choose_device('auto')"
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in in_a_new_process(code, OMP_DISPLAY_ENV="TRUE").stderr


def test_what_the_user_has_set_stays():
    code = "import core, torch"
    said = in_a_new_process(code, OMP_DISPLAY_ENV="TRUE", OMP_WAIT_POLICY="ACTIVE").stderr
    assert "OMP_WAIT_POLICY = 'ACTIVE'" in said
