"""Small runs with sampled answers, written down by hand."""

import pandas as pd

from core.run import Run
from core.uncertainty.analysis import measure


def sampled_run(samples, answers=None, references=None, question=None, **columns):
    """Build a run: question i has the texts i as samples; ``columns`` are lists over all samples."""
    ids = [f"q{i + 1}" for i in range(len(samples))]
    queries = pd.DataFrame(
        {
            "query_id": ids,
            "question": [question or f"Question {i}?" for i in ids],
            "answer": answers or [texts[0] if texts else "" for texts in samples],
        }
    )
    if references is not None:
        queries["reference_answers"] = [[one] if one else None for one in references]
    rows = [
        {"query_id": query_id, "sample_id": f"s{j + 1}", "answer": text}
        for query_id, texts in zip(ids, samples, strict=True)
        for j, text in enumerate(texts)
    ]
    return Run.create({"source": "upload"}, queries=queries, samples=pd.DataFrame(rows).assign(**columns))


def sampled(samples, **options):
    """Return the analysis of `sampled_run`."""
    return measure(sampled_run(samples, **options)).labelled()
