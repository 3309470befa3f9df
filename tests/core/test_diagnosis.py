"""The socket itself: analyses on demand, shared between settings, and numbers as people read them."""

import math
import threading

import pandas as pd
import pytest

from core.diagnosis import Diagnosis
from core.diagnostics import DIAGNOSTICS
from core.errors import InputError
from core.run import Run
from core.socket import (
    BAD,
    EARLIER,
    GOOD,
    METRIC,
    MODE,
    REASON,
    UNCLEAR,
    Definition,
    Diagnostic,
    Finding,
    Need,
    Number,
    QuestionColumn,
    Setting,
)


@pytest.fixture
def run():
    queries = pd.DataFrame({"query_id": ["a", "b"], "question": ["?", "?"]})
    return Run.create({"source": "live", "name": "Two"}, queries=queries)


class Counting:
    """Diagnostics *first* (setting one) and *second* (setting two, reads first), and how often each analysed."""

    def __init__(self, reads=("first",)):
        self.calls = []
        self.diagnostics = (
            self.diagnostic("first", Setting("one", "One", 0.5, "", -1.0, 1.0)),
            self.diagnostic("second", Setting("two", "Two", False, ""), reads),
        )

    def diagnostic(self, name, setting, reads=()):
        def analyse(diagnosis):
            self.calls.append(name)
            below = tuple(diagnosis[other] for other in ("first",) if name == "second")
            return (name, diagnosis.settings[setting.name], *below)

        return Diagnostic(
            name,
            name,
            "?",
            analyse,
            lambda found: [Number(name, value=found[1])],
            settings=(setting,),
            reads=reads,
        )


def test_an_analysis_is_made_when_asked_for_and_once(run):
    counting = Counting()
    diagnosis = Diagnosis(run, diagnostics=counting.diagnostics)
    assert counting.calls == []
    assert diagnosis["second"] == ("second", False, ("first", 0.5))
    assert diagnosis["first"] == ("first", 0.5)
    assert counting.calls == ["second", "first"]
    assert diagnosis["second"] is diagnosis["second"] and len(counting.calls) == 2


def test_another_setting_repeats_only_what_depends_on_it(run):
    counting = Counting()
    diagnosis = Diagnosis(run, diagnostics=counting.diagnostics)
    diagnosis["second"]
    other = diagnosis.at({"two": True})
    assert other["second"] == ("second", True, ("first", 0.5))
    assert counting.calls == ["second", "first", "second"]
    assert diagnosis.at({"one": -1.0})["second"] == ("second", False, ("first", -1.0))
    assert diagnosis["second"] == ("second", False, ("first", 0.5))  # kept beside the others
    assert counting.calls.count("first") == 2


def test_only_declared_analyses_may_be_read(run):
    diagnosis = Diagnosis(run, diagnostics=Counting(reads=()).diagnostics)
    with pytest.raises(KeyError, match="first"):
        diagnosis["second"]


def test_what_does_not_depend_on_settings_is_done_once(run):
    calls = []

    def layout(given):
        calls.append(given)
        return len(given.queries)

    diagnosis = Diagnosis(run)
    assert diagnosis.once(layout) == 2 == diagnosis.at({"influence_threshold": 0.1}).once(layout)
    assert calls == [run]


def test_two_threads_share_one_analysis(run):
    counting = Counting()
    diagnosis = Diagnosis(run, diagnostics=counting.diagnostics)
    threads = [threading.Thread(target=diagnosis.__getitem__, args=("second",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(counting.calls) == ["first", "second"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"three": 1}, "no setting 'three'; settings are one, two"),
        ({"one": 1.5}, "one must lie from -1 to 1, got 1.5"),
        ({"one": math.nan}, "one must lie from -1 to 1, got nan"),
        ({"one": True}, "one must lie from -1 to 1, got True"),
        ({"one": "0.5"}, "one must lie from -1 to 1, got '0.5'"),
        ({"two": 1}, "two must be True or False, got 1"),
    ],
)
def test_wrong_settings_say_what_would_be_right(run, settings, message):
    with pytest.raises(InputError, match=message):
        Diagnosis(run, settings, Counting().diagnostics)


def test_summary_has_every_number_and_what_is_promised(run):
    summary = Diagnosis(run, diagnostics=Counting().diagnostics).summary()
    assert summary["name"] == "Two" and summary["first"] == 0.5 and summary["second"] is False
    assert summary["mean_confidence"] is None and summary["mean_claim_uncertainty"] is None


def test_findings_are_sorted_by_severity_and_name_their_diagnostic(run):
    def diagnostic(name, severities, needs=()):
        found = [Finding(f"{name}{i}", "…", 1, 2, severity=s) for i, s in enumerate(severities)]
        return Diagnostic(name, name, "?", lambda d: None, lambda a: (), lambda a: found, needs)

    diagnostics = (
        diagnostic("x", ["low", "high"]),
        diagnostic("y", ["medium", "high"]),
        diagnostic("z", ["high"], (Need("claims", "No claims."),)),
    )
    diagnosis = Diagnosis(run, diagnostics=diagnostics)
    assert [(f.diagnostic, f.name) for f in diagnosis.findings()] == [
        ("x", "x1"), ("y", "y1"), ("y", "y0"), ("x", "x0"),
    ]  # fmt: skip
    assert diagnostics[2].lacks(run) == "No claims."


def test_a_need_is_met_by_rows_by_a_column_or_by_a_step_that_found_nothing(run):
    assert Need("queries", "…").is_met(run)
    assert not Need("queries", "…", "answer").is_met(run)
    assert not Need("claims", "…", step="claims").is_met(run)
    assert Need("claims", "…", step="claims").is_met(run.derive({"steps": {"claims": {}}}))
    assert not Need("claims", "…", step="claims").is_met(run.derive({"steps": {}}))


@pytest.mark.parametrize(
    ("number", "text", "basis"),
    [
        (Number("k", value=0.123, n=1), "0.12", "n = 1 question"),
        (Number("k", value=-0.5, n=1200, interval=(-1.0, 0.001)), "−0.50", "n = 1,200 questions; 95 % interval −1.00 to 0.00"),
        (Number("k", value=3, of=12, chance=2.04, note="p = 0.5"), "3 of 12", "2.0 by chance; p = 0.5"),
        (Number("k", value=0.3, n=2, chance=0.0), "0.30", "n = 2 questions; 0 by chance"),
        (Number("k", value=0.3, chance=0.126), "0.30", "0.13 by chance"),
        (Number("k", value=0, of=0), "—", ""),
        (Number("k", value=None, n=0, noun="answer"), "—", "n = 0 answers"),
        (Number("k", value=1234), "1,234", ""),
        (Number("k", value="offline"), "offline", ""),
    ],
)  # fmt: skip
def test_numbers_as_people_read_them(number, text, basis):
    assert (number.text, number.basis) == (text, basis)


def test_columns_of_a_question_as_people_read_them():
    column = QuestionColumn("x", "X", "{:.1f}")
    assert [column.text(v) for v in (0.25, math.nan, None, pd.NA, "text")] == ["0.2", "—", "—", "—", "text"]
    yes_or_no = QuestionColumn("x", "X", "bool")
    assert [yes_or_no.text(v) for v in (True, False, pd.NA)] == ["yes", "no", "—"]


@pytest.mark.parametrize(
    ("p_value", "adjusted", "n_tests", "said"),
    [
        (None, None, None, ""),
        (0.012, None, None, "; p = 0.012"),
        (0.012, 0.012, 1, "; p = 0.012"),
        (0.012, 0.036, 3, "; p = 0.012 (p = 0.036 corrected for 3 tests)"),
    ],
)
def test_what_a_finding_rests_on(p_value, adjusted, n_tests, said):
    found = Finding("x", "…", 1, 1_200, (0.1, 0.5), 1.5, p_value, p_adjusted=adjusted, n_tests=n_tests)
    assert found.basis == f"95 % interval of the share 10 to 50 %; chance baseline 1.5 of 1,200{said}"
    assert Finding("x", "…", 1, 2).basis == ""


def test_what_a_simulation_planted_is_beside_what_was_recovered_and_what_it_means(run):
    definitions = tuple(Definition(name, name.upper(), f"A {name} is so.") for name in ("a", "m 1", "z"))
    name = " ".join("m1")  # another object than the definition's name
    found = (
        Number("share", "Share", 0.4, n=10, interval=(0.2, 0.6), define=name, cases="queries.m:True"),
        Number("part", "Part", 3, n=10, of=12, define="z"),
        Number("missing", "Missing", None, n=0),
        Number("kinds", "Kinds", {"odd": 2}),
        Number("other", "Not planted", 1.0, define="a"),
    )
    diagnostic = Diagnostic("d", "D", "?", lambda d: None, lambda a: found, definitions=definitions)
    planted = {"share": 0.5, "part": 4, "missing": 0.25, "kinds": {"odd": 1, "even": 5}}
    simulated = run.derive({"planted": {"d": planted}})
    table = Diagnosis(simulated, diagnostics=(diagnostic,)).recovered("d").astype("object")
    nothing = (None, None)
    assert [tuple(None if one != one else one for one in row) for row in table.to_numpy()] == [
        ("Share", 0.5, 0.4, 0.2, 0.6, 10, "A m 1 is so.", "queries.m:True"),
        ("Part", 4, 3, *nothing, 12, "A z is so.", ""),
        ("Missing", 0.25, None, *nothing, 0, "", ""),
        ("Kinds: odd", 1, 2, *nothing, 6, "", ""),
        ("Kinds: even", 5, 0, *nothing, 6, "", ""),
    ]  # fmt: skip


def test_definitions_are_found_by_name_and_kind():
    one, other = Definition("x", "X", "a number"), Definition("x", "X", "a mode", MODE)
    diagnostic = Diagnostic("d", "D", "?", lambda d: None, lambda a: (), definitions=(one, other))
    assert diagnostic.define("x") is one and diagnostic.define("x", MODE) is other
    assert diagnostic.define("x", METRIC) is one
    with pytest.raises(KeyError, match="d defines no 'x' among its undefined because"):
        diagnostic.define("x", REASON)


def test_a_diagnostic_that_lacks_its_data_has_no_numbers(run):
    """Each diagnostic wrote its own "nothing here", or counted zeros."""
    diagnosis = Diagnosis(run)
    lacking = {one.name for one in DIAGNOSTICS if one.lacks(diagnosis.run) is not None}
    assert {"influence", "claims", "uncertainty", "validation"} <= lacking and "answers" not in lacking
    numbers = [number for name in lacking for number in diagnosis.numbers(name)]
    assert {number.value for number in numbers} == {None} and {number.text for number in numbers} == {"—"}
    assert diagnosis.summary()["n_queries"] == 2 and diagnosis.summary()["n_divergent"] is None


def test_the_diagnostics_fit_together():
    names = [diagnostic.name for diagnostic in DIAGNOSTICS]
    assert len(set(names)) == len(names)
    settings = [setting.name for diagnostic in DIAGNOSTICS for setting in diagnostic.settings]
    assert len(set(settings)) == len(settings)
    exports = [export.name for diagnostic in DIAGNOSTICS for export in diagnostic.exports]
    assert len(set(exports)) == len(exports)
    columns = [column.name for diagnostic in DIAGNOSTICS for column in diagnostic.columns]
    assert len(set(columns)) == len(columns), "compared side by side under these names"
    for place, diagnostic in enumerate(DIAGNOSTICS):
        assert diagnostic.reads == EARLIER or set(diagnostic.reads) <= set(names[:place]), (
            "read ones come first"
        )


@pytest.mark.parametrize("source", ["sample_data/recorded_run", None])
def test_every_number_finding_and_column_is_defined(source):
    run = Run.load(source) if source else Run.create({"source": "upload"})
    diagnosis = Diagnosis(run)
    keys = []
    for diagnostic in DIAGNOSTICS:
        analysis = diagnosis[diagnostic.name]
        assert analysis.queries["query_id"].to_list() == run.queries["query_id"].to_list()
        assert {column.name for column in diagnostic.columns} <= set(analysis.queries.columns)
        for number in diagnosis.numbers(diagnostic.name):
            keys.append(number.key)
            assert number.place == "data" or number.title, number.key
            if isinstance(number.value, dict) and number.place != "data":
                assert all(diagnostic.define(name, number.define) for name in number.value)
            elif number.define not in ("", *(definition.kind for definition in diagnostic.definitions)):
                assert diagnostic.define(number.define)
    assert len(set(keys)) == len(keys)
    for finding in diagnosis.findings():
        of = diagnosis.diagnostic(finding.diagnostic)
        assert any(finding.name == definition.name for definition in of.definitions), finding.name
        assert set(finding.query_ids) <= set(run.queries["query_id"]) and 0 <= finding.n <= finding.of
        assert finding.tone in (BAD, GOOD, UNCLEAR)
