"""The live run: plan, run, results as they arrive, cancel, resume, and who may see a job."""

import threading
import time

import pytest

from core.pipeline import ModelChoice
from core.run import Run, sole_writer
from tests.app import polling
from tests.app.polling import Gate, button, wait
from tests.scripted import ScriptedLLM
from ui import jobs, library
from ui.jobs import Job, Registry

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


def test_inputs_survive_a_reload(open_app, healthy, texts):
    app = typed(open_app)
    app.number_input(key="live_k").set_value(2)
    app.number_input(key="live_words").set_value(55)
    app.selectbox(key="live_style").select("full")
    app.selectbox(key="live_backend").select("ollama").run()
    app.text_input(key="live_url_ollama").set_value("http://me:secret@127.0.0.1:9").run()
    address = dict(app.query_params)
    assert "garden" not in str(address) and "secret" not in str(address)
    reloaded = healthy(open_app("live", questions="Type a question", **address))
    assert reloaded.text_input(key="live_question").value == "Who designed Letchworth?"
    assert reloaded.text_area(key="live_documents").value == DOCUMENTS
    assert [reloaded.number_input(key=f"live_{key}").value for key in ("k", "words")] == [2, 55]
    assert reloaded.selectbox(key="live_style").value == "full"
    assert reloaded.selectbox(key="live_backend").value == "ollama"
    # A login is no input to keep.
    assert not reloaded.text_input(key="live_url_ollama").value
    assert "1 question with documents" in texts(reloaded)


def test_uploaded_questions_survive_a_reload_and_their_number_can_be_chosen(open_app, healthy, texts):
    app = open_app("live", questions="Upload questions")
    content = "\n".join(f'{{"question": "Who {i}?", "passages": ["a {i}", "b"]}}' for i in range(12))
    app.file_uploader(key="live_file").upload("town.jsonl", content.encode())
    assert "10 questions with passages" in texts(healthy(app.run()))
    app.number_input(key="live_n_12").set_value(4).run()
    reloaded = healthy(open_app("live", **dict(app.query_params)))
    assert "4 questions with passages" in texts(reloaded)


def test_a_reload_in_the_middle_shows_the_answers_so_far_and_every_page_the_status(
    gate, open_app, healthy, texts, recorded
):
    gate.calls = 100
    app = planned(open_app)  # two calls were timed: the baseline, and the first ablation
    gate.calls = 0
    button(app, "Run").click().run()
    assert gate.asked.wait(30)
    polling.until(app, lambda app: "Baseline answer" in texts(app))
    reloaded = healthy(open_app("live", questions="Type a question", **dict(app.query_params)))
    assert "Baseline answer: Unwin" in texts(reloaded)
    shown = next(frame.value for frame in reloaded.dataframe if "answer" in frame.value)
    assert list(shown["answer"]) == ["I don't know.", "…", "…"] and shown["influence"][0] == 1
    assert reloaded.text_input(key="live_question").value == "Who designed Letchworth?"
    elsewhere = healthy(open_app("overview", job=app.query_params["job"]))
    (bar,) = elsewhere.sidebar.get("progress")
    assert bar.proto.text.startswith("0 of 3 calls")
    assert "job=" in next(x.proto for x in elsewhere.get("page_link") if x.proto.label == "Show").query_string
    gate.opened.set()
    healthy(wait(app, "Finished and saved"))
    until(lambda: not jobs.registry().get(app.query_params["job"]).active)
    assert "Finished." in texts(healthy(elsewhere.run()))


def test_a_cancel_within_the_first_question_leaves_the_run_on_screen(
    gate, open_app, healthy, texts, recorded, tmp_path
):
    gate.calls = 100
    app = planned(open_app)
    gate.calls = 1
    button(app, "Run").click().run()
    assert gate.asked.wait(100)
    button(healthy(app.run()), "Cancel").click().run()
    gate.opened.set()
    app = healthy(wait(app, "Cancelled before the first question was done"))
    assert "answered calls are kept, and the run on screen stays as it was" in app.info[0].value.replace(
        "\\", ""
    )
    assert app.session_state["leadline"].run.run_id == recorded.run_id
    assert not [saved for saved in library.saved_runs() if saved.own]
    button(app, "Continue").click().run()
    healthy(wait(app, "Finished and saved"))
    assert len(gate.llm.requests) == len({str(request) for request in gate.llm.requests})


def test_other_sessions_do_not_see_the_job(model, open_app, healthy):
    model()
    mine = planned(open_app)
    other = healthy(open_app("live"))
    assert not [b for b in other.button if b.label == "Run"] and "job" not in other.query_params
    assert len(mine.query_params["job"]) >= 24


def test_unknown_job_is_told(open_app, healthy):
    app = healthy(open_app("live", job="guessed"))
    assert "no longer exists" in app.warning[0].value and "job" not in app.query_params


def test_cancel_keeps_what_was_done_and_resume_goes_on(gate, open_app, healthy, texts, tmp_path):
    gate.calls = 100  # enough for the estimate
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
    gate.calls = 7  # one question of five calls, and not two
    button(app, "Run").click().run()
    wait(app, "Look at the results so far")
    button(app, "Look at the results so far").click().run()
    assert ":yellow-badge[" in texts(healthy(app)) or "Partial" in texts(app)
    button(app, "Cancel").click().run()
    gate.opened.set()
    app = healthy(wait(app, "Cancelled"))
    said = app.info[0].value.replace("\\", "")
    assert "of 4 questions" in said and "done and saved" in said and "remain" in said
    partial = Run.load(next((tmp_path / "runs").iterdir()))
    # All questions are there from the start; the answers arrive one by one.
    assert 1 <= partial.queries["answer"].notna().sum() < 4 and not partial.manifest["complete"]
    llm = gate.llm
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
    assert len(healthy(polling.until(app, lambda app: app.error)).error) == 1


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


# Turns: one queue for each model, none for what asks no model


@pytest.fixture
def gate(monkeypatch):
    """Put a model that answers only when the test says so where the back end would be opened."""
    gate = Gate(rule)
    gate.llm = ScriptedLLM(gate)
    monkeypatch.setattr(jobs, "open_llm", lambda kind, name, **options: gate.llm)
    yield gate
    gate.opened.set()


def test_offline_checking_does_not_wait_for_another_sessions_model(gate, open_app, healthy, recorded, texts):
    theirs = typed(open_app)
    button(theirs, "Estimate cost").click().run()
    assert gate.asked.wait(30)  # their model is at work, and stays so
    mine = open_app("claims")
    button(mine, "Extract and verify claims").click().run()
    healthy(wait(mine, "Finished and saved"))
    assert not gate.opened.is_set()
    assert jobs.registry().get(theirs.query_params["job"]).active
    # Nor did theirs wait for mine: it ends as soon as its model answers.
    gate.opened.set()
    healthy(wait(theirs, "Run"))


def test_who_wants_the_same_model_sees_its_place(gate, open_app, healthy, texts):
    first, second, third = typed(open_app), typed(open_app), typed(open_app)
    button(first, "Estimate cost").click().run()
    assert gate.asked.wait(30)
    for app, place in ((second, 1), (third, 2)):
        button(app, "Estimate cost").click().run()
        job = jobs.registry().get(app.query_params["job"])
        until(lambda job=job, place=place: job.place == place)
        app.run()
        # In the sidebar of every page, and in the panel of the job's own.
        said = {
            bar.proto.text.replace("\\", "").replace("\u2060", "") for bar in healthy(app).get("progress")
        }
        (line,) = said
        assert line.startswith("Waiting for ") and line.endswith(f": place {place}")
    # Who gives up makes room.
    button(second, "Cancel").click().run()
    job = jobs.registry().get(third.query_params["job"])
    until(lambda: job.place == 1)
    gate.opened.set()
    for app in (first, third):
        healthy(wait(app, "Run"))
    healthy(wait(second, "Cancelled"))


def until(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


SHARED = ModelChoice("embedded", "m")


def holding(registry, model, release, kind="run", **options):
    """Start a job that holds the turn of a model until it is released; return it and when it began."""
    began = threading.Event()

    def work(job):
        with job.turn(registry.turns, model):
            began.set()
            while not release.is_set() and not job.cancelled():
                release.wait(0.02)

    return registry.start(Job("live", kind, "Test", **options), work), began


def test_other_models_and_offline_work_do_not_wait():
    registry, release = Registry(), threading.Event()
    began = [
        holding(registry, model, release)[1] for model in (SHARED, ModelChoice("embedded", "n"), None, None)
    ]
    assert all(event.wait(10) for event in began)
    waiting, begun = holding(registry, SHARED, release)
    until(lambda: waiting.place == 1)
    assert not begun.is_set() and waiting.waits_for == "m"
    release.set()
    assert begun.wait(10)
    until(lambda: not waiting.active)
    assert waiting.state == "finished" and waiting.place == 0


@pytest.mark.parametrize("waits", [True, False])
def test_an_estimate_that_nobody_looks_at_expires_and_a_run_does_not(waits, monkeypatch):
    registry, release = Registry(), threading.Event()
    if waits:
        _, begun = holding(registry, SHARED, release)
        assert begun.wait(10)
    plan, _ = holding(registry, SHARED if waits else None, release, "plan", expires=True)
    run, _ = holding(registry, SHARED if waits else None, release)
    if waits:
        until(lambda: plan.place and run.place)
    watched, _ = holding(registry, None, release, "plan", expires=True)
    now = time.monotonic() + jobs.EXPIRES + 1
    monkeypatch.setattr(jobs.time, "monotonic", lambda: now)
    watched.seen()
    while plan.active:  # the clock of `until` stands still here; the test's own time limit ends it
        threading.Event().wait(0.02)
    assert plan.state == "cancelled" and "nobody looked" in plan.error
    assert run.active and watched.active
    monkeypatch.undo()
    release.set()
    until(lambda: not run.active and not watched.active)
    assert run.state == "finished"


def test_a_job_whose_run_somebody_else_is_writing_asks_nothing(
    model, open_app, healthy, tmp_path, monkeypatch
):
    llm = model()
    app = healthy(planned(open_app))
    asked, folder = llm.calls, tmp_path / "runs" / "one"
    monkeypatch.setattr(library, "folder_of", lambda run: folder)
    with sole_writer(folder):
        button(app, "Run").click().run()
        healthy(wait(app, "Another process or job is writing the run"))
        assert llm.calls == asked
