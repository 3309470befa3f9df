"""How claims are found and who judges them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from core.claims.types import Verifier
from core.claims.verifiers.judge import JudgeVerifier
from core.claims.verifiers.nli import NLIVerifier
from core.claims.verifiers.offline import default_verifier
from core.errors import InputError
from core.llm.structured import Ask
from core.llm.types import LLM, Score

OFFLINE, JUDGE, NLI = "offline", "judge", "nli"
VERIFIERS = (OFFLINE, JUDGE, NLI)
AUTO, RULES, MODEL = "auto", "rules", "model"
DECOMPOSERS = (AUTO, RULES, MODEL)
_RANGES: Mapping[str, tuple[int, int]] = {"repeats": (1, 100), "claims_per_call": (1, 50)}


@dataclass(frozen=True, slots=True)
class ClaimsOptions:
    """Settings of the step that finds claims and judges their support.

    Attributes
    ----------
    verifier : {"offline", "judge", "nli"}
        Who judges: likeness of words and meaning, without a download or a call; a language model; a
        cross-encoder for natural-language inference.
    verifier_model : str or None
        Name or path of the cross-encoder; ``nli`` needs one, the others have none.
    decompose : {"auto", "rules", "model"}
        Who breaks answers into claims; ``auto`` is the model where the verifier is the judge, else the rules.
    repeats : int
        Verdicts that the judge is asked for on each claim and passage, 1 to 100.
    claims_per_call : int
        Claims that the judge is asked about in one call, 1 to 50.
    joint : bool
        Try pairs of passages for claims that no single passage supports.
    references : bool
        Find the claims of reference answers, too, and compare both sides.

    Raises
    ------
    InputError
        A value outside its range or an unknown name.
    """

    verifier: str = OFFLINE
    verifier_model: str | None = None
    decompose: str = AUTO
    repeats: int = 1
    claims_per_call: int = 5
    joint: bool = True
    references: bool = True

    def __post_init__(self) -> None:
        for name, allowed in (("verifier", VERIFIERS), ("decompose", DECOMPOSERS)):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}.")
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise InputError(f"{name} must be a whole number from {low} to {high}, got {value!r}.")
        for name in ("joint", "references"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} must be True or False, got {getattr(self, name)!r}.")
        model = self.verifier_model
        if model is not None and (not isinstance(model, str) or not model.strip()):
            raise InputError(f"verifier_model must be a name or a path, or None, got {model!r}.")
        if model is not None and self.verifier != NLI:
            raise InputError(
                f"verifier_model is used by the verifier {NLI} only, got {model!r} for {self.verifier}."
            )

    @property
    def decomposer(self) -> str:
        """Who breaks answers into claims: ``rules`` or ``model``, as ``auto`` comes out."""
        if self.decompose != AUTO:
            return self.decompose
        return MODEL if self.verifier == JUDGE else RULES

    @property
    def needs_llm(self) -> bool:
        """Whether a language model judges or breaks answers into claims."""
        return self.verifier == JUDGE or self.decomposer == MODEL

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain JSON values."""
        return asdict(self)


def open_verifier(
    options: ClaimsOptions,
    llm: LLM | None = None,
    ask: Ask | None = None,
    *,
    seed: int = 0,
    score: Score | None = None,
) -> Verifier:
    """Return the verifier that the options name; nothing is loaded or asked yet.

    Parameters
    ----------
    options : ClaimsOptions
        Which one.
    llm : LLM, optional
        Who judges, for ``judge``.
    ask, seed, score
        As in `core.claims.verifiers.judge.JudgeVerifier`.

    Raises
    ------
    InputError
        The judge has no model, or ``nli`` no name of one.
    """
    if options.verifier == JUDGE:
        if llm is None:
            raise InputError("The verifier judge needs llm, a language model that judges; there is none.")
        return JudgeVerifier(llm, ask, options.claims_per_call, options.repeats, seed=seed, score=score)
    if options.verifier == NLI:
        if options.verifier_model is None:
            raise InputError(
                "The verifier nli needs verifier_model, the name or path of a cross-encoder such as "
                "cross-encoder/nli-deberta-v3-base; there is none."
            )
        return NLIVerifier(options.verifier_model)
    return default_verifier()


def decomposing_model(options: ClaimsOptions, llm: LLM | None, judged: bool) -> LLM | None:
    """Return the model that breaks answers into claims, None for the rules.

    Parameters
    ----------
    options : ClaimsOptions
        Who is wanted.
    llm : LLM or None
        The model, if there is one.
    judged : bool
        Whether a language model judges.

    Raises
    ------
    InputError
        A model is wanted and there is none.
    """
    if options.decompose == MODEL and llm is None:
        raise InputError(
            'decompose="model" needs llm, a language model that finds the claims; there is none.'
        )
    wanted = options.decompose == MODEL or (options.decompose == AUTO and judged)
    return llm if wanted else None
