"""A reason is the text of the diagnostic that gives it."""

from pathlib import Path

import pytest

from core.diagnosis import Diagnosis
from core.run import Run
from core.socket import REASON

SAMPLES = sorted(path for path in Path("sample_data").iterdir() if any(path.glob("queries-*.parquet")))


def given(diagnosis, name):
    """The reasons that a diagnostic gives: of questions, and in its counts by reason."""
    queries = diagnosis[name].queries
    codes = set(queries["reason"].dropna()) if "reason" in queries else set()
    counted = [one.value for one in diagnosis.numbers(name) if one.define == REASON and one.value]
    return {str(code) for code in codes.union(*counted) if code}


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda path: path.name)
def test_every_reason_of_the_sample_runs_is_defined_by_the_diagnostic_that_gives_it(folder):
    """Reproduction: on Confidence an empty answer read with the words of Uncertainty, the first of that name."""
    diagnosis, undefined = Diagnosis(Run.load(folder)), []
    for diagnostic in diagnosis.diagnostics:
        if diagnostic.lacks(diagnosis.run) is None:
            defined = {one.name for one in diagnostic.definitions if one.kind == REASON}
            undefined += [(diagnostic.name, one) for one in given(diagnosis, diagnostic.name) - defined]
    assert undefined == []
