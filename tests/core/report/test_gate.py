"""The gate for scripts, and the one policy of how grave a finding is."""

from pathlib import Path

import pandas as pd

from core.answers.diagnostic import ANSWERS
from core.cli.app import main
from core.diagnosis import Diagnosis
from core.report.text import gate
from core.run import Run
from core.severity import HARMS, policy
from core.socket import UNCLEAR, Diagnostic, Finding


def answered(n_wrong, of):
    rows = {
        "query_id": [f"q{i}" for i in range(of)],
        "question": ["?"] * of,
        "answer_status": ["answered"] * of,
    }
    rows |= {"answer": ["no"] * n_wrong + ["yes"] * (of - n_wrong), "reference_answers": [["yes"]] * of}
    return Run.create({"source": "live"}, queries=pd.DataFrame(rows))


def test_half_of_the_answers_incorrect_does_not_pass():
    """48 of 100 incorrect answers read "Passed: 0 findings of severity high"."""
    found = gate(Diagnosis(answered(48, 100), diagnostics=[ANSWERS]))
    assert not found.passed and found.to_text().startswith("Failed: 1 finding of severity high.")
    assert "48 of 100 answers are wrong." in found.to_text()
    # Wilson's interval of 30 of 100 starts at 22 %: not surely more than a quarter.
    assert gate(Diagnosis(answered(30, 100), diagnostics=[ANSWERS])).passed
    assert not gate(Diagnosis(answered(30, 100), diagnostics=[ANSWERS]), "medium").passed


def test_what_is_unclear_is_listed_at_every_severity():
    unclear = Finding("open", "Nobody can tell.", 1, 2, tone=UNCLEAR)
    one = Diagnostic("x", "X", "?", lambda d: d, lambda a: (), lambda a: (unclear,))
    for severity in ("high", "medium", "low"):
        found = gate(Diagnosis(answered(0, 1), diagnostics=[one]), severity)
        assert (
            found.passed
            and "Cannot be told from these data:\n  [unclear] Nobody can tell." in found.to_text()
        )


def test_the_policy_is_the_one_of_the_documentation():
    assert policy() in Path("docs/explanation/many-tests.md").read_text(encoding="utf-8")


def test_the_policy_is_in_the_help_of_check(capsys):
    main(["check", "--help"])
    said = capsys.readouterr().out
    for line in policy(markdown=False).splitlines():
        assert line in said
    assert "Wrong answer: high surely > 25 %, medium surely > 10 %, low otherwise." in said
    assert all(harm.name in said for harm in HARMS) and "—" not in policy(markdown=False)
