"""What the ladder and the fixes say: where answers are lost, and which fix was seen to help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from core.losses.analysis import Losses
from core.losses.arms import ADDED, ARMS
from core.losses.definitions import CAUSES
from core.losses.fixes import Fix, mcnemar
from core.losses.ladder import LOST, READING, UNKNOWN, Step
from core.losses.outcomes import CORRECT
from core.severity import LOSS, WRONG, graded
from core.socket import BAD, GOOD, HARMS, HELPS, OPEN, UNCLEAR, UNTRIED, Finding, Tried
from core.stats import wilson_interval
from core.text.display import about, count, needed, number

_TO_TRY = 7  # calls of a question, about
ADVICE = "answers:lost"  # the fix that findings on incorrect answers name: whatever the ladder says


def findings(losses: Losses) -> Sequence[Finding]:
    """Return where answers are lost, and every fix that helps or harms beyond chance and the placebo."""
    return (*_lead(losses), *(one for fix in losses.fixes for one in _fix(losses, fix)))


def leading(losses: Losses) -> tuple[Step, ...]:
    """Return the stage that loses most answers, net of the placebo; all that cannot be told from it.

    Empty where no answer is lost, or where half of the lost ones are not known to be lost anywhere.
    """
    lost = losses.n_lost
    if not lost or 2 * losses.step(UNKNOWN).n >= lost:
        return ()
    steps = sorted(
        (one for one in losses.steps if one.stage in LOST and one.stage != UNKNOWN and one.net > 0),
        key=lambda one: -one.net,
    )
    top = steps[:1]
    return tuple(one for one in steps if one in top or _as_many(one, top[0]))


def _as_many(one: Step, top: Step) -> bool:
    """Tell whether two stages may lose equally many: a sign test of their counts."""
    a, b = round(one.net), round(top.net)
    return a > 0 and mcnemar([0] * a + [1] * b, [1] * a + [0] * b) > 0.05


def _named(losses: Losses, step: Step) -> str:
    beyond = "" if step.expected is None else f"; any change of the prompt would give {about(step.expected)}"
    seen = CAUSES[step.stage].seen.format(good=losses.outcome.good)
    return f"{step.n:,} of {_lost(losses)} {seen}{beyond}"


def _lost(losses: Losses) -> str:
    are = "is" if losses.n_lost == 1 else "are"
    return f"{count(losses.n_lost, 'answer')} that {are} not {losses.outcome.good}"


def _lead(losses: Losses) -> Sequence[Finding]:
    lost = losses.n_lost
    if not lost:
        return ()
    found, interval = leading(losses), wilson_interval(lost / losses.n, losses.n)
    if not found:
        unknown = losses.step(UNKNOWN).n
        return (
            Finding(
                "losses", f"Where {unknown:,} of {_lost(losses)} are lost is not known.{_bound(losses)}",
                unknown, lost, severity="low", tone=UNCLEAR, advice=cost(losses).sentence,
                label="Lost somewhere", query_ids=_at(losses, [UNKNOWN]), reads="that no fix was tried on",
            ),
        )  # fmt: skip
    causes = [CAUSES[one.stage] for one in found]
    if len(found) == 1:
        verb = "lose" if causes[0].plural else "loses"
        said = f"{causes[0].who} {verb} most: {_named(losses, found[0])}"
    else:
        parts = [f"{cause.who} ({one.n:,})" for cause, one in zip(causes, found, strict=True)]
        said = (
            f"{', '.join(parts[:-1])} and {parts[-1]} lose most of {_lost(losses)}; which of them more, "
            "cannot be told"
        )
    n = sum(one.n for one in found)
    return (
        Finding(
            "losses", f"{said[:1].upper()}{said[1:]}.{_retriever(losses)}", n, lost,
            wilson_interval(n / lost, lost), severity=graded(WRONG, interval), advice=advice(losses),
            query_ids=_at(losses, [one.stage for one in found]),
            clause=f"{said}.{_retriever(losses)}".removesuffix("."),
            label=" or ".join(one.stage for one in found).capitalize(),
            reads="that are lost there", fix=ADVICE,
        ),
    )  # fmt: skip


def advice(losses: Losses) -> str:
    """Return what to do about the stages that lose most."""
    steps = leading(losses)[:2]
    said = " ".join(CAUSES[one.stage].advice for one in steps)
    # Where retrieval loses as much, nobody is told to leave it alone.
    return said.replace(" before you touch retrieval", "") if len(steps) > 1 else said


def _retriever(losses: Losses) -> str:
    """Say what a perfect retriever would bring."""
    fix = losses.fix(ADDED)
    if fix is None or not fix.asked:
        return ""
    return (
        f" A perfect retriever would make {fix.fixed:,} more {losses.outcome.good} and {fix.broken:,} fewer"
        f"{_net(fix)}."
    )


def _bound(losses: Losses) -> str:
    if not losses.n_known_evidence:
        return ""
    return (
        f" Retrieval can have lost at most {losses.missed_at_most:,} of {losses.n_known_evidence:,}: in the "
        "others the evidence was in the prompt."
    )


def _net(fix: Fix) -> str:
    """Return the interval of the net gain, which one question alone does not have."""
    known = not np.isnan(fix.low)
    return f" (net {_signed(fix.low)} to {_signed(fix.high)}, 95 % interval)" if known else ""


def _signed(value: float) -> str:
    return number(round(value), "{:+.0f}") if round(value) else "0"


def _at(losses: Losses, stages: Sequence[str]) -> tuple[str, ...]:
    q = losses.queries
    return tuple(q["query_id"][q["stage"].isin([*stages])])


def said_of(losses: Losses, fix: Fix) -> str:
    """Say what one fix did."""
    title = losses.titles.get(fix.arm, fix.arm)
    words = (
        f"{title} was tried on {count(fix.asked, 'question')}: {fix.fixed:,} became {losses.outcome.good}, "
        f"{fix.broken:,} stopped being so{_net(fix)}"
    )
    placebo = losses.placebo
    if placebo is not None and placebo.asked:
        words += f"; the placebo, on {placebo.asked:,}: {placebo.fixed:,} and {placebo.broken:,}"
    if fix.verdict == OPEN:
        words += ". This is no more than chance would do"
        words += f"; {needed(fix.needed)}" if fix.needed != 0 else ""
    return f"{words}."


def _fix(losses: Losses, fix: Fix) -> Sequence[Finding]:
    arm = next((one for one in ARMS if one.name == fix.arm), None)
    if arm is None or not fix.n or not fix.asked:
        return ()
    helps = fix.net > 0
    does = "fixes" if helps else "breaks"
    rows = losses.answers[losses.answers["arm"].eq(fix.arm) & losses.answers["prompt"].eq("changed")]
    before = rows["query_id"].map(losses.queries.set_index("query_id")["state"])
    lost, right = (
        (before if helps else rows["state"]).ne(CORRECT),
        (rows["state"] if helps else before).eq(CORRECT),
    )
    ids = tuple(rows["query_id"][lost & right])
    n = fix.fixed if helps else fix.broken
    return (
        Finding(
            fix.arm, said_of(losses, fix), n, fix.n, wilson_interval(n / fix.n, fix.n), p_value=fix.p,
            severity=graded(LOSS, wilson_interval(max(fix.net, 0) / fix.n, fix.n)),
            query_ids=ids, tone=BAD if helps else GOOD,
            clause=(
                f"{arm.title.lower()} makes {fix.fixed:,} more {losses.outcome.good} and {fix.broken:,} fewer"
                if helps
                else ""
            ),
            label=f"{arm.title} {does} it", reads=f"that {arm.title.lower()} {does}",
        ),
    )  # fmt: skip


def cost(losses: Losses) -> Tried:
    """Say that nothing was tried yet, and what trying costs."""
    n = len(losses.queries) * _TO_TRY
    return Tried(
        UNTRIED,
        f"No fix was tried yet: to try them takes about {n:,} calls (Where answers are lost, Try the fixes).",
    )


def tried(losses: Losses) -> Mapping[str, Tried]:
    """Return what became of each fix, by the name that findings give it."""
    if not losses.n_tried:
        names = (ADVICE, *(arm.fix for arm in ARMS if arm.fix), "reader:improve")
        return dict.fromkeys(names, cost(losses)) if losses.n else {}
    found: dict[str, Tried] = {}
    for fix in losses.fixes:
        name = next((arm.fix for arm in ARMS if arm.name == fix.arm), "")
        if name and fix.asked:
            found[name] = Tried(fix.verdict, said_of(losses, fix))
    lead = advice(losses)
    if lead:
        found[ADVICE] = Tried(HARMS, lead)  # in place of whatever was advised
        at = leading(losses)
        reading = losses.step(READING)
        seen = f"{reading.n:,} of {_lost(losses)} stay so even with the evidence sentences alone."
        helps = any(one.stage == READING for one in at)
        found["reader:improve"] = Tried(HELPS if helps else OPEN, seen if helps else f"{seen} {lead}")
    return found
