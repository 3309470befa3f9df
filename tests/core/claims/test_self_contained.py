"""Bare values get their question, sentences do not, and both can be told apart again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.claims.self_contained import bare_value, counted, is_bare, self_contained, value_words
from core.claims.types import Claim

WHEN = "When was the cable landed?"


@pytest.mark.parametrize(
    ("value", "question"),
    [
        ("1866", WHEN),
        ("18 days", "How many days does it need to grow?"),
        ("24 hours and 50 minutes", "How long is a tidal day?"),
        ("10 days after the trip.", "When must I submit my claim?"),
        ("2.3 million doses of penicillin", "What was made in 1944?"),
        ("1,000,000", "How many passengers travel each year?"),
        ("Henry Darcy", "Which engineer studied columns of sand?"),
        ("James P. Flynn", "Who wrote it?"),
        ("The Great Barrier Reef.", "Where did it run aground?"),
        ("was tin", "What was the metal?"),
        ("Newton's laws of motion", "What did he publish?"),
        ("pulverised coal", "What is burned there?"),
        ("US dollars", "What was it paid in?"),  # no pronoun
        ("him", "Whom did she see?"),  # nor has it a verb
        ("Nam 1994", "UNESCO công nhận vịnh Hạ Long vào năm nào?"),
        ("năm 1994", "UNESCO công nhận vịnh Hạ Long vào năm nào?"),
        ("ngày 27 tháng 7 năm 1866", "Cáp cập bờ khi nào?"),
        ("đảo Bồ Hòn", "Hang Sửng Sốt nằm trên đảo nào?"),
        ("木活字", "毕昇用什么材料刻活字？"),
        ("2014年", "大运河是在哪一年被列入名录的？"),
        ("1866年7月27日", "电缆何时登陆？"),
        ("胶泥。", "毕昇用什么材料刻活字？"),
    ],
)
def test_a_bare_value_gets_its_question_and_can_be_taken_apart(value, question):
    claim = Claim(value, ((3, 3 + len(value)),), added=("a",), dropped=("b",))
    found = self_contained(claim, question)
    assert found == Claim(f"{question} {value}", claim.spans, True, ("a",), ("b",))
    assert bare_value(found.text) == (question, value)
    assert self_contained(found, question) is found


@pytest.mark.parametrize(
    "text",
    [
        "The Suez Canal opened first.",
        "The Suez Canal opened first",
        "Coffee grows in Brazil.",
        "He studied law.",
        "Some see him as a hero.",
        "It is tin",
        "Malesani managed clubs.",
        "The Milagro Foundation supports health.",
        "Gary Busey also appeared on Barney Miller.",
        "The cable was landed in 1866.",
        "Clemens Winkler discovered the element germanium in 1886 at Freiberg",
        "Tin. It melts at 232 degrees.",
        "How deep?",
        "Red, white:",
        "木：",
        "Norway ended",
        "US troops landed",
        "Kênh dài 87 km.",
        "Ông sinh năm 1912.",
        "Hà Nội là thủ đô.",
        "大运河长1794公里",
        "长城没有被毁",
        "毕昇发明了活字",
        "塔建于1889年",
        "通惠河连接北京和通州。",
    ],
)
def test_a_sentence_stays_as_it_is(text):
    claim = Claim(text)
    assert self_contained(claim, "Which canal opened first, the Suez Canal or the Panama Canal?") is claim
    assert bare_value(text) is None


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("When was it landed", "When was it landed? 1866"),
        ("  Name the year. ", "Name the year? 1866"),
        ("哪一年", "哪一年？ 1866"),
        ("哪一年？", "哪一年？ 1866"),
    ],
)
def test_the_question_ends_in_its_mark(question, expected):
    found = self_contained(Claim("1866"), question).text
    assert found == expected
    assert bare_value(found)[1] == "1866"


@pytest.mark.parametrize(
    ("longest", "longer"),
    [
        ("the mill of the count of the isle", "the mill of the count of the red isle"),
        ("red brick stone mill", "red brick stone mill tower"),  # four words of weight
        ("the brick of the mill.", "the old brick of the mill."),
        ("sông Hồng Hà Nội Thăng Long", "sông Hồng Hà Nội Thăng Long cổ"),
        ("北京市东城区景山前街", "北京市东城区景山前街四"),
        ("北京大故宫。", "北京东大故宫。"),
    ],
)
def test_a_value_is_short(longest, longer):
    assert is_bare(longest) and not is_bare(longer)


def test_the_words_of_the_question_make_a_value_no_longer():
    assert is_bare("red brick stone mill tower", "Which tower burned?")


def test_without_a_question_or_relevance_nothing_is_added():
    for claim, question in (
        (Claim("1866"), ""),
        (Claim("1866"), " ?"),
        (Claim("1866", relevant=False), WHEN),
    ):
        assert self_contained(claim, question) is claim


@pytest.mark.parametrize(
    "text", ["", "?", "When?", "? 1866", "Why? Because the cable was landed in 1866.", '"Why?" he asked.']
)
def test_what_is_no_question_with_a_value(text):
    assert bare_value(text) is None


@pytest.mark.parametrize(
    ("value", "question", "expected"),
    [
        ("18 days", "How many days does it need?", ("18",)),
        ("the Suez Canal", "Which is older, the Suez Canal or the Panama Canal?", ("suez", "canal")),
        ("Edward Jenner", "Which boy did Edward Jenner vaccinate?", ()),
        ("yes", "Is it old?", ()),
        ("có", "Nó cũ không?", ()),
        ("是", "它旧吗？", ()),
        ("木活字", "用什么刻活字？", ("木",)),
    ],
)
def test_the_words_that_tell_a_value_apart(value, question, expected):
    assert value_words(value, question) == expected


def test_what_a_number_counts():
    assert counted("How many hours does it run? 2") == counted("How many hours does it run? 2.") == "2 hours"
    assert counted("Có bao nhiêu cầu ở đây? 12") == "12 cầu"
    for other in ("How long does it run? 2", "How many hours does it run? two weeks", "It runs for 2 hours."):
        assert counted(other) == other


pieces = st.lists(
    st.sampled_from(
        ["1866", "the", "Canal", "opened", "?", "？", ".", "là", "năm", "木", "是", "\n", "yes", " "]
    ),
    max_size=10,
).map(" ".join)


@given(st.one_of(st.text(), pieces), st.one_of(st.text(), pieces))
def test_any_texts_are_left_alone_or_get_the_question_once(text, question):
    claim = Claim(text, ((0, 1),))
    found = self_contained(claim, question)
    if found is not claim:
        assert found.text.endswith(" " + text)
        assert found.spans == claim.spans
        assert is_bare(text, question)
        assert bare_value(found.text) is not None
    assert self_contained(found, question) is found
