import asyncio
import json
import threading
from types import SimpleNamespace

import pytest

from core.errors import BackendError, TransientError
from core.llm.openai.endpoint import Endpoint
from core.llm.openai.llm import list_models
from core.llm.openai.replies import ServerFacts, count_prompt, fetch_models, server_facts, shown_names
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


class Client:
    """The official client, with what a server answers to each path; a path that it lacks fails to be read."""

    def __init__(self, answers):
        self.answers, self.asked, self.posted = answers, [], []

    async def get(self, url, cast_to):
        self.asked.append(url)
        answer = self.answers[url.removeprefix("http://here")]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def post(self, url, cast_to, body):
        self.posted.append((url.removeprefix("http://here"), body))
        return self.answers[url.removeprefix("http://here")]


HERE, TURNS = Endpoint("http://here/v1"), [{"role": "user", "content": "a"}]


def test_a_prompt_is_counted_in_one_call():
    client = Client({"/tokenize": {"count": 7}})
    assert asyncio.run(count_prompt(client, HERE, "m", TURNS, "chat")) == 7
    assert client.posted == [
        ("/tokenize", {"model": "m", "messages": TURNS, "add_generation_prompt": True}),
    ]
    assert asyncio.run(count_prompt(Client({"/tokenize": {"count": 0}}), HERE, "m", TURNS, "chat")) is None


def test_a_prompt_is_counted_in_two_calls_with_the_marks_of_the_chat_format():
    answers = {"/apply-template": {"prompt": "<user>a"}, "/tokenize": {"tokens": [5, 6, 7]}}
    client = Client(answers)
    assert asyncio.run(count_prompt(client, HERE, "m", TURNS, "template")) == 3
    assert client.posted == [
        ("/apply-template", {"messages": TURNS}),
        ("/tokenize", {"content": "<user>a", "add_special": True, "parse_special": True}),
    ]
    for odd in ({"/apply-template": {"prompt": 5}}, {"/tokenize": {"tokens": 3}}, {"/tokenize": ["odd"]}):
        assert asyncio.run(count_prompt(Client(answers | odd), HERE, "m", TURNS, "template")) is None


@pytest.mark.parametrize(
    ("answers", "tokenizer"),
    [
        ({"/tokenize": {"count": 3}}, "chat"),
        ({"/tokenize": {"tokens": [1]}, "/apply-template": {"prompt": "a"}}, "template"),
        ({"/tokenize": {"tokens": [1]}, "/apply-template": {}}, None),
        ({"/tokenize": {"tokens": 1}, "/apply-template": {"prompt": "a"}}, None),
    ],
)
def test_how_a_local_server_counts(answers, tokenizer):
    client = Client({"/v1/models": [], "/props": {"total_slots": 0}} | answers)
    assert asyncio.run(server_facts(client, HERE, "m")) == ServerFacts(None, None, tokenizer)


@pytest.mark.parametrize(
    ("models", "props", "context"),
    [
        ([{"id": "x", "n_ctx": 7}, {"id": "m", "n_ctx": 8}], {}, 8),
        ([{"id": "x", "n_ctx": 7}], {}, 7),  # the only one
        ([{"id": "x", "n_ctx": 7}, {"id": "y", "n_ctx": 8}], {}, None),
        ([{"id": "m", "n_ctx": True}], {"n_ctx": 5}, 5),
        ([{"id": "m", "n_ctx_train": 9, "max_model_len": 8}], {"n_ctx": 5}, 8),
        ([{"id": "m", "meta": {"n_ctx_train": 9}, "top_provider": {"context_length": 6}}], {}, 6),
        ([{"id": "m", "meta": {"n_ctx": 4}, "n_ctx": 6}], {}, 4),
        ([{"id": "m", "context_window": -1, "meta": "odd"}], {}, None),
    ],
)
def test_how_much_a_model_reads(models, props, context):
    client = Client(
        {"/v1/models": models, "/props": {"default_generation_settings": props}, "/tokenize": None}
    )
    assert asyncio.run(server_facts(client, HERE, "m")).context_length == context


def test_only_local_servers_are_asked_outside_the_api():
    far = Endpoint("http://example.org/v1")
    client = Client({"http://example.org/v1/models": [{"id": "m"}]})
    assert asyncio.run(server_facts(client, far, "m")) == ServerFacts()
    assert (client.asked, client.posted) == (["http://example.org/v1/models"], [])


def test_how_long_a_server_may_take_for_its_models_and_for_what_it_need_not_know(monkeypatch):
    given = []

    def at_once(seconds):
        given.append(seconds)
        return asyncio.timeout(0)

    class Slow:
        async def get(self, *_, **__):
            await asyncio.sleep(60)

        post = get

    monkeypatch.setattr("core.llm.openai.replies.asyncio", SimpleNamespace(timeout=at_once))
    with pytest.raises(TransientError, match=r"^http://here/v1 did not list its models in 10 s\.$"):
        asyncio.run(fetch_models(Slow(), HERE))
    assert asyncio.run(count_prompt(Slow(), HERE, "m", TURNS, "chat")) is None
    assert given == [10.0, 5.0]


def test_a_name_has_at_most_200_characters():
    named = [{"id": "n" * 201}, {"id": "\ud800"}]
    found = asyncio.run(fetch_models(Client({"/v1/models": {"data": named}}), HERE))
    assert [one["id"] for one in found] == ["n" * 200, "\ufffd"]


@pytest.mark.parametrize("error", [ValueError("no JSON"), RecursionError()])
def test_a_list_of_models_that_cannot_be_read_is_none(error):
    with pytest.raises(BackendError, match=r"^http://here/v1 does not list its models; check the address"):
        asyncio.run(fetch_models(Client({"/v1/models": error}), HERE))


def test_of_many_models_ten_are_named():
    models = [{"id": str(n)} for n in range(11)]
    assert shown_names(models[:10]) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
    assert shown_names(models) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 …"
    assert shown_names([]) == ""


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
