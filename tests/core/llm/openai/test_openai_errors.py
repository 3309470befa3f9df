import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BackendError, LeadlineError, TransientError
from core.llm.remote import Overloaded
from tests.servers.chat_server import QUESTION, SCHEMA, ask, chat, chat_server, one, opened, raised, refusal
from tests.servers.fault_proxy import fault_proxy, garbage, hang_up, reply


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (refusal("no", 401), BackendError, "asks for an API key .HTTP 401. and none was given; set OPENAI_API_KEY"),
        (refusal("no", 402), BackendError, "no credit left"),
        (refusal("x", 429, code="insufficient_quota"), BackendError, "no credit left"),
        (reply(404, b"<html>nginx</html>"), BackendError, "an HTML page; check the address: .* ends in /v1"),
        (refusal("rate", 429), Overloaded, "limits the rate"),
        (refusal("busy", 503), Overloaded, "overloaded"),
        (refusal("late", 408), TransientError, "late"),
        (reply(502, b"<html>"), TransientError, "HTTP 502: an HTML page"),
        (refusal("boom", 500), TransientError, "HTTP 500: boom"),
        (reply(200, {"error": {"message": "provider is down", "code": 502}}), TransientError, "provider is down"),
        (reply(200, {"error": {"message": "busy", "code": 429}}), Overloaded, "busy"),
        (chat("", finish="error"), TransientError, "ended with an error"),
        (reply(200, b"<html>"), TransientError, "an HTML page; is this the address of its API"),
        (reply(304, b""), BackendError, "HTTP 304"),
        (garbage(), TransientError, "not JSON"),
        (garbage(b"[1]"), TransientError, "not an object"),
        (garbage(b"[" * 100_000), TransientError, "not JSON"),
        (garbage(b"{}"), TransientError, "contains no answer"),
        (chat({"a": 1}), TransientError, "not text"),
        (hang_up(), TransientError, "broke in the middle of a call"),
    ],
)  # fmt: skip
def test_each_error_is_one_sentence_of_the_right_kind(answer, kind, words):
    error = raised(answer)
    assert type(error) is kind or (kind is TransientError and type(error).__base__ is kind)
    assert isinstance(error, Overloaded) == (kind is Overloaded)
    assert re.search(words, str(error))
    assert "\n" not in str(error)


def test_a_model_that_is_not_there_is_named_with_those_that_are():
    answers = (
        refusal("The model `m` does not exist.", 404, code="model_not_found"),
        refusal("m is not a valid model ID"),
    )
    for answer in answers:
        error = raised(answer, models=("llama", "qwen"))
        assert type(error) is BackendError
        assert str(error).endswith("/v1 has no model m; it has llama, qwen.")


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"message": "flagged", "code": "content_filter"}),
        (400, {"message": "The response was filtered by our content management policy."}),
        (422, {"message": "The prompt goes against our content policy."}),
        (451, {"message": "The request was flagged: it was stopped by the safety system."}),
        (403, {"message": "Input blocked: moderation flagged it", "code": 403}),
    ],
)
def test_a_content_filter_withholds_the_answer(status, error):
    with chat_server(reply(status, {"error": error})) as server:
        answer = one(server)
    assert (answer.text, answer.finish_reason, answer.error) == ("", "content_filter", None)


@pytest.mark.parametrize(
    ("told", "prompt", "limit"),
    [
        ("This model's maximum context length is 4097 tokens, you asked for 5012 (5000 in the messages, 12 "
         "in the completion).", "5,000", "4,097"),
        ("You passed 7,001 input tokens but the model's context length is only 4096 tokens.", "7,001", "4,096"),
        ("prompt is too long: 210000 tokens > 200000 maximum", "210,000", None),
        ("The input exceeds the context window of this model.", "about 17", None),
    ],
)  # fmt: skip
def test_a_prompt_that_is_too_long_in_the_words_of_other_servers(told, prompt, limit):
    with chat_server(refusal(told, code="context_length_exceeded")) as server:
        error = one(server, ask(QUESTION[:1])).error
    reads = f"the model reads {limit} in all" if limit else "that is more than the model reads"
    expected = f"The prompt has {prompt} tokens and the answer may take 12, but {reads}: use fewer or shorter passages."
    assert error == expected


@pytest.mark.parametrize("status", [413, 422, 500])
def test_a_prompt_that_is_too_long_whatever_the_status(status):
    with chat_server(refusal("prompt is too long: 210000 tokens", status)) as server:
        assert "The prompt has 210,000 tokens" in one(server).error


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({"Retry_After": "7"}, 7.0),
        ({"Retry_After": "0"}, 0.0),
        ({"Retry_After": "-5"}, 0.0),
        ({"Retry_After": "soon"}, None),
        ({"Retry_After": "1e999"}, None),
        ({}, None),
    ],
)
def test_the_pause_that_a_server_asks_for(headers, pause):
    assert raised(reply(429, {"error": "slow"}, **headers)).retry_after == pytest.approx(pause)


def test_a_pause_until_a_date():
    in_a_minute = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 60))
    assert 50 < raised(reply(503, {}, Retry_After=in_a_minute)).retry_after <= 60


@settings(max_examples=40)
@given(
    status=st.sampled_from([200, 200, 200, 400, 404, 413, 422, 429, 500, 503]),
    body=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["choices", "message", "content", "error", "code", "usage", "param"]), inner
            )
        ),
        max_leaves=9,
    ),
)
def test_whatever_comes_back_is_an_answer_or_one_of_our_errors(anything, status, body):
    server, llm = anything
    server.schedule = lambda _: reply(status, body)
    try:
        assert isinstance(llm.generate([ask(schema=SCHEMA, logprobs=True)])[0].text, str)
    except LeadlineError as error:
        assert "\n" not in str(error)


@pytest.fixture(scope="module")
def anything():
    with fault_proxy(None, lambda _: reply(404, b"")) as server:
        yield server, opened(server)
