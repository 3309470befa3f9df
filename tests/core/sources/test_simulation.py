import hashlib
import json

import numpy as np
import pandas as pd
import pytest
from rouge_score.tokenizers import DefaultTokenizer
from scipy.stats import rankdata, spearmanr

from core.errors import InputError
from core.influence import analyse, recovery
from core.sources import simulation, simulation_losses
from core.sources.simulation import (
    CASES,
    SimulationOptions,
    options_from_pairs,
    read_options,
    simulate,
    write_options,
)
from core.sources.simulation_truth import ANSWER_WORDS, WORDS

EVERY_CASE = SimulationOptions(
    queries=80, share_ties=0.1, share_empty=0.1, share_inert=0.1, share_redundant=0.1,
    share_parametric=0.1, share_position=0.1, share_divergent=0.5,
)  # fmt: skip


def checks(options):
    run = simulate(options)
    return recovery(run, analyse(run)).set_index("check")["recovered"]


def test_words_are_long_and_differ_by_stem():
    stems = [DefaultTokenizer(use_stemmer=True).tokenize(word) for word in WORDS]
    assert all(len(stem) == 1 for stem in stems)
    assert len({stem[0] for stem in stems}) == len(WORDS) >= 2 * ANSWER_WORDS
    assert min(map(len, WORDS)) > 4


def test_without_noise_the_measured_influence_is_the_planted():
    run = simulate(EVERY_CASE)
    measured = analyse(run).passages["influence"].to_numpy()
    planted = run.passages["planted_influence"].to_numpy()
    assert np.isnan(planted).sum() == 8 * 10  # the empty baselines
    np.testing.assert_allclose(measured, planted, rtol=0, atol=1e-9)


def test_the_planted_rho_is_spearmans():
    run = simulate(EVERY_CASE)
    found = analyse(run).queries["rho"].to_numpy()
    for number, (_, passages) in enumerate(run.passages.groupby("query_id", sort=False)):
        influence = passages["planted_influence"].to_numpy()
        planted = run.queries["planted_rho"][number]
        if np.isnan(influence).any() or np.ptp(influence) == 0:
            assert np.isnan(planted) and np.isnan(found[number])
            continue
        expected = spearmanr(passages["retrieval_rank"], rankdata(-influence)).statistic
        assert planted == pytest.approx(expected, abs=1e-12) == pytest.approx(found[number], abs=1e-9)


def test_shares_become_counts():
    run = simulate(EVERY_CASE)
    expected = dict.fromkeys(CASES[2:], 8) | {"divergent": 16, "aligned": 16}
    assert run.queries["planted_case"].value_counts().to_dict() == expected


def test_each_case_is_what_it_says():
    run = simulate(EVERY_CASE)
    analysis = analyse(run)
    q = analysis.queries.set_axis(pd.Index(run.queries["planted_case"]))
    passages = run.passages.merge(run.queries[["query_id", "planted_case"]], on="query_id")
    assert (q.loc[["aligned"], "rho"] > 0.8).all()
    assert q.loc["divergent", "rho"].min() < 0
    assert set(q.loc["empty", "reason"]) == {"empty_baseline"}
    assert set(q.loc[["inert", "redundant", "parametric"], "reason"]) == {"inert"}
    assert q.loc["redundant", "redundant"].all() and q.loc["parametric", "parametric"].all()
    assert not q.loc["inert", ["redundant", "parametric"]].to_numpy().any()
    ties = passages[passages["planted_case"] == "ties"]
    values = (
        ties[ties["planted_influence"] > 0].groupby("query_id")["planted_influence"].agg(["nunique", "size"])
    )
    assert (values["nunique"] == 1).all() and (values["size"] == 3).all()
    slots = passages[(passages["planted_case"] == "position") & (passages["planted_influence"] > 0)]
    assert set(slots["slot"]) == {1, 2, 10}
    # Evidence that stands twice: the whole answer is in exactly two passages.
    redundant = passages[passages["planted_case"] == "redundant"]
    twice = redundant.groupby("query_id")["text"].agg(lambda texts: (texts.str.split().str.len() > 30).sum())
    assert (twice == 2).all()


def test_the_same_options_give_the_same_run():
    one, two, other = simulate(EVERY_CASE), simulate(EVERY_CASE), simulate(SimulationOptions(seed=43))
    assert one.run_id == two.run_id != other.run_id
    for table in ("queries", "passages", "repeats"):
        pd.testing.assert_frame_equal(one[table], two[table])


def test_it_is_marked_as_simulated():
    run = simulate()
    assert run.simulated and run.name.startswith("Simulated")
    assert run.manifest["options"]["seed"] == 42 and run.manifest["options"]["share_inert"] == 0.06
    assert run.queries["question"].str.contains("Simulated").all()


def test_without_noise_everything_planted_is_recovered():
    value = checks(EVERY_CASE)
    assert value["Power"] == 1 and value["False alarms"] == 0 and value["Wrongly undefined"] == 0
    assert value["Bias of ρ"] == pytest.approx(0, abs=1e-9)
    assert (
        value[[f"Recognised: {case}" for case in ("empty", "inert", "redundant", "parametric")]] == 1
    ).all()


def test_noise_costs_power_and_brings_false_alarms():
    values = [checks(SimulationOptions(queries=100, noise=noise)) for noise in (0, 0.2, 0.6)]
    power = [value["Power"] for value in values]
    assert 1 == power[0] > power[1] > power[2] > 0
    assert values[1]["False alarms"] > 0.05
    assert values[1]["Mean absolute error of ρ"] > 0.05


def test_repeats_move_with_the_noise_only():
    assert analyse(simulate()).queries["noise_quantile"].max() == 0
    noisy = analyse(simulate(SimulationOptions(noise=0.2, share_empty=0)))
    assert noisy.queries["noise_quantile"].between(0.05, 0.6).all()
    assert len(simulate(SimulationOptions(repeats=0)).repeats) == 0


@pytest.mark.parametrize("passages", [3, 4, 15])
@pytest.mark.parametrize("influential", [1, 2, 3])
def test_small_and_large_questions_stay_defined(passages, influential):
    options = SimulationOptions(queries=30, passages=passages, influential=influential, share_ties=0.4)
    assert checks(options)["Wrongly undefined"] == 0
    analysis = analyse(simulate(options))
    assert set(analysis.queries["reason"].dropna()) <= {"inert", "empty_baseline"}


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"queries": 9}, "queries must be a whole number from 10 to 100000, got 9"),
        ({"queries": 100_001}, "queries"),
        ({"queries": 50.0}, "whole number"),
        ({"passages": 2}, "passages"),
        ({"passages": 16}, "passages"),
        ({"seed": -1}, "seed"),
        ({"influential": 0}, "influential"),
        ({"passages": 4, "influential": 5}, r"at most the number of passages \(4\), got 5"),
        ({"noise": 1.01}, "noise"),
        ({"noise": float("nan")}, "noise"),
        ({"repeats": True}, "repeats"),
        ({"share_ties": "much"}, "share_ties"),
        ({"share_ties": 0.6, "share_inert": 0.6}, "sum to at most 1"),
    ],
)
def test_options_outside_their_range(options, word):
    with pytest.raises(InputError, match=word):
        SimulationOptions(**options)


def test_numbers_of_numpy_are_numbers():
    run = simulate(SimulationOptions(queries=np.int64(10), noise=np.float64(0.1)))
    assert type(run.manifest["options"]["queries"]) is int


@pytest.mark.parametrize(
    "options",
    [SimulationOptions(), SimulationOptions(queries=80, seed=7, noise=0.05, share_ties=0.0)],
)
def test_what_is_written_is_read_back(options):
    assert read_options(write_options(options)) == options


def test_only_what_differs_is_written():
    assert write_options(SimulationOptions()) == "default"
    assert write_options(SimulationOptions(queries=80, noise=0.5)) == "queries:80,noise:0.5"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colour:red", "no simulation option 'colour'"),
        ("queries:many", "queries must be a whole number, got 'many'"),
        ("noise:loud", "noise must be a number, got 'loud'"),
        ("queries:9", "queries must be a whole number from 10 to 100000, got 9"),
        ("noise:nan", "noise"),
        ("", "no simulation option ''"),
    ],
)
def test_junk_is_refused_in_one_sentence(text, message):
    with pytest.raises(InputError, match=message):
        read_options(text)


def test_options_from_pairs_keep_the_defaults():
    assert options_from_pairs([("seed", "3")]) == SimulationOptions(seed=3)


def test_every_answer_may_be_empty():
    none = dict.fromkeys([f"share_{case}" for case in CASES[2:]], 0.0)
    run = simulate(SimulationOptions(queries=10, **none | {"share_empty": 1.0}))
    assert set(run.queries["answer"]) == {""} and run["context_samples"].empty


def test_questions_are_numbered_from_one_across_blocks(monkeypatch):
    monkeypatch.setattr(simulation, "_BLOCK", 6)
    run = simulate(SimulationOptions(queries=10, passages=3, repeats=1))
    assert run.queries["query_id"].tolist() == [f"s{i:03}" for i in range(1, 11)]
    assert run.passages["query_id"].value_counts().eq(3).all()


def test_without_passages_another_answer_is_given():
    queries = simulate(EVERY_CASE).queries.set_index("planted_case")
    other = queries.loc[["aligned", "redundant"]]
    for answer, closed_book in zip(other["answer"], other["closed_book_answer"], strict=True):
        said, without = (text.lower().replace(".", "").split() for text in (answer, closed_book))
        assert len(set(without)) == ANSWER_WORDS == len(said) and not set(said) & set(without)
    assert queries.loc[["empty", "inert"], "closed_book_answer"].isna().all()


def test_without_its_support_an_answer_is_given_less_often():
    run = simulate(SimulationOptions(queries=50))
    context = run["context_samples"].merge(run.queries[["query_id", "answer"]], on="query_id")
    # The first sentence of an answer is that of no other meaning.
    first = [text.split(".")[0] for text in context["answer_y"]]
    context["same"] = [text.startswith(one) for text, one in zip(context["answer_x"], first, strict=True)]
    asked = context.groupby(["condition", "query_id"])["sample_id"].agg(list)
    samples = ["baseline", *(f"s{i}" for i in range(1, 6))]
    for condition, ids in (
        ("unchanged", samples[:1]),
        ("without_support", samples),
        ("unrelated_added", samples),
    ):
        assert all(one == ids for one in asked[condition])
    same = context[context["sample_id"] != "baseline"].groupby("condition")["same"].mean()
    assert same["without_support"] < 0.4 < same["unrelated_added"]
    assert (
        context.loc[context["sample_id"] == "baseline"].groupby("condition")["same"].mean()["unchanged"] == 1
    )


def test_planted_overlap_has_two_decimals():
    verdicts = simulate(EVERY_CASE)["verdicts"]
    overlap = verdicts.loc[verdicts["validator"] == "EvidenceOverlap", "value"].dropna()
    assert (overlap.round(2) == overlap).all() and (overlap.round(1) != overlap).any()
    assert set(overlap[overlap < 0.3]) == {0.0} and overlap.max() <= 1


def test_what_is_simulated_by_default():
    run = simulate()
    assert run.name == "Simulated: 50 questions × 10, seed 42"
    assert run.manifest["options"] == {
        "queries": 50, "passages": 10, "seed": 42, "influential": 3, "share_divergent": 0.4, "noise": 0.0,
        "share_ties": 0.1, "share_empty": 0.06, "share_inert": 0.06, "share_redundant": 0.06,
        "share_parametric": 0.06, "share_position": 0.1, "repeats": 3,
    }  # fmt: skip
    steps = run.manifest["steps"]
    for name in ("losses", "attribution"):
        assert (steps[name]["n_done"], steps[name]["n_left"]) == (50, 0)
    whole = run["ablations"][run["ablations"]["kept"] == "1" * 10]
    assert len(whole) == 47 and (whole["logprob"] == -1).all()  # once for each answer that is not empty


def test_options_at_the_ends_of_their_ranges():
    SimulationOptions(queries=100_000, passages=15, seed=2**32 - 1, influential=15, repeats=50)
    for name, value in (("seed", 2**32), ("repeats", 51), ("repeats", -1), ("noise", -0.1)):
        with pytest.raises(InputError, match=f"{name} must be a.* number from 0 to .*, got {value}"):
            SimulationOptions(**{name: value})


def test_a_link_simulates_at_most_a_thousand_questions():
    assert read_options("queries:1000").queries == 1_000
    with pytest.raises(InputError, match="At most 1,000 questions in a link, got 1,001; the command line"):
        read_options("queries:1001")


def test_a_long_option_is_cut_in_its_message():
    with pytest.raises(InputError, match=f"no simulation option '{'x' * 30}';"):
        read_options(f"{'x' * 40}:1")
    with pytest.raises(InputError, match=f"got '{'y' * 30}'"):
        read_options(f"noise:{'y' * 40}")


def test_of_an_odd_number_the_smaller_half_calibrates():
    assert simulate(SimulationOptions(queries=11, passages=3)).queries["calibrates"].sum() == 5


def test_only_the_first_block_is_tried_and_measured(monkeypatch):
    monkeypatch.setattr(simulation, "_BLOCK", 6)
    none = dict.fromkeys([f"share_{case}" for case in CASES[2:]], 0.0)
    run = simulate(SimulationOptions(queries=10, passages=3, repeats=1, **none | {"share_redundant": 1.0}))
    first = {f"s{i:03}" for i in range(1, 7)}
    assert all(set(run[name]["query_id"]) == first for name in ("gold", "arms", "ablations"))
    assert set(run["context_samples"]["query_id"]) <= first
    planted = run.manifest["planted"]
    assert planted["attribution"]["n_either_enough"] == 6
    assert planted["losses"]["n_lost_not_known"] + planted["losses"]["n_kept_correct_not_split"] == 4


@pytest.mark.parametrize("place", [-1, 0, 2, 4])
def test_the_prompts_of_the_fixes(place):
    ids = ["p1", "p2", "p3", "p4", "p5"]
    own = ids[place] if place >= 0 else "gold"
    shown = {arm: list(found) for arm, found in simulation_losses._prompts(ids, place, own)}
    others = [one for one in ids if one != own]
    assert shown["gold_added"] == (ids if place >= 0 else ["p1", "p2", "p3", "p4", "gold"])
    assert shown["gold_first"] == ([own, *others] if place >= 0 else ids)
    assert shown["gold_alone"] == shown["gold_sentences"] == [own]
    assert shown["fewer"] == ["p1", "p2", "p3"]
    assert shown["reversed"] == ["p5", "p4", "p3", "p2", "p1"] and shown["again"] == ids
    # The others each move on by one around the gold passage, which stays where it is.
    placebo = {
        -1: ["p2", "p3", "p4", "p5", "p1"],
        0: ["p1", "p3", "p4", "p5", "p2"],
        2: ["p2", "p4", "p3", "p5", "p1"],
        4: ["p2", "p3", "p4", "p1", "p5"],
    }
    assert shown["placebo"] == placebo[place]


# What a link or a script simulated stays what it was; beyond 200 questions nothing more is tried or measured.
AS_IT_WAS = {
    "queries": "b99e61d29154", "passages": "3c43224157a1", "repeats": "d0de008a93bd", "ablations": "6f4423ef83fd",
    "samples": "64d0d67a705b", "context_samples": "b57a798696ca", "claims": "067f71344aad", "support": "c86814264bde",
    "joint_support": "8227ae9e3fa0", "signals": "9b8414656822", "verdicts": "fd5a0e0701f2", "gold": "b3678baeca21",
    "arms": "59303b67e166", "steps": "b43d438fdbc5", "planted": "85bf91e7f069",
}  # fmt: skip


def test_the_same_options_give_the_run_that_they_gave_before():
    run = simulate(SimulationOptions(queries=210, passages=4, noise=0.1, repeats=1))
    texts = {
        n: table.to_csv(index=False, float_format="%.6g") for n, table in run.tables.items() if len(table)
    }
    texts["steps"] = json.dumps(run.manifest["steps"])
    rounded = json.dumps(run.manifest["planted"], sort_keys=True)
    texts["planted"] = json.dumps(json.loads(rounded, parse_float=lambda text: f"{float(text):.6g}"))
    found = {name: hashlib.sha256(text.encode()).hexdigest()[:12] for name, text in texts.items()}
    assert found == AS_IT_WAS
