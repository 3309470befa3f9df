"""From a conversation to token ids, by the model's own chat format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.errors import BackendError
from core.llm.types import Message

Turn = dict[str, str]


class ChatFormat:
    """Encodes conversations with a tokenizer's chat template; a model without one continues plain text."""

    def __init__(self, tokenizer: Any, name: str) -> None:
        self._tokenizer = tokenizer
        self._name = name
        self._specials = sorted(token for token in special_tokens(tokenizer) if len(token) > 1)

    def encode(self, messages: Sequence[Message]) -> list[int]:
        """Return the tokens of a prompt, a last assistant turn left open; `BackendError` where refused."""
        turns = [{"role": m.role, "content": self._plain(m.content)} for m in messages]
        if not self._tokenizer.chat_template:
            return list(self._tokenizer(_plain_text(turns))["input_ids"])
        return list(self._templated(turns, tokenize=True))

    def encode_answer(self, messages: Sequence[Message], answer: str) -> tuple[list[int], list[int]]:
        """Return the tokens of a prompt as in `encode`, and those of a given answer to it, stripped.

        After a beginning such as ``Answer:`` one space separates it. Both are tokenized together; where a
        token would span both, the answer by itself: a model that has read the prompt can no longer choose
        that token.
        """
        prompt = self.encode(messages)
        answer = self._plain(answer.strip())
        if not answer:
            return prompt, []
        turns = [{"role": m.role, "content": self._plain(m.content)} for m in messages]
        templated = bool(self._tokenizer.chat_template)
        text = str(self._templated(turns, tokenize=False)) if templated else _plain_text(turns)
        begun = turns[-1]["role"] == "assistant" or not templated
        if begun and text and not text[-1].isspace():
            answer = " " + answer
        whole = list(self._tokenizer(text + answer, add_special_tokens=not templated)["input_ids"])
        if whole[: len(prompt)] == prompt:
            return prompt, whole[len(prompt) :]
        return prompt, list(self._tokenizer(answer, add_special_tokens=False)["input_ids"])

    def _templated(self, turns: list[Turn], *, tokenize: bool) -> Any:
        for attempt in (turns, _without_system(turns)):
            try:
                prefilled = attempt[-1]["role"] == "assistant"
                rendered = self._tokenizer.apply_chat_template(
                    attempt,
                    add_generation_prompt=not prefilled,
                    continue_final_message=prefilled,
                    tokenize=tokenize,
                    return_dict=tokenize,
                )
            except Exception as error:  # the template is the model's own program: it may raise anything
                cause = error
                continue
            return rendered["input_ids"] if tokenize else rendered
        raise BackendError(f"The chat format of {self._name} does not accept the prompt: {cause}.") from cause

    def _plain(self, content: str) -> str:
        # A passage that spells out the model's control tokens must not become a turn of the conversation.
        for token in self._specials:
            if token in content:
                content = content.replace(token, f"{token[0]} {token[1:]}")
        return content


def _plain_text(turns: Sequence[Turn]) -> str:
    return "\n\n".join(turn["content"] for turn in turns)


def _without_system(turns: list[Turn]) -> list[Turn]:
    """Move the system turn's text into the first turn: some formats have no system turn."""
    system = [turn["content"] for turn in turns if turn["role"] == "system"]
    rest = [dict(turn) for turn in turns if turn["role"] != "system"]
    if system and rest:
        rest[0]["content"] = "\n\n".join((*system, rest[0]["content"]))
    return rest or turns


def special_tokens(tokenizer: Any) -> set[str]:
    """Return the tokens that are control marks, not text."""
    added = {str(token) for token in tokenizer.added_tokens_decoder.values() if token.special}
    return added | set(tokenizer.all_special_tokens)
