"""The packaged model with threads that spin and with threads that sleep, alone and beside a busy program.

OMP_WAIT_POLICY=PASSIVE is what the program sets by itself; without it OpenMP lets waiting threads spin.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench.lines import Line, Size, in_turn

WORDS = 300
BUSY = "while True: pass"
# Whatever comes first decides: torch without the program's setting, or the program.
WORK = f"""
import os, sys
if sys.argv[1] == "spin":
    os.environ.pop("OMP_WAIT_POLICY", None)
    import torch
from core.llm import Message, Request, open_llm
import time
llm = open_llm("embedded")
text = " ".join(f"In {{1500 + i}} the town had {{i}} mills." for i in range({WORDS} // 7))
turns = (Message("user", text + " How many mills were there in 1520?"), Message("assistant", "Answer:"))
llm.generate([Request(turns, max_tokens=1)])
start = time.perf_counter()
for seed in range(int(sys.argv[2])):
    llm.generate([Request(turns, max_tokens=12, seed=seed)])
    llm.score([turns], ["There were 20 mills."])
print(time.perf_counter() - start)
"""


@contextmanager
def neighbours(n: int) -> Iterator[None]:
    """Keep so many other processes busy."""
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(n)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def seconds(policy: str, n: int) -> float:
    """Generate and score n times in a process of its own."""
    command = [sys.executable, "-c", WORK, policy, str(n)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def lines(size: Size) -> Iterator[Line]:
    """Measure processes in turn."""
    n_answers = size.pick(1, 1, 2)
    for n in size.pick((0,), (), (0, 1)):
        with neighbours(n):
            paired = list(
                in_turn(
                    lambda _: seconds("spin", n_answers),
                    lambda _: seconds("sleep", n_answers),
                    size.pick(1, 1, 3),
                )
            )
        yield Line.of(
            f"sleeping threads, {'beside a busy program' if n else 'alone'}",
            "threads that spin",
            [spin / sleep for spin, sleep, _ in paired],
            "the same prompts; loading is not counted",
        )
