"""Samples of an answer: how each is drawn, and which of them count."""

import unicodedata

import pytest

from core.errors import InputError
from core.llm import Message, Request
from core.llm.types import Completion
from core.pipeline.sampling import PRESETS, check_model, drawn, sampled, sampling_facts
from tests.scripted import ScriptedLLM

ASKED = Request((Message("user", "Where?"),), max_tokens=9, stop=("\n",))


def test_a_sample_is_the_request_again_at_settings_of_its_own():
    found = [drawn(ASKED, number, seed=5) for number in range(1, 41)]
    assert {(one.messages, one.max_tokens, one.stop, one.logprobs) for one in found} == {
        (ASKED.messages, 9, ("\n",), True)
    }
    assert [one.seed for one in found] == list(range(6, 46))
    for values, low, high in (
        ([one.temperature for one in found], 0.5, 1.2),
        ([one.top_p for one in found], 0.8, 0.95),
    ):
        width = (high - low) / 10
        assert low <= min(values) < low + width and high - width < max(values) <= high
        assert len(set(values)) > 30
        assert values == [round(one, 4) for one in values] != [round(one, 3) for one in values]


def test_settings_depend_on_number_and_seed_and_not_on_the_question():
    other = Request((Message("user", "Who?"),))
    settings = [
        (one.temperature, one.top_p) for one in (drawn(ASKED, 3), drawn(other, 3), drawn(ASKED, 3, 1))
    ]
    assert settings[0] == settings[1] != settings[2]
    assert drawn(ASKED, 3).seed == 3
    narrow = drawn(ASKED, 1, temperatures=(2.0, 2.0), top_ps=(0.5, 0.5))
    assert (narrow.temperature, narrow.top_p) == (2.0, 0.5)


@pytest.mark.parametrize(
    ("text", "reason", "error", "expected"),
    [
        ("Paris", "stop", None, "Paris"),
        (unicodedata.normalize("NFD", "Hạ Long"), "stop", None, "Hạ Long"),
        ("", "stop", None, ""),
        ("", "length", None, ""),
        ("", "reasoning", None, None),
        ("", "content_filter", None, None),
        ("As far as", "content_filter", None, "As far as"),
        ("", "error", "busy", None),
        ("half", "stop", "broken off", None),
    ],
)
def test_a_sample_that_failed_or_was_withheld_is_none(text, reason, error, expected):
    assert sampled(Completion(text, reason, 1, 1, 0.1, error=error)) == expected


def test_a_run_records_how_samples_are_drawn():
    assert sampling_facts(7) == {"samples": 7, "temperatures": [0.5, 1.2], "top_ps": [0.8, 0.95]}
    assert PRESETS == {"quick": 5, "balanced": 10, "high reliability": 20}


def test_a_named_model_must_be_the_one_that_answers():
    llm = ScriptedLLM("x", name="mine")
    check_model(llm, None)
    check_model(llm, "mine")
    with pytest.raises(
        InputError, match=r"answers with mine, not with other; leave out model, or open other"
    ):
        check_model(llm, "other")
