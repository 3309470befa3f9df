"""The diagnostic *losses*: where answers are lost, and what each fix brings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from core.losses.analysis import Losses, analyse_losses
from core.losses.arms import ARMS
from core.losses.definitions import DEFINITIONS
from core.losses.findings import findings, tried
from core.losses.ladder import LOST, RETRIEVAL, STAGES
from core.losses.step import LossesStep
from core.socket import Diagnostic, Need, Number, QuestionColumn
from core.text.display import about


def numbers(losses: Losses) -> Sequence[Number]:
    """Return how many answers are lost at each stage, and the net gain of each fix."""
    return (
        Number("n_lost", f"Not {losses.outcome.good}", losses.n_lost, of=losses.n, noun="answer", define="losses", place="row"),
        *_stages(losses),
        *_fixes(losses),
        Number("n_fixes_tried", "Questions with a tried fix", losses.n_tried, place="setup"),
    )  # fmt: skip


def _stages(losses: Losses) -> Iterator[Number]:
    largest = sorted(LOST, key=lambda stage: -losses.step(stage).n)[: 2 if losses.n_tried else 0]
    for stage in STAGES:
        step, lost = losses.step(stage), stage in LOST
        value = step.n if step.n or losses.n_tried else None  # without any fix tried, 0 is no count
        note = "" if step.expected is None else f"{about(step.expected)} by the placebo"
        yield Number(
            f"n_{'lost' if lost else 'kept'}_{_key(stage)}", losses.title(stage), value,
            of=losses.n_lost if lost else losses.n - losses.n_lost, noun="answer", define=stage, note=note,
            cases=f"queries.stage:{quote(stage, safe='')}", place="card" if stage in (RETRIEVAL, *largest) else "row",
        )  # fmt: skip


def _key(stage: str) -> str:
    return "_".join(word.strip(",?") for word in stage.split())


def _fixes(losses: Losses) -> Iterator[Number]:
    for arm in ARMS:
        fix = losses.fix(arm.name)
        if not arm.fix:
            continue
        note = "" if fix is None else f"{fix.fixed:,} fixed, {fix.broken:,} broken"
        yield Number(
            f"net_{arm.name}", f"{arm.title}: net", None if fix is None or not fix.n else fix.net,
            n=None if fix is None else fix.n, interval=None if fix is None or not fix.n else (fix.low, fix.high),
            pattern="{:.0f}", define="net", note=note, place="row",
        )  # fmt: skip


LOSSES = Diagnostic(
    name="losses",
    title="Where answers are lost",
    question="Is it the retriever or the model, and what would each fix bring?",
    analyse=analyse_losses,
    numbers=numbers,
    findings=findings,
    finds=("losses", *(arm.name for arm in ARMS if arm.fix)),
    needs=(
        Need("passages", "The run has no passages."),
        Need(
            "queries",
            "Give reference answers or labels (correct), or extract and verify claims: without either "
            "nobody can tell whether a fix helps.",
            ("correct", "reference_answers"),
            other="claims",
        ),
    ),
    reads=("answers",),
    figures=("loss_ladder", "fix_balance"),
    definitions=DEFINITIONS,
    columns=(
        QuestionColumn("stage", "Lost or kept", needs_labels=True),
        QuestionColumn(
            "n_fixing",
            "Fixes that make it right",
            "{:g}",
            None,
            "worse",
            needs_labels=True,
            is_secondary=True,
        ),
    ),
    step=LossesStep,
    icon=":material/stairs:",
    tried=tried,
)
