"""Tables with a row for each claim and passage, or for each sample."""

import pytest

from core.errors import InputError
from core.sources.formats import import_file

CLAIMS = b"""question,claim,passage_id,support,colour
Who?,Ada was first.,d1,0.9,red
Who?,Ada was first.,d2,no,red
Who?,She was born in 1815.,d1,Supported,
Where?,In London.,d9,,
"""


def test_claims_times_passages():
    imported = import_file(CLAIMS, "claims.csv")
    run = imported.run
    assert run.queries["query_id"].tolist() == ["q0001", "q0002"] and len(run.passages) == 3
    assert run["claims"][["query_id", "claim_id", "text"]].to_numpy().tolist() == [
        ["q0001", "c1", "Ada was first."],
        ["q0001", "c2", "She was born in 1815."],
        ["q0002", "c1", "In London."],
    ]
    judged = run["support"][["claim_id", "passage_id", "probability"]].to_numpy().tolist()
    assert judged == [["c1", "d1", 0.9], ["c1", "d2", 0.0], ["c2", "d1", 1.0]]  # a blank cell was not judged
    assert run["support"]["label"].fillna("").tolist() == ["", "no", "Supported"]
    assert imported.report.ignored == ("colour",) and "Columns not used: colour." in imported.report.notes


def test_samples_in_long_form():
    run = import_file(b"question,sample\nWho?,Ada\nWhere?,London\nWho?,Ada\nWho?,\n", "samples.csv").run
    assert run["samples"][["query_id", "sample_id", "answer"]].to_numpy().tolist() == [
        ["q0001", "s1", "Ada"], ["q0002", "s1", "London"], ["q0001", "s2", "Ada"], ["q0001", "s3", ""],
    ]  # fmt: skip
    assert run.queries["answer"].isna().all()


def test_json_lines_are_read_as_a_table_too():
    data = b'{"question": "Who?", "claim": "Ada.", "doc_id": "d1", "support": true}\n' * 2
    imported = import_file(data, "f.jsonl")
    assert imported.run["support"]["probability"].tolist() == [1.0]  # the same claim and passage once


@pytest.mark.parametrize("cell, found", [("1.5", "1.5"), ("perhaps", "perhaps")])
def test_a_support_that_is_none_is_named(cell, found):
    imported = import_file(f"question,claim,passage_id,support\nWho?,Ada.,d1,{cell}\n".encode(), "f.csv")
    (issue,) = imported.report.issues
    assert (issue.row, issue.column, issue.value, issue.severity) == (2, "support", found, "warning")
    assert imported.run["support"].empty and len(imported.run["claims"]) == 1


def test_rows_without_question_or_claim_are_left_out():
    data = b"question,claim,passage_id,support\n,Ada.,d1,1\nWho?, ,d1,1\nWho?,Ada.,d1,1\n"
    report = import_file(data, "f.csv").report
    assert (report.n_rows, report.n_kept) == (3, 1)
    assert report.rejected["reason"].tolist() == ["question: expected a question", "claim: expected a claim"]


def test_nothing_usable_is_said():
    with pytest.raises(InputError, match="None of the 1 record"):
        import_file(b"question,claim\n,Ada.\n", "f.csv")


def test_columns_of_any_name_can_be_mapped():
    data = b"q,s,d,p\nWho?,Ada.,d1,0.25\n"
    mapping = {"question": "q", "claim": "s", "passage_id": "d", "support": "p"}
    run = import_file(data, "f.csv", mapping=mapping).run
    assert run["support"]["probability"].tolist() == [0.25]
