"""Whole files or none: what a killed writer leaves behind goes, what somebody is writing stays."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.files import path_problem, user_cache_dir, write_atomically

ROOT = Path(__file__).parents[2]
# A writer whose disk never ends, as `write_atomically` leaves it when it is killed there.
STUCK = """
import os, sys, time
from pathlib import Path
import core.files
core.files.os.fsync = lambda _: (print("writing", flush=True), time.sleep(60))
core.files.write_atomically(Path(sys.argv[1]), b"new")
"""


def leftovers(folder):
    return sorted(folder.glob(".leadline-*.tmp"))


def test_leftovers_of_a_killed_writer_go_when_they_are_old(tmp_path):
    command = [sys.executable, "-c", STUCK, tmp_path / "a"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as child:
        try:
            assert child.stdout.readline() == b"writing\n"
            (left,) = leftovers(tmp_path)
            old = time.time() - 2 * 3600
            os.utime(left, (old, old))
            write_atomically(tmp_path / "b", b"1")
            assert leftovers(tmp_path) == [left]  # its writer is at work
        finally:
            child.send_signal(signal.SIGKILL)
    os.utime(left)
    write_atomically(tmp_path / "b", b"2")
    assert leftovers(tmp_path) == [left]  # killed just now
    os.utime(left, (old, old))
    write_atomically(tmp_path / "b", b"3")
    assert leftovers(tmp_path) == [] and not (tmp_path / "a").exists()
    assert (tmp_path / "b").read_bytes() == b"3"


@pytest.mark.parametrize(
    ("platform", "variables", "place"),
    [
        ("linux", {}, "/home/ada/.cache/leadline"),
        ("linux", {"XDG_CACHE_HOME": "/c"}, "/c/leadline"),
        ("darwin", {"XDG_CACHE_HOME": "/c"}, "/home/ada/Library/Caches/leadline"),
        ("win32", {}, "/home/ada/AppData/Local/leadline/Cache"),
        ("win32", {"LOCALAPPDATA": "/c"}, "/c/leadline/Cache"),
        ("win32", {"LEADLINE_CACHE": "~/mine"}, "/home/ada/mine"),
    ],
)
def test_caches_are_where_each_platform_has_them(platform, variables, place, monkeypatch):
    for name in ("LEADLINE_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/ada", **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert user_cache_dir() == Path(place)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("größer/a b", None), ("a\0b", "holds a NUL character"), ("a\ud800", "holds half a surrogate pair")],
)
def test_a_text_that_can_be_no_path_is_told_why(text, problem):
    assert path_problem(text) == problem
