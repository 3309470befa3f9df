"""A random sample of a saved run: which questions, which rows, and what it is to others."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, hypergeom

from core import reviews
from core.diagnosis import Diagnosis
from core.errors import RunFormatError
from core.report.compare import sides_of
from core.report.paired import pairs_of
from core.run import RESULTS, Run, rename_run
from core.saved_tables import _lowest

N, RECORDED = 20, Path("sample_data/recorded_run")


@pytest.fixture(autouse=True)
def _large(monkeypatch):
    """Samples are kept of large runs; here every run is one."""
    monkeypatch.setattr("core.run.LARGE", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return Run.load(RECORDED).save(tmp_path_factory.mktemp("sampled") / "run")


def test_all_rows_of_the_drawn_questions_and_of_no_other(folder):
    whole, some = Run.load(folder), Run.sample(folder, N)
    ids = some.queries["query_id"]
    assert len(ids) == ids.nunique() == N and set(ids) < set(whole.queries["query_id"])
    for name in whole:
        wanted = whole[name][whole[name]["query_id"].isin(set(ids))].reset_index(drop=True)
        pd.testing.assert_frame_equal(some[name].reset_index(drop=True), wanted)
        assert some.n_rows(name) == len(wanted) and some.has(name) == (len(wanted) > 0)


def test_a_piece_of_the_file_at_a_time_finds_the_same(folder, monkeypatch):
    wanted = Run.sample(folder, N).passages
    monkeypatch.setattr("core.saved_tables._PIECE", 7)
    shutil.rmtree(folder / RESULTS)
    pd.testing.assert_frame_equal(Run.sample(folder, N).passages, wanted)


def test_every_question_is_as_likely_as_any_other(tmp_path):
    """Of 500 runs of 40 questions, samples of ten: each place is drawn in a quarter of them."""
    n_runs, drawn = 500, np.zeros(40)
    for run in range(n_runs):
        ids = [f"run {run} question {place}" for place in range(40)]
        file = tmp_path / "queries.parquet"
        pd.DataFrame({"query_id": ids}).to_parquet(file)
        with file.open("rb") as opened:
            drawn += np.isin(ids, _lowest(opened, 10).to_pylist())
    worst = min(binomtest(int(n), n_runs, 0.25).pvalue for n in drawn)
    assert drawn.sum() == 10 * n_runs and worst > 0.001 / 40


def test_a_sample_is_a_run_of_its_own_that_names_the_whole(folder):
    whole, some = Run.load(folder), Run.sample(folder, N)
    assert some.run_id != whole.run_id == some.whole_id == some.manifest["parent"]
    assert some.sampled_from == len(whole.queries) and whole.sampled_from is None
    assert some.name == f"{whole.name}, 20 of {len(whole.queries)} questions"
    assert Run.sample(folder, 10_000).run_id == whole.run_id
    assert some.derive().sampled_from == len(whole.queries)


def test_a_sample_saved_again_stays_one(folder, tmp_path):
    some = Run.load(Run.sample(folder, N).save(tmp_path / "sample"))
    assert (some.sampled_from, len(some.queries)) == (len(Run.load(folder).queries), N)


@pytest.mark.parametrize(("n", "n_all"), [(1_000, 100_000), (1_000, 10_001)])
def test_how_far_a_share_of_a_sample_is_from_that_of_all(folder, n, n_all):
    """At least 95 % of all samples of questions of which half are right are as near as said (hypergeometric)."""
    ids = pd.DataFrame({"query_id": [str(i) for i in range(n)], "question": "Which?"})
    some = Run.create({"source": "upload", "sample": {"of": "all", "questions": n_all}}, queries=ids)
    within, right = some.sampling_error, hypergeom(n_all, n_all // 2, n)
    low, high = np.floor(n * (0.5 - within)), np.ceil(n * (0.5 + within))
    assert 0.95 <= right.cdf(high) - right.cdf(low - 1) < 0.96
    assert Run.load(folder).sampling_error == 0


def test_two_runs_of_the_same_questions_have_the_same_ones_in_their_samples(folder, tmp_path):
    later = Run.load(folder)
    changed = later.queries.assign(answer="Another answer.").sample(frac=1, random_state=1)
    other = later.derive(queries=changed).save(tmp_path / "later")
    one, two = Run.sample(folder, N), Run.sample(other, N)
    assert set(one.queries["query_id"]) == set(two.queries["query_id"])
    (pair,) = pairs_of(sides_of([Diagnosis(one), Diagnosis(two)]))
    assert len(pair.shared) == N


def test_what_is_computed_of_a_sample_is_kept_apart_from_what_is_computed_of_the_whole(folder, tmp_path):
    place = shutil.copytree(folder, tmp_path / "run")
    whole, some = Diagnosis(Run.open(place)), Diagnosis(Run.sample(place, N))
    assert whole.summary()["n_queries"] > N == some.summary()["n_queries"]
    found, again = some.findings(), Diagnosis(Run.sample(place, N))
    assert again.findings() == found != whole.findings()
    assert again.run.tables._frames == {}  # nothing was read for it


def test_the_next_time_the_sample_is_read_and_not_the_run(folder, tmp_path):
    place = Path(shutil.copytree(folder, tmp_path / "run"))
    first = Run.sample(place, N)
    for large in place.glob("*.parquet"):
        large.write_bytes(b"")
    again = Run.sample(place, N)
    for name in first:
        pd.testing.assert_frame_equal(again[name], first[name])
    rename_run(place, "Another name")
    assert Run.sample(place, N).name == first.name.replace(Run.load(folder).name, "Another name")
    # Saved anew, the run has another sample.
    Run.load(folder).derive(queries=Run.load(folder).queries.assign(answer="Another.")).save(place)
    assert set(Run.sample(place, N).queries["answer"]) == {"Another."}


@pytest.mark.parametrize("damaged", ["passages", "queries"])
def test_a_damaged_file_is_told_and_no_sample_is_kept(folder, tmp_path, damaged):
    place = Path(shutil.copytree(folder, tmp_path / "run", ignore=shutil.ignore_patterns(RESULTS)))
    (file,) = place.glob(f"{damaged}-*.parquet")
    whole = file.read_bytes()
    for content in (b"PAR1", whole + b" "):
        file.write_bytes(content)
        with pytest.raises(RunFormatError, match=f"is damaged: .*{damaged}"):
            Run.sample(place, N)
    assert not (place / RESULTS).exists()
    file.write_bytes(whole)
    assert len(Run.sample(place, N).queries) == N


def test_a_folder_that_nobody_may_write_gives_the_same_sample(folder, tmp_path):
    place = Path(shutil.copytree(folder, tmp_path / "run", ignore=shutil.ignore_patterns(RESULTS)))
    (place / RESULTS).write_text("no folder")
    pd.testing.assert_frame_equal(Run.sample(place, N).passages, Run.sample(folder, N).passages)


def test_reviews_of_a_sample_are_reviews_of_the_whole(folder, tmp_path):
    some = Run.sample(folder, N)
    reviews.write_all(
        tmp_path, some.whole_id, {some.queries["query_id"].iloc[0]: reviews.Review(correct=True)}
    )
    whole = Run.load(folder)
    assert list(reviews.read(tmp_path, whole.whole_id)) == [some.queries["query_id"].iloc[0]]
    reviews.labelled(whole, reviews.read_all(tmp_path, whole.whole_id))


def test_of_a_small_run_nothing_is_kept(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("core.run.LARGE", 1_000)
    place = Path(shutil.copytree(folder, tmp_path / "run", ignore=shutil.ignore_patterns(RESULTS)))
    assert len(Run.sample(place, N).queries) == N and not (place / RESULTS).exists()
