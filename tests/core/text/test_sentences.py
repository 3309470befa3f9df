"""Sentences by rules: hand-written expectations in three languages, and what holds for any text."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.sentences import inside_brackets, read_span, sentence_spans


def sentences(text):
    return [text[start:end] for start, end in sentence_spans(text)]


# The expected sentences, joined by a bar, are the text without the white space between them.
ENGLISH = [
    "Paris",
    "It rained.|It stopped.",
    "Dr. Lee met Prof. A. Brown at St. Mary's.|They spoke.",
    "J. K. Rowling wrote it.|George R. R. Martin did not.",
    "She lives in the U.S. and works in the U.K. for Acme Inc. in Leeds.|The firm is small.",
    "The U.S. Army left in 1975.|The war was over.",
    "He moved to the U.S.|In 1990 he came back.",
    "See No. 5 and Fig. 2 on pp. 3 to 9.|No. 6 is missing.",
    "Was it he?|No.|It was she.",
    "It cost $3.50 or 1,000.25 yen, i.e. nothing, e.g. in Rome etc. and so on.|That was all.",
    "Visit https://example.org/a.b?c=d.e#f.|It is free.",
    "Version 2.0.1 came out on 5 Dec. 2020.|It failed.",
    'He said "Stop. Go." to them.|Then he left.',
    "“It is over.”|She left (see Fig. 2. It is there).|(He stayed.)|Good.",
    "Paris is old.[1]|Rome is older. [2, 3]|Ulm is young [4].|So is Bonn.【5】|End.",
    'They ask "Is it so?[7]"|Nobody knows.',
    "Wait... he said, and left…|Then it rained.|Really?!|Yes!",
    "The meeting is at 5 p.m. on Monday with Mr. Fox, Ph.D. and others.|It ends at 6 p.m.|The room is free.",
    "In 1995.|The 2nd came.|He was no. 3 on 4. May.",
    "The node.js file runs.|iPhones sell well",
    "vitamin C.|The rest is water.",
    "It ended on 14. May 1990.|He counted to 100.|May came.|On the 4. he left.",
]
VIETNAMESE = [
    "Hà Nội là thủ đô.|Thành phố có 8,5 triệu dân.",
    "GS. TS. Nguyễn Văn A sống ở TP. Hồ Chí Minh.|Ông sinh năm 1950.",
    "PGS.TS. Lê Thị B làm việc tại TP.HCM, Q. 1.|Bà nghỉ hưu.",
    "Họ trồng lúa, ngô, khoai, v.v. và nuôi cá.|Dân số là 1.200.000 người.",
    "Có cam, bưởi, v.v.|Dân cư đông.",
    "Vì sao?|Không ai biết!|“Tôi về.”|Cô ấy nói.",
]
CHINESE = [
    "北京是首都。|上海更大！|真的吗？|对",
    "面积为3.5平方公里；|人口1,000万。[1]|很多。",
    "他说：“我走了。你呢？”|雨停了。",
    "“你去哪里？”他问。|没有人回答。",
    "《红楼梦》（曹雪芹著。清代小说）很长。|他走了……再也没回来。",
    "大运河很长.|它很古老。",
]


@pytest.mark.parametrize("expected", [*ENGLISH, *VIETNAMESE, *CHINESE])
def test_sentences_as_a_reader_sees_them(expected):
    text = expected.replace("|", "" if any("\u4e00" <= c <= "\u9fff" for c in expected) else " ")
    assert sentences(text) == expected.split("|")


def test_list_items_headings_and_short_lines_are_sentences_of_their_own():
    text = "# Causes\nThey are:\n- heat\n* very strong\n  light\n1. First. Then more\n2) Second\n(a) third\n一、水\nName: Ulm\nAge: 9"
    assert sentences(text) == [
        "# Causes",
        "They are:",
        "- heat",
        "* very strong\n  light",
        "1. First.",
        "Then more",
        "2) Second",
        "(a) third",
        "一、水",
        "Name: Ulm",
        "Age: 9",
    ]


def test_a_line_broken_to_fit_the_page_goes_on():
    first = "The mill on the north bank of the river was built by the brothers"
    assert sentences(f"{first}\nGrey in 1902.\r\n\r\nIt burned\nin 1910") == [
        f"{first}\nGrey in 1902.",
        "It burned\nin 1910",
    ]
    # What follows an item without being set in is no part of it.
    assert sentences(f"- {first}\nGrey left") == [f"- {first}", "Grey left"]


@pytest.mark.parametrize(("width", "goes_on"), [(59, False), (60, True), (120, True), (121, False)])
def test_a_line_of_a_pages_width_may_have_been_broken_to_fit(width, goes_on):
    first = f"The {'m' * (width - 4)}"
    assert len(sentences(f"{first}\nGrey left")) == (1 if goes_on else 2)


def test_a_stop_before_an_opening_bracket_ends_a_sentence():
    assert sentences("下雨了。（后来停了。）他走了。")[0] == "下雨了。"


def test_a_number_behind_white_space_and_words_is_no_number_of_an_item():
    assert sentences(f"He bought{' ' * 9}12. Then he left.") == [f"He bought{' ' * 9}12.", "Then he left."]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("It needs heat,", "- water"),  # a list item begins
        ("# Causes,", "heat and cold"),  # a heading ends
        ("It rained.", "then it stopped"),
        ("The causes:", "heat and cold"),
        ("It rained. [1]", "then it stopped"),
    ],
)
def test_what_begins_or_ends_a_block_is_not_joined_to_the_next_line(first, second):
    assert sentences(f"{first}\n{second}") == [first, second]


@pytest.mark.parametrize(
    "joined", ["It rained\nthen it stopped", "It needs heat,\nWater and salt", "水，\n火"]
)
def test_a_line_goes_on_in_small_letters_and_behind_a_comma(joined):
    assert sentences(joined) == [joined]


@pytest.mark.parametrize(
    ("written", "span"),
    [
        ("3:10", (3, 10)), ("0:0", (0, 0)), ("123456789:1", (123456789, 1)), ("1234567890:1", None),
        ("3-10", None), ("3:", None), (" 3:10", None), ("٣:٤", None), ("", None), (None, None), (3, None),
        (("3", "10"), None),
    ],
)  # fmt: skip
def test_a_span_is_read_as_it_is_written(written, span):
    assert read_span(written) == span


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("", ""),
        ("a (b) c", "..##..."),
        ("a (b [c] d)", "..########."),
        ("a (b", "...."),  # never closed
        ('a "b" c', "..##..."),
        ('"b" c', "....."),  # a whole sentence
        ('a. "b" c', "........"),
        ("a (b]", "....."),
    ],
)
def test_what_is_inside_brackets(text, inside):
    assert inside_brackets(text) == [mark == "#" for mark in inside]


def test_a_long_aside_is_a_text_of_its_own():
    longest = "a (" + "b" * 239 + ")"
    assert inside_brackets(longest) == [False, False] + [True] * 240 + [False]
    assert not any(inside_brackets("a (" + "b" * 240 + ")"))


@pytest.mark.parametrize("text", ["", " ", "\n\t\u3000"])
def test_nothing_has_no_sentence(text):
    assert sentence_spans(text) == []


PIECES = [
    "Dr.", "Mr. Fox", "it is", "Paris", " ", "  ", "\n", "\n\n", ". ", "! ", "?", "...", "…", "。", "；", "[1]", "[2,3]", "(", ")",
    '"', "“", "”", "「", "」", "- ", "1. ", "# ", "|", "他说", "北京", "Ông", "v.v.", "3.5", "U.S.", "**", "\u2028", "e.g.", ", and he is ",
]  # fmt: skip


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)))
def test_spans_are_in_order_and_hold_every_character_but_white_space(text):
    spans = sentence_spans(text)
    assert all(a < b for a, b in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert all(text[a:b] == text[a:b].strip() for a, b in spans)
    held = {i for a, b in spans for i in range(a, b)}
    assert all(i in held for i, c in enumerate(text) if not c.isspace())


@given(st.lists(st.sampled_from(["It rained.", "北京很大。", "Trời mưa.", "“Go!”", "(Yes?)"]), min_size=1))
def test_joined_sentences_come_apart_again(parts):
    assert sentences(" ".join(parts)) == parts
