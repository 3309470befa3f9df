"""The recorded runs give the numbers that plain arithmetic on their tables gives."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from core.diagnosis import Diagnosis
from core.run import Run

RUNS = sorted((Path(__file__).parents[2] / "sample_data").glob("recorded_run*"))


@pytest.fixture(scope="module", params=RUNS, ids=lambda path: path.name)
def diagnosis(request):
    return Diagnosis(Run.load(request.param))


@pytest.fixture(scope="module")
def influences(diagnosis):
    """The influences of each question in retrieval order, as `core.influence.measured` found them."""
    passages = diagnosis["influence"].passages.sort_values(["query_id", "retrieval_rank"])
    return {query: part["influence"].to_numpy() for query, part in passages.groupby("query_id")}


def test_rank_agreement(diagnosis, influences):
    summary = diagnosis.summary()
    rhos = [
        spearmanr(-np.arange(len(values)), values).statistic
        for values in influences.values()
        if np.ptp(values) > 0
    ]
    assert summary["n_defined"] == len(rhos)
    assert summary["mean_rho"] == pytest.approx(np.mean(rhos))
    assert summary["median_rho"] == pytest.approx(np.median(rhos))
    assert summary["n_divergent_published"] == np.sum(np.array(rhos) < 0.7)
    published = Diagnosis(diagnosis.run, {"as_published": True}).summary()
    assert published["n_divergent"] == summary["n_divergent_published"]
    labels = summary["n_divergent"] + summary["n_aligned"] + sum(summary["label_reasons"].values())
    assert labels == summary["n_queries"] == len(influences)
    assert summary["n_undefined"] == sum(np.ptp(values) == 0 for values in influences.values())


def test_influence_ndcg_and_what_chance_gives(diagnosis, influences):
    found, chance = [], []
    for values in influences.values():
        if not values.any():
            continue
        discount = 1 / np.log2(np.arange(len(values)) + 2)
        ideal = np.sort(values)[::-1] @ discount
        found.append(values @ discount / ideal)
        chance.append(values.mean() * discount.sum() / ideal)  # the mean over all orders
    summary = diagnosis.summary()
    assert summary["mean_influence_ndcg"] == pytest.approx(np.mean(found))
    assert summary["influence_ndcg_by_chance"] == pytest.approx(np.mean(chance))
    assert summary["n_influence_ndcg"] == len(found)


def test_modes_that_can_be_counted_by_hand(diagnosis, influences):
    modes = diagnosis.summary()["failure_modes"]
    assert modes["inert"] == sum(not values.any() for values in influences.values())
    assert modes["over_reliance"] == sum(
        values.max() / values.sum() >= 0.8 - 1e-9 for values in influences.values() if values.any()
    )
    found = diagnosis.run.passages.groupby("query_id")["is_gold"].sum()
    wanted = diagnosis.run.queries.set_index("query_id")["n_gold"].dropna()
    assert modes["missed_evidence"] == (found.loc[wanted.index] < wanted).sum()


def test_what_chance_alone_explains_is_no_finding(diagnosis):
    summary = diagnosis.summary()
    by_chance = {name for name, p in summary["failure_modes_p_value"].items() if p > 0.05}
    assert not by_chance & {finding.name for finding in diagnosis.findings()}


def test_retrieval(diagnosis):
    passages = diagnosis.run.passages.sort_values("retrieval_rank")
    judged = diagnosis.run.queries.dropna(subset="n_gold")["query_id"]
    gold = [
        passages.loc[passages["query_id"] == query, "is_gold"].astype(bool).to_numpy() for query in judged
    ]
    summary = diagnosis.summary()
    assert summary["hit_at_1"] == pytest.approx(np.mean([marks[0] for marks in gold]))
    few = min(5, len(gold[0]))
    assert summary[f"hit_at_{few}"] == pytest.approx(np.mean([marks[:few].any() for marks in gold]))
    assert summary["mrr"] == pytest.approx(
        np.mean([1 / (marks.argmax() + 1) if marks.any() else 0 for marks in gold])
    )


def test_answers_and_claims_add_up(diagnosis):
    run, summary = diagnosis.run, diagnosis.summary()
    judged = run.queries["reference_answers"].map(bool) & (run.queries["answer_status"] == "answered")
    assert summary["n_judged"] == judged.sum()
    of_answers = run.tables["claims"][run.tables["claims"]["claim_id"].str.startswith("a")]
    assert summary["n_claims"] == len(of_answers)
    verdicts = Counter(run.queries["answer_status"])
    assert (summary["n_abstained"], summary["n_errors"]) == (verdicts["abstained"], verdicts["error"])
    kinds = summary["n_claims_supported"] + summary["n_claims_not_supported"] + summary["n_claims_irrelevant"]
    assert kinds + summary["n_claims_unscored"] == summary["n_claims"]
    assert sum(summary["quadrants"].values()) == run.passages["query_id"].isin(of_answers["query_id"]).sum()
