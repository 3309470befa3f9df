"""What a live run writes down about itself."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from core.llm.packaged import PACKAGED_EMBEDDER
from core.pipeline.asking import Usage
from core.pipeline.options import RunOptions
from core.pipeline.plan import CallPlan
from core.pipeline.tables import QuestionResult, count_failures, missing_ablations
from core.retrieval import EMBEDDING_RETRIEVERS

_PACKAGES = (
    "numpy",
    "pandas",
    "rank-bm25",
    "bm25s",
    "rouge-score",
    "torch",
    "transformers",
    "sentence-transformers",
)


def live_manifest(
    plan: CallPlan,
    usage: Usage,
    results: Sequence[QuestionResult],
    seconds: float,
    complete: bool,
    name: str | None,
) -> dict[str, Any]:
    """Return the manifest of a live run: plain JSON values, see `core.run.Run`."""
    facts = plan.to_dict()
    options = facts["options"]
    return {
        "source": "live",
        "run_id": plan.run_id,
        "name": name or f"{plan.dataset.name}, {plan.model}",
        "complete": complete,
        "dataset": {
            "name": plan.dataset.name,
            "digest": plan.dataset.digest,
            "n_questions": len(plan.dataset.questions),
        },
        "model": {
            "backend": plan.backend,
            "name": plan.model,
            "options": dict(plan.model_options),
        },
        "prompt": facts["prompt"],
        "retriever": _retriever(plan.options),
        "options": options,
        "cost": {
            "calls": usage.asked,
            "cached": usage.cached,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "seconds": round(seconds, 1),
        },
        "environment": _environment(),
        "notes": _notes(results),
    }


def _retriever(options: RunOptions) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": options.retriever,
        "tokenizer": options.tokenizer,
        "k": options.k,
        "passage_words": options.passage_words,
    }
    if options.retriever in EMBEDDING_RETRIEVERS:
        facts["embedding_model"] = options.embedding_model or PACKAGED_EMBEDDER
    return facts


def _environment() -> dict[str, Any]:
    packages = {}
    for package in _PACKAGES:
        try:
            packages[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
        "packages": packages,
    }


def _notes(results: Sequence[QuestionResult]) -> list[str]:
    notes = []
    failed = count_failures(results)
    if failed:
        notes.append(f"{failed} of {len(results)} questions have no answer; their reasons are in the table.")
    missing = missing_ablations(results)
    if missing:
        notes.append(f"{missing} ablated answers are missing; their questions are undefined (incomplete).")
    return notes
