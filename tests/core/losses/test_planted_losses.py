"""The stage that was planted in a question is the stage that is found."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from core.losses.ladder import ABSENT, DOUBTFUL, LOST, READING, RETRIEVAL, STAGES, UNKNOWN
from tests.core.losses.losses_runs import losses_of, planted, reading, run_of, tried

N = 200


def found(n, wrong_rate, seed=0):
    asked, readers, wanted = planted(n, seed)
    llm = reading(readers, wrong_rate)
    return losses_of(tried(run_of(asked, llm), llm)), np.array(wanted)


def test_every_planted_stage_is_found_where_nothing_else_moves_answers():
    losses, wanted = found(N, 0.0)
    assert losses.queries["stage"].tolist() == wanted.tolist()
    assert {one.stage: one.n for one in losses.steps} == {stage: Counter(wanted)[stage] for stage in STAGES}
    assert all(one.n >= 12 for one in losses.steps if one.stage != DOUBTFUL)
    assert losses.n == N and losses.placebo.fixed == 0
    assert losses.step(RETRIEVAL).expected == 0


@pytest.mark.parametrize("seed", range(3))
def test_and_nearly_all_where_one_call_in_a_hundred_errs(seed):
    losses, wanted = found(N, 0.01, seed)
    hits = losses.queries["stage"].eq(wanted)
    assert hits.mean() >= 0.95
    # It errs indeed: without errors all would be found.
    assert not hits.all()


def test_labels_alone_bound_what_retrieval_can_have_lost():
    asked, readers, wanted = planted(N)
    losses = losses_of(run_of(asked, reading(readers)))
    lost = [stage for stage in wanted if stage in LOST]
    # No step was run: all that is known is which prompts lack a gold passage.
    assert losses.step(UNKNOWN).n == len(lost) - wanted.count(ABSENT)
    assert losses.n_tried == 0 and losses.fixes == ()
    assert losses.missed_at_most == wanted.count(RETRIEVAL) + wanted.count(UNKNOWN)
    # Where no document holds the evidence, no retriever could have found it.
    assert losses.n_known_evidence == len(lost) - wanted.count(ABSENT)


def test_a_wrong_verdict_is_told_from_a_wrong_answer():
    asked, readers, _ = planted(40)
    llm = reading(readers)
    run = tried(run_of(asked, llm), llm)
    before = losses_of(run).queries.set_index("query_id")["stage"]
    query_id = before[before.eq(READING)].index[0]
    claims = pd.DataFrame(
        {
            "query_id": [query_id] * 2, "claim_id": ["r1", "r2"], "text": ["Unwin built it.", "It has arches."],
            "side": ["reference"] * 2, "counterpart": ["Entailment", "Entailment"],
        }
    )  # fmt: skip
    after = losses_of(run.derive(claims=claims)).queries.set_index("query_id")["stage"]
    assert after[query_id] == DOUBTFUL
    assert after.drop(query_id).equals(before.drop(query_id))
    neutral = losses_of(run.derive(claims=claims.assign(counterpart=["Entailment", "Neutral"])))
    assert neutral.queries.set_index("query_id")["stage"][query_id] == READING
