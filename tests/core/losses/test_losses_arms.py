"""The arms as pure functions: what every new prompt keeps, and what it changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.losses import arms
from core.losses.arms import ARMS, Case, Shown, evidence_in

BY_NAME = {arm.name: arm for arm in ARMS}


@st.composite
def cases(draw):
    """A question with up to eight passages, any of them gold, and up to three gold ones that were not retrieved."""
    k, n_missing = draw(st.integers(0, 8)), draw(st.integers(0, 3))
    shown = tuple(Shown(f"p{i}", f"Title {i}", f"Text of {i}. More of {i}.", i) for i in range(1, k + 1))
    gold = frozenset(one.passage_id for one in shown if draw(st.booleans()))
    missing = tuple(Shown(f"m{i}", "", f"Missing {i}. It says more.") for i in range(n_missing))
    return Case(
        draw(st.text(max_size=8)), "Who?", shown, gold, missing, draw(st.sampled_from([True, True, False]))
    )


def ids(shown):
    return [one.passage_id for one in shown]


def split(case):
    """Passages that are gold, and the others, in order."""
    return (
        [one for one in case.passages if one.passage_id in case.gold],
        [one for one in case.passages if one.passage_id not in case.gold],
    )


@given(cases())
def test_gold_added_keeps_k_all_gold_and_the_best_of_the_others(case):
    made = arms.gold_added(case)
    gold, others = split(case)
    if not (case.gold or case.missing) or not case.whole:
        assert made is None
        return
    assert len(made) == len(case.passages)
    n_new = min(len(case.missing), len(others))
    assert ids(made)[len(made) - n_new :] == ids(case.missing[:n_new])
    stay = {*ids(gold), *ids(others[: len(others) - n_new])}
    assert ids(made)[: len(made) - n_new] == [one for one in ids(case.passages) if one in stay]


@given(cases())
def test_gold_first_is_the_same_passages_each_kind_in_its_order(case):
    made = arms.gold_first(case)
    gold, others = split(case)
    assert made is None if not (case.gold or case.missing) else made == (*gold, *others)


@given(cases())
def test_gold_alone_is_all_of_it_or_nothing(case):
    made = arms.gold_alone(case)
    if not (case.gold or case.missing) or not case.whole:
        assert made is None and arms.gold_sentences(case) is None
        return
    assert list(made) == [*split(case)[0], *case.missing]
    sentences = arms.gold_sentences(case)
    assert ids(sentences) == ids(made) and [one.title for one in sentences] == [one.title for one in made]
    for whole, short in zip(made, sentences, strict=True):
        assert short.text and all(part in whole.text for part in short.text.split(". "))


@given(cases())
def test_fewer_is_the_better_half_rounded_up(case):
    made = arms.fewer(case)
    assert made == case.passages[: len(made)]
    assert len(made) in (len(case.passages) / 2, len(case.passages) / 2 + 0.5)


@given(cases())
def test_reversed_twice_is_as_it_was(case):
    made = arms.reversed_order(case)
    assert made[::-1] == case.passages and ids(made) == ids(case.passages)[::-1]


@given(cases())
def test_the_placebo_moves_the_others_and_keeps_gold_where_it_was(case):
    made = arms.placebo(case)
    gold, others = split(case)
    if len(others) < 2:
        assert made is None
        return
    assert made != case.passages and sorted(ids(made)) == sorted(ids(case.passages))
    assert [one if one in gold else None for one in made] == [
        one if one in gold else None for one in case.passages
    ]
    # The same for a question in every process, so that a resumed run asks for no other.
    assert arms.placebo(replace(case)) == made


def test_the_placebo_deals_every_order_but_the_one_there_was():
    shown = tuple(Shown(f"p{i}", "", "") for i in range(3))
    dealt = {tuple(ids(arms.placebo(Case(f"q{i}", "Who?", shown)))) for i in range(200)}
    assert len(dealt) == 5 and ("p0", "p1", "p2") not in dealt


@given(cases(), st.sampled_from(ARMS))
def test_no_arm_makes_up_a_passage_or_shows_one_twice(case, arm):
    made = arm.make(case)
    assume(made is not None)
    known = {*ids(case.passages), *ids(case.missing)}
    assert {*ids(made)} <= known and len({*ids(made)}) == len(made)


@given(cases())
def test_arms_do_not_change_the_case(case):
    before = replace(case)
    for arm in ARMS:
        arm.make(case)
    assert case == before


TEXT = "The bridge has nine arches. Unwin built it in 1901. It was paid for by the town. Tolls ended in 1950."


@pytest.mark.parametrize(
    ("evidence", "references", "question", "expected"),
    [
        # The fragment itself, in part of a sentence, and over two.
        (["Unwin built it"], (), "", "Unwin built it in 1901."),
        (["Unwin  built it in\n1901. It was paid"], (), "", "Unwin built it in 1901. It was paid for by the town."),
        # Several fragments: their sentences in the order of the passage.
        (["Tolls ended", "nine arches"], (), "", "The bridge has nine arches. Tolls ended in 1950."),
        # A fragment goes before the reference.
        (["nine arches"], ("Unwin",), "", "The bridge has nine arches."),
        # Without one, or where it is not in the passage, the reference; a number by its value.
        ([], ("Unwin",), "", "Unwin built it in 1901."),
        (["a fragment from elsewhere"], ("9",), "", "The bridge has nine arches."),
        ([""], ("1950",), "", "Tolls ended in 1950."),
        # A single word of a longer fragment says nothing.
        (["It floated. Unwin"], ("1950",), "", "Tolls ended in 1950."),
        # Else the sentence nearest to the question.
        ([], (), "Who paid for the bridge of the town?", "It was paid for by the town."),
        ([], ("a king",), "When did tolls end?", "Tolls ended in 1950."),
    ],
)  # fmt: skip
def test_the_sentences_with_the_evidence(evidence, references, question, expected):
    case = Case("q", question, (), evidence={"g": evidence} if evidence else {}, references=references)
    assert evidence_in(TEXT, case) == expected


@given(st.data())
def test_a_fragment_that_is_in_the_passage_stays_in_it(data):
    start = data.draw(st.integers(0, len(TEXT) - 1))
    part = TEXT[start : data.draw(st.integers(start + 1, len(TEXT)))]
    assume(part.strip() and any(letter.isalnum() for letter in part))
    kept = evidence_in(TEXT, Case("q", "Who?", (), evidence={"g": [part]}, references=("1901",)))
    assert " ".join(part.split()) in kept or ". " in part.strip()


@pytest.mark.parametrize(
    ("text", "fragment", "expected"),
    [
        ("这座桥有九个拱。詹天佑设计了它。它建于1901年。", "詹天佑设计", "詹天佑设计了它。"),
        (
            "Cây cầu có chín vòm. Nguyễn Văn An xây nó. Nó xong năm 1901.",
            "Nguyễn Văn An",
            "Nguyễn Văn An xây nó.",
        ),
        ("no stop at all", "stop", "no stop at all"),
        # A mark alone says nothing: of sentences that are equally near, the first.
        ("Unwin built it. It cost … a lot.", "It floats. … It sank.", "Unwin built it."),
        ("", "x", ""),
    ],
)
def test_evidence_in_other_languages_and_odd_texts(text, fragment, expected):
    assert evidence_in(text, Case("q", "?", (), evidence={"g": [fragment]})) == expected


def test_the_table_of_arms():
    names = [arm.name for arm in ARMS]
    assert len({*names}) == len(names) and [str(arm) for arm in ARMS] == names
    # What only measures tries no fix.
    assert {arm.name for arm in ARMS if not arm.fix} == {"placebo", "again"}
    assert [arm.name for arm in ARMS if arm.again] == ["again"]
    assert all(arm.title and arm.meaning.endswith(".") for arm in ARMS)


def test_as_it_is_again_is_the_same_prompt():
    case = Case("q", "?", (Shown("p", "", "x"),))
    assert BY_NAME["again"].make(case) == case.passages


def test_every_gold_passage_once_those_of_the_prompt_first():
    case = Case("q", "?", (Shown("a", "", ""), Shown("b", "", ""), Shown("c", "", "")), frozenset("ca"), (Shown("d", "", ""),))  # fmt: skip
    assert ids(case.every_gold) == ["a", "c", "d"]
