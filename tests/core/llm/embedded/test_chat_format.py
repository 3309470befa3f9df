"""How prompts and given answers become tokens, in chat formats of several kinds."""

import pytest

from core.errors import BackendError
from core.llm import Message, Request, open_llm
from tests.core.llm.embedded.tiny_model import NO_SYSTEM, TURNS, one_thread, tiny_model

pytestmark = pytest.mark.model
ASKED = (Message("system", "Be short."), Message("user", "Where?"))
BEGUN = (*ASKED, Message("assistant", "Answer:"))


@pytest.fixture(scope="module", autouse=True)
def calm():
    with one_thread():
        yield


@pytest.fixture(scope="module")
def formats(tmp_path_factory):
    made = {}
    for name, template in (
        ("turns", TURNS),
        ("no system", NO_SYSTEM),
        ("none", None),
        ("broken", "{{ 1 / 0 }}"),
    ):
        folder = tmp_path_factory.mktemp("tiny")
        made[name] = open_llm("embedded", tiny_model(folder, template=template), dtype="float32")
    return made


def text(llm, tokens):
    return llm._tokenizer.decode(tokens)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "turns",
            "<|turn|>system\nBe short.<|end|>\n<|turn|>user\nWhere?<|end|>\n<|turn|>assistant\nAnswer:",
        ),
        ("no system", "<|turn|>user\nBe short.\n\nWhere?<|end|>\n<|turn|>assistant\nAnswer:"),
        ("none", "Be short.\n\nWhere?\n\nAnswer:"),
    ],
)
def test_a_given_answer_continues_the_turn_that_was_begun(formats, name, expected):
    llm = formats[name]
    prompt, answer = llm._chat.encode_answer(BEGUN, " Paris\n")
    assert prompt == llm._chat.encode(BEGUN)
    assert (text(llm, prompt), text(llm, answer)) == (expected, " Paris")
    # " P" is one token of this vocabulary: the answer is cut into tokens as the model would write it.
    assert len(answer) == len(" Paris") - 1


def test_an_empty_turn_of_the_model_needs_no_space(formats):
    prompt, answer = formats["turns"]._chat.encode_answer(ASKED, "Paris")
    assert text(formats["turns"], prompt).endswith("<|turn|>assistant\n")
    assert text(formats["turns"], answer) == "Paris"


@pytest.mark.parametrize("begun", ["Answer: ", "Answer:\n"])
def test_white_space_that_was_begun_is_not_doubled(formats, begun):
    llm = formats["none"]
    messages = (Message("user", begun),)
    prompt, answer = llm._chat.encode_answer(messages, "Paris")
    assert (text(llm, prompt), text(llm, answer)) == (begun, "Paris")


def test_a_token_over_the_border_is_not_used(formats):
    # "Answer: P" joins " P" into one token, but a prompt that ends in the space has already spent it.
    llm = formats["turns"]
    messages = (Message("user", "Where?"), Message("assistant", "Answer: "))
    prompt, answer = llm._chat.encode_answer(messages, "Paris")
    assert prompt == llm._chat.encode(messages)
    assert text(llm, prompt + answer).endswith("Answer: Paris")
    assert len(answer) == len("Paris")


def test_an_empty_answer_has_no_tokens(formats):
    assert formats["none"]._chat.encode_answer(ASKED, " \n")[1] == []


def test_instructions_alone_are_refused_by_a_format_without_them(formats):
    with pytest.raises(BackendError, match=r"does not accept the prompt: no system turn"):
        formats["no system"].count_tokens(ASKED[:1])


def test_a_format_that_refuses_the_prompt_is_one_sentence(formats):
    with pytest.raises(BackendError, match=r"The chat format of .* does not accept the prompt"):
        formats["broken"].generate([Request(ASKED)])
