"""Whether a passage has the value asked for, in or next to the sentence that is like the question."""

import math

import pytest

from core.claims.verifiers.checks import around, check_ideographs, check_mention, check_value

PASSAGE = (
    "The cable left Ireland on 13 July. It was landed at Heart's Content on July 27, 1866. It had a warranty of "
    "36 months. He said so. It cost $10 million in 1900, one of twenty-four prices. Gjøa met Réaumur there."
)
LANDED = "It was landed at Heart's Content on July 27, 1866."
COST = "It cost $10 million in 1900, one of twenty-four prices."


@pytest.mark.parametrize(
    ("claim", "sentence", "expected"),
    [
        ("When was it landed? 27 July 1866", LANDED, 1),
        ("When was it landed? 1866-07-27", LANDED, 1),
        ("When was it landed? 28 July 1866", LANDED, 0),
        ("When was it landed? 1866", LANDED, 1),
        ("When was it landed? 1900", LANDED, 0),  # too far away in the passage
        ("What did it leave? Ireland", LANDED, 1),  # in the sentence before
        ("Where was it landed? Heart's Content", LANDED, 1),
        ("Where was it landed? Heart’s Content, Canada", LANDED, 0),
        ("How long is the warranty? three years", LANDED, 1),
        ("How long is the warranty? 36 months", LANDED, 1),
        ("How long is the warranty? 36 days", LANDED, 0),
        ("How much did it cost? 10 million dollars", COST, 1),
        ("How much did it cost? $10,000,000", COST, 1),
        ("How much did it cost? 12 million dollars", COST, 0),
        ("How many prices were there? twenty-four", COST, 1),
        ("How many prices were there? 24", COST, 1),
        ("How many prices were there? 4", COST, 0),
        ("Which ship was there? Gjoa", COST, 1),
        ("Who was there? Reaumur", COST, 1),
        ("Was it landed? yes", LANDED, 0),
        ("Where was the cable landed? The cable", LANDED, 0),
        ("Was it landed or cut? landed", LANDED, 1),
        ("It was landed in 1866.", LANDED, None),
        ("1866", LANDED, None),
    ],
)
def test_value(claim, sentence, expected):
    found = check_value(claim, sentence, PASSAGE)
    assert (None if math.isnan(found) else found) == expected


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("用什么刻字？ 胶泥", 1),
        ("用什么刻字？ 泥胶", 0),
        ("用什么刻字？ 木活字", 0),
        ("哪一年？ 1040年", 1),
        ("哪一年？ 1041年", 0),
    ],
)
def test_chinese_values_are_found_in_their_order(claim, expected):
    assert check_value(claim, "毕昇用胶泥刻活字。", "毕昇用胶泥刻活字。那是1040年。") == expected


@pytest.mark.parametrize(
    ("claim", "expected"),
    [("1900", 1), ("Heart's Content", 1), ("2018", 0), ("Heart's Delight", 0), ("yes", None), (LANDED, None)],
)
def test_a_value_alone_is_looked_for_everywhere(claim, expected):
    found = check_mention(claim, LANDED, PASSAGE)
    assert (None if math.isnan(found) else found) == expected


@pytest.mark.parametrize(
    ("claim", "passage", "expected"),
    [
        ("蜜蜂住在蜂巢里。", "通惠河连接北京和通州。", 0),
        # 通惠 惠河 河连 连着 着北 北京: three of six
        ("通惠河连着北京", "通惠河在北京。", None),
        ("通惠河连着北京", "通惠河很长。", None),  # two of six
        ("通惠河连着北京", "通惠很长。", 0),  # one of six
        ("长江, 黄河", "通惠河很长。", 0),  # 河 by itself is no pair
        ("蜜蜂", "通惠河连接北京和通州。", None),
        ("蜜蜂住", "通惠河连接北京和通州。", None),
        ("蜜蜂住在", "通惠河连接北京和通州。", 0),
        ("通惠河連著北京", "通惠河连着北京。", None),  # in traditional characters
        ("三十公里五百公尺", "30公里500公尺", None),  # numbers in ideographs are left out
        ("金、木、水、火", "通惠河很长。", 0),  # alone all of them
        ("通惠河连着北", "通惠很长。", None),  # one of five
        ("蜜蜂住在 bees live in it", "The mill burned.", 0),  # half of it is Chinese
        ("蜜蜂住在 bees live in it now", "The mill burned.", None),
        ("The Chinese word 蜜蜂住在 means that bees live in it.", "The mill burned.", None),
    ],
)
def test_ideographs(claim, passage, expected):
    found = check_ideographs(claim, passage, passage)
    assert (None if math.isnan(found) else found) == expected


@pytest.mark.parametrize(("value", "expected"), [("12,000 m and 5 t", 1), ("12,000 m and 6 t", 0)])
def test_every_measure_of_a_value_must_be_there(value, expected):
    text = "It is 12 km long and carries 5000 kg."
    assert check_value(f"How long is it, and what does it carry? {value}", text, text) == expected


def test_around_is_the_sentence_and_its_neighbours():
    assert around("B is.", "A is. B is. C is. D is.").strip() == "A is. B is. C is."
    assert around("A is.", "A is. B is. C is.").strip() == "A is. B is."
    assert around("not there", "A is. B is.") == "not there"


def test_what_stands_around_a_sentence_ends_with_its_paragraph():
    text = "It is old. It is red.\n\nCows eat grass. They sleep.\nThey dream."
    assert around("It is red.", text) == "It is old. It is red."
    assert around("Cows eat grass.", text) == "Cows eat grass. They sleep."
    assert around("They sleep.", text) == "Cows eat grass. They sleep.\nThey dream."
    assert around("Not there.", text) == "Not there."
