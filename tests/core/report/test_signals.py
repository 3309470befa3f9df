"""Which signals a run has, how they go together, and what is said of it."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from core.report.exports import exporters
from core.report.signals import (
    PEARSON,
    SPEARMAN,
    answer,
    pairs_table,
    signal_agreement,
    signals_csv,
    signals_facts,
    signals_text,
)
from core.run import Run
from core.socket import QuestionColumn
from core.sources.simulation import SimulationOptions, simulate
from tests.core.report.signal_runs import diagnosis_of, unmet

N = 20
UP = np.arange(N, dtype=float)
MIXED = np.array([7, 2, 19, 11, 0, 16, 5, 13, 3, 18, 9, 1, 15, 6, 12, 4, 17, 8, 14, 10], dtype=float)
RIGHT = pd.array([i >= 8 for i in range(N)], dtype="boolean")


def titles(agreement):
    return [one.title for one in agreement.signals]


def pair(agreement, first, second):
    (found,) = [one for one in agreement.pairs if (one.first.title, one.second.title) == (first, second)]
    return found


def test_signals_are_numbers_per_question_and_whether_the_answer_is_correct():
    found = signal_agreement(
        diagnosis_of(
            right=RIGHT, other=RIGHT, label=["x"] * N, parts=[[0.1]] * N, sure=UP,
            doubt=[1.0, 2.0, *[np.nan] * (N - 2)], size=[3] * N,
        )
    )  # fmt: skip
    assert titles(found) == ["Right", "Sureness"] and found.n_questions == N
    assert found.outcome is found.signals[0] and found.signals[0].known.tolist() == [0.0] * 8 + [1.0] * 12
    assert found.left_out == (
        ("Doubt", "2 questions with a value; 3 are needed"),
        ("Size", "3.00 in all 20 questions"),
    )


def test_a_diagnostic_without_data_has_no_signals():
    found = signal_agreement(diagnosis_of(needs=unmet(), sure=UP, right=RIGHT))
    assert (found.signals, found.left_out, found.pairs) == ((), (), ())
    assert answer(found) == (
        "The run has no signal: no number with at least three values that are not all equal.",
    )


def test_confidence_signals_are_aligned_with_the_questions():
    table = pd.DataFrame({"query_id": ["q3", "q0", "q1", "q2"], "similarity": [0.3, 0.0, 0.1, np.inf]})
    found = signal_agreement(diagnosis_of(sure=UP, signals=table))
    assert titles(found) == ["Sureness", "Similarity of question and passages"]
    similarity = found.signals[1]
    assert similarity.known.tolist() == [0.0, 0.1, 0.3] and np.isnan(similarity.values[2])
    assert (similarity.higher_is, similarity.owner) == ("more confident", "Confidence signals")
    # A column that a diagnostic shows is not listed twice.
    own = (QuestionColumn("similarity", "Own similarity"),)
    again = signal_agreement(diagnosis_of(own, similarity=UP, signals=table))
    assert titles(again) == ["Own similarity"]


def test_a_bare_symbol_is_named_with_its_diagnostic():
    found = signal_agreement(diagnosis_of((QuestionColumn("rho", "ρ"),), rho=UP))
    assert titles(found) == ["ρ (Toy title)"]
    assert answer(found) == (
        "The run has only one signal, ρ (Toy title): there is nothing to compare it with.",
    )


def test_every_pair_has_both_coefficients_over_the_questions_that_have_both():
    gaps = MIXED.copy()
    gaps[[0, 5]] = np.nan
    found = signal_agreement(diagnosis_of(right=RIGHT, sure=UP, size=gaps))
    assert [(p.first.title, p.second.title, p.n) for p in found.pairs] == [
        ("Right", "Sureness", 20), ("Right", "Size", 18), ("Sureness", "Size", 18),
    ]  # fmt: skip
    one = pair(found, "Sureness", "Size")
    kept = ~np.isnan(gaps)
    assert one[SPEARMAN].value == pytest.approx(stats.spearmanr(UP[kept], gaps[kept]).statistic)
    assert one[PEARSON].value == pytest.approx(stats.pearsonr(UP[kept], gaps[kept]).statistic)
    biserial = pair(found, "Right", "Sureness")[PEARSON]
    expected = stats.pointbiserialr(UP >= 8, UP)
    assert biserial.value == pytest.approx(expected.statistic)
    # The smallest of three p-values, by 9,999 draws, times three.
    assert biserial.p_value == pytest.approx(3 / 10_000)
    assert biserial.p_text == "p < 0.001" and biserial.is_clear
    assert one[SPEARMAN].p_value > 0.2 and not one[SPEARMAN].is_clear


def test_values_that_differ_by_rounding_only_are_equal():
    found = signal_agreement(diagnosis_of(sure=[0.1 + 0.2, 0.3] * 10, size=UP))
    assert titles(found) == ["Size"] and ("Sureness", "0.30 in all 20 questions") in found.left_out


def test_draws_suffice_for_very_many_pairs():
    rng = np.random.default_rng(1)
    columns = tuple(QuestionColumn(f"c{i}", f"C{i}") for i in range(33))
    values = {c.name: rng.permutation(N) for c in columns[1:]}
    values["c0"] = values["c1"] * 2.0
    found = signal_agreement(diagnosis_of(columns, **values))
    clear = pair(found, "C0", "C1")[SPEARMAN]
    assert len(found.pairs) == 528 and clear.is_clear
    # Fifty draws for each pair: the smallest p-value is 1 in 26,401, times the number of pairs.
    assert clear.p_value == pytest.approx(528 / 26_401)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"sure": UP[:3], "size": MIXED[:3]}, "3 questions have both, 10 are needed"),
        ({"sure": [*UP[:10], *[np.nan] * 10], "size": [*[np.nan] * 9, *UP[9:]]}, "1 question has both, 10 are needed"),
        ({"sure": UP, "size": [1.0] * 16 + [2.0] * 4}, "Size has one value in all but 4 of 20 questions"),
        ({"sure": [0.0] * 10 + [*UP[:4], *[np.nan] * 6], "size": [*UP[:10], *[np.nan] * 4, *UP[:6]]},
         "Sureness has one value in all 10 questions"),
    ],
)  # fmt: skip
def test_undefined_pairs_have_a_reason(values, reason):
    found = signal_agreement(diagnosis_of(**values))
    (one,) = found.pairs
    assert one.reason == reason and np.isnan(one[SPEARMAN].value) and not one[SPEARMAN].is_clear
    assert found.tested == () and found.clear(PEARSON) == ()
    assert one[SPEARMAN].range_text == one[SPEARMAN].p_text == "—"
    assert answer(found)[0] == f"No correlation is defined for the 1 pair of signals: {reason}."
    assert f"undefined because {reason}" in signals_text(found)


def test_of_several_undefined_pairs_the_first_says_why():
    first, last = [*UP[:10], *[np.nan] * 10], [*[np.nan] * 9, *UP[9:]]
    found = signal_agreement(diagnosis_of(sure=first, doubt=last, size=[*UP[:3], *[np.nan] * 17]))
    assert [one.n for one in found.pairs] == [1, 3, 0]
    assert answer(found)[0] == (
        "No correlation is defined for the 3 pairs of signals: 1 question has both, 10 are needed."
    )


def test_directions_say_which_sign_to_expect():
    found = signal_agreement(diagnosis_of(right=RIGHT, sure=UP, doubt=UP + (MIXED > 9), size=MIXED))
    expected = {(p.first.title, p.second.title): p.expected for p in found.pairs}
    assert expected[("Right", "Sureness")] == 1 and expected[("Sureness", "Doubt")] == -1
    assert expected[("Sureness", "Size")] == 0 and pair(found, "Sureness", "Size").expected_text == ""
    one = pair(found, "Sureness", "Doubt")
    assert one.is_contrary(SPEARMAN) and not pair(found, "Right", "Sureness").is_contrary(SPEARMAN)
    assert one.expected_text == (
        "negative expected: higher Sureness is more confident, higher Doubt is more uncertain"
    )
    said = answer(found)
    assert said[1].startswith("Contrary to what they should measure: Sureness and Doubt (1.00, ")
    assert "negative expected" in said[1]
    assert "Doubt, higher where correct, contrary to its meaning (0.8" in said[2]


def test_the_answer_counts_what_chance_alone_would_give():
    second = ((QuestionColumn("twin", "Twin"),), {"twin": UP + (MIXED > 9)})
    found = signal_agreement(diagnosis_of(right=RIGHT, sure=UP, size=MIXED, second=second))
    first, correct = answer(found)
    assert first.startswith(
        "3 of 6 pairs of signals correlate beyond chance (Spearman, adjusted for all pairs; unadjusted, chance "
        "alone would give 0.3); strongest between different diagnostics: Sureness and Twin (1.00"
    )
    assert first.endswith(", n = 20).")
    assert correct.startswith("2 of 3 signals separate correct from incorrect answers beyond chance: ")
    assert "Sureness, higher where correct (0.85, " in correct
    assert "(Pearson, adjusted" in answer(found, PEARSON)[0]


def test_signals_of_one_diagnostic_are_no_news():
    found = signal_agreement(diagnosis_of(sure=UP, size=UP + (MIXED > 9)))
    first, correct = answer(found)
    assert first.startswith("1 of 1 pair of signals correlates") and first.endswith(
        "none of them between different diagnostics."
    )
    assert correct.startswith("Which signal separates correct from incorrect answers is unknown")


def test_nothing_beyond_chance_is_said_too():
    found = signal_agreement(diagnosis_of(right=RIGHT, size=MIXED))
    assert answer(found) == (
        "0 of 1 pair of signals correlate beyond chance (Spearman, adjusted for all pairs; unadjusted, chance "
        "alone would give 0.1).",
        "None of 1 signal separates correct from incorrect answers beyond chance.",
    )
    few = signal_agreement(diagnosis_of(right=[i > 17 for i in range(N)], sure=UP, size=MIXED))
    assert answer(few)[1] == (
        "Which signal separates correct from incorrect answers cannot be said: Right has one value in all but 2 of "
        "20 questions."
    )


def test_the_table_of_pairs_is_what_the_file_holds():
    hostile = (QuestionColumn("a", "=cmd|A"), QuestionColumn("b", "Bee"), QuestionColumn("c", "Cee"))
    diagnosis = diagnosis_of(hostile, a=UP, b=MIXED, c=[1.0] * 18 + [2.0] * 2)
    table = pairs_table(signal_agreement(diagnosis))
    read = pd.read_csv(io.BytesIO(signals_csv(diagnosis)), encoding="utf-8-sig")
    assert read["first"].tolist() == ["'=cmd|A", "'=cmd|A", "Bee"]
    assert [*read] == [*table, "data_source"]
    np.testing.assert_allclose(read["spearman"], table["spearman"])
    assert read["spearman"].isna().tolist() == [False, True, True]
    assert read["undefined_because"][1] == "Cee has one value in all but 2 of 20 questions"
    assert exporters()["signals-csv"].write(diagnosis) == signals_csv(diagnosis)
    empty = pairs_table(signal_agreement(diagnosis_of()))
    assert len(empty) == 0 and [*empty] == [*table]


def test_the_table_says_which_sign_is_expected():
    table = pairs_table(signal_agreement(diagnosis_of(right=RIGHT, sure=UP, doubt=MIXED, size=MIXED)))
    signs = dict(
        zip(zip(table["first"], table["second"], strict=True), table["expected_sign"].fillna(""), strict=True)
    )
    assert signs == {
        ("Right", "Sureness"): "positive", ("Right", "Doubt"): "negative", ("Right", "Size"): "",
        ("Sureness", "Doubt"): "negative", ("Sureness", "Size"): "", ("Doubt", "Size"): "",
    }  # fmt: skip


def test_facts_are_plain_json():
    found = signal_agreement(diagnosis_of(right=RIGHT, sure=UP, size=[1.0] * 18 + [2.0] * 2, label=["x"] * N))
    facts = json.loads(json.dumps(signals_facts(found), allow_nan=False))
    assert facts["answer"] == [*answer(found)]
    assert [(s["key"], s["n"], s["mean"], s["median"], s["higher_is"]) for s in facts["signals"]] == [
        ("toy.right", 20, 0.6, 1.0, "better"), ("toy.sure", 20, 9.5, 9.5, "more confident"),
        ("toy.size", 20, 1.1, 1.0, None),
    ]  # fmt: skip
    defined, *_, undefined = facts["pairs"]
    assert defined["spearman"]["p_value"] == pytest.approx(1e-4) and defined["expected_sign"] == 1
    assert undefined["pearson"]["value"] is None and undefined["undefined_because"]
    assert facts["left_out"][-1] == {"title": "Doubt", "reason": "0 questions with a value; 3 are needed"}


def test_the_text_has_every_pair_with_its_n():
    found = signal_agreement(diagnosis_of(right=RIGHT, sure=UP, size=MIXED))
    lines = signals_text(found).splitlines()
    assert lines[0] == answer(found)[0]
    assert sum("n = 20" in line and "Spearman" in line for line in lines[3:]) == 3
    assert "  Not listed: Doubt (0 questions with a value; 3 are needed)" in lines
    assert lines[-1] == "Correlation is agreement, not truth: signals that agree can be wrong together."


def test_no_questions_one_question_and_a_simulation():
    from core.diagnosis import Diagnosis

    empty = Run.create({"source": "upload"}, queries=pd.DataFrame({"query_id": [], "question": []}))
    assert signal_agreement(Diagnosis(empty)).signals == ()
    found = signal_agreement(Diagnosis(simulate(SimulationOptions(queries=40))))
    # Dominance and nDCG are both of the same influences.
    assert found.tested and any(one.is_clear for one in (p[SPEARMAN] for p in found.tested))
