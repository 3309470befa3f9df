"""Claims of an answer and the evidence for them.

``decomposition`` breaks answers into claims, ``verifiers`` judge them against passages, ``of_run`` does both
sides of a whole run (`analyse_claims`). Beside them stand the matrix, its numbers, and what passages did.
"""

from core.claims.decomposition.decompose import decompose
from core.claims.decomposition.self_contained import self_contained
from core.claims.decomposition.split import split_claims
from core.claims.matrix import (
    ClaimEvidenceMatrix,
    claim_states,
    claim_uncertainty,
    passage_importance,
    support_maximum,
)
from core.claims.of_run.analysis import ClaimsAnalysis, analyse_claims
from core.claims.of_run.answer_claims import AnswerClaims
from core.claims.of_run.scores import CLAIM_STATES, JOINT
from core.claims.of_run.summary import claims_summary
from core.claims.rafe import f1_at_k, precision, recall_at_k
from core.claims.ragchecker import ragchecker_metrics
from core.claims.types import Claim, Verifier
from core.claims.verifiers.offline import OfflineVerifier, default_verifier, offline_figures

__all__ = [
    "CLAIM_STATES",
    "JOINT",
    "AnswerClaims",
    "Claim",
    "ClaimEvidenceMatrix",
    "ClaimsAnalysis",
    "OfflineVerifier",
    "Verifier",
    "analyse_claims",
    "claim_states",
    "claim_uncertainty",
    "claims_summary",
    "decompose",
    "default_verifier",
    "f1_at_k",
    "offline_figures",
    "passage_importance",
    "precision",
    "ragchecker_metrics",
    "recall_at_k",
    "self_contained",
    "split_claims",
    "support_maximum",
]
