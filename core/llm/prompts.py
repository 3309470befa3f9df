"""All prompts in one place: the plan shows exactly what is sent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.errors import InputError
from core.llm.types import Message

NumberedPassage = tuple[int, str, str]


@dataclass(frozen=True, slots=True)
class PromptStyle:
    """How a question is put to a model; `RunOptions` chooses one by name.

    Where passages are ``apart``, each is a turn of its own, as JSON, and the question another: for a function
    that builds its own prompt. ``cites`` says whether it asks for citations.
    """

    name: str
    instruction: str  # before the passages
    closed_book: str  # the instruction used without passages
    prefix: str = ""  # begins the model's own turn, so that it continues with the answer itself
    stop: tuple[str, ...] = ("\n",)
    apart: bool = False
    cites: bool = False

    @property
    def template(self) -> str:
        """The whole prompt, with placeholders in braces."""
        passages = [(1, "{title}", "{text}"), (2, "{title}", "{text} …")]
        turns = answer_messages("{question}", passages, self.name)
        return "\n\n".join(f"{turn.role}: {turn.content}" for turn in turns)

    def sent(self, prefill: bool) -> str:
        """Return the prompt as sent; ``prefill``: whether the back end continues a begun model turn."""
        begun = f"\n\nassistant: {self.prefix}"
        return self.template if prefill or not self.prefix else self.template.removesuffix(begun)


STYLES: Mapping[str, PromptStyle] = {
    style.name: style
    for style in (
        # Of ten prompts tried, this made a small model answer in a few words: no system turn, no
        # worked examples (it repeats them), the instruction once, and its own turn begun for it.
        PromptStyle(
            "short",
            "You answer questions from numbered passages. Give the shortest exact answer: a name, a number, "
            "a date or a few words copied from a passage. If the passages do not contain the answer, "
            "say: I don't know.",
            "You answer questions. Give the shortest exact answer: a name, a number, a date or a few words. "
            "If you do not know the answer, say: I don't know.",
            prefix="Answer:",
        ),
        # For models that write well: a whole answer that cites its passages.
        PromptStyle(
            "full",
            "Answer the question from the numbered passages below, in full sentences and without anything "
            "the passages do not say. Put the number of the passage in brackets behind each statement, like "
            "[1]. If the passages do not contain the answer, say: I don't know.",
            "Answer the question in full sentences. If you do not know the answer, say: I don't know.",
            stop=(),
            cites=True,
        ),
    )
}
DEFAULT_STYLE = "short"
# For a user's own function. Not in STYLES: nobody chooses it for a language model.
FUNCTION_STYLE = PromptStyle("function", "", "", stop=(), apart=True)


def prompt_style(name: str) -> PromptStyle:
    """Return the style of that name; InputError lists the styles."""
    if name == FUNCTION_STYLE.name:
        return FUNCTION_STYLE
    if name not in STYLES:
        raise InputError(f"The prompt style must be one of {', '.join(STYLES)}, got {name!r}.")
    return STYLES[name]


def answer_messages(
    question: str, passages: Sequence[NumberedPassage], style: str = DEFAULT_STYLE
) -> tuple[Message, ...]:
    """Return the conversation that asks a question with its passages, each a (label, title, text).

    The user's turn and, where the style has a prefix, the beginning of the assistant's. Labels are retrieval
    ranks, which stay when another passage is left out.
    """
    chosen = prompt_style(style)
    if chosen.apart:
        return (*(passage_message(passage) for passage in passages), Message("user", question))
    return _turns(chosen, chosen.instruction, *map(passage_block, passages), f"Question: {question}")


def leave_one_out(
    question: str, passages: Sequence[NumberedPassage], style: str = DEFAULT_STYLE
) -> list[tuple[Message, ...]]:
    """Return the conversation with all passages, then those without each, in order; labels stay."""
    rests = [[*passages[:i], *passages[i + 1 :]] for i in range(len(passages))]
    return [answer_messages(question, shown, style) for shown in (passages, *rests)]


def passage_block(passage: NumberedPassage) -> str:
    """Return a passage as it stands in a prompt.

    >>> passage_block((1, "Ada", "She was first.")), passage_block((2, "", "Text."))
    ('[1] Ada: She was first.', '[2] Text.')
    """
    label, title, text = passage
    return f"[{label}] {title}: {text}" if title else f"[{label}] {text}"


def closed_book_messages(question: str, style: str = DEFAULT_STYLE) -> tuple[Message, ...]:
    """Return the conversation that asks the question without passages."""
    chosen = prompt_style(style)
    if chosen.apart:
        return answer_messages(question, (), style)
    return _turns(chosen, chosen.closed_book, f"Question: {question}")


def passage_message(passage: NumberedPassage) -> Message:
    """Return a passage as a turn of its own: JSON of its label, title and text."""
    label, title, text = passage
    return Message("passage", json.dumps({"label": label, "title": title, "text": text}, ensure_ascii=False))


def _turns(style: PromptStyle, *blocks: str) -> tuple[Message, ...]:
    user = Message("user", "\n\n".join(blocks))
    return (user, Message("assistant", style.prefix)) if style.prefix else (user,)
