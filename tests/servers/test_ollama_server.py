"""The stand-in for Ollama as the official client and plain HTTP see it."""

import httpx
import ollama
import pytest

from tests.servers.ollama_server import MODEL, Model, ollama_server

ASK = [{"role": "user", "content": "Say hello."}]
FEW = {"num_predict": 4, "temperature": 0}


@pytest.fixture
def client(ollama_server):
    with ollama.Client(ollama_server) as client:
        yield client


def test_a_whole_answer_equals_a_streamed_one(client):
    whole = client.chat(MODEL, ASK, options=FEW, logprobs=True)
    parts = list(client.chat(MODEL, ASK, options=FEW, logprobs=True, stream=True))
    assert whole.message.content == "".join(part.message.content for part in parts) != ""
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert len(whole.logprobs) == whole.eval_count == 4
    assert (whole.done, whole.done_reason, whole.model) == (True, "length", MODEL)
    assert whole.prompt_eval_count == parts[-1].prompt_eval_count > 10
    assert whole.total_duration >= whole.prompt_eval_duration + whole.eval_duration > 0
    assert whole.load_duration > 0


def test_a_stop_sequence_ends_an_answer(client):
    whole = client.chat(MODEL, ASK, options=FEW).message.content
    short = client.chat(MODEL, ASK, options={**FEW, "stop": [whole[2]]})
    assert (short.message.content, short.done_reason) == (whole[:2], "stop")


def test_a_call_without_messages_loads_the_model(client):
    loaded = client.chat(MODEL, [])
    assert (loaded.done, loaded.done_reason, loaded.message.content) == (True, "load", "")


def test_what_is_shown(client):
    listed = client.list().models[0]
    assert (listed.model, listed.details.format) == (MODEL, "gguf")
    shown = client.show(MODEL.upper())
    assert shown.modelinfo["llama.context_length"] == 8192
    assert shown.capabilities == ["completion"]


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        ("chat", b"", 400, "missing request body"),
        ("chat", b"{", 400, "invalid character in request body"),
        ("chat", {"messages": ASK}, 400, "model is required"),
        ("chat", {"model": "nope", "messages": ASK}, 404, "model 'nope' not found"),
        ("show", {"model": "nope"}, 404, "model 'nope' not found"),
        (
            "chat",
            {"model": MODEL, "messages": ASK, "think": True},
            400,
            f'"{MODEL}" does not support thinking',
        ),
        (
            "chat",
            {"model": MODEL, "messages": ASK, "options": {"num_ctx": "big"}},
            400,
            'option "num_ctx" must be of type integer',
        ),
        (
            "chat",
            {"model": MODEL, "messages": ASK, "format": 3},
            400,
            'invalid format: 3; expected "json" or a valid JSON Schema object',
        ),
    ],
)
def test_refusals(ollama_server, path, body, status, error):
    content = {"content": body} if isinstance(body, bytes) else {"json": body}
    answer = httpx.post(f"{ollama_server}/api/{path}", **content)
    assert (answer.status_code, answer.json()) == (status, {"error": error})


def test_the_other_paths(ollama_server):
    assert httpx.get(ollama_server).text == "Ollama is running"
    assert set(httpx.get(f"{ollama_server}/api/version").json()) == {"version"}
    assert httpx.get(f"{ollama_server}/api/none").status_code == 404
    assert httpx.post(f"{ollama_server}/api/none").status_code == 404


def test_a_prompt_that_is_too_long_is_cut_or_refused_as_told(llama):
    long = [{"role": "user", "content": "word " * 60}]
    with ollama_server(llama, models=(Model(MODEL, context_length=64),)) as server:
        with ollama.Client(server.address) as client:
            assert client.chat(MODEL, long, options=FEW).prompt_eval_count == 64 - (64 - 4) // 2
        body = {"model": MODEL, "messages": long, "options": FEW, "truncate": False}
        refused = httpx.post(f"{server.address}/api/chat", json=body)
        assert refused.status_code == 400
        assert '"type": "exceed_context_size_error"' in refused.json()["error"]
        server.habits = type(server.habits)(overflow="full")
        with ollama.Client(server.address) as client:
            assert client.chat(MODEL, long, options=FEW).prompt_eval_count == 64
