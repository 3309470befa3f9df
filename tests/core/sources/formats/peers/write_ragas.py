"""ragas writes its data set and its scores: ``python write_ragas.py FOLDER``."""

import sys
from pathlib import Path

from facts import ANSWERS, CORRECT, PASSAGES, QUESTIONS
from ragas import EvaluationDataset, SingleTurnSample, evaluate
from ragas.metrics import ExactMatch

folder = Path(sys.argv[1])
samples = [
    SingleTurnSample(
        user_input=question,
        retrieved_contexts=passages,
        reference_contexts=passages[:1],
        response=answer,
        reference=correct,
        multi_responses=[answer, correct],
    )
    for question, passages, answer, correct in zip(QUESTIONS, PASSAGES, ANSWERS, CORRECT, strict=True)
]
dataset = EvaluationDataset(samples=samples)
dataset.to_jsonl(folder / "dataset.jsonl")
dataset.to_csv(folder / "dataset.csv")
frame = evaluate(dataset, metrics=[ExactMatch()], show_progress=False).to_pandas()
frame.to_csv(folder / "scores.csv", index=False)
frame.to_json(folder / "scores.json")
frame.to_json(folder / "scores.jsonl", orient="records", lines=True)
dataset.to_hf_dataset().to_json(folder / "hub.jsonl")
