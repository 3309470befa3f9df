import pytest

from core.claims.language.sentence_content import parse


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        # The capital at the start proves nothing, unless another follows it.
        ("Mills were built by Raymond Unwin in Letchworth.", {"unwin", "letchworth"}),
        ("Raymond Unwin built it.", {"unwin"}),
        ("the old mill is by the river", set()),
        ("It was built by The Firm of 1903.", {"firm"}),
        ("Unwin.", {"unwin"}),
    ],
)
def test_names_are_the_last_words_of_runs_of_capitals(sentence, names):
    assert parse(sentence).names == names
