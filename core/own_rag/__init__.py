"""`core.analyze`: diagnose your own RAG, given as functions."""

from core.own_rag.analysis import analyze

__all__ = ["analyze"]
