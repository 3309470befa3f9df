"""Measure speed and keep the results: ``python -m bench [--quick | --smoke] [NAME …]``; no name is all."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bench.lines import Size, measured
from bench.page import keep, write


def names() -> list[str]:
    """Return the modules that measure speed."""
    modules = sorted(Path(__file__).parent.glob("*.py"))
    return [path.stem for path in modules if "\ndef lines(" in path.read_text(encoding="utf-8")]


def run(name: str, size: Size) -> bool:
    """Run a module in a process of its own and keep its lines; return whether it ended well."""
    print(f"== {name}", flush=True)
    start = time.perf_counter()
    try:
        # A spawned process shares no loaded model, no cache and no memory with the measurement before it.
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as alone:
            found = alone.submit(measured, name, size).result()
    except Exception as error:
        print(f"{name} failed: {type(error).__name__}: {error}", flush=True)
        return False
    seconds = time.perf_counter() - start
    print(f"   {seconds:.0f} s", flush=True)
    if found and size is not Size.SMOKE:
        keep(name, size, found, seconds)
        write()
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named modules one after another; return 1 where one failed, else 0."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names()))
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--quick", action="store_const", dest="size", const=Size.QUICK, help="in five minutes")
    how.add_argument("--smoke", action="store_const", dest="size", const=Size.SMOKE, help="does it run?")
    parser.set_defaults(size=Size.FULL)
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(names()):
        parser.error(f"no such measurement: {', '.join(sorted(unknown))}; there are {', '.join(names())}")
    ended = [run(name, options.size) for name in options.names or names()]
    return 0 if all(ended) else 1


if __name__ == "__main__":
    sys.exit(main())
