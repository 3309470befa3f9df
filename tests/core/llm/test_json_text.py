import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.llm.structured import MOST_CHARACTERS, MOST_DEPTH, NotJson, json_values

FENCE = "```"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ('\ufeff  {"a": 1}\n', [{"a": 1}]),
        (f'{FENCE}json\n{{"a": 1}}\n{FENCE}', [{"a": 1}]),
        (f"{FENCE}\n7\n{FENCE}", [7]),
        (f'Here it is:\n{FENCE}json\n{{"a": 1}}\n{FENCE}\nAs asked.', [{"a": 1}]),
        ('The answer is {"a": {"b": []}}. Hope it helps {you}!', [{"a": {"b": []}}]),
        ('As {curly} [see 2] said: {"a": 1}', [{"a": 1}]),
        ('As {curly [see 2] {and more}} said: {"a": 1}', [{"a": 1}]),
        ('{"a": "</think>b"}', [{"a": "</think>b"}]),
        ('{"a": 1} or {"a": 2}', [{"a": 1}, {"a": 2}]),
        ("[1] says [2, 3]", [[1], [2, 3]]),
        ('{"a": [1, 2,], "b": "x,]",}', [{"a": [1, 2], "b": "x,]"}]),
        ('He said "no": {"a": "x,}",}', [{"a": "x,}"}]),
        ('{"a": "two\nlines\tand a tab"}', [{"a": "two\nlines\tand a tab"}]),
        ('<think>{"a": 1} is wrong</think>{"a": 2}', [{"a": 2}]),
        # With two closing tags, what stands between them is still draft.
        ('<think>x</think>{"a": 1} is wrong</think>{"a": 2}', [{"a": 2}]),
        ("true", [True]),
        ("null", [None]),
        ('"just text"', ["just text"]),
        ("-1.5e3", [-1500.0]),
        ('{"a": "\\u00e9\\ud83d\\ude00"}', [{"a": "é😀"}]),
    ],
)
def test_what_stands_around_json_is_passed_over(text, expected):
    found = []
    try:
        found += json_values(text)
    except NotJson:
        pytest.fail(f"{text!r} has JSON in it")
    assert found == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \ufeff \n", "empty"),
        ("I cannot do that.", "there is no JSON in it"),
        ("12 of 20", "there is no JSON in it"),
        ('"yes", she said', "there is no JSON in it"),
        ("Score: 7", "there is no JSON in it"),
        ('{"a": 1', "Expecting ',' delimiter at character 8$"),
        ('{"a": [1,], "b": ', "at character 10$"),
        ('{"a": [{"b": 1}, {"b"', "at character"),
        ('{"a": [{"b": 1} {"b": 2}]}', "at character"),
        ('{"a": "unfinished', "at character"),
        ("{'a': 1}", "there is no JSON in it"),
        ('{"a": 1, "a": 2}', "the name 'a' comes twice"),
        ('{"x": {"a": 1, "a": 1}}', "comes twice"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("[-Infinity]", "-Infinity is not JSON"),
        ("[1e999]", "too large"),
        (f"[{'9' * 400}]", "too large"),
        ('{"a": "\\ud800"}', "half a surrogate pair"),
        ('{"\\udc00": 1}', "half a surrogate pair"),
        ("[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1), "deeper than"),
        ("[" * 100_000, "deeper than"),
        ('{"a":' * 30_000 + "1" + "}" * 30_000, "deeper than"),
        ("x" * (MOST_CHARACTERS + 1), "characters, more than"),
    ],
)
def test_what_must_not_be_used_is_refused_with_the_reason(text, reason):
    with pytest.raises(NotJson, match=reason):
        list(json_values(text))


@pytest.mark.parametrize(
    "text",
    [
        '{"list": [{"score": 1}, {"score": 2}',
        '{"list": [{"score": 1} {"score": 2}]}',
        "{'list': [{\"score\": 1}]}",
        '{list: {"score": 1}}',
        '{list: {"score": 1}',
        '{"text": "so {\\"score\\": 1}", "score": }',
    ],
)
def test_a_part_of_broken_json_is_never_taken_for_the_whole(text):
    with pytest.raises(NotJson):
        list(json_values(text))


def test_the_limit_of_length_is_exact():
    text = f'"{"x" * 199_998}"'
    assert list(json_values(text)) == ["x" * 199_998]


def test_twenty_brackets_of_a_reply_are_looked_at():
    assert list(json_values(" and ".join(f"[{n}]" for n in range(25)))) == [[n] for n in range(20)]
    assert list(json_values("{so} " * 19 + "[1]")) == [[1]]
    with pytest.raises(NotJson, match="there is no JSON in it"):
        list(json_values("{so} " * 20 + "[1]"))


def test_the_limit_of_depth_is_exact():
    text = "[" * MOST_DEPTH + "]" * MOST_DEPTH
    assert list(json_values(text)) == [json.loads(text)]


def test_hostile_prose_takes_no_time():
    # Quadratic work would take minutes here.
    for text in ("{ " * 90_000, "[{" * 90_000, '{"' * 90_000, ",]" * 90_000, '"' * 190_000, "{,  " * 45_000):
        with pytest.raises(NotJson):
            list(json_values(text))


def seconds(text):
    """The least of five times, of this process alone: other work on the machine does not count."""
    times = []
    for _ in range(5):
        start = time.process_time()
        with pytest.raises(NotJson):
            list(json_values(text))
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize(
    ("begin", "loop", "end"),
    [
        ('{"claims":[{"sentence":1,"claim":"', '\\"', ""),
        ('{"a":', '"\\"', "\\"),
        (f"{FENCE}", "\n", "x"),
        (f"{FENCE}json", " \n", "x"),
        ("{", ", ", "x"),
    ],
)
def test_a_reply_that_loops_costs_in_proportion_to_its_length(begin, loop, end):
    short, long = (begin + loop * (n // len(loop)) + end for n in (4_000, 64_000))
    seconds(short)
    # 16 times the text: 16 where the work is linear, 256 where it is quadratic.
    assert seconds(long) < 64 * seconds(short)


json_data = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(json_data)
def test_any_json_is_read_as_it_was_written(value):
    assert next(json_values(json.dumps(value))) == value
    text = f"Sure!\n{FENCE}json\n{json.dumps({'v': value}, ensure_ascii=False, indent=1)}\n{FENCE}"
    assert next(json_values(text)) == {"v": value}


@given(st.text() | st.text(alphabet='{}[]",:\\ntrue01.eE- \n`N'))
def test_any_text_gives_json_or_a_reason(text):
    try:
        for value in json_values(text):
            assert json.loads(json.dumps(value, allow_nan=False)) == value
            assert not (isinstance(value, float) and math.isnan(value))
    except NotJson as error:
        assert str(error)
