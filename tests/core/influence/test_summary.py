"""The headline numbers: what is shown of each, by hand."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest
from scipy import stats

from core.influence import analyse, summary
from core.influence.definitions import MODES
from core.influence.modes import AgainstPlacebo
from core.influence.summary import _above_noise, _mode_number, numbers
from core.run import Run
from core.socket import REASON
from tests.core.influence.test_analysis import make


def by_key(analysis):
    return {one.key: one for one in numbers(analysis)}


def test_every_number_with_what_it_is_about():
    # ρ is 1 and −1; the third question is inert, the fourth has too few passages.
    analysis = analyse(make([[0.9, 0.5, 0.1], [0.1, 0.5, 0.9], [0, 0, 0], [0.3, 0.1]]))
    found, use = by_key(analysis), analysis.order_of_use
    shown = [
        (one.key, one.title, one.n, one.of, one.define, one.chance, one.cases, one.place)
        for one in found.values()
        if one.place != "data" and not one.cases.endswith(":True")
    ]
    by_chance = pytest.approx(2 * 5 / 6)  # five of six orders of three are below 0.7
    assert shown == [
        ("mean_influence_ndcg", "nDCG by influence", 3, None, "influence_ndcg", use.chance, "", "card"),
        ("influence_ndcg_excess", "Excess over chance", 3, None, "influence_ndcg_excess", 0.0, "", "row"),
        ("mean_rho", "Mean ρ", 2, None, "rho", 0.0, "", "card"),
        ("median_rho", "Median ρ", 2, None, "rho", None, "", "row"),
        ("n_divergent", "Divergent", None, 2, "label", by_chance, "queries.label:Divergent", "card"),
        ("mean_dominance", "Mean dominance", 3, None, "dominance", None, "", "row"),
        ("mean_entropy", "Mean entropy (nats)", 3, None, "entropy", None, "", "row"),
        ("mean_noise_quantile", "Mean noise floor", 0, None, "noise_quantile", None, "", "row"),
        ("undefined_reasons", "Without ρ", None, None, REASON, None, "", "row"),
        ("label_reasons", "Without a label", None, None, REASON, None, "", "row"),
    ]
    discount = 1 / math.log2(3)
    best = 0.9 + 0.5 * discount + 0.1 / 2
    ndcg = [1, (0.1 + 0.5 * discount + 0.9 / 2) / best, 1]
    chances = [0.5 * (1 + discount + 1 / 2) / best] * 2
    chances.append(0.2 * (1 + discount) / (0.3 + 0.1 * discount))
    mean, chance = sum(ndcg) / 3, sum(chances) / 3
    reasons = {"inert": 1, "too_few_passages": 1}
    dominance = (2 * 0.9 / 1.5 + 0.3 / 0.4) / 3
    entropy = (2 * stats.entropy([9, 5, 1]) + stats.entropy([3, 1])) / 3
    expected = {
        "mean_entropy": entropy, "mean_influence_ndcg": mean, "influence_ndcg_by_chance": chance,
        "n_influence_ndcg": 3,
        "influence_ndcg_excess": (mean - chance) / (1 - chance), "mean_rho": 0, "median_rho": 0,
        "n_divergent": 1, "n_aligned": 1, "n_unlabelled": 2, "n_defined": 2, "n_undefined": 2,
        "n_divergent_published": 1, "p_random_divergent": 5 / 6, "threshold": 0.7, "as_published": False,
        "influence": "rouge", "mean_dominance": dominance, "n_dominance": 3, "mean_noise_quantile": None,
        "n_noise_quantile": 0, "n_passages_above_noise": None, "influence_ndcg_p_value": use.p_value,
    }  # fmt: skip
    assert {key: found[key].value for key in expected} == pytest.approx(expected, abs=1e-12)
    assert found["undefined_reasons"].value == found["label_reasons"].value == reasons
    assert found["rho_ci"].value == [-1.0, 1.0]
    assert found["influence_ndcg_ci"].value == [use.low, use.high]
    assert found["influence_ndcg_excess_ci"].value == [use.excess_low, use.excess_high]
    intervals = {key: one.interval for key, one in found.items() if one.interval is not None}
    assert intervals == {
        "mean_influence_ndcg": (use.low, use.high),
        "influence_ndcg_excess": (use.excess_low, use.excess_high),
        "mean_rho": (-1.0, 1.0),
    }
    assert found["mean_influence_ndcg"].note.endswith(", two-sided")
    assert found["median_rho"].note == "about 0 by chance"


@pytest.mark.parametrize(("influence", "counts"), [([0.9, 0.5, 0.1], (1, 0)), ([0.1, 0.5, 0.9], (0, 1))])
def test_a_label_that_no_question_has_is_counted_as_none(influence, counts):
    found = by_key(analyse(make([influence])))
    assert (found["n_aligned"].value, found["n_divergent"].value) == counts
    assert (found["n_divergent"].of, found["n_unlabelled"].value) == (1, 0)
    assert found["mean_rho"].interval is found["rho_ci"].value is None


def test_of_nothing_no_number_has_an_interval_a_chance_or_a_note():
    found = by_key(analyse(Run.create({"source": "upload"})))
    assert not any(one.interval for one in found.values())
    assert found["mean_influence_ndcg"].note == "" and found["mean_influence_ndcg"].chance is None
    assert found["n_divergent"].chance is None and found["median_rho"].value is None
    assert found["influence_ndcg_ci"].value is found["influence_ndcg_excess_ci"].value is None


@pytest.mark.parametrize(
    ("repeats", "note", "by_chance"),
    [
        ([18], "R = 18; it takes 19 repeats to keep them below 5 %", 1 / 19),
        ([19], "R = 19", 1 / 20),
        # Of 25 repeats the largest is the floor: 95 % of 26 is 24.7.
        ([3, 25], "R = 3 to 25", 1 / 4 + 1 / 26),
        ([2, 3], "R = 2 to 3; it takes 19 repeats to keep them below 5 %", 1 / 3 + 1 / 4),
    ],
)
def test_passages_above_noise_beside_those_without_any_effect(repeats, note, by_chance):
    ids = [f"q{i}" for i in range(len(repeats))]
    found = _above_noise(
        SimpleNamespace(
            queries=pd.DataFrame({"query_id": [*ids, "without"], "n_repeats": [*repeats, 0]}),
            passages=pd.DataFrame(
                {
                    "query_id": [*ids, "without"],
                    "above_noise": pd.array([True] + [False] * (len(ids) - 1) + [None], dtype="boolean"),
                }
            ),
        )
    )
    assert (found.value, found.of, found.noun, found.place) == (1, len(ids), "passage", "row")
    assert found.note == f"without any effect, {note}" and found.chance == pytest.approx(by_chance)
    assert (found.define, found.cases) == ("above_noise", "passages.above_noise:True")


def test_a_failure_mode_with_and_without_a_chance_to_come_about():
    row = {"n": 8, "of": 10, "expected": 0.5, "expected_low": 0.0, "expected_high": 2.0, "p_value": 0.0312}
    none = AgainstPlacebo(0, 0, 0, 0, math.nan)
    tested = _mode_number("inverted", pd.Series(row), none)
    assert (tested.text, tested.chance) == ("8 of 10", 0.5)
    assert tested.note == "95 % of random orders give 0 to 2; p = 0.031"
    unknown = pd.Series(row | dict.fromkeys(list(row)[2:], math.nan))
    not_tested = _mode_number("inert", unknown, AgainstPlacebo(60, 3, 180, 27, 0.2))
    assert (not_tested.text, not_tested.chance, not_tested.note) == ("8 of 10", None, "")
    harmful = _mode_number("harmful_passage", unknown, AgainstPlacebo(60, 3, 180, 27, 0.2))
    assert (harmful.text, harmful.chance) == ("8 of 10", None)
    assert harmful.note == "15 % of 180 tries do, and 5 % of 60 with the placebo; p = 0.2"
    assert _mode_number("harmful_passage", unknown, none).note == ""
    for name, one in (("inverted", tested), ("inert", not_tested), ("harmful_passage", harmful)):
        assert (one.key, one.title, one.define) == (f"n_{name}", MODES[name].title, name)
        assert (one.cases, one.place) == (f"queries.{name}:True", "row")


def test_only_modes_that_were_tested_have_a_chance():
    found = summary(analyse(make([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])))
    # One order of four in 24 is the reverse one.
    assert found["failure_modes_by_chance"] == {"inverted": pytest.approx(2 / 24)}
    assert found["failure_modes_p_value"] == {"inverted": pytest.approx(1 - (23 / 24) ** 2)}
    assert [*found["failure_modes"]] == [*MODES] == [*found["failure_modes_tested"]]
    assert found["failure_modes"]["inverted"] == 1 and found["failure_modes_tested"]["inverted"] == 2
