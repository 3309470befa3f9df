import pytest

from core.errors import InputError
from core.llm.prompts import (
    FUNCTION_STYLE,
    STYLES,
    answer_messages,
    closed_book_messages,
    passage_message,
    prompt_style,
)

PASSAGES = [(1, "Tea", "Tea is a drink."), (2, "", "No title."), (3, "大运河", "全长一千七百多公里。")]


def test_every_passage_stands_under_its_label_and_the_question_comes_last():
    user, start = answer_messages("多长?", PASSAGES)
    assert (user.role, start.role, start.content) == ("user", "assistant", "Answer:")
    blocks = user.content.split("\n\n")
    assert blocks[1:4] == ["[1] Tea: Tea is a drink.", "[2] No title.", "[3] 大运河: 全长一千七百多公里。"]
    assert blocks[-1] == "Question: 多长?"
    assert blocks[0] == STYLES["short"].instruction
    assert len(blocks) == 5


def test_labels_stay_when_a_passage_is_left_out():
    full = answer_messages("q", PASSAGES)[0].content
    without = answer_messages("q", [PASSAGES[0], PASSAGES[2]])[0].content
    assert without == full.replace("[2] No title.\n\n", "")


def test_no_passage_is_in_the_closed_book_prompt():
    content = closed_book_messages("Who?")[0].content
    assert content.endswith("Question: Who?")
    assert "[1]" not in content
    assert "passage" not in content


def test_the_instruction_allows_not_knowing():
    assert all("I don't know" in s.instruction and "I don't know" in s.closed_book for s in STYLES.values())


def test_the_template_shows_what_is_sent():
    template = prompt_style("short").template
    assert template.count(STYLES["short"].instruction) == 1
    assert "\n\n[1] {title}: {text}\n\n[2] {title}: {text} …\n\n" in template
    assert template.endswith("Question: {question}\n\nassistant: Answer:")


def test_an_unknown_style_lists_the_known_ones():
    with pytest.raises(InputError, match="must be one of short, full, got 'long'"):
        answer_messages("q", [], "long")


def test_the_beginning_of_the_answer_is_shown_only_where_it_is_sent():
    short, full = prompt_style("short"), prompt_style("full")
    assert short.sent(True) == short.template
    assert short.sent(False) == short.template.removesuffix("\n\nassistant: Answer:") != short.template
    assert full.sent(False) == full.sent(True) == full.template


def test_a_short_answer_is_one_line_and_a_full_one_ends_by_itself():
    assert prompt_style("short").stop == ("\n",)
    assert prompt_style("full").stop == ()


def test_only_full_answers_are_asked_to_cite_and_only_a_function_gets_passages_apart():
    styles = (*STYLES.values(), FUNCTION_STYLE)
    assert [style.name for style in styles if style.cites] == ["full"]
    assert [style.name for style in styles if style.apart] == ["function"]


def test_a_function_reads_every_script_as_it_is_written():
    content = passage_message(PASSAGES[2]).content
    assert content == '{"label": 3, "title": "大运河", "text": "全长一千七百多公里。"}'
