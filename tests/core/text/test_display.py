"""Numbers, counts and foreign texts as people read them; every expected text is written by hand."""

import math

import pytest

from core.text.display import (
    about,
    count,
    duration,
    needed,
    number,
    one_line,
    p_text,
    part,
    percent,
    share_interval,
    shorten,
    visible,
)


def test_a_count_has_its_noun_in_the_right_number():
    assert [count(n, "answer") for n in (0, 1, 2)] == ["0 answers", "1 answer", "2 answers"]
    assert [count(n, "query", "queries") for n in (1, 1_000)] == ["1 query", "1,000 queries"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "—"), (math.nan, "—"), (0.0, "0.00"), (1.005, "1.00"), (-0.5, "−0.50"), (-0.004, "0.00"), (-9.0, "−9.00")],
)  # fmt: skip
def test_a_number_has_a_true_minus_sign_and_a_missing_one_is_a_dash(value, expected):
    assert number(value) == expected


def test_a_number_by_another_pattern():
    assert number(-1234.56, "{:,.1f}") == "−1,234.6" and number(-0.4, "{:.0f}") == "0"


def test_characters_that_act_are_shown_as_a_sign():
    assert visible("a\x1b[2J\r\nb\rc\u2028d") == "a\ufffd[2J\nb\nc\nd" and one_line("a\r\nb") == "a b"
    assert one_line(12) == "12"


class Deep:
    def __str__(self):
        raise RecursionError


def test_a_value_in_a_message_has_80_characters_at_most():
    assert shorten("x" * 79) == "x" * 79 and shorten("x" * 80) == "x" * 80
    assert shorten("x" * 81) == "x" * 79 + "…" and len(shorten("x" * 500)) == 80
    assert shorten([1, 2]) == "[1, 2]" and shorten("a\nb\ud800") == "a b\ufffd"
    assert shorten(Deep()) == "(nested too deeply)"


def test_shares_in_percent():
    assert percent(0.204) == "20 %" and percent(1) == "100 %" and percent(0.2, (0.118, 0.327)) == "12–33 %"
    assert share_interval((0.118, 0.327)) == "95 % interval of the share 12 to 33 %"


def test_p_values():
    assert [p_text(p) for p in (0.0312, 0.001, 0.00099, math.nan)] == [
        "p = 0.031", "p = 0.001", "p < 0.001", "p = —",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("n", "of", "expected"),
    [
        (0, 1, "0 of 1 answer"),
        (1, 1, "1 of 1 answer"),
        (0, 2, "none of 2 answers"),
        (1, 2, "1 of 2 answers"),
        (2, 2, "all 2 answers"),
        (1, 19, "1 of 19 answers"),
        (1, 20, "5 % of 20 answers"),
        (0, 30, "none of 30 answers"),
        (300, 1_200, "25 % of 1,200 answers"),
    ],
)
def test_few_are_counted_and_many_given_in_percent(n, of, expected):
    assert part(n, of, "answer") == expected
    assert part(n, of) == expected.removesuffix("s").removesuffix(" answer")


def test_what_is_expected_is_never_none():
    assert [about(n) for n in (0, 0.99, 1, 1.4, 1_234.4)] == [
        "fewer than 1", "fewer than 1", "about 1", "about 1", "about 1,234",
    ]  # fmt: skip


def test_how_many_questions_would_tell():
    assert needed(None) == "the difference is nil, so more questions would not help"
    assert needed(1) == "about 1 question would be needed to tell"
    assert needed(0) == "too few questions to tell"
    assert needed(1_200) == "about 1,200 questions would be needed to tell"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (65, "1 min 05 s"),
        (200, "3 min 20 s"),
        (3_599, "59 min 59 s"),
        (3_600, "1 h 00 min"),
        (7_500, "2 h 05 min"),
        (90_000, "25 h 00 min"),
    ],
)
def test_durations(seconds, expected):
    assert duration(seconds) == expected
