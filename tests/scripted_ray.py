"""As much of Ray as the driver of a run uses, in threads of this process: messages are pickled, nothing dies."""

from __future__ import annotations

import pickle
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from types import SimpleNamespace


class Never(Exception):
    pass


def got(put):
    """Return what was put, or each of several."""
    if isinstance(put, list):
        return [got(one) for one in put]
    return pickle.loads(put if isinstance(put, bytes) else put.result())


class Method:
    def __init__(self, pool, method):
        self._pool, self._method = pool, method

    def options(self, **_):
        return self

    def remote(self, *given):
        sent = pickle.dumps(given)
        return self._pool.submit(lambda: pickle.dumps(self._method(*pickle.loads(sent))))


class Handle:
    def __init__(self, worker):
        self._worker, self._pool = worker, ThreadPoolExecutor(2)

    def __getattr__(self, name):
        return Method(self._pool, getattr(self._worker, name))


class ScriptedRay:
    """One object for each thing that is asked of the module."""

    exceptions = SimpleNamespace(RayError=Never, RayActorError=Never)

    def __init__(self, n_workers):
        self.n = n_workers
        self.opened = []

    def remote(self, **_):
        return lambda kind: SimpleNamespace(
            remote=lambda *given: self._start(kind(*pickle.loads(pickle.dumps(given))))
        )

    def _start(self, worker):
        self.opened.append(Handle(worker))
        return self.opened[-1]

    def kill(self, handle):
        handle._worker.stop()
        handle._pool.shutdown(wait=False)

    def cluster_resources(self):
        return {"CPU": self.n}

    def put(self, run):
        return pickle.dumps(run)

    get = staticmethod(got)

    def wait(self, futures, num_returns, timeout):
        done, rest = wait(futures, timeout, FIRST_COMPLETED)
        return list(done), list(rest)
