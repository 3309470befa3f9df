"""What the command line prints, and what it makes of its arguments."""

import io
import json
import os
import signal
import sys
import threading
from types import SimpleNamespace

import pandas as pd
import pytest

import core.cli.app
import core.cli.reading
import core.sources.natural_questions
import core.sources.simulation
from core.cli import main
from core.cli.calibrate import _interval
from core.cli.output import (
    check_free,
    free_file,
    log,
    log_possible,
    log_report,
    open_dataset,
    option_pairs,
    plan_text,
    print_json,
    print_text,
    stoppable,
    write_file,
)
from core.errors import BackendError, Cancelled, InputError, LeadlineError
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


class UsageError(Exception):
    def format_message(self):
        return str(self)


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (OSError(13, "Permission denied", "/x"), 2, "Error: /x: Permission denied."),
        (OSError(28, "No space left"), 2, "Error: No space left."),
        (OSError("odd"), 2, "Error: odd."),
        (InputError("Not\n this."), 2, "Error: Not this."),
        (BackendError("Gone."), 3, "Error: Gone."),
        (LeadlineError("Odd."), 1, "Error: Odd."),
        (Cancelled("Stopped after 1."), 130, "Stopped after 1."),
        (KeyboardInterrupt(), 130, "Stopped; what was finished is kept."),
        (UsageError("No such option."), 2, "Error: No such option."),
        (UsageError(), 2, "Error: See --help."),
        (
            ValueError("a\nb"),
            1,
            "Error: ValueError: a b; run with LEADLINE_DEBUG=1 for the traceback",
        ),
    ],
)
def test_what_went_wrong_is_one_line_and_a_status(error, status, line, monkeypatch, capsys):
    def fail():
        raise error

    monkeypatch.setattr(core.cli.app, "build_app", fail)
    assert main([]) == status
    assert capsys.readouterr().err == f"{line}\n"


def test_a_character_that_the_terminal_lacks_is_escaped(monkeypatch):
    written = io.BytesIO()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(
            sys, name, io.TextIOWrapper(written, encoding="ascii", newline="\n", write_through=True)
        )
    monkeypatch.setattr(core.cli.app, "build_app", lambda: lambda **_: [print_text("ü"), log("ρ")])
    assert main(["x"]) == 0 and written.getvalue() == b"\\xfc\n\\u03c1\n"
    monkeypatch.setattr(sys, "stdout", io.StringIO())  # a stream of another kind takes any
    assert main(["x"]) == 0 and sys.stdout.getvalue() == "ü\n"


def test_nobody_reading_the_output_any_more_is_no_failure(tmp_path, monkeypatch, capsys):
    def fail():
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(core.cli.app, "build_app", fail)
    with (tmp_path / "out").open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert main([]) == 0
        out.write("What nobody reads any more cannot fail again.")
    assert (tmp_path / "out").read_text() == capsys.readouterr().err == ""


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


def test_a_file_that_is_used_in_full_says_no_more_than_what_it_allows(capsys):
    n, same = int("1000"), int("1000")
    report = ValidationReport(n, same, (), pd.DataFrame(), enables=("this", "that"), missing=("more",))
    log_report(report, "f.csv")
    log_possible(report)
    assert capsys.readouterr().err == "  allows this\n  allows that\n  cannot show more\n"


def test_without_arguments_the_help_is_shown(capsys):
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Usage: ") and any(line.split()[:1] == ["analyze"] for line in lines)


def test_only_the_help_of_check_says_how_grave_findings_are(capsys):
    for name, said in (("check", True), ("summary", False)):
        assert main([name, "--help"]) == 0
        shown = capsys.readouterr().out
        assert ("How grave a finding is" in shown) == said and "|" not in shown.split("How grave")[-1]


def test_an_example_file_is_printed_where_no_file_is_named(capsys):
    kind = next(iter(TEMPLATES))
    for given in ((), ("--preset", "fast"), ("--influence-threshold", "many")):  # as --help it comes first
        assert main(["import", *given, "--template", kind]) == 0
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
    file.write_text("question,answer,correct\nWhy?,Ben,1\n")
    assert main(["import", str(file), "--out", str(out)]) == 2
    assert "already holds another run, 't.csv'" in capsys.readouterr().err
    assert main(["export", str(out), "--out", str(tmp_path / "x.csv")]) == 0
    written = tmp_path / "x.csv"
    assert capsys.readouterr().out == f"{written}: {written.stat().st_size:,} bytes.\n"


def test_only_so_many_problems_are_logged(capsys):
    for n, more in ((20, []), (1_021, ["f.csv: and 1,001 more."])):
        issues = tuple(Issue(row, None, "x", "a number", "error") for row in range(1, n + 1))
        log_report(ValidationReport(n, n, issues, pd.DataFrame(), n_issues=n), "f.csv")
        lines = capsys.readouterr().err.splitlines()
        assert lines[0].startswith("f.csv, row 1: ") and lines[19].startswith("f.csv, row 20: ")
        assert lines[20:] == more


def test_json_holds_null_for_what_is_no_number_at_any_depth(capsys):
    print_json({"a": [float("nan"), ({"b": float("inf")}, 1.5)], "c": "\x7f"})
    said = capsys.readouterr().out
    assert json.loads(said) == {"a": [None, [{"b": None}, 1.5]], "c": "\x7f"} and "\\u007f" in said


def test_a_second_interrupt_ends_at_once(capsys):
    with pytest.raises(KeyboardInterrupt), stoppable() as stopped:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopped()
        os.kill(os.getpid(), signal.SIGTERM)
    assert capsys.readouterr().err.count("press Ctrl-C again") == 1


def test_a_thread_can_be_asked_whether_it_is_to_stop_but_takes_no_signals():
    found = []

    def work():
        with stoppable() as stopped:
            found.extend([stopped(), signal.getsignal(signal.SIGTERM)])

    before = signal.getsignal(signal.SIGTERM)
    (thread := threading.Thread(target=work)).start()
    thread.join()
    assert found == [False, before]


def test_a_link_to_nothing_is_in_the_way_of_a_file(tmp_path):
    (tmp_path / "x").symlink_to(tmp_path / "gone")
    with pytest.raises(InputError, match=r"x exists; give another --out or --overwrite\."):
        free_file(str(tmp_path / "x"), overwrite=False)
    assert free_file(str(tmp_path / "x"), overwrite=True) == tmp_path / "x"


def test_folders_of_a_file_to_write_are_made(tmp_path):
    for content in (b"old", b"new"):
        write_file(tmp_path / "a" / "b" / "x", content)
        assert (tmp_path / "a" / "b" / "x").read_bytes() == content
    with pytest.raises(InputError, match=r"/a/b/x/y cannot be written: File exists\."):
        write_file(tmp_path / "a" / "b" / "x" / "y", b"")


def test_a_folder_is_free_for_the_run_that_it_holds(tmp_path):
    queries = pd.DataFrame({"query_id": ["a"], "question": ["Who?"]})
    Run.create({"source": "live", "name": "Mine", "run_id": "r"}, queries=queries).save(tmp_path / "run")
    check_free("other", str(tmp_path / "new"), overwrite=False)
    check_free("r", str(tmp_path / "run"), overwrite=False)
    check_free("other", str(tmp_path / "run"), overwrite=True)
    with pytest.raises(InputError, match=r"/run already holds another run, 'Mine' \(r\): give another --out"):
        check_free("other", str(tmp_path / "run"), overwrite=False)


PROMPT = {"template": "Q\nA", "style": "short", "max_tokens": 24}


@pytest.mark.parametrize(
    ("more", "without", "time", "ends"),
    [
        ({}, "", "unknown; --time measures it", "An answer ends at a line break or after 24 tokens."),
        ({"n_without_passages": 1, "style": "full"}, " (1 of them without passages)", "unknown; --time measures it",
         "An answer ends after 24 tokens."),
        ({"seconds": 0.0}, "", "0 s", "An answer ends at a line break or after 24 tokens."),
        ({"calls": {}}, "", "unknown; --time measures it", None),
        ({"prompt": None}, "", "unknown; --time measures it", None),
    ],
)  # fmt: skip
def test_a_plan_is_told_line_by_line(more, without, time, ends):
    prompt = more.get("prompt", PROMPT | {"style": more.get("style", "short")})
    facts = {"dataset": "d", "n_questions": 1_000, "model": "m", "prompt": prompt}
    rows = pd.DataFrame({"item": ["Calls", "Tokens"], "count": [1_000, 2], "note": ["about", ""]})
    plan = {"n_without_passages": 0, "seconds": None, "calls": {"one": 1}} | more
    found = plan_text(SimpleNamespace(to_dict=lambda: facts, to_frame=lambda: rows, **plan)).split("\n")
    assert found[:5] == [
        f"d: 1,000 questions{without}, model m", "", f"  Calls{'1,000':>31}  about", f"  Tokens{2:>30}",
        f"  time{time:>32}" if len(time) < 12 else f"  time{' ' * 20}{time}",
    ]  # fmt: skip
    assert found[5:] == ([] if ends is None else ["", "Prompt:", "", "  | Q", "  | A", "", ends])


def test_a_simulation_has_the_sizes_of_its_help_and_replaces_no_run(tmp_path, monkeypatch, capsys):
    def refuse(pairs):
        raise InputError(str(pairs))

    queries = pd.DataFrame({"query_id": ["a"], "question": ["Who?"], "answer": ["Ann"]})
    Run.create({"source": "live", "name": "Mine"}, queries=queries).save(tmp_path / "run")
    small = ("--queries", "10", "--passages", "3", "--set", "repeats=0")
    assert main(["simulate", *small, "--out", str(tmp_path / "run")]) == 2
    assert "already holds another run, 'Mine'" in capsys.readouterr().err
    monkeypatch.setattr(core.sources.simulation, "options_from_pairs", refuse)
    assert main(["simulate", "--out", str(tmp_path / "new")]) == 2
    sizes = [("queries", "50"), ("passages", "10"), ("seed", "42")]
    assert capsys.readouterr().err == f"Error: {sizes}\n"


@pytest.mark.parametrize(("given", "limit"), [((), 50), (("--limit", "3"), 3)])
def test_fifty_questions_are_downloaded_in_their_order_unless_told_otherwise(
    given, limit, tmp_path, monkeypatch, capsys
):
    def load(*sizes, **options):
        raise InputError(f"{sizes} {options}")

    monkeypatch.setattr(core.sources.natural_questions, "load_natural_questions", load)
    assert main(["download", "nq", *given, "--out", str(tmp_path / "x")]) == 2
    asked = {"split": "validation", "seed": None, "source": None}
    assert capsys.readouterr().err == f"Error: ({limit},) {asked}\n"
    (tmp_path / "x").touch()
    assert main(["download", "nq", "--out", str(tmp_path / "x")]) == 2
    assert "exists; give another" in capsys.readouterr().err


@pytest.mark.parametrize("as_json", [False, True])
def test_a_download_says_what_it_wrote(as_json, tmp_path, monkeypatch, capsys):
    questions, out = tmp_path / "q.jsonl", tmp_path / "x"
    questions.write_text('{"question": "Who?", "passages": ["Ann."]}')
    data = open_dataset(str(questions), None)
    monkeypatch.setattr(core.sources.natural_questions, "load_natural_questions", lambda *_, **__: data)
    assert main(["download", "nq", "--out", str(out), *["--json"] * as_json]) == 0
    said, n = capsys.readouterr().out, out.stat().st_size
    if as_json:
        assert json.loads(said) == {"file": str(out), "questions": 1, "bytes": n}
    else:
        assert said == f"{out}: 1 questions, {n:,} bytes.\n"


@pytest.mark.parametrize(
    ("n", "more", "shown"),
    [(1_000, (), [False]), (1_000, ("--json",), [True]), (1_001, (), []), (1_001, ("--json",), [True])],
)
def test_a_simulation_is_measured_at_once_up_to_a_thousand_questions(
    n, more, shown, tmp_path, monkeypatch, capsys
):
    queries, found = pd.DataFrame({"query_id": ["a"], "question": ["Who?"]}), []
    run = Run.create({"source": "simulation", "name": "S", "run_id": "r"}, queries=queries)
    monkeypatch.setattr(core.sources.simulation, "simulate", lambda options: run)
    monkeypatch.setattr(core.cli.reading, "show", lambda run, given, as_json: found.append(as_json))
    out = str(tmp_path / "run")
    assert main(["simulate", "--queries", str(n), "--name", "Mine", "--out", out, *more]) == 0
    assert found == shown and Run.load(out).name == "Mine"
    assert capsys.readouterr().out == (
        "" if shown else f"Mine (SIMULATED DATA, run r): in {out}; see `python -m core summary`.\n"
    )


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ((), ("f.csv", "auto", None)),
        (("--name", "Mine", "--format", "csv", "--map", "a=b"), ("Mine", "csv", {"a": "b"})),
    ],
)
def test_what_an_import_is_told_reaches_the_reader(given, taken, monkeypatch, capsys):
    def refuse(path, *options):
        raise InputError(f"{path} {options}")

    monkeypatch.setattr(core.cli.app, "import_file", refuse)
    assert main(["import", "folder/f.csv", "--out", "x", *given]) == 2
    assert capsys.readouterr().err == f"Error: folder/f.csv {taken}\n"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ((), ("default", "x", None, False)),
        (("--cache", "c", "--name", "N", "--overwrite"), ("c", "x", "N", True)),
    ],
)
def test_what_a_live_run_is_told_reaches_it(given, taken, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(core.cli.app, "default_cache_path", lambda: "default")
    monkeypatch.setattr(core.cli.app, "opened_work", lambda source, given: SimpleNamespace(
        live=SimpleNamespace(cache=given["live"].get("cache"))))  # fmt: skip

    def refuse(work, cache, *options):
        raise InputError(f"{(cache.path.name, *options)}")

    monkeypatch.setattr(core.cli.app, "carried_out", refuse)
    monkeypatch.setattr(core.cli.app, "planned", lambda work, cache, *, timed: refuse(work, cache, timed))
    assert main(["analyze", "q", "--out", "x", *given]) == 2
    assert capsys.readouterr().err == f"Error: {taken}\n"
    for timed in (False, True):
        cache = given[:2]
        assert main(["plan", "q", *cache, *["--time"] * timed]) == 2
        assert capsys.readouterr().err == f"Error: {(taken[0], timed)}\n"


def test_the_dashboard_is_served_at_its_port(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(core.cli.app, "serve", lambda run, port, said: asked.append((run, port)))
    assert main(["dashboard"]) == main(["dashboard", "r", "--port", "65535"]) == 0
    for port in ("0", "65536"):
        assert main(["dashboard", "--port", port]) == 2
    assert asked == [(None, 8501), ("r", 65_535)]
