import json

import pytest

from core.sources.dataset import read_dataset
from tests.scripted import ScriptedLLM


def lines(n, k=4, **more):
    """Return a data set of n questions with k given passages each, as a file's content."""
    records = [
        {
            "id": f"q{i}",
            "question": f"What is number {i}?",
            "passages": [{"id": f"p{j}", "title": f"T{j}", "text": f"fact {i} {j}"} for j in range(1, k + 1)],
            "answers": [f"fact {i} 1"],
            **more,
        }
        for i in range(n)
    ]
    return "\n".join(json.dumps(r) for r in records).encode()


def first_fact(request):
    """Answer with the text of the first passage that is there, or "closed"."""
    found = [line for line in request.messages[0].content.split("\n") if line.startswith("[")]
    return found[0].split(": ")[1] if found else "closed"


@pytest.fixture
def make_dataset():
    return lambda n=1, k=4, **more: read_dataset(lines(n, k, **more), "test.jsonl")


@pytest.fixture
def make_llm():
    return lambda rule=first_fact, **options: ScriptedLLM(rule, **options)
