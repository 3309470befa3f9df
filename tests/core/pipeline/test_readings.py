"""Readings of given answers: from the cache, each once, counted, and not kept where there is none."""

import pytest

from core.errors import Cancelled, InputError
from core.llm import Capabilities, CompletionCache, Message
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
    turns = [(Message("user", "long passage"),)] * 40 + [(Message("user", str(n)),) for n in range(20)]
    calls.score(turns, [f"claim {n}" for n in range(60)])
    # A part of any size would read the passage more than once.
    assert parts == [40, 16, 4]


def test_without_a_model_there_is_nothing_to_ask():
    calls, _ = calls_of(None, None)
    assert (calls.llm, calls.n_made, calls.n_answers) == (None, 0, 0)
    for ask in (lambda: calls.ask([]), lambda: calls.score([], [])):
        with pytest.raises(InputError, match="none is given"):
            ask()
