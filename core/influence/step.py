"""The step that answers: with all passages, each one left out, repeats, and closed book."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from core.errors import check_ranges
from core.llm.prompts import DEFAULT_STYLE, STYLES, closed_book_messages, leave_one_out, prompt_style
from core.llm.types import DEFAULT_MAX_TOKENS, Completion, Message, Request
from core.pipeline.per_question import Answers, PerQuestion
from core.pipeline.rows import AskedQuestion, Rows
from core.pipeline.steps import Call, Option
from core.rows import is_among
from core.run import Run
from core.text import answer_status
from core.text.display import count

BASELINE, ABLATION, REPEAT, CLOSED_BOOK = "baseline", "ablation", "repeat", "closed book"
_RANGES: Mapping[str, tuple[int, int]] = {
    "repeats": (0, 100),
    "seed": (0, 2**31 - 1),
    "max_tokens": (1, 4096),
}
# Why an answer has no text, by finish reason.
_WITHHELD = {
    "reasoning": "The token limit was spent on reasoning before any answer; raise the max answer tokens "
    "(--max-tokens).",
    "content_filter": "The server's content filter withheld the answer.",
}
_WHY_EMPTY = {"length": "The token limit was used up without an answer.", **_WITHHELD}
_NO_PASSAGE = "The question has no passage to answer from."
# Others fill them; they go with the answer.
_OF_ANSWER = ("logprob_drop", "reference_logprob_drop", "approximate_drop", "screened_drop")
_STYLES = (("short", "Short answers"), ("full", "Whole sentences with sources"))


@dataclass(frozen=True)
class InfluenceStep(PerQuestion):
    """Answers with and without each passage.

    ``repeats`` are extra unablated calls per question for the noise floor, 0 to 100; ``closed_book`` is one
    more call without any passage; ``seed`` that of every call, from which repeats count up; ``max_tokens`` of
    an answer, 1 to 4,096; ``style`` one of `core.llm.prompts.STYLES`. `InputError` for a value outside its
    range or an unknown style.
    """

    name: ClassVar[str] = "influence"
    title: ClassVar[str] = "Answer with and without each passage"
    fills: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "queries": (
            "answer",
            "answer_status",
            "closed_book_answer",
            "latency",
            "prompt_tokens",
            "completion_tokens",
        ),
        "passages": ("ablated_answer", "ablated_status", *_OF_ANSWER),
        "repeats": (),
    }
    kinds: ClassVar[Mapping[str, str]] = {
        BASELINE: "all passages, temperature 0",
        ABLATION: "one passage left out, once for each",
        REPEAT: "the baseline again: the noise floor",
        CLOSED_BOOK: "no passages at all",
    }

    repeats: Annotated[
        int, Option("--repeats", "Extra baseline calls: the noise floor.", title="Noise repeats")
    ] = 0
    closed_book: Annotated[
        bool,
        Option("--closed-book", "One call without passages.", title="Closed-book answer"),
    ] = True
    seed: Annotated[int, Option("--seed", "Seed of the calls.")] = 0
    max_tokens: Annotated[
        int,
        Option(
            "--max-tokens",
            "Max answer tokens; by default the back end's.",
            shows_default=False,
            title="Max answer tokens",
        ),
    ] = DEFAULT_MAX_TOKENS
    style: Annotated[
        str,
        Option("--style", f"Prompt: {', '.join(STYLES)}.", title="Prompt", choices=_STYLES),
    ] = DEFAULT_STYLE

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)
        prompt_style(self.style)

    def n_calls(self, n_passages: int) -> int:
        """Return the number of calls of a question with so many passages; none without any."""
        return 1 + n_passages + self.repeats + self.closed_book if n_passages else 0

    def calls(self, question: AskedQuestion) -> Sequence[Call]:
        """Return baseline, ablations, repeats and closed book, in this order; empty without passages.

        Passages keep their labels, their places in the prompt, when another one is left out. A repeat is the
        baseline with another seed, so that the cache does not answer it.
        """
        if not question.passages:
            return []
        text = str(question.query["question"])
        full, *others = leave_one_out(text, question.numbered, self.style)
        calls = [self._call(BASELINE, 1, full)]
        calls += [self._call(ABLATION, slot, without) for slot, without in enumerate(others, start=1)]
        calls += [self._call(REPEAT, r, full, self.seed + r) for r in range(1, self.repeats + 1)]
        if self.closed_book:
            calls.append(self._call(CLOSED_BOOK, 1, closed_book_messages(text, self.style)))
        return calls

    def _call(self, kind: str, number: int, messages: tuple[Message, ...], seed: int | None = None) -> Call:
        stop = prompt_style(self.style).stop
        chosen = self.seed if seed is None else seed
        return Call(kind, number, Request(messages, seed=chosen, max_tokens=self.max_tokens, stop=stop))

    def rows(self, question: AskedQuestion, answers: Answers) -> Rows:
        """Return the answers and their status, in composed Unicode form."""
        if not question.passages:
            return self.failed(question, question.query["status_reason"] or _NO_PASSAGE)
        baseline = answers[BASELINE, 1]
        answer, status = _answer(baseline)
        reason = baseline.error
        if status == "empty":
            reason = _WHY_EMPTY.get(baseline.finish_reason, "The model returned no text.")
        was_answered = status != "error"
        was_counted = was_answered and baseline.prompt_tokens > 0  # no prompt has 0 tokens: not counted
        query = {
            "query_id": question.query_id,
            "answer": answer,
            "answer_status": status,
            "status_reason": reason,
            "closed_book_answer": _observed(answers.get((CLOSED_BOOK, 1)))[0],
            "latency": baseline.latency if was_answered else None,
            "prompt_tokens": baseline.prompt_tokens if was_counted else None,
            "completion_tokens": baseline.completion_tokens if was_counted else None,
        }
        repeats = [
            {"query_id": question.query_id, "repeat": r, "answer": text, "answer_status": said}
            for r in range(1, self.repeats + 1)
            for text, said in [_observed(answers[REPEAT, r])]
        ]
        return {"queries": [query], "passages": _ablated(question, answers), "repeats": repeats}

    def failed(self, question: AskedQuestion, reason: str) -> Rows:
        """Return the rows of a question without an answer."""
        query = {"query_id": question.query_id, "answer_status": "error", "status_reason": reason}
        return {"queries": [query], "passages": _ablated(question, {})}

    def missing(self, run: Run) -> Sequence[str]:
        """Return the questions with passages that have a missing or failed call."""
        queries, passages, repeats = run.queries, run.passages, run.repeats
        ids = queries["query_id"]
        askable = is_among(ids, passages["query_id"])
        status = queries["answer_status"]
        gaps = status.isna() | (askable & (status == "error"))
        if self.closed_book:
            gaps |= askable & queries["closed_book_answer"].isna()
        failed = passages["ablated_status"].isna() | (passages["ablated_status"] == "error")
        gaps |= is_among(ids, passages.loc[failed, "query_id"])
        answered = repeats["query_id"][repeats["answer_status"] != "error"].value_counts()
        gaps |= askable & (ids.map(answered).fillna(0) < self.repeats)
        return ids[gaps].to_list()

    def facts(self, run: Run) -> Mapping[str, Any]:
        """Return the reasons of missing answers, and notes on what is missing."""
        failed = run.queries[run.queries["answer_status"] == "error"]
        lost = run.passages["ablated_status"] == "error"
        n_lost = int((lost & ~is_among(run.passages["query_id"], failed["query_id"])).sum())
        n = int(run.queries["answer_status"].notna().sum())
        notes = []
        if len(failed):
            none = f"{len(failed)} of {count(n, 'question')}"
            notes.append(f"Without an answer: {none}; the table has the reasons.")
        if n_lost:
            lost_of = "its question is" if n_lost == 1 else "their questions are"
            notes.append(f"Missing: {count(n_lost, 'ablated answer')}; {lost_of} undefined (incomplete).")
        return {"reasons": failed["status_reason"].value_counts().to_dict(), "notes": notes}


def _ablated(question: AskedQuestion, answers: Answers) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for slot, passage in enumerate(question.passages, start=1):
        answer, status = _observed(answers.get((ABLATION, slot)))
        key = {"query_id": question.query_id, "passage_id": passage["passage_id"]}
        rows.append({**key, "ablated_answer": answer, "ablated_status": status, **dict.fromkeys(_OF_ANSWER)})
    return rows


def _answer(completion: Completion | None) -> tuple[str | None, str]:
    """Return an answer and its status."""
    if completion is None or completion.error is not None:
        return None, "error"
    text = unicodedata.normalize("NFC", completion.text)
    return text, answer_status(text)


def _observed(completion: Completion | None) -> tuple[str | None, str]:
    """Return an answer to compare with the baseline, and its status.

    A withheld answer tells nothing about passages: it is missing, not empty.
    """
    if completion is not None and not completion.text and completion.finish_reason in _WITHHELD:
        return None, "error"
    return _answer(completion)
