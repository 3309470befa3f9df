"""The commands that read saved runs: what each prints, writes and fails on."""

import json

import pandas as pd
import pytest

from core.cli import main
from core.reviews import Review, write_all
from core.run import Run


def command(*arguments):
    return main([str(a) for a in arguments])


def saved(folder, answers):
    ids = [f"q{i}" for i in range(len(answers))]
    queries = pd.DataFrame({
        "query_id": ids, "question": [f"Is it {one}?" for one in ids], "answer": answers,
        "answer_status": "answered", "reference_answers": [["yes"]] * len(ids),
    })  # fmt: skip
    return Run.create({"source": "upload", "name": folder.name}, queries=queries).save(folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder of two runs: all of eight answers were correct before, two are now; one is labelled in reviews."""
    folder = tmp_path_factory.mktemp("runs")
    before = saved(folder / "before", ["yes"] * 8)
    saved(folder / "now", ["yes"] * 2 + ["no"] * 6)
    write_all(folder, Run.load(before).whole_id, {"q1": Review("reviewed", correct=False)}, person="Ada")
    return folder


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ("summary B", 0), ("compare B N", 0), ("signals B", 0), ("check B", 0), ("check N --against B", 1),
        ("trend R", 0), ("report B --out F", 0), ("export B --out F", 0), ("labels B --out D", 0),
    ],
)  # fmt: skip
def test_text_is_printed_unless_json_is_asked_for_and_nothing_replaced_unasked(
    arguments, status, runs, tmp_path, capsys
):
    places = {"R": runs, "B": runs / "before", "N": runs / "now", "D": tmp_path / "d", "F": tmp_path / "f"}
    filled = [places.get(one, one) for one in arguments.split()]
    assert command(*filled) == status
    assert not capsys.readouterr().out.startswith("{")
    if "F" in arguments:
        assert command(*filled) == 2
        assert "exists; give another --out or --overwrite." in capsys.readouterr().err


def test_labels_of_reviews_become_a_run_that_replaces_no_other_one(runs, tmp_path, capsys):
    assert command("labels", runs / "before", "--out", runs / "now") == 2
    assert "already holds another run, 'now'" in capsys.readouterr().err
    assert command("labels", runs / "before", "--out", tmp_path / "new") == 0
    assert capsys.readouterr().out == "1 of 8 questions labelled by 1 person.\n"
    assert command("labels", runs / "before", "--out", tmp_path / "new", "--json") == 0
    run = Run.load(tmp_path / "new")
    assert json.loads(capsys.readouterr().out) == {
        "run_id": run.run_id, "n_labelled": 1, "n_tied": 0, "people": ["Ada"],
    }  # fmt: skip
    assert not run.queries["correct"][1] and run.queries["correct_by"][1] == "Ada"


def test_check_against_a_baseline_leaves_findings_out_unless_a_severity_is_given(runs, tmp_path, capsys):
    against = ("check", runs / "now", "--against", runs / "before")
    assert command(*against) == 1
    said = capsys.readouterr().out
    assert "the loss of 75 points is significant and larger than the 5 points allowed." in said
    assert "of severity" not in said
    assert command(*against, "--max-loss", 0.75, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["passed"] is True and "findings" not in facts
    # Of the two checks one fails, which is enough.
    more = ("--max-loss", 0.75, "--severity", "medium", "--json")
    files = ("--junit", tmp_path / "made" / "j.xml", "--markdown", tmp_path / "m.md")
    assert command(*against, *more, *files) == 1
    facts = json.loads(capsys.readouterr().out)
    assert (facts["passed"], facts["findings"]["passed"], facts["findings"]["severity"]) == (
        False, False, "medium",
    )  # fmt: skip
    assert (facts["n_correct"], facts["max_loss"]) == (2, 0.75), "of the comparison, beside the findings"
    assert (tmp_path / "made" / "j.xml").read_text().count("<failure ") == 2
    assert "75 points" in (tmp_path / "m.md").read_text()


def test_how_many_runs_a_command_takes(runs, tmp_path, capsys):
    assert command("compare", runs / "before") == 2
    assert "Give at least two runs to compare, got one." in capsys.readouterr().err
    out = tmp_path / "r.html"
    assert command("report", *[runs / "before"] * 3, "--out", out) == 2
    assert "Give one run, or two to compare, got 3." in capsys.readouterr().err
    assert command("report", runs / "now", runs / "before", "--out", out, "--json") == 0
    facts = {"file": str(out), "run_id": Run.load(runs / "now").run_id, "bytes": out.stat().st_size}
    assert json.loads(capsys.readouterr().out) == facts
