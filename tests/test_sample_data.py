"""The sample data hold what their README says."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from pathlib import Path

import pytest

from core.diagnosis import Diagnosis
from core.run import Run
from core.sources.dataset import load_dataset
from core.sources.influence_csv import template_csv
from core.text import is_correct, words

SAMPLES = Path(__file__).parent.parent / "sample_data"
ARTICLES = sorted((SAMPLES / "articles").glob("*.md"))
LINES = [json.loads(line) for line in (SAMPLES / "questions.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def recorded():
    return Run.load(SAMPLES / "recorded_run")


def test_there_is_enough_of_every_kind():
    kinds = Counter(line["kind"] for line in LINES)
    assert len(LINES) >= 60 and set(kinds) == {
        "single",
        "two_passage",
        "duplicated",
        "distractor",
        "unanswerable",
    }
    assert min(kinds.values()) >= 5
    languages = Counter(line["language"] for line in LINES)
    assert languages["vi"] >= 3 and languages["zh"] >= 3


def test_the_readme_counts_the_questions_as_they_are():
    text = (SAMPLES / "README.md").read_text("utf-8")
    stated = {kind: int(n) for kind, n in re.findall(r"^\| (\w+) \| (\d+) \|", text, re.MULTILINE)}
    assert stated == Counter(line["kind"] for line in LINES)


@pytest.mark.parametrize("path", ARTICLES, ids=lambda p: p.stem)
def test_articles_are_whole_and_plain(path):
    text = path.read_text("utf-8")
    assert unicodedata.is_normalized("NFC", text)
    assert re.match(r"# \S", text) and not re.search(r"^#{3,}|^[-*] |\]\(|<\w+", text, re.MULTILINE)
    assert 800 <= len(words(text)) <= 1500


def test_there_are_enough_articles():
    assert len(ARTICLES) >= 24


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["id"])
def test_every_fragment_stands_in_the_articles_and_holds_the_answer(line):
    corpus = [path.read_text("utf-8") for path in ARTICLES]
    assert all(sum(fragment in text for text in corpus) == 1 for fragment in line["gold"])
    if line["kind"] == "unanswerable":
        assert line["answers"] == line["gold"] == []
    else:
        assert line["gold"] and any(is_correct(fragment, line["answers"]) for fragment in line["gold"])
    if line["kind"] in ("two_passage", "duplicated"):
        assert len(line["gold"]) >= 2


def test_the_questions_load_without_a_problem():
    dataset = load_dataset(SAMPLES / "questions.jsonl")
    assert len(dataset.questions) == len(LINES) and not dataset.report.issues


def test_the_template_is_the_one_the_program_offers():
    assert (SAMPLES / "influence_template.csv").read_text("utf-8") == template_csv()


def test_the_recorded_run_is_a_whole_real_run_over_these_questions(recorded):
    manifest = recorded.manifest
    assert manifest["source"] == "live" and manifest["complete"] and not manifest["notes"]
    assert manifest["model"]["name"] == "SmolLM2-135M-Instruct"
    assert manifest["dataset"]["digest"] == load_dataset(SAMPLES / "questions.jsonl").digest
    assert recorded.queries["query_id"].tolist() == [line["id"] for line in LINES]
    assert (recorded.passages.groupby("query_id").size() == 10).all()
    assert recorded.passages["ablated_answer"].notna().all() and len(recorded.repeats) == len(LINES)


def test_the_readme_states_the_recorded_numbers(recorded):
    text = (SAMPLES / "README.md").read_text("utf-8")
    found = Diagnosis(recorded).summary()
    assert f"{found['n_claims']} claims in {found['n_with_claims']} answers" in text
    assert (
        f"of which {found['n_claims_supported']} are called supported, {found['n_claims_joint']} of them"
        in text
    )
    assert f"{found['n_defined']} of {found['n_queries']}" in text
    assert f"{found['mean_rho']:.2f}".replace("-", "−") in text
    assert f"{found['n_correct']} of {found['n_judged']}" in text
