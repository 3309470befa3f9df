"""Which texts have a word of a query, which a score alone does not say."""

import pytest

from core.retrieval import FastBM25Retriever


@pytest.mark.parametrize(
    ("query", "held"),
    [
        ("apple", [True, False]),
        ("pear or apple", [True, True]),
        ("plum", [False, False]),
        ("", [False, False]),
    ],
)
def test_a_text_that_has_a_word_holds_it_whatever_its_score(query, held):
    retriever = FastBM25Retriever(["a red apple", "a green pear"])
    assert retriever.holding(query).tolist() == held
    # A word of half the texts tells nothing: its weight is log(1.5) - log(1.5).
    assert retriever.scores(query).tolist() == [0.0, 0.0]
