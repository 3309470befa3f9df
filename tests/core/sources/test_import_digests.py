"""What an import makes of a file stayed as it was before files were read in pieces."""

import json

import pytest

from core.sources import table
from tests.core.sources.import_cases import DIGESTS, cases, digest

EXPECTED = json.loads(DIGESTS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("block", [table._BLOCK, 300, 16], ids=["one block", "blocks of 300 bytes", "of 16"])
def test_every_import_is_as_it_was(block, monkeypatch):
    monkeypatch.setattr(table, "_BLOCK", block)
    found = {name: digest(data, read) for name, data, read in cases()}
    assert list(found) == list(EXPECTED)
    assert [name for name in found if found[name] != EXPECTED[name]] == []
