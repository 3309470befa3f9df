import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import TransientError
from core.llm.openai.replies import completion, error_of, inner_error, read_error, read_json, retry_after
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
    ],
)  # fmt: skip
def test_what_becomes_of_a_reply(fields, expected):
    assert outcome(**fields) == expected


def test_tokens_are_taken_from_the_usage_or_estimated():
    counted = completion(reply(usage={"prompt_tokens": 7, "completion_tokens": 3}), ASKED, "", 0.5)
    assert (counted.prompt_tokens, counted.completion_tokens, counted.latency) == (7, 3, 0.5)
    for usage in (None, {}, {"prompt_tokens": -1}, {"prompt_tokens": "7"}, {"prompt_tokens": True}, []):
        assert completion(reply(usage=usage), ASKED, "", 0.5).prompt_tokens == 4 + 2  # 8 letters and a turn


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


def test_of_an_endless_error_only_the_beginning_is_read():
    assert read_error(400, {}, b"x" * 5000).message == "x" * 2000
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
