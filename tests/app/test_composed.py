"""A composed run says so everywhere, and the Claims page shows which planted errors were found."""

import pytest

from tests.app.conftest import PAGES
from tests.core.claims.test_planted import verified
from ui.sources import BADGES

LABEL = "Composed for demonstration, no model run"


@pytest.fixture
def composed(tmp_path):
    run = verified().renamed("Worked answers")
    run.save(tmp_path / "samples" / "worked_answers")
    return run


@pytest.mark.parametrize("page", PAGES)
def test_every_page_says_that_it_is_composed(page, composed, open_app, healthy, texts):
    app = healthy(open_app(page, run=composed.run_id))
    assert [info for info in app.info if info.value == f"{LABEL}."]
    assert BADGES["composed"][0] == LABEL and f"{LABEL}]" in texts(app)  # the badge in the sidebar


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
