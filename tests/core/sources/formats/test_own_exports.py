"""Every export is read back to the same table, or says what it is: one rule for all of them."""

import io

import pandas as pd
import pytest

from core.cli import main
from core.diagnosis import Diagnosis
from core.errors import InputError
from core.report.exports import exporters
from core.run import Run
from core.sources.formats import FORMATS, import_file
from core.sources.formats.exported import READ, SUMMARIES
from core.sources.templates import TEMPLATES, template_csv

WHOLE = ("csv", "verdicts-csv")  # all that they have is a run's, or follows from that
# What is computed, and comes out equal from what the file holds.
FOLLOWS = {
    "samples-csv": "status meaning n_same agreement is_consensus",
    "claims-csv": "relevant state uncertainty support_maximum any_support joint quadrant support_threshold",
    "conformal-csv": "score p_value drift_p verdict answered reason",
    "confidence-csv": "confidence raw_confidence judged_confidence band passes conformal_uncertainty "
    "mc_confidence is_reliable reason signal.similarity signal.lexical signal.llm",
}
NO_TABLE = ("html",)  # the report, for people
WRITTEN = tuple(name for name, one in FORMATS.items() if one.write is not None)


def table(data):
    return pd.read_csv(io.BytesIO(data), dtype="str", keep_default_na=False, encoding="utf-8-sig")


def written(name, run):
    return exporters()[name].write(Diagnosis(run))


@pytest.fixture(scope="module")
def exported():
    short, facts = (Diagnosis(Run.load(f"sample_data/recorded_run_{name}")) for name in ("short", "facts"))
    # Only the facts were measured with subsets of their passages.
    return {
        name: export.write(facts if name.startswith("attribution") else short)
        for name, export in exporters().items()
    }


def back(data, name):
    imported = import_file(data, "f" + exporters()[name].ending)
    assert imported.report.n_rejected == 0 and not imported.report.issues and not imported.report.ignored
    return imported


def test_a_table_decides_for_every_export(exported):
    assert set(exported) == {*WHOLE, *WRITTEN, *READ, *SUMMARIES, *NO_TABLE}


@pytest.mark.parametrize("name", WHOLE)
def test_a_table_of_what_a_run_holds_comes_back_whole(exported, name):
    imported = import_file(exported[name], "f.csv")
    assert imported.report.n_rejected == 0 and not imported.report.issues
    again = table(written(name, imported.run))
    pd.testing.assert_frame_equal(
        again.drop(columns="data_source"), table(exported[name]).drop(columns="data_source")
    )


@pytest.mark.parametrize("name", READ)
def test_columns_of_the_schema_come_back_and_the_others_are_named_and_computed(exported, name):
    imported = back(exported[name], name)
    first, again = table(exported[name]), table(written(name, imported.run))
    (note,) = (one for one in imported.report.notes if one.startswith("Not held by a run"))
    left = note.removesuffix(".").partition(": ")[2].split(", ")
    held = [column for column in first.columns.drop("data_source") if column not in left]
    assert {"query_id", "question"} < set(held) and not set(left) - set(first)
    # No column became a signal that the run never had.
    assert {*imported.run["reported"]["name"]} <= {"correct", "confidence"} & {*held, "correct"}
    columns = [*held, *FOLLOWS.get(name, "").split()]
    by = [column for column in held if column.endswith("_id")]
    first, again = (frame.sort_values(by)[columns].reset_index(drop=True) for frame in (first, again))
    pd.testing.assert_frame_equal(first, again)


@pytest.mark.parametrize("name", WRITTEN)
def test_files_of_other_tools_come_back(exported, name):
    assert written(name, back(exported[name], name).run) == exported[name]


@pytest.mark.parametrize("name", SUMMARIES)
def test_what_holds_no_questions_says_what_it_is(exported, name):
    with pytest.raises(InputError) as raised:
        import_file(exported[name], "f" + exporters()[name].ending)
    what = SUMMARIES[name][1]
    assert str(raised.value) == (
        f"{'f' + exporters()[name].ending} is the export {name} of this program ({what}): it holds no questions, "
        "so it cannot be opened as a run."
    )


def test_halves_labels_and_pairs_of_passages_come_back(exported):
    run = Run.load("sample_data/recorded_run_short")
    again = import_file(exported["conformal-csv"], "f.csv").run
    halves = run.queries["calibrates"].where(again.queries["correct"].notna())  # the others have no role
    assert again.queries["calibrates"].equals(halves)
    before, after = (Diagnosis(one)["answers"].queries["correct"] for one in (run, again))
    assert before.equals(after) and before.notna().any()
    pairs = import_file(exported["claims-csv"], "f.csv").run["joint_support"]
    pairs, before = (
        frame.sort_values([*frame][:4], ignore_index=True) for frame in (pairs, run["joint_support"])
    )
    pd.testing.assert_frame_equal(pairs, before)


def test_confidences_of_an_imported_file_come_back_under_their_names():
    run = import_file(
        b"question,answer,p_confidence,correct\nWho?,Ada,0.25,1\nWhen?,1815,0.75,0\n", "f.csv"
    ).run
    again = back(written("confidence-csv", run), "confidence-csv").run
    pd.testing.assert_frame_equal(again["confidences"], run["confidences"])


def test_columns_that_a_user_put_behind_the_mark_stay_theirs(exported):
    lines = exported["conformal-csv"].decode("utf-8-sig").splitlines()
    data = "\n".join([f"{lines[0]},colour", *(f"{line},red" for line in lines[1:])]).encode()
    run = import_file(data, "f.csv").run
    assert set(run["reported"]["name"]) == {"correct", "confidence", "colour"}


@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_template_is_read_without_a_remark_by_the_columns_that_it_explains(kind):
    text = template_csv(kind)
    imported = import_file(text.encode(), f"{kind}.csv")
    assert imported.report.n_issues == 0 and not imported.report.ignored
    comments, header = text.splitlines()[1:], next(line for line in text.splitlines() if line[0] != "#")
    explained = [line[2:].partition(":")[0] for line in comments if line[0] == "#"]
    assert explained == header.split(",")


def test_signals_of_a_template_are_signals():
    run = import_file(template_csv("signals").encode(), "f.csv").run
    assert run["signals"][["similarity", "llm_score"]].to_numpy().tolist() == [
        [0.82, 0.9],
        [0.64, 0.3],
        [0.41, 0.7],
    ]
    assert run["confidences"]["name"].unique().tolist() == ["confidence"]


def test_a_template_is_printed_in_place_of_an_import(capsys):
    assert main(["import", "--template", "claims"]) == 0
    assert capsys.readouterr().out == template_csv("claims")


def test_there_is_no_other_template():
    with pytest.raises(InputError, match=r"must be one of influence, labels, signals, .*, got 'nope'"):
        template_csv("nope")
