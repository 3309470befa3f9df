"""The page Compare: none, one, two and four runs, links, and runs that share nothing."""

from __future__ import annotations

import pytest

from core.run import Run
from core.sources.simulation import SimulationOptions, simulate
from tests.app.claims_runs import claims_run
from tests.app.conftest import HOSTILE, make_run
from ui.plain import plain


def saved(tmp_path, name, letter="", **changes):
    """Save a variant of the small run; ``letter`` is put behind its ids and answers."""
    run = make_run()
    answers = [f"{answer}{letter}" for answer in run.queries["answer"]]
    queries = run.queries.assign(**{"answer": answers, **changes})
    other = Run.create(
        {"source": "live", "name": name, "model": {"name": f"model {name}"}},
        queries=queries,
        passages=run.passages,
    )
    other.save(tmp_path / "runs" / other.run_id)
    return other


def compared(open_app, *runs):
    return open_app("compare", compare=[run.run_id for run in runs])


def every(app):
    """Show all shared questions, not only those that changed."""
    return app.segmented_control(key="side_filter").set_value("All").run()


def link_labels(app):
    return [link.proto.label for link in app.get("page_link")]


def test_with_nothing_loaded_it_says_where_runs_come_from(open_app, healthy, texts):
    app = healthy(open_app("compare"))
    assert app.multiselect(key="side_runs").options == []
    assert "There is no second run yet" in texts(app) and "Saved runs" in link_labels(app)
    assert not app.get("plotly_chart")


def test_one_run_is_chosen_at_first_and_a_second_is_asked_for(open_app, healthy, texts, recorded):
    app = healthy(open_app("compare"))
    assert app.multiselect(key="side_runs").value == [recorded.run_id]
    link = next(x.proto for x in app.get("page_link") if x.proto.label.startswith("Ask the same questions"))
    assert "questions=Questions+of+the+loaded+run" in link.query_string
    assert not app.get("plotly_chart")


def test_it_opens_with_the_loaded_run_and_its_nearest_relative(open_app, healthy, texts, tmp_path):
    a = saved(tmp_path, "One")
    child = a.derive({"name": "Two <b>", "run_id": "child"})
    child.save(tmp_path / "runs" / "child")
    saved(tmp_path, "Three", letter="x")
    app = healthy(open_app("compare", run=a.run_id))
    assert app.multiselect(key="side_runs").value == [a.run_id, child.run_id]
    said = f"B, “{plain('Two <b>')}”, was chosen for you: it was made from the loaded run. Choose other runs above."
    assert said in texts(app) and app.dataframe
    app.multiselect(key="side_runs").set_value([child.run_id, a.run_id]).run()
    assert "was chosen for you" not in texts(healthy(app))


def test_the_filter_of_what_became_worse_goes_where_nothing_did(open_app, healthy, tmp_path):
    a = saved(tmp_path, "One")
    b = saved(tmp_path, "Two", answer=["It was Barry Parker", "beta", "forty", ""])
    app = healthy(compared(open_app, a, b))
    app.selectbox(key="side_number").select("influence.dominance").run()
    assert "Only what became worse" not in healthy(app).segmented_control(key="side_filter").options


def test_two_runs_are_set_side_by_side(open_app, healthy, texts, tmp_path):
    a, b = saved(tmp_path, "One"), saved(tmp_path, "Two", letter=" then")
    app = healthy(compared(open_app, a, b))
    assert "Correct is the same in all 2 questions" in texts(app) and not app.get("plotly_chart")
    every(app)
    setups, questions, tests, headlines = (frame.value for frame in app.dataframe)
    assert list(headlines.columns) == ["Number", "A · One", "B · Two"]
    numbers = headlines.set_index("Number")
    assert numbers.loc["Questions"].tolist() == ["4", "4"]
    assert numbers.loc["Prompt tokens"].tolist() == ["—", "—"]
    assert setups.values.tolist() == [["Model", "model One", "model Two"]]
    assert list(questions["query_id"]) == ["q1", "q2", "q3", "q4"]
    said = texts(app)
    # Raymond Unwin for Barry Parker is wrong in both, alpha right in both.
    assert plain("Runs A and B are correct in the same 1 of 2 questions.") in said
    assert tests.set_index("Number").loc["Correct", ["n", "p"]].tolist() == [2, "p = 1"]
    assert "4 questions with the same id and text in both runs; A has 4, B has 4" in said
    assert "Answers differ in 4." in said
    assert len(app.get("plotly_chart")) == 1


def test_the_choice_is_in_the_address_and_comes_back(open_app, healthy, tmp_path):
    a, b = saved(tmp_path, "One"), saved(tmp_path, "Two", letter="x")
    app = healthy(compared(open_app, b, a))
    assert app.multiselect(key="side_runs").value == [b.run_id, a.run_id]
    app.multiselect(key="side_runs").set_value([a.run_id]).run()
    assert healthy(app).query_params["compare"] in (a.run_id, [a.run_id])
    app.multiselect(key="side_runs").set_value([a.run_id, b.run_id]).run()
    assert healthy(app).query_params["compare"] == [a.run_id, b.run_id]
    app.switch_page("pages/methods.py").run()
    del app.query_params["compare"]  # what the browser does when the menu is used
    app.switch_page("pages/compare.py").run()
    assert healthy(app).multiselect(key="side_runs").value == [a.run_id, b.run_id]


def test_every_run_has_a_link_to_its_question(open_app, healthy, tmp_path):
    a, b = saved(tmp_path, "One"), saved(tmp_path, "Two", letter="x")
    app = healthy(compared(open_app, a, b))
    every(app)
    app.selectbox(key="side_question").select("q3").run()
    links = {x.proto.label: x.proto.query_string for x in healthy(app).get("page_link")}
    assert links["Open A in the workbench"] == f"run={a.run_id}&question=q3"
    assert links["Open B in the workbench"] == f"run={b.run_id}&question=q3"


def test_questions_that_changed_come_first(open_app, healthy, texts, tmp_path):
    a = saved(tmp_path, "One")
    b = saved(tmp_path, "Two", answer=["It was Barry Parker", "beta", "forty", ""])
    app = healthy(compared(open_app, a, b))
    said = texts(app)
    assert plain("equally many of 2 questions (1 each): 1 question became correct, 1 stopped being") in said
    assert len(app.get("plotly_chart")) == 1
    # First what became worse alone.
    assert app.segmented_control(key="side_filter").value == "Only what became worse"
    questions = app.dataframe[1].value.set_index("query_id")
    assert questions["change"].to_dict() == {"q2": "▼ no longer correct"}
    app.segmented_control(key="side_filter").set_value("Changed").run()
    questions = healthy(app).dataframe[1].value.set_index("query_id")
    assert questions["change"].to_dict() == {"q1": "▲ now correct", "q2": "▼ no longer correct"}
    # A number without a direction is higher or lower.
    app.selectbox(key="side_number").select("influence.dominance").run()
    assert "better" not in set(healthy(app).dataframe[1].value["change"])


def test_questions_are_filtered_to_those_on_which_runs_part(open_app, healthy, texts, tmp_path):
    a = saved(tmp_path, "One")
    b = saved(tmp_path, "Two", answer=["Raymond Unwin in 1903", "other", "forty", ""])
    app = healthy(compared(open_app, a, b))
    app.segmented_control(key="side_filter").set_value("Answers differ").run()
    assert list(healthy(app).dataframe[1].value["query_id"]) == ["q2"]
    assert app.selectbox(key="side_question").value == "q2"
    same = saved(tmp_path, "Same", kind="labelled")
    app.multiselect(key="side_runs").set_value([a.run_id, same.run_id]).run()
    assert "No answer differs." in texts(healthy(app))


def test_four_runs_and_no_more(open_app, healthy, tmp_path):
    runs = [saved(tmp_path, f"Run {i}", letter=f" {i}") for i in range(5)]
    app = healthy(compared(open_app, *runs))
    assert app.multiselect(key="side_runs").value == [run.run_id for run in runs[:4]]
    assert [name[:1] for name in app.dataframe[-1].value.columns] == ["N", "A", "B", "C", "D"]
    every(app)
    assert sum("in the workbench" in label for label in link_labels(app)) == 2
    app.segmented_control(key="side_pair").set_value("A and D").run()
    assert {"answer_A", "answer_D"} <= set(healthy(app).dataframe[1].value.columns)
    assert "Open D in the workbench" in link_labels(app)


def test_runs_without_common_questions_are_refused_at_the_choice(open_app, healthy, texts, tmp_path):
    a, c = saved(tmp_path, "One"), saved(tmp_path, "Three", letter="x")
    b = saved(tmp_path, "Two", question=[f"Another question {i}?" for i in range(4)])
    app = healthy(compared(open_app, a, b))
    assert [error.value for error in app.error] == [plain(
        "“Two” has no question in common with “One” (same id and same text), so the two cannot be compared; "
        "choose runs of the same questions."
    )]  # fmt: skip
    assert app.multiselect(key="side_runs").value == [a.run_id, b.run_id] and not app.dataframe
    # The others are compared all the same.
    app.multiselect(key="side_runs").set_value([a.run_id, b.run_id, c.run_id]).run()
    assert len(healthy(app).error) == 1
    assert list(app.dataframe[-1].value.columns) == ["Number", "A · One", "B · Three"]


def test_runs_with_the_same_set_up_say_so(open_app, healthy, texts, tmp_path):
    a = saved(tmp_path, "One")
    b = Run.create({"source": "live", "name": "Two", "model": a.manifest["model"]},
                   queries=a.queries.head(2), passages=a.passages[a.passages["query_id"].isin(["q1", "q2"])])  # fmt: skip
    b.save(tmp_path / "runs" / b.run_id)
    said = texts(healthy(compared(open_app, a, b)))
    assert "No differences in data, model, prompt and retriever" in said
    assert "2 questions with the same id" in said and "A has 4, B has 2" in said


@pytest.mark.parametrize("junk", ["nobody", "../../etc/passwd", "<script>alert(1)</script>", "r" * 5000])
def test_unknown_runs_in_a_link_are_told_and_left_out(junk, open_app, healthy, tmp_path):
    a, b = saved(tmp_path, "One"), saved(tmp_path, "Two", letter="x")
    app = healthy(open_app("compare", compare=[a.run_id, junk, b.run_id, a.run_id]))
    assert "is not saved here" in app.warning[0].value
    assert app.multiselect(key="side_runs").value == [a.run_id, b.run_id]
    assert app.dataframe


def test_a_damaged_run_is_told_and_the_page_lives(open_app, healthy, tmp_path):
    a, b = saved(tmp_path, "One"), saved(tmp_path, "Two", letter="x")
    next((tmp_path / "runs" / b.run_id).glob("queries-*.parquet")).write_bytes(b"broken")
    app = healthy(compared(open_app, a, b))
    assert len(app.error) == 1 and "damaged" in app.error[0].value


def test_a_run_that_is_deleted_leaves_the_choice(open_app, healthy, tmp_path):
    import shutil

    a, b = saved(tmp_path, "One"), saved(tmp_path, "Two", letter="x")
    app = healthy(compared(open_app, a, b))
    shutil.rmtree(tmp_path / "runs" / b.run_id)
    app = healthy(app.run())
    assert app.multiselect(key="side_runs").value == [a.run_id]


def test_a_simulation_beside_a_real_run_is_labelled(open_app, healthy, texts, tmp_path):
    app = healthy(open_app("compare", sim="queries:12"))
    simulated = app.multiselect(key="side_runs").value
    queries = simulate(SimulationOptions(queries=12)).queries
    real = Run.create({"source": "live", "name": "Real"}, queries=queries)
    real.save(tmp_path / "runs" / real.run_id)
    app.multiselect(key="side_runs").set_value([real.run_id, *simulated]).run()
    assert any(box.value.startswith("**B** · Simulated data") for box in healthy(app).info)


def test_the_threshold_drives_the_labels_of_all_runs(open_app, healthy, tmp_path):
    a, b = saved(tmp_path, "One"), saved(tmp_path, "Two", letter="x")
    app = healthy(compared(open_app, a, b))
    app.slider(key="influence_threshold").set_value(-1.0).run()
    numbers = healthy(app).dataframe[-1].value.set_index("Number")
    assert all(text.startswith("0 of") for text in numbers.loc["Divergent"])


def test_hostile_names_and_texts_are_shown_as_they_are(open_app, healthy, texts, tmp_path):
    a, b = saved(tmp_path, HOSTILE), saved(tmp_path, "Two", letter=HOSTILE)
    app = every(healthy(compared(open_app, a, b)))
    app.selectbox(key="side_question").select("q2").run()
    said = texts(healthy(app))
    assert "<script" not in said.replace(r"\<script", "") and "](javascript" not in said
    assert r"\<script\>" in said


def test_the_support_threshold_reaches_every_run(tmp_path, open_app, healthy):
    run = claims_run()
    run.save(tmp_path / "samples" / "recorded_run")
    other = run.derive({"run_id": "other", "name": "Other"})
    other.save(tmp_path / "runs" / "other")

    def supported(**settings):
        app = healthy(open_app("compare", compare=[run.run_id, "other"], **settings))
        each, _trend = app.dataframe[-2:]
        return each.value.set_index("Number").loc["Supported claims"].to_list()

    # Verified are c0 (0.9), c1 (0.7), c2 (0.3) and c4 (0.8 by a pair); from 0.85 on only c0 is supported.
    assert [text[:6] for text in supported()] == ["3 of 4"] * 2
    assert [text[:6] for text in supported(support="0.85")] == ["1 of 4"] * 2


def test_runs_of_the_same_data_set_stand_in_time_and_lead_to_the_comparison(
    open_app, healthy, texts, tmp_path
):
    run = make_run()
    labelled = run.queries.assign(correct=[True] * len(run.queries))
    for name, created in (("Old", "2026-01-01"), ("New", "2026-02-01")):
        facts = {"source": "live", "name": name, "created": created, "dataset": {"name": "d"}, "run_id": name}
        Run.create(facts, queries=labelled, passages=run.passages).save(tmp_path / "runs" / name)
    app = healthy(open_app("compare", run="New"))
    assert "Runs of this data set over time" in [one.value for one in app.subheader]
    (figure,) = [one for one in app.get("plotly_chart") if one.proto.id.endswith("-trend")]
    assert "2026-02-01 100 %" in figure.proto.alt and "2026-01-01 100 %" in figure.proto.alt
