"""Claims of an answer and the evidence for them.

``decomposition`` breaks texts into claims, ``verifiers`` check them against passages, ``questions``,
``verification`` and ``step`` do both for the questions of a run; ``layout``, ``scores``, ``answer`` and
``analysis`` read the tables that result. The modules beside them are pure functions on arrays and texts.
"""

from core.claims.analysis import analyse_claims
from core.claims.decomposition.split import split_claims
from core.claims.matrix import (
    CLAIM_STATES,
    claim_states,
    claim_uncertainty,
    passage_importance,
    support_maximum,
)
from core.claims.rafe import f1_at_k
from core.claims.verifiers.offline import default_verifier, packaged_figures

__all__ = [
    "CLAIM_STATES",
    "analyse_claims",
    "claim_states",
    "claim_uncertainty",
    "default_verifier",
    "f1_at_k",
    "packaged_figures",
    "passage_importance",
    "split_claims",
    "support_maximum",
]
