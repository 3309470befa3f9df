"""Settings on the pages where they act, and the menu's groups."""

from core.diagnostics import DIAGNOSTICS
from core.socket import EARLIER, TRUST, WHY
from tests.app.conftest import PAGES

NAMES = [one.name for one in DIAGNOSTICS]


def own(one):
    """The settings of a diagnostic that the sidebar draws: names that only a run knows are chosen on a page."""
    return {each.name for each in one.settings if not each.is_choice or each.choices}


EVERY = set().union(*map(own, DIAGNOSTICS))


def acting(name):
    """The settings of a diagnostic and of all that it reads, directly or not."""
    one = DIAGNOSTICS[NAMES.index(name)]
    read = NAMES[: NAMES.index(name)] if one.reads == EARLIER else one.reads
    return own(one).union(*map(acting, read))


ACT_ON = {
    **dict.fromkeys(("overview", "workbench", "compare", "signals"), EVERY),
    **{page: set() for page in ("live", "data", "methods")},
    **{name: acting(name) for name in NAMES},
}


def settings_of(app):
    return {one.key for kind in ("slider", "toggle", "selectbox") for one in app.sidebar.get(kind)} - {
        "preset"
    }


def test_a_page_has_the_settings_that_act_on_it_and_no_others(open_app, healthy, recorded):
    """The eight sliders of all diagnostics were on every page, on Data and Methods too."""
    assert {page: settings_of(healthy(open_app(page))) for page in PAGES} == {
        page: ACT_ON[page] for page in PAGES
    }


def test_claims_depend_on_the_settings_of_influence_and_validation_on_none():
    assert acting("claims") == {"influence_threshold", "as_published", "influence", "support"}
    assert acting("validation") == set()


def test_a_setting_holds_where_it_is_not_drawn(open_app, healthy, recorded):
    app = healthy(open_app("influence"))
    app.slider(key="influence_threshold").set_value(-1.0).run()
    assert app.query_params["influence_threshold"] == "-1"
    app.switch_page("pages/data.py").run()
    assert healthy(app).query_params["influence_threshold"] == "-1"
    app.switch_page("pages/influence.py").run()
    assert healthy(app).slider(key="influence_threshold").value == -1.0
    links = [one.proto.query_string for one in app.sidebar.get("page_link")]
    assert links and all("influence_threshold=-1" in link for link in links)


def test_the_menu_has_four_groups_and_the_run_stands_above_it(open_app, healthy, recorded):
    """Twelve pages stood under *Diagnose*, and the run's name below all of them."""
    app = healthy(open_app())
    told = [one.value for one in app.sidebar.caption]
    groups = ["Read the run", "Why these answers", "Which to trust", "Data"]
    assert [text for text in told if text in groups] == groups
    assert "4 questions" in told[0]  # of the run
    # Behind those of "Change data", which stands above the menu.
    drawn = [one.proto.page or "overview" for one in app.sidebar.get("page_link")]
    why, trust = (
        [one.name for one in DIAGNOSTICS if one.group == group and one.name in PAGES]
        for group in (WHY, TRUST)
    )
    pages = ["overview", "workbench", "compare", *why, *trust, "signals", "live", "data", "methods"]
    assert drawn[-len(pages) :] == pages and {*pages} == {*PAGES}
