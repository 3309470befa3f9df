"""Reviews on disk: nothing is lost silently, whoever writes, and no file breaks the reader."""

from __future__ import annotations

import hashlib
import json

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.cli.app import main
from core.errors import InputError
from core.reviews import (
    LONGEST_NOTE,
    READER,
    STATUSES,
    ChangedMeanwhile,
    Review,
    ReviewStore,
    agreements,
    combined,
    delete,
    disputed,
    labelled,
    path_of,
    read,
    read_all,
    write_all,
)
from core.run import Run
from core.text.matching import correctness

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


def test_a_status_and_a_note_that_are_refused_are_told_what_may_be():
    with pytest.raises(InputError, match=r"^A status is one of open, reviewed, flagged, not 'done'\.$"):
        Review("done")
    assert Review(note="x" * 5_000).note == "x" * 5_000
    with pytest.raises(InputError, match=r"^A note is a text of at most 5,000 characters\.$"):
        Review(note="x" * 5_001)


@pytest.mark.parametrize(
    ("correct", "grounded", "labels"),
    [
        (None, None, ()),
        (True, None, ("correct",)),
        (False, None, ("incorrect",)),
        (None, True, ("grounded",)),
        (None, False, ("not grounded",)),
        (False, True, ("incorrect", "grounded")),
    ],
)
def test_labels_in_words(correct, grounded, labels):
    assert Review("reviewed", "", correct, grounded).labels == labels


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (Review("flagged", "wrong", False, True), "flagged, incorrect, grounded with the note “wrong”."),
        (Review("reviewed"), "reviewed without a note."),
    ],
)
def test_a_change_in_another_tab_is_told_in_words(stored, said):
    assert str(ChangedMeanwhile(stored)) == f"This review was changed in another tab meanwhile: it is {said}"


@pytest.mark.parametrize("label", [{"correct": 1}, {"grounded": "yes"}])
def test_an_impossible_label_is_refused(label):
    with pytest.raises(InputError, match="true, false or absent"):
        Review("reviewed", **label)


@pytest.mark.parametrize("run_id", ["../../etc/passwd", "..", "a/b", "\0", "r" * 5_000, "\ud800", "", "ü"])
def test_no_run_id_leaves_the_folder_or_meets_another(run_id, tmp_path):
    path = path_of(tmp_path, run_id)
    assert path.parent == tmp_path / "reviews" and path != path_of(tmp_path, run_id + "x")
    write(tmp_path, run_id, "q1", Review("reviewed"))
    assert read(tmp_path, run_id) == {"q1": Review("reviewed")}


@pytest.mark.parametrize(
    ("run_id", "name"),
    [
        ("r" * 60, "r" * 60),
        ("r" * 61, "r" * 60 + "-" + hashlib.sha256(b"r" * 61).hexdigest()[:8]),
        ("A_b-9/", "A_b-9--" + hashlib.sha256(b"A_b-9/").hexdigest()[:8]),
    ],
)
def test_a_file_bears_the_run_id_unless_that_is_long_or_no_name(run_id, name, tmp_path):
    assert path_of(tmp_path, run_id) == tmp_path / "reviews" / f"{name}.json"


def test_nothing_noted_is_no_file_and_no_error(tmp_path):
    assert read(tmp_path, RUN) == {}
    delete(tmp_path, RUN)
    assert not list(tmp_path.iterdir())


def test_a_review_that_was_taken_back_is_none(tmp_path):
    write(tmp_path, RUN, "q1", Review("flagged", "wrong"))
    write(tmp_path, RUN, "q1", Review())
    assert read_all(tmp_path, RUN) == {}


# Files of earlier versions: JSON, one for each run, of one reader.


def earlier(folder, **reviews):
    path = path_of(folder, RUN)
    path.parent.mkdir()
    path.write_text(json.dumps({"run_id": RUN, "reviews": reviews}))
    return path


def test_a_file_of_an_earlier_version_is_read_and_with_the_first_review_taken_over(tmp_path):
    path = earlier(tmp_path, q1={"status": "flagged", "note": "a"}, q2={"status": "reviewed", "note": ""})
    before = {"q1": Review("flagged", "a"), "q2": Review("reviewed")}
    assert read_all(tmp_path, RUN) == {READER: before} and list(tmp_path.rglob("*.*")) == [path]
    write_all(tmp_path, RUN, {"q1": Review("flagged", "b")}, person="Ada")
    assert read_all(tmp_path, RUN) == {"Ada": {"q1": Review("flagged", "b")}, READER: before}
    assert not path.exists()
    write(tmp_path, RUN, "q2", Review(), seen=Review("reviewed"))
    assert read(tmp_path, RUN) == {"q1": Review("flagged", "a")}
    delete(tmp_path, RUN)
    assert read_all(tmp_path, RUN) == {} and not list(tmp_path.rglob("*json*"))


def test_what_is_stored_goes_before_a_file_that_could_not_be_taken_away(tmp_path):
    write(tmp_path, RUN, "q1", Review("reviewed"))
    path_of(tmp_path, RUN).write_text(
        json.dumps({"run_id": RUN, "reviews": {"q1": {"status": "flagged"}, "q2": {"status": "flagged"}}})
    )
    expected = {"q1": Review("reviewed"), "q2": Review("flagged")}
    assert read(tmp_path, RUN) == expected
    write(tmp_path, RUN, "q3", Review("reviewed"))
    assert read(tmp_path, RUN) == {**expected, "q3": Review("reviewed")}


def test_another_tab_is_told_what_a_file_of_an_earlier_version_says(tmp_path):
    path = earlier(tmp_path, q1={"status": "flagged", "note": "theirs"})
    with pytest.raises(ChangedMeanwhile, match="theirs"):
        write(tmp_path, RUN, "q1", Review("reviewed"), seen=Review())
    assert path.exists() and read(tmp_path, RUN) == {"q1": Review("flagged", "theirs")}


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


def test_a_folder_that_cannot_be_looked_at_is_told(tmp_path):
    """Nobody may take it for one without reviews."""
    folder = tmp_path / ("x" * 300)  # longer than a name may be
    for look in (read, read_all, delete):
        with pytest.raises(InputError, match="file of reviews"):
            look(folder, RUN)


def test_many_reviews_are_written_at_once_and_none_twice(tmp_path):
    reviews = {f"q{i}": Review("reviewed", str(i)) for i in range(1_001)}
    write_all(tmp_path, RUN, reviews)
    with pytest.raises(ChangedMeanwhile):
        write_all(tmp_path, RUN, reviews | {"q1000": Review("flagged")}, {"q1000": Review()})
    write_all(tmp_path, RUN, reviews | {"q0": Review("flagged")})
    assert read(tmp_path, RUN) == reviews | {"q0": Review("flagged")}
    with ReviewStore(tmp_path) as store:
        assert store._db.execute("SELECT count(*) FROM reviews") == [(1_002,)]


def test_what_another_tab_wrote_is_not_replaced_unseen(tmp_path):
    write(tmp_path, RUN, "q1", Review("flagged", "theirs"))
    with pytest.raises(ChangedMeanwhile, match="theirs") as caught:
        write(tmp_path, RUN, "q1", Review("reviewed", "mine"), seen=Review())
    assert caught.value.stored == Review("flagged", "theirs") == read(tmp_path, RUN)["q1"]
    write(tmp_path, RUN, "q1", Review("reviewed", "mine"), seen=caught.value.stored)
    assert read(tmp_path, RUN)["q1"] == Review("reviewed", "mine")


# Several people.


def of(**labels):
    return {query_id: Review("reviewed", correct=label) for query_id, label in labels.items()}


def test_agreement_is_over_what_both_said():
    people = {
        "Ben": {"q1": Review("flagged", correct=True), "q2": Review("flagged"), "q3": Review("open", "a note")},
        "Ada": {"q1": Review("flagged"), "q2": Review("reviewed", correct=True), "q3": Review("flagged"), "q4": Review("flagged")},
        "Cem": {"q1": Review("flagged"), "q2": Review("flagged")},
    }  # fmt: skip
    found = {(one.first, one.second, one.what): one.kappa for one in agreements(people)}
    # Ada and Ben share q1 (alike) and q2: agreed 1/2, by chance 1/2 · 1 + 1/2 · 0.
    assert found["Ada", "Ben", "status"].n == 2 and found["Ada", "Ben", "status"].value == 0.0
    assert found["Ada", "Ben", "correct"].reason == "fewer than 2 cases judged by both"
    assert found["Ben", "Cem", "status"].reason == "both use one category only"
    # Cem gave no label: none that Ada or Ben gave can be compared with one of his.
    assert found["Ada", "Cem", "correct"].n == found["Ben", "Cem", "correct"].n == 0
    pairs = [("Ada", "Ben"), ("Ada", "Cem"), ("Ben", "Cem")]
    assert [*found] == [(*pair, what) for pair in pairs for what in ("status", "correct")]
    assert disputed(people) == {"q2"}
    assert disputed({"Ada": of(q1=True, q2=True), "Ben": of(q1=False, q2=None)}) == {"q1"}


def test_one_review_for_each_question():
    ada = {
        "q1": Review("reviewed", "Fine.", correct=True, grounded=True),
        "q2": Review("flagged", "x" * LONGEST_NOTE),
    }
    ben = {
        "q1": Review("flagged", "No.", correct=False, grounded=True),
        "q2": Review("open", "y"),
        "q3": Review("reviewed"),
    }
    assert combined({"Ada": ada}) == ada and combined({}) == {}
    found = combined({"Ada": ada, "Ben": ben})
    assert found["q1"] == Review("flagged", "Ada: Fine.\nBen: No.", grounded=True)
    assert (
        found["q2"].status == "flagged"
        and len(found["q2"].note) == LONGEST_NOTE
        and found["q2"].note.endswith("x…")
    )
    assert found["q3"] == Review("reviewed")
    # "Ada: " and as much as fits.
    fits = {"Ada": {"q1": Review(note="x" * (LONGEST_NOTE - 5))}, "Ben": {}}
    assert combined(fits)["q1"].note == "Ada: " + "x" * (LONGEST_NOTE - 5)
    longer = {"Ada": {"q1": Review(note="x" * (LONGEST_NOTE - 4))}, "Ben": {}}
    assert combined(longer)["q1"].note == "Ada: " + "x" * (LONGEST_NOTE - 6) + "…"


@pytest.fixture
def run():
    queries = pd.DataFrame({
        "query_id": ["q1", "q2", "q3", "q4"], "question": ["?"] * 4, "answer": ["Ada"] * 4,
        "reference_answers": [["Ben"]] * 4, "correct": [None, True, True, None],
        "correct_by": [None, "file", "file", None],
    })  # fmt: skip
    return Run.create({"source": "upload", "name": "Four"}, queries=queries)


def test_labels_of_most_people_become_those_of_a_derived_run(run):
    people = {
        "Ada": of(q1=True, q2=False, q3=False, gone=True),
        "Ben": of(q1=False, q2=False, q3=True),
        "Cem": of(q1=True),
    }
    found = labelled(run, people)
    # q1: two to one. q2: both against the file. q3: a tie, so it stays what the file says. q4: nobody.
    assert found.run.queries["correct"].astype("object").fillna("-").tolist() == [True, False, True, "-"]
    assert found.run.queries["correct_by"].fillna("-").tolist() == ["Ada, Cem", "Ada, Ben", "file", "-"]
    assert (found.n_labelled, found.n_tied, found.people) == (2, 1, ("Ada", "Ben", "Cem"))
    assert found.sentence == "2 of 4 questions labelled by 3 people. 1 tie left out."
    assert found.run.manifest["parent"] == run.run_id and run.queries["correct"].tolist()[1] is True
    assert correctness(found.run.queries).tolist() == [True, False, True, False]  # q4 by its reference answer


def test_a_tie_ends_nothing_and_one_person_is_enough(run):
    found = labelled(run, {"Ada": of(q1=True, q2=False, q4=False), "Ben": of(q1=False, q2=True)})
    assert found.run.queries["correct"].astype("object").fillna("-").tolist() == ["-", True, True, False]
    assert found.run.queries["correct_by"].fillna("-").tolist() == ["-", "file", "file", "Ada"]
    assert found.sentence == "1 of 4 questions labelled by 2 people. 2 ties left out."
    assert found.run.name == "Four (labelled in reviews)"
    alone = labelled(run, {"Ada": of(q1=True)})
    assert alone.sentence == "1 of 4 questions labelled by 1 person."


@pytest.mark.parametrize(
    "people", [{}, {"Ada": {"q1": Review("flagged", grounded=True)}}, {"Ada": of(gone=True)}]
)
def test_without_labels_there_is_no_derived_run(run, people):
    with pytest.raises(InputError, match="Nobody labelled"):
        labelled(run, people)


def test_the_command_line_saves_a_labelled_run(run, tmp_path, capsys):
    run.save(tmp_path / "a")
    assert main(["labels", str(tmp_path / "a"), "--out", str(tmp_path / "b")]) == 2
    assert "Nobody labelled" in capsys.readouterr().err
    for person in ("Ada", "Ben"):
        write_all(tmp_path, run.run_id, of(q1=True), person=person)
    assert main(["labels", str(tmp_path / "a"), "--out", str(tmp_path / "b"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    derived = Run.load(tmp_path / "b")
    assert said == {"run_id": derived.run_id, "n_labelled": 1, "n_tied": 0, "people": ["Ada", "Ben"]}
    assert derived.queries["correct"][0] and derived.queries["correct_by"][0] == "Ada, Ben"
