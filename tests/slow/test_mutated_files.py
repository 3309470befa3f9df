"""A damaged file of any kind is read, or refused in one sentence: nothing escapes, hangs or fills the memory.

``LEADLINE_FILES=10000`` opens so many (about an hour; ``-s`` shows how far it is), ``LEADLINE_SEED`` draws others. A
file that fails is kept in the folder of the test, under its number; ``python -m tests.mutated_files SEED NUMBER`` makes
and opens it again.
"""

import os
import random
import shutil
import sys
import time
from collections import Counter
from multiprocessing.connection import Connection

import pytest

from core.errors import InputError
from tests import mutated_files
from tests.core.sources.formats.fuzz import EXAMPLES
from tests.doors import DOORS
from tests.mutated_files import (
    DIED,
    ESCAPED,
    GREW,
    HUNG,
    READ,
    REFUSED,
    Outcome,
    every,
    good,
    mutant,
    opened,
    together,
)
from tests.mutations import damage

pytestmark = pytest.mark.slow
N_FILES = int(os.environ.get("LEADLINE_FILES", "40"))
SEED = int(os.environ.get("LEADLINE_SEED", "0"))


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    """Good files, some of them opened: all where many damaged ones are."""
    folder = tmp_path_factory.mktemp("mutated")
    names = [door.name for door in DOORS]
    some = names if N_FILES >= 1_000 else random.Random(SEED).sample(names, 6)
    found = good(folder, some)
    # A good file that is refused as it is would test nothing.
    assert [one for one in found if one.what != READ] == [] and len(found) == len(some)
    return folder


@pytest.mark.timeout(300 + 5 * N_FILES)
def test_no_damaged_file_escapes_hangs_or_fills_the_memory(seeds):
    wrong, counts, longest, most = [], Counter(), 0.0, 0
    for found in every(seeds, SEED, range(N_FILES)):
        counts[found.what] += 1
        longest, most = max(longest, found.seconds), max(most, found.grown)
        if not found.fine:
            wrong.append(found)
            sys.stdout.write(f"{found.number} {found.door}, {found.how}: {found.what}\n{found.said}\n")
        if sum(counts.values()) % 250 == 0 or not found.fine:
            sys.stdout.write(
                f"{time.strftime('%H:%M')} {dict(counts)}, {longest:.1f} s, {most:,} bytes at most\n"
            )
            sys.stdout.flush()
    assert not wrong, f"seed {SEED}, kept in {seeds}: {[found[:4] for found in wrong]}"
    assert min(counts[READ], counts[REFUSED]) > N_FILES / 10, counts


def _escape() -> None:
    raise ValueError("no sentence")


def _two_lines() -> None:
    raise InputError("one\ntwo")


def _crash() -> None:
    os.abort()


def _hang() -> None:
    while True:
        pass


def _sleep() -> None:
    time.sleep(60)


def _grow() -> None:
    assert b"x" * 1_100_000_000


def _bomb() -> None:
    bytearray(8_000_000_000)


def _refuse() -> None:
    raise InputError("A sentence.")


PLANTED = {_escape: ESCAPED, _two_lines: ESCAPED, _crash: DIED, _hang: HUNG, _sleep: HUNG, _grow: GREW, _bomb: ESCAPED,
           _refuse: REFUSED, list: READ}  # fmt: skip


def _planted(send: Connection, use: object) -> None:
    mutated_files.SECONDS = 1
    send.send(Outcome(0, "planted", "", DIED, ""))
    send.send(opened(0, "planted", "", use))


@pytest.mark.parametrize(("use", "what"), PLANTED.items())
def test_what_is_wrong_is_noticed(use, what, monkeypatch):
    monkeypatch.setattr(mutated_files, "PATIENCE", 2.0)
    assert [found.what for found in together(_planted, [0], use)] == [what]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_damages_of_a_file_differ(name):
    assert len({damage(EXAMPLES[name], name, random.Random(number))[0] for number in range(40)}) > 30


def test_equal_numbers_give_equal_files(seeds):
    made = []
    for _ in range(2):
        for number in range(40):
            mutant(SEED, number, seeds)
        files = sorted(path for n in range(40) for path in (seeds / str(n)).rglob("*") if path.is_file())
        made.append([(str(path), path.read_bytes()) for path in files])
        for number in range(40):
            shutil.rmtree(seeds / str(number))
    assert made[0] == made[1]
