"""Claims of an answer and the evidence for them.

The engine only: claims of an answer, judges of their support, the claim-evidence matrix and its numbers.
Nothing here is reached by a page or a command yet.
"""

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
from core.claims.split import split_claims
from core.claims.types import Claim, Verifier

__all__ = [
    "Claim",
    "ClaimEvidenceMatrix",
    "OfflineVerifier",
    "Verifier",
    "claim_states",
    "claim_uncertainty",
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
