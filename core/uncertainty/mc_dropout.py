"""How sure a model is of one answer, from the spread of answers sampled at random temperatures.

The interface is that of rag_uq. Dropout is simulated: no back end switches it on when it answers.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from core.arrays import Floats
from core.errors import InputError
from core.llm.cache import CompletionCache
from core.llm.embeddings import shared_embedder
from core.llm.functions import as_llm
from core.llm.packaged import PACKAGED_EMBEDDER
from core.llm.types import LLM, Message, Request
from core.pipeline.asking import Asker
from core.pipeline.sampling import DEFAULT_SAMPLES, PRESETS, TEMPERATURES, TOP_PS, check_model, drawn
from core.stats import bootstrap_interval, wilson_interval
from core.uncertainty.estimators import REASONS
from core.uncertainty.measures import consensus, embedding_variance, lexical_diversity

_RESAMPLES = 1_000


@dataclass(frozen=True)
class ConfidenceResult:
    """What `MCDropoutConfidence` says of a question.

    ``answers`` without empty ones; ``consensus_answer`` is the one nearest the centroid of all, "" where
    there is none. ``uncertainty_score``, the ``embedding_variance``: mean squared distance of the answers'
    unit embeddings from their centroid, in [0, 1]; NaN for fewer than two answers. ``confidence`` is 1 −
    uncertainty, ``lexical_diversity`` different words / all words.

    ``metadata``: ``interval`` of the confidence (95 %, bootstrap over the answers), ``reason`` where it is
    undefined, ``n_calls`` asked, ``n_saved`` by stopping early, ``n_empty`` and ``n_failed`` among them,
    ``temperatures``, ``top_ps`` and ``seeds`` of the answers, ``model``, ``embedding_model``, ``seed``.
    """

    answers: list[str]
    consensus_answer: str
    uncertainty_score: float
    confidence: float
    embedding_variance: float
    lexical_diversity: float
    metadata: dict[str, Any]


class MCDropoutConfidence:
    """Confidence from several answers to the same prompt.

    `InputError` for a value outside its range, or an ``llm_client`` that is no model and stands for none.

    Parameters
    ----------
    llm_client : LLM, str, client of ollama or callable
        Any model of `core.llm.open_llm`, or what stands for one (`core.llm.functions.as_llm`).
    n_samples : int
        Answers per question, 2 to 100; see ``PRESETS``.
    embedding_model : str
        Sentence-transformers model by name or path; the default needs no network.
    temperature_range, top_p_range : (float, float)
        Each answer's temperature and top-p are drawn uniformly from these; same ``seed``, same requests.
    stop_width : float, optional
        Stop after 5, 10 or 20 answers where the interval is no wider than this. Looking several times makes
        the interval a little too narrow.
    cache : CompletionCache, optional
        Answers are kept here, so that a stopped job goes on where it was.
    """

    PRESETS: ClassVar[Mapping[str, int]] = PRESETS

    def __init__(
        self,
        llm_client: LLM | str | Callable[..., Any],
        n_samples: int = DEFAULT_SAMPLES,
        embedding_model: str = PACKAGED_EMBEDDER,
        temperature_range: tuple[float, float] = TEMPERATURES,
        top_p_range: tuple[float, float] = TOP_PS,
        max_tokens: int = 100,
        *,
        seed: int = 0,
        stop_width: float | None = None,
        cache: CompletionCache | None = None,
    ) -> None:
        if not 2 <= n_samples <= 100:
            raise InputError(f"n_samples must lie from 2 to 100, got {n_samples!r}.")
        for name, limits, most in (
            ("temperature_range", temperature_range, math.inf),
            ("top_p_range", top_p_range, 1.0),
        ):
            if not 0 < limits[0] <= limits[1] <= most:
                raise InputError(f"{name} must be two rising numbers above 0, got {limits!r}.")
        self._llm, self._n_samples, self._seed = as_llm(llm_client), n_samples, seed
        self._embedding_model = embedding_model
        self._temperatures, self._top_ps, self._max_tokens = temperature_range, top_p_range, max_tokens
        self._stop_width = stop_width
        self._cache = cache if cache is not None else CompletionCache()

    def get_confidence_interval(
        self, prompt: str, context: str, question: str, model: str | None = None
    ) -> ConfidenceResult:
        """Sample answers to a question and measure how far they agree.

        ``prompt``, ``context`` and ``question`` are the instruction, the passages, and what is asked;
        ``model`` is the name of the model, where it is to be checked. `InputError` where that is not the
        model of ``llm_client``, `BackendError` where it cannot be reached, or answered nothing.
        """
        check_model(self._llm, model)
        text = f"{prompt}\n\nContext:\n{context}\n\nQuestion: {question}\nAnswer:"
        request = Request((Message("user", text),), max_tokens=self._max_tokens)
        requests = [
            drawn(request, number, self._seed, self._temperatures, self._top_ps)
            for number in range(1, self._n_samples + 1)
        ]
        asker = Asker(self._llm, self._cache)
        stops = [] if self._stop_width is None else [n for n in self.PRESETS.values() if n < self._n_samples]
        for n in (*stops, self._n_samples):
            completions = asker.ask(requests[:n])
            kept = [i for i, one in enumerate(completions) if one.error is None and one.text]
            answers = [unicodedata.normalize("NFC", completions[i].text) for i in kept]
            vectors = self._embedded(answers)
            interval = _interval(vectors)
            if interval is not None and interval[1] - interval[0] <= (self._stop_width or 0.0):
                break
        enough = len(answers) > 1
        variance = embedding_variance(vectors) if enough else math.nan
        metadata = {
            "interval": interval,
            "reason": None if enough else REASONS["one_sample" if answers else "all_empty"].meaning,
            "n_calls": n,
            "n_saved": self._n_samples - n,
            "n_empty": sum(one.error is None and not one.text for one in completions),
            "n_failed": sum(one.error is not None for one in completions),
            "temperatures": [requests[i].temperature for i in kept],
            "top_ps": [requests[i].top_p for i in kept],
            "seeds": [requests[i].seed for i in kept],
            "model": self._llm.name,
            "embedding_model": self._embedding_model,
            "seed": self._seed,
        }
        nearest = answers[consensus(vectors)] if answers else ""
        diversity = lexical_diversity(answers)
        return ConfidenceResult(answers, nearest, variance, 1 - variance, variance, diversity, metadata)

    def _embedded(self, answers: list[str]) -> Floats:
        packaged = self._embedding_model == PACKAGED_EMBEDDER
        embedder = shared_embedder(None if packaged else self._embedding_model)
        return np.asarray(embedder.embed(answers), dtype=np.float64) if answers else np.empty((0, 1))


def _interval(vectors: Floats) -> tuple[float, float] | None:
    """Return the interval of the confidence; None for fewer than two answers.

    A bootstrap of equal answers has no spread: they are a share of 1, with Wilson's interval.
    """
    n = len(vectors)
    if n < 2:
        return None
    if embedding_variance(vectors) < 1e-9:
        return wilson_interval(1.0, n)

    def confidence(rows: Floats) -> float:
        # Drawn with repetition, n rows vary less than the sample itself by (n − 1) / n.
        return max(0.0, 1 - embedding_variance(rows) * n / (n - 1))

    return bootstrap_interval(vectors, confidence, _RESAMPLES)
