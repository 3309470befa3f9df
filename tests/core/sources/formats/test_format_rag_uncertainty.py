import json
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings

from core.errors import InputError
from core.sources.formats import jsonl
from core.sources.formats.rag_uncertainty import FORMAT
from core.sources.formats.records import CONTRADICTION, ENTAILMENT, Record, RecordClaim, RecordPassage
from tests.core.sources.formats.roundtrip import (
    comes_back,
    content_of,
    damaged,
    issues_of,
    lines,
    read_as,
    through_a_folder,
)

OPENED, LOCKS, TALK = (
    "The canal opened in 1914.",
    "The canal has <b>twelve</b> locks.",
    "The context gives no details.",
)
SHARED = {
    "category": "history",
    "question": "Tell me about the canal.",
    "semantic_entropy_global": -0.074,
    "semantic_entropy_truth_value": 0.51,
    "sum_eigen": 1.25,
    "rafe_overall_score": 0.6,
}
FIRST = {
    **SHARED,
    "answer": "It opened in 1914 and has twelve locks.",
    "atomic_facts": [OPENED, LOCKS, TALK],
    "rafe_details": [
        {"claim": OPENED, "label": "SUPPORTED", "evidence": ["It opened in 1914.", "Other."], "uncertainty_score": 0.5},
        {"claim": LOCKS, "label": "NOT_SUPPORTED", "evidence": ["Nothing."], "uncertainty_score": 1.0},
        {"claim": TALK, "label": "IRRELEVANT", "evidence": [], "uncertainty_score": None},
    ],
    "semantic_entropy_per_gen": 0.2,
    "rafe_gen_supported": 1,
    "rafe_gen_total_claims": 3,
    "cem_matrix": {"doc_0": {OPENED: 1, LOCKS: 0}, "doc_1": {OPENED: 0, LOCKS: 0}},
    "cem_evidence_scores": {"doc_0": 0.5, "doc_1": 0},
}  # fmt: skip
SECOND = {
    **SHARED,
    "answer": "I cannot say.",
    "atomic_facts": [],
    "rafe_details": [],
    "semantic_entropy_per_gen": 0.9,
    "cem_matrix": {},
    "cem_evidence_scores": {},
}
OTHER = {
    "category": "science",
    "question": "Why is the sky blue?",
    "answer": "",
    "rafe_details": [],
    "note": ["x"],
}
FILE = [FIRST, SECOND, OTHER]


def changed(**changes):
    return [{**FIRST, **changes}]


def test_a_file_comes_back_from_a_run_as_it_was(tmp_path):
    read, log = read_as(FORMAT, FILE)
    records = through_a_folder(read.records, tmp_path / "run")
    assert records == list(read.records)
    # A null beside a claim stays, since it stands in a part that is kept whole.
    assert json.loads(FORMAT.write(records)) == FILE
    assert issues_of(log) == []
    assert (len(read.records), list(read.rejected)) == (3, [])


def test_each_answer_is_a_record_whose_samples_are_the_others():
    first, second, other = read_as(FORMAT, FILE)[0].records
    assert [r.record_id for r in (first, second, other)] == ["q0001.1", "q0001.2", "q0002"]
    assert (first.samples, second.samples, other.samples) == (("I cannot say.",), (FIRST["answer"],), ())
    assert (first.kind, first.question, other.answer) == ("history", "Tell me about the canal.", "")
    assert first.reported["semantic_entropy_global", ""] == -0.074
    assert first.reported["cem_evidence_scores.doc_0", ""] == 0.5


def test_matrix_is_turned_to_claims_by_passages():
    first = read_as(FORMAT, FILE)[0].records[0]
    assert first.passages == (RecordPassage("doc_0", None), RecordPassage("doc_1", None))
    assert first.claims == (
        RecordClaim(OPENED, support={"doc_0": 1.0, "doc_1": 0.0}, relevance="RELEVANT", verdict="SUPPORTED"),
        RecordClaim(
            LOCKS, support={"doc_0": 0.0, "doc_1": 0.0}, relevance="RELEVANT", verdict="NOT_SUPPORTED"
        ),
        RecordClaim(TALK, relevance="IRRELEVANT"),
    )


def test_claim_absent_from_one_column_was_judged_there_and_absent_from_all_was_not():
    matrix = {"doc_0": {OPENED: 1}, "doc_1": {LOCKS: 1, TALK: None}}
    record = read_as(FORMAT, changed(cem_matrix=matrix))[0].records[0]
    assert [dict(claim.support) for claim in record.claims] == [
        {"doc_0": 1.0, "doc_1": 0.0},
        {"doc_0": 0.0, "doc_1": 1.0},
        {"doc_0": 0.0},
    ]
    assert json.loads(FORMAT.write([record]))[0]["cem_matrix"] == matrix
    elsewhere = replace(record, reported={})
    written = json.loads(FORMAT.write([elsewhere]))[0]["cem_matrix"]
    assert written == {"doc_0": {OPENED: 1, LOCKS: 0, TALK: 0}, "doc_1": {OPENED: 0, LOCKS: 1, TALK: None}}
    assert read_as(FORMAT, FORMAT.write([record]))[0].records == [record]


def test_claim_that_only_the_matrix_has_comes_after_those_with_a_label():
    matrix = {"doc_0": {"New.": 1, OPENED: 1}}
    record = read_as(FORMAT, changed(cem_matrix=matrix, cem_evidence_scores=None))[0].records[0]
    assert [claim.text for claim in record.claims] == [OPENED, LOCKS, TALK, "New."]
    assert record.claims[3] == RecordClaim("New.", support={"doc_0": 1.0})
    assert [c.support for c in record.claims[1:3]] == [{}, {}]
    assert json.loads(FORMAT.write([record]))[0]["rafe_details"] == FIRST["rafe_details"]


def test_documents_are_in_the_order_of_their_numbers():
    matrix = {name: {OPENED: 1} for name in ("doc_10", "doc_2", "doc_0")}
    record = read_as(FORMAT, changed(cem_matrix=matrix, cem_evidence_scores={"doc_1": 0.5}))[0].records[0]
    assert [p.passage_id for p in record.passages] == ["doc_0", "doc_1", "doc_2", "doc_10"]
    assert "doc_1" not in record.claims[0].support
    assert list(json.loads(FORMAT.write([record]))[0]["cem_matrix"]) == ["doc_0", "doc_2", "doc_10"]


def test_claims_of_the_same_text_share_their_column():
    details = [{"claim": OPENED, "label": "SUPPORTED"}, {"claim": OPENED, "label": "NOT_SUPPORTED"}]
    record = read_as(FORMAT, changed(rafe_details=details, atomic_facts=[OPENED] * 2))[0].records[0]
    assert [claim.verdict for claim in record.claims] == ["SUPPORTED", "NOT_SUPPORTED", None]
    assert record.claims[0].support == record.claims[1].support == {"doc_0": 1.0, "doc_1": 0.0}
    assert json.loads(FORMAT.write([record]))[0]["rafe_details"] == details


def test_label_that_is_missing_or_unknown_is_no_verdict():
    details = [{"claim": OPENED}, {"claim": LOCKS, "label": "MAYBE"}]
    value = changed(rafe_details=details, cem_matrix=None, atomic_facts=None, cem_evidence_scores=None)
    read, log = read_as(FORMAT, value)
    assert [(c.relevance, c.verdict) for c in read.records[0].claims] == [(None, None), (None, None)]
    assert issues_of(log) == [(1, "rafe_details[1].label", "warning")]
    written = json.loads(FORMAT.write(read.records))[0]
    assert written["rafe_details"] == details
    assert "atomic_facts" not in written


def test_older_names_are_read_and_given_back():
    older = {**{k: v for k, v in FIRST.items() if "rafe" not in k}, "safe_details": FIRST["rafe_details"]}
    read, log = read_as(FORMAT, [older])
    assert [claim.verdict for claim in read.records[0].claims] == ["SUPPORTED", "NOT_SUPPORTED", None]
    assert (json.loads(FORMAT.write(read.records)), issues_of(log)) == ([older], [])


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("rafe_details", "x", "rafe_details"),
        ("rafe_details", [7], "rafe_details[0]"),
        ("rafe_details", [{"claim": " "}], "rafe_details[0]"),
        ("cem_matrix", [[1, 0]], "cem_matrix"),
        ("cem_matrix", {"doc_0": 1}, "cem_matrix.doc_0"),
        ("cem_matrix", {"doc_0": {OPENED: "yes"}}, f"cem_matrix.doc_0.{OPENED}"),
        ("cem_matrix", {"doc_0": {OPENED: 2}}, f"cem_matrix.doc_0.{OPENED}"),
        ("cem_matrix", {"doc_0": {"": 1}}, "cem_matrix.doc_0"),
        ("cem_evidence_scores", {"doc_0": "high"}, "cem_evidence_scores.doc_0"),
        ("category", 7, "category"),
        ("answer", 7, "answer"),
    ],
)
def test_odd_values_are_noted_and_cost_only_themselves(name, value, field):
    read, log = read_as(FORMAT, changed(**{name: value}))
    assert len(read.records) == 1
    assert issues_of(log) == [(1, field, "warning")]


def test_cell_that_is_no_number_is_not_judged():
    matrix = {"doc_0": {OPENED: "yes", LOCKS: 1}, "doc_1": {OPENED: 1}}
    record = read_as(FORMAT, changed(cem_matrix=matrix))[0].records[0]
    assert record.claims[0].support == {"doc_1": 1.0}


def test_entries_without_a_question_are_put_aside():
    read, log = read_as(FORMAT, [FIRST, {**SECOND, "question": None}, [1], SECOND])
    assert [record.record_id for record in read.records] == ["q0001.1", "q0001.2"]
    assert [row for row, *_ in read.rejected] == [2, 3]
    assert issues_of(log) == [(2, "question", "error"), (3, "record", "error")]


def test_same_question_in_another_category_is_another_question():
    read, _ = read_as(FORMAT, [FIRST, {**SECOND, "category": "art"}])
    assert [record.record_id for record in read.records] == ["q0001", "q0002"]
    assert [record.samples for record in read.records] == [(), ()]


def test_number_of_samples_has_a_bound():
    few = read_as(FORMAT, [{"question": "q", "answer": str(n), "sum_eigen": 1} for n in range(100)])[0]
    assert [len(record.samples) for record in few.records] == [99] * 100
    many = read_as(FORMAT, [{"question": "q", "answer": str(n), "sum_eigen": 1} for n in range(101)])[0]
    assert not any(record.samples for record in many.records)
    assert "left without samples" in many.notes[1]


def test_notes_say_what_the_numbers_rest_on():
    assert read_as(FORMAT, FILE)[0].notes == (
        "2 questions with 3 answers: each answer is a record, and the other answers to its question are its samples.",
        "The verdicts come from evidence searched for each claim, not from the passages of the matrix.",
    )


def test_records_of_other_sources():
    record = Record(
        "one",
        "Who?",
        "Ann.",
        (RecordPassage("a", "Ann did it."), RecordPassage("b", "Bob.")),
        ("Ann",),
        ("Bob.",),
        claims=(
            RecordClaim("Ann did it.", support={"a": ENTAILMENT, "b": CONTRADICTION}, verdict="SUPPORTED"),
            RecordClaim("Bob slept.", support={"b": 0.25}, relevance="RELEVANT"),
            RecordClaim("Well.", relevance="IRRELEVANT"),
            RecordClaim("Ann.", "reference", {"a": 1.0}),
        ),
        reported={("faithfulness", ""): 0.5, ("grade", "ann"): "good"},
        kind="who",
    )
    assert json.loads(FORMAT.write([record])) == [
        {
            "category": "who",
            "question": "Who?",
            "answer": "Ann.",
            "atomic_facts": ["Ann did it.", "Bob slept.", "Well."],
            "rafe_details": [
                {"claim": "Ann did it.", "label": "SUPPORTED", "evidence": [], "uncertainty_score": 0.5},
                {"claim": "Bob slept.", "label": None, "evidence": [], "uncertainty_score": None},
                {"claim": "Well.", "label": "IRRELEVANT", "evidence": [], "uncertainty_score": None},
            ],
            "faithfulness": 0.5,
            "cem_matrix": {
                "a": {"Ann did it.": 1, "Bob slept.": None},
                "b": {"Ann did it.": 0, "Bob slept.": 0.25},
            },
            "cem_evidence_scores": {"a": 1, "b": 0.125},
        }
    ]


def test_empty_lists_of_other_sources_are_written():
    assert json.loads(FORMAT.write([Record("one", "Who?", "Ann.")])) == [
        {
            "question": "Who?",
            "answer": "Ann.",
            "atomic_facts": [],
            "rafe_details": [],
            "cem_matrix": {},
            "cem_evidence_scores": {},
        }
    ]


def test_recognised_by_names_that_only_it_has():
    assert FORMAT.recognise(content_of(FILE)) == 10
    assert FORMAT.recognise(content_of(lines(FILE))) == 10
    assert jsonl.FORMAT.recognise(content_of(FILE)) < 10
    assert FORMAT.recognise(content_of(FORMAT.write([Record("one", "Who?")]))) == 5
    others = [
        [{"question": "q", "answer": "a", "atomic_facts": [], "semantic_entropy_global": 0.5}],
        {"results": FILE},
        b"question,cem_matrix\nq,x\n",
    ]
    assert [FORMAT.recognise(content_of(other)) for other in others] == [0, 0, 0]


@pytest.mark.parametrize("value", [{"results": FILE}, b"question,answer\nq,a\n"])
def test_other_files_are_refused(value):
    with pytest.raises(InputError, match="expected a JSON list of entries"):
        read_as(FORMAT, value)


@given(damaged(FILE))
@settings(max_examples=60)
def test_whatever_was_read_comes_back_as_it_stood(value):
    assume(value)  # a file without an entry is refused
    read, _ = read_as(FORMAT, value)
    comes_back(read, json.loads(FORMAT.write(read.records)), content_of(value).entries)
