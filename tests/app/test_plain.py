"""`plain`: whatever the text, only that text is shown."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ui.plain import NO_BREAK, WORD_JOINER, plain, shortened

SPECIAL = st.text(alphabet=st.sampled_from(string.punctuation + " ab1\n\té运"), max_size=40)


def shown(markdown: str) -> str:
    """What a CommonMark parser makes of it; asserts that it is one paragraph of text and breaks."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown)
    assert {token.type for token in tokens} <= {"paragraph_open", "inline", "paragraph_close"}, markdown
    children = [child for token in tokens for child in token.children or []]
    assert {child.type for child in children} <= {"text", "text_special", "hardbreak"}, markdown
    return "".join("\n" if child.type == "hardbreak" else child.content for child in children)


def expected(text: str) -> str:
    lines = [line.strip(" \t") for line in text.split("\n")]
    return "\n".join(lines).strip("\n")


@given(SPECIAL)
def test_every_special_character_is_escaped(text):
    result = plain(text)
    position = 0
    while position < len(result):
        if result[position] == "\\":
            assert result[position + 1] in string.punctuation + "\n"
            position += 2
        else:
            assert result[position] not in string.punctuation + "\n"
            position += 1


@given(SPECIAL)
def test_a_parser_shows_exactly_the_text(text):
    assert shown(plain(text)).replace(WORD_JOINER, "").replace(NO_BREAK, " ") == expected(text)


@pytest.mark.parametrize(
    "sequence",
    [":smile:", ":material/home:", ":streamlit:", ":red[x]", "->", "<-", "--", ">=", "<=", "~=", "<->",
     "www.x.org", "WWW.x.org", "http://x.org", "https://x.org", "a@b.org", "mailto:a@b.org"],
)  # fmt: skip
def test_what_is_replaced_after_parsing_is_broken_up(sequence):
    text = shown(plain(f"a {sequence} b"))
    assert sequence not in text
    assert text.replace(WORD_JOINER, "") == f"a {sequence} b"


def test_control_and_reordering_characters_become_visible():
    assert plain("a\x00b\u202ec\x1b") == "a\ufffdb\ufffdc\ufffd"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("12 % of 30", "12\u00a0% of 30"), ("0.3 nats", "0.3\u00a0nats"), ("5 s", "5\u00a0s"),
        ("p = 0.03, n = 7", "p\u00a0=\u00a00.03, n\u00a0=\u00a07"), ("5 seeds, 3 smalls", "5 seeds, 3 smalls"),
    ],
)  # fmt: skip
def test_a_number_never_parts_from_its_unit(text, kept):
    """At 390 pixels '(17' ended a line and '%)' began the next."""
    assert shown(plain(text)) == kept


def test_nothing_shows_as_nothing():
    assert plain(None) == plain("") == plain(" \n ") == ""


def test_labels_stay_in_one_line():
    assert plain("a\nb\r\nc", one_line=True) == "a b c"
    assert shortened("a  b\n" + "c" * 100, 10) == "a b ccccc…"
