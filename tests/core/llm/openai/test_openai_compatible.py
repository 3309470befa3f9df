import gc
import inspect
import json
import threading
import time
import weakref
from types import SimpleNamespace

import httpx
import pytest

from core.errors import BackendError, Cancelled, TransientError
from core.llm import open_llm
from core.llm.openai.llm import OpenAICompatibleLLM, list_models
from core.llm.remote import Overloaded
from core.llm.types import Capabilities, Message
from tests.servers.chat_server import QUESTION, SCHEMA, ask, chat, chat_server, one, opened, refusal, sent
from tests.servers.fault_proxy import fault_proxy, loris, reply, reset, scripted, truncate


@pytest.fixture(scope="module")
def real(llama):
    return OpenAICompatibleLLM(base_url=f"{llama}/v1")


def test_a_real_server_is_found_out(real, llama):
    assert (real.name, real.kind) == ("smollm2-135m", "openai")
    assert dict(real.options) == {"backend": "openai", "base_url": f"{llama}/v1"}
    can = real.capabilities
    assert (can.parallel, can.context_length) == (2, 4096)
    assert (can.token_logprobs, can.json_schema, can.seed, can.answer_logprob) == (True, True, True, False)
    assert list_models(f"{llama}/v1") == ["smollm2-135m"]
    assert open_llm("openai", base_url=f"{llama}/v1").name == "smollm2-135m"


def test_a_real_answer_with_its_tokens_counted(real):
    requests = [ask(), ask(seed=1), ask((Message("user", "你好 \ud800 \x00 <|im_end|> naïve"),))]
    answers = real.generate(requests)
    assert answers[0].text == answers[1].text != ""
    for request, answer in zip(requests[:2], answers, strict=False):
        assert answer.prompt_tokens == real.count_tokens(request.messages)
    assert 0 < answers[0].completion_tokens <= 12
    assert "\n" not in answers[0].text
    assert answers[2].error is None


def test_real_logprobs_are_those_of_the_tokens_of_the_text(real, llama):
    answer = real.generate([ask(logprobs=True, max_tokens=40)])[0]
    body = {"model": "x", "messages": [{"role": "user", "content": QUESTION[0].content}], "max_tokens": 40}
    raw = httpx.post(
        f"{llama}/v1/chat/completions", json=body | {"temperature": 0, "logprobs": True}, timeout=60
    )
    tokens = raw.json()["choices"][0]["logprobs"]["content"]
    n = len(answer.logprobs)
    assert "".join(token["token"] for token in tokens[:n]).strip().startswith(answer.text)
    assert "".join(token["token"] for token in tokens[: n - 1]).strip() != answer.text
    assert answer.logprobs == pytest.approx([token["logprob"] for token in tokens[:n]], abs=1e-3)


def test_a_real_server_keeps_to_a_schema_and_refuses_a_wrong_one_alone(real):
    good, wrong = real.generate([ask(schema=SCHEMA, stop=(), max_tokens=40), ask(schema='{"type":"objekt"}')])
    assert list(json.loads(good.text)) == ["city"]
    assert wrong.error is None
    assert real.capabilities.json_schema


def test_a_prompt_that_is_too_long_is_refused_with_its_length(real):
    long = ask((Message("user", "word " * 5000),))
    answer, other = real.generate([long, ask()])
    assert (answer.text, answer.finish_reason) == ("", "error")
    assert answer.error == (
        f"The prompt has {real.count_tokens(long.messages):,} tokens and the answer may take 12, "
        "but the model reads 4,096 in all: use fewer or shorter passages."
    )
    assert other.text


def test_what_is_sent_and_what_is_left_out():
    with chat_server(chat(" answer: Paris\n\nParis is in France")) as server:
        answer = one(server, ask(temperature=0.7, top_p=0.9, seed=5))
        assert (answer.text, answer.finish_reason) == ("Paris", "stop")
        assert sent(server) == [
            {
                "model": "m",
                "messages": [{"role": "user", "content": QUESTION[0].content}],
                "temperature": 0.7,
                "top_p": 0.9,
                "seed": 5,
                "max_tokens": 12,
            }
        ]
        one(server, ask(schema=SCHEMA, logprobs=True))
        body = sent(server)[1]
        assert body["response_format"]["json_schema"]["schema"] == json.loads(SCHEMA)
        assert (body["logprobs"], "top_p" in body) == (True, False)


def test_the_order_of_answers_does_not_depend_on_their_time():
    def slow_first(body):
        n = int(body["messages"][0]["content"])
        time.sleep(0.02 * (5 - n))
        return chat(f"answer {n}")

    with chat_server(slow_first) as server:
        llm, seen = opened(server), []
        answers = llm.generate(
            [ask((Message("user", str(n)),)) for n in range(6)], lambda i, c: seen.append(i)
        )
        assert [a.text for a in answers] == [f"answer {n}" for n in range(6)]
        assert sorted(seen) == list(range(6))


def test_a_server_without_logprobs_is_found_out():
    with chat_server(chat("Paris")) as server:
        llm = opened(server)
        assert llm.generate([ask(logprobs=True)])[0].logprobs is None
        assert not llm.capabilities.token_logprobs


def test_only_a_text_without_the_log_probabilities_asked_for_shows_that_a_server_has_none():
    token = {"token": "Paris", "bytes": list(b"Paris"), "logprob": -0.5}
    message = {"role": "assistant", "content": "Paris"}
    choice = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": {"content": [token]}}
    with chat_server(reply(200, {"choices": [choice]}), chat(""), chat("Paris")) as server:
        llm = opened(server)
        assert llm.generate([ask(logprobs=True)])[0].logprobs == (-0.5,)
        assert llm.capabilities.token_logprobs
        for request in (ask(logprobs=True), ask()):  # an answer without a text, and one without a wish
            assert llm.generate([request])[0].logprobs is None
            assert llm.capabilities.token_logprobs
        assert llm.generate([ask(logprobs=True)])[0].logprobs is None
        assert not llm.capabilities.token_logprobs


def test_an_answer_from_which_the_key_is_taken_has_no_log_probabilities():
    key = "a-key-of-twenty-signs"
    token = {"token": key, "bytes": list(key.encode()), "logprob": -0.5}
    choice = {"message": {"content": key}, "logprobs": {"content": [token]}}
    with chat_server(reply(200, {"choices": [choice]})) as server:
        found = [one(server, ask(logprobs=True), api_key=given) for given in (key, "")]
    assert [(answer.text, answer.logprobs) for answer in found] == [("…", None), (key, (-0.5,))]


@pytest.mark.parametrize(
    ("answer", "finish"),
    [
        (chat("Paris"), "stop"),
        (refusal("prompt is too long: 9 tokens"), "error"),
        (refusal("flagged", code="content_filter"), "content_filter"),
        (refusal("odd"), "error"),
    ],
)
def test_the_time_of_a_call_is_measured_whatever_comes_of_it(answer, finish, monkeypatch):
    clock = iter([10.0, 12.5])
    time_of = SimpleNamespace(perf_counter=clock.__next__, monotonic=time.monotonic)
    with chat_server(answer) as server:
        llm = opened(server)
        monkeypatch.setattr("core.llm.openai.llm.time", time_of)
        found = llm.generate([ask()])[0]
    assert (found.finish_reason, found.latency) == (finish, 2.5)


def test_what_holds_where_nothing_else_is_said():
    defaults = inspect.signature(OpenAICompatibleLLM).parameters
    assert (defaults["timeout"].default, defaults["parallel"].default) == (300.0, 8)
    with chat_server(models=()) as server:
        llm = opened(server)
        assert llm.capabilities == Capabilities(token_logprobs=True, json_schema=True, seed=True, parallel=8)
        assert llm.notes == ()


def test_no_connection_is_closed_once_more_when_a_process_ends(monkeypatch):
    finalizer = SimpleNamespace()
    monkeypatch.setattr("core.llm.openai.llm.weakref", SimpleNamespace(finalize=lambda *_: finalizer))
    OpenAICompatibleLLM("m", base_url="http://here/v1")._ready_client()
    assert finalizer.atexit is False


def test_a_model_that_is_missing_where_none_are_listed():
    with chat_server(refusal("no such model", 404), models=()) as server:
        with pytest.raises(BackendError, match=r"/v1 has no model m; ask it for its models\.$"):
            one(server)
        assert len(sent(server)) == 1


def test_no_parameter_is_blamed_for_what_a_filter_or_the_length_of_the_prompt_ends():
    for told in ("content_filter: unsupported seed", "prompt is too long: seed not supported"):
        with chat_server(refusal(told)) as server:
            assert one(server).text == ""
            assert len(sent(server)) == 1


def test_nobody_answers_at_the_address():
    with chat_server() as server:
        llm = opened(server)
        server.down()
        with pytest.raises(
            TransientError, match=rf"No server answers at {server.address}/v1 .*check the address"
        ):
            llm.generate([ask()])
        server.up()
        assert llm.generate([ask()])[0].text == "Paris"


@pytest.mark.parametrize("fault", [reset(0.5), reset(0.0), truncate(0.9), truncate(0.0)])
def test_an_answer_that_breaks_off_is_no_answer(llama, fault):
    with fault_proxy(llama, scripted([fault], path="/chat/completions")) as proxy:
        llm = opened(proxy)
        with pytest.raises(TransientError, match="broke in the middle of a call"):
            llm.generate([ask()])
        assert llm.generate([ask()])[0].text


@pytest.mark.parametrize("where", ["headers", "body"])
def test_bytes_that_trickle_in_end_at_the_deadline(llama, where):
    with fault_proxy(llama, scripted([loris(0.1, where)], path="/chat/completions")) as proxy:
        start = time.monotonic()
        with pytest.raises(Overloaded, match=r"did not finish an answer in 1 s"):
            one(proxy, timeout=1.0)
        # The whole answer would take more than 30 seconds.
        assert time.monotonic() - start < 15


def test_a_cancel_ends_a_call_in_the_middle():
    begun = threading.Event()

    def hang(_):
        begun.set()
        time.sleep(2)
        return chat()

    with chat_server(hang) as server:
        start = time.monotonic()
        with pytest.raises(Cancelled):
            opened(server).generate([ask()], cancelled=begun.is_set)
        assert time.monotonic() - start < 2


def test_a_server_with_one_model_needs_no_name():
    with chat_server(models=("only",)) as server:
        assert opened(server, None).name == "only"
    with (
        chat_server(models=("a", "b")) as server,
        pytest.raises(BackendError, match="2 models; name one of them: a, b"),
    ):
        opened(server, None)
    with chat_server(models=()) as server, pytest.raises(BackendError, match="0 models to choose from"):
        opened(server, None)


def test_an_llm_that_is_let_go_closes_its_connections():
    with chat_server() as server:
        llm = opened(server)
        llm.generate([ask()])
        client, gone = llm._client, weakref.ref(llm)
        del llm
        gc.collect()
        assert gone() is None
        for _ in range(500):
            if client.is_closed():
                break
            time.sleep(0.01)
        assert client.is_closed()
