"""Readings of given answers: from the cache, each once, counted, and not kept where there is none."""

import pytest

from core.errors import Cancelled, InputError
from core.llm import Capabilities, CompletionCache, Message, Request, request_key
from core.llm.types import Completion
from core.pipeline.asking import Asker
from tests.scripted import ScriptedLLM


class Scoring(ScriptedLLM):
    """Gives the length of turn and answer; an empty answer has no score."""

    def __init__(self):
        super().__init__(lambda request: "generated")
        self.capabilities = Capabilities(answer_logprob=True)
        self.read = []

    def score(self, messages, answers):
        self.read += zip(messages, answers, strict=True)
        return [
            (-float(len(turns[0].content)), -float(len(answer))) if answer else None
            for turns, answer in zip(messages, answers, strict=True)
        ]


def calls_of(llm, cache, cancelled=lambda: False):
    seen = []
    return Asker(llm, cache, None, cancelled, seen.append), seen


def test_readings_are_kept_and_counted():
    llm, cache = Scoring(), CompletionCache()
    turns = [(Message("user", text),) for text in ("a", "bb", "a", "ccc")]
    calls, seen = calls_of(llm, cache)
    expected = [(-1.0, -3.0), (-2.0, -3.0), (-1.0, -3.0), None]
    assert calls.score(turns, ["yes", "yes", "yes", ""]) == expected
    assert (len(llm.read), calls.n_made, seen) == (3, 3, [3])
    again, seen = calls_of(llm, cache)
    assert again.score(turns, ["yes", "yes", "yes", ""]) == expected
    # What could not be read is read again.
    assert (len(llm.read), again.n_made, seen) == (4, 1, [3, 4])
    assert again.score([turns[0]], ["no"]) == [(-1.0, -2.0)]
    assert llm.calls == 0


def test_a_cancel_keeps_what_was_read():
    llm, cache = Scoring(), CompletionCache()
    turns = [(Message("user", "x" * n),) for n in range(1, 41)]
    calls, _ = calls_of(llm, cache, lambda: len(llm.read) >= 32)
    with pytest.raises(Cancelled):
        calls.score(turns, ["yes"] * 40)
    assert len(llm.read) == len(cache) == 32
    calls, _ = calls_of(llm, cache)
    assert calls.score(turns, ["yes"] * 40)[-1] == (-40.0, -3.0)
    assert len(llm.read) == 40


def test_answers_to_one_conversation_are_read_together(monkeypatch):
    llm, parts = Scoring(), []
    plain = llm.score
    monkeypatch.setattr(llm, "score", lambda *pairs: parts.append(len(pairs[1])) or plain(*pairs))
    calls, _ = calls_of(llm, CompletionCache())
    long, others = [(Message("user", "long passage"),)], [(Message("user", str(n)),) for n in range(20)]
    calls.score(long * 40 + others, [f"claim {n}" for n in range(60)])
    # A part of any size would read the passage more than once.
    assert parts == [40, 16, 4]
    calls.score(others[:15] + long * 2 + others[15:], [f"other claim {n}" for n in range(22)])
    assert parts[3:] == [17, 5]


def test_all_can_be_read_in_one_call_and_none_where_all_are_known(monkeypatch):
    llm, parts, cache = Scoring(), [], CompletionCache()
    plain = llm.score
    monkeypatch.setattr(llm, "score", lambda *pairs: parts.append(len(pairs[1])) or plain(*pairs))
    turns = [(Message("user", str(n)),) for n in range(40)]
    first, _ = calls_of(llm, cache)
    found = first.score(turns, ["yes"] * 40, at_once=True)
    again, seen = calls_of(llm, cache)
    assert again.score(turns, ["yes"] * 40, at_once=True) == found
    assert (parts, again.n_made, again.n_cached, seen) == ([40], 0, 40, [40])


@pytest.mark.parametrize(
    ("max_tokens", "logprobs", "n_read"), [(0, True, 0), (1, True, 1), (0, False, 1), (24, True, 1)]
)
def test_a_reading_is_kept_as_a_call_for_no_more_tokens(max_tokens, logprobs, n_read):
    """Readings of earlier runs are found, and an ordinary call is no reading."""
    llm, cache, turn = Scoring(), CompletionCache(), Message("user", "abc")
    kept = Request((turn, Message("assistant", "yes")), max_tokens=max_tokens, logprobs=logprobs)
    cache.put(request_key(llm, kept), Completion("yes", "stop", 1, 1, 0.1, logprobs=(-9.0,)))
    found = calls_of(llm, cache)[0].score([(turn,)], ["yes"])
    assert (len(llm.read), found) == (n_read, [(-3.0, -3.0)] if n_read else [(-9.0,)])


def test_a_reading_that_is_kept_has_cost_no_tokens():
    llm, cache, turn = Scoring(), CompletionCache(), Message("user", "abc")
    calls_of(llm, cache)[0].score([(turn,)], ["yes"])
    key = request_key(llm, Request((turn, Message("assistant", "yes")), max_tokens=0, logprobs=True))
    kept = Completion("yes", "stop", 0, 0, 0.0, logprobs=(-3.0, -3.0))
    assert cache.get_many([key]) == {key: kept}


def test_estimates_are_counted_and_not_kept():
    class Screening(Scoring):
        def screen(self, messages, without, answers, cancelled):
            assert not cancelled()
            return [[(-float(len(rest)), -float(len(answer))) for answer in answers] for rest in without]

    llm, cache = Screening(), CompletionCache()
    turn = Message("user", "abc")
    calls, seen = calls_of(llm, cache)
    assert calls.screen((turn,), [(turn,), (), ()], ["yes", "no"]) == [
        [(-1.0, -3.0), (-1.0, -2.0)],
        [(-0.0, -3.0), (-0.0, -2.0)],
        [(-0.0, -3.0), (-0.0, -2.0)],
    ]
    assert (calls.n_made, calls.n_answers, calls.n_cached, seen, len(cache)) == (6, 6, 0, [6], 0)
    stopped, _ = calls_of(llm, cache, lambda: True)
    with pytest.raises(Cancelled):
        stopped.screen((turn,), [()], ["yes"])


def test_without_a_model_there_is_nothing_to_ask():
    calls, _ = calls_of(None, None)
    assert (calls.llm, calls.n_made, calls.n_answers) == (None, 0, 0)
    for ask in (lambda: calls.ask([]), lambda: calls.score([], [])):
        with pytest.raises(InputError, match="none is given"):
            ask()
