"""Load a model of Hugging Face transformers, and write conversations in its own chat format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.errors import BackendError
from core.llm.packaged import quiet
from core.llm.types import Message

_HUB_SECONDS = 10.0
_LOAD_ERRORS = (OSError, ValueError, RuntimeError, KeyError, ImportError)


def ask_hub(source: str, name: str) -> bool:
    """Tell whether the hub offers a model; False: downloaded earlier, `BackendError`: nowhere."""
    from huggingface_hub import HfApi, try_to_load_from_cache

    try:
        HfApi().model_info(source, timeout=_HUB_SECONDS)
    except Exception as error:  # no network, no such model, no permission, not even a valid name
        try:
            cached = isinstance(try_to_load_from_cache(source, "config.json"), str)
        except ValueError:
            cached = False
        if not cached:
            raise BackendError(
                f"The model {name} is not a local folder, was not downloaded before, and the Hugging Face "
                f"hub does not provide it ({type(error).__name__}); check the name and the network."
            ) from error
        return False
    return True


def load_tokenizer(source: str, name: str, *, local: bool) -> tuple[Any, Any]:
    """Return tokenizer and configuration, which need no weights; BackendError where they cannot be loaded."""
    from transformers import AutoConfig, AutoTokenizer

    try:
        with quiet():
            config = AutoConfig.from_pretrained(source, local_files_only=local)
            tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local)
    except _LOAD_ERRORS as error:
        raise _unloadable(name, error) from error
    return tokenizer, config


def load_model(source: str, name: str, *, dtype: str, device: str, local: bool) -> Any:
    """Return the model, ready to answer; BackendError where it cannot be loaded."""
    import torch
    from transformers import AutoModelForCausalLM, GenerationConfig

    from core.llm.embedded.arithmetic import speed_up

    try:
        with quiet():
            model = AutoModelForCausalLM.from_pretrained(
                source, dtype=getattr(torch, dtype), local_files_only=local
            )
            model = speed_up(model.to(device).eval())
    except _LOAD_ERRORS as error:
        raise _unloadable(name, error) from error
    # A model's own settings (repetition penalty, top_k …) would change what temperature 0 means; only its
    # end tokens are kept.
    model.generation_config = GenerationConfig(eos_token_id=model.generation_config.eos_token_id)
    return model


def end_tokens(tokenizer: Any, model: Any) -> frozenset[int]:
    """Return the tokens that end an answer."""
    own = model.generation_config.eos_token_id
    listed = own if isinstance(own, list) else [own]
    return frozenset(t for t in (*listed, tokenizer.eos_token_id) if t is not None)


def pad_token(tokenizer: Any) -> int:
    """Return the token to pad shorter prompts with; it is never attended to."""
    candidates = (tokenizer.pad_token_id, tokenizer.eos_token_id)
    return next((int(token) for token in candidates if token is not None), 0)


def choose_device(asked: str) -> str:
    """Return the requested device; ``auto`` is a GPU if available, else the processor."""
    if asked != "auto":
        return asked
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _unloadable(name: str, error: Exception) -> BackendError:
    first = str(error).strip().split("\n")[0] or type(error).__name__
    return BackendError(f"The model {name} cannot be loaded: {first}")


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
