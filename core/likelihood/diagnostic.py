"""The diagnostic *likelihood*: which passage made the answer, and which the correct one would need."""

from __future__ import annotations

import pandas as pd

from core.analyses import Analyses
from core.likelihood.analysis import LikelihoodAnalysis, analyse_likelihood
from core.likelihood.definitions import DEFINITIONS
from core.likelihood.findings import findings
from core.likelihood.numbers import numbers
from core.likelihood.step import LikelihoodStep
from core.rows import once_for
from core.socket import Diagnostic, Need, QuestionColumn


def _analyse(diagnosis: Analyses) -> LikelihoodAnalysis:
    def analysed(_: pd.DataFrame) -> LikelihoodAnalysis:
        by_words = diagnosis.at({**diagnosis.settings, "influence": "rouge"})["influence"]
        rouge, correct = by_words.passages["influence"].to_numpy(), diagnosis["answers"].queries["correct"]
        return analyse_likelihood(diagnosis.run, rouge, correct)

    # No setting changes it.
    found: LikelihoodAnalysis = once_for(diagnosis.run.passages, "likelihood", analysed)
    return found


LIKELIHOOD = Diagnostic(
    name="likelihood",
    title="Answer likelihood",
    question="Which passage makes the given answer likelier, and which the correct one?",
    analyse=_analyse,
    numbers=numbers,
    findings=findings,
    reads=("answers", "influence"),
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
