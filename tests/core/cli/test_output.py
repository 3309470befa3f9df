"""What the command line prints, and what it makes of its arguments."""

import io
import json
import signal
import sys

import pandas as pd
import pytest

import core.cli.app
from core.cli import main
from core.cli.calibrate import _interval
from core.cli.output import log_report, open_dataset, option_pairs, print_json, stoppable
from core.errors import InputError
from core.run import Run
from core.sources.report import Issue, ValidationReport
from core.sources.templates import TEMPLATES


def test_json_is_printed_in_letters_as_they_are_where_the_terminal_has_them(monkeypatch):
    for encoding, shown in (("utf-8", "ü"), ("latin-1", "\\u00fc")):
        written = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding, newline="\n"))
        print_json({"a": "ü"})
        assert written.getvalue().decode(encoding) == f'{{\n  "a": "{shown}"\n}}\n'


@pytest.mark.parametrize("text", ["noise", "=1", " =1", "noise=", "noise= "])
def test_a_pair_needs_a_name_and_a_value(text):
    assert option_pairs("--set", [" noise = a=b "]) == [("noise", "a=b")]
    with pytest.raises(InputError, match="--set must be name=value"):
        option_pairs("--set", [text])


def test_signals_are_handled_as_before_afterwards():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with stoppable() as stopped:
        assert signal.getsignal(signal.SIGTERM) != before[1] and not stopped()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_questions_get_the_corpus_given(tmp_path):
    questions, corpus = tmp_path / "q.jsonl", tmp_path / "c.jsonl"
    questions.write_text(json.dumps({"id": "q", "question": "Who?"}))
    corpus.write_text('{"title": "T", "text": "Ann."}')
    [question] = open_dataset(str(questions), None, str(corpus)).questions
    assert [one.text for one in question.documents] == ["Ann."]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(13, "Permission denied", "/x"), "Error: /x: Permission denied.\n"),
        (OSError(28, "No space left"), "Error: No space left.\n"),
        (OSError("odd"), "Error: odd.\n"),
    ],
)
def test_an_error_of_the_system_names_the_file_if_it_is_known(error, line, monkeypatch, capsys):
    def fail():
        raise error

    monkeypatch.setattr(core.cli.app, "build_app", fail)
    assert main([]) == 2
    assert capsys.readouterr().err == line


def test_the_name_of_the_program_is_no_argument(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["program", "nothing"])
    assert main() == 2
    assert "No such command 'nothing'" in capsys.readouterr().err


def test_both_ends_of_an_interval_are_shown():
    assert _interval((0.25, 0.5)) == "(0.25 to 0.50)"


def test_notes_and_problems_are_logged_with_their_place(capsys):
    issues = (Issue(3, "rank", "x", "a number", "error"), Issue(None, None, "y", "a table", "warning"))
    log_report(ValidationReport(2, 1, issues, pd.DataFrame(), notes=("a note",), n_issues=2), "f.csv")
    assert capsys.readouterr().err.splitlines() == [
        "f.csv: a note",
        "f.csv, row 3, column rank: found 'x', expected a number (error).",
        "f.csv, file: found 'y', expected a table (warning).",
        "f.csv: 1 of 2 rows are used.",
    ]


def test_only_the_help_of_check_says_how_grave_findings_are(capsys):
    for name, said in (("check", True), ("summary", False)):
        assert main([name, "--help"]) == 0
        assert ("How grave a finding is" in capsys.readouterr().out) == said


def test_an_example_file_is_printed_where_no_file_is_named(capsys):
    assert main(["import", "--template", next(iter(TEMPLATES))]) == 0
    assert "question" in capsys.readouterr().out


def test_no_completion_of_the_shell_is_installed(capsys):
    assert main(["--install-completion"]) == 2
    assert "No such option" in capsys.readouterr().err


def test_results_are_text_unless_json_is_asked_for(tmp_path, capsys):
    """And an imported run has the name of its file."""
    file, out = tmp_path / "t.csv", tmp_path / "run"
    file.write_text("question,answer,correct\nWho?,Ann,1\n")
    assert main(["import", str(file), "--out", str(out)]) == 0
    assert not capsys.readouterr().out.startswith("{")
    assert Run.load(out).name == "t.csv"
    assert main(["export", str(out), "--out", str(tmp_path / "x.csv")]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'x.csv'}: ")
