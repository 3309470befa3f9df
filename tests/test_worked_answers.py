"""The worked answers hold what is said of them, and the saved run is composed of them."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from core.claims.planted import planted_errors
from core.diagnosis import Diagnosis
from core.run import Run
from core.schema import PLANTED
from core.text import is_correct
from core.text.words import words
from sample_data.compose import answer_of, composed_run, passage_text
from tests.test_sample_data import ARTICLES, SAMPLES

LINES = [json.loads(line) for line in (SAMPLES / "worked_answers.jsonl").read_text("utf-8").splitlines()]
TEXTS = {path.name: path.read_text("utf-8") for path in ARTICLES}
IDEOGRAPHS = 1.6  # to a word of other languages
CLAIMS = [claim for line in LINES for claim in line["claims"]]

each = pytest.mark.parametrize("line", LINES, ids=lambda line: line["id"])


def length(text: str, line: dict) -> float:
    """Return the words of a text."""
    return len(words(text)) / (IDEOGRAPHS if line["language"] == "zh" else 1)


def test_there_is_enough_of_everything():
    languages = Counter(line["language"] for line in LINES)
    assert len(LINES) >= 26 and languages["vi"] >= 4 and languages["zh"] >= 4
    planted = Counter(claim["planted"] for claim in CLAIMS)
    assert set(planted) == set(PLANTED) and min(planted.values()) >= 12
    assert planted["none"] >= len(CLAIMS) / 2
    assert 6 <= sum(not line["correct"] for line in LINES) <= len(LINES) / 2
    assert len({line["id"] for line in LINES}) == len({line["question"] for line in LINES}) == len(LINES)


@each
def test_answer_and_passages_have_their_length(line):
    assert 80 <= length(answer_of(line), line) <= 150 and len(line["claims"]) >= 6
    texts = [passage_text(TEXTS, place, line["language"]) for place in line["passages"]]
    assert 5 <= len(texts) <= 8 and len(set(texts)) == len(texts)
    assert all(50 <= length(text, line) <= 100 for text in texts)


@each
def test_claims_name_the_passages_that_support_them(line):
    known = range(1, len(line["passages"]) + 1)
    assert line["gold"] and set(line["gold"]) <= set(known)
    for claim in line["claims"]:
        named = claim["passages"]
        assert set(named) <= set(known) and len(set(named)) == len(named)
        at_least = {"none": 1, "two_passages": 2}.get(claim["planted"])
        assert len(named) == 0 if at_least is None else len(named) >= at_least
        assert claim["planted"] != "two_passages" or len(named) == 2


@each
def test_alternatives_agree_or_differ(line):
    texts, meanings = zip(*((one["text"], one["meaning"]) for one in line["alternatives"]), strict=True)
    assert len(texts) == len(set(texts)) == 10
    assert set(meanings) == set(range(1, max(meanings) + 1))  # 1 is what the answer means
    assert 0 <= line["llm_score"] <= 1


def test_some_agree_and_are_right_some_agree_and_are_wrong_and_some_scatter():
    agreeing = [sum(one["meaning"] == 1 for one in line["alternatives"]) for line in LINES]
    right = [line["correct"] for line in LINES]
    assert sum(n >= 8 and ok for n, ok in zip(agreeing, right, strict=True)) >= 6
    assert sum(n == 10 and not ok for n, ok in zip(agreeing, right, strict=True)) >= 4
    assert sum(n <= 4 for n in agreeing) >= 6


@each
def test_the_label_is_what_the_reference_answers_say(line):
    assert is_correct(answer_of(line), line["references"]) == line["correct"]


def test_the_saved_run_is_composed_of_these_answers():
    saved, made = Run.load(SAMPLES / "worked_answers"), composed_run(LINES, TEXTS)
    assert saved.mark == "composed" and saved.run_id == made.run_id, "make worked"
    assert saved["claims"].query("side == 'answer'")["text"].tolist() == [claim["text"] for claim in CLAIMS]
    assert saved["support"]["judge"].eq("offline").all() and saved["support"]["probability"].notna().all()
    spans = made["planted_claims"].merge(made.queries[["query_id", "answer"]], on="query_id")
    assert all(row.answer[row.start : row.end] == row.text for row in spans.itertuples())


def test_what_needs_no_model_is_there():
    """Conformal was never run, and all 32 answers failed validation for lack of citations nobody had asked for."""
    diagnosis = Diagnosis(Run.load(SAMPLES / "worked_answers"))
    lacking = {one.name for one in diagnosis.diagnostics if one.lacks(diagnosis.run)}
    assert lacking <= {"attribution", "influence", "likelihood"}
    labelled = diagnosis.run.queries["calibrates"]
    assert labelled.sum() == len(LINES) / 2
    verdicts = diagnosis.run["verdicts"].set_index("validator")
    assert verdicts.loc["CitationRequired", "reason"].eq("not_applicable").all()


def test_the_readme_counts_them():
    text = " ".join((SAMPLES / "README.md").read_text("utf-8").split())
    found = planted_errors(Diagnosis(Run.load(SAMPLES / "worked_answers"))["claims"])
    errors, clean = found.row("errors"), found.row("none")
    wrong = sum(claim["planted"] not in ("none", "two_passages") for claim in CLAIMS)
    assert f"{len(LINES)} questions with {len(CLAIMS)} claims, {wrong} of them with a planted error" in text
    assert (
        f"flags {errors['n_found']} of {wrong} errors as unsupported ({errors['chance']:.0f} at random)"
        in text
    )
    assert (
        f"{clean['n_found']} of {clean['n']} claims without an error ({clean['chance']:.0f} at random)"
        in text
    )
