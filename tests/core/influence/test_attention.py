import pandas as pd

from core.influence import analyse
from core.influence.attention import what_to_look_at
from core.run import Run


def run_of(questions: dict[str, list[float]], **queries) -> Run:
    """Questions by id with the influences of their passages in retrieval order."""
    q = pd.DataFrame({"query_id": list(questions), "question": [f"{i}?" for i in questions], **queries})
    rows = [
        {"query_id": i, "passage_id": f"{i}{n}", "retrieval_rank": n + 1, "influence_score": value}
        for i, values in questions.items()
        for n, value in enumerate(values)
    ]
    return Run.create({"source": "upload"}, queries=q, passages=pd.DataFrame(rows))


def test_nothing_stands_out_in_a_run_in_order():
    rows = what_to_look_at(analyse(run_of({"a": [0.4, 0.3, 0.2], "b": [0.5, 0.4, 0.3]})))
    assert rows.empty and list(rows.columns) == ["query_id", "question", "reason", "mode"]


def test_worst_of_a_mode_first_and_each_question_once():
    run = run_of(
        {
            "mild": [0.2, 0.4, 0.3, 0.1, 0.35],
            "worst": [0.1, 0.2, 0.3, 0.4, 0.5],
            "fine": [0.5, 0.4, 0.3, 0.2, 0.1],
        }
    )
    rows = what_to_look_at(analyse(run))
    # mild: ranks 4 1 3 5 2 against 1 2 3 4 5, squares 9 + 1 + 0 + 1 + 9 = 20, rho = 1 - 120/120 = 0.
    assert list(rows["query_id"]) == ["worst"]
    assert rows["reason"][0] == "ρ = −1.00: the passages are used in the reverse of their order."
    assert rows["mode"][0] == "inverted"


def test_over_reliance_says_how_much():
    rows = what_to_look_at(analyse(run_of({"a": [0.9, 0.06, 0.04]})))
    assert list(rows["reason"]) == ["One passage carries 90% of all influence."]


def test_passages_are_named_by_rank():
    # k = 6, influence ranks 2 3 4 5 6 1: squares 5 · 1 + 25 = 30, rho = 1 − 180/210 > 0.
    rows = what_to_look_at(analyse(run_of({"a": [0.5, 0.4, 0.3, 0.2, 0.1, 0.6]})))
    reasons = dict(zip(rows["mode"], rows["reason"], strict=True))
    assert reasons == {
        "buried_evidence": "The model relies on the passage at rank 6, at the end of the retrieved list."
    }


def test_harmful_passage_comes_first():
    run = Run.create(
        {"source": "upload"},
        queries=pd.DataFrame({"query_id": ["a"], "question": ["a?"], "answer": ["wrong one"], "reference_answers": [["right"]]}),
        passages=pd.DataFrame(
            {"query_id": ["a"] * 3, "passage_id": ["1", "2", "3"], "retrieval_rank": [1, 2, 3],
             "ablated_answer": ["wrong one", "right", "wrong two"]}
        ),
    )  # fmt: skip
    rows = what_to_look_at(analyse(run))
    assert rows["mode"][0] == "harmful_passage"
    assert rows["reason"][0] == "The answer is wrong, and leaving out the passage at rank 2 makes it right."


def test_a_common_reason_for_no_rho_gets_one_example():
    run = run_of(
        {"a": [0, 0, 0], "b": [0, 0, 0], "c": [0.3, 0.2, 0.1], "d": [0.3, 0.2, 0.1], "e": [0.4, 0.2, 0.1]}
    )
    rows = what_to_look_at(analyse(run))
    assert list(rows["query_id"]) == ["a"] and rows["mode"][0] == "inert"
    assert rows["reason"][0].startswith("2 of 5 questions have no ρ for this reason: leaving out any one")


def test_a_rare_reason_gets_none_and_the_limit_holds():
    questions = {f"q{i}": [0.1, 0.2, 0.3] for i in range(20)} | {"inert": [0, 0, 0]}
    rows = what_to_look_at(analyse(run_of(questions)), limit=3)
    assert len(rows) == 3 and set(rows["mode"]) == {"inverted"}


def test_no_mode_takes_all_places():
    inverted = {f"i{n}": [0.1, 0.2, 0.3] for n in range(5)}
    relying = {f"r{n}": [0.9, 0.02, 0.01] for n in range(5)}
    rows = what_to_look_at(analyse(run_of(inverted | relying)), limit=4)
    assert list(rows["mode"]) == ["inverted", "inverted", "over_reliance", "over_reliance"]
