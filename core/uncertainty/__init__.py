"""How sure a model is of an answer, told from several answers to the same question."""

from core.uncertainty.analysis import Measured, UncertaintyAnalysis, measure
from core.uncertainty.clusters import (
    OrderDependence,
    both_ways,
    clusters_of_equals,
    greedy_clusters,
    order_dependence,
)
from core.uncertainty.conditions import Design, designed
from core.uncertainty.context import Change, ContextTest, changes, context_test
from core.uncertainty.embedding import centroid_distances, consensus, embedding_variance
from core.uncertainty.entropy import (
    discrete_semantic_entropy,
    kuhn_entropy,
    number_of_semantic_sets,
    semantic_entropy,
)
from core.uncertainty.estimator import Estimator
from core.uncertainty.estimators import ESTIMATORS, TEXT_ONLY, EstimatorScores, score
from core.uncertainty.lexical import answer_length, distinct_answers, lexical_diversity, mean_pairwise_rouge
from core.uncertainty.quality import (
    EstimatorPair,
    EstimatorQuality,
    comparisons,
    leaderboard,
    risk_coverage_band,
    told_apart,
)
from core.uncertainty.samples import Estimate, Samples
from core.uncertainty.similarity import (
    agreement,
    content,
    cosine,
    jaccard,
    mean_off_diagonal,
    typical_agreement,
)
from core.uncertainty.spectral import (
    answer_eccentricity,
    degree_uncertainty,
    eccentricity,
    eigenvalues,
    kernel_language_entropy,
    sum_eigen,
)
from core.uncertainty.tokens import (
    contradiction_rate,
    p_true,
    perplexity,
)

__all__ = [
    "ESTIMATORS",
    "TEXT_ONLY",
    "Change",
    "ContextTest",
    "Design",
    "Estimate",
    "Estimator",
    "Measured",
    "OrderDependence",
    "EstimatorPair",
    "EstimatorQuality",
    "Samples",
    "EstimatorScores",
    "UncertaintyAnalysis",
    "agreement",
    "answer_eccentricity",
    "answer_length",
    "both_ways",
    "centroid_distances",
    "changes",
    "clusters_of_equals",
    "comparisons",
    "consensus",
    "content",
    "context_test",
    "contradiction_rate",
    "cosine",
    "degree_uncertainty",
    "designed",
    "discrete_semantic_entropy",
    "distinct_answers",
    "eccentricity",
    "eigenvalues",
    "embedding_variance",
    "greedy_clusters",
    "jaccard",
    "kernel_language_entropy",
    "kuhn_entropy",
    "leaderboard",
    "lexical_diversity",
    "mean_off_diagonal",
    "mean_pairwise_rouge",
    "measure",
    "number_of_semantic_sets",
    "order_dependence",
    "p_true",
    "perplexity",
    "risk_coverage_band",
    "told_apart",
    "score",
    "semantic_entropy",
    "sum_eigen",
    "typical_agreement",
]
