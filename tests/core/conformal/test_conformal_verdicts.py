"""Verdicts and tests by group; what does not depend on the half of the labels that calibrates."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import betabinom

from core.cli import main
from core.conformal import certify_threshold, threshold_rank
from core.conformal.analysis import flagged_over_splits
from core.conformal.definitions import FLAGGED, NEW, OF_CORRECT, TEST
from core.conformal.findings import findings
from core.conformal.promises import OTHERS
from core.conformal.step import ConformalStep
from core.diagnosis import Diagnosis
from core.pipeline import fill
from core.socket import BAD
from tests.core.conformal.conformal_runs import planted


def named(run, **settings):
    return {one.name: one for one in Diagnosis(run, settings).findings_of("conformal")}


def grouped(seed, n=400):
    """One answer in five is of a kind whose correct answers agree less with their samples; half calibrates."""
    rng = np.random.default_rng(seed)
    kind = np.where(rng.random(n) < 0.2, "rare", "frequent")
    same = np.where(kind == "rare", rng.integers(0, 6, n), rng.integers(5, 11, n)).tolist()
    return planted(same, [True] * n, (rng.permutation(n) < n // 2).tolist(), kind=kind.tolist())


def test_verdicts_use_the_threshold_of_the_group():
    """The pooled threshold flagged 1 of 796 correct answers of the majority and 64 of 145 of the minority."""
    run = grouped(0)
    found = Diagnosis(run)["conformal"]
    q = found.queries[found.queries["role"] == TEST]
    share = (q["verdict"] == FLAGGED).groupby(q["kind"]).mean()
    assert share["rare"] <= 0.25 and share["frequent"] <= 0.25
    rows = found.groups.set_index("group")
    for kind, row in rows.iterrows():
        own = (q["kind"] == kind) & (q["score"] > row["threshold"])
        assert ((q["verdict"] == FLAGGED) == own)[q["kind"] == kind].all()
        assert row["n_covered"] == row["n_test"] - own.sum()
    one = found.coverages[OF_CORRECT]
    assert (one.n_test, one.n_covered) == (rows["n_test"].sum(), rows["n_covered"].sum())
    assert found.n_flagged == one.n_test - one.n_covered
    # Of n labels, n + 1 − rank of n + 1 places are beyond the threshold.
    by_chance = sum(
        row.n_test * (1 - threshold_rank(row.n_calibration, 0.1) / (row.n_calibration + 1))
        for row in rows.itertuples()
    )
    assert found.n_by_chance == pytest.approx(by_chance)


def test_a_promise_broken_in_one_group_is_found_there():
    """All groups together kept the promise; the minority alone was half of what was promised."""
    rng = np.random.default_rng(1)
    same = [*rng.integers(5, 11, 300).tolist(), *[9] * 100, *[0] * 12, *[9] * 88]
    kind = ["frequent"] * 300 + ["rare"] * 100 + ["rare"] * 40 + ["frequent"] * 60
    run = planted(same, [True] * 500, [True] * 400 + [False] * 100, kind=kind)
    short = named(run)["coverage_short"]
    assert "in rare" in short.sentence and (short.n, short.of) == (28, 40) and short.tone == BAD


def test_groups_with_too_few_labels_share_a_threshold():
    kind = (["who"] * 20 + ["when"] * 6 + ["where"] * 6) * 2
    run = planted([9] * 64, [True] * 64, [True] * 32 + [False] * 32, kind=kind)
    rows = Diagnosis(run, {"alpha": 0.12})["conformal"].groups.set_index("group")
    assert rows["n_calibration"].to_dict() == {"who": 20, OTHERS: 12} and (rows["n_test"] == [20, 12]).all()
    shared = Diagnosis(run, {"alpha": 0.12})["conformal"]
    assert [shared.threshold_of(one) for one in ("who", "when", None)] == [(20, 0.1), (12, 0.1), (12, 0.1)]
    # Where none has enough, one threshold is for all, and there is nothing to draw by group.
    few = planted([9] * 24, [True] * 24, ([True] * 12 + [False] * 12), kind=["a", "b", "c"] * 8)
    found = Diagnosis(few, {"alpha": 0.16})["conformal"]
    assert found.groups.empty and found.n_judged == 12


def drawn(same, correct, seed, **columns):
    """The run with a random half that the step has drawn."""
    run = planted(same, correct, [None] * len(same), **columns)
    return fill(run, ConformalStep(seed=seed))


def test_a_random_half_raises_no_alarm_of_drift():
    """Two blocks of topics in the file's order raised the alarm in 83 to 100 % of random halves."""
    for seed in range(8):
        run = drawn([9] * 60 + [1] * 60, [True] * 120, seed)
        found = Diagnosis(run)
        assert found["conformal"].is_random_half and found["conformal"].drift.n == 0
        assert not {"score_drift", "coverage_short"} & set(named(run))


def test_another_seed_of_the_half_does_not_change_what_is_said():
    """12 to 33 of 100 answers were flagged over twelve seeds, and the tone with them."""
    rng = np.random.default_rng(4)
    right = rng.random(200) < 0.3
    same, correct = (
        np.where(right, rng.integers(4, 11, 200), rng.integers(0, 9, 200)).tolist(),
        right.tolist(),
    )
    seen, said = set(), set()
    for seed in range(12):
        run = drawn(same, correct, seed)
        analysis = Diagnosis(run)["conformal"]
        of_seed = {one.name: one for one in findings(analysis)}
        flagged, certificate = (
            of_seed["answers_flagged"],
            of_seed.get("certificate") or of_seed["no_certificate"],
        )
        seen.add(flagged.n)
        one = analysis.over_splits
        said.add((flagged.p_value, flagged.severity, flagged.clause, one, certificate.sentence))
        assert "Over 41 random halves of the labels it is" in flagged.sentence
    assert len(seen) > 3, "the half of the run does change the count"
    assert len(said) == 1
    assert one.low <= one.median <= one.high and one.low - 5 <= min(seen) and max(seen) <= one.high + 5


def test_an_answer_that_is_neither_correct_nor_wrong_calibrates_no_half():
    # Twenty correct answers at 0.1; twenty refusals at 1.0, which are beyond every threshold of the former.
    queries = pd.DataFrame({"query_id": [f"q{i:02}" for i in range(40)], "role": TEST, "kind": None})
    queries["score"] = [0.1] * 20 + [1.0] * 20
    queries["correct"] = pd.array([True] * 20 + [None] * 20, dtype="boolean")
    found = flagged_over_splits(queries, 0.2)
    assert found.of == 20 and 0 < found.low <= found.median <= found.high


def test_one_set_of_labels_has_one_threshold_whatever_the_route(tmp_path, capsys):
    """The page certified by half of the labels, `calibrate` and `certify_threshold` by all."""
    rng = np.random.default_rng(5)
    same = rng.integers(0, 11, 160)
    correct = (rng.random(160) < 0.4 + 0.06 * same).tolist()
    run = drawn(same.tolist(), correct, 3)
    run.save(tmp_path / "run")
    facts = {one.key: one.value for one in Diagnosis(run, {"alpha": 0.2}).numbers("conformal")}
    direct = certify_threshold(same / 10, np.array(correct, dtype=float), 0.2, 0.1)
    assert (
        main(
            [
                "calibrate",
                str(tmp_path / "run"),
                "--store",
                str(tmp_path / "c.db"),
                "--alpha",
                "0.2",
                "--json",
            ]
        )
        == 0
    )
    stored = json.loads(capsys.readouterr().out)
    assert direct.threshold is not None
    assert facts["certified_threshold"] == pytest.approx(direct.threshold)
    assert stored["certified_threshold"] == pytest.approx(direct.threshold)
    assert stored["threshold"] == pytest.approx(facts["final_threshold"])


@pytest.mark.parametrize("seed", range(3))
def test_a_more_lenient_alpha_has_no_graver_certificate(seed):
    """α = 0.2 was high where 0.1 was unclear."""
    rng = np.random.default_rng(seed)
    run = planted(
        rng.integers(0, 11, 80).tolist(), (rng.random(80) < 0.3 * seed).tolist(), [True] * 40 + [False] * 40
    )
    grave = []
    for alpha in (0.05, 0.1, 0.2, 0.3, 0.5):
        found = named(run, alpha=alpha)
        one = found.get("certificate") or found["no_certificate"]
        grave.append(("low", "medium", "high").index(one.severity))
    assert grave == sorted(grave, reverse=True)


def test_the_flagged_of_41_halves_by_hand():
    rng = np.random.default_rng(7)
    n, alpha = 50, 0.2
    queries = pd.DataFrame({"query_id": [f"q{i:02}" for i in range(n)], "role": [TEST] * 40 + [NEW] * 10})
    queries["kind"], queries["score"] = None, rng.random(n)
    queries["correct"] = pd.array([*(rng.random(40) < 0.7).tolist(), *[None] * 10], dtype="boolean")
    drawn, splits = np.random.default_rng(0), []
    right, score = queries["correct"].fillna(False).to_numpy(dtype=bool), queries["score"].to_numpy()
    for _ in range(41):
        half = np.isin(np.arange(n), drawn.permutation(40)[:20])
        own = score[half & right]
        p = [(1 + (own >= one).sum()) / (own.size + 1) for one in score[~half]]
        splits.append((sum(one <= alpha for one in p), own.size))
    splits.sort(key=lambda one: one[0])
    median, labels = splits[20]
    found = flagged_over_splits(queries.sample(frac=1, random_state=1), alpha)
    assert (found.n_splits, found.of, found.median) == (41, 30, median)
    # Of 41 numbers the middle 95 % are all but the first and the last.
    assert (found.low, found.high) == (splits[1][0], splits[39][0]) and found.low < found.high
    k = threshold_rank(labels, alpha)
    assert found.p_value == pytest.approx(2 * betabinom.cdf(30 - median, 30, k, labels + 1 - k))


def test_where_no_half_has_enough_labels_none_is_flagged():
    queries = pd.DataFrame({"query_id": ["a", "b"], "role": TEST, "kind": None, "score": [0.1, 0.2]})
    queries["correct"] = pd.array([True, True], dtype="boolean")
    assert flagged_over_splits(queries, 0.1) is None
