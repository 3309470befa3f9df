"""The command `calibrate`: from questions and from a saved run, resumed, interrupted, refused."""

import json
import os
import signal
import time

import pytest

import core.pipeline.steps
from core.cli import main
from core.conformal import CalibrationStore
from core.llm.types import Completion
from core.run import Run
from core.sources.simulation import SimulationOptions, simulate
from tests.scripted import ScriptedLLM


@pytest.fixture
def llm(monkeypatch, tmp_path):
    """Answer "Paris"; of the samples of question i, i say so, too."""
    monkeypatch.setenv("LEADLINE_CACHE", str(tmp_path / "cache"))

    def answer(request):
        i = int(request.messages[0].content.split("What is ")[1].split("?")[0])
        return "Paris" if request.temperature == 0 or request.seed <= i else "Rome"

    model = ScriptedLLM(answer)
    monkeypatch.setattr(core.pipeline.steps, "open_llm", lambda kind, name=None, **_: model)
    return model


@pytest.fixture
def questions(tmp_path):
    """Ten questions: eight are answered correctly, one is not, and one has no reference answer."""
    truths = [["Rome"], *([["Lyon", "Paris"]] * 8), []]
    rows = [
        {
            "id": f"q{i}",
            "question": f"What is {i}?",
            "passages": ["a", {"title": "T", "text": "b"}],
            "answers": truth,
            "kind": "city",
        }
        for i, truth in enumerate(truths)
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def command(*arguments):
    return main([str(a) for a in arguments])


def test_questions_are_asked_and_counted(questions, llm, tmp_path, capsys):
    path = tmp_path / "c.db"
    assert command("calibrate", questions, "--store", path) == 0
    printed = capsys.readouterr()
    assert llm.calls == 9 * 11
    assert printed.out == (
        f"{path}: 9 answers, 9 new, 0 there before.\n"
        "9 labels, 8 of them correct; those calibrate.\n"
        "No threshold: 8 correct answers cannot certify α = 0.1; you need at least 9.\n"
        "No confidence is certified: about 16 more labels would certify one.\n"
    )
    assert "1 question without a reference answer left out." in printed.err
    with CalibrationStore(path) as store:
        frame = store.frame()
        assert store.provenance.retriever.startswith("bm25 · ")
    assert frame["context"].tolist() == ["[1] a\n\n[2] T: b"] * 9 and set(frame["kind"]) == {"city"}
    # The same command asks nothing again; scores 0.9, 0.8 … 0.2 of the correct ones.
    assert command("calibrate", questions, "--store", path, "--alpha", 0.2) == 0
    assert llm.calls == 9 * 11
    assert capsys.readouterr().out == (
        f"{path}: 9 answers, 0 new, 9 there before.\n"
        "9 labels, 8 of them correct; those calibrate.\n"
        "Threshold 0.900 at α = 0.2: flagged is what scores more. "
        "Of answers that are as good as the correct ones in calibration, at most 20 % are flagged.\n"
        "No confidence is certified: about 4 more labels would certify one.\n"
    )


def test_the_facts_as_json(questions, llm, tmp_path, capsys):
    path = tmp_path / "c.db"
    assert command("calibrate", questions, "--store", path, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts == {
        "store": str(path), "alpha": 0.1, "n_samples": 8, "mean_score": pytest.approx(0.55), "threshold": None,
        "total_calibrated": 9, "n_labels": 9, "n_correct": 8, "new_calibrated": 9, "skipped": 0, "n_failed": 0,
        "failure": "", "reason": "8 correct answers cannot certify α = 0.1; you need at least 9.", "labels_needed": 9, "statement": "",
        "certified_threshold": None, "certified_missing": "about 16 more labels would certify one",
    }  # fmt: skip
    assert command("calibrate", questions, "--store", path, "--json", "--alpha", 0.25) == 0
    facts = json.loads(capsys.readouterr().out)
    # ⌈9 · 0.75⌉ = 7: the seventh of eight.
    assert (facts["threshold"], facts["labels_needed"], facts["reason"]) == (0.8, 3, "")
    assert "at most 25 % are flagged" in facts["statement"]


def test_failed_questions_are_counted(questions, llm, tmp_path, capsys):
    answer = llm._rule
    failed = Completion.failed("Too long.")
    llm._rule = lambda request: failed if "What is 1?" in request.messages[0].content else answer(request)
    assert command("calibrate", questions, "--store", tmp_path / "c.db", "--limit", 2) == 0
    printed = capsys.readouterr()
    assert "1 question failed and will be asked again next time: Too long.\n" in printed.out
    assert "left out" not in printed.err, "both have a reference answer"


def test_a_saved_run_needs_no_call_and_gives_the_same(questions, llm, tmp_path, capsys):
    run = tmp_path / "run"
    steps = ("--steps", "influence,uncertainty", "--samples", 4)
    assert command("analyze", questions, *steps, "--out", run) == 0
    n_calls = llm.calls
    capsys.readouterr()
    assert command("calibrate", run, "--store", tmp_path / "c.db") == 0
    assert "c.db: 9 answers, 9 new, 0 there before.\n" in capsys.readouterr().out
    assert command("calibrate", run, "--store", tmp_path / "c.db", "--alpha", 0.25, "--json") == 0
    of_run = json.loads(capsys.readouterr().out)
    counts = [of_run[name] for name in ("n_labels", "n_correct", "new_calibrated", "skipped")]
    assert counts == [9, 8, 0, 9]
    # The correct ones score 0.75, 0.5, 0.25 and five times 0.
    # And the questions asked with the same options fit the same store, which has them all.
    options = ("--samples", 4, "--alpha", 0.25, "--json")
    assert command("calibrate", questions, "--store", tmp_path / "c.db", *options) == 0
    of_questions = json.loads(capsys.readouterr().out)
    assert llm.calls == n_calls
    assert of_questions["skipped"] == 9 and of_questions["threshold"] == of_run["threshold"] == 0.5


def test_options_reach_the_calls_and_the_store(questions, llm, tmp_path, capsys):
    path = tmp_path / "c.db"
    options = "--samples 2 --sample-seed 50 --style full --max-tokens 7 --k 1 --limit 1".split()
    assert command("calibrate", questions, "--store", path, *options) == 0
    assert [(r.seed, r.max_tokens) for r in llm.requests] == [(0, 7), (51, 7), (52, 7)]
    assert "full sentences" in llm.requests[0].messages[0].content
    assert "[2]" not in llm.requests[0].messages[0].content.split("\n\n", 1)[1]
    said = "holds scores that cannot be compared with these: calibrated with the"
    for changed in ("--samples 3", "--sample-seed 51", "--style short", "--max-tokens 8", "--k 2"):
        capsys.readouterr()
        assert command("calibrate", questions, "--store", path, *options, *changed.split()) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_what_is_done(questions, llm, tmp_path, capsys, number):
    answer, path = llm._rule, tmp_path / "c.db"

    def interrupted(request):
        if llm.calls == 30:
            os.kill(os.getpid(), number)
            time.sleep(0.1)
        return answer(request)

    llm._rule = interrupted
    assert command("calibrate", questions, "--store", path) == 130
    assert f"Stopped on request; 2 answers in {path}: run the same command again" in capsys.readouterr().err
    llm._rule = answer
    assert command("calibrate", questions, "--store", path) == 0
    assert ": 9 answers, 7 new, 2 there before.\n" in capsys.readouterr().out
    assert llm.calls == 9 * 11


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("{questions}", "--store"),
        ("{questions} --store c.db --learn", "--learn is for answers with their signals"),
        ("nowhere.jsonl --store c.db", "nowhere.jsonl"),
        ("{questions} --store {questions}", "is damaged or is not a calibration store; restore a copy"),
        ("{questions} --store c.db --alpha 0", "alpha must lie"),
        ("{questions} --store c.db --samples 1", "samples must be a whole number from 2 to 100"),
        ("{questions} --store c.db --weights x.y", "--weights is for answers with signals"),
        ("{unlabelled} --store c.db", "No question of {unlabelled} has a reference answer"),
        ("{simulated} --store c.db --weights x.y", "no such score to calibrate; sample answers or"),
        ("{unlabelled_run} --store c.db", "has no labelled answer"),
    ],
)
def test_bad_input_is_one_line(arguments, message, questions, llm, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = ("questions.jsonl", "unlabelled", "simulated", "unlabelled_run")
    places = {name.removesuffix(".jsonl"): tmp_path / name for name in names}
    places["unlabelled"].write_text(json.dumps({"question": "What is 1?", "passages": ["a"]}))
    full = simulate(SimulationOptions(queries=10))
    # Without samples, claims and signals there is no score.
    bare = Run.create({"source": "simulation"}, queries=full.queries, passages=full.passages)
    bare.save(places["simulated"])
    steps = ("--steps", "influence,uncertainty")
    command("analyze", places["unlabelled"], *steps, "--out", places["unlabelled_run"])
    capsys.readouterr()
    assert main(["calibrate", *(one.format(**places) for one in arguments.split())]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.splitlines()[-1].startswith("Error: ")
    assert message.format(**places) in printed.err.splitlines()[-1]


def test_an_unreachable_model_is_status_3(questions, llm, tmp_path, capsys):
    llm._down = True
    assert command("calibrate", questions, "--store", tmp_path / "c.db") == 3
    assert "Error: The scripted model is down." in capsys.readouterr().err
