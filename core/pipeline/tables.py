"""From completions to the tables of a run."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from core.llm.types import Completion
from core.pipeline.requests import ABLATION, BASELINE, CLOSED_BOOK, REPEAT
from core.pipeline.retrieve import Retrieved
from core.sources.question import Question
from core.text import answer_status

# Why there is no text, by finish reason.
_WITHHELD = {
    "reasoning": "The token limit was spent on reasoning before any answer; raise the answer tokens "
    "(--max-tokens).",
    "content_filter": "The server's content filter withheld the answer.",
}
_WHY_EMPTY = {"length": "The token limit was used up without an answer.", **_WITHHELD}


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """Everything a run learned about one question.

    ``completions`` is keyed by kind and number of the call; ``problem`` says why the question has
    no answer, where it has none.
    """

    question: Question
    retrieved: Retrieved
    completions: dict[tuple[str, int], Completion] = field(default_factory=dict)
    problem: str | None = None


def build_tables(results: Sequence[QuestionResult]) -> dict[str, pd.DataFrame]:
    """Return the tables ``queries``, ``passages`` and ``repeats``, in the order of the results."""
    queries = pd.DataFrame([_query(result) for result in results])
    passages = pd.DataFrame([row for result in results for row in _passages(result)])
    repeats = pd.DataFrame([row for result in results for row in _repeats(result)])
    tables = {"queries": queries, "passages": passages, "repeats": repeats}
    return {name: frame for name, frame in tables.items() if len(frame)}


def count_failures(results: Sequence[QuestionResult]) -> int:
    """Count the questions without an answer because of an error."""
    return sum(_outcome(result)[1] == "error" for result in results)


def missing_ablations(results: Sequence[QuestionResult]) -> int:
    """Count the ablated answers that could not be had in questions that do have an answer."""
    return sum(
        row["ablated_status"] == "error"
        for result in results
        if _outcome(result)[1] != "error"
        for row in _passages(result)
    )


def _answer(completion: Completion | None) -> tuple[str | None, str]:
    """Return an answer in composed Unicode form and what became of it."""
    if completion is None or completion.error is not None:
        return None, "error"
    text = unicodedata.normalize("NFC", completion.text)
    return text, answer_status(text)


def _observed(completion: Completion | None) -> tuple[str | None, str]:
    """Return an answer that is compared with the baseline.

    One that the model was kept from giving tells nothing about passages: it is missing, not empty.
    """
    if completion is not None and not completion.text and completion.finish_reason in _WITHHELD:
        return None, "error"
    return _answer(completion)


def _outcome(result: QuestionResult) -> tuple[str | None, str, str | None]:
    """Return answer, status and reason of the baseline."""
    if result.problem is not None:
        return None, "error", result.problem
    baseline = result.completions.get((BASELINE, 1))
    text, status = _answer(baseline)
    reason = baseline.error if baseline is not None else "The baseline call was not made."
    if status == "empty" and baseline is not None:
        reason = _WHY_EMPTY.get(baseline.finish_reason, "The model returned no text.")
    return text, status, reason


def _query(result: QuestionResult) -> dict[str, object]:
    question = result.question
    answer, status, reason = _outcome(result)
    baseline = result.completions.get((BASELINE, 1)) if status != "error" else None
    closed_book, _ = _observed(result.completions.get((CLOSED_BOOK, 1)))
    return {
        "query_id": question.query_id,
        "question": question.question,
        "answer": answer,
        "answer_status": status,
        "status_reason": reason,
        "closed_book_answer": closed_book,
        "reference_answers": list(question.reference_answers) or None,
        "n_gold": result.retrieved.n_gold,
        "kind": question.kind,
        "language": question.language,
        "latency": baseline.latency if baseline else None,
        "prompt_tokens": baseline.prompt_tokens if baseline else None,
        "completion_tokens": baseline.completion_tokens if baseline else None,
    }


def _passages(result: QuestionResult) -> list[dict[str, object]]:
    rows = []
    for slot, passage in enumerate(result.retrieved.passages, start=1):
        answer, status = _observed(result.completions.get((ABLATION, slot)))
        rows.append(
            {
                "query_id": result.question.query_id,
                "passage_id": passage.passage_id,
                "title": passage.title,
                "text": passage.text,
                "retrieval_rank": float(passage.rank),
                "retrieval_score": passage.score,
                "slot": slot,
                "ablated_answer": answer,
                "ablated_status": status,
                "is_gold": passage.is_gold,
            }
        )
    return rows


def _repeats(result: QuestionResult) -> list[dict[str, object]]:
    rows = []
    for (kind, number), completion in result.completions.items():
        if kind == REPEAT:
            answer, status = _observed(completion)
            rows.append(
                {
                    "query_id": result.question.query_id,
                    "repeat": number,
                    "answer": answer,
                    "answer_status": status,
                }
            )
    return rows
