"""Whether people who reviewed the same questions agree, and on which they do not."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from core.reviews.review import LABELS, ByPerson, Review
from core.stats import Kappa, cohen_kappa

WHAT = ("status", *LABELS)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two people agree on status, correct or grounded of the questions where both gave it."""

    first: str
    second: str
    what: str
    kappa: Kappa


def agreements(people: ByPerson) -> tuple[Agreement, ...]:
    """Return the agreement of each pair of people, by name, on status and on each label that either gave.

    >>> one = {"q1": Review("reviewed")}
    >>> notes = {"Ada": {**one, "q2": Review("flagged")}, "Ben": one}
    >>> [(one.what, one.kappa.n, one.kappa.reason) for one in agreements(notes)]
    [('status', 1, 'fewer than 2 cases judged by both')]
    """
    found = []
    for first, second in combinations(sorted(people), 2):
        for what in WHAT:
            a, b = (
                {
                    query_id: given
                    for query_id, one in people[who].items()
                    if (given := _given(one, what)) is not None
                }
                for who in (first, second)
            )
            if a or b:
                both = [query_id for query_id in a if query_id in b]
                kappa = cohen_kappa([a[one] for one in both], [b[one] for one in both])
                found.append(Agreement(first, second, what, kappa))
    return tuple(found)


def disputed(people: ByPerson) -> frozenset[str]:
    """Return the questions to which people gave different statuses or labels.

    >>> flagged = Review("flagged")
    >>> disputed({"Ada": {"q1": Review("reviewed")}, "Ben": {"q1": flagged, "q2": flagged}})
    frozenset({'q1'})
    """
    said: dict[tuple[str, str], set[str | bool]] = {}
    for reviews in people.values():
        for query_id, review in reviews.items():
            for what in WHAT:
                if (given := _given(review, what)) is not None:
                    said.setdefault((query_id, what), set()).add(given)
    return frozenset(query_id for (query_id, _), values in said.items() if len(values) > 1)


def _given(review: Review, what: str) -> str | bool | None:
    """Return what a review says; an open one has a note at most, no status."""
    value: str | bool | None = getattr(review, what)
    return None if value == "open" else value
