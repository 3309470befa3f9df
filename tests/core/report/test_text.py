"""A run as text for a terminal, with a diagnostic made up for it."""

import pandas as pd
import pytest

from core.diagnosis import Diagnosis
from core.errors import InputError
from core.report.text import finding_text, gate, named, summary_json, summary_text
from core.run import Run
from core.socket import BAD, GOOD, MODE, UNCLEAR, Definition, Diagnostic, Finding, Need, Number, Setting

SLOW = Definition("slow", "Slow answers", "They take long.", MODE)
NUMBERS = (
    Number("mean", "Mean length", 12.5, n=2, pattern="{:.1f}", place="card"),
    Number("hidden", "For the file only", 3, place="data"),
    Number("unknown", "Not known", None, place="card"),
    Number("modes", "Failure modes", {"slow": 1_000, "other": 0}, define=MODE, place="row"),
    Number("none", "Nothing of them", {"slow": 0}, define=MODE, place="row"),
)
HIGH = Finding(
    "slow", "3 of 4 are slow.", 3, 4, (0.3, 0.95), severity="high", advice="Hurry.", query_ids=("q0",)
)
MEDIUM = Finding("slow", "It is late.", 1, 4, severity="medium")
OPEN = Finding("slow", "Nobody can tell.", 1, 4, tone=UNCLEAR, severity="low")
FINE = Finding("slow", "All is well.", 1, 4, tone=GOOD, severity="low")


def diagnosis(findings=(), numbers=NUMBERS, needs=(), source="live", **manifest):
    toy = Diagnostic("toy", "Toy title", "?", lambda d: d, lambda a: numbers, lambda a: findings, needs=needs,
                     definitions=(SLOW,), settings=(Setting("long_from", "Long from", 9.0, "", high=99.0),))  # fmt: skip
    queries = pd.DataFrame({"query_id": ["q0"], "question": ["Why?"]})
    run = Run.create({"source": source, "name": "Name", "run_id": "r1", **manifest}, queries=queries)
    return Diagnosis(run, diagnostics=[toy])


def test_a_run_in_lines():
    lines = summary_text(diagnosis((HIGH, FINE))).split("\n")
    assert lines[0] == "Name  (live, run r1)"
    assert lines[2].startswith("  3 of 4 are slow") and "  What to do: Hurry." in lines
    assert lines[-8:] == [
        "  Findings",
        "    [high] 3 of 4 are slow. (95 % interval of the share 30 to 95 %) Hurry.",
        "    [good] All is well.",
        "",
        "  Toy title",
        # Titles fill 30 letters, values 12.
        "    Mean length                           12.5  n = 2 questions",
        "    Failure modes",
        "      Slow answers                       1,000  They take long.",
    ]


def test_what_a_run_lacks_and_what_it_is_are_said():
    lacking = (Need("claims", "There are no claims."),)
    lines = summary_text(diagnosis(needs=lacking, source="simulation", complete=False)).split("\n")
    assert lines[0] == "Name  (SIMULATED DATA, run r1, not finished)"
    assert lines[-2:] == ["  Toy title", "    There are no claims."]
    assert "  Findings" not in lines and not any("What to do" in line for line in lines)


def test_the_summary_as_json_has_the_verdict():
    found = summary_json(diagnosis((HIGH,)))
    assert found["mean"] == 12.5 and found["hidden"] == 3 and found["unknown"] is None
    assert found["verdict"][0].startswith("3 of 4 are slow")


def test_three_are_named_and_the_others_counted():
    assert named(["a", "b", "c"]) == "a; b; c"
    assert named(["a", "b", "c", "d"]) == "a; b; c; and 1 more"
    assert named(["a", "b", "c", "d"], "pair") == "a; b; c; and 1 pair more"
    assert named(["a"] * 1_003, "pair") == "a; a; a; and 1,000 pairs more"


def test_a_finding_is_graded_only_where_something_is_wrong():
    assert finding_text(MEDIUM) == "[medium] It is late." and MEDIUM.tone == BAD
    assert [finding_text(one).split("]")[0] for one in (OPEN, FINE)] == ["[unclear", "[good"]


@pytest.mark.parametrize(
    ("severity", "head", "failed"),
    [
        ("high", "Failed: 1 finding of severity high.", ["high"]),
        ("medium", "Failed: 2 findings of severity medium or higher.", ["high", "medium"]),
        ("low", "Failed: 2 findings of severity low or higher.", ["high", "medium"]),
    ],
)
def test_what_is_at_least_as_grave_fails(severity, head, failed):
    found = gate(diagnosis((HIGH, MEDIUM, OPEN, FINE)), severity)
    assert found.to_text().split("\n")[0] == head
    facts = found.to_json()
    assert (facts["passed"], facts["severity"]) == (False, severity)
    assert [one["severity"] for one in facts["failed"]] == failed
    assert facts["failed"][0] == {
        "diagnostic": "toy", "name": "slow", "severity": "high", "sentence": "3 of 4 are slow.", "n": 3, "of": 4,
        "query_ids": ["q0"],
    }  # fmt: skip
    assert [one["sentence"] for one in facts["unclear"]] == ["Nobody can tell."]


def test_nothing_that_fails_passes():
    found = gate(diagnosis((MEDIUM, FINE)))
    assert found.to_text() == "Passed: 0 findings of severity high." and found.to_json()["passed"] is True


def test_a_setting_of_what_has_no_data_is_an_error():
    lacking = (Need("claims", "There are no claims."),)
    assert gate(diagnosis(needs=lacking)).passed
    assert gate(diagnosis(needs=lacking), asked=["another"]).passed
    assert gate(diagnosis(), asked=["long_from"]).passed
    with pytest.raises(InputError, match=r"^--long-from is a setting of Toy title\. There are no claims\.$"):
        gate(diagnosis(needs=lacking), asked=["long_from"])
    with pytest.raises(InputError, match="severity must be one of high, medium, low, got 'grave'"):
        gate(diagnosis(), "grave")
