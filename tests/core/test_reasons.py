"""A reason is the text of the diagnostic that gives it."""

import dataclasses
from pathlib import Path

import pandas as pd
import pytest

from core.diagnosis import REASON, Diagnosis
from core.run import Run

SAMPLES = sorted(path for path in Path("sample_data").iterdir() if any(path.glob("queries-*.parquet")))


def given(diagnosis, name):
    """The reasons that a diagnostic gives: of questions, of claims, and in its counts by name."""
    analysis = diagnosis[name]
    parts = [getattr(analysis, one.name) for one in dataclasses.fields(analysis)]
    frames = [one for one in parts if isinstance(one, pd.DataFrame)]
    codes = {str(code) for frame in frames if "reason" in frame for code in frame["reason"].dropna()}
    counted = [one.value for one in diagnosis.numbers(name) if one.define == REASON and one.value]
    return {code for code in codes.union(*counted) if code}


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda path: path.name)
def test_every_reason_of_the_sample_runs_is_defined_by_the_diagnostic_that_gives_it(folder):
    """Reproduction: on Confidence an empty answer read with the words of Uncertainty, the first of that name."""
    diagnosis, undefined = Diagnosis(Run.load(folder)), []
    for diagnostic in diagnosis.diagnostics:
        if diagnostic.lacks(diagnosis.run) is None:
            defined = {one.name for one in diagnostic.definitions if one.kind == REASON}
            undefined += [(diagnostic.name, one) for one in given(diagnosis, diagnostic.name) - defined]
    assert undefined == []
