"""Composed runs, by hand."""

import pytest

from core.diagnosis import Diagnosis
from core.errors import InputError
from core.report.exports import exporters
from core.run import Run
from core.sources.formats import import_file
from sample_data.compose import composed_run, passage_text

ARTICLES = {
    "bridge.md": "# The old bridge\n\nIt has nine arches. The bridge is old. Nobody knows its builder.\n\nShips pass.\n"
}
LINE = {
    "id": "w1",
    "language": "en",
    "question": "How many arches has the bridge?",
    "references": ["nine"],
    "correct": True,
    "passages": [
        {"article": "bridge.md", "begins": "Ships pass"},
        {"article": "bridge.md", "begins": "It has nine"},
    ],
    "gold": [2],
    "claims": [
        {"text": "The bridge has nine arches.", "planted": "none", "passages": [2]},
        {"text": "Ships cannot pass.", "planted": "negated", "passages": []},
    ],
    "alternatives": [{"text": "Nine.", "meaning": 1}, {"text": "Ten.", "meaning": 2}],
    "llm_score": 0.8,
}


def test_every_table_by_hand():
    run = composed_run([LINE], ARTICLES)
    assert run.mark == run.data_source == "composed" and not run.simulated
    (query,) = run.queries.to_dict("records")
    assert query["answer"] == "The bridge has nine arches. Ships cannot pass." and query["planted_correct"]
    assert run.passages["text"].tolist() == [
        "Ships pass.", "It has nine arches. The bridge is old. Nobody knows its builder."
    ]  # fmt: skip
    assert run.passages["is_gold"].tolist() == [False, True]
    assert run.passages["title"].unique().tolist() == ["The old bridge"]
    planted = run["planted_claims"]
    assert planted["claim_id"].tolist() == ["a1", "a2"]
    assert list(zip(planted["start"], planted["end"], strict=True)) == [(0, 27), (28, 46)]
    assert planted["passages"].tolist() == [["p2"], []]
    assert run["samples"]["planted_meaning"].tolist() == [1, 2]
    assert run["samples"]["logprob_sum"].isna().all() and run["claims"].empty


def test_signals_by_hand():
    (signals,) = composed_run([LINE], ARTICLES)["signals"].to_dict("records")
    # Answer: bridge, nine, arch, ship, pass; passages: ship, pass, nine, arch, bridge, old, know, builder.
    assert signals["similarity"] == pytest.approx(5 / (5 * 8) ** 0.5, abs=1e-4)
    # Question: many, arch, bridge.
    assert signals["lexical"] == 66.7 and signals["llm_score"] == 0.8


def test_a_passage_is_whole_sentences_and_at_most_a_hundred_words():
    article = {"a.md": "One two three. " * 50}
    text = passage_text(
        {"a.md": "Start here. " + article["a.md"]}, {"article": "a.md", "begins": "Start"}, "en"
    )
    assert text.endswith("three.") and len(text.split()) == 98


@pytest.mark.parametrize("begins", ["The bridge was", "e"])
def test_words_that_do_not_name_one_place_are_told(begins):
    with pytest.raises(InputError, match=r"bridge\.md must hold '.*' once, and holds it \d+ times"):
        passage_text(ARTICLES, {"article": "bridge.md", "begins": begins}, "en")


@pytest.mark.parametrize("name", ["ragas", "csv"])
def test_exports_stay_marked_as_composed(name, tmp_path):
    run = composed_run([LINE], ARTICLES)
    assert Run.load(run.save(tmp_path / "run")).mark == "composed"
    data = exporters()[name].write(Diagnosis(run))
    if name != "csv":  # the influence table has no rows without ablations
        imported = import_file(data, f"back{exporters()[name].ending}", name)
        assert imported.run.mark == "composed" and "marked as composed" in imported.report.notes[-1]
