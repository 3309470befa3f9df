"""Every page, with every kind of data."""

import re
from pathlib import Path

import pytest

from core.diagnostics import DIAGNOSTICS
from tests.app.conftest import PAGES

CSV = (Path(__file__).parent / "influence.csv").read_bytes()
NEED_DATA = ("overview", "influence", "retrieval_quality", "claims", "workbench")
TITLES = {
    "overview": "Overview",
    "influence": "Influence vs retrieval",
    "retrieval_quality": "Retrieval quality",
    "workbench": "Workbench",
    "claims": "Claims & evidence",
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
    assert app.query_params["run"] == recorded.run_id
    assert "No run is loaded" not in texts(app)


@pytest.mark.parametrize("page", PAGES)
def test_simulation_is_always_labelled(page, open_app, healthy, texts):
    app = healthy(open_app(page, sim="queries:12,seed:3"))
    assert "Simulated data" in texts(app)
    assert app.query_params["sim"] == "queries:12,seed:3"
    assert "run" not in app.query_params


@pytest.mark.parametrize("page", PAGES)
def test_upload_is_shown_on_every_page(page, open_app, healthy, texts):
    app = healthy(go(upload(open_app), page))
    assert "influence" in texts(app)
    assert "No run is loaded" not in texts(app)


def test_overview_shows_findings_and_every_card_with_its_n(open_app, healthy, texts, recorded):
    app = healthy(open_app())
    values = {metric.label: metric.value for metric in app.metric}
    # q1 and q2 have an order; q3 is inert and q4 has no answer.
    assert values["Divergent"] == "1 of 2"
    said = texts(app).replace("\\", "")
    assert "n = 2 questions; 95 % interval" in said and "by chance" in said
    assert "1 × inert" in said and "1 × empty baseline" in said
    assert "1 of 4 baselines are empty" in said
    (link,) = [link.proto for link in app.get("page_link") if link.proto.label.startswith("An empty one")]
    assert "question=q4" in link.query_string
    # No claims were extracted: the box says so instead of showing numbers.
    assert "Claims not extracted" in said and "Mean grounding" not in values


def test_a_run_without_findings_says_so(open_app, healthy, texts, small_run, tmp_path):
    run = small_run.derive({}, queries=small_run.queries.head(1), passages=small_run.passages.head(0))
    run.save(tmp_path / "samples" / "recorded_run")
    assert "Nothing stands out" in texts(healthy(open_app()))


def test_influence_page_compares_with_chance(open_app, healthy, texts, recorded):
    app = healthy(open_app("influence"))
    assert "a random order of the passages falls below" in texts(app)
    # Without its first passage q1's wrong answer becomes the reference answer.
    assert "Harmful passage** · 1 of 2 questions" in texts(app)
    # Verdicts, histogram, nDCG, by rank, ranks, entropy, slope, failure modes.
    assert len(app.get("plotly_chart")) == 8


def test_influence_of_an_upload_compares_reported_with_recomputed(open_app, healthy, texts):
    app = healthy(go(upload(open_app), "influence"))
    assert "Reported vs recomputed" in texts(app)
    # Two of the file's three questions are constant: called aligned there, undefined here.
    assert "2 verdicts change" in texts(app)


def test_influence_of_a_simulation_shows_what_was_recovered(open_app, healthy, texts):
    app = healthy(open_app("influence", sim="queries:20"))
    assert "Ground truth vs recovered" in texts(app)


def test_threshold_drives_the_labels(open_app, healthy, recorded):
    app = healthy(open_app())
    app.slider(key="threshold").set_value(-1.0).run()
    values = {metric.label: metric.value for metric in healthy(app).metric}
    assert values["Divergent"] == "0 of 2"


def test_questions_are_filtered_by_label(open_app, healthy, recorded):
    app = healthy(open_app("influence"))
    app.multiselect(key="influence_labels").set_value(["Undefined"]).run()
    shown = healthy(app).dataframe[-1].value
    assert list(shown["query_id"]) == ["q3", "q4"]


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
