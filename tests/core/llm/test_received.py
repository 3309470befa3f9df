import pytest

from core.llm.remote import cut_at_stop, without_thoughts


@pytest.mark.parametrize(
    ("text", "stop", "expected"),
    [
        (" Paris\nParis is", ("\n",), ("Paris", True)),
        ("\n\n Paris", ("\n",), ("Paris", False)),
        ("a; b. c", (".", ";"), ("a", True)),
        ("Paris", (), ("Paris", False)),
        ("  \n ", ("\n",), ("", False)),
        ("Paris", ("",), ("Paris", False)),
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
