"""Hand-made runs for which a person can say what is wrong with them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.run import Run

N, K = 30, 10


def made(influences, *, gold=None, query=None, passage=None) -> Run:
    """A run of one question per row of influences (None: not measured), in the order of retrieval.

    ``gold`` gives the place of each question's gold passage, from 0; further columns come as lists.
    """
    n, k = len(influences), len(influences[0])
    queries = pd.DataFrame({"query_id": [f"q{i + 1}" for i in range(n)], "question": [f"Question {i + 1}?" for i in range(n)]})  # fmt: skip
    passages = pd.DataFrame(
        {
            "query_id": np.repeat(queries["query_id"], k),
            "passage_id": [f"p{j + 1}" for _ in range(n) for j in range(k)],
            "retrieval_rank": [j + 1.0 for _ in range(n) for j in range(k)],
            "influence_score": [value for row in influences for value in row],
        }
    ).reset_index(drop=True)
    if gold is not None:
        queries["n_gold"] = 1
        passages["is_gold"] = [j == place for place in gold for j in range(k)]
    return Run.create(
        {"source": "upload"}, queries=queries.assign(**query or {}), passages=passages.assign(**passage or {})
    )


def peaks(places, k=K, seed=0):
    """Influences of 0.9 on one passage of each question and little on the others."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 20, (len(places), k)) / 100
    rows[np.arange(len(places)), places] = 0.9
    return rows.tolist()


def judged(n_correct, n=N):
    """Answers with reference answers, the first ``n_correct`` of them correct."""
    right = ["It was Unwin"] * n_correct + ["It was Parker"] * (n - n_correct)
    return {"answer": right, "answer_status": ["answered"] * n, "reference_answers": [["Unwin"]] * n}


def worded(ablated, closed, **query) -> Run:
    """A run with texts: one ablated answer per passage of each question, and a closed-book answer."""
    n, k = len(ablated), len(ablated[0])
    given = {
        "answer": ["The canal opened in 1931"] * n,
        "answer_status": ["answered"] * n,
        "closed_book_answer": closed,
    } | query
    texts = [text for row in ablated for text in row]
    return made([[None] * k] * n, query=given, passage={"ablated_answer": texts})


def _places(low, high, n=N, seed=1):
    return np.random.default_rng(seed).integers(low, high, n).tolist()


def _noise(n, k=K, seed=2):
    return (np.random.default_rng(seed).permuted(np.tile(np.arange(1, k + 1) / k, (n, 1)), axis=1)).tolist()


def buried_evidence() -> Run:
    """The gold passage is among the last three retrieved, and the model uses it."""
    places = _places(K - 3, K)
    return made(peaks(places), gold=places, query=judged(27))


def lazy_retriever() -> Run:
    """The gold passage is anywhere in the list, and the model finds it there."""
    places = _places(0, K)
    return made(peaks(places), gold=places, query=judged(27))


def parametric_model() -> Run:
    """24 of 30 answers are the same without any passage."""
    same, other = "The canal opened in 1931", "Nobody knows that"
    ablated = [[same] * K] * 24 + [[other] + [same] * (K - 1)] * 6
    return worded(ablated, [same] * 24 + [other] * 6)


def harmful_passage() -> Run:
    """In 12 of 30 questions the second passage makes the answer wrong; 3 more are wrong anyway."""
    wrong, right = "It was Parker", "It was Unwin"
    ablated = [[wrong, right] + [wrong] * (K - 2)] * 12 + [["No idea"] + [wrong] * (K - 1)] * 3
    ablated += [["No idea"] + [right] * (K - 1)] * 15
    references = {"reference_answers": [["Unwin"]] * N, "answer": [wrong] * 15 + [right] * 15}
    return worded(ablated, ["No idea"] * N, **references)


def redundant_passages() -> Run:
    """In 20 of 30 questions no single removal changes the answer, leaving out all does."""
    same, other = "The canal opened in 1931", "Nobody knows that"
    ablated = [[same] * K] * 20 + [[other] + [same] * (K - 1)] * 10
    return worded(ablated, [other] * N)


def random_order(n=N) -> Run:
    """Influence has nothing to do with the order of retrieval; only scores are known."""
    return made(_noise(n))


def nothing_wrong() -> Run:
    """The gold passage comes first and is used most, what follows is used less, and answers are correct."""
    rows = (np.array(_noise(N, 10)) / 10).tolist()
    for row in rows:
        row[:3] = [0.9, 0.4, 0.2]
    return made(rows, gold=[0] * N, query=judged(29))


def too_few_questions() -> Run:
    """Six questions: in four of them the passage used most comes last, which six random ones may show as well."""
    return made(peaks([3, 3, 3, 0, 3, 2], k=4))


def answers_only() -> Run:
    """No passages at all, and no reference answers."""
    run = made([[None]] * N, query={"answer": ["Something"] * N, "answer_status": ["answered"] * N})
    return Run.create(run.manifest, queries=run.queries)


def never_left_out() -> Run:
    """Passages and answers, but no passage was ever left out."""
    return made([[None] * K] * N, gold=[0] * N, query=judged(27))


def mostly_empty() -> Run:
    """The model wrote nothing in 25 of 30 questions."""
    status = ["empty"] * 25 + ["answered"] * 5
    answer = [""] * 25 + ["It was Unwin"] * 5
    references = [["Unwin"]] * N
    query = {"answer": answer, "answer_status": status, "reference_answers": references}
    return made([[None] * K] * 25 + _noise(5), query=query)


def no_questions() -> Run:
    """Nothing at all."""
    return Run.create({"source": "live"})
