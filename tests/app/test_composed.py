"""A composed run says so everywhere, and the Claims page shows which planted errors were found."""

import pytest

from tests.app.conftest import PAGES
from tests.core.claims.test_planted import verified
from ui import show
from ui.sections.claims import run as claims_run
from ui.sources import BADGES

LABEL = "Composed for demonstration, no model run"


@pytest.fixture(scope="module")
def worked():
    return verified().renamed("Worked answers")


@pytest.fixture
def composed(tmp_path, worked):
    worked.save(tmp_path / "samples" / "worked_answers")
    return worked


def test_every_page_says_that_it_is_composed(composed, open_app, healthy, texts):
    assert BADGES["composed"][0] == LABEL
    for page in PAGES:
        app = healthy(open_app(page, run=composed.run_id))
        assert [info for info in app.info if info.value == f"{LABEL}."], page
        assert f"{LABEL}]" in texts(app), page  # the badge in the sidebar


def test_planted_errors_are_counted_with_what_chance_gives(composed, open_app, healthy, texts):
    app = healthy(open_app("claims", run=composed.run_id))
    said = texts(app)
    assert "1 of 3 planted errors are flagged as unsupported" in said and "would hit 1" in said
    assert "1 of 3 claims without an error are flagged, too" in said
    (table,) = [one.value for one in app.dataframe if "n_found" in one.value]
    assert table["n_found"].tolist()[:2] == [1, 1]
    app.slider(key="support").set_value(0.95).run()
    assert "3 of 3 planted errors" in texts(healthy(app))


def test_other_runs_have_no_planted_errors(recorded, open_app, healthy, texts):
    app = healthy(open_app("claims"))
    assert "Planted errors" not in texts(app) and LABEL not in texts(app)


def test_saved_runs_name_its_source(composed, open_app, healthy, texts):
    app = healthy(open_app("data", door="Saved runs"))
    assert LABEL in texts(app).replace("\\", "")


def test_each_kind_of_error_leads_to_its_questions_and_no_quadrant_is_drawn(
    composed, open_app, healthy, texts
):
    app = healthy(open_app("claims", run=composed.run_id, where="claims.claims.planted_error:True"))
    assert "Condition: planted error: yes" in " ".join(button.label for button in app.button).replace(
        "\\", ""
    )
    (table,) = [one.value for one in app.dataframe if "n_found" in one.value]
    assert table["n_questions"].tolist()[:2] == [1, 1]  # the number and the negation that were missed
    # No passage was left out, so none is in a quadrant: "Undefined · 1" led to every question.
    assert not [link for link in app.get("page_link") if "quadrant" in link.proto.query_string]


@pytest.mark.parametrize("door", ["where=claims.claims.planted%3Anumber", "where=junk", ""])
def test_a_row_leads_where_its_mark_does(door, composed, open_app, healthy, monkeypatch, texts):
    real = show.table

    def chosen(frame, alt, *arguments, **options):
        event = real(frame, alt, *arguments, **options)
        return {"selection": {"rows": [1]}} if "choosing a row lists" in alt else event

    monkeypatch.setattr(show, "table", chosen)
    monkeypatch.setattr(claims_run, "_planted_door", lambda row: door)
    app = healthy(open_app("claims", run=composed.run_id))
    said = texts(app).replace("\\", "")
    assert ("1 of 1 question** matches Condition: planted: number changed" in said) == ("number" in door)
    assert any("no condition" in one.value for one in app.warning) == ("junk" in door)
