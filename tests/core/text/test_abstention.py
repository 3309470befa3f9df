import unicodedata

import pytest

from core.text import answer_status, is_abstention, is_correct

ABSTENTIONS = [
    "I don't know.",
    "I don’t know",
    "i do not know the answer",
    "Sorry, I don't have enough information to answer that.",
    "I'm not sure.",
    "I cannot answer this from the passages.",
    "The passages do not contain the answer.",
    "The document doesn't mention the captain.",
    "There is no information about this in the text.",
    "The price is not mentioned in the passages.",
    "It cannot be determined from the passages.",
    "Unknown",
    "Not specified.",
    "Không biết",
    "Tôi không biết.",
    "Không có đủ thông tin để trả lời.",
    "Tôi không thể trả lời câu hỏi này.",
    "Đoạn văn không đề cập đến điều này.",
    "不知道",
    "我不知道。",
    "我不確定",
    "无法回答",
    "文中没有提及。",
    "信息不足",
    "没有相关信息",
]
ANSWERS = [
    "Paris",
    "1869",
    "He did not know that the cable had failed.",
    "Columbus never knew that it was a new continent.",
    "The unknown soldier",
    "Nobody knows Shakespeare's exact birthday, but he was baptised on 26 April 1564.",
    "Không khí lạnh",
    "哥伦布不知道那是新大陆",
    "公元605年",
    "Information theory",
]


@pytest.mark.parametrize("text", ABSTENTIONS)
def test_abstentions_in_three_languages(text):
    assert is_abstention(text)
    assert is_abstention(unicodedata.normalize("NFD", text))
    assert answer_status(text) == "abstained"


@pytest.mark.parametrize("text", ANSWERS)
def test_answers_are_not_abstentions(text):
    assert not is_abstention(text)
    assert answer_status(text) == "answered"


def test_a_long_answer_with_a_refusal_at_its_end_is_an_answer():
    long = "The canal was opened in 1914 and links the two oceans; ships wait a day to enter it. " * 2
    assert len(long) > 160
    assert not is_abstention(long + "I don't know who paid for it.")
    assert answer_status(long + "The passages do not mention its price.") == "answered"
    assert is_abstention("I don't know who paid for it. " + long)


@pytest.mark.parametrize("text", [None, "", "  \n", "…", "."])
def test_an_answer_without_a_word_is_empty(text):
    assert answer_status(text) == "empty"


@pytest.mark.parametrize(
    ("answer", "references", "expected"),
    [
        ("The canal opened in 1914.", ["1914"], True),
        ("It opened in 1915.", ["1914"], False),
        ("in 19145", ["1914"], False),
        ("It was Aachen.", ["Zürich"], False),
        ("raymond  UNWIN", ["Raymond Unwin"], True),
        ("Unwin Raymond", ["Raymond Unwin"], False),
        ("公元605年，隋炀帝", ["605年"], True),
        ("It has fifteen arches.", ["15 arches"], True),
        ("It has 1,794 steps.", ["1794"], True),
        ("長城長三百公里", ["300公里"], True),
        ("It has fifty arches.", ["15 arches"], False),
        ("I don't know", ["1914"], None),
        ("", ["1914"], None),
        (None, ["1914"], None),
        ("1914", [], None),
        ("1914", None, None),
        ("1914", ["…"], None),
    ],
)
def test_is_correct(answer, references, expected):
    assert is_correct(answer, references) is expected
