"""The socket itself: analyses on demand, shared between settings, and numbers as people read them."""

import math
import threading
from dataclasses import replace

import pandas as pd
import pytest

from core.analyses import RECOVERED
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
    Tried,
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


@pytest.mark.parametrize(
    ("choices", "value", "said"),
    [
        (("a", "b"), "b", None),
        (("a", "b"), "c", "mode must be a or b, got 'c'."),
        ((), "c", None),
        ((), 1, "mode must be a name, got 1."),
    ],
)
def test_a_choice_is_one_of_its_names_or_any_where_the_page_offers_them(choices, value, said):
    setting = Setting("mode", "Mode", "a", "", choices=choices)
    if said is None:
        assert setting.checked(value) == value
    else:
        with pytest.raises(InputError) as raised:
            setting.checked(value)
        assert str(raised.value) == said


def test_a_number_without_limits_of_its_own_is_a_share():
    setting = Setting("share", "Share", 0.5, "")
    assert [setting.checked(value) for value in (0, 1)] == [0.0, 1.0]
    for value in (-0.01, 1.01):
        with pytest.raises(InputError, match="share must lie from 0 to 1"):
            setting.checked(value)


def test_eight_analyses_of_a_diagnostic_are_remembered_and_that_used_longest_ago_is_forgotten(run):
    counting = Counting()
    first = Diagnosis(run, {"one": 0.0}, counting.diagnostics[:1])
    first["first"]
    found = [first.at({"one": i / 10}) for i in range(1, 9)]
    for one in found[:7]:
        one["first"]
    assert first["first"] == ("first", 0.0) and len(counting.calls) == 8
    found[7]["first"]  # the ninth: the second is forgotten, since the first was asked for again
    assert len(counting.calls) == 9
    first["first"], found[1]["first"]
    assert len(counting.calls) == 9
    found[0]["first"]
    assert len(counting.calls) == 10


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


def saying(run, *found, tried=None, **more):
    """An analysis of one diagnostic with these findings, and what was tried of their fixes."""
    one = Diagnostic(
        "x", "X", "?", lambda d: None, lambda a: (), lambda a: found, tried=lambda a: tried or {}, **more
    )
    return Diagnosis(run, diagnostics=(one,))


@pytest.mark.parametrize(
    ("found", "name", "adjusted"),
    [
        (Finding("bad", "…", 1, 2, p_value=0.05), "bad", 0.05),
        (Finding("bad", "…", 1, 2, p_value=0.051), None, None),
        (Finding("bad", "…", 1, 2, p_value=0.051, otherwise=Finding("open", "…", 1, 2, tone=UNCLEAR)), "open", 0.051),
        (Finding("bad", "…", 1, 2, p_value=0.05, otherwise=Finding("open", "…", 1, 2, tone=UNCLEAR)), "bad", 0.05),
        (Finding("good", "…", 1, 2, p_value=0.5, tone=GOOD), None, None),
        (Finding("open", "…", 1, 2, p_value=0.5, tone=UNCLEAR), "open", 0.5),
        (Finding("bad", "…", 1, 2, otherwise=Finding("open", "…", 1, 2)), "bad", None),
    ],
)  # fmt: skip
def test_a_finding_that_chance_explains_yields_to_what_it_says_otherwise(run, found, name, adjusted):
    diagnosis = saying(run, found)
    assert [one.name for one in diagnosis.findings()] == ([] if name is None else [name])
    for one in diagnosis.findings_of("x"):
        assert one.p_adjusted == (None if adjusted is None else pytest.approx(adjusted))
        assert one.n_tests == (None if adjusted is None else 1) and one.otherwise is None
    assert diagnosis.findings_of("y") == ()


def test_findings_are_corrected_for_all_tests_of_the_run_and_only_what_is_bad_is_grave(run):
    found = saying(
        run,
        Finding("first", "…", 1, 2, p_value=0.01, severity="high"),
        Finding("good", "…", 1, 2, p_value=0.02, severity="high", tone=GOOD),
        Finding("open", "…", 1, 2, severity="high", tone=UNCLEAR),
        Finding("chance", "…", 1, 2, p_value=0.06),
    ).findings()
    # Holm: the smallest of three times 3, the next times 2, the last times 1.
    assert [(one.name, one.severity, one.p_adjusted, one.n_tests) for one in found] == [
        ("first", "high", pytest.approx(0.03), 3),
        ("good", "low", pytest.approx(0.04), 3),
        ("open", "low", None, None),
    ]


@pytest.mark.parametrize(
    ("advice", "fix", "outcome", "said"),
    [
        ("Raise it.", "k:raise", "helps", "Raise it. Tried."),
        ("Raise it.", "k:raise", "untried", "Raise it. Tried."),
        ("Raise it.", "k:raise", "harms", "Tried."),
        ("Raise it.", "k:raise", "cannot be told", "Tried."),
        ("Raise it.", "k:lower", "harms", "Raise it."),
        ("", "k:raise", "harms", ""),
    ],
)
def test_advice_yields_to_what_became_of_its_fix(run, advice, fix, outcome, said):
    found = Finding("bad", "…", 1, 2, advice=advice, fix=fix)
    tried = {"k:raise": Tried(outcome, "Tried.")}
    (one,) = saying(run, found, tried=tried).findings()
    assert one.advice == said
    assert saying(run, tried=tried).tried("x") == tried
    assert saying(run, tried=tried, needs=(Need("claims", "No claims."),)).tried("x") == {}


def test_what_a_diagnostic_recovers_itself_comes_after_its_numbers(run):
    own = pd.DataFrame([("own", 1, 2, None, None, 3, "", "")], columns=[*RECOVERED])
    one = Diagnostic("x", "X", "?", lambda d: None, lambda a: [Number("k", "K", 4)], recover=lambda d: own)
    for planted, checks in (
        ({"x": {"k": 5}}, ["K", "own"]), ({"x": {}}, ["own"]), ({"y": {"k": 5}}, ["own"]), ({}, []),
    ):  # fmt: skip
        found = Diagnosis(run.derive({"planted": planted}), diagnostics=(one,)).recovered("x")
        assert found["check"].tolist() == checks and tuple(found) == RECOVERED
    lacking = replace(one, needs=(Need("claims", "No claims."),))
    assert Diagnosis(run.derive({"planted": {"x": {"k": 5}}}), diagnostics=(lacking,)).recovered("x").empty


def test_a_need_is_met_by_rows_by_a_column_or_by_a_step_that_found_nothing(run):
    assert Need("queries", "…").is_met(run)
    assert not Need("queries", "…", "answer").is_met(run)
    assert not Need("claims", "…", step="claims").is_met(run)
    assert Need("claims", "…", step="claims").is_met(run.derive({"steps": {"claims": {}}}))
    assert not Need("claims", "…", step="claims").is_met(run.derive({"steps": {}}))
    assert Need("claims", "…", other="queries").is_met(run)
    assert not Need("claims", "…", other="passages").is_met(run)
    assert Need("queries", "…", ("answer", "question")).is_met(run)
    assert not Need("queries", "…", ("answer", "kind")).is_met(run)


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
    assert column.text([0.5, -2, None]) == column.text((0.5, -2, None)) == "0.50, −2.00, —"
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
        for one in diagnostic.settings:
            if not (one.is_switch or one.is_choice):
                steps = (one.default - one.low) / one.step
                assert one.low < one.default < one.high and steps > 0, "a slider moves both ways"
                assert steps == pytest.approx(round(steps)), "and comes back to the default"


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
