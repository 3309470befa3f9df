import asyncio
import json
from types import SimpleNamespace

import httpx
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BackendError, TransientError
from core.llm.openai.endpoint import Endpoint
from core.llm.openai.replies import (
    Malformed,
    ServerError,
    completion,
    error_of,
    error_to_raise,
    inner_error,
    read_error,
    read_json,
    reply_or_error,
    retry_after,
    too_long,
)
from core.llm.remote import Overloaded
from core.llm.types import FINISH_REASONS, Message, Request

ASKED = Request((Message("user", "abcdefgh"),), stop=("\n",), logprobs=True)


def reply(content="Paris", finish="stop", usage=None, logprobs=None, **message):
    choice = {"finish_reason": finish, "message": {"content": content, **message}}
    return {"choices": [choice | ({"logprobs": {"content": logprobs}} if logprobs else {})], "usage": usage}


def outcome(*arguments, prefix="", **more):
    found = completion(reply(*arguments, **more), ASKED, prefix, 0.5)
    return found.text, found.finish_reason


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"content": "Paris"}, ("Paris", "stop")),
        ({"content": "Paris and", "finish": "length"}, ("Paris and", "length")),
        ({"content": "Paris\nand", "finish": "length"}, ("Paris", "stop")),
        ({"content": None, "finish": "length"}, ("", "length")),
        ({"content": None, "finish": "length", "reasoning_content": "Well"}, ("", "reasoning")),
        ({"content": "", "finish": "length", "reasoning": "Well"}, ("", "reasoning")),
        ({"content": "", "finish": "max_tokens", "reasoning": "Well"}, ("", "reasoning")),
        ({"content": "", "finish": "stop", "reasoning": "Well"}, ("", "stop")),
        ({"content": "", "finish": "length", "usage": {"completion_tokens_details": {"reasoning_tokens": 9}}},
         ("", "reasoning")),
        ({"content": "", "finish": "length", "usage": {"completion_tokens_details": {"reasoning_tokens": 0}}},
         ("", "length")),
        ({"content": "Paris", "finish": "length", "reasoning": "Well"}, ("Paris", "length")),
        ({"content": "<think>\nWell\n</think>\n\nParis"}, ("Paris", "stop")),
        ({"content": "<think></think> <thinking>x</thinking>Paris"}, ("Paris", "stop")),
        ({"content": "<think>Well, it", "finish": "length"}, ("", "reasoning")),
        ({"content": " <THINK>Well, it"}, ("", "reasoning")),
        ({"content": "Well, it must be so.</think>Paris"}, ("Paris", "stop")),
        ({"content": "The tag <think> opens"}, ("The tag <think> opens", "stop")),
        ({"content": "Par", "finish": "content_filter"}, ("", "content_filter")),
        ({"content": None, "refusal": "I can't help with that."}, ("I can't help with that.", "stop")),
        ({"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "Paris"}]}, ("Paris", "stop")),
        ({"content": [{"type": "thinking", "thinking": []}], "finish": "length"}, ("", "reasoning")),
        ({"content": "Paris", "finish": None}, ("Paris", "stop")),
        ({"content": "Paris", "finish": ["odd"]}, ("Paris", "stop")),
        ({"content": "a\ud800b"}, ("a\ufffdb", "stop")),
        ({"content": "", "finish": "length", "reasoning": ""}, ("", "length")),
        ({"content": "", "finish": "length", "reasoning": 5}, ("", "length")),
        ({"content": "Paris", "refusal": "I can't."}, ("Paris", "stop")),
        ({"content": "", "refusal": 5}, ("", "stop")),
        ({"content": [{"text": "Par"}, {"text": 5}, {"text": "is"}]}, ("Paris", "stop")),
    ],
)  # fmt: skip
def test_what_becomes_of_a_reply(fields, expected):
    assert outcome(**fields) == expected


def test_tokens_are_taken_from_the_usage_or_estimated():
    counted = completion(reply(usage={"prompt_tokens": 7, "completion_tokens": 3}), ASKED, "", 0.5)
    assert (counted.prompt_tokens, counted.completion_tokens, counted.latency) == (7, 3, 0.5)
    for usage in (None, {}, {"prompt_tokens": -1}, {"prompt_tokens": "7"}, {"prompt_tokens": True}, []):
        assert completion(reply(usage=usage), ASKED, "", 0.5).prompt_tokens == 4 + 2  # 8 letters and a turn
    for n, read in ((0, 0), (2**53 - 1, 2**53 - 1), (2**53, 6)):  # more no number of JSON holds
        usage = {"prompt_tokens": n, "completion_tokens": n}
        found = completion(reply(usage=usage), ASKED, "", 0.5)
        assert (found.prompt_tokens, found.completion_tokens) == (read, read)
    assert completion(reply(), ASKED, "", 0.5).completion_tokens == 4 + 2  # "Paris"
    assert completion(reply(""), ASKED, "", 0.5).completion_tokens == 0


def test_of_several_answers_the_first_counts():
    both = {"choices": [reply("Paris")["choices"][0], reply("Rome")["choices"][0]]}
    assert completion(both, ASKED, "", 0.5).text == "Paris"
    for odd in ({"choices": []}, {"choices": "Paris"}, reply(["Paris"]), reply({"text": "Paris"})):
        with pytest.raises(Malformed):
            completion(odd, ASKED, "", 0.5)


def tokens(*pairs):
    return [{"token": text, "bytes": list(text.encode()), "logprob": value} for text, value in pairs]


@pytest.mark.parametrize(
    ("content", "given", "prefix", "expected"),
    [
        ("Paris\nIt", tokens(("Par", -1), ("is", -2), ("\n", -3), ("It", -4)), "", (-1, -2)),
        ("Answer: Paris", tokens(("Answer", -1), (":", -2), (" Paris", -3)), "Answer:", (-3,)),
        ("<think>a</think>a", tokens(("<think>", -1), ("a", -2), ("</think>", -3), ("a", -4)), "", (-4,)),
        ("Paris", tokens(("Paris", -1), ("<|im_end|>", -2)), "", (-1,)),  # an end mark that is no text
        ("Paris", tokens(("Well", -1), ("Paris", -2)), "", (-2,)),  # reasoning that is told elsewhere
        ("Hà", [{"token": "H\ufffd", "bytes": [72, 195], "logprob": -1}, {"token": "\ufffd", "bytes": [160], "logprob": -2}],
         "", (-1, -2)),
        ("a\0\nb", [{"token": "a", "bytes": [97], "logprob": -1}, {"token": "<0x00>", "bytes": [0], "logprob": -2},
                    *tokens(("\n", -3), ("b", -4))], "", (-1, -2)),  # the byte 0
        ("ab\nc", [{"token": "ab", "bytes": [256, 98], "logprob": -1}, *tokens(("\n", -2), ("c", -3))], "", (-1,)),
        ("ab\nc", [{"token": "ab", "bytes": [-1, 98], "logprob": -1}, *tokens(("\n", -2), ("c", -3))], "", (-1,)),
        ("ab\nc", [{"token": "ab", "logprob": -1}, *tokens(("\n", -2), ("c", -3))], "", (-1,)),
        ("a", [{"bytes": [255], "logprob": -1}, {"token": 5, "logprob": -2}, *tokens(("a", -3))], "", (-3,)),
        ("Paris", tokens(("Something", -1), ("else", -2)), "", (-1, -2)),  # unclear: all of them
        ("Paris", [{"token": "Paris", "logprob": None}], "", None),
        ("Paris", [{"token": "Paris", "logprob": float("nan")}], "", None),
        ("Paris", ["Paris"], "", None),
        ("", tokens(("x", -1)), "", None),
    ],
)  # fmt: skip
def test_logprobs_are_those_of_the_text(content, given, prefix, expected):
    assert completion(reply(content, logprobs=given), ASKED, prefix, 0.5).logprobs == expected


def test_the_error_of_a_gateway_counts_by_its_own_number():
    assert inner_error(reply()) is None
    assert inner_error({"error": {"message": "slow", "code": 429}}).status == 429
    assert inner_error({"error": "odd"}).status == 500
    assert (
        inner_error({"choices": [{"error": {"code": 502, "message": "x"}, "finish_reason": "error"}]}).status
        == 502
    )
    assert inner_error({"choices": [{"finish_reason": "error"}]}).status == 500
    assert error_of([{"error": {"message": "in a list"}}], 400).message == "in a list"
    good = reply()["choices"]
    assert inner_error({"error": "late", "choices": good}) is None  # it has an answer all the same
    assert inner_error({"usage": {}}) is None


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (200, 400, 400),
        (200, 599, 599),
        (200, 399, 500),
        (200, 600, 500),
        (200, "429", 500),
        (399, None, 500),
        (400, 429, 400),  # the status says that it is an error
        (422, None, 422),
    ],
)
def test_the_number_of_an_error_counts_where_the_status_is_a_success(status, code, expected):
    assert error_of({"error": {"message": "no", "code": code}}, status).status == expected


def test_an_error_without_words_has_none():
    assert [error_of(body, 500).message for body in ([], 5, None, {}, "busy")] == ["", "", "", "", "busy"]
    refused = error_to_raise(ServerError(500, ""), HERE)
    assert str(refused) == "http://here/v1 answered HTTP 500: no message."


HERE = Endpoint("http://here/v1")
OVERLOADED, PASSING, KEY = {429, 503, 529}, {408, 409, 425}, {401, 403}


def test_what_each_status_means():
    found = {status: error_to_raise(ServerError(status, "no", pause=3.0), HERE) for status in range(300, 600)}
    words = {status: str(error) for status, error in found.items()}
    assert {status for status, error in found.items() if isinstance(error, Overloaded)} == OVERLOADED
    passing = {status for status, error in found.items() if type(error) is TransientError}
    assert passing == PASSING | set(range(500, 600)) - OVERLOADED
    assert {error.retry_after for error in found.values() if isinstance(error, TransientError)} == {3.0}
    assert {status for status in found if "asks for an API key" in words[status]} == KEY
    assert {status for status in found if "no credit" in words[status]} == {402}
    assert {status for status in found if "check the address" in words[status]} == {404, 405}
    told = OVERLOADED | PASSING | KEY | {402, 404, 405}
    alone = {status for status, error in found.items() if error is None}  # this request alone is refused
    assert alone == set(range(400, 500)) - told
    assert all(type(found[status]) is BackendError for status in range(300, 400))


@pytest.mark.parametrize(
    ("cause", "kind", "told"),
    [
        (httpx.ConnectError("CERTIFICATE_VERIFY_FAILED: expired."), BackendError,
         "The certificate of http://here/v1 cannot be verified: CERTIFICATE_VERIFY_FAILED: expired."),
        (httpx.ConnectError("refused."), TransientError,
         "No server answers at http://here/v1 (refused); start it, or check the address (OPENAI_BASE_URL)."),
        (httpx.ReadError(""), TransientError,
         "The connection to http://here/v1 broke in the middle of a call (ReadError)."),
        (None, TransientError,
         "The connection to http://here/v1 broke in the middle of a call (Connection error)."),
    ],
)  # fmt: skip
def test_why_a_connection_failed(cause, kind, told):
    async def call():
        raise openai.APIConnectionError(request=httpx.Request("GET", "http://here")) from cause

    with pytest.raises(kind) as failed:
        asyncio.run(reply_or_error(call(), HERE))
    assert (type(failed.value), str(failed.value)) == (kind, told)


def test_a_call_that_takes_too_long_is_an_overload_and_any_other_failure_may_pass():
    async def call(error):
        raise error

    late = openai.APITimeoutError(request=httpx.Request("GET", "http://here"))
    with pytest.raises(Overloaded, match=r"^http://here/v1 did not answer in time\.$"):
        asyncio.run(reply_or_error(call(late), HERE))
    with pytest.raises(TransientError, match=r"^The call to http://here/v1 failed: odd\.$") as failed:
        asyncio.run(reply_or_error(call(openai.OpenAIError("odd")), HERE))
    assert not isinstance(failed.value, Overloaded)


def test_a_key_or_a_login_that_was_given_is_refused():
    for server in (Endpoint("http://here/v1", key="k"), Endpoint("http://here/v1", login="me:pw")):
        assert "refused the API key (HTTP 401)" in str(error_to_raise(ServerError(401, "no"), server))


@pytest.mark.parametrize(
    ("kind", "words", "statuses"),
    [
        ("too_long", "prompt is too long", {400, 413, 422, 500}),
        ("filtered", "content_filter", {400, 403, 422, 451}),
        ("no_model", "no such model", {400, 404}),
    ],
)
def test_with_which_status_words_mean_something(kind, words, statuses):
    assert {status for status in range(300, 600) if ServerError(status, words).is_a(kind)} == statuses
    assert not ServerError(400, "other words").is_a(kind)


@pytest.mark.parametrize(
    ("message", "facts", "limit", "expected"),
    [
        ("no", {"n_prompt_tokens": 5000, "n_ctx": 4096}, 9, "5,000 tokens and the answer may take 12, but the model reads 4,096"),
        ("no", {"n_prompt_tokens": 0, "n_ctx": True}, 8192, "about 1,700 tokens and the answer may take 12, but the model reads 8,192"),
        ("no", {"n_ctx": 1}, None, "about 1,700 tokens and the answer may take 12, but the model reads 1 in all"),
        ("no", {}, None, "about 1,700 tokens and the answer may take 12, but that is more than the model reads"),
        (f"request ({'9' * 12} tokens)", {}, None, f"{10**12 - 1:,} tokens"),
        (f"request ({'9' * 13} tokens)", {}, None, "about 1,700 tokens"),
    ],
)  # fmt: skip
def test_how_long_a_prompt_is_and_how_much_the_model_reads(message, facts, limit, expected):
    assert f"The prompt has {expected}" in too_long(ServerError(400, message, facts=facts), 1700, 12, limit)


@pytest.mark.parametrize(
    ("header", "pause"),
    [("7", 7.0), ("0.5", 0.5), ("-0.5", 0.0), ("inf", None), ("nan", None), ("", None), ("soon", None)],
)
def test_a_pause_is_a_number_of_seconds(header, pause):
    assert retry_after({"retry-after": header}) == pause
    assert retry_after({}) is None


def test_a_pause_may_last_until_a_date(monkeypatch):
    monkeypatch.setattr("core.llm.openai.replies.time", SimpleNamespace(time=lambda: 1_800_000_000.0))
    assert retry_after({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}) == 30.0
    assert retry_after({"retry-after": "Fri, 15 Jan 2027 07:59:30 GMT"}) == 0.0


def test_of_an_endless_error_only_the_beginning_is_read():
    assert read_error(400, {}, b"x" * 5000).message == "x" * 2000
    assert read_error(400, {}, b"[" * 100_000).message == "[" * 2000
    assert read_error(422, {}, json.dumps({"detail": ["x" * 5000]}).encode()).message == '["' + "x" * 1998


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["stop", "length", "content_filter", "error", "<think>", "</think>", "\n"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["choices", "message", "content", "finish_reason", "usage", "error", "code", "logprobs", "token",
             "bytes", "logprob", "reasoning", "refusal", "prompt_tokens", "completion_tokens_details", "detail"]
        ) | st.text(max_size=3),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip
LIKELY = st.fixed_dictionaries(
    {"choices": st.lists(st.fixed_dictionaries({}, optional={
        "finish_reason": JSON, "logprobs": st.fixed_dictionaries({"content": JSON}) | JSON, "error": JSON,
        "message": st.fixed_dictionaries({"content": JSON}, optional={"reasoning": JSON, "refusal": JSON}) | JSON,
    }), max_size=2) | JSON},
    optional={"usage": JSON, "error": JSON},
)  # fmt: skip


def checked(content):
    """Read a reply as the back end does; return its completion, or None where it is an error."""
    try:
        found = read_json(content, "here")
        return None if inner_error(found) is not None else completion(found, ASKED, "Answer:", 0.1)
    except TransientError as error:
        assert "\n" not in str(error)
        return None


@settings(max_examples=300)
@given(LIKELY | JSON)
def test_any_json_is_an_answer_or_a_passing_failure(value):
    found = checked(json.dumps(value).encode())
    if found is not None:
        assert found.finish_reason in FINISH_REASONS
        assert found.text == found.text.strip()
        found.text.encode()
        assert found.prompt_tokens >= 0
        assert found.completion_tokens >= 0


@settings(max_examples=200)
@given(st.binary(max_size=60), st.integers(300, 599), st.text(max_size=12))
def test_any_bytes_are_survived(content, status, header):
    checked(content)
    pause = retry_after({"retry-after": header})
    assert pause is None or pause >= 0
    assert read_error(status, {}, content).status == status


@settings(max_examples=200)
@given(JSON, st.sampled_from([200, 400, 429, 500]))
def test_any_json_is_an_error(value, status):
    found = error_of(value, status)
    assert 400 <= found.status < 600
    assert isinstance(found.text, str)
    assert found.is_a("too_long") in (True, False)
