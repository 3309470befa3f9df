"""The recorded run through the offline verifier: how long it takes, and what becomes of its bare values."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from core.claims.decomposition.split import split_claims
from core.claims.self_contained import bare_value, self_contained
from core.claims.types import Claim
from core.claims.verifiers.offline import OfflineVerifier
from core.llm.embeddings import SentenceEmbedder
from core.run import Run
from core.text.words import words

RECORDED = Path(__file__).resolve().parents[1] / "sample_data" / "recorded_run"
QUESTIONS = 60


class Answer(NamedTuple):
    """A question of the run with its passages."""

    question: str
    answer: str
    references: tuple[str, ...]
    passages: list[str]
    gold: np.ndarray  # bool, one for each passage


def answers(run: Run) -> list[Answer]:
    grouped = dict(iter(run.passages.groupby("query_id", sort=False)))
    found = []
    for row in run.queries.itertuples():
        here = grouped[row.query_id]
        references = () if row.reference_answers is None else tuple(map(str, row.reference_answers))
        gold = here["is_gold"].fillna(False).to_numpy(dtype=bool)
        found.append(Answer(row.question, row.answer, references, here["text"].tolist(), gold))
    return found


def claims_of(answer: Answer) -> list[Claim]:
    return [self_contained(claim, answer.question) for claim in split_claims(answer.answer)]


def print_run(n_questions: int) -> None:
    every = answers(Run.load(RECORDED))
    every = every if n_questions == QUESTIONS else every[:n_questions]
    start = time.perf_counter()
    verifier = OfflineVerifier(SentenceEmbedder())
    verifier.support(["a word"], ["a word"])
    loaded = time.perf_counter()
    claims = [claims_of(answer) for answer in every[:n_questions]]
    decomposed = time.perf_counter()
    verifier.support_many(_groups(every, claims))
    done = time.perf_counter()
    print(f"{len(claims)} questions of the recorded run: {sum(map(len, claims))} claims by rules "
          f"{decomposed - loaded:.2f} s, verified {done - decomposed:.1f} s; the model loaded before that "
          f"{loaded - start:.1f} s; together {done - start:.1f} s")  # fmt: skip
    _print_bare(every, verifier)


def _groups(
    every: Iterable[Answer], claims: Iterable[Sequence[Claim]]
) -> list[tuple[Sequence[str], Sequence[str]]]:
    return [([c.text for c in some], a.passages) for a, some in zip(every, claims, strict=False)]


def _print_bare(every: Sequence[Answer], verifier: OfflineVerifier) -> None:
    """Count bare values by whether they hold a reference answer, and whether a passage supports them."""
    known = [answer for answer in every if answer.references and answer.gold.any()]
    claims = [[c.text for c in claims_of(answer) if bare_value(c.text)] for answer in known]
    values = [[bare_value(text)[1] for text in some] for some in claims]
    right = [
        [any(_has(v, r) for r in a.references) for v in some] for a, some in zip(known, values, strict=True)
    ]
    print("Its bare values (right: one of the reference answers is in it), at 0.5:")
    for title, texts in (("behind the question", claims), ("the value alone", values)):
        judged = verifier.support_many([(some, a.passages) for a, some in zip(known, texts, strict=True)])
        for where in ("gold", "any"):
            counts = Counter(
                (good, bool((row[answer.gold] if where == "gold" else row).max() >= 0.5))
                for answer, goods, rows in zip(known, right, judged, strict=True)
                for good, row in zip(goods, rows, strict=True)
            )
            cells = [
                f"{name} {counts[good, True]} supported, {counts[good, False]} not"
                for name, good in (("right", True), ("wrong", False))
            ]
            print(f"   {title}, {where} passage: {'; '.join(cells)}")


def _has(value: str, reference: str) -> bool:
    ours, theirs = words(value), words(reference)
    return any(ours[i : i + len(theirs)] == theirs for i in range(len(ours)))
