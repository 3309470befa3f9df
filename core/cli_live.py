"""The settings of a live run as command line options, written down once for all commands that take them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, get_type_hints

import typer

from core.llm import BACKENDS, LLM, backend, open_llm
from core.llm.prompts import STYLES
from core.pipeline import RunOptions
from core.retrieval import RETRIEVERS
from core.sources.dataset import Dataset

_DEFAULTS = RunOptions()


def option(*names: str, text: str) -> Any:
    """Describe an option of the command line."""
    return typer.Option(*names, help=text)


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """Model and options of a live run, as the command line gives them.

    A key is no option: a command line can be read by every process of the machine. It comes from the
    environment variable of the back end.
    """

    llm: Annotated[str, option("--llm", text=f"Back end: {', '.join(BACKENDS)}.")] = "embedded"
    model: Annotated[str | None, option("--model", text="Name or path; else the back end's default.")] = None
    base_url: Annotated[str | None, option("--base-url", text="Address of the model's server.")] = None
    limit: Annotated[int | None, option("--limit", text="Only the first N questions.")] = None
    corpus: Annotated[
        str | None, option("--corpus", text="Folder or JSONL of documents for questions that bring none.")
    ] = None
    k: Annotated[
        int | None, option("--k", text="Passages in the prompt; else 10, or all that a saved run has.")
    ] = None
    passage_words: Annotated[int, option("--passage-words", text="Words per passage.")] = (
        _DEFAULTS.passage_words
    )
    retriever: Annotated[str, option("--retriever", text=f"Retriever: {', '.join(RETRIEVERS)}.")] = (
        _DEFAULTS.retriever
    )
    tokenizer: Annotated[str, option("--tokenizer", text="How BM25 splits words: words, split.")] = (
        _DEFAULTS.tokenizer
    )
    embedding_model: Annotated[
        str | None, option("--embedding-model", text="Name or path, for dense and hybrid retrieval.")
    ] = None
    repeats: Annotated[int, option("--repeats", text="Extra baseline calls: the noise floor.")] = (
        _DEFAULTS.repeats
    )
    closed_book: Annotated[
        bool, option("--closed-book/--no-closed-book", text="One call without passages.")
    ] = _DEFAULTS.closed_book
    style: Annotated[str, option("--style", text=f"Prompt: {', '.join(STYLES)}.")] = _DEFAULTS.style
    seed: Annotated[int, option("--seed", text="Seed of the calls.")] = _DEFAULTS.seed
    max_tokens: Annotated[
        int | None, option("--max-tokens", text="Most tokens of an answer; else the back end's default.")
    ] = None
    cache: Annotated[str | None, option("--cache", text="File of finished calls.")] = None

    def open(self) -> LLM:
        """Open the model."""
        options = {"base_url": self.base_url} if self.base_url is not None else {}
        return open_llm(self.llm, self.model, **options)

    def options(self, dataset: Dataset, *, continued: bool = False) -> RunOptions:
        """Return the run's own settings; ``continued``: the passages of a run are all taken again."""
        most = max((len(q.passages or ()) for q in dataset.questions), default=0) if continued else 0
        return RunOptions(
            k=self.k if self.k is not None else min(most, 100) or _DEFAULTS.k,
            passage_words=self.passage_words,
            repeats=self.repeats,
            closed_book=self.closed_book,
            seed=self.seed,
            max_tokens=backend(self.llm).max_tokens if self.max_tokens is None else self.max_tokens,
            retriever=self.retriever,
            tokenizer=self.tokenizer,
            style=self.style,
            embedding_model=self.embedding_model,
        )


def with_settings(**kinds: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command every field of some dataclasses as an option; it gets them back as ``name=object``.

    Parameters
    ----------
    **kinds : type
        Name of the command's argument, and the dataclass whose fields are the options.
    """
    options = {name: _options(kind) for name, kind in kinds.items()}

    def wrap(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True)
        kept = [p for name, p in own.parameters.items() if name not in kinds]

        @functools.wraps(command)
        def wrapped(*args: Any, **kwargs: Any) -> None:
            for name, kind in kinds.items():
                given = {o.name: kwargs.pop(o.name) for o in options[name] if o.name in kwargs}
                kwargs[name] = kind(**given)
            command(*args, **kwargs)

        added = [option for listed in options.values() for option in listed]
        wrapped.__signature__ = own.replace(  # type: ignore[attr-defined]
            parameters=[*(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in kept), *added]
        )
        return wrapped

    return wrap


def _options(kind: type) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    options = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in fields(kind)
    ]
    assert not any(option.default is MISSING for option in options)
    return options
