"""Runs for tests of *losses*: hand-made questions, and a reader that loses each answer at a known stage."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from core.analyses import Analyses
from core.diagnosis import Diagnosis
from core.llm.prompts import answer_messages
from core.llm.types import Completion, Request
from core.losses import ladder as stages
from core.losses.analysis import Losses
from core.losses.arms import ARMS
from core.losses.diagnostic import LOSSES
from core.losses.fixes import fixes
from core.losses.outcomes import BY_REFERENCES
from core.losses.step import LossesStep
from core.pipeline.steps import fill, model_facts
from core.run import Run
from core.socket import Diagnostic
from tests.scripted import ScriptedLLM


@dataclass
class Asked:
    """One question: passages of its prompt as (id, text), which of them are gold, and what else is known."""

    passages: list
    gold: tuple = ()
    missing: dict = field(default_factory=dict)  # gold that was not retrieved: text by id, "" where unknown
    evidence: dict = field(default_factory=dict)
    question: str = ""
    references: tuple | None = ("Unwin",)
    answer: str | None = None
    closed_book: str | None = None
    correct: bool | None = None
    n_gold: int | None = None
    marks: bool = True


def run_of(asked, llm=None, **manifest) -> Run:
    """A run of these questions; answers that are not given are asked of the model."""
    queries, passages, gold = [], [], []
    for i, one in enumerate(asked, start=1):
        query_id, question = f"q{i}", one.question or f"Who built bridge {i}?"
        answer = one.answer
        if answer is None and llm is not None:
            shown = [(place, "", text) for place, (_, text) in enumerate(one.passages, start=1)]
            answer = llm.generate([Request(answer_messages(question, shown), max_tokens=64)])[0].text
        known = len(one.gold) + len(one.missing)
        queries.append(
            {
                "query_id": query_id, "question": question, "answer": answer,
                "answer_status": None if answer is None else status(answer),
                "closed_book_answer": one.closed_book,
                "reference_answers": None if one.references is None else list(one.references),
                "correct": one.correct, "n_gold": one.n_gold if one.n_gold is not None else known or None,
            }
        )  # fmt: skip
        passages += [
            {
                "query_id": query_id, "passage_id": name, "text": text, "retrieval_rank": float(slot), "slot": slot,
                "is_gold": name in one.gold if one.marks else None,
            }
            for slot, (name, text) in enumerate(one.passages, start=1)
        ]  # fmt: skip
        gold += [
            {"query_id": query_id, "passage_id": name, "text": one.missing.get(name) or None, "evidence": one.evidence.get(name)}
            for name in (*one.gold, *one.missing)
        ]  # fmt: skip
    facts = {"source": "live", "run_id": "r", "prompt": {"style": "short", "max_tokens": 64}}
    if llm is not None:
        facts["model"] = model_facts(llm)
    tables = {"queries": pd.DataFrame(queries)}
    tables |= {"passages": pd.DataFrame(passages)} if passages else {}
    tables |= {"gold": pd.DataFrame(gold)} if gold else {}
    return Run.create(facts | manifest, **tables)


def status(answer: str) -> str:
    """The status of the answers that these tests use, by hand."""
    if not answer.strip():
        return "empty"
    return "abstained" if answer in ("I don't know.", "我不知道。", "Tôi không biết.") else "answered"


def tried(run, llm, **options) -> Run:
    """The run after the step."""
    return fill(run, LossesStep(**options), llm=llm)


def losses_of(run):
    """The analysis of a run."""
    return Diagnosis(run)["losses"]


def stage_of(asked, llm, **options):
    """The stage of a single question."""
    return losses_of(tried(run_of([asked], llm), llm, **options)).queries["stage"].iloc[0]


def rows_of(run) -> dict:
    """The rows of the first question, by arm."""
    own = run["arms"][run["arms"]["query_id"].eq("q1") & run["arms"]["repeat"].eq(1)]
    return {row["arm"]: row for row in own.to_dict("records")}


def blocks(request) -> list:
    """The passages of a prompt, as texts."""
    return [text.split("] ", 1)[1] for text in request.messages[0].content.split("\n\n")[1:-1]]


def question_in(request) -> str:
    """The question of a prompt."""
    return request.messages[0].content.split("Question: ")[-1]


# --- a reader with known limits ---

SPOKEN = "Unwin built bridge"


@dataclass(frozen=True)
class Reader:
    """What the reader can do with one question: it answers rightly where all of this holds."""

    knows: bool = False
    reads: bool = True
    reach: int = 99  # gold must be among the first so many passages
    others: int = 99  # so many passages besides gold it bears
    longest: int = 999  # words of a gold passage that it can read
    order: tuple = ()  # the passages besides gold must come in this order, where there are any
    needs: int = 1  # gold passages that it needs

    def answers(self, texts) -> bool:
        if self.knows:
            return True
        gold = [i for i, text in enumerate(texts) if SPOKEN in text]
        others = [text for text in texts if SPOKEN not in text]
        return (
            self.reads
            and len(gold) >= self.needs
            and max(gold) < self.reach
            and len(others) <= self.others
            and all(len(texts[i].split()) <= self.longest for i in gold)
            and (not self.order or not others or tuple(others) == self.order)
        )


def reading(readers, wrong_rate=0.0):
    """A model of these readers, by question; each call errs with a probability, of its prompt's own."""

    def rule(request):
        texts, question = blocks(request), question_in(request)
        right = readers[question].answers(texts)
        drawn = zlib.crc32(f"{request.seed}{request.messages[0].content}".encode()) / 2**32
        return "It was Unwin." if right != (drawn < wrong_rate) else "It was Parker."

    return ScriptedLLM(rule)


def gold_text(i):
    """A gold passage of three sentences; the first has the evidence."""
    return f"{SPOKEN} {i} in 1901. " + "Its stones came by boat from a quarry in the north. " * 2


def other_texts(i, n):
    """Passages that hold nothing of use."""
    return [(f"o{j}", f"Note {j} on bridge {i} tells of coffee, tea and weather.") for j in range(1, n + 1)]


def planted(n, seed=0):
    """Questions with a stage each, their readers by question, and the stages."""
    rng = np.random.default_rng(seed)
    names = [one for one in stages.STAGES if one != stages.DOUBTFUL]
    asked, readers, wanted = [], {}, []
    for i in range(1, n + 1):
        one, reader = question_lost(names[i % len(names)], i, rng)
        one.question = f"Who built bridge {i}?"
        one.closed_book = "It was Unwin." if reader.knows else "It was Parker."
        asked.append(one)
        readers[one.question] = reader
        wanted.append(names[i % len(names)])
    return asked, readers, wanted


def question_lost(stage, i, rng):
    """A question whose answer is lost at this stage, or kept, and its reader."""
    k = int(rng.integers(3, 7))
    others = other_texts(i, k - 1)
    place = int(rng.integers(1, k)) if stage == stages.PLACE else int(rng.integers(0, k))
    text, evidence = gold_text(i), {"g": [f"{SPOKEN} {i}"]}
    retrieved = Asked([*others[:place], ("g", text), *others[place:]], ("g",), evidence=evidence)
    asked = {
        stages.ABSENT: Asked(others, n_gold=0),
        stages.RETRIEVAL: Asked(others, missing={"g": text}),
        stages.UNKNOWN: Asked(others, missing={"g": ""}),
        stages.UNSPLIT: Asked([others[0], ("g", text)], ("g",)),  # of one other there is no other order
    }
    reader = {
        stages.PLACE: Reader(reach=int(rng.integers(1, max(place, 1) + 1))),
        stages.DISTRACTED: Reader(others=int(rng.integers(0, k - 1))),
        stages.BURIED: Reader(others=0, longest=12),
        stages.READING: Reader(reads=False),
        stages.WITHOUT: Reader(knows=True),
        stages.LUCK: Reader(order=tuple(text for _, text in others)),
    }
    return asked.get(stage, retrieved), reader.get(stage, Reader())


# --- made-up outcomes ---


def made(base, arms, placebo=None, changed=None, **more) -> Losses:
    """The analysis of outcomes alone: of the run, of each arm and of the placebo; where arms change the prompt."""
    n, nothing = len(base), np.full(len(base), np.nan)
    base, placebo = np.asarray(base, float), nothing if placebo is None else np.asarray(placebo, float)
    arms = {name: np.asarray(after, float) for name, after in arms.items()}
    changed = {name: np.full(n, True) for name in arms} | (changed or {})
    prompts = {
        name: np.where(where, "changed", "unchanged").astype(object) for name, where in changed.items()
    }
    none = np.full(n, False)
    doubtful, absent = more.pop("doubtful", none), more.pop("absent", none)
    stage = stages.stages(base, arms, prompts, doubtful, absent, nothing, placebo)
    ids = [f"q{i}" for i in range(n)]
    said = {1.0: "correct", 0.0: "incorrect"}
    state = [said.get(value, "not judged") for value in base.tolist()]
    queries = pd.DataFrame({"query_id": ids, "question": "?", "state": state, "stage": stage, "gold_by": "labelled", "n_fixing": 0})  # fmt: skip
    rows = [
        (query_id, name, prompt, said.get(value, "not judged"))
        for name, after in arms.items()
        for query_id, prompt, value in zip(ids, prompts[name], after.tolist(), strict=True)
    ]
    answers = pd.DataFrame(rows, columns=["query_id", "arm", "prompt", "state"])
    known = not np.isnan(placebo).all()
    return Losses(
        queries,
        answers,
        stages.ladder(stage, base, prompts, placebo),
        fixes(base, arms, changed, placebo if known else None, None, {arm.name: arm.beyond for arm in ARMS}),
        fixes(base, {"placebo": placebo}, {"placebo": np.full(n, True)})[0] if known else None,
        None,
        {arm.name: arm.title for arm in ARMS},
        BY_REFERENCES,
        **{"n_tried": n if arms else 0, "calls": n * len(arms), "model": "", "missed_at_most": 0, "n_known_evidence": 0, "to_try": (7 * n, None)} | more,
    )  # fmt: skip


def told(losses, others=()):
    """All findings of a run with this analysis, tests corrected and advice in the words of what was tried.

    ``others`` are further findings, of another diagnostic.
    """
    given = replace(LOSSES, analyse=lambda _: losses, needs=(), reads=(), settings=())
    other = Diagnostic("other", "Other", "?", lambda _: None, lambda _: (), lambda _: others)
    return Analyses(run_of([Asked([])]), None, (given, other)).findings()


def answer_of(text, error=None) -> Completion:
    """A completion, or a failed one."""
    return Completion(text, "error" if error else "stop", 5, 2, 0.0, error=error)
