"""What a live run is made of, apart from the data and the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from core.errors import InputError
from core.llm.prompts import DEFAULT_STYLE, prompt_style
from core.llm.types import DEFAULT_MAX_TOKENS

RETRIEVERS = ("bm25",)
TOKENIZERS = ("words", "split")
_RANGES: Mapping[str, tuple[int, int]] = {
    "k": (1, 100),
    "passage_words": (10, 5000),
    "repeats": (0, 100),
    "seed": (0, 2**31 - 1),
    "max_tokens": (1, 4096),
}


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Settings of a live run.

    Attributes
    ----------
    k : int
        Passages in the prompt, 1 to 100; fewer where a question has fewer.
    passage_words : int
        Words per passage when documents are split, 10 to 5,000.
    repeats : int
        Extra unablated calls per question for the noise floor, 0 to 100.
    closed_book : bool
        One more call per question without any passage.
    seed : int
        Seed of every call; repeats count up from it.
    max_tokens : int
        Most tokens of an answer, 1 to 4,096.
    retriever, tokenizer, style : str
        The retriever, how it splits words, and the prompt style.

    Raises
    ------
    InputError
        A value outside its range, or an unknown name.
    """

    k: int = 10
    passage_words: int = 100
    repeats: int = 0
    closed_book: bool = True
    seed: int = 0
    max_tokens: int = DEFAULT_MAX_TOKENS
    retriever: str = "bm25"
    tokenizer: str = "words"
    style: str = DEFAULT_STYLE

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise InputError(f"{name} must be a whole number from {low:,} to {high:,}, got {value!r}.")
        for name, allowed in (("retriever", RETRIEVERS), ("tokenizer", TOKENIZERS)):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}.")
        prompt_style(self.style)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain JSON values."""
        return asdict(self)
