"""Statements against refusals, talk about the answer, questions and greetings, in three languages."""

import pytest

from core.claims.decomposition.split import is_relevant


@pytest.mark.parametrize(
    "text",
    [
        "Paris",
        "1902",
        "Yes.",
        "Who Framed Roger Rabbit?",
        "Who Lost Dogs?",  # no shorter name, and no shorter words of weight
        "As an AI pioneer, Turing proposed a test.",
        "Based on the passages provided, Paris is the capital.",
        "Hope is the thing with feathers.",
        "The answer is Paris.",
        "Here is where Napoleon was buried.",
        "If you have more than one kidney, you can donate one.",
        "Thank You, Mr. Moto is a film from 1937.",
        "The document was signed in 1787.",
        "Sure-footed goats live there.",
        "The passages describe how the mill burned.",
        "Ông là một nhà thơ.",
        "Theo Tổng cục Thống kê, dân số là 100 triệu.",
        "Chào cờ là một nghi lễ.",
        "根据2020年的人口普查，北京有两千万人。",
        "希望工程始于1989年。",
        "这是一座桥。",
        "I hope this helps" + " and so the mill was sold" * 20,
    ],
)
def test_statements_are_relevant(text):
    assert is_relevant(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "…",
        "---",
        "I don’t know.",
        "The passages do not say who built it.",
        "Here is the answer:",
        "**Here's a summary of the passages.**",
        "The main causes are:",
        "I hope this helps!",
        "Based on the passages provided",
        "As an AI language model, I cannot browse.",
        "Let me know if you need more.",
        "If you have any further questions, feel free to ask.",
        "Please provide more context.",
        "I'd be happy to help!",
        "The passages only mention tea.",
        "Hello!",
        "Hi there!",
        "Sure!",
        "Great question!",
        "Thank you for your question.",
        "Could you clarify?",
        "What is the mill?",
        "Who is Roger?",
        "Framed Roger?",
        "Who framed Roger Rabbit?",
        "Xin chào!",
        "Chào bạn",
        "Không biết",
        "Hy vọng thông tin này hữu ích.",
        "Nếu bạn có câu hỏi khác, hãy cho tôi biết.",
        "Dựa trên các đoạn văn được cung cấp",
        "Dưới đây là câu trả lời:",
        "Là một mô hình ngôn ngữ, tôi không có ý kiến.",
        "Bạn muốn biết gì?",
        "你好！",
        "我不知道",
        "希望这对你有帮助。",
        "以下是答案：",
        "根据提供的段落，",
        "作为一个AI语言模型，我不能浏览网页。",
        "如果您还有其他问题，请告诉我。",
        "你想知道什么？",
    ],
)
def test_what_states_nothing_is_not(text):
    assert not is_relevant(text)


@pytest.mark.parametrize(("n", "expected"), [(400, False), (401, True)])
def test_a_long_text_says_more_than_its_beginning(n, expected):
    assert is_relevant("I hope this helps ".ljust(n, "x")) == expected


def test_what_a_cut_sentence_leaves_behind_states_nothing():
    assert not any(map(is_relevant, ("The", "of the", "It was", "…", "")))
    # Little words that are answers.
    assert all(map(is_relevant, ("No", "Both", "One", "Neither of them", "Yes.", "May", "A", "B.")))
