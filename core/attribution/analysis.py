"""Attribution of every answer of a run, and how far each can be believed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from core.arrays import Floats
from core.attribution.attribute import attribute
from core.attribution.measured import (
    LOGPROB,
    RANGES,
    ROUGE,
    SUPPORTS,
    Found,
    Plan,
    claim_game,
    own_claims,
    play,
    recorded,
)
from core.attribution.methods import BANZHAF
from core.errors import check_ranges
from core.rows import dicts_of
from core.run import Run
from core.stats import mean_interval
from core.text.overlap import rouge_l

_QUERY = (
    "query_id", "question", "k", "reason", "lds", "lds_low", "lds_high", "concordance", "ceiling",
    "n_test", "readable", "reading", "settled", "n_calls", "n_failed", "n_either", "n_both",
    "n_near_duplicates", "drop_1", "drop_1_random", "drop_3", "drop_3_random", "drop_5",
    "drop_5_random", "passage_share", "slot_share", "slot_p_value", "swap",
)  # fmt: skip
_PASSAGE = (
    "query_id", "passage_id", "slot", "title", "score", "low", "high", "shapley", "shapley_low",
    "shapley_high", "passage_effect", "slot_effect",
)  # fmt: skip
_PAIR = (
    "query_id", "first", "second", "first_slot", "second_slot", "interaction", "low", "high", "p_value",
    "either",
)  # fmt: skip
_GROUP = ("query_id", "slots", "near_duplicates", "together", "alone")
_CLAIM = (
    "query_id", "claim_id", "text", "passage_id", "slot", "score", "low", "high", "support", "is_first",
    "disagrees",
)  # fmt: skip


READABLE, UNREADABLE, UNTOLD = "can be read", "do not read", "too few subsets to tell"


@dataclass(frozen=True, slots=True)
class AttributionAnalysis:
    """Attribution of a run, replayed on the subsets that were measured; no LLM calls.

    Attributes
    ----------
    queries : DataFrame
        One row per question, in the run's order: ``query_id, question, k``; ``reason`` why the LDS is
        undefined; ``lds, lds_low, lds_high, concordance, ceiling, n_test, readable`` as in
        `core.attribution.faithfulness.Faithfulness`, the latter in words as ``reading``;
        ``settled`` places, ``n_calls``, ``n_failed``;
        ``n_either`` and ``n_both`` pairs, missing where too few subsets were measured; ``n_near_duplicates``
        passages; ``drop_1, drop_3, drop_5`` and ``drop_<m>_random``; ``passage_share, slot_share,
        slot_p_value``, ``swap``.
    passages : DataFrame
        One row per passage of these questions, in prompt order: ``query_id, passage_id, slot, title``;
        ``score, low, high`` of the surrogate, ``shapley, shapley_low, shapley_high``;
        ``passage_effect``, and ``slot_effect`` of the place at which it stands.
    pairs, groups, claims : DataFrame
        Pairs that do not add up (`core.attribution.pairs.Pair`). Passages that belong together, as
        ``near_duplicates`` or because they support the same claims, with what is lost without all of them
        and, in ``alone``, without each. Banzhaf values of every passage for every claim (of its
        log-probability, or of the share of its words in the answer, ROUGE-L recall), beside its ``support``
        (NaN unknown), with ``is_first`` for the passage that matters most (its interval above 0) and
        ``disagrees`` where it does not support the claim and another passage does.
    by : {"logprob", "rouge"}
        What the scores are: nats of the log-probability, or ROUGE-L F1 of generated answers.
    slots : DataFrame
        One row per place: ``slot, mean, low, high, n``, the mean effect over questions with as many passages
        as most have.
    """

    queries: pd.DataFrame
    passages: pd.DataFrame
    pairs: pd.DataFrame
    groups: pd.DataFrame
    claims: pd.DataFrame
    slots: pd.DataFrame
    by: str

    def to_frame(self) -> pd.DataFrame:
        """Return the passages with their question's numbers beside them."""
        return self.passages.merge(self.queries.drop(columns="question"), on="query_id", how="left")

    @property
    def unit(self) -> str:
        """Unit of the scores, for people."""
        return "nats" if self.by == LOGPROB else "ROUGE-L F1"

    @property
    def judged(self) -> pd.DataFrame:
        """Only the questions whose LDS has a value."""
        return self.queries[self.queries["lds"].notna()]


def plan_of(run: Run) -> Plan:
    """Return what the step measured, by its facts; InputError for what no step measures."""
    options = run.manifest.get("steps", {}).get("attribution", {}).get("options") or {}
    plan = Plan(**{name: options[name] for name in ("masks", "shapley", "place", "seed") if name in options})
    check_ranges(plan, RANGES)  # more masks than a step ever takes could fill the memory
    return plan


def analyse(run: Run) -> AttributionAnalysis:
    """Attribute every answer whose subsets were measured."""
    plan, ablations, claimed = plan_of(run), dicts_of(run["ablations"]), dicts_of(run["ablated_claims"])
    passages_of = dicts_of(run.passages.sort_values(["slot", "retrieval_rank"], kind="stable"))
    claims_of, support_of = dicts_of(run["claims"]), dicts_of(run["support"])
    tables: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("queries", "passages", "pairs", "groups", "claims")
    }
    effects: list[Floats] = []
    for query in run.queries[["query_id", "question", "answer", "answer_status"]].to_dict("records"):
        key = str(query["query_id"])
        shown, rows = passages_of(key), {row["ablation_id"]: row for row in ablations(key)}
        own = {"query_id": key, "question": query["question"], "k": len(shown)}
        answer = query["answer"] if isinstance(query["answer"], str) else ""
        if not rows or not shown or not answer.strip():
            tables["queries"].append({**own, "reason": "not_measured" if answer.strip() else "no_answer"})
            continue
        game, _ = recorded(len(shown), answer.strip(), rows)
        groups = _groups(rows, len(shown))
        found = play(game, plan, [*groups])
        near = {slot for group, is_near in groups.items() if is_near for slot in group}
        failed = sum(row["answer_status"] == "error" for row in rows.values())
        counts = {"n_calls": len(rows), "n_failed": failed, "n_near_duplicates": len(near)}
        tables["queries"].append({**own, **_query(found), **counts})
        tables["passages"] += _passages(key, shown, found)
        tables["pairs"] += _pairs(key, shown, found)
        tables["groups"] += [
            {
                "query_id": key,
                "slots": [i + 1 for i in group],
                "near_duplicates": groups[group],
                "together": together,
                "alone": list(each),
            }
            for group, together, each in found.groups
        ]
        if found.place is not None:
            effects.append(found.place.slots)
        tables["claims"] += _claims(key, shown, rows, claims_of(key), claimed(key), support_of(key), plan)
    by = LOGPROB if run["ablations"]["logprob"].notna().any() else ROUGE
    columns = {"queries": _QUERY, "passages": _PASSAGE, "pairs": _PAIR, "groups": _GROUP, "claims": _CLAIM}
    frames = {name: pd.DataFrame(rows, columns=[*columns[name]]) for name, rows in tables.items()}
    frames["queries"] = _typed(frames["queries"])
    return AttributionAnalysis(**frames, slots=_slots(effects), by=by)


def _typed(q: pd.DataFrame) -> pd.DataFrame:
    counts = ("k", "n_test", "settled", "n_calls", "n_failed", "n_either", "n_both", "n_near_duplicates")
    kept = {name: q[name].astype("Int64") for name in counts}
    numbers = [
        one for one in _QUERY if one not in (*counts, "query_id", "question", "reason", "readable", "reading")
    ]
    return q.assign(
        **kept,
        **{name: q[name].astype("float64") for name in numbers},
        readable=q["readable"].astype("boolean"),
        reading=q["readable"].map({True: READABLE, False: UNREADABLE}).fillna(UNTOLD).where(q["lds"].notna()),
        reason=q["reason"].astype("str").where(q["reason"].notna(), None),
    )


def _query(found: Found) -> dict[str, Any]:
    one = found.surrogate
    said = one.faithfulness
    drops = {
        name: value
        for m, (top, random) in said.drops.items()
        for name, value in ((f"drop_{m}", top), (f"drop_{m}_random", random))
    }
    place = found.place
    return {
        "reason": said.reason, "lds": said.lds, "lds_low": said.low, "lds_high": said.high,
        "concordance": said.concordance, "ceiling": said.ceiling, "n_test": said.n, "readable": said.readable,
        "settled": one.settled,
        "n_either": None if not one.looked_for_pairs else sum(pair.either for pair in one.pairs),
        "n_both": None if not one.looked_for_pairs else sum(not pair.either for pair in one.pairs),
        **drops,
        **({} if place is None else {
            name: getattr(place, name) for name in ("passage_share", "slot_share", "slot_p_value")
        }),
        "swap": float(np.nanmean(found.swaps)) if np.isfinite(found.swaps).any() else math.nan,
    }  # fmt: skip


def _passages(key: str, shown: Sequence[Mapping[str, Any]], found: Found) -> list[dict[str, Any]]:
    nothing = np.full(len(shown), np.nan)
    shared, place = found.shapley, found.place
    ends = np.full((len(shown), 2), np.nan) if shared is None else shared.interval
    return [
        {
            "query_id": key, "passage_id": one["passage_id"], "slot": i + 1, "title": one["title"],
            "score": found.surrogate.scores[i],
            "low": found.surrogate.interval[i, 0], "high": found.surrogate.interval[i, 1],
            "shapley": math.nan if shared is None else shared.scores[i],
            "shapley_low": ends[i, 0], "shapley_high": ends[i, 1],
            "passage_effect": (nothing if place is None else place.passages)[i],
            "slot_effect": (nothing if place is None else place.slots)[i],
        }
        for i, one in enumerate(shown)
    ]  # fmt: skip


def _pairs(key: str, shown: Sequence[Mapping[str, Any]], found: Found) -> list[dict[str, Any]]:
    return [
        {
            "query_id": key,
            "first": shown[one.first]["passage_id"], "second": shown[one.second]["passage_id"],
            "first_slot": one.first + 1, "second_slot": one.second + 1, "interaction": one.interaction,
            "low": one.low, "high": one.high, "p_value": one.p_value, "either": one.either,
        }
        for one in found.surrogate.pairs
    ]  # fmt: skip


def _groups(rows: Mapping[str, Mapping[str, Any]], k: int) -> dict[tuple[int, ...], bool]:
    """Return the passages that the step left out together, and whether they are near-duplicates."""
    return {
        tuple(i for i in range(k) if row["kept"][i] == "0"): row["near_duplicates"]
        for row in rows.values()
        if row["near_duplicates"] is not None
    }


def _claims(
    key: str,
    shown: Sequence[Mapping[str, Any]],
    ablations: Mapping[str, Mapping[str, Any]],
    claims: Sequence[Mapping[str, Any]],
    claimed: Sequence[Mapping[str, Any]],
    support: Sequence[Mapping[str, Any]],
    plan: Plan,
) -> list[dict[str, Any]]:
    known = {(row["claim_id"], row["passage_id"]): row["probability"] for row in support}
    found = []
    for claim_id, text in own_claims(claims).items():
        rows = {
            row["ablation_id"]: float(row["logprob"])
            for row in claimed
            if row["claim_id"] == claim_id and row["logprob"] is not None
        }
        rows = rows or {
            name: rouge_l(text, row["answer"]).recall
            for name, row in ablations.items()
            if row["answer"] is not None
        }
        if not rows:
            continue
        one = attribute(claim_game(len(shown), rows, text), BANZHAF, plan.masks, plan.seed)
        probability = np.array(
            [_value(known.get((claim_id, row["passage_id"]))) for row in shown], dtype=np.float64
        )
        first = int(np.nanargmax(one.scores)) if np.isfinite(one.scores).any() else None
        matters = first is not None and one.interval[first, 0] > 0
        supports = probability >= SUPPORTS
        disagrees: bool | None = None
        if matters and first is not None and not np.isnan(probability).any():
            disagrees = bool(not supports[first] and supports.any())
        found += [
            {
                "query_id": key, "claim_id": claim_id, "text": text,
                "passage_id": row["passage_id"], "slot": i + 1, "score": one.scores[i],
                "low": one.interval[i, 0], "high": one.interval[i, 1], "support": probability[i],
                "is_first": bool(matters and i == first), "disagrees": disagrees,
            }
            for i, row in enumerate(shown)
        ]  # fmt: skip
    return found


def _value(value: Any) -> float:
    return math.nan if value is None else float(value)


def _slots(effects: Sequence[Floats]) -> pd.DataFrame:
    """Return the mean effect of each place over the questions with as many passages as most have."""
    sizes = [len(one) for one in effects if np.isfinite(one).all()]
    if not sizes:
        return pd.DataFrame(columns=["slot", "mean", "low", "high", "n"])
    k = max(set(sizes), key=lambda size: (sizes.count(size), size))
    known = np.array([one for one in effects if len(one) == k and np.isfinite(one).all()])
    rows = []
    for slot in range(k):
        low, high = mean_interval(known[:, slot])
        rows.append((slot + 1, float(known[:, slot].mean()), low, high, len(known)))
    return pd.DataFrame(rows, columns=["slot", "mean", "low", "high", "n"])
