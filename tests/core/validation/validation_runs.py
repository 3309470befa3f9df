"""A run of seven questions whose verdicts can be told by hand."""

import pandas as pd

from core.run import Run

BRIDGE = ("Ada Unwin designed the bridge.", "It is old.")
# Answer, passages (None: no text), whether it is correct by the reference "Ada Unwin".
CASES = {
    "fine": ("Ada Unwin designed it [1].", BRIDGE),  # correct, passes
    "sure": ("Brunel definitely built it.", ()),  # wrong, stopped: no citation, overconfident
    "empty": ("", BRIDGE),  # not judged, stopped
    "error": (None, BRIDGE),  # no answer
    "bare": ("Ada Unwin designed it.", BRIDGE),  # correct, no citation
    "lost": ("Brunel built it in 1866 [1].", BRIDGE),  # wrong, stopped: overlap 0, number, no uncertainty
    "dark": ("Ada Unwin designed it [1].", (None, None)),  # correct, not validated
}


def run_of(cases=CASES, references=("Ada Unwin",), verdicts=None, **manifest):
    """A run of answers with their passages, all with the same reference answers."""
    queries = pd.DataFrame(
        {
            "query_id": list(cases),
            "question": [f"Who designed the {name} bridge?" for name in cases],
            "answer": [answer for answer, _ in cases.values()],
            "answer_status": [
                "error" if a is None else "answered" if a else "empty" for a, _ in cases.values()
            ],
            "reference_answers": [list(references) or None for _ in cases],
        }
    )
    rows = [
        {"query_id": name, "passage_id": f"p{i}", "text": text, "retrieval_rank": float(i)}
        for name, (_, texts) in cases.items()
        for i, text in enumerate(texts, start=1)
    ]
    tables = {"queries": queries, "passages": pd.DataFrame(rows)} if rows else {"queries": queries}
    if verdicts is not None:
        tables["verdicts"] = pd.DataFrame(verdicts)
    return Run.create({"source": "live", **manifest}, **tables)
