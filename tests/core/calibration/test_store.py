"""The store: nothing lost, nothing twice, nothing mixed, whatever happens to the process, the disk or the file."""

import math
import sqlite3
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pandas as pd
import pytest

from core.conformal import CalibrationCase, CalibrationStore, Provenance, StoreError
from core.errors import InputError
from core.llm import CompletionCache

ROOT = Path(__file__).parents[3]
SEEN = Provenance("length", "M · 1", "short · 2", "bm25 · 3")


def case(number, **values):
    given = {"question": f"Q{number}", "context": "C", "prediction": "P", "true_answer": "T"}
    return CalibrationCase(**{**given, "score": number / 10, "correct": True, **values})


def stored(path):
    with CalibrationStore(path) as store:
        return store.frame()["question"].tolist()


def test_rows_come_back_as_they_were(tmp_path):
    path = tmp_path / "new" / "c.db"
    hostile = "=1+1\x00\x1b[2J Đồng bằng 大运河"
    with CalibrationStore(path) as store:
        assert store.provenance is None and len(store) == 0 and store.frame().empty and store.usable().empty
        assert store.add([case(1, question=hostile, context="x" * 100_000, kind="who")], SEEN) == 1
        assert store.add([case(2, correct=False), case(3, correct=None, score=0.3)], SEEN) == 2
    with CalibrationStore(path, SEEN) as store:
        found = store.frame()
        assert store.provenance == SEEN and len(store) == 3
        assert store.has(hostile, "x" * 100_000) and store.has("Q2", "C")
        assert not store.has("Q2", "D") and not store.has("Q2C", "")
    assert found["question"].tolist() == [hostile, "Q2", "Q3"] and found["context"].str.len()[0] == 100_000
    assert found["nonconformity_score"].tolist() == [0.1, 0.2, 0.3]
    assert found["correct"].tolist() == [True, False, pd.NA] and found["kind"].tolist()[:1] == ["who"]
    assert found["kind"].isna().tolist() == [False, True, True] and found["excluded"].isna().all()
    assert found["id"].tolist() == [1, 2, 3] and found["true_answer"].tolist() == ["T"] * 3
    age = pd.Timestamp.now(tz="UTC") - pd.to_datetime(found["timestamp"])
    assert (age < pd.Timedelta(hours=1)).all() and (age > -pd.Timedelta(seconds=2)).all()


def test_question_and_context_do_not_run_into_each_other(tmp_path):
    with CalibrationStore(tmp_path / "c.db") as store:
        assert store.add([case(1, question="a|||b", context="c")], SEEN) == 1
        assert store.add([case(1, question="a", context="b|||c")], SEEN) == 1


def test_a_question_that_is_there_stays_as_it_was(tmp_path):
    with CalibrationStore(tmp_path / "c.db") as store:
        store.add([case(1), case(2)], SEEN)
        assert store.add([case(2, score=9.0), case(3), case(3, score=8.0)], SEEN) == 1
        assert store.frame()["nonconformity_score"].tolist() == [0.1, 0.2, 0.3]


def test_half_a_surrogate_pair_is_stored_and_found_again(tmp_path):
    with CalibrationStore(tmp_path / "c.db") as store:
        store.add([case(1, question="a\ud800")], SEEN)
        assert store.has("a\ud800", "C") and store.frame()["question"].tolist() == [
            "a\N{REPLACEMENT CHARACTER}"
        ]


def test_an_undefined_score_is_kept_and_calibrates_nothing(tmp_path):
    with CalibrationStore(tmp_path / "c.db") as store:
        assert store.add([case(1), case(2, score=math.nan, correct=None)], SEEN) == 2
        assert store.has("Q2", "C") and store.frame()["nonconformity_score"].isna().tolist() == [False, True]
        assert store.usable()["question"].tolist() == ["Q1"]


@pytest.mark.parametrize("score", [math.inf, -math.inf])
def test_an_infinite_score_is_refused_and_nothing_is_added(tmp_path, score):
    with CalibrationStore(tmp_path / "c.db") as store:
        with pytest.raises(InputError, match=rf"^The score of case 2 \('Q2'\) must be .* got {score}\.$"):
            store.add([case(1), case(2, score=score)], SEEN)
        assert len(store) == 0
        store.add([case(1)], SEEN)
    written(
        tmp_path / "c.db", f"UPDATE calibration_scores SET nonconformity_score = {'-' * (score < 0)}9e999"
    )
    with CalibrationStore(tmp_path / "c.db", SEEN) as store:
        assert store.usable().empty


def test_a_row_is_replaced_only_where_that_is_asked_for_and_stays_excluded(tmp_path):
    with CalibrationStore(tmp_path / "c.db") as store:
        store.add([case(1), case(2)], SEEN)
        store.exclude([2], "why")
        changed = [case(2, score=0.9, correct=False, true_answer="U", kind="who"), case(3)]
        assert store.add(changed, SEEN, replace=True) == 1
        found = store.frame()
    assert found["id"].tolist() == [1, 2, 3] and found["nonconformity_score"].tolist() == [0.1, 0.9, 0.3]
    assert found.loc[1, ["correct", "true_answer", "kind", "excluded"]].tolist() == [False, "U", "who", "why"]


def test_excluded_rows_stay_and_come_back(tmp_path):
    with CalibrationStore(tmp_path / "c.db") as store:
        store.add(map(case, range(1, 5)), SEEN)
        store.exclude([2, 4], "wrong reference answer")
        used = store.usable()
        assert used["question"].tolist() == ["Q1", "Q3"] and used.index.tolist() == [0, 1] and len(store) == 4
        assert used.columns.tolist() == store.frame().columns.tolist()
        assert store.usable(texts=False).columns.tolist() == [
            "query_hash", "nonconformity_score", "correct", "kind", "excluded"
        ]  # fmt: skip
        assert store.frame()["excluded"].tolist()[1] == "wrong reference answer"
        assert store.add([case(2)], SEEN) == 0
        store.include([2])
        assert store.usable()["id"].tolist() == [1, 2, 3]
        with pytest.raises(InputError, match="no row with the id 9"):
            store.exclude([1, 9], "typo")
        with pytest.raises(InputError, match="needs a reason"):
            store.exclude([1], " ")
        assert store.usable()["id"].tolist() == [1, 2, 3]


def test_a_store_keeps_one_method_the_last(tmp_path):
    with CalibrationStore(tmp_path / "c.db") as store:
        store.add([case(1)], SEEN)
        assert store.method is None
        store.add([case(2)], SEEN, method="first")
        assert store.method == "first"
        store.add([case(3)], SEEN, method="second")
        store.add([case(4)], SEEN)
        assert store.method == "second"


@pytest.mark.parametrize("part", ["score", "model", "prompt", "retriever"])
def test_scores_of_another_provenance_are_refused(tmp_path, part):
    path = tmp_path / "c.db"
    other = Provenance(
        **{"score": "length", "model": "M · 1", "prompt": "short · 2", "retriever": "bm25 · 3", part: "X"}
    )
    said = rf"calibrated with the {part} {getattr(SEEN, part)}, this one is X; .* choose another file"
    with CalibrationStore(path) as store:
        store.add([case(1)], SEEN)
        store.exclude([1], "excluded scores count, too")
        with pytest.raises(StoreError, match=said):
            store.add([case(2)], other)
        assert stored(path) == ["Q1"]
    with pytest.raises(StoreError, match=said):
        CalibrationStore(path, other)


def test_a_file_in_which_something_else_mixed_scores_is_refused(tmp_path):
    path = tmp_path / "c.db"
    with CalibrationStore(path) as store:
        store.add([case(1), case(2)], SEEN)
    written(path, "UPDATE calibration_scores SET model = 'N' WHERE id = 2")
    with pytest.raises(StoreError, match=r"mixes scores .* with the model (M · 1|N), this one is (M · 1|N)"):
        CalibrationStore(path, SEEN)


def written(path, *statements):
    db = sqlite3.connect(path)
    with db:
        for statement in statements:
            db.execute(statement)
    db.close()


def test_values_that_something_else_wrote_are_missing(tmp_path):
    path = tmp_path / "c.db"
    with CalibrationStore(path) as store:
        store.add(map(case, range(1, 4)), SEEN)
    written(
        path,
        "UPDATE calibration_scores SET nonconformity_score = 'high', correct = 7, timestamp = NULL WHERE id = 1",
        "UPDATE calibration_scores SET question = CAST(x'ff41' AS TEXT), kind = x'42' WHERE id = 2",
    )
    with CalibrationStore(path, SEEN) as store:
        found = store.frame()
        assert store.usable()["id"].tolist() == [2, 3]
    assert math.isnan(found["nonconformity_score"][0]) and pd.isna(found["correct"][0])
    assert pd.isna(found["timestamp"][0])
    assert found["question"][1] == "\N{REPLACEMENT CHARACTER}A" and found["kind"][1] == "B"


# Files made by other programs.

DOCUMENTED = """CREATE TABLE calibration_scores (
    id INTEGER PRIMARY KEY,
    query_hash TEXT UNIQUE,
    question TEXT,
    context TEXT,
    prediction TEXT,
    true_answer TEXT,
    nonconformity_score REAL,
    timestamp DATETIME
)"""
MADE = """CREATE TABLE calibration_scores (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    query_hash TEXT UNIQUE NOT NULL,
    question TEXT NOT NULL,
    predicted_answer TEXT NOT NULL,
    true_answer TEXT NOT NULL,
    nonconformity_score REAL NOT NULL,
    rouge_l REAL NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
)"""
OLD = {
    "documented": (
        DOCUMENTED,
        "INSERT INTO calibration_scores VALUES (7, 'a1', 'Who?', 'Text', 'Ada', 'Ada L.', 0.25, '2025-01-02 03:04:05')",
        "INSERT INTO calibration_scores VALUES (9, 'b2', NULL, NULL, '', 'x', 'none', NULL)",
    ),
    "made": (
        MADE,
        "CREATE INDEX idx_query_hash ON calibration_scores(query_hash)",
        "INSERT INTO calibration_scores VALUES (7, 'a1', 'Who?', 'Ada', 'Ada L.', 0.25, 0.75, '2025-01-02 03:04:05')",
    ),
}
TRUTH = Provenance("1 − ROUGE-L to the true answer", "unknown", "unknown", "unknown")


@pytest.mark.parametrize("made_by", OLD)
def test_files_of_rag_uq_are_migrated(tmp_path, made_by):
    path = tmp_path / "c.db"
    written(path, *OLD[made_by])
    with CalibrationStore(path) as store:
        assert store.provenance == TRUTH
        row = store.frame().iloc[0]
        assert store.usable()["id"].tolist() == [7]
        with pytest.raises(StoreError, match="calibrated with the score 1 − ROUGE-L to the true answer"):
            store.add([case(1)], SEEN)
        assert store.add([case(1)], TRUTH) == 1
    kept = ["id", "query_hash", "question", "prediction", "true_answer", "nonconformity_score", "timestamp"]
    assert row[kept].tolist() == [7, "a1", "Who?", "Ada", "Ada L.", 0.25, "2025-01-02 03:04:05"]
    assert row["context"] == "Text" if made_by == "documented" else pd.isna(row["context"])
    assert pd.isna(row["correct"]) and pd.isna(row["excluded"]) and pd.isna(row["kind"])
    with CalibrationStore(path, TRUTH) as again:
        assert len(again) == (3 if made_by == "documented" else 2)
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1"
    assert db.execute(tables).fetchall() == [
        ("calibration_method",),
        ("calibration_scores",),
        ("schema_version_calibration",),
    ]
    assert [name for _, name, *_ in db.execute("PRAGMA table_info(calibration_scores)")][:8] == [
        "id", "query_hash", "question", "context", "prediction", "true_answer", "nonconformity_score", "timestamp"
    ]  # fmt: skip
    db.close()


@pytest.mark.parametrize(
    "statement",
    ["DROP TABLE schema_version_calibration", "PRAGMA user_version = 0"],
    ids=["earlier", "later"],
)
def test_a_store_says_its_version_in_one_of_two_places(tmp_path, statement):
    path = tmp_path / "c.db"
    with CalibrationStore(path) as store:
        store.add([case(1)], SEEN, method="kept")
    written(path, statement)
    with CalibrationStore(path, SEEN) as store:
        assert store.add([case(2)], SEEN) == 1 and store.method == "kept"
    assert stored(path) == ["Q1", "Q2"]
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    db.close()


def test_two_processes_migrate_at_once(tmp_path):
    path = tmp_path / "c.db"
    rows = (
        f"INSERT INTO calibration_scores VALUES ({i}, 'h{i}', 'Q{i}', 'C', 'P', 'T', 0.5, '')"
        for i in range(300)
    )
    written(path, DOCUMENTED, *rows)
    code = (
        "import sys; from core.conformal import CalibrationStore; print(len(CalibrationStore(sys.argv[1])))"
    )
    both = [run(code, path) for _ in range(2)]
    assert [process.communicate() for process in both] == [("300\n", "")] * 2


@pytest.mark.parametrize("version", [2, 99])
def test_a_file_of_a_newer_version_is_refused_and_stays_as_it_is(tmp_path, version):
    path = tmp_path / "c.db"
    written(path, DOCUMENTED, f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(
        StoreError, match=rf"newer version of Leadline \(format {version}; .*update Leadline or"
    ):
        CalibrationStore(path)
    assert path.read_bytes() == before


FOREIGN = {
    "another table": ("CREATE TABLE moz_places (id INTEGER)", "PRAGMA user_version = 84"),
    "another table of this name": ("CREATE TABLE calibration_scores (id INTEGER, score REAL)",),
    "a column more": (DOCUMENTED, "ALTER TABLE calibration_scores ADD COLUMN model TEXT"),
    "another table of this name and version": (
        "CREATE TABLE calibration_scores (id INTEGER, score REAL)",
        "PRAGMA user_version = 1",
    ),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_database_of_another_program_is_refused_and_stays_as_it_is(tmp_path, kind):
    path = tmp_path / "c.db"
    written(path, *FOREIGN[kind])
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"c\.db is a database of another program.*another file"):
        CalibrationStore(path)
    assert path.read_bytes() == before


def test_a_completion_cache_is_no_calibration_store(tmp_path):
    CompletionCache(tmp_path / "c.db").close()
    with pytest.raises(StoreError, match="database of another program"):
        CalibrationStore(tmp_path / "c.db")


# Faults.


def run(code, *arguments, **options):
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=ROOT, **{**pipes, **options})


ADDING = """
    import sys
    from core.conformal import CalibrationStore, CalibrationCase, Provenance
    store = CalibrationStore(sys.argv[1])
    seen = Provenance("length", "M · 1", "short · 2", "bm25 · 3")
    for number in range(int(sys.argv[2])):
        for name in ("shared", sys.argv[3]):
            store.add([CalibrationCase(f"{name}-{number}", "C", "P", "T", number / 10, True)], seen)
        print(number, flush=True)
"""


def test_processes_and_threads_add_to_one_file_at_once(tmp_path):
    path = tmp_path / "c.db"
    workers = [run(ADDING, path, 40, name) for name in ("a", "b")]
    with CalibrationStore(path) as store:
        threads = [
            threading.Thread(
                target=lambda: [store.add([case(i, question=f"c-{i}")], SEEN) for i in range(40)]
            )
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        said = [worker.communicate() for worker in workers]
        assert [worker.returncode for worker in workers] == [0, 0], said
        found = store.frame()["question"]
    assert found.is_unique and len(found) == 4 * 40
    assert set(found) == {f"{name}-{i}" for name in ("shared", "a", "b", "c") for i in range(40)}


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of 256 KiB; None where no file system may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True
    )
    yield folder if mounted.returncode == 0 else None
    if mounted.returncode == 0:
        subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_said_and_loses_nothing(tmp_path, small_disk):
    path = (small_disk or tmp_path) / "c.db"
    store = CalibrationStore(path)
    if small_disk is None:  # SQLite raises the same error when the file may not grow
        store._db.execute("PRAGMA max_page_count = 20")
    finished = []
    with pytest.raises(
        StoreError, match=r"c\.db cannot be written because the disk is full; free some space or"
    ):
        for number in range(10_000):
            store.add([case(number, context="x" * 2000), case(number + 0.5, context="x" * 2000)], SEEN)
            finished += [f"Q{number}", f"Q{number + 0.5}"]
    assert len(finished) > 10
    assert store.frame()["question"].tolist() == finished
    store.close()
    assert stored(path) == finished


def test_a_disk_that_has_room_again_goes_on(tmp_path):
    with CalibrationStore(tmp_path / "c.db") as store:
        store._db.execute("PRAGMA max_page_count = 6")
        with pytest.raises(StoreError, match="disk is full"):
            store.add([case(1, context="x" * 50_000)], SEEN)
        store._db.execute("PRAGMA max_page_count = 1000")
        assert store.add([case(1, context="x" * 50_000)], SEEN) == 1
