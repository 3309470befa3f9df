"""What every test shares: no hub, no user caches, no noise from libraries that load late."""

from __future__ import annotations

import ipaddress
import json
import os
import socket
from pathlib import Path

import pytest
from hypothesis import settings

import core  # noqa: F401 - before torch, so that torch's threads do not spin beside other programs

# A deadline per example would be a timed assertion, and machines are noisy.
settings.register_profile("no-deadline", settings.default, deadline=None)
settings.load_profile("no-deadline")

DATA = Path(__file__).parent / "data"

# The packaged models load from disk; a test that reaches for a hub is a bug.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """Where everything is installed a skipped test is one that silently stopped checking something."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        reporter.write_line("Skipped tests count as failures here.", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def is_local(address) -> bool:
    if not isinstance(address, tuple):
        return True  # a socket file
    host = address[0].split("%")[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@pytest.fixture(autouse=True, scope="session")
def _only_this_machine():
    """Refuse connections to anywhere else: a test that reaches a hub or a server is a bug."""
    patch = pytest.MonkeyPatch()
    for name in ("connect", "connect_ex"):
        original = getattr(socket.socket, name)

        def guarded(self, address, original=original):
            assert is_local(address), f"a test tried to connect to {address}"
            return original(self, address)

        patch.setattr(socket.socket, name, guarded)
    yield
    patch.undo()


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
