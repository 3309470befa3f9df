"""The diagnostic *retrieval_quality*: whether gold passages are found, come first, and are used."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from core.analyses import Analyses
from core.retrieval_quality.analysis import DEPTHS, RetrievalQuality, retrieval_quality
from core.retrieval_quality.definitions import DEFINITIONS, FINDINGS, METRICS
from core.severity import LOSS, graded
from core.socket import BAD, BEYOND_CHANCE, GOOD, UNCLEAR, Diagnostic, Finding, Need, Number, QuestionColumn
from core.stats import cases_needed, poisson_binomial_tail, wilson_interval
from core.text.display import count, needed, number, part, percent

_MOSTLY = 0.5  # share of the questions
_CARDS = {
    "hit_at_1": "queries.first_gold_rank:1",
    "gold_most_influential": "queries.gold_most_influential:True",
}
_SHARES = ("hit_at_k", "gold_most_influential")


class _Share(NamedTuple):
    """How many questions show something, and how many would by chance."""

    n: int
    of: int
    interval: tuple[float, float]
    expected: float
    p_value: float
    needed: int | None

    @property
    def tone(self) -> str:
        """Good in most questions, bad in few; not to be told where the interval holds both."""
        low, high = self.interval
        return GOOD if low > _MOSTLY else BAD if high < _MOSTLY else UNCLEAR

    def words(self, noun: str = "", by_chance: bool = False) -> str:
        """Return ``only 20 % of 54 (12–33 %; 6 % by chance)``; ``noun`` is what is counted."""
        told = f"; {needed(self.needed)}" if by_chance and self.n > self.expected else ""
        only = "only " if self.tone == BAD and self.n else ""
        basis = f"{percent(self.n / self.of, self.interval)}; {percent(self.expected / self.of)} by chance"
        return f"{only}{part(self.n, self.of, noun)} ({basis}{told})"

    def finding(self, name: str, sentence: str, clause: str, noun: str, **more: object) -> Finding:
        """Return the finding, and what is said of it where chance explains the count.

        As good news it must be beyond chance; bad news is that it holds in few questions, by chance or not.
        """
        low, high = self.interval
        severity, advice = graded(LOSS, (1 - high, 1 - low)), more.pop("advice", "")
        if self.tone == UNCLEAR:
            sentence += " Too few questions to say whether it is most of them."
        one = Finding(
            name, sentence, self.n, self.of, self.interval, self.expected, self.p_value, severity,
            str(advice), tone=self.tone, clause=f"{clause} {self.words(noun)}", topic="gold", **more,  # type: ignore[arg-type]
        )  # fmt: skip
        by_chance = replace(one, p_value=None, clause=f"{clause} {self.words(noun, by_chance=True)}")
        if self.tone == GOOD:
            return replace(one, advice="", fix="", otherwise=replace(by_chance, tone=UNCLEAR))
        if self.tone == UNCLEAR and self.p_value > BEYOND_CHANCE:
            return replace(by_chance, p_value=self.p_value)
        return replace(one, otherwise=by_chance)


def findings(quality: RetrievalQuality) -> tuple[Finding, ...]:
    """Return how often gold passages are missing, one comes first, and one is the most influential.

    Each of the last two is good news where it holds in more than half of the questions, bad in less than
    half, and unclear where the 95 % interval of the share holds one half; chance is a random order of the
    same passages.
    """
    found = (_missed(quality), _first(quality), _used(quality))
    return tuple(one for one in found if one is not None)


def _missed(quality: RetrievalQuality) -> Finding | None:
    q = quality.queries
    # More found than there are is a wrong count, which says nothing of what was missed.
    known = q[(q["n_found"] <= q["n_gold"]).fillna(False)]
    missed = known[known["n_found"] < known["n_gold"]]
    n, of = len(missed), len(known)
    if not n:
        return None
    interval = wilson_interval(n / of, of)
    sentence = f"in {n:,} of {count(of, 'question')} a gold passage was not retrieved"
    return Finding(
        "missed_evidence", f"{sentence[:1].upper()}{sentence[1:]}.", n, of, interval,
        severity=graded(LOSS, interval), advice=FINDINGS["missed_evidence"].advice, fix="retrieval:improve",
        query_ids=tuple(missed.sort_values("n_found", kind="stable")["query_id"]),
        clause=f"{sentence} ({percent(n / of, interval)})", label="Gold missing",
        reads="that lack a gold passage",
    )  # fmt: skip


def _first(quality: RetrievalQuality) -> Finding | None:
    q = quality.queries
    found = _share(q["hit_at_1"], q["hit_at_1_by_chance"])
    if found is None:
        return None
    missed = q[q["hit_at_1"] == 0].sort_values("first_gold_rank", ascending=False, na_position="first")
    return found.finding(
        "hit_at_1",
        f"A gold passage comes first in {found.n:,} of {count(found.of, 'question')}; "
        f"a random order gives {number(found.expected, '{:.0f}')}.",
        "retrieval puts a gold passage first in", "question", advice=FINDINGS["hit_at_1"].advice,
        fix="ranking:improve", query_ids=tuple(missed["query_id"]), label="Gold not first",
        reads="where gold is not first",
    )  # fmt: skip


def _used(quality: RetrievalQuality) -> Finding | None:
    q = quality.queries
    used = q["gold_most_influential"].astype("Float64")
    found = _share(used, q["gold_most_influential_by_chance"])
    if found is None:
        return None
    others = q[(used == 0).fillna(False)].sort_values(
        ["first_gold_rank", "gold_influence_rank"], ascending=[True, False]
    )
    it = "it" if q["hit_at_1"].notna().any() else "a gold passage"
    return found.finding(
        "gold_most_influential",
        f"A gold passage is the most influential one in {found.n:,} of {count(found.of, 'question')}; "
        f"chance alone gives {number(found.expected, '{:.0f}')}.",
        f"{it} is the most influential passage in", "", advice=METRICS["gold_most_influential"].advice,
        fix="reader:improve", query_ids=tuple(others["query_id"]), label="Gold not used most",
        reads="where another passage is more influential than gold",
    )  # fmt: skip


def _share(values: pd.Series, by_chance: pd.Series) -> _Share | None:
    """Count the ones among values that are 0, 1 or missing; None where all are missing."""
    known = values.to_numpy(dtype=np.float64, na_value=np.nan)
    defined = ~np.isnan(known)
    n, of, chance = int(np.nansum(known)), int(defined.sum()), by_chance.to_numpy()[defined]
    if not of:
        return None
    p_value = poisson_binomial_tail(np.clip(chance, 0, 1), n)
    enough = cases_needed(known[defined] - chance)
    return _Share(n, of, wilson_interval(n / of, of), float(chance.sum()), p_value, enough)


def numbers(quality: RetrievalQuality) -> tuple[Number, ...]:
    """Return the mean of every metric at every depth, with its interval, n and what chance gives."""
    found = []
    for row in quality.summary.to_dict("records"):
        depth = "" if pd.isna(row["k"]) else str(row["k"])
        key = f"{row['metric'].removesuffix('k')}{depth}"
        found.append(
            Number(
                key, _title(key, row["metric"], depth), float(row["mean"]) if row["n"] else None,
                n=int(row["n"]),
                interval=None if pd.isna(row["low"]) else (float(row["low"]), float(row["high"])),
                define=row["metric"], chance=None if pd.isna(row["chance"]) else float(row["chance"]),
                is_share=row["metric"] in _SHARES, cases=_CARDS.get(key, ""),
                place="card" if key in _CARDS else "row",
            )
        )  # fmt: skip
    return tuple(found)


def _title(key: str, metric: str, depth: str) -> str:
    if key in FINDINGS:
        return FINDINGS[key].title
    return METRICS[metric].title.removesuffix(" k") + (f" {depth}" if depth else "")


def _analyse(diagnosis: Analyses) -> RetrievalQuality:
    return retrieval_quality(diagnosis.run, diagnosis["influence"], DEPTHS)


RETRIEVAL_QUALITY = Diagnostic(
    name="retrieval_quality",
    title="Retrieval quality",
    question="Are the gold passages found, and are they used?",
    analyse=_analyse,
    numbers=numbers,
    findings=findings,
    finds=("hit_at_1", "gold_most_influential", "missed_evidence"),
    reads=("influence",),
    needs=(
        Need(
            "passages",
            "No gold passage is known: mark them with is_gold in the passages, or give gold fragments with "
            "the questions.",
            "is_gold",
        ),
    ),
    figures=("retrieval_quality_chart",),
    definitions=DEFINITIONS,
    columns=(
        QuestionColumn(
            "first_gold_rank", "Gold passage: retrieval rank", "{:g}", None, "worse", True, needs_labels=True
        ),
        QuestionColumn(
            "gold_influence_rank",
            "Gold passage: influence rank",
            "{:g}",
            None,
            "worse",
            True,
            needs_labels=True,
        ),
    ),
)
