"""What a text says, in stems; a plain text is read on a shorter way, with the same result."""

import pytest

from core.text.reading import known_stems, read


def test_stems_of_a_text_with_a_number_and_a_denial():
    found = known_stems("Fifteen arches did not fall")
    assert (found.content, found.numbers, found.denies) == ({"#15", "arch", "fall"}, {"#15"}, True)


def test_stems_of_a_plain_text():
    found = known_stems("The old mill burned")
    assert (found.content, found.all) == ({"old", "mill", "burn"}, {"the", "old", "mill", "burn"})
    assert (found.numbers, found.denies) == (frozenset(), False)


@pytest.mark.parametrize("text", ["The old mill burned", "Fifteen arches did not fall", "15个桥孔", "Cầu cũ"])
def test_the_stems_are_those_of_the_words_read_one_by_one(text):
    found, words = known_stems(text), read(text)
    assert found.content == {word.stem for word in words if word.content}
    assert found.all == {word.stem for word in words}
    assert found.numbers == {word.stem for word in words if word.is_number}
    assert found.denies == any(word.negates for word in words)
