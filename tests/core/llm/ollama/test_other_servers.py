"""Servers that speak Ollama's API with habits of their own."""

import json

import pytest

from core.errors import LeadlineError, TransientError
from core.influence.step import InfluenceStep
from core.llm import Message, Request, open_llm
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


def serving(streamed, whole=None):
    """A server that lists and knows its model without a tag, and answers a stream so."""

    def choose(exchange):
        if exchange.path == "/api/tags":
            return reply(200, {"models": [{"name": "tiny", "model": "tiny", "digest": "d1"}]})
        body = exchange.json()
        if body["model"] != "tiny":
            return reply(404, {"error": f"model '{body['model']}' not found"})
        if exchange.path == "/api/show":
            return reply(200, {"model_info": {"tiny.context_length": 4096}, "capabilities": ["completion"]})
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
    assert answer.error == (
        f"The prompt has {length} tokens and the answer may take 8, but {reads}: use fewer or shorter passages."
    )


def test_the_run_says_so():
    data = read_dataset(b'{"id": "q", "question": "Where?", "passages": ["In Paris."]}', "t.jsonl")
    with serving(reply(200, INDENTED)) as server:
        llm = open_llm("ollama", "tiny", base_url=server.address)
        run = live_run(data, llm, step=InfluenceStep(repeats=0, closed_book=False))
    assert any("does not stream answers" in note for note in run.manifest["notes"])
