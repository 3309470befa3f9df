from hypothesis import given
from hypothesis import strategies as st

from core.llm.embedded.scoring import batches, fitting


def test_a_processor_takes_one_after_another_as_they_came():
    assert batches([3, 1, 2], 1, lambda _: (0, 0)) == [[3], [1], [2]]


def test_only_one_group_shares_a_batch():
    groups = {0: (8, 5), 1: (4, 9), 2: (8, 3), 3: (4, 1), 4: (8, 4)}
    assert batches(list(groups), 2, groups.__getitem__) == [[3, 1], [2, 4], [0]]


def test_answers_of_another_length_are_not_padded_to_one():
    sizes = {0: (10, 5), 1: (4, 2), 2: (4, 2)}
    assert fitting([0, 1, 2], 600, sizes.__getitem__) == [[0], [1, 2]]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50)), max_size=40), st.integers(2, 5))
def test_every_prompt_is_in_one_batch(order, most):
    found = batches(range(len(order)), most, order.__getitem__)
    assert sorted(index for batch in found for index in batch) == list(range(len(order)))
    for batch in found:
        assert 1 <= len(batch) <= most
        assert len({order[index][0] for index in batch}) == 1
