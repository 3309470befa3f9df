"""The sample data hold what their README says."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from pathlib import Path

import pytest

from core.diagnosis import Diagnosis
from core.pipeline.begin import PassageFinder, RunOptions
from core.run import Run
from core.sources.dataset import load_dataset
from core.sources.templates import template_csv
from core.stats import mean_interval
from core.text import is_correct, words
from sample_data.sentences import sentences
from ui.library import FIRST

SAMPLES = Path(__file__).parent.parent / "sample_data"
ARTICLES = sorted((SAMPLES / "articles").glob("*.md"))
LINES = [json.loads(line) for line in (SAMPLES / "questions.jsonl").read_text("utf-8").splitlines()]
README = (SAMPLES / "README.md").read_text("utf-8")
KINDS = ("single", "two_passage", "duplicated", "distractor", "unanswerable")
FACTS = [json.loads(line) for line in (SAMPLES / "facts.jsonl").read_text("utf-8").splitlines()]
# Passages, words of each.
SETTINGS = {"recorded_run_facts": (3, 60), "recorded_run": (10, 100), "recorded_run_short": (5, 60)}
SHOWN = (
    "n_correct n_abstained hit_at_1 hit_at_3 hit_at_5 hit_at_10 n_missed_evidence gold_most_influential mean_influence_ndcg "
    "mean_rho n_inert n_parametric n_harmful_passage n_claims_supported "
    "n_passed incorrect_stopped mean_confidence confidence_auroc"
).split()


@pytest.fixture(scope="module", params=SETTINGS)
def recorded(request):
    return Run.load(SAMPLES / request.param)


def found(k, words):
    """Return for each question with gold the places of gold among the passages that BM25 finds."""
    finder = PassageFinder(RunOptions(k=k, passage_words=words))
    questions = [
        question for question in load_dataset(SAMPLES / "questions.jsonl").questions if question.gold
    ]
    return [[place for place, p in enumerate(finder.find(q).passages) if p.is_gold] for q in questions]


def test_there_is_enough_of_every_kind_in_every_language():
    assert 66 <= len(LINES) <= 72
    counts = Counter((line["kind"], line["language"]) for line in LINES)
    assert set(counts) == {(kind, language) for kind in KINDS for language in ("en", "vi", "zh")}


def test_the_readme_counts_the_questions_as_they_are():
    counts = Counter((line["kind"], line["language"]) for line in LINES)
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \| (\d+) \|", README, re.MULTILINE)
    assert [row[0] for row in rows] == list(KINDS)
    assert rows == [
        (kind, *(str(counts[kind, language]) for language in ("en", "vi", "zh"))) for kind in KINDS
    ]


@pytest.mark.parametrize(("k", "words"), [(10, 100), (5, 60)])
def test_there_is_something_to_diagnose_about_the_retrieval(k, words):
    places = found(k, words)
    missed, not_first = sum(not gold for gold in places), sum(gold[:1] != [0] for gold in places)
    assert not_first >= 15 and missed >= 5
    assert f"{not_first} of {len(places)} questions its evidence does not come first, in {missed} " in README


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


@pytest.mark.parametrize(("name", "lines"), [("questions.jsonl", LINES), ("facts.jsonl", FACTS)])
def test_the_questions_load_without_a_problem(name, lines):
    dataset = load_dataset(SAMPLES / name)
    assert len(dataset.questions) == len(lines) and not dataset.report.issues


def test_the_sentences_are_those_of_the_articles():
    written = [json.loads(line) for line in (SAMPLES / "sentences.jsonl").read_text("utf-8").splitlines()]
    assert written == list(sentences(SAMPLES / "articles"))


def test_every_fact_stands_in_one_sentence_that_holds_the_answer():
    texts = [one["text"] for one in sentences(SAMPLES / "articles")]
    for line in FACTS:
        assert (line["kind"] == "unanswerable") == (not line["answers"]) == (not line["gold"])
        for fragment in line["gold"]:
            assert sum(fragment in text for text in texts) == 1, line["id"]
            holds = next(text for text in texts if fragment in text).casefold()
            assert any(answer.casefold() in holds for answer in line["answers"]), line["id"]


def test_the_run_that_opens_first_is_answered_half_right_and_holds_every_step():
    """The run that opened first answered 6 of 63 correctly: most of its pages could only say that this is too few."""
    run = Run.load(SAMPLES / FIRST[0])
    diagnosis = Diagnosis(run)
    correct = diagnosis["answers"].queries["correct"].dropna()
    assert 0.4 <= correct.mean() <= 0.6 and len(correct) > 100
    assert not [one.name for one in diagnosis.diagnostics if one.lacks(run)]
    assert set(run.manifest["steps"]) == {one.step.name for one in diagnosis.diagnostics if one.step}
    assert len(run["context_samples"])


def test_the_template_is_the_one_the_program_offers():
    assert (SAMPLES / "influence_template.csv").read_text("utf-8") == template_csv()


def test_the_recorded_run_is_a_whole_real_run_over_these_questions(recorded, request):
    k, words = SETTINGS[request.node.callspec.params["recorded"]]
    manifest, about_facts = recorded.manifest, request.node.callspec.params["recorded"] == FIRST[0]
    name, lines, repeats = ("facts", FACTS, 3) if about_facts else ("questions", LINES, 1)
    of = "one sentence" if about_facts else f"{words} words"
    assert manifest["name"] == f"Sample {'facts' if about_facts else 'corpus'}, {k} passages of {of}"
    assert manifest["source"] == "live" and manifest["complete"] and not manifest["notes"]
    assert manifest["model"]["name"] == "SmolLM2-135M-Instruct"
    assert manifest["dataset"]["digest"] == load_dataset(SAMPLES / f"{name}.jsonl").digest
    assert recorded.queries["query_id"].tolist() == [line["id"] for line in lines]
    assert (recorded.passages.groupby("query_id").size() == k).all()
    assert recorded.passages["ablated_answer"].notna().all() and len(recorded.repeats) == repeats * len(lines)


def test_the_readme_states_the_recorded_numbers():
    diagnoses = [Diagnosis(Run.load(SAMPLES / name)) for name in SETTINGS]
    for key in SHOWN:
        numbers = [
            number
            for diagnosis in diagnoses
            for one in diagnosis.diagnostics
            for number in diagnosis.numbers(one.name)
            if number.key == key
        ]
        cells = [
            "—" if number.value is None else f"{number.text} ({number.basis})".removesuffix(" ()")
            for number in numbers
        ]
        assert f"| {numbers[0].title} | {' | '.join(cells)} |\n" in README
    for rank in range(1, 11):
        cells = []
        for diagnosis in diagnoses:
            passages = diagnosis["influence"].passages
            values = passages.loc[passages["retrieval_rank"] == rank, "influence"].dropna().to_numpy()
            low, high = mean_interval(values) if len(values) else (0, 0)
            cells.append(f"{values.mean():.2f} ({low:.2f} to {high:.2f})" if len(values) else "—")
        assert f"| {rank} | {' | '.join(cells)} |\n" in README


def test_half_of_the_labelled_questions_calibrates_and_the_other_half_tests(recorded):
    labelled, calibrates = recorded.queries["reference_answers"].notna(), recorded.queries["calibrates"]
    n = 111 if len(recorded.queries) == 119 else 63
    assert labelled.sum() == n and calibrates[labelled].sum() == (n + 1) // 2
    assert not calibrates[~labelled].any()
    distance = Diagnosis(recorded)["conformal"].coverages["coverage_distance"]
    assert (distance.n_calibration, distance.n_test) == ((n + 1) // 2, n // 2) and not distance.reason
