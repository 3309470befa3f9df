"""The page Uncertainty and its section of the workbench: with samples of every kind, and without."""

import json
from pathlib import Path

import pandas as pd
import pytest

from core.run import Run
from core.uncertainty.definitions import QUADRANTS
from tests.app.conftest import HOSTILE
from tests.app.polling import button

ROOT = Path(__file__).parents[2]
# The samples of each question, its answer and its reference.
QUESTIONS = {
    "q1": (["Paris", "It is Paris.", "Paris", "Rome", "Madrid"], "Paris", "Paris"),
    "q2": (["in 1903", "in 1903", "in 1903"], "in 1925", "in 1903"),
    "q3": (["I don't know.", "blue", HOSTILE, "green"], "red", "pink"),
    "q4": (["forty"], "forty", None),
    "q5": ([], "nothing", None),
    "q6": (["", ""], "", None),
}


def sampled_run() -> Run:
    queries = pd.DataFrame(
        [
            {"query_id": q, "question": f"Question {q}?", "answer": answer,
             "reference_answers": reference and [reference]}
            for q, (_, answer, reference) in QUESTIONS.items()
        ]
    )  # fmt: skip
    samples = pd.DataFrame(
        [
            {"query_id": q, "sample_id": f"s{i}", "answer": text, "temperature": 0.5 + i / 10, "top_p": 0.9}
            for q, (texts, _, _) in QUESTIONS.items()
            for i, text in enumerate(texts)
        ]
    )
    passages = pd.DataFrame(
        [{"query_id": q, "passage_id": "p1", "retrieval_rank": 1, "text": "A passage."} for q in QUESTIONS]
    )
    return Run.create(
        {"source": "live", "name": "Sampled"}, queries=queries, samples=samples, passages=passages
    )


@pytest.fixture
def opened(open_app, healthy, tmp_path):
    """Open a page of a run that lies where the recorded sample run is looked for."""

    def go(page, run=None, **params):
        (sampled_run() if run is None else run).save(tmp_path / "samples" / "recorded_run")
        return healthy(open_app(page, **params))

    return go


def labels(app):
    return [metric.label for metric in app.metric]


def section(app):
    """What the section says, and its table of samples."""
    frames = [frame.value for frame in app.dataframe if "typical" in frame.value]
    return "\n".join(one.value for one in app.markdown).replace("\\", ""), frames


def test_without_samples_the_page_offers_the_step(open_app, healthy, texts, recorded):
    app = healthy(open_app("uncertainty"))
    said = texts(app)
    assert "Not sampled" in said and "**4 questions** to ask again" in said
    assert not button(app, "Sample answers").disabled
    assert "Estimate cost" in [one.label for one in app.button]
    assert not app.get("plotly_chart") and not app.metric


def test_with_samples_the_page_shows_figures_tables_and_the_way_to_its_questions(opened, texts):
    app = opened("uncertainty")
    said = texts(app)
    assert "3 labelled answers, 2 of them incorrect" in said
    # Figures of estimators only where one of them demonstrably finds incorrect answers.
    separates = "Judged on" in said
    assert len(app.get("plotly_chart")) == (3 if separates else 1)
    assert separates == ("because it was selected on these answers" in said)
    # Two of three are incorrect: fewer of each class than a comparison needs.
    assert "It takes 15 of each." in said and "**All estimators (" in said
    assert any(link.proto.label == "Read the 6 questions of the run" for link in app.get("page_link"))


def test_what_only_a_model_can_say_names_what_to_pass(opened, texts):
    """The stated confidence was missing without a word, and P(True) wherever the entailments were there."""
    said = texts(opened("uncertainty"))
    assert "by entailment, and contradictions: not measured" in said and "`--entailment`" in said
    assert "P(True): not measured" in said and "Stated confidence: not measured" in said
    run = sampled_run()
    checks = {
        "query_id": "q1",
        "premise": "baseline",
        "hypothesis": "s1",
        "entailment": 0.9,
        "judge": "nli:x",
    }
    tables = {
        "sample_checks": pd.DataFrame([{**checks, "contradiction": 0.1}]),
        "signals": pd.DataFrame({"query_id": ["q1"], "llm_score": [0.5]}),
    }
    said = texts(opened("uncertainty", Run.create(dict(run.manifest), **{**run.tables, **tables})))
    assert "by entailment, and contradictions" not in said and "Stated confidence: not" not in said
    assert "P(True): not measured" in said


def test_embeddings_are_measured_when_asked_for(opened, texts):
    app = opened("uncertainty", by_embedding="true")
    assert "Semantic entropy vs embedding variance" in texts(app)
    plot = next(
        one for one in app.get("plotly_chart") if "Semantic entropy against embedding" in str(one.proto)
    )
    # Of six questions three have an entropy; one has a single sample, one none, one only empty ones.
    assert "3 without these numbers" in str(plot.proto)
    app = opened("workbench", by_embedding="true", question="q1")
    assert "by cosine of embeddings" in str([one.proto for one in app.get("plotly_chart")])


def test_without_claims_the_page_says_what_is_missing(opened, texts):
    assert "No question has both samples and verified claims" in texts(opened("uncertainty"))


def test_estimators_are_not_judged_without_reference_answers(opened, texts):
    run = sampled_run()
    queries = run.queries.assign(reference_answers=None)
    app = opened("uncertainty", Run.create(dict(run.manifest), **{**run.tables, "queries": queries}))
    assert "Neither labels nor reference answers" in texts(app) and len(app.get("plotly_chart")) == 1


@pytest.mark.parametrize(
    ("question", "said", "n_figures"),
    [
        # Paris three times, and two others.
        ("q1", "5 samples, 3 meanings: 3 say the same, and so does the answer.", 1),
        ("q2", "All 3 samples say the same. The answer says something else.", 0),
        (
            "q3",
            "4 samples, 4 meanings: each says something else (1 refusal). The answer says something else.",
            1,
        ),
        ("q4", "1 sample: nothing can agree or differ.", 0),
        ("q6", "All 2 samples are empty; there is no answer to compare with them.", 0),
    ],
)
def test_the_workbench_says_in_a_sentence_how_the_samples_agree(question, said, n_figures, opened):
    app = opened("workbench", question=question)
    text, frames = section(app)
    assert said in text
    (table,) = frames
    assert len(table) == len(QUESTIONS[question][0])
    assert table["typical"].tolist().count("★") == 1 and table["meaning"].is_monotonic_increasing
    figures = [one for one in app.get("plotly_chart") if "by ROUGE-L" in str(one.proto)]
    assert len(figures) == n_figures


def test_what_is_wrong_stands_at_the_top_of_the_workbench(opened):
    # Where the run as a whole shows it no more than by chance, it is no failure of one question.
    said, _ = section(opened("workbench", question="q2"))
    assert "**Samples disagree" not in said and "The answer says something else." in said
    ids = [f"q{i}" for i in range(9)]
    queries = pd.DataFrame({"query_id": ids, "question": "Where?", "answer": "Rome"})
    samples = [{"query_id": q, "sample_id": f"s{i}", "answer": "Oslo"} for q in ids for i in range(3)]
    # One of four answers is "Rome": as the one shown in 1 of 4 questions by chance, here in all nine.
    run = Run.create({"source": "live"}, queries=queries, samples=pd.DataFrame(samples))
    said, _ = section(opened("workbench", run, question="q2"))
    assert "**Samples disagree with the baseline:** 3 of 3 samples say something else." in said
    said, _ = section(opened("workbench", question="q3"))
    assert "**Unstable answer:** 4 samples, 4 meanings" in said
    said, _ = section(opened("workbench", question="q1"))
    assert "**Unstable answer" not in said and "**Samples disagree" not in said


def test_a_question_without_samples_says_so(opened, texts):
    app = opened("workbench", question="q5")
    assert "The question was not asked again" in texts(app) and not section(app)[1]


def test_hostile_samples_are_shown_as_they_are(opened, texts):
    app = opened("workbench", question="q3")
    assert HOSTILE in section(app)[1][0]["answer"].tolist()
    drawn = json.dumps([one.proto.spec for one in app.get("plotly_chart")])
    assert "<script" not in drawn and "&lt;script" in drawn


def test_worked_answers_are_shown_with_their_samples(opened, texts):
    run = Run.load(ROOT / "sample_data/worked_answers")
    app = opened("uncertainty", run)
    n = len(run.queries)
    # With 9 incorrect answers no estimator is surely better than guessing, and the page says so.
    said = texts(app)
    assert f"on {n} labelled answers, 9 of them incorrect" in said
    assert "No estimator demonstrably separates" in said
    # Of all that have samples and claims.
    (quadrants,) = [one.value for one in app.dataframe if "quadrant" in one.value]
    assert quadrants["quadrant"].to_list() == [*QUADRANTS] and quadrants["n"].sum() == n
    app = opened("workbench", run, question=run.queries["query_id"].iloc[0])
    assert "10 samples" in section(app)[0]


def test_a_figure_with_nothing_to_compare_is_not_drawn(opened, texts):
    """No answer is stable: stability and grounding have nothing to compare, though the counts are there."""
    run = Run.load(ROOT / "sample_data/worked_answers")
    words = [f"word{i}" for i in range(len(run["samples"]))]
    app = opened("uncertainty", run.derive(samples=run["samples"].assign(answer=words)))
    (quadrants,) = [one.value for one in app.dataframe if "quadrant" in one.value]
    assert quadrants["n"].iloc[:2].sum() == 0 < quadrants["n"].sum()
    assert not any("grounded" in str(one.proto) for one in app.get("plotly_chart"))
    assert "More figures and tables" in [box.label for box in app.expander]


def with_context(n=12):
    """Return a run in which unrelated passages make every answer the same, and a missing support changes little."""
    ids = [f"q{i}" for i in range(n)]
    given = {
        "without_support": ["x", "x", "I don't know."],
        "unrelated_added": ["x", "x", "x"],
    }
    samples, rows = [], []
    for q in ids:
        samples += [{"query_id": q, "sample_id": f"s{i}", "answer": a} for i, a in enumerate("xxy")]
        for condition, texts in {**given, "unchanged": []}.items():
            answers = {"baseline": "x", **{f"s{i}": text for i, text in enumerate(texts)}}
            # One question's prompt did not fit.
            rows += [
                {"query_id": q, "condition": condition, "sample_id": name, "answer": text}
                for name, text in answers.items()
                if (q, condition) != ("q1", "unrelated_added")
            ]
    queries = pd.DataFrame({"query_id": ids, "question": "Q?", "answer": "x"})
    tables = {"queries": queries, "samples": pd.DataFrame(samples), "context_samples": pd.DataFrame(rows)}
    steps = {"uncertainty": {"context_passed_over": {"no_support": 2, "<script>": 1}}}
    return Run.create({"source": "live", "name": "Tested", "steps": steps}, **tables)


def test_the_context_test_says_how_to_run_it(opened, texts):
    said = texts(opened("uncertainty"))
    assert "Context test" in said and "`--context-questions 30`" in said
    app = opened("uncertainty")
    (choice,) = [box for box in app.selectbox if box.label == "Context test"]
    assert choice.options == ["No questions", "10 questions", "30 questions", "100 questions"]


def test_the_context_test_shows_what_passes_in_words(opened, texts):
    app = opened("uncertainty", with_context())
    said = texts(app).replace("\\", "")
    assert "**12 questions** asked again with other passages" in said
    assert "Skipped: no known support: 2; " in said
    assert (
        "1 question could not be asked again (see the run's notes): no estimator has a value there." in said
    )
    tables = [one.value for one in app.dataframe if "moved" in one.value]
    assert len(tables) == 4 and [len(table) for table in tables[:2]] == [9, 9]
    without, added = (table.set_index("name") for table in tables[:2])
    assert added.loc["distinct_answers", "outcome"] == "✗ Fails"
    assert added.loc["distinct_answers", "moved"] == "0 / 11 / 0"
    assert without.loc["distinct_answers", "outcome"] == "? Cannot be told"
    assert without.loc["distinct_answers", "moved"] == "0 / 0 / 12"
    assert "With unrelated passages added, reported uncertainty falls" in said
