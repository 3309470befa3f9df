"""Runs with arms whose ladder can be worked out on paper."""

from __future__ import annotations

import pandas as pd

from core.diagnosis import Diagnosis
from core.run import Run

GOOD, BAD = "alpha", "omega"
ARMS = ("gold_added", "gold_first", "gold_alone", "gold_sentences", "placebo")
# For every question: its answer, then the prompt and answer under each of the arms above; "-" is a prompt that
# the arm does not change.
PLAN = {
    "retrieval": (BAD, GOOD, "-", GOOD, GOOD, BAD),
    "retrieval2": (BAD, GOOD, "-", GOOD, GOOD, GOOD),
    "place": (BAD, "-", GOOD, GOOD, GOOD, BAD),
    "distracted": (BAD, "-", "-", GOOD, GOOD, BAD),
    "buried": (BAD, "-", "-", BAD, GOOD, BAD),
    "reading": (BAD, "-", "-", BAD, BAD, BAD),
    "grounded": (GOOD, "-", "-", GOOD, GOOD, GOOD),
    "luck": (GOOD, "-", "-", BAD, GOOD, BAD),
}


def losses_run(plan=PLAN, by_claims=False, question="Which word is it?", title="Text", manifest=None):
    """One question of two passages per entry of a plan; without references where claims decide."""
    queries, passages, arms = [], [], []
    for query_id, (answer, *answers) in plan.items():
        queries.append(
            {
                "query_id": query_id, "question": question, "answer": answer, "answer_status": "answered",
                "reference_answers": None if by_claims else [GOOD],
            }
        )  # fmt: skip
        passages += [
            {
                "query_id": query_id, "passage_id": f"p{i}", "title": title, "text": f"Text {i}.",
                "retrieval_rank": i, "slot": i, "is_gold": i == 1,
            }
            for i in (1, 2)
        ]  # fmt: skip
        rows = [("as_it_is", answer)] if by_claims else []
        for arm, given in [*rows, *zip(ARMS, answers, strict=True)]:
            same = given == "-"
            arms.append(
                {
                    "query_id": query_id, "arm": arm, "repeat": 1,
                    "prompt": "unchanged" if same or arm == "as_it_is" else "changed",
                    "passages": ["p1", "p3"] if arm == "gold_added" else ["p1"], "gold_by": "labelled",
                    "answer": None if same else given, "answer_status": None if same else "answered",
                    "support": None if same or not by_claims else float(given == GOOD),
                    "judged": by_claims or None,
                }
            )  # fmt: skip
    tables = {"queries": pd.DataFrame(queries), "passages": pd.DataFrame(passages)}
    if by_claims:
        tables["claims"] = pd.DataFrame(
            [{"query_id": q, "claim_id": "c", "text": "It is so.", "side": "answer"} for q in plan]
        )
    if arms:
        tables["arms"] = pd.DataFrame(arms)
    return Run.create({"source": "live", "name": "Losses"} | (manifest or {}), **tables)


def losses_of(**options):
    """The diagnosis of such a run, and its losses."""
    diagnosis = Diagnosis(losses_run(**options))
    return diagnosis, diagnosis["losses"]
