"""Near-duplicates are told by a scripted embedder, so that no model is loaded."""

import pytest

from core.attribution import step
from tests.core.attribution.attribution_runs import Embedder


@pytest.fixture(autouse=True)
def embedder(monkeypatch):
    monkeypatch.setattr(step, "shared_embedder", Embedder)
