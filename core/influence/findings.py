"""What is wrong with a run, in sentences: failure modes beyond chance, the order of use, common gaps."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from core.influence.analysis import InfluenceAnalysis
from core.influence.definitions import METRICS, MODES, REASONS
from core.influence.modes import AgainstPlacebo
from core.influence.reported import changes_sentence, compare_reported
from core.severity import LOSS, NOTE, WRONG, Harm, graded
from core.socket import BAD, GOOD, UNCLEAR, Finding
from core.stats import cases_needed, wilson_interval
from core.text.display import count, needed, number, part, percent

_MUCH = 1 / 3  # of what is possible beyond chance
WORTH_A_FINDING = 0.2  # share of the questions from which a reason to be undefined is worth a finding


class _Wording(NamedTuple):
    """How a failure mode reads: what ``n`` questions show, how bad, and which come first."""

    sentence: str
    reads: str  # behind "Read the n questions"
    harm: Harm
    by: str  # column; the most telling question first
    ascending: bool
    fix: str = ""


_WORDINGS = {
    "harmful_passage": _Wording(
        "leaving out one passage makes an incorrect answer correct",
        "with a harmful passage", WRONG, "rho", True, "distractors:remove",
    ),
    "inverted": _Wording(
        "the passages are used in the reverse of the retriever's order",
        "with an inverted order", LOSS, "rho", True,
    ),
    "buried_evidence": _Wording(
        "the model relies on a passage from the end of the retrieved list",
        "with buried evidence", LOSS, "rho", True, "retrieval:improve",
    ),
    "ignored_top_hit": _Wording(
        "a passage the retriever put in its first three is hardly used",
        "with an ignored top hit", LOSS, "rho", True, "retrieval:improve",
    ),
    "parametric": _Wording(
        "the answer is the same without any passage",
        "answered the same without passages", LOSS, "k", False,
    ),
    "redundant": _Wording(
        "no single removal changes the answer, but leaving out all passages does",
        "that need passages, but no single one", LOSS, "k", False,
    ),
    "inert": _Wording(
        "no single removal changes the answer", "where no single passage matters", NOTE, "k", False
    ),
    "over_reliance": _Wording(
        "one passage carries at least 80 % of the influence",
        "where one passage carries the answer", NOTE, "dominance", False,
    ),
}  # fmt: skip
_BEYOND_ANY_CHANGE = "Without this passage the answer is correct: read it, and filter it or rank it lower."
_AS_ANY_CHANGE = (
    "These data cannot tell it from what any change of the prompt does: filter no passage for this alone."
)
FINDS = ("influence_ndcg", *_WORDINGS, *REASONS, "reported_verdicts")


def findings(analysis: InfluenceAnalysis) -> tuple[Finding, ...]:
    """Return what is wrong, or worth knowing, of a run.

    Failure modes that depend on the order are tested against random orders of the same influences, and so is
    the order of use; those that chance cannot produce are findings whenever they occur. Further: reasons that
    leave a fifth of the questions or more without ρ or label, and reported verdicts that change.
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
    unclear = Finding(
        "influence_ndcg", f"The order of use is indistinguishable from a random one: {values}.", use.n, use.n,
        p_value=use.p_value, advice=_visible(analysis), query_ids=tuple(q["query_id"][difference.index]),
        tone=UNCLEAR,
        clause="the order in which the model uses the passages is indistinguishable from a random one "
        f"{told}; {needed(cases_needed(difference))}",
        topic="order", label="Order of use", fix="passages:fewer",
    )  # fmt: skip
    if use.excess > 0:
        barely = ", but not by much" if use.excess < _MUCH else ""
        claim = replace(
            unclear,
            sentence=f"What the model uses tends to be retrieved first: {values}.",
            advice="When one passage drives the answer, use nDCG; ρ is unreliable.",
            tone=GOOD,
            clause=f"what the model uses is retrieved earlier than chance would put it{barely} {told}",
            fix="",
        )
    else:
        late = int((difference < 0).sum())
        claim = replace(
            unclear,
            sentence=f"What the model uses tends to be retrieved last: {values}.",
            severity=graded(LOSS, wilson_interval(late / use.n, use.n)),
            advice=MODES["inverted"].advice,
            tone=BAD,
            clause=f"what the model uses is retrieved later than chance would put it {told}",
            fix="",
        )
    return [replace(claim, otherwise=unclear)]


def _visible(analysis: InfluenceAnalysis) -> str:
    """Say what would make an order of use visible, beside more questions."""
    q = analysis.queries
    silent, of = int(q["answer_status"].isin(["empty", "abstained", "error"]).sum()), len(q)
    ways = ["give the model fewer or shorter passages, so that each matters more"]
    if not analysis.measure.is_signed and not q["n_repeats"].any():
        ways.append("repeat the unchanged calls to see how much of the change is noise")
    if silent >= WORTH_A_FINDING * of:
        ways.append(f"take a model that answers (no answer to {silent:,} of {count(of, 'question')})")
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
        placebo = analysis.against_placebo if name == "harmful_passage" else None
        # A count that chance gives is tested even where it is 0: which tests there are must not depend on it.
        if not (expected > 0 if depends else n or (placebo and placebo.n)):
            continue
        interval = (float(mode["low"]), float(mode["high"]))
        told = f"in {n:,} of {count(of, 'question')} {wording.sentence}"
        chance = f"; chance alone gives {number(expected, '{:.0f}')}" if depends else ""
        by_chance = f"; {percent(expected / of)} by chance" if depends else ""
        ordered = flagged.sort_values(wording.by, ascending=wording.ascending, kind="stable")
        harm = LOSS if name == "inert" and name not in untold else wording.harm
        one = Finding(
            name, f"{told[:1].upper()}{told[1:]}{chance}.", n, of,
            interval, expected if depends else None,
            float(mode["p_value"]) if depends else None, graded(harm, interval),
            MODES[name].advice, tuple(ordered["query_id"]),
            clause="" if name in untold else f"{told} ({percent(n / of, interval)}{by_chance})",
            topic="order" if depends else "", reads=wording.reads, fix=wording.fix,
        )  # fmt: skip
        found.append(one if placebo is None else _tested(one, placebo))
    return found


def _tested(one: Finding, against: AgainstPlacebo) -> Finding:
    """Test whether leaving out a passage makes more answers correct than any change of the prompt."""
    if not against.n:
        return one
    one = replace(one, sentence=f"{one.sentence[:-1]}: {against.text}.", p_value=against.p_value)
    unclear = replace(
        one, tone=UNCLEAR, advice=_AS_ANY_CHANGE, clause="", fix="", label="Correct without one passage",
        reads="that are correct without one passage",
    )  # fmt: skip
    clause, otherwise = f"{one.clause[:-1]}; {against.text})", unclear if one.n else None
    return replace(one, advice=_BEYOND_ANY_CHANGE, clause=clause, otherwise=otherwise)


def _undefined(analysis: InfluenceAnalysis) -> list[Finding]:
    """Reasons that leave many questions without a ρ or a label; inert ones are a failure mode already."""
    q, of, measure = analysis.queries, len(analysis.queries), analysis.measure
    found = []
    for name, n in q["label_reason"].value_counts().items():
        if n >= max(2, WORTH_A_FINDING * of) and not (name == "inert" and measure.one_by_one):
            what, meaning = ("label" if name == "ties_cannot_reach" else "ρ"), REASONS[str(name)].meaning
            sentence = f"{n:,} of {count(of, 'question')} have no {what}: {meaning[:1].lower()}{meaning[1:]}"
            ids = tuple(q["query_id"][q["label_reason"] == name])
            share = wilson_interval(n / of, of)
            unmeasured = name in (measure.reason.name, "incomplete")
            told = (
                f"it is not known which passages the model uses: in {part(n, of, 'question')} {measure.gap}"
            )
            advice, clause = (measure.reason.advice, told) if unmeasured else ("", "")
            found.append(
                Finding(
                    str(name), sentence, int(n), of, share, advice=advice, query_ids=ids, tone=UNCLEAR,
                    clause=clause, reads=f"without a {what}",
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
            "reported_verdicts", changes_sentence(frame), len(changed), of, share,
            severity=graded(LOSS, share), advice=advice, query_ids=ids, label="Reported verdict changes",
            reads="whose reported verdict changes",
            clause=f"{len(changed):,} of {of:,} verdicts in the file change when recomputed",
        )
    ]  # fmt: skip
