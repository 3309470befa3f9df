"""People's labels as the labels of a run: what a confidence is calibrated on and measures are ranked by."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pandas as pd

from core.errors import InputError
from core.reviews.review import ByPerson
from core.run import Run
from core.text.display import count


@dataclass(frozen=True, slots=True)
class Labels:
    """A run derived from another one with people's labels, and how many questions got one.

    ``n_tied`` questions are as they were: as many people say correct as incorrect.
    """

    run: Run
    n_labelled: int
    n_tied: int
    people: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What was done, for people."""
        ties = f" {count(self.n_tied, 'tie')} left out." if self.n_tied else ""
        return (
            f"{self.n_labelled:,} of {count(len(self.run.queries), 'question')} labelled by "
            f"{count(len(self.people), 'person', 'people')}.{ties}"
        )


def labelled(run: Run, people: ByPerson) -> Labels:
    """Return a derived run in which an answer is correct or not as most people who labelled it say.

    It goes before what the run said, and before a comparison with reference answers. Where as many say one as
    the other, the question keeps what it had. InputError where nobody labelled an answer of the run.

    Parameters
    ----------
    run : Run
        It stays as it is.
    people : mapping
        Reviews by person, then by question (`core.reviews.read_all`).
    """
    queries = run.queries.copy()
    correct, by = queries["correct"].astype("object"), queries["correct_by"].astype("object")
    said: dict[str, dict[str, bool]] = {}
    for person, reviews in people.items():
        for query_id, review in reviews.items():
            if review.correct is not None:
                said.setdefault(query_id, {})[person] = review.correct
    rows = {query_id: row for row, query_id in zip(queries.index, queries["query_id"], strict=True)}
    known = {query_id: votes for query_id, votes in said.items() if query_id in rows}
    if not known:
        raise InputError(
            "Nobody labelled an answer of this run as correct or incorrect; label some in reviews first."
        )
    n_tied = 0
    for query_id, votes in known.items():
        counted = Counter(votes.values())
        if counted[True] == counted[False]:
            n_tied += 1
            continue
        most = counted[True] > counted[False]
        correct[rows[query_id]] = most
        by[rows[query_id]] = ", ".join(sorted(who for who, vote in votes.items() if vote == most))
    queries["correct"], queries["correct_by"] = (
        correct.astype("boolean"),
        by.astype(queries["correct_by"].dtype),
    )
    names = tuple(sorted({who for votes in known.values() for who in votes}))
    derived = run.derive({"name": f"{run.name} (labelled in reviews)"}, queries=pd.DataFrame(queries))
    return Labels(derived, len(known) - n_tied, n_tied, names)
