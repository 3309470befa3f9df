"""Work on the questions of a step in processes of a Ray cluster: ``analyze --on ray``.

Ray starts the workers, puts them where there is room and starts them again where they die. The driver hands
out questions, and alone writes the cache and the run: what it has received is never asked again.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from core.errors import BackendError, InputError
from core.llm import open_llm
from core.llm.types import CANCEL_SECONDS, LLM, Completion
from core.pipeline.executing import Executor, Job, Part, Parts, in_threads
from core.pipeline.steps import ModelChoice, Option, model_facts
from core.pipeline.worker import Letter, Report, Share, Worker
from core.run import Run

HERE, RAY = "here", "ray"
_SCHEME = "ray://"
_PACKAGE = Path(__file__).parents[1]
_SHARE = 16  # most questions, or batches of them, that wait at a worker; each takes its rows along
_DEATHS = 3  # of workers with one and the same question alone, before it is given up
_QUIET = {"log_to_driver": False, "logging_level": "ERROR"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where the questions of a run are worked on; `InputError` for what cannot be.

    ``on``: ``here``; ``ray``, a Ray started for the run or named by ``RAY_ADDRESS``; or the address of a
    cluster, ``ray://host:10001``. Without ``workers`` there are as many as fit there now; of more, the
    others begin when a node joins. Each takes a processor and ``gpus_per_worker``.
    """

    on: Annotated[
        str,
        Option("--on", "Where to ask: here; ray, workers on this machine; or a cluster, ray://host:10001."),
    ] = HERE
    workers: Annotated[
        int | None, Option("--workers", "Workers; by default as many as fit.", shows_default=False)
    ] = None
    gpus_per_worker: Annotated[
        float, Option("--gpus-per-worker", "GPUs of each worker.", shows_default=False)
    ] = 0.0

    def __post_init__(self) -> None:
        if self.on not in (HERE, RAY) and not (self.on.startswith(_SCHEME) and self.on[len(_SCHEME) :]):
            raise InputError(f"on must be here, ray or an address, ray://host:10001; got {self.on!r}.")
        n = self.workers
        if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
            raise InputError(f"workers must be a whole number from 1, got {n!r}.")
        gpus = self.gpus_per_worker
        if isinstance(gpus, bool) or not isinstance(gpus, int | float) or not 0 <= gpus <= 64:
            raise InputError(f"gpus_per_worker must be a number from 0 to 64, got {gpus!r}.")
        if self.on == HERE and (n is not None or gpus):
            raise InputError("workers and gpus_per_worker are for runs on a cluster; give on, such as ray.")


@contextmanager
def executor(place: Place, models: Mapping[str, ModelChoice | LLM | None]) -> Iterator[Executor]:
    """Give the executor of a place, connected while it is in use; ``models`` are those of steps, by name.

    A model that is given itself is sent to the workers, so it must be one that can be pickled. `InputError`
    where Ray is not installed, `BackendError` where the cluster cannot be reached.
    """
    if place.on == HERE:
        yield in_threads
        return
    ray = _ray()
    openers = {name: _opener(ray, model) for name, model in models.items()}
    with _connected(ray, place):
        yield lambda job: _in_workers(job, ray, place, openers[job.step.name])


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise InputError(
            "Runs on a cluster need Ray, which is not installed: pip install -r requirements-scale.txt."
        ) from error
    return ray


@dataclass(frozen=True)
class _Opener:
    """Opens a model in another process; keys come from the environment there."""

    choice: ModelChoice | None = None
    pickled: bytes | None = None

    def __call__(self) -> LLM | None:
        if self.pickled is not None:
            from ray import cloudpickle

            llm: LLM = cloudpickle.loads(self.pickled)
            return llm
        if self.choice is None:
            return None
        address = {} if self.choice.base_url is None else {"base_url": self.choice.base_url}
        return open_llm(self.choice.backend, self.choice.model, **address)


def _opener(ray: Any, model: ModelChoice | LLM | None) -> _Opener:
    if model is None or isinstance(model, ModelChoice):
        return _Opener(model)
    try:
        return _Opener(pickled=ray.cloudpickle.dumps(model))
    except Exception as error:
        raise InputError(
            f"The model {model.name} cannot be sent to other processes; name a back end and a model instead."
        ) from error


@contextmanager
def _connected(ray: Any, place: Place) -> Iterator[None]:
    """Connect to Ray, unless the program has done so."""
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told
    options: dict[str, Any] = {
        "address": os.environ.get("RAY_ADDRESS", "local") if place.on == RAY else place.on,
        "runtime_env": {"py_modules": [str(_PACKAGE)]},
        **_QUIET,
    }
    if place.on == RAY and options["address"] == "local":
        options["include_dashboard"] = False
        # A worker that waits for a server needs no processor of its own.
        options["num_cpus"] = max(place.workers or 0, os.cpu_count() or 1)
        # Workers of this machine find the package where this process has it.
        paths = [str(_PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        options["runtime_env"] = {"env_vars": {"PYTHONPATH": os.pathsep.join(paths)}}
    try:
        with _own_signals():
            ray.init(**options)
    except Exception as error:  # of many kinds, and none says what to do
        raise BackendError(
            f"The cluster {options['address']} cannot be reached ({type(error).__name__}); check the "
            "address, and that Ray and Python have the same versions there. If it asks for a token, set "
            "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN here, too."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep what this program does on a signal: Ray would exit."""
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if is_main and before is not None:
            signal.signal(signal.SIGTERM, before)


def _in_workers(job: Job, ray: Any, place: Place, opener: _Opener) -> Parts:
    if not job.work.apart:  # it is done in less time than workers would take to start
        yield from in_threads(job)
        return
    drive = _Cluster(job, ray, place, opener)
    try:
        yield from drive.parts()
    except ray.exceptions.RayError as error:
        first = str(error).strip().split("\n")[0]
        raise BackendError(f"The cluster failed: {first.removesuffix('.')}.") from error
    finally:
        drive.end()


class _Reply(NamedTuple):
    """A call of a worker under way; ``is_turn``: its result is a `Report`."""

    place: int
    is_turn: bool


@dataclass(slots=True)
class _Held:
    """A worker as the driver knows it: its handle, the questions it holds, whether it can be talked to."""

    actor: Any
    ids: dict[str, None] = field(default_factory=dict)
    talks: bool = False
    letter: Letter | None = None


class _Cluster:
    """The driver's side of one job."""

    def __init__(self, job: Job, ray: Any, place: Place, opener: _Opener) -> None:
        self._job, self._ray = job, ray
        self._rows = _RowsOf(job, ray)
        self._waiting = deque(job.todo)
        self._alone: deque[str] = deque()  # in the hands of a worker that died
        self._deaths: Counter[str] = Counter()
        self._told_to_stop = False
        self._found: Mapping[str, Completion] = {}  # of the keys that the last reports asked for
        n = place.workers or self._fitting(place)
        threads = job.threads
        self._room = threads * job.work.batch
        kind = ray.remote(max_restarts=-1, max_concurrency=2, num_cpus=1, num_gpus=place.gpus_per_worker)(
            Worker
        )
        more = (opener, threads, job.work.parallel, job.asker.listened, job.asker.retry)
        self._workers = [_Held(kind.remote(job.step, *more)) for _ in range(min(n, len(job.todo)))]
        self._replies: dict[Any, _Reply] = {}
        for at in range(len(self._workers)):
            self._greet(at)

    def _fitting(self, place: Place) -> int:
        there = self._ray.cluster_resources()
        if place.gpus_per_worker:
            return max(1, int(there.get("GPU", 0) / place.gpus_per_worker))
        return max(1, int(there.get("CPU", 1)))

    def parts(self) -> Parts:
        """Yield what workers finish, as it comes."""
        while self._waiting or self._alone or any(one.ids for one in self._workers):
            if self._job.cancelled():
                self._stop()
                if not any(one.ids for one in self._workers):
                    return
            found: list[Part] = []
            for at, report in self._heard(found):
                found += self._taken(at, report)
            self._write()
            if found:
                self._job.finished(found)
                yield found

    def end(self) -> None:
        """Let all workers go."""
        for one in self._workers:
            with suppress(Exception):  # whose cluster is gone
                self._ray.kill(one.actor)

    def _heard(self, lost: list[Part]) -> list[tuple[int, Report]]:
        """Return all reports there are, waiting for the first; their completions are in the cache then."""
        if not self._replies:
            return []
        refs = [*self._replies]
        done, rest = self._ray.wait(refs, num_returns=1, timeout=CANCEL_SECONDS)
        if done and rest:
            done += self._ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        reports = []
        for ref, result in zip(done, self._results(done), strict=True):
            at, is_turn = self._replies.pop(ref)
            if isinstance(result, self._ray.exceptions.RayActorError):
                if result.actor_init_failed:  # Ray does not try that again
                    last = str(result).strip().split("\n")[-1]
                    raise BackendError(f"A worker could not start: {last.removesuffix('.')}.") from result
                lost += self._lost(at)
            elif is_turn:
                reports.append((at, result))
            else:
                self._check(result)
                self._workers[at].talks = True
        # In one transaction, and before anybody is told.
        if made := [row for _, report in reports for row in report.made]:
            self._job.asker.cache.put_rows(made)
        self._found = self._job.asker.cache.get_many(
            key for _, report in reports for keys in report.wanted.values() for key in keys
        )
        return reports

    def _results(self, done: Sequence[Any]) -> list[Any]:
        """Return what calls returned, or the error of a worker that has died."""
        try:
            return list(self._ray.get(done))  # together, in half the time
        except self._ray.exceptions.RayActorError:
            return [self._result(ref) for ref in done]

    def _result(self, ref: Any) -> Any:
        try:
            return self._ray.get(ref)
        except self._ray.exceptions.RayActorError as error:
            return error

    def _taken(self, at: int, report: Report) -> list[Part]:
        """Take a report and return its parts, without those that a worker thought dead has done twice."""
        one = self._workers[at]
        if any(report.counts.values()):
            self._job.asker.count(report.counts)
        for call in report.calls:
            self._job.asker.on_call(call)
        self._job.asker.notes_elsewhere.update(dict.fromkeys(report.notes))
        found = {
            ticket: {key: self._found[key] for key in keys if key in self._found}
            for ticket, keys in report.wanted.items()
        }
        one.talks, one.letter = True, Letter(self._job.answered(), found=found)
        parts = [part for part in report.parts if all(query_id in one.ids for query_id in part.ids)]
        for part in parts:
            for query_id in part.ids:
                del one.ids[query_id]
            if part.told is not None:
                self._job.work.hear(part.ids, part.told)
        self._back(one, report)
        return parts

    def _back(self, one: _Held, report: Report) -> None:
        """Take back what a worker has not done; raise what ends the run."""
        if report.error is not None:
            raise report.error
        for ids, error in report.returned:
            if not self._job.answered():
                raise error
            for query_id in ids:
                one.ids.pop(query_id, None)
                self._alone.append(query_id)
        if self._told_to_stop and report.idle:
            one.ids.clear()

    def _write(self) -> None:
        """Answer the workers that wait, with more questions where they have room."""
        for at, one in enumerate(self._workers):
            if not one.talks:
                continue
            share = None if self._job.stop.is_set() or self._told_to_stop else self._share(one)
            letter = one.letter or Letter(self._job.answered())
            if share is not None or one.ids or letter.found:
                one.talks, one.letter = False, None
                sent = Letter(letter.answered, share, letter.found)
                self._replies[one.actor.turn.remote(sent)] = _Reply(at, True)

    def _share(self, one: _Held) -> Share | None:
        if self._alone and not one.ids:
            ids = [self._alone.popleft()]
        elif any(query_id in self._deaths for query_id in one.ids) or not self._waiting:
            return None
        else:
            # Few at a time towards the end, so that all workers end together.
            each = len(self._waiting) // (4 * len(self._workers))
            target = min(_SHARE * self._room, max(self._room, each))
            # Half of them at once: to cut one question out of the tables takes as long as to cut out many.
            if len(one.ids) > target - max(self._room, target // 2) and len(one.ids) >= self._room:
                return None
            ids = [self._waiting.popleft() for _ in range(min(target - len(one.ids), len(self._waiting)))]
        if not ids:
            return None
        one.ids.update(dict.fromkeys(ids))
        return Share(tuple(ids), self._rows(ids))

    def _lost(self, at: int) -> list[Part]:
        """Ray starts the worker again; what it held goes to others, one question at a time."""
        one = self._workers[at]
        held, one.ids, one.letter = [*one.ids], {}, None
        given_up = []
        for query_id in held:
            self._deaths[query_id] += len(held) == 1
            if self._deaths[query_id] >= _DEATHS:
                reason = f"Its worker ended {_DEATHS} times while it worked on this question."
                given_up.append(
                    Part((query_id,), self._job.work.failed(query_id, reason), reason, asked=True)
                )
            else:
                self._alone.append(query_id)
        self._greet(at)
        return given_up

    def _greet(self, at: int) -> None:
        # Waits until the worker is up; Ray repeats it where the worker dies meanwhile.
        ready = self._workers[at].actor.ready.options(max_task_retries=-1)
        self._workers[at].talks = False
        self._replies[ready.remote()] = _Reply(at, False)

    def _check(self, facts: Any) -> None:
        """Raise unless a worker has the model of the driver."""
        if isinstance(facts, Exception):
            raise facts
        llm = self._job.asker.llm
        if llm is not None and facts != model_facts(llm):
            raise BackendError(
                f"The workers have another model than this process, {facts} instead of {model_facts(llm)}: "
                "start the run on a machine like theirs, with the same settings in its environment."
            )

    def _stop(self) -> None:
        if not self._told_to_stop:
            self._told_to_stop = True
            self._job.stop.set()
            for one in self._workers:
                one.actor.stop.remote()


class _RowsOf:
    """What a worker needs of the run: the rows of its questions, or all of it.

    Rows are cut out of Arrow tables, in which the questions follow each other: cutting frames takes a hundred
    times as long.
    """

    def __init__(self, job: Job, ray: Any) -> None:
        self._whole = _Put(ray.get, ray.put(job.run)) if job.work.apart == "run" else None
        if self._whole is None:
            ids = pd.Index(job.run.queries["query_id"])
            self._manifest = dict(job.run.manifest)
            self._number = dict(zip(ids, range(len(ids)), strict=True))
            self._tables = {name: _Cut.of(ids, job.run[name]) for name in job.run if len(job.run[name])}

    def __call__(self, ids: Sequence[str]) -> Callable[[], Run]:
        if self._whole is not None:
            return self._whole
        numbers = sorted(self._number[query_id] for query_id in ids)
        return _Given(self._manifest, {name: table.rows(numbers) for name, table in self._tables.items()})


class _Cut(NamedTuple):
    """A table in the order of the questions, and where the rows of each one begin."""

    table: Any
    starts: Any

    @classmethod
    def of(cls, ids: pd.Index, frame: pd.DataFrame) -> _Cut:
        numbers = ids.get_indexer(frame["query_id"])
        order = np.argsort(numbers, kind="stable")
        table = pa.Table.from_pandas(frame.iloc[order], preserve_index=False).combine_chunks()
        return cls(table, np.searchsorted(numbers[order], np.arange(len(ids) + 1)))

    def rows(self, numbers: Sequence[int]) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.table.schema) as stream:
            first = last = numbers[0]
            for number in (*numbers[1:], -1):
                if number != last + 1:  # questions that follow each other are one piece
                    start = self.starts[first]
                    stream.write_table(self.table.slice(start, self.starts[last + 1] - start))
                    first = number
                last = number
        return bytes(sink.getvalue())


@dataclass(frozen=True, eq=False)
class _Given:
    manifest: Mapping[str, Any]
    tables: Mapping[str, bytes]

    def __call__(self) -> Run:
        frames = {name: pa.ipc.open_stream(one).read_all().to_pandas() for name, one in self.tables.items()}
        return Run.create(self.manifest, **frames)


@dataclass(frozen=True)
class _Put:
    get: Callable[[Any], Run]
    ref: Any

    def __call__(self) -> Run:
        return self.get(self.ref)
