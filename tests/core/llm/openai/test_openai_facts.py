import json
import threading
from types import SimpleNamespace

import pytest

from core.errors import BackendError
from core.llm.openai.llm import list_models
from core.llm.types import Message
from tests.servers.chat_server import ask, chat, opened
from tests.servers.fault_proxy import fault_proxy, reply


def test_a_server_that_lists_nothing_can_still_be_asked():
    with fault_proxy(
        None, lambda e: chat() if e.path.endswith("completions") else reply(404, b"no")
    ) as server:
        llm = opened(server)
        assert llm.capabilities.context_length is None
        assert llm.generate([ask()])[0].text == "Paris"
        assert llm.count_tokens((Message("user", "abcdefgh"),)) == 6
        with pytest.raises(BackendError, match="HTTP 404"):
            list_models(f"{server.address}/v1")


@pytest.mark.parametrize(
    "body", [b"<html>", b"null", b'{"data": 5}', b'{"data": [1, {"id": 7}, {"id": ""}]}', b"[["]
)
def test_an_odd_list_of_models_is_survived(body):
    with fault_proxy(None, lambda _: reply(200, body)) as server:
        assert opened(server).capabilities.context_length is None
        try:
            assert list_models(f"{server.address}/v1") == []
        except BackendError as error:
            assert "list its models" in str(error)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (reply(400, b"odd"), r"/v1 does not list its models \(HTTP 400\)\.$"),
        (
            reply(401, b"no"),
            r"/v1 asks for an API key \(HTTP 401\) and none was given; set OPENAI_API_KEY\.$",
        ),
        (reply(503, b"busy"), r"^The server is overloaded .* answered HTTP 503: busy\.$"),
    ],
)
def test_why_a_server_does_not_list_its_models(answer, words):
    with (
        fault_proxy(None, lambda _: answer) as server,
        pytest.raises(BackendError, match=words),
    ):
        list_models(f"{server.address}/v1", "")


def test_models_are_listed_by_whatever_name_they_have():
    entries = [
        {"id": "a", "name": "b"},
        {"name": "c"},
        {"model": "d"},
        {"name": "e", "model": "f"},
        {"size": 1},
    ]
    for name in ("data", "models"):
        body = {name: entries}
        with fault_proxy(None, lambda _, body=body: reply(200, body)) as server:
            assert list_models(f"{server.address}/v1") == ["a", "c", "d", "e"]


def test_facts_that_a_server_did_not_give_are_asked_for_again_after_half_a_minute(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("core.llm.openai.llm.time", SimpleNamespace(monotonic=lambda: now[0]))
    with fault_proxy(None, lambda _: reply(500, b"")) as server:
        llm, asked = opened(server), []
        for now[0] in (1000.0, 1029.5, 1030.0, 1059.5):
            assert llm.capabilities.context_length is None
            asked.append(len(server.requests("/models")))
        server.schedule = lambda _: reply(200, {"data": [{"id": "m", "context_length": 99}]})
        for now[0] in (1060.0, 5000.0):
            assert llm.capabilities.context_length == 99
            asked.append(len(server.requests("/models")))
    assert asked == [1, 1, 2, 2, 3, 3]  # what is known is not asked for again


def test_facts_of_other_servers_are_understood():
    def vllm(exchange):
        if exchange.path == "/tokenize":
            return reply(
                200, {"count": 3 * len(exchange.json()["messages"]), "max_model_len": 512, "tokens": [1]}
            )
        return reply(200, {"data": [{"id": "m", "max_model_len": 512}]})

    with fault_proxy(None, vllm) as server:
        llm = opened(server)
        assert llm.capabilities.context_length == 512
        assert llm.count_tokens((Message("user", "a"), Message("system", "b"))) == 6
    with fault_proxy(None, lambda _: reply(200, {"data": [{"id": "m", "context_length": 99}]})) as server:
        assert opened(server).capabilities.context_length == 99


@pytest.mark.parametrize("slots", [None, 1, 3, 20])
def test_calls_match_the_slots_of_the_server(slots):
    """A server that reports slots gets one call of a question at a time, and as many questions as it has."""
    open_calls, most, lock = [0], [0], threading.Lock()
    # Passed by the calls that may be under way together, of one question; the baseline passes alone.
    others = threading.Barrier(1 if slots else 2)

    def answer(exchange):
        if exchange.path.endswith("/props"):
            return reply(200, {"total_slots": slots}) if slots else reply(404, b"")
        if not exchange.path.endswith("completions"):
            return reply(200, {"data": [{"id": "m"}]})
        with lock:
            open_calls[0] += 1
            most[0] = max(most[0], open_calls[0])
        if exchange.json()["messages"][0]["content"] != "baseline":
            others.wait(20)
        with lock:
            open_calls[0] -= 1
        return chat()

    with fault_proxy(None, answer) as server:
        llm = opened(server, parallel=8)
        asked = [ask((Message("user", text),)) for text in ("baseline", "c", "b", "bc", "d")]
        assert [one.text for one in llm.generate(asked)] == ["Paris"] * 5
        assert llm.capabilities.parallel == min(8, slots or 8)
        sent = [e.json()["messages"][0]["content"] for e in server.requests("/chat/completions")]
    assert (most[0] == 1) if slots else (2 <= most[0] <= 4)
    if slots:  # "b" shares a letter with the baseline and all of itself with "bc"
        assert sent == ["baseline", "b", "bc", "c", "d"]


@pytest.mark.model
def test_a_real_server_reads_only_what_follows_the_dropped_passage(llama):
    passages = [f"[{i}] The lake of valley {i} has {i + 40} islands and a mill." for i in range(1, 7)]
    kept = [passages, *([p for p in passages if p != dropped] for dropped in passages)]
    asked = [ask((Message("user", "\n\n".join([*some, "Question: how many mills?"])),)) for some in kept]
    with fault_proxy(llama) as server:
        llm = opened(server, model=None)
        llm.generate(asked)
        timings = [json.loads(e.answer)["timings"] for e in server.requests("/chat/completions")]
        sizes = [llm.count_tokens(asked[i].messages) for i in (0, 6, 5, 4, 3, 2, 1)]
    assert [t["prompt_n"] + t["cache_n"] for t in timings] == sizes
    read = [t["prompt_n"] for t in timings]
    # Behind the baseline the rest grows by a passage each time; the last call reads all but the beginning.
    assert read[1:] == sorted(read[1:]) and read[1] < read[0] / 3
    assert sum(read) < 0.65 * sum(sizes)
