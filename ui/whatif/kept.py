"""What the bench keeps: the change of each question, in the session and in the address; versions on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import streamlit as st

from core.errors import InputError
from core.whatif import versions
from core.whatif.asking import Version
from core.whatif.change import Change, read_change, read_object
from ui import library
from ui.state import session

PARAMETER = "change"
LONGEST = 1_500  # characters of a change in the address; texts that are added or edited soon have more


def change(query_id: str) -> Change:
    """Return the change of a question as it is on the bench."""
    found: Change = _changes().get(query_id, Change())
    return found


def put(query_id: str, make: Callable[[], Change]) -> None:
    """Put ``make()`` on the bench; what makes no change is said, and the one before stays."""
    kept = session().kept
    try:
        _changes()[query_id] = make()
        kept["whatif.problem"] = None
        kept["whatif.moved"] = True
        # Widgets that show a part of the change show the new one.
        kept["whatif.turn"] = kept.get("whatif.turn", 0) + 1
    except InputError as error:
        kept["whatif.problem"] = (query_id, str(error))


def problem(query_id: str) -> str | None:
    """Return why the last thing that was tried with a question is no change."""
    of, why = session().kept.get("whatif.problem") or ("", None)
    return why if of == query_id else None


def key(name: str, query_id: str) -> str:
    """Return the key of a widget that shows a part of a question's change; a new one where that changed."""
    return f"whatif_{name}_{session().kept.get('whatif.turn', 0)}_{query_id}"


def follow(query_id: str) -> bool:
    """Take the change that the address names, unless it says what it said before; return whether it did.

    The browser may send an address that is one step behind what a callback has put on the bench.
    """
    kept, asked = session().kept, st.query_params.get(PARAMETER)
    moved = kept.pop("whatif.moved", False)
    if moved or not asked or asked == kept.get("whatif.said"):
        return False
    kept["whatif.said"] = asked
    try:
        given = read_object(asked, "a change")
        if not isinstance(given, dict) or given.pop("of", None) != query_id:
            return False
    except InputError as error:
        kept["whatif.problem"] = (query_id, str(error))
        return True
    put(query_id, lambda: read_change(given))
    kept.pop("whatif.moved", None)
    return True


def write(query_id: str) -> bool:
    """Let the address name the change of the open question; False where it is too long for that."""
    found, params = change(query_id), st.query_params
    text = json.dumps({"of": query_id, **found.to_dict()}, ensure_ascii=False, separators=(",", ":"))
    fits = len(text) <= LONGEST
    wanted = text if fits and found != Change() else None
    session().kept["whatif.said"] = wanted
    if wanted is None and PARAMETER in params:
        del params[PARAMETER]
    elif wanted is not None and params.get(PARAMETER) != wanted:
        params[PARAMETER] = wanted
    return fits


def every(query_id: str) -> tuple[list[Version], str | None]:
    """Return the versions of a question, newest first, and why those on disk cannot be read."""
    state, why = session(), None
    found: list[Version] = []
    if _on_disk():
        try:
            found = list(versions.read(library.runs_folder(), state.the_run.run_id))
        except InputError as error:
            why = str(error)
    both = [*found, *_own()]
    return [one for one in reversed(both) if one.query_id == query_id], why


def add(version: Version) -> None:
    """Keep a version: on disk where the run is saved, else, or where the disk refuses, in the session."""
    own = _own()
    own.append(version)
    if _on_disk():
        versions.add(library.runs_folder(), session().the_run.run_id, own)
        own.clear()


def _changes() -> dict[str, Any]:
    found: dict[str, Any] = session().kept.setdefault(f"whatif.changes {session().the_run.run_id}", {})
    return found


def _own() -> list[Version]:
    found: list[Version] = session().kept.setdefault(f"whatif.versions {session().the_run.run_id}", [])
    return found


def _on_disk() -> bool:
    return session().saved and "run" in session().link
