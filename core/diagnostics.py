"""The diagnostics, in the order in which they are shown. Adding one is one line here."""

from core.answers.diagnostic import ANSWERS
from core.attribution.diagnostic import ATTRIBUTION
from core.claims.diagnostic import CLAIMS
from core.confidence.diagnostic import CONFIDENCE
from core.conformal.diagnostic import CONFORMAL
from core.influence.diagnostic import INFLUENCE
from core.likelihood.diagnostic import LIKELIHOOD
from core.losses.diagnostic import LOSSES
from core.retrieval_quality.diagnostic import RETRIEVAL_QUALITY
from core.socket import Diagnostic
from core.uncertainty.diagnostic import UNCERTAINTY
from core.validation.diagnostic import VALIDATION

DIAGNOSTICS: tuple[Diagnostic, ...] = (
    ANSWERS,
    LOSSES,
    ATTRIBUTION,
    INFLUENCE,
    RETRIEVAL_QUALITY,
    LIKELIHOOD,
    CLAIMS,
    UNCERTAINTY,
    CONFORMAL,
    VALIDATION,
    CONFIDENCE,
)
