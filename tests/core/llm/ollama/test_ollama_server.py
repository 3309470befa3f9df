"""What an Ollama server's errors and lines mean, and how it is called."""

from types import SimpleNamespace

import httpx
import ollama
import pytest

from core.errors import BackendError, TransientError
from core.llm.backends import PullProgress
from core.llm.ollama.llm import received
from core.llm.ollama.server import (
    CallRefused,
    ModelFacts,
    PromptTooLong,
    Server,
    Unreadable,
    explain,
    find_server,
    list_models,
    model_facts,
    not_fetched,
    pull,
)
from core.llm.remote import Overloaded
from tests.servers.fault_proxy import fault_proxy, reply

HERE = "http://here:1"


def explained(message, status):
    return explain(ollama.ResponseError(message, status), HERE, "m:latest")


def test_what_each_status_means():
    found = {status: explained("no", status) for status in [-1, *range(300, 600)]}
    told = {status: str(error) for status, error in found.items()}
    assert {status for status in found if "There is no Ollama server" in told[status]} == {404}
    assert {status for status in found if "denies access" in told[status]} == {401, 403}
    overloaded = {status for status, error in found.items() if type(error) is Overloaded}
    assert overloaded == {429, 503}
    refused = {status for status, error in found.items() if type(error) is CallRefused}
    assert refused == set(range(400, 500)) - {401, 403, 404, 429}
    passing = {status for status, error in found.items() if type(error) is TransientError}
    assert passing == {-1, *range(300, 400), *range(500, 600)} - {503}  # -1: in the middle of a stream


@pytest.mark.parametrize(
    ("message", "status", "kind", "told"),
    [
        ("model 'm' not found", 404, BackendError, "^The model m:latest is not on the Ollama server at"),
        ("out of memory", 500, BackendError, r"too little memory for m:latest \(out of memory\); choose"),
        ("token repeat limit reached", 500, CallRefused, r"gave up on this answer \(token repeat"),
    ],
)
def test_what_the_words_of_an_error_mean(message, status, kind, told):
    error = explained(message, status)
    assert type(error) is kind
    with pytest.raises(kind, match=told):
        raise error


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        ("exceed_context_size_error, n_prompt_tokens: 9001, n_ctx: 4096", 9001),
        ("request (9002 tokens) exceeds the available context size (4096 tokens)", 9002),
        ("the prompt is longer than the context", None),
    ],
)
def test_how_long_a_prompt_is_that_is_too_long(message, tokens):
    error = explained(message, 400)
    assert isinstance(error, PromptTooLong) and error.tokens == tokens


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (ConnectionError("no"), TransientError, "cannot be reached"),
        (httpx.ConnectError("no"), TransientError, "cannot be reached"),
        (httpx.ConnectTimeout("no"), TransientError, "cannot be reached"),
        (httpx.ReadTimeout("no"), Overloaded, "did not answer in time"),
        (httpx.ReadError("no"), TransientError, r"broke \(ReadError\)"),
        (ValueError("no"), Unreadable, "cannot be read"),
        (TypeError("no"), Unreadable, "cannot be read"),
    ],
)
def test_what_a_connection_that_fails_means(error, kind, told):
    found = explain(error, HERE, "m")
    assert type(found) is kind
    with pytest.raises(kind, match=f"{HERE}.*{told}|{told}.*{HERE}"):
        raise found


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ollama.ResponseError("file does not exist", 500), r"m \(file does not exist\); check the name at"),
        (
            ollama.ResponseError("busy", 500),
            r"^Ollama at http://here:1 cannot fetch m \(busy\); try again\.$",
        ),
        (
            ValueError("no"),
            r"^Ollama at http://here:1 sent a reply that cannot be read; m was not fetched\.$",
        ),
    ],
)
def test_why_a_model_was_not_fetched(error, told):
    with pytest.raises(BackendError, match=told):
        raise not_fetched(error, HERE, "m")


def test_models_without_a_name_are_passed_over_and_one_without_a_digest_has_none():
    models = {"models": [{"digest": "d0"}, {"model": "tiny"}, {"model": "b:1", "digest": "d1"}]}
    unknown = {"model_info": None}
    with fault_proxy(None, lambda e: reply(200, models if e.path == "/api/tags" else unknown)) as server:
        assert list_models(server.address) == ["tiny", "b:1"]
        facts = [model_facts(name, find_server(server.address)) for name in ("tiny:latest", "b:1")]
    assert facts == [ModelFacts("tiny", "", None, False), ModelFacts("b:1", "d1", None, False)]


def test_a_download_tells_the_bytes_of_each_part():
    lines = b"""{"status": "pulling manifest"}
{"status": "pulling abc", "total": 10}
{"status": "pulling abc", "total": 10, "completed": 4}
{"status": "success"}
"""
    with fault_proxy(None, lambda _: reply(200, lines)) as server:
        assert list(pull("tiny", server.address)) == [
            PullProgress("pulling manifest", None, None),
            PullProgress("pulling abc", 0, 10),
            PullProgress("pulling abc", 4, 10),
            PullProgress("success", None, None),
        ]
        (asked,) = server.requests("/api/pull")
    assert (asked.json()["model"], asked.json()["stream"]) == ("tiny:latest", True)


@pytest.mark.parametrize("method", ["client", "async_client"])
def test_a_server_that_does_not_take_the_call_is_given_up_after_ten_seconds(method, monkeypatch):
    given = []
    for name in ("Client", "AsyncClient"):
        monkeypatch.setattr(ollama, name, lambda url, **settings: given.append((url, settings)))
    getattr(Server(HERE, login=("me", "pw")), method)(600.0)
    ((url, settings),) = given
    assert (url, settings["auth"]) == (HERE, ("me", "pw"))
    assert (settings["timeout"].read, settings["timeout"].connect) == (600.0, 10.0)
    if method == "async_client":  # the server may close a connection that is kept
        assert settings["limits"].max_keepalive_connections == 0


def part(content=None, done=False, thinking=None, logprobs=(), reason=None, **counts):
    names = ("prompt_eval_count", "eval_count", "total_duration")
    return SimpleNamespace(
        message=SimpleNamespace(content=content, thinking=thinking),
        done=done,
        done_reason=reason,
        logprobs=[SimpleNamespace(token=text, logprob=value) for text, value in logprobs] or None,
        **{name: counts.get(name) for name in names},
    )


def test_the_lines_of_an_answer_are_joined_without_the_tokens_of_thoughts():
    found = received(
        [
            part(thinking="Well", logprobs=[("Well", -9.0)]),
            part("Pa", logprobs=[("P", -1.0), ("a", -2.0)]),
            part("ris", logprobs=[("ris", -3.0)]),
            part(done=True, reason="length", prompt_eval_count=7, eval_count=4, total_duration=1_500_000_000),
        ]
    )
    assert (found.content, found.finish, found.reasoned) == ("Paris", "length", True)
    assert found.tokens == [(b"P", -1.0), (b"a", -2.0), (b"ris", -3.0)]
    assert (found.prompt_tokens, found.completion_tokens, found.seconds) == (7, 4, 1.5)


@pytest.mark.parametrize("reason", ["stop", "load", None])
def test_what_a_server_does_not_report_is_nothing(reason):
    found = received([part("Paris", thinking=" "), part(done=True, reason=reason)])
    assert (found.content, found.finish, found.reasoned, found.tokens) == ("Paris", "stop", False, None)
    assert (found.prompt_tokens, found.completion_tokens, found.seconds) == (0, 0, 0.0)
    assert received([part("Paris")]) is None
    assert received([]) is None
