"""Who may enter, do and see what: roles, runs and jobs of several people, as the pages have them."""

import pytest
from streamlit.testing.v1 import AppTest

from core import reviews as core_reviews
from core.errors import InputError
from core.pipeline import ModelChoice
from core.reviews import Review
from core.run import Run
from tests.app.conftest import PAGES, ROOT, make_run
from tests.app.polling import Gate, button, wait
from tests.scripted import ScriptedLLM
from ui import jobs, library, people, reviews, servers, uploads
from ui.jobs import Job, Registry

ADA, BOB, EVE = "ada@example.org", "bob@example.org", "eve@example.com"
SECRETS = {"auth": {"cookie_secret": "x"}, "roles": {"@example.org": "reviewer", ADA: "runner"}}
FILE = (ROOT / "tests" / "app" / "influence.csv").read_bytes()


@pytest.fixture
def visit(healthy):
    """Open a page as a person who signed in, or as nobody."""

    def opened(person=None, page="overview", roles=None, claims=None, **params):
        app = AppTest.from_file(str(ROOT / "dashboard.py"), default_timeout=240)
        app.secrets.update(SECRETS if roles is None else {**SECRETS, "roles": roles})
        app.user = {
            "is_logged_in": person is not None,
            **({"email": person} if person else {}),
            **(claims or {}),
        }
        if page != "overview":
            app.switch_page(PAGES[page])
        for name, value in params.items():
            app.query_params[name] = value
        return healthy(app.run())

    return opened


@pytest.fixture
def as_person(monkeypatch):
    """Be a person of a role outside any page."""

    def be(person, role="runner"):
        monkeypatch.setattr(people, "signs_in", lambda: True)
        monkeypatch.setattr(people, "name", lambda: person)
        monkeypatch.setattr(people, "role", lambda: role)

    return be


def labels(app):
    return {one.label for one in app.button}


@pytest.mark.parametrize(
    ("person", "table", "role"),
    [
        (ADA, {}, None),
        (ADA, {"default": "reader"}, "reader"),
        (ADA, {"default": "reader", "@Example.ORG": "reviewer"}, "reviewer"),
        (ADA, {"default": "reader", "@example.org": "reviewer", "Ada@example.org": "runner"}, "runner"),
        (ADA, {"@ample.org": "runner", "example.org": "runner", "@example.com": "runner"}, None),
        ("ada@evil.com@example.org", {"@evil.com": "runner"}, None),
        ("4711", {"@": "runner", "4711": "reviewer"}, "reviewer"),
    ],
)
def test_the_own_entry_goes_before_that_of_the_domain_and_the_default(person, table, role):
    assert people.role_of(person, table) == role


def test_a_role_that_is_none_lets_nobody_in(visit, texts):
    with pytest.raises(
        InputError, match=r"The role of default in \[roles\] must be one of reader, reviewer, runner"
    ):
        people.role_of(ADA, {"default": "admin"})
    app = visit(ADA, roles={"default": ["runner"]})
    assert "must be one of reader" in app.error[0].value and labels(app) == {"Sign out"}


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"email": "Ada@Example.org", "email_verified": True, "sub": "7"}, ADA),
        ({"email": ADA, "email_verified": False, "sub": "7"}, "7"),
        ({"email": ADA, "email_verified": "false", "sub": "7"}, "7"),
        ({"email": ADA, "email_verified": "true", "sub": "7"}, ADA),
        ({"preferred_username": ADA, "sub": "7"}, "7"),
        ({"email": " ", "sub": "aB"}, "aB"),
        ({}, None),
    ],
)
def test_a_person_is_the_verified_address_or_the_sub(claims, name, monkeypatch):
    class User:
        def to_dict(self):
            return {"is_logged_in": True, **claims}

    monkeypatch.setattr(people, "signs_in", lambda: True)
    monkeypatch.setattr(people.st, "user", User())
    if name is None:
        with pytest.raises(InputError, match="sign in again"):
            people.name()
    else:
        assert people.name() == name
    with people.acting_as(BOB):
        assert people.name() == BOB


def test_nobody_sees_anything_before_signing_in(visit, texts, recorded):
    for page in ("overview", "data", "workbench"):
        app = visit(page=page, run=recorded.run_id)
        assert labels(app) == {"Sign in"} and not app.dataframe and not app.metric
        assert "The recorded run" not in texts(app) and "Then open your link again." in texts(app)
    stranger = visit(EVE)
    assert "has no role on this server" in stranger.error[0].value and labels(stranger) == {"Sign out"}
    assert "The recorded run" not in texts(stranger) and "The recorded run" in texts(visit(BOB))


def test_without_sign_in_there_is_one_person_who_may_do_everything(open_app, recorded, texts):
    app = open_app("data", door="Saved runs")
    assert people.name() == "reader" and people.role() == "runner" and "Sign out" not in labels(app)
    assert library.owned(recorded) is recorded
    assert "only a" not in texts(app)


def test_a_reader_looks_and_is_told_why_not_more(visit, texts, recorded):
    roles = {"default": "reader"}
    app = visit(BOB, "data", roles, door="Upload")
    assert app.file_uploader(key="data_upload").proto.disabled
    assert "Your role here is reader: only a reviewer may upload" in texts(app)
    assert f"{BOB} · reader" in texts(app).replace("\\", "").replace("\u2060", "")
    app = visit(BOB, "workbench", roles, question="q1")
    assert app.segmented_control(key="review_status_q1").proto.disabled
    assert app.text_area(key="review_note_q1").proto.disabled
    app = visit(BOB, "live", roles)
    assert "only a runner may start work" in texts(app)
    assert not {one for one in labels(app) if one.startswith(("Run", "Estimate"))}
    assert not [one.key for one in app.selectbox if str(one.key).startswith("live_")]
    app = visit(BOB, "conformal", roles)
    assert button(app, "Calibrate").disabled


def test_a_reviewer_reviews_and_uploads_but_asks_no_model(visit, texts, recorded):
    app = visit(BOB, "data", door="Upload")
    assert not app.file_uploader(key="data_upload").proto.disabled
    assert not visit(BOB, "workbench", question="q1").segmented_control(key="review_status_q1").proto.disabled
    assert "Your role here is reviewer: only a runner may start work" in texts(visit(BOB, "live"))
    assert [one for one in labels(visit(ADA, "live")) if one.startswith("Run (")]


@pytest.mark.parametrize(
    ("role", "act"),
    [
        ("reviewer", lambda: Registry().start(Job("live", "run", "t"), lambda job: None)),
        ("reader", lambda: reviews.put("q1", Review("flagged"), None)),
        ("reader", lambda: uploads._read(b"", None)),
        ("reader", lambda: library.share(library.saved_runs()[0], True)),
        ("reader", lambda: library.rename(library.saved_runs()[0], "another")),
        ("reader", lambda: library.delete(library.saved_runs()[0])),
    ],
)
def test_what_carries_something_out_checks_the_role_too(role, act, as_person, small_run):
    as_person(BOB, "runner")
    library.save(library.owned(small_run))
    as_person(BOB, role)
    with pytest.raises(InputError, match=f"Your role here is {role}: only a "):
        act()
    assert [one.name for one in library.saved_runs()] == ["Small run"]


@pytest.fixture
def saved_runs(tmp_path):
    return lambda: [Run.load(path.parent) for path in (tmp_path / "runs").glob("*/run.json")]


def test_an_upload_is_its_owners_until_it_is_shared(visit, texts, saved_runs):
    app = visit(ADA, "data", door="Upload")
    app.file_uploader(key="data_upload").upload("influence.csv", FILE)
    button(app.run(), "Save to my runs").click().run()
    (saved,) = saved_runs()
    assert saved.manifest["person"] == ADA
    # Another person finds it neither in the list nor by its id.
    for page, params in (
        ("data", {"door": "Saved runs"}),
        ("overview", {}),
        ("compare", {"compare": saved.run_id}),
    ):
        assert "influence" not in texts(visit(BOB, page, run=saved.run_id, **params))
    assert "another person who has not shared it" in texts(visit(BOB, run=saved.run_id))
    # The same file is another run of another person, and neither touches the other's.
    other = visit(BOB, "data", door="Upload")
    other.file_uploader(key="data_upload").upload("influence.csv", FILE)
    button(other.run(), "Save to my runs").click().run()
    assert [one.manifest["person"] for one in saved_runs()] in ([ADA, BOB], [BOB, ADA])
    # Its owner shares it: others read it and change nothing.
    app = visit(ADA, "data", door="Saved runs")
    (toggle,) = [one for one in app.toggle if str(one.key).startswith("share_")]
    assert not toggle.value
    toggle.set_value(True).run()
    app = visit(BOB, "data", door="Saved runs", run=saved.run_id)
    assert app.session_state["leadline"].run.run_id == saved.run_id
    assert len([one for one in app.toggle if str(one.key).startswith("share_")]) == 1
    assert len([one for one in app.button if str(one.key).startswith("delete_")]) == 1
    # And takes it back.
    app = visit(ADA, "data", door="Saved runs")
    next(one for one in app.toggle if str(one.key).endswith(saved.run_id)).set_value(False).run()
    assert "another person who has not shared it" in texts(visit(BOB, run=saved.run_id))


def test_a_run_of_the_command_line_is_shared_and_nobodys_to_change(as_person, small_run, tmp_path):
    small_run.save(tmp_path / "runs" / "made")
    as_person(ADA)
    (found,) = library.saved_runs()
    assert (found.own, found.shared) == (False, True)
    for change in (
        lambda: library.delete(found),
        lambda: library.rename(found, "x"),
        lambda: library.share(found, True),
    ):
        with pytest.raises(InputError, match="not your run"):
            change()
    with pytest.raises(InputError, match="only its owner can add to it"):
        library.save(small_run)
    mine = library.owned(small_run)
    assert library.save(mine) != found.folder and library.owned(mine) is mine
    # A run of another person's name is not taken over either, whatever its manifest says.
    as_person(BOB)
    forged = mine.renamed("forged")
    with pytest.raises(InputError, match="only its owner"):
        library.save(forged)
    assert library.owned(forged).run_id != mine.run_id
    assert [one.name for one in library.saved_runs()] == ["Small run"]


def test_labels_make_a_run_of_who_uses_them_and_a_reader_may_not(visit, saved_runs, small_run, tmp_path):
    shared = small_run.derive({"run_id": "shared-run", "name": "Made on the command line"})
    shared.save(tmp_path / "runs/shared-run")
    core_reviews.write_all(
        tmp_path / "runs", "shared-run", {"q1": Review("reviewed", correct=True)}, person=BOB
    )
    reader = visit(EVE, run="shared-run", roles={"default": "reader"})
    assert reader.button(key="labels_use").disabled
    bob = visit(BOB, run="shared-run")
    bob.button(key="labels_use").click().run()
    (labelled,) = [one for one in saved_runs() if one.run_id != "shared-run"]
    assert labelled.manifest["person"] == BOB and labelled.queries["correct_by"].iloc[0] == BOB


def test_an_unreadable_run_is_shown_to_nobody_who_signs_in(as_person, small_run, tmp_path):
    small_run.save(tmp_path / "runs" / "made")
    (tmp_path / "runs" / "made" / "run.json").write_text("{")
    assert len(library.unreadable()) == 1
    as_person(ADA)
    assert not library.unreadable()


def test_a_job_is_seen_and_stopped_by_who_started_it_alone(
    visit, texts, monkeypatch, small_run, tmp_path, saved_runs
):
    gate = Gate(lambda request: "Unwin")
    llm = ScriptedLLM(gate)
    monkeypatch.setattr(jobs, "open_llm", lambda kind, name, **options: llm)
    small_run.save(tmp_path / "samples" / "recorded_run")
    app = visit(ADA, "live")
    app.segmented_control(key="questions").set_value("Type a question").run()
    app.text_input(key="live_question").set_value("Who designed Letchworth?")
    app.text_area(key="live_documents").set_value("Unwin designed it.\n---\nThe Thames is long.").run()
    button(app, "Run (").click().run()
    assert gate.asked.wait(60)
    link, (job,) = app.query_params["job"], jobs.registry()._jobs.values()
    assert job.person == ADA
    other = visit(BOB, "live", roles={"default": "runner"}, job=link)
    assert "it is another person's" in texts(other) and "Cancel" not in labels(other)
    assert "job" not in other.query_params and not job.cancelled()
    gate.opened.set()
    wait(app, "Finished and saved")
    (saved,) = saved_runs()
    assert saved.manifest["person"] == ADA and app.query_params["run"] == saved.run_id
    assert make_run().name == visit(BOB).session_state["leadline"].run.name


@pytest.mark.parametrize("name", ["/etc", "../models", "someone/model"])
def test_a_model_that_is_not_listed_is_not_loaded(name, monkeypatch):
    with pytest.raises(InputError, match=r"This server does not load .*LEADLINE_MODELS"):
        servers.opener(ModelChoice("embedded", name))
    monkeypatch.setenv("LEADLINE_MODELS", f"other, {name} ,")
    servers.check_loadable(name)
    assert servers.loadable() == ("other", name)
