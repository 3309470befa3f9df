"""The run that holds the claims of another one, and what finding them will cost."""

from __future__ import annotations

import hashlib
import json
import math

from core.llm.types import LLM
from core.pipeline.claims_options import JUDGE, MODEL, ClaimsOptions
from core.run import Run

CLAIMS_EXPECTED = 3  # claims of an answer, for an estimate before there is any


def run_for_claims(run: Run, options: ClaimsOptions, judge: str | None = None) -> Run:
    """Return a run with the same tables that names ``run`` as its parent, ready to be given claims.

    Parameters
    ----------
    run : Run
        The run whose answers are to be checked.
    options : ClaimsOptions
        How they will be.
    judge : str, optional
        Name of the language model that judges or decomposes.

    Returns
    -------
    Run
        The same run, options and judge always give the same run id, so that a stopped job is found again.
    """
    identity = json.dumps([run.run_id, options.to_dict(), judge], sort_keys=True)
    run_id = hashlib.sha256(identity.encode()).hexdigest()[:12]
    return run.derive({"run_id": run_id, "name": f"{run.name.removesuffix(', claims')}, claims"})


def about_calls(
    n_answers: int,
    n_passages: float,
    options: ClaimsOptions,
    llm: LLM | None,
    n_claims: int = CLAIMS_EXPECTED,
) -> int:
    """Estimate the calls of a language model that the step will make.

    Parameters
    ----------
    n_answers : int
        Answers to be taken apart.
    n_passages : float
        Passages of an answer, on average.
    options : ClaimsOptions
        Who judges and decomposes.
    llm : LLM, optional
        The judge; one that can score a given answer reads each label of each claim and passage.
    n_claims : int
        Claims of an answer; unknown before the step.

    Returns
    -------
    int
        0 without a language model. Repairs, repeated answers and pairs of passages are not counted.
    """
    calls = n_answers if options.decomposer == MODEL else 0
    if options.verifier == JUDGE:
        if llm is not None and llm.capabilities.answer_logprob:
            each = 2.0 * n_claims
        else:
            each = float(math.ceil(n_claims / options.claims_per_call) * options.repeats)
        calls += round(n_answers * n_passages * each)
    return calls
