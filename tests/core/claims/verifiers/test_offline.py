"""The offline verifier: probabilities by hand, hard contradictions, what it prefers with the packaged
model."""

import json
from collections import Counter
from importlib.resources import files

import numpy as np
import pytest

from core.claims.self_contained import self_contained
from core.claims.types import Claim
from core.claims.verifiers.checks import CHECKS
from core.claims.verifiers.features import FEATURES, PairFeatures
from core.claims.verifiers.offline import (
    OfflineVerifier,
    OfflineWeights,
    default_verifier,
    packaged_figures,
    packaged_weights,
)
from core.llm.embeddings import SentenceEmbedder

CAP = packaged_weights(OfflineWeights, "offline").cap


def pairs(values, checks):
    shape = np.shape(values)[:2]
    return PairFeatures(
        np.array(values, float), np.array(checks, float), np.zeros((*shape, 2), dtype=np.int64)
    )


def row(**given):
    return [given.get(name, 0.0) for name in FEATURES]


def check_row(**given):
    return [given.get(name, np.nan) for name in CHECKS]


WEIGHTS = OfflineWeights(
    ("sentence_match", "passage_match"), (0.5, 0.5), (0.25, 0.5), (2.0, 1.0), -1.0, 0.3, {"verbatim": 0.8}
)


@pytest.mark.parametrize(
    ("values", "checks", "expected"),
    [
        # 2 (0.75 - 0.5) / 0.25 + (0.5 - 0.5) / 0.5 - 1 = 1
        (row(sentence_match=0.75, passage_match=0.5), check_row(), 1 / (1 + np.exp(-1))),
        # 2 + 1 (1 - 0.5) / 0.5 - 1 = 2; the cosine is not read
        (row(sentence_match=0.75, passage_match=1, passage_cosine=9), check_row(), 1 / (1 + np.exp(-2))),
        (row(sentence_match=0.75, passage_match=0.5), check_row(numbers=0), 0.3),
        (row(sentence_match=0.75, passage_match=0.5), check_row(numbers=1), 1 / (1 + np.exp(-1))),
        (row(sentence_match=0.75, passage_match=0.5), check_row(numbers=1, value=0), 0.3),
        # 2 (0 - 0.5) / 0.25 + (0 - 0.5) / 0.5 - 1 = -6: below the cap already
        (row(), check_row(dates=0), 1 / (1 + np.exp(6))),
        (row(), check_row(verbatim=1), 0.8),
        (row(), check_row(mention=1), 1 / (1 + np.exp(6))),  # has no floor here
        (row(sentence_match=1, passage_match=1), check_row(verbatim=1), 1 / (1 + np.exp(-4))),
        (row(), check_row(verbatim=1, negation=0), 0.3),
        ([np.nan] * len(FEATURES), check_row(), np.nan),
        ([np.nan] * len(FEATURES), check_row(numbers=0), np.nan),
    ],
)
def test_probabilities_by_hand(values, checks, expected):
    found = WEIGHTS.probabilities(pairs([[values]], [[checks]]))
    np.testing.assert_allclose(found, [[expected]], rtol=1e-12)


def test_the_packaged_weights_never_punish_likeness_and_say_where_they_come_from():
    weights = packaged_weights(OfflineWeights, "offline")
    assert min(weights.weights) >= 0 < max(weights.weights)
    assert set(weights.features) <= set(FEATURES)
    assert set(weights.floors) <= set(CHECKS)
    assert 0 < weights.cap < weights.floors["mention"] < 0.5 < weights.floors["verbatim"] < 1
    assert min(weights.scales) > 0
    assert len(weights.features) == len(weights.means) == len(weights.scales) == len(weights.weights)
    record = json.loads(files("core.claims.verifiers").joinpath("offline_weights.json").read_text())
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
    assert against <= CAP
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


def test_figures_come_with_their_intervals():
    figures = packaged_figures("offline")
    assert {"ExpertQA all AUROC", "HaluEval equal length AUROC"} <= set(figures)
    for found in figures.values():
        assert 0 <= found["low"] <= found["value"] <= found["high"] <= 1
    with pytest.raises(TypeError):
        figures["ExpertQA all AUROC"]["value"] = 1.0


CANAL = (
    "The Leda Canal links Port Ayer with Lake Tornio. It was opened on 3 May 1914 by Queen Maud. It is 82 km "
    "long and carries 1,500 ships a year. Tolls rose in 1950."
)
KENH = (
    "Kênh Vĩnh Tế nối Châu Đốc với Hà Tiên. Kênh được đào từ năm 1819 đến năm 1824 dưới sự chỉ huy của Thoại "
    "Ngọc Hầu. Kênh dài 87 km và rộng 30 m."
)
HE = "通惠河连接北京和通州。它由郭守敬主持修建，于1293年完工。这条河全长82公里，每年运送大米200万石。"
BEES = "Honey bees live in hives. A worker bee visits hundreds of flowers and brings nectar home."
ONG = "Ong mật sống trong tổ. Ong thợ bay đi tìm hoa và mang mật về."
FENG = "蜜蜂住在蜂巢里。工蜂采集花蜜带回家。"


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        (CANAL, "It was opened on 3 May 1914 by Queen Maud."),
        (CANAL, "The Leda Canal links Port Ayer with Lake Tornio."),
        (CANAL, "Tolls rose in 1950."),
        (CANAL, "The Leda Canal was opened by Queen Maud in May 1914."),
        (CANAL, "The Leda Canal has a length of 82 kilometres."),
        ("The canal was opened in 1914.", "The canal opened in 1914."),
        (KENH, "Kênh Vĩnh Tế nối Châu Đốc với Hà Tiên."),
        (KENH, "Kênh dài 87 km và rộng 30 m."),
        (HE, "通惠河连接北京和通州。"),
        (HE, "这条河全长82公里。"),
        (HE, "通惠河由郭守敬主持修建。"),
    ],
)
def test_what_a_passage_says_is_clearly_above_one_half(verifier, passage, claim):
    assert verifier.support([claim], [passage])[0, 0] > 0.65


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        (CANAL, "The Leda Canal is 95 km long."),
        (CANAL, "The canal carries 3,000 ships a year."),
        (CANAL, "The Leda Canal was opened in 1931."),
        (CANAL, "The Leda Canal was opened by King Oscar."),
        (CANAL, "The Leda Canal links Hamburg with Lake Tornio."),
        (CANAL, "The Leda Canal was not opened by Queen Maud."),
        (CANAL, "Tolls fell in 1950."),
        (KENH, "Kênh dài 57 km và rộng 30 m."),
        (KENH, "Kênh được đào từ năm 1719."),
        (KENH, "Kênh Vĩnh Tế không nối Châu Đốc với Hà Tiên."),
        (KENH, "Kênh Vĩnh Tế nối Châu Đốc với Sài Gòn."),
        (HE, "这条河全长95公里。"),
        (HE, "通惠河于1393年完工。"),
        (HE, "通惠河没有连接北京和通州。"),
    ],
)
def test_the_right_subject_with_one_thing_wrong_is_below_one_half(verifier, passage, claim):
    assert verifier.support([claim], [passage])[0, 0] < 0.45


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        (BEES, "The Leda Canal is 82 km long."),
        (CANAL, "Honey bees live in hives."),
        ("The canal was opened in 1914.", "Honey bees live in hives."),
        (ONG, "Kênh dài 87 km và rộng 30 m."),
        (KENH, "Ong mật sống trong tổ."),
        (FENG, "通惠河全长82公里。"),
        (HE, "蜜蜂住在蜂巢里。"),
        (CANAL, "通惠河全长82公里。"),
    ],
)
def test_another_subject_is_well_below_one_half(verifier, passage, claim):
    assert verifier.support([claim], [passage])[0, 0] < 0.35


def test_a_wrong_name_in_a_chinese_claim_is_not_seen(verifier):
    # A known weakness, stated in the class: no names are found in Chinese text.
    assert verifier.support(["通惠河由毕昇主持修建。"], [HE])[0, 0] > 0.5


@pytest.mark.parametrize(
    ("passage", "question", "right", "wrong"),
    [
        (CANAL, "When was the Leda Canal opened?", "3 May 1914", "4 May 1914"),
        (CANAL, "When was the Leda Canal opened?", "1914", "2018"),
        (CANAL, "Who opened the Leda Canal?", "Queen Maud", "King Oscar"),
        (CANAL, "Who opened the Leda Canal?", "Queen Maud", "The Leda Canal"),
        (CANAL, "How long is the Leda Canal?", "82 km", "82 miles"),
        (CANAL, "How many ships use the Leda Canal each year?", "1500", "2"),
        (KENH, "Kênh Vĩnh Tế dài bao nhiêu km?", "87 km", "30 km"),
        (KENH, "Ai chỉ huy đào kênh Vĩnh Tế?", "Thoại Ngọc Hầu", "Nguyễn Huệ"),
        (HE, "通惠河是谁主持修建的？", "郭守敬", "毕昇"),
        (HE, "通惠河哪一年完工？", "1293年", "1393年"),
    ],
)
def test_likeness_of_the_question_does_not_support_a_wrong_value(verifier, passage, question, right, wrong):
    claims = [self_contained(Claim(value), question).text for value in (right, wrong)]
    assert all(claim.startswith(question) for claim in claims)
    yes, no = verifier.support(claims, [passage])[:, 0]
    assert yes > 0.5 > CAP >= no


def test_a_yes_and_a_value_elsewhere_are_not_supported(verifier):
    claims = ["Is the Leda Canal 82 km long? yes", "When was the Leda Canal opened? 1914"]
    M = verifier.support(claims, [CANAL, BEES])
    assert (M[0] <= CAP).all()
    assert M[1, 1] < 0.1


def test_a_value_without_its_question_is_not_supported_by_being_there(verifier):
    there, absent = verifier.support(["1950", "1951"], [CANAL])[:, 0]
    assert absent <= CAP < there < 0.5


def test_each_text_is_read_once_over_many_batches():
    class Counting(SentenceEmbedder):
        def __init__(self):
            super().__init__()
            self.read = Counter()

        def embed_tokens(self, texts):
            self.read.update(texts)
            return super().embed_tokens(texts)

    embedder = Counting()
    verifier = OfflineVerifier(embedder)
    passages = ["A mill burned down.", "The lake froze.", "A mill burned down."]
    batches = [
        [([f"Mill {i} burned.", "The lake froze."], passages), (["It rained."], [KENH])] for i in range(3)
    ]
    first = [verifier.support_many(batch) for batch in batches]
    again = [verifier.support_many(batch) for batch in batches]
    assert set(embedder.read.values()) == {1}
    assert set(embedder.read) == {*passages, "It rained.", KENH, *(f"Mill {i} burned." for i in range(3))}
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a[0], b[0])
