"""What was in the prompt of incorrect answers, counted by hand."""

import pandas as pd
import pytest

from core.answers.analysis import FIRST, MISSING, PRESENT, UNKNOWN
from core.answers.diagnostic import ANSWERS
from core.charts.answers import evidence_split
from core.charts.theme import alt_text
from core.conditions import matching
from core.diagnosis import Diagnosis
from core.run import Run


def made(questions, texts=None):
    """A run of incorrect answers but for *right*; of each question the gold marks, n_gold, and its answer."""
    n = len(questions)
    ids = [f"q{i}" for i in range(1, n + 1)]
    queries = pd.DataFrame(
        {
            "query_id": ids,
            "question": "Who built it?",
            "answer": ["Unwin" if right else "Parker" for _, _, right in questions],
            "answer_status": "answered",
            "reference_answers": [["Raymond Unwin", "Unwin"]] * n,
            "n_gold": pd.array([n_gold for _, n_gold, _ in questions], dtype="Int64"),
        }
    )
    rows = [
        (one, str(j), j + 1.0, mark)
        for one, (marks, *_) in zip(ids, questions, strict=True)
        for j, mark in enumerate(marks)
    ]
    passages = pd.DataFrame(rows, columns=["query_id", "passage_id", "retrieval_rank", "is_gold"])
    passages["is_gold"] = passages["is_gold"].astype("boolean")
    if texts is not None:
        passages["text"] = texts
    return Run.create({"source": "live"}, queries=queries, passages=passages)


def diagnosed(*given, **more):
    return Diagnosis(made(*given, **more), diagnostics=[ANSWERS])


def test_by_gold_passages():
    q = diagnosed(
        [
            ([True, False], 1, False),
            ([False, True], 1, False),
            ([True, False], 2, False),  # one of two was not retrieved
            ([False, False], 1, False),
            ([True, True], None, False),  # how many there are is not known
            ([False, False], None, False),  # marked, and none is known: nobody knows
            ([None, None], None, False),
            ([False, True], 1, True),
            ([False, True], None, False),  # one will do
            ([None, True], 1, False),  # the first one is not marked, so it is not known to be gold
            ([False, False], 0, False),  # there is none at all
            ([None, None], 1, False),  # there is one, and none was looked for
        ]
    )["answers"].queries
    assert q["evidence"].tolist() == [
        FIRST, PRESENT, MISSING, MISSING, FIRST, UNKNOWN, UNKNOWN, PRESENT, PRESENT, PRESENT, UNKNOWN, UNKNOWN,
    ]  # fmt: skip
    assert q["evidence_by"].isna().tolist() == q["evidence"].eq(UNKNOWN).tolist()
    assert q["evidence_by"].dropna().unique().tolist() == ["gold"]


def test_by_the_reference_answer_where_no_gold_is_known():
    """Of 57 incorrect answers whose gold passages nobody marked, nothing was said at all."""
    nothing, holds = "Built by an architect.", "It was built by Raymond Unwin in 1907."
    d = diagnosed(
        [([None, None], None, False)] * 3 + [([None, None], None, True)],
        texts=[holds, nothing, nothing, holds, nothing, nothing, holds, holds],
    )
    q = d["answers"].queries
    assert q["evidence"].astype(object).where(q["evidence"].notna(), None).tolist() == [
        FIRST,
        PRESENT,
        MISSING,
        None,
    ]
    (found,) = d.findings_of("answers")
    assert found.sentence == (
        "3 of 4 answers are wrong. In 2 the reference answer was in the prompt: retrieval can probably explain at most 1."
    )
    assert (found.fix, found.query_ids) == ("reader:improve", ("q1", "q2", "q3"))
    # Each part said "3 read from the reference answer", the number of all three.
    notes = {one.key: one.note for one in d.numbers("answers") if one.key.startswith("n_incorrect")}
    assert list(notes.values()) == ["1 read from the reference answer"] * 3 + [""]
    hovers = [bar.customdata[0][1] for bar in evidence_split(d["answers"]).data]
    assert all("<br>1 read from the reference answer<br>Click" in hover for hover in hovers), hovers


def test_without_texts_or_with_yes_as_the_reference_it_is_not_known():
    assert diagnosed([([None], None, False)])["answers"].queries["evidence"].tolist() == [UNKNOWN]
    run = made([([None], None, False)], texts=["Yes, no doubt."])
    said = Run.create(
        run.manifest, **{**run.tables, "queries": run.queries.assign(reference_answers=[["Yes"]])}
    )
    assert Diagnosis(said, diagnostics=[ANSWERS])["answers"].queries["evidence"].tolist() == [UNKNOWN]
    (found,) = Diagnosis(said, diagnostics=[ANSWERS]).findings_of("answers")
    assert found.sentence == "1 of 1 answer is wrong." and not found.fix


@pytest.mark.parametrize(
    ("there", "missing", "told", "fix"),
    [
        (
            3,
            1,
            " In 3 the right passage was in the prompt: retrieval can explain at most 1.",
            "reader:improve",
        ),
        (
            1,
            3,
            " In 1 the right passage was in the prompt: retrieval can explain at most 3.",
            "retrieval:improve",
        ),
        (0, 3, " In none of them was the right passage in the prompt.", "retrieval:improve"),
        (
            3,
            0,
            " In all 3 the right passage was in the prompt: retrieval can explain none of them.",
            "reader:improve",
        ),
        (
            2,
            0,
            " In both the right passage was in the prompt: retrieval can explain none of them.",
            "reader:improve",
        ),
        # Of one it said "In 1 the right passage was in the prompt".
        (1, 0, " The right passage was in its prompt: retrieval cannot explain it.", "reader:improve"),
        (0, 1, " The right passage was not in its prompt.", "retrieval:improve"),
        (2, 2, " In 2 the right passage was in the prompt: retrieval can explain at most 2.", "answers:lost"),
    ],
)
def test_advice_follows_from_the_larger_part(there, missing, told, fix):
    rows = [([False, True], 1, False)] * there + [([False, False], 1, False)] * missing
    (found,) = diagnosed(rows).findings_of("answers")
    n = there + missing
    assert found.sentence == f"{n} of {n} {'answer is' if n == 1 else 'answers are'} wrong.{told}"
    assert found.fix == fix and found.clause.endswith(told.removesuffix("."))
    first = "q1" if there >= missing else f"q{there + 1}"
    assert found.query_ids[0] == first


THERE, LACKING, OPEN = ([False, True], 1, False), ([False, False], 1, False), ([None, None], None, False)


@pytest.mark.parametrize(
    ("rows", "told", "fix"),
    [
        ([THERE, OPEN], "", ""),  # half of them is too little to go by
        (
            [THERE, THERE, OPEN],
            " In 2 the right passage was in the prompt: retrieval can explain at most 1 (1 not known).",
            "reader:improve",
        ),
        (
            [LACKING, LACKING, OPEN],
            " In none of them was the right passage in the prompt (1 not known).",
            "retrieval:improve",
        ),
        ([LACKING, OPEN, OPEN], "", ""),
    ],
)
def test_where_the_evidence_of_half_is_not_known_nothing_is_advised(rows, told, fix):
    (found,) = diagnosed(rows).findings_of("answers")
    assert found.sentence == f"{len(rows)} of {len(rows)} answers are wrong.{told}"
    assert found.fix == fix and bool(found.advice) == bool(told)


@pytest.mark.parametrize(
    ("rows", "texts", "told"),
    [
        ([OPEN], ["None.", "By Unwin."], " The reference answer was in its prompt: retrieval probably cannot explain it."),
        ([OPEN], ["None.", "None."], " The reference answer was not in its prompt."),
        ([OPEN] * 2, ["None.", "By Unwin."] * 2,
         " In both the reference answer was in the prompt: retrieval can probably explain none of them."),
        ([THERE, OPEN, OPEN], ["None."] * 3 + ["By Unwin."] + ["None."] * 2,
         " In 2 the right passage or the reference answer was in the prompt: retrieval can probably explain at most 1."),
    ],
)  # fmt: skip
def test_a_reference_answer_that_was_read_is_called_so(rows, texts, told):
    (found,) = diagnosed(rows, texts=texts).findings_of("answers")
    n = len(rows)
    assert found.sentence == f"{n} of {n} {'answer is' if n == 1 else 'answers are'} wrong.{told}"


def test_few_incorrect_answers_need_no_advice():
    (found,) = diagnosed([THERE] + [([True], 1, True)] * 19).findings_of("answers")
    assert (found.sentence, found.advice, found.fix) == ("1 of 20 answers is wrong.", "", "")


def test_the_recorded_run_does_not_blame_retrieval():
    """It said "Mend retrieval first"; 17 of its 57 incorrect answers lack a gold passage and 40 had all of it."""
    diagnosis = Diagnosis(Run.load("sample_data/recorded_run"))
    found = diagnosis.findings_of("answers")[0]
    assert found.sentence == (
        "57 of 63 answers are wrong. In 40 the right passage was in the prompt: retrieval can explain at most 17."
    )
    assert (found.fix, found.severity) == ("reader:improve", "high")
    passages, queries = diagnosis.run.passages, diagnosis.run.queries.set_index("query_id")
    gold = passages[passages["is_gold"].fillna(False)].groupby("query_id").size()
    lacking = [one for one in found.query_ids if gold.get(one, 0) < queries.loc[one, "n_gold"]]
    assert (len(found.query_ids), len(lacking)) == (57, 17)
    # The answers that the model might have got right come first.
    assert set(found.query_ids[40:]) == set(lacking)


def test_every_part_of_the_figure_leads_to_its_questions():
    diagnosis = Diagnosis(Run.load("sample_data/recorded_run"))
    numbers = [one for one in diagnosis.numbers("answers") if one.define == "evidence"]
    assert [one.value for one in numbers] == [33, 7, 17, 0] and all(one.of == 57 for one in numbers)
    for one in numbers[:3]:
        assert len(matching(diagnosis, f"answers.{one.cases}")) == one.value
    figure = evidence_split(diagnosis["answers"])
    assert [bar.x[0] for bar in figure.data] == [33, 7, 17]  # nothing is said of zero
    assert [bar.y[0] for bar in figure.data] == [
        "In the prompt and first",
        "In the prompt, not first",
        "Not in the prompt",
    ]
    assert (
        figure.data[0]
        .customdata[0][1]
        .startswith("In the prompt and first: 33 of 57 incorrect answers<br>Cl")
    )
    assert all(
        bar.customdata[0][0].startswith("where=answers.queries.correct%3AFalse") for bar in figure.data
    )
    assert alt_text(figure).startswith(
        "Evidence for 57 incorrect answers: 33 in the prompt and first, 7 in the"
    )
    right = evidence_split(diagnosed([([True], 1, True)])["answers"])
    assert not right.data and "No answer is known to be incorrect" in alt_text(right)


def test_of_very_many_passages_an_even_spread_is_read(monkeypatch):
    monkeypatch.setattr("core.answers.analysis._MOST", 4)
    q = diagnosed([([None, None], None, False)] * 6, texts=["It was Unwin."] * 12)["answers"].queries
    assert q["evidence"].tolist() == [UNKNOWN, UNKNOWN, FIRST] * 2
