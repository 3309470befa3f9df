"""Where the answers of a simulated run are lost: planted stages, and answers to the fixes that show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.sources.simulation_tables import Tables
from core.sources.simulation_truth import Truth

TRIED = 200  # questions of a run whose fixes were tried
# Stages by the key of their `core.socket.Number`, and the arms that make an answer lost there correct.
_RETRIEVAL, _PLACE = "n_lost_not_retrieved", "n_lost_placed_too_late"
_FIXED_BY: Mapping[str, tuple[str, ...]] = {
    _RETRIEVAL: ("gold_added", "gold_alone", "gold_sentences"),
    _PLACE: ("gold_first", "gold_alone", "gold_sentences"),
    "n_lost_distracted": ("gold_alone", "gold_sentences"),
    "n_lost_buried_in_its_passage": ("gold_sentences",),
    "n_lost_not_read": (),
}
_ANYWHERE = tuple(stage for stage in _FIXED_BY if stage not in (_RETRIEVAL, _PLACE))
_GROUNDED, _LUCK, _WITHOUT = "n_kept_grounded", "n_kept_by_luck", "n_kept_without_the_passages_too"
_UNKNOWN, _UNSPLIT = "n_lost_not_known", "n_kept_correct_not_split"
_LUCKY = 0.15


def draw_stages(truth: Truth, tried: int, rng: np.random.Generator) -> NDArray[np.str_]:
    """Plant a stage in each answer, (n,); behind the first ``tried`` questions it is not known."""
    found = np.where(truth.correct, _UNSPLIT, _UNKNOWN).astype(object)
    u = rng.random(len(found))
    for i in range(min(tried, len(found))):
        if truth.correct[i]:
            found[i] = _LUCK if u[i] < _LUCKY else _GROUNDED
        else:
            first = {-1: (_RETRIEVAL,), 0: ()}.get(int(truth.gold[i]), (_PLACE,))
            stages = (*first, *_ANYWHERE)
            found[i] = stages[int(u[i] * len(stages))]
    found[truth.correct & (truth.case == "parametric")] = _WITHOUT
    return found.astype(str)


def counted_stages(stage: NDArray[np.str_]) -> dict[str, NDArray[np.bool_]]:
    """Return for each stage which answers are there, and how many are lost at all."""
    kept = (_GROUNDED, _LUCK, _WITHOUT, _UNSPLIT)
    at = {name: stage == name for name in (*_FIXED_BY, _UNKNOWN, *kept)}
    return {"n_lost": ~np.isin(stage, kept), **at}


def tried_fixes(tables: Tables, stage: NDArray[np.str_]) -> dict[str, pd.DataFrame]:
    """Return the tables ``gold`` and ``arms`` of the first questions of a block."""
    gold, arms = [], []
    for i in range(min(TRIED, tables.n)):
        place, right = int(tables.truth.gold[i]), tables.reference_sentence(i)
        ids = list(tables.passage_ids)
        own = ids[place] if place >= 0 else "gold"
        text = None if place >= 0 else f"On {tables.topics[i]}: {right}"
        gold.append(
            {"query_id": tables.ids[i], "passage_id": own, "text": text, "evidence": [right.rstrip(".")]}
        )
        wrong = tables.unrelated(i) if tables.truth.correct[i] else tables.answers[i]
        for arm, shown in _prompts(ids, place, own):
            asked, correct = (
                shown != ids or arm == "again",
                _is_correct(arm, stage[i], tables.truth.correct[i]),
            )
            answer = (tables.answers[i] if tables.truth.correct[i] else right) if correct else wrong
            arms.append(
                {
                    "query_id": tables.ids[i],
                    "arm": arm,
                    "repeat": 1,
                    "prompt": "changed" if asked else "unchanged",
                    "passages": shown,
                    "gold_by": "labelled",
                    "answer": answer if asked else None,
                    "answer_status": ("answered" if answer else "empty") if asked else None,
                }
            )
    return {"gold": pd.DataFrame(gold), "arms": pd.DataFrame(arms)}


def _is_correct(arm: str, stage: str, was: bool) -> bool:
    return not (stage == _LUCK and arm == "placebo") if was else arm in _FIXED_BY[stage]


def _prompts(ids: list[str], place: int, own: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each arm with the passages of its prompt; the gold passage is at ``place``, -1 for none."""
    others = [one for one in ids if one != own]
    dealt = [*others[1:], others[0]]
    yield "gold_added", ids if place >= 0 else [*ids[:-1], own]
    yield "gold_first", [own, *others] if place >= 0 else ids
    yield "gold_alone", [own]
    yield "gold_sentences", [own]
    yield "fewer", ids[: (len(ids) + 1) // 2]
    yield "reversed", ids[::-1]
    yield "placebo", [*dealt[:place], own, *dealt[place:]] if place >= 0 else dealt
    yield "again", ids
