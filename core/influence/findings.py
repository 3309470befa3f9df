"""What is wrong with a run, in sentences: failure modes beyond chance, the order of use, common gaps."""

from __future__ import annotations

import math
from typing import NamedTuple

import pandas as pd

from core.diagnosis import BAD, GOOD, UNCLEAR, Finding
from core.influence.analysis import InfluenceAnalysis
from core.influence.definitions import METRICS, MODES, ORDER_MODES, REASONS, ROUGE
from core.influence.reported import changes_sentence, compare_reported
from core.severity import SEVERITIES
from core.stats import cases_needed, wilson_interval
from core.text.display import count, needed, number, part, percent

ALPHA = 0.05
_RARE = 0.1  # share of the questions that a mode must surely exceed to matter fully
_MUCH = 1 / 3  # of what is possible beyond chance
_MEASURE = "Leave each passage out once: load the questions on the Live page and run the influence step."
WORTH_A_FINDING = 0.2  # share of the questions from which a reason to be undefined is worth a finding


class _Wording(NamedTuple):
    """How a failure mode reads: what ``n`` questions show, how bad, and which come first."""

    sentence: str
    severity: str
    by: str  # column; the most telling question first
    ascending: bool


_WORDINGS = {
    "harmful_passage": _Wording(
        "leaving out one passage makes an incorrect answer correct", "high", "rho", True
    ),
    "missed_evidence": _Wording("a gold passage was not retrieved", "high", "rho", True),
    "inverted": _Wording(
        "the passages are used in the reverse of the retriever's order", "high", "rho", True
    ),
    "buried_evidence": _Wording(
        "the model relies on a passage from the end of the retrieved list", "medium", "rho", True
    ),
    "ignored_top_hit": _Wording(
        "a passage the retriever put in its first three is hardly used", "medium", "rho", True
    ),
    "parametric": _Wording("the answer is the same without any passage", "medium", "k", False),
    "redundant": _Wording(
        "no single removal changes the answer, but leaving out all passages does", "medium", "k", False
    ),
    "inert": _Wording("no single removal changes the answer", "medium", "k", False),
    "over_reliance": _Wording(
        "one passage carries at least 80 % of the influence", "low", "dominance", False
    ),
}


def findings(analysis: InfluenceAnalysis) -> tuple[Finding, ...]:
    """Return what is wrong, or worth knowing, of a run.

    Failure modes that depend on the order are findings only where they are more frequent than random orders
    of the same influences would make them (p at most 0.05, adjusted for their number); those that chance
    cannot produce whenever they occur. Further: whether the order of use follows that of retrieval, reasons
    that leave a fifth of the questions or more without ρ or label, and reported verdicts that change.
    """
    return (
        *_order_of_use(analysis),
        *_modes(analysis),
        *_undefined(analysis),
        *_reported(analysis),
    )


def _order_of_use(analysis: InfluenceAnalysis) -> list[Finding]:
    """Say whether use follows retrieval, in either direction, or cannot be told from chance."""
    use = analysis.order_of_use
    if math.isnan(use.excess):
        return []
    q = analysis.queries
    difference = (q["influence_ndcg"] - q["ndcg_by_chance"]).dropna().sort_values(kind="stable")
    values = f"mean nDCG by influence {number(use.mean)}, {number(use.chance)} by chance"
    told = (
        f"(mean nDCG {number(use.mean)} against {number(use.chance)} by chance, {count(use.n, 'question')})"
    )
    if use.p_value <= ALPHA / 2:
        sentence, severity, tone = f"What the model uses tends to be retrieved first: {values}.", "low", GOOD
        advice = "ρ cannot see this where one passage carries the answer; prefer nDCG there."
        barely = ", but not by much" if use.excess < _MUCH else ""
        clause = f"what the model uses is retrieved earlier than chance would put it{barely} {told}"
    elif use.p_value >= 1 - ALPHA / 2:
        sentence, severity, tone = f"What the model uses tends to be retrieved last: {values}.", "high", BAD
        advice = MODES["inverted"].advice
        clause = f"what the model uses is retrieved later than chance would put it {told}"
    else:
        sentence = f"The order of use cannot be told from a random one: {values}."
        severity, tone, advice = "medium", UNCLEAR, _visible(analysis)
        clause = (
            f"the order in which the model uses the passages may as well be random {told}; "
            f"{needed(cases_needed(difference))}"
        )
    two_sided = min(1.0, 2 * min(use.p_value, 1 - use.p_value))
    return [
        Finding(
            "influence_ndcg", sentence, use.n, use.n, p_value=two_sided, severity=severity, advice=advice,
            query_ids=tuple(q["query_id"][difference.index]), tone=tone, clause=clause, topic="order",
        )
    ]  # fmt: skip


def _visible(analysis: InfluenceAnalysis) -> str:
    """Say what would make an order of use visible, beside more questions."""
    q = analysis.queries
    silent, of = int(q["answer_status"].isin(["empty", "abstained", "error"]).sum()), len(q)
    ways = ["give the model fewer or shorter passages, so that each matters more"]
    if analysis.measure == ROUGE and not q["n_repeats"].any():
        ways.append("repeat the unchanged calls to see how much of the change is noise")
    if silent >= WORTH_A_FINDING * of:
        ways.append(f"take a model that answers ({silent:,} of {count(of, 'question')} have no answer)")
    return f"To make an order visible, {'; '.join(ways)}."


def _modes(analysis: InfluenceAnalysis) -> list[Finding]:
    found = []
    modes = analysis.modes.set_index("name")
    # Of one fact one passage is enough; and parametric and redundant say what is behind inert.
    untold = ("over_reliance", "inert") if analysis.testable["redundant"] else ("over_reliance",)
    for name, wording in _WORDINGS.items():
        mode, flagged = modes.loc[name], analysis.queries[analysis.queries[name]]
        n, of, expected = int(mode["n"]), int(mode["of"]), float(mode["expected"])
        depends = not math.isnan(expected)
        if not n or (depends and mode["p_value"] > ALPHA):
            continue
        interval = (float(mode["low"]), float(mode["high"]))
        told = f"in {n:,} of {count(of, 'question')} {wording.sentence}"
        chance = f"; chance alone gives {number(expected, '{:.0f}')}" if depends else ""
        by_chance = f"; {percent(expected / of)} by chance" if depends else ""
        ordered = flagged.sort_values(wording.by, ascending=wording.ascending, kind="stable")
        found.append(
            Finding(
                name, f"{told[:1].upper()}{told[1:]}{chance}.", n, of,
                interval, expected if depends else None,
                float(mode["p_value"]) if depends else None, _severity(name, mode, analysis),
                MODES[name].advice, tuple(ordered["query_id"]),
                clause="" if name in untold else f"{told} ({percent(n / of, interval)}{by_chance})",
                topic="order" if depends else "",
            )
        )  # fmt: skip
    return found


def _severity(name: str, mode: pd.Series, analysis: InfluenceAnalysis) -> str:
    """One step less where it may well be rare; chance has been ruled out for the modes that it produces."""
    if name == "inert" and analysis.testable["redundant"]:
        return "low"
    worst = _WORDINGS[name].severity
    if name in ORDER_MODES or mode["low"] > _RARE or worst == "low":
        return worst
    return SEVERITIES[SEVERITIES.index(worst) + 1]


def _undefined(analysis: InfluenceAnalysis) -> list[Finding]:
    """Reasons that leave many questions without a ρ or a label; inert ones are a failure mode already."""
    q, of = analysis.queries, len(analysis.queries)
    found = []
    for name, n in q["label_reason"].value_counts().items():
        if n >= max(2, WORTH_A_FINDING * of) and name != "inert":
            what, meaning = ("label" if name == "ties_cannot_reach" else "ρ"), REASONS[str(name)].meaning
            sentence = f"{n:,} of {count(of, 'question')} have no {what}: {meaning[:1].lower()}{meaning[1:]}"
            ids = tuple(q["query_id"][q["label_reason"] == name])
            share = wilson_interval(n / of, of)
            unmeasured = name in ("no_ablations", "not_scored", "incomplete")
            clause = (
                f"it is not known which passages the model uses: in {part(n, of, 'question')} not every "
                "passage was left out once"
            )
            advice = REASONS["not_scored"].advice if analysis.measure != ROUGE else _MEASURE
            found.append(
                Finding(
                    str(name), sentence, int(n), of, share, severity="medium" if unmeasured else "low",
                    advice=advice if unmeasured else "", query_ids=ids, tone=UNCLEAR,
                    clause=clause if unmeasured else "",
                )
            )  # fmt: skip
    return found


def _reported(analysis: InfluenceAnalysis) -> list[Finding]:
    """Verdicts of an imported file that do not follow from its own scores."""
    frame = compare_reported(analysis.run, analysis)
    changed, of = frame[frame["changed"]], len(frame)
    if not len(changed):
        return []
    share = wilson_interval(len(changed) / of, of)
    ids, advice = tuple(changed["query_id"]), METRICS["reported_verdicts"].advice
    return [
        Finding(
            "reported_verdicts", changes_sentence(frame), len(changed), of, share, severity="medium",
            advice=advice, query_ids=ids,
            clause=f"{len(changed):,} of {of:,} verdicts in the file change when recomputed",
        )
    ]  # fmt: skip
