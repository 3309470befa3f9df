"""A diagnostic that is only a value in the tuple, without page, section or figure, is shown everywhere."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from core import diagnostics
from core.socket import REASON, Definition, Diagnostic, Export, Finding, Need, Number, QuestionColumn, Setting
from tests.app.conftest import HOSTILE, PAGES

ABOUT = "How long an answer is, in characters."


def analyse(diagnosis):
    queries = diagnosis.run.queries
    frame = queries[["query_id"]].assign(length=queries["answer"].fillna("").str.len().astype(float))
    frame["size"] = ["long" if n > diagnosis.settings["longest"] else "short" for n in frame["length"]]
    frame["reason"] = [None if n else "no_text" for n in frame["length"]]
    return SimpleNamespace(queries=frame, shout=diagnosis.settings["shout"])


def numbers(analysis):
    q = analysis.queries
    n_long = int((q["size"] == "long").sum())
    return (
        Number(
            "mean_length", "Mean length", float(q["length"].mean()), n=len(q), define="length", place="card"
        ),
        Number("n_long", "Long answers", n_long, of=len(q), note="by chance: half", place="row"),
        Number("no_length", "Without length", {"no_text": int((q["length"] == 0).sum())}, define=REASON),
    )


def findings(analysis):
    q = analysis.queries
    ids = tuple(q.loc[q["size"] == "long", "query_id"])
    if not ids:
        return ()
    return (
        Finding(
            "length",
            f"{len(ids)} of {len(q)} answers are too long{'!' if analysis.shout else '.'}",
            len(ids),
            len(q),
            expected_by_chance=0.5,
            p_value=0.01,
            severity="high",
            advice=f"Ask for {HOSTILE} shorter ones.",
            query_ids=ids,
        ),
    )


def toy(**changes):
    values = {
        "name": "toy",
        "title": "Length",
        "question": "How long are the answers?",
        "analyse": analyse,
        "numbers": numbers,
        "findings": findings,
        "settings": (
            Setting("longest", "Longest answer", 20.0, "Longer ones are too long.", 0.0, 100.0, 1.0),
            Setting("shout", "Shout", False, "Say it loudly."),
        ),
        "exports": (Export("toy-csv", "Lengths", ".csv", lambda d: b"length", "One row an answer."),),
        "definitions": (
            Definition("length", "Length", ABOUT, formula="number of characters"),
            Definition("no_text", "No text", "The answer has no text.", REASON),
        ),
        "columns": (QuestionColumn("length", "Length", "{:.0f}"), QuestionColumn("size", "Size")),
    }
    return Diagnostic(**values | changes)


@pytest.fixture
def with_toy(monkeypatch, recorded):
    """Add the toy to the tuple."""

    def add(**changes):
        monkeypatch.setattr(diagnostics, "DIAGNOSTICS", (*diagnostics.DIAGNOSTICS, toy(**changes)))

    return add


def cards(app):
    return {metric.label: metric.value for metric in app.metric}


def test_settings_are_widgets_where_they_act_and_in_the_address_everywhere(with_toy, open_app, healthy):
    with_toy()
    for page in PAGES:
        app = healthy(open_app(page, longest="7", shout="true"))
        assert (app.query_params["longest"], app.query_params["shout"]) == ("7", "true"), page
        if page in ("overview", "workbench", "compare", "signals"):  # what shows every diagnostic
            assert app.slider(key="longest").value == 7.0, page
            assert app.toggle(key="shout").value is True, page
        else:
            assert "longest" not in {one.key for one in app.slider}, page


@pytest.mark.parametrize("junk", ["-1", "101", "nan", "x", "1e999", HOSTILE])
def test_junk_settings_leave_the_default(junk, with_toy, open_app, healthy):
    with_toy()
    app = healthy(open_app("overview", longest=junk, shout=junk))
    assert app.slider(key="longest").value == 20.0 and app.toggle(key="shout").value is False


def test_overview_shows_finding_first_and_card(with_toy, open_app, healthy, texts):
    with_toy()
    app = healthy(open_app())
    said = texts(app).replace("\\", "").replace("\u2060", "")
    # "Raymond Unwin in 1903" and "alpha beta gamma delta" have more than 20 characters.
    assert "2 of 4 answers are too long." in said
    assert "chance baseline 0.5 of 4; p = 0.01" in said
    assert cards(app)["Mean length"] == "12.00" and "Long answers" not in cards(app)
    (metric,) = [one for one in app.metric if one.label == "Mean length"]
    assert metric.help.replace("\\", "") == ABOUT and "n = 4 questions" in said
    # A diagnostic without a page leads to the questions of its finding.
    links = [link.proto for link in app.get("page_link") if "finding=toy." in link.proto.query_string]
    assert links and all(link.page == "workbench" for link in links)
    app.slider(key="longest").set_value(99.0).run()
    assert "too long" not in texts(healthy(app))


def test_a_switch_reaches_the_analysis(with_toy, open_app, healthy, texts):
    with_toy()
    app = healthy(open_app())
    app.toggle(key="shout").set_value(True).run()
    assert "answers are too long\\!" in texts(healthy(app))


def test_workbench_shows_its_columns_or_why_there_are_none(with_toy, open_app, healthy, texts):
    with_toy()
    app = healthy(open_app("workbench", question="q1"))
    assert cards(app)["Length"] == "21" and cards(app)["Size"] == "long"
    assert "The answer has no text" in texts(healthy(open_app("workbench", question="q4")))


def test_what_it_lacks_is_said_on_overview_and_workbench(with_toy, open_app, healthy, texts):
    with_toy(needs=(Need("samples", "No answer was sampled."),))
    for page in ("overview", "workbench"):
        app = healthy(open_app(page))
        assert "No answer was sampled" in texts(app) and "Length" not in cards(app)
        assert "Mean length" not in cards(app)


def test_compare_compares_its_numbers_and_columns(with_toy, open_app, healthy, recorded, tmp_path):
    with_toy()
    other = recorded.derive({"run_id": "other", "name": "Other"})
    other.save(tmp_path / "runs" / "other")
    app = healthy(open_app("compare", compare=[recorded.run_id, "other"]))
    app.segmented_control(key="side_filter").set_value("All").run()
    *_, shared, _, headline, _trend = (frame.value for frame in healthy(app).dataframe)
    assert next(iter(headline.set_index("Number").loc["Mean length"])).startswith("12.00")
    assert {"length_A", "length_B", "size_A"} <= set(shared.columns)
    assert "Length" in app.selectbox(key="side_number").options
    app.selectbox(key="side_number").select("toy.length").run()
    assert "Length" in healthy(app).get("plotly_chart")[0].proto.spec


def test_its_export_and_definitions_are_offered(with_toy, open_app, healthy, texts):
    with_toy()
    app = healthy(open_app("data", door="Export"))
    menu = app.selectbox(key="export_format")
    assert "Lengths (.csv)" in menu.options
    menu.select("toy-csv").run()
    assert "-toy.csv" in texts(healthy(app)).replace("\\", "").replace("\u2060", "")
    said = texts(healthy(open_app("methods"))).replace("\\", "")
    assert ABOUT in said and "number of characters" in said and "The answer has no text." in said


def test_it_has_no_page_and_no_section_of_its_own(with_toy, open_app, healthy, texts):
    with_toy()
    app = healthy(open_app())
    assert not any("toy" in link.proto.page for link in app.get("page_link"))
