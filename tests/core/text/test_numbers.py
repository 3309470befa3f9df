"""Numbers in digits and in words of three languages; the values are read by hand."""

import pytest

from core.text.numbers import is_vietnamese, numbers, spelled


def value(text):
    (found,) = numbers(text)
    return found.values[0]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("nineteen", 19),
        ("twenty-five", 25),
        ("two hundred and five", 205),
        ("one hundred two", 102),
        ("nineteen fourteen", 1914),
        ("three dozen", 36),
        ("two and a half million", 2_500_000),
        ("one million two hundred thousand", 1_200_000),
        ("one million million", 1e12),
        ("one thousand thousand", 1e6),
        ("three point one four", 3.14),
        ("hai mươi mốt", 21),
        ("một trăm linh hai", 102),
        ("hai trăm rưỡi", 250),
        ("hai nghìn rưỡi", 2_500),
        ("một nghìn không trăm linh năm", 1_005),
        ("hai triệu ba trăm nghìn", 2_300_000),
        ("一百二", 120),  # the last digit is of the next lower place
        ("一百二十", 120),
        ("一百零二", 102),
        ("三千五", 3_500),
        ("一万二", 12_000),
        ("二十五", 25),
        ("百", 100),
        ("三万亿", 3e12),
        ("一万万", 1e8),
        ("一九二四", 1924),
        ("三点一四", 3.14),
        ("boats", 0),
    ],
)
def test_the_value_of_words(words, expected):
    assert spelled(words) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-5", -5),
        ("−5", -5),
        ("minus 5 million", -5_000_000),
        ("零下5", -5),
        ("3 and a half million", 3_500_000),
        ("$3bn", 3e9),
        ("$3 k", 3_000),
        ("三分之一", 1 / 3),
        ("零分之一", 1),  # what cannot be divided is left as it is
        ("百分之三十", 30),
        ("two and a half", 2.5),
        ("half a million", 500_000),
    ],
)
def test_signs_parts_and_multiples(text, expected):
    assert value(text) == expected


def test_what_multiplies_a_number_is_also_left_out():
    (found,) = numbers("minus 5 million")
    assert (found.values, found.unscaled) == ((-5e6,), (-5,)) and found[:2] == (0, 15)
    (share,) = numbers("百分之三十")
    assert share.percent and not numbers("三分之一")[0].percent


@pytest.mark.parametrize("nine", range(1, 10))
def test_tens_are_joined_to_ones_and_to_ordinals(nine):
    ones = "one two three four five six seven eight nine".split()[nine - 1]
    ordinal = "first second third fourth fifth sixth seventh eighth ninth".split()[nine - 1]
    (plain,), (counted,) = numbers(f"forty-{ones}"), numbers(f"forty {ordinal}")
    assert (plain.values, plain.ordinal) == ((40 + nine,), False)
    assert (counted.values, counted.ordinal) == ((40 + nine,), True)
    assert [one.values for one in numbers("forty-tenth")] == [(40,), (10,)]


def test_ordinals_count_nothing():
    found = {text: numbers(text)[0].ordinal for text in ("5th", "twelfth", "two thousand", "5", "5 million")}
    assert found == {"5th": True, "twelfth": True, "two thousand": False, "5": False, "5 million": False}


def test_huge_numbers_have_an_end_at_either_side():
    digits = "9" * 310
    assert numbers(f"{digits} million")[0].values == (1e300,)
    assert numbers(f"-{digits} million")[0].values == (-1e300,)


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("1794", (1794,)),
        ("1,794", (1794,)),
        ("1.794", (1.794, 1794)),
        ("1,794 người đã", (1.794, 1794)),
        ("1.794 người đã", (1794,)),
        ("1,234,567", (1_234_567,)),
        ("1.234,5", (1234.5,)),
        ("12,34", (12.34,)),
        ("1234,567", (1234.567,)),
    ],
)
def test_points_and_commas(text, readings):
    assert numbers(text)[0].values == readings


def test_letters_that_only_vietnamese_has():
    assert (
        is_vietnamese("được")
        and is_vietnamese("ngày")
        and not is_vietnamese("café")
        and not is_vietnamese("a")
    )
