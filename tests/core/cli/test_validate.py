"""`validate`: one answer from standard input, and its exit status."""

import io
import json
import sys
from datetime import UTC, datetime, timedelta

import pytest

from core.cli import main
from core.validation import Code
from core.validation.store import MetricsStore

GOOD = {
    "question": "Who built the tower?",
    "answer": "Brunel built the tower in 1866 [1].",
    "passages": ["Brunel built the tower in 1866."],
}
BAD = {
    "question": "Who built the tower?",
    "answer": "It was definitely Brunel, 42 km away.",
    "passages": ["A bridge.", {"text": "It rains.", "title": "Weather"}],
}


@pytest.fixture
def validate(monkeypatch, capsys):
    """Return what the command printed, and its exit status."""

    def run(given, *options):
        data = given if isinstance(given, bytes) else json.dumps(given).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        status = main(["validate", *map(str, options)])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def test_an_answer_that_passes(validate):
    assert validate(GOOD) == (
        0,
        "Passed: none of 4 validators objects.\n"
        "Context score 0.60, a rule of thumb made of:\n"
        "  +0.50  1 passage\n"
        "  +0.10  validation passed\n"
        "Served: the answer as it is.\n",
        "",
    )


def test_an_answer_that_fails_names_the_words_and_what_is_served(validate):
    status, said, _ = validate(BAD)
    assert status == 1
    lines = said.splitlines()
    assert lines[0] == "Failed: 4 of 4 validators object."
    assert "  NumericUnits (warning): 1 of 1 number is not in the passages. “42 km”" in lines
    (sure,) = [line for line in lines if "ConfidenceValidator" in line]
    assert sure.startswith("  ConfidenceValidator (critical): ") and sure.endswith("“definitely”")
    assert "Context score 0.10, a rule of thumb made of:" in lines
    (served,) = [line for line in lines if line.startswith("Served")]
    assert served.startswith("Served instead: The available sources do not support an answer")
    assert "Suggestion: Add sources that answer: Who built the tower?" in lines
    assert "Suggestion: Check against a source: 42 km" in lines


def test_a_warning_alone_fails_the_gate_but_the_answer_is_served(validate):
    status, said, _ = validate({**GOOD, "answer": "Brunel built the tower in 1866."})
    assert status == 1
    assert said.startswith("Failed: 1 of 4 validators objects.\n  CitationRequired (warning): ")
    assert "Served: the answer as it is.\n" in said


def test_words_that_would_fill_the_terminal_are_cut(validate):
    _, said, _ = validate({**GOOD, "answer": f"Brunel built {'7' * 500} towers [1]."})
    assert f"“{'7' * 79}…”" in said and "7" * 80 not in said.split("Suggestion")[0]


def test_as_json(validate):
    status, said, _ = validate(BAD, "--json")
    facts = json.loads(said)
    assert status == 1 and facts["passed"] is False and facts["used_fallback"] is True
    by_name = {one["validator"]: one for one in facts["verdicts"]}
    number = by_name["NumericUnits"]
    assert (number["words"], number["reason"], number["value"]) == (["42 km"], "unsupported_number", 1)
    assert number["spans"] == [[26, 31]] and number["severity"] == "warning"
    assert by_name["EthicsAdapter"]["passed"] is None
    assert facts["confidence_score"] == 0.1
    assert sum(one["change"] for one in facts["confidence_reasons"]) == pytest.approx(0.1)
    assert facts["validation_info"]["used_fallback"] is True
    assert facts["validation_info"]["context_docs_count"] == 2
    assert facts["served"].startswith("The available sources") and facts["lang"] == "en"
    assert facts["learning_suggestions"][1] == "Check against a source: 42 km"
    status, said, _ = validate(GOOD, "--json")
    facts = json.loads(said)
    assert (status, facts["passed"], facts["served"]) == (0, True, GOOD["answer"])


def test_the_language_is_detected_or_given(validate):
    _, said, _ = validate({**BAD, "lang": "vi"}, "--json")
    facts = json.loads(said)
    assert facts["lang"] == "vi" and facts["served"].startswith("Các nguồn hiện có")
    _, said, _ = validate({**BAD, "question": "谁建造了这座塔？"}, "--json")
    assert json.loads(said)["lang"] == "zh-Hans"


def test_switched_off_is_no_failure(validate, monkeypatch):
    monkeypatch.setenv("ENABLE_VALIDATORS", "false")
    status, said, _ = validate(BAD)
    assert status == 0 and said.startswith("Not validated: ENABLE_VALIDATORS switches validators off.\n")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_hostile_text_cannot_act_on_the_terminal(options, validate):
    hostile = "Certainly \x1b[2J\x9b31m 99 km \u202e\ud800 <script>"
    given = {"question": f"Who{hostile}?", "answer": hostile, "passages": [hostile, {"text": "\x07"}]}
    status, said, error = validate(given, *options)
    assert status == 1 and error == ""
    assert not set("\x1b\x9b\u202e\x07") & set(said)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (b"", "must be one JSON object"),
        (b"  \n", "must be one JSON object"),
        (b"hello", "must be one JSON object"),
        (b"[1]", "must be one JSON object"),
        (b'{"question": "a"}\n{"question": "b"}', "must be one JSON object"),
        (b'{"question": ', "is not valid JSON"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b" " * 10_000_000, "must be one JSON object"),
        (b" " * 10_000_001, "is larger than 10 MB"),
        ({}, "question must be a text, got none"),
        ({**GOOD, "answer": 1}, "answer must be a text, got 1"),
        ({**GOOD, "passages": "a"}, "passages must be a list, got 'a'"),
        ({**GOOD, "passages": ["a", {"title": "b"}]}, "Passage 2 must be a text or have one under text"),
        ({**GOOD, "lang": "fr\x1b[2J"}, "lang must be one of en, vi, zh-Hans, zh-Hant"),
        ({**GOOD, "lang": 1}, "lang must be a text"),
    ],
)
def test_bad_input_is_one_sentence(given, message, validate):
    status, said, error = validate(given)
    assert status == 2 and said == ""
    assert error.startswith("Error: ") and message in error
    assert error.count("\n") == 1 and "\x1b" not in error


def test_each_answer_is_counted_over_time(validate, tmp_path, monkeypatch):
    path = tmp_path / "metrics.db"
    validate(GOOD, "--metrics", path)
    validate(BAD, "--metrics", path)
    validate(BAD, "--metrics", path)
    monkeypatch.setenv("ENABLE_VALIDATORS", "false")
    assert validate(BAD, "--metrics", path)[0] == 0
    now = datetime.now(UTC)
    with MetricsStore(path) as store:
        seen = store.between(now - timedelta(minutes=5), now)
    assert [(one.passed, one.used_fallback) for one in seen] == [(True, False), (False, True), (False, True)]
    assert Code.OVERCONFIDENT in seen[1].reasons and seen[1].confidence == 0.1


def test_a_file_that_is_no_metrics_store(validate, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("These are my notes, and they are longer than a header. " * 20)
    status, said, error = validate(GOOD, "--metrics", path)
    assert (status, said) == (2, "") and error.startswith("Error: ") and error.count("\n") == 1
    assert path.read_text().startswith("These are my notes")
