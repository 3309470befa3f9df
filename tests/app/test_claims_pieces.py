"""An answer cut at its claims: every character once, in order, with all that covers it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from core.claims import analyse_claims
from core.influence import analyse
from core.run import Run
from tests.app.claims_runs import ANSWER, claims_run
from ui.sections.claims.pieces import legend, lines, notes, pieces


@pytest.fixture(scope="module")
def answer():
    run = claims_run()
    return analyse_claims(run, analyse(run)).answer("q1")


def text_of(piece):
    return "".join(part for part, _ in piece["parts"])


def test_pieces_joined_are_the_answer_and_overlaps_go_to_the_first_claim(answer):
    found = pieces(answer)
    assert "".join(map(text_of, found)) == ANSWER.replace("\u202e", "\ufffd").replace("\u202c", "\ufffd")
    told = [(text_of(piece), piece["state"], piece["claims"], piece["first"]) for piece in found]
    assert told[0] == ("Unwin planned it", "well supported", [0, 1], True)
    assert told[1] == (" in 1903.", "fragile", [1], False)
    assert told[2] == (" ", "", [], False)
    assert told[-1] == ("I hope this helps!", "irrelevant", [5], True)


def test_words_that_no_claim_has_are_marked(answer):
    (piece,) = [piece for piece in pieces(answer) if piece["claims"] == [2]]
    assert [part for part, marked in piece["parts"] if marked] == ["grand"]
    added = notes(answer)[4]
    assert [part for part, marked in added["claim"] if marked] == ["north"]
    assert "Not in that answer span: north" in added["lines"]


def test_lines_of_a_claim_name_what_it_rests_on(answer):
    said = lines(answer, 0)
    assert said[0] == "Verdict supported · U(c) 0.15 · best support 0.90"
    assert said[1] == "Closest passage 1 (Letchworth): “Unwin planned Letchworth.”"
    labels = np.full((6, 2), "kept", dtype=object)
    labels[0] = "changed", "gone"
    removed = lines(replace(answer, causal=labels), 0)[-1]
    assert removed == "Leave-one-out effect: changes or disappears without passage 1 (changed), 2 (gone)"
    joint = lines(answer, 4)
    assert joint[2].startswith("Together: 1 (Letchworth) and 2 (") and joint[2].endswith(", 0.80")
    assert "1 passage of 2 not scored" in lines(answer, 3)
    # Nobody judged it: no closest passage, no number that could be read as one.
    assert lines(answer, 5)[0] == "Verdict irrelevant · U(c) — · best support —"
    assert not any("Closest" in line for line in lines(answer, 5))


def test_legend_counts_the_states_that_occur(answer):
    assert {entry["state"]: entry["n"] for entry in legend(answer)} == dict.fromkeys(
        map(str, answer.states), 1
    )


def test_a_claim_said_twice_begins_twice(answer):
    twice = replace(answer, answer="A b. A b.", spans=(((0, 4), (5, 9)), (), (), (), (), ()))
    assert [(text_of(p), p["first"]) for p in pieces(twice)] == [("A b.", True), (" ", False), ("A b.", True)]


@pytest.mark.parametrize("text", [None, ""])
def test_no_text_has_no_pieces(text, answer):
    assert pieces(replace(answer, answer=text)) == []


def test_places_beyond_the_text_are_cut(answer):
    beyond = replace(answer, answer="Short.", spans=(((3, 99),), ((50, 60),), (), (), (), ()))
    assert [(text_of(p), p["claims"]) for p in pieces(beyond)] == [("Sho", []), ("rt.", [0])]


def test_removals_that_are_not_known_are_not_called_kept(answer):
    unknown = replace(answer, causal=None)
    assert lines(unknown, 0)[-1] == "Leave-one-out effect: unknown, no passage was left out"
    kept = replace(answer, causal=np.full_like(answer.causal, "kept"))
    assert lines(kept, 0)[-1] == "Leave-one-out effect: leaving out any single passage changes nothing"


def test_an_answer_without_claims_has_one_plain_piece():
    queries = pd.DataFrame(
        {"query_id": ["q"], "question": ["?"], "answer": ["Hm\r\nyes."], "answer_status": ["answered"]}
    )
    run = Run.create({"source": "live"}, queries=queries)
    bare = analyse_claims(run, analyse(run)).answer("q")
    assert [(p["state"], text_of(p)) for p in pieces(bare)] == [("", "Hm\nyes.")]
    assert notes(bare) == legend(bare) == []
