"""Confidence from several answers: the variance by hand, its interval, early stop, and what is undefined."""

import math

import numpy as np
import pytest

from core.errors import InputError
from core.llm.cache import CompletionCache
from core.llm.types import Completion
from core.uncertainty import mc_dropout
from core.uncertainty.mc_dropout import MCDropoutConfidence
from tests.scripted import ScriptedLLM


class OneHot:
    """Every different text has a direction of its own."""

    def embed(self, texts):
        return np.eye(64)[[sorted(set(texts)).index(text) for text in texts]]


@pytest.fixture(autouse=True)
def _embedder(monkeypatch):
    monkeypatch.setattr(mc_dropout, "shared_embedder", lambda model: OneHot())


def ask(rule, **options):
    llm = ScriptedLLM(rule)
    return llm, MCDropoutConfidence(llm, **options).get_confidence_interval("Be brief.", "Text.", "Who?")


def test_variance_consensus_and_diversity_by_hand():
    # Three of four say A: centroid (3/4, 1/4), variance 1 - (9 + 1) / 16.
    llm, found = ask(lambda request: "B" if request.seed == 2 else "A", n_samples=4)
    assert found.answers == ["A", "B", "A", "A"] and found.consensus_answer == "A"
    assert found.embedding_variance == found.uncertainty_score == pytest.approx(6 / 16)
    assert found.confidence == pytest.approx(10 / 16) and found.lexical_diversity == 0.5
    low, high = found.metadata["interval"]
    assert 0 <= low < found.confidence < high <= 1
    assert len(set(found.metadata["temperatures"])) == 4 and found.metadata["n_calls"] == llm.calls == 4
    assert ask(lambda request: "B" if request.seed == 2 else "A", n_samples=4)[1] == found
    assert (
        "Be brief." in llm.requests[0].messages[0].content and "Who?" in llm.requests[0].messages[0].content
    )


def test_a_function_or_a_name_stands_for_a_model():
    """`MCDropoutConfidence(print)` and `MCDropoutConfidence(None)` ended in an AttributeError at the first call."""
    prompts = []

    def answer(prompt):
        prompts.append(prompt)
        return "A"

    found = MCDropoutConfidence(answer, n_samples=3).get_confidence_interval("Be brief.", "Text.", "Who?")
    assert found.answers == ["A", "A", "A"] and found.confidence == 1
    assert prompts[0] == "Be brief.\n\nContext:\nText.\n\nQuestion: Who?\nAnswer:"
    with pytest.raises(InputError, match=r"^llm_client must be a language model.*got None;.*open_llm"):
        MCDropoutConfidence(None)


def test_all_identical_and_all_different():
    _, same = ask(lambda request: "A")
    assert same.confidence == 1 and same.metadata["interval"] == pytest.approx((0.7225, 1), abs=1e-3)
    _, other = ask(lambda request: f"A{request.seed}")
    low, high = other.metadata["interval"]
    assert other.embedding_variance == pytest.approx(0.9) and low < other.confidence < high < 0.6


def test_empty_and_failed_answers_are_left_out_and_nothing_is_undefined_not_sure():
    _, one = ask(lambda request: "A" if request.seed == 1 else "", n_samples=5)
    assert math.isnan(one.confidence) and one.consensus_answer == "A" and one.metadata["n_empty"] == 4
    assert one.metadata["interval"] is None and "Fewer than two" in one.metadata["reason"]
    _, none = ask(lambda request: "", n_samples=5)
    assert none.answers == [] and math.isnan(none.confidence) and none.consensus_answer == ""
    _, failed = ask(lambda request: Completion.failed("No.") if request.seed == 1 else "A", n_samples=5)
    assert failed.confidence == 1 and failed.metadata["n_failed"] == 1


def test_it_stops_early_and_says_what_that_saved():
    llm, found = ask(lambda request: "A", n_samples=20, stop_width=0.3)
    assert llm.calls == found.metadata["n_calls"] == 10 and found.metadata["n_saved"] == 10
    # Eight of eight: Wilson's interval is 1.96² / (8 + 1.96²) = 0.32 wide; of five, 0.43.
    llm, all_of_them = ask(lambda request: "A", n_samples=8, stop_width=0.35)
    assert llm.calls == all_of_them.metadata["n_calls"] == 8 and all_of_them.metadata["n_saved"] == 0
    _, wide = ask(lambda request: "A" if request.seed % 2 else "B", n_samples=20, stop_width=0.01)
    assert wide.metadata["n_saved"] == 0


def test_answers_are_kept_in_the_cache():
    cache, llm = CompletionCache(), ScriptedLLM(lambda request: "A")
    for n in (5, 10):
        MCDropoutConfidence(llm, n, cache=cache).get_confidence_interval("p", "c", "q")
    assert llm.calls == 10


def test_wrong_arguments_say_what_would_be_right():
    llm = ScriptedLLM(lambda request: "A")
    with pytest.raises(InputError, match="n_samples must lie from 2 to 100, got 1"):
        MCDropoutConfidence(llm, 1)
    with pytest.raises(InputError, match="top_p_range must be"):
        MCDropoutConfidence(llm, top_p_range=(0.5, 1.5))
    with pytest.raises(InputError, match="answers with scripted, not with other"):
        MCDropoutConfidence(llm).get_confidence_interval("p", "c", "q", model="other")
