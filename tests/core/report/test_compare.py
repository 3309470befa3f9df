"""Runs side by side, with values worked out on paper."""

import pandas as pd
import pytest

from core.diagnosis import Diagnosis
from core.errors import InputError
from core.report.compare import (
    check_comparable,
    headline_table,
    nearest,
    questions_of,
    setup_differences,
    shared_questions,
    sides_of,
)
from core.run import Run
from tests.core.claims.claim_runs import CANAL, claims_run

QUESTIONS = {"q1": "Who built it?", "q2": "When was it built?", "q3": "How long is it?"}


def make_run(answers, influences=None, questions=None, **manifest):
    """One run with a question per answer; three passages each, in the order of use 0.9, 0.5, 0.1."""
    texts = questions or QUESTIONS
    queries = pd.DataFrame(
        {
            "query_id": list(answers),
            "question": [texts[q] for q in answers],
            "answer": list(answers.values()),
            "answer_status": ["empty" if a == "" else "answered" for a in answers.values()],
            "reference_answers": [["1931"] if q == "q2" else None for q in answers],
        }
    )
    passages = pd.DataFrame(
        [
            (q, f"p{i}", i + 1, value)
            for q in answers
            for i, value in enumerate((influences or {}).get(q, [0.9, 0.5, 0.1]))
        ],
        columns=["query_id", "passage_id", "retrieval_rank", "influence_score"],
    )
    return Run.create({"source": "live", "name": "Run", **manifest}, queries=queries, passages=passages)


def sides(*runs):
    return sides_of([Diagnosis(run) for run in runs])


MANIFEST = {
    "dataset": {"name": "questions", "digest": "d" * 64},
    "model": {"name": "small", "options": {"dtype": "bfloat16", "device": "cpu"}},
    "prompt": {"style": "short", "instruction": "Be brief.", "max_tokens": 24, "template": "never shown"},
    "retriever": {"name": "bm25", "k": 3},
    "options": {"retriever": "bm25", "k": 3, "style": "short", "max_tokens": 24, "repeats": 1, "closed_book": True},
    "cost": {"calls": 1234, "cached": 0, "prompt_tokens": 98765, "seconds": 12.5},
}  # fmt: skip


def test_headlines_by_hand():
    # q1 in order (ρ 1), q2 reversed (ρ -1), q3 without a value.
    a = make_run(
        {"q1": "Unwin", "q2": "1931", "q3": ""}, {"q2": [0.1, 0.5, 0.9], "q3": [0, 0, 0]}, **MANIFEST
    )
    b = make_run({"q1": "Unwin"}, {"q1": [0, 0, 0]}, name="Other", cost={"calls": None})
    table = headline_table(sides(a, b)).set_index("Number")
    assert list(table.columns) == ["A · Run", "B · Other"]
    values = table["A · Run"]
    assert values["Questions"] == "3"
    # The t interval of 1 and -1 is far wider than [-1, 1] and is cut there.
    assert values["Mean ρ"] == "0.00 (−1.00 to 1.00), n = 2; 0 by chance"
    # By chance 5 of 6 orders of three are below the threshold.
    assert values["Divergent"] == "1 of 2; 1.7 by chance"
    assert values["Mean dominance"] == "0.60, n = 2"  # 0.9 / 1.5
    assert values["Correct answers"] == "1 of 1; 95 % interval of the share 21 to 100 %"
    assert values["Empty answers"] == "1 of 3"
    assert values["Calls made"] == "1,234"
    assert values["Time for the calls made"] == "12.5 s"
    assert values["Prompt tokens"] == "98,765"


def test_claims_have_rows_where_every_run_has_them():
    with_claims = claims_run([CANAL], {"name": "With"})
    silent = claims_run(
        [{"answer": "", "answer_status": "empty"}], {"name": "Silent", "steps": {"claims": {}}}
    )
    table = headline_table(sides(with_claims, silent)).set_index("Number")
    shown = table.loc[["Mean grounding", "Mean claim uncertainty U", "Supported claims"]]
    assert shown["A · With"].to_list() == [
        "1.00, n = 1",
        "0.70, n = 1",
        "2 of 2; 95 % interval of the share 3 to 100 %",  # one answer is one case: 0.025 ** (1 / 1)
    ]
    assert shown["B · Silent"].to_list() == ["—", "—", "—"]
    assert "Mean grounding" not in set(headline_table(sides(with_claims, make_run({"q1": "x"})))["Number"])
    assert len(headline_table(())) == 4  # calls, cached calls, time, tokens: all without a value


def test_what_has_no_value_is_a_dash_and_never_zero():
    table = headline_table(
        sides(make_run({"q1": "Unwin"}, {"q1": [0, 0, 0]}, cost={"calls": None}))
    ).set_index("Number")
    shown = table["A · Run"]
    for name in (
        "Mean ρ", "Divergent", "Mean dominance", "Mean entropy (nats)", "Correct answers",
        "Calls made", "Prompt tokens", "Time for the calls made",
    ):  # fmt: skip
        assert shown[name] == "—", name
    assert shown["Abstained"] == "0 of 1"


def test_a_run_without_questions_has_dashes():
    run = Run.create({"source": "upload"})
    values = headline_table(sides(run, run)).iloc[:, 1]
    assert values.iloc[0] == "0"
    assert set(values.iloc[1:]) == {"—"}


def test_only_settings_that_differ_are_listed():
    other = {
        **MANIFEST,
        "model": {"name": "large", "backend": "openai", "options": {"base_url": "http://x/v1"}},
        "prompt": {**MANIFEST["prompt"], "style": "full"},
        "options": {**MANIFEST["options"], "style": "full", "closed_book": False},
        "environment": {"python": "9"},
    }
    table = setup_differences(sides(make_run({"q1": "a"}, **MANIFEST), make_run({"q1": "a"}, **other)))
    rows = {row[0]: row[1:] for row in table.itertuples(index=False, name=None)}
    assert rows == {
        "Model": ("small", "large"),
        "Model dtype": ("bfloat16", "—"),
        "Model device": ("cpu", "—"),
        "Prompt style": ("short", "full"),
        "Closed book": ("yes", "no"),
        "Back end": ("—", "openai"),
        "Model base url": ("—", "http://x/v1"),
    }


def test_who_found_and_judged_the_claims_is_a_difference():
    offline, judge = (
        claims_run(
            [
                CANAL
                | {"claims": [{"text": "It is old.", "cells": {"p1": {"probability": 0.9, "judge": name}}}]}
            ],
            {"name": "Run", "steps": {"claims": {"decomposition": by}}},
        )
        for name, by in (("offline", "rules"), ("judge:large", "model:large"))
    )
    rows = {
        row[0]: row[1:] for row in setup_differences(sides(offline, judge)).itertuples(index=False, name=None)
    }
    assert rows == {
        "Claims verified by": ("offline", "judge:large"),
        "Claims extracted by": ("rules", "model:large"),
    }
    # An imported file has no entry for the step; its judgements name their judge all the same.
    imported = claims_run([CANAL], {"name": "File"})
    assert (
        setup_differences(sides(imported, judge)).set_index("Setting").loc["Claims verified by"].iloc[0]
        == "hand"
    )


def test_irrelevant_and_unscored_claims_are_not_among_those_judged():
    claims = [
        {"text": "It is old.", "cells": {"p1": 0.9}},
        {"text": "It is red.", "cells": {"p1": 0.1, "p2": 0.1, "p3": 0.1, "p4": 0.1}},
        {"text": "I hope this helps!", "relevance": "IRRELEVANT"},
        {"text": "It is long."},
    ]
    table = headline_table(sides(*[claims_run([CANAL | {"claims": claims}], {"name": "Run"})] * 2))
    assert table.set_index("Number").loc["Supported claims"].to_list() == [
        # Half of the one answer: nothing is known of the share.
        "1 of 2; 95 % interval of the share 0 to 100 %",
        "1 of 2; 95 % interval of the share 0 to 100 %",
    ]


def test_equal_set_ups_give_no_row():
    run = make_run({"q1": "a"}, **MANIFEST)
    assert setup_differences(sides(run, run.renamed("Another name"))).empty


@pytest.mark.parametrize(
    "junk", [None, {}, {"options": "x"}, {"options": {"a": {"b": [1]}}}, {"name": ["list"], "k": 5}]
)
def test_the_free_objects_of_a_manifest_may_hold_anything(junk):
    odd = dict.fromkeys(("dataset", "model", "prompt", "retriever", "options"), junk)
    pair = sides(make_run({"q1": "a"}, **odd), make_run({"q1": "a"}, **MANIFEST))
    table = setup_differences(pair)
    assert "Model" in set(table["Setting"])
    assert table.notna().all(axis=None)
    assert headline_table(pair).notna().all(axis=None)


def test_settings_without_their_own_section_are_still_compared():
    pair = sides(*(make_run({"q1": "a"}, options={"k": k, "retriever": "mine"}) for k in (3, 5)))
    rows = setup_differences(pair).values.tolist()
    assert rows == [["K", "3", "5"]]


def test_questions_are_matched_by_id_and_text():
    a = make_run({"q1": "Unwin", "q2": "1931", "q3": "long"})
    b = make_run(
        {"q3": " long ", "q2": "1931", "q1": "Howard"},
        {"q2": [0.1, 0.5, 0.9]},
        questions={**QUESTIONS, "q1": "Who  built\nit?", "q3": "How wide is it?"},
    )
    shared = shared_questions(sides(a, b))
    assert list(shared["query_id"]) == ["q1", "q2"]  # q3 asks something else
    assert list(shared["question"]) == ["Who built it?", "When was it built?"]
    assert list(shared["answers_differ"]) == [True, False]
    assert list(shared["label_B"]) == ["Aligned", "Divergent"]
    assert list(shared["rho_A"]) == [1.0, 1.0] and list(shared["rho_B"]) == pytest.approx([1.0, -1.0])
    assert shared["correct_A"].isna().tolist() == [True, False] and bool(shared["correct_A"][1])


def test_white_space_and_missing_answers_do_not_differ():
    a = make_run({"q1": "one  two", "q2": None, "q3": "x"})
    b = make_run({"q1": " one two\n", "q2": None, "q3": None})
    assert list(shared_questions(sides(a, b))["answers_differ"]) == [False, False, True]


def test_four_runs_share_what_all_four_hold():
    runs = [make_run({"q1": a, "q2": "1931"}) for a in ("x", "x", "y")] + [make_run({"q1": "x"})]
    shared = shared_questions(sides(*runs))
    assert list(shared["query_id"]) == ["q1"]
    assert shared["answers_differ"].tolist() == [True]
    assert {"answer_A", "answer_B", "answer_C", "answer_D"} <= set(shared.columns)
    assert not [name for name in shared.columns if name.startswith("_")]


def test_runs_that_share_nothing_give_no_row():
    a, b = make_run({"q1": "x"}), make_run({"q2": "x"})
    shared = shared_questions(sides(a, b))
    assert len(shared) == 0 and "answers_differ" in shared.columns
    assert len(shared_questions(())) == 0
    with pytest.raises(InputError, match="“Other” has no question in common with “Run”"):
        check_comparable([a, make_run({"q1": "x"}), b.renamed("Other")])
    check_comparable([a, make_run({"q1": "x", "q3": "y"})])


def test_one_run_differs_from_nothing():
    assert not shared_questions(sides(make_run({"q1": "x", "q2": "y"})))["answers_differ"].any()


def test_more_than_four_are_refused():
    run = make_run({"q1": "x"})
    with pytest.raises(InputError, match="At most 4 runs"):
        sides(*[run] * 5)


def test_titles_are_short_and_their_letters_keep_equal_names_apart():
    run = make_run({"q1": "x"}, name="long\n" * 50)
    columns = list(headline_table(sides(run, run)).columns)
    assert len(set(columns)) == 3
    assert all(len(name) <= 84 and "\n" not in name for name in columns)


def test_counts_by_name_are_no_row_in_whatever_run_they_are_known():
    odd = make_run({"q1": "a"}, steps={"claims": {"odd": "odd"}})
    known = claims_run([CANAL], {"name": "Known"})
    for pair in (sides(odd, known), sides(known, odd)):
        assert "Without grounding" not in set(headline_table(pair)["Number"])


def related(run_id, created, questions, **manifest):
    return {"run_id": run_id, "created": created, **manifest}, {(f"q{i}", f"Q{i}?") for i in questions}


@pytest.mark.parametrize(
    ("saved", "chosen", "why"),
    [
        # Made from it, or it from that one, goes before any number of questions.
        ([related("a", "2", range(4)), related("b", "1", [0], parent="own")], "b", "it was made from the loaded run"),
        ([related("a", "2", range(4)), related("mother", "1", [0])], "mother", "the loaded run was made from it"),
        # A child that shares no question cannot be compared.
        ([related("a", "1", [1]), related("b", "2", [9], parent="own")], "a", "it asks 1 of the 4 questions of the loaded run"),
        ([related("a", "2", [0, 1]), related("b", "1", [0, 1, 2])], "b", "it asks 3 of the 4 questions of the loaded run"),
        ([related("a", "2", range(4))], "a", "it asks all 4 questions of the loaded run"),
        # As many questions: of the same data set; then the latest.
        ([related("a", "3", [0, 1]), related("b", "1", [1, 2], dataset={"name": "canals"}),
          related("c", "2", [1, 2], dataset={"name": "canals"})], "c",
         "it asks 2 of the 4 questions of the loaded run, from the same data set"),
        ([related("own", "9", range(4)), related("a", "1", [9])], None, None),
        ([], None, None),
    ],
)  # fmt: skip
def test_the_nearest_relative(saved, chosen, why):
    run = Run.create(
        {"source": "live", "run_id": "own", "parent": "mother", "dataset": {"name": "canals"}},
        queries=pd.DataFrame(
            {"query_id": [f"q{i}" for i in range(4)], "question": [f" Q{i}? " for i in range(4)]}
        ),
    )
    asked = {one["run_id"]: questions for one, questions in saved}
    found = nearest(run, [one for one, _ in saved], asked.__getitem__)
    assert found == (None if chosen is None else (chosen, why))


def test_no_more_than_eight_saved_runs_are_opened_to_find_it():
    run, opened = make_run({"q1": "x"}), []
    saved = [{"run_id": f"r{i}", "created": f"{i:02}"} for i in range(20)]
    assert nearest(run, saved, lambda run_id: opened.append(run_id) or set()) is None
    assert opened == [f"r{i}" for i in range(19, 11, -1)]


def test_answers_of_a_model_are_not_compared_with_composed_ones():
    run, same = make_run({"q1": "x"}), lambda _: {("q1", "Q1?")}
    asked = {(query_id, text) for query_id, text in questions_of(run)}
    saved = [{"run_id": "made", "source": "composed"}, {"run_id": "model", "source": "live", "created": "1"}]
    assert nearest(run, saved, lambda _: asked)[0] == "model"
    assert nearest(run, saved[:1], same) is None
