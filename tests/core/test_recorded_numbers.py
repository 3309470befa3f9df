"""The recorded run gives the numbers that it gave before, but where a rule was changed on purpose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.diagnosis import Diagnosis
from core.run import Run

BEFORE = json.loads(
    (Path(__file__).parents[1] / "data" / "recorded_summary.json").read_text(encoding="utf-8")
)
# Why a number is another one now, and which.
CHANGED = {
    "n_divergent": ("18 questions whose ties cannot reach the threshold have no label any more", 62, 44),
    "p_random_divergent": (
        "chance deals each question's own tied influences, over the labelled questions only", 0.98697, 0.98561,
    ),
    "failure_modes.inverted": ("below the lower 5 % point of random orders, no longer merely negative", 28, 3),
}  # fmt: skip


def flat(values, prefix=""):
    for key, value in values.items():
        yield from flat(value, f"{prefix}{key}.") if isinstance(value, dict) else [(prefix + key, value)]


@pytest.fixture(scope="module")
def now():
    summary = Diagnosis(Run.load("sample_data/recorded_run")).summary()
    return dict(flat(json.loads(json.dumps(summary))))


@pytest.mark.parametrize(("key", "value"), list(flat(BEFORE)))
def test_every_number_is_there_and_the_same_or_its_change_is_named(now, key, value):
    assert key in now
    if key not in CHANGED:
        assert now[key] == (pytest.approx(value, abs=1e-6) if isinstance(value, float | list) else value)
        return
    reason, before, after = CHANGED[key]
    assert reason and value == pytest.approx(before)
    assert now[key] == pytest.approx(after, abs=1e-5)


def test_divergent_and_without_a_label_add_up(now):
    assert now["n_divergent"] + now["label_reasons.ties_cannot_reach"] == BEFORE["n_divergent"]
    assert now["n_divergent_published"] == BEFORE["n_divergent"]


def test_as_published_gives_the_old_count():
    summary = Diagnosis(Run.load("sample_data/recorded_run"), {"as_published": True}).summary()
    assert (summary["n_divergent"], summary["n_aligned"]) == (BEFORE["n_divergent"], BEFORE["n_aligned"])


def test_what_chance_alone_explains_is_no_finding():
    diagnosis = Diagnosis(Run.load("sample_data/recorded_run"))
    by_chance = diagnosis.summary()["failure_modes_by_chance"]
    assert by_chance["ignored_top_hit"] == pytest.approx(23, abs=0.5)
    assert by_chance["buried_evidence"] == pytest.approx(33.5, abs=0.5)
    assert not {"ignored_top_hit", "buried_evidence", "inverted"} & {f.name for f in diagnosis.findings()}
