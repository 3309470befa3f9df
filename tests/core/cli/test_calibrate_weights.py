"""`calibrate --weights`: from a file and from a saved run, and what it refuses."""

import csv
import json

import numpy as np
import pandas as pd
import pytest

from core.cli import main
from core.confidence import WEIGHTS, from_json
from core.run import Run
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


def test_learned_weights_in_words_and_in_the_file(informative, tmp_path, capsys):
    path = tmp_path / "new" / "weights.json"
    assert command("calibrate", informative, "--weights", path) == 0
    said = capsys.readouterr().out
    saved = from_json(path.read_bytes())
    weights = saved.weighting.weights
    assert weights["llm"] > 0.7 and saved.n == 300 and saved.weighting.threshold == 0.6
    lines = said.splitlines()
    assert lines[0].startswith("Use the weights learned by ") and f"llm {weights['llm']:.2f}" in lines[0]
    assert lines[1] == (
        f"n = 300 answers to 300 questions, {saved.n_correct} of them correct; "
        "1 without a label, 1 without all signals left out."
    )
    for word in ("  grid ", "  logistic ", "  accuracy ", "  Brier score ", "  platt ", "  isotonic "):
        assert sum(line.startswith(word) for line in lines) == 1, word
    assert f"{path}: the learned weights and the map {saved.map.kind}." in lines


def test_the_default_is_kept_without_information_as_json(tmp_path, capsys):
    rows = planted(2, 60, slope=0)
    with (tmp_path / "labelled.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, records(rows)[0])
        writer.writeheader()
        writer.writerows(records(rows))
    path = tmp_path / "weights.json"
    assert command("calibrate", tmp_path / "labelled.csv", "--weights", path, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["keeps_default"] is True and facts["weights"] == dict(WEIGHTS)
    assert facts["reason"] == "the gain over the default is not significant"
    assert (facts["n"], facts["n_correct"]) == (60, int(rows.correct.sum()))
    assert [one["method"] for one in facts["learned"]] == ["grid", "logistic"]
    assert [one["measure"] for one in facts["compared"]] == ["accuracy", "brier", "auroc"]
    assert facts["maps"]["platt"]["before"]["n"] == 60 and facts["map"] in ("none", "platt", "isotonic")
    assert dict(from_json(path.read_bytes()).weighting.weights) == dict(WEIGHTS)
    assert command("calibrate", tmp_path / "labelled.csv", "--weights", path, "--overwrite") == 0
    assert capsys.readouterr().out.startswith(
        "Keep the default weights (similarity 0.45, lexical 0.35, llm 0.20): the gain over the default is "
        "not significant.\n"
    )


def test_a_saved_run(tmp_path, capsys):
    rng = np.random.default_rng(4)
    ids = [f"q{i}" for i in range(40)]
    right = np.arange(40) % 2 == 0
    queries = pd.DataFrame(
        {
            "query_id": ids, "question": [f"What is {i}?" for i in range(40)], "answer": ["Paris"] * 40,
            "answer_status": ["answered"] * 40,
            "reference_answers": [["Paris"] if one else ["Rome"] for one in right],
        }
    )  # fmt: skip
    signals = pd.DataFrame(
        {"query_id": ids, "similarity": rng.random(40), "lexical": rng.random(40), "llm_score": right * 1.0}
    )
    Run.create({"source": "live", "name": "A run"}, queries=queries, signals=signals).save(tmp_path / "run")
    assert command("calibrate", tmp_path / "run", "--weights", tmp_path / "w.json", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["n"], facts["n_correct"], facts["n_by_reference"]) == (40, 20, 40)
    # The model's score alone tells them apart.
    assert facts["keeps_default"] is False and facts["weights"]["llm"] > WEIGHTS["llm"]
    assert facts["compared"][2]["b"] > 0.95 > facts["default_auroc"]


def test_the_text_says_what_json_says(tmp_path, capsys):
    path = jsonl(tmp_path / "labelled.jsonl", records(planted(5, 80, weights=(0, 0.5, 0.5))))
    assert command("calibrate", path, "--weights", tmp_path / "a.json", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert command("calibrate", path, "--weights", tmp_path / "b.json") == 0
    lines = capsys.readouterr().out.replace("−", "-").splitlines()

    def ends(pair):
        return f"({pair[0]:.2f} to {pair[1]:.2f})"

    assert f"AUROC of the default {facts['default_auroc']:.2f} (0.50 by chance)." in lines
    for one in facts["learned"]:
        each = ", ".join(
            f"{name} {one['weights'][name]:.2f} {ends(one['intervals'][name])}"
            for name in ("similarity", "lexical", "llm")
        )
        said = f"{each}; AUROC {one['auroc']:.2f}, gain {one['gain']:.2f} {ends(one['gain_interval'])}"
        assert f"  {one['method']:<10}{said}" in lines
    assert any(line.startswith(f"Default against {facts['compared_method']}, ") for line in lines)
    for one, name in zip(facts["compared"], ("accuracy", "Brier score", "AUROC"), strict=True):
        said = f"{one['a']:.2f} and {one['b']:.2f}, difference {one['difference']:.2f}"
        assert any(
            line.startswith(f"  {name:<13}{said} {ends([one['low'], one['high']])}, p") for line in lines
        )
    for kind in ("platt", "isotonic"):
        before, after = facts["maps"][kind]["before"], facts["maps"][kind]["after"]
        assert (
            f"  {kind:<10}ECE {before['ece']:.2f} and {after['ece']:.2f}, "
            f"Brier score {before['brier']:.3f} and {after['brier']:.3f}"
        ) in lines


def test_a_confidence_that_is_right_needs_no_map(tmp_path, capsys):
    right = [i % 2 for i in range(40)]
    found = [
        {"query": f"q{i}", "similarity": one, "lexical": 100 * one, "llm_score": one, "is_correct": one}
        for i, one in enumerate(right)
    ]
    path = tmp_path / "w.json"
    assert command("calibrate", jsonl(tmp_path / "labelled.jsonl", found), "--weights", path) == 0
    said = capsys.readouterr().out
    assert f"{path}: the default weights and no map, since none lowers the Brier score.\n" in said
    assert "  isotonic  ECE 0.00 and 0.00, Brier score 0.000 and 0.000\n" in said


@pytest.mark.parametrize("both", [True, False])
def test_one_of_store_and_weights(both, informative, tmp_path, capsys):
    options = ("--store", tmp_path / "s.db", "--weights", tmp_path / "w.json") if both else ()
    assert command("calibrate", informative, *options) == 2
    said = capsys.readouterr().err
    assert said.startswith("Error: Give either --store ") and said.count("\n") == 1
    assert not (tmp_path / "s.db").exists() and not (tmp_path / "w.json").exists()


def test_a_file_that_is_there_stays(informative, tmp_path, capsys):
    (tmp_path / "w.json").write_text("mine")
    assert command("calibrate", informative, "--weights", tmp_path / "w.json") == 2
    assert "exists; give another --weights or --overwrite." in capsys.readouterr().err
    assert (tmp_path / "w.json").read_text() == "mine"


ROW = {"query": "q", "similarity": 0.5, "lexical": 5, "llm_score": 0.5, "is_correct": True}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([{**ROW, "is_correct": None}], "has no answer with a label and all signals: 1 without a label"),
        ([{**ROW, "query": f"q{i}"} for i in range(30)], "30 questions with a correct and 0 with a wrong"),
        ([{**ROW, "is_correct": i > 0} for i in range(4)], "too few labels"),
        ([{"query": "q"}], "lacks the columns lexical, llm_score, similarity"),
        ([{**ROW, "query": " "}], "Row 1: query must not be empty"),
        ([{**ROW, "lexical": "\x1b[2J" * 99}], "Row 1: lexical must be a number"),
        ([{**ROW, "is_correct": {"a": [1]}}], "Row 1: is_correct must be true or false"),
        ([[1]], "holds no record with named fields"),
    ],
)
def test_what_teaches_nothing_is_one_sentence(found, message, tmp_path, capsys):
    path = jsonl(tmp_path / "labelled.jsonl", found)
    assert command("calibrate", path, "--weights", tmp_path / "w.json") == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("Error: ") and message in last and "\x1b" not in last
    assert not (tmp_path / "w.json").exists()


@pytest.mark.parametrize("content", [b"", b"\x00\x01", b'{"query": ', b"[" * 100_000])
def test_a_broken_file(content, tmp_path, capsys):
    (tmp_path / "labelled.json").write_bytes(content)
    assert command("calibrate", tmp_path / "labelled.json", "--weights", tmp_path / "w.json") == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("Error: ")
