import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.claims import CLAIM_STATES, analyse_claims, claim_states, claim_uncertainty, support_maximum
from core.claims.answer import sharing_most
from core.claims.definitions import REASONS
from core.claims.matrix import any_support
from core.claims.quadrants import QUADRANTS
from core.claims.rafe import VERDICTS
from core.claims.ragchecker import METRICS
from core.claims.scores import passage_scores
from core.diagnosis import Diagnosis
from core.errors import InputError
from core.run import Run
from core.sources.formats import FORMATS, import_file
from core.sources.formats.records import records_of
from core.sources.simulation import SimulationOptions, simulate
from tests.core.claims.claim_runs import CANAL, analysed, claims_run, matrix_question

nan = math.nan
# The two worked matrices: the definition, and probabilities with unscored cells.
BINARY = [[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]]
MIXED = [
    [0.9, 0.1, None],
    [0.2, 0.4, 0.3],
    [0.2, None, None],
    [None, None, None],
    [0.5, 1.0, 0.0],
]


def only(analysis):
    return analysis.queries.iloc[0]


def close(found, expected):
    np.testing.assert_allclose(np.asarray(found, dtype=float), expected, rtol=0, atol=1e-12)


def test_the_binary_matrix_by_hand():
    _, found = analysed([matrix_question(BINARY)])
    close(found.claims["uncertainty"], [0.5, 0.75, 1, 0])
    close(found.claims["support_maximum"], [1, 1, 0, 1])
    close(found.claims["any_support"], [1, 1, 0, 1])
    assert found.claims["state"].to_list() == ["well supported", "fragile", "unsupported", "well supported"]
    assert found.claims["verdict"].to_list() == ["SUPPORTED", "SUPPORTED", "NOT_SUPPORTED", "SUPPORTED"]
    assert found.claims["n_supporting"].to_list() == [2, 1, 0, 4]
    # The first in retrieval order among equals; none where nothing supports.
    assert found.claims["best_passage_id"].fillna("").to_list() == ["p1", "p3", "", "p1"]
    close(found.passages["support"], [1, 1, 1, 1])
    assert found.passages["n_supported"].to_list() == [2, 2, 2, 1]
    q = only(found)
    assert (q["n_claims"], q["n_relevant"], q["n_supported"], q["n_not_supported"]) == (4, 4, 3, 1)
    assert (q["n_irrelevant"], q["n_unscored"], q["n_joint"], q["n_cells"], q["n_cells_unscored"]) == (
        0,
        0,
        0,
        16,
        0,
    )
    assert (q["grounding"], q["grounding_n"], q["grounding_n_left_out"]) == (0.75, 4, 0)
    assert (q["mean_uncertainty"], q["mean_uncertainty_n"]) == (0.5625, 4)
    assert pd.isna(q["reason"]) and found.n_with_claims == 1 and found.judge == "hand"


def test_probabilities_and_unscored_cells_by_hand():
    _, found = analysed([matrix_question(MIXED)])
    close(found.claims["uncertainty"], [0.5, 0.7, 0.8, nan, 0.5])
    close(found.claims["support_maximum"], [0.9, 0.4, 0.2, nan, 1])
    close(found.claims["any_support"], [1 - 0.1 * 0.9, 1 - 0.8 * 0.6 * 0.7, 0.2, nan, 1])
    assert found.claims["state"].to_list() == [
        "fragile", "unsupported", "unscored", "unscored", "well supported",
    ]  # fmt: skip
    assert found.claims["verdict"].to_list() == [
        "SUPPORTED", "NOT_SUPPORTED", "UNSCORED", "UNSCORED", "SUPPORTED",
    ]  # fmt: skip
    assert found.claims["n_unscored"].to_list() == [1, 0, 2, 3, 0]
    q = only(found)
    assert (q["grounding"], q["grounding_n"], q["grounding_n_left_out"]) == (2 / 3, 3, 2)
    assert (q["n_cells"], q["n_cells_unscored"]) == (15, 6)
    assert q["mean_uncertainty"] == pytest.approx(2.5 / 4) and q["mean_uncertainty_n"] == 4


def test_what_is_no_probability_is_unscored():
    _, found = analysed([matrix_question([[-0.5, 0.0], [1.5, 1.0], [-1.0, 2.0]])])
    close(found.claims["uncertainty"], [1, 0, nan])
    assert found.claims["n_unscored"].to_list() == [1, 1, 2]
    assert found.claims["state"].to_list() == ["unscored", "fragile", "unscored"]


def test_the_threshold_moves_verdicts_and_not_uncertainty():
    _, strict = analysed([matrix_question(MIXED)], threshold=0.95)
    assert strict.claims["verdict"].to_list() == [
        "UNSCORED", "NOT_SUPPORTED", "UNSCORED", "UNSCORED", "SUPPORTED",
    ]  # fmt: skip
    close(strict.claims["uncertainty"], [0.5, 0.7, 0.8, nan, 0.5])
    for wrong in (0, 1.5, nan):
        with pytest.raises(ValueError, match="threshold must lie above 0"):
            analyse_claims(strict.run, strict.influence, wrong)


def test_each_row_of_a_run_is_what_its_matrix_says():
    run, found = analysed([matrix_question(MIXED), CANAL, matrix_question(BINARY)])
    for query_id in run.queries["query_id"]:
        answer = found.answer(query_id)
        claims = found.claims[found.claims["query_id"] == query_id]
        m = answer.matrix.probabilities
        assert claims["state"].to_list() == claim_states(m).tolist()
        assert claims["n_supporting"].to_list() == (m >= 0.5).sum(axis=1).tolist()
        assert claims["n_unscored"].to_list() == np.isnan(m).sum(axis=1).tolist()
        for function in (support_maximum, any_support, claim_uncertainty):
            close(claims[function.__name__.replace("claim_", "")], function(m))
        q = found.queries.set_index("query_id").loc[query_id]
        verdicts = answer.verdicts.tolist()
        n, n_known = verdicts.count("SUPPORTED"), len(verdicts) - verdicts.count("UNSCORED")
        assert (q["grounding"], q["grounding_n"]) == (n / n_known, n_known)
        assert q["grounding_n_left_out"] == verdicts.count("UNSCORED")
        close(q["mean_uncertainty"], np.nanmean(claim_uncertainty(m)))


def test_text_and_experiment_side_by_side():
    _, found = analysed([CANAL])
    first, second = found.claims.iloc[0], found.claims.iloc[1]
    # Without p1 the opening is gone, without p2 its year is another; p4 was never left out successfully.
    assert (first["n_removed"], first["n_removals"]) == (2, 3)
    assert (second["n_removed"], second["n_removals"]) == (0, 3)
    p = found.passages.set_index("passage_id")
    assert list(found.passages["passage_id"]) == ["p3", "p1", "p2", "p4"]  # the run's order
    assert p.loc[["p1", "p2", "p3", "p4"], "quadrant"].to_list() == [
        "used evidence", "distractor", "redundant or wasted", "undefined",
    ]  # fmt: skip
    close(p.loc[["p1", "p2", "p3", "p4"], "support"], [0.9, 0.2, 0.6, 0.4])


def test_one_answer_in_order_of_retrieval():
    _, found = analysed([CANAL])
    answer = found.answer("canal")
    assert answer.passage_ids == ("p1", "p2", "p3", "p4")
    assert answer.titles == ("Canal", "", "", "")
    assert answer.matrix.claims == ("The canal opened in 1914.", "It has twelve locks and three lakes")
    close(answer.matrix.probabilities, [[0.9, 0.1, 0.2, 0], [0, 0.2, 0.6, 0.4]])
    # The second has no place in the tables; its text is found in the answer, without the full stop.
    assert answer.spans == (((0, 25),), ((26, 61),))
    assert answer.answer[26:61] == "It has twelve locks and three lakes"
    assert answer.causal.tolist() == [
        ["gone", "changed", "kept", "unknown"],
        ["kept", "kept", "kept", "unknown"],
    ]
    # The first as the run says, the other as words are shared; where none is, no sentence is meant.
    assert answer.sentences.tolist() == [
        ["The canal opened in 1914.", "", "", ""],
        ["", "", "Twelve locks there are.", ""],
    ]
    assert answer.agreement[0, 0] == 1 and np.isnan(answer.agreement).sum() == 7
    assert (answer.added, answer.dropped) == (((), ()), (("panama",), ()))
    assert (answer.judge, answer.reason) == ("hand", None)
    assert answer.verdicts.tolist() == ["SUPPORTED", "SUPPORTED"]
    with pytest.raises(InputError, match="query_id must be a question of the run, got 'nobody'"):
        found.answer("nobody")


def test_places_that_make_no_sense_are_looked_for_in_the_text():
    odd = [
        {"text": "one", "start": 5, "end": 3},
        {"text": "two", "start": 0, "end": 999},
        {"text": "three", "spans": ["x", "4:2", "0:3", "-1:2"], "start": 1, "end": 2},
        {"text": "nowhere"},
        {"text": "..."},
        {"text": "One", "spans": ["9:12", "0:3"]},
        {"text": "Two", "spans": ["5:8", "2:2", "0:3"]},
        {"text": "Two", "start": 0},
        {"text": "One", "end": 8},
        {"text": "Two.", "start": 5, "end": 9},
    ]
    _, found = analysed([{"query_id": "q", "answer": "One. Two.", "claims": odd}])
    assert found.answer("q").spans == (
        *(((0, 3),), ((5, 8),), ((0, 3),), (), (), ((0, 3),)),
        *(((0, 3), (5, 8)), ((5, 8),), ((0, 3),), ((5, 9),)),
    )
    # Of several places the first.
    assert found.claims[["start", "end"]].iloc[6].to_list() == [0, 3]
    assert (
        found.claims["start"].to_list()[:3] == [0, 5, 0]
        and found.claims["start"].isna().to_list()[3:5] == [True] * 2
    )


def test_two_passages_together():
    matrix = [[0.4, 0.4, 0.1], [0.4, 0.6, 0.1], [0.4, None, 0.4], [0.1, 0.1, 0.1]]
    joint = [
        ("a1", "p2", "p1", 0.7), ("a1", "p1", "p3", 0.9), ("a2", "p1", "p3", 0.9), ("a3", "p1", "p3", 0.5),
        ("a4", "p1", "p2", 0.4), ("a4", "p2", "p3", 1.5), ("a4", "p1", "p1", 0.9), ("a4", "p1", "gone", 0.9), ("gone", "p1", "p2", 0.9),
    ]  # fmt: skip
    _, found = analysed([matrix_question(matrix, query_id="q", joint=joint)])
    assert found.claims["state"].to_list() == ["joint", "fragile", "joint", "unsupported"]
    assert found.claims["verdict"].to_list() == ["SUPPORTED", "SUPPORTED", "SUPPORTED", "NOT_SUPPORTED"]
    assert found.claims["joint"].to_list() == [True, False, True, False]
    q = only(found)
    assert (q["n_supported"], q["n_joint"], q["n_not_supported"], q["grounding"]) == (3, 2, 1, 0.75)
    answer = found.answer("q")
    assert answer.joint == ((0, (0, 2), 0.9), (0, (0, 1), 0.7), (2, (0, 2), 0.5))
    assert answer.states.tolist() == ["joint", "fragile", "joint", "unsupported"]
    # At a lower threshold the first claim needs no pair.
    _, low = analysed([matrix_question(matrix, joint=joint)], threshold=0.4)
    assert low.claims["joint"].to_list() == [False, False, False, True]


def test_verdicts_of_a_file_against_its_cells():
    claims = [
        {"text": "A", "verdict": "SUPPORTED", "cells": {"p1": 0.0}},  # the cells say otherwise
        {"text": "B", "verdict": "SUPPORTED", "cells": {"p1": 1.0}},
        {"text": "C", "verdict": "NOT_SUPPORTED"},  # no cells: the file's
        {"text": "D", "verdict": "SUPPORTED", "relevance": "IRRELEVANT"},
        {"text": "E", "verdict": "SUPPORTED", "cells": {"p1": None}},  # looked at without success
        {"text": "F"},
        {"text": "G", "verdict": "NOT_SUPPORTED", "cells": {"nowhere": 1.0}},
        {"text": "H is so", "verdict": "IRRELEVANT"},  # no verdict on something to support
    ]
    _, found = analysed([{"answer": "A.", "passages": [{"passage_id": "p1"}], "claims": claims}])
    assert found.claims["verdict"].to_list() == [
        "NOT_SUPPORTED", "SUPPORTED", "NOT_SUPPORTED", "IRRELEVANT", "UNSCORED", "UNSCORED", "NOT_SUPPORTED",
        "UNSCORED",
    ]  # fmt: skip
    assert found.claims["state"].to_list() == [
        "unsupported", "fragile", "unscored", "irrelevant", "unscored", "unscored", "unscored", "unscored",
    ]  # fmt: skip
    assert (found.n_verdicts_changed, found.n_verdicts_from_file) == (1, 2)
    q = only(found)
    assert (q["n_supported"], q["n_not_supported"], q["n_irrelevant"], q["n_unscored"]) == (1, 3, 1, 3)
    assert (q["grounding"], q["grounding_n"], q["grounding_n_left_out"]) == (0.25, 4, 3)


def test_a_joint_claim_that_the_file_calls_not_supported_has_not_changed():
    claim = {"text": "A", "verdict": "NOT_SUPPORTED", "cells": {"p1": 0.4, "p2": 0.4}}
    passages = [{"passage_id": "p1"}, {"passage_id": "p2"}]
    _, found = analysed([{"passages": passages, "claims": [claim], "joint": [("a1", "p1", "p2", 0.8)]}])
    assert found.claims["verdict"].to_list() == ["SUPPORTED"] and found.n_verdicts_changed == 0


def test_why_an_answer_has_no_grounding():
    one = [{"passage_id": "p1"}]
    scored = [{"text": "A statement", "cells": {"p1": 1.0}}]
    questions = {
        "error": {"answer": None, "answer_status": "error", "passages": one},
        "empty": {"answer": "", "answer_status": "empty", "passages": one},
        "abstained": {"answer": "I don't know.", "answer_status": "abstained", "passages": one,
                      "claims": scored},
        "no_claims": {"answer": "…", "passages": one},
        "no_relevant_claims": {"answer": "I hope this helps!", "passages": one,
                               "claims": [{"text": "I hope this helps!"}, {"text": "I don't know.", "cells": {"p1": 0.0}}]},
        "no_passages": {"answer": "Paris", "claims": [{"text": "Paris"}]},
        "unscored": {"answer": "Paris", "passages": one, "claims": [{"text": "Paris", "cells": {"p1": None}}]},
    }  # fmt: skip
    run, found = analysed(
        [{"query_id": name, **q} for name, q in questions.items()],
        {"steps": {"claims": {"n_not_extracted": 0}}},
    )
    q = found.queries
    assert q["reason"].to_list() == list(questions) and set(q["reason"]) < set(REASONS)
    assert q["grounding"].isna().all() and (q[["grounding_n", "grounding_n_left_out"]] == 0).all(axis=None)
    assert q["mean_uncertainty"].isna().all()
    assert (
        q["n_supported"] + q["n_not_supported"] + q["n_irrelevant"] + q["n_unscored"] == q["n_claims"]
    ).all()
    for name in questions:
        assert found.answer(name).reason == name
    curve = found.f1_curve([1, 3])
    assert curve["mean"].isna().all() and curve["low"].isna().all()
    assert (curve["n"] == 0).all() and (curve["n_undefined"] == len(run.queries)).all()
    assert set(found.passages["quadrant"]) == {"undefined"}
    # A step that says nothing of questions left has none.
    _, whole = analysed([questions["no_claims"]], {"steps": {"claims": {}}})
    assert whole.queries["reason"].to_list() == ["no_claims"]
    # A run that was stopped, or a file with claims for some questions only, has not looked at the others.
    for manifest in ({"steps": {"claims": {"n_not_extracted": 2}}}, None):
        _, part = analysed([{"query_id": name, **q} for name, q in questions.items()], manifest)
        assert part.queries["reason"].to_list()[3] == "not_run"


def test_a_one_word_answer_is_an_answer():
    _, found = analysed([matrix_question([[0.9, 0.1]], ["Paris"], query_id="q", answer="Paris")])
    q = only(found)
    assert (q["grounding"], q["grounding_n"], q["n_claims"], found.n_with_claims) == (1, 1, 1, 1)
    assert found.answer("q").spans == (((0, 5),),)


def test_a_run_without_claims():
    simulated = simulate(SimulationOptions(queries=10, passages=4))
    run = Run.create({"source": "simulation"}, queries=simulated.queries, passages=simulated.passages)
    found = Diagnosis(run)["claims"]
    assert not found.extracted and found.n_with_claims == 0 and found.judge is None
    assert set(found.queries["reason"]) == {"not_run"}
    assert len(found.claims) == len(found.unsupported) == len(found.to_frame()) == 0
    assert set(found.passages["quadrant"]) == {"undefined"} and found.passages["support"].isna().all()
    assert found.passages["n_supported"].isna().all()
    assert set(found.ragchecker["reason"]) == {"not_run"} and found.ragchecker_means["mean"].isna().all()
    answer = found.answer(run.queries["query_id"][0])
    assert answer.matrix.probabilities.shape == (0, 4) and answer.claim_ids == () and answer.judge == ""


def test_what_to_read_first():
    _, found = analysed(
        [
            matrix_question([[0.3], [0.9]], ["half a", "half b"]),
            matrix_question([[0.2], [0.1]], ["none a", "none b"]),
            matrix_question([[0.0]], ["one"]),
            matrix_question([[0.0], [0.4], [0.9]], ["two a", "two b", "two c"]),
        ]
    )
    # Two unsupported claims come before one; of these, grounding 0 before 1/3 and 1/2.
    assert found.unsupported["text"].to_list() == ["none b", "none a", "two a", "two b", "one", "half a"]
    assert set(found.unsupported["verdict"]) == {"NOT_SUPPORTED"}
    assert list(found.unsupported.columns) == [*found.claims.columns, "question"]
    assert found.unsupported.index.to_list() == [0, 1, 2, 3, 4, 5]
    # The others follow, each answer in its own order.
    assert found.claims["text"].iloc[found.reading_order].to_list() == [
        "none a", "none b", "two a", "two b", "two c", "one", "half a", "half b",
    ]  # fmt: skip


def test_f1_against_k_by_hand():
    # 2 of 2 supported, 1 of 2 supported, nothing to judge.
    _, found = analysed(
        [matrix_question([[1], [1]]), matrix_question([[1], [0]]), {"answer": "", "answer_status": "empty"}]
    )
    curve = found.f1_curve([1, 2, 4])
    # K = 2: 1 and P = R = 1/2; K = 4: P = 1, R = 1/2 and P = 1/2, R = 1/4.
    close(curve["mean"], [(1 + 2 / 3) / 2, (1 + 1 / 2) / 2, (2 / 3 + 1 / 3) / 2])
    assert curve["n"].to_list() == [2, 2, 2] and curve["n_undefined"].to_list() == [1, 1, 1]
    assert ((curve["low"] <= curve["mean"]) & (curve["mean"] <= curve["high"])).all()
    assert curve["low"].min() >= 0 and curve["high"].max() <= 1


def test_what_passages_support_where_cells_are_open():
    none = {"probability": None}
    claims = [
        {"text": "First fact", "cells": {"p1": 0.9, "p2": 0.2, "p3": 0.2, "p4": none}},
        {"text": "Second fact", "cells": {"p1": none, "p2": 0.1, "p3": none, "p4": none}},
        {"text": "Talk", "relevance": "IRRELEVANT", "cells": {"p2": none, "p3": 0.9}},
    ]
    passages = [{"passage_id": f"p{j}"} for j in (1, 2, 3, 4)]
    _, found = analysed([{"passages": passages, "claims": claims}, {"passages": passages[:1]}])
    scores = passage_scores(found.layout, found.scores["relevant"].to_numpy(), 0.5)
    # One claim settles it, all settle the contrary; the last passage has no claim.
    close(scores["supports"], [1, 0, nan, nan, nan])
    close(scores["support"], [0.9, 0.2, 0.2, nan, nan])
    close(scores["n_supported"], [1, 0, 0, 0, nan])


def test_without_leave_one_out_answers_nothing_is_known_of_removals():
    _, found = analysed([matrix_question(MIXED)])
    assert found.claims["n_removed"].isna().all() and set(found.claims["n_removals"]) == {0}
    assert found.claims[["planted", "planted_error"]].isna().all(axis=None)


def test_several_judges_are_named_and_a_range_that_makes_no_sense_is_no_sentence():
    def cell(judge, **place):
        return {"probability": 1.0, "judge": judge, **place}

    cells = {"p1": cell("me", start=0), "p2": cell("you", end=11), "p3": cell("me", start=0, end=99)}
    cells["p4"] = cell("me", start=12, end=30)
    passages = [{"passage_id": f"p{j}", "text": "Ships wait. A canal was opened."} for j in (1, 2, 3, 4)]
    claims = [{"text": "The canal is old.", "cells": cells}]
    _, found = analysed([{"query_id": "q", "passages": passages, "claims": claims}])
    assert found.judge == found.answer("q").judge == "me, you"
    # Only the last says where; of the others it is the sentence that shares a word.
    shared = "A canal was opened."
    assert found.answer("q").sentences.tolist() == [[shared, shared, shared, "A canal was opened"]]


@pytest.mark.parametrize(
    ("claim", "passage", "expected"),
    [
        ("It opened in 1914.", "Ships wait. The canal opened in 1914. It opened locks.", "The canal opened in 1914."),
        ("Ships of the canal", "Ships wait. The canal opened in 1914. It opened locks.", "Ships wait."),  # of equals the first
        ("locks opened", "Ships wait. The canal opened in 1914. It opened locks.", "It opened locks."),
        ("the of it", "Ships wait. It is of the end.", ""),
        ("ships", "", ""),
    ],
)  # fmt: skip
def test_the_sentence_that_shares_most_words(claim, passage, expected):
    assert sharing_most([claim], passage) == [expected]


def test_claims_of_the_reference_are_no_claims_of_the_answer():
    one = matrix_question([[1, 0]])
    one["claims"].append(
        {"text": "From the reference", "claim_id": "r1", "side": "reference", "cells": {"p1": 0.0, "p2": 1.0}}
    )
    _, found = analysed([one])
    assert found.claims["claim_id"].to_list() == ["a1"] and only(found)["n_claims"] == 1
    assert found.answer("q1").matrix.probabilities.shape == (1, 2)


E_, N_ = "Entailment", "Neutral"


def ragchecker_file():
    """Five claims of the answer, one of each fate; three of the reference; only the first passage relevant."""
    return {
        "results": [
            {
                "query_id": "x",
                "query": "When did the canal open?",
                "gt_answer": "It opened in 1914.",
                "response": "It opened in 1914, they say.",
                "retrieved_context": [{"doc_id": d, "text": d} for d in "abc"],
                "response_claims": ["c1 is so", "c2 is so", "c3 is so", "c4 is so", "c5 is so"],
                "gt_answer_claims": ["r1 is so", "r2 is so", "r3 is so"],
                "answer2response": [E_, N_, "Contradiction", E_, N_],
                "response2answer": [E_, N_, E_],
                "retrieved2response": [[E_, N_, N_], [E_, E_, N_], [N_, E_, N_], [N_, N_, N_], [N_, N_, N_]],
                "retrieved2answer": [[E_, N_, N_], [E_, N_, N_], [N_, N_, N_]],
            }
        ]
    }


def test_ragchecker_metrics_of_an_imported_file_by_hand():
    run = import_file(json.dumps(ragchecker_file()).encode(), "x.json").run
    found = Diagnosis(run)["claims"]
    row = found.ragchecker.iloc[0]
    assert {name: row[name] for name in METRICS} == pytest.approx(
        {
            "precision": 2 / 5, "recall": 2 / 3, "f1": 0.5, "claim_recall": 2 / 3, "context_precision": 1 / 3,
            "context_utilization": 1 / 2, "noise_sensitivity_in_relevant": 1 / 5,
            "noise_sensitivity_in_irrelevant": 1 / 5, "hallucination": 1 / 5, "self_knowledge": 1 / 5,
            "faithfulness": 3 / 5,
        }
    )  # fmt: skip
    assert pd.isna(row["reason"]) and only(found)["grounding"] == 3 / 5
    means = found.ragchecker_means.set_index("metric")
    assert means.loc["f1", "mean"] == pytest.approx(0.5) and (means["n"] == 1).all()


def test_ragchecker_metrics_without_a_reference_or_an_answer():
    silent = matrix_question([[1.0]], answer="I don't know.", answer_status="abstained")
    silent["claims"] += [
        {"text": "r", "claim_id": "r1", "side": "reference", "counterpart": N_, "cells": {"p1": 1.0}}
    ]
    talk = matrix_question([[1.0, 0.0]])
    talk["claims"] += [{"text": "I hope this helps!", "claim_id": "a2"}]
    _, found = analysed([talk, silent, {"answer": ""}])
    plain, abstained, none = (found.ragchecker.iloc[i] for i in range(3))
    assert plain["faithfulness"] == 1 and plain["reason"] == "no_reference" and np.isnan(plain["precision"])
    # What was retrieved of the reference is known; what the answer says of it is no question.
    assert (
        abstained["claim_recall"] == 1
        and np.isnan(abstained["recall"])
        and np.isnan(abstained["faithfulness"])
    )
    assert abstained["reason"] == "no_answer_claims" and none["reason"] == "not_run"
    assert set(found.ragchecker["reason"]) <= set(REASONS)
    means = found.ragchecker_means.set_index("metric")
    assert means.loc["faithfulness", ["n", "n_undefined"]].to_list() == [1, 2]


def test_one_side_is_enough_to_compare_with_a_reference():
    def row(answer, reference):
        one = matrix_question([[1.0]])
        one["claims"][0]["counterpart"] = answer
        one["claims"] += [
            {"text": "r is so", "claim_id": "r1", "side": "reference", "cells": {"p1": 1.0}}
        ] * reference
        return analysed([one])[1].ragchecker.iloc[0]

    # The reference states nothing, but the answer was compared with it.
    assert row(E_, False)["reason"] == "no_reference_claims"
    # The reference has a claim, but nobody compared.
    known = row(None, True)
    assert (known["claim_recall"], known["reason"]) == (1, "unscored")
    assert row(None, False)["reason"] == "no_reference"


def test_a_run_of_our_own_goes_to_ragchecker_and_back():
    one = matrix_question([[0.9, 0.2], [0.5, 0.49], [0.1, 0.3]], ["First fact", "Second fact", "Third fact"])
    one |= {"reference_answers": ["First fact"]}
    for claim, label in zip(one["claims"], (E_, N_, N_), strict=True):
        claim |= {"side": "answer", "counterpart": label, "relevance": "RELEVANT"}
    one["claims"] += [
        {"text": "I hope this helps!", "claim_id": "a4", "side": "answer", "relevance": "IRRELEVANT"},
        {"text": "A reference fact", "claim_id": "r1", "side": "reference", "counterpart": E_,
         "cells": {"p1": {"probability": 0.8, "label": "SUPPORTED"}, "p2": {"probability": 0.1, "label": "NOT_SUPPORTED"}}},
    ]  # fmt: skip
    run, own = analysed([one])
    file = json.loads(FORMATS["ragchecker"].write(records_of(run)))
    result = file["results"][0]
    assert result["response_claims"] == ["First fact", "Second fact", "Third fact"]
    assert result["retrieved2response"] == [[E_, N_], [E_, N_], [N_, N_]]
    assert result["retrieved2answer"] == [[E_, N_]]
    assert (result["answer2response"], result["response2answer"]) == ([E_, N_, N_], [E_])
    back = import_file(json.dumps(file).encode(), "back.json").run
    again = Diagnosis(back)["claims"]
    pd.testing.assert_frame_equal(again.ragchecker, own.ragchecker)
    assert own.ragchecker.iloc[0]["precision"] == pytest.approx(1 / 3) and only(own)["grounding"] == 2 / 3
    for name in ("n_supported", "n_not_supported", "grounding"):
        assert again.queries[name].to_list() == own.queries[name].to_list()
    assert (only(own)["n_irrelevant"], only(again)["n_irrelevant"]) == (1, 0)  # not written
    # A file of labels comes back as it was.
    assert json.loads(FORMATS["ragchecker"].write(records_of(back))) == file


def test_rag_uncertainty_results():
    entry = {
        "category": "history",
        "question": "What was the wall?",
        "answer": "The wall divided the city. It fell in 1989. I hope this helps.",
        "atomic_facts": ["The wall divided the city", "It fell in 1989", "I hope this helps"],
        "rafe_details": [
            {"claim": "The wall divided the city", "label": "NOT_SUPPORTED"},
            {"claim": "It fell in 1989", "label": "SUPPORTED"},
            {"claim": "I hope this helps", "label": "IRRELEVANT"},
            {"claim": "It was long", "label": "SUPPORTED"},
        ],
        # Documents first; doc_1 lacks a claim, which is no support there.
        "cem_matrix": {
            "doc_0": {"The wall divided the city": 1, "It fell in 1989": 1},
            "doc_1": {"The wall divided the city": 1},
        },
    }
    run = import_file(json.dumps([entry]).encode(), "r.json").run
    found = Diagnosis(run)["claims"]
    assert found.claims["state"].to_list() == ["well supported", "fragile", "irrelevant", "unscored"]
    assert found.claims["verdict"].to_list() == ["SUPPORTED", "SUPPORTED", "IRRELEVANT", "SUPPORTED"]
    close(found.claims["uncertainty"], [0, 0.5, nan, nan])
    assert (found.n_verdicts_changed, found.n_verdicts_from_file) == (1, 1)
    assert found.answer(run.queries["query_id"][0]).spans[:2] == (((0, 25),), ((27, 42),))


def test_one_row_per_claim_and_passage():
    _, found = analysed([{"answer": "Paris", "claims": [{"text": "Paris"}]}, CANAL])
    frame = found.to_frame()
    assert len(frame) == 1 + 2 * 4
    alone, frame = frame.iloc[0], frame.iloc[1:]
    first = frame.iloc[0]
    assert (first["claim"], first["passage_id"], first["probability"]) == (
        "The canal opened in 1914.",
        "p1",
        0.9,
    )
    assert (first["sentence"], first["causal"], first["quadrant"]) == (
        "The canal opened in 1914.",
        "gone",
        "used evidence",
    )
    assert frame["passage_id"].to_list()[:4] == ["p1", "p2", "p3", "p4"]
    assert frame["causal"].to_list()[4:8] == ["kept", "kept", "kept", "unknown"]
    assert alone["claim"] == "Paris"
    assert found.claims["best_passage_id"].fillna("").to_list() == ["", "p1", "p3"]
    assert alone[["passage_id", "probability", "causal", "quadrant"]].isna().all()


def test_a_saved_run_says_the_same(tmp_path):
    run, found = analysed([CANAL, matrix_question(MIXED)])
    run.save(tmp_path / "run")
    loaded = Run.load(tmp_path / "run")
    again = Diagnosis(loaded)["claims"]
    pd.testing.assert_frame_equal(again.queries, found.queries)
    pd.testing.assert_frame_equal(again.to_frame(), found.to_frame())


ids = st.sampled_from(["a", "b", "c"])
texts = st.sampled_from(
    ["It opened in 1914.", "I don't know.", "=1+1", "锁有十二个。", "I hope this helps!", "  "]
)
cells = st.one_of(st.none(), st.sampled_from([0.0, 0.3, 0.5, 1.0, -0.2, 1.7, math.inf]))


@st.composite
def ragged_questions(draw):
    return [
        {
            "query_id": f"q{n}",
            "answer": draw(st.none() | texts),
            "answer_status": draw(st.sampled_from(["answered", "abstained", "empty", "error", None])),
            "passages": [
                {"passage_id": p, "retrieval_rank": draw(st.sampled_from([1.0, 2.0, 2.5])),
                 "text": draw(st.none() | texts), "ablated_answer": draw(st.none() | texts)}
                for p in draw(st.lists(ids, unique=True))
            ],
            "claims": [
                {"claim_id": f"c{i}", "text": draw(texts), "side": draw(st.sampled_from(["answer", "reference", None])),
                 "relevance": draw(st.sampled_from(["RELEVANT", "IRRELEVANT", None])),
                 "verdict": draw(st.sampled_from(["SUPPORTED", "NOT_SUPPORTED", None])),
                 "counterpart": draw(st.sampled_from([E_, N_, None])),
                 "start": draw(st.none() | st.integers(0, 9)), "end": draw(st.none() | st.integers(0, 9)),
                 "cells": {p: {"probability": draw(cells), "start": draw(st.none() | st.integers(0, 99)), "end": 3}
                           for p in draw(st.lists(ids, unique=True))}}
                for i in range(draw(st.integers(0, 3)))
            ],
            "joint": draw(st.lists(st.tuples(st.sampled_from(["c0", "c1"]), ids, ids, cells), max_size=2,
                                   unique_by=lambda pair: pair[:3])),
        }
        for n in range(draw(st.integers(1, 3)))
    ]  # fmt: skip


@given(ragged_questions(), st.sampled_from([0.3, 0.5, 1.0]))
@settings(max_examples=25)
def test_counts_add_up_whatever_the_tables_hold(questions, threshold):
    run = claims_run(questions)
    found = Diagnosis(run, {"support": threshold})["claims"]
    q = found.queries
    assert (
        q["n_supported"] + q["n_not_supported"] + q["n_irrelevant"] + q["n_unscored"] == q["n_claims"]
    ).all()
    assert (q["n_relevant"] + q["n_irrelevant"] == q["n_claims"]).all() and (
        q["n_joint"] <= q["n_supported"]
    ).all()
    assert (q["reason"].isna() == q["grounding"].notna()).all()
    assert q["grounding"].dropna().between(0, 1).all() and q["mean_uncertainty"].dropna().between(0, 1).all()
    assert set(q["reason"].dropna()) | set(found.ragchecker["reason"].dropna()) <= set(REASONS)
    assert set(found.claims["state"]) <= set(CLAIM_STATES) and set(found.claims["verdict"]) <= set(VERDICTS)
    assert set(found.passages["quadrant"]) <= {*QUADRANTS, "undefined"}
    assert len(found.claims) == q["n_claims"].sum() and len(found.passages) == len(run.passages)
    assert found.claims["uncertainty"].dropna().between(0, 1).all()
    both = found.claims.dropna(subset=["start"])
    assert (both["start"] < both["end"]).all()
    for query_id in run.queries["query_id"]:
        answer = found.answer(query_id)
        assert answer.matrix.probabilities.shape == (len(answer.claim_ids), len(answer.passage_ids))
        assert answer.states.tolist() == found.claims[found.claims["query_id"] == query_id]["state"].to_list()
    curve = found.f1_curve([1, 5])
    assert (curve["n"] + curve["n_undefined"] == len(q)).all()
    assert len(found.to_frame()) >= len(found.claims)


def test_another_threshold_lays_nothing_out_and_compares_no_answer_again(monkeypatch):
    run, _ = analysed([CANAL])
    diagnosis = Diagnosis(run)
    assert diagnosis["claims"].claims["n_removed"].notna().any()
    for name in ("_rows_of", "causal_labels"):
        monkeypatch.setattr(f"core.claims.layout.{name}", None)
    moved = diagnosis.at({"support": 0.9})["claims"]
    frames = moved.queries, moved.claims, moved.passages
    monkeypatch.undo()
    new = analyse_claims(run, moved.influence, 0.9)
    for again, fresh in zip(frames, (new.queries, new.claims, new.passages), strict=True):
        pd.testing.assert_frame_equal(again, fresh)
    assert moved.threshold == 0.9


def test_irrelevant_claims_are_removed_with_nobody():
    """Leaving p1 out makes both claims disappear, but only one of them could be supported."""
    one = matrix_question(
        [[0.9]], ["The canal opened in 1914."], answer="The canal opened in 1914. I hope this helps!"
    )
    one["passages"][0] |= {"ablated_answer": "Coffee grows there.", "ablated_status": "answered"}
    one["claims"].append({"text": "I hope this helps!", "claim_id": "a2", "relevance": "IRRELEVANT"})
    _, found = analysed([one])
    assert found.claims["n_removed"].to_list() == [1, 1]


def test_an_ablation_in_error_has_no_effect_even_if_it_has_text():
    one = matrix_question([[0.9, 0.9]], ["It opened in 1914."], answer="It opened in 1914.")
    one["passages"][0] |= {"ablated_answer": "Rome", "ablated_status": "error"}
    one["passages"][1] |= {"ablated_answer": "Rome", "ablated_status": None}
    _, found = analysed([one])
    assert found.answer("q1").causal.tolist() == [["unknown", "changed"]]
    assert found.claims[["n_removed", "n_removals"]].to_numpy().tolist() == [[1, 1]]


def test_a_verdict_of_the_file_that_agrees_with_a_single_passage_or_with_a_pair_has_not_changed():
    def changed(verdict):
        claim = {"text": "A", "verdict": verdict, "cells": {"p1": 0.4, "p2": 0.4}}
        passages = [{"passage_id": "p1"}, {"passage_id": "p2"}]
        one = {"passages": passages, "claims": [claim], "joint": [("a1", "p1", "p2", 0.8)]}
        return analysed([one])[1].n_verdicts_changed

    # By single passages it is not supported, by the pair it is: a file may have looked at either.
    assert (changed("SUPPORTED"), changed("NOT_SUPPORTED")) == (0, 0)
    cells = {"text": "A", "verdict": "SUPPORTED", "cells": {"p1": 0.4}}
    assert analysed([{"passages": [{"passage_id": "p1"}], "claims": [cells]}])[1].n_verdicts_changed == 1


def test_an_irrelevant_claim_enters_no_metric_of_ragchecker():
    plain = {
        **matrix_question([[1.0, 0.0]], ["It opened in 1914."]),
        "claims": [
            {"text": "It opened in 1914.", "claim_id": "a1", "counterpart": E_, "cells": {"p1": 1.0, "p2": 0.0}},
            {"text": "It is long.", "claim_id": "r1", "side": "reference", "counterpart": N_,
             "cells": {"p1": 0.0, "p2": 1.0}},
        ],
    }  # fmt: skip
    talk = {
        "text": "So they say.",
        "relevance": "IRRELEVANT",
        "counterpart": N_,
        "cells": {"p1": 0.0, "p2": 1.0},
    }
    more = {**plain, "claims": [*plain["claims"], talk | {"claim_id": "a2"},
                                talk | {"claim_id": "r2", "side": "reference", "counterpart": E_}]}  # fmt: skip
    first, second = (analysed([one])[1].ragchecker.drop(columns="query_id") for one in (plain, more))
    assert first.iloc[0]["precision"] == 1 and first.iloc[0]["recall"] == 0
    pd.testing.assert_frame_equal(first, second)


@pytest.mark.parametrize("name", ["recorded_run", "worked_answers"])
def test_one_answer_has_the_rows_that_it_has_among_all(name):
    found = Diagnosis(Run.load(f"sample_data/{name}"))["claims"]
    assert found.claims["n_removals"].any() == (name == "recorded_run")
    for query_id in found.queries["query_id"].head(25):
        expected = found.claims[found.claims["query_id"] == query_id].reset_index(drop=True)
        pd.testing.assert_frame_equal(found.claims_of(query_id), expected, check_dtype=not expected.empty)


def test_a_stranger_has_none():
    found = Diagnosis(Run.load("sample_data/recorded_run"))["claims"]
    with pytest.raises(InputError, match="must be a question of the run"):
        found.claims_of("nobody")
