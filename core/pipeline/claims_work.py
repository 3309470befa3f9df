"""Find the claims of a few questions, judge them, and compare both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.claims.decomposition.decompose import Decomposition, decompositions
from core.claims.of_run.counterparts import entailment_label
from core.claims.of_run.tables import ANSWER, QuestionClaims
from core.claims.types import Verifier
from core.claims.verifiers.joint import joint_support
from core.claims.verifiers.offline import OfflineVerifier
from core.errors import BackendError
from core.llm.types import LLM
from core.pipeline.claims_questions import Asked, ClaimQuestion, asked_about
from core.pipeline.claims_verify import PASSED_ON, GuardedVerifier, Scores, like_sentences, reason_of
from core.pipeline.model_calls import ModelCalls

Found = list[tuple[ClaimQuestion, list[Decomposition]]]


class ClaimsWork:
    """Works on batches of questions and remembers what came of them.

    Parameters
    ----------
    verifier, again : Verifier
        Who judges what was never judged, and what failed before.
    decomposer : LLM or None
        Who breaks texts into claims; None for the rules.
    calls : ModelCalls
        How models are asked.
    joint : bool
        Whether pairs of passages are tried.
    own : bool
        Whether the verifiers were opened by this program.

    Attributes
    ----------
    known : dict of str to QuestionClaims
        By question; one without a claim is absent.
    joint_left : set of str
        Questions with pairs of passages that are still to be judged.
    reasons : Counter
        Cells that could not be scored, by reason.
    by_rules : Counter
        Texts whose claims are the splitter's in place of the model's, by reason.
    left : dict of str to str
        Questions that could not be broken into claims, with the reason.
    """

    def __init__(
        self,
        verifier: Verifier,
        again: Verifier,
        decomposer: LLM | None,
        calls: ModelCalls,
        *,
        joint: bool,
        own: bool,
    ) -> None:
        self.known: dict[str, QuestionClaims] = {}
        self.joint_left: set[str] = set()
        self.reasons: Counter[str] = Counter()
        self.by_rules: Counter[str] = Counter()
        self.left: dict[str, str] = {}
        self._verifier = verifier
        # The offline verifier compares words, every other one is taken to understand what it reads.
        self._reads = not isinstance(verifier, OfflineVerifier)
        self._first = GuardedVerifier(verifier, lambda: calls.n_answers > 0, trusted=own)
        # Cells that failed before may fail for ever: that is no reason to give up.
        self._again = GuardedVerifier(again, lambda: True)
        self._decomposer, self._calls, self._joint = decomposer, calls, joint

    def work(self, questions: Sequence[ClaimQuestion]) -> None:
        """Find out what is not known yet about some questions.

        Raises
        ------
        Cancelled
            On request; what is finished is in `known`.
        BackendError
            The model cannot be reached, and nothing was answered before.
        """
        new = [question for question in questions if question.query_id not in self.known]
        old = [
            (question, self.known[question.query_id])
            for question in questions
            if question.query_id in self.known
        ]
        self._judge(old, self._again)
        found = [(question, question.claims(results)) for question, results in self._decomposed(new)]
        self._judge([(question, claims) for question, claims in found if claims.claims], self._first)

    def _decomposed(self, questions: Sequence[ClaimQuestion]) -> Found:
        texts = [text for question in questions for text in question.texts]
        results = self._decompositions(texts)
        if not isinstance(results, Exception):
            rest = iter(results)
            return self._counted((question, [next(rest) for _ in question.texts]) for question in questions)
        found = []
        for question in questions:
            one = self._decompositions(question.texts)
            if isinstance(one, Exception):
                self.left[question.query_id] = reason_of(one, "The model")
            else:
                found.append((question, one))
        return self._counted(found)

    def _decompositions(self, texts: Sequence[str]) -> list[Decomposition] | Exception:
        try:
            return decompositions(texts, self._decomposer, self._calls.ask)
        except PASSED_ON:
            raise
        except Exception as error:
            if isinstance(error, BackendError) and not self._calls.n_answers:
                raise
            return error

    def _counted(self, found: Iterable[tuple[ClaimQuestion, list[Decomposition]]]) -> Found:
        listed = list(found)
        self.by_rules.update(one.reason for _, results in listed for one in results if one.reason)
        return listed

    def _judge(
        self, listed: Sequence[tuple[ClaimQuestion, QuestionClaims]], verifier: GuardedVerifier
    ) -> None:
        asked = [asked_about(question, known, reads=self._reads) for question, known in listed]
        scores = verifier.ask([one.groups for one in asked])
        cells = [group for one in asked for group in one.groups[: len(one.cells)]]
        sentences = iter(like_sentences(self._verifier, cells) if cells else ())
        for (question, known), one, found in zip(listed, asked, scores, strict=True):
            places = [question.in_passages(columns, next(sentences), self._reads) for _, columns in one.cells]
            self.known[question.query_id] = self._filled(known, one, found, places)
            if self._joint and one.cells:
                self.joint_left.add(question.query_id)
        for (question, _), one in zip(listed, asked, strict=True):
            if question.query_id in self.joint_left:
                self._join(question, one.rows, verifier)

    def _filled(
        self,
        known: QuestionClaims,
        asked: Asked,
        found: Sequence[Scores],
        sentences: Sequence[NDArray[np.int64]],
    ) -> QuestionClaims:
        for (rows, columns), scores, places in zip(asked.cells, found, sentences, strict=False):
            area = np.ix_(np.array(rows), np.array(columns))
            known.probability[area] = scores.probability
            known.agreement[area] = scores.agreement
            known.sentences[area] = places
            if scores.reason:
                self.reasons[scores.reason] += int(np.isnan(scores.probability).sum())
        labels = list(known.counterparts)
        for place, label in asked.settled.items():
            labels[place] = label
        for rows, scores in zip(asked.compared, found[len(asked.cells) :], strict=True):
            for place, probabilities in zip(rows, scores.probability, strict=True):
                labels[place] = entailment_label(probabilities)
        return replace(known, counterparts=tuple(labels))

    def _join(self, question: ClaimQuestion, changed: set[int], verifier: GuardedVerifier) -> None:
        """Try pairs of passages for the claims of the answer whose cells are new, or all where it failed."""
        known = self.known[question.query_id]
        rows = [
            i
            for i, side in enumerate(known.sides)
            if side == ANSWER and known.claims[i].relevant and (i in changed or not changed)
        ]
        columns = np.flatnonzero(known.readable)
        n_failed = verifier.n_failed
        texts = question.evidence(titled=self._reads)
        found = joint_support(
            [known.claims[i].text for i in rows],
            [texts[j] for j in columns],
            known.probability[np.ix_(np.array(rows, dtype=np.int64), columns)],
            verifier,
        )
        joint = [one for one in known.joint if one[0] not in rows]
        joint += [(rows[i], (int(columns[a]), int(columns[b])), p) for i, (a, b), p in found]
        self.known[question.query_id] = replace(known, joint=tuple(sorted(joint, key=lambda one: one[0])))
        if verifier.n_failed == n_failed:
            self.joint_left.discard(question.query_id)
