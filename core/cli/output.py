"""Files and output of the command line: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from core.errors import InputError
from core.files import write_atomically
from core.llm.prompts import prompt_style
from core.manifest import read_manifest
from core.pipeline import CallPlan
from core.run import Run, check_target, holds_run, sole_writer
from core.sources.dataset import Dataset, load_dataset, open_questions
from core.sources.report import ValidationReport
from core.text.display import INVISIBLE, duration, one_line, visible

_ISSUES_SHOWN = 20


def log(line: str) -> None:
    """Write one line to standard error; what may come from a file cannot act on the terminal."""
    sys.stderr.write(one_line(line) + "\n")
    sys.stderr.flush()


def print_text(text: str) -> None:
    """Write a result to standard output; what may come from a file cannot act on the terminal."""
    sys.stdout.write(visible(text) + "\n")
    sys.stdout.flush()


def print_json(value: Mapping[str, Any]) -> None:
    """Write one JSON object to standard output; null stands for what is undefined or infinite."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(_finite(value), ensure_ascii=not unicode, indent=2, default=str)
    # JSON escapes some control characters only; in all others the value stays what it is, too.
    sys.stdout.write(INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")
    sys.stdout.flush()


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C or SIGTERM into a cancel; the second ends the program at once."""
    asked = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        sys.stderr.write("\n")  # off the line that shows the progress
        log("Stopping after the call in progress; press Ctrl-C again to end at once.")

    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def plan_text(plan: CallPlan) -> str:
    """Return a plan as text."""
    facts = plan.to_dict()
    n_without = plan.n_without_passages
    without = f" ({n_without} of them without passages)" if n_without else ""
    lines = [f"{facts['dataset']}: {facts['n_questions']:,} questions{without}, model {facts['model']}", ""]
    lines += [
        f"  {row.item:<24}{row.count:>12,}  {row.note}".rstrip() for row in plan.to_frame().itertuples()
    ]
    time_text = duration(plan.seconds) if plan.seconds is not None else "unknown; --time measures it"
    lines.append(f"  {'time':<24}{time_text:>12}")
    prompt = facts["prompt"]
    if prompt and plan.calls:
        lines += ["", "Prompt:", "", *(f"  | {line}" for line in prompt["template"].split("\n"))]
        at_line_break = "at a line break or " if prompt_style(prompt["style"]).stop else ""
        lines += ["", f"An answer ends {at_line_break}after {prompt['max_tokens']} tokens."]
    return "\n".join(map(one_line, lines))


def open_dataset(path: str, limit: int | None, corpus: str | None = None) -> Dataset:
    """Read a data set, or the questions of a saved run, and log the problems found."""
    data = load_dataset(path, corpus=corpus) if corpus is not None else open_questions(path)
    log_report(data.report, path)
    return data if limit is None else data.head(limit)


def log_report(report: ValidationReport, source: str) -> None:
    """Log the detected format of a file and the problems found in it."""
    for note in report.notes:
        log(f"{source}: {note}")
    for issue in report.issues[:_ISSUES_SHOWN]:
        where = (("row", issue.row), ("column", issue.column))
        place = ", ".join(f"{what} {value}" for what, value in where if value is not None)
        found = f"found {issue.value!r}, expected {issue.expected} ({issue.severity})."
        log(f"{source}, {place or 'file'}: {found}")
    if report.n_issues > _ISSUES_SHOWN:
        log(f"{source}: and {report.n_issues - _ISSUES_SHOWN:,} more.")
    if report.n_kept < report.n_rows:
        log(f"{source}: {report.n_kept:,} of {report.n_rows:,} rows are used.")


def log_possible(report: ValidationReport) -> None:
    """Log which analyses a file allows, and what the others need."""
    for what in report.enables:
        log(f"  allows {what}")
    for what in report.missing:
        log(f"  cannot show {what}")


def occupant(out: str) -> dict[str, Any] | None:
    """Return the manifest of the run that a folder holds, if any."""
    return read_manifest(out) if holds_run(out) else None


def check_free(run_id: str, out: str, overwrite: bool) -> None:
    """Raise InputError, before any work, where a folder holds another run or other files."""
    check_target(out)
    there = None if overwrite else occupant(out)
    if there is not None and there.get("run_id") != run_id:
        raise InputError(
            f"{out} already holds another run, {there.get('name')!r} ({there.get('run_id')}): "
            "give another --out, or --overwrite to replace it."
        )


def save_run(run: Run, out: str, overwrite: bool) -> None:
    """Save a run; InputError where the folder holds another one that may not be replaced."""
    with sole_writer(out):
        check_free(run.run_id, out, overwrite)
        run.save(out)


def free_file(out: str, overwrite: bool, option: str = "--out") -> Path:
    """Return the path of a file to write; InputError where it exists and may not be replaced."""
    if os.path.lexists(out) and not overwrite:
        raise InputError(f"{out} exists; give another {option} or --overwrite.")
    return Path(out)


def write_file(target: Path, content: bytes) -> None:
    """Write a file atomically."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, content)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}.") from error


def option_pairs(option: str, given: Sequence[str]) -> list[tuple[str, str]]:
    """Read ``name=value`` texts of a repeatable option."""
    pairs = []
    for text in given:
        name, separator, value = text.partition("=")
        if not separator or not name.strip() or not value.strip():
            raise InputError(f"{option} must be name=value, got {text!r}.")
        pairs.append((name.strip(), value.strip()))
    return pairs
