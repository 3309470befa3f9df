"""One question: its confidence with its band, what it is made of, and whether it passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from core.confidence.combined import LAMBDAS
from core.context_score import NO_BAND, RED
from core.rows import places_of
from core.text.display import number
from ui import headlines, questions, show
from ui.plain import plain
from ui.sections import Part
from ui.sections.confidence import run


def part(query_id: str) -> Part:
    """Return the badge of an answer with a low confidence, and what to do with it."""
    row = questions.row(query_id, "confidence")
    if row["band"] != RED.word:
        return Part()
    threshold = number(run.found().weighting.threshold)
    return Part(
        badge=(f"{RED.icon} Low confidence", ":material/speed:", RED.colour),
        says=(
            f"**Low confidence {number(row['confidence'])}** (threshold {threshold}): check it before use.",
        ),
    )


def draw(query_id: str) -> None:
    """Draw confidence, band and decision, the waterfall of the signals, and the combined uncertainty."""
    analysis, row = run.found(), questions.row(query_id, "confidence")
    band = run.BANDS.get(str(row["band"]), NO_BAND)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.badge(f"{band.icon} {band.word.capitalize()}", color=band.colour)  # type: ignore[arg-type]
        st.markdown(_said(row, analysis.weighting.threshold), width="content")
    if isinstance(row["reason"], str):
        parts = analysis.contributions[int(places_of(analysis.queries, query_id)[0])]
        given = zip(analysis.weighting.weights, parts, strict=True)
        missing = [analysis.used.titles[name] for name, part in given if np.isnan(part)]
        named = f" Missing: {', '.join(missing)}." if missing else ""
        meaning = headlines.reason(row["reason"], "confidence").meaning
        st.info(
            plain(f"{meaning}{named} {analysis.used.reason}".strip()), icon=":material/do_not_disturb_on:"
        )
    if row["reason"] != "no_answer":
        show.chart("confidence", "waterfall", analysis, query_id, of=query_id)
    _combined(row)


def _said(row: Any, threshold: float) -> str:
    if np.isnan(row["confidence"]):
        return "**No confidence**"
    sign, verdict = ("≥", "passes") if show.yes_or_no(row["passes"]) else ("<", "does not pass")
    return f"**Confidence {number(row['confidence'])}** {sign} threshold {number(threshold)}: {verdict}"


def _combined(row: Any) -> None:
    """Draw the combined uncertainty with its parts, where one of them is known."""
    parts = {title: row[name] for name, (title, _) in run.PARTS.items()}
    if all(np.isnan(value) for value in parts.values()):
        return
    reliable = show.yes_or_no(row["is_reliable"])
    decision = {True: "reliable", False: "not reliable", None: "not decided"}[reliable]
    missing = [title.lower() for title, value in parts.items() if np.isnan(value)]
    without = f"; undefined without {' and '.join(missing)}" if missing else ""
    parts_of = " + ".join(
        f"{weight:g} · {number(value)} ({title.lower()})"
        for weight, (title, value) in zip(LAMBDAS, parts.items(), strict=True)
    )
    value = number(row["combined_uncertainty"])
    st.markdown(f"**Combined uncertainty {value}:** {decision}{without}. It is {parts_of}.")
