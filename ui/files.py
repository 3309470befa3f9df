"""Files that are kept over many runs, stores of scores or of counts: chosen by name, never by path.

A name means a file in a folder of its kind among the runs. What lies there and is not ours is never opened
for writing: neither a file of another program, nor an empty one, nor a store of an older form.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import streamlit as st

from core.errors import InputError
from core.text.display import shorten
from ui import library, people

STORES, METRICS = "stores", "metrics"
# The table by which a file of ours is known, and columns that those of other programs and older ones lack.
_OURS = {
    STORES: ("calibration store", "calibration_scores", {"score_name", "model", "prompt", "retriever"}),
    METRICS: ("metrics store", "observations", {"at", "passed", "answer_key"}),
}
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_ENDING = ".db"


def path_of(folder: str, name: str) -> Path:
    """Return the file of that name; InputError for what is no name, or where another file has it."""
    if not _NAME.fullmatch(name):
        raise InputError(
            "A name has 1 to 64 letters, digits, dots, hyphens and underscores and does not begin with a dot "
            f"or hyphen, got {shorten(repr(name))}."
        )
    path = library.runs_folder() / folder / f"{name}{_ENDING}"
    what, table, columns = _OURS[folder]
    if is_there(path):
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
                found = {column for _, column, *_ in db.execute(f"PRAGMA table_info({table})")}
        except (
            sqlite3.Error,
            UnicodeDecodeError,
        ) as error:  # it quotes the file
            raise InputError(f"{name} cannot be read as a {what} ({error}); choose another name.") from error
        if not columns <= found:
            raise InputError(
                f"{name} is there already and is no {what} of this version, so it stays as it is; choose "
                "another name, or convert a copy on the command line."
            )
    return path


def is_there(path: Path) -> bool:
    """Tell whether there is such a file, so that looking at it makes none."""
    return path.exists() or path.is_symlink()


def choose(folder: str, title: str, key: str, usual: str | None = None, about: str = "") -> Path | None:
    """Draw the choice of a file by name, at first the usual one; None for none. InputError as `path_of`."""
    names = {usual, st.session_state.get(key), *_existing(folder)} - {None, ""}
    name = st.selectbox(
        title,
        sorted(map(str, names)),
        index=None if usual is None else sorted(map(str, names)).index(usual),
        key=key,
        placeholder="None",
        accept_new_options=True,
        persist_state="session",
        help=f"{about} A new name makes a new file when something is added.".strip(),
    )
    if people.signs_in():
        st.caption("Everyone who signs in here can read it.")
    return path_of(folder, name.strip()) if name and name.strip() else None


def _existing(folder: str) -> list[str]:
    paths = (library.runs_folder() / folder).glob(f"*{_ENDING}")
    return [path.stem for path in paths if _NAME.fullmatch(path.stem)]
