"""What the analysis says of subsets that were measured: from tables of measurements made by hand."""

import math
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

from core.attribution.analysis import READABLE, UNTOLD, analyse
from core.attribution.measured import ablation_id
from core.attribution.methods import banzhaf
from core.run import Run
from core.stats.designs import all_masks
from tests.core.attribution.attribution_runs import attribution_run

COLUMNS = (
    "query_id", "ablation_id", "kept", "order", "near_duplicates", "answer", "answer_status", "again",
    "logprob", "n_tokens",
)  # fmt: skip
UNWIN, YEAR = "Raymond Unwin built it", "It was built in 1901"


def read_rows(query_id, k, score, orders=()):
    """One row for every subset, in the order of the answer and in ``orders``; None = it failed."""
    rows = []
    for mask in all_masks(k):
        for order in (None, *orders):
            value = score(mask, range(k) if order is None else order)
            rows.append({
                "query_id": query_id, "ablation_id": ablation_id(mask, None if order is None else np.array(order)),
                "kept": ablation_id(mask), "order": None if order is None else [f"p{i}" for i in order],
                "answer_status": "error" if value is None else "answered", "logprob": value, "n_tokens": 2,
            })  # fmt: skip
    return rows


def with_rows(run, rows, claims=(), place=False):
    """The run with these measurements."""
    tables = {**run.tables, "ablations": pd.DataFrame(rows).reindex(columns=[*COLUMNS])}
    if claims:
        tables["ablated_claims"] = pd.DataFrame(
            claims, columns=["query_id", "ablation_id", "claim_id", "logprob"]
        )
    steps = {"attribution": {"options": {"place": place}}}
    return Run.create({**run.manifest, "steps": steps}, **tables)


def placed_run(effects):
    """Runs whose scores are what each place adds, by question: the first so much, the last so much less."""
    run, rows = attribution_run(*(k for k, _ in effects)), []
    for i, (k, effect) in enumerate(effects, start=1):
        at = [effect, *[0.0] * (k - 2), -effect]

        def score(mask, order, at=at):
            return -20.0 + sum(gain for gain, one in zip(at, order, strict=True) if mask[one])

        rows += read_rows(f"q{i}", k, score, [*permutations(range(k))])
    return with_rows(run, rows, place=True)


def test_effects_of_places_are_means_over_the_questions_of_the_commonest_size():
    """Of 1 and 2 the mean is 1.5, and its 95 % interval 12.7062 / 2 on both sides; three passages are rarer."""
    found = analyse(placed_run([(2, 1.0), (3, 5.0), (2, 2.0)]))
    low, high = 1.5 - 12.7062 / 2, 1.5 + 12.7062 / 2
    np.testing.assert_allclose(found.slots, [[1, 1.5, low, high, 2], [2, -1.5, -high, -low, 2]], atol=1e-4)
    shown = found.passages[["query_id", "slot", "passage_effect", "slot_effect"]].to_numpy().tolist()
    wanted = [("q1", [1, -1]), ("q2", [5, 0, -5]), ("q3", [2, -2])]
    assert [row[:3:2] + row[3:] for row in shown] == [
        [one, pytest.approx(0, abs=1e-9), pytest.approx(effect, abs=1e-9)]
        for one, effects in wanted
        for effect in effects
    ]
    # With all passages there is one at every place, whoever it is.
    assert found.queries["swap"].tolist() == [0, 0, 0]


def test_of_sizes_that_are_as_common_the_larger_one_is_shown():
    found = analyse(placed_run([(3, 1.0), (2, 4.0)]))
    assert found.slots[["slot", "n"]].to_numpy().tolist() == [[1, 1], [2, 1], [3, 1]]
    assert found.slots["mean"].tolist() == pytest.approx([1, 0, -1], abs=1e-9)
    assert found.slots[["low", "high"]].isna().all(axis=None)  # of one question there is no interval


def test_without_other_orders_nothing_is_said_of_places():
    found = analyse(with_rows(attribution_run(2), read_rows("q1", 2, lambda mask, _: -9.0 + mask[0])))
    assert found.slots.empty and found.passages[["passage_effect", "slot_effect"]].isna().all(axis=None)
    assert found.queries[["swap", "slot_share", "slot_p_value"]].isna().all(axis=None)


def claimed_run(score, k=3, claims=(UNWIN, YEAR), support=()):
    """Claims read under all subsets, at ``score(claim, mask)``."""
    rows = read_rows("q1", k, lambda mask, _: -20.0 + mask.sum())
    read = [
        ("q1", ablation_id(mask), f"c{i}", score(i, mask))
        for i in range(len(claims))
        for mask in all_masks(k)
    ]
    return with_rows(attribution_run(k, claims=claims, support=support), rows, read)


def test_a_claim_that_no_passage_moves_has_no_first_passage_and_no_disagreement():
    """The first claim rests on the second passage, the other one on none: its scores are 0, and 0 is not above 0."""
    support = [(0.9, 0.2, 0.1), (0.9, 0.2, 0.1)]
    found = analyse(claimed_run(lambda i, mask: -9.0 + 2.0 * mask[1] * (i == 0), support=support)).claims
    assert found["is_first"].tolist() == [False, True, False, False, False, False]
    assert found["disagrees"].tolist() == [True] * 3 + [None] * 3
    assert found["score"].tolist() == [0, 2, 0, 0, 0, 0]
    assert found["slot"].tolist() == [1, 2, 3] * 2 and found["support"].tolist() == [0.9, 0.2, 0.1] * 2
    assert found["passage_id"].tolist() == ["p0", "p1", "p2"] * 2
    assert found["text"].tolist() == [UNWIN] * 3 + [YEAR] * 3


@pytest.mark.parametrize(
    ("support", "disagrees"),
    [
        ((0.1, 0.5, 0.9), True),  # others support it, one of them just so
        ((0.5, 0.9, 0.9), False),  # the first does, just so
        ((0.49, 0.49, 0.49), False),  # none does
        ((0.1, 0.9), None),  # of one it is unknown
        ((), None),
    ],
)
def test_influence_and_support_of_a_claim_disagree_where_only_others_support_it(support, disagrees):
    given = [support, support] if support else ()
    found = analyse(claimed_run(lambda i, mask: -9.0 + 2.0 * mask[0], support=given)).claims
    assert found["disagrees"].tolist() == [disagrees] * 6
    assert found["is_first"].tolist() == [True, False, False] * 2


def test_where_a_subset_failed_scores_of_claims_are_estimates_with_intervals():
    """Seven of eight subsets, and 1 more where all passages are there: regression, as of any masks.

    The first passage counts most, but its interval reaches below 0.
    """

    def score(i, mask):
        return None if not mask.any() else -9.0 + 0.2 * mask[0] + 1.0 * mask.all()

    found = analyse(claimed_run(score)).claims.head(3)
    masks = all_masks(3)[1:]
    wanted = banzhaf(masks, np.array([score(0, mask) for mask in masks]))
    np.testing.assert_allclose(found["score"].astype(float), wanted.scores)
    np.testing.assert_allclose(found[["low", "high"]].astype(float), wanted.interval)
    assert -1 < found["low"].iloc[0] < 0 < found["score"].iloc[0] and not found["is_first"].any()
    assert found["disagrees"].isna().all()


def test_a_claim_that_no_subset_tells_of_is_left_out_alone():
    found = analyse(claimed_run(lambda i, mask: None if i == 0 else -9.0 + 2.0 * mask[1])).claims
    assert found["text"].tolist() == [YEAR] * 3 and found["score"].tolist() == [0, 2, 0]


def test_claims_of_generated_answers_are_the_share_of_their_words_in_them():
    """The first passage brings the claim's four words, or two of them alone; one answer failed.

    Without passages there was no answer: three subsets are left, which say as much as a line through them.
    """
    answers = {"11": UNWIN, "10": "Raymond Unwin", "01": "nothing", "00": None}
    rows = [
        {"query_id": "q1", "ablation_id": key, "kept": key, "answer": text, "again": text,
         "answer_status": "error" if text is None else "answered"}
        for key, text in answers.items()
    ]  # fmt: skip
    found = analyse(with_rows(attribution_run(2, claims=(UNWIN, "Something else")), rows)).claims
    assert found["claim_id"].tolist() == ["c0", "c0", "c1", "c1"]
    # Recall: 1 with both, 1/2 with the first, 0 with the second alone.
    assert found["score"].tolist() == pytest.approx([1, 0.5, 0, 0])
    assert found["is_first"].tolist() == [False] * 4 and found["low"].isna().all()


def test_passages_are_told_in_the_order_of_the_prompt():
    run = attribution_run(3)
    tables = {**run.tables, "passages": run.passages.iloc[[2, 0, 1]]}
    effects = np.array([3.0, 2.0, 1.0])
    rows = read_rows("q1", 3, lambda mask, _: -20.0 + float(mask @ effects))
    found = analyse(with_rows(Run.create(run.manifest, **tables), rows)).passages
    assert found["passage_id"].tolist() == ["p0", "p1", "p2"] and found["slot"].tolist() == [1, 2, 3]
    for name in ("score", "low", "high"):  # all subsets: no width
        np.testing.assert_allclose(found[name], effects, atol=1e-9)
    assert found["title"].tolist() == ["=1+1", "", ""]
    assert found[["shapley", "shapley_low", "shapley_high"]].isna().all(axis=None)


def test_pairs_name_their_passages_and_places():
    """The second and the third passage hold the same evidence; the first needs the fourth."""

    def score(mask, _order):
        return -20.0 + 4.0 * (mask[1] | mask[2]) + 2.0 * (mask[0] & mask[3])

    found = analyse(with_rows(attribution_run(4), read_rows("q1", 4, score)))
    columns = ["first", "second", "first_slot", "second_slot", "either"]
    assert found.pairs[columns].to_numpy().tolist() == [["p1", "p2", 2, 3, True], ["p0", "p3", 1, 4, False]]
    for name in ("interaction", "low", "high"):  # without noise no width
        assert found.pairs[name].tolist() == pytest.approx([4, -2])
    # While the weaker pair, of half the effect, is still part of the error, t is 4 / 2 times the root of the 10
    # degrees of freedom: 16 subsets less a constant, four passages, and the pair; times the 6 pairs.
    assert found.pairs["p_value"].tolist() == pytest.approx([6 * 2 * student.sf(2 * math.sqrt(10), 10), 0])
    assert found.queries[["n_either", "n_both"]].to_numpy().tolist() == [[1, 1]]


def test_every_question_has_its_row_and_its_verdict():
    """Of 16 subsets the order can be read; of 8 of noise nothing is told; the others have no LDS."""
    rng = np.random.default_rng(1)
    run = attribution_run(4, 3, 2, 2)
    rows = [
        *read_rows("q1", 4, lambda mask, _: -20.0 + float(mask @ [4.0, 2, 1, 0.5])),
        *read_rows("q2", 3, lambda *_: -20.0 + rng.normal()),
        *read_rows("q3", 2, lambda mask, _: None if not mask[0] else -20.0),
    ]
    q = analyse(with_rows(run, rows)).queries
    assert q["reading"].fillna("").tolist() == [READABLE, UNTOLD, "", ""]
    assert q["readable"].fillna(False).tolist() == [True, False, False, False]
    assert q["reason"].fillna("").tolist() == ["", "", "incomplete", "not_measured"]
    counts = ["k", "n_calls", "n_failed", "n_test", "n_near_duplicates"]
    assert q[counts].fillna(-1).to_numpy().tolist() == [
        [4, 16, 0, 16, 0], [3, 8, 0, 8, 0], [2, 4, 2, 4, 0], [2, -1, -1, -1, -1],
    ]  # fmt: skip
    assert q["drop_3"].iloc[:2].notna().tolist() == [True, False] and q["drop_1"].iloc[0] == pytest.approx(4)


def test_a_frame_has_the_numbers_of_the_question_beside_each_passage():
    rows = read_rows("q1", 2, lambda mask, _: -20.0 + mask[0])
    frame = analyse(with_rows(attribution_run(2), rows)).to_frame()
    assert frame["passage_id"].tolist() == ["p0", "p1"] and frame["n_calls"].tolist() == [4, 4]
    assert "question" not in frame and frame["reason"].tolist() == ["too_few_masks"] * 2
