"""An empty analysis, and a large one."""

import numpy as np
import pandas as pd
import pytest

from core.influence import analyse
from core.run import Run


@pytest.fixture(scope="session")
def empty_analysis():
    return analyse(Run.create({"source": "upload"}))


@pytest.fixture(scope="session")
def large():
    """20,000 questions with 10 passages each."""
    generator = np.random.default_rng(7)
    n, k = 20_000, 10
    query_ids = np.array([f"q{i}" for i in range(n)])
    queries = pd.DataFrame({"query_id": query_ids, "question": [f"What about number {i}?" for i in range(n)]})
    passages = pd.DataFrame(
        {
            "query_id": np.repeat(query_ids, k),
            "passage_id": np.tile([f"p{j}" for j in range(k)], n),
            "retrieval_rank": np.tile(np.arange(1, k + 1), n),
            "retrieval_score": generator.gamma(3, 3, n * k),
            "influence_score": generator.beta(0.5, 2, n * k).round(2),
        }
    )
    return analyse(Run.create({"source": "simulation"}, queries=queries, passages=passages))
