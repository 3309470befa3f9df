"""Retrieval settings of a live run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from core.errors import InputError
from core.pipeline.steps import Option, check_ranges
from core.retrieval import EMBEDDING_RETRIEVERS, RETRIEVERS, TOKENIZERS

_RANGES: Mapping[str, tuple[int, int]] = {"k": (1, 100), "passage_words": (10, 5000)}


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Retrieval settings; the steps hold the others.

    ``k`` is 1 to 100, ``passage_words`` 10 to 5,000; ``embedding_model`` None is the packaged
    all-MiniLM-L6-v2. `InputError` for a value outside its range, an unknown name, or an embedding model for a
    retriever without one.
    """

    k: Annotated[
        int,
        Option("--k", "Passages in the prompt; by default 10, or all of a saved run.", shows_default=False),
    ] = 10
    passage_words: Annotated[int, Option("--passage-words", "Words per passage.")] = 100
    retriever: Annotated[str, Option("--retriever", f"Retriever: {', '.join(RETRIEVERS)}.")] = "bm25"
    tokenizer: Annotated[str, Option("--tokenizer", f"How BM25 splits words: {', '.join(TOKENIZERS)}.")] = (
        "words"
    )
    embedding_model: Annotated[
        str | None, Option("--embedding-model", "Name or path, for dense and hybrid retrieval.")
    ] = None

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)
        for name, allowed in (("retriever", RETRIEVERS), ("tokenizer", TOKENIZERS)):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}.")
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
        """Return the settings as plain JSON values, without an embedding model that is not given.

        Run ids are hashes of these.
        """
        settings = asdict(self)
        if self.embedding_model is None:
            del settings["embedding_model"]
        return settings
