"""What the diagnostic declares."""

from core.socket import QuestionColumn
from core.uncertainty.diagnostic import STABLE_FROM, UNCERTAINTY

SURE = {"bounds": (0.0, 1.0), "higher_is": "more confident"}


def test_columns_and_settings():
    assert UNCERTAINTY.columns == (
        QuestionColumn("stability", "Stability"),
        QuestionColumn("agreement", "Agreement with the samples", **SURE),
        QuestionColumn("agreement_rouge_l", "Word overlap with the samples", **SURE, is_secondary=True),
        QuestionColumn("entropy", "Semantic entropy", higher_is="more uncertain"),
        QuestionColumn("sum_eigen", "SumEigen", higher_is="more uncertain"),
    )
    assert [(one.name, one.default) for one in UNCERTAINTY.settings] == [
        ("stable_from", 0.8), ("by_embedding", False),
    ]  # fmt: skip
    # Below one half two meanings could each hold enough of the samples.
    assert (STABLE_FROM.low, STABLE_FROM.high) == (0.5, 1.0)
