"""`--preset`: values for settings and options that are not given themselves."""

import json

import pytest

import core.pipeline.steps
from core.cli import main
from core.cli.app import build_app
from core.run import Run
from tests.app.conformal_runs import calibrated, planted
from tests.scripted import ScriptedLLM


def command(*arguments):
    return main([str(a) for a in arguments])


@pytest.fixture
def llm():
    return ScriptedLLM(lambda _: "Rome")


@pytest.fixture
def questions(tmp_path, monkeypatch, llm):
    """One question, and a model that answers it."""
    monkeypatch.setenv("LEADLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(core.pipeline.steps, "open_llm", lambda *_, **__: llm)
    path = tmp_path / "questions.jsonl"
    path.write_text(json.dumps({"question": "Where?", "passages": ["a", "b"], "answers": ["Rome"]}))
    return path


def test_every_command_with_settings_or_options_has_it(capsys):
    without = [one.name for one in build_app().registered_commands]
    for name in [*without]:
        command(name, "--help")
        if "--preset" in capsys.readouterr().out:
            without.remove(name)
    assert without == ["validate", "download", "trend", "labels", "dashboard"]


@pytest.mark.parametrize(
    ("given", "n"), [((), 10), (("--preset", "quick"), 5), (("--preset", "quick", "--samples", 3), 3)]
)
def test_samples_of_analyze_and_plan(given, n, questions, tmp_path, capsys):
    steps = ("--steps", "influence,uncertainty")
    assert command("plan", questions, *steps, *given, "--json") == 0
    assert json.loads(capsys.readouterr().out)["n_calls"] == 4 + n  # all, without each, none
    assert command("analyze", questions, *steps, *given, "--out", tmp_path / "run") == 0
    assert len(Run.load(tmp_path / "run")["samples"]) == n


@pytest.mark.parametrize(
    ("given", "alpha"),
    [((), 0.1), (("--preset", "high-reliability"), 0.05), (("--preset", "quick", "--alpha", 0.3), 0.3)],
)
def test_alpha_of_summary_and_analyze(given, alpha, tmp_path, capsys):
    calibrated().save(tmp_path / "run")
    assert command("summary", tmp_path / "run", *given, "--json") == 0
    assert json.loads(capsys.readouterr().out)["conformal_alpha"] == alpha
    planted().save(tmp_path / "new")
    if "--alpha" not in given:  # analyze has no option of its own for it
        made = command(
            "analyze", tmp_path / "new", "--steps", "conformal", *given, "--out", tmp_path / "out", "--json"
        )
        assert made == 0 and json.loads(capsys.readouterr().out)["conformal_alpha"] == alpha


def test_check_needs_what_it_was_asked_to_promise(tmp_path, capsys):
    planted().save(tmp_path / "run")
    assert command("check", tmp_path / "run", "--preset", "quick") == 2
    assert "--alpha is a setting of Conformal" in capsys.readouterr().err


def test_calibrate_takes_both(questions, llm, tmp_path, capsys):
    store = tmp_path / "c.db"
    assert command("calibrate", questions, "--store", store, "--preset", "quick", "--json") == 0
    assert json.loads(capsys.readouterr().out)["alpha"] == 0.2
    assert llm.calls == 1 + 5


def test_an_unknown_one_is_one_sentence(tmp_path, capsys):
    planted().save(tmp_path / "run")
    assert command("summary", tmp_path / "run", "--preset", "fast\x1b[2J") == 2
    said = capsys.readouterr().err
    assert "Error: The preset must be one of quick, balanced, high-reliability, got 'fast" in said
    assert "\x1b" not in said and said.count("\n") == 1
