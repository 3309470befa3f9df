"""The step that extracts the claims of answers and verifies them against the passages."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, ClassVar

from core.claims.decomposition.decompose import Decomposition, decompositions
from core.claims.questions import (
    ANSWER,
    CLAIM_TABLES,
    RELEVANT,
    QuestionClaims,
    QuestionTexts,
    claim_rows,
    read_question,
)
from core.claims.types import OFFLINE, Claim, Verifier
from core.claims.verification import Verification
from core.claims.verifiers.checked import VerifyFunction, as_verifier
from core.claims.verifiers.gain import GainVerifier
from core.claims.verifiers.judge import JudgeVerifier
from core.claims.verifiers.nli import NLIVerifier
from core.claims.verifiers.offline import default_verifier
from core.errors import InputError, check_ranges
from core.llm import BACKENDS, LLM, backend
from core.pipeline.asking import Asker
from core.pipeline.rows import Rows, questions_of
from core.pipeline.steps import ModelChoice, Option, StepPlan, StepWork
from core.run import Run
from core.text.display import count

JUDGE, GAIN, NLI = "judge", "gain", "nli"
# Title, and what it does and costs.
VERIFIERS: Mapping[str, tuple[str, str]] = {
    OFFLINE: (
        "Offline (no model, weak on hard claims)",
        "Compares words and meanings on this machine, usually well under a second per answer; no call, "
        "nothing is sent. For a summary of one long text it is no better than guessing.",
    ),
    JUDGE: (
        "A language model as judge",
        "Reads each passage with the claims, and says which of them it supports: about one call per answer "
        "and passage.",
    ),
    GAIN: (
        "Information gain of a language model",
        "How much likelier each passage makes each claim: the model only reads, and needs no instructions to "
        "follow. One reading per claim and passage; the embedded back end only.",
    ),
    NLI: (
        "An NLI cross-encoder (name or folder)",
        "A model trained to tell whether one text follows from another: one forward pass per claim and "
        "passage, on this machine.",
    ),
}
AUTO, RULES, MODEL = "auto", "rules", "model"
DECOMPOSERS = (AUTO, RULES, MODEL)
CLAIMS_EXPECTED = 3  # claims of an answer, for an estimate before there is any
_RANGES: Mapping[str, tuple[int, int]] = {"repeats": (1, 100), "claims_per_call": (1, 50)}
_BATCH, _MODEL_BATCH = 16, 4  # questions; a model makes many calls for each
_SEEDS_APART = 1_000  # above every number of repeats
_CHARACTERS = 4  # of a token, about
_INSTRUCTION = 200  # tokens of a judge's prompt beside the passage
_CLAIM = 30  # tokens of a claim
_LATER = "Not tried again yet."


@dataclass(frozen=True)
class ClaimsStep:
    """Extract and verify claims; InputError for a value outside its range or an unknown name.

    The claims of a composed answer are those it was composed of, whoever extracts. Only relevant claims are
    verified. A cell that fails has no probability and a reason, and is tried again next time, a judge under
    another seed.

    Cost: only time with the offline verifier and the rules. A model breaks up each text in one call. A
    judge's calls are those of `core.claims.verifiers.judge.JudgeVerifier`, for answer and reference apart;
    comparing the two takes one call for each ``claims_per_call`` claims and other text; each claim without
    support at most three more for pairs. For ``gain`` each claim is read with every passage and once without.
    """

    name: ClassVar[str] = "claims"
    title: ClassVar[str] = "Extract and verify claims"
    noun: ClassVar[str] = "answer"
    fills: ClassVar[Mapping[str, tuple[str, ...]]] = dict.fromkeys(CLAIM_TABLES, ())

    verifier: Annotated[str, Option("--verifier", f"Who verifies claims: {', '.join(VERIFIERS)}.")] = OFFLINE
    verifier_model: Annotated[
        str | None, Option("--verifier-model", "The model of judge or gain, or the NLI model's name.")
    ] = None
    verifier_llm: Annotated[
        str | None,
        Option("--verifier-llm", f"Back end of judge or gain ({', '.join(BACKENDS)}); else that of --llm."),
    ] = None
    verifier_url: Annotated[
        str | None, Option("--verifier-url", "Address of that back end's server; else --base-url.")
    ] = None
    decompose: Annotated[
        str,
        Option(
            "--decompose", f"Who extracts claims: {', '.join(DECOMPOSERS)}; auto: a judge's model or rules."
        ),
    ] = AUTO
    repeats: Annotated[int, Option("--judge-repeats", "Verdicts of a judge on each claim.")] = 1
    claims_per_call: int = 5  # of a judge
    joint: bool = True  # try pairs of passages for claims that no single passage supports
    references: bool = True  # extract the claims of reference answers, too, and compare both sides
    # Replaces the named one; not shown, since it may hold a key.
    own: Verifier | VerifyFunction | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, allowed in (("verifier", VERIFIERS), ("decompose", DECOMPOSERS)):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}.")
        check_ranges(self, _RANGES)
        if self.verifier_model is not None and self.verifier == OFFLINE:
            raise InputError(
                f"verifier_model is for the verifiers {JUDGE}, {GAIN} and {NLI}, got {self.verifier_model!r} "
                f"for {OFFLINE}."
            )
        if self.own is not None:
            as_verifier(self.own)

    @property
    def is_judged(self) -> bool:
        """Whether a language model judges."""
        return self.verifier == JUDGE if self.own is None else isinstance(self.own, JudgeVerifier)

    @property
    def is_gain(self) -> bool:
        """Whether a language model reads, and its information gain decides."""
        return self.verifier == GAIN if self.own is None else isinstance(self.own, GainVerifier)

    @property
    def decomposer(self) -> str:
        """Who breaks answers into claims: ``rules`` or ``model``; ``auto`` is resolved."""
        if self.decompose != AUTO:
            return self.decompose
        return MODEL if self.is_judged else RULES

    @property
    def needs_llm(self) -> bool:
        """Whether a language model verifies or breaks answers into claims."""
        return self.is_judged or self.is_gain or self.decomposer == MODEL

    @property
    def settings(self) -> dict[str, Any]:
        """What the rows depend on beside the model, as plain JSON."""
        named = {"verifier": self.verifier if self.own is None else as_verifier(self.own).name}
        if self.verifier == NLI:
            named["verifier_model"] = str(self.verifier_model)
        others = ("decompose", "repeats", "claims_per_call", "joint", "references")
        return named | {name: getattr(self, name) for name in others}

    def model(self, live: ModelChoice) -> ModelChoice | None:
        """Return the model that verifies or breaks up answers; None where none does."""
        if not self.needs_llm:
            return None
        kind = backend(self.verifier_llm).kind if self.verifier_llm is not None else live.backend
        # The settings of one back end mean nothing to another.
        same = live if kind == live.backend else ModelChoice(kind)
        named = self.verifier_model if self.verifier in (JUDGE, GAIN) else None
        return ModelChoice(kind, named or same.model, self.verifier_url or same.base_url)

    def opened_verifier(self, asker: Asker, seed: int = 0) -> Verifier:
        """Return the verifier; nothing is loaded or called yet. InputError where it has no model."""
        if self.own is not None:
            return as_verifier(self.own)
        if self.verifier in (JUDGE, GAIN):
            assert asker.llm is not None, "the driver asks for one"
            if self.verifier == GAIN:
                return GainVerifier(asker.llm, asker.score)
            return JudgeVerifier(
                asker.llm, asker.ask, self.claims_per_call, self.repeats, seed=seed, score=asker.score
            )
        if self.verifier == NLI:
            if self.verifier_model is None:
                raise InputError(
                    "The verifier nli needs verifier_model, the name or path of a cross-encoder such as "
                    "cross-encoder/nli-deberta-v3-base."
                )
            return NLIVerifier(self.verifier_model)
        return default_verifier()

    def open(self, run: Run, asker: Asker) -> StepWork:
        """Return the step at work.

        Of its facts ``n_claims`` are those of answers, ``n_by_rules`` texts whose claims the model could not
        give, ``joint_left`` the questions with pairs of passages still to be verified.
        """
        return _Work(self, run, asker)


class _Work(StepWork):
    """The step at work. Questions whose claims failed to be extracted or verified stay to do."""

    def __init__(self, step: ClaimsStep, run: Run, asker: Asker) -> None:
        self.settings = step.settings
        self.batch = _MODEL_BATCH if step.is_judged or step.is_gain else _BATCH
        # What opens a model of its own is opened once.
        self.apart = "run" if step.own is not None or step.verifier == NLI else "rows"
        self._step, self._run, self._asker = step, run, asker
        self._asked = questions_of(run, (*CLAIM_TABLES, "planted_claims"))
        self._before: Mapping[str, Any] = run.manifest.get("steps", {}).get(step.name, {})
        self._decomposer: LLM | None = asker.llm if step.decomposer == MODEL else None
        # A reply that cannot be used is in the cache: only under another seed is the model asked again.
        self._tries = int(self._before.get("tries", 0))
        again = step.opened_verifier(asker, _SEEDS_APART * self._tries)
        left = self._before.get("joint_left", ())
        self._verification = Verification(step.opened_verifier(asker), again, step.joint, left)
        self._todo: frozenset[str] | None = None  # at first
        self._tried: set[str] = set()
        self._extracted: dict[str, QuestionClaims] = {}  # in this drive
        self._elsewhere: set[str] = set()  # extracted in this drive by another process
        self._by_rules: Counter[str] = Counter(self._before.get("decomposition_reasons", {}))
        self._told = self._by_rules.copy()

    def todo(self, run: Run) -> Sequence[str]:
        ids, support = run.queries["query_id"], run["support"]
        unscored = support.loc[support["probability"].isna(), "query_id"]
        left = self._verification.joint_left.union(unscored, self._uncompared(run), self._not_extracted(run))
        listed = ids[ids.isin(left)].to_list()
        if self._todo is None:
            self._todo = frozenset(listed)
        return listed

    def work(self, ids: Sequence[str]) -> Rows:
        texts = [self._texts(query_id) for query_id in ids]
        old = [one for one in texts if self._is_old(one.query_id)]
        new = [one for one in texts if not self._is_old(one.query_id)]
        self._extract([one for one in new if one.query_id not in self._extracted])
        verified = [
            *self._verification.verified([(one, self._read(one)) for one in old], again=True),
            *self._verification.verified([(one, self._extracted[one.query_id]) for one in new], again=False),
        ]
        self._tried.update(ids)
        return claim_rows(verified, self._verification.name)

    def failed(self, query_id: str, reason: str) -> Rows:
        self._tried.add(query_id)
        is_old = self._is_old(query_id)
        known = self._read(self._texts(query_id)) if is_old else self._extracted.get(query_id)
        if known is None:
            return {}
        self._verification.failed(known, reason)
        return claim_rows([known], self._verification.name)

    def tell(self, ids: Sequence[str]) -> Any:
        found = self._verification
        by_rules, self._told = self._by_rules - self._told, self._by_rules.copy()
        reasons = {one: found.reasons[one] for one in ids if one in found.reasons}
        extracted = [one for one in ids if one in self._extracted]
        return extracted, by_rules, reasons, [one for one in ids if one in found.joint_left]

    def hear(self, ids: Sequence[str], told: Any) -> None:
        extracted, by_rules, reasons, joint_left = told
        self._tried.update(ids)
        self._elsewhere.update(extracted)
        self._by_rules.update(by_rules)
        self._verification.reasons.update(reasons)
        self._verification.joint_left.difference_update(ids)
        self._verification.joint_left.update(joint_left)

    def plan(self, ids: Sequence[str]) -> StepPlan:
        """Estimate the calls; repairs, comparisons with references and pairs of passages are not counted."""
        if not self._step.needs_llm:
            return StepPlan(about=0)
        texts = [self._texts(query_id) for query_id in ids]
        stating = [
            one for one in texts if one.answered or not self._asked(one.query_id).query["answer_status"]
        ]
        calls = tokens = 0
        if self._decomposer is not None:
            calls += len(stating)
            tokens += sum(_INSTRUCTION + len(one.answer) // _CHARACTERS for one in stating)
        if self._step.is_judged:
            each = self._calls_of_a_passage()
            lengths = [_INSTRUCTION + len(text) // _CHARACTERS for one in stating for _, text in one.passages]
            calls += each * len(lengths)
            tokens += each * sum(lengths)
        if self._step.is_gain:
            readings = CLAIMS_EXPECTED * sum(1 + len(one.passages) for one in stating)
            calls += readings
            # A passage is read once for all claims.
            tokens += _CLAIM * readings
            tokens += sum(len(text) // _CHARACTERS for one in stating for _, text in one.passages)
        note = f"Estimated for {CLAIMS_EXPECTED} claims an answer; repairs and pairs of passages are extra."
        return StepPlan(about=calls, about_tokens=tokens, notes=(note,))

    def facts(self, run: Run) -> Mapping[str, Any]:
        claims, n_cells = run["claims"], len(run["support"])
        n_unscored = int(run["support"]["probability"].isna().sum())
        reasons = sum(self._verification.reasons.values(), Counter[str]())
        if (later := n_unscored - reasons.total()) > 0:
            reasons[_LATER] = later
        joint_left = sorted(self._verification.joint_left)
        n_answer = int(claims["side"].eq(ANSWER).sum())
        n_not_extracted = len(self._not_extracted(run))
        ended = self._todo is not None and self._todo <= self._tried
        model = self._decomposer
        extracted_by = "rules" if model is None else f"model:{model.name}"
        return {
            "decomposition": extracted_by if self._run["planted_claims"].empty else "composed",
            "verifier": self._verification.name,
            "n_questions": len(run.queries),
            "n_claims": n_answer,
            "n_reference_claims": len(claims) - n_answer,
            "n_cells": n_cells,
            "n_unscored": n_unscored,
            "unscored_reasons": dict(reasons),
            "n_counterparts_unscored": len(self._uncompared(run)),
            "n_by_rules": self._by_rules.total(),
            "decomposition_reasons": dict(self._by_rules),
            "n_not_extracted": n_not_extracted,
            "joint_left": joint_left,
            "tries": self._tries + ended,
            "notes": _notes(n_not_extracted, n_unscored, n_cells, reasons, len(joint_left)) if ended else [],
        }

    def _texts(self, query_id: str) -> QuestionTexts:
        asked = self._asked(query_id)
        return QuestionTexts.of(asked.query, asked.passages, self._step.references)

    def _is_old(self, query_id: str) -> bool:
        """Tell whether an earlier drive extracted claims of a question."""
        return bool(self._asked(query_id).filled["claims"])

    def _read(self, texts: QuestionTexts) -> QuestionClaims:
        return read_question(texts.query_id, self._asked(texts.query_id).filled, texts.passages)

    def _composed(self, query_id: str) -> Decomposition | None:
        """Return the claims that an answer was composed of, if it was."""
        rows = self._asked(query_id).filled["planted_claims"]
        claims = tuple(Claim(one["text"], ((one["start"], one["end"]),)) for one in rows)
        return Decomposition(claims) if claims else None

    @cached_property
    def _compared(self) -> set[str]:
        """Questions whose answer and reference both state something."""
        queries = self._run.queries
        ids = queries.loc[queries["reference_answers"].notna(), "query_id"] if self._step.references else ()
        return {query_id for query_id in ids if self._texts(query_id).is_compared}

    def _uncompared(self, run: Run) -> Sequence[str]:
        """Return the questions of claims not compared with the other side, one for each claim."""
        claims = run["claims"]
        open_ = claims["relevance"].eq(RELEVANT) & claims["counterpart"].isna()
        listed = claims.loc[open_, "query_id"]
        return [query_id for query_id in listed if query_id in self._compared]

    def _not_extracted(self, run: Run) -> Sequence[str]:
        """Return the questions not processed yet; some of the others have no claim."""
        ids = run.queries["query_id"]
        before = self._before
        all_done = before.get("complete") and not before.get("n_not_extracted")
        if all_done and before.get("n_questions") == len(ids):
            return []
        return ids[~ids.isin({*run["claims"]["query_id"], *self._extracted, *self._elsewhere})].to_list()

    def _extract(self, listed: Sequence[QuestionTexts]) -> None:
        known = [self._composed(one.query_id) for one in listed]
        texts = [one.to_decompose[found is not None :] for one, found in zip(listed, known, strict=True)]
        unread = [text for of_one in texts for text in of_one]
        results = iter(decompositions(unread, self._decomposer, self._asker.ask))
        for one, composed, of_one in zip(listed, known, texts, strict=True):
            found = [*([composed] if composed else []), *(next(results) for _ in of_one)]
            self._by_rules.update(result.reason for result in found if result.reason)
            self._extracted[one.query_id] = one.claims(found)

    def _calls_of_a_passage(self) -> int:
        """Return the judge's calls about one passage and the claims of an answer."""
        assert self._asker.llm is not None
        if self._asker.llm.capabilities.answer_logprob:
            return 2 * CLAIMS_EXPECTED
        return math.ceil(CLAIMS_EXPECTED / self._step.claims_per_call) * self._step.repeats


def _notes(
    n_not_extracted: int, n_unscored: int, n_cells: int, reasons: Mapping[str, int], n_joint: int
) -> list[str]:
    """Say what is missing and why."""
    again = "Run the step again to try them again."
    notes = []
    if n_not_extracted:
        notes.append(f"Claims of {count(n_not_extracted, 'question')} were not extracted. {again}")
    if n_unscored:
        notes.append(
            f"{n_unscored:,} of {count(n_cells, 'pair')} of claim and passage have no score: "
            f"{' '.join(reasons)} {again}"
        )
    if n_joint:
        notes.append(f"Pairs of passages of {count(n_joint, 'question')} were not verified. {again}")
    return notes
