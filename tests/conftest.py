"""What every test shares: no hub, no user caches, no noise from libraries that load late."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import settings

# A deadline per example would be a timed assertion, and machines are noisy.
settings.register_profile("no-deadline", settings.default, deadline=None)
settings.load_profile("no-deadline")

DATA = Path(__file__).parent / "data"

# The packaged models load from disk; a test that reaches for a hub is a bug.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def vectors():
    """Expected values from independent implementations, by file name."""
    return lambda name: json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["cases"]


@pytest.fixture(scope="session")
def llama():
    """Address of a real llama.cpp server with the packaged model, one for each worker."""
    from tests.servers.llama_server import llama_server

    with llama_server() as address:
        yield address


@pytest.fixture(scope="session")
def ollama_server(llama):
    """Address of a server with Ollama's API that generates through the llama.cpp server."""
    from tests.servers.ollama_server import ollama_server

    with ollama_server(llama) as server:
        yield server.address
