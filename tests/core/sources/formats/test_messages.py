import pytest

from core.sources.formats.messages import ASSISTANT, USER, content_text, last_text, message_text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("x", "x"),
        ("", ""),
        ([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}, "b"], "a\nb"),
        ({"type": "text", "text": "a"}, "a"),
        ({"type": "text", "text": 7}, None),
        ([], None),
        ([7], None),
        (7, None),
        (None, None),
        ("\ud800", None),
    ],
)
def test_text_of_a_content(content, text):
    assert content_text(content) == text


def test_who_said_what():
    talk = [
        {"role": "user", "content": "First."},
        {"speaker": "Agent", "text": "Yes?"},
        {"role": "user", "content": "Second."},
        {"role": "user", "content": None},
        {"role": "tool", "content": "Found."},
        "odd",
        {"role": 7, "content": "x"},
    ]
    assert last_text(talk, USER) == "Second."
    assert last_text(talk, ASSISTANT) == "Yes?"
    assert last_text("talk", USER) is None
    assert last_text([], USER) is None
    assert message_text({"content": "x"}, USER) is None
