"""A run through a real server and a proxy that spoils its answers; and a key that must be found nowhere."""

import json
import logging
import threading
from collections import Counter
from contextlib import ExitStack

import pandas as pd
import pytest

from core.diagnosis import Diagnosis
from core.errors import BackendError
from core.influence.step import InfluenceStep
from core.llm import CompletionCache, open_llm
from core.pipeline import RetryPolicy, RunOptions
from core.report.exports import exporters
from core.run import Run
from core.sources.dataset import read_dataset
from tests.live_runs import live_run
from tests.servers.chat_server import chat, chat_server, refusal
from tests.servers.fault_proxy import (
    OK,
    delay,
    fault_proxy,
    garbage,
    hang_up,
    loris,
    rate_limited,
    reply,
    reset,
    scripted,
    seeded,
    server_error,
    truncate,
)
from tests.servers.llama_server import llama_server

SECRET = "sk-proj-C0rrect-h0rse-b4ttery-st4ple"
CHAT = "/chat/completions"
PATIENT = RetryPolicy(attempts=12, first_wait=0.02, longest_wait=0.2, budget=120.0)
LIVE = {"options": RunOptions(k=3), "step": InfluenceStep(max_tokens=4, closed_book=False)}
FAULTS = [
    delay(0.05),
    rate_limited("0.1"),
    server_error(500),
    server_error(502),
    reset(0.5),
    truncate(0.7),
    garbage(),
    garbage(b"<html>bad gateway</html>"),
    hang_up(),
]


@pytest.fixture(autouse=True)
def no_settings_of_the_machine(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)


def questions(n):
    towns = ["Paris", "Rome", "Oslo", "Lima", "Cairo", "Hanoi", "Quito", "Dakar", "Minsk", "Sofia"]
    rows = [
        {
            "id": f"q{i}",
            "question": f"Where is bridge {i}?",
            "passages": [
                f"Bridge {i} is in {towns[i % 10]}.",
                f"{towns[i % 10]} is old.",
                f"Bridge {i} is new.",
            ],
        }
        for i in range(n)
    ]
    return read_dataset("\n".join(map(json.dumps, rows)).encode(), "towns.jsonl")


@pytest.fixture(scope="module")
def memory(llama):
    """A server in front of the real one that answers a repeated request with the same words.

    llama.cpp nearly does: its slots go on from what they worked on before, which changes last digits, and in
    a rare answer a word. What is tested here is that faults change nothing, so that must not either.
    """

    def choose(exchange):
        for known in proxy.requests(CHAT):
            if known.delivered and known.status == 200 and known.body == exchange.body:
                return reply(200, known.answer)
        return OK

    with fault_proxy(llama, choose) as proxy:
        yield proxy


@pytest.fixture
def spoilt(memory):
    """A proxy for faults; behind it one that remembers, behind that the real server."""
    with fault_proxy(memory.address) as outer:
        yield outer


def run(data, server, cache=None, retry=PATIENT, **more):
    llm = open_llm(
        "openai", "smollm2-135m", base_url=f"{server.address}/v1", timeout=more.pop("timeout", 30.0)
    )
    return live_run(data, llm, cache, **LIVE, retry=retry, **more)


def delivered(server):
    """How often each request had its whole, unspoilt answer."""
    return Counter(e.body for e in server.requests(CHAT) if e.delivered and e.status == 200)


def assert_same_tables(a, b):
    assert a.run_id == b.run_id
    assert list(a) == list(b)
    for name in a:
        x, y = a[name], b[name]
        if name == "queries":
            x, y = x.drop(columns="latency"), y.drop(columns="latency")
        pd.testing.assert_frame_equal(x, y)


def test_ten_questions_through_faults_equal_a_run_without(spoilt):
    data = questions(10)
    spoilt.schedule = seeded(7, FAULTS, 0.4, CHAT)
    result = run(data, spoilt)
    assert result.manifest["complete"]
    assert result.queries["query_id"].to_list() == [f"q{i}" for i in range(10)]
    reasons = result.queries["status_reason"].notna()
    assert (result.queries["answer"].notna() | reasons).all()
    # Every fault came to pass, and nothing whose answer had arrived was asked again.
    met = Counter(e.fault for e in spoilt.requests(CHAT))
    assert set(FAULTS) <= set(met)
    assert set(delivered(spoilt).values()) == {1}
    assert result.manifest["cost"]["calls"] == len(delivered(spoilt)) == 40

    spoilt.schedule = lambda _: OK
    before = len(spoilt.requests(CHAT))
    assert_same_tables(run(data, spoilt), result)
    assert len(spoilt.requests(CHAT)) == before + 40


def test_a_server_killed_in_the_middle_and_started_again():
    data, cache = questions(3), CompletionCache()
    killed = threading.Event()
    with ExitStack() as stack, fault_proxy(None) as proxy:
        server = ExitStack()
        stack.callback(lambda: server.close())
        proxy.target = server.enter_context(llama_server())

        def at_the_fifth_call(exchange):
            if exchange.path.endswith(CHAT) and len(proxy.requests(CHAT)) == 5:
                server.close()  # SIGKILL: the calls under way break off
                proxy.down()
                killed.set()
            return OK

        def start_again():
            killed.wait(60)
            proxy.target = server.enter_context(llama_server())
            proxy.up()

        proxy.schedule = at_the_fifth_call
        helper = threading.Thread(target=start_again)
        helper.start()
        result = run(
            data, proxy, cache, RetryPolicy(attempts=300, first_wait=0.05, longest_wait=0.2, budget=120.0)
        )
        helper.join()
        assert killed.is_set()
        assert result.manifest["complete"]
        assert result.queries["answer"].notna().all()
        assert result.passages["ablated_status"].isin(["answered", "abstained", "empty"]).all()
        assert set(delivered(proxy).values()) == {1}
        assert len(delivered(proxy)) == 12 == len(cache)
        assert len(proxy.requests(CHAT)) > 12


def test_a_server_that_stays_away_ends_the_run_soon_and_loses_nothing(spoilt):
    data, cache = questions(6), CompletionCache()
    n_asked = []

    def goes_away(exchange):
        n_asked.append(exchange)
        return OK if len(n_asked) <= 9 else server_error(500)

    spoilt.schedule = lambda e: goes_away(e) if e.path.endswith(CHAT) else OK
    result = run(
        data, spoilt, cache, RetryPolicy(attempts=3, first_wait=0.01, longest_wait=0.02, budget=60.0)
    )
    status = result.queries["answer_status"].to_list()
    assert "error" in status
    assert result.queries["status_reason"][status.index("error")].endswith(
        "answered HTTP 500: Something broke."
    )
    kept = len(cache)
    assert kept == 9
    spoilt.schedule = lambda _: OK
    again = run(data, spoilt, cache)
    assert again.queries["answer"].notna().all()
    assert again.manifest["cost"]["calls"] == 24 - kept
    assert set(delivered(spoilt).values()) == {1}


def test_the_pause_that_a_server_asks_for_is_kept_by_all_calls(spoilt):
    spoilt.schedule = scripted([rate_limited("1")], path=CHAT)
    result = run(questions(3), spoilt)
    asked = spoilt.requests(CHAT)
    refused = asked[0]
    assert refused.status == 429
    # Calls that were on their way at that moment are all that may come within the second.
    early = [e for e in asked[1:] if refused.ended + 0.05 < e.started < refused.ended + 1.0]
    assert early == []
    assert result.queries["answer"].notna().all()


def test_a_slow_loris_is_given_up_and_asked_again(spoilt):
    spoilt.schedule = scripted([loris(0.5, "headers"), loris(0.5, "body")], path=CHAT)
    result = run(questions(2), spoilt, timeout=2.0)
    assert result.queries["answer"].notna().all()
    assert result.passages["ablated_status"].ne("error").all()
    assert set(delivered(spoilt).values()) == {1}


def test_a_cancel_in_the_middle_keeps_what_arrived(spoilt):
    data, cache, stop = questions(5), CompletionCache(), threading.Event()

    def stop_at_the_eighth(exchange):
        if exchange.path.endswith(CHAT) and len(spoilt.requests(CHAT)) == 8:
            stop.set()
            return delay(20.0)
        return OK

    spoilt.schedule = stop_at_the_eighth
    partial = run(data, spoilt, cache, cancelled=stop.is_set)
    assert not partial.manifest["complete"]
    n_kept = len(cache)
    spoilt.schedule = lambda _: OK
    whole = run(data, spoilt, cache)
    assert whole.manifest["complete"]
    assert whole.manifest["cost"]["calls"] == 20 - n_kept
    for query_id in partial.queries["query_id"][partial.queries["answer"].notna()]:
        first = partial.queries.set_index("query_id")["answer"][query_id]
        assert whole.queries.set_index("query_id")["answer"][query_id] == first


# --- the key


@pytest.mark.parametrize("where", ["environment", "argument"])
def test_the_key_is_nowhere_on_disk(tmp_path, monkeypatch, where):
    log = logging.FileHandler(tmp_path / "everything.log")
    root = logging.getLogger()
    level = root.level
    root.addHandler(log)
    root.setLevel(logging.DEBUG)
    if where == "environment":
        monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    options = {} if where == "environment" else {"api_key": SECRET}
    echo = f"Wrong key {SECRET} in 'Authorization: Bearer {SECRET}'"
    answers = [
        refusal(echo, 400),
        refusal(echo, 500),
        chat(f"Your key is {SECRET}."),
        garbage(echo.encode()),
        reply(429, {"error": echo}, Retry_After="0"),
        chat("Rome"),
    ]
    try:
        with (
            chat_server(*answers, chat("Oslo"), chat("Rome")) as server,
            CompletionCache(tmp_path / "c.db") as cache,
        ):
            llm = open_llm("openai", "m", base_url=f"{server.address}/v1?key={SECRET}", parallel=1, **options)
            result = live_run(questions(6), llm, cache, **LIVE, retry=PATIENT)
            assert any(SECRET in e.headers["authorization"] for e in server.requests(CHAT))
            result.save(tmp_path / "run")
            diagnosis = Diagnosis(Run.load(tmp_path / "run"))
            for name, export in exporters().items():
                (tmp_path / f"export.{name}").write_bytes(export.write(diagnosis))
            (tmp_path / "shown.txt").write_text(f"{llm!r} {llm.options} {llm.notes} {result.manifest}")

            server.schedule = lambda _: refusal(echo, 401)
            refused = open_llm("openai", "n", base_url=f"{server.address}/v1", **options)
            with pytest.raises(BackendError) as failed:
                live_run(questions(2), refused, cache, **LIVE, retry=PATIENT)
            logging.getLogger("test").error("It failed.", exc_info=failed.value)
            (tmp_path / "error.txt").write_text(f"{failed.value!r} {failed.value.__context__!r}")
            files = [path for path in tmp_path.rglob("*") if path.is_file()]
            assert (tmp_path / "c.db-wal").stat().st_size > 0
            contents = {str(path): path.read_bytes() for path in files}
    finally:
        root.removeHandler(log)
        root.setLevel(level)
        log.close()
    assert "set OPENAI_API_KEY" in str(failed.value)
    assert result.queries["answer"].notna().any()
    told = set(result.queries["status_reason"].dropna()) | set(result.queries["answer"].dropna())
    assert any("…" in text for text in told)  # the server did repeat it
    assert len(contents) > 8
    assert b"HTTP Request: POST" in contents[str(tmp_path / "everything.log")]
    parts = (SECRET.encode(), SECRET[8:].encode(), SECRET.encode().hex().encode())
    assert not [name for name, content in contents.items() if any(part in content for part in parts)]
