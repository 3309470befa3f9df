"""What each validator must say of 244 answers in English, Vietnamese and Chinese.

The table was written from the specification, before the code: an answer that differs is to be judged by the
specification, never by what the code says.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from core.text.language import language
from core.validation import validate

PATH = Path(__file__).parents[2] / "data" / "validation_cases.jsonl"
CASES = [json.loads(line) for line in PATH.read_text(encoding="utf-8").splitlines()]


def answer_of(case):
    return case["answer"] * case.get("times", 1) + case.get("then", "")


@pytest.fixture(autouse=True)
def defaults(monkeypatch):
    monkeypatch.delenv("ENABLE_VALIDATORS", raising=False)
    monkeypatch.delenv("VALIDATOR_EVIDENCE_THRESHOLD", raising=False)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_each_validator_says_what_the_table_says(case):
    answer = answer_of(case)
    outcome = validate(case["question"], answer, case["passages"])
    assert {v.validator: v.passed for v in outcome.verdicts} == case["expect"]
    failed = [v for v in outcome.verdicts if v.passed is False]
    assert {v.validator: v.reason.code for v in failed} == case["reasons"]
    assert outcome.passed is (not case["reasons"])
    for verdict in outcome.verdicts:
        assert all(0 <= start < end <= len(answer) for start, end in verdict.spans)
        if verdict.validator in case.get("spans", {}):
            marked = [answer[start:end] for start, end in verdict.spans]
            assert marked == case["spans"][verdict.validator]


def test_the_language_is_detected_from_the_question():
    found = {case["id"]: language(case["question"]) for case in CASES}
    assert found == {case["id"]: case["lang"] for case in CASES}


def test_the_table_covers_the_kinds_and_languages_of_the_specification():
    assert len(CASES) >= 150
    kinds = {case["kind"].split(",")[0] for case in CASES}
    assert kinds >= {
        "hedged", "overconfident", "negated", "curly quotes", "mixed scripts", "numbers", "citations", "code",
        "empty", "very long",
    }  # fmt: skip
    counted = Counter(case["lang"] for case in CASES)
    assert set(counted) == {"en", "vi", "zh-Hans", "zh-Hant"} and min(counted.values()) >= 20
    # A validator that always says the same would not pass.
    for validator in ("CitationRequired", "EvidenceOverlap", "NumericUnits", "ConfidenceValidator"):
        said = Counter(case["expect"][validator] for case in CASES)
        assert min(said[True], said[False], said[None]) >= (9 if validator != "ConfidenceValidator" else 2)
