"""Language models behind one small protocol."""

from core.llm.backends import BACKENDS, Backend, backend, open_llm
from core.llm.cache import CompletionCache, default_cache_path, request_key
from core.llm.types import LLM, Capabilities, Completion, Message, Request

__all__ = [
    "BACKENDS",
    "LLM",
    "Backend",
    "Capabilities",
    "Completion",
    "CompletionCache",
    "Message",
    "Request",
    "backend",
    "default_cache_path",
    "open_llm",
    "request_key",
]
