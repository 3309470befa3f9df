"""What identifies a score: the digits by hand, what changes them, what does not, and hostile manifests."""

import copy
import hashlib

import pytest

from core.conformal import Provenance, provenance_of

MANIFEST = {
    "model": {
        "backend": "embedded",
        "name": "M",
        "options": {"revision": "1", "dtype": "float32", "device": "cpu", "batch_size": 1},
    },
    "prompt": {"style": "short", "instruction": "Answer.", "closed_book": "Guess.", "max_tokens": 24},
    "retriever": {"name": "bm25", "k": 10},
    "steps": {
        "uncertainty": {
            "options": {"seed": 0},
            "model": {"name": "M", "options": {"revision": "1", "device": "cpu"}},
            "samples": 10,
            "temperatures": [0.5, 1.2],
            "n_done": 72,
            "seconds": 1.5,
        }
    },
}


def digits(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def changed(*path, value):
    manifest = copy.deepcopy(MANIFEST)
    place = manifest
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return provenance_of(manifest, "s", "uncertainty")


BASE = provenance_of(MANIFEST, "s", "uncertainty")


def test_each_part_by_hand():
    step = '{"model":{"name":"M","options":{"revision":"1"}},"options":{"seed":0},"samples":10,"temperatures":[0.5,1.2]}'
    assert BASE.score == "s · " + digits(step)
    assert BASE.model == "M · " + digits('{"backend":"embedded","name":"M","options":{"revision":"1"}}')
    assert BASE.prompt == "short · " + digits('{"instruction":"Answer.","max_tokens":24,"style":"short"}')
    assert BASE.retriever == "bm25 · " + digits('{"k":10,"name":"bm25"}')
    assert provenance_of(MANIFEST, "s").score == provenance_of(MANIFEST, "s", "claims").score == "s"


@pytest.mark.parametrize(
    ("part", "path", "value"),
    [
        ("model", ("model", "backend"), "ollama"),
        ("model", ("model", "name"), "N"),
        ("model", ("model", "options", "revision"), "2"),
        ("model", ("model", "options", "quantisation"), "Q4"),
        ("prompt", ("prompt", "style"), "full"),
        ("prompt", ("prompt", "instruction"), "Answer well."),
        ("prompt", ("prompt", "max_tokens"), 25),
        ("retriever", ("retriever", "k"), 5),
        ("score", ("steps", "uncertainty", "samples"), 20),
        ("score", ("steps", "uncertainty", "temperatures"), [0.5, 1.3]),
        ("score", ("steps", "uncertainty", "options", "seed"), 1),
        ("score", ("steps", "uncertainty", "model", "options", "revision"), "2"),
    ],
)
def test_what_changes_a_score_changes_its_part_and_no_other(part, path, value):
    found = changed(*path, value=value)
    assert [name for name in Provenance.__slots__ if getattr(found, name) != getattr(BASE, name)] == [part]
    (sentence,) = BASE.differences(found)
    assert sentence == f"calibrated with the {part} {getattr(BASE, part)}, this one is {getattr(found, part)}"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("model", "options", "dtype"), "bfloat16"),
        (("model", "options", "device"), "cuda"),
        (("model", "options", "batch_size"), 8),
        (("steps", "uncertainty", "model", "options", "dtype"), "bfloat16"),
        (("steps", "uncertainty", "n_done"), 3),
        (("steps", "uncertainty", "seconds"), 9.0),
        (("prompt", "closed_book"), "Do not guess."),
        (("notes",), ["x"]),
    ],
)
def test_what_changes_no_score_changes_nothing(path, value):
    assert changed(*path, value=value) == BASE
    assert BASE.differences(changed(*path, value=value)) == ()


def test_an_imported_run_says_little_or_nonsense():
    assert provenance_of({}, "s", "uncertainty") == Provenance("s", "unknown", "unknown", "unknown")
    assert provenance_of({"model": None, "prompt": "x", "retriever": [], "steps": {"u": 7}}, "s", "u") == (
        Provenance("s", "unknown", "unknown", "unknown")
    )
    assert provenance_of({"model": {"n": 1}}, "s").model == "unknown · " + digits('{"n":1}')
    odd = provenance_of({"model": {"name": "a\n\x1b[2Jb\ud800" + "x" * 500, "k": float("nan")}}, "s").model
    assert odd.startswith("a \N{REPLACEMENT CHARACTER}[2Jb\N{REPLACEMENT CHARACTER}xxx") and len(odd) < 100
    assert provenance_of({"model": {"name": ["a"], "options": 3}}, "s").model.startswith("['a'] · ")


def test_a_part_that_a_store_holds_is_shown_in_one_line_and_not_whole():
    odd = Provenance("a\nb" + "x" * 200_000, *(["unknown"] * 3))
    (sentence,) = odd.differences(Provenance(*(["unknown"] * 4)))
    assert sentence.startswith("calibrated with the score a bxxx") and len(sentence) < 200
