"""Runs that several tests read or analyse alike are read and analysed once in a process.

Tests of pages are about pages, and each begins with empty caches: reading its run and all its analyses again took most
of its time. A run is known by the bytes of its files, analyses by the content of their run and by their diagnostics, so
nothing is found that would not be the same computed anew. Both are read-only.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from types import MappingProxyType

from core import run as run_module
from core.analyses import Analyses
from core.run import Run

MOST = 48  # more than the tests of one file have


class Kept(OrderedDict):
    """A few values; those longest unused go first."""

    def get_or_make(self, key, make):
        if key not in self:
            self[key] = make()
            while len(self) > MOST:
                self.popitem(last=False)
        self.move_to_end(key)
        return self[key]


class Memory:
    """What `Run.load` read and `Analyses` computed."""

    def __init__(self):
        self.runs, self.contents, self.stores = Kept(), Kept(), Kept()

    def content(self, run):
        """Return what analyses may depend on: all but when a run was made."""

        def digested():
            # Kept with their digest, so that no others get their address.
            return run.tables, run_module._digest(run.tables)

        facts = json.dumps({**run.manifest, "created": ""}, sort_keys=True, default=str)
        return facts, self.contents.get_or_make(id(run.tables), digested)[-1]

    def use(self, patch):
        """Make both look here first, as long as the patch holds."""
        read, begin = Run._of.__func__, Analyses.__init__

        def of(cls, source, manifest):
            try:
                files = [(source / entry["file"]).read_bytes() for entry in manifest["tables"].values()]
            except (OSError, KeyError, TypeError, AttributeError):
                return read(cls, source, manifest)  # which says what is wrong
            digests = [hashlib.sha256(one).hexdigest() for one in files]
            key = json.dumps([{**manifest, "created": ""}, digests], sort_keys=True)
            found = self.runs.get_or_make(key, lambda: read(cls, source, manifest))
            made = {name: manifest[name] for name in ("created",) if name in manifest}
            return Run(MappingProxyType({**found.manifest, **made}), found.tables)

        def init(analyses, run, settings, diagnostics):
            begin(analyses, run, settings, diagnostics)
            known = analyses.diagnostics
            key = (self.content(run), *map(id, known))
            _, analyses._store = self.stores.get_or_make(key, lambda: (known, analyses._store))

        patch.setattr(Run, "_of", classmethod(of))
        patch.setattr(Analyses, "__init__", init)
