"""Which answers of a model to rely on, calibrated on questions whose answers are known.

The interface is that of rag_uq. Its score, the distance from the true answer, is not known for a new
question. Here one score is calibrated and predicted with: how far an answer differs from its own samples.
"""

from __future__ import annotations

import math
import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from core.arrays import Floats
from core.calibration.provenance import provenance_of
from core.calibration.store import CalibrationCase, CalibrationStore, query_hash
from core.calibration.weighted import half_up
from core.conformal.definitions import DELTA
from core.conformal.labelled import Context, context_text, numbered, references_text
from core.conformal.selective import certify_threshold
from core.conformal.split import conformal_threshold, label_shortage, p_values, rate, same_length
from core.errors import BackendError, InputError
from core.llm.cache import CompletionCache
from core.llm.functions import as_llm
from core.llm.prompts import DEFAULT_STYLE, answer_messages, prompt_style
from core.llm.types import DEFAULT_MAX_TOKENS, Request
from core.pipeline.asking import Asker
from core.pipeline.begin import prompt_facts
from core.pipeline.sampling import DEFAULT_SAMPLES, check_model, drawn, sampled, sampling_facts
from core.pipeline.steps import ProgressCallback, model_facts
from core.signals import Signal, confident
from core.text.display import count
from core.text.matching import is_correct
from core.text.overlap import rouge_l_agreement

# The name of the score in a run, and the step that makes its samples.
SCORE, _STEP = "uncertainty.agreement_rouge_l", "uncertainty"
_DECIMALS = 9  # of a score, as in a run


@dataclass(frozen=True)
class ConformalResult:
    """What `ConformalRAG` says of a new question.

    ``confidence`` is the mean ROUGE-L of the answer to its samples, in [0, 1]; NaN where undefined.
    ``p_value`` is the share of answers that are no more typical among the correct ones of the calibration and
    this one; NaN where the score is undefined or nothing is calibrated. ``is_reliable`` is ``p_value >
    coverage_alpha``, False also where nothing can be said; then there is a reason. ``metadata`` has
    ``score``, ``threshold``, ``n_calibration`` correct answers, ``reason`` (""), ``statement`` of what is
    promised, ``samples``.
    """

    prediction: str
    confidence: float
    p_value: float
    is_reliable: bool
    coverage_alpha: float
    metadata: dict[str, Any]


class ConformalRAG:
    """Answers, and says which answers are as consistent as correct ones are.

    Score of an answer: 1 − its mean ROUGE-L to samples of the same prompt. Calibrated are the answers that
    are correct. Then, if a new question is drawn like the calibrated ones, an answer that is as good as the
    correct ones is called unreliable with a probability of at most alpha. How many wrong answers are found
    out is not promised.

    Parameters
    ----------
    llm_client : LLM, str, client of ollama or callable
        Any model of `core.llm.open_llm`, or what `core.llm.functions.as_llm` takes for one.
    calibration_db_path : path
        File of the calibration; see `core.conformal.CalibrationStore`.
    alpha : float
        Between 0 and 1.
    n_samples, seed : int
        Samples per answer, 2 to 100; same seed, same requests.
    style : str, optional
        Prompt: "short" (default) or "full" (`core.llm.prompts`). A function gets question and passages.
    max_tokens : int
        Of an answer.
    retriever : Mapping, optional
        Facts of what found the passages, as in a run's manifest: another one has other scores.
    cache : CompletionCache, optional
        Answers are kept here, so that no call is paid for twice.

    Raises
    ------
    InputError
        A value outside its range.
    StoreError
        The file was calibrated with another model, prompt, retriever or samples, or cannot be used.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> def paris(question, passages): return "Paris"
    >>> with TemporaryDirectory() as folder:
    ...     with ConformalRAG(paris, f"{folder}/calibration.db") as conformal:
    ...         stats = conformal.calibrate(list("123456789"), ["Text."] * 9, ["Paris"] * 8 + ["Rome"])
    ...         result = conformal.predict_with_coverage("Where?", "Text.")
    >>> stats["reason"], result.prediction, result.confidence, result.is_reliable
    ('8 correct answers cannot certify α = 0.1; you need at least 9.', 'Paris', 1.0, False)
    """

    def __init__(
        self,
        llm_client: Any,
        calibration_db_path: str | os.PathLike[str] = "calibration.db",
        alpha: float = 0.1,
        *,
        n_samples: int = DEFAULT_SAMPLES,
        seed: int = 0,
        style: str | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        retriever: Mapping[str, Any] | None = None,
        cache: CompletionCache | None = None,
    ) -> None:
        rate("alpha", alpha)
        if not 2 <= n_samples <= 100:
            raise InputError(f"n_samples must lie from 2 to 100, got {n_samples!r}.")
        llm = as_llm(llm_client)
        style = style or str(getattr(llm, "style", DEFAULT_STYLE))
        self._llm, self.alpha, self._n_samples, self._seed = llm, alpha, n_samples, seed
        self._stop, self._style, self._max_tokens = prompt_style(style).stop, style, max_tokens
        self._cache = cache if cache is not None else CompletionCache()
        # What a run with these answers and samples would say of itself, so that their scores can be compared.
        chosen = {"style": style, "max_tokens": max_tokens}
        model = model_facts(llm)
        step = {"options": {"seed": seed, **chosen}, "model": model, **sampling_facts(n_samples)}
        manifest = {
            "model": model,
            "prompt": prompt_facts(llm, chosen),
            "retriever": retriever,
            "steps": {_STEP: step},
        }
        self.provenance = provenance_of(manifest, SCORE, _STEP)
        self.store = CalibrationStore(calibration_db_path, self.provenance)

    def calibrate(
        self,
        questions: Sequence[str],
        contexts: Sequence[Context],
        true_answers: Sequence[str | Sequence[str]],
        model: str | None = None,
        skip_existing: bool = True,
        *,
        kinds: Sequence[str | None] | None = None,
        progress: ProgressCallback | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> dict[str, Any]:
        """Ask questions whose answers are known, and store the scores.

        Each score is on disk before the next question is asked: a job that was stopped, however, goes on
        where it was. Cost: 1 + ``n_samples`` calls per question.

        Parameters
        ----------
        questions, contexts, true_answers : sequence
            Texts; of each a text, or its passages in order, each a text or a pair of title and text; and its
            reference answer, or several of which one is enough (`core.text.matching`).
        model : str, optional
            Name of the model, where it is to be checked.
        skip_existing : bool
            Leave out questions that are in the store with this context; else their rows get the new values.
        kinds : sequence, optional
            Group of each question.
        progress, cancelled : callable, optional
            ``progress(done, total, what)`` in questions; asked after every call, True stops with `Cancelled`.

        Returns
        -------
        dict
            ``new_calibrated``, ``skipped`` and ``n_failed`` (no passage, or a call failed: not stored, and
            asked again next time) questions of this call, and the ``failure`` of most of the latter. Of the
            whole store ``total_calibrated`` rows, ``n_labels`` that are known to be correct or not, and of
            the correct ones among them, which calibrate, ``n_correct`` and ``n_samples`` (the same),
            ``mean_score``, ``threshold`` (+inf, with a ``reason``, for too few); of all labels the
            ``certified_threshold`` of the confidence 1 − score (`certify_threshold`; None, with
            ``certified_missing``, where nothing can be certified).

        Raises
        ------
        InputError
            ``model`` is not the model of ``llm_client``, or the lists differ in length.
        BackendError
            The model cannot be reached, and has answered nothing so far.
        """
        check_model(self._llm, model)
        groups = [None] * len(questions) if kinds is None else kinds
        for name, given in (("contexts", contexts), ("true_answers", true_answers), ("kinds", groups)):
            same_length("questions", len(questions), name, len(given))
        asker = Asker(self._llm, self._cache, cancelled=cancelled)
        n = {"new_calibrated": 0, "skipped": 0, "n_failed": 0}
        failures: Counter[str] = Counter()
        rows = zip(questions, contexts, true_answers, groups, strict=True)
        for done, (question, context, truth, kind) in enumerate(rows, start=1):
            text = context_text(context)
            if skip_existing and self.store.has(question, text):
                n["skipped"] += 1
            else:
                try:
                    asked = self._ask(asker, question, context)
                except BackendError as error:
                    if not asker.n_answers:
                        raise
                    asked = _Asked(failure=str(error))
                if asked.failure:
                    n["n_failed"] += 1
                    failures[asked.failure] += 1
                else:
                    references = [truth] if isinstance(truth, str) else [*truth]
                    correct = is_correct(asked.answer, references, question)
                    truths = references_text(references)
                    case = CalibrationCase(question, text, asked.answer, truths, asked.score, correct, kind)
                    n["new_calibrated"] += self.store.add([case], self.provenance, replace=not skip_existing)
            if progress is not None:
                progress(done, len(questions), "calibrate")
        found = summary(self.store, self.alpha)
        [(most, _)] = failures.most_common(1) or [("", 0)]
        if found["reason"] and n["n_failed"] == len(questions) > 0:
            found["reason"] = f"{count(n['n_failed'], 'question')} asked, all failed: {most}"
        return {**found, **n, "failure": most}

    def predict_with_coverage(
        self, question: str, context: Context, model: str | None = None
    ) -> ConformalResult:
        """Answer a question and say whether the answer is in line with correct ones; 1 + ``n_samples`` calls.

        A question that is in the calibration is compared with the others. InputError where ``model`` is not
        that of ``llm_client``, BackendError where it cannot be reached.
        """
        check_model(self._llm, model)
        asked = self._ask(Asker(self._llm, self._cache), question, context)
        scores = _calibrating(self.store, without=query_hash(question, context_text(context)))
        p_value = float(p_values(scores, [asked.score])[0]) if scores.size else math.nan
        reason = asked.failure or asked.undefined or label_shortage(scores.size, self.alpha, "correct answer")
        metadata = {
            "score": asked.score,
            "threshold": conformal_threshold(scores, self.alpha),
            "n_calibration": scores.size,
            "reason": reason,
            "statement": statement(self.alpha),
            "samples": [*asked.samples],
        }
        reliable = not reason and p_value > self.alpha
        return ConformalResult(asked.answer, 1 - asked.score, p_value, reliable, self.alpha, metadata)

    def get_calibration_stats(self) -> dict[str, Any]:
        """Return ``count, mean, std, min, max, median, q25, q75, threshold, alpha``; NaN without a score."""
        found = _calibrating(self.store)
        scores = found if found.size else np.array([math.nan])
        values = {name: float(getattr(np, name)(scores)) for name in ("mean", "std", "min", "max", "median")}
        quartiles = {f"q{share}": float(np.percentile(scores, share)) for share in (25, 75)}
        threshold = {"threshold": conformal_threshold(found, self.alpha), "alpha": self.alpha}
        return {"count": found.size, **values, **quartiles, **threshold}

    def close(self) -> None:
        """Close the store; the instance cannot be used afterwards."""
        self.store.close()

    def __enter__(self) -> ConformalRAG:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, asker: Asker, question: str, context: Context) -> _Asked:
        passages = numbered(context)
        if not passages:
            return _Asked(failure="The question has no passage.")
        messages = answer_messages(question, passages, self._style)
        request = Request(messages, max_tokens=self._max_tokens, stop=self._stop)
        samples = [drawn(request, number, self._seed) for number in range(1, self._n_samples + 1)]
        first, *others = asker.ask([request, *samples])
        answer = unicodedata.normalize("NFC", first.text)
        texts = [text for text in map(sampled, others) if text is not None]
        if first.error is not None:
            return _Asked(answer, texts, failure=first.error)
        if len(texts) < len(others):
            # From fewer samples it would be another score.
            lost = f"{len(others) - len(texts)} of {len(others)} samples failed or were withheld."
            why = next((one.error for one in others if one.error is not None), None)
            lost = lost if why is None else f"{lost[:-1]}: {why}"
            return _Asked(answer, texts, failure=lost)
        value, reason = rouge_l_agreement(answer, texts)
        return _Asked(answer, texts, float(np.round(1 - np.round(value, _DECIMALS), _DECIMALS)), reason)


class _Asked(NamedTuple):
    """An answer with its samples; ``failure`` where a call did, ``undefined`` why there is no score."""

    answer: str = ""
    samples: Sequence[str] = ()
    score: float = math.nan
    undefined: str = ""
    failure: str = ""


def summary(store: CalibrationStore, alpha: float, signal: Signal | None = None) -> dict[str, Any]:
    """Return what a store gives at an error rate: the entries of `ConformalRAG.calibrate` about it."""
    rows = store.usable(texts=False)
    scores = rows["nonconformity_score"].to_numpy(dtype=np.float64)
    right = rows["correct"].to_numpy(dtype=np.float64, na_value=math.nan)
    certificate = certify_threshold(half_up(confident(scores, signal)), right, alpha, DELTA)
    found = scores[right == 1]
    return {
        "n_samples": found.size,
        "mean_score": float(found.mean()) if found.size else math.nan,
        "threshold": conformal_threshold(found, alpha),
        "total_calibrated": len(store),
        "n_labels": int(np.count_nonzero(~np.isnan(right))),
        "n_correct": found.size,
        "reason": label_shortage(found.size, alpha, "correct answer"),
        "certified_threshold": certificate.threshold,
        "certified_missing": certificate.missing,
    }


def _calibrating(store: CalibrationStore, without: str = "") -> Floats:
    """Return the scores of the correct answers of a store, without that of a question that is asked now."""
    rows = store.usable(texts=False)
    chosen = rows["correct"].fillna(False) & (rows["query_hash"] != without)
    return rows.loc[chosen, "nonconformity_score"].to_numpy(dtype=np.float64)


def statement(alpha: float) -> str:
    """Return what is promised.

    >>> statement(0.1)
    'Of answers that are as good as the correct ones in calibration, at most 10 % are flagged.'
    """
    share = f"{100 * alpha:g} %"
    return f"Of answers that are as good as the correct ones in calibration, at most {share} are flagged."
