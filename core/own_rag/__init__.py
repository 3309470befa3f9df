"""A RAG of the user's own: its functions are called, its passages left out, its answers compared."""

from core.own_rag.analysis import analyze

__all__ = ["analyze"]
