"""No two sentences about one run contradict each other: findings, advice, verdict, over all sample runs."""

from itertools import product
from pathlib import Path

import pytest

from core.diagnosis import Diagnosis
from core.run import Run
from core.socket import BEYOND_CHANCE, UNCLEAR
from core.sources.simulation import simulate
from core.verdict import verdict
from core.worklist import title_of, worklist
from tests.core import verdict_runs

SAMPLES = sorted(path.parent for path in Path("sample_data").glob("*/run.json"))
MADE = [
    verdict_runs.buried_evidence,
    verdict_runs.lazy_retriever,
    verdict_runs.harmful_passage,
    verdict_runs.nothing_wrong,
    simulate,
]
# Two instructions that nobody can follow at once.
OPPOSITES = [
    ("raise the threshold", "lower the threshold"),
    ("higher α", "lower α"),
    ("more passages", "fewer passages"),
    ("more passages", "fewer or shorter passages"),
    ("more passages", "fewer and shorter passages"),
    ("Work on retrieval first", "Work on the model first"),
    ("retrieval first", "Work on the model first"),
    ("would not help", "would be needed to tell"),
]


@pytest.fixture(
    scope="module", params=[*SAMPLES, *MADE], ids=lambda one: getattr(one, "__name__", None) or one.name
)
def diagnosis(request):
    return Diagnosis(Run.load(request.param) if isinstance(request.param, Path) else request.param())


def test_findings_that_change_the_same_thing_change_it_in_one_direction(diagnosis):
    """The recorded run: "Mend retrieval first (more passages …)" next to "fewer and shorter passages"."""
    ways = {}
    for one in diagnosis.findings():
        if one.fix:
            lever, _, direction = one.fix.partition(":")
            assert lever and direction, (one.name, one.fix)
            assert one.advice, one.name
            ways.setdefault(lever, set()).add(direction)
    assert {lever: found for lever, found in ways.items() if len(found) > 1} == {}


def test_no_two_sentences_contradict(diagnosis):
    said = verdict(diagnosis)
    texts = [
        *said.texts,
        said.advice,
        *(text for one in diagnosis.findings() for text in (one.sentence, one.advice)),
    ]
    for (a, b), one, other in product(OPPOSITES, texts, texts):
        assert not (a in one and b in other), (one, other)


def test_only_the_finding_on_incorrect_answers_says_what_comes_first(diagnosis):
    found = {one.name: one.advice for one in diagnosis.findings() if " first:" in one.advice}
    assert set(found) <= {"wrong_answers"}
    wrong = next((one for one in diagnosis.findings() if one.name == "wrong_answers"), None)
    if wrong is not None and wrong.fix and wrong.severity == "high":
        assert verdict(diagnosis).advice == wrong.advice


def test_a_label_is_not_the_title_of_the_good_case(diagnosis):
    """*Gold passage first* and *Evidence used most* stood on the questions where the opposite holds."""
    titles = {one.name: title_of(diagnosis, one) for one in diagnosis.findings()}
    for name, label in {"hit_at_1": "Gold not first", "gold_most_influential": "Gold not used most"}.items():
        assert titles.get(name, label) == label
    run = diagnosis.run
    for one in diagnosis.findings():
        if one.name == "hit_at_1":
            gold = run.passages[run.passages["is_gold"].fillna(False) & (run.passages["retrieval_rank"] == 1)]
            assert not set(gold["query_id"]) & set(one.query_ids)


def test_a_link_says_what_is_read(diagnosis):
    """Links read "Read the 40 questions (unsupported)" and "(answers with objections)"."""
    silent = [one.name for one in diagnosis.findings() if one.query_ids and one.n < one.of and not one.reads]
    assert silent == []


def test_no_question_has_the_label_of_what_chance_explains(diagnosis):
    """In the short recorded run 10 questions were listed as *Misleading passage*, by chance 7.6 (p = 1)."""
    found = [(one, title_of(diagnosis, one)) for one in diagnosis.findings()]
    by_chance = {
        title for one, title in found if one.tone == UNCLEAR and (one.p_adjusted or 0) > BEYOND_CHANCE
    }
    labels = {label for listed in worklist(diagnosis)["findings"] for label in listed}
    assert not labels & by_chance
    named = {title for one, title in found if one.query_ids and one.n < one.of}
    assert named - by_chance <= labels
