"""What stands behind the first figures of a page is drawn when it is opened: in a browser it takes half a second."""

from __future__ import annotations


def n_figures(app) -> int:
    return len(app.get("plotly_chart"))


def test_more_figures_are_drawn_when_they_are_asked_for(open_app, healthy, recorded):
    app = healthy(open_app("influence", folded=True))
    first = n_figures(app)
    app.session_state["influence_more"] = True
    assert n_figures(healthy(app.run())) == first + 4


def test_the_workbench_draws_what_is_opened_and_it_stays_open(open_app, healthy, recorded):
    app = healthy(open_app("workbench", folded=True, question="q1"))
    assert n_figures(app) == 0
    app.session_state["workbench_influence"] = True
    assert n_figures(healthy(app.run())) == 1
    app.button(key="workbench_next").click().run()
    assert app.query_params["question"] == "q3" and n_figures(healthy(app)) == 0  # that one has no figure
    app.button(key="workbench_previous").click().run()
    assert n_figures(healthy(app)) == 1
