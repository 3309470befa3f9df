"""The offline verifier: probabilities by hand, hard contradictions, what it prefers with the packaged
model."""

import json
from importlib.resources import files

import numpy as np
import pytest

from core.claims.checks import CHECKS
from core.claims.features import FEATURES, PairFeatures
from core.claims.offline import OfflineVerifier, OfflineWeights, default_verifier, packaged_weights


def pairs(values, checks):
    shape = np.shape(values)[:2]
    return PairFeatures(
        np.array(values, float), np.array(checks, float), np.zeros((*shape, 2), dtype=np.int64)
    )


def row(**given):
    return [given.get(name, 0.0) for name in FEATURES]


def check_row(**given):
    return [given.get(name, np.nan) for name in CHECKS]


WEIGHTS = OfflineWeights(("bigrams", "names"), (0.5, 0.5), (0.25, 0.5), (2.0, 1.0), -1.0, 0.3, ("numbers",))


@pytest.mark.parametrize(
    ("values", "checks", "expected"),
    [
        # 2 (0.75 - 0.5) / 0.25 - 1 = 1
        (row(bigrams=0.75), check_row(), 1 / (1 + np.exp(-1))),
        # 2 + 1 (1 - 0.5) / 0.5 - 1 = 2
        (row(bigrams=0.75), check_row(names=1), 1 / (1 + np.exp(-2))),
        (row(bigrams=0.75), check_row(names=0), 1 / 2),
        (row(bigrams=0.75), check_row(numbers=0), 0.3),
        (row(bigrams=0.75), check_row(numbers=1), 1 / (1 + np.exp(-1))),
        (row(bigrams=0.75), check_row(dates=0), 1 / (1 + np.exp(-1))),  # does not cap here
        (row(bigrams=0.0), check_row(numbers=0), 1 / (1 + np.exp(5))),  # below the cap already
        ([np.nan] * len(FEATURES), check_row(), np.nan),
        ([np.nan] * len(FEATURES), check_row(numbers=0), np.nan),
    ],
)
def test_probabilities_by_hand(values, checks, expected):
    found = WEIGHTS.probabilities(pairs([[values]], [[checks]]))
    np.testing.assert_allclose(found, [[expected]], rtol=1e-12)


def test_the_packaged_weights_never_punish_likeness_and_say_where_they_come_from():
    weights = packaged_weights()
    assert min(weights.weights) >= 0 < max(weights.weights)
    assert set(weights.features) <= {*FEATURES, *CHECKS}
    assert set(weights.capping) <= set(CHECKS)
    assert 0 < weights.cap < 0.5
    assert min(weights.scales) > 0
    assert len(weights.features) == len(weights.means) == len(weights.scales) == len(weights.weights)
    record = json.loads(files("core.claims").joinpath("offline_weights.json").read_text())
    for figure in record["cross_validated"].values():
        assert figure["low"] <= figure["value"] <= figure["high"]
    assert record["fitted_on"] and record["date"]


@pytest.fixture(scope="module")
def verifier():
    return default_verifier()


def test_the_better_passage_is_preferred(verifier):
    claims = ["The canal was opened in 1914.", "Coffee grows in Brazil.", "大运河长1794公里。"]
    passages = [
        "The canal is 82 km long. It was opened in 1914.",
        "Coffee is grown in Brazil and in Vietnam.",
        "大运河全长1,794公里，连接北京和杭州。",
        "Honey bees live in hives.",
    ]
    M = verifier.support(claims, passages)
    assert M.shape == (3, 4)
    assert M.argmax(axis=1).tolist() == [0, 1, 2]
    assert (M.max(axis=1) > 0.5).all()
    assert (M[:, 3] < 0.2).all()


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The canal was opened in 1914.", "The canal was opened in 1931."),
        ("The canal is 82 km long.", "The canal is 82 miles long."),
        ("The canal was not opened in 1914.", "The canal was opened in 1914."),
        ("The price of rice rose in spring.", "The price of rice fell in spring."),
        ("大运河长1794公里。", "大运河长2794公里。"),
    ],
)
def test_a_contradiction_in_a_word_keeps_the_probability_low(verifier, claim, passage):
    against, same = verifier.support([claim], [passage, claim])[0]
    assert against <= packaged_weights().cap
    assert same > 0.8


def test_what_has_no_word_is_unscored(verifier):
    M = verifier.support(["", "A mill", "?!"], ["A mill", "\n"])
    assert np.isnan(M).tolist() == [[True, True], [False, True], [True, True]]
    assert verifier.support([], ["a"]).shape == (0, 1)
    assert verifier.support(["a"], []).shape == (1, 0)


def test_many_groups_equal_one_at_a_time(verifier):
    groups = [
        (["A mill burned."], ["The mill burned down."]),
        (["A lake froze.", "It rained."], ["The lake froze."]),
    ]
    for found, (claims, passages) in zip(verifier.support_many(groups), groups, strict=True):
        np.testing.assert_allclose(found, OfflineVerifier().support(claims, passages), atol=2e-3)


def test_one_default_verifier():
    assert default_verifier() is default_verifier()
    assert default_verifier().name == "offline"


def test_it_tells_which_sentence_supports(verifier):
    passage = "The canal is 82 km long. It was opened in 1914."
    ((start, end),) = verifier.measure([(["The canal opened in 1914."], [passage])])[0].sentences[0]
    assert passage[start:end].strip() == "It was opened in 1914."
