"""What attribution says of a run: whether its bars can be read, pairs of passages, and places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.special import bdtrc

from core.arrays import Floats
from core.attribution.analysis import READABLE, UNREADABLE, UNTOLD, AttributionAnalysis
from core.attribution.definitions import METRICS
from core.attribution.pairs import LEVEL
from core.severity import LOSS, NOTE, graded
from core.socket import BAD, GOOD, UNCLEAR, Finding
from core.stats import hotelling, mean_interval, wilson_interval
from core.text.display import count, number, part, percent

_BY_MISTAKE = 0.025  # of answers whose scores say nothing


def findings(analysis: AttributionAnalysis) -> Sequence[Finding]:
    """Return whether the attributions can be read, pairs beyond chance, near-duplicates, and places."""
    return (*_readable(analysis), *_pairs(analysis), *_duplicates(analysis), *_place(analysis))


def _readable(analysis: AttributionAnalysis) -> Sequence[Finding]:
    q = analysis.judged
    if q.empty:
        return ()
    reading = q["reading"].value_counts()
    of, n, untold = len(q), int(reading.get(UNREADABLE, 0)), int(reading.get(UNTOLD, 0))
    can, right = of - n - untold, percent(float(q["concordance"].mean()))
    low, _ = mean_interval(q["lds"].to_numpy(dtype=np.float64))
    ids = tuple(q.sort_values("lds", kind="stable").loc[q["reading"] != READABLE, "query_id"])
    if 2 * n > of or (can < of and not low > 0):
        return (
            Finding(
                "readable",
                f"In {part(of - can, of, 'question')} the bars of influence cannot be read: that they "
                "predict removals cannot be told from chance.",
                of - can, of, wilson_interval(1 - can / of, of),
                advice=METRICS["readable"].advice,
                query_ids=ids, tone=UNCLEAR, label="Bars cannot be read", reads="whose bars cannot be read",
                clause=f"in {part(of - can, of, 'question')} the bars of influence cannot be read",
            ),
        )  # fmt: skip
    said = [
        "The scores predict what leaving passages out does: of two removals they tell the worse one in "
        f"{right} of cases (50 % by chance; {count(of, 'question')})."
    ]
    if untold:
        said.append(f"In {untold:,} there are too few subsets to tell it of the single answer.")
    if n:
        said.append(f"In {n:,} do not read the bars.")
    return (
        Finding(
            "readable", " ".join(said), can, of, wilson_interval(can / of, of),
            expected_by_chance=_BY_MISTAKE * of, tone=GOOD, query_ids=ids, label="Bars can be read",
            reads="whose bars are not shown to be readable",
        ),
    )  # fmt: skip


def _pairs(analysis: AttributionAnalysis) -> Sequence[Finding]:
    found = []
    looked = analysis.queries.dropna(subset="n_either")
    if looked.empty:
        return ()
    for name, either in (("either", True), ("both", False)):
        rows = analysis.pairs[analysis.pairs["either"].astype(bool) == either]
        ids = rows.sort_values("p_value", kind="stable")["query_id"].drop_duplicates()
        n, of = len(ids), len(looked)
        what = (
            "two passages hold the same evidence (either is enough)"
            if either
            else "two passages are needed together"
        )
        first = rows[rows["query_id"] == ids.iloc[0]].iloc[0] if n else None
        such = (
            ""
            if first is None
            else f", such as {int(first['first_slot'])} and {int(first['second_slot'])} in the first of them"
        )
        share = wilson_interval(n / of, of)
        found.append(
            Finding(
                name,
                f"In {part(n, of, 'question')} {what}{such}; chance alone gives at most "
                f"{number(LEVEL * of, '{:.1f}')}.",
                n, of, share, LEVEL * of, float(bdtrc(n - 1, of, LEVEL)),
                graded(LOSS if either else NOTE, share),
                METRICS[name].advice, tuple(ids), tone=BAD,
                label=METRICS[name].title, reads=f"where {what}", topic="attribution",
                clause=f"in {part(n, of, 'question')} {what}, so that leaving out one shows no influence"
                if either else "",
            )
        )  # fmt: skip
    return found


def _duplicates(analysis: AttributionAnalysis) -> Sequence[Finding]:
    q = analysis.queries[analysis.queries["n_calls"].notna()]
    has = q[q["n_near_duplicates"] > 0]
    if has.empty:
        return ()
    n, of = len(has), len(q)
    share = wilson_interval(n / of, of)
    return (
        Finding(
            "near_duplicates", f"In {part(n, of, 'question')} the prompt has near-duplicate passages.",
            n, of, share, severity=graded(LOSS, share), advice=METRICS["near_duplicates"].advice,
            query_ids=tuple(has["query_id"]), label="Near-duplicates", reads="with near-duplicate passages",
        ),
    )  # fmt: skip


def _place(analysis: AttributionAnalysis) -> Sequence[Finding]:
    from scipy.stats import ttest_1samp

    q = analysis.queries.dropna(subset="slot_share")
    slots = analysis.slots
    if len(q) < 2 or slots.empty:
        return ()
    shares = q["slot_share"].to_numpy()
    # Each answer may have places of its own, or all of them the same ones: two tests of one statement.
    own = float(ttest_1samp(shares, 0.0).pvalue) if np.ptp(shares) else 1.0
    alike = hotelling(_effects(analysis))
    p_value = min(1.0, 2 * float(np.nanmin([own, alike])))
    passages, places = (percent(max(0.0, float(q[name].mean()))) for name in ("passage_share", "slot_share"))
    said = (
        f"{places} of the variance of the answer's score depends on the place in the prompt and {passages} "
        f"on the passage, over {count(len(q), 'question')}"
    )
    unclear = Finding(
        "slot_share", f"That the place in the prompt matters cannot be told from chance: {said}.",
        len(q), len(q),
        p_value=p_value, tone=UNCLEAR, label="Place in the prompt", reads="measured in other orders",
        query_ids=tuple(q.sort_values("slot_p_value", kind="stable")["query_id"]),
    )  # fmt: skip
    if shares.mean() <= 0 and not alike < own:
        return (unclear,)
    swap = float(q["swap"].mean())
    if slots["mean"].abs().max() < swap:
        claim = (
            "the place in the prompt matters, but less than a swap of two neighbours, which changes the "
            f"score by {number(swap)} {analysis.unit}{_ends(slots)}"
        )
        return (
            replace(
                unclear, sentence=f"{claim[:1].upper()}{claim[1:]}. {said[:1].upper()}{said[1:]}.",
                tone=GOOD, otherwise=unclear,
            ),
        )  # fmt: skip
    claim = f"the place in the prompt matters{_ends(slots)}"
    return (
        Finding(
            "slot_share", f"{claim[:1].upper()}{claim[1:]}. {said[:1].upper()}{said[1:]}.", len(q), len(q),
            p_value=p_value, severity=graded(LOSS), advice=METRICS["slot_share"].advice, tone=BAD,
            label="Place in the prompt", reads="measured in other orders", query_ids=unclear.query_ids,
            clause=claim, fix="ranking:improve", topic="order", otherwise=unclear,
        ),
    )  # fmt: skip


def _effects(analysis: AttributionAnalysis) -> Floats:
    """Return the effect of each place but the last in each question of `AttributionAnalysis.slots`."""
    table = analysis.passages.pivot(index="query_id", columns="slot", values="slot_effect")
    k = len(analysis.slots)
    same = table[table.notna().sum(axis=1) == k]  # the last one follows from the others: they add up to 0
    return same[[*range(1, k)]].to_numpy(dtype=np.float64)


def _ends(slots: pd.DataFrame) -> str:
    """Name the places whose mean effect differs from that of all places."""
    most, least = slots.loc[slots["mean"].idxmax()], slots.loc[slots["mean"].idxmin()]
    named = [
        f"{what} at place {int(row['slot'])} ({number(row['mean'])}, 95 % interval {number(row['low'])} to "
        f"{number(row['high'])})"
        for what, row, clear in (("most", most, most["low"] > 0), ("least", least, least["high"] < 0))
        if clear
    ]
    return f": a passage counts {' and '.join(named)}" if named else ""
