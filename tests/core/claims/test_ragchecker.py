import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from core.claims.ragchecker import METRICS, ragchecker_metrics

nan = math.nan

# Three claims of the reference, three passages: only the first passage is relevant.
REFERENCE = [[1, 0, 0], [1, 0, 0], [0, 0, 0]]
# Five claims of the answer, one of each fate.
ANSWER = [
    [1, 0, 0],  # right and retrieved
    [1, 1, 0],  # wrong, from the relevant passage (and another)
    [0, 1, 0],  # wrong, from an irrelevant passage only
    [0, 0, 0],  # right, from nowhere
    [0, 0, 0],  # wrong, from nowhere
]
CORRECT = [1, 0, 0, 1, 0]
COVERED = [1, 0, 1]


def values(m):
    assert tuple(m) == METRICS
    return {name: None if math.isnan(found.value) else found.value for name, found in m.items()}


def reasons(m):
    return {name: found.reason for name, found in m.items() if found.reason}


def test_everything_scored_by_hand():
    m = ragchecker_metrics(REFERENCE, ANSWER, CORRECT, COVERED)
    assert values(m) == pytest.approx(
        {
            "precision": 2 / 5,
            "recall": 2 / 3,
            "f1": 0.5,  # 2 * (4/15) / (16/15)
            "claim_recall": 2 / 3,
            "context_precision": 1 / 3,
            "context_utilization": 1 / 2,  # of claims 1 and 2 of the reference the answer says the first
            "noise_sensitivity_in_relevant": 1 / 5,
            "noise_sensitivity_in_irrelevant": 1 / 5,
            "hallucination": 1 / 5,
            "self_knowledge": 1 / 5,
            "faithfulness": 3 / 5,
        }
    )
    assert not reasons(m) and {found.n_left_out for found in m.values()} == {0}
    n = {name: m[name].n for name in ("context_precision", "faithfulness", "context_utilization")}
    assert n == {"context_precision": 3, "faithfulness": 5, "context_utilization": 2}


def test_unscored_cells_by_hand():
    m = ragchecker_metrics(
        # Relevant: the first passage, and nobody knows about the second.
        [[0.9, nan], [nan, 0.1], [0.2, 0.3]],
        # Found: yes, yes, no, unknown. In a relevant passage: yes, unknown, no, unknown.
        [[0.8, nan], [nan, 0.9], [0.0, 0.0], [nan, 0.0]],
        [0, 0, nan, 1],
        [nan, 1, 0],
    )
    expected = {  # value, claims or passages known, left out
        "precision": (1 / 3, 3, 1),
        "recall": (1 / 2, 2, 1),
        "claim_recall": (1 / 2, 2, 1),
        "context_precision": (1.0, 1, 1),
        "context_utilization": (
            None,
            0,
            2,
        ),  # the first is retrieved but not judged, the second may be retrieved
        "noise_sensitivity_in_relevant": (1 / 3, 3, 1),  # yes, unknown, no (nowhere), no (right)
        "noise_sensitivity_in_irrelevant": (0.0, 3, 1),
        "hallucination": (0.0, 3, 1),  # no, no, unknown (is it wrong?), no (right)
        "self_knowledge": (0.0, 2, 2),
        "faithfulness": (2 / 3, 3, 1),
    }
    found = {name: (values(m)[name], m[name].n, m[name].n_left_out) for name in expected}
    for name, row in expected.items():
        assert found[name] == pytest.approx(row), name
    assert m["f1"].value == pytest.approx(0.4)  # 2 * (1/6) / (5/6)
    assert reasons(m) == {"context_utilization": "unscored"}


def test_an_answer_without_claims_is_undefined_and_not_0():
    m = ragchecker_metrics(REFERENCE, [], [], [0, 0, 0])
    assert values(m)["claim_recall"] == pytest.approx(2 / 3) and values(m)[
        "context_precision"
    ] == pytest.approx(1 / 3)
    others = set(METRICS) - {"claim_recall", "context_precision"}
    assert {name: values(m)[name] for name in others} == dict.fromkeys(others)
    assert reasons(m) == dict.fromkeys(others, "no_answer_claims")


def test_a_reference_without_claims_and_no_reference_at_all():
    for m, reason in (
        (ragchecker_metrics([], ANSWER, [0] * 5, []), "no_reference_claims"),
        (ragchecker_metrics(None, ANSWER, None, None), "no_reference"),
    ):
        assert values(m)["faithfulness"] == pytest.approx(3 / 5)
        assert reasons(m) == dict.fromkeys(set(METRICS) - {"faithfulness"}, reason)
        assert {(m[name].n, m[name].n_left_out) for name in reasons(m)} == {(0, 0)}


def test_no_passages_nothing_retrieved_and_nothing_at_all():
    m = ragchecker_metrics(np.empty((3, 0)), np.empty((5, 0)), CORRECT, COVERED)
    assert values(m)["f1"] == pytest.approx(0.5)
    assert reasons(m) == dict.fromkeys(METRICS[3:], "no_passages")  # all but precision, recall, f1
    m = ragchecker_metrics([[0, 0]], [[1, 0]], [1], [1])
    assert values(m)["claim_recall"] == 0 and values(m)["context_precision"] == 0
    assert reasons(m) == {"context_utilization": "nothing_retrieved"}
    m = ragchecker_metrics([], [], [], [])
    assert values(m) == dict.fromkeys(METRICS) and set(reasons(m)) == set(METRICS)


def test_f1_is_0_when_all_is_wrong_and_missing():
    m = ragchecker_metrics([[0]], [[0]], [0], [0])
    assert values(m)["f1"] == 0 and "f1" not in reasons(m)


def test_a_threshold_for_entailment():
    assert ragchecker_metrics([[0.6]], [[0.6]], [1], [1])["faithfulness"].value == 1
    assert ragchecker_metrics([[0.6]], [[0.6]], [1], [1], threshold=0.7)["faithfulness"].value == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, 0]], [[1], [1], [0]], [1, 0, 0], [1]), "one column per passage, got 2 and 1"),
        (([[1]], [[1]], [1, 0], [1]), "answer_correct must have 1"),
        (([[1]], [[1]], [1], []), "reference_covered must have 1"),
        (([[1]], [[2]], [1], [1]), "retrieved_to_answer must"),
        (([[1]], [[1]], [1.5], [1]), "answer_correct must"),
        (([[1]], [[1]], None, [1]), "all of them or none"),
    ],
)
def test_refused_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        ragchecker_metrics(*arguments)


def tables(elements):
    cells = st.sampled_from(elements)
    sizes = st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 4))
    return sizes.flatmap(
        lambda n: st.tuples(
            arrays(float, (n[0], n[2]), elements=cells),
            arrays(float, (n[1], n[2]), elements=cells),
            arrays(float, n[1], elements=cells),
            arrays(float, n[0], elements=cells),
        )
    )


@given(tables([0.0, 1.0]))
def test_every_claim_of_an_answer_has_one_fate(table):
    m = ragchecker_metrics(*table)
    noise = values(m)["noise_sensitivity_in_relevant"] + values(m)["noise_sensitivity_in_irrelevant"]
    assert values(m)["precision"] + noise + values(m)["hallucination"] == pytest.approx(1)
    assert values(m)["faithfulness"] + values(m)["hallucination"] + values(m)[
        "self_knowledge"
    ] == pytest.approx(1)


@given(tables([0.0, 1.0]))
def test_the_formulas_claim_by_claim(table):
    a, b, ok, got = (t.astype(bool).tolist() for t in table)
    m = ragchecker_metrics(*table)
    relevant = [any(row[j] for row in a) for j in range(len(a[0]))]
    wrong_from_relevant = sum(
        not o and any(x and r for x, r in zip(row, relevant, strict=True))
        for row, o in zip(b, ok, strict=True)
    )
    only_irrelevant = sum(
        not o and any(row) and not any(x and r for x, r in zip(row, relevant, strict=True))
        for row, o in zip(b, ok, strict=True)
    )
    assert values(m)["noise_sensitivity_in_relevant"] == pytest.approx(wrong_from_relevant / len(b))
    assert values(m)["noise_sensitivity_in_irrelevant"] == pytest.approx(only_irrelevant / len(b))
    retrieved = [any(row) for row in a]
    both = sum(r and g for r, g in zip(retrieved, got, strict=True))
    assert values(m)["context_utilization"] == (
        pytest.approx(both / sum(retrieved)) if any(retrieved) else None
    )


@given(tables([0.0, 1.0]), st.data())
def test_hiding_cells_widens_the_bounds_around_the_truth(table, data):
    truth = ragchecker_metrics(*table)
    hidden = tuple(np.where(data.draw(arrays(bool, t.shape)), nan, t) for t in table)
    m = ragchecker_metrics(*hidden)
    for name in set(METRICS) - {"f1"}:
        found = m[name]
        assert math.isnan(found.value) == bool(found.reason)
        if not found.reason and name != "context_utilization":  # there hidden cells decide which claims count
            # Each that is left out may be a 0 or a 1.
            low = found.value * found.n / (found.n + found.n_left_out)
            high = low + found.n_left_out / (found.n + found.n_left_out)
            assert low - 1e-12 <= truth[name].value <= high + 1e-12


@given(tables([0.0, 0.4, 1.0, nan]), st.randoms(use_true_random=False))
def test_the_order_of_claims_and_passages_is_of_no_account(table, random):
    a, b, ok, got = table
    g, c, p = (random.sample(range(n), n) for n in (len(a), len(b), a.shape[1]))
    mixed = ragchecker_metrics(a[g][:, p], b[c][:, p], ok[c], got[g])
    assert values(mixed) == pytest.approx(values(ragchecker_metrics(*table)))


@given(tables([nan]))
def test_nothing_scored_is_nothing_known(table):
    m = ragchecker_metrics(*table)
    assert values(m) == dict.fromkeys(METRICS) and set(reasons(m).values()) == {"unscored"}
