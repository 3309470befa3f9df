"""Servers that speak Ollama's API with habits of their own."""

import inspect
import json
from dataclasses import replace

import pytest

from core.errors import LeadlineError, TransientError
from core.influence.step import InfluenceStep
from core.llm import Capabilities, Message, Request, open_llm
from core.llm.ollama.llm import OllamaLLM
from core.sources.dataset import read_dataset
from tests.live_runs import live_run
from tests.servers.fault_proxy import fault_proxy, reply

QUESTION = Request((Message("user", "What is the capital of France?"),), max_tokens=8)
WHOLE = {
    "model": "tiny",
    "created_at": "2026-01-01T00:00:00Z",
    "message": {"role": "assistant", "content": "Paris"},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 40,
    "eval_count": 1,
}
PART = WHOLE | {"done": False}
INDENTED = json.dumps(WHOLE, indent=1).encode()
EVENTS = b"data: " + json.dumps(WHOLE).encode() + b"\n\ndata: [DONE]\n\n"
CUT = json.dumps(PART).encode() + b"\n"
REFUSAL = reply(400, {"error": "streaming is not supported"})
NO_STREAM = [reply(200, INDENTED), reply(200, EVENTS), reply(200, CUT), REFUSAL]


def serving(streamed, whole=None, **facts):
    """A server that lists and knows its model without a tag, and answers a stream so."""

    def choose(exchange):
        if exchange.path == "/api/tags":
            return reply(200, {"models": [{"name": "tiny", "model": "tiny", "digest": "d1"}]})
        body = exchange.json()
        if body["model"] != "tiny":
            return reply(404, {"error": f"model '{body['model']}' not found"})
        if exchange.path == "/api/show":
            known = {"model_info": {"tiny.context_length": 4096}, "capabilities": ["completion"]}
            return reply(200, known | facts)
        return streamed if body["stream"] else whole or reply(200, WHOLE)

    return fault_proxy(None, choose)


def streams(server):
    return [exchange.json()["stream"] for exchange in server.requests("/api/chat")]


@pytest.mark.parametrize("asked", ["tiny", "tiny:latest", "Tiny"])
def test_a_model_listed_without_a_tag_is_found_and_called_by_that_name(asked):
    with serving(reply(200, WHOLE)) as server:
        llm = open_llm("ollama", asked, base_url=server.address)
        assert llm.generate([QUESTION])[0].text == "Paris"
        assert llm.name.casefold() == "tiny:latest"  # one cache for all ways to write it
        assert streams(server) == [True] and llm.notes == ()


@pytest.mark.parametrize("streamed", NO_STREAM)
def test_a_server_that_cannot_stream_is_asked_for_whole_answers(streamed):
    with serving(streamed) as server:
        llm = open_llm("ollama", "tiny", base_url=server.address)
        for _ in range(2):
            assert llm.generate([QUESTION])[0].text == "Paris"
        assert streams(server) == [True, False, False]
        (note,) = llm.notes
        assert note == f"The server at {server.address} does not stream answers; they were asked for whole."


@pytest.mark.parametrize(
    ("streamed", "whole"), [(reply(200, CUT), reply(500)), (reply(200, EVENTS), reply(200, CUT))]
)
def test_where_that_fails_too_the_first_failure_is_told(streamed, whole):
    with serving(streamed, whole) as server:
        llm = open_llm("ollama", "tiny", base_url=server.address)
        with pytest.raises(TransientError, match=r"in the middle of an answer|cannot be read"):
            llm.generate([QUESTION])
        assert streams(server) == [True, False] and llm.notes == ()


def test_a_stream_that_breaks_where_another_was_whole_is_no_reason_to_stop_streaming():
    answers = iter([reply(200, WHOLE), reply(200, CUT)])
    with serving(None) as server:
        choose = server.schedule
        server.schedule = lambda e: next(answers) if e.path == "/api/chat" else choose(e)
        llm = open_llm("ollama", "tiny", base_url=server.address)
        llm.generate([QUESTION])
        with pytest.raises(LeadlineError, match="in the middle of an answer"):
            llm.generate([QUESTION])
        assert streams(server) == [True, True]


@pytest.mark.parametrize(("reported", "seconds"), [({"total_duration": 2_500_000_000}, 2.5), ({}, 0.0)])
def test_the_time_that_the_server_reports_is_in_nanoseconds(reported, seconds):
    with serving(reply(200, WHOLE | reported)) as server:
        assert open_llm("ollama", "tiny", base_url=server.address).generate([QUESTION])[0].latency == seconds


@pytest.mark.parametrize(
    ("context", "reads"),
    [
        (None, "the model reads 4,096 in all"),
        (2048, "this run lets the model read 2,048 in all"),
        (8192, "the model reads 4,096 in all"),
    ],
)
@pytest.mark.parametrize("reported", [True, False])
def test_too_long_a_prompt_is_refused_with_the_limit_and_whose_it_is(context, reads, reported):
    told = (
        "the request (9000 tokens) exceeds the available context size" if reported else "exceeds the context"
    )
    with serving(reply(400, {"error": told})) as server:
        answer = open_llm("ollama", "tiny", base_url=server.address, context=context).generate([QUESTION])[0]
    length = "9,000" if reported else "more than 2,040" if context == 2048 else "more than 4,088"
    assert (answer.finish_reason, answer.prompt_tokens) == ("error", 9000 if reported else 0)
    assert answer.error == (
        f"The prompt has {length} tokens and the answer may take 8, but {reads}: use fewer or shorter passages."
    )


@pytest.mark.parametrize(
    ("request_", "capabilities", "more", "left_out"),
    [
        (QUESTION, ["completion"], {}, {"think", "logprobs", "format"}),
        (QUESTION, ["completion", "thinking"], {"think": False}, {"logprobs", "format"}),
        (replace(QUESTION, logprobs=True), [], {"logprobs": True}, {"think", "format"}),
        (replace(QUESTION, schema='{"type":"object"}'), None, {"format": {"type": "object"}}, {"logprobs"}),
    ],
)
def test_what_is_sent_to_a_server(request_, capabilities, more, left_out):
    begun = (*QUESTION.messages, Message("assistant", "Answer:"))
    asked = replace(request_, messages=begun, temperature=0.7, top_p=0.9, seed=-3)
    with serving(reply(200, WHOLE), capabilities=capabilities) as server:
        assert open_llm("ollama", "tiny", base_url=server.address).generate([asked])[0].text == "Paris"
        (exchange,) = server.requests("/api/chat")
    body = exchange.json()
    options = {
        "temperature": 0.7,
        "top_p": 0.9,
        "seed": 2**31 - 3,
        "num_predict": 8,
        "num_ctx": 4096,
        "top_k": 0,
        "min_p": 0.0,
        "repeat_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    }
    expected = {"options": options, "keep_alive": "5m", "truncate": False, "stream": True} | more
    assert {name: body[name] for name in expected} == expected
    # The beginning of the answer is not sent: not every server goes on with it.
    assert body["messages"] == [{"role": "user", "content": QUESTION.messages[0].content}]
    assert not left_out & set(body)
    assert exchange.headers["content-length"] == str(len(exchange.body))


def test_what_holds_where_nothing_else_is_said():
    defaults = inspect.signature(OllamaLLM).parameters
    assert [defaults[name].default for name in ("timeout", "parallel", "keep_alive", "context")] == [
        600.0,
        4,
        "5m",
        None,
    ]
    with serving(reply(200, WHOLE)) as server:
        llm = open_llm("ollama", "tiny", base_url=server.address)
        assert llm.capabilities == Capabilities(
            token_logprobs=True, json_schema=True, seed=True, parallel=4, context_length=4096
        )
        assert dict(llm.options) == {"backend": "ollama", "digest": "d1"}
        assert llm.count_tokens(QUESTION.messages) == 4 + 8  # a turn, and 30 characters


@pytest.mark.parametrize(("length", "known"), [(1, 1), (0, None), (-1, None), ("many", None)])
def test_the_length_of_the_context_is_a_number_above_zero(length, known):
    with serving(reply(200, WHOLE), model_info={"tiny.context_length": length}) as server:
        assert open_llm("ollama", "tiny", base_url=server.address).capabilities.context_length == known


def test_where_the_limit_is_unknown_the_largest_context_that_was_asked_for_is_told():
    with serving(reply(400, {"error": "exceeds the context"}), model_info=None) as server:
        answer = open_llm("ollama", "tiny", base_url=server.address).generate([QUESTION])[0]
        asked = [exchange.json()["options"]["num_ctx"] for exchange in server.requests("/api/chat")]
    assert asked == [2**n for n in range(12, 18)]
    assert "more than 131,064 tokens" in answer.error
    assert "but the model reads 131,072 in all" in answer.error


def test_a_server_that_does_not_tell_what_it_read_is_not_believed():
    with serving(reply(200, WHOLE | {"prompt_eval_count": 0})) as server:
        answer = open_llm("ollama", "tiny", base_url=server.address).generate([QUESTION])[0]
        assert (answer.text, answer.finish_reason) == ("", "error")
        assert answer.error == (
            f"Ollama at {server.address} does not report how many prompt tokens it read, so a truncated "
            "prompt would go unnoticed; update it to 0.5 or later."
        )


def test_only_a_text_without_the_log_probabilities_asked_for_shows_that_a_server_has_none():
    empty = WHOLE | {"message": {"role": "assistant", "content": ""}}
    given = WHOLE | {"logprobs": [{"token": "Paris", "logprob": -0.5}]}
    answers = iter([given, empty, WHOLE, WHOLE])
    with serving(None) as server:
        choose = server.schedule
        server.schedule = lambda e: reply(200, next(answers)) if e.path == "/api/chat" else choose(e)
        llm = open_llm("ollama", "tiny", base_url=server.address)
        wished = replace(QUESTION, logprobs=True)
        assert llm.generate([wished])[0].logprobs == (-0.5,)
        for request in (wished, QUESTION):  # an answer without a text, and one without a wish
            assert llm.generate([request])[0].logprobs is None
            assert llm.capabilities.token_logprobs
        assert llm.generate([wished])[0].logprobs is None
        assert not llm.capabilities.token_logprobs


@pytest.mark.parametrize(
    ("environment", "given", "sent"),
    [
        ("of-the-machine", None, "of-the-machine"),
        ("of-the-machine", "own", "own"),
        ("of-the-machine", "", None),
    ],
)
def test_a_key_is_sent_and_the_environments_own_only_where_none_is_given(
    environment, given, sent, monkeypatch
):
    monkeypatch.setenv("OLLAMA_API_KEY", environment)
    with serving(reply(200, WHOLE)) as server:
        open_llm("ollama", "tiny", base_url=server.address, api_key=given).generate([QUESTION])
        headers = {exchange.headers.get("authorization") for exchange in server.log}
    assert headers == {sent and f"Bearer {sent}"}


def test_the_run_says_so():
    data = read_dataset(b'{"id": "q", "question": "Where?", "passages": ["In Paris."]}', "t.jsonl")
    with serving(reply(200, INDENTED)) as server:
        llm = open_llm("ollama", "tiny", base_url=server.address)
        run = live_run(data, llm, step=InfluenceStep(repeats=0, closed_book=False))
    assert any("does not stream answers" in note for note in run.manifest["notes"])
