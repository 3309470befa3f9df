"""`python -m core` runs the command line, and nothing else does."""

import runpy
from pathlib import Path

import pytest

import core.cli


def test_a_process_that_only_reads_the_module_runs_no_command(monkeypatch):
    """Processes started for a part of the work read the main module under the name ``__mp_main__``."""
    commands = []
    monkeypatch.setattr(core.cli, "main", lambda: commands.append("main"))
    path = str(Path(core.cli.__file__).parents[1] / "__main__.py")
    runpy.run_path(path, run_name="__mp_main__")
    assert commands == []
    with pytest.raises(SystemExit):
        runpy.run_path(path, run_name="__main__")
    assert commands == ["main"]
