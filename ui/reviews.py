"""Reviews of the session's run: on disk beside a saved run, else in the session until it is saved.

Each person has their own; everybody sees those of the others.
"""

from __future__ import annotations

from collections.abc import Mapping

from core import reviews
from core.errors import InputError
from core.reviews import ByPerson, Review
from ui import library, people
from ui.state import session


def every() -> tuple[Mapping[str, Review], str | None]:
    """Return this person's reviews of the session's run by question, and why those on disk cannot be read."""
    found, problem = of_everybody()
    return found.get(people.name(), {}), problem


def of_everybody() -> tuple[ByPerson, str | None]:
    """Return the reviews of the run by person and question, and why those on disk cannot be read."""
    state, problem = session(), None
    stored: ByPerson = {}
    if state.run is None:
        return {}, None
    if _on_disk():
        try:
            stored = reviews.read_all(library.runs_folder(), state.run.whole_id)
        except InputError as error:
            problem = str(error)
    me, own = people.name(), _own()
    return ({**stored, me: {**stored.get(me, {}), **own}} if own else stored), problem


def put(query_id: str, review: Review, seen: Review | None) -> None:
    """Keep a review: on disk where the run is saved, else in the session.

    InputError where the disk refuses; the session then has it. ChangedMeanwhile where the same person wrote
    something else than ``seen`` in another tab, InputError where the person may not; then nothing is kept.
    """
    people.require("review")
    own = _own()
    if not _on_disk():
        own[query_id] = review
        return
    run = session().the_run
    try:
        # What this tab alone has was never on the disk, so it says nothing of what should be there.
        before = {} if seen is None or query_id in own else {query_id: seen}
        reviews.write_all(
            library.runs_folder(), run.whole_id, {**own, query_id: review}, before, people.name()
        )
        own.clear()
    except reviews.ChangedMeanwhile:
        raise
    except InputError:
        own[query_id] = review
        raise


def save() -> None:
    """Write what the session alone has; InputError where that fails, and the session keeps it."""
    run, own = session().run, _own()
    if run is not None and own:
        reviews.write_all(library.runs_folder(), run.whole_id, own, person=people.name())
        own.clear()


def unsaved() -> int:
    """Return how many reviews of the session's run are in this tab only."""
    return len(_own())


def _own() -> dict[str, Review]:
    state = session()
    return {} if state.run is None else state.reviews.setdefault(state.run.whole_id, {})


def _on_disk() -> bool:
    state = session()
    return state.saved and "run" in state.link
