"""The metrics store: what went in comes out, each answer once, whoever else writes."""

import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from core.conformal import CalibrationStore
from core.validation import Code, Observation, windowed
from core.validation.metrics import daily
from core.validation.store import MetricsError, MetricsStore, answer_key

ROOT = Path(__file__).parents[3]
NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def seen(hours=0.0, key=None, passed=True, **values):
    given = {"critical": False, "confidence": 0.9, "overlap": None, "used_fallback": False} | values
    return Observation(
        NOW - timedelta(hours=hours), passed, expressed_uncertainty=False, reasons=(), key=key, **given
    )


def test_rows_come_back_as_they_were_in_the_order_of_their_times(tmp_path):
    full = Observation(
        NOW,
        False,
        True,
        0.1,
        0.25,
        True,
        True,
        (Code.MISSING_CITATION, Code.OVERCONFIDENT),
        answer_key("a", "b"),
    )
    early = seen(1, overlap=0.0)
    with MetricsStore(tmp_path / "new" / "m.db") as store:
        assert store.add([full, early]) == 2
    with MetricsStore(tmp_path / "new" / "m.db") as store:
        assert store.between(LONG_AGO, NOW) == [early, full]


def test_a_time_of_another_zone_is_the_same_time(tmp_path):
    there = NOW.astimezone(timezone(timedelta(hours=7)))
    with MetricsStore(tmp_path / "m.db") as store:
        store.add([Observation(there, True, False, 0.9, None, False, False, ())])
        assert [one.at for one in store.between(NOW - timedelta(seconds=1), NOW)] == [NOW]


def test_the_start_is_left_out_and_the_end_is_in(tmp_path):
    with MetricsStore(tmp_path / "m.db") as store:
        store.add([seen(0), seen(1), seen(2)])
        assert store.between(NOW - timedelta(hours=2), NOW - timedelta(hours=1)) == [seen(1)]


def test_an_answer_with_a_key_counts_once_and_one_without_always(tmp_path):
    with MetricsStore(tmp_path / "m.db") as store:
        assert store.add([seen(0, "a"), seen(1, "a"), seen(0, "b")]) == 2
        assert store.add([seen(2, "b"), seen(0), seen(0)]) == 2
        assert [one.key for one in store.between(LONG_AGO, NOW)] == ["a", "b", None, None]


def test_the_parts_of_a_key_do_not_run_into_each_other():
    assert answer_key("ab", "c") != answer_key("a", "bc") and answer_key("\ud800", "x")


def test_windows_and_days_count_what_is_stored(tmp_path):
    ages = (1, 11, 13, 24 * 6, 24 * 29, 24 * 31)
    with MetricsStore(tmp_path / "m.db") as store:
        store.add([seen(age, passed=age != 13) for age in ages])
        stored = store.between(NOW - timedelta(days=30), NOW)
    found = windowed(stored, NOW)
    assert {days: one.passed.n for days, one in found.items()} == {1: 3, 7: 4, 30: 5}
    assert found[1].passed.count == 2
    # 23 November 12:00: eleven hours ago is the same day in UTC, thirteen hours ago the day before.
    days = daily(stored, NOW, 7)
    assert [day.day for day in days] == [17, 18, 19, 20, 21, 22, 23]
    assert [one.passed.n for one in days.values()] == [1, 0, 0, 0, 0, 1, 2]
    assert daily([seen(-1)], NOW, 1)[NOW.date()].passed.n == 0, "what is later than now has not happened"


def test_a_file_of_something_else_stays_as_it_is(tmp_path):
    (tmp_path / "notes.txt").write_text("no database " * 100)
    with pytest.raises(MetricsError, match="is not a metrics store"):
        MetricsStore(tmp_path / "notes.txt")
    CalibrationStore(tmp_path / "c.db").close()
    before = (tmp_path / "c.db").read_bytes()
    with pytest.raises(MetricsError, match="no metrics store"):
        MetricsStore(tmp_path / "c.db")
    assert (tmp_path / "c.db").read_bytes() == before


def test_a_file_has_its_version_and_one_of_a_newer_version_stays_as_it_is(tmp_path):
    path = tmp_path / "m.db"
    MetricsStore(path).close()
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchall() == [(1,)]
    db.execute("PRAGMA user_version = 2")
    db.close()
    before = path.read_bytes()
    with pytest.raises(MetricsError, match="no metrics store that this version of Leadline can read"):
        MetricsStore(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("at", "confidence", "overlap"),
    [("2026-1x", 0.9, None), ("2026-11-22", 0.9, None), ("2026-11-22T12:00:00+00:00", "high", None),
     ("2026-11-22T12:00:00+00:00", 1e308, None), ("2026-11-22T12:00:00+00:00", 0.9, -1)],
)  # fmt: skip
def test_a_row_that_cannot_be_read_is_said(tmp_path, at, confidence, overlap):
    MetricsStore(tmp_path / "m.db").close()
    with sqlite3.connect(tmp_path / "m.db") as db:
        db.execute(
            "INSERT INTO observations VALUES (?, 1, 0, ?, ?, 0, 0, 'news', NULL)", (at, confidence, overlap)
        )
    db.close()
    with MetricsStore(tmp_path / "m.db") as store, pytest.raises(MetricsError, match="cannot be read"):
        store.between(LONG_AGO, datetime(2030, 1, 1, tzinfo=UTC))


def test_a_reason_of_a_newer_version_is_another_one(tmp_path):
    MetricsStore(tmp_path / "m.db").close()
    with sqlite3.connect(tmp_path / "m.db") as db:
        at = NOW.isoformat(timespec="microseconds")
        db.execute(f"INSERT INTO observations VALUES ('{at}', 0, 0, 0.9, NULL, 0, 0, 'news', NULL)")
    db.close()
    with MetricsStore(tmp_path / "m.db") as store:
        assert store.between(LONG_AGO, NOW)[0].reasons == (Code.OTHER,)


WRITER = """
import sys
from datetime import datetime, UTC
from core.validation import Observation
from core.validation.store import MetricsStore
at = datetime(2026, 11, 23, tzinfo=UTC)
for i in range(40):
    with MetricsStore(sys.argv[1]) as store:
        store.add([Observation(at, True, False, 0.9, None, False, False, (), f"{i}"),
                   Observation(at, True, False, 0.9, None, False, False, (), None)])
"""


def test_several_processes_lose_nothing_and_count_nothing_twice(tmp_path):
    path = tmp_path / "m.db"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path)], cwd=ROOT) for _ in range(3)]
    assert [one.wait(timeout=120) for one in writers] == [0, 0, 0]
    with MetricsStore(path) as store:
        keys = [one.key for one in store.between(LONG_AGO, NOW)]
    assert keys.count(None) == 120 and sorted(set(keys) - {None}) == sorted(map(str, range(40)))
    assert len(keys) == 160
