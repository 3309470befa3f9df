"""Reliability presets in the sidebar: one choice that follows the sliders and moves them."""

import pytest


def shown(app):
    """The preset, and α, which acts on other pages: the address has it where it is not the default."""
    return app.selectbox(key="preset").value, float(app.query_params.get("alpha", 0.1))


def samples(app):
    return app.selectbox(key="uncertainty_samples").value


@pytest.mark.parametrize(
    ("params", "preset", "alpha", "n"),
    [
        ({}, "balanced", 0.1, 10),
        ({"alpha": "0.2"}, "quick", 0.2, 5),
        ({"alpha": "0.05"}, "high reliability", 0.05, 20),
        ({"alpha": "0.3"}, "custom", 0.3, 10),
        ({"alpha": "junk"}, "balanced", 0.1, 10),
    ],
)
def test_a_link_says_which_it_is(params, preset, alpha, n, open_app, healthy, recorded):
    app = healthy(open_app("uncertainty", **params))
    assert shown(app) == (preset, alpha) and samples(app) == n


def test_a_choice_moves_the_slider_the_address_and_the_samples_of_the_form(open_app, healthy, recorded):
    app = healthy(open_app("uncertainty"))
    app.selectbox(key="preset").select("high reliability").run()
    assert shown(healthy(app)) == ("high reliability", 0.05) and samples(app) == 20
    assert app.query_params["alpha"] == "0.05"
    # What a visitor has chosen on the form stays.
    app.selectbox(key="uncertainty_samples").select(5).run()
    app.selectbox(key="preset").select("balanced").run()
    assert shown(healthy(app)) == ("balanced", 0.1) and samples(app) == 5
    assert "alpha" not in app.query_params


def test_a_slider_away_from_every_preset_shows_custom_and_back_again(open_app, healthy, recorded):
    app = healthy(open_app("conformal"))
    app.slider(key="alpha").set_value(0.33).run()
    assert shown(healthy(app)) == ("custom", 0.33)
    assert app.selectbox(key="preset").options == ["Quick", "Balanced", "High reliability", "Custom"]
    app.selectbox(key="preset").select("quick").run()
    assert shown(healthy(app)) == ("quick", 0.2) and app.slider(key="alpha").value == 0.2
    assert app.selectbox(key="preset").options == ["Quick", "Balanced", "High reliability"]
    app.slider(key="alpha").set_value(0.05).run()
    assert shown(healthy(app)) == ("high reliability", 0.05)


def test_it_holds_on_other_pages(open_app, healthy, recorded):
    app = healthy(open_app("overview"))
    app.selectbox(key="preset").select("quick").run()
    app.switch_page("pages/uncertainty.py").run()
    assert shown(healthy(app)) == ("quick", 0.2) and samples(app) == 5
