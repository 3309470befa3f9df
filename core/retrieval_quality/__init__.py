"""How well the retriever found the gold passages, and whether the model then used them."""

from core.retrieval_quality.analysis import RetrievalQuality, retrieval_quality
from core.retrieval_quality.metrics import hit_at_k, ndcg_at_k, recall_at_k, reciprocal_rank

__all__ = [
    "RetrievalQuality",
    "hit_at_k",
    "ndcg_at_k",
    "recall_at_k",
    "reciprocal_rank",
    "retrieval_quality",
]
