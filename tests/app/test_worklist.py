"""The worklist on screen: filter and question are held everywhere, reviews are never lost silently."""

from __future__ import annotations

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core.reviews import Review, path_of, read, read_all, write_all
from core.run import Run
from ui import library

NO_ANSWER = "answers.empty_baselines"  # of the small run only q4


def listed(app) -> list[str]:
    return list(next(frame.value for frame in app.dataframe if "question" in frame.value)["question"])


def warned(app) -> str:
    return "\n".join(warning.value for warning in app.warning).replace("\\", "").replace("\u2060", "")


def parts():
    """Draw what pages draw, without the frame: a test chooses the mark that was selected."""
    import streamlit as st

    from ui import doors, sources, worklist

    sources.follow_link()
    st.caption(f"current {worklist.current()}, next {worklist.step(1)}, before {worklist.step(-1)}")
    st.caption("listed " + " ".join(worklist.ids()))
    worklist.review(worklist.current() or "")
    worklist.unkept(worklist.current() or "")
    worklist.narrow()
    marks = st.session_state.get("marks", [])
    points = [{"customdata": mark} for mark in marks]
    doors.follow({"selection": {"points": points}} if marks else None, "figure")


@pytest.fixture
def open_parts(monkeypatch):
    monkeypatch.setattr("ui.sources.link", lambda *_, **__: None)  # it needs the frame's pages

    def opened(**params: str) -> AppTest:
        app = AppTest.from_function(parts, default_timeout=120)
        for name, value in params.items():
            app.query_params[name] = value
        return app.run()

    return opened


def captions(app) -> str:
    assert not app.exception, app.exception
    return "\n".join(caption.value for caption in app.caption)


# ---- filter, order and question in the address ----


def test_the_address_filters_and_sorts_on_first_sight(open_app, healthy, recorded):
    app = healthy(open_app(words="question?", sort="run", kind="", unrelated="x"))
    assert listed(app) == ["An inert question?"]
    assert app.query_params["words"] == "question?" and app.query_params["sort"] == "run"
    assert "1 of 4 questions" in "\n".join(text.value for text in app.markdown)


def test_the_filter_is_held_on_every_page_and_in_every_link(open_app, healthy, recorded):
    app = healthy(open_app(finding=NO_ANSWER, question="q3"))
    assert listed(app) == ["An empty one?"]
    # A link to a proof carries the finding that it proves instead.
    links = [link.proto for link in app.get("page_link") if not link.proto.label.startswith("Read ")]
    assert links and all("finding=answers.empty_baselines" in link.query_string for link in links)
    app.switch_page("pages/methods.py")
    for name in ("run", "finding", "question"):
        del app.query_params[name]  # what the browser does when the menu is used
    assert healthy(app.run()).query_params["finding"] == NO_ANSWER
    app.switch_page("pages/overview.py").run()
    assert listed(healthy(app)) == ["An empty one?"] and app.query_params["question"] == "q3"


def test_widgets_write_the_address_and_chips_clear_it(open_app, healthy, recorded):
    app = healthy(open_app())
    assert len(listed(app)) == 4
    app.text_input(key="overview_words").set_value(" garden ").run()
    app.selectbox(key="overview_status").select("open").run()
    assert app.query_params["words"] == "garden" and app.query_params["status"] == "open"
    assert listed(healthy(app)) == ["Who designed the garden city?"]
    assert app.button(key="overview_clear_words").label == "Words\\:\u2060 garden".replace("\u2060", "")
    app.button(key="overview_clear").click().run()
    assert len(listed(healthy(app))) == 4 and "words" not in app.query_params


def test_a_link_that_names_a_filter_takes_the_place_of_the_old_one(open_app, healthy, recorded):
    app = healthy(open_app(words="garden", sort="run"))
    app.query_params["finding"] = NO_ANSWER
    del app.query_params["words"]
    assert listed(healthy(app.run())) == ["An empty one?"]
    assert "words" not in app.query_params


JUNK = ("<script>alert(1)</script>", "q" * 5000, "a.b.c:1")


@pytest.mark.parametrize("part", ["finding", "where", "label", "kind", "status", "sort"])
def test_junk_in_the_address_is_one_sentence_and_the_whole_list(part, open_parts, recorded):
    for junk in JUNK:
        app = open_parts(**{part: junk})
        assert len(listed_ids(app)) == 4
        assert len([one for one in app.warning if one.value]) == 1
        assert (junk[:20] in warned(app) or part == "where") and len(warned(app)) < 300


# ---- doors ----


@pytest.mark.parametrize(
    ("door", "ids"),
    [
        ("where=answers.queries.answer_status%3Aempty", "q4"),
        (f"finding={NO_ANSWER}", "q4"),
        ("where=influence.queries.k%3A4..9", "q1 q2 q3 q4"),
    ],
)
@pytest.mark.parametrize("form", [lambda door: [door, 1], lambda door: {"0": door}], ids=["list", "mapping"])
def test_a_mark_sets_the_filter_and_says_how_many_match(open_parts, recorded, form, door, ids):
    app = open_parts(words="nothing of this")
    app.session_state["marks"] = [form(door)]
    app.run()
    assert sorted(listed_ids(app)) == ids.split()
    assert "words" not in app.query_params
    said = "\n".join(text.value for text in app.markdown)
    assert f"{len(ids.split())} of 4 questions" in said


def test_a_mark_is_followed_once(open_parts, recorded):
    app = open_parts()
    app.session_state["marks"] = [[f"finding={NO_ANSWER}"]]
    app.run()
    app.button(key="beside_clear_finding").click().run()
    assert "finding" not in app.query_params  # the mark is still selected
    app.session_state["marks"] = []
    app.run()
    app.session_state["marks"] = [[f"finding={NO_ANSWER}"]]
    app.run()
    assert app.query_params["finding"] == NO_ANSWER  # selected anew


@pytest.mark.parametrize(
    "door",
    ["junk", "question=nobody", "finding=no.ne", "where=a", "run=x", "a=1&b=2", "<b>", "question", "&=", "%"],
)
def test_a_mark_that_leads_nowhere_is_one_sentence(open_parts, recorded, door):
    app = open_parts()
    app.session_state["marks"] = [[door]]
    app.run()
    assert len(app.warning) == 1 and "listed" in captions(app)
    assert len(listed_ids(app)) == 4


def listed_ids(app) -> list[str]:
    return captions(app).split("listed ")[1].split("\n")[0].split()


@pytest.mark.parametrize("mark", [None, [], {}, 5, [None], [""], [5], {"1": "x"}])
def test_a_mark_without_a_door_does_nothing(open_parts, recorded, mark):
    app = open_parts()
    app.session_state["marks"] = [mark]
    app.run()
    assert not app.warning and len(listed_ids(app)) == 4


# ---- the current question ----


def test_next_and_previous_go_along_the_filtered_list(open_parts, recorded):
    order = open_parts(sort="run")
    assert "current q1, next q2, before None" in captions(order)
    assert "current q2, next q3, before q1" in captions(open_parts(sort="run", question="q2"))
    assert "current q4, next None, before q3" in captions(open_parts(sort="run", question="q4"))
    outside = open_parts(sort="run", question="q1", finding=NO_ANSWER)
    assert "current q1, next q4, before None" in captions(outside)


# ---- reviews ----


def noted(run) -> dict[str, Review]:
    return dict(read(library.runs_folder(), run.run_id))


def review(app, question: str, status: str, note: str | None = None) -> None:
    app.button_group(key=f"review_status_{question}").set_value(status).run()
    if note is not None:
        app.text_area(key=f"review_note_{question}").set_value(note).run()
    assert not app.exception, app.exception


def test_a_review_is_kept_beside_the_run_and_the_run_is_not_touched(open_parts, recorded, tmp_path):
    before = {path: path.read_bytes() for path in (tmp_path / "samples").rglob("*.*")}
    app = open_parts(question="q2")
    review(app, "q2", "flagged", "=1+1 <b>")
    assert noted(recorded) == {"q2": Review("flagged", "=1+1 <b>")}
    assert {path: path.read_bytes() for path in (tmp_path / "samples").rglob("*.*")} == before
    again = open_parts(question="q2", status="flagged")  # another tab
    assert again.text_area(key="review_note_q2").value == "=1+1 <b>" and listed_ids(again) == ["q2"]


def test_two_tabs_do_not_overwrite_each_other_unseen(open_parts, recorded):
    mine, theirs = open_parts(question="q1"), open_parts(question="q1")
    review(theirs, "q1", "flagged", "theirs")
    review(mine, "q1", "reviewed")
    assert noted(recorded)["q1"] == Review("flagged", "theirs")
    assert "another tab" in warned(mine) and "theirs" in warned(mine)
    mine.button(key="review_mine").click().run()
    assert noted(recorded)["q1"] == Review("reviewed", "") and not warned(mine)


def test_the_other_tabs_review_can_be_taken(open_parts, recorded):
    mine = open_parts(question="q1")
    write_all(library.runs_folder(), recorded.run_id, {"q1": Review("flagged", "theirs")})
    review(mine, "q1", "reviewed")
    mine.button(key="review_other").click().run()
    assert mine.text_area(key="review_note_q1").value == "theirs" and not warned(mine)


@pytest.mark.parametrize("content", ["{", '{"run_id": "other", "reviews": {}}', "[]"])
def test_a_broken_file_is_told_and_what_is_noted_stays_in_the_tab(open_parts, recorded, content):
    path = path_of(library.runs_folder(), recorded.run_id)
    path.parent.mkdir(parents=True)
    path.write_text(content)
    app = open_parts(question="q1")
    assert len(app.warning) == 1 and "reviews" in warned(app)
    review(app, "q1", "flagged", "kept")
    assert path.read_text() == content and "this tab only" in warned(app)
    assert app.text_area(key="review_note_q1").value == "kept"
    path.unlink()
    review(app, "q1", "reviewed")
    assert noted(recorded)["q1"] == Review("reviewed", "kept") and not app.warning


def test_a_disk_that_refuses_is_told_and_nothing_is_lost(open_parts, recorded):
    app = open_parts(question="q1")
    library.runs_folder().mkdir(parents=True)
    (library.runs_folder() / "reviews").write_text("in the way")
    review(app, "q1", "flagged", "kept")
    assert "cannot be" in warned(app) and app.text_area(key="review_note_q1").value == "kept"


def test_reviews_of_a_run_that_is_not_saved_are_saved_with_it_and_deleted_with_it(
    open_app, healthy, small_run, recorded, tmp_path
):
    app = healthy(open_app())
    state = app.session_state["leadline"]
    run = small_run.renamed("Uploaded")
    run = type(run)({**run.manifest, "run_id": "feed"}, run.tables)
    state.show(run, "upload", saved=False, link={"run": "feed"})
    state.reviews["feed"] = {"q1": Review("flagged", "look")}
    app.switch_page("pages/data.py")
    app.query_params["door"], app.query_params["run"] = "Export", "feed"
    healthy(app.run())
    assert not noted(run)
    app.button(key="export_save").click().run()
    assert noted(run) == {"q1": Review("flagged", "look")}
    saved = library.find("feed")
    assert saved is not None
    library.delete(saved)
    assert not noted(run) and not path_of(library.runs_folder(), "feed").exists()


# ---- several people ----


@pytest.fixture
def as_person(monkeypatch):
    """Let the sessions that run from now on be this person's."""
    return lambda name: monkeypatch.setattr("ui.people.name", lambda: name)


def label(app, question: str, name: str, value: bool) -> None:
    app.button_group(key=f"review_{name}_{question}").set_value(value).run()
    assert not app.exception, app.exception


def test_two_people_review_one_question_and_see_each_other(open_parts, recorded, as_person):
    as_person("Ada <b>")
    mine = open_parts(question="q1")
    review(mine, "q1", "flagged", "wrong *year*")
    label(mine, "q1", "correct", False)
    as_person("Ben")
    theirs = open_parts(question="q1")
    shown = captions(theirs)
    assert "Ada <b> · Flagged, incorrect: wrong *year*" in shown.replace("\\", "")
    assert "\\<b\\>" in shown and "\\*year\\*" in shown  # as text, neither HTML nor Markdown
    assert theirs.button_group(key="review_status_q1").value == "open"
    review(theirs, "q1", "reviewed")
    label(theirs, "q1", "grounded", True)
    assert not warned(theirs)
    assert read_all(library.runs_folder(), recorded.run_id) == {
        "Ada <b>": {"q1": Review("flagged", "wrong *year*", correct=False)},
        "Ben": {"q1": Review("reviewed", grounded=True)},
    }
    # What they disagree on is a filter, and each person has their own open questions.
    assert listed_ids(open_parts(status="disputed")) == ["q1"]
    assert "q1" not in listed_ids(open_parts(status="open"))
    as_person("Cem")
    assert "q1" in listed_ids(open_parts(status="open"))


def test_a_label_can_be_taken_back(open_parts, recorded):
    app = open_parts(question="q1")
    label(app, "q1", "correct", True)
    assert noted(recorded) == {"q1": Review(correct=True)}
    label(app, "q1", "correct", None)
    assert noted(recorded) == {}


def test_the_queue_gives_the_next_question_that_this_person_has_not_reviewed(
    open_app, healthy, recorded, as_person
):
    folder = library.runs_folder()
    write_all(folder, recorded.run_id, {"q2": Review("reviewed"), "q3": Review(note="seen")}, person="Ada")
    write_all(folder, recorded.run_id, {f"q{i}": Review("reviewed") for i in (1, 2, 3)}, person="Ben")
    as_person("Ada")
    app = healthy(open_app("workbench", question="q1", sort="run"))
    for expected in ("q3", "q4", "q1"):  # after the last comes the first
        app.button(key="workbench_unreviewed").click().run()
        assert healthy(app).query_params["question"] == expected
    as_person("Ben")
    app = healthy(open_app("workbench", question="q4", sort="run"))
    assert app.button(key="workbench_unreviewed").disabled  # it is the only one left


def test_agreement_is_shown_and_labels_make_a_run(open_app, healthy, recorded):
    folder = library.runs_folder()
    for person, status, right in (("Ada", "flagged", (True, True)), ("Ben", "reviewed", (True, False))):
        said = {f"q{i}": Review(status, correct=value) for i, value in enumerate(right, 1)}
        write_all(folder, recorded.run_id, {**said, "q3": Review("flagged")}, person=person)
    app = healthy(open_app())
    table = next(one.value for one in app.dataframe if "kappa" in one.value)
    # Status: both alike on 1 of 3, by chance 1/3. Correct: alike on 1 of 2, by chance 1/2.
    assert table["n"].tolist() == [3, 2] and table["kappa"].tolist() == [0.0, 0.0]
    assert "Reviewers disagree on 2 of 4 questions." in captions(app)
    app.button(key="agreement_disputed").click().run()
    assert sorted(listed(healthy(app))) == sorted(recorded.queries["question"][:2])
    app.button(key="labels_use").click().run()
    derived = healthy(app).session_state["leadline"].run
    assert derived.manifest["parent"] == recorded.run_id and library.find(derived.run_id) is not None
    assert derived.queries["correct_by"][0] == "Ada, Ben" and "1 tie left out" in app.toast[0].value


def test_one_reviewer_without_labels_sees_no_section_for_several(open_app, healthy, recorded):
    write_all(library.runs_folder(), recorded.run_id, {"q1": Review("flagged")})
    app = healthy(open_app())
    assert not [one for one in app.expander if one.label in ("Reviews by several people", "Labels")]


# ---- many questions ----


@pytest.fixture
def many(tmp_path) -> Run:
    queries = pd.DataFrame(
        {"query_id": [f"q{i:03}" for i in range(950)], "question": [f"Question {i:03}?" for i in range(950)]}
    )
    run = Run.create({"source": "live", "name": "Many"}, queries=queries)
    run.save(tmp_path / "samples" / "recorded_run")
    return run


def test_a_long_list_has_pages_and_a_new_filter_begins_at_the_first(open_app, healthy, many):
    app = healthy(open_app(sort="run"))
    assert listed(app) == [f"Question {i:03}?" for i in range(200)]
    assert "950 of 950 questions" in "\n".join(text.value for text in app.markdown)
    (pages,) = app.get("pagination")
    app.session_state[pages.proto.id.rpartition("-")[2]] = 3
    assert listed(healthy(app.run())) == [f"Question {i:03}?" for i in range(400, 600)]
    assert "401 to 600 of 950" in captions(app)
    app.text_input(key="overview_words").set_value("question 1").run()
    met = [f"Question {i:03}?" for i in range(950) if "1" in f"{i:03}"]
    assert listed(healthy(app)) == met[:200] and f"1 to 200 of {len(met)}" in captions(app)


def test_the_list_beside_the_workbench_shows_where_the_question_is(open_parts, many):
    said = captions(open_parts(sort="run", question="q310"))
    assert "Question 311 of 950" in said and "current q310, next q311, before q309" in said
