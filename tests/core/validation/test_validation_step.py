"""The step: verdicts of a run as rows, made once, kept beside those of others, counted in a file."""

from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

import core.pipeline.steps
from core.cli import main
from core.errors import InputError
from core.pipeline import fill
from core.run import Run
from core.validation import NumericUnits, validate
from core.validation.fallback import OURS, served
from core.validation.step import ValidationStep
from core.validation.store import MetricsStore
from tests.core.validation.validation_runs import BRIDGE, CASES, run_of

VALIDATED = ("fine", "sure", "empty", "bare", "lost")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.delenv("ENABLE_VALIDATORS", raising=False)
    monkeypatch.delenv("VALIDATOR_EVIDENCE_THRESHOLD", raising=False)


def rows_of(run, query_id, validator):
    frame = run["verdicts"].set_index(["query_id", "validator"])
    return frame.loc[(query_id, validator)]


def test_every_answer_gets_a_row_of_each_validator():
    run = fill(run_of(), ValidationStep())
    verdicts = run["verdicts"]
    assert list(dict.fromkeys(verdicts["query_id"])) == list(VALIDATED)
    assert verdicts["validator"].to_list() == list(OURS) * 5
    row = rows_of(run, "sure", "ConfidenceValidator")
    # "definitely" in "Brunel definitely built it."
    assert (row["passed"], row["severity"], row["reason"], row["spans"]) == (
        False, "critical", "overconfident", ["7:17"],
    )  # fmt: skip
    row = rows_of(run, "lost", "NumericUnits")
    assert (row["passed"], row["severity"], row["value"], row["spans"]) == (False, "warning", 1, ["19:23"])
    assert row["detail"] == "1 of 1 number is not in the passages."
    assert pd.isna(rows_of(run, "fine", "EthicsAdapter")["passed"])
    # Ada, Unwin, designed: all three are in the first passage.
    assert rows_of(run, "fine", "EvidenceOverlap")["value"] == 1
    facts = run.manifest["steps"]["validation"]
    assert facts["options"] == {"evidence_threshold": 0.01, "citations": True, "lang": "auto"}
    assert (facts["complete"], facts["n_left"], facts["n_calls"], facts["notes"]) == (True, 0, 0, [])
    assert fill(run, ValidationStep()) is run, "nothing is missing"


@pytest.mark.parametrize(
    ("prompt", "options", "expected"),
    [
        (None, {}, "missing_citation"),  # whose prompt it was is not known
        ({"style": "function"}, {}, "missing_citation"),
        ({"style": "full"}, {}, "missing_citation"),  # it asks for citations
        ({"style": "short"}, {}, "not_applicable"),
        ({"style": "full"}, {"citations": False}, "not_applicable"),
    ],
)
def test_only_an_answer_that_was_asked_to_cite_must_cite(prompt, options, expected):
    run = fill(run_of(prompt=prompt), ValidationStep(**options))
    assert rows_of(run, "bare", "CitationRequired")["reason"] == expected
    assert rows_of(run, "fine", "CitationRequired")["passed"] == True  # noqa: E712
    assert run.manifest["steps"]["validation"]["options"]["citations"] == (expected == "missing_citation")


@pytest.mark.parametrize("query_id", VALIDATED)
def test_stored_verdicts_are_those_of_the_call(query_id, tmp_path):
    answer, passages = CASES[query_id]
    fill(run_of(), ValidationStep()).save(tmp_path / "run")
    found = served(Run.load(tmp_path / "run"), query_id)
    expected = validate(f"Who designed the {query_id} bridge?", answer, passages)
    assert found.outcome.verdicts == expected.verdicts
    assert found.outcome.context == expected.context
    assert found.outcome.learning_suggestions == expected.learning_suggestions
    assert found.used_fallback == expected.critical
    said = {**expected.validation_info, "used_fallback": expected.critical}
    assert (found.original, found.outcome.validation_info) == (answer, said)


def test_what_is_looked_at_has_its_reasons_and_a_fallback():
    run = fill(run_of(), ValidationStep())
    bare = served(run, "bare")
    assert [tuple(one) for one in bare.outcome.context.reasons] == [
        ("2 passages", 0.8), ("passages, but none is cited", -0.2),
    ]  # fmt: skip
    assert bare.text == "Ada Unwin designed it."
    lost = served(run, "lost")
    # Two passages are there, so it must not say that there are none.
    assert [tuple(one) for one in lost.outcome.context.reasons] == [
        ("no passage supports the answer", 0.2), ("and no uncertainty is stated: 0.1 in all", -0.1),
    ]  # fmt: skip
    assert lost.text.startswith("The available sources do not support") and "Brunel" not in lost.text
    assert lost.outcome.learning_suggestions == (
        "Add sources that answer: Who designed the lost bridge?", "Check against a source: 1866",
    )  # fmt: skip
    assert served(run, "error") is None and served(run, "dark") is None


@pytest.mark.parametrize(("texts", "n"), [((*BRIDGE, " "), 2), ((BRIDGE[0], None), 1), ((), 0)])
def test_passages_count_where_they_hold_a_word(texts, n):
    run = fill(run_of({"one": ("I don't know.", texts)}), ValidationStep())
    found = served(run, "one").outcome
    assert (found.validation_info["context_docs_count"], found.passed) == (n, True)


def test_passages_without_any_text_count_where_a_file_has_verdicts():
    row = {"query_id": "dark", "validator": "ToxicityGuard", "passed": True}
    assert served(run_of(verdicts=[row]), "dark").outcome.validation_info["context_docs_count"] == 2


def test_the_language_is_that_of_the_option():
    run = fill(run_of(), ValidationStep(lang="vi"))
    found = served(run, "lost")
    assert found.outcome.lang == "vi" and found.text.startswith("Các nguồn hiện có")
    assert found.outcome.learning_suggestions[1] == "Đối chiếu với nguồn: 1866"


def test_another_threshold_validates_anew(monkeypatch):
    cases = {"half": ("Ada Unwin designed the tall tower [1].", BRIDGE)}  # 3 of 5 words
    run = fill(run_of(cases), ValidationStep())
    assert rows_of(run, "half", "EvidenceOverlap")["passed"]
    strict = fill(run, ValidationStep(evidence_threshold=0.61))
    assert not rows_of(strict, "half", "EvidenceOverlap")["passed"] and len(strict["verdicts"]) == 5
    monkeypatch.setenv("VALIDATOR_EVIDENCE_THRESHOLD", "0.6")
    again = fill(strict, ValidationStep())
    assert rows_of(again, "half", "EvidenceOverlap")["passed"]
    assert again.manifest["steps"]["validation"]["options"]["evidence_threshold"] == 0.6


@pytest.mark.parametrize(
    "changes", [{"lang": "de"}, {"evidence_threshold": 1.1}, {"evidence_threshold": True}]
)
def test_options_have_a_range(changes):
    with pytest.raises(InputError, match=next(iter(changes))):
        ValidationStep(**changes)


def test_switched_off_nothing_is_validated_and_the_run_says_so(monkeypatch):
    monkeypatch.setenv("ENABLE_VALIDATORS", "false")
    run = fill(run_of(), ValidationStep())
    assert run["verdicts"].empty and run.manifest["notes"] == [
        "Nothing was validated: ENABLE_VALIDATORS is off."
    ]
    monkeypatch.setenv("ENABLE_VALIDATORS", "true")
    on = fill(run, ValidationStep())
    assert len(on["verdicts"]) == 25 and on.manifest["notes"] == []


def test_verdicts_of_other_validators_stay():
    other = {
        "query_id": "bare", "validator": "ToxicityGuard", "passed": False, "severity": "Critical", "reason": "rude",
        "value": 0.9, "detail": "It is rude.", "fallback_used": True,
    }  # fmt: skip
    ours = {"query_id": "fine", "validator": "NumericUnits", "passed": False, "reason": "unsupported_number"}
    given = run_of(verdicts=[other, ours])
    once = fill(given, ValidationStep())
    again = fill(once, ValidationStep(evidence_threshold=0.5))
    for run in (once, again):
        assert (
            rows_of(run, "bare", "ToxicityGuard").to_dict()
            == rows_of(given, "bare", "ToxicityGuard").to_dict()
        )
        assert len(run["verdicts"]) == 26 and pd.isna(rows_of(run, "fine", "NumericUnits")["passed"])
    found = served(again, "bare")
    assert found.used_fallback and found.outcome.validation_info["reasons"] == ["other", "missing_citation"]


def test_one_answer_that_breaks_a_validator_fails_alone(monkeypatch):
    check = NumericUnits.check

    def breaks(self, case):
        if "1866" in case.answer:
            raise RecursionError("too deep")
        return check(self, case)

    monkeypatch.setattr(NumericUnits, "check", breaks)
    run = fill(run_of(), ValidationStep())
    said = "A validator failed on this question (RecursionError: too deep)."
    facts = run.manifest["steps"]["validation"]
    assert (facts["n_left"], facts["reasons"]) == (1, {said: 1})
    rows = run["verdicts"][run["verdicts"]["query_id"] == "lost"]
    assert set(rows["reason"]) == {"failed"} and set(rows["detail"]) == {said} and rows["passed"].isna().all()
    assert served(run, "lost") is None and served(run, "fine").outcome.passed
    monkeypatch.undo()
    again = fill(run, ValidationStep())
    assert again["verdicts"].equals(fill(run_of(), ValidationStep())["verdicts"])


def test_answers_are_counted_in_a_file_once(tmp_path, monkeypatch):
    path = tmp_path / "new" / "metrics.db"
    before = datetime.now(UTC) - timedelta(seconds=1)
    run = run_of()
    for _ in range(2):
        fill(run, ValidationStep(metrics=str(path)))
    with MetricsStore(path) as store:
        seen = store.between(before, datetime.now(UTC))
    assert [(one.passed, one.used_fallback, one.confidence) for one in seen] == [
        (True, False, 0.9), (False, True, 0.1), (False, True, 0.1), (False, False, 0.6), (False, True, 0.1),
    ]  # fmt: skip
    assert all("Brunel" not in repr(one) for one in seen) and b"Brunel" not in path.read_bytes()


def test_answers_that_were_validated_before_are_counted_too(tmp_path):
    path, start = tmp_path / "metrics.db", datetime.now(UTC) - timedelta(seconds=1)
    validated = fill(run_of(), ValidationStep())
    counted = fill(validated, ValidationStep(metrics=str(path)))
    assert counted["verdicts"].equals(validated["verdicts"])
    assert counted.manifest["steps"]["validation"]["n_left"] == 0
    assert fill(counted, ValidationStep(metrics=str(path))) is counted
    with MetricsStore(path) as store:
        assert len(store.between(start, datetime.now(UTC))) == 5


def test_a_metrics_file_that_cannot_be_used_is_told_before_the_work(tmp_path):
    (tmp_path / "notes.txt").write_text("no database " * 100)
    with pytest.raises(InputError, match="metrics store"):
        fill(run_of(), ValidationStep(metrics=str(tmp_path / "notes.txt")))


def test_the_verdicts_are_not_lost_where_they_cannot_be_counted(tmp_path, monkeypatch):
    def full(self, observations):
        raise InputError("The disk is full.")

    monkeypatch.setattr(MetricsStore, "add", full)
    run = fill(run_of(), ValidationStep(metrics=str(tmp_path / "m.db")))
    assert len(run["verdicts"]) == 25
    assert run.manifest["notes"] == ["The answers are not counted: The disk is full."]


def test_where_no_answer_was_validated_the_metrics_file_is_left_alone(tmp_path, monkeypatch):
    def unexpected(self, observations):
        raise InputError("There is nothing to add.")

    monkeypatch.setattr(MetricsStore, "add", unexpected)
    run = run_of()
    work = ValidationStep(metrics=str(tmp_path / "m.db")).open(run, None)
    assert work.facts(run) == {"notes": []}


def test_on_the_command_line_without_a_model(tmp_path, monkeypatch, capsys):
    def none(*_, **__):
        raise AssertionError("no model is needed")

    monkeypatch.setattr(core.pipeline.steps, "open_llm", none)
    run_of().save(tmp_path / "run")
    given = ["analyze", str(tmp_path / "run"), "--steps", "validation", "--out", str(tmp_path / "new")]
    assert (
        main([*given, "--evidence-threshold", "0.5", "--lang", "en", "--metrics", str(tmp_path / "m.db")])
        == 0
    )
    capsys.readouterr()
    assert len(Run.load(tmp_path / "new")["verdicts"]) == 25
    assert (
        main(["export", str(tmp_path / "new"), "--format", "verdicts-csv", "--out", str(tmp_path / "v.csv")])
        == 0
    )
    frame = pd.read_csv(tmp_path / "v.csv")
    assert len(frame) == 25 and {"question", "answer", "validator", "reason", "value", "spans"} <= {*frame}
    with MetricsStore(tmp_path / "m.db") as store:
        assert len(store.between(datetime(2020, 1, 1, tzinfo=UTC), datetime.now(UTC))) == 5
    assert main([*given, "--evidence-threshold", "2"]) == 2
    assert "evidence_threshold must lie from 0 to 1" in capsys.readouterr().err
