"""What every test shares: no hub, no user caches, no noise from libraries that load late."""

from __future__ import annotations

import gc
import ipaddress
import json
import os
import re
import socket
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

import core  # noqa: F401 - before torch, so that torch's threads do not spin beside other programs
from tests.installed import project, wheel  # noqa: F401 - fixtures

# A deadline per example would be a timed assertion, and machines are noisy. Half as many examples as usual: every run
# draws others.
settings.register_profile("here", settings.default, deadline=None, max_examples=50)
settings.load_profile("here")

DATA = Path(__file__).parent / "data"

# The packaged models load from disk; a test that reaches for a hub is a bug.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Expected answers are those of a processor, one prompt at a time; `python -m bench gpu` compares a GPU's with them.
os.environ["CUDA_VISIBLE_DEVICES"] = ""
# Nobody is told that a test has run.
os.environ |= {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LANGSMITH_TRACING": "false",
    "RAGAS_DO_NOT_TRACK": "true",
}


# What loads the packaged model in a server of its own: who takes it need not be marked one by one.
SERVERS = {"llama", "ollama_server"}
# What builds the wheel and installs it into an empty environment.
WHEEL = {"wheel", "project"}
# The test functions that take longer than this with all their parameters, which `make test-fast` leaves out: they are
# recorded, as no mark says it of a test that has become slow. It leaves these out anyway.
LEFT_OUT = {"slow", "model", "e2e"}
LONG, SECONDS = Path(__file__).parent / "long_tests.txt", 0.25
RECORDED = frozenset(LONG.read_text(encoding="utf-8").splitlines())


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Look for garbage neither while all tests are imported nor in what was imported, a quarter of the time of
    collecting, and later not after every few hundred objects, 8 % of the time of tests."""
    gc.disable()
    gc.set_threshold(50_000, 20, 20)
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_addoption(parser):
    parser.addoption(
        "--record-long", action="store_true", help=f"Write {LONG.name} from this run of all tests."
    )


def function_of(nodeid: str) -> str:
    return nodeid.partition("[")[0]


def pytest_terminal_summary(terminalreporter):
    if terminalreporter.config.getoption("--record-long"):
        seconds = Counter()
        for report in chain.from_iterable(terminalreporter.stats.values()):
            if LEFT_OUT.isdisjoint(getattr(report, "keywords", LEFT_OUT)):
                seconds[function_of(report.nodeid)] += report.duration
        long = sorted(name for name, took in seconds.items() if took > SECONDS)
        LONG.write_text("".join(f"{name}\n" for name in long), encoding="utf-8")


def pytest_itemcollected(item):
    if function_of(item.nodeid) in RECORDED:
        item.add_marker(pytest.mark.long)
    wants = set(getattr(item, "fixturenames", ()))
    if SERVERS & wants:
        item.add_marker(pytest.mark.model)
    if WHEEL & wants:
        item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Begin with the journeys and the files that take long, and end with many short ones, so that no process waits for
    another."""
    long = {item.path for item in items if any(map(item.get_closest_marker, ("e2e", "model", "slow")))}
    folder = Path(__file__).parent
    items.sort(
        key=lambda item: (
            folder / "e2e" not in item.path.parents,
            item.path not in long,
            folder / "app" not in item.path.parents,
            item.path.parent != folder,
        )
    )


class InOneProcess(LoadFileScheduling):
    """Files stay whole; all journeys are one file, so that their server, browser and installed wheel are one."""

    def _split_scope(self, nodeid):
        file = super()._split_scope(nodeid)
        return "tests/e2e" if file.startswith("tests/e2e/") or file == "tests/test_wheel.py" else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return InOneProcess(config, log)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """Where everything is installed a skipped test is one that silently stopped checking something."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        reporter.write_line("Skipped tests count as failures here.", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


REACHED: list[str] = []


def is_local(host) -> bool:
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


def refuse(where) -> None:
    """Remember it for the end of the test: a library may swallow the error."""
    REACHED.append(str(where))
    raise AssertionError(f"a test tried to reach {where}")


@pytest.fixture(autouse=True, scope="session")
def _only_this_machine():
    """Refuse anything but this machine: a test that reaches for a hub or a server is a bug."""
    patch = pytest.MonkeyPatch()
    for name in ("connect", "connect_ex", "sendto"):
        original = getattr(socket.socket, name)

        def guarded(self, *given, original=original):
            address = given[-1]
            if isinstance(address, tuple) and not is_local(address[0]):  # else it is a socket file
                refuse(address)
            return original(self, *given)

        patch.setattr(socket.socket, name, guarded)
    look_up = socket.getaddrinfo

    def looked_up(host, *given, **named):
        # Where there is no network a name is not found, and nobody would see that it was asked for. Names that
        # exist nowhere may be.
        name = host.decode() if isinstance(host, bytes) else host or "localhost"
        if not (is_local(name) or re.fullmatch(r"[0-9a-f.:%]+|[^.]+|.*\.(invalid|example|test)", name)):
            refuse(name)
        return look_up(host, *given, **named)

    patch.setattr(socket, "getaddrinfo", looked_up)
    yield
    patch.undo()


@pytest.fixture(autouse=True)
def _nothing_else_was_reached(_only_this_machine):
    yield
    reached, REACHED[:] = REACHED[:], []
    assert not reached, f"the test tried to reach {', '.join(reached)}"


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
