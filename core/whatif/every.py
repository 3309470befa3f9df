"""The same change for all questions of a run: an arm to be asked, and the run that it gives.

A re-ranker of your own is an arm as well. It gets each question with its passages and returns them in another
order, or fewer of them:

>>> def shortest_first(case):
...     return sorted(case.passages, key=lambda passage: len(passage.text))
>>> mine = Arm("shortest_first", "Shortest passage first", shortest_first)

Ask it with ``asked = core.pipeline.fill(run, LossesStep(arms=(mine,)), llm=llm)``; then
``Diagnosis(asked)["losses"].fix("shortest_first")`` says what it fixes and breaks, and ``run_of_arm(asked,
mine)`` is a run to compare with the other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from core.errors import InputError, check_ranges
from core.llm.prompts import STYLES, prompt_style
from core.losses.arms import ALONE, ARMS, AS_IT_IS, Arm, Case, Shown, own_titles
from core.losses.fixes import Fix
from core.losses.ladder import CHANGED, NONE
from core.losses.outcomes import CORRECT, UNJUDGED, judge_of
from core.losses.step import LossesStep, case_of
from core.pipeline.rows import OF_ANSWERS, AskedQuestion, questions_of
from core.run import Run
from core.socket import HARMS, HELPS, OPEN
from core.text.display import count, number, shorten
from core.text.strict import finite
from core.text.words import words

ORDERS: Mapping[str, str] = {
    "as_it_is": "As in the prompt",
    "retrieval": "By retrieval rank",
    "reversed": "Reversed",
}
ASKED_ANEW = AS_IT_IS  # the arm of another model than the run's
_MOST = 100
# What stays true of a question and of a passage whatever the answer is.
_OF_QUESTION = ["query_id", "question", "reference_answers", "n_gold", "kind", "language", "calibrates"]
_OF_PASSAGE = [
    "query_id",
    "passage_id",
    "title",
    "text",
    "retrieval_rank",
    "retrieval_score",
    "slot",
    "is_gold",
]


@dataclass(frozen=True, slots=True)
class RunChange:
    """What is different from the prompts that the questions of a run were answered with.

    Attributes
    ----------
    k : int or None
        The first k passages of the prompt, 1 to 100; None: all.
    order : str
        One of `ORDERS`.
    drop_below : float or None
        Passages with a lower retrieval score are left out, but for the best one of a question; a passage
        without a score stays.
    style : str or None
        Another prompt style.
    """

    k: int | None = None
    order: str = "as_it_is"
    drop_below: float | None = None
    style: str | None = None

    def __post_init__(self) -> None:
        if self.k is not None:
            check_ranges(self, {"k": (1, _MOST)})
        for name, value, known in (
            ("order", self.order, ORDERS),
            ("style", "short" if self.style is None else self.style, STYLES),
        ):
            if value not in tuple(known):
                raise InputError(f"{name} must be one of {', '.join(known)}, got {shorten(repr(value))}.")
        if self.drop_below is not None and finite(self.drop_below) is None:
            raise InputError(f"drop_below must be a number, got {shorten(repr(self.drop_below))}.")

    @property
    def title(self) -> str:
        """What is changed, in words; "" for nothing."""
        said = [
            f"no score below {self.drop_below:g}" if self.drop_below is not None else "",
            f"at most {count(self.k, 'passage')}" if self.k is not None else "",
            {"retrieval": "by retrieval rank", "reversed": "reversed"}.get(self.order, ""),
            f"prompt style {self.style}" if self.style is not None else "",
        ]
        text = ", ".join(filter(None, said))
        return text[:1].upper() + text[1:]

    def arm(self, run: Run) -> Arm:
        """Return the change as an arm for the questions of a run; the same change has the same name."""
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:8]
        columns = (
            run.passages[name] for name in ("query_id", "passage_id", "retrieval_rank", "retrieval_score")
        )
        found = {
            (query, passage): (rank, score) for query, passage, rank, score in zip(*columns, strict=True)
        }

        def make(case: Case) -> Sequence[Shown]:
            return self._made(case, [found.get((case.query_id, one.passage_id), (np.nan, np.nan))
                                     for one in case.passages])  # fmt: skip

        return Arm(f"change_{digest}", self.title or "Nothing changed", make, self.title, style=self.style)

    def _made(self, case: Case, ranked: Sequence[tuple[float, float]]) -> tuple[Shown, ...]:
        both = list(zip(case.passages, ranked, strict=True))
        if self.drop_below is not None:
            best = max((score for _, (_, score) in both if score == score), default=np.nan)
            both = [one for one in both if not one[1][1] < min(self.drop_below, best)]
        if self.k is not None:
            both = both[: self.k]
        if self.order == "retrieval":
            both.sort(key=lambda one: one[1][0])
        if self.order == "reversed":
            both.reverse()
        return tuple(one for one, _ in both)


def run_of_arm(run: Run, arm: str | Arm) -> Run:
    """Return the run that a system with the change of an arm would have given, to compare it with its parent.

    Answers are those of the arm; where it changes no prompt, those of the run stay (of the model that was
    asked, where that is another one). Passages are those of the arm's prompts, in their slots and with their
    retrieval ranks; a passage that was not retrieved has the rank after the last one. Everything that was
    measured of the old answers is gone, and so are questions that were not asked.

    Parameters
    ----------
    run : Run
        One whose step of losses has asked the arm.
    arm : str or Arm
        The arm or its name. Texts that an arm edits are known only with the arm itself, or for one of
        `core.losses.arms.ARMS`; ``as_it_is`` is the run asked again of another model.

    Raises
    ------
    InputError
        The run has no answers of such an arm.

    Notes
    -----
    A person's label stays with an answer in the same words. Where labels and reference answers of a question
    contradict each other, the references are left out: they would judge other answers wrongly. No calls.
    """
    name = arm if isinstance(arm, str) else arm.name
    rows = run["arms"]
    if name == ALONE or not rows["arm"].eq(name).any():
        raise InputError(f"The run has no answers of the arm {shorten(repr(name))}; ask it first.")
    known = arm if isinstance(arm, Arm) else next((one for one in ARMS if one.name == name), None)
    question = questions_of(run, ("arms", "gold"))
    queries, passages = [], []
    tried = rows.loc[rows["arm"].eq(name), "query_id"]
    for query_id in run.queries["query_id"][run.queries["query_id"].isin(tried)]:
        asked = question(query_id)
        of_arm = {row["arm"]: row for row in asked.filled["arms"] if row["repeat"] == 1}
        queries.append(_query(asked, of_arm[name], of_arm.get(AS_IT_IS)))
        passages += _passages(asked, of_arm[name], known)
    facts = run.manifest.get("steps", {}).get("losses", {})
    own = own_titles(facts).get(name, name)
    title = "As it is, another model" if name == AS_IT_IS else known.title if known is not None else own
    tables = {table: run[table].iloc[:0] for table in OF_ANSWERS}
    tables["gold"] = run["gold"][run["gold"]["query_id"].isin(tried)]
    tables |= {"queries": pd.DataFrame(queries), "passages": pd.DataFrame(passages, columns=_OF_PASSAGE)}
    return run.derive(_manifest(run, name, title, known, facts), **tables)


def _manifest(run: Run, name: str, title: str, arm: Arm | None, facts: Mapping[str, Any]) -> dict[str, Any]:
    model = facts.get("model") or run.manifest.get("model")
    note = f"Every question was asked again with one change: {title}."
    digest = hashlib.sha256(json.dumps([run.run_id, name, model], sort_keys=True).encode()).hexdigest()[:12]
    manifest: dict[str, Any] = {
        "run_id": digest,
        "name": f"{run.name.removesuffix(', losses')}, {title[:1].lower()}{title[1:]}",
        "complete": bool(facts.get("complete", True)),
        "steps": {},
        "cost": {},
        "model": model,
        "notes": [note, *run.manifest.get("notes", ())],
        "options": {**(run.manifest.get("options") or {}), "change": title},
    }
    if arm is not None and arm.style is not None:
        chosen, before = prompt_style(arm.style), run.manifest.get("prompt") or {}
        said = {part: getattr(chosen, part) for part in ("instruction", "closed_book", "template")}
        manifest["prompt"] = {**before, "style": arm.style, **said}
        manifest["options"]["style"] = arm.style
    return manifest


def _query(
    asked: AskedQuestion, row: Mapping[str, Any], as_it_is: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the row of a question with the answer of an arm, or the one that it leaves as it is."""
    query = asked.query
    found = {column: query[column] for column in _OF_QUESTION}
    source = row if row["prompt"] == CHANGED else as_it_is
    if source is None:
        kept = ("answer", "answer_status", "status_reason", "correct", "correct_by", "closed_book_answer",
                "prompt_tokens", "completion_tokens")  # fmt: skip
        return found | {column: query[column] for column in kept}
    columns = ("answer", "answer_status", "status_reason", "prompt_tokens", "completion_tokens")
    found |= {column: source[column] for column in columns}
    label = query["correct"]
    if not pd.isna(label) and isinstance(query["answer"], str):
        state = judge_of(query).state(found["answer"], found["answer_status"])
        if isinstance(found["answer"], str) and words(found["answer"]) == words(query["answer"]):
            found |= {"correct": state == CORRECT, "correct_by": query["correct_by"]}
        elif state == UNJUDGED:
            found["reference_answers"] = None
    return found


def _passages(asked: AskedQuestion, row: Mapping[str, Any], arm: Arm | None) -> list[dict[str, Any]]:
    """Return the passages of a prompt as rows of the table ``passages``."""
    own = {str(one["passage_id"]): one for one in asked.passages}
    if row["prompt"] == NONE or not row["passages"]:
        return [{name: one[name] for name in _OF_PASSAGE} for one in asked.passages]
    alone = [one for one in asked.filled["arms"] if one["arm"] == ALONE]
    made = tuple(arm.make(case_of(asked, alone)) or ()) if arm is not None else ()
    texts = {one.passage_id: one.text for one in made}
    gold = {one["passage_id"]: one for one in asked.filled["gold"]}
    last = max((one["retrieval_rank"] for one in own.values()), default=0.0)
    found = []
    for slot, passage_id in enumerate(row["passages"], start=1):
        if passage_id in own:
            one = {name: own[passage_id][name] for name in _OF_PASSAGE}
        else:
            last += 1
            told = gold.get(passage_id, {})
            one = dict.fromkeys(_OF_PASSAGE) | {
                "query_id": asked.query_id, "passage_id": passage_id, "title": told.get("title"),
                "text": told.get("text"), "retrieval_rank": last, "is_gold": True if told else None,
            }  # fmt: skip
        found.append(one | {"slot": slot, "text": texts.get(passage_id, one["text"])})
    return found


def step_for(change: RunChange, run: Run) -> LossesStep:
    """Return the step that asks all questions of a run with a change, and nothing else."""
    return LossesStep(arms=(change.arm(run),))


def arm_of(step: Any) -> Arm:
    """Return the arm that a step of `step_for` asks."""
    arm: Arm = step.arms[0]
    return arm


def said(arm: Arm, fix: Fix | None) -> list[str]:
    """Return in sentences what a change does to the answers of all questions, and how sure that is."""
    if fix is None or not fix.n:
        return [f"{arm.title}: no answer can be judged; references or labels are needed."]
    if not fix.asked:
        return [f"{arm.title}: no prompt is changed."]
    first = (
        f"{arm.title}: of {count(fix.n, 'question')} that are judged, {fix.fixed:,} became correct and "
        f"{fix.broken:,} stopped being correct; net {number(fix.net, '{:+d}')} (95 % interval "
        f"{number(fix.low, '{:+.0f}')} to {number(fix.high, '{:+.0f}')}), p = {fix.p_value:.2g} (exact "
        "McNemar test)."
    )
    told = {
        HELPS: "This change helps.",
        HARMS: "This change harms.",
    }.get(fix.verdict, "Chance alone could give this.")
    if fix.verdict == OPEN and fix.needed is not None:
        told += f" About {fix.needed:,} questions would tell."
    if fix.p_placebo == fix.p_placebo:
        told += (
            f" Against a change that should not matter, p = {fix.p_placebo:.2g}; over all changes that were "
            f"tried, p = {fix.p_adjusted:.2g}."
        )
    return [first, told]
