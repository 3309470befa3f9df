import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from core.diagnosis import Diagnosis
from core.diagnostics import DIAGNOSTICS
from tests.random_runs import CORRECT, random_run


def test_a_run_of_pure_chance_fills_every_diagnostic_and_is_seeded():
    run, same, other = random_run(1, 12, 4), random_run(1, 12, 4), random_run(2, 12, 4)
    assert [one.lacks(run) for one in DIAGNOSTICS] == [None] * len(DIAGNOSTICS)
    assert run.run_id == same.run_id != other.run_id
    assert len(run.queries) == 12 and len(run.passages) == 48


def test_nothing_in_it_is_related_to_anything():
    """Rank correlations of what is drawn apart, over 200 questions: 5 standard errors at most."""
    run = random_run(3, 200, 4)
    diagnosis = Diagnosis(run)
    correct = diagnosis["answers"].queries["correct"].astype(float)
    assert abs(correct.mean() - CORRECT) < 5 * (0.24 / 200) ** 0.5
    assert (run["signals"][["similarity", "llm_score"]].mean() - CORRECT).abs().max() < 0.05
    uncertain = diagnosis["uncertainty"].queries["meaning_share"].astype(float)
    first = run.passages.groupby("query_id")["logprob_drop"].first().reset_index(drop=True)
    frame = pd.DataFrame({"correct": correct, "share": uncertain, "drop": first})
    frame = frame.join(run["signals"].drop(columns="query_id"))
    rho = spearmanr(frame).statistic
    assert np.abs(rho[~np.eye(len(rho), dtype=bool)]).max() < 5 / 200**0.5
