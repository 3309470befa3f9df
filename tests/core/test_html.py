"""What a notebook shows: the facts, with every text escaped."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

import core
from core.sources.simulation import simulate

HOSTILE = "<img src=x onerror=alert(1)> & 'co'"


class Parsed(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        assert attrs == []
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def run():
    return simulate().renamed(HOSTILE)


def test_a_run_says_its_name_and_its_tables(run):
    found = Parsed(run._repr_html_())
    assert set(found.tags) <= {"div", "strong", "table", "tr", "th", "td"}
    assert found.texts[0] == f"{HOSTILE} (simulated data, run {run.run_id})"
    counts = dict(zip(found.texts[1::2], found.texts[2::2], strict=True))
    assert counts["queries"] == f"{len(run.queries):,} rows"
    assert counts["passages"] == f"{len(run.passages):,} rows"


def test_a_diagnosis_says_the_verdict_and_every_finding(run):
    diagnosis = core.Diagnosis(run)
    found = Parsed(diagnosis._repr_html_())
    assert found.texts[0] == HOSTILE
    said = diagnosis.verdict()
    assert list(said.texts) == found.texts[1 : 1 + len(said.texts)]
    assert found.tags.count("tr") == len(diagnosis.findings()) > 0
    alone = Parsed(said._repr_html_())
    assert alone.texts[: 1 + len(said.texts)] == ["Verdict", *said.texts]
    assert ("What to do: " + said.advice in alone.texts) == bool(said.advice)


def test_an_attribution_says_its_scores_and_how_far_to_trust_them():
    game = core.Game(3, lambda masks: masks @ np.array([1.0, 2.0, -4.0]))
    found = Parsed(core.attribute(game)._repr_html_())
    assert found.texts[0] == "Attribution by surrogate, 8 calls"
    assert "Spearman's ρ 1.00, n = 8" in found.texts[1]
    assert [text.split(" ")[0] for text in found.texts[3::2]] == ["1", "2", "-4"]
