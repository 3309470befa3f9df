"""Output of the command line: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from core.llm.prompts import prompt_style
from core.pipeline import CallPlan, duration
from core.text.display import INVISIBLE, one_line, visible


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
    text = json.dumps(_finite(value), ensure_ascii=not unicode, indent=2, allow_nan=False, default=str)
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
