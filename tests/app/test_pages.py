"""Every page, with every kind of data."""

import json
import re
from pathlib import Path

import pytest

from core.diagnosis import Diagnosis
from core.diagnostics import DIAGNOSTICS
from core.verdict import verdict
from tests.app.conftest import PAGES
from tests.core.verdict_runs import no_questions

CSV = (Path(__file__).parent / "influence.csv").read_bytes()
NEED_DATA = (
    "overview", "influence", "likelihood", "retrieval_quality", "claims", "uncertainty", "conformal", "validation", "confidence",
    "attribution", "losses", "signals", "workbench",
)  # fmt: skip
TITLES = {
    "overview": "Overview",
    "influence": "Influence vs retrieval",
    "attribution": "Attribution",
    "losses": "Where answers are lost",
    "likelihood": "Answer likelihood",
    "retrieval_quality": "Retrieval quality",
    "workbench": "Workbench",
    "claims": "Claims & evidence",
    "uncertainty": "Uncertainty",
    "conformal": "Conformal",
    "validation": "Validation",
    "confidence": "Confidence",
    "signals": "Signal agreement",
    "compare": "Compare",
    "live": "Live run",
    "data": "Data",
    "methods": "Methods and glossary",
}


def upload(open_app, content=CSV, name="influence.csv"):
    app = open_app("data")
    app.file_uploader(key="data_upload").upload(name, content)
    return app.run()


def go(app, page, **params):
    app.switch_page(f"pages/{page}.py")
    for name, value in params.items():
        app.query_params[name] = value
    return app.run()


@pytest.mark.parametrize("page", PAGES)
def test_without_data_every_page_says_what_to_do(page, open_app, healthy, texts):
    app = healthy(open_app(page))
    assert app.title[0].value == TITLES[page]
    assert ("No run is loaded" in texts(app)) == (page in NEED_DATA)
    assert "No data loaded" in texts(app)


@pytest.mark.parametrize("page", PAGES)
def test_recorded_run_is_shown_at_first_open(page, open_app, healthy, texts, recorded):
    app = healthy(open_app(page))
    assert "The recorded run" in texts(app)
    assert "No run is loaded" not in texts(app)
    # The bare address opens this run, so Back need not pass another one; but the workbench names its question.
    assert ("run" in app.query_params) == (page == "workbench")
    menu = [link.proto for link in app.sidebar.get("page_link")]
    assert {*PAGES} - {"overview"} <= {link.page for link in menu}
    assert all(f"run={recorded.run_id}" in link.query_string for link in menu)


def test_upload_is_shown_on_every_page(open_app, healthy, texts):
    app = upload(open_app)
    for page in PAGES:
        shown = texts(healthy(go(app, page)))
        assert "influence" in shown and "No run is loaded" not in shown, page


def test_overview_says_the_verdict_with_a_link_to_every_proof(open_app, healthy, texts, recorded):
    app = healthy(open_app())
    said = verdict(Diagnosis(recorded))
    shown = texts(app).replace("\\", "").replace("\u2060", "").replace("\u00a0", " ")
    for text in (*said.texts, said.advice):
        assert text in shown
    links = [link.proto for link in app.get("page_link")]
    for clause in (clause for sentence in said.sentences for clause in sentence if clause.finding):
        asked = f"finding={clause.diagnostic}.{clause.finding}"
        found = next(one for one in Diagnosis(recorded).findings() if one.name == clause.finding)
        # One that counts every case would list them all: it leads to its page.
        listed = bool(found.query_ids) and (found.n < found.of or clause.diagnostic not in PAGES)
        place, query = ("workbench", asked) if listed else (clause.diagnostic, "")
        assert any(link.page == place and query in link.query_string for link in links), clause
    # q1 and q2 have an order; q3 is inert and q4 has no answer.
    labels = [metric.label for metric in app.metric]
    assert labels == ["Correct answers", "nDCG by influence", "Gold passage first"]
    assert "n = 2 questions; 95 % interval" in shown and "by chance" in shown
    # What was in the prompt of incorrect answers, and counts against chance.
    assert len(app.get("plotly_chart")) == 2
    (listed,) = [one for one in app.expander if one.label.startswith("All findings")]
    assert listed.label == f"All findings ({len(Diagnosis(recorded).findings())})"
    # No claims were extracted: it says so instead of showing numbers.
    assert "Claims not extracted" in shown


def test_a_run_without_questions_says_so(open_app, healthy, texts, tmp_path):
    no_questions().save(tmp_path / "samples" / "recorded_run")
    assert "The run has no questions" in texts(healthy(open_app()))


def test_influence_page_compares_with_chance(open_app, healthy, texts, recorded):
    app = healthy(open_app("influence"))
    assert "A random order falls below τ" in texts(app)
    # Without its first passage q1's wrong answer becomes the reference answer.
    assert "Harmful passage** · 1 of 2 questions" in texts(app)
    # Ranks, by rank, nDCG, failure modes, histogram, entropy.
    assert len(app.get("plotly_chart")) == 6


def test_the_rank_plot_says_what_the_threshold_does_and_shows_one_label_alone(
    open_app, healthy, texts, recorded
):
    app = healthy(open_app("influence"))
    assert "No cell of this view depends on τ." in texts(
        app
    ) or "no cell of this view depends on it." in texts(app)
    app.segmented_control(key="influence_shown").set_value("Divergent").run()
    assert "follows from the choice and is no evidence" in texts(healthy(app))


def test_influence_of_an_upload_compares_reported_with_recomputed(open_app, healthy, texts):
    app = healthy(go(upload(open_app), "influence"))
    assert "Reported vs recomputed" in texts(app)
    # Two of the file's three questions are constant: called aligned there, undefined here.
    assert "2 verdicts change" in texts(app)


def test_every_page_of_a_simulation_is_labelled_and_none_is_empty(open_app, healthy, texts):
    """Before, six of the nine diagnostics had nothing to say of a simulated run."""
    for page in PAGES:
        app = healthy(open_app(page, sim="seed:3"))
        shown = texts(app)
        assert "Simulated data" in shown, page
        assert app.query_params["sim"] == "seed:3" and "run" not in app.query_params, page
        figures = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
        empty = [figure["layout"].get("annotations") for figure in figures if not figure["data"]]
        assert not empty and "No run is loaded" not in shown, page
        needs = [need.sentence for one in DIAGNOSTICS for need in one.needs]
        assert page not in NEED_DATA or not [one for one in needs if one in shown], page
        recovers = page == "overview" or page in {one.name for one in DIAGNOSTICS}
        assert ("Ground truth vs recovered" in shown) == recovers, page


def test_threshold_drives_the_labels(open_app, healthy, recorded):
    app = healthy(open_app("influence"))
    app.slider(key="influence_threshold").set_value(-1.0).run()
    values = {metric.label: metric.value for metric in healthy(app).metric}
    assert values["Divergent"] == "0 of 2"


def test_hostile_text_reaches_no_page_unescaped(open_app, healthy, texts, recorded):
    for page, question in (
        ("overview", ""),
        ("workbench", "q2"),
        ("workbench", "q1"),
        ("influence", ""),
        ("retrieval_quality", ""),
    ):
        app = healthy(open_app(page, **({"question": question} if question else {})))
        said = texts(app)
        assert not re.search(r"(?<!\\)<script", said)
        assert "](javascript" not in said
        assert ":smile:" not in said
        labels = [e.label for e in app.expander] + [link.proto.label for link in app.get("page_link")]
        assert not any(re.search(r"(?<!\\)<script|:smile:", label) for label in labels)


def test_methods_explain_every_definition(open_app, healthy, texts):
    said = texts(healthy(open_app("methods"))).replace("\\", "").replace("\u2060", "")
    for definition in (found for diagnostic in DIAGNOSTICS for found in diagnostic.definitions):
        assert definition.title in said and definition.meaning in said, definition.name
