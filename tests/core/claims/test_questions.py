"""Claims as rows of tables and back."""

from dataclasses import replace

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from core.claims.questions import (
    CLAIM_TABLES,
    QuestionTexts,
    claim_rows,
    question_claims,
    read_question,
)
from core.claims.types import Claim
from core.pipeline.rows import questions_of
from core.run import Run

PASSAGES = [("p1", "The mill is red. It is old."), ("p2", "—"), ("p3", "A lake.")]


def run_of(tables, ids=("q",), passages=PASSAGES):
    rows = [
        {"query_id": q, "passage_id": name, "text": text, "retrieval_rank": rank}
        for q in ids
        for rank, (name, text) in enumerate(passages, start=1)
    ]
    queries = pd.DataFrame([{"query_id": q, "question": "What?"} for q in ids])
    return Run.create({"source": "upload"}, queries=queries, passages=pd.DataFrame(rows), **tables)


def tables_of(questions):
    return {name: pd.DataFrame(rows) for name, rows in claim_rows(questions, "me").items() if rows}


def read(run, passages=PASSAGES):
    return read_question("q", questions_of(run, CLAIM_TABLES)("q").filled, passages)


def mill():
    """Three claims of the answer, the last one irrelevant, and one of the reference."""
    known = question_claims(
        "q",
        [
            Claim("The mill is red.", ((0, 16), (30, 46)), True, ("red",), ("old", "tall")),
            Claim("It is a lake."),
            Claim("I hope this helps!", ((20, 29),), relevant=False),
        ],
        [Claim("The mill is old.", ((0, 16),))],
        PASSAGES,
    )
    known.probability[[0, 1, 3]] = [[0.9, np.nan, 0.1], [0.2, np.nan, np.nan], [np.nan, np.nan, np.nan]]
    known.agreement[0, 0] = 0.8
    known.sentences[0, 0] = 0, 16
    return replace(known, counterparts=("Neutral", None, None, "Entailment"))


def row(name, rank, **columns):
    return {"passage_id": name, "retrieval_rank": rank, "title": None, "text": None, **columns}


def test_the_texts_of_a_question():
    query = {
        "query_id": "q",
        "question": "What?",
        "answer": "A mill.",
        "answer_status": None,
        "reference_answers": ["…", "The Mill", "a lake", "the mill!"],
    }
    rows = [
        row("b", None, text="A lake."),
        row("c", 2.0, title=" Mill "),
        row("d", 1.0, title="Ulm", text="It."),
    ]
    found = QuestionTexts.of(query, rows, with_references=True)
    # By rank, what has none last; of references of the same words the first.
    assert found.passages == (("d", "It."), ("c", ""), ("b", "A lake."))
    assert found.titles == ("Ulm", "Mill", "")
    assert found.references == ("The Mill", "a lake")
    assert (found.status, found.answered, found.is_compared) == ("answered", True, True)
    assert found.to_decompose == ("A mill.", "The Mill")
    assert found.evidence(titled=True) == ("Ulm: It.", "", "A lake.")
    assert found.evidence(titled=False) == ("It.", "", "A lake.")
    without = QuestionTexts.of(query, rows, with_references=False)
    assert (without.references, without.is_compared, without.to_decompose) == ((), False, ("A mill.",))
    silent = QuestionTexts.of(query | {"answer": None}, rows, with_references=True)
    assert (silent.status, silent.answered, silent.is_compared) == ("empty", False, False)
    assert silent.to_decompose == ("The Mill",)


def test_ranges_of_titled_passages_in_the_passages_themselves():
    rows = [row("a", 1.0, title="Ulm", text="It is old."), row("b", 2.0, text="A lake.")]
    query = {"query_id": "q", "question": "?", "answer": "", "answer_status": None, "reference_answers": None}
    texts = QuestionTexts.of(query, rows, with_references=True)
    # "Ulm: It is old.": five characters come before the text. Behind, across, within the title; unknown.
    shown = np.array([[[5, 15], [0, 7]], [[0, 6], [0, 7]], [[0, 5], [2, 7]], [[-1, -1], [-1, -1]]])
    expected = [[[0, 10], [0, 7]], [[0, 1], [0, 7]], [[-1, -1], [2, 7]], [[-1, -1], [-1, -1]]]
    assert texts.in_passages([0, 1], shown, titled=True).tolist() == expected
    assert texts.in_passages([1, 0], shown[:, ::-1], titled=True)[:, ::-1].tolist() == expected
    assert texts.in_passages([0, 1], shown, titled=False).tolist() == shown.tolist()


def test_claims_are_numbered_by_side():
    known = mill()
    assert known.claim_ids == ("a1", "a2", "a3", "r1")
    assert known.sides == ("answer", "answer", "answer", "reference")
    assert known.readable.tolist() == [True, False, True]
    assert known.cells.tolist() == [[1, 0, 1], [1, 0, 1], [0, 0, 0], [1, 0, 1]]
    assert known.unscored.tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 0], [1, 0, 1]]


def test_rows_of_claims():
    run = run_of(tables_of([mill()]))
    claims = run["claims"].astype("object").where(run["claims"].notna(), None)
    assert claims["claim_id"].to_list() == ["a1", "a2", "a3", "r1"]
    assert claims["start"].to_list() == [0, None, 20, None]
    assert claims["end"].to_list() == [16, None, 29, None]
    assert claims["spans"].to_list() == [["0:16", "30:46"], None, ["20:29"], None]
    assert claims["added"].to_list() == [["red"], [], [], []]
    assert claims["dropped"].to_list() == [["old", "tall"], [], [], []]
    assert claims["relevance"].to_list() == ["RELEVANT", "RELEVANT", "IRRELEVANT", "RELEVANT"]
    # The second claim has an unscored cell and none that supports it; a passage without a word is unknown.
    assert claims["verdict"].to_list() == ["SUPPORTED", None, None, None]
    assert claims["scored"].to_list() == [True, True, False, False]
    assert claims["counterpart"].to_list() == ["Neutral", None, None, "Entailment"]


def test_rows_of_support():
    support = tables_of([mill()])["support"]
    cells = list(zip(support["claim_id"], support["passage_id"], strict=True))
    assert cells == [(c, p) for c in ("a1", "a2", "r1") for p in ("p1", "p3")]
    np.testing.assert_array_equal(support["probability"], [0.9, 0.1, 0.2, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(support["agreement"], [0.8] + 5 * [np.nan])
    assert set(support["judge"]) == {"me"}
    assert support["label"].isna().all()
    conformed = run_of(tables_of([mill()]))["support"]
    assert conformed["start"].to_list() == [0] + 5 * [pd.NA]
    assert conformed["end"].to_list()[0] == 16


def test_a_claim_that_no_passage_supports_is_not_supported_and_a_pair_supports_it():
    known = question_claims("q", [Claim("red lake")], [], [("p1", "red"), ("p2", "lake")])
    known.probability[:] = [[0.4, 0.49]]
    assert tables_of([known])["claims"]["verdict"].to_list() == ["NOT_SUPPORTED"]
    tables = tables_of([replace(known, joint=((0, (0, 1), 0.75),))])
    assert tables["claims"]["verdict"].to_list() == ["SUPPORTED"]
    assert tables["joint_support"].to_dict("records") == [
        {
            "query_id": "q",
            "claim_id": "a1",
            "passage_id": "p1",
            "second_passage_id": "p2",
            "probability": 0.75,
            "judge": "me",
        }
    ]


def test_a_question_without_passages_or_claims():
    bare = question_claims("q", [Claim("red")], [], [])
    rows = claim_rows([bare, question_claims("r", [], [], PASSAGES)], "me")
    assert [(row["verdict"], row["scored"]) for row in rows["claims"]] == [(None, False)]
    assert rows["support"] == rows["joint_support"] == []
    assert claim_rows([], "me") == {name: [] for name in CLAIM_TABLES}
    assert read(run_of({})).claims == ()


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
SPANS = st.lists(st.tuples(st.integers(0, 9), st.integers(10, 20)), max_size=3).map(tuple)
WORDS = st.lists(TEXT, max_size=2).map(tuple)
CLAIM = st.builds(Claim, TEXT, SPANS, st.booleans(), WORDS, WORDS)


@st.composite
def questions(draw):
    n = draw(st.integers(0, 4))
    passages = [(f"p{j}", draw(st.sampled_from(["a lake", "…", "mill"]))) for j in range(n)]
    reference = [replace(claim, spans=()) for claim in draw(st.lists(CLAIM, max_size=3))]
    known = question_claims("q", draw(st.lists(CLAIM, max_size=3)), reference, passages)
    for i, j in np.argwhere(known.cells):
        known.probability[i, j] = draw(st.floats(0, 1) | st.just(np.nan))
        known.agreement[i, j] = draw(st.floats(0.5, 1) | st.just(np.nan))
        known.sentences[i, j] = draw(st.sampled_from([(-1, -1), (0, 4)]))
    labels = [draw(st.sampled_from([None, "Neutral", "Entailment"])) for _ in known.claims]
    places = [i for i, claim in enumerate(known.claims) if claim.relevant]
    joint = ((places[0], (0, n - 1), draw(st.floats(0.5, 1))),) if places and n > 1 else ()
    return replace(known, counterparts=tuple(labels), joint=joint), passages


@given(questions())
@settings(max_examples=40)
def test_tables_give_back_what_was_written(drawn):
    known, passages = drawn
    run = run_of(tables_of([known]), passages=passages)
    assert len(run["support"]) == known.cells.sum()
    found = read(run, passages)
    for name in ("query_id", "claim_ids", "sides", "claims", "passage_ids", "counterparts", "joint"):
        assert getattr(found, name) == getattr(known, name), name
    for name in ("readable", "probability", "agreement", "sentences"):
        np.testing.assert_array_equal(getattr(found, name), getattr(known, name))


def test_rows_that_belong_to_nothing_are_passed_over():
    found = read(run_of(tables_of([replace(mill(), joint=((0, (0, 2), 0.6),))])), PASSAGES[:1])
    np.testing.assert_array_equal(found.probability, [[0.9], [0.2], [np.nan], [np.nan]])
    assert found.joint == ()
