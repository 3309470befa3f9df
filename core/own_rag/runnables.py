"""Objects of LangChain in the place of functions: whatever has ``invoke``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.sources.objects import as_passage

# The names that LangChain's own chains use, the usual one first.
_QUESTION = ("question", "input", "query")
_PASSAGES = ("context", "documents", "input_documents", "passages", "docs")


def as_retrieve(value: Any) -> Any:
    """Return the ``invoke`` of a retriever or another runnable; anything else as it is."""
    return value.invoke if _is_runnable(value) else value


def as_answer(value: Any) -> Any:
    """Return a runnable as a function of question and passages; anything else as it is.

    It is invoked with a mapping, under the names that it asks for: question, input or query; context,
    documents, input_documents, passages or docs. A prompt template gets the texts of the passages, joined by
    blank lines, any other runnable the passages themselves.
    """
    if not _is_runnable(value):
        return value
    wanted = _wanted(value)
    question_name = _chosen(_QUESTION, wanted)
    passages_name = _chosen(_PASSAGES, wanted)
    is_prompt = hasattr(getattr(value, "first", value), "format_prompt")

    def answer(question: str, passages: Sequence[Any]) -> Any:
        given = _joined(passages) if is_prompt else list(passages)
        return value.invoke({question_name: question, passages_name: given})

    answer.__qualname__ = str(getattr(value, "name", None) or type(value).__qualname__)
    return answer


def _is_runnable(value: Any) -> bool:
    methods: tuple[Callable[..., Any] | None, ...] = tuple(
        getattr(value, name, None) for name in ("invoke", "ainvoke", "get_input_schema")
    )
    return not isinstance(value, Mapping) and all(callable(method) for method in methods)


def _wanted(runnable: Any) -> set[str]:
    """Return the names of the inputs that a runnable declares; empty where it declares none."""
    try:
        return set(runnable.get_input_schema().model_fields)
    except Exception:  # a schema of a user's own types may not be there to be had
        return set()


def _chosen(names: Sequence[str], wanted: set[str]) -> str:
    return next((name for name in names if name in wanted), names[0])


def _joined(passages: Sequence[Any]) -> str:
    return "\n\n".join(as_passage(passage, place).text for place, passage in enumerate(passages, start=1))
