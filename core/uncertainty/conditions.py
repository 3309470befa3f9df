"""What the context test does to a question's passages: supporting ones left out, unrelated ones added."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from core.run import Run
from core.schema import CONTEXTS
from core.text.abstention import answer_status
from core.text.overlap import rouge_l
from core.text.words import words

UNCHANGED, WITHOUT, ADDED = CONTEXTS
GREEDY = "baseline"  # the sample_id of an answer at temperature 0
SUPPORTED_FROM = 0.5  # probability from which a passage counts as supporting a claim of the answer


class Shown(NamedTuple):
    """A passage in a prompt: its number there, its question and id, its text."""

    label: int
    query_id: str
    passage_id: str
    title: str
    text: str


@dataclass(frozen=True)
class Design:
    """The prompts of the context test.

    ``tests``: by question, in the run's order, and condition, the passages in prompt order. ``passed_over``:
    questions that were looked at and cannot be tested, by reason.
    """

    tests: Mapping[str, Mapping[str, tuple[Shown, ...]]]
    passed_over: Mapping[str, int]


def designed(run: Run, n: int, seed: int = 0, guess: bool = False) -> Design:
    """Return the conditions of the first n questions that can be tested.

    Left out is every passage that supports the answer: those known to be gold; where that is not known of all
    passages, those with a probability of at least 0.5 for a claim of the answer; where no claims were
    verified, the one without which the answer changes most. The others keep their labels.

    Added are as many passages as the question has, drawn from questions that share no passage with it, none
    of which holds the answer or a reference answer word for word; at places that are drawn, too. Drawn by the
    seed and the question's id, so that they do not depend on n.

    ``guess`` takes questions that were not asked yet, as if the first passage supported their answer: to
    estimate the cost.
    """
    tests: dict[str, Mapping[str, tuple[Shown, ...]]] = {}
    passed_over: Counter[str] = Counter()
    if n < 1:
        return Design(tests, passed_over)
    passages = run.passages.sort_values(["slot", "retrieval_rank"], kind="stable")
    passages = passages.reset_index(drop=True).assign(
        title=lambda frame: frame["title"].fillna(""), text=lambda frame: frame["text"].fillna("")
    )
    places = passages.groupby("query_id", sort=False).indices
    supported, draw = _by_claims(run), _unrelated(passages)
    asked = run.queries[["query_id", "answer", "reference_answers"]]
    for query_id, answer, references in asked.itertuples(index=False):
        if len(tests) == n:
            break
        answered = isinstance(answer, str) and answer_status(answer) == "answered"
        own = passages.iloc[places.get(query_id, [])]
        if answered:
            supporting = _supporting(own, answer, supported.get(query_id))
        elif guess and not isinstance(answer, str):
            supporting = set(own["passage_id"].iloc[:1])
        else:
            passed_over["no_answer"] += 1
            continue
        shown = [_shown(label, row) for label, row in enumerate(own.to_dict("records"), start=1)]
        rest = tuple(one for one in shown if one.passage_id not in supporting)
        if not supporting or not rest:
            passed_over["nothing_left" if supporting else "no_support"] += 1
            continue
        rng = np.random.default_rng([seed, zlib.crc32(str(query_id).encode())])
        added = draw(own, [*([answer] if answered else []), *(references or ())], rng)
        if len(added) < len(own):
            passed_over["few_unrelated"] += 1
            continue
        tests[query_id] = {UNCHANGED: tuple(shown), WITHOUT: rest, ADDED: _mixed(shown, added, rng)}
    return Design(tests, dict(passed_over))


def _by_claims(run: Run) -> Mapping[str, set[str]]:
    """Return the passages that support a claim of the answer, by question with a verified one."""
    claims = run["claims"]
    own = claims.loc[claims["side"].isna() | (claims["side"] == "answer"), ["query_id", "claim_id"]]
    support = run["support"].merge(own, on=["query_id", "claim_id"])
    support = support[support["probability"].notna()]
    found: dict[str, set[str]] = {query_id: set() for query_id in support["query_id"].unique()}
    enough = support[support["probability"] >= SUPPORTED_FROM]
    for query_id, passage_id in zip(enough["query_id"], enough["passage_id"], strict=True):
        found[query_id].add(passage_id)
    return found


def _supporting(own: pd.DataFrame, answer: str, supported: set[str] | None) -> set[str]:
    """Return the ids of the passages that support an answer; see `designed`."""
    gold = own["is_gold"]
    if gold.notna().all() or gold.any():
        return set(own.loc[gold.fillna(False).astype(bool), "passage_id"])
    if supported is not None:
        return supported
    changed = [
        1 - rouge_l(answer, ablated).f1 if isinstance(ablated, str) else known
        for ablated, known in zip(own["ablated_answer"], own["influence_score"], strict=True)
    ]
    influence = np.nan_to_num(np.array(changed, dtype=np.float64))
    return {own["passage_id"].iloc[int(influence.argmax())]} if influence.max(initial=0) > 0 else set()


def _shown(label: int, row: Mapping[Any, Any]) -> Shown:
    return Shown(label, row["query_id"], row["passage_id"], row["title"], row["text"])


def _unrelated(
    passages: pd.DataFrame,
) -> Callable[[pd.DataFrame, Sequence[str], np.random.Generator], list[Shown]]:
    """Return a function that draws as many unrelated passages as a question has; fewer where there are none.

    Texts tell which passages are the same: in many files an id is one only within its question.
    """
    texts = pd.factorize(passages["text"])[0]
    questions = pd.factorize(passages["query_id"])[0]
    first = ~passages["text"].duplicated().to_numpy() & (passages["text"] != "").to_numpy(dtype=bool)

    def draw(own: pd.DataFrame, answers: Sequence[str], rng: np.random.Generator) -> list[Shown]:
        related = questions[np.isin(texts, texts[own.index])]
        free = rng.permutation(np.flatnonzero(first & ~np.isin(questions, related)))
        said = [found for found in map(_spaced, answers) if found.strip()]
        found: list[Shown] = []
        for row in free:
            if len(found) == len(own):
                break
            one = _shown(0, passages.iloc[row].to_dict())
            if not any(answer in _spaced(f"{one.title} {one.text}") for answer in said):
                found.append(one)
        return found

    return draw


def _spaced(text: str) -> str:
    return f" {' '.join(words(text))} "


def _mixed(own: Sequence[Shown], added: Sequence[Shown], rng: np.random.Generator) -> tuple[Shown, ...]:
    """Return both in prompt order, numbered anew; the question's own keep their order."""
    n = len(own) + len(added)
    places = set(rng.choice(n, len(added), replace=False).tolist())
    of_own, of_added = iter(own), iter(added)
    return tuple(next(of_added if i in places else of_own)._replace(label=i + 1) for i in range(n))
