"""Where the answers of a run are lost, and what each fix that was tried brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.analyses import Analyses
from core.arrays import Floats
from core.losses import ladder as ladders
from core.losses.arms import AGAIN, ALONE, ARMS, AS_IT_IS, PLACEBO, own_titles
from core.losses.fixes import Fix, fixes
from core.losses.ladder import CHANGED, NONE, UNCHANGED
from core.losses.outcomes import (
    ABSTAINED,
    BY_CLAIMS,
    BY_REFERENCES,
    CORRECT,
    FAILED,
    INCORRECT,
    UNJUDGED,
    Judge,
    Outcome,
    judge_of,
    state_by_claims,
    success,
)
from core.run import Run
from core.text.abstention import answer_status
from core.text.matching import labelled, options

_MEASURES = (PLACEBO, AGAIN, AS_IT_IS, ALONE)  # they fix nothing
_TITLES = {arm.name: arm.title for arm in ARMS} | {ALONE: "Each passage alone", AS_IT_IS: "As it is"}
_CALLS = 7  # of a question, about: most have a gold passage in the prompt
_BEYOND = {arm.name: arm.beyond for arm in ARMS if arm.beyond}
_ROWS = ["query_id", "arm", "repeat", "prompt", "passages", "gold_by", "answer", "answer_status"]
_OF_QUERY = ("query_id", "question", "state", "stage", "gold_by", "n_fixing")
_OF_FIX = (
    "arm", "n", "asked", "fixed", "broken", "net", "low", "high", "p_value", "p_placebo", "p_nested",
    "p_adjusted", "verdict", "needed", "tokens",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Losses:
    """Where answers are lost.

    ``queries``, one row per question in the run's order: ``query_id, question``; ``state`` of its answer (one
    of `core.losses.outcomes.STATES`); ``stage`` (`core.losses.ladder.STAGES`, missing where the answer is not
    judged); ``gold_by``, how its gold passages were found; ``n_fixing`` fixes that make it correct; and a
    column for each arm but *alone*: "fixed", "broken" or "the same", missing where either is not judged.

    ``answers``, one row per question and arm that was tried: ``query_id, arm, repeat, prompt, passages,
    gold_by, answer, answer_status, state``. ``steps`` is the ladder, ``fixes`` the arms that try something;
    ``placebo`` and ``again`` measure what any change of the prompt, and none, does. ``titles`` of arms;
    ``outcome`` is what is counted. ``n_tried`` questions have rows, ``calls`` were made; ``model`` answered
    them, where that is not the run's own. ``missed_at_most`` answers that are not correct lack a gold passage
    in their prompt, of ``n_known_evidence`` of which that is known. ``to_try``: about the calls that trying
    all fixes takes, and their seconds by the calls of the run, None where these were not timed.
    """

    queries: pd.DataFrame
    answers: pd.DataFrame
    steps: tuple[ladders.Step, ...]
    fixes: tuple[Fix, ...]
    placebo: Fix | None
    again: Fix | None
    titles: Mapping[str, str]
    outcome: Outcome
    n_tried: int
    calls: int
    model: str
    missed_at_most: int
    n_known_evidence: int
    to_try: tuple[int, float | None]

    @property
    def n(self) -> int:
        """Answers that are judged."""
        return self.steps[0].of

    @property
    def n_lost(self) -> int:
        """Answers that are not correct."""
        return sum(one.n for one in self.steps if one.stage in ladders.LOST)

    def title(self, stage: str) -> str:
        """Return a stage for people, in the words of the outcome."""
        said = self.outcome.words(stage)
        return said[:1].upper() + said[1:]

    def step(self, stage: str) -> ladders.Step:
        """Return the bar of a stage."""
        return next(one for one in self.steps if one.stage == stage)

    def fix(self, arm: str) -> Fix | None:
        """Return what an arm brings, or None where it was not tried."""
        return next((one for one in self.fixes if one.arm == arm), None)

    def by_placebo(self) -> pd.Series:
        """Return whether each answer is correct under the placebo, by question; of changed prompts only."""
        rows = self.answers[self.answers["arm"].eq(PLACEBO) & self.answers["prompt"].eq(CHANGED)]
        rows = rows.dropna(subset="state").drop_duplicates("query_id")
        return rows.set_index("query_id")["state"].eq(CORRECT)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per arm: what it fixes, breaks, and how sure that is."""
        rows = [one for one in (*self.fixes, self.placebo, self.again) if one is not None]
        frame = pd.DataFrame([[getattr(one, name) for name in _OF_FIX] for one in rows], columns=[*_OF_FIX])
        frame.insert(1, "title", [self.titles.get(name, name) for name in frame["arm"]])
        return frame


def analyse_losses(diagnosis: Analyses) -> Losses:
    """Judge the answers of all arms alike, and say where each answer is lost; no LLM calls."""
    run = diagnosis.run
    by_claims = not labelled(run.queries).any()
    rows = _judged(run, by_claims)
    states, prompts = _by_arm(run, rows, "state"), _by_arm(run, rows, "prompt")
    state, asked_anew = _own_states(run, by_claims), AS_IT_IS in states
    if asked_anew:
        state = np.where(pd.isna(states[AS_IT_IS]), state, states[AS_IT_IS])
    base = success(state)
    if not by_claims:  # an abstention from a question whose answer nobody knows may be right
        base = np.where(labelled(run.queries).to_numpy(dtype=bool), base, np.nan)
    good = {arm: np.where(prompts[arm] == UNCHANGED, base, success(found)) for arm, found in states.items()}
    changed = {arm: found == CHANGED for arm, found in prompts.items()}
    placebo = good.get(PLACEBO, np.full(len(base), np.nan))
    absent = (run.queries["n_gold"] == 0).fillna(False).to_numpy(dtype=bool)
    doubtful = (absent & (state == ABSTAINED)) | (_entails_reference(run, state) & (not asked_anew))
    own_closed_book = not (by_claims or asked_anew)
    closed_book = success(_closed_book(run)) if own_closed_book else np.full(len(base), np.nan)
    stage = ladders.stages(base, good, prompts, doubtful, absent, closed_book, placebo)
    # Where there is nothing to try, a fix leaves the answer as it is.
    tried = {
        arm: np.where(prompts[arm] == NONE, base, found)
        for arm, found in good.items()
        if arm not in _MEASURES
    }
    tokens = _token_ratios(run)
    measured = {
        arm: fixes(base, {arm: good[arm]}, changed, None, tokens)[0]
        for arm in (PLACEBO, AGAIN)
        if arm in good and not np.isnan(good[arm]).all()
    }
    facts = run.manifest.get("steps", {}).get("losses", {})
    of_fixes = facts.get("model") or {}
    is_other = asked_anew and of_fixes != run.manifest.get("model")
    # Where no document holds the evidence, no retriever could have found it.
    evidence = diagnosis["answers"].queries["evidence"].where((base == 0) & ~absent)
    return Losses(
        queries=_queries(run, rows, state, stage, base, tried).join(
            _changes(base, tried | {arm: good[arm] for arm in (PLACEBO, AGAIN) if arm in good})
        ),
        answers=rows,
        steps=ladders.ladder(stage, base, prompts, placebo),
        fixes=fixes(base, tried, changed, placebo if PLACEBO in good else None, tokens, _BEYOND),
        placebo=measured.get(PLACEBO),
        again=measured.get(AGAIN),
        titles={**_TITLES, **own_titles(facts)},
        outcome=BY_CLAIMS if by_claims else BY_REFERENCES,
        n_tried=int(rows["query_id"].nunique()),
        calls=int(rows["prompt"].eq(CHANGED).sum()),
        model=str(of_fixes.get("name", "")) if is_other else "",
        missed_at_most=int(evidence.eq("not in the prompt").sum()),
        n_known_evidence=int((evidence.notna() & evidence.ne("not known")).sum()),
        to_try=_to_try(run),
    )


def _to_try(run: Run) -> tuple[int, float | None]:
    calls = int(run.queries["query_id"].isin(run.passages["query_id"]).sum()) * _CALLS
    spent = run.manifest.get("cost") or {}
    made, seconds = spent.get("calls"), spent.get("seconds")
    return calls, calls * seconds / made if made and seconds else None


def _queries(
    run: Run,
    rows: pd.DataFrame,
    state: np.ndarray,
    stage: np.ndarray,
    base: Floats,
    tried: Mapping[str, Floats],
) -> pd.DataFrame:
    ids = run.queries["query_id"]
    gold_by = rows.dropna(subset="gold_by").drop_duplicates("query_id").set_index("query_id")["gold_by"]
    right = [found == 1 for found in tried.values()]
    return pd.DataFrame(
        {
            "query_id": ids,
            "question": run.queries["question"],
            "state": pd.Series(state, dtype="str"),
            "stage": pd.Series(stage, dtype="str").replace("", None),
            "gold_by": pd.Series(gold_by.reindex(ids).to_numpy(dtype=object), dtype="str"),
            "n_fixing": pd.Series(np.sum(right, axis=0) if right else np.nan, index=range(len(ids)))
            .astype("Int64")
            .where(base == 0),
        }
    )


def _changes(base: Floats, arms: Mapping[str, Floats]) -> pd.DataFrame:
    """Say what each arm does to each answer."""
    words = {1.0: "fixed", -1.0: "broken", 0.0: "the same"}
    return pd.DataFrame(
        {
            arm: pd.Series(after - base, dtype="float64").map(words).astype("str")
            for arm, after in arms.items()
            if arm not in _OF_QUERY  # a user's arm may have any name
        },
        index=range(len(base)),
    )


def _by_arm(run: Run, rows: pd.DataFrame, column: str) -> dict[str, np.ndarray]:
    """Return a column of the rows of each arm, in the order of the run's questions."""
    first = rows[rows["repeat"].eq(1)]
    return {
        str(arm): own.set_index("query_id")[column].reindex(run.queries["query_id"]).to_numpy(dtype=object)
        for arm, own in first.groupby("arm", sort=False)
    }


def _judged(run: Run, by_claims: bool) -> pd.DataFrame:
    """Return the rows of all arms with the state of their answers; missing where nothing was asked."""
    rows, judges = run["arms"], _judges(run)
    found: list[str | None] = []
    for query_id, prompt, answer, status, support in rows[
        ["query_id", "prompt", "answer", "answer_status", "support"]
    ].itertuples(index=False):
        if prompt != CHANGED and not isinstance(status, str):
            found.append(None)
        elif by_claims:
            found.append(state_by_claims(status, support))
        else:
            found.append(judges[query_id].state(_text(answer), status))
    return rows[_ROWS].assign(state=pd.Series(found, index=rows.index, dtype="str"))


def _judges(run: Run) -> dict[str, Judge]:
    columns = ["query_id", "question", "reference_answers", "answer", "correct"]
    return {query["query_id"]: judge_of(query) for query in run.queries[columns].to_dict("records")}


def _text(answer: object) -> str | None:
    return answer if isinstance(answer, str) else None


def _own_states(run: Run, by_claims: bool) -> np.ndarray:
    """Return the state of every answer of the run; by claims it is known with the arms only."""
    judges, found = _judges(run), []
    columns = (run.queries[name] for name in ("query_id", "answer", "answer_status", "correct"))
    for query_id, answer, status, label in zip(*columns, strict=True):
        if not isinstance(answer, str) and not pd.isna(label):
            found.append(CORRECT if label else INCORRECT)
        elif by_claims:
            found.append(FAILED if status == "error" else UNJUDGED)
        else:
            known = status if isinstance(status, str) else answer_status(answer) if _text(answer) else None
            found.append(judges[query_id].state(_text(answer), known))
    return np.array(found, dtype=object)


def _entails_reference(run: Run, state: np.ndarray) -> np.ndarray:
    """Tell which answers entail all claims of the reference answer, though they were judged incorrect.

    A question that offers two things is left out: an answer that names both entails either.
    """
    claims = run["claims"]
    of_reference = claims[claims["side"].eq("reference").fillna(False) & claims["counterpart"].notna()]
    entailed = of_reference["counterpart"].eq("Entailment").groupby(of_reference["query_id"]).all()
    says = run.queries["query_id"].isin(entailed.index[entailed.to_numpy(dtype=bool)]).to_numpy()
    offers = run.queries["question"].map(lambda question: bool(options(question))).to_numpy(dtype=bool)
    return np.asarray(says & ~offers & (state == INCORRECT) & run.queries["correct"].isna().to_numpy())


def _closed_book(run: Run) -> np.ndarray:
    judges, columns = _judges(run), (run.queries["query_id"], run.queries["closed_book_answer"])
    return np.array(
        [
            judges[query_id].state(answer, answer_status(answer)) if isinstance(answer, str) else UNJUDGED
            for query_id, answer in zip(*columns, strict=True)
        ],
        dtype=object,
    )


def _token_ratios(run: Run) -> dict[str, float]:
    """Return the prompt tokens of each arm, as a ratio to those of the same questions in the run."""
    own = run.queries.set_index("query_id")["prompt_tokens"].astype("float64")
    rows = run["arms"][["arm", "query_id", "prompt_tokens"]].astype({"prompt_tokens": "float64"})
    rows = rows.assign(own=rows["query_id"].map(own)).dropna()
    sums = rows.groupby("arm", sort=False)[["prompt_tokens", "own"]].sum()
    return {str(arm): float(asked / before) for arm, asked, before in sums.itertuples() if before}
