"""The claims of one answer: marked in its text, against its passages, and in a table."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from core.charts.theme import SIGNS
from core.claims.answer import AnswerClaims
from core.claims.definitions import QUADRANTS
from core.claims.quadrants import UNDEFINED
from core.rows import rows_of
from core.text.display import count, number
from ui import cached, headlines, questions, show
from ui.plain import plain, shortened
from ui.sections import Part
from ui.sections.claims.pieces import elsewhere, legend, notes, passage_name, pieces, support

_SHOWN = {"text": "Support", "causal": "Leave-one-out effect", "both": "Both"}
_JOINT_SHOWN = 20
_CARDS = {
    "Supported": "Relevant claims that a passage, or two together, support, of those that were verified.",
    "Mean U(c)": "0 where every passage supports every claim; a claim that one of ten supports has 0.9.",
    "Claims": "Irrelevant claims are refusals and remarks about the answer itself; they enter no mean.",
    "Unscored cells": "Cells that could not be verified are left out; they never count as not supported.",
}


def part(query_id: str) -> Part:
    """Return the answer cut at its claims, and what each passage supports of them."""
    analysis = cached.diagnosis()["claims"]
    answer = analysis.answer(query_id)
    if not answer.claim_ids:
        return Part()
    found = rows_of(analysis.passages, query_id)
    quadrant = dict(zip(found["passage_id"], found["quadrant"], strict=True))
    shown = {}
    for place, passage_id in enumerate(answer.passage_ids):
        row = support(answer, place)
        if quadrant[passage_id] != UNDEFINED:
            row["facts"] = [*row.get("facts", []), ["", QUADRANTS[quadrant[passage_id]].title]]
        shown[passage_id] = row
    claims = {"notes": notes(answer), "legend": legend(answer), "elsewhere": elsewhere(answer)}
    return Part(claims={"pieces": pieces(answer), **claims}, rows=shown)


def draw(query_id: str) -> None:
    """Draw the numbers of an answer's claims, and each claim against each passage where there are several."""
    answer = cached.diagnosis()["claims"].answer(query_id)
    headlines.why("claims", answer.reason, "No grounding for this answer.")
    if not answer.claim_ids:
        return
    _numbers(questions.row(query_id, "claims"))
    if len(answer.claim_ids) > 1 and len(answer.passage_ids) > 1:
        _evidence(query_id, answer)
    else:
        st.caption("One claim or one passage: the row above says what supports it.")
    _joint(answer)
    _table(query_id, answer)


def _numbers(row: Any) -> None:
    judged, claims = int(row["grounding_n"]), count(int(row["mean_uncertainty_n"]), "claim")
    supported = f"{int(row['n_supported']):,} of {judged:,}" if judged else "—"
    left_out = f"; {int(row['grounding_n_left_out']):,} not scored" if row["grounding_n_left_out"] else ""
    others = f"{int(row['n_irrelevant']):,} irrelevant, {int(row['n_joint']):,} joint"
    unscored = f"{int(row['n_cells_unscored']):,} of {int(row['n_cells']):,}"
    values = {
        "Supported": (supported, f"grounding {number(row['grounding'])}{left_out}"),
        "Mean U(c)": (number(row["mean_uncertainty"]), f"on {claims}"),
        "Claims": (f"{int(row['n_claims']):,}", others),
        "Unscored cells": (unscored, "claims × passages"),
    }
    show.cards([(title, *values[title], about) for title, about in _CARDS.items()])


def _evidence(query_id: str, answer: AnswerClaims) -> None:
    shown = show.choice("Evidence", _SHOWN, "claims_shown")
    show.chart("claims", "claims_heatmap", answer, of=query_id, shown=shown)


def _joint(answer: AnswerClaims) -> None:
    if not answer.joint:
        return
    st.markdown("**Supported only by two passages together**")
    lines = [
        f"- {_said(answer, claim)}: passages {plain(passage_name(answer, i), one_line=True)} and "
        f"{plain(passage_name(answer, j), one_line=True)}, probability {number(p)}"
        for claim, (i, j), p in answer.joint[:_JOINT_SHOWN]
    ]
    st.markdown("\n".join(lines))
    if len(answer.joint) > _JOINT_SHOWN:
        st.caption(f"The first {_JOINT_SHOWN} of {len(answer.joint):,} pairs.")


def _table(query_id: str, answer: AnswerClaims) -> None:
    frame = cached.diagnosis()["claims"].claims_of(query_id)
    places = {name: passage_name(answer, at) for at, name in enumerate(answer.passage_ids)}
    frame = frame.assign(
        state=[f"{SIGNS[str(state)]} {state}" for state in frame["state"]],
        verdict=frame["verdict"].str.replace("_", " ").str.lower(),
        best=frame["best_passage_id"].map(places.get, na_action="ignore"),
        removed=[_of(n, total) for n, total in zip(frame["n_removed"], frame["n_removals"], strict=True)],
        **{name: [_listed(words) for words in frame[name]] for name in ("added", "dropped")},
    )
    columns = {
        "text": show.wide("Claim"),
        "state": "State",
        "verdict": "Verdict",
        "uncertainty": show.numeric("U(c)"),
        "support_maximum": show.numeric("Best support"),
        "best": show.wide("By passage", "medium"),
        "n_supporting": show.numeric("Supporting", "%d", "Passages that support it"),
        "n_unscored": show.numeric("Unscored", "%d", "Passages it could not be verified against"),
        "removed": show.wide(
            "Removed by", "medium", "Passages without which the claim changes or disappears"
        ),
        "added": show.wide("Added", "medium", "Words of the claim that are not in that answer span"),
        "dropped": show.wide("Left out", "medium", "Words of that answer span that are in no claim"),
    }
    with st.expander(f"The claims as a table ({count(len(frame), 'claim')})"):
        show.table(frame, "Claims of this answer", columns)


def _said(answer: AnswerClaims, claim: int) -> str:
    state = str(answer.states[claim])
    return f"{SIGNS[state]} {state} · {plain(shortened(answer.matrix.claims[claim], 300), one_line=True)}"


def _of(n: Any, total: Any) -> str:
    return "" if n is pd.NA else f"{int(n):,} of {int(total):,}"


def _listed(words: Any) -> str:
    return ", ".join(map(str, words)) if isinstance(words, list) else ""
