"""A diagnostic that nobody has heard of, defined here alone, appears wherever diagnostics appear."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import pandas as pd
import pytest

import core.diagnostics
from core.cli import main
from core.diagnosis import Diagnosis
from core.llm.types import Message, Request
from core.pipeline.per_question import PerQuestion
from core.pipeline.steps import Call, Option
from core.report.compare import headline_table, shared_questions, sides_of
from core.report.exports import exporters
from core.report.glossary import glossary_markdown
from core.report.text import summary_text
from core.run import Run
from core.socket import MODE, Definition, Diagnostic, Export, Finding, Number, QuestionColumn, Setting
from core.spreadsheet import csv_bytes
from tests.app.conftest import _own_folders, _warm_server, healthy, open_app, texts  # noqa: F401 (fixtures)
from tests.scripted import ScriptedLLM

ROOT = Path(__file__).parents[2]


# ---- the toy: from here to the next line of dashes at most 80 lines ----
@dataclass(frozen=True)
class LengthStep(PerQuestion):
    """One call per question: how good does the model find its answer?"""

    name: ClassVar[str] = "length"
    title: ClassVar[str] = "Ask for a score"
    fills: ClassVar[Mapping[str, tuple[str, ...]]] = {"signals": ("llm_score",)}
    scale: Annotated[int, Option("--score-scale", "Best score.")] = 10

    def calls(self, question):
        text = f"From 0 to {self.scale}, how good is {question.query['answer']!r}?"
        return [Call("score", 1, Request((Message("user", text),), max_tokens=4))]

    def rows(self, question, answers):
        score = float(answers["score", 1].text) / self.scale
        return {"signals": [{"query_id": question.query_id, "llm_score": score}]}


@dataclass(frozen=True)
class Lengths:
    queries: pd.DataFrame
    limit: float

    @property
    def long(self):
        return self.queries[self.queries["n_words"] >= self.limit]


def analyse(diagnosis):
    run = diagnosis.run
    words = run.queries["answer"].str.split().str.len().astype("float64")
    frame = run.queries[["query_id", "question"]].assign(n_words=words)
    frame = frame.merge(run["signals"][["query_id", "llm_score"]], how="left", on="query_id")
    return Lengths(frame, diagnosis.settings["long_from"])


def numbers(lengths):
    words, score = (lengths.queries[name].dropna() for name in ("n_words", "llm_score"))
    mean = float(words.mean()) if len(words) else None
    mean_score = float(score.mean()) if len(score) else None
    return (
        Number("mean_words", "Mean answer length", mean, n=len(words), define="n_words", place="card"),
        Number("mean_score", "Mean own score", mean_score, n=len(score), place="row"),
    )


def findings(lengths):
    n, of = len(lengths.long), len(lengths.queries)
    sentence = f"{n} of {of} answers have {lengths.limit:g} words or more."
    ids = tuple(lengths.long["query_id"])
    return [Finding("long_answer", sentence, n, of, advice="Ask for less.", query_ids=ids)] if n else []


def as_csv(diagnosis):
    return csv_bytes(diagnosis["length"].queries, diagnosis.run.data_source)


LENGTH = Diagnostic(
    name="length",
    title="Answer length",
    question="How long are the answers?",
    analyse=analyse,
    numbers=numbers,
    findings=findings,
    settings=(Setting("long_from", "Long from (words)", 3.0, "Longer is long.", 1.0, 50.0, 1.0),),
    exports=(Export("length-csv", "Lengths", ".csv", as_csv),),
    definitions=(
        Definition("n_words", "Words", "Words of an answer, separated by white space."),
        Definition("long_answer", "Long answer", "An answer that goes on.", MODE, advice="Ask for less."),
    ),
    columns=(QuestionColumn("n_words", "Words", "{:g}"), QuestionColumn("llm_score", "Own score")),
    step=LengthStep,
)


# ------------------------------------------------------------------------
def test_the_toy_is_small():
    text = Path(__file__).read_text(encoding="utf-8")
    toy = text.split("# ---- the toy", 1)[1].split("# -----------", 1)[0]
    assert toy.count("\n") <= 80


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(core.diagnostics, "DIAGNOSTICS", (*core.diagnostics.DIAGNOSTICS, LENGTH))


@pytest.fixture
def model(monkeypatch, tmp_path):
    monkeypatch.setenv("LEADLINE_CACHE", str(tmp_path / "cache"))
    scripted = ScriptedLLM(lambda request: "7")
    monkeypatch.setattr(core.pipeline.steps, "open_llm", lambda kind, name=None, **_: scripted)
    return scripted


@pytest.fixture
def answered(tmp_path):
    """A saved run of six answered questions of 1 to 6 words."""
    ids = [f"q{i}" for i in range(1, 7)]
    queries = pd.DataFrame(
        {
            "query_id": ids,
            "question": [f"What is {i}?" for i in ids],
            "answer": ["word " * i for i in range(1, 7)],
            "answer_status": "answered",
        }
    )
    passages = pd.DataFrame({"query_id": ids, "passage_id": "p", "text": "t", "retrieval_rank": 1.0})
    run = Run.create({"source": "upload", "name": "Six answers"}, queries=queries, passages=passages)
    run.save(tmp_path / "six")
    return tmp_path / "six"


def command(*arguments):
    return main([str(argument) for argument in arguments])


def test_its_step_its_option_and_its_numbers_on_the_command_line(answered, model, tmp_path, capsys):
    out = tmp_path / "scored"
    assert command("analyze", answered, "--steps", "length", "--score-scale", 14, "--out", out, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["mean_words"], facts["mean_score"]) == (3.5, 0.5)
    assert model.calls == 6 and "From 0 to 14" in model.requests[0].messages[0].content
    step = Run.load(out).manifest["steps"]["length"]
    assert (step["options"]["scale"], step["n_done"], step["n_left"], step["n_calls"]) == (14, 6, 0, 6)
    assert step["complete"]
    # Nothing is missing, so nothing is asked.
    assert command("analyze", out, "--steps", "length", "--score-scale", 14, "--out", out) == 0
    assert model.calls == 6


def test_plan_counts_its_calls(answered, model, capsys):
    assert command("plan", answered, "--steps", "length", "--json") == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["n_to_ask"] == 6 and model.calls == 0


def test_summary_as_json_and_as_text(answered, capsys):
    assert command("summary", answered, "--long-from", 5, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["mean_words"] == 3.5 and facts["mean_score"] is None
    assert command("summary", answered, "--long-from", 5) == 0
    text = capsys.readouterr().out
    assert "2 of 6 answers have 5 words or more." in text
    assert "Mean answer length" in text and "n = 6 questions" in text
    assert text.rstrip("\n") == summary_text(Diagnosis(Run.load(answered), {"long_from": 5}))
    assert command("summary", answered, "--long-from", 51) == 2
    assert "long_from must lie from 1 to 50" in capsys.readouterr().err


def test_export_side_by_side_and_glossary(answered, tmp_path):
    assert command("export", answered, "--format", "length-csv", "--out", tmp_path / "x.csv") == 0
    assert pd.read_csv(tmp_path / "x.csv")["n_words"].to_list() == [1, 2, 3, 4, 5, 6]
    assert exporters()["length-csv"].title == "Lengths"
    run = Run.load(answered)
    sides = sides_of([Diagnosis(run), Diagnosis(run.renamed("Again"))])
    row = headline_table(sides).set_index("Number").loc["Mean answer length"]
    assert row.to_list() == ["3.50, n = 6"] * 2
    assert shared_questions(sides)["n_words_B"].to_list() == [1, 2, 3, 4, 5, 6]
    glossary = glossary_markdown(core.diagnostics.DIAGNOSTICS)
    assert (
        "## Answer length" in glossary
        and "`--long-from`" in glossary
        and "An answer that goes on." in glossary
    )


@pytest.fixture
def recorded_answers(answered, tmp_path):
    """The run of the toy where the app looks for its first run."""
    Run.load(answered).save(tmp_path / "samples" / "recorded_run")
    return Run.load(answered)


@pytest.fixture
def said(texts):
    """What a page says, without the escapes that keep text from being read as Markdown."""
    return lambda app: texts(app).replace("\\", "").replace("\u2060", "")


def test_a_link_sets_its_slider_and_the_overview_shows_its_card_and_finding(
    recorded_answers, open_app, healthy, said
):
    app = healthy(open_app(long_from="5"))
    assert app.slider(key="long_from").value == 5.0
    assert {metric.label: metric.value for metric in app.metric}["Mean answer length"] == "3.50"
    assert "2 of 6 answers have 5 words or more." in said(app) and "Ask for less." in said(app)
    app.slider(key="long_from").set_value(6.0).run()
    assert "1 of 6 answers have 6 words or more." in said(healthy(app))


def test_inspector_side_by_side_export_and_glossary_on_screen(
    recorded_answers, open_app, healthy, said, tmp_path
):
    app = healthy(open_app("workbench", question="q4"))
    assert {metric.label: metric.value for metric in app.metric}["Words"] == "4"
    other = recorded_answers.derive({"run_id": "other", "name": "Other"})
    other.save(tmp_path / "runs" / "other")
    app = healthy(open_app("compare", compare=[recorded_answers.run_id, "other"]))
    tables = [one.value.set_index("Number") for one in app.dataframe if "Number" in one.value]
    (row,) = (one.loc["Mean answer length"] for one in tables if "Mean answer length" in one.index)
    assert row.to_list() == ["3.50, n = 6"] * 2
    app = healthy(open_app("data", door="Export"))
    assert "Lengths (.csv)" in app.selectbox(key="export_format").options
    assert "An answer that goes on." in said(healthy(open_app("methods")))
