"""Claims of an answer and the evidence for them.

Claims of an answer, judges of their support, the claim-evidence matrix and its numbers; and what a whole
run's claims come to (`analyse_claims`).
"""

from core.claims.analysis import ClaimsAnalysis, analyse_claims
from core.claims.answer_claims import AnswerClaims
from core.claims.decompose import decompose
from core.claims.matrix import (
    ClaimEvidenceMatrix,
    claim_states,
    claim_uncertainty,
    passage_importance,
    support_maximum,
)
from core.claims.offline import OfflineVerifier, default_verifier
from core.claims.rafe import f1_at_k, precision, recall_at_k
from core.claims.ragchecker import ragchecker_metrics
from core.claims.scores import CLAIM_STATES, JOINT
from core.claims.split import split_claims
from core.claims.summary import claims_summary
from core.claims.types import Claim, Verifier

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
    "passage_importance",
    "precision",
    "ragchecker_metrics",
    "recall_at_k",
    "split_claims",
    "support_maximum",
]
