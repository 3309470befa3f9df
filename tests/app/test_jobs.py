"""The live run: plan, run, results as they arrive, cancel, resume, and who may see a job."""

import time

import pytest

from core.run import Run
from tests.app.polling import button, wait
from tests.scripted import ScriptedLLM
from ui import jobs

DOCUMENTS = "# Letchworth\nUnwin designed it.\n---\nThe Thames is long.\n---\nWelwyn came later."


def rule(request):
    prompt = " ".join(message.content for message in request.messages)
    return "Unwin" if "Unwin" in prompt else "I don't know."


@pytest.fixture
def model(monkeypatch):
    """Put a model that follows a rule where the back end would be opened."""

    def use(**options):
        llm = ScriptedLLM(rule, **options)
        monkeypatch.setattr(jobs, "open_llm", lambda kind, name, **options: llm)
        return llm

    return use


def typed(open_app):
    app = open_app("live")
    app.segmented_control(key="questions").set_value("Type a question").run()
    app.text_input(key="live_question").set_value("Who designed Letchworth?")
    app.text_area(key="live_documents").set_value(DOCUMENTS).run()
    return app


def planned(open_app):
    app = typed(open_app)
    button(app, "Estimate cost").click().run()
    return wait(app, "Run")


def test_plan_then_run_then_results(model, open_app, healthy, texts, tmp_path):
    model()
    app = healthy(planned(open_app))
    plan = {metric.label: metric.value for metric in app.metric}
    # Baseline, three ablations, closed book; measuring the speed has already made some of them.
    assert int(plan["Calls to make"]) <= 5
    button(app, "Run").click().run()
    app = healthy(wait(app, "Finished and saved"))
    saved = Run.load(next((tmp_path / "runs").iterdir()))
    assert app.query_params["run"] == saved.run_id and saved.manifest["complete"]
    assert saved.queries["answer"][0] == "Unwin"
    assert "1 question · 3 passages" in texts(app)


def test_nothing_is_asked_before_a_plan(model, open_app, healthy):
    llm = model()
    healthy(typed(open_app))
    assert llm.requests == []


def test_job_link_shows_the_job_after_a_reload(model, open_app, healthy):
    model()
    app = planned(open_app)
    link = app.query_params["job"]
    reloaded = healthy(open_app("live", job=link))
    assert button(reloaded, "Run")


def test_other_sessions_do_not_see_the_job(model, open_app, healthy):
    model()
    mine = planned(open_app)
    other = healthy(open_app("live"))
    assert not [b for b in other.button if b.label == "Run"] and "job" not in other.query_params
    assert len(mine.query_params["job"]) >= 24


def test_unknown_job_is_told(open_app, healthy):
    app = healthy(open_app("live", job="guessed"))
    assert "no longer exists" in app.warning[0].value and "job" not in app.query_params


def test_cancel_keeps_what_was_done_and_resume_goes_on(model, open_app, healthy, texts, tmp_path):
    llm = model(delay=0.15)
    app = open_app("live")
    lines = [
        f'{{"question": "Who designed place {i}?", "documents": ["Unwin {i}.", "b {i}", "c {i}"]}}'
        for i in range(4)
    ]
    app.segmented_control(key="questions").set_value("Upload questions").run()
    app.file_uploader(key="live_file").upload("questions.jsonl", "\n".join(lines).encode())
    app.run()
    assert "4 questions" in texts(healthy(app))
    button(app, "Estimate cost").click().run()
    wait(app, "Run")
    button(app, "Run").click().run()
    wait(app, "Look at the results so far")
    button(app, "Look at the results so far").click().run()
    assert ":yellow-badge[" in texts(healthy(app)) or "Partial" in texts(app)
    button(app, "Cancel").click().run()
    app = healthy(wait(app, "Cancelled"))
    partial = Run.load(next((tmp_path / "runs").iterdir()))
    # All questions are there from the start; the answers arrive one by one.
    assert 1 <= partial.queries["answer"].notna().sum() < 4 and not partial.manifest["complete"]
    asked = len(llm.requests)
    button(app, "Continue").click().run()
    healthy(wait(app, "Finished and saved"))
    whole = Run.load(next((tmp_path / "runs").iterdir()))
    assert whole.queries["answer"].notna().sum() == 4 and whole.manifest["complete"]
    # 4 questions x (baseline + 3 ablations + closed book), each distinct call asked once in all.
    assert len(llm.requests) - asked < 20
    assert len(llm.requests) == len({str(r) for r in llm.requests})


def test_model_that_cannot_be_reached_is_told(model, open_app, healthy):
    model(down=True)
    app = typed(open_app)
    button(app, "Estimate cost").click().run()
    end = time.monotonic() + 30
    while not app.error and time.monotonic() < end:
        time.sleep(0.05)
        app.run()
    assert len(healthy(app).error) == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\xff" * 50, b"not json", b'{"question": 1}', b'{"corpus": "/etc", "question": "a"}'],
)
def test_broken_question_files_are_told(content, open_app, healthy):
    app = open_app("live")
    app.segmented_control(key="questions").set_value("Upload questions").run()
    app.file_uploader(key="live_file").upload("questions.jsonl", content)
    for _ in range(2):
        assert len(healthy(app.run()).error) == 1
