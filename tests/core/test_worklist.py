"""The worklist: conditions say what they mean, and the order is the one that was promised."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.conditions import describe, matching, where
from core.diagnosis import Diagnosis
from core.errors import InputError
from core.report.exports import exporters
from core.reviews import Review
from core.run import Run
from core.socket import UNCLEAR, Definition, Diagnostic, Finding, QuestionColumn
from core.worklist import Filter, labels, orders, select, worklist, worklist_csv

FORMULA = '=HYPERLINK("http://evil")'


@dataclass(frozen=True)
class Toy:
    queries: pd.DataFrame
    passages: pd.DataFrame


def diagnosis_of(queries: pd.DataFrame, passages: pd.DataFrame, *findings: Finding) -> Diagnosis:
    """A run whose one diagnostic says what these frames and findings say."""
    run = Run.create(
        {"source": "live"},
        queries=pd.DataFrame(
            {
                "query_id": queries["query_id"],
                "question": [f"Question {i}?" for i in queries["query_id"]],
                "answer": "Steam and coal",
                "kind": [["single", "two_passage", None, "single"][i % 4] for i in range(len(queries))],
            }
        ),
    )
    toy = Diagnostic(
        name="toy", title="Toy", question="?", analyse=lambda _: Toy(queries, passages),
        numbers=lambda _: (), findings=lambda _: findings,
        definitions=(
            Definition("bad", "Bad answer", "m"), Definition("odd", "Odd", "m"), Definition("hit_at_k", "Hit at k", "m"),
            Definition("NOT_SUPPORTED", "NOT SUPPORTED", "m"),
        ),
        columns=(
            QuestionColumn("label", "Label"), QuestionColumn("score", "Score"),
            QuestionColumn("correct", "Correct", "bool"), QuestionColumn("parts", "Parts", "list"),
        ),
    )  # fmt: skip
    return Diagnosis(run, diagnostics=[toy])


@pytest.fixture
def toy() -> Diagnosis:
    queries = pd.DataFrame(
        {
            "query_id": ["a", "b", "c", "d"],
            "label": ["Good", "Bad", None, "Good"],
            "score": [0.2, float("nan"), 0.9, 0.5],
            "correct": pd.array([True, False, None, True], dtype="boolean"),
            "parts": [[0.1, 0.2], None, [0.3], []],
            "_inner": 1,
        }
    )
    passages = pd.DataFrame(
        {
            "query_id": ["a", "a", "b", "c"],
            "rank": [1.0, 2.0, 1.0, 2.0],
            "use": [2, 1, 1, 2],
            "title": ["x,y:z", "1..2", "50%", "x,y:z"],
        }
    )
    findings = (
        Finding("all", "All.", 4, 4, severity="high", query_ids=("d", "c", "b", "a")),
        Finding("bad", "Bad.", 2, 4, severity="medium", query_ids=("c", "b")),
        Finding("odd", "Odd.", 2, 4, severity="low", query_ids=("b", "a", "nobody")),
    )
    return diagnosis_of(queries, passages, *findings)


# ---- conditions ----


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("toy.passages.rank:1", "ab"),
        ("toy.passages.rank:1.0", "ab"),
        ("toy.passages.rank:1,use:2", "a"),  # in one row: b's only row has use 1
        ("toy.passages.rank:1,use:1", "b"),
        ("toy.passages.title:x%2Cy%3Az", "ac"),
        ("toy.passages.title:1%2E%2E2", "a"),
        ("toy.queries.label:Good", "ad"),
        ("toy.queries.correct:True", "ad"),
        ("toy.queries.correct:False", "b"),
        ("toy.queries.score:0.2..0.9", "ad"),  # from 0.2 on, below 0.9; nothing is no number
        ("toy.queries.score:0.5..", "cd"),
        ("toy.queries.score:..0.5", "a"),
        ("toy.queries.score:..", "acd"),
        ("toy.queries.label:None", ""),
        ("toy.queries.score:nan", ""),
    ],
)
def test_a_condition_holds_within_one_row(toy, text, ids):
    assert matching(toy, text) == tuple(ids)


@pytest.mark.parametrize(
    "text",
    [
        "", "toy", "toy.passages", "toy.passages.rank", "toy.passages.rank:one", "toy.passages.rank:1,",
        "toy.passages.nothing:1", "toy.claims.rank:1", "toy.run.name:1", "toy.__class__.x:1", "other.queries.a:1",
        "toy.queries._inner:1", "toy.queries.label:a..b", "toy.queries.score:a..b", "x" * 5_000, "toy.passages.rank:" + "9" * 5_000 + "x",
        "<script>", "toy.queries.\ud800:1",
    ],
)  # fmt: skip
def test_a_condition_that_says_nothing_is_told_in_a_sentence(toy, text):
    with pytest.raises(InputError) as caught:
        matching(toy, text)
    assert len(str(caught.value)) < 250


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4, unique=True), st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_any_text_is_found_again_by_the_condition_written_of_it(texts, chosen):
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    ids = [f"q{i}" for i in range(len(texts))]
    frame = pd.DataFrame({"query_id": ids, "label": texts, "score": 0.0, "correct": True, "parts": None})
    wanted = texts[chosen % len(texts)]
    expected = tuple(i for i, text in zip(ids, texts, strict=True) if text == wanted)
    assert matching(diagnosis_of(frame, frame), where("toy", "queries", label=wanted)) == expected


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=6), st.floats(allow_nan=False), st.data())
@settings(max_examples=30, deadline=None)
def test_any_range_of_numbers_is_half_open(values, low, data):
    high = data.draw(st.floats(min_value=low, allow_nan=False) | st.none())
    ids = [f"q{i}" for i in range(len(values))]
    frame = pd.DataFrame({"query_id": ids, "score": values, "label": "x", "correct": True, "parts": None})
    found = matching(diagnosis_of(frame, frame), where("toy", "queries", score=(low, high)))
    inside = [low <= value and (high is None or value < high) for value in values]
    assert found == tuple(i for i, met in zip(ids, inside, strict=True) if met)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_a_missing_value_is_no_condition(missing):
    with pytest.raises(ValueError, match="missing"):
        where("toy", "queries", label=missing)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (where("toy", "queries", score=(0.5, None), label="1..2", other_thing=3), "score ≥ 0.5, label: 1..2, other thing 3"),
        (where("toy", "queries", score=(None, 0.25), correct=False), "score < 0.25, correct: no"),
        (where("toy", "queries", score=(-0.5, 0.5), bad=True), "−0.5 ≤ score < 0.5, bad answer: yes"),
        (where("toy", "queries", score=(None, None)), "score known"),
        (where("toy", "queries", score=(0.12345, 0.123451)), "score 0.1235"),
        (where("toy", "claims", verdict="NOT_SUPPORTED", state="bad"), "verdict: not supported, claim: bad answer"),
        (where("toy", "queries", hit_at_3=(None, 1)), "hit at 3 < 1"),
        (where("toy", "passages", retrieval_order=1, best_influence_rank=(None, 11), worst_influence_rank=(10, None)),
         "retrieval rank 1, influence rank 10"),
        (where("toy", "passages", best_influence_rank=(None, 7), worst_influence_rank=(4, None)), "influence rank 4 to 6"),
        (where("toy", "passages", retrieval_order=(0.5, 3.5)), "retrieval rank 1 to 3"),
        (where("toy", "passages", rank=12_345, title="x,y:z"), "rank 12,345, title: x,y:z"),
        (where("toy", "queries", score=-1_500.6, other=1_000, more=999.5), "score −1,501, other 1,000, more 999.5"),
        (where("toy", "passages", rank=(0.5, 3), use=(0.5, 1.5)), "0.5 ≤ rank < 3, 0.5 ≤ use < 1.5"),
        (where("toy", "passages", rank=(1, 3.5), part_2=1), "1 ≤ rank < 3.5, part 2 1"),
        (where("toy", "passages", best_influence_rank=(None, 7), use=1), "best influence rank < 7, use 1"),
    ],
)  # fmt: skip
def test_conditions_are_told_in_words(toy, text, said):
    assert describe(toy, text) == said


@pytest.mark.parametrize(
    "text",
    ["", "no condition", "a.b", "toy.passages.best_influence_rank:..x,worst_influence_rank:", "toy.queries.score:a..b",
     "toy.queries.score:9e999", "toy.queries.score:..,", "toy.passages.rank:x.5..y.5"],
)  # fmt: skip
def test_whatever_a_link_says_is_told_somehow(toy, text):
    assert isinstance(describe(toy, text), str)


def test_what_was_planted_is_a_column_too():
    run = Run.create(
        {"source": "simulation"},
        queries=pd.DataFrame(
            {"query_id": ["a", "b"], "question": ["?", "?"], "planted_case": ["inert", "aligned"]}
        ),
        passages=pd.DataFrame(
            {
                "query_id": ["b", "a"],
                "passage_id": ["p", "p"],
                "retrieval_rank": [1, 1],
                "planted_influence": [0.5, 0],
            }
        ),
    )
    diagnosis = Diagnosis(run)
    assert matching(diagnosis, where("influence", "queries", planted_case="inert")) == ("a",)
    assert matching(diagnosis, where("influence", "passages", planted_influence=0.5, retrieval_rank=1)) == (
        "b",
    )
    with pytest.raises(InputError, match="no column"):
        matching(diagnosis, where("influence", "passages", planted_case="inert"))


def test_confidence_signals_are_columns_of_the_questions():
    run = Run.create(
        {"source": "upload"},
        queries=pd.DataFrame({"query_id": list("abc"), "question": ["?"] * 3}),
        signals=pd.DataFrame({"query_id": list("cab"), "llm_score": [0.9, 0.2, None]}),
    )
    diagnosis = Diagnosis(run)
    condition = where("answers", "queries", llm_score=(0.5, None))
    assert matching(diagnosis, condition) == ("c",)
    assert matching(diagnosis, where("answers", "queries", llm_score=(None, 1))) == ("a", "c")
    assert describe(diagnosis, condition) == "stated confidence of the model ≥ 0.5"
    with pytest.raises(InputError, match="no column"):
        matching(diagnosis, where("influence", "passages", llm_score=0.9))


def test_signals_of_an_imported_file_are_columns_of_the_questions_and_so_is_the_first_of_the_table():
    run = Run.create(
        {"source": "upload"},
        queries=pd.DataFrame({"query_id": list("abc"), "question": ["?"] * 3}),
        signals=pd.DataFrame({"query_id": list("ab"), "similarity": [0.9, 0.2]}),
        confidences=pd.DataFrame(
            {
                "query_id": list("abcb"),
                "name": ["guess", "judge", "judge", "guess"],
                "value": [0.9, 0.8, 0.1, 0.2],
            }
        ),
    )
    diagnosis = Diagnosis(run)
    for columns, ids in (
        ({"judge": (0.5, None)}, "b"), ({"judge": (None, None)}, "bc"), ({"guess": (0.5, None)}, "a"),
        ({"similarity": (0.5, None)}, "a"),
    ):  # fmt: skip
        assert matching(diagnosis, where("answers", "queries", **columns)) == tuple(ids)
    with pytest.raises(InputError, match="no column"):
        matching(diagnosis, where("influence", "passages", judge=0.8))


# ---- rows, order, filter ----


def test_rows_say_what_diagnostics_and_findings_say(toy):
    frame = worklist(toy)
    assert list(frame["query_id"]) == list("abcd")
    # A finding that counts every case tells none of them apart.
    assert list(frame["findings"]) == [["Odd"], ["Bad answer", "Odd"], ["Bad answer"], []]
    assert list(frame["toy.score"].fillna(-1)) == [0.2, -1, 0.9, 0.5]
    assert frame["toy.parts"].iloc[0] == [0.1, 0.2]
    # b has a medium and a low finding, c a medium one, a a low one, d none that tells it apart.
    assert list(frame["reading"]) == [3, 1, 2, 4]
    assert labels(frame) == ("Bad", "Good")


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (Filter(), "bcad"),
        (Filter(sort="run"), "abcd"),
        (Filter(sort="toy.score"), "adcb"),
        (Filter(sort="-toy.score"), "cdab"),
        (Filter(finding="toy.bad"), "cb"),  # in the order that the finding gives them
        (Filter(finding="toy.all"), "dcba"),
        (Filter(finding="toy.odd", sort="run"), "ab"),
        (Filter(label="Good"), "ad"),
        (Filter(kind="single"), "ad"),
        (Filter(words="QUESTION steam"), "bcad"),
        (Filter(words="question b"), "b"),
        (Filter(words="nowhere"), ""),
        (Filter(status="flagged"), "c"),
        (Filter(status="disputed"), "d"),
        (Filter(status="reviewed"), ""),
        (Filter(where="toy.passages.rank:7"), ""),
        (Filter(status="open"), "bad"),
        (Filter(where="toy.passages.rank:1", label="Good"), "a"),
    ],
)
def test_filters_and_orders(toy, wanted, ids):
    found, problems = select(toy, worklist(toy), wanted, {"c": Review("flagged", "look")}, ["d"])
    assert ("".join(found["query_id"]), problems) == (ids, ())


@pytest.mark.parametrize(
    "wanted",
    [
        Filter(finding="toy.none"), Filter(where="junk"), Filter(label="Other"), Filter(kind="other"),
        Filter(status="done"), Filter(sort="toy.label"), Filter(sort="--toy.score"), Filter(sort="reading"),
    ],
)  # fmt: skip
def test_what_is_unknown_is_told_and_restricts_nothing(toy, wanted):
    found, problems = select(toy, worklist(toy), wanted, {})
    assert "".join(found["query_id"]) == "bcad" and len(problems) == 1


def test_what_chance_explains_is_said_of_no_question():
    frame = pd.DataFrame({"query_id": list("ab"), "label": "x", "score": 0.0, "correct": True, "parts": None})
    common = {"tone": UNCLEAR, "query_ids": ("a",)}
    found = worklist(
        diagnosis_of(
            frame,
            frame,
            Finding("by_chance", "…", 1, 2, p_value=0.5, **common),
            Finding("beyond", "…", 1, 2, p_value=0.01, **common),
            Finding("untested", "…", 1, 2, **common),
            Finding("named", "…", 1, 2, label="Named so", **common),
        )
    )
    assert found["findings"].tolist() == [["Beyond", "Untested", "Named so"], []]


def test_the_gravest_finding_says_in_which_order_its_questions_are_read():
    ids = list("abcd")
    frame = pd.DataFrame({"query_id": ids, "label": None, "score": 0.0, "correct": True, "parts": None})
    bad = Finding("bad", "…", 3, 4, severity="high", query_ids=("b", "c", "a"))
    odd = Finding("odd", "…", 3, 4, severity="medium", query_ids=("a", "c", "b"))
    assert worklist(diagnosis_of(frame, frame, odd, bad))["reading"].tolist() == [3, 1, 2, 4]
    assert labels(worklist(diagnosis_of(frame, frame))) == ()


def test_orders_are_offered_of_numbers_only(toy):
    assert list(orders(toy, worklist(toy)).values()) == [
        "Most worth reading first", "Order of the run", "Score, lowest first", "Score, highest first",
        "Correct, no first", "Correct, yes first",
    ]  # fmt: skip


def test_the_export_has_status_and_note_and_no_formula(toy):
    noted = {"c": Review("flagged", FORMULA)}
    found, _ = select(toy, worklist(toy), Filter(), noted)
    frame = pd.read_csv(BytesIO(worklist_csv(toy, found)), index_col="query_id")
    assert list(frame.index) == list("bcad")
    assert frame.loc["c", "note"] == "'" + FORMULA and frame.loc["c", "status"] == "flagged"
    assert frame.loc["a", "toy.parts"] == "[0.1, 0.2]"


def test_every_run_exports_its_worklist_without_reviews_too():
    empty = Run.create({"source": "upload"}, queries=pd.DataFrame({"query_id": [], "question": []}))
    content = exporters()["worklist-csv"].write(Diagnosis(empty)).decode("utf-8-sig")
    assert content.startswith("query_id,question,kind,findings,status,note")
