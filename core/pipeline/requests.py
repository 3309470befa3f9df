"""The calls of one question, in order: baseline, drop-one ablations, repeats, closed book."""

from __future__ import annotations

from dataclasses import dataclass

from core.llm.prompts import answer_messages, closed_book_messages, prompt_style
from core.llm.types import Message, Request
from core.pipeline.options import RunOptions
from core.pipeline.retrieve import Retrieved

BASELINE, ABLATION, REPEAT, CLOSED_BOOK = "baseline", "ablation", "repeat", "closed book"
KINDS = (BASELINE, ABLATION, REPEAT, CLOSED_BOOK)


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its kind, its number within the kind (the slot left out, the repeat; from 1), its request."""

    kind: str
    number: int
    request: Request


def question_calls(question: str, retrieved: Retrieved, options: RunOptions) -> list[Call]:
    """Return the calls of one question; none where there is no passage.

    A passage keeps its label, its retrieval rank, when another one is left out. A repeat is the
    baseline under another seed, so that it is really asked again.
    """
    if not retrieved.passages:
        return []
    labelled = [(p.rank, p.title, p.text) for p in retrieved.passages]
    stop = prompt_style(options.style).stop

    def call(kind: str, number: int, messages: tuple[Message, ...], seed: int = options.seed) -> Call:
        return Call(kind, number, Request(messages, seed=seed, max_tokens=options.max_tokens, stop=stop))

    full = answer_messages(question, labelled, options.style)
    calls = [call(BASELINE, 1, full)]
    for left_out in range(len(labelled)):
        rest = labelled[:left_out] + labelled[left_out + 1 :]
        calls.append(call(ABLATION, left_out + 1, answer_messages(question, rest, options.style)))
    calls += [call(REPEAT, r, full, options.seed + r) for r in range(1, options.repeats + 1)]
    if options.closed_book:
        calls.append(call(CLOSED_BOOK, 1, closed_book_messages(question, options.style)))
    return calls
