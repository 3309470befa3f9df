"""Which questions deserve a look first, each with its reason in one sentence."""

from __future__ import annotations

import pandas as pd

from core.influence.analysis import InfluenceAnalysis
from core.influence.definitions import REASONS

PER_MODE = 2  # at first no mode takes more places than this, so that one common mode does not hide the rest
WORTH_A_LOOK = 0.2  # share of undefined questions from which their reason is worth a place of its own

# Most telling first; the column to sort by within the mode, and whether small values come first.
_ORDER: dict[str, tuple[str, bool]] = {
    "harmful_passage": ("rho", True),
    "missed_evidence": ("rho", True),
    "inverted": ("rho", True),
    "buried_evidence": ("rho", True),
    "over_reliance": ("dominance", False),
    "ignored_top_hit": ("rho", True),
    "redundant": ("k", False),
    "parametric": ("k", False),
}
_COLUMNS = ["query_id", "question", "reason", "mode"]


def what_to_look_at(analysis: InfluenceAnalysis, limit: int = 8) -> pd.DataFrame:
    """Pick the questions to look at first.

    Harmful passages come first, then missed evidence, inverted order, buried evidence and
    over-reliance; an undefined reason that holds for a fifth of the questions or more (and two at least)
    is shown by one of them. At most two of a kind are taken before every kind has had its turn.

    Parameters
    ----------
    analysis : InfluenceAnalysis
        What `analyse` made of a run.
    limit : int
        Most rows to return.

    Returns
    -------
    DataFrame
        At most ``limit`` rows, each question at most once: ``query_id, question, reason`` (a
        sentence) and ``mode`` (a key of `core.influence.definitions.MODES` or ``REASONS``).
    """
    rows = _undefined(analysis)
    for mode, (column, ascending) in _ORDER.items():
        flagged = analysis.queries[analysis.queries[mode]]
        flagged = flagged.sort_values(column, ascending=ascending, kind="stable").head(limit)
        rows += [
            ((turn // PER_MODE, len(rows) + turn), position, mode)
            for turn, position in enumerate(flagged.index)
        ]
    chosen: dict[int, str] = {}
    for _, position, mode in sorted(rows):
        # A question keeps the first, most telling reason.
        chosen.setdefault(position, mode)
    picked = [
        (q["query_id"], q["question"], _sentence(mode, q, analysis), mode)
        for position, mode in list(chosen.items())[:limit]
        for q in (analysis.queries.loc[position],)
    ]
    return pd.DataFrame(picked, columns=_COLUMNS)


def _undefined(analysis: InfluenceAnalysis) -> list[tuple[tuple[int, int], int, str]]:
    """One example for every reason that leaves many questions without a rank agreement."""
    reasons = analysis.queries["reason"]
    common = [
        str(reason)
        for reason, n in reasons.value_counts().items()
        if n >= max(2, WORTH_A_LOOK * len(reasons))
    ]
    return [((0, n), int((reasons == reason).idxmax()), reason) for n, reason in enumerate(common)]


def _sentence(mode: str, question: pd.Series, analysis: InfluenceAnalysis) -> str:
    if mode in REASONS and question["reason"] == mode:
        reasons = analysis.queries["reason"]
        meaning = REASONS[mode].meaning
        n = int((reasons == mode).sum())
        return (
            f"{n} of {len(reasons)} questions have no ρ for this reason: {meaning[:1].lower()}{meaning[1:]}"
        )
    sentences = {
        "missed_evidence": "A passage known to hold the answer was not retrieved.",
        "inverted": f"ρ = −{abs(question['rho']):.2f}: the passages are used in the reverse of their order.",
        "over_reliance": f"One passage carries {question['dominance']:.0%} of all influence.",
        "redundant": "No single removal changes the answer, but without passages it is another one.",
        "parametric": "The model gives the same answer with no passage at all.",
    }
    if mode in sentences:
        return sentences[mode]
    passages = analysis.passages
    own = passages[(passages["query_id"] == question["query_id"]) & passages[mode]]
    ranks = ", ".join(f"{rank:g}" for rank in own["retrieval_order"])
    which = f"passage at rank {ranks}" if len(own) == 1 else f"passages at ranks {ranks}"
    one_of = "" if len(own) == 1 else "any one of "
    return {
        "harmful_passage": f"The answer is wrong, and leaving out {one_of}the {which} makes it right.",
        "buried_evidence": f"The model relies on the {which}, at the end of the retrieved list.",
        "ignored_top_hit": f"The {which} stood first in retrieval but hardly moved the answer.",
    }[mode]
