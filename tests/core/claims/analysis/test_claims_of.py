"""The claims of one answer are the rows that it has among the claims of all."""

import pandas as pd
import pytest

from core.diagnosis import Diagnosis
from core.errors import InputError
from core.run import Run


@pytest.mark.parametrize("name", ["recorded_run", "worked_answers"])
def test_one_answer_has_the_rows_that_it_has_among_all(name):
    found = Diagnosis(Run.load(f"sample_data/{name}"))["claims"]
    assert found.claims["n_removals"].any() == (name == "recorded_run")
    for query_id in found.queries["query_id"].head(25):
        expected = found.claims[found.claims["query_id"] == query_id].reset_index(drop=True)
        pd.testing.assert_frame_equal(found.claims_of(query_id), expected, check_dtype=not expected.empty)


def test_a_stranger_has_none():
    found = Diagnosis(Run.load("sample_data/recorded_run"))["claims"]
    with pytest.raises(InputError, match="must be a question of the run"):
        found.claims_of("nobody")
