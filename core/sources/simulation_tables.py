"""The tables of a simulated run: texts and observations that show what was planted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from core.arrays import Bools, Ints, constant_within, ranks_within, spearman_within
from core.sources.simulation_truth import ANSWER_WORDS, CLAIMS, SAMPLES, TOGETHER, WORDS, Truth

_CONTEXT_QUESTIONS = 60  # of a run, in the context test
_CONTEXT_SAMPLES = 5
_SENTENCE = ANSWER_WORDS // CLAIMS
_REFERENCE = 2  # from this word on, three of the answer or of another meaning are the reference answer
_FILLER = 6
_STRIDE = 7  # does not divide the number of the words that are left
# Where things are in a question's own order of all words.
_MEANING, _CLOSED_BOOK = ANSWER_WORDS, 3 * ANSWER_WORDS
_UNSAID, _FRESH = 4 * ANSWER_WORDS, 4 * ANSWER_WORDS + 3
# Each word as it is, at the head and at the end of a sentence.
_TOKENS = np.array(
    [*WORDS, *(word.capitalize() for word in WORDS), *(word + "." for word in WORDS)], dtype=object
)
_HEAD, _END = len(WORDS), 2 * len(WORDS)
_NOT_APPLICABLE = {
    "CitationRequired": "The prompt does not ask for citations.",
    "NumericUnits": "The answer has no number to compare.",
    "EthicsAdapter": "No guard is set.",
}


class Tables:
    """The tables that show a truth; ``rng`` draws the words, and the same state gives the same tables.

    ``first`` is the number of the first question, ``width`` the digits of all numbers, ``noise`` the chance
    of each word to change in every ablated answer and every repeat.
    """

    def __init__(self, truth: Truth, first: int, width: int, noise: float, rng: np.random.Generator) -> None:
        self.truth, self.noise, self.rng = truth, noise, rng
        self.n, self.k = truth.replaced.shape
        self.numbers = [f"{first + i:0{width}d}" for i in range(self.n)]
        self.ids = np.array([f"s{number}" for number in self.numbers], dtype=object)
        self.status = np.where(truth.empty, "empty", "answered")
        self.passage_ids = [f"p{i + 1}" for i in range(self.k)]
        words = truth.words
        self.topics = [f"{a} and {b}" for a, b in _TOKENS[words[:, :2]].tolist()]
        self.claims = [_sentences(words[:, i * _SENTENCE : (i + 1) * _SENTENCE]) for i in range(CLAIMS)]
        whole = _sentences(words[:, :ANSWER_WORDS], CLAIMS)
        self.answers = ["" if none else text for none, text in zip(truth.empty, whole, strict=True)]
        # Where the answer is incorrect, the second meaning of the samples is mostly the correct one.
        other = np.where(rng.random(self.n) < 0.9, _MEANING + _REFERENCE, _UNSAID)
        start = np.where(truth.correct, _REFERENCE, other)
        self.reference = np.take_along_axis(words, start[:, None] + np.arange(3), axis=1)

    def reference_sentence(self, question: int) -> str:
        """Return the reference answer of a question as a sentence."""
        return _sentences(self.reference[question : question + 1])[0]

    def unrelated(self, question: int) -> str:
        """Return an answer without a word of the baseline answer or the reference."""
        return _sentences(self.truth.words[question : question + 1, _CLOSED_BOOK:_UNSAID], CLAIMS)[0]

    def all(self, repeats: int) -> dict[str, pd.DataFrame]:
        """Return every table but the context test, with so many repeats of each question."""
        passages, samples = self._passages(), self._samples()
        return {
            "queries": self._queries(),
            "passages": passages,
            "repeats": self._repeats(repeats),
            "samples": samples,
            **self._verified(),
            "signals": self._signals(),
            "verdicts": self._verdicts(),
        }

    def _queries(self) -> pd.DataFrame:
        truth = self.truth
        closed_book = np.array(_sentences(truth.words[:, _CLOSED_BOOK:_UNSAID], CLAIMS), dtype=object)
        closed_book[np.isin(truth.case, ("empty", "inert"))] = None
        same = truth.case == "parametric"
        closed_book[same] = np.array(self.answers, dtype=object)[same]
        influence = truth.replaced.ravel()
        group = np.repeat(np.arange(self.n), self.k)
        ranks = ranks_within(influence, group, descending=True)
        rho, _ = spearman_within(np.tile(np.arange(1.0, self.k + 1), self.n), ranks, group, self.n)
        rho[constant_within(influence, group, self.n)] = np.nan
        return _frame(
            query_id=self.ids,
            question=[
                f"Simulated question {number}: what do the passages say of {topic}?"
                for number, topic in zip(self.numbers, self.topics, strict=True)
            ],
            answer=self.answers,
            answer_status=self.status,
            status_reason=["Planted: an empty answer." if none else None for none in truth.empty],
            closed_book_answer=closed_book,
            reference_answers=[[" ".join(three)] for three in _TOKENS[self.reference].tolist()],
            n_gold=np.ones(self.n, dtype=np.int64),
            kind=self.rng.choice(["one fact", "several facts"], self.n),
            planted_case=truth.case,
            planted_rho=rho,
            planted_correct=pd.Series(truth.correct, dtype="boolean").mask(truth.empty),
        )

    def _passages(self) -> pd.DataFrame:
        truth, n, k = self.truth, self.n, self.k
        order = self.rng.permuted(np.tile(np.arange(ANSWER_WORDS), (n * k, 1)), axis=1)
        lost = (order < np.nan_to_num(truth.replaced).reshape(-1, 1)).reshape(n, k, ANSWER_WORDS)
        scores = -np.sort(-self.rng.exponential(5.0, (n, k)), axis=1).round(4)
        return _frame(
            query_id=np.repeat(self.ids, k),
            passage_id=self.passage_ids * n,
            title=[f"Simulated document {i + 1}" for i in range(k)] * n,
            text=self._texts(lost),
            retrieval_rank=np.tile(np.arange(1.0, k + 1), n),
            retrieval_score=scores.ravel(),
            slot=np.tile(np.arange(1, k + 1), n),
            ablated_answer=self._changed(lost),
            ablated_status=np.repeat(self.status, k),
            logprob_drop=truth.drop.ravel(),
            reference_logprob_drop=truth.reference_drop.ravel(),
            is_gold=(np.arange(k) == truth.gold[:, None]).ravel(),
            planted_influence=truth.replaced.ravel() / ANSWER_WORDS,
        )

    def _texts(self, lost: Bools) -> list[str]:
        """Return the passages: filler around the claims that they support, or else the words they move."""
        truth, n, k = self.truth, self.n, self.k
        filler = self._fresh(n * k, 2 * _FILLER)
        heads, ends = _sentences(filler[:, :_FILLER]), _sentences(filler[:, _FILLER:])
        supports = (truth.supports | truth.twice[:, None, :]).transpose(0, 2, 1).tolist()
        moves, gold = (truth.replaced > 0).tolist(), truth.gold.tolist()
        references = _sentences(self.reference)
        texts = []
        for i in range(n):
            said, own = f"On {self.topics[i]}:", [claim[i] for claim in self.claims]
            for j in range(k):
                carried = [claim for claim, holds in zip(own, supports[i][j], strict=True) if holds]
                if not carried and moves[i][j]:
                    carried = _sentences(truth.words[i : i + 1, :ANSWER_WORDS][:, lost[i, j]])
                if gold[i] == j and not (truth.correct[i] and supports[i][j][0]):
                    carried.append(references[i])
                parts = (
                    [heads[i * k + j], said, *carried, ends[i * k + j]]
                    if carried
                    else [heads[i * k + j], ends[i * k + j]]
                )
                texts.append(" ".join(parts))
        return texts

    def _fresh(self, rows: int, count: int) -> Ints:
        """Return words that no answer to the question holds; each of its rows begins with another one."""
        fresh = self.truth.words[:, _FRESH:]
        first = self.rng.integers(fresh.shape[1], size=(self.n, 1)) + _STRIDE * np.arange(rows // self.n)
        places = ((first[:, :, None] + np.arange(count)) % fresh.shape[1]).reshape(self.n, -1)
        found: Ints = np.take_along_axis(fresh, places, axis=1).reshape(rows, count)
        return found

    def _changed(self, hit: Bools) -> list[str]:
        """Return answers with the words at the places ``hit``, and those hit by noise, replaced.

        ``hit`` has the shape (n, m, `ANSWER_WORDS`); the result is flat.
        """
        n, m, _ = hit.shape
        if self.noise:
            hit = hit | (self.rng.random(hit.shape) < self.noise)
        fresh = self._fresh(n * m, ANSWER_WORDS).reshape(hit.shape)
        different = np.flatnonzero(hit.any(axis=2) & ~self.truth.empty[:, None])
        own = self.truth.words[:, None, :ANSWER_WORDS]
        words = np.where(hit, fresh, own).reshape(n * m, ANSWER_WORDS)[different]
        texts = [answer for answer in self.answers for _ in range(m)]
        for place, text in zip(different.tolist(), _sentences(words, CLAIMS), strict=True):
            texts[place] = text
        return texts

    def _repeats(self, repeats: int) -> pd.DataFrame:
        nothing = np.zeros((self.n, repeats, ANSWER_WORDS), dtype=bool)
        return _frame(
            query_id=np.repeat(self.ids, repeats),
            repeat=np.tile(np.arange(1, repeats + 1), self.n),
            answer=self._changed(nothing),
            answer_status=np.repeat(self.status, repeats),
        )

    def _samples(self) -> pd.DataFrame:
        return _frame(
            query_id=np.repeat(self.ids, SAMPLES),
            sample_id=[f"s{i + 1}" for i in range(SAMPLES)] * self.n,
            **self._sampled(np.arange(self.n), self.truth.meanings),
            planted_meaning=self.truth.meanings.ravel(),
        )

    def _sampled(self, questions: Ints, meanings: Ints) -> dict[str, Any]:
        """Return answers of the given meanings, shape (n_questions, m); every other has one word replaced."""
        n, m = meanings.shape
        start = (meanings - 1) * ANSWER_WORDS
        own = self.truth.words[questions]
        places = (start[:, :, None] + np.arange(ANSWER_WORDS)).reshape(n, m * ANSWER_WORDS)
        words = np.take_along_axis(own, places, axis=1).reshape(n * m, ANSWER_WORDS)
        reworded = np.flatnonzero(self.rng.random(n * m) < 0.5)
        at = self.rng.integers(_SENTENCE, ANSWER_WORDS, reworded.size)
        other = self.rng.integers(_FRESH, len(WORDS), reworded.size)
        words[reworded, at] = own[reworded // m, other]
        empty = (self.truth.empty[questions][:, None] & (meanings == 1)).ravel()
        texts = _sentences(words, CLAIMS)
        share = np.take_along_axis(self.truth.shares[questions], meanings - 1, axis=1).ravel()
        return {
            "answer": ["" if none else text for none, text in zip(empty, texts, strict=True)],
            "temperature": self.rng.uniform(0.5, 1.2, n * m).round(4),
            "top_p": self.rng.uniform(0.8, 0.95, n * m).round(4),
            "seed": np.tile(np.arange(1, m + 1), n),
            "logprob_sum": np.log(share) - self.rng.exponential(0.5, n * m),
            "n_tokens": np.where(empty, 0, ANSWER_WORDS),
        }

    def context_samples(self) -> pd.DataFrame:
        """Return the context test of the first questions with an answer and a gold passage.

        Without the gold passage the first meaning loses more than half of its probability; unrelated
        passages, those of the next question, change nothing.
        """
        truth, m = self.truth, _CONTEXT_SAMPLES
        chosen = np.flatnonzero(~truth.empty & (truth.gold >= 0))[:_CONTEXT_QUESTIONS]
        frames = []
        for condition, keeps in (("unchanged", 1.0), ("without_support", 0.4), ("unrelated_added", 1.0)):
            size = 1 if condition == "unchanged" else 1 + m
            first = keeps * truth.shares[chosen, :1]
            u = self.rng.random((len(chosen), size))
            meanings = np.where(u < first, 1, 2 + (u > first + 0.65 * (1 - first)))
            if keeps == 1:
                meanings[:, 0] = 1  # at temperature 0 the most probable one
            shown = [self._shown(i, condition) for i in chosen.tolist() for _ in range(size)]
            frames.append(
                _frame(
                    query_id=np.repeat(self.ids[chosen], size),
                    condition=condition,
                    sample_id=["baseline", *(f"s{i + 1}" for i in range(size - 1))] * len(chosen),
                    **self._sampled(chosen, meanings),
                    order=[order for order, _ in shown],
                    order_of=[order_of for _, order_of in shown],
                )
            )
        return pd.concat(frames, ignore_index=True)

    def _shown(self, question: int, condition: str) -> tuple[list[str], list[str]]:
        """Return the passages of a prompt and the questions that they were retrieved for."""
        ids, own = list(self.passage_ids), [self.ids[question]] * self.k
        if condition == "without_support":
            del ids[self.truth.gold[question]], own[0]
        if condition == "unrelated_added":
            ids, own = ids * 2, own + [self.ids[(question + 1) % self.n]] * self.k
        return ids, own

    def _verified(self) -> dict[str, pd.DataFrame]:
        """Return the claims of the answers and of the references, and the cells of each."""
        truth, n, k = self.truth, self.n, self.k
        said = np.flatnonzero(~truth.empty)
        supported = truth.supports.any(axis=2) | (truth.kinds == TOGETHER)
        right = np.column_stack([truth.correct, self.rng.random(n) < np.where(supported[:, 1], 0.9, 0.3)])
        starts = np.cumsum(
            [[0] * n, *([len(text) + 1 for text in claim] for claim in self.claims[:-1])], axis=0
        )
        frames, cells = [], []
        for i, claim in enumerate(self.claims):
            texts, start = np.array(claim, dtype=object)[said], starts[i][said]
            end = start + np.array([len(text) for text in texts.tolist()], dtype=np.int64)
            frames.append(
                _frame(
                    query_id=self.ids[said],
                    claim_id=f"a{i + 1}",
                    text=texts,
                    side="answer",
                    counterpart=np.where(right[said, i], "Entailment", "Neutral"),
                    start=start,
                    end=end,
                    spans=[[f"{a}:{b}"] for a, b in zip(start.tolist(), end.tolist(), strict=True)],
                )
            )
            cells.append(self._cells(said, f"a{i + 1}", truth.supports[said, i], truth.scored[said, i]))
        frames.append(
            _frame(
                query_id=self.ids,
                claim_id="r1",
                text=_sentences(self.reference),
                side="reference",
                counterpart=np.where(truth.correct, "Entailment", "Neutral"),
            )
        )
        gold = np.arange(k) == truth.gold[:, None]
        cells.append(self._cells(np.arange(n), "r1", gold, np.ones((n, k), dtype=bool)))
        claims = pd.concat(frames, ignore_index=True).assign(relevance="RELEVANT", scored=True)
        support = pd.concat(cells, ignore_index=True)
        return {"claims": claims, "support": support, "joint_support": self._together(said)}

    def _cells(self, questions: Ints, claim: str, supports: Bools, scored: Bools) -> pd.DataFrame:
        yes, no = (self.rng.uniform(*limits, supports.shape) for limits in ((0.75, 0.98), (0.02, 0.3)))
        n = len(questions)
        return _frame(
            query_id=np.repeat(self.ids[questions], self.k),
            claim_id=[claim] * (n * self.k),
            passage_id=self.passage_ids * n,
            probability=np.where(scored, np.where(supports, yes, no).round(4), np.nan).ravel(),
            judge=["simulation"] * (n * self.k),
        )

    def _together(self, said: Ints) -> pd.DataFrame:
        """Return a pair of passages for each claim that only two of them support together."""
        question, claim = np.nonzero(self.truth.kinds[said] == TOGETHER)
        pairs = self.rng.permuted(np.tile(np.arange(self.k), (len(question), 1)), axis=1)[:, :2]
        passages = np.array(self.passage_ids, dtype=object)[np.sort(pairs, axis=1)]
        return _frame(
            query_id=self.ids[said][question],
            claim_id=[f"a{i + 1}" for i in claim.tolist()],
            passage_id=passages[:, 0],
            second_passage_id=passages[:, 1],
            probability=self.rng.uniform(0.6, 0.9, len(question)).round(4),
            judge="simulation",
        )

    def _signals(self) -> pd.DataFrame:
        """Return signals whose sum by the default weights is the level."""
        level = self.truth.level
        a, b = self.rng.uniform(-0.25, 0.25, (2, self.n))
        room = np.minimum(level, 1 - level)
        return _frame(
            query_id=self.ids,
            similarity=level + room * a,
            lexical=100 * (level + room * b),
            llm_score=level - room * (0.45 * a + 0.35 * b) / 0.2,
        )

    def _verdicts(self) -> pd.DataFrame:
        truth = self.truth
        overlap = np.where(truth.doubted, 0.0, self.rng.uniform(0.3, 1.0, size=self.n)).round(2)
        overlap[truth.empty] = np.nan
        own = {
            # Which fail, with which severity, and why.
            "EvidenceOverlap": (truth.doubted, "warning", "low_overlap"),
            "ConfidenceValidator": (truth.stopped, "critical", "missing_uncertainty"),
        }
        frames = []
        for name, (fails, severity, why) in own.items():
            reason = np.where(fails, why, "fine")
            reason[truth.empty] = "empty_answer" if severity == "critical" else "not_applicable"
            frames.append(
                _frame(
                    query_id=self.ids,
                    validator=name,
                    passed=pd.Series(~fails, dtype="boolean").mask(reason == "not_applicable"),
                    severity=np.where(fails, severity, "none"),
                    reason=reason,
                    value=overlap,
                    detail=np.where(fails, "Planted objection.", "Planted: nothing to object to."),
                )
            )
        for name, detail in _NOT_APPLICABLE.items():
            one = {"validator": name, "severity": "none", "reason": "not_applicable", "detail": detail}
            frames.append(_frame(query_id=self.ids, **one))
        return pd.concat(frames, ignore_index=True)


def _sentences(words: NDArray[Any], parts: int = 1) -> list[str]:
    """Return each row of words, shape (n, m), as so many sentences of equal length."""
    n, m = words.shape
    if not n or not m:
        return [""] * n
    styled = words.astype(np.int64)
    styled[:, :: m // parts] += _HEAD
    styled[:, m // parts - 1 :: m // parts] += _END
    return [" ".join(row) for row in _TOKENS[styled].tolist()]


def _frame(**columns: Any) -> pd.DataFrame:
    """Return a table, in which columns of texts hold no Python object for each."""
    return pd.DataFrame({name: _column(values) for name, values in columns.items()})


def _column(values: Any) -> Any:
    if isinstance(values, np.ndarray) and values.dtype.kind in "OU":
        values = values.tolist()
    if not isinstance(values, list) or (values and isinstance(values[0], list)):
        return values
    return pa.chunked_array([pa.array(values, pa.large_string())]).to_pandas()
