from core.text.display import count


def test_a_count_has_its_noun_in_the_right_number():
    assert [count(n, "answer") for n in (0, 1, 2)] == ["0 answers", "1 answer", "2 answers"]
    assert [count(n, "query", "queries") for n in (1, 1_000)] == ["1 query", "1,000 queries"]
