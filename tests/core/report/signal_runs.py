"""A diagnostic of given numbers, and runs whose signals can be worked out on paper."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.diagnosis import Diagnosis
from core.run import Run
from core.socket import Diagnostic, Need, QuestionColumn

COLUMNS = (
    QuestionColumn("label", "Label"),
    QuestionColumn("right", "Right", "bool", higher_is="better"),
    QuestionColumn("other", "Another yes or no", "bool"),
    QuestionColumn("parts", "Parts", "list"),
    QuestionColumn("sure", "Sureness", higher_is="more confident"),
    QuestionColumn("doubt", "Doubt", higher_is="more uncertain"),
    QuestionColumn("size", "Size", "{:g}"),
)


@dataclass(frozen=True)
class Given:
    queries: pd.DataFrame


def diagnosis_of(columns=COLUMNS, needs=(), signals=None, second=None, **values):
    """The diagnosis of a run with these values per question; columns without values are missing in all.

    ``second`` has columns and values of a second diagnostic.
    """
    n = len(next(iter(values.values()))) if values else 0
    ids = [f"q{i}" for i in range(n)]
    queries = pd.DataFrame({"query_id": ids, "question": [f"Question {i}?" for i in range(n)]})
    run = Run.create(
        {"source": "upload"}, queries=queries, **({} if signals is None else {"signals": signals})
    )

    def made(name, own, known):
        table = queries.assign(**{c.name: known.get(c.name, [np.nan] * n) for c in own})
        return Diagnostic(name, f"{name.capitalize()} title", "?", lambda _: Given(table), lambda _: (), columns=own,
                          needs=needs)  # fmt: skip

    found = [made("toy", columns, values)]
    if second is not None:
        found.append(made("second", *second))
    return Diagnosis(run, diagnostics=found)


def unmet():
    """A need that no run meets."""
    return (Need("claims", "Nothing here."),)
