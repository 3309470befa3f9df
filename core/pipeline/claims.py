"""The step of a run that finds the claims of its answers and judges their support by the passages."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from core.claims.of_run.tables import ANSWER, claims_from_tables, claims_tables
from core.claims.types import Verifier
from core.claims.verifiers.judge import JudgeVerifier
from core.errors import Cancelled
from core.llm.cache import CompletionCache
from core.llm.types import LLM
from core.pipeline.asking import RetryPolicy
from core.pipeline.claims_options import JUDGE, ClaimsOptions, decomposing_model, open_verifier
from core.pipeline.claims_questions import ClaimQuestion, claim_questions, missing_counterparts
from core.pipeline.claims_verify import VerifyFunction, as_verifier
from core.pipeline.claims_work import ClaimsWork
from core.pipeline.model_calls import ModelCalls
from core.pipeline.steps import ProgressCallback
from core.run import Run

_DEFAULTS = ClaimsOptions()
_BATCH, _JUDGE_BATCH = 16, 4  # questions; a judge makes many calls for each
_SEEDS_APART = 1_000  # above every number of repeats
_PARTIAL_SHARE = 0.05  # of the time, for building and saving the partial run
_LATER = "Not asked again yet."


def find_claims(
    run: Run,
    options: ClaimsOptions = _DEFAULTS,
    *,
    llm: LLM | None = None,
    cache: CompletionCache | None = None,
    verifier: Verifier | VerifyFunction | None = None,
    progress: ProgressCallback | None = None,
    cancelled: Callable[[], bool] | None = None,
    on_question: Callable[[Run], object] | None = None,
    retry: RetryPolicy | None = None,
) -> Run:
    """Fill the tables ``claims``, ``support`` and ``joint_support`` of a run.

    Parameters
    ----------
    run : Run
        Any run with answers and passages. Where this step has filled its tables before, with the same
        settings, every scored cell is kept, and only what is missing is asked; else its claims are replaced.
    options : ClaimsOptions
        How claims are found and who judges them.
    llm : LLM, optional
        The model that judges or breaks answers into claims, where one does.
    cache : CompletionCache, optional
        Every call is kept there at once, so that a killed step goes on where it stopped. None keeps calls for
        this time only.
    verifier : Verifier, optional
        Judges in place of the one that ``options`` name; a function of claims and passages will do.
    progress : callable, optional
        ``progress(done, total, what)`` in questions; also called, from other threads, as calls are answered.
    cancelled : callable, optional
        Looked at after every call and between batches of questions; True ends the step early.
    on_question : callable, optional
        Gets the partial run after a batch of questions, but not so often that it takes much time.
    retry : RetryPolicy, optional
        What to do about transient failures of the model.

    Returns
    -------
    Run
        The same run id and manifest, with ``manifest["claims"]``: ``decomposition``, ``verifier`` and
        ``options``; ``n_claims`` (of answers), ``n_reference_claims``, ``n_cells``, ``n_unscored`` with
        ``reasons`` (cells by reason), ``n_counterparts_unscored``; ``n_by_rules`` texts whose claims are
        the splitter's because the model's could not be used, with ``decomposition_reasons``; ``n_left``
        questions still to be looked at, with ``left_reasons`` where the model failed; ``joint_left`` ids of
        questions with pairs of passages still to be judged; ``n_calls`` made, ``seconds``, ``tries``,
        ``n_questions``, and ``complete``. The run itself where there was nothing to do.

    Raises
    ------
    InputError
        A verifier or decomposer needs a model or a name that is not there.
    BackendError
        The model cannot be reached: the first question that was never judged cannot be either.
    CacheError
        Completions can no longer be kept.

    Notes ----- Cost: none but time with the offline verifier and the rules. A model breaks up each text in
    one call. The judge's calls for n claims and k passages are those of
    `core.claims.verifiers.judge.JudgeVerifier`, for answer and reference apart; comparing the two takes one
    call for each ``claims_per_call`` claims and other text; each claim without support at most three more for
    pairs.

    Only relevant claims are judged. A cell that fails has no probability and a reason, and is asked again
    next time, the judge under another seed.
    """
    judge = None if verifier is None else as_verifier(verifier)
    return _Step(run, options, llm, cache, judge, progress, cancelled, retry).run(on_question)


class _Step:
    """The state of one `find_claims` call."""

    def __init__(
        self,
        run: Run,
        options: ClaimsOptions,
        llm: LLM | None,
        cache: CompletionCache | None,
        verifier: Verifier | None,
        progress: ProgressCallback | None,
        cancelled: Callable[[], bool] | None,
        retry: RetryPolicy | None,
    ) -> None:
        self._run = run
        self._progress = progress
        self._cancelled = cancelled or (lambda: False)
        self._started = time.perf_counter()
        self._done = self._total = 0
        self._calls = calls = ModelCalls(llm, cache, retry, self._cancelled, self._tell)
        before = run.manifest.get("claims") or {}
        tries = int(before.get("tries", 0))

        def opened(seed: int) -> Verifier:
            if verifier is not None:
                return verifier
            return open_verifier(options, llm, calls.ask, seed=seed, score=calls.score)

        first = opened(0)
        judged = options.verifier == JUDGE if verifier is None else isinstance(verifier, JudgeVerifier)
        self._size = _JUDGE_BATCH if judged else _BATCH
        model = decomposing_model(options, llm, judged)
        self._settings: dict[str, Any] = {
            "decomposition": "rules" if model is None else f"model:{model.name}",
            "verifier": first.name,
            "options": {**options.to_dict(), **({} if verifier is None else {"verifier": first.name})},
        }
        same = all(before.get(key) == value for key, value in self._settings.items())
        self._before: dict[str, Any] = dict(before) if same else {}
        # A reply that cannot be used is in the cache: only under another seed is the model asked again.
        again = opened(_SEEDS_APART * tries) if same and tries else first
        self._work = ClaimsWork(first, again, model, calls, joint=options.joint, own=verifier is None)
        self._work.joint_left.update(self._before.get("joint_left", ()))
        self._work.by_rules.update(self._before.get("decomposition_reasons", {}))
        self._questions = claim_questions(run, options.references)

    def run(self, on_question: Callable[[Run], object] | None) -> Run:
        if self._nothing_to_do():
            return self._run
        if self._before:
            passages = {question.query_id: question.passages for question in self._questions}
            self._work.known = claims_from_tables(self._run.tables, passages)
        todo = [question for question in self._questions if self._needs(question)]
        self._total = len(todo)
        self._tell()
        next_offer = 0.0
        while self._done < self._total:
            batch = todo[self._done : self._done + self._size]
            try:
                if self._cancelled():
                    break
                self._work.work(batch)
            except Cancelled:
                break
            self._done += len(batch)
            self._tell()
            start = time.perf_counter()
            if on_question is not None and start >= next_offer and self._done < self._total:
                on_question(self._build())
                took = time.perf_counter() - start
                next_offer = start + took + took / _PARTIAL_SHARE
        return self._build()

    def _nothing_to_do(self) -> bool:
        before = self._before
        nothing_left = not any(before.get(key) for key in ("joint_left", "n_counterparts_unscored"))
        there = self._finished_before() and nothing_left
        return there and not self._run["support"]["probability"].isna().any()

    def _finished_before(self) -> bool:
        before = self._before
        return bool(before.get("complete")) and before.get("n_questions") == len(self._questions)

    def _needs(self, question: ClaimQuestion) -> bool:
        known = self._work.known.get(question.query_id)
        if known is None:
            # A question that gives no claim is none to come back to; before that a look at it costs no call.
            return not self._finished_before()
        unscored = bool(known.unscored.any()) or missing_counterparts(question, known) > 0
        return unscored or question.query_id in self._work.joint_left

    def _tell(self, n_answers: int | None = None) -> None:
        if self._progress is not None:
            n = self._calls.n_answers if n_answers is None else n_answers
            what = f"question {min(self._done + 1, self._total)} of {self._total}"
            self._progress(self._done, self._total, f"{what}, {n:,} calls answered" if n else what)

    def _build(self) -> Run:
        listed = [
            self._work.known[question.query_id]
            for question in self._questions
            if question.query_id in self._work.known
        ]
        tables = claims_tables(listed, self._settings["verifier"])
        unscored = int(tables["support"]["probability"].isna().sum())
        reasons = dict(self._work.reasons)
        if (later := unscored - sum(reasons.values())) > 0:
            reasons[_LATER] = later
        n_left = self._total - self._done + len(self._work.left)
        n_answer = int((tables["claims"]["side"] == ANSWER).sum())
        facts = {
            **self._settings,
            "n_questions": len(self._questions),
            "n_claims": n_answer,
            "n_reference_claims": len(tables["claims"]) - n_answer,
            "n_cells": len(tables["support"]),
            "n_unscored": unscored,
            "reasons": reasons,
            "n_counterparts_unscored": sum(
                missing_counterparts(question, self._work.known[question.query_id])
                for question in self._questions
                if question.query_id in self._work.known
            ),
            "n_by_rules": sum(self._work.by_rules.values()),
            "decomposition_reasons": dict(self._work.by_rules),
            "n_left": n_left,
            "left_reasons": dict(Counter(self._work.left.values())),
            "joint_left": sorted(self._work.joint_left),
            "n_calls": int(self._before.get("n_calls", 0)) + self._calls.n_made,
            "seconds": round(
                float(self._before.get("seconds", 0.0)) + time.perf_counter() - self._started, 1
            ),
            "tries": int(self._before.get("tries", 0)) + (self._done == self._total),
            "complete": n_left == 0,
        }
        return Run.create({**self._run.manifest, "claims": facts}, **{**self._run.tables, **tables})
