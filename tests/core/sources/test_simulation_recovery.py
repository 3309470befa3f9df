"""What a simulation plants is what the diagnostics recover: exactly where no chance is in between."""

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import dblquad

from core.analyses import RECOVERED
from core.diagnosis import Diagnosis
from core.diagnostics import DIAGNOSTICS
from core.run import Run
from core.sources.simulation import SimulationOptions, simulate
from core.sources.simulation_truth import LEVEL

NAMES = [one.name for one in DIAGNOSTICS]
# Estimates with an interval, whose truth is that of all questions there could be.
ESTIMATED = {"Mean confidence − accuracy", "Confidence AUROC"}


@pytest.fixture(scope="module")
def run():
    return simulate()


@pytest.fixture(scope="module")
def diagnosis(run):
    return Diagnosis(run)


@pytest.mark.parametrize("name", NAMES)
def test_every_diagnostic_has_data_and_recovers_what_was_planted(diagnosis, name):
    """Before, six of nine pages of a simulated run were empty, and only influence had a truth to recover."""
    assert diagnosis.diagnostic(name).lacks(diagnosis.run) is None
    frame = diagnosis.recovered(name)
    assert len(frame) and list(frame.columns) == list(RECOVERED)
    assert (frame["meaning"].str.len() > 0).any() or name in ("answers", "claims")
    for row in frame.itertuples():
        if row.check in ESTIMATED or name == "conformal":
            assert row.low <= row.planted <= row.high, row
        else:
            assert row.recovered == pytest.approx(row.planted, abs=1e-9), row


def test_every_planted_number_is_shown(diagnosis):
    for name, planted in diagnosis.run.manifest["planted"].items():
        names = sum(len(value) if isinstance(value, dict) else 1 for value in planted.values())
        more = {"influence": 7, "uncertainty": 1}.get(name, 0)
        assert len(diagnosis.recovered(name)) == names + more, name


def test_what_is_planted_can_be_counted_by_hand(run):
    """Read from the tables by plain Python, without the diagnostics."""
    planted = run.manifest["planted"]
    said = {
        row.query_id: " ".join(row.answer.lower().replace(".", "").split())
        for row in run.queries.itertuples()
    }
    correct = {
        row.query_id: row.reference_answers[0] in said[row.query_id] for row in run.queries.itertuples()
    }
    assert sum(correct.values()) == planted["answers"]["n_correct"]
    assert sum(not text for text in said.values()) == planted["answers"]["n_empty_answers"] == 3
    first = run.passages[run.passages["is_gold"] & (run.passages["retrieval_rank"] == 1)]
    assert len(first) / 50 == planted["retrieval_quality"]["hit_at_1"]
    stopped = run["verdicts"][run["verdicts"]["severity"] == "critical"]["query_id"]
    assert sum(correct[id_] for id_ in stopped) == planted["validation"]["correct_stopped"]
    assert run["support"]["probability"].isna().sum() >= planted["claims"]["n_cells_unscored"] > 0
    supported = {
        (row.query_id, row.claim_id) for row in run["support"].itertuples() if row.probability >= 0.5
    } | {(row.query_id, row.claim_id) for row in run["joint_support"].itertuples()}
    assert len(run["joint_support"]) > 0
    of_answers = [key for key in supported if key[1] != "r1"]
    assert len(of_answers) == planted["claims"]["n_claims_supported"]
    share = (
        run["samples"].groupby("query_id")["planted_meaning"].agg(lambda m: Counter(m).most_common(1)[0][1])
    )
    assert share.mean() / 10 == pytest.approx(planted["uncertainty"]["mean_meaning_share"])
    assert run.queries["calibrates"].sum() == 25


def test_planted_stages_can_be_counted_by_hand():
    """The first fix whose answer says the reference is the stage; 250 questions, 200 of them with fixes."""
    run = simulate(SimulationOptions(queries=250, passages=5, seed=3))
    planted = run.manifest["planted"]["losses"]
    after = {(row.query_id, row.arm): row.answer for row in run["arms"].itertuples()}

    def says(text, reference):
        return isinstance(text, str) and reference in text.lower().replace(".", "")

    fixes = {
        "gold_added": "n_lost_not_retrieved",
        "gold_first": "n_lost_placed_too_late",
        "gold_alone": "n_lost_distracted",
        "gold_sentences": "n_lost_buried_in_its_passage",
    }
    found = Counter()
    for row in run.queries.itertuples():
        reference = row.reference_answers[0]
        if says(row.answer, reference):
            known = (row.query_id, "placebo") in after
            luck = known and not says(after[row.query_id, "placebo"], reference)
            split = "n_kept_by_luck" if luck else "n_kept_grounded" if known else "n_kept_correct_not_split"
            without = says(row.closed_book_answer, reference)
            found["n_kept_without_the_passages_too" if without else split] += 1
            continue
        found["n_lost"] += 1
        helps = [stage for arm, stage in fixes.items() if says(after.get((row.query_id, arm)), reference)]
        tried = (row.query_id, "again") in after
        found["n_lost_not_known" if not tried else helps[0] if helps else "n_lost_not_read"] += 1
    assert found == planted and min(planted.values()) > 0
    assert run["arms"]["query_id"].nunique() == 200


def test_the_planted_auroc_is_the_integral():
    a, b = LEVEL
    mean = (a + b) / 2
    above, _ = dblquad(lambda y, x: x * (1 - y), a, b, lambda _: a, lambda x: x)
    auroc = simulate(SimulationOptions(queries=10)).manifest["planted"]["confidence"]["confidence_auroc"]
    assert auroc == pytest.approx(above / (b - a) ** 2 / (mean * (1 - mean)), abs=1e-9)


def test_the_signals_add_up_to_a_confidence_that_is_right():
    """1,000 questions: the level is uniform, and a correct answer is drawn with exactly that probability."""
    run = simulate(SimulationOptions(queries=1_000, share_empty=0, repeats=0))
    signals = run["signals"]
    level = 0.45 * signals["similarity"] + 0.35 * signals["lexical"] / 100 + 0.2 * signals["llm_score"]
    assert signals[["similarity", "llm_score"]].min().min() >= 0 and signals["lexical"].max() <= 100
    correct = run.queries["planted_correct"].astype(float)
    assert level.between(*LEVEL).all() and abs(level.mean() - 0.6) < 4 * 0.231 / 1_000**0.5
    for low in (0.2, 0.4, 0.6, 0.8):
        own = level.between(low, low + 0.2)
        p = level[own].mean()
        assert abs(correct[own].mean() - p) < 4 * math.sqrt(p * (1 - p) / own.sum())


def test_a_run_that_is_no_simulation_has_nothing_to_recover():
    diagnosis = Diagnosis(Run.load("sample_data/worked_answers"))
    assert all(diagnosis.recovered(name).empty for name in NAMES)


def test_a_simulated_file_without_its_truth_has_nothing_to_recover(run):
    """An exported simulation that is imported again is still marked, but no file holds what was planted."""
    columns = run.passages.drop(columns="planted_influence")
    bare = Run.create(
        {"source": "simulation"}, queries=run.queries.drop(columns="planted_rho"), passages=columns
    )
    diagnosis = Diagnosis(bare)
    assert all(diagnosis.recovered(name).empty for name in NAMES)


def test_it_survives_saving(run, tmp_path):
    again = Run.load(run.save(tmp_path / "run"))
    assert again.manifest["planted"] == run.manifest["planted"]
    for name in run.tables:
        pd.testing.assert_frame_equal(again[name], run[name])


def test_noise_touches_neither_claims_nor_samples_nor_labels():
    still, noisy = (simulate(SimulationOptions(queries=20, noise=noise)) for noise in (0.0, 0.3))
    assert still.manifest["planted"].keys() == noisy.manifest["planted"].keys()
    diagnosis = Diagnosis(noisy)
    for name in ("answers", "retrieval_quality", "uncertainty", "validation"):
        frame = diagnosis.recovered(name)
        frame = frame[~frame["cases"].str.contains("gold_most_influential")]
        np.testing.assert_allclose(
            frame["recovered"].astype(float), frame["planted"].astype(float), atol=1e-9
        )


@st.composite
def options(draw):
    passages = draw(st.integers(3, 15))
    share = st.sampled_from([0.0, 0.05, 0.15])
    names = ("ties", "empty", "inert", "redundant", "parametric", "position")
    return SimulationOptions(
        queries=draw(st.integers(10, 30)),
        passages=passages,
        seed=draw(st.integers(0, 2**32 - 1)),
        influential=draw(st.integers(1, passages)),
        share_divergent=draw(st.floats(0, 1)),
        noise=draw(st.sampled_from([0.0, 0.1, 1.0])),
        repeats=draw(st.integers(0, 4)),
        **{f"share_{name}": draw(share) for name in names},
    )


@settings(max_examples=40, deadline=None)
@given(options())
def test_whatever_the_options_no_diagnostic_lacks_data(options):
    run = simulate(options)
    assert [one.lacks(run) for one in DIAGNOSTICS] == [None] * len(DIAGNOSTICS)
    assert len(run.queries) == options.queries and len(run.repeats) == options.queries * options.repeats
    texts = run.passages.groupby("query_id")["text"].nunique()
    assert (texts == options.passages).all()
    influence = run.passages["planted_influence"].to_numpy().reshape(options.queries, -1)
    counts = (influence > 0).sum(axis=1)
    case = run.queries["planted_case"].to_numpy()
    ordinary = np.isin(case, ["aligned", "divergent", "position"])
    assert (counts[ordinary] == options.influential).all()
