"""One question asked again with a change: what it costs, the answers, and how far noise alone goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from core.errors import InputError
from core.llm.prompts import DEFAULT_STYLE, STYLES, answer_messages, closed_book_messages, prompt_style
from core.llm.types import Request
from core.losses.analysis import Losses
from core.losses.arms import Shown
from core.losses.outcomes import CORRECT, FAILED, STATES, SUPPORTED_FROM, UNJUDGED, judge_of, state_by_claims
from core.losses.step import claims_options, shown_of, verified
from core.pipeline.asking import Asker
from core.pipeline.rows import AskedQuestion, prompt_of
from core.pipeline.sampling import sampled
from core.pipeline.steps import model_facts
from core.rows import dicts_of, rows_of
from core.run import Run
from core.text import answer_status
from core.text.display import count
from core.text.words import words
from core.whatif.change import Change

REPEATS = 3
MOST_REPEATS = 20
_WORDS_TO_TOKENS = 1.4  # of English text, where no prompt of the run was counted


@dataclass(frozen=True, slots=True)
class Cost:
    """What asking costs at most: calls, prompt tokens, and seconds where the run has timed this model."""

    calls: int
    tokens: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Version:
    """A change that was asked, and what came of it.

    ``answer`` and its ``status`` are of the first call, ``state`` is one of `core.losses.outcomes.STATES`.
    ``again`` are the answers to the same prompt under other seeds; ``own`` those to the run's own prompt: the
    run's answer (of this model) and then its repeats; None for a failed call. ``own_states`` and
    ``again_states`` judge them alike. ``claims`` are those of the answer, each with the best support by a
    passage of its prompt, None where there is no judgement. ``said`` is the change in words, ``before`` the
    run's own answer.
    """

    query_id: str
    change: Change
    said: str
    model: str
    before: str | None
    answer: str | None
    status: str
    state: str
    again: tuple[str | None, ...] = ()
    again_states: tuple[str, ...] = ()
    own: tuple[str | None, ...] = ()
    own_states: tuple[str, ...] = ()
    claims: tuple[tuple[str, float | None], ...] = ()
    problem: str = ""
    tokens: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the version as plain JSON."""
        return {**asdict(self), "change": self.change.to_dict()}


def cost(run: Run, query_id: str, change: Change, repeats: int = REPEATS, *, other: bool = False) -> Cost:
    """Return what `ask` costs at most; ``other``: another model than the run's answers.

    Tokens are scaled from those of the run's own prompt, seconds from its time. No calls.
    """
    question = _question(run, query_id)
    style = _style(run)
    own = answer_messages(str(question.query["question"]), question.numbered, style)
    new = _messages(question, change, style)
    letters, changed = (sum(len(turn.content) for turn in turns) for turns in (own, new))
    known, latency = question.query["prompt_tokens"], question.query["latency"]
    of_own = known or _WORDS_TO_TOKENS * sum(len(turn.content.split()) for turn in own)
    per_letter = of_own / max(1, letters)
    n_own = repeats + 1 if other else max(0, repeats - len(_kept(question)))
    tokens = per_letter * (changed * (repeats + 1) + letters * n_own)
    seconds = None if other or not latency else latency * tokens / max(1.0, of_own)
    return Cost(repeats + 1 + n_own, round(tokens), seconds)


def ask(run: Run, query_id: str, change: Change, asker: Asker, repeats: int = REPEATS) -> Version:
    """Ask a question with a change, and the prompts of both sides again to know how far noise goes.

    Repeats of the run's own prompt that the run has count; others are asked for, and so are all of them of a
    model that did not answer the run. Claims are extracted by rules and verified without a language model.

    Parameters
    ----------
    run : Run
        One with the texts of the question's passages.
    query_id : str
        The question.
    change : Change
        What is different.
    asker : Asker
        Calls the model: the run's own or another.
    repeats : int
        Further calls of each prompt under other seeds, 0 to 20.

    Raises
    ------
    InputError
        There is no such question, the change does not fit it, or ``repeats`` is out of range.
    BackendError, Cancelled
        As the model raises them.

    Notes
    -----
    Costs ``repeats`` + 1 calls, and up to as many of the run's own prompt (`cost`).
    """
    if isinstance(repeats, bool) or not 0 <= repeats <= MOST_REPEATS:
        raise InputError(f"repeats must be a whole number from 0 to {MOST_REPEATS}, got {repeats!r}.")
    question, style = _question(run, query_id), _style(run)
    _, limit, seed = prompt_of(run)

    def requests(messages: Any, style: str, temperature: float, seeds: Sequence[int]) -> list[Request]:
        stop = prompt_style(style).stop
        return [
            Request(messages, temperature=temperature, seed=one, max_tokens=limit, stop=stop) for one in seeds
        ]

    seeds = [seed + i for i in range(repeats + 1)]
    new = requests(_messages(question, change, style), change.style or style, change.temperature, seeds)
    assert asker.llm is not None
    other = (run.manifest.get("model") or {}) != model_facts(asker.llm)
    kept = [] if other else [question.query["answer"], *_kept(question)][: repeats + 1]
    own_prompt = answer_messages(str(question.query["question"]), question.numbered, style)
    own = requests(own_prompt, style, 0.0, seeds[len(kept) :])
    done = asker.ask([*new, *own])
    answers = [sampled(one) for one in done]
    mine, theirs = answers[: len(new)], [*kept, *answers[len(new) :]]
    shown = change.apply(shown_of(question))
    answer = mine[0]
    status = "error" if answer is None else answer_status(answer)
    claims = _claims(run, question, change, answer, shown) if answer and status == "answered" else ()
    judge = judge_of(question.query)

    def state(text: str | None) -> str:
        return judge.state(text, None if text is None else answer_status(text))

    known = [support for _, support in claims if support is not None]
    by_claims = state_by_claims(status, min(known) if known else None)
    return Version(
        query_id, change, change.words(shown_of(question)), asker.llm.name, question.query["answer"], answer,
        status, state(answer) if judge.references or judge.label is not None else by_claims,
        tuple(mine[1:]), tuple(map(state, mine[1:])), tuple(theirs), tuple(map(state, theirs)), claims,
        done[0].error or "", done[0].prompt_tokens,
    )  # fmt: skip


def noise(version: Version) -> tuple[str, ...]:
    """Return in sentences how often both prompts give this answer again, and what that says of the change.

    >>> one = Version("q", Change(), "", "m", "1903", "1931", "answered", "incorrect", ("1931",),
    ...               ("incorrect",), ("1903", "1931"), ("correct", "incorrect"))
    >>> for sentence in noise(one): print(sentence)
    1 of 1 repeat of the changed prompt gives this answer again.
    1 of 1 repeat of the run's own prompt gives this answer too.
    So your change need not be the reason: the run's own prompt can give this answer.
    """
    if version.answer is None:
        return ()
    n_again, n_own = (
        sum(_same(version.answer, one) for one in those) for those in (version.again, version.own[1:])
    )
    said = [
        _repeats(n_again, len(version.again), "the changed prompt", "again"),
        _repeats(n_own, len(version.own[1:]), "the run's own prompt", "too"),
    ]
    first = version.own[0] if version.own else None
    if not version.again or len(version.own) < 2:
        said.append("Without repeats of both prompts nothing tells an effect of your change from noise.")
    elif _same(version.answer, first):
        said.append("The answer is the one that the run's own prompt gives.")
    elif n_own:
        said.append("So your change need not be the reason: the run's own prompt can give this answer.")
    elif n_again < len(version.again):
        said.append("The answer changes from call to call: ask again with more repeats.")
    else:
        said.append("No repeat of the run's own prompt gives it: the difference is larger than the noise.")
    return tuple(filter(None, said))


def counted(version: Version) -> str:
    """Return how many answers to each prompt are correct; "" where they cannot be judged."""
    mine = [version.state, *version.again_states]
    sides = [[one for one in side if one not in (UNJUDGED, FAILED)] for side in (mine, version.own_states)]
    if not version.again or not all(sides):
        return ""
    a, b = ([sum(one == CORRECT for one in side), len(side)] for side in sides)
    return f"Correct: {a[0]} of {a[1]} answers to the changed prompt, {b[0]} of {b[1]} to the run's own."


def by_any_change(losses: Losses | None) -> str:
    """Return what any change of a prompt does in this run, by its placebo; "" where it was not asked."""
    placebo = None if losses is None else losses.placebo
    if placebo is None or not placebo.asked:
        return ""
    flipped = placebo.fixed + placebo.broken
    return (
        "A change that should not matter moves answers, too: the passages without the evidence in another "
        f"order turn {flipped:,} of {count(placebo.asked, 'answer')} of this run from correct to "
        "incorrect or back."
    )


def as_version(value: Mapping[str, Any], change: Change) -> Version:
    """Return the version that plain JSON stands for; TypeError or ValueError for anything else."""
    texts = ("query_id", "said", "model", "status", "state", "problem")
    if not all(isinstance(value[name], str) for name in texts):
        raise TypeError("a text is missing")
    found: dict[str, Any] = {name: value[name] for name in texts}
    found |= {name: _answer(value[name]) for name in ("before", "answer")}
    found |= {name: tuple(map(_answer, value[name])) for name in ("again", "own")}
    found |= {name: tuple(map(_state, value[name])) for name in ("again_states", "own_states")}
    claims = tuple((str(text), None if p is None else float(p)) for text, p in value["claims"])
    return Version(change=change, claims=claims, tokens=int(value["tokens"]), **found)


def _answer(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError("an answer is no text")
    return value


def _state(value: Any) -> str:
    if value not in STATES:
        raise ValueError("a state is none")
    return str(value)


def _repeats(n: int, of: int, prompt: str, how: str) -> str:
    if not of:
        return ""
    repeats = count(of, "repeat")
    return f"{n:,} of {repeats} of {prompt} {'gives' if n == 1 else 'give'} this answer {how}."


def _same(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and words(one) == words(other)


def _question(run: Run, query_id: str) -> AskedQuestion:
    if not run.queries["query_id"].eq(query_id).any():
        raise InputError(f"The run has no question {query_id!r}.")
    tables = {name: rows_of(run[name], query_id) for name in ("queries", "passages", "repeats")}
    own = {name: dicts_of(frame)(query_id) for name, frame in tables.items() if name != "passages"}
    ordered = tables["passages"].sort_values(["slot", "retrieval_rank"], kind="stable")
    return AskedQuestion(
        query_id, own["queries"][0], dicts_of(ordered)(query_id), {"repeats": own["repeats"]}
    )


def passages_of(run: Run, query_id: str) -> tuple[Shown, ...]:
    """Return the passages of a question's prompt, in its order; InputError for an unknown question."""
    return shown_of(_question(run, query_id))


def _kept(question: AskedQuestion) -> list[str | None]:
    """Return the answers of the run's own repeats, in their order."""
    rows = sorted(question.filled["repeats"], key=lambda row: row["repeat"])
    return [row["answer"] for row in rows if row["answer_status"] != "error"]


def _style(run: Run) -> str:
    style = prompt_of(run)[0]
    return style if style in STYLES else DEFAULT_STYLE  # a function's own prompt is not known


def _messages(question: AskedQuestion, change: Change, style: str) -> Any:
    shown = change.apply(shown_of(question))
    asked, chosen = change.question or str(question.query["question"]), change.style or style
    if not shown:
        return closed_book_messages(asked, chosen)
    return answer_messages(asked, [(i, one.title, one.text) for i, one in enumerate(shown, start=1)], chosen)


def _claims(
    run: Run, question: AskedQuestion, change: Change, answer: str, shown: Sequence[Shown]
) -> tuple[tuple[str, float | None], ...]:
    """Return the claims of an answer and the best support of each by the passages of its prompt."""
    asked = change.question or str(question.query["question"])
    judged = verified([(question.query_id, asked, answer, shown)], claims_options(run))
    best = judged["support"].groupby("claim_id", sort=False)["probability"].max()
    claims = judged["claims"]
    found = []
    for claim_id, text in zip(claims["claim_id"], claims["text"], strict=True):
        support = float(best.get(claim_id, np.nan))
        found.append((str(text), None if np.isnan(support) else support))
    return tuple(found)


def is_supported(support: float | None) -> bool | None:
    """Tell whether a claim counts as supported; None where there is no judgement."""
    return None if support is None else support >= SUPPORTED_FROM
