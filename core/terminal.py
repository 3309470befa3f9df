"""What the command line shows: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from core.definitions import CLAIM_REASONS, MODES, QUADRANTS, UNDEFINED_REASONS
from core.pipeline.plan import CallPlan
from core.pipeline.progress import Progress, duration

_REDRAW_SECONDS = 0.2
_LOG_SECONDS = 15.0


def say(line: str) -> None:
    """Write one line to standard error."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def put(text: str) -> None:
    """Write a result to standard output."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def put_json(value: Mapping[str, Any]) -> None:
    """Write one JSON object to standard output; what is not a number is null."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    put(json.dumps(value, ensure_ascii=not unicode, indent=2, allow_nan=False, default=str))


class ProgressLine:
    """A progress callback: one line that redraws itself in a terminal, a line now and then in a log."""

    def __init__(self, unit: str = "calls") -> None:
        self._progress = Progress(unit=unit)
        self._terminal = sys.stderr.isatty()
        self._shown = 0.0 if self._terminal else time.monotonic()

    def __call__(self, done: int, total: int, what: str) -> None:
        """Take in the state of the job."""
        self._progress.update(done, total, what)
        now = time.monotonic()
        if now - self._shown < (_REDRAW_SECONDS if self._terminal else _LOG_SECONDS):
            return
        self._shown = now
        line = self._progress.line()
        if self._terminal:
            sys.stderr.write(f"\r\x1b[K{line[:160]}")
            sys.stderr.flush()
        else:
            say(line)

    def end(self) -> None:
        """Finish the line."""
        if self._terminal and self._progress.total:
            sys.stderr.write("\r\x1b[K")
        if self._progress.done:
            say(f"{self._progress.done:,} {self._progress.unit} in {duration(self._progress.seconds)}.")


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C or SIGTERM into a request to stop, the second into an end at once."""
    asked = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        say("\nStopping after the call in progress; press Ctrl-C again to end at once.")

    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def plan_text(plan: CallPlan, claims_calls: int | None = None) -> str:
    """Describe a plan for people; ``claims_calls``: about so many more, for the claims."""
    without = f" ({plan.n_without_passages} of them without passages)" if plan.n_without_passages else ""
    lines = [
        f"{plan.dataset.name}: {len(plan.dataset.questions):,} questions{without}, model {plan.model}",
        "",
    ]
    lines += [
        f"  {row.item:<24}{row.count:>12,}  {row.note}".rstrip() for row in plan.to_frame().itertuples()
    ]
    if claims_calls is not None:
        note = (
            "beyond those above, at three claims an answer" if claims_calls else "no language model is asked"
        )
        lines.append(f"  {'calls for claims, about':<24}{claims_calls:>12,}  {note}")
    time_text = f"{duration(plan.seconds)}" if plan.seconds is not None else "unknown; --calibrate times it"
    lines += [f"  {'time':<24}{time_text:>12}", "", "Prompt:", ""]
    lines += [f"  | {line}" for line in plan.prompt_sent.split("\n")]
    lines += ["", f"An answer ends at a line break or after {plan.options.max_tokens} tokens."]
    return "\n".join(lines)


def summary_text(facts: Mapping[str, Any]) -> str:
    """Describe the headline numbers of a run for people, each with what it rests on."""
    n, defined = facts["n_queries"], facts["n_defined"]
    state = "" if facts["complete"] else ", not finished"
    kind = "SIMULATED DATA" if facts["simulated"] else facts["source"]
    lines = [f"{facts['name']}  ({kind}, run {facts['run_id']}{state})", ""]

    def row(title: str, value: str, note: str = "") -> None:
        lines.append(f"  {title:<26}{value:>9}  {note}".rstrip())

    row("Questions", f"{n:,}")
    row("  with a rank agreement", f"{defined:,}", f"of {n:,}")
    for reason, count in facts["undefined_reasons"].items():
        row(f"  undefined: {reason}", f"{count:,}", UNDEFINED_REASONS[reason].meaning)
    interval = facts["rho_ci"]
    note = f"95 % interval {interval[0]:.2f} to {interval[1]:.2f}, " if interval else ""
    row("Mean rank agreement", _number(facts["mean_rho"]), f"{note}{defined:,} questions")
    row("Median rank agreement", _number(facts["median_rho"]), f"{defined:,} questions")
    random = facts["p_random_divergent"]
    chance = f"; of random orders {random:.0%} would be" if random is not None else ""
    row("Divergent", f"{facts['n_divergent']:,}", f"of {defined:,}, below {facts['threshold']:.2f}{chance}")
    row("Mean dominance", _number(facts["mean_dominance"]), f"{facts['n_dominance']:,} questions")
    row("Mean entropy", _number(facts["mean_entropy"]), f"nats, {facts['n_dominance']:,} questions")
    if facts["mean_noise_quantile"] is not None:
        row(
            "Mean noise floor",
            _number(facts["mean_noise_quantile"]),
            f"{facts['n_noise_quantile']:,} questions",
        )
    if facts["n_judged"]:
        row("Right answers", f"{facts['n_correct']:,}", f"of {facts['n_judged']:,} that can be judged")
    for key, title in (
        ("n_empty_answers", "Empty answers"),
        ("n_abstained", "Abstentions"),
        ("n_errors", "Errors"),
    ):
        row(title, f"{facts[key]:,}", f"of {n:,}")
    found = {name: count for name, count in facts["failure_modes"].items() if count}
    if found:
        lines += ["", "  Failure modes (questions)"]
        for name, count in sorted(found.items(), key=lambda item: -item[1]):
            tested = facts["failure_modes_tested"][name]
            row(
                f"  {MODES[name].title}",
                f"{count:,}",
                f"of {tested:,} that could show it: {MODES[name].rule}",
            )
    lines += _claims_lines(facts)
    untested = [MODES[name].title.lower() for name, m in facts["failure_modes_tested"].items() if not m]
    if n and untested:
        lines += ["", f"  Not tested, for lack of data: {', '.join(untested)}"]
    return "\n".join(lines)


def _claims_lines(facts: Mapping[str, Any]) -> list[str]:
    """Describe the claims of a run; nothing where none were looked for."""
    if facts.get("n_claims") is None:
        return []
    lines = ["", "  Claims and evidence"]

    def row(title: str, value: str, note: str = "") -> None:
        lines.append(f"    {title:<30}{value:>9}  {note}".rstrip())

    judged = f"in {_answers(facts['n_with_claims'])}, judged by {facts['claims_judge'] or 'nobody'}"
    limit = f"support from {facts['support_threshold']:.2f}"
    joint, interval = facts["n_claims_joint"], facts["grounding_ci"]
    band = f", 95 % interval {interval[0]:.2f} to {interval[1]:.2f}" if interval else ""
    unscored = facts["n_cells_unscored"]
    row("Claims", f"{facts['n_claims']:,}", judged)
    row(
        "Supported",
        f"{facts['n_claims_supported']:,}",
        limit + (f", {joint:,} of them only by a pair" if joint else ""),
    )
    row("Not supported", f"{facts['n_claims_not_supported']:,}")
    row("Irrelevant", f"{facts['n_claims_irrelevant']:,}")
    row("Unscored", f"{facts['n_claims_unscored']:,}", f"{unscored:,} cells unscored" if unscored else "")
    row("Mean grounding", _number(facts["mean_grounding"]), _answers(facts["n_grounding"]) + band)
    uncertainty = _number(facts["mean_claim_uncertainty"])
    row("Mean claim uncertainty", uncertainty, _answers(facts["n_claim_uncertainty"]))
    for reason, count in facts["claims_undefined_reasons"].items():
        row(f"Without grounding: {reason}", f"{count:,}", CLAIM_REASONS[reason].meaning)
    for name, count in facts["quadrants"].items():
        row(f"Passages: {name}", f"{count:,}", QUADRANTS[name].meaning)
    if facts["n_verdicts_changed"]:
        row("Verdicts changed", f"{facts['n_verdicts_changed']:,}", "the file's own cells say otherwise")
    if facts["n_verdicts_from_file"]:
        row("Verdicts of the file", f"{facts['n_verdicts_from_file']:,}", "of claims without any cell")
    return lines


def _answers(n: int) -> str:
    return f"{n:,} answer{'s' * (n != 1)}"


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:.3f}"
