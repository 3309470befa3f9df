"""The what-if bench: a change in the address, its cost, the answer, noise, versions; and all questions."""

from __future__ import annotations

import json

import pytest

from core.run import Run
from tests.app.conftest import make_run
from tests.app.polling import button, wait
from tests.scripted import ScriptedLLM
from ui import jobs


def rule(request):
    """Say who is in the first passage."""
    prompt = " ".join(message.content for message in request.messages)
    return "Barry Parker" if "[1] Edited" in prompt else "Raymond Unwin in 1903"


@pytest.fixture
def model(monkeypatch):
    llm = ScriptedLLM(rule)
    monkeypatch.setattr(jobs, "open_llm", lambda kind, name, **options: llm)
    return llm


@pytest.fixture
def bench(model, tmp_path, open_app, healthy):
    make_run("The recorded run").save(tmp_path / "samples" / "recorded_run")

    def opened(change, question="q1"):
        asked = change if isinstance(change, str) else json.dumps({"of": question, **change})
        return healthy(open_app("workbench", question=question, change=asked))

    return opened


def test_smoke(bench, texts):
    app = bench({"keep": ["q1-p1", "q1-p0"], "order": ["q1-p1"]})
    print(texts(app)[-3000:])
    button(app, "Ask again").click().run()
    wait(app, "Use")
    print(texts(app)[-3000:])
    assert 0
