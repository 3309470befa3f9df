"""The information gain: which texts are read behind which prompts, and what the readings become."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from core.claims.verifiers.gain import GainVerifier
from core.claims.verifiers.offline import LogisticWeights, packaged_figures
from core.errors import InputError
from core.llm import open_llm
from core.text import words
from tests.scripted import ScriptedLLM

# exp(0) / (1 + exp(0)) at one nat for each token.
AT_ONE = LogisticWeights(("gain_per_token",), (1.0,), (1.0,), (2.0,), 0.0)


class Reading(ScriptedLLM):
    """A word has a log-probability of -1 where the prompt has it, else of -4; notes what it reads."""

    def __init__(self, fits=lambda prompt, text: True):
        super().__init__(lambda _: "")
        self.capabilities = replace(self.capabilities, answer_logprob=True)
        self.fits, self.read = fits, []

    def score(self, messages, answers):
        self.read += [(turns[-1].content, answer) for turns, answer in zip(messages, answers, strict=True)]
        return [
            tuple(-1.0 if word in words(turns[-1].content) else -4.0 for word in words(answer))
            if self.fits(turns[-1].content, answer)
            else None
            for turns, answer in zip(messages, answers, strict=True)
        ]


def gains(llm, claims, passages):
    (found,) = GainVerifier(llm, weights=AT_ONE).measure([(claims, passages)])
    return found


def test_the_gain_is_how_much_likelier_the_passage_makes_the_claim():
    found = gains(
        Reading(), ["The red mill burned", "It froze"], ["A red mill.", "The lake froze!", "Nothing"]
    )
    # Each word that only the passage has gains -1 - -4 = 3 nats: "red", "mill"; "the"; none. "froze".
    assert found.nats.tolist() == [[6.0, 3.0, 0.0], [0.0, 3.0, 0.0]]
    assert found.tokens.tolist() == [4, 2]
    values = found.values(("gain_per_token", "gain"), None)
    assert values[..., 0].tolist() == [[1.5, 0.75, 0.0], [0.0, 1.5, 0.0]]
    assert values[..., 1].tolist() == found.nats.tolist()


def test_the_probability_is_logistic_in_the_gain_per_token():
    M = GainVerifier(Reading(), weights=AT_ONE).support(["The red mill burned"], ["A red mill.", "A dog"])
    expected = [1 / (1 + math.exp(-2 * (1.5 - 1))), 1 / (1 + math.exp(2))]
    assert M[0].tolist() == pytest.approx(expected)


def test_the_cosine_of_claim_and_passage_adds_to_it():
    both = LogisticWeights(("gain_per_token", "passage_cosine"), (0.0, 0.0), (1.0, 1.0), (0.0, 1.0), 0.0)
    M = GainVerifier(Reading(), weights=both).support(["The red mill burned"], ["A red mill.", "It rained"])
    assert 1 / (1 + math.exp(-1)) > M[0, 0] > M[0, 1] + 0.05


def test_figures_come_with_their_intervals():
    for found in packaged_figures("gain").values():
        assert 0 <= found["low"] <= found["value"] <= found["high"] <= 1
    assert "ExpertQA all AUROC" in packaged_figures("gain")


def test_a_bare_value_is_scored_behind_its_question():
    llm = Reading()
    found = gains(llm, ["When did the red mill burn? 1894"], ["A red mill burned in 1894.", "A red mill."])
    # What the question says gains nothing: it is in the prompt with a passage and without.
    assert found.nats.tolist() == [[3.0, 0.0]]
    assert found.tokens.tolist() == [1]
    assert {text for _, text in llm.read} == {"1894"}
    assert "When did the red mill burn?" in {prompt for prompt, _ in llm.read}


def test_claims_of_a_passage_are_read_together_and_once_without():
    llm = Reading()
    claims, passages = ["It rained", "It froze", "It burned"], ["A wet day", "A cold day"]
    GainVerifier(llm).judge_many([(claims[:2], passages), (claims[2:], passages)])
    prompts = [prompt for prompt, _ in llm.read]
    assert len(llm.read) == len(set(llm.read)) == 3 * (2 + 1)
    assert len(set(prompts)) == 3
    # One run of each prompt: the back end can read it once.
    assert sum(a != b for a, b in pairwise(prompts)) == 2


def test_what_cannot_be_read_is_unscored_with_a_reason():
    llm = Reading(fits=lambda prompt, text: "long" not in prompt)
    verifier = GainVerifier(llm)
    (found,) = verifier.judge_many([(["It froze", "?!"], ["A lake", "a long tale", ""])])
    assert np.isnan(found.probability).tolist() == [[False, True, True], [True, True, True]]
    assert "context" in found.reason
    (found,) = verifier.judge_many([(["It froze", ""], ["A lake", "…"])])
    assert found.reason is None and np.isnan(found.agreement).all()
    assert verifier.support([], ["a"]).shape == (0, 1)
    assert verifier.support(["a"], []).shape == (1, 0)


def test_packaged_weights_give_probabilities_that_grow_with_the_gain():
    M = GainVerifier(Reading()).support(
        ["red mill burned"], ["dog", "red dog", "red mill", "red mill burned"]
    )
    assert (np.diff(M[0]) > 0).all() and (M > 0).all() and (M < 1).all()


def test_a_model_that_cannot_score_is_refused():
    with pytest.raises(InputError, match=r"^The verifier gain needs a model that can score a given text; "):
        GainVerifier(ScriptedLLM(lambda _: ""))


@pytest.mark.model
def test_the_embedded_model_finds_the_passage_that_says_it():
    passages = ["The mill at Ostby burned down in 1894.", "The lake is 40 m deep.", "Mills grind corn."]
    M = GainVerifier(open_llm("embedded")).support(["The mill burned down in 1894."], passages)
    assert M[0].argmax() == 0 and M[0, 0] > 0.5 > M[0, 1]
