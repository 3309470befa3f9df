"""The signals of a run against each other: the answer, the heat map, the histograms and the pairs."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.report.signals import (
    KINDS,
    METHOD,
    NOT_TRUTH,
    SPEARMAN,
    SignalAgreement,
    SignalPair,
    signal_agreement,
)
from core.report.signals import answer as answer_of
from core.text.display import DASH
from ui import cached, show
from ui.plain import plain

_KEY = "signals_kind"


def found() -> SignalAgreement:
    """Return the correlations of the session's run at the current settings."""
    return cached.once("signal agreement", signal_agreement)


def chosen() -> str:
    """Return which coefficient is shown; `matrix` draws the choice."""
    return str(st.session_state.get(_KEY) or SPEARMAN)


def answer(agreement: SignalAgreement, kind: str) -> None:
    """Say which signals agree beyond chance, and which separate correct from incorrect."""
    with st.container(border=True):
        first, *rest = answer_of(agreement, kind)
        st.markdown(f"**{plain(first)}**" + "".join(f"\n\n{plain(sentence)}" for sentence in rest))
        st.caption(NOT_TRUTH)


def matrix(agreement: SignalAgreement) -> None:
    """Draw the choice of the coefficient, and the heat map of all pairs."""
    about = "Spearman compares the order of the questions, Pearson the values themselves."
    kind = show.choice("Correlation", {kind: kind for kind in KINDS}, _KEY, about)
    show.chart("signals", "correlation_heatmap", agreement, kind=kind)
    st.caption(
        "Blue: both are high together. Orange: one is high where the other is low. Pale: chance alone could "
        "explain it. Point at a cell for its numbers."
    )


def histograms(agreement: SignalAgreement) -> None:
    """Draw how the values of each signal are spread, and say which signals have none."""
    with st.grid(3, min_column_width=260):
        for one in agreement.signals:
            with st.container(border=True, gap="xsmall", height="stretch"):
                higher = f", higher is {one.higher_is}" if one.higher_is else ""
                st.markdown(f"**{plain(one.title)}**")
                st.caption(f"{plain(one.owner)} · n = {one.n:,}{higher}")
                show.figure(
                    cached.chart("signals", "signal_histogram", one, of=one.key), f"histogram {one.key}"
                )
    if agreement.left_out:
        listed = "; ".join(f"{title} ({reason})" for title, reason in agreement.left_out)
        st.caption(plain(f"Not listed: {listed}."))


def pairs(agreement: SignalAgreement, kind: str) -> None:
    """Draw every pair with both coefficients, those that chance does not explain first, and its download."""
    order = sorted(agreement.pairs, key=lambda pair: _place(pair, kind))
    frame = pd.DataFrame([_row(pair) for pair in order])
    columns = {
        "signals": show.wide("Signals"),
        **{name: show.wide(name, "medium") for name in KINDS},
        "n": show.numeric("n", "localized", "Questions that have both"),
        "expected": show.wide("Expected", "small", "The sign that the directions of both let expect"),
        "note": show.wide("Note", "medium"),
    }
    show.table(frame, "Pairs of signals with their correlations, intervals and tests", columns)
    st.caption(plain(METHOD))
    show.export("signals-csv", "Download pairs (CSV)")


def _place(pair: SignalPair, kind: str) -> tuple[bool, bool, float]:
    """Return what pairs are sorted by: beyond chance, the strongest first; undefined ones last."""
    return bool(pair.reason), not pair[kind].is_clear, 0.0 if pair.reason else -abs(pair[kind].value)


def _row(pair: SignalPair) -> dict[str, object]:
    contrary = [kind for kind in KINDS if not pair.reason and pair.is_contrary(kind)]
    note = f"undefined because {pair.reason}" if pair.reason else ""
    if contrary:
        note = f"contrary to expectation ({', '.join(contrary)})"
    return {
        "signals": f"{pair.first.title} · {pair.second.title}",
        **{kind: DASH if pair.reason else pair[kind].text for kind in KINDS},
        "n": pair.n,
        "expected": {1: "positive", -1: "negative", 0: None}[pair.expected],
        "note": note or None,
    }
