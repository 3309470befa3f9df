"""Results kept beside a run: the same as computed ones, and computed anew whenever anything is not as it was."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import kept
from core.diagnosis import Diagnosis
from core.diagnostics import DIAGNOSTICS
from core.errors import RunFormatError
from core.kept import Kept, NotKept
from core.manifest import read_manifest
from core.run import RESULTS, Run, rename_run
from core.schema import TABLES
from core.socket import Diagnostic, Finding, Number, QuestionColumn, Setting, Tried
from core.worklist import worklist

RECORDED = Path("sample_data/recorded_run")
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    PLAIN,
    lambda inside: (
        st.lists(inside)
        | st.lists(inside).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inside)
        | st.frozensets(st.text())
        | st.builds(Number, st.text(), value=inside, n=st.none() | st.integers())
        | st.builds(Finding, st.text(), st.text(), st.integers(), st.integers(),
                    query_ids=st.lists(st.text()).map(tuple), otherwise=st.none())
    ),
    max_leaves=8,
)  # fmt: skip


@dataclass(frozen=True)
class Toy:
    queries: pd.DataFrame


@pytest.fixture
def made() -> list[str]:
    """What the diagnostic was asked to do."""
    return []


@pytest.fixture
def toy(made) -> Diagnostic:
    """A diagnostic that says of every question how long its answer is, with columns of every kind."""

    def analyse(diagnosis):
        made.append("analysed")
        ids = diagnosis.run.queries["query_id"]
        n = diagnosis.run.queries["answer"].str.len().astype("Int64")
        parts = pd.Series([[1.0, float(i)] if i % 3 else None for i in range(len(ids))], dtype="object")
        label = pd.Series(["odd" if i % 2 else None for i in range(len(ids))], dtype="str")
        frame = {"query_id": ids, "n": n, "long": n > diagnosis.settings["limit"], "parts": parts}
        return Toy(pd.DataFrame({**frame, "label": label, "share": n.astype("float64") / 3}))

    def findings(found):
        long = found.queries["query_id"][found.queries["long"].fillna(False)]
        return (Finding("long", "Some are long.", len(long), len(found.queries), (0.25, 0.5), 0.1, 0.001,
                        query_ids=tuple(long[::-1]), fix="length"),)  # fmt: skip

    return Diagnostic(
        name="toy", title="Toy", question="?", analyse=analyse, findings=findings,
        numbers=lambda found: (Number("mean", "Mean", found.queries["n"].mean(), n=len(found.queries)),
                               Number("kinds", value={"odd": 2})),
        columns=tuple(QuestionColumn(name, name, pattern) for name, pattern in (
            ("n", "{:d}"), ("long", "bool"), ("parts", "list"), ("label", "{}"), ("share", "{:.2f}"))),
        settings=(Setting("limit", "Limit", 20.0, "?", 0, 100),),
        tried=lambda _: {"length": Tried("untried", "Nobody tried.")},
    )  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """Six questions of the recorded run, with all that is known of them."""
    run = Run.load(RECORDED)
    ids = set(run.queries["query_id"].head(6))
    tables = {name: frame[frame["query_id"].isin(ids)] for name, frame in run.tables.items()}
    return run.derive(**tables).save(tmp_path_factory.mktemp("small") / "run")


@pytest.fixture(autouse=True)
def _key_of_its_own(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("LEADLINE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def folder(small, tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr("core.run.LARGE", 1)
    return Path(shutil.copytree(small, tmp_path / "run"))


def results(run: Run, toy: Diagnostic, **settings):
    found = Diagnosis(run, settings, [toy])
    return worklist(found), found.findings(), found.numbers("toy"), dict(found.tried("toy"))


def assert_same(one, other) -> None:
    pd.testing.assert_frame_equal(one[0], other[0])
    assert one[1:] == other[1:]


@given(VALUES)
def test_what_is_read_is_what_was_written(tmp_path_factory, value):
    place = Kept(tmp_path_factory.getbasetemp() / "kept", (Finding, Number))
    place.write("a result", value)
    found = place.read("a result")
    assert found == value and type(found) is type(value)


def test_what_would_come_back_as_something_else_is_not_kept(tmp_path):
    place = Kept(tmp_path / "kept", (Finding,))
    named = next(pd.DataFrame({"a": [1]}).itertuples())
    other_index = pd.DataFrame({"a": [1]}, index=[7])
    frames = [
        pd.DataFrame({"a": cells}) for cells in ([(1, 2)], [[1], ["a"]], [[True], [1]], [[2**70]], [1j])
    ]
    for value in (named, object(), other_index, *frames, Tried("helps", "It does.")):
        place.write("it", value)
        with pytest.raises(NotKept):
            place.read("it")


def test_a_result_and_its_frames_are_read_up_to_four_gigabytes(tmp_path, monkeypatch):
    place, limits = Kept(tmp_path / "kept", ()), []
    place.write("it", (pd.DataFrame({"a": [1]}),))
    monkeypatch.setattr(kept, "read_file", lambda path, limit: limits.append(limit) or path.read_bytes())
    assert place.read("it")[0]["a"].tolist() == [1] and limits == [4 * 10**9] * 2


def test_a_later_process_analyses_nothing_and_says_the_same(folder, toy, made):
    in_memory = results(Run.load(folder).derive(), toy)
    n = len(made)
    assert_same(results(Run.open(folder), toy), in_memory)
    assert len(made) == n + 1
    assert_same(results(Run.open(folder), toy), in_memory)
    assert len(made) == n + 1  # read, not computed


def test_other_settings_another_program_and_the_environment_are_computed_anew(folder, toy, made, monkeypatch):
    first = results(Run.open(folder), toy)
    other = results(Run.open(folder), toy, limit=3.0)
    assert other[1] != first[1] and len(made) == 2
    monkeypatch.setenv("RAG_CONFIDENCE_THRESHOLD", "0.7")
    assert_same(results(Run.open(folder), toy), first)
    assert len(made) == 3
    monkeypatch.setattr(kept, "program", lambda: "a later version")
    assert_same(results(Run.open(folder), toy), first)
    assert len(made) == 4


def test_a_change_in_the_program_is_another_program(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "_ROOT", tmp_path / "core")
    (tmp_path / "core").mkdir()
    source = tmp_path / "core" / "one.py"
    seen = set()
    for text in ("a = 1", "a = 2"):
        source.write_text(text)
        kept.program.cache_clear()
        seen.add(kept.program())
    monkeypatch.undo()
    kept.program.cache_clear()
    assert len(seen) == 2


@pytest.mark.parametrize("harm", [
    lambda path: path.write_bytes(path.read_bytes()[:-9]),
    lambda path: path.write_bytes(b"0" * 64 + b'\n{"tuple": []}'),
    lambda path: path.write_bytes(path.read_bytes().replace(b"0", b"1")),
    lambda path: path.write_bytes(b""),
    lambda path: path.unlink(),
    lambda path: (path.unlink(), path.mkdir()),
])  # fmt: skip
def test_damaged_and_foreign_files_are_computed_anew(folder, toy, made, harm):
    first = results(Run.open(folder), toy)
    files = [path for path in (folder / RESULTS).rglob("*") if path.is_file()]
    assert len(files) >= 5  # four results, a table, and the note that the run was checked
    for path in files:
        harm(path)
    assert_same(results(Run.open(folder), toy), first)
    assert len(made) == 2


def test_results_that_came_along_with_a_run_are_not_believed(folder, toy, made, tmp_path, monkeypatch):
    first = results(Run.open(folder), toy)
    monkeypatch.setenv("LEADLINE_CACHE", str(tmp_path / "of another user"))
    assert_same(results(Run.open(folder), toy), first)
    assert len(made) == 2
    assert (tmp_path / "of another user/results.key").stat().st_mode & 0o077 == 0


def test_nothing_is_kept_where_nothing_can_be_written(folder, toy, made):
    (folder / RESULTS).write_text("a file in its place")
    assert_same(results(Run.open(folder), toy), results(Run.open(folder), toy))
    assert len(made) == 2


def test_small_runs_and_runs_in_memory_keep_nothing(folder, toy, monkeypatch):
    results(Run.load(folder).derive(), toy)
    assert Diagnosis(Run.load(folder)).keeps and not Diagnosis(Run.load(folder).derive()).keeps
    monkeypatch.setattr("core.run.LARGE", 1_000)
    results(Run.open(folder), toy)
    assert not (folder / RESULTS).exists()


def test_old_sets_of_results_go_and_a_run_saved_anew_has_none(folder, toy):
    for limit in range(10):
        results(Run.open(folder), toy, limit=float(limit))
    assert sum(path.is_dir() for path in (folder / RESULTS).iterdir()) == 8
    Run.load(folder).renamed("Another name").save(folder)
    assert not (folder / RESULTS).exists()


def test_under_another_name_a_run_keeps_its_files_and_what_was_computed_of_it(folder, toy):
    before = results(Run.open(folder), toy)

    def files():
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*.parquet")}

    kept = files()
    assert len({path.parent for path in kept}) > 1
    rename_run(folder, "Another name")
    assert Run.open(folder).name == Run.load(folder).name == "Another name" and files() == kept
    assert_same(results(Run.open(folder), toy), before)
    assert files() == kept


def test_only_a_run_that_can_be_read_gets_another_name(tmp_path):
    with pytest.raises(RunFormatError, match="is not a saved run"):
        rename_run(tmp_path / "none", "Another name")
    assert not (tmp_path / "none").exists()


def test_a_run_opened_again_reads_a_table_when_it_is_used(folder):
    whole = Run.open(folder)
    again = Run.open(folder)
    assert not again.tables._frames and len(whole.tables._frames) == len(whole.tables)
    for one in DIAGNOSTICS:
        assert one.lacks(again) == one.lacks(whole), one.name
    for name in whole:
        lists = {column.name for column in TABLES[name].columns if column.type == "list"}
        fresh = Run.open(folder)
        assert fresh.n_rows(name) == len(whole[name])
        for column in set(whole[name]) - lists:
            assert fresh.has(name, column) == whole[name][column].notna().any(), (name, column)
        assert name not in fresh.tables._frames
        for column in set(whole[name]) & lists:
            assert fresh.has(name, column) == whole[name][column].notna().any(), (name, column)
        pd.testing.assert_frame_equal(again[name], whole[name])


def test_an_opened_run_outlives_its_files(folder):
    Run.open(folder)
    run = Run.open(folder)
    shorter = {name: frame.iloc[:0] for name, frame in run.tables.items() if name != "queries"}
    Run.load(folder).derive(**shorter).save(folder)
    assert len(run.passages) > 0 == len(Run.open(folder).passages)


def test_a_table_changed_since_it_was_checked_is_checked_again(folder):
    Run.open(folder)
    path = folder / read_manifest(folder)["tables"]["passages"]["file"]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(bytes(content))
    with pytest.raises(RunFormatError, match="is not the file that was saved"):
        Run.open(folder)


def test_the_kept_and_the_computed_result_have_the_types_of_the_socket(folder, toy):
    results(Run.open(folder), toy)
    _, findings, numbers, tried = results(Run.open(folder), toy)
    assert isinstance(findings[0], Finding) and findings[0].query_ids == replace(findings[0]).query_ids
    assert type(findings[0].interval) is tuple and type(numbers[1].value) is dict
    assert tried == {"length": Tried("untried", "Nobody tried.")}
