"""What the ladder and the fixes say: where answers are lost, and which fix was seen to help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from core.losses.analysis import Losses
from core.losses.arms import ADDED, ARMS
from core.losses.definitions import CAUSES
from core.losses.fixes import Fix, mcnemar
from core.losses.ladder import LOST, PIPELINE, READING, UNKNOWN, Step
from core.losses.outcomes import CORRECT
from core.severity import LOSS, WRONG, graded
from core.socket import BAD, GOOD, HELPS, OPEN, UNCLEAR, UNTRIED, Finding, Tried
from core.stats import wilson_interval
from core.text.display import about, count, duration, needed, number

ADVICE = "answers:lost"  # the fix of a finding that yields to whatever the ladder says
_TO_KNOW = (
    "Mark gold passages, or find them by asking with each passage alone; ask again where a call failed."
)
# No arm has another model or prompt: this advice follows from what did not help.
_NOT_TRIED = "Neither was tried here: Try a change, in the workbench, does so with one call a question."
_READER, _RETRIEVAL = "reader:improve", "retrieval:improve"


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


def _loses(step: Step) -> str:
    cause = CAUSES[step.stage]
    return f"{cause.who} {'lose' if cause.plural else 'loses'}"


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
        part = "" if unknown == lost else f"{unknown:,} of "
        are = "is" if unknown == 1 else "are"
        said = f"Where {part}{_lost(losses)} {are} lost is not known.{_bound(losses)}"
        todo = _TO_KNOW if losses.n_tried else cost(losses).sentence
        if not unknown:
            said = f"No stage loses more of {_lost(losses)} than any change of the prompt would give."
            todo = ""
        return (
            Finding(
                "losses", said, unknown, lost, severity="low", tone=UNCLEAR, advice=todo,
                label="Lost somewhere", query_ids=_at(losses, [UNKNOWN]), reads="that are lost somewhere",
            ),
        )  # fmt: skip
    if len(found) == 1:
        said = f"{_loses(found[0])} most: {_named(losses, found[0])}"
    else:
        parts = [f"{_loses(one)} {one.n:,}" for one in found]
        said = (
            f"of {_lost(losses)}, {', '.join(parts[:-1])} and {parts[-1]}; these data do not show which "
            "loses more"
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
    stages = [one.stage for one in leading(losses)[:2]]
    if stages == [READING]:
        return f"{CAUSES[READING].advice[:-1]} before you touch retrieval. {_NOT_TRIED}"
    return " ".join(_advice_at(losses, stage) for stage in stages)


def _advice_at(losses: Losses, stage: str) -> str:
    """Return the advice of a stage; where its fix breaks as many answers elsewhere, what it did instead."""
    if stage == READING:
        return f"{CAUSES[stage].advice} {_NOT_TRIED}"
    fix = next((losses.fix(arm) for arm, into in PIPELINE.items() if into == stage), None)
    return CAUSES[stage].advice if fix is None or fix.net > 0 else said_of(losses, fix)


def _retriever(losses: Losses) -> str:
    """Say what a perfect retriever would bring."""
    fix = losses.fix(ADDED)
    if fix is None or not fix.asked:
        return ""
    return (
        f" A perfect retriever would make {fix.fixed or 'none'} more {losses.outcome.good} and "
        f"{fix.broken or 'none'} fewer{_net(fix)}."
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
    if np.isnan(fix.low):
        return ""
    return f" (net {_signed(fix.low)} to {_signed(fix.high)} of {fix.n:,}, 95 % interval)"


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
    if arm is None or not fix.asked:
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
            advice=CAUSES[PIPELINE[fix.arm]].advice if helps and fix.arm in PIPELINE else "",
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
    calls, seconds = losses.to_try
    time = "" if seconds is None else f", about {duration(seconds)}"
    return Tried(
        UNTRIED,
        f"No fix was tried yet: trying them takes about {calls:,} calls{time} (page Where answers are lost, "
        "or --steps losses).",
    )


def tried(losses: Losses) -> Mapping[str, Tried]:
    """Return what became of each fix, by the name that findings give it."""
    if not losses.n_tried:
        names = (ADVICE, _READER, *(arm.fix for arm in ARMS if arm.fix))
        return dict.fromkeys(names, cost(losses)) if losses.n else {}
    found: dict[str, Tried] = {}
    for fix in losses.fixes:
        name = next((arm.fix for arm in ARMS if arm.name == fix.arm), "")
        if name and fix.asked:
            found[name] = Tried(fix.verdict, said_of(losses, fix))
    lead = advice(losses)
    if lead:  # it takes the place of what was advised before anything was tried
        found |= dict.fromkeys((ADVICE, _READER), Tried(OPEN, lead))
        retrieval = found.get(_RETRIEVAL)
        if retrieval is not None and retrieval.outcome != HELPS:
            found[_RETRIEVAL] = Tried(OPEN, f"{retrieval.sentence} {lead}")
    return found
