"""The page Claims & evidence: with claims and without, its form, and its job."""

import json

import pandas as pd
import pytest

from core.run import Run
from core.sources.formats import import_file
from tests.app.claims_runs import claims_run
from tests.app.polling import Gate, button, wait
from tests.scripted import ScriptedLLM
from ui import jobs


@pytest.fixture
def with_claims(tmp_path):
    """Put the run made by hand where the recorded sample run is looked for."""

    def put(run=None):
        run = claims_run() if run is None else run
        run.save(tmp_path / "samples" / "recorded_run")
        return run

    return put


def metrics(app):
    return [(metric.label, metric.value) for metric in app.metric]


def test_form_is_shown_where_there_are_no_claims(open_app, healthy, texts, recorded):
    app = healthy(open_app("claims"))
    said = texts(app)
    assert "Claims not extracted" in said
    # The fourth answer is empty.
    assert "**3 answers** to check; 1 without one" in said and "4.0 passages each" in said
    assert not app.metric and not app.get("plotly_chart") and not app.get("bidi_component")
    assert not button(app, "Extract and verify claims").disabled


def test_without_data_the_claims_page_says_what_to_do(open_app, healthy, texts):
    app = healthy(open_app("claims"))
    assert app.title[0].value == "Claims & evidence" and "No run is loaded" in texts(app)


def test_cold_server_opens_the_claims_page_in_its_frame(open_app, healthy, recorded, texts):
    app = healthy(open_app("claims"))
    assert app.slider(key="support").value == 0.5 and "The recorded run" in texts(app)


def test_cost_is_told_for_each_verifier(open_app, healthy, texts, recorded, monkeypatch):
    llm = judge_model(monkeypatch)
    app = healthy(open_app("claims"))
    captions = "\n".join(app.radio(key="claims_verifier").proto.captions)
    assert "under a second per answer" in captions and "one call per answer and passage" in captions
    assert "Estimate cost" not in [b.label for b in app.button]
    app.radio(key="claims_verifier").set_value("judge").run()
    assert app.selectbox(key="claims_backend").value == "embedded"
    # Three decompositions; three answers of four passages with one call each.
    for repeats, calls in ((1, 15), (3, 39)):
        app.number_input(key="claims_judge_repeats").set_value(repeats).run()
        button(app, "Estimate cost").click().run()
        app = healthy(wait(app, "Run"))
        assert dict(metrics(app))["Calls to make"] == f"about {calls}"
    assert not llm.requests
    app.radio(key="claims_verifier").set_value("nli").run()
    assert button(app, "Extract and verify").disabled
    assert "The administrator lists no model in LEADLINE_MODELS" in texts(app)
    monkeypatch.setenv("LEADLINE_MODELS", "some/folder, ")
    app.run().selectbox(key="claims_nli").set_value("some/folder").run()
    assert not button(healthy(app), "Extract and verify").disabled


def test_every_section_says_what_it_rests_on(open_app, healthy, texts, with_claims):
    with_claims()
    app = healthy(open_app("claims"))
    said, found = texts(app), metrics(app)
    # q1: c0, c1 and the joint c4 are supported, c2 is not, c3 is unscored, c5 irrelevant; q4: unscored.
    assert found[:2] == [("Supported claims", "3 of 4"), ("Mean grounding", "0.75")]
    rows = app.dataframe[0].value.set_index("Number")
    numbers, bases = rows["Value"], rows["n, interval, chance baseline"]
    assert (numbers["Claims"], bases["Claims"]) == ("7", "n = 2 answers")
    # All four are of one answer, which says nothing of others.
    wide = "95 % interval of the share 1 to 100 %; 1 by two passages together only"
    assert bases["Supported claims"] == wide
    assert (numbers["Irrelevant claims"], numbers["Unscored claims"]) == ("1 of 7", "2 of 7")
    assert numbers["Unscored cells"] == "3"
    # U of q1: 0.15, 0.6, 0.75, 0.6 (one passage known), 0.65; their mean is 0.55.
    assert (
        numbers["Mean claim uncertainty U"] == "0.55" and bases["Mean claim uncertainty U"] == "n = 1 answer"
    )
    assert "1 × empty" in said and "1 × unscored" in said
    assert "1 of 4 claims checked has no supporting passage" in said
    assert "weak on hard claims" in said and "AUROC 0." in said and "0.5 is guessing" in said
    assert "Claims were extracted by rules" in said
    assert "**3 cells are unscored**" in app.warning[0].value
    assert "Used evidence** · 1 of 4 passages" in said and "Undefined** · 2 of 4 passages" in said
    # There is no reference answer to compare with, and nothing is said of it.
    assert "reference answers" not in said
    # The matrix of all claims and the quadrants are open, F1@K is behind "More".
    assert [chart.proto.id.split("-")[-1] for chart in app.get("plotly_chart")] == [
        "evidence_matrix", "claims_quadrants", "f1_at_k_chart",
    ]  # fmt: skip


def test_figures_without_a_message_are_not_drawn(open_app, healthy, with_claims):
    """With one claim an answer F1@10 says what grounding says, and it was drawn all the same."""
    one = pd.DataFrame([{"query_id": "q1", "question": "Who?", "answer": "Unwin planned it."}])
    claims = pd.DataFrame([{"query_id": "q1", "claim_id": "a", "text": "Unwin planned it."}])
    passages = pd.DataFrame([{"query_id": "q1", "passage_id": "p", "retrieval_rank": 1, "text": "Unwin."}])
    with_claims(Run.create({"source": "upload"}, queries=one, claims=claims, passages=passages))
    charts = healthy(open_app("claims")).get("plotly_chart")
    assert [chart.proto.id.split("-")[-1] for chart in charts] == ["evidence_matrix"]


def test_the_matrix_of_all_claims_goes_page_by_page(open_app, healthy, with_claims):
    """It was there for one question of the run at a time only."""
    n = 45
    ids = [f"q{i}" for i in range(n)]
    tables = {
        "queries": pd.DataFrame({"query_id": ids, "question": ids, "answer": "It is so."}),
        "passages": pd.DataFrame({"query_id": ids, "passage_id": "p", "retrieval_rank": 1, "text": "So."}),
        "claims": pd.DataFrame({"query_id": ids, "claim_id": "a", "text": ids}),
    }
    with_claims(Run.create({"source": "upload"}, **tables))
    app = healthy(open_app("claims"))
    alt = [chart.proto.alt for chart in app.get("plotly_chart")]
    assert alt[0].startswith("Claims 1 to 15 of 45 claims of 45 answers")
    app.get("pagination")[0].set_value(3).run()
    assert healthy(app).get("plotly_chart")[0].proto.alt.startswith("Claims 31 to 45 of 45 claims")


def test_threshold_of_support_drives_states_and_comes_from_the_address(open_app, healthy, with_claims):
    with_claims()
    app = healthy(open_app("claims", question="q1"))
    app.slider(key="support").set_value(0.85).run()
    # At 0.85 only c0 is supported, by one passage; the pair of 0.8 no longer counts.
    assert dict(metrics(healthy(app)))["Supported claims"] == "1 of 4"
    linked = healthy(open_app("claims", question="q1", support="0.85"))
    assert linked.slider(key="support").value == 0.85
    assert dict(metrics(linked))["Supported claims"] == "1 of 4"
    # It stays while other pages are looked at, and drives the overview's numbers.
    app.switch_page("pages/overview.py").run()
    assert dict(metrics(healthy(app)))["Supported claims"] == "1 of 4"
    app.switch_page("pages/claims.py").run()
    assert healthy(app).slider(key="support").value == 0.85


@pytest.mark.parametrize("junk", ["nonsense", "7", "-1", "NaN", ""])
def test_junk_threshold_of_support_leaves_the_default(junk, open_app, healthy, with_claims):
    with_claims()
    assert healthy(open_app("claims", support=junk)).slider(key="support").value == 0.5


def test_overview_shows_support_where_there_are_claims(open_app, healthy, texts, with_claims):
    with_claims()
    found = dict(metrics(healthy(open_app())))
    assert found["Supported claims"] == "3 of 4"


def test_overview_and_workbench_link_to_claims(open_app, healthy, recorded):
    app = healthy(open_app())
    assert "Supported claims" not in dict(metrics(app))
    assert len([link for link in app.get("page_link") if link.proto.page == "claims"]) == 2  # with the menu's
    workbench = healthy(open_app("workbench", question="q3"))
    links = [one for one in workbench.get("page_link") if one.proto.page == "claims"]
    assert len(links) == 1 and "question=q3" in links[0].proto.query_string  # of the menu
    assert "Claims & evidence: " in " ".join(one.value for one in workbench.caption).replace("\\", "")


def test_imported_ragchecker_file_is_shown_with_its_metrics(open_app, healthy, texts, with_claims):
    file = {
        "results": [
            {
                "query_id": "1",
                "query": "Who planned it?",
                "gt_answer": "Unwin.",
                "response": "Unwin planned it. It is in the north.",
                "retrieved_context": [{"doc_id": "a", "text": "Unwin planned it."}],
                "response_claims": [["Unwin", "planned", "it"], ["it", "is in", "the north"]],
                "gt_answer_claims": [["Unwin", "planned", "it"]],
                "answer2response": ["Entailment", "Neutral"],
                "response2answer": ["Entailment"],
                "retrieved2response": [["Entailment"], ["Neutral"]],
                "retrieved2answer": [["Entailment"]],
            }
        ]
    }
    imported = import_file(json.dumps(file).encode(), "ragchecker.json", "ragchecker").run
    with_claims(imported)
    app = healthy(open_app("claims"))
    assert dict(metrics(app))["Supported claims"] == "1 of 2"
    tables = [element.value for element in app.dataframe]
    (means,) = [frame for frame in tables if "metric" in frame]
    assert means.set_index("metric")["mean"]["precision"] == 0.5
    assert means.set_index("metric")["mean"]["recall"] == 1.0


def test_offline_job_finds_claims_and_shows_them(open_app, healthy, texts, recorded, tmp_path):
    app = healthy(open_app("claims"))
    button(app, "Extract and verify claims").click().run()
    app = healthy(wait(app, "Finished and saved"))
    (folder,) = (tmp_path / "runs").iterdir()
    saved = Run.load(folder)
    assert saved.manifest["parent"] == recorded.run_id and saved.name == "The recorded run, claims"
    assert app.query_params["run"] == saved.run_id and len(app.query_params["job"]) >= 24
    assert saved.manifest["steps"]["claims"]["complete"] and len(saved["claims"])
    assert "Mean grounding" in dict(metrics(app)) and "weak on hard claims" in texts(app)
    # A reload in a new session finds the job and the run.
    again = healthy(open_app("claims", run=saved.run_id, job=app.query_params["job"]))
    assert again.success and metrics(again) == metrics(app)
    # The parent is as it was.
    parent = healthy(open_app("claims", run=recorded.run_id))
    assert "Claims not extracted" in texts(parent)


def all_supported(request):
    names = json.loads(request.schema)["properties"] if request.schema else {}
    return json.dumps(dict.fromkeys(names, "SUPPORTED"))


def judge_model(monkeypatch, rule=all_supported, **options):
    """Put a model that finds every claim supported where the back end would be opened."""
    llm = ScriptedLLM(rule, **options)
    monkeypatch.setattr(jobs, "open_llm", lambda kind, name, **_: llm)
    return llm


def judged(app):
    app.radio(key="claims_verifier").set_value("judge").run()
    app.selectbox(key="claims_decompose").set_value("rules").run()
    button(app, "Extract and verify claims").click().run()
    return app


def test_judge_is_asked_and_named(monkeypatch, open_app, healthy, texts, recorded):
    llm = judge_model(monkeypatch)
    app = healthy(wait(judged(healthy(open_app("claims"))), "Finished and saved"))
    assert llm.requests and "Verified by the language model" in texts(app)
    assert "weak on hard claims" not in texts(app)


def test_failing_job_says_one_sentence_and_can_be_tried_again(monkeypatch, open_app, healthy, recorded):
    judge_model(monkeypatch, down=True)
    app = wait(judged(healthy(open_app("claims"))), "Try again")
    assert len(healthy(app).error) == 1
    judge_model(monkeypatch)
    jobs.registry()._models.clear()
    button(app, "Try again").click().run()
    healthy(wait(app, "Finished and saved"))


def test_cancelled_job_keeps_what_was_done_and_goes_on(monkeypatch, open_app, healthy, texts, recorded):
    gate = Gate(all_supported, calls=5)
    llm = judge_model(monkeypatch, gate)
    app = judged(healthy(open_app("claims")))
    assert gate.asked.wait(240)
    button(app.run(), "Cancel").click().run()
    gate.opened.set()
    healthy(wait(app, "Cancelled"))
    done = len(llm.requests)
    button(app, "Continue").click().run()
    healthy(wait(app, "Finished and saved"))
    assert "Verified by the language model" in texts(app)
    # What was answered before the cancel is not asked again.
    assert 0 < done < len(llm.requests) == len({str(request) for request in llm.requests})


def test_unscored_cells_are_tried_again(open_app, healthy, with_claims, tmp_path):
    with_claims()
    app = healthy(open_app("claims"))
    button(app, "Try the unscored cells again").click().run()
    healthy(wait(app, "Finished and saved"))
    (folder,) = (tmp_path / "runs").iterdir()
    assert Run.load(folder)["support"]["probability"].notna().all()


def test_unknown_job_link_is_told(open_app, healthy, recorded):
    app = healthy(open_app("claims", job="guessed"))
    assert "no longer exists" in app.warning[0].value and "job" not in app.query_params


def test_other_sessions_do_not_see_a_claims_job(open_app, healthy, recorded):
    app = healthy(open_app("claims"))
    button(app, "Extract and verify claims").click().run()
    other = healthy(open_app("claims"))
    assert "job" not in other.query_params and not other.success
    wait(app, "Finished and saved")
