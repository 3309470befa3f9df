"""Numbers with their units, and dates; what a text states is read off by hand."""

import pytest

from core.text.quantities import (
    Date,
    Quantity,
    counts,
    dates,
    in_kind,
    numerals,
    quantities,
    same_values,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("31 December 1999", Date(1999, 12, 31)),
        ("December 31, 1999", Date(1999, 12, 31)),
        ("12/31/1999", Date(1999, 12, 31)),
        ("1999-12-31", Date(1999, 12, 31)),
        ("1999年12月31日", Date(1999, 12, 31)),
        ("ngày 31 tháng chạp năm 1999", Date(1999, 12, 31)),
        ("tháng giêng năm 1999", Date(1999, 1)),
        ("1 January", Date(None, 1, 1)),
        ("December 1999", Date(1999, 12)),
        # No month has 32 days, and no year has 13 months: what is left is read.
        ("32 December 1999", Date(1999, 12)),
        ("13/13/1999", Date(1999)),
        ("2024-13-05", Date(2024)),
        # "may" is a month only with a capital.
        ("May 1999", Date(1999, 5)),
        ("may 1999", Date(1999)),
        # Which is the month?
        ("5/3/2024", Date(2024, 3, 5, swapped=True)),
        ("5/12/2024", Date(2024, 12, 5, swapped=True)),
        ("13/12/2024", Date(2024, 12, 13)),
        ("5/5/2024", Date(2024, 5, 5)),
        ("ngày 5/3/2024", Date(2024, 3, 5)),
    ],
)
def test_a_date_of_a_text(text, expected):
    assert dates(text) == (expected,)


def test_the_readings_of_a_date():
    assert Date(2024, 3, 5).readings() == (Date(2024, 3, 5),)
    assert not Date(2024, 3, 5).swapped
    assert Date(2024, 3, 5, swapped=True).readings() == (Date(2024, 3, 5), Date(2024, 5, 3))


def test_decades_are_no_year_and_no_seconds():
    assert dates("the 1980s") == () and quantities("the 1980s") == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("twelve km", Quantity((12_000,), "length", loose=False)),
        ("approximately 5 km", Quantity((5_000,), "length", loose=True)),
        ("more than $5", Quantity((5,), "dollar", loose=True)),
        ("约5公里", Quantity((5_000,), "length", loose=True)),
        ("US$5", Quantity((5,), "dollar", loose=False)),
        ("€ 5", Quantity((5,), "euro", loose=False)),
        ("百分之三十", Quantity((30,), "percent", loose=False)),
        ("the 5th boat", Quantity((5,), "", loose=False)),
        ("12 boats", Quantity((12,), "#boat", loose=False)),
        ("12 were", Quantity((12,), "", loose=False)),
        ("12 of", Quantity((12,), "", loose=False)),
        ("it is 12.", Quantity((12,), "", loose=False)),
        # Behind a measure word, or that word itself.
        ("15个桥孔", Quantity((15,), "#桥孔", loose=False)),
        ("15人", Quantity((15,), "#人", loose=False)),
        # A lone "one" is mostly a pronoun, what comes behind it is read all the same; with a unit it counts.
        ("One of 12 boats", Quantity((12,), "#boat", loose=False)),
        ("one km", Quantity((1_000,), "length", loose=False)),
        ("1 boat", Quantity((1,), "#boat", loose=False)),
    ],
)
def test_a_number_and_what_it_counts(text, expected):
    assert quantities(text) == (expected,)
    assert expected.measured == (expected.kind in ("length", "dollar", "euro", "percent"))


def test_one_day_is_no_number():
    assert quantities("one day, one boat") == ()


def test_degrees_in_the_other_unit():
    boiling, warm = Quantity((212.0, 14.0), "fahrenheit", False), Quantity((37.0,), "celsius", True)
    assert in_kind(boiling, "celsius") == Quantity((100, -10), "celsius", False)
    assert in_kind(warm, "fahrenheit").values == pytest.approx((98.6,)) and in_kind(warm, "fahrenheit").loose
    assert in_kind(warm, "celsius") is warm and in_kind(warm, "length") is None
    assert in_kind(Quantity((1.0,), "length", False), "celsius") is None


def test_numbers_are_the_same_in_one_of_their_readings():
    one, other = Quantity((1.794, 1794.0), "", False), Quantity((1_794.0,), "length", True)
    assert same_values(one, other) and not same_values(one, Quantity((1_795.0,), "", False))
    assert same_values(one, Quantity((1_795.0,), "", False), 0.001)


def test_what_each_number_of_a_text_may_mean():
    assert numerals("24 of 1.5 million, one in 1999") == ({24}, {1.5, 1_500_000}, {1}, {1999})


def test_words_that_count():
    assert all(map(counts, ("12", "twelve", "km", "december", "百"))) and not any(
        map(counts, ("boat", "half", "không"))
    )
