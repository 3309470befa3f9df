import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import core.pipeline.steps
from core.cli import main
from core.cli.live import _all_passages
from core.errors import BackendError
from core.run import Run
from core.sources.dataset import open_questions
from tests.scripted import ScriptedLLM

ROOT = Path(__file__).parents[3]
CSV = (
    "query,baseline_answer,doc_id,passage,retrieval_rank,retrieval_score,influence_score\n"
    "Who?,Ann,0,a,1,3.0,0.9\nWho?,Ann,1,b,2,2.0,0.5\nWho?,Ann,2,c,3,1.0,0.1\n"
    "Why?,,0,a,1,3.0,1.0\nWhy?,,1,b,2,2.0,1.0\nWhy?,,2,c,3,1.0,1.0\n"
)


@pytest.fixture
def questions(tmp_path):
    rows = [
        {"id": f"q{i}", "question": f"What is {i}?", "passages": [f"fact {i} {j}" for j in range(3)], "answers": [f"fact {i}"]}
        for i in range(3)
    ]  # fmt: skip
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture
def llm(monkeypatch, tmp_path):
    """Stand in for the back end and keep completions in the test's own folder."""
    monkeypatch.setenv("LEADLINE_CACHE", str(tmp_path / "cache"))

    def answer(request):
        found = [b for b in request.messages[0].content.split("\n\n") if b.startswith("[")]
        return found[0].split("] ")[1] if found else "closed"

    model = ScriptedLLM(answer)
    monkeypatch.setattr(core.pipeline.steps, "open_llm", lambda kind, name=None, **_: model)
    return model


def command(*arguments):
    return main([str(a) for a in arguments])


def test_analyze_then_summary_and_export(questions, llm, tmp_path, capsys):
    out = tmp_path / "run"
    assert command("analyze", questions, "--repeats", 1, "--out", out, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["n_queries"], facts["n_correct"], facts["complete"]) == (3, 3, True)
    assert len(Run.load(out).repeats) == 3
    assert command("summary", out, "--json") == 0
    assert json.loads(capsys.readouterr().out) == facts
    assert command("export", out, "--format", "csv", "--out", tmp_path / "x.csv") == 0
    assert (tmp_path / "x.csv").read_bytes().count(b"\n") == 1 + 9
    assert command("export", out, "--out", tmp_path / "x.csv") == 2
    assert "exists; give another --out or --overwrite" in capsys.readouterr().err


def test_the_keys_other_tools_rely_on(questions, llm, tmp_path, capsys):
    command("analyze", questions, "--out", tmp_path / "run", "--json")
    facts = json.loads(capsys.readouterr().out)
    expected = (
        "n_queries n_defined n_undefined undefined_reasons n_divergent n_aligned mean_rho median_rho rho_ci "
        "mean_dominance mean_entropy failure_modes n_empty_answers n_abstained mean_claim_uncertainty mean_confidence"
    )
    assert set(expected.split()) <= set(facts)


def test_the_summary_for_people_says_what_numbers_rest_on(tmp_path, capsys):
    (tmp_path / "t.csv").write_text(CSV)
    assert command("import", tmp_path / "t.csv", "--out", tmp_path / "run") == 0
    capsys.readouterr()
    assert command("summary", tmp_path / "run") == 0
    text = capsys.readouterr().out
    assert re.search(r"Empty answers +1 of 2", text)
    assert re.search(r"Empty baseline +1  The baseline answer is empty", text)
    assert re.search(r"Mean ρ +1\.00  n = 1 question", text)


def test_signals_are_correlated(tmp_path, capsys):
    folder = str(tmp_path / "s")
    assert command("simulate", "--out", folder, "--queries", "30") == 0
    capsys.readouterr()
    assert command("signals", folder) == 0
    shown = capsys.readouterr().out
    assert "pairs of signals correlate" in shown and "nDCG by influence · Dominance: Spearman" in shown
    assert command("signals", folder, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    titles = {one["key"]: one["title"] for one in facts["signals"]}
    assert titles["influence.dominance"] == "Dominance"
    assert len(facts["pairs"]) == len(titles) * (len(titles) - 1) // 2
    out = str(tmp_path / "pairs.csv")
    assert command("export", folder, "--format", "signals-csv", "--out", out) == 0
    assert Path(out).read_text(encoding="utf-8-sig").count("\n") == 1 + len(facts["pairs"])
    assert command("signals", str(tmp_path / "nowhere")) == 2


def test_regressions_are_printed_for_people_and_programs(tmp_path, capsys):
    folders = []
    for name, answers in (("Old", ["1931", "1932", "x"]), ("New", ["1931", "x\x1b[2J", "y"])):
        queries = pd.DataFrame({
            "query_id": ["q0", "q1", "q2"], "question": [f"When did bridge {i} open?" for i in range(3)],
            "answer": answers, "answer_status": "answered", "reference_answers": [["1931"], ["1932"], ["1933"]],
        })  # fmt: skip
        folders.append(tmp_path / name)
        Run.create({"source": "live", "name": name, "model": {"name": name}}, queries=queries).save(
            folders[-1]
        )
    assert command("compare", *folders, "--regressions") == 0
    said = capsys.readouterr().out
    assert "Model: A Old, B New" in said and "q0" not in said and "\x1b" not in said
    assert (
        "Run B against run A: 0 questions became correct, 1 stopped being correct (p = 1, exact McNemar"
        in said
    )
    assert "q1: When did bridge 1 open?\n  A: 1932\n  B: x" in said
    assert command("compare", *folders, "--regressions", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["setups"] == {"Model": {"A": "Old", "B": "New"}}
    [found] = facts["regressions"]
    assert [found[name] for name in ("a", "b", "number", "n", "n_better", "n_worse", "p_value")] == [
        "A", "B", "Correct", 3, 0, 1, 1,
    ]  # fmt: skip
    assert found["questions"] == [
        {"query_id": "q1", "question": "When did bridge 1 open?", "answer_A": "1932", "answer_B": "x\x1b[2J",
         "also_worse": []}
    ]  # fmt: skip


def test_options_reach_the_calls(questions, llm, tmp_path):
    out = tmp_path / "run"
    assert command("analyze", questions, "--limit", 1, "--k", 2, "--no-closed-book", "--seed", 7, "--max-tokens", 5,
                   "--steps", "influence", "--name", "mine", "--out", out) == 0  # fmt: skip
    assert [r.seed for r in llm.requests] == [7] * 3
    assert {r.max_tokens for r in llm.requests} == {5}
    assert Run.load(out).name == "mine"


def test_a_finished_run_is_not_run_again(questions, llm, tmp_path, capsys):
    out = tmp_path / "run"
    command("analyze", questions, "--out", out)
    assert "15 calls to make, 0 answered before, 0 identical; about" in capsys.readouterr().err
    calls = llm.calls
    assert command("analyze", questions, "--out", out, "--json") == 0
    captured = capsys.readouterr()
    assert "already holds this run" in captured.err
    assert llm.calls == calls


def test_another_run_in_the_folder_is_named_and_kept(questions, llm, tmp_path, capsys):
    out = tmp_path / "run"
    assert command("simulate", "--queries", 10, "--passages", 4, "--out", out, "--name", "precious") == 0
    assert command("analyze", questions, "--out", out) == 2
    assert "already holds another run, 'precious'" in capsys.readouterr().err
    assert llm.calls == 0
    assert Run.load(out).name == "precious"
    assert command("analyze", questions, "--out", out, "--overwrite") == 0
    assert not capsys.readouterr().out.startswith("{")
    assert not Run.load(out).simulated


def test_plan_spends_nothing_unless_it_measures(questions, llm, capsys):
    assert command("plan", questions, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["n_to_ask"], facts["seconds"], llm.calls) == (15, None, 0)
    assert command("plan", questions) == 0
    text = capsys.readouterr().out
    assert "| Question: {question}" in text
    assert text.endswith("\nAn answer ends at a line break or after 24 tokens.\n")
    assert "3 questions, model scripted" in text and re.search("time +unknown; --time measures it", text)
    assert command("plan", questions, "--style", "full", "--max-tokens", 30) == 0
    assert capsys.readouterr().out.endswith("\n\nAn answer ends after 30 tokens.\n")
    assert command("plan", questions, "--llm", "ollama") == 0
    assert "or after 300 tokens" in capsys.readouterr().out, "the back end's own"
    assert command("plan", questions, "--time", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["n_cached"], facts["n_to_ask"], llm.calls) == (2, 13, 2)
    assert facts["seconds"] >= 0


@pytest.mark.parametrize(("n_passages", "k"), [(12, 12), (101, 100)])
def test_a_saved_run_is_asked_with_all_its_passages_up_to_a_hundred(n_passages, k, questions, tmp_path):
    assert _all_passages(str(questions), open_questions(str(questions))) == 10
    queries = pd.DataFrame({"query_id": ["a"], "question": ["Who?"], "answer": ["Ann"]})
    texts = [f"Fact {i}." for i in range(n_passages)]
    ranks = range(1, n_passages + 1)
    passages = pd.DataFrame({"query_id": "a", "passage_id": texts, "text": texts, "retrieval_rank": ranks})
    Run.create({"source": "upload"}, queries=queries, passages=passages).save(tmp_path / "run")
    assert _all_passages(str(tmp_path / "run"), open_questions(tmp_path / "run")) == k


def test_simulate_is_seeded_and_labelled(tmp_path, capsys):
    for name in ("a", "b"):
        assert (
            command("simulate", "--queries", 12, "--passages", 5, "--seed", 9, "--out", tmp_path / name) == 0
        )
        assert "SIMULATED DATA" in capsys.readouterr().out
    first, second = Run.load(tmp_path / "a"), Run.load(tmp_path / "b")
    assert first.passages.equals(second.passages)
    assert len(first.queries) == 12


def test_a_large_simulation_is_not_measured_at_once(tmp_path, capsys):
    """200 questions were the most; measuring many thousands takes minutes that nobody asked for."""
    assert (
        command(
            "simulate", "--queries", 1_001, "--passages", 3, "--set", "repeats=0", "--out", tmp_path / "r"
        )
        == 0
    )
    said = capsys.readouterr().out
    assert "SIMULATED DATA" in said and "python -m core summary" in said and said.count("\n") == 1
    assert len(Run.load(tmp_path / "r").queries) == 1_001


def test_import_with_another_tools_names(tmp_path, capsys):
    (tmp_path / "t.csv").write_text(CSV.replace("influence_score", "effect").replace("query,", "ask,"))
    assert command("import", tmp_path / "t.csv", "--map", "question=ask", "--map", "influence_score=effect",
                   "--out", tmp_path / "run", "--json") == 0  # fmt: skip
    facts = json.loads(capsys.readouterr().out)
    assert (facts["n_queries"], facts["n_defined"], facts["source"]) == (2, 1, "upload")


def test_bad_rows_are_listed_on_standard_error(tmp_path, capsys):
    (tmp_path / "t.csv").write_text(CSV + "How?,x,0,a,first,1.0,0.5\n")
    assert command("import", tmp_path / "t.csv", "--out", tmp_path / "run", "--json") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["n_queries"] == 2
    assert "found 'first'" in captured.err
    assert "6 of 7 rows are used" in captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["analyze", "no-such-file.jsonl", "--out", "r"], "no-such-file.jsonl"),
        (["analyze", "{questions}", "--steps", "influence,sampling", "--out", "r"], "--steps can name losses, attribution, influence, likelihood, claims, uncertainty, conformal, validation, confidence, got 'sampling'"),
        (["analyze", "{questions}", "--k", "0", "--out", "r"], "k must be a whole number"),
        (["analyze", "{questions}", "--limit", "0", "--out", "r"], "at least 1, got 0"),
        (["analyze", "{questions}"], "--out"),
        (["analyze", "{questions}", "--k", "many", "--out", "r"], "--k"),
        (["summary", "{folder}"], "is not a saved run"),
        (["summary", "nowhere"], "is not a saved run"),
        (["export", "{folder}", "--format", "xlsx", "--out", "x"], "--format must be one of html, worklist-csv"),
        (["import", "{questions}", "--format", "xml", "--out", "r"], "The format must be one of auto, influence-csv"),
        (["import", "{questions}", "--map", "question", "--out", "r"], "--map must be name=value, got 'question'"),
        (["simulate", "--queries", "many", "--out", "r"], "--queries"),
        (["reprot", "r"], "reprot"),
        (["analyze", "{questions}", "--out", "r", "--cache", "{questions}"], "is damaged or is not a completion cache"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_status_2(
    arguments, message, questions, llm, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    filled = [a.format(questions=questions, folder=tmp_path / "folder") for a in arguments]
    assert main(filled) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Error: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err


def test_a_threshold_outside_its_range(tmp_path, capsys):
    command("simulate", "--queries", 10, "--out", tmp_path / "r")
    assert command("summary", tmp_path / "r", "--influence-threshold", 3) == 2
    assert "threshold must lie from -1 to 1, got 3" in capsys.readouterr().err


def test_an_unreachable_back_end_is_status_3(questions, llm, tmp_path, capsys):
    llm._down = True
    assert command("analyze", questions, "--out", tmp_path / "r") == 3
    assert "Error: The scripted model is down." in capsys.readouterr().err


def test_the_unexpected_is_one_line_unless_asked(questions, monkeypatch, tmp_path, capsys):
    def broken(*_, **__):
        raise RuntimeError("odd\nthing")

    monkeypatch.setattr(core.pipeline.steps, "open_llm", broken)
    assert command("analyze", questions, "--out", tmp_path / "r") == 1
    err = capsys.readouterr().err
    assert err == "Error: RuntimeError: odd thing; run with LEADLINE_DEBUG=1 for the traceback\n"
    monkeypatch.setenv("LEADLINE_DEBUG", "1")
    assert command("analyze", questions, "--out", tmp_path / "r") == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_what_is_done(questions, llm, tmp_path, monkeypatch, capsys, number):
    answer = llm._rule
    # A process started in the background may ignore SIGINT; whatever was set must be set again.
    before = signal.getsignal(number)

    def interrupted(request):
        if llm.calls == 7:
            os.kill(os.getpid(), number)
            time.sleep(0.1)
        return answer(request)

    llm._rule = interrupted
    out = tmp_path / "run"
    assert command("analyze", questions, "--out", out) == 130
    assert "1 of 3 questions are saved" in capsys.readouterr().err
    saved = Run.load(out)
    assert not saved.manifest["complete"]
    assert signal.getsignal(number) == before
    llm._rule = answer
    assert command("analyze", questions, "--out", out) == 0
    assert llm.calls == 15
    assert Run.load(out).manifest["complete"]
    assert Run.load(out).run_id == saved.run_id
    assert len(saved.queries) == 3 == len(Run.load(out).queries)
    assert saved.queries["answer_status"].isna().sum() == 2


def test_a_signal_after_the_last_answer_ends_in_a_complete_run(questions, llm, tmp_path):
    answer = llm._rule

    def interrupted(request):
        if llm.calls == 5:
            os.kill(os.getpid(), signal.SIGTERM)
        return answer(request)

    llm._rule = interrupted
    out = tmp_path / "run"
    assert command("analyze", questions, "--limit", 1, "--out", out) == 0
    assert llm.calls == 5 and Run.load(out).manifest["complete"]


def test_an_unfinished_run_goes_on_from_its_folder_where_the_cache_is_gone(
    questions, llm, tmp_path, monkeypatch
):
    out = tmp_path / "run"
    answer = llm._rule

    def interrupted(request):
        if llm.calls == 7:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.1)
        return answer(request)

    llm._rule = interrupted
    assert command("analyze", questions, "--out", out) == 130
    llm._rule, n_before = answer, llm.calls
    monkeypatch.setenv("LEADLINE_CACHE", str(tmp_path / "another"))
    assert command("analyze", questions, "--out", out) == 0
    # The five calls of the first question are kept in the run; those of the second one were in the cache.
    assert llm.calls == n_before + 10
    assert Run.load(out).manifest["cost"]["calls"] == n_before + 10


def test_failed_questions_of_a_saved_run_are_asked_again(questions, llm, tmp_path, capsys):
    out, answer = tmp_path / "run", llm._rule

    def failing(request):
        if "What is 1?" in request.messages[0].content:
            raise BackendError("Not this one.")
        return answer(request)

    llm._rule = failing
    assert command("analyze", questions, "--out", out) == 0
    assert "Without an answer: 1 of 3 questions; the table has the reasons." in capsys.readouterr().err
    assert Run.load(out).queries["answer_status"].to_list() == ["answered", "error", "answered"]
    llm._rule = answer
    n_before = llm.calls
    assert command("analyze", questions, "--out", out) == 0
    assert llm.calls == n_before + 5
    assert Run.load(out).manifest["notes"] == []
    assert set(Run.load(out).queries["answer_status"]) == {"answered"}


def test_a_command_that_needs_another_model_for_a_step_opens_it(
    questions, llm, tmp_path, monkeypatch, capsys
):
    opened = []

    def open_one(kind, name=None, **options):
        opened.append((kind, name, options))
        return llm if kind == "embedded" else ScriptedLLM(lambda _: "no JSON", name=name)

    monkeypatch.setattr(core.pipeline.steps, "open_llm", open_one)
    arguments = ("plan", questions, "--steps", "influence,claims", "--verifier", "judge", "--json")
    assert command(*arguments) == 0
    assert opened == [("embedded", None, {})]
    opened.clear()
    capsys.readouterr()
    other = ("--verifier-llm", "ollama", "--verifier-model", "m", "--verifier-url", "http://localhost:1")
    assert command(*arguments, *other) == 0
    assert opened == [("embedded", None, {}), ("ollama", "m", {"base_url": "http://localhost:1"})]
    facts = json.loads(capsys.readouterr().out)
    assert (facts["model"], facts["n_to_ask"], facts["claims_calls_about"]) == ("scripted", 15, 12)


def test_a_model_that_cannot_score_is_refused_before_the_answers_are_asked_for(
    questions, llm, tmp_path, capsys
):
    steps = ("--steps", "influence,claims", "--verifier", "gain")
    assert command("analyze", questions, *steps, "--out", tmp_path / "run") == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert "The verifier gain needs a model that can score a given text; scripted cannot" in said
    assert llm.calls == 0


def test_as_a_process(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "core", "simulate", "--queries", "10", "--out", str(tmp_path / "r"), "--json"],
        cwd=ROOT, capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "latin-1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["simulated"] is True
    done = subprocess.run(
        [sys.executable, "-m", "core", "summary", str(tmp_path / "r")],
        cwd=ROOT, capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"SIMULATED DATA" in done.stdout


def test_an_imported_file_is_continued_with_all_its_passages(llm, tmp_path, capsys):
    rows = [
        {
            "user_input": f"Who built bridge {i}?",
            "retrieved_contexts": [f"Bridge {i}, part {j}, by Anna." for j in range(12)],
            "response": "Anna",
            "reference_contexts": [f"Bridge {i}, part 0, by Anna.", "Another one."],
        }
        for i in range(2)
    ]
    file = tmp_path / "ragas.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    assert command("import", file, "--out", tmp_path / "imported") == 0
    told = capsys.readouterr().err
    assert "Auto-detected from field names" in told
    assert "(ragas)" in told
    assert "cannot show influence vs retrieval" in told
    assert command("analyze", tmp_path / "imported", "--out", tmp_path / "live", "--json") == 0
    run = Run.load(tmp_path / "live")
    assert list(run.passages.groupby("query_id").size()) == [12, 12]
    assert run.passages["ablated_answer"].notna().all()
    assert list(run.queries["n_gold"]) == [2, 2]
    assert command("analyze", tmp_path / "imported", "--k", 3, "--out", tmp_path / "short") == 0
    assert len(Run.load(tmp_path / "short").passages) == 6


def test_questions_are_downloaded_from_local_files_in_the_schema_of_the_data_set(tmp_path, capsys):
    assert command("download", "squad", "--out", tmp_path / "x.jsonl") == 2
    assert "must be one of nq, got 'squad'" in capsys.readouterr().err
    tokens = ["<P>", "The", "canal", "opened", "in", "1893", ".", "</P>"]
    row = {
        "id": "1",
        "document": {
            "title": "Canal",
            "url": "https://example.org",
            "html": "",
            "tokens": {
                "token": tokens,
                "is_html": [t.startswith("<") for t in tokens],
                "start_byte": list(range(len(tokens))),
                "end_byte": list(range(1, len(tokens) + 1)),
            },
        },
        "question": {"text": "when did the canal open", "tokens": []},
        "annotations": {
            "id": ["a"],
            "short_answers": [
                {"start_token": [5], "end_token": [6], "start_byte": [5], "end_byte": [6], "text": ["1893"]}
            ],
            "yes_no_answer": [-1],
        },
    }
    (tmp_path / "nq.jsonl").write_text(json.dumps(row) + "\n")
    out = tmp_path / "kept.jsonl"
    assert command("download", "nq", "--source", tmp_path / "nq.jsonl", "--limit", 1, "--out", out) == 0
    kept = json.loads(out.read_text())
    assert kept["answers"] == ["1893"]
    assert "canal opened in 1893" in kept["documents"][0]["text"]


@pytest.fixture
def checked(questions, llm, tmp_path):
    """The folder of a finished run without claims."""
    out = tmp_path / "plain"
    assert command("analyze", questions, "--out", out) == 0
    return out


def test_claims_are_found_with_the_run(questions, llm, tmp_path, capsys):
    out = tmp_path / "run"
    assert command("analyze", questions, "--steps", "influence,claims", "--out", out, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    run = Run.load(out)
    assert facts["n_claims"] == int((run["claims"]["side"] == "answer").sum()) == 3
    assert facts["claims_judge"] == "offline"
    assert facts["mean_claim_uncertainty"] is not None
    assert len(run["support"]) == run.manifest["steps"]["claims"]["n_cells"]
    calls = llm.calls
    assert command("analyze", questions, "--steps", "claims,influence", "--out", out) == 0
    assert "already there" in capsys.readouterr().err
    assert llm.calls == calls


def test_claims_of_a_saved_run_make_a_run_that_names_its_parent(checked, llm, tmp_path, capsys):
    calls, parent = llm.calls, Run.load(checked)
    assert command("analyze", checked, "--steps", "claims", "--out", tmp_path / "claims") == 0
    said = capsys.readouterr()
    assert "Claims & evidence" in said.out and "calls to make" not in said.err
    run = Run.load(tmp_path / "claims")
    assert run.manifest["parent"] == parent.run_id != run.run_id
    assert run.queries.equals(parent.queries)
    assert llm.calls == calls
    assert not len(Run.load(checked)["claims"])
    # A folder with another run is taken only where that was asked for.
    queries = pd.DataFrame({"query_id": ["a"], "question": ["Who?"], "answer": ["Ann"]})
    Run.create({"source": "upload"}, queries=queries).save(tmp_path / "other")
    derived = ("analyze", checked, "--steps", "claims", "--out", tmp_path / "other")
    assert command(*derived) == 2 and "already holds another run" in capsys.readouterr().err
    assert command(*derived, "--overwrite") == 0
    assert Run.load(tmp_path / "other").run_id == run.run_id
    # In its own folder a run gains claims and stays the run it is.
    assert command("analyze", checked, "--steps", "claims", "--out", checked) == 0
    assert len(Run.load(checked)["claims"]) == len(run["claims"])
    assert Run.load(checked).run_id == parent.run_id


def test_samples_are_asked_with_the_run_and_more_are_added_later(questions, llm, tmp_path, capsys):
    out = tmp_path / "run"
    arguments = ("--steps", "uncertainty,influence", "--samples", 5, "--out", out, "--json")
    assert command("analyze", questions, *arguments) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["n_stable"], facts["n_sampled"], facts["mean_agreement"]) == (3, 3, 1.0)
    assert len(Run.load(out)["samples"]) == 15
    calls = llm.calls
    assert command("analyze", out, "--steps", "uncertainty", "--samples", 10, "--out", out) == 0
    assert llm.calls == calls + 15 and len(Run.load(out)["samples"]) == 30
    for name, n in (("samples-csv", 30), ("uncertainty-csv", 3)):
        assert command("export", out, "--format", name, "--out", tmp_path / name) == 0
        assert len(pd.read_csv(tmp_path / name)) == n


def test_some_questions_are_asked_again_with_other_passages(questions, llm, tmp_path, capsys):
    out, file = tmp_path / "run", tmp_path / "context.csv"
    arguments = ("--steps", "uncertainty,influence", "--samples", 3, "--context-questions", 2, "--out", out)
    assert command("analyze", questions, *arguments, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["n_context_questions"], facts["context_failures"]) == (2, 0)
    assert command("export", out, "--format", "context-csv", "--out", file) == 0
    frame = pd.read_csv(file)
    assert set(frame["condition"]) == {"without_support", "unrelated_added"}
    assert (frame["n"] <= 2).all() and set(frame["outcome"]) == {"Cannot be told"}


def test_a_judge_is_asked_and_its_failures_are_asked_again(checked, tmp_path, monkeypatch, capsys):
    working = []

    def verdicts(request):
        if not working:
            return "no JSON at all"
        asked = request.messages[-1].content
        if asked.startswith("Break this answer"):
            return json.dumps({"claims": [{"sentence": 1, "claim": "fact 0 0 is meant"}]})
        n = sum(line.startswith("Claim ") for line in asked.splitlines())
        return json.dumps({str(i): "SUPPORTED" for i in range(1, n + 1)})

    model = ScriptedLLM(verdicts)
    monkeypatch.setattr(core.pipeline.steps, "open_llm", lambda kind, name=None, **_: model)
    arguments = ("analyze", checked, "--steps", "claims", "--verifier", "judge", "--out", tmp_path / "judged")
    assert command(*arguments, "--json") == 0
    captured = capsys.readouterr()
    facts = json.loads(captured.out)
    assert facts["n_cells_unscored"] > 0 == facts["n_claims_not_supported"]
    assert "18 of 18 pairs of claim and passage have no score" in captured.err
    working.append(True)
    assert command(*arguments, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["n_cells_unscored"] == 0 < facts["n_claims_supported"]
    assert facts["claims_judge"] == f"judge:{model.name}"


def test_the_plan_says_about_how_many_calls_claims_take(questions, llm, capsys):
    def expected(*more):
        assert command("plan", questions, "--json", *more) == 0
        return json.loads(capsys.readouterr().out)["claims_calls_about"]

    assert expected() is None
    assert expected("--steps", "influence,claims") == 0
    # Three questions to take apart, and for each of them one call for each of three passages.
    assert expected("--steps", "influence,claims", "--verifier", "judge") == 3 + 9
    llm.capabilities = replace(llm.capabilities, answer_logprob=True)
    # Three claims of each of three answers, with three passages and without.
    assert expected("--steps", "influence,claims", "--verifier", "gain") == 3 * 3 * (3 + 1)
    assert llm.calls == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["analyze", "{questions}", "--steps", "claims", "--out", "r"], "use --steps influence,claims"),
        (["analyze", "{run}", "--steps", "claims", "--verifier", "oracle", "--out", "r"], "verifier must be one of offline, judge, gain, nli"),
        (["analyze", "{run}", "--steps", "claims", "--verifier", "nli", "--out", "r"], "verifier_model"),
        (["analyze", "{run}", "--steps", "claims", "--out", "folder"], "is not empty"),
        (["summary", "{run}", "--support", "0"], "support must lie from 0.05 to 1"),
    ],
)  # fmt: skip
def test_bad_claims_settings_are_one_line_and_status_2(
    arguments, message, questions, checked, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine.txt").write_text("keep")
    capsys.readouterr()
    assert command(*(a.format(questions=questions, run=checked) for a in arguments)) == 2
    err = capsys.readouterr().err
    assert message in err.splitlines()[-1]
    assert "Traceback" not in err


def test_files_of_other_kinds_are_planned_asked_and_imported(llm, tmp_path, capsys):
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    own = {"question": ["What is 1?"], "passages": [["fact 1", "fact 2"]], "answers": [["fact 1"]]}
    datasets.Dataset.from_dict(own).save_to_disk(tmp_path / "saved")
    assert command("plan", tmp_path / "saved", "--json") == 0
    assert json.loads(capsys.readouterr().out)["n_to_ask"] == 4
    assert command("analyze", tmp_path / "saved", "--out", tmp_path / "asked", "--json") == 0
    assert json.loads(capsys.readouterr().out)["n_correct"] == 1
    datasets.Dataset.from_dict({**own, "answer": ["fact 1"]}).to_parquet(tmp_path / "t.parquet")
    assert command("import", tmp_path / "t.parquet", "--out", tmp_path / "imported", "--json") == 0
    assert json.loads(capsys.readouterr().out)["n_queries"] == 1
    # A folder that is neither a run nor a saved data set is still one sentence.
    (tmp_path / "empty").mkdir()
    assert command("plan", tmp_path / "empty") == 2


def test_a_test_set_imported_as_a_run_is_offered_with_the_command_that_works(
    llm, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rows = [{"user_input": "What is 1?", "reference": "fact 1", "reference_contexts": ["fact 1", "fact 2"]}]
    Path("testset.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert command("import", "testset.jsonl", "--out", "run") == 2
    offered = re.search(r"`python -m core (.*?)`", capsys.readouterr().err)[1].replace("RUN", "asked")
    assert offered == "analyze testset.jsonl --out asked"
    assert command(*offered.split(), "--json") == 0
    assert json.loads(capsys.readouterr().out)["n_correct"] == 1


def test_check_fails_on_grave_findings_only(tmp_path, capsys):
    from tests.core.conformal.conformal_runs import against_store, planted

    drifting = against_store(planted([0] * 40, [True] * 40, [False] * 40), [9] * 40)
    drifting.save(tmp_path / "bad")
    assert command("check", tmp_path / "bad", "--alpha", 0.1) == 1
    said = capsys.readouterr().out
    assert said.startswith("Failed: ") and "alarm at question" in said
    assert command("check", tmp_path / "bad", "--json") == 1
    facts = json.loads(capsys.readouterr().out)
    assert not facts["passed"]
    drift = next(one for one in facts["failed"] if one["name"] == "score_drift")
    assert (drift["diagnostic"], drift["severity"], drift["of"]) == ("conformal", "high", 40)

    fine = planted([10, 9, 8, 9, 10] * 40, [True] * 200, [True] * 100 + [False] * 100)
    fine.save(tmp_path / "fine")
    assert command("check", tmp_path / "fine", "--alpha", 0.1) == 0
    assert capsys.readouterr().out.startswith("Passed: 0 findings of severity high.")
    assert command("check", tmp_path / "fine", "--severity", "medium", "--alpha", 0.01) == 0
    # With 100 labels an error rate of 1 % cannot be certified: that is said, and is no failure.
    assert "Cannot be told from these data:" in capsys.readouterr().out


def test_check_refuses_what_it_cannot_check(tmp_path, capsys):
    from tests.core.conformal.conformal_runs import planted

    planted([9], [True], [None]).save(tmp_path / "run")
    run = Run.load(tmp_path / "run")
    bare = Run.create({**run.manifest, "steps": {}}, **run.tables)
    bare.save(tmp_path / "bare")
    assert command("check", tmp_path / "bare") == 0
    capsys.readouterr()
    assert command("check", tmp_path / "bare", "--alpha", 0.1) == 2
    assert "--alpha is a setting of Conformal. Not calibrated" in capsys.readouterr().err
    assert command("check", tmp_path / "bare", "--severity", "grave") == 2
    assert "severity must be one of high, medium, low, got 'grave'" in capsys.readouterr().err
