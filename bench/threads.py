"""The packaged model with threads that spin and with threads that sleep, alone and beside a busy program.

OMP_WAIT_POLICY=PASSIVE is what the program sets by itself; without it OpenMP lets waiting threads spin.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

ROUNDS, ANSWERS, WORDS = 3, 2, 300
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: only whether it runs")
    smoke = parser.parse_args().smoke
    rounds, n_answers = (1, 1) if smoke else (ROUNDS, ANSWERS)
    print(f"{n_answers} answers and scores, {rounds} rounds in turn; {os.cpu_count()} cores")
    for n in (0,) if smoke else (0, 1):
        spin, sleep = [], []
        for _ in range(rounds):
            with neighbours(n):
                spin.append(seconds("spin", n_answers))
                sleep.append(seconds("sleep", n_answers))
        ratios = [a / b for a, b in zip(spin, sleep, strict=True)]
        name = "beside one busy program" if n else "alone"
        print(
            f"{name}: {statistics.median(spin):.1f} s spinning, {statistics.median(sleep):.1f} s sleeping; "
            f"ratio {statistics.median(ratios):.1f} (min {min(ratios):.1f}, max {max(ratios):.1f})"
        )


if __name__ == "__main__":
    main()
