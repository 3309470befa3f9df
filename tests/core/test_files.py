"""Whole files or none: what a killed writer leaves behind goes, what somebody is writing stays."""

import errno
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from core.files import kept_folder, path_problem, read_file, user_cache_dir, write_atomically

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


def test_a_leftover_goes_after_more_than_an_hour(tmp_path, monkeypatch):
    left = tmp_path / ".leadline-a.tmp"
    for age, stays in ((3_600, True), (3_601, False)):
        left.touch()
        os.utime(left, (1_000, 1_000))
        monkeypatch.setattr("core.files.time.time", lambda age=age: 1_000.0 + age)
        write_atomically(tmp_path / "b", b"1")
        assert left.exists() == stays


def test_only_a_file_is_read_and_up_to_the_limit(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"12345")
    refused = {
        tmp_path: "it is a folder",
        tmp_path / "pipe": "it is a pipe, not a file",
        Path(os.devnull): "it is a device, not a file",
        "a\0b": "its name holds a NUL character",
    }
    for path, said in refused.items():
        with pytest.raises(OSError) as raised:
            read_file(path, 10)
        assert raised.value.strerror == said
    assert read_file(tmp_path / "file", 5) == b"12345"
    with pytest.raises(OSError) as raised:
        read_file(tmp_path / "file", 4)
    assert raised.value.strerror == "it is larger than the limit of 0 MB"


@pytest.mark.parametrize(
    ("number", "kept"),
    [(errno.ENOLCK, True), (errno.EBADF, True), (errno.EOPNOTSUPP, True), (errno.EIO, False)],
)
def test_a_folder_that_cannot_be_locked_is_used_all_the_same(number, kept, tmp_path, monkeypatch):
    """Some network file systems have no locks."""

    def flock(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("core.files.fcntl.flock", flock)
    with nullcontext() if kept else pytest.raises(OSError), kept_folder(tmp_path / "r"):
        write_atomically(tmp_path / "r" / "a", b"1")
    assert (tmp_path / "r" / "a").exists() == kept
