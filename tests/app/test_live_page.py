"""The Live page: one question and its button first, options folded, steps off where they make no sense."""

from __future__ import annotations


def button(app, label):
    return next(one for one in app.button if one.label.startswith(label))


def test_one_question_and_run_with_its_calls_come_first(open_app, healthy):
    """Three questions of ten passages, and the button that ran them behind 1,200 pixels of options."""
    app = healthy(open_app("live"))
    # One with all six passages, one without each, one without any.
    assert button(app, "Run").label == "Run (8 calls)"
    assert all(one.label.startswith("Options: ") for one in app.main.expander)
    app.number_input(key="live_k").set_value(3).run()
    assert button(app, "Run").label == "Run (5 calls)"
    app.number_input(key="live_repeats").set_value(2).run()
    assert button(app, "Run").label == "Run (7 calls)"
    app.toggle(key="live_do_uncertainty").set_value(True).run()
    assert button(app, "Run").label == "Run (over 7 calls)"


def test_a_calibration_needs_labels(open_app, healthy):
    """Conformal thresholds were calibrated on half of one question."""
    app = healthy(open_app("live"))
    assert app.toggle(key="live_do_conformal").value is False
    assert app.toggle(key="live_do_validation").value is True
    n = next(one for one in app.number_input if one.label == "How many")
    n.set_value(40).run()
    assert healthy(app).toggle(key="live_do_conformal").value is True


def test_citations_are_asked_for_where_the_prompt_asks_for_them(open_app, healthy):
    app = healthy(open_app("live"))
    assert "Answers must cite" not in [one.label for one in app.checkbox]
    app.selectbox(key="live_style").select("full").run()
    assert "Answers must cite" in [one.label for one in healthy(app).checkbox]


def test_a_cluster_is_offered_where_an_administrator_has_named_one(open_app, healthy, monkeypatch):
    app = healthy(open_app("live"))
    assert "Model calls from" not in [one.label for one in app.selectbox]
    started = []
    monkeypatch.setattr("ui.job_panel.start", lambda page, work: started.append(work.place.on))
    monkeypatch.setenv("LEADLINE_RAY", "ray://head:10001")
    menu = healthy(app.run()).selectbox(key="live_place")
    assert menu.options == ["This server", "The cluster's workers"]
    button(app, "Run").click().run()
    app.selectbox(key="live_place").select("ray://head:10001").run()
    button(app, "Run").click().run()
    assert started == ["here", "ray://head:10001"]
    # A visitor's own server is asked from here, where no key goes along.
    app.selectbox(key="live_backend").select("openai").run()
    app.text_input(key="live_url_openai").input("http://127.0.0.1:9/v1").run()
    assert "Model calls from" not in [one.label for one in healthy(app).selectbox]
