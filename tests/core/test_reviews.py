"""Reviews on disk: nothing is lost silently, whoever writes, and no file breaks the reader."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.reviews import LONGEST_NOTE, STATUSES, ChangedMeanwhile, Review, delete, path_of, read, write_all

ROOT = Path(__file__).parents[2]
RUN = "c1a7"


def write(folder, run_id, query_id, review, seen=None):
    return write_all(folder, run_id, {query_id: review}, {} if seen is None else {query_id: seen})


@given(st.dictionaries(st.text(max_size=20), st.tuples(st.sampled_from(STATUSES), st.text(max_size=200))))
@settings(max_examples=20, deadline=None)
def test_what_is_written_is_read_again(tmp_path_factory, noted):
    folder = tmp_path_factory.mktemp("runs")
    reviews = {query_id: Review(*entry) for query_id, entry in noted.items()}
    write_all(folder, RUN, reviews)
    assert read(folder, RUN) == {q: review for q, review in reviews.items() if review != Review()}


def test_half_a_surrogate_pair_becomes_a_sign_that_a_file_can_hold(tmp_path):
    write(tmp_path, RUN, "q1", Review("flagged", "a\ud800b"))
    assert read(tmp_path, RUN)["q1"].note == "a\ufffdb"


@pytest.mark.parametrize(
    ("status", "note"), [("done", ""), ("open", "x" * (LONGEST_NOTE + 1)), ("open", None), (None, "")]
)
def test_an_impossible_review_is_refused(status, note):
    with pytest.raises(InputError):
        Review(status, note)


@pytest.mark.parametrize("run_id", ["../../etc/passwd", "..", "a/b", "\0", "r" * 5_000, "\ud800", "", "ü"])
def test_no_run_id_leaves_the_folder_or_meets_another(run_id, tmp_path):
    path = path_of(tmp_path, run_id)
    assert path.parent == tmp_path / "reviews" and path != path_of(tmp_path, run_id + "x")
    write(tmp_path, run_id, "q1", Review("reviewed"))
    assert read(tmp_path, run_id) == {"q1": Review("reviewed")}


def test_nothing_noted_is_no_file_and_no_error(tmp_path):
    assert read(tmp_path, RUN) == {}
    delete(tmp_path, RUN)
    assert not list(tmp_path.iterdir())


def test_taking_a_review_back_takes_it_off_the_file(tmp_path):
    write(tmp_path, RUN, "q1", Review("flagged", "wrong"))
    write(tmp_path, RUN, "q1", Review())
    assert json.loads(path_of(tmp_path, RUN).read_text())["reviews"] == {}
    delete(tmp_path, RUN)
    assert read(tmp_path, RUN) == {} and not path_of(tmp_path, RUN).exists()


@pytest.mark.parametrize(
    "content",
    [
        "", "{", "[]", "null", "[" * 100_000, '{"run_id": "c1a7"}', '{"run_id": "c1a7", "reviews": []}',
        '{"run_id": "other", "reviews": {}}', '{"run_id": "c1a7", "reviews": {"q1": "reviewed"}}',
        '{"run_id": "c1a7", "reviews": {"q1": {"status": "done"}}}',
        '{"run_id": "c1a7", "reviews": {"q1": {"status": "open", "by": "me"}}}',
        '{"run_id": "c1a7", "reviews": {"q1": {"note": 5}}}', "\x00\xff",
    ],
)  # fmt: skip
def test_a_file_of_another_make_is_told_and_left_as_it_is(content, tmp_path):
    path = path_of(tmp_path, RUN)
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(InputError, match="reviews"):
        read(tmp_path, RUN)
    with pytest.raises(InputError, match="reviews"):
        write(tmp_path, RUN, "q1", Review("flagged"))
    assert path.read_text() == content


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "reviews").write_text("a file in the way")
    with pytest.raises(InputError, match="cannot be"):
        write(tmp_path, RUN, "q1", Review("flagged"))


def test_what_another_tab_wrote_is_not_replaced_unseen(tmp_path):
    write(tmp_path, RUN, "q1", Review("flagged", "theirs"))
    with pytest.raises(ChangedMeanwhile, match="theirs") as caught:
        write(tmp_path, RUN, "q1", Review("reviewed", "mine"), seen=Review())
    assert caught.value.stored == Review("flagged", "theirs") == read(tmp_path, RUN)["q1"]
    write(tmp_path, RUN, "q1", Review("reviewed", "mine"), seen=caught.value.stored)
    assert read(tmp_path, RUN)["q1"] == Review("reviewed", "mine")


def test_two_processes_that_write_at_once_lose_nothing(tmp_path):
    code = (
        "import sys; from core.reviews import Review, write_all\n"
        f"for i in range(15): write_all({str(tmp_path)!r}, {RUN!r}, {{sys.argv[1] + str(i): Review('reviewed', str(i))}})"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, name], cwd=ROOT) for name in "ab"]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    expected = {f"{name}{i}": Review("reviewed", str(i)) for name in "ab" for i in range(15)}
    assert read(tmp_path, RUN) == expected
