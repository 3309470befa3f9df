"""The step that measures answers with random subsets of their passages, and in other orders."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from core.arrays import Bools, Floats, Ints
from core.attribution.attribute import MOST_AFTER, N_TEST, Game, n_placed, n_swapped
from core.attribution.measured import (
    RANGES,
    Plan,
    ablation_id,
    kept_text,
    likeness,
    near_duplicates,
    own_claims,
    play,
    recorded,
    same_support,
)
from core.attribution.methods import METHODS, SHAPLEY
from core.errors import BackendError, check_ranges
from core.llm.embeddings import shared_embedder
from core.llm.prompts import answer_messages, prompt_style
from core.llm.types import Message, Request
from core.pipeline.asking import Asker
from core.pipeline.rows import AskedQuestion, Rows, prompt_of, questions_of
from core.pipeline.sampling import sampled
from core.pipeline.steps import Call, Option, Step, StepPlan, StepWork
from core.run import Run
from core.text import answer_status
from core.text.display import count

_CHARACTERS = 4  # of a token, roughly
_READ = ("ablations", "ablated_claims", "claims", "support")
_Row = dict[str, Any]


@dataclass(frozen=True)
class AttributionStep(Step):
    """Measure the answer with random subsets of its passages.

    ``masks``, 32 to 1,024: the most subsets that the surrogate is fitted to; they are drawn 32, then 16 at a
    time, until the order of the first three passages is settled. From 48 on pairs are looked for. ``shapley``
    measures as many along random orders of arrival. ``place`` measures 4 (k + 1) subsets or more in other
    orders, and four swaps of neighbours. ``seed`` is that of all masks.

    Where the model gives the log-probability of a given answer, that is the score, and the claims of the
    answer, where it has two or more, are read under the same masks. Else the answer is generated under each
    mask and compared by ROUGE-L; the held-out masks are then asked once more under another seed. Prompt
    style, max answer tokens and seed are those of the run's own answers.

    Cost for a question with k passages: at most ``masks`` + 32 held-out ones + 9 calls (2^k where that is no
    more than ``masks``), as many as ``masks`` again with ``shapley``, at least 4 (k + 1) + 4 with ``place``,
    and a few where passages are near-duplicates. `InputError` for a value out of its range.
    """

    name: ClassVar[str] = "attribution"
    title: ClassVar[str] = "Measure random subsets of the passages"
    noun: ClassVar[str] = "question"
    fills: ClassVar[Mapping[str, tuple[str, ...]]] = {"ablations": (), "ablated_claims": ()}
    needs_llm = True
    takes_function: ClassVar[bool] = True

    masks: Annotated[
        int,
        Option(
            "--masks",
            "Most random subsets of passages for each answer; pairs from 48 on.",
            title="Subsets of passages",
        ),
    ] = 64
    shapley: Annotated[
        bool, Option("--shapley", "Share the credit, too: as many subsets again.", title="Shapley values")
    ] = False
    place: Annotated[
        bool,
        Option("--place", "The passages in other orders, too.", title="Place in the prompt"),
    ] = False
    seed: Annotated[int, Option("--mask-seed", "Seed of the subsets.")] = 0

    def __post_init__(self) -> None:
        check_ranges(self, RANGES)

    def open(self, run: Run, asker: Asker) -> StepWork:
        """Return the step at work, with the prompt that the run was answered with."""
        return _Work(Plan(self.masks, self.shapley, self.place, self.seed), run, asker)


class _Work(StepWork):
    apart = "rows"

    def __init__(self, plan: Plan, run: Run, asker: Asker) -> None:
        self._style, self._max_tokens, self._seed = prompt_of(run)
        llm = asker.llm
        self._reads = bool(llm is not None and llm.capabilities.answer_logprob)
        self.settings = {**asdict(plan), "style": self._style, "by": "logprob" if self._reads else "rouge"}
        self.parallel = not self._reads
        self._plan, self._asker = plan, asker
        self._question = questions_of(run, _READ)
        self._without_groups = ""

    def todo(self, run: Run) -> Sequence[str]:
        question = questions_of(run, _READ)
        return [one for one in run.queries["query_id"] if self._lacks(question(one))]

    def _lacks(self, question: AskedQuestion) -> bool:
        if not _answer(question) or not question.passages:
            return False
        rows = _rows(question)
        if not rows or any(row["answer_status"] == "error" for row in rows.values()):
            return True
        read = {(row["ablation_id"], row["claim_id"]) for row in question.filled["ablated_claims"]}
        claims = self._claims(question)
        if any((key, claim) not in read for key in rows if ":" not in key for claim in claims):
            return True
        game, missing = recorded(len(question.passages), _answer(question), rows)
        play(game, self._plan)
        return bool(missing)

    def work(self, ids: Sequence[str]) -> Rows:
        rows: list[_Row] = []
        claims: list[_Row] = []
        for question in map(self._question, ids):
            found, of_claims = self._measured(question)
            rows += found
            claims += of_claims
        return {"ablations": rows, "ablated_claims": claims}

    def _measured(self, question: AskedQuestion) -> tuple[list[_Row], list[_Row]]:
        """Play the game with the model, and return every row of the question."""
        rows = {key: dict(row) for key, row in _rows(question).items() if row["answer_status"] != "error"}
        texts = self._claims(question)
        claims = {
            (row["ablation_id"], row["claim_id"]): dict(row) for row in question.filled["ablated_claims"]
        }
        answer, k = _answer(question), len(question.passages)

        def score(masks: Bools, orders: Ints | None = None) -> Floats:
            ids = [ablation_id(mask, None if orders is None else orders[i]) for i, mask in enumerate(masks)]
            wanted = {} if orders is not None else texts
            new = [
                i
                for i, key in enumerate(ids)
                if key not in rows or any((key, one) not in claims for one in wanted)
            ]
            prompts = [self._prompt(question, masks[i], None if orders is None else orders[i]) for i in new]
            made = [self._row(question, ids[i], masks[i], None if orders is None else orders[i]) for i in new]
            if self._reads:
                claims.update(self._read(prompts, made, answer, wanted))
            else:
                self._ask(prompts, made, "answer")
            rows.update(zip((ids[i] for i in new), made, strict=True))
            return np.array([likeness(answer, rows[key]) for key in ids], dtype=np.float64)

        def again(masks: Bools) -> Floats:
            new = [mask for mask in masks if rows[kept_text(mask)].get("again") is None]
            self._ask(
                [self._prompt(question, mask) for mask in new],
                [rows[kept_text(mask)] for mask in new],
                "again",
            )
            return np.full(len(masks), math.nan)  # read from the rows, by the analysis

        unit = 1.0
        if self._reads:
            score(np.ones((1, k), dtype=bool))
            unit = float(rows["1" * k].get("n_tokens") or 1)
        groups = self._groups(question)
        play(Game(k, score, unit, score, None if self._reads else again), self._plan, [*groups])
        for group, near in groups.items():
            rows[kept_text(~np.isin(np.arange(k), group))]["near_duplicates"] = near
        return list(rows.values()), [row for row in claims.values() if row["claim_id"] in texts]

    def _groups(self, question: AskedQuestion) -> dict[tuple[int, ...], bool]:
        """Return what to leave out together: near-duplicates, True, and passages of the same support, False.

        No near-duplicates, and a note, where texts cannot be embedded.
        """
        ids = [one["passage_id"] for one in question.passages]
        found = dict.fromkeys(same_support(ids, question.filled["support"]), False)
        texts = [one["text"] or "" for one in question.passages]
        try:
            found |= dict.fromkeys(near_duplicates(texts, shared_embedder().embed), True)
        except BackendError as error:
            self._without_groups = f"Near-duplicates were not looked for: {error}"
        return {group: near for group, near in found.items() if len(group) < len(ids)}

    def _claims(self, question: AskedQuestion) -> dict[str, str]:
        """Return the claims to read; none where answers are generated."""
        if not self._reads:
            return {}
        return own_claims(question.filled["claims"])

    def _row(self, question: AskedQuestion, key: str, mask: Bools, order: Ints | None) -> _Row:
        ids = [one["passage_id"] for one in question.passages]
        return {
            "query_id": question.query_id, "ablation_id": key, "kept": kept_text(mask),
            "order": None if order is None else [ids[i] for i in order],
            "near_duplicates": None, "answer": None, "answer_status": None, "again": None, "logprob": None,
            "n_tokens": None,
        }  # fmt: skip

    def _prompt(self, question: AskedQuestion, mask: Bools, order: Ints | None = None) -> tuple[Message, ...]:
        # Labels are places, so that nothing but the order of the texts changes; left-out ones leave a gap.
        passages = question.numbered
        turn = range(len(passages)) if order is None else order.tolist()
        shown = [(place, *passages[i][1:]) for place, i in enumerate(turn, start=1) if mask[i]]
        if prompt_style(self._style).apart:  # a function knows its passages by their own numbers
            shown = [passages[i] for i in turn if mask[i]]
        return answer_messages(str(question.query["question"]), shown, self._style)

    def _read(
        self,
        prompts: Sequence[tuple[Message, ...]],
        made: Sequence[_Row],
        answer: str,
        claims: Mapping[str, str],
    ) -> dict[tuple[str, str], _Row]:
        """Put log-probabilities of the answer into the rows; return those of its claims."""
        texts = [answer, *claims.values()]
        # In one call: what prompts begin with is read once, and all texts after one prompt together.
        pairs = [(prompt, text) for prompt in prompts for text in texts]
        read = iter(self._asker.score(*zip(*pairs, strict=True), at_once=True)) if pairs else iter(())
        found = {}
        for row in made:
            tokens = next(read)
            logprob = _total(tokens)
            row |= {
                "logprob": logprob,
                "n_tokens": len(tokens) if tokens else None,
                "answer_status": "error" if logprob is None else "answered",
            }
            for claim_id in claims:
                logprob = _total(next(read))
                key = {name: row[name] for name in ("query_id", "ablation_id")}
                found[row["ablation_id"], claim_id] = {**key, "claim_id": claim_id, "logprob": logprob}
        return found

    def _ask(self, prompts: Sequence[tuple[Message, ...]], made: Sequence[_Row], column: str) -> None:
        """Generate answers into a column of the rows."""
        stop, seed = prompt_style(self._style).stop, self._seed + (column == "again")
        requests = [Request(one, seed=seed, max_tokens=self._max_tokens, stop=stop) for one in prompts]
        for row, completion in zip(made, self._asker.ask(requests) if requests else (), strict=True):
            row[column] = sampled(completion)
            if column == "answer":
                row["answer_status"] = "error" if row["answer"] is None else answer_status(row["answer"])

    def tell(self, ids: Sequence[str]) -> str:
        return self._without_groups

    def hear(self, ids: Sequence[str], told: str) -> None:
        self._without_groups = told or self._without_groups

    def plan(self, ids: Sequence[str]) -> StepPlan:
        calls = tokens = 0
        timed: list[Call] = []
        for question in map(self._question, ids):
            n = self._most(len(question.passages), 1 + len(self._claims(question)))
            whole = self._prompt(question, np.ones(len(question.passages), dtype=bool))
            calls += n
            tokens += n * sum(len(turn.content) for turn in whole) // _CHARACTERS // 2
            if len(timed) < 2:
                timed.append(
                    Call(
                        "read",
                        len(timed) + 1,
                        Request(whole, max_tokens=1 if self._reads else self._max_tokens),
                    )
                )
        note = (
            "at most, and a few more where passages are near-duplicates: no more subsets once the order of "
            "the first three passages is settled"
        )
        return StepPlan((), calls, tokens, tuple(timed), notes=(note,))

    def _most(self, k: int, texts: int) -> int:
        """Return the most calls of a question with so many passages, and texts to read: answer and claims."""
        plan = self._plan
        every = 2**k <= plan.masks
        n = (
            2**k * (1 if self._reads else 2)
            if every
            else plan.masks + N_TEST * (1 if self._reads else 2) + MOST_AFTER + 2
        )
        if plan.shapley and not every:
            n += len(METHODS[SHAPLEY].masks(k, plan.masks, plan.seed))
        n *= texts
        if plan.place and k > 1:
            n += n_placed(k) + n_swapped(k)
        return n

    def facts(self, run: Run) -> Mapping[str, Any]:
        rows = run["ablations"]
        lost = int(rows["answer_status"].eq("error").sum())
        notes = [self._without_groups] if self._without_groups else []
        if lost:
            notes.append(f"{count(lost, 'subset')} of passages could not be measured; run the step again.")
        return {"notes": notes, "by": self.settings["by"]}


def _total(tokens: Sequence[float] | None) -> float | None:
    """Return the log-probability of a text; None where it was not read, or is impossible."""
    total = -math.inf if tokens is None else min(0.0, sum(tokens))
    return total if math.isfinite(total) else None


def _answer(question: AskedQuestion) -> str:
    """Return the answer to explain; none where it is empty, failed, or a passage has no text."""
    query = question.query
    if query["answer_status"] in ("error", "empty") or not all(
        (one["text"] or "").strip() for one in question.passages
    ):
        return ""
    return (query["answer"] or "").strip()


def _rows(question: AskedQuestion) -> dict[str, Mapping[str, Any]]:
    return {row["ablation_id"]: row for row in question.filled["ablations"]}
