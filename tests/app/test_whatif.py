"""The what-if bench: a change in the address, its cost, the answer with its noise; and the same for all questions."""

from __future__ import annotations

import json

import pytest

from core.run import Run
from tests.app.conftest import HOSTILE, make_run
from tests.app.polling import button, wait
from tests.scripted import ScriptedLLM
from ui import jobs, library

SAID = "Who designed the garden city?"


def rule(request):
    """Answer by whether an edit is the first passage."""
    prompt = " ".join(message.content for message in request.messages)
    return "Barry Parker" if "Edited" in prompt else "Raymond Unwin in 1903"


@pytest.fixture
def model(monkeypatch):
    llm = ScriptedLLM(rule)
    monkeypatch.setattr(jobs, "open_llm", lambda kind, name, **options: llm)
    return llm


@pytest.fixture
def bench(model, tmp_path, open_app, healthy):
    """Open a question with a change in the address."""
    make_run("The recorded run").save(tmp_path / "samples" / "recorded_run")

    def opened(change, question="q1"):
        asked = change if isinstance(change, str) else json.dumps({"of": question, **change})
        return healthy(open_app("workbench", question=question, change=asked))

    return opened


def prompt(app):
    """What the list of passages was given to draw."""
    (found,) = [json.loads(one.proto.json) for one in app.get("bidi_component") if "tags" in one.proto.json]
    return found["rows"]


def in_address(app):
    return json.loads(app.query_params["change"])


def test_the_bench_is_folded_and_costs_nothing_until_it_is_opened(model, recorded, open_app, healthy):
    app = healthy(open_app("workbench", question="q1"))
    assert not [one for one in app.button if one.label == "Ask again"] and "change" not in app.query_params
    assert any(one.label == "Try a change" for one in app.expander)


def test_the_address_brings_the_change_back(bench):
    change = {"keep": ["q1-p1", "q1-p0"], "order": ["q1-p1"], "edits": {"q1-p0": HOSTILE}, "style": "full"}
    app = bench(change)
    rows = prompt(app)
    assert [row["id"] for row in rows] == ["q1-p1", "q1-p0", "q1-p2", "q1-p3"]
    assert [row["on"] for row in rows] == [True, True, False, False]
    assert rows[1]["text"] == HOSTILE and rows[1]["tags"] == ["edited"]
    assert in_address(app) == {"of": "q1", **change}
    # Another question has its own bench.
    button(app, "Next").click().run()
    assert "change" not in app.query_params


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("{", "This cannot be read as the JSON of a change"),
        ('{"of": "q1", "style": "poem"}', "style must be one of short, full"),
        (
            '{"of": "q1", "keep": ["zz"]}',
            "The change names the passage zz, which this question does not have",
        ),
    ],
)
def test_a_broken_address_is_said_in_a_sentence(bench, texts, change, said):
    assert said in texts(bench(change)).replace("\\", "")


def test_a_change_of_another_question_is_not_followed(bench):
    app = bench('{"of": "q3", "style": "full"}')
    assert "change" not in app.query_params


def test_ask_again_shows_cost_answer_noise_and_keeps_the_version(bench, texts, model, tmp_path):
    app = bench({"edits": {"q1-p0": "Edited."}})
    # The run names no model, so both prompts are asked once and repeated three times.
    assert "At most 8 calls, about " in texts(app) and model.requests == []
    button(app, "Ask again").click().run()
    wait(app, "Use")
    said = texts(app).replace("\\", "")
    assert ":red-background[− Raymond Unwin in 1903] :green-background[+ Barry Parker]" in said
    assert "3 of 3 repeats of the changed prompt give this answer again." in said
    assert "0 of 3 repeats of the run's own prompt give this answer too." in said
    assert "Correct: 4 of 4 answers to the changed prompt, 0 of 4 to the run's own." in said
    assert "claim supported by a passage of this prompt" in said
    assert len(model.requests) == 8
    (path,) = (tmp_path / "runs" / "versions").iterdir()
    (kept,) = json.loads(path.read_text())["versions"]
    assert kept["answer"] == "Barry Parker" and kept["change"] == {"edits": {"q1-p0": "Edited."}}
    # Another change asked: the first one can be put back.
    button(app, "Undo all").click().run()
    assert "change" not in app.query_params
    button(app, "Use").click().run()
    assert in_address(app) == {"of": "q1", "edits": {"q1-p0": "Edited."}}


def test_question_style_and_temperature_are_parts_of_the_change(bench):
    app = bench({"question": "Who else?"})
    area = next(one for one in app.text_area if one.label == "Question")
    assert area.value == "Who else?"
    area.set_value(SAID).run()
    next(one for one in app.selectbox if one.label == "Prompt style").select("full").run()
    next(one for one in app.number_input if one.label == "Temperature").set_value(0.5).run()
    assert in_address(app) == {"of": "q1", "style": "full", "temperature": 0.5}


def test_a_passage_is_typed_or_found_and_a_long_change_is_too_long_for_the_address(bench, texts):
    app = bench({"style": "full"})
    next(one for one in app.text_area if one.label == "Text").set_value("x" * 2_000).run()
    next(one for one in app.button if one.key == "whatif_add").click().run()
    assert prompt(app)[-1]["text"] == "x" * 2_000 and prompt(app)[-1]["tags"] == ["added"]
    assert "change" not in app.query_params and "too long for the address" in texts(app)


def test_all_questions_are_asked_and_compare_opens_both_runs(bench, texts, healthy, tmp_path):
    app = bench({"style": "full"})
    app.number_input(key="whatif_k").set_value(2).run()
    button(app, "Try on all 4").click().run()
    app = healthy(wait(app, "Finished and saved"))
    said = texts(app).replace("\\", "")
    assert "At most 2 passages, prompt style full: of 2 questions that are judged" in said
    assert "(exact McNemar test)" in said
    # The run on screen and its question stay.
    assert app.query_params["question"] == "q1" and "The recorded run**" in said
    saved = {run.name: Run.load(run.folder) for run in library.saved_runs() if run.own}
    changed = saved["The recorded run, at most 2 passages, prompt style full"]
    assert len(changed.passages) == 8 and changed.queries["answer"].tolist()[0] == "Raymond Unwin in 1903"
    (link,) = [one for one in app.get("page_link") if one.proto.label == "Compare the runs"]
    assert link.proto.query_string.count("compare=") == 3 and changed.run_id in link.proto.query_string
