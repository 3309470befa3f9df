import pytest

from core.llm.remote import Received, cut_at_stop, without_thoughts
from core.llm.types import Request


@pytest.mark.parametrize(
    ("text", "stop", "expected"),
    [
        (" Paris\nParis is", ("\n",), ("Paris", True)),
        ("\n\n Paris", ("\n",), ("Paris", False)),
        ("a; b. c", (".", ";"), ("a", True)),
        ("Paris", (), ("Paris", False)),
        ("  \n ", ("\n",), ("", False)),
        ("Paris", ("",), ("Paris", False)),
        (" . Paris", (".",), ("", True)),
    ],
)
def test_an_answer_ends_at_the_first_stop_after_it_began(text, stop, expected):
    assert cut_at_stop(text, stop) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a</think><think>b</think>Paris", ("Paris", False)),
        # A tag that the answer itself names does not end another thought.
        ("<think>a</think>The tag </think> closes", ("The tag </think> closes", False)),
        ("Well.</think>The tag </think> closes", ("The tag </think> closes", False)),
        ("<think>a</think><think>b", ("", True)),
    ],
)
def test_two_thoughts_or_two_closing_tags_in_a_reply(text, expected):
    assert without_thoughts(text) == expected


def test_log_probabilities_are_of_the_answer_alone_and_only_where_asked_for():
    # Reasoning that is told elsewhere, then white space, then the answer.
    tokens = [(b"abc", -1.0), (b"   ", -2.0), (b"Par", -3.0), (b"is", -4.0), (b"\n", -5.0), (b"So", -6.0)]
    given = Received("   Paris\nSo", "stop", False, tokens, 9, 6, 0.5)
    assert given.completion(Request((), stop=("\n",), logprobs=True), "").logprobs == (-3.0, -4.0)
    assert given.completion(Request((), stop=("\n",)), "").logprobs is None


@pytest.mark.parametrize(
    ("content", "apart", "finish"),
    [
        ("<think>a</think>", False, "reasoning"),
        ("", True, "reasoning"),
        # The limit was reached, but not by reasoning: there was none.
        ("", False, "length"),
        (" \n ", False, "length"),
        ("Answer:", False, "length"),
    ],
)
def test_an_empty_reply_at_the_limit_is_reasoning_only_where_there_was_some(content, apart, finish):
    reply = Received(content, "length", apart, None, 9, 6, 0.5).completion(Request(()), "Answer:")
    assert (reply.text, reply.finish_reason) == ("", finish)
