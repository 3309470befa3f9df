"""The choice of a file that is kept over many runs: a store of scores or of counts."""

from __future__ import annotations

import os

import streamlit as st

from core.errors import InputError
from ui import library


def choose(name: str, key: str) -> str:
    """Draw the field for the path of a file, by default of that name among the runs; "" where it is empty."""
    typed = st.text_input(
        "File",
        str(library.runs_folder() / name),
        key=key,
        help="On the machine that this app runs on. Reading makes no file; adding does.",
        persist_state="session",
    )
    path = typed.replace("\0", "").strip()  # no name of a file can hold it
    if not path:
        st.info("Name a file.", icon=":material/inbox:")
    return path


def is_there(path: str) -> bool:
    """Tell whether there is such a file, so that looking at it makes none; InputError for a folder."""
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; name a file in it.")
    if not os.path.lexists(path):
        st.info("There is no such file yet: adding makes it.", icon=":material/inbox:")
        return False
    return True
