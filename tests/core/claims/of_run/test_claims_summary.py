import json
import subprocess
import sys

import pytest

from core.claims import CLAIM_STATES, analyse_claims, claims_summary
from core.claims.causal import CAUSAL_LABELS
from core.claims.of_run.summary import CLAIM_KEYS
from core.claims.quadrants import QUADRANTS, UNDEFINED
from core.claims.rafe import VERDICTS
from core.claims.ragchecker import METRICS as RAGCHECKER
from core.definitions import CAUSAL_LABELS as CAUSAL_MEANINGS
from core.definitions import CLAIM_STATES as STATE_MEANINGS
from core.definitions import CLAIM_VERDICTS, METRICS
from core.definitions import QUADRANTS as QUADRANT_MEANINGS
from core.influence import analyse, summary
from core.report.summary import run_summary
from core.sources.simulation import SimulationOptions, simulate
from core.terminal import summary_text
from tests.core.claims.claim_runs import CANAL, analysed, matrix_question

SILENT = {"answer": "", "answer_status": "empty", "passages": [{"passage_id": "p1"}]}


def test_numbers_by_hand():
    # 2 of 2; one of three by a pair only, one unscored; nothing said.
    mixed = matrix_question([[0.4, 0.3], [0.1, 0.0], [None, 0.2]], joint=[("a1", "p1", "p2", 0.8)])
    mixed["claims"].append({"text": "I hope this helps!", "claim_id": "a4"})
    run, found = analysed([CANAL, mixed, SILENT])
    numbers = claims_summary(run, found)
    assert tuple(numbers) == CLAIM_KEYS
    json.dumps(numbers, allow_nan=False)
    assert {k: v for k, v in numbers.items() if k.startswith("n_")} == {
        "n_claims": 6, "n_claims_supported": 3, "n_claims_not_supported": 1, "n_claims_irrelevant": 1,
        "n_claims_unscored": 1, "n_claims_joint": 1, "n_cells_unscored": 1, "n_grounding": 2,
        "n_claim_uncertainty": 2, "n_with_claims": 2, "n_verdicts_changed": 0, "n_verdicts_from_file": 0,
    }  # fmt: skip
    assert numbers["mean_grounding"] == pytest.approx((1 + 1 / 2) / 2)
    assert numbers["grounding_ci"] == [0.0, 1.0]  # two answers say next to nothing
    # Of the canal's claims 1 - 1.2/4 each, or 1 - 0.3; of the others 0.65, 0.95 and 0.8.
    assert numbers["mean_claim_uncertainty"] == pytest.approx(((0.7 + 0.7) / 2 + 0.8) / 2)
    assert numbers["claims_judge"] == "hand" and numbers["support_threshold"] == 0.5
    assert numbers["claims_undefined_reasons"] == {"empty": 1}
    # The passages of the canal, and two whose influence is not known; none of the empty answer.
    assert numbers["quadrants"] == {
        "used evidence": 1, "distractor": 1, "redundant or wasted": 1, "idle": 0, "undefined": 3,
    }  # fmt: skip


def test_a_run_without_claims_has_every_key_and_no_number():
    run = simulate(SimulationOptions(queries=10, passages=4))
    influence = analyse(run)
    numbers = run_summary(run, influence)
    assert set(CLAIM_KEYS) < set(numbers) and set(summary(run, influence)) < set(numbers)
    assert all(numbers[key] is None for key in CLAIM_KEYS)
    assert numbers["mean_claim_uncertainty"] is None and numbers["mean_confidence"] is None
    assert "Claims" not in summary_text(numbers)


def test_looked_for_and_none_found_is_none_of_these():
    run, found = analysed([SILENT], {"claims": {"complete": True}})
    numbers = claims_summary(run, found)
    assert numbers["n_claims"] == 0 and numbers["mean_grounding"] is None and numbers["grounding_ci"] is None
    assert numbers["mean_claim_uncertainty"] is None and numbers["claims_judge"] is None
    assert sum(numbers["quadrants"].values()) == 0


def test_the_terminal_shows_what_there_is():
    run, found = analysed([CANAL, SILENT])
    text = summary_text(run_summary(run, analyse(run), found))
    lines = {
        line.split("  ")[2 if line.startswith("    ") else 1].strip(): line
        for line in text.split("\n")
        if line
    }
    assert "in 1 answer, judged by hand" in lines["Claims"]
    assert lines["Supported"].split() == ["Supported", "2", "support", "from", "0.50"]
    assert "1.000  1 answer" in lines["Mean grounding"] and "interval" not in lines["Mean grounding"]
    assert "The answer is empty" in lines["Without grounding: empty"]
    assert "supports a claim" in lines["Passages: used evidence"]
    # Nothing scored: dashes, no 0 and no 1.
    run, found = analysed([{"answer": "Paris", "claims": [{"text": "Paris"}]}])
    text = summary_text(run_summary(run, analyse(run), found))
    grounding = next(line for line in text.split("\n") if "Mean grounding" in line)
    assert grounding.split() == ["Mean", "grounding", "—", "0", "answers"]
    assert "judged by nobody" in text


def test_words_of_the_analysis_are_defined():
    assert set(STATE_MEANINGS) == set(CLAIM_STATES) and set(CLAIM_VERDICTS) == set(VERDICTS)
    assert set(QUADRANT_MEANINGS) == {*QUADRANTS, UNDEFINED} and set(CAUSAL_MEANINGS) == set(CAUSAL_LABELS)
    assert set(RAGCHECKER) < set(METRICS)
    numbers = {"grounding", "uncertainty", "support_maximum", "any_support", "passage_importance", "f1_at_k"}
    assert numbers - {"uncertainty"} < set(METRICS) and "claim_uncertainty" in METRICS
    for words in (STATE_MEANINGS, CLAIM_VERDICTS, QUADRANT_MEANINGS, CAUSAL_MEANINGS):
        assert all(word.name == name and word.meaning for name, word in words.items())


def test_the_definitions_need_no_engine():
    code = "import sys, core.definitions; print([m for m in sys.modules if m.startswith('core.claims')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_analysis_of_another_threshold_is_used_as_given():
    run, strict = analysed([CANAL], threshold=0.95)
    influence = analyse(run)
    assert run_summary(run, influence, strict)["n_claims_supported"] == 0
    assert run_summary(run, influence)["n_claims_supported"] == 2
    assert run_summary(run, influence, analyse_claims(run, influence)) == run_summary(run, influence)
