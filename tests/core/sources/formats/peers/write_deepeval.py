"""DeepEval writes test cases, goldens and a test run, in the working directory: ``python write_deepeval.py``."""

from pathlib import Path

from deepeval import evaluate
from deepeval.dataset import EvaluationDataset, Golden
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase
from facts import ANSWERS, CORRECT, PASSAGES, QUESTIONS


class Length(BaseMetric):
    """A metric that asks no model: whether the answer has at most twenty characters."""

    threshold = 0.5
    evaluation_model = "a ruler"

    def measure(self, test_case: LLMTestCase, *_: object, **__: object) -> float:
        self.score = 1.0 if len(test_case.actual_output) <= 20 else 0.25
        self.success, self.reason = self.score >= self.threshold, "counted"
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *_: object, **__: object) -> float:
        return self.measure(test_case)

    def is_successful(self) -> bool:
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return "Length"


facts = list(zip(QUESTIONS, PASSAGES, ANSWERS, CORRECT, strict=True))
cases = [
    LLMTestCase(
        input=question,
        actual_output=answer,
        expected_output=correct,
        context=passages[:1],
        retrieval_context=passages,
    )
    for question, passages, answer, correct in facts
]
result = evaluate(cases, [Length()])
Path("result.json").write_text(result.model_dump_json(), encoding="utf-8")
dataset = EvaluationDataset(
    goldens=[
        Golden(
            input=question,
            actual_output=answer,
            expected_output=correct,
            context=passages[:1],
            retrieval_context=passages,
        )
        for question, passages, answer, correct in facts
    ]
)
for kind in ("json", "csv", "jsonl"):
    dataset.save_as(file_type=kind, directory=".", file_name="goldens")
