"""Claims by rules: hand-written expectations in three languages, and what holds for any answer."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.claims.decomposition.split import merged, plain, split_claims, without_citations
from core.claims.types import Claim
from core.text.words import has_words, words


def texts(answer):
    return [claim.text for claim in split_claims(answer)]


CLAUSES = [
    # Two whole statements come apart.
    "Ulm is old; it lies on the Danube.",
    "Albert was born in Ulm, and he won the Nobel Prize in 1921.",
    "The tower is tall but it is not old.",
    "The film made $3.5 million, and the studio was happy.",
    "The mill burned in 1910, but its walls are still there.",
    "Lyon is in the south, whereas Lille lies in the north.",
    "Hà Nội là thủ đô của Việt Nam; nhưng Thành phố Hồ Chí Minh là thành phố lớn nhất.",
    "Nguyễn Du là nhà thơ, và ông đã viết Truyện Kiều.",
    "Sông Hồng nằm ở miền Bắc, còn sông Cửu Long nằm ở miền Nam.",
    "北京是中国的首都，而上海是最大的城市。",
    "李白是诗人，但他也是剑客。",
    "长江位于中国，不过黄河也在中国。",
]
SPLIT = [
    ["Ulm is old", "it lies on the Danube."],
    ["Albert was born in Ulm", "he won the Nobel Prize in 1921."],
    ["The tower is tall", "it is not old."],
    ["The film made $3.5 million", "the studio was happy."],
    ["The mill burned in 1910", "its walls are still there."],
    ["Lyon is in the south", "Lille lies in the north."],
    ["Hà Nội là thủ đô của Việt Nam", "Thành phố Hồ Chí Minh là thành phố lớn nhất."],
    ["Nguyễn Du là nhà thơ", "ông đã viết Truyện Kiều."],
    ["Sông Hồng nằm ở miền Bắc", "sông Cửu Long nằm ở miền Nam."],
    ["北京是中国的首都", "上海是最大的城市。"],
    ["李白是诗人", "他也是剑客。"],
    ["长江位于中国", "黄河也在中国。"],
]


@pytest.mark.parametrize(("answer", "expected"), list(zip(CLAUSES, SPLIT, strict=True)))
def test_whole_statements_side_by_side_are_claims_of_their_own(answer, expected):
    claims = split_claims(answer)
    assert [claim.text for claim in claims] == expected
    assert [answer[slice(*claim.spans[0])] for claim in claims] == expected


@pytest.mark.parametrize(
    "answer",
    [
        "The tower is tall but not old.",
        "The tower is tall but the mill is old.",  # without a comma only before a pronoun
        "Tall but it is not old.",
        "He sold tea, coffee, and sugar from the islands.",
        "It has red walls; blue doors; a flat roof.",
        "Einstein said that time was relative, and he was right.",
        "According to Grey, it was closed, and it was sold.",
        "If it rains, and it is cold, the fair is moved.",
        "Not only was it old, but it was also too small.",
        "It is either a goat, or it is a sheep.",
        'He wrote "Rome is old; it is big" and left.',
        "It was cold (the ice was thick; it was winter) and dark.",
        "He won in 1990, and the prize that was given to him is small.",
        "He starred in City Hall (2009), and You're All Surrounded (2014).",
        "Ông sinh năm 1765, nhưng không rõ nơi sinh.",
        "Ông là nhà thơ, và những người đã gặp ông rất ít.",
        "Nếu trời mưa, nhưng nó không lạnh, thì hội vẫn mở.",
        "他在1990年出生，但没有上学。",
        "他是诗人，而不是画家。",
        "如果他是诗人，而她是画家，就好了。",
        "他认为北京是首都，但上海是最大的城市。",
        "on the north bank",
        "Paris",
        "1902",
        "-5",
        "> 5 km",
        "12 May 1950",
        "3.5",
        "Who Framed Roger Rabbit?",
    ],
)
def test_what_is_not_two_whole_statements_stays_one_claim(answer):
    assert split_claims(answer) == (Claim(answer, ((0, len(answer)),)),)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("However, Ulm is a city [1].", "Ulm is a city."),
        ("In addition, based on the provided passages, it is old.", "it is old."),
        ("Based on the passages, the capital is **Paris** (Passage 1).", "the capital is Paris."),
        ("- [2] **Heat**: it was *very* hot [1, 3].", "Heat: it was very hot."),
        ("1. `grep` finds [lines](https://example.org/a) __fast__", "grep finds lines fast"),
        ("> 2) Paris", "Paris"),
        ("| Paris | 2 million |", "Paris | 2 million"),
        ("Answer: Paris", "Paris"),
        ("But it was red.", "it was red."),
        ("However, in fact, therefore, Ulm is old.", "Ulm is old."),
        ("However, in fact, therefore, moreover, Ulm is old.", "moreover, Ulm is old."),
        ("**_`Ulm`_** is old.", "Ulm is old."),
        ("But Not for Me is a song.", "But Not for Me is a song."),
        ("2*3*4 is in snake_case_name.", "2*3*4 is in snake_case_name."),
        ("Tuy nhiên, ông là nhà thơ [Đoạn 2].", "ông là nhà thơ."),
        ("Dựa trên các đoạn văn được cung cấp, sông dài 1.149 km.", "sông dài 1.149 km."),
        ("此外，大运河全长1794公里【1】。", "大运河全长1794公里。"),
        ("根据提供的段落，答案是**北京**。", "答案是北京。"),
    ],
)
def test_marks_citations_and_connectives_are_no_part_of_the_text(answer, expected):
    (claim,) = split_claims(answer)
    assert claim.text == plain(answer) == expected and claim.relevant
    ((start, end),) = claim.spans
    # The first and the last word of the claim are where its span begins and ends.
    inside = words(without_citations(answer[start:end]))
    assert (inside[0], inside[-1]) == (words(expected)[0], words(expected)[-1]) or "(http" in answer


@pytest.mark.parametrize(("n", "parts"), [(2000, 2), (2001, 1)])
def test_what_is_too_long_for_a_sentence_is_not_taken_apart(n, parts):
    assert len(split_claims("Ulm is old; it lies on the ".ljust(n, "x"))) == parts


@pytest.mark.parametrize("answer", ["", "  \n\t", "…", "---", "[1]"])
def test_no_word_no_claim(answer):
    assert split_claims(answer) == ()


@pytest.mark.parametrize(
    "answer",
    ["I don’t know.", "Sorry. I do not know. Could you tell me more?", "Không biết.", "我不知道。对不起。"],
)
def test_an_abstention_is_one_claim_that_is_not_relevant(answer):
    assert split_claims(answer) == (Claim(answer, ((0, len(answer)),), relevant=False),)


def test_an_answer_that_refuses_in_part_keeps_what_it_states():
    answer = "It was built in 1902; the passages do not say by whom. I don't know. However, it burned."
    assert [(c.text, c.relevant) for c in split_claims(answer)] == [
        ("It was built in 1902", True),
        ("the passages do not say by whom.", False),
        ("I don't know.", False),
        ("it burned.", True),
    ]


def test_a_whole_answer_in_markdown():
    answer = (
        "Here are the causes:\n\n## Heat\n- It burned [1].\n- It was **old**\n\nIt burned. I hope this helps!"
    )
    claims = split_claims(answer)
    assert [(c.text, c.relevant, [answer[a:b] for a, b in c.spans]) for c in claims] == [
        ("Here are the causes:", False, ["Here are the causes:"]),
        ("Heat", False, ["Heat"]),
        ("It burned.", True, ["It burned [1].", "It burned."]),
        ("It was old", True, ["It was **old**"]),
        ("I hope this helps!", False, ["I hope this helps!"]),
    ]
    # A heading that is all there is, is the answer.
    assert split_claims("# Paris") == (Claim("Paris", ((2, 7),)),)


def test_the_same_words_are_one_claim_but_other_signs_are_not():
    assert texts("PARIS\nParis.\n*paris*") == ["PARIS"]
    assert texts("5% fell. 5 fell. -5 fell. C fell. C++ fell.") == ["5% fell.", "5 fell.", "-5 fell.", "C fell.", "C++ fell."]  # fmt: skip
    one = [Claim("a", ((0, 1),), relevant=False, added=("x",)), Claim("b"), Claim("A", ((5, 6), (0, 1)))]
    assert merged(one) == (Claim("a", ((0, 1), (5, 6)), added=("x",)), Claim("b"))


PIECES = [
    "It is old", "he said that", "Paris", " ", "\n", ". ", "; ", ", and he is red", ", but the mill was red", "?", "。", "，而他是人",
    "北京是首都", "Ông là vua", "; nhưng nó là đỏ", "[1]", "[2, 3]", "(", ")", '"', "- ", "1. ", "## ", "**", "*", "_", "`", "However, ", "I don't know",
]  # fmt: skip


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)))
def test_every_claim_is_said_where_its_spans_say(answer):
    claims = split_claims(answer)
    assert bool(claims) <= has_words(answer)
    firsts = [claim.spans[0] for claim in claims]
    assert firsts == sorted(firsts)
    assert all(claim.text.strip() and has_words(claim.text) for claim in claims)
    assert all(0 <= a < b <= len(answer) for claim in claims for a, b in claim.spans)
    spans = sorted(span for claim in claims for span in claim.spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    for claim in claims:
        for start, end in claim.spans:
            said = iter(words(unicodedata.normalize("NFC", answer[start:end])))
            assert all(word in said for word in words(claim.text))  # in this order
