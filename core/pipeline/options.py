"""What a live run is made of, apart from the data and the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from core.errors import InputError
from core.llm.prompts import DEFAULT_STYLE, prompt_style
from core.llm.types import DEFAULT_MAX_TOKENS
from core.retrieval import EMBEDDING_RETRIEVERS, RETRIEVERS, TOKENIZERS

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
        The retriever (bm25, bm25s, dense, hybrid), how BM25 splits words (words, split), the prompt style.
    embedding_model : str or None
        Model of ``dense`` and ``hybrid``: a name or path that sentence-transformers knows; None is the
        packaged all-MiniLM-L6-v2.

    Raises
    ------
    InputError
        A value outside its range, an unknown name, or an embedding model for a retriever without one.
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
    embedding_model: str | None = None

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise InputError(f"{name} must be a whole number from {low:,} to {high:,}, got {value!r}.")
        for name, allowed in (("retriever", RETRIEVERS), ("tokenizer", TOKENIZERS)):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}.")
        prompt_style(self.style)
        self._check_embedding_model()

    def _check_embedding_model(self) -> None:
        model = self.embedding_model
        if model is None:
            return
        if not isinstance(model, str) or not model.strip():
            raise InputError(f"embedding_model must be a name or a path, or None, got {model!r}.")
        if self.retriever not in EMBEDDING_RETRIEVERS:
            raise InputError(
                f"embedding_model is used by the retrievers {' and '.join(EMBEDDING_RETRIEVERS)} only, "
                f"got {model!r} for {self.retriever}."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain JSON values.

        Run ids rest on these, so a setting that older runs did not have is there only where it is given.
        """
        settings = asdict(self)
        if self.embedding_model is None:
            del settings["embedding_model"]
        return settings
