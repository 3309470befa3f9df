"""Claims of an answer and the evidence for them.

``decomposition`` breaks texts into claims, ``verifiers`` check them against passages, ``extraction`` and
`core.claims.step` do both for the questions of a run; ``analysis`` reads the tables that result. The modules
beside them are pure functions on arrays and texts.
"""

from core.claims.analysis import ClaimsAnalysis, analyse_claims
from core.claims.answer import AnswerClaims
from core.claims.decomposition.decompose import decompose
from core.claims.decomposition.split import split_claims
from core.claims.matrix import (
    CLAIM_STATES,
    ClaimEvidenceMatrix,
    claim_states,
    claim_uncertainty,
    passage_importance,
    support_maximum,
)
from core.claims.rafe import f1_at_k
from core.claims.ragchecker import ragchecker_metrics
from core.claims.self_contained import self_contained
from core.claims.types import Claim, Verifier
from core.claims.verifiers.gain import GainVerifier, gain_figures
from core.claims.verifiers.offline import OfflineVerifier, default_verifier, offline_figures

__all__ = [
    "CLAIM_STATES",
    "AnswerClaims",
    "Claim",
    "ClaimEvidenceMatrix",
    "ClaimsAnalysis",
    "GainVerifier",
    "OfflineVerifier",
    "Verifier",
    "analyse_claims",
    "claim_states",
    "claim_uncertainty",
    "decompose",
    "default_verifier",
    "f1_at_k",
    "gain_figures",
    "offline_figures",
    "passage_importance",
    "ragchecker_metrics",
    "self_contained",
    "split_claims",
    "support_maximum",
]
