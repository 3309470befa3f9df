"""The step that validates the answers of a run; no model is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

import pandas as pd

from core.errors import InputError, LeadlineError
from core.llm.prompts import STYLES
from core.pipeline.asking import Asker
from core.pipeline.executing import reason_of
from core.pipeline.rows import Rows, questions_of
from core.pipeline.steps import Option, Step, StepWork
from core.run import Run
from core.text.language import LANGUAGES, language_named
from core.validation.chain import ENABLE, default_chain, is_on, least_overlap, outcome_of
from core.validation.fallback import AUTO, FAILED, NAME, OURS, FallbackHandler, rows_of_failure, verdict_rows
from core.validation.metrics import Observation, observe
from core.validation.store import MetricsStore, answer_key
from core.validation.types import Case


@dataclass(frozen=True)
class ValidationStep(Step):
    """Check every answer against its passages: citations, evidence, numbers, certainty.

    InputError for a value that means nothing; on opening, for a store that cannot be used.

    A few milliseconds per answer. With ``ENABLE_VALIDATORS=false`` in the environment nothing is validated.
    Verdicts of other validators, from a file, stay. An answer on which a validator raises an exception has no
    verdict, and is tried again next time.
    """

    name: ClassVar[str] = NAME
    title: ClassVar[str] = "Validate answers"
    noun: ClassVar[str] = "answer"
    fills: ClassVar[Mapping[str, tuple[str, ...]]] = {"verdicts": ()}

    evidence_threshold: Annotated[
        float | None,
        Option(
            "--evidence-threshold",
            "Share of an answer's words that a passage must have; else the environment's, or 0.01.",
        ),
    ] = None
    citations: Annotated[
        bool,
        Option(
            "--citations",
            "An answer must cite its passages, unless the run's prompt does not ask for it.",
            title="Answers must cite",
            where=("style", "full"),
        ),
    ] = True
    lang: Annotated[
        str,
        Option(
            "--lang",
            f"Language of suggestions and fallbacks: {', '.join((AUTO, *LANGUAGES))}.",
            title="Language of fallbacks",
            choices=((AUTO, "That of the question"), *((one, one) for one in LANGUAGES)),
        ),
    ] = AUTO
    metrics: Annotated[
        str | None,
        Option(
            "--metrics",
            "File that counts the validated answers over time.",
            title="Count in these metrics",
            names="metrics",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.lang != AUTO:
            object.__setattr__(self, "lang", language_named(self.lang, "lang, if not auto,"))
        value = self.evidence_threshold
        if value is not None and (isinstance(value, bool) or not 0 <= value <= 1):
            raise InputError(f"evidence_threshold must lie from 0 to 1, got {value!r}.")

    def open(self, run: Run, asker: Asker) -> StepWork:
        """Return the step at work."""
        return _Work(self, run)


class _Work(StepWork):
    def __init__(self, step: ValidationStep, run: Run) -> None:
        given = step.evidence_threshold
        threshold = least_overlap() if given is None else float(given)
        style = STYLES.get(str((run.manifest.get("prompt") or {}).get("style")))
        citations = step.citations and (style is None or style.cites)
        self.settings: Mapping[str, Any] = {
            "evidence_threshold": threshold,
            "citations": citations,
            "lang": step.lang,
        }
        self._run, self._metrics, self._on = run, step.metrics, is_on()
        self._uncounted: set[str] = set()  # keys of answers that the metrics store lacks
        if step.metrics is not None:
            with MetricsStore(step.metrics) as store:  # what cannot be used is said before the work
                self._uncounted = store.lacking(map(self._key, run.queries["query_id"]))
        self._chain = default_chain(threshold, citations=citations)
        self._question = questions_of(run, ("verdicts",))
        self._observed: list[Observation] = []

    def todo(self, run: Run) -> Sequence[str]:
        """Return the questions with an answer, and texts where there are passages, that lack verdicts.

        Those that the metrics still lack are validated again, and counted.
        """
        if not self._on:
            return []
        queries, passages, verdicts = run.queries, run.passages, run["verdicts"]
        ids = queries["query_id"]
        own = verdicts[verdicts["validator"].isin(OURS) & ~verdicts["reason"].eq(FAILED).fillna(False)]
        readable = ~ids.isin(passages["query_id"]) | ids.isin(
            passages.loc[passages["text"].notna(), "query_id"]
        )
        done = ids.isin(own["query_id"]) & ~ids.map(self._key).isin(self._uncounted)
        return ids[queries["answer"].notna() & readable & ~done].to_list()

    def kept(self, run: Run) -> Mapping[str, pd.DataFrame]:
        """Return the verdicts of other validators."""
        verdicts = run["verdicts"]
        return {"verdicts": verdicts[~verdicts["validator"].isin(OURS)]}

    def work(self, ids: Sequence[str]) -> Rows:
        """Return the rows of one question."""
        (query_id,) = ids
        asked = self._question(query_id)
        texts = tuple(one["text"] or "" for one in asked.passages)
        case = Case(asked.query["question"], asked.query["answer"], texts)
        try:
            verdicts = self._chain.check(case)
            if self._metrics is not None:
                outcome = outcome_of(case.question, case.answer, len(case.passages), verdicts, "en")
                used = FallbackHandler().serve(case.answer, outcome).used_fallback
                key = self._key(query_id)
                seen = observe(outcome, datetime.now(UTC), used, key)
                self._uncounted.discard(key)
                self._observed += [] if seen is None else [seen]
        except Exception as error:
            raise LeadlineError(reason_of(error, "A validator")) from error
        return {"verdicts": [*self._others(query_id), *verdict_rows(query_id, verdicts)]}

    def failed(self, query_id: str, reason: str) -> Rows:
        """Return rows that say why the answer was not validated."""
        return {"verdicts": [*self._others(query_id), *rows_of_failure(query_id, reason)]}

    def facts(self, run: Run) -> Mapping[str, Any]:
        """Return notes; what was observed since the last time goes to the metrics store."""
        notes = [] if self._on else [f"Nothing was validated: {ENABLE} is off."]
        if self._metrics is not None and self._observed:
            try:
                with MetricsStore(self._metrics) as store:
                    store.add(self._observed)
                self._observed = []
            except InputError as error:  # the verdicts are not lost for that
                notes.append(f"The answers are not counted: {error}")
        return {"notes": notes}

    def _key(self, query_id: str) -> str:
        return answer_key(self._run.run_id, query_id)

    def _others(self, query_id: str) -> list[Mapping[str, Any]]:
        rows = self._question(query_id).filled["verdicts"]
        return [row for row in rows if row["validator"] not in OURS]
