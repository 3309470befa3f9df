"""Sampling with the packaged model: not scripted, so that seeds, top-p and probabilities are real."""

import math

import numpy as np
import pandas as pd
import pytest

from core.diagnosis import Diagnosis
from core.llm import CompletionCache, open_llm
from core.pipeline.steps import fill
from core.run import Run
from core.uncertainty.mc_dropout import MCDropoutConfidence
from core.uncertainty.step import UncertaintyStep

pytestmark = pytest.mark.model
TEXTS = (
    "The Eiffel Tower in Paris was completed in 1889. It is 330 metres tall.",
    "Tokyo Tower opened in 1958. It is painted white and orange.",
)


@pytest.fixture(scope="module")
def llm():
    return open_llm("embedded")


def test_an_answer_that_the_context_holds_is_surer_than_one_that_it_lacks(llm):
    cache = CompletionCache()
    sampler = MCDropoutConfidence(llm, max_tokens=16, cache=cache)

    def ask(question):
        return sampler.get_confidence_interval("Answer in a few words.", TEXTS[0], question, llm.name)

    known = ask("When was the Eiffel Tower completed?")
    unknown = ask("Who painted the ceiling of the town hall?")
    assert known.confidence > unknown.confidence
    assert "1889" in known.consensus_answer
    for found in (known, unknown):
        low, high = found.metadata["interval"]
        assert 0 <= low < found.confidence < high <= 1
        assert len(set(found.answers)) > 1 and len(found.answers) == 10
    asked = []
    generate = llm.generate
    try:
        llm.generate = lambda requests, *rest: asked.extend(requests) or generate(requests, *rest)
        assert ask("When was the Eiffel Tower completed?") == known
    finally:
        llm.generate = generate
    assert not asked


def test_the_step_samples_a_run_and_grows_it(llm):
    queries = pd.DataFrame(
        {
            "query_id": ["q1", "q2"],
            "question": ["When was the Eiffel Tower completed?", "What colour is Tokyo Tower?"],
            "answer": ["1889", "white and orange"],
        }
    )
    passages = pd.DataFrame(
        [
            {"query_id": q, "passage_id": f"p{i}", "retrieval_rank": i, "text": text}
            for q in queries["query_id"]
            for i, text in enumerate(TEXTS, start=1)
        ]
    )
    run = Run.create({"source": "upload"}, queries=queries, passages=passages)
    cache = CompletionCache()
    three = fill(run, UncertaintyStep(samples=3, max_tokens=12), llm=llm, cache=cache)
    four = fill(three, UncertaintyStep(samples=4, max_tokens=12), llm=llm, cache=cache)
    rows = four["samples"]
    assert rows.groupby("query_id").size().to_dict() == {"q1": 4, "q2": 4}
    kept = rows[rows["sample_id"] != "s4"].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, three["samples"].reset_index(drop=True))
    assert (rows["logprob_sum"] < 0).all() and rows["n_tokens"].between(1, 12).all()
    assert rows["temperature"].between(0.5, 1.2).all() and rows["top_p"].between(0.8, 0.95).all()
    found = Diagnosis(four)["uncertainty"]
    entropy = found.scores["weighted_entropy_exact"].values
    assert np.isfinite(entropy).all() and (entropy <= math.log(4) + 1e-9).all()
