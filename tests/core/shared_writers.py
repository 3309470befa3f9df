"""Processes that write to the stores at once: ``python -m tests.core.shared_writers FOLDER PROCESSES WRITES``.

Each writes as many completions and reviews as told, half of each, one transaction a write, to stores that the first
of them makes. One line is printed for each write that is stored.
"""

import multiprocessing
import os
import sys

from core.llm.cache import CompletionCache, default_cache_path
from core.llm.types import Completion
from core.reviews import Review, ReviewStore

RUN = "c1a7"


def said(line: str) -> None:
    os.write(1, f"{line}\n".encode())  # whole, whoever else writes


def write(folder: str, name: str, writes: int) -> None:
    with ReviewStore(folder) as reviews, CompletionCache(default_cache_path()) as cache:
        for i in range(writes // 2):
            cache.put(f"{name}-{i}", Completion(f"{name} {i}", "stop", 1, 1, 0.5))
            said(f"{name}-{i} answered")
            # Two people, each from half of the processes, review the same questions.
            person = f"person {int(name) % 2}"
            reviews.write(RUN, person, {f"q{int(name) // 2}-{i}": Review("flagged", f"{name} {i}")})
            said(f"{name}-{i} reviewed")


if __name__ == "__main__":
    folder, processes, writes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    fork = multiprocessing.get_context("fork")  # what is imported is shared
    started = [fork.Process(target=write, args=(folder, str(one), writes)) for one in range(processes)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    sys.exit(max(abs(process.exitcode or 0) for process in started))
