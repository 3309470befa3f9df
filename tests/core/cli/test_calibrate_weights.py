"""`calibrate` on answers with their signals: one threshold on every way, weights that are learned, refusals."""

import csv
import json

import numpy as np
import pandas as pd
import pytest

from core.calibration.mapping import NO_MAP, ConfidenceMap, ConfidenceQuality, Mapped
from core.calibration.saved import Method, read_store
from core.calibration.weighted import Weighting
from core.cli import main
from core.cli.calibrate import _imported, _learned_facts, _learned_text, _text
from core.confidence import WEIGHTS, Compared, Learned, calculate_confidence
from core.confidence.weights import LearnedWeights, WeightCalibration
from core.conformal import certify_threshold
from core.conformal.step import ConformalStep
from core.diagnosis import Diagnosis
from core.errors import InputError
from core.pipeline import fill
from core.run import Run
from core.sources.formats import import_file
from tests.core.confidence.confidence_rows import planted


def command(*arguments):
    return main([str(a) for a in arguments])


def records(rows):
    signals = [*rows.signals.values()]
    return [
        {
            "query": query,
            "similarity": signals[0][i],
            "lexical": signals[1][i],
            "llm_score": signals[2][i],
            "is_correct": bool(rows.correct[i]),
        }
        for i, query in enumerate(rows.questions)
    ]


def jsonl(path, found):
    path.write_text("\n".join(map(json.dumps, found)))
    return path


@pytest.fixture
def informative(tmp_path):
    """300 answers, decided by the model's own score; two rows more cannot be used."""
    found = records(planted(1, 300, weights=(0, 0, 1), slope=12))
    more = [{**found[0], "is_correct": None}, {**found[0], "lexical": None}]
    return jsonl(tmp_path / "labelled.jsonl", [*found, *more])


def test_the_same_200_labels_give_one_threshold_everywhere(tmp_path, capsys):
    """Reproduction: 0.55 on one road and 0.35 on the other."""
    rows = planted(3, 200, weights=(0.4, 0.4, 0.2), slope=14)
    found = records(rows)
    # In Python, as the seed has it.
    confidence = [
        calculate_confidence(one["similarity"], one["lexical"], one["llm_score"]).score for one in found
    ]
    expected = certify_threshold(confidence, rows.correct, 0.2, 0.1).threshold
    assert expected is not None and 0 < expected < 1
    # The command, on a file and on a run.
    path = jsonl(tmp_path / "labelled.jsonl", found)
    assert command("calibrate", path, "--store", tmp_path / "a.db", "--alpha", 0.2, "--json") == 0
    of_file = json.loads(capsys.readouterr().out)
    ids = [f"q{i:03}" for i in range(200)]
    queries = pd.DataFrame(
        {
            "query_id": ids, "question": [one["query"] for one in found], "answer": "Paris",
            "answer_status": "answered",
            "reference_answers": [["Paris"] if one["is_correct"] else ["Rome"] for one in found],
        }
    )  # fmt: skip
    signals = pd.DataFrame(found)[["similarity", "lexical", "llm_score"]].assign(query_id=ids)
    run = Run.create({"source": "upload", "name": "A run"}, queries=queries, signals=signals)
    run.save(tmp_path / "run")
    assert command("calibrate", tmp_path / "run", "--store", tmp_path / "b.db", "--alpha", 0.2, "--json") == 0
    of_run = json.loads(capsys.readouterr().out)
    # One named signal has one name on both roads: what is in the store is not there a second time.
    for source, new in ((path, 200), (tmp_path / "run", 0)):
        named = ("--store", tmp_path / "c.db", "--weights", "similarity", "--json")
        assert command("calibrate", source, *named) == 0
        assert json.loads(capsys.readouterr().out)["new_calibrated"] == new
    # The pages: not calibrated, by halves, and by the store of the file.
    views = [run, fill(run, ConformalStep()), fill(run, ConformalStep(store=str(tmp_path / "a.db")))]
    finals = [Diagnosis(one, {"alpha": 0.2})["conformal"].final.threshold for one in views]
    assert [of_file["certified_threshold"], of_run["certified_threshold"], *finals] == [expected] * 5
    assert of_file["threshold"] == pytest.approx(of_run["threshold"])
    # And both pages read the same confidence.
    diagnosis = Diagnosis(run)
    one, other = diagnosis["confidence"].confidence, diagnosis["conformal"].queries["confidence"]
    np.testing.assert_allclose(one, other, atol=1e-9)


def test_a_file_of_answers_confidence_and_judgements_gives_one_threshold(tmp_path, capsys):
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"question": [f"What is {i}?" for i in range(200)], "answer": "Paris"})
    frame["confidence"] = rng.random(200).round(2)
    frame["correct"] = rng.random(200) < frame["confidence"] + 0.4
    frame.to_csv(tmp_path / "answers.csv", index=False)
    expected = certify_threshold(frame["confidence"], frame["correct"], 0.2, 0.1).threshold
    assert expected is not None
    path = tmp_path / "answers.csv"
    assert command("calibrate", path, "--store", tmp_path / "a.db", "--alpha", 0.2, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    diagnosis = Diagnosis(import_file(path).run, {"alpha": 0.2})
    assert facts["certified_threshold"] == diagnosis["conformal"].final.threshold == expected
    assert command("import", path, "--out", tmp_path / "run") == 0
    capsys.readouterr()
    assert command("summary", tmp_path / "run", "--json", "--alpha", 0.2) == 0
    assert json.loads(capsys.readouterr().out)["certified_threshold"] == expected, "though not calibrated"
    assert (facts["n_labels"], diagnosis["confidence"].quality.n) == (200, 200)


def test_learned_weights_in_words_in_the_store_and_in_a_run(informative, tmp_path, capsys):
    path = tmp_path / "c.db"
    assert command("calibrate", informative, "--store", path, "--learn", "--alpha", 0.2) == 0
    lines = capsys.readouterr().out.splitlines()
    saved, _ = read_store(str(path))
    weights = saved.method.weighting.weights
    assert weights["llm"] > 0.7
    # Whoever taught does not calibrate.
    assert saved.scores.size + len(saved.method.learned_from) == 300
    assert lines[0].startswith("Use the weights learned by ") and f"llm {weights['llm']:.2f}" in lines[0]
    assert lines[1].startswith(f"Learned from {len(saved.method.learned_from)} answers to ")
    for word in ("  grid ", "  logistic ", "  accuracy ", "  Brier score ", "  platt ", "  isotonic "):
        assert sum(line.startswith(word) for line in lines) == 1, word
    assert f"Kept: the learned weights and the map {saved.method.map.kind}." in lines
    # A run with these signals takes weights and map from the store.
    rows = [json.loads(line) for line in informative.read_text().splitlines()][:300]
    ids = [f"q{i}" for i in range(300)]
    queries = pd.DataFrame({"query_id": ids, "question": "New?", "answer": "x", "answer_status": "answered"})
    signals = pd.DataFrame(rows)[["similarity", "lexical", "llm_score"]].assign(query_id=ids)
    run = Run.create({"source": "upload"}, queries=queries, signals=signals)
    analysis = Diagnosis(fill(run, ConformalStep(store=str(path))))["confidence"]
    assert analysis.used.origin == "calibration" and analysis.weighting.weights == weights
    # The same weights in a store of other answers, and other weights in this one, are refused.
    assert command("calibrate", informative, "--store", path, "--weights", "similarity") == 2
    assert "holds scores that cannot be compared" in capsys.readouterr().err


def test_the_default_is_kept_without_information_as_json(tmp_path, capsys):
    rows = planted(2, 120, slope=0)
    with (tmp_path / "labelled.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, records(rows)[0])
        writer.writeheader()
        writer.writerows(records(rows))
    path = tmp_path / "c.db"
    assert command("calibrate", tmp_path / "labelled.csv", "--store", path, "--learn", "--json") == 0
    facts = json.loads(capsys.readouterr().out)["learned"]
    assert facts["keeps_default"] is True and facts["weights"] == dict(WEIGHTS)
    assert facts["reason"] == "the gain over the default is not significant"
    assert [one["method"] for one in facts["learned"]] == ["grid", "logistic"]
    assert [one["measure"] for one in facts["compared"]] == ["accuracy", "brier", "auroc"]
    assert facts["maps"]["platt"]["before"]["n"] == facts["n"] < 120


ROW = {"query": "q", "similarity": 0.5, "lexical": 5, "llm_score": 0.5, "is_correct": True}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([{**ROW, "is_correct": None}], "has no labelled answer; nothing can be learned"),
        ([{**ROW, "query": f"q{i}"} for i in range(30)], "with a correct and 0 with a wrong"),
        ([{**ROW, "lexical": "\x1b[2J" * 99}], "0 questions with a correct and 0 with a wrong"),
        ([{"query": "q", "similarity": 1}], "--learn is for answers with their signals"),
    ],
)
def test_what_teaches_nothing_is_one_sentence(found, message, tmp_path, capsys):
    path = jsonl(tmp_path / "labelled.jsonl", found)
    assert command("calibrate", path, "--store", tmp_path / "c.db", "--learn") == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("Error: ") and message in last and "\x1b" not in last
    assert not (tmp_path / "c.db").exists()


@pytest.mark.parametrize("content", ['{"weights": {"llm": -1}}', "[" * 200_000], ids=["negative", "nested"])
def test_weights_in_a_store_that_something_else_wrote_are_refused(informative, tmp_path, content):
    import sqlite3

    path = tmp_path / "c.db"
    command("calibrate", informative, "--store", path, "--learn")
    with sqlite3.connect(path) as db:
        db.execute("UPDATE calibration_method SET content = ?", (content,))
    db.close()
    with pytest.raises(InputError, match=r"weights in the calibration store .* cannot be read"):
        read_store(str(path))


@pytest.mark.parametrize(
    ("content", "taken"),
    [
        ("question,answer,confidence\nWho?,Ann,0.5\n", True),
        ("question,answer,similarity\nWho?,Ann,0.5\n", True),
        ("question,answer,correct\nWho?,Ann,1\n", False),
        ("a,b\n1,2\n", False),
        (None, False),
    ],
)
def test_a_file_that_says_how_sure_an_answer_is_is_taken_as_it_is(content, taken, tmp_path):
    path = tmp_path / "f.csv"
    if content is not None:
        path.write_text(content)
    assert (_imported(str(path)) is not None) == taken


def test_a_few_answers_calibrate_and_none_is_taken_twice(tmp_path, capsys):
    found = [{**ROW, "query": f"q{i}", "similarity": i / 4, "is_correct": i > 0} for i in range(4)]
    path = jsonl(tmp_path / "labelled.jsonl", found)
    for n in (3, 4):
        jsonl(path, found[:n])
        assert command("calibrate", path, "--store", tmp_path / "c.db", "--json") == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["new_calibrated"], facts["skipped"], facts["n_failed"], facts["failure"]) == (
            (3, 0, 0, "") if n == 3 else (1, 3, 0, "")
        )
    assert facts["n_labels"] == 4 and facts["n_correct"] == 3 and "learned" not in facts


def learned(is_best, kind):
    """What 1,200 answers taught: weights by the grid, or none, and a map."""
    ranges = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
    default, weights = Weighting({"a": 0.5, "b": 0.5}, ranges), {"a": 0.75, "b": 0.25}
    grid = LearnedWeights(
        "grid", weights, {"a": (0.5, 0.875), "b": (0.125, 0.5)}, 0.8, 0.125, (0.03, 0.25), np.zeros(1)
    )
    before, after = (
        ConfidenceQuality(9, ece, 0.5, brier, 0.8, 0.1) for ece, brier in ((0.25, 0.2), (0.1, 0.125))
    )
    return Learned(
        WeightCalibration(1_200, 1_000, 1, 0.675, (grid,), grid if is_best else None, "no gain"),
        grid if is_best else None,
        (Compared("brier", 9, 0.2, 0.125, -0.075, -0.1, -0.05, 0.01, 0.03),) if is_best else (),
        {"platt": Mapped(NO_MAP, before, after, "")},
        Method(Weighting(weights, ranges) if is_best else default, kind),
    )  # fmt: skip


def test_what_was_learned_is_told_line_by_line():
    taught = [
        "Learned from 1,200 answers to 1 question, 1,000 of them correct; these do not calibrate.",
        "AUROC of the default 0.68 (0.50 by chance).",
        "  grid      a 0.75 (0.50 to 0.88), b 0.25 (0.12 to 0.50); AUROC 0.80, gain 0.12 (0.03 to 0.25)",
    ]
    maps = [
        "Maps from confidence to probability, cross-validated, without and with:",
        "  platt     ECE 0.25 and 0.10, Brier score 0.200 and 0.125",
    ]
    last = "Intervals: 95 %, of both gains at once. p: adjusted for three measures (Holm)."
    assert _learned_text(learned(True, ConfidenceMap("platt", 1.0, 0.0))) == [
        "Use the weights learned by grid: a 0.75, b 0.25.",
        *taught,
        "Default against grid, on answers that neither was learned from:",
        "  Brier score  0.20 and 0.12, difference −0.07 (−0.10 to −0.05), p = 0.03",
        *maps,
        "Kept: the learned weights and the map platt.",
        last,
    ]
    assert _learned_text(learned(False, NO_MAP)) == [
        "Keep the default weights (a 0.50, b 0.50): no gain.",
        *taught,
        *maps,
        "Kept: the default weights and no map, since none lowers the Brier score.",
        last,
    ]


def test_the_facts_of_what_was_learned_leave_out_the_confidences_of_each_answer():
    best, kept = (_learned_facts(learned(is_best, NO_MAP)) for is_best in (True, False))
    assert (best["keeps_default"], kept["keeps_default"]) == (False, True)
    assert (best["compared_method"], kept["compared_method"]) == ("grid", None)
    assert (best["weights"], kept["weights"]) == ({"a": 0.75, "b": 0.25}, {"a": 0.5, "b": 0.5})
    assert best["map"] == "none"
    assert set(best) == {
        "n", "n_questions", "n_correct", "default_auroc", "learned", "reason", "keeps_default", "weights",
        "compared_method", "compared", "map", "maps",
    }  # fmt: skip
    assert set(best["learned"][0]) == {
        "method", "weights", "intervals", "auroc", "gain", "gain_interval",
    }  # fmt: skip


FACTS = {
    "store": "c.db", "total_calibrated": 1, "new_calibrated": 1_000, "skipped": 2_000, "n_labels": 1,
    "n_correct": 1, "n_failed": 0, "failure": "", "reason": "Too few.", "alpha": 0.1, "threshold": 0.25,
    "certified_threshold": 0.5, "certified_missing": "more labels would", "statement": "A promise.",
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "lines"),
    [
        ({}, ["No threshold: too few.", "Certified at α = 0.1: answer from a confidence of 0.50 on, by all labels."]),
        ({"reason": "", "certified_threshold": None}, ["Threshold 0.250 at α = 0.1: flagged is what scores more. A promise.", "No confidence is certified: more labels would."]),
        ({"n_labels": 0, "n_correct": 0, "certified_threshold": None}, ["No threshold: too few."]),
        ({"n_failed": 2, "failure": "Gone.", "n_labels": 0, "certified_threshold": 0.0}, ["2 questions failed and will be asked again next time: Gone.", "No threshold: too few.", "Certified at α = 0.1: answer from a confidence of 0.00 on, by all labels."]),
    ],
)  # fmt: skip
def test_a_calibration_is_told_line_by_line(more, lines):
    first, second, *others = _text({**FACTS, **more}).splitlines()
    assert first == "c.db: 1 answer, 1,000 new, 2,000 there before."
    assert second.endswith(" of them correct; those calibrate.") and others == lines
