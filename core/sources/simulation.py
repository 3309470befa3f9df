"""A seeded simulation with planted truth: real texts whose influences are known beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.arrays import constant_within, ranks_within, spearman_within
from core.errors import InputError
from core.run import Run
from core.sources.simulation_words import WORDS

ANSWER_WORDS = 20
CASES = ("aligned", "divergent", "ties", "empty", "inert", "redundant", "parametric", "position")
# Words replaced when an influential passage is left out: influences from 0.2 to 0.9.
_STRENGTHS = np.arange(4, 19)
_INERT = ("inert", "redundant", "parametric")

_RANGES: dict[str, tuple[float, float]] = {
    "queries": (10, 200),
    "passages": (3, 15),
    "seed": (0, 2**32 - 1),
    "influential": (1, 15),
    "repeats": (0, 50),
}


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """What to simulate.

    Attributes
    ----------
    queries : int
        Questions, 10 to 200.
    passages : int
        Passages per question, 3 to 15.
    seed : int
        0 or more; the same options give the same run.
    influential : int
        Passages per ordinary question that carry influence, 1 to ``passages``. The others have none.
    share_divergent : float
        Share of the ordinary questions whose influential passages are placed at random; in the
        others they come first, strongest first. In [0, 1].
    noise : float
        Chance of each word to change in every ablated answer and every repeat. In [0, 1].
    share_ties, share_empty, share_inert, share_redundant, share_parametric, share_position : float
        Shares of all questions where: the influential passages are equally strong; the baseline is
        empty; nothing changes the answer; the same, since two passages hold the same evidence (the
        closed-book answer differs); the same, since the model knows it (the closed-book answer is
        equal); influence follows the place in the prompt, ends first. Together at most 1; what is
        left are the ordinary questions.
    repeats : int
        Unablated repeats per question, 0 to 50: what the noise floor is measured from.

    Raises
    ------
    InputError
        An option outside its range; the message says which.
    """

    queries: int = 50
    passages: int = 10
    seed: int = 42
    influential: int = 3
    share_divergent: float = 0.4
    noise: float = 0.0
    share_ties: float = 0.1
    share_empty: float = 0.06
    share_inert: float = 0.06
    share_redundant: float = 0.06
    share_parametric: float = 0.06
    share_position: float = 0.1
    repeats: int = 3

    def __post_init__(self) -> None:
        for option in fields(self):
            low, high = _RANGES.get(option.name, (0, 1))
            value = getattr(self, option.name)
            whole = option.name in _RANGES
            kind = (int, np.integer) if whole else (int, float, np.integer, np.floating)
            if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
                number = "a whole number" if whole else "a number"
                raise InputError(f"{option.name} must be {number} from {low} to {high}, got {value!r}.")
        if self.influential > self.passages:
            raise InputError(
                f"influential must be at most the number of passages ({self.passages}), "
                f"got {self.influential}."
            )
        if sum(self.special_shares.values()) > 1 + 1e-9:
            raise InputError(
                f"The shares {', '.join(f'share_{name}' for name in self.special_shares)} "
                f"must sum to at most 1, got {sum(self.special_shares.values()):g}."
            )

    @property
    def special_shares(self) -> dict[str, float]:
        """Share of all questions for each case that is not ordinary."""
        return {case: getattr(self, f"share_{case}") for case in CASES[2:]}


def simulate(options: SimulationOptions | None = None) -> Run:
    """Make a run whose truth is known, marked as simulated; no LLM calls, well under a second.

    Every question gets a baseline answer of 20 different words. Leaving out a passage of planted influence m
    / 20 replaces m of them by other words, so that 1 - ROUGE-L F1 is exactly that. ``planted_influence`` is
    NaN in questions with an empty baseline, where it has no meaning. The planted case ``divergent`` says how
    passages were placed: at random, which agrees with the order of retrieval now and then.
    """
    options = options or SimulationOptions()
    rng = np.random.default_rng(options.seed)
    cases = _cases(options, rng)
    questions = [_Question(case, number, options, rng) for number, case in enumerate(cases, start=1)]
    planted = np.array([q.replaced for q in questions]) / ANSWER_WORDS
    queries = pd.DataFrame([q.row() for q in questions])
    queries["planted_rho"] = _planted_rho(planted)
    return Run.create(
        {
            "source": "simulation",
            "name": f"Simulated: {options.queries} questions × {options.passages}, seed {options.seed}",
            # As JSON can hold them, also where numpy's numbers were given.
            "options": {n: v.item() if isinstance(v, np.generic) else v for n, v in asdict(options).items()},
            "notes": ["Simulated data: no model answered, and no document was searched."],
        },
        queries=queries,
        passages=pd.DataFrame([row for q in questions for row in q.passage_rows()]),
        repeats=pd.DataFrame(
            [row for q in questions for row in q.repeat_rows()],
            columns=["query_id", "repeat", "answer", "answer_status"],
        ),
    )


def _cases(options: SimulationOptions, rng: np.random.Generator) -> list[str]:
    """Assign the planted cases: shares rounded together, so that they never exceed the questions."""
    special = options.special_shares
    ends = np.rint(np.cumsum(list(special.values())) * options.queries).astype(int)
    ends = np.minimum(ends, options.queries)
    counts = np.diff(ends, prepend=0)
    cases = [case for case, count in zip(special, counts, strict=True) for _ in range(count)]
    ordinary = options.queries - len(cases)
    n_divergent = round(options.share_divergent * ordinary)
    cases += ["divergent"] * n_divergent + ["aligned"] * (ordinary - n_divergent)
    return [cases[i] for i in rng.permutation(len(cases))]


def _strengths(case: str, options: SimulationOptions, rng: np.random.Generator) -> NDArray[np.float64]:
    """How many words each passage's removal replaces, by retrieval rank."""
    k, n = options.passages, options.influential
    result = np.zeros(k)
    if case == "empty":
        return np.full(k, np.nan)
    if case in _INERT:
        return result
    if case == "ties":
        # At least two are equal, and at least one is not, or there would be no order to compare.
        n = min(max(2, n), k - 1)
        result[rng.permutation(k)[:n]] = rng.choice(_STRENGTHS)
        return result
    strengths = np.sort(rng.choice(_STRENGTHS, size=n, replace=False))[::-1]
    places: dict[str, Callable[[], NDArray[np.int64]]] = {
        "aligned": lambda: np.arange(k),
        "divergent": lambda: rng.permutation(k),
        # Both ends of the prompt before its middle: 1st, last, 2nd, last but one …
        "position": lambda: np.array([i // 2 if i % 2 == 0 else k - 1 - i // 2 for i in range(k)]),
    }
    result[places[case]()[:n]] = strengths
    return result


class _Question:
    """One simulated question; drawing happens in the order of the methods' calls."""

    def __init__(self, case: str, number: int, options: SimulationOptions, rng: np.random.Generator) -> None:
        self.case, self.options, self.rng = case, options, rng
        self.query_id = f"s{number:03d}"
        order = rng.permutation(len(WORDS))
        self.words, self.fresh = order[:ANSWER_WORDS], order[ANSWER_WORDS:]
        self.topic = " and ".join(WORDS[i] for i in self.words[:2])
        self.answer = "" if case == "empty" else _sentence(self.words)
        self.replaced = _strengths(case, options, rng)

    def row(self) -> dict[str, Any]:
        closed_book: dict[str, str | None] = {"empty": None, "inert": None, "parametric": self.answer}
        return {
            "query_id": self.query_id,
            "question": f"Simulated question {self.query_id[1:]}: what do the passages say of {self.topic}?",
            "answer": self.answer,
            "answer_status": "answered" if self.answer else "empty",
            "closed_book_answer": closed_book.get(self.case, _sentence(self.fresh[:ANSWER_WORDS])),
            "planted_case": self.case,
        }

    def passage_rows(self) -> list[dict[str, Any]]:
        k = self.options.passages
        scores = np.sort(self.rng.exponential(5.0, k))[::-1].round(4)
        evidence = self.rng.permutation(k)[:2] if self.case == "redundant" else ()
        rows = []
        for i in range(k):
            m = 0 if np.isnan(self.replaced[i]) else int(self.replaced[i])
            lost = self.rng.permutation(ANSWER_WORDS)[:m]
            carried = range(ANSWER_WORDS) if i in evidence else sorted(lost)
            rows.append(
                {
                    "query_id": self.query_id,
                    "passage_id": f"p{i + 1}",
                    "title": f"Simulated document {i + 1}",
                    "text": self._passage_text([self.words[j] for j in carried]),
                    "retrieval_rank": i + 1.0,
                    "retrieval_score": float(scores[i]),
                    "slot": i + 1,
                    "ablated_answer": self._changed(lost),
                    "ablated_status": "answered" if self.answer else "empty",
                    "planted_influence": self.replaced[i] / ANSWER_WORDS,
                }
            )
        return rows

    def repeat_rows(self) -> list[tuple[str, int, str, str]]:
        status = "answered" if self.answer else "empty"
        nothing = np.zeros(0, dtype=np.int64)
        return [
            (self.query_id, repeat, self._changed(nothing), status)
            for repeat in range(1, self.options.repeats + 1)
        ]

    def _changed(self, lost: NDArray[np.int64]) -> str:
        """Return the answer with the words at the places ``lost``, and those hit by noise, replaced."""
        if not self.answer:
            return ""
        words = self.words.copy()
        hit = self.rng.random(ANSWER_WORDS) < self.options.noise
        hit[lost] = True
        words[hit] = self.rng.choice(self.fresh, size=int(hit.sum()), replace=False)
        return _sentence(words)

    def _passage_text(self, carried: list[np.int64]) -> str:
        filler = self.rng.choice(self.fresh, size=12, replace=False)
        parts = [_sentence(filler[:6])]
        if carried:
            parts.append(f"On {self.topic}: {_sentence(np.array(carried))}")
        return " ".join([*parts, _sentence(filler[6:])])


def _planted_rho(planted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Spearman's rho of retrieval rank and planted influence, shape (n,); NaN where constant."""
    n, k = planted.shape
    group = np.repeat(np.arange(n), k)
    order = np.tile(np.arange(1.0, k + 1), n)
    ranks = ranks_within(planted.ravel(), group, descending=True)
    rho, _ = spearman_within(order, ranks, group, n)
    return np.where(constant_within(planted.ravel(), group, n), np.nan, rho)


def _sentence(words: NDArray[np.int64]) -> str:
    return " ".join(WORDS[i] for i in words).capitalize() + "."
