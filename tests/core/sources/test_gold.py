from core.sources.question import gold_spans, holds_gold


def test_only_white_space_may_differ():
    text = "It opened\nin  May 1931. It opened in May."
    assert gold_spans(text, ["opened in May"]) == [(3, 17), (27, 40)]
    assert text[3:17] == "opened\nin  May"
    assert gold_spans(text, ["OPENED in May", "", "  "]) == []


def test_a_fragment_is_no_pattern():
    assert gold_spans("a+b (c)", ["a+b (c)"]) == [(0, 7)]
    assert gold_spans("aab c", ["a+b (c)"]) == []


def test_half_of_a_fragment_makes_a_passage_gold():
    spans = [(10, 20)]
    assert holds_gold(0, 15, spans) and holds_gold(15, 30, spans)
    assert not holds_gold(0, 14, spans)
    assert holds_gold(16, 30, spans) is False
    assert not holds_gold(0, 100, [])
