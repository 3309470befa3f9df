"""The diagnostic *likelihood*: which passage made the answer, and which the correct one would need."""

from __future__ import annotations

from core.diagnosis import Diagnosis, Diagnostic, Need, QuestionColumn
from core.likelihood.analysis import LikelihoodAnalysis, analyse_likelihood
from core.likelihood.definitions import DEFINITIONS
from core.likelihood.findings import findings
from core.likelihood.numbers import numbers
from core.likelihood.step import LikelihoodStep


def _analyse(diagnosis: Diagnosis) -> LikelihoodAnalysis:
    influence = diagnosis.at({**diagnosis.settings, "influence": "rouge"})["influence"]
    return analyse_likelihood(diagnosis.run, influence.passages["influence"].to_numpy())


LIKELIHOOD = Diagnostic(
    name="likelihood",
    title="Answer likelihood",
    question="Which passage makes the given answer likelier, and which the correct one?",
    analyse=_analyse,
    numbers=numbers,
    findings=findings,
    reads=("influence",),
    needs=(
        Need(
            "passages",
            "Not scored: run the step likelihood with a model that can read a given answer.",
            "logprob_drop",
        ),
    ),
    definitions=DEFINITIONS,
    columns=(
        QuestionColumn("made_drop", "Largest drop of the answer", is_secondary=True),
        QuestionColumn("needed_drop", "Largest drop of the reference", needs_labels=True, is_secondary=True),
    ),
    step=LikelihoodStep,
    icon=":material/query_stats:",
)
