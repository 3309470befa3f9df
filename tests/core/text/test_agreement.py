"""Agreement of an answer with its samples: by hand, and as the estimator of that name has it."""

import math

import pytest

from core.text.overlap import rouge_l_agreement
from core.uncertainty.estimators import score
from core.uncertainty.samples import Samples


def test_by_hand():
    # Two of three words in order: precision and recall 2/3. A refusal and an empty text are unlike.
    assert rouge_l_agreement("the cat sat", ["the cat ran", "the cat sat"]).value == pytest.approx(5 / 6)
    assert rouge_l_agreement("the cat sat", ["the cat sat", "I don't know", "", "?"]).value == 0.25
    assert rouge_l_agreement("I know it", ["I know it", "I don't know it"]).value == 0.5
    assert rouge_l_agreement("a b", ["c d"]) == (0.0, "")
    assert rouge_l_agreement("巴黎", ["巴黎", "罗马"]).value == 0.5


@pytest.mark.parametrize(
    ("answer", "samples", "reason"),
    [
        ("", ["x"], "The answer holds no word."),
        ("I don't know.", ["I don't know."], "The answer is a refusal: it claims nothing."),
        ("x", [], "No sample is an answer, so there is nothing to agree with."),
        ("x", ["", "I don't know"], "No sample is an answer, so there is nothing to agree with."),
    ],
)
def test_undefined_with_a_reason(answer, samples, reason):
    value, said = rouge_l_agreement(answer, samples)
    assert math.isnan(value) and said == reason


@pytest.mark.parametrize(
    "texts",
    [
        ["the cat sat", "the cat ran", "a dog sat", "the cat sat"],
        ["Ada Lovelace", "I don't know", "Ada", "", "Lovelace, Ada"],
        ["Không biết", "x"],
        ["Hà Nội", "Không biết", "Hà Nội là thủ đô"],
        ["", "x", "y"],
        ["x", "?!", "I do not know"],
        ["大运河", "运河", "我不知道", "大 运河"],
        ["x"],
    ],
)
def test_it_is_the_estimator(texts):
    found = score([Samples(texts, baseline=True)], ["agreement_rouge_l"])["agreement_rouge_l"].values[0]
    assert rouge_l_agreement(texts[0], texts[1:]).value == pytest.approx(found, nan_ok=True, abs=0)
