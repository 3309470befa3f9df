"""What a run of the user's own functions says about itself, and what it cannot know."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pandas as pd

from core.llm.functions import FunctionLLM
from core.own_rag.retrieval import Retrieval
from core.run import Run


def described(run: Run, function: FunctionLLM | None, retrieval: Retrieval | None) -> Run:
    """Return the run with the functions in its manifest, and without numbers that nobody counted.

    Parameters
    ----------
    run : Run
        As the pipeline built it.
    function, retrieval : optional
        The user's ``answer`` and ``retrieve``, where they are functions.
    """
    facts: dict[str, Any] = dict(run.manifest)
    queries = run.queries
    if retrieval is not None:
        facts["retriever"] = {"name": "function", "function": retrieval.name, "k": facts["options"]["k"]}
        facts["options"] = {**facts["options"], "retriever": "function"}
        queries = _gold_known(queries, run.passages)
    if function is not None:
        facts["prompt"] = {**facts["prompt"], "max_tokens": None}
        tokens = ("prompt_tokens", "completion_tokens")
        facts["cost"] = {**facts["cost"], **{name: facts["cost"][name] or None for name in tokens}}
        # No prompt has 0 tokens: the function did not say.
        untold = queries["prompt_tokens"] == 0
        queries = queries.assign(**{name: queries[name].mask(untold) for name in tokens})
    return replace(
        run,
        manifest=MappingProxyType(facts),
        tables=MappingProxyType({**run.tables, "queries": queries}),
    )


def _gold_known(queries: pd.DataFrame, passages: pd.DataFrame) -> pd.DataFrame:
    """Forget the number of gold passages where some were retrieved: there may be more that were not."""
    gold = passages["query_id"][passages["is_gold"].fillna(False).astype(bool)]
    return queries.assign(n_gold=queries["n_gold"].mask(queries["query_id"].isin(gold)))
