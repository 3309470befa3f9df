"""The gate against a baseline: outcomes worked out on paper, its power, and what CI systems read."""

import json
import math
import xml.etree.ElementTree as ET
from html import unescape
from math import comb

import numpy as np
import pandas as pd
import pytest

from core.cli.app import main
from core.errors import InputError
from core.report.ci import cases_of, junit_xml, markdown
from core.report.regression import (
    ALPHA,
    Regression,
    loss_p_value,
    outcomes,
    power,
    questions_needed,
    regression,
)
from core.report.text import gate
from core.run import Run

ANSWER = {"+": "It opened in 1931.", "-": "It opened in 1902.", "a": "I don't know.", "e": "", "x": None}
STATUS = {"+": "answered", "-": "answered", "a": "abstained", "e": "empty", "x": "error"}


def made(signs, references=True, **changes):
    """One question per sign: + correct, - incorrect, a abstained, e empty, x a failed call."""
    frame = pd.DataFrame(
        {
            "query_id": [f"q{i}" for i in range(len(signs))],
            "question": [f"When did bridge {i} open?" for i in range(len(signs))],
            "answer": [ANSWER[one] for one in signs],
            "answer_status": [STATUS[one] for one in signs],
            "reference_answers": [["1931"] if references else None for _ in signs],
        }
    )
    return Run.create({"source": "live"}, queries=frame.assign(**changes))


def test_only_a_loss_that_is_significant_and_larger_than_allowed_fails():
    # 20 questions, 6 broken, 0 fixed: p = 1/64 = 0.016, loss 30 points.
    before, now = "+" * 12 + "-" * 8, "-" * 6 + "+" * 6 + "-" * 8
    found = regression(made(now), made(before), 0.05)
    assert (found.n, found.n_correct, len(found.broken), found.n_fixed) == (20, 6, 6, 0)
    assert (found.p_value, found.loss, found.passed) == (pytest.approx(1 / 64), pytest.approx(0.3), False)
    assert found.sentences[:2] == (
        "Failed: the loss of 30 points is significant and larger than the 5 points allowed.",
        "6 of 20 questions correct, 12 in the baseline: 6 no longer correct, 0 newly correct (exact McNemar test, "
        "one-sided, p = 0.016).",
    )
    # The same loss where 30 points are allowed.
    assert regression(made(now), made(before), 0.3).passed
    # 4 broken: 20 points, p = 1/16.
    small = regression(made("-" * 4 + "+" * 8 + "-" * 8), made(before), 0.05)
    assert small.passed and small.p_value == 1 / 16
    assert "larger than the 5 points allowed, but not significant" in small.sentences[0]
    # Significant (5 of 5 broken, p = 1/32), and 5 of 200 is 2.5 points.
    large = regression(made("-" * 5 + "+" * 195), made("+" * 200), 0.05)
    assert large.passed and large.p_value == 1 / 32 <= ALPHA
    assert large.sentences[0] == "Passed: the loss of 2.5 points is not larger than the 5 points allowed."
    assert regression(made(before), made(now), 0.0).sentences[0] == "Passed: no loss, 0 points allowed."


def test_points_have_a_decimal_where_it_counts_and_one_is_singular():
    # 1 of 97 is 1.03 points, 2 of 97 are 2.06.
    for n_broken, said in ((1, "1 point"), (2, "2.1 points")):
        found = regression(made("-" * n_broken + "+" * (97 - n_broken)), made("+" * 97), 0.5)
        assert found.sentences[0] == f"Passed: the loss of {said} is not larger than the 50 points allowed."
    assert regression(made("+"), made("+"), 0.01).sentences[0] == "Passed: no loss, 1 point allowed."


@pytest.mark.parametrize(("max_loss", "digits"), [(0.9, 1), (0.5, 2), (0.05, 3), (0.005, 4)])
def test_the_questions_needed_are_said_with_two_digits_rounded_up(max_loss, digits):
    found = regression(made("++"), made("++"), max_loss)
    needed = found.to_json()["n_needed"]
    assert len(str(needed)) == digits
    _, said = found.sentences[-1].split("; about ")
    said, unit = (
        int(said.removesuffix(" would be needed for 80 %.").replace(",", "")),
        {3: 10, 4: 100}.get(digits, 1),
    )
    assert said % unit == 0 and needed <= said < needed + unit


def test_questions_are_listed_only_where_some_broke():
    found = regression(made("-+-"), made("+++"), 0.9)
    assert found.to_text().split("\n")[-7:-5] == ["No longer correct:", "  q0: When did bridge 0 open?"]
    assert found.to_json()["broken"][1] == {
        "query_id": "q2", "question": "When did bridge 2 open?", "before": ANSWER["+"], "now": ANSWER["-"],
    }  # fmt: skip
    assert found.broken.index.to_list() == [0, 1]
    assert "No longer correct:" not in regression(made("+++"), made("+++"), 0.9).to_text()


def test_twenty_questions_that_broke_are_listed_and_the_others_counted():
    for n, more in ((20, None), (21, "  and 1 more"), (1_030, "  and 1,010 more")):
        lines = regression(made("-" * n), made("+" * n), 0.9).to_text().split("\n")
        assert sum(line.startswith("  q") for line in lines) == 20
        assert (lines[-1] == more) if more else lines[-1].startswith("    now: ")


def test_a_run_that_answers_nothing_fails():
    """`correct` is missing where there is no answer, so a comparison of it alone would see nothing."""
    assert outcomes(made("+-aex")).to_list()[:4] == [1, 0, 0, 0] and math.isnan(outcomes(made("x")).iloc[0])
    assert outcomes(made("a", references=False)).isna().all()
    found = regression(made("aaaaaeeeee"), made("+" * 10), 0.05)
    assert not found.passed and len(found.broken) == 10 and set(found.broken["now"]) == {"I don't know.", ""}


def test_what_is_left_out_is_said():
    found = regression(
        made("+-x+"),
        made("+-+", question=["When did bridge 0 open? ", "Other?", "When did bridge 2 open?"]),
        0.05,
    )
    # q0 differs in white space only; q1 has another text, q3 is new; the call for q2 failed.
    assert (found.n, found.n_shared, found.of) == (1, 2, 4)
    assert (
        "Left out: 2 questions of this run not in the baseline; 1 shared question without a known outcome in both "
        "(no reference answer or label, or a failed model call)." in found.sentences
    )


def test_the_p_value_is_the_tail_of_a_fair_coin():
    for broken, fixed in ((0, 0), (3, 1), (8, 2), (20, 12)):
        n = broken + fixed
        assert loss_p_value(broken, fixed) == pytest.approx(
            sum(comb(n, k) for k in range(broken, n + 1)) / 2**n
        )


def test_power_is_what_simulated_runs_show():
    rng = np.random.default_rng(5)
    for n, drop, changed in ((63, 0.05, 0.08), (300, 0.05, 0.2), (120, 0.15, 0.15)):
        chances = [(changed + drop) / 2, (changed - drop) / 2, 1 - changed]
        pairs, times = np.unique(rng.multinomial(n, chances, 20_000), axis=0, return_counts=True)
        seen = np.average([loss_p_value(broken, fixed) <= ALPHA for broken, fixed, _ in pairs], weights=times)
        assert power(n, drop, changed) == pytest.approx(seen, abs=4 * math.sqrt(0.25 / 20_000))
    assert math.isnan(power(10, 0.0, 0.1))


def test_the_questions_needed_reach_80_percent():
    for drop, changed in ((0.05, 0.08), (0.05, 0.44), (0.02, 0.3)):
        needed = questions_needed(drop, changed)
        assert power(needed, drop, changed) >= 0.79 and power(int(0.85 * needed), drop, changed) < 0.8
        # Connor (1987), the normal approximation.
        by_hand = (1.6449 * changed**0.5 + 0.8416 * (changed - drop**2) ** 0.5) ** 2 / drop**2
        assert 0.95 * by_hand < needed < 1.25 * by_hand
        if needed < 2_000:  # half a percent fewer are not always enough
            assert min(power(n, drop, changed) for n in range(int(0.994 * needed) - 1, needed)) < 0.8
    assert 705_000 < questions_needed(0.0005, 0.03) < 900_000  # by hand 742,000
    assert questions_needed(0.0005, 0.5) is None


def test_at_most_5_percent_of_1000_null_pairs_fail():
    """Two runs of which each question is correct with the same probability; nothing may be lost."""
    rng, failed = np.random.default_rng(11), 0
    for _ in range(1_000):
        n = int(rng.integers(20, 120))
        share = rng.beta(2, 2, n)
        before, now = (rng.random(n) < share for _ in range(2))
        broken = pd.DataFrame(index=range(int((before & ~now).sum())))
        found = Regression(broken, int((now & ~before).sum()), int(now.sum()), n, n, n, max_loss=0.0)
        failed += not found.passed
    assert 10 <= failed <= 50  # exact, so below 5 %; a gate that never fails would see nothing


@pytest.mark.parametrize(
    ("baseline", "max_loss", "said"),
    [
        (made("++", query_id=["a", "b"]), 0.05, "no question in common with the baseline"),
        (made("xx"), 0.05, "None of the 2 shared questions has a known outcome in both runs"),
        (made("++"), 1.0, "--max-loss must be a share from 0 to below 1, such as 0.05 for 5 points, got 1."),
        (made("++"), -0.1, "got -0.1."),
        (made("++"), float("nan"), "got nan."),
    ],
)
def test_what_cannot_be_judged_is_bad_input(baseline, max_loss, said):
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        regression(made("+-"), baseline, max_loss)


HOSTILE = "]]></failure><script>alert(1)</script> [x](javascript:1) @all #1 www.a.b\x00\x1b[2J\ufffe\n# Heading\n| a |"


def test_hostile_texts_stay_texts_in_junit_and_markdown():
    now = made("-" * 6, answer=[HOSTILE] * 6, question=[HOSTILE] * 6)
    found = cases_of(regression(now, made("+" * 6, question=[HOSTILE] * 6), 0.05))
    assert junit_xml([found]).startswith(b"<?xml version='1.0' encoding='utf-8'?>\n<testsuite ")
    root = ET.fromstring(junit_xml([found]))
    assert {one.tag for one in root.iter()} == {"testsuite", "testcase", "failure"}
    assert (root.get("tests"), root.get("failures")) == ("7", "7")
    text = root[1].find("failure").text
    assert "]]></failure><script>alert(1)</script>" in text and "\x1b" not in text
    written = markdown([found]).decode()
    rest = written.split("</summary>")[1].replace("</details>", "")
    assert not set(rest) & set("<>`[]|@*_") and "javascript:" not in rest
    # Neither as it stands nor as it is shown does an @ or # stand before what it could refer to.
    shown = unescape(rest)
    assert "@\u2060all" in shown and "#\u20601" in shown and "www.a" not in rest
    assert all(
        line.lstrip(" ").startswith(("- ", "")) and not line.startswith("#") for line in rest.split("\n")
    )


def test_questions_that_broke_within_the_allowed_loss_do_not_fail():
    found = cases_of(regression(made("-" + "+" * 19), made("+" * 20), 0.1))
    assert [one.failed for one in found] == [False, False]
    root = ET.fromstring(junit_xml([found]))
    assert root.get("failures") == "0" and root[1].find("system-out").text.startswith("No longer correct.")
    assert markdown([found]).decode().startswith("### ✅ Leadline: Passed")


def test_check_against_a_baseline_says_pass_fail_and_cannot_tell(tmp_path, capsys):
    made("+" * 20).save(tmp_path / "base")
    made("-" * 10 + "+" * 10).save(tmp_path / "worse")
    made("+" * 19 + "-").save(tmp_path / "same")
    made("++", query_id=["a", "b"]).save(tmp_path / "other")
    base = ["--against", str(tmp_path / "base")]
    files = ["--junit", str(tmp_path / "out/j.xml"), "--markdown", str(tmp_path / "out/m.md")]
    assert main(["check", str(tmp_path / "worse"), *base, *files]) == 1
    said = capsys.readouterr().out
    assert said.startswith("Failed: the loss of 50 points") and "  q0: When did bridge 0 open?" in said
    assert ET.parse(tmp_path / "out/j.xml").getroot().get("failures") == "11"
    assert "❌" in (tmp_path / "out/m.md").read_text()
    assert main(["check", str(tmp_path / "same"), *base, *files, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (
        facts["passed"] and facts["n_broken"] == 1 and facts["power"] == pytest.approx(power(20, 0.05, 0.05))
    )
    assert "findings" not in facts and "✅" in (tmp_path / "out/m.md").read_text()
    # Findings count as well only where a severity is given: half of the answers are wrong.
    assert main(["check", str(tmp_path / "worse"), *base, "--max-loss", "0.5"]) == 0
    assert main(["check", str(tmp_path / "worse"), *base, "--max-loss", "0.5", "--severity", "high"]) == 1
    capsys.readouterr()
    assert main(["check", str(tmp_path / "other"), *base]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "no question in common" in error


def test_findings_alone_are_written_for_ci_too(tmp_path):
    from core.diagnosis import Diagnosis

    found = gate(Diagnosis(made("-" * 10 + "+" * 10)))
    cases = cases_of(found)
    assert cases[0].failed and "answers: wrong_answers" in [one.name for one in cases[1:]]
    assert "10 of 20 answers are wrong." in unescape(markdown([cases]).decode())
