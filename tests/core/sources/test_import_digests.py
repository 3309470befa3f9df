"""What an import makes of a file stayed as it was before files were read in pieces."""

import json
from itertools import islice

import pytest

from core.sources import table
from tests.core.sources.import_cases import DIGESTS, cases, digest

EXPECTED = json.loads(DIGESTS.read_text(encoding="utf-8"))


def changed(step):
    """Return the files, one in so many, of which something else is made than before."""
    found = {name: digest(data, read) for name, data, read in islice(cases(), 0, None, step)}
    assert list(found) == list(EXPECTED)[::step]
    return [name for name in found if found[name] != EXPECTED[name]]


def test_imports_are_as_they_were(monkeypatch):
    monkeypatch.setattr(table, "_BLOCK", 300)
    assert changed(11) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("block", "step"), [(table._BLOCK, 3), (16, 12)], ids=["in one block", "in blocks of 16 bytes"]
)
def test_imports_are_as_they_were_in_blocks(block, step, monkeypatch):
    monkeypatch.setattr(table, "_BLOCK", block)
    assert changed(step) == []
