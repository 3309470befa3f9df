"""Claims by a model, checked against the rules: every branch, and what holds whatever the model replies."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.claims.decomposition.decompose import SCHEMA, best_sentence, decompositions, read_sentence
from core.claims.decomposition.split import split_claims
from core.errors import BackendError, TransientError
from core.llm import Completion
from core.llm.structured import canonical
from core.text.sentences import sentence_spans
from tests.scripted import ScriptedLLM

ANSWER = (
    "Albert Einstein was born in Ulm in 1879 [1]. He won the Nobel Prize in 1921, and he may have lived in Bern. "
    "I hope this helps!"
)
BIRTH, PRIZE, BERN = (
    "Albert Einstein was born in Ulm in 1879.",
    "Albert Einstein won the Nobel Prize in 1921.",
    "Albert Einstein may have lived in Bern.",
)


def decompose(*arguments):
    return [found.claims for found in decompositions(*arguments)]


def reply(*claims):
    return json.dumps({"claims": [{"sentence": number, "claim": text} for number, text in claims]})


def asked(*claims, answer=ANSWER):
    """Decompose one answer with a model that makes these claims, each with the number of its sentence."""
    return decompose([answer], ScriptedLLM(lambda _: reply(*claims)))[0]


def places(answer, claims):
    return [(claim.text, [answer[a:b] for a, b in claim.spans]) for claim in claims]


def test_claims_of_a_model_are_placed_in_the_answer():
    claims = asked((1, BIRTH), (2, PRIZE), (2, BERN))
    assert places(ANSWER, claims) == [
        (BIRTH, ["Albert Einstein was born in Ulm in 1879"]),
        (PRIZE, ["He won the Nobel Prize in 1921"]),
        (BERN, ["he may have lived in Bern"]),
        # The model skipped this sentence.
        ("I hope this helps!", ["I hope this helps!"]),
    ]
    assert [claim.relevant for claim in claims] == [True, True, True, False]
    assert all(claim.added == claim.dropped == () for claim in claims)


def test_of_sentences_that_share_as_much_the_first_is_the_claims():
    answer = "Ulm is red. Rome is old. Bern is old."
    sentences = [read_sentence(answer, span) for span in sentence_spans(answer)]
    assert best_sentence("Old towns.", -1, sentences) == 1
    assert best_sentence("Tall towns.", -1, sentences) is None


def test_skipped_sentences_come_from_the_splitter_in_their_place():
    claims = asked((2, PRIZE), (2, BERN))
    assert places(ANSWER, claims)[0] == (BIRTH, ["Albert Einstein was born in Ulm in 1879 [1]."])
    assert asked() == split_claims(ANSWER)


@pytest.mark.parametrize(
    ("claim", "added", "dropped"),
    [
        ("Albert Einstein won the Nobel Prize in Physics in 1921.", ("physics",), ("may", "lived", "bern")),
        # The name stands for "he"; a year of another sentence stands for nothing.
        ("Albert Einstein won the Nobel Prize in 1879.", ("1879",), ("1921", "may", "lived", "bern")),
        ("Einstein did not win the Nobel Prize in 1921.", ("not", "win"), ("won", "may", "lived", "bern")),
        ("He winning the prizes in 1921, having lived in Bern", ("winning",), ("won", "nobel", "may")),
    ],
)
def test_added_and_dropped_words_are_marked(claim, added, dropped):
    found = asked((1, BIRTH), (2, claim))[1]
    assert (found.text, found.added, found.dropped) == (claim, added, dropped)


@pytest.mark.parametrize(
    ("answer", "claim", "added", "dropped"),
    [
        ("It is not old at all.", "It isn't old.", (), ("all",)),
        ("It is not old.", "It is old.", (), ("not",)),
        ("The mill can't be sold.", "The mill cannot be sold.", (), ()),
        ("Apollo 11 landed. It came back.", "Apollo 11 came back.", (), ()),
        ("Ông là nhà thơ lớn.", "Ông là nhà thơ không lớn.", ("không",), ()),
        ("北京是中国的首都。", "北京不是中国的首都。", ("不",), ()),
        ("Smoking may cause most cancers.", "Smoking causes cancers.", (), ("may", "most")),
    ],
)
def test_small_words_that_change_a_claim_count(answer, claim, added, dropped):
    number = 2 if "Apollo" in answer else 1
    found = next(c for c in asked((number, claim), answer=answer) if c.text == claim)
    assert (found.added, found.dropped) == (added, dropped)


def test_a_wrong_sentence_number_is_put_right_where_no_word_is_shared():
    claims = asked((3, BIRTH), (-1, "He won the prize."))
    assert places(ANSWER, claims)[:2] == [
        (BIRTH, ["Albert Einstein was born in Ulm in 1879"]),
        ("He won the prize.", ["He won the Nobel Prize"]),
    ]
    # Shared words keep the number the model gave, even where another sentence shares more.
    answer = "Marie Curie was a chemist. She left Warsaw."
    assert places(answer, asked((2, "Marie Curie left Warsaw."), answer=answer))[1] == (
        "Marie Curie left Warsaw.",
        ["She left Warsaw"],
    )


def test_a_claim_the_answer_does_not_make_has_no_place_and_comes_last():
    claims = asked((1, "Bananas are yellow."), (1, BIRTH))
    assert claims[0].text == BIRTH
    assert (claims[-1].text, claims[-1].spans, claims[-1].added) == (
        "Bananas are yellow.",
        (),
        ("bananas", "yellow"),
    )


def test_an_ideograph_is_long_enough_for_a_claim():
    found = asked((1, "木"), answer="刻字用的是木。")
    assert [claim.text for claim in found] == ["木"]


def test_duplicates_are_one_claim_with_all_places_and_marks_are_taken_off():
    answer = "The mill burned in 1910. It rained. The mill burned in 1910!"
    claims = asked((3, "- The mill **burned** in 1910 [2]"), (1, "The mill burned in 1910"), answer=answer)
    assert places(answer, claims) == [
        ("The mill burned in 1910", ["The mill burned in 1910", "The mill burned in 1910"]),
        ("It rained.", ["It rained."]),
    ]


def test_what_the_rules_know_to_be_no_statement_stays_none():
    claims = asked(
        (1, BIRTH), (3, "The author hopes this helps."), (2, "???"), (1, "I don't know where Ulm is.")
    )
    assert [(c.text, c.relevant) for c in claims] == [
        (BIRTH, True),
        ("I don't know where Ulm is.", False),
        ("He won the Nobel Prize in 1921", True),
        ("he may have lived in Bern.", True),
        ("The author hopes this helps.", False),
    ]


@pytest.mark.parametrize(
    ("bad", "calls", "reason"),
    [
        ("no JSON at all", 2, "it is not JSON"),
        ('{"claims": [{"claim": "no number"}]}', 2, "'sentence' is a required property"),
        ('{"claims": [{"sentence": 1}]}', 2, "'claim' is a required property"),
        ("{}", 2, "'claims' is a required property"),
        ('{"claims": [{"sentence": 1, "claim": "It is.", "why": "x"}]}', 2, "'why' was unexpected"),
        ('{"claims": [], "more": 1}', 2, "'more' was unexpected"),
        ('{"claims": [{"sentence": 1, "claim": ""}]}', 2, "non-empty"),
        (Completion("", "content_filter", 5, 0, 0.0), 1, "withheld"),
        (
            Completion("", "error", 5, 0, 0.0, error="The server took too long."),
            1,
            "The server took too long.",
        ),
        (Completion('{"claims": [{"sentence": 1, "cl', "length", 5, 9, 0.0), 2, "cut off"),
    ],
)
def test_a_failed_reply_falls_back_to_the_rules_for_that_answer_only(bad, calls, reason):
    llm = ScriptedLLM(
        lambda request: bad if "Ulm" in str(request.messages[1]) else reply((1, "Rome is old."))
    )
    broken, fine = decompositions([ANSWER, "Rome is old and large."], llm)
    assert broken.claims == split_claims(ANSWER)
    assert reason in broken.reason and llm.calls == calls + 1
    assert (fine.claims[0].text, fine.claims[0].dropped, fine.reason) == ("Rome is old.", ("large",), None)


def test_calls_one_for_each_different_answer_that_has_something_to_break_up():
    llm = ScriptedLLM(lambda _: reply())
    answers = [ANSWER, "Paris", "", "I don't know the answer.", "in 1902", ANSWER, "Rome is old."]
    found = decompositions(answers, llm)
    assert llm.calls == 2
    assert [result.claims for result in found] == [split_claims(answer) for answer in answers]
    assert decompose([], llm) == []


def test_without_a_model_the_rules_decide():
    assert decompose([ANSWER, ""]) == [split_claims(ANSWER), ()]


def test_what_is_sent_numbers_the_sentences_without_marks():
    llm = ScriptedLLM(lambda _: reply())
    llm.capabilities = replace(llm.capabilities, json_schema=True)
    decompose([ANSWER], llm)
    (request,) = llm.requests
    assert request.schema == canonical(SCHEMA) and request.temperature == 0
    assert request.messages[-1].content.endswith(
        "1. Albert Einstein was born in Ulm in 1879.\n"
        "2. He won the Nobel Prize in 1921, and he may have lived in Bern.\n"
        "3. I hope this helps!"
    )


def test_the_token_limit_depends_on_the_answer_alone():
    long = " ".join(f"The mill number {i} burned in the year {1000 + i}." for i in range(60))
    alone, together = (ScriptedLLM(lambda _: reply()) for _ in range(2))
    decompose([ANSWER], alone)
    decompose([long, ANSWER], together)
    assert alone.requests == together.requests[:1]
    assert [request.max_tokens for request in together.requests] == [512, 4096]


@pytest.mark.parametrize(("n_words", "tokens"), [(88, 512), (89, 1024), (216, 1024), (217, 2048)])
def test_the_token_limit_grows_with_the_words_and_sentences(n_words, tokens):
    answer = "Rome is old. Ulm is old. Bern is old. " + " ".join(["Mills"] * (n_words - 9)) + "."
    llm = ScriptedLLM(lambda _: reply())
    decompose([answer], llm)
    # 4 for each word and 40 for each of the four sentences, in powers of two.
    assert [request.max_tokens for request in llm.requests] == [tokens]


@pytest.mark.parametrize("error", [TransientError("Busy."), BackendError("Down.")])
def test_a_batch_that_fails_is_for_the_caller_to_retry(error):
    def ask(_):
        raise error

    with pytest.raises(type(error)):
        decompose([ANSWER], ScriptedLLM(lambda _: reply()), ask)


def test_ask_makes_the_calls():
    llm, batches = ScriptedLLM(lambda _: reply((1, "Rome is old."))), []

    def ask(requests):
        batches.append(len(requests))
        return llm.generate(requests)

    assert decompose(["Rome is old.", "Rome is an old town."], llm, ask)[0][0].spans == ((0, 11),)
    assert batches == [2]


SAID = st.lists(
    st.tuples(st.integers(-1, 6), st.sampled_from([BIRTH, PRIZE, BERN, "Ulm", "?", "He is.", "乌尔姆", "1. x"]) | st.text(min_size=1))
)  # fmt: skip
ANSWERS = st.sampled_from(
    [ANSWER, "- Ulm [1]\n- Bern is old; it is red.\n\nUlm", "他是。北京是首都。", "It is. He was."]
)


@given(ANSWERS, SAID)
def test_whatever_a_model_says_no_sentence_is_without_a_claim(answer, said):
    claims = asked(*said, answer=answer)
    assert claims == asked(*said, answer=answer)
    spans = [span for claim in claims for span in claim.spans]
    assert all(0 <= a < b <= len(answer) for a, b in spans)
    firsts = [claim.spans[0] for claim in claims if claim.spans]
    assert firsts == sorted(firsts)
    for expected in split_claims(answer):
        for a, b in expected.spans:
            sentence = next(s for s in sentence_spans(answer) if s[0] <= a and b <= s[1])
            assert any(s < sentence[1] and e > sentence[0] for s, e in spans)
