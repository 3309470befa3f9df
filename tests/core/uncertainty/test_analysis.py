"""Samples of hand-made runs, the planted meanings of the composed run, and what is said of both."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from core.diagnosis import Diagnosis
from core.run import Run
from core.socket import REASON
from core.uncertainty.analysis import NO_LABELS, NOTHING, ONE_KIND, measure
from core.uncertainty.definitions import COLUMN_ESTIMATORS, DEFINITIONS, REASONS
from core.uncertainty.diagnostic import numbers
from core.uncertainty.estimators import REASONS as OF_ESTIMATORS
from core.uncertainty.findings import findings
from core.uncertainty.grounding import quadrant, quadrant_counts

REFUSAL = "I don't know."


def run_of(answers, samples, references=None):
    """A run with these baseline answers and the samples of each."""
    ids = [f"q{i}" for i in range(1, len(answers) + 1)]
    queries = pd.DataFrame({"query_id": ids, "question": "Which city?", "answer": answers})
    if references is not None:
        queries["reference_answers"] = references
    rows = [
        {"query_id": query_id, "sample_id": f"s{n}", "answer": text}
        for query_id, texts in zip(ids, samples, strict=True)
        for n, text in enumerate(texts, start=1)
    ]
    tables = {"samples": pd.DataFrame(rows)} if rows else {}
    return Run.create({"source": "upload"}, queries=queries, **tables)


def one(answer, samples):
    analysis = measure(run_of([answer], [samples])).labelled()
    return analysis, analysis.queries.iloc[0]


def test_all_identical():
    analysis, q = one("Paris", 10 * ["Paris"])
    assert (q["n_samples"], q["n_distinct"], q["n_meanings"], q["meaning_share"]) == (10, 1, 1, 1.0)
    assert (q["entropy"], q["entropy_normalised"], q["agreement"], q["mean_rouge"]) == (0, 0, 1, 1)
    assert q["sum_eigen"] == pytest.approx(1) and q["degree"] == pytest.approx(0)
    assert (q["stability"], q["baseline_in_largest"], q["consensus_id"]) == ("Stable", True, "s1")
    assert pd.isna(q["reason"]) and (analysis.samples["n_same"] == 10).all()
    assert analysis.samples["is_consensus"].sum() == 1


def test_all_different():
    cities = ["Paris", "Rome", "Oslo", "Lima"]
    analysis, q = one("Kyoto", cities)
    assert (q["n_meanings"], q["meaning_share"], q["agreement"]) == (4, 0.25, 0)
    assert q["entropy"] == pytest.approx(math.log(4)) and q["entropy_normalised"] == pytest.approx(1)
    assert (q["stability"], q["baseline_in_largest"]) == ("Unstable", False)
    assert (
        analysis.samples["meaning"].to_list() == [1, 2, 3, 4] and (analysis.samples["agreement"] == 0).all()
    )


def test_one_refusal_among_ten_is_a_meaning_of_its_own():
    analysis, q = one("Paris", [REFUSAL, *9 * ["in Paris"]])
    assert (q["n_refused"], q["n_meanings"], q["meaning_share"], q["stability"]) == (1, 2, 0.9, "Stable")
    assert analysis.samples["status"].to_list() == ["abstained", *9 * ["answered"]]
    assert analysis.samples["meaning"].to_list() == [2, *9 * [1]]


@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        ([], "not_sampled"),
        (["Paris"], "one_sample"),
        (["", ""], "all_empty"),
        ([REFUSAL, REFUSAL, ""], "all_abstained"),
    ],
)
def test_what_is_undefined_has_its_reason(samples, reason):
    _, q = one("Paris", samples)
    assert (q["reason"], q["stability"], q["n_samples"]) == (reason, "Undefined", len(samples))
    assert math.isnan(q["entropy"])


def test_a_missing_sample_is_no_empty_one_and_a_missing_answer_agrees_with_nothing():
    analysis, q = one(None, ["Paris", None, "Paris", "Rome"])
    assert (q["n_samples"], q["n_empty"], q["n_meanings"]) == (3, 0, 2)
    assert math.isnan(q["agreement"]) and pd.isna(q["baseline_in_largest"]) and q["stability"] == "Varies"
    assert analysis.samples["status"].to_list() == ["answered", "error", "answered", "answered"]
    assert analysis.samples["meaning"].isna().to_list() == [False, True, False, False]


def test_a_long_answer_says_what_a_short_sample_says():
    answer = "The bridge crosses the Tay. It was opened on 13 July 1887. No tolls are charged."
    _, q = one(answer, ["13 July 1887", "July 13, 1887.", "on 4 May 1901"])
    assert q["baseline_in_largest"] and q["n_meanings"] == 2


def test_equally_large_meanings_are_both_the_largest():
    assert one("Rome", ["Paris", "Paris", "Rome", "Rome"])[1]["baseline_in_largest"]


def test_the_number_of_meanings_in_other_orders():
    # A chain: the middle one shares half of its words with each of the others, which share none.
    _, q = one("x", ["red stone bridge tower", "bridge tower garden gate", "garden gate pond swan"])
    assert (q["n_meanings"], q["meanings_low"], q["meanings_high"]) == (2, 1, 2)
    _, q = one("x", ["Paris", "Rome", "Paris"])
    assert (q["meanings_low"], q["meanings_high"]) == (2, 2)


def test_embeddings_and_probabilities_bring_the_estimators_that_need_them():
    asked = []

    def embed(texts):
        asked.append(list(texts))
        return np.array([[1.0, 0.0] if text in ("Paris", "Lima") else [-1.0, 0.0] for text in texts])

    run = run_of(["Paris", "Lima"], [["Paris", "Rome"], ["Lima", "Lima"]])
    plain = measure(run).labelled()
    assert not plain.embedded and plain.queries["embedding_variance"].isna().all()
    assert "agreement_cosine" not in plain.scores and "weighted_entropy_exact" not in plain.scores
    embedded = measure(run, embed).labelled()
    assert asked == [["Paris", "Lima", "Rome"]]
    # Opposite vectors: the centroid is at 0, every distance 1. Negative cosines count as 0.
    assert embedded.embedded and embedded.queries["embedding_variance"].to_list() == [1.0, 0.0]
    assert embedded.scores["agreement_cosine"].values.tolist() == [0.5, 1.0]

    # Per token: ln 0.75 and ln 0.25 of two different answers; the second question has none.
    samples = run["samples"].assign(
        logprob_sum=[2 * math.log(0.75), math.log(0.25), None, None], n_tokens=[2, 1, 1, 0]
    )
    known = measure(Run.create(dict(run.manifest), **{**run.tables, "samples": samples})).labelled()
    entropy = known.scores["weighted_entropy_exact"]
    assert entropy.values[0] == pytest.approx(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    assert math.isnan(entropy.values[1]) and entropy.reasons[1] == "missing_values"


def test_quadrants_by_hand():
    names = pd.Series([*3 * ["Stable"], "Varies", "Unstable", "Undefined", "Stable"])
    share = np.array([1.0, 0.5, 0.49, 0.5, 0.0, 1.0, np.nan])
    found = quadrant(names, share)
    assert found[:5].to_list() == [
        "Stable, grounded", "Stable, grounded", "Stable, ungrounded", "Not stable, grounded",
        "Not stable, ungrounded",
    ]  # fmt: skip
    assert found[5:].isna().all()
    counts = quadrant_counts(found)
    assert counts["n"].to_list() == [2, 1, 1, 1] and set(counts["of"]) == {5}
    # Three stable of five, three grounded of five.
    assert counts["expected"].to_list() == pytest.approx([9 / 5, 6 / 5, 6 / 5, 4 / 5])
    assert quadrant_counts(found[5:])[["n", "expected"]].to_numpy().sum() == 0


def test_the_threshold_moves_labels_only():
    run = run_of(["Paris"], [["Paris", "Paris", "Paris", "Rome"]])
    labels = {
        t: Diagnosis(run, {"stable_from": t})["uncertainty"].queries["stability"][0] for t in (0.75, 0.8)
    }
    assert labels == {0.75: "Stable", 0.8: "Varies"}


def test_estimators_are_judged_where_answers_are_right_and_wrong():
    samples = [["Paris", "Paris"], ["Rome", "Oslo"], ["Lima", "Lima"], ["Bonn", "Kyiv"]]
    run = run_of(["Paris", "Rome", "Lima", "Bonn"], samples, [["Paris"], ["Oslo"], ["Lima"], ["Kyiv"]])
    analysis = measure(run).labelled()
    board = analysis.leaderboard.set_index("name")
    assert analysis.not_judged is None and board.loc["agreement_text", "auroc"] == 1.0
    assert board.loc["answer_length", "is_baseline"] and board.loc["answer_length", "auroc"] == 0.5
    assert (board["n"] == 4).all() and (board["n_wrong"] == 2).all()
    assert set(analysis.comparisons["distinguishable"]) <= {True, False} and len(analysis.comparisons)
    assert analysis.quality("agreement_text").auroc[0] == 1.0


@pytest.mark.parametrize(
    ("references", "samples", "why"),
    [(None, ["a", "b"], NO_LABELS), ([["Paris"]], ["a", "b"], ONE_KIND), ([["Paris"]], ["a"], NOTHING)],
)
def test_estimators_that_cannot_be_judged_say_why(references, samples, why):
    analysis = measure(run_of(["Paris"], [samples], references)).labelled()
    assert analysis.not_judged == why and analysis.leaderboard.empty and analysis.comparisons.empty
    assert analysis.quality("agreement_text") is None


def test_findings_name_their_questions_with_counts_and_intervals():
    cities = ["Rome", "Oslo", "Lima", "Bonn", "Kyiv"]
    run = run_of(12 * ["Paris"], [*8 * [cities], *4 * [5 * ["Rome"]]])
    found = {f.name: f for f in Diagnosis(run).findings_of("uncertainty")}
    unstable, other = found["unstable_answer"], found["baseline_disagrees"]
    assert (unstable.n, unstable.of, unstable.tone, unstable.severity) == (8, 12, "bad", "medium")
    assert unstable.query_ids == tuple(f"q{i}" for i in range(1, 9)) and unstable.advice
    # Of six different answers each differs from the rest; of five and one, the one: 8 + 4 / 6. Only the four
    # could have been otherwise.
    assert (other.n, other.of, other.expected_by_chance) == (12, 12, pytest.approx(8 + 4 / 6))
    assert other.p_value == pytest.approx(6**-4)
    assert other.query_ids[:4] == ("q9", "q10", "q11", "q12") and other.p_value < 0.05 and other.clause
    even = Diagnosis(run_of(["Rome"], [["Paris", "Paris", "Rome"]]))
    # Two and two: whichever is the answer, the other meaning is the larger of the rest.
    assert even["uncertainty"].queries["differs_by_chance"].to_list() == [1.0]
    assert [f.name for f in even.findings_of("uncertainty")] == ["unstable_answer"]
    # The answer is one of a kind in 1 of 4 by chance, and in both.
    rare = Diagnosis(run_of(2 * ["Rome"], 2 * [["Paris", "Paris", "Paris"]])).findings_of("uncertainty")
    same = next(f for f in rare if f.name == "baseline_disagrees")
    assert (same.n, same.expected_by_chance, same.p_value) == (2, pytest.approx(0.5), pytest.approx(1 / 16))
    assert (same.tone, same.advice, same.clause) == ("unclear", "", "")
    calm = Diagnosis(run_of(20 * ["Paris"], 20 * [["Paris", "Paris"]])).findings_of("uncertainty")
    assert [(f.name, f.n, f.of, f.tone) for f in calm] == [("unstable_answer", 0, 20, "good")]


def test_stable_but_ungrounded_needs_claims():
    measured = measure(run_of(4 * ["Paris"], [*3 * [["Paris", "Paris"]], ["Rome", "Oslo", "Lima"]]))
    assert all(f.name != "stable_ungrounded" for f in findings(measured.labelled()))
    grounded = measured.labelled(grounding=pd.Series([0.1, 1.0, np.nan, 0.0]))
    finding = next(f for f in findings(grounded) if f.name == "stable_ungrounded")
    # Two stable answers have claims, one is ungrounded; of three in all, two are.
    assert (finding.n, finding.of, finding.query_ids) == (1, 2, ("q1",))
    assert finding.expected_by_chance == pytest.approx(2 * 2 / 3)
    # Two of three ungrounded: any two of the three hold at least one of them.
    assert finding.p_value == 1 and finding.otherwise.tone == "unclear" and not finding.otherwise.advice
    assert "1 of 2 stable answers is mostly ungrounded" in finding.sentence
    assert finding.sentence.endswith("against 1 of 1 of the others.")


def test_stable_answers_are_ungrounded_more_often_than_others_by_an_exact_test():
    """Six of six stable answers ungrounded, none of four others: one of C(10, 6) = 210 ways to deal them.

    It had no test, and was bad whenever one stable answer was ungrounded."""
    cities = ["Rome", "Oslo", "Lima", "Bonn"]
    measured = measure(run_of(10 * ["Paris"], [*6 * [4 * ["Paris"]], *4 * [cities]]))
    found = findings(measured.labelled(grounding=pd.Series([*6 * [0.0], *4 * [1.0]])))
    finding = next(f for f in found if f.name == "stable_ungrounded")
    assert finding.p_value == pytest.approx(1 / 210)
    assert (finding.tone, finding.severity, finding.n, finding.of) == ("bad", "high", 6, 6)


def test_numbers_have_the_same_keys_with_and_without_samples():
    sampled = numbers(
        measure(run_of(["Paris", "Rome"], [["Paris", "Paris"], ["Rome", "Oslo", "x y"]])).labelled()
    )
    bare = numbers(measure(run_of(["Paris"], [[]])).labelled())
    assert [n.key for n in sampled] == [n.key for n in bare]
    by_key = {number.key: number for number in sampled}
    assert by_key["n_stable"].text == "1 of 2" and by_key["n_unstable"].text == "1 of 2"
    assert by_key["n_samples"].text == "2–3" and by_key["mean_agreement"].n == 2
    assert by_key["agreement_auroc"].value is None and by_key["agreement_auroc"].note == NO_LABELS


def test_every_column_and_reason_is_described():
    analysis, _ = one("Paris", ["Paris"])
    described = {definition.name for definition in DEFINITIONS}
    plain = {
        "query_id",
        "question",
        "n_samples",
        "n_distinct",
        "n_refused",
        "n_empty",
        "consensus_id",
        "correct",
        "reason",
        "grounding",
        "quadrant",
    }
    assert set(analysis.queries.columns) <= described | plain | set(COLUMN_ESTIMATORS)
    assert {"not_sampled", "one_sample", "all_empty", "all_abstained"} <= described and set(
        REASONS
    ) <= described


def test_planted_meanings_are_recovered():
    """Groups by words of content against the meanings that the samples were composed to have; chance gives 0."""
    run = Run.load("sample_data/worked_answers")
    analysis = measure(run).labelled()
    frame = analysis.samples.assign(planted=run["samples"]["planted_meaning"])
    groups = [group for _, group in frame.groupby("query_id", sort=False)]
    rand = [adjusted_rand_score(group["planted"], group["meaning"]) for group in groups]
    planted_share = [group["planted"].value_counts().max() / len(group) for group in groups]
    assert np.mean(rand) > 0.7
    assert np.corrcoef(planted_share, analysis.queries["meaning_share"])[0, 1] > 0.9
    shuffled = [
        adjusted_rand_score(g["planted"], g["meaning"].sample(frac=1, random_state=0)) for g in groups
    ]
    assert abs(np.mean(shuffled)) < 0.15
    # The baseline has the first meaning, which is a largest one in every question.
    assert analysis.queries["baseline_in_largest"].all()


def test_a_reason_is_defined_by_who_gives_it():
    """Codes of undefined numbers, whether of estimators or of the context test, each once and as a reason."""
    names = [one.name for one in DEFINITIONS if one.kind == REASON]
    assert len(names) == len(set(names))
    given = {"not_sampled", "no_answer", "no_support", "nothing_left", "few_unrelated", *OF_ESTIMATORS}
    assert given == set(names)
    answers = ["", REFUSAL, "Paris", "Paris"]
    found = measure(run_of(answers, [["", ""], [REFUSAL, ""], ["Paris"], []])).labelled()
    reasons = {r for one in found.scores.values() for r in one.reasons if r} | set(found.queries["reason"])
    assert reasons <= set(names) and {"all_empty", "all_abstained", "one_sample", "not_sampled"} <= reasons


def test_the_confidence_of_mc_dropout_is_that_of_its_class():
    """Three of four samples say A: 1 − (1 − (9 + 1) / 16) = 0.625, as `MCDropoutConfidence` has it."""
    one_hot = {"A": [1.0, 0.0], "B": [0.0, 1.0]}
    run = run_of(["A"], [["A", "B", "A", "A"]])
    found = measure(run, lambda texts: np.array([one_hot[text] for text in texts])).labelled()
    (number,) = [one for one in numbers(found) if one.key == "mean_mc_confidence"]
    assert (number.value, number.n, number.place) == (pytest.approx(0.625), 1, "card")
    (bare,) = [one for one in numbers(measure(run).labelled()) if one.key == "mean_mc_confidence"]
    assert (bare.value, bare.n, bare.place) == (None, 0, "row")
