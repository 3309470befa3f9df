"""Every number, mode and reason of influence has its definition."""

import pandas as pd

from core.influence import analyse
from core.influence.definitions import METRICS, MODES, REASONS
from core.run import Run
from core.schema import TABLES


def test_every_computed_number_and_mode_is_described():
    run = Run.create({"source": "upload"}, queries=pd.DataFrame({"query_id": ["a"], "question": ["?"]}))
    q = analyse(run).queries
    assert set(MODES) <= set(q.columns)
    described = {*METRICS, *MODES, *TABLES["queries"].names, *TABLES["passages"].names}
    by_chance = {name for name in q.columns if name.endswith("_by_chance")}
    parts = {"chance_low", "chance_high", "inverted_below", "ndcg_p_value"}  # of the chance band and of nDCG
    plain = {
        *parts,
        "k",
        "reason",
        "label_reason",
        "reported_label",
        "n_repeats",
        "n_above_noise",
        "has_ties",
        "correct",
        "n_modes",
        "influences",  # the passages' influence, in their order of retrieval
    }
    assert set(q.columns) <= described | plain | by_chance, set(q.columns) - described - plain - by_chance
    assert set(q["reason"]) <= set(REASONS)
    for metric in METRICS.values():
        assert metric.title and metric.meaning and metric.undefined_when
