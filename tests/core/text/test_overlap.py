import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from core.text import rouge_l
from core.text.overlap import by_outcome, rouge_l_pairs

ORACLE = {stem: RougeScorer(["rougeL"], use_stemmer=stem) for stem in (True, False)}


def test_published_vectors(vectors):
    for case in vectors("rouge_l"):
        for stem, key in ((True, "stemmed"), (False, "plain")):
            found = rouge_l(case["target"], case["prediction"], stem)
            assert list(found) == pytest.approx(case[key], abs=1e-9), case


# Also what lower case turns into a letter of ASCII or into two characters, odd white space, half a pair.
LATIN = st.text("abcé XYZ019.,-'ö\u212aİſß\u00a0\x1c\x85_?\ud800", max_size=60)


@given(LATIN, LATIN, st.booleans())
def test_equal_to_rouge_score_on_latin_text(target, prediction, stem):
    expected = ORACLE[stem].score(target, prediction)["rougeL"]
    found = rouge_l(target, prediction, stem)
    if math.isnan(found.f1):
        assert not any(c.isascii() and c.isalnum() for c in target + prediction)
    else:
        assert tuple(found) == (expected.precision, expected.recall, expected.fmeasure)


def test_words_with_endings_are_stemmed_as_in_rouge_score():
    texts = [
        f"{a} {b}-{b.upper()} 1{a}" for a in ("Running", "flies", "cafés", "is") for b in ("generally", "x")
    ]
    for target in texts:
        for prediction in texts:
            expected = ORACLE[True].score(target, prediction)["rougeL"].fmeasure
            assert rouge_l(target, prediction).f1 == expected


def test_nothing_against_nothing_is_undefined_not_zero():
    assert all(math.isnan(x) for x in rouge_l("", " …"))
    assert rouge_l("", "word").f1 == rouge_l("word", "").f1 == 0.0


def test_chinese_is_compared_by_ideograph():
    # 3 of 4 ideographs in common, in order: P = R = 3/4.
    assert rouge_l("大运河长", "大运河短").f1 == pytest.approx(0.75)
    assert rouge_l("我不知道", "北京").f1 == 0.0


def test_vietnamese_tone_marks_make_different_words():
    # rouge_score would read both as "h", "n", "i": equal. As words, 1 of 2 is shared.
    assert rouge_l("Hà Nội", "Hà Nồi").f1 == pytest.approx(0.5)


def test_one_foreign_word_in_five_is_dropped_as_rouge_score_does():
    assert rouge_l("the Ω tower is old", "the tower is old").f1 == 1


def test_a_foreign_word_in_a_short_answer_counts():
    assert rouge_l("Marie Curie 镭", "Marie Curie 钋").f1 == pytest.approx(2 / 3)


@given(st.text(max_size=40), st.text(max_size=40))
def test_f1_is_symmetric_and_bounded(a, b):
    forth, back = rouge_l(a, b), rouge_l(b, a)
    assert (math.isnan(forth.f1) and math.isnan(back.f1)) or forth.f1 == back.f1
    assert math.isnan(forth.f1) or 0 <= forth.f1 <= 1
    assert math.isnan(forth.f1) or (forth.precision, forth.recall) == (back.recall, back.precision)


ANY_SCRIPT = st.text("ab 1é\u1ed9大运", max_size=12)


@given(st.lists(st.tuples(ANY_SCRIPT, ANY_SCRIPT), max_size=12))
def test_many_pairs_have_the_very_values_of_one(pairs):
    one, other = ([pair[side] for pair in pairs] for side in (0, 1))
    expected = [rouge_l(target, prediction).f1 for target, prediction in pairs]
    assert repr(rouge_l_pairs(one, other).tolist()) == repr(expected)


def test_pairs_beyond_one_batch_are_compared_too(monkeypatch):
    monkeypatch.setattr("core.text.overlap._PAIRS", 2)
    found = rouge_l_pairs(["the cat sat"] * 5, ["the cat ran", "a dog", "", "the cat sat", "cat"])
    assert found.round(3).tolist() == [0.667, 0.0, 0.0, 1.0, 0.5]


def test_texts_of_which_one_is_no_answer_are_alike_by_their_outcome():
    likeness = by_outcome(np.full((3, 3), 0.5), ["answered", "abstained", "empty"])
    assert likeness.tolist() == [[0.5, 0, 0], [0, 1, 0], [0, 0, 1]]
