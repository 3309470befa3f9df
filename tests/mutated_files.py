"""Opens damaged files in processes of their own, so that a crash, a hang or a bomb costs that process alone.

``python -m tests.mutated_files SEED NUMBER`` opens one of them here, in a new folder that it names.
"""

from __future__ import annotations

import hashlib
import json
import random
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from core.errors import LeadlineError
from core.manifest import MANIFEST_FILE
from tests.doors import DOORS, Door, prepare, write_seeds
from tests.mutations import damage

SECONDS = 20  # of the processor, for one file
PATIENCE = 120.0  # seconds without a sign of life
MEMORY = 1_000_000_000  # bytes that a process, or one that it starts, may grow by
_BOMB = 3_000_000_000  # at which one is stopped
_BATCH = 200  # files for each process
_LONGEST = 1_000  # characters of a sentence
READ, REFUSED, ESCAPED, HUNG, GREW, DIED = "read", "refused", "escaped", "hung", "grew", "died"
_ENDINGS = (".json", ".jsonl", ".csv", ".parquet", ".arrow", ".txt", ".gz", ".xlsx", "")


class Outcome(NamedTuple):
    """What came of a file, one of the words above, with the sentence or the traceback."""

    number: int
    door: str
    how: str
    what: str
    said: str
    seconds: float = 0.0
    grown: int = 0

    @property
    def fine(self) -> bool:
        return self.what in (READ, REFUSED)


def mutant(seed: int, number: int, folder: Path) -> tuple[Door, str]:
    """Make the folder ``number`` beside the seeds, one of its files damaged; the same for the same numbers."""
    chance = random.Random(f"{seed} {number}")
    door = chance.choices(DOORS, [one.weight for one in DOORS])[0]
    place = folder / str(number)
    shutil.copytree(folder / "seeds" / door.name, place)
    file = _one_of(place, door.within, chance)
    way = chance.random()
    if way < 0.03 and len([*place.iterdir()]) == 1:
        other = file.with_suffix(chance.choice(_ENDINGS))
        return door, f"{file.name} named {file.rename(other).name}"
    if way < 0.10:
        theirs = chance.choice(DOORS)
        donor = _one_of(folder / "seeds" / theirs.name, theirs.within, chance)
        if way < 0.06:  # a table of another run, where both are runs
            same = (folder / "seeds").glob(f"*run/{file.name.split('-')[0]}-*.parquet")
            donor = min(same, default=donor)
            file.write_bytes(donor.read_bytes())
        else:
            data, piece = file.read_bytes(), donor.read_bytes()
            at, first = chance.randrange(len(data) + 1), chance.randrange(len(piece) + 1)
            file.write_bytes(
                data[:at] + piece[first : first + chance.choice((4, 100, len(piece)))] + data[at:]
            )
        how = f"{file.name} with what is in {theirs.name}/{donor.name}"
    else:
        data, done = damage(file.read_bytes(), file.name, chance)
        file.write_bytes(data)
        how = f"{file.name}: {done}"
    # Who makes a run by hand gives the hash of his table; else all that is tested is the hash.
    if file.suffix == ".parquet" and chance.random() < 0.9 and (file.parent / MANIFEST_FILE).exists():
        _sign(file)
        how += ", signed"
    return door, how


def _one_of(folder: Path, within: str, chance: random.Random) -> Path:
    files = sorted(path for path in folder.glob(within) if path.is_file())
    tables = [path for path in files if path.suffix == ".parquet" and pq.read_metadata(path).num_rows]
    if (folder / MANIFEST_FILE) in files:
        return folder / MANIFEST_FILE if chance.random() < 0.4 else chance.choice(tables)
    return chance.choice(files)


def _sign(file: Path) -> None:
    path = file.parent / MANIFEST_FILE
    manifest = json.loads(path.read_text())
    for entry in manifest["tables"].values():
        if entry["file"] == file.name:
            entry["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
            try:
                entry["rows"] = pq.read_metadata(file).num_rows
            except Exception:  # damaged: nobody knows
                entry.pop("rows")
    path.write_text(json.dumps(manifest))


def opened(number: int, door: str, how: str, use: Callable[[], object]) -> Outcome:
    """Return what comes of opening a file in this process, which is killed where that takes too long."""
    _limit(resource.RLIMIT_CPU, int(_used()) + 1 + SECONDS)
    _limit(resource.RLIMIT_AS, _status("VmSize") + _BOMB)
    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
    seconds, memory = _used(), _status("VmRSS")
    try:
        use()
        what, said = READ, ""
    except LeadlineError as error:
        what, said = REFUSED, str(error)
        if not said.strip() or "\n" in said or len(said) > _LONGEST:
            what, said = ESCAPED, f"no sentence: {said!r}"
    except BaseException as error:
        what, said = ESCAPED, "".join(traceback.format_exception(error))
    seconds, grown = _used() - seconds, _status("VmHWM") - memory
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    if max(grown, children) > MEMORY:
        what = GREW
    elif seconds > SECONDS:
        what = HUNG
    return Outcome(number, door, how, what, said, seconds, grown)


def _limit(kind: int, most: int) -> None:
    resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


def _used() -> float:
    """Return the seconds of the processor that this process and those it started have had."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _status(name: str) -> int:
    return 1024 * int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0])


def _work(send: Connection, folder: Path, seed: int, numbers: list[int]) -> None:
    # What a user does not see is no failure here; an error of numpy shows in what is computed.
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    prepare(folder)
    for number in numbers:
        door, how = mutant(seed, number, folder)
        send.send(Outcome(number, door.name, how, DIED, ""))
        found = opened(number, door.name, how, lambda: door.use(folder / str(number)))  # noqa: B023
        if found.fine:
            shutil.rmtree(folder / str(number))
        send.send(found)


def _seeds(send: Connection, folder: Path, names: Collection[str]) -> None:
    warnings.simplefilter("ignore")
    prepare(folder)
    write_seeds(folder / "seeds")
    for door in (one for one in DOORS if one.name in names):
        shutil.copytree(folder / "seeds" / door.name, folder / "good")
        send.send(opened(-1, door.name, "as it is", lambda: door.use(folder / "good")))  # noqa: B023
        shutil.rmtree(folder / "good")
    send.send(None)


def good(folder: Path, names: Collection[str] = ()) -> list[Outcome]:
    """Write the good files of every door into a folder, and return what comes of opening those of some doors."""
    with _child(_seeds, folder, names) as (_, receive):
        return [*iter(receive.recv, None)]


def every(folder: Path, seed: int, numbers: Iterable[int]) -> Iterator[Outcome]:
    """Yield what comes of each damaged file; those that fail stay in the folder, under their number."""
    left = list(numbers)
    while left:
        batch = left[:_BATCH]
        for found in together(_work, batch, folder, seed, batch):
            yield found
            left.remove(found.number)


def together(work: Callable[..., None], numbers: list[int], *given: object) -> Iterator[Outcome]:
    """Yield the outcomes that a process sends, each after its beginning, up to the one that it dies of."""
    with _child(work, *given) as (child, receive):
        for _ in numbers:
            begun: Outcome = receive.recv()
            if not receive.poll(PATIENCE):
                yield begun._replace(what=HUNG, said=f"no end within {PATIENCE:g} s")
                return
            try:
                yield receive.recv()
            except EOFError:
                child.join()
                hung = child.exitcode == -signal.SIGXCPU
                yield begun._replace(what=HUNG if hung else DIED, said=f"exit status {child.exitcode}")
                return


@contextmanager
def _child(work: Callable[..., None], *given: object) -> Iterator[tuple[BaseProcess, Connection]]:
    # Of a process without threads, whatever the tests before have started.
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=work, args=(send, *given))
    child.start()
    send.close()
    try:
        yield child, receive
    finally:
        child.kill()
        child.join()


def main() -> None:
    seed, number = map(int, sys.argv[1:])
    folder = Path(tempfile.mkdtemp(prefix="mutated-"))
    good(folder)
    prepare(folder)
    door, how = mutant(seed, number, folder)
    sys.stdout.write(f"{folder / str(number)}: {door.name}, {how}\n")
    sys.stdout.flush()
    door.use(folder / str(number))


if __name__ == "__main__":
    main()
