"""Answers against references: dates, amounts, alternatives, and what is chosen of two."""

import pandas as pd
import pytest

from core.text import is_correct
from core.text.matching import chosen, correctness, labelled

DAY = ["27 July 1866", "27 July"]


@pytest.mark.parametrize(
    "answer",
    [
        "27/07/1866",
        "1866-07-27",
        "07/27/1866",
        "27.7.1866",
        "July 27th, 1866",
        "on the 27th of July 1866",
        "27 july",
        "ngày 27 tháng 7 năm 1866",
        "1866年7月27日",
        "一八六六年七月二十七日",
        "July 27",
        "tháng 7: ngày 27/7/1866",
    ],
)
def test_a_date_is_right_in_any_notation(answer):
    assert is_correct(answer, DAY)


@pytest.mark.parametrize(
    "answer",
    [
        "27 July 1858",
        "26/07/1866",
        "1866-07-28",
        "July 1866",
        "1866",
        "ngày 28 tháng 7 năm 1866",
        "1866年8月27日",
    ],
)
def test_another_date_is_wrong(answer):
    assert is_correct(answer, DAY) is False


def test_a_date_with_two_readings_is_not_taken_for_either():
    assert not is_correct("5/11/2018", ["5 November 2018"]) and not is_correct("5/11/2018", ["11 May 2018"])
    assert is_correct("ngày 5/11/2018", ["5 November 2018"])


def test_a_year_is_said_by_its_date():
    assert is_correct("On 4 February 1889.", ["1889"]) and is_correct("2014年6月22日", ["2014"])
    assert not is_correct("On 18 February 1890.", ["1889"])


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("3m", "3 metres"),
        ("It survives 300 cm.", "3 metres"),
        ("three meters", "3 metres"),
        ("3米", "3 metres"),
        ("3 mét", "3 metres"),
        ("38 mm a year", "3.8 centimetres"),
        ("3.8厘米", "3.8"),
        ("£46", "46"),
        ("24天", "24 days"),
        ("three years", "36 months"),
        ("cents: 36", "36"),
    ],
)
def test_an_amount_is_right_in_any_unit(answer, reference):
    assert is_correct(answer, [reference])


@pytest.mark.parametrize(
    ("answer", "reference"), [("3 km", "3 metres"), ("36 days", "36 months"), ("3", "3 metres")]
)
def test_another_amount_is_wrong(answer, reference):
    assert is_correct(answer, [reference]) is False


@pytest.mark.parametrize(
    ("answer", "references", "expected"),
    [
        ("After the new moon or full moon", ["full moon"], False),
        ("a full moon or a new moon", ["full moon"], False),
        ("new or full moon", ["full moon"], False),
        ("a new moon or the full moon", ["full moon"], False),
        ("the full moon", ["full moon"], True),
        ("16 or 24 days", ["24 days"], False),
        ("26 July 1866 or 27 July 1866", DAY, False),
        ("trăng non hoặc trăng tròn", ["trăng tròn"], False),
        ("新月或满月", ["满月"], False),
        ("a full moon, new or not, or so", ["full moon"], True),
        ("bile salts or household vinegar", ["bile salts", "vinegar"], True),
        ("four or five", ["four or five"], True),
        ("Suez, or the Suez Canal", ["Suez Canal", "Suez"], True),
        ("Full moon. Not before May or June.", ["full moon"], True),
    ],
)
def test_one_of_several_alternatives_is_no_answer(answer, references, expected):
    assert is_correct(answer, references) is expected


CANALS = "Which canal opened first, the Suez Canal or the Panama Canal?"
DRINKS = "Which is dried to a lower moisture, coffee beans or black tea?"
METERS = "Which model would have survived, the HF-200 or the HF-300?"
VI = "Công trình nào làm xong trước, cầu Long Biên hay kênh Xà No?"
ZH = "毕昇发明活字和乔维岳修建船闸，哪件事更早？"


@pytest.mark.parametrize(
    ("question", "references", "right", "wrong"),
    [
        (
            CANALS,
            ["Suez Canal", "Suez"],
            [
                "Suez",
                "the suez canal",
                "The Suez Canal opened before the Panama Canal.",
                "The Panama Canal opened after the Suez Canal.",
                "The Suez Canal, not the Panama Canal.",
                "Not the Panama Canal but the Suez Canal.",
                "The Panama Canal did not open first, the Suez Canal did.",
                "The Suez Canal rather than Panama.",
                "Of the Panama Canal and the Suez Canal, the Suez Canal opened first.",
                "First came the Suez Canal, then the Panama Canal.",
                "The Suez Canal opened in 1869, 45 years earlier than the Panama Canal.",
            ],
            [
                "Panama",
                "The Panama Canal opened before the Suez Canal.",
                "The Suez Canal opened later than the Panama Canal.",
                "Suez Canal and Panama Canal",
                "The Panama Canal, not the Suez Canal.",
                "The Suez Canal or the Panama Canal",
                "the canal",
            ],
        ),
        (
            DRINKS,
            ["black tea", "tea"],
            [
                "Tea.",
                "Black tea is dried to a lower moisture than coffee beans.",
                "Coffee holds more than tea.",
            ],
            ["coffee", "Coffee beans hold less than black tea.", "Coffee beans and black tea are dried."],
        ),
        (
            METERS,
            ["HF-300"],
            ["HF-300", "The HF-300 would have survived but the HF-200 would not.", "HF 300"],
            ["HF-200", "HF-200 and HF-300", "The HF-300 would not have survived, the HF-200 would."],
        ),
        (
            VI,
            ["Long Biên"],
            [
                "Cầu Long Biên",
                "Cầu Long Biên xong trước kênh Xà No.",
                "Kênh Xà No làm xong sau cầu Long Biên.",
            ],
            [
                "Kênh Xà No",
                "Kênh Xà No xong trước cầu Long Biên.",
                "Không phải cầu Long Biên mà là kênh Xà No.",
            ],
        ),
        (
            ZH,
            ["乔维岳", "船闸"],
            [
                "乔维岳",
                "乔维岳修建船闸早于毕昇发明活字。",
                "毕昇发明活字比乔维岳修建船闸晚。",
                "不是毕昇，是乔维岳",
            ],
            ["毕昇", "毕昇比乔维岳早。", "乔维岳比毕昇晚。", "毕昇和乔维岳"],
        ),
    ],
    ids=["first", "lower", "no scale", "vi", "zh"],
)
def test_a_comparison_is_judged_by_its_claim(question, references, right, wrong):
    assert [a for a in right if not is_correct(a, references, question)] == []
    assert [a for a in wrong if is_correct(a, references, question)] == []


def test_a_negation_is_about_what_stands_close_behind_it_else_about_what_stands_ahead():
    # The third word behind the negation is close, the fourth is not.
    assert chosen(CANALS, "Panama, and not the old Suez") == "the Panama Canal"
    assert chosen(CANALS, "Panama did not open before old Suez") == "the Suez Canal"
    assert chosen(CANALS, "Suez did not open as early in that century as Panama") == "the Panama Canal"
    # Of two ahead, the nearer one; what stands in another clause is neither.
    assert chosen(CANALS, "Suez and Panama did not") == "the Suez Canal"
    assert chosen(CANALS, "Suez, Panama: not so") == ""


def test_an_answer_beside_the_options_is_compared_as_any_other():
    assert chosen(CANALS, "Corinth") is None and chosen("When did the Suez Canal open?", "Suez") is None
    assert is_correct("both the Suez Canal and Panama", ["both"], CANALS)  # no option is the reference
    assert chosen("Who came first, A or A?", "A") is None  # nothing tells them apart


def test_a_column_is_judged_with_its_questions():
    answers = ["The Panama Canal opened before the Suez Canal.", "Suez", None, "Suez", None]
    said = [None, None, None, False, True]
    queries = pd.DataFrame(
        {
            "answer": pd.Series(answers, dtype="str"),
            "reference_answers": [["Suez"]] * 4 + [None],
            "question": CANALS,
            "correct": pd.Series(said, dtype="boolean"),
        }
    )
    assert correctness(queries).tolist() == [False, True, pd.NA, False, True]
    assert labelled(queries).all() and not labelled(queries.assign(reference_answers=None)).iloc[0]
