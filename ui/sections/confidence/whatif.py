"""What if: other weights, and what they would change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import streamlit as st

from core.calibration.in_use import AUTO, COLUMNS, WEIGHTS_SETTING, write_weights
from core.calibration.weighted import Weighting, whatif
from core.confidence import Compared, compare_confidences
from core.confidence.analysis import ConfidenceAnalysis
from core.text.display import count, number, p_text, percent
from ui import cached, show
from ui.plain import plain
from ui.sections.confidence import run
from ui.state import settings

_TITLES = {"accuracy": "Right decisions", "brier": "Brier score", "auroc": "AUROC"}
_BETTER = {"accuracy": "higher is better", "brier": "lower is better", "auroc": "higher is better"}
_LEVEL = 0.05


def draw() -> None:
    """Draw sliders for weights, and what they change."""
    analysis = run.found()
    weights = _weights(analysis)
    if not sum(weights.values()):
        st.warning("One weight must be above 0.", icon=":material/balance:")
        return
    other = analysis.other(weights, analysis.weighting.threshold)
    changed = _written(other.weights) != _written(analysis.weighting.weights)
    _effect(analysis, other.weights, changed)
    _buttons(other.weights, changed)
    if changed:
        _compared(analysis, other)
    st.caption(
        "Weights chosen on these answers look better on them than they are: what is learned below is tested "
        "on others. A promise needs weights chosen without these labels."
    )


def _written(weights: Mapping[str, float]) -> dict[str, str]:
    """Return what tells weights apart: each as the address has it, those of 0 left out."""
    return {name: f"{weight:.3g}" for name, weight in weights.items() if weight}


def _weights(analysis: ConfidenceAnalysis) -> dict[str, float]:
    """Draw a slider for each signal and return the weights; they follow the weights in use."""
    own = [*COLUMNS.values()]
    in_use = {name: weight for name, weight in analysis.weighting.weights.items() if weight}
    kept = write_weights(in_use)  # a key of its own for each weighting
    choices = [one.key for one in analysis.used.choices if one.name not in COLUMNS]
    choices += [name for name in in_use if name not in (*own, *choices)]
    joined = [name for name in in_use if name not in own]
    if choices:
        joined = st.multiselect(
            "More signals that join",
            choices,
            joined,
            key=f"confidence_join {kept}",
            format_func=lambda name: analysis.used.titles[name],
            help="Signals of the run that need no reference answer, each as a confidence from 0 to 1.",
            placeholder="None",
        )
    found = {}
    with st.grid(4, min_column_width=170):
        for name in (*own, *joined):
            found[name] = st.slider(
                f"Weight of {plain(within(analysis.used.titles[name]), one_line=True)}",
                0.0,
                1.0,
                round(in_use.get(name, 0.0), 4) if name in (*own, *in_use) else 0.2,
                0.05,
                key=f"confidence_weight {name} {kept}",
            )
    return found


def within(title: str) -> str:
    """Return a title as it reads within a sentence; one that begins with an abbreviation stays."""
    return title[:1].lower() + title[1:] if title[1:2].islower() else title


def _effect(analysis: ConfidenceAnalysis, weights: Mapping[str, float], changed: bool) -> None:
    threshold = analysis.weighting.threshold
    now, quality = whatif(analysis.judged, analysis.used.correct, threshold), analysis.quality
    then, other = analysis.at(weights, threshold) if changed else (now, quality)

    def before(value: str) -> str:
        return f"{value} → " if changed else ""

    labels = f"n = {count(other.n, 'labelled answer')}"
    show.cards(
        [
            (
                "Answers that pass",
                before(percent(now.coverage)) + percent(then.coverage),
                f"{then.n_passing:,} of {count(then.n, 'answer')}",
                "Coverage: the share of answers with a confidence that reach the threshold.",
            ),
            (
                "Correct among them",
                before(number(100 * now.accuracy, "{:.0f} %")) + number(100 * then.accuracy, "{:.0f} %"),
                f"{then.n_correct:,} of {then.n_labelled:,} labelled"
                + (f"; 95 %: {percent(0, (then.low, then.high))}" if then.n_labelled else ""),
                "Accuracy of the labelled answers that pass.",
            ),
            (
                "AUROC",
                before(number(quality.auroc)) + number(other.auroc),
                f"{labels}; 0.50 by chance",
                "Probability that a correct answer has a higher confidence than an incorrect one.",
            ),
            (
                "Brier score",
                before(number(quality.brier)) + number(other.brier),
                f"{labels}; lower is better",
                "Mean squared difference of confidence and correctness.",
            ),
        ]
    )


def _compared(analysis: ConfidenceAnalysis, other: Weighting) -> None:
    """Draw the measures of the weights in use and of the others, with intervals and p-values."""
    now, found, correct = analysis.judged, analysis.by(other), analysis.used.correct
    both = ~np.isnan(now + found + correct)
    if both.any():
        compared = cached.once(
            f"confidence compared {write_weights(other.weights)}",
            lambda _: compare_confidences(
                now[both], found[both], correct[both], (other.threshold, other.threshold)
            ),
        )
        st.markdown(said(compared, "Other weights"))
        table(compared, "In use", "Other weights")


def _buttons(weights: Mapping[str, float], changed: bool) -> None:
    with st.container(horizontal=True):
        st.button(
            "Use these weights",
            icon=":material/check:",
            type="primary",
            key="confidence_use",
            disabled=not changed,
            on_click=run.use,
            args=({name: weight for name, weight in weights.items() if weight},),
            help="On every page, and in the address: a link carries them.",
        )
        if settings()[WEIGHTS_SETTING.name] != AUTO:
            st.button(
                "Back to the default", icon=":material/undo:", key="confidence_default", on_click=run.reset
            )


def said(found: Sequence[Compared], other: str) -> str:
    """Say which measures differ significantly, and for whom."""
    n = count(found[0].n, "labelled answer")
    differ = [one for one in found if one.p_adjusted < _LEVEL]
    if not differ:
        return f"**No measure differs significantly** (n = {n})."
    better = [(one.difference > 0) != (one.measure == "brier") for one in differ]
    parts = [
        f"{_TITLES[one.measure]} is {'better' if good else 'worse'}"
        for one, good in zip(differ, better, strict=True)
    ]
    return f"**{other}:** {', '.join(parts)} (n = {n})."


def table(found: Sequence[Compared], a: str, b: str) -> None:
    """Draw the measures of both, with differences, intervals and p-values."""
    frame = pd.DataFrame(found)
    frame["interval"] = [f"{number(one.low)} to {number(one.high)}" for one in found]
    frame["p"] = [p_text(one.p_adjusted) for one in found]
    frame["measure"] = [f"{_TITLES[name]} ({_BETTER[name]})" for name in frame["measure"]]
    columns = {
        "measure": show.wide("Measure", "medium"),
        "a": show.numeric(a),
        "b": show.numeric(b),
        "difference": show.numeric("Difference", about=f"{b} − {a}"),
        "interval": show.wide("95 % interval", "small"),
        "p": show.wide("p", "small", "Of no difference, adjusted for three measures (Holm)"),
    }
    show.table(frame[[*columns]], f"{a} and {b}, measure by measure", columns)
    st.caption("A right decision: an answer that passes is correct, or one that does not pass is incorrect.")
