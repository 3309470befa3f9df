"""Learn weights and a map from half of the labelled questions; the others calibrate."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.confidence import Learned, labelled_run, learn
from core.errors import InputError
from core.text.display import count, number
from ui import cached, router, show, sources
from ui.plain import plain
from ui.sections.confidence import run, whatif
from ui.state import session

MOST = 5_000  # answers: about a minute
_METHODS = {"grid": "Grid search", "logistic": "Logistic regression"}
_MAPS = {"platt": "Platt scaling", "isotonic": "Isotonic regression", "none": "None"}


def draw() -> None:
    """Draw from which answers is learned, what was learned, and where to save it."""
    try:
        rows = labelled_run(cached.diagnosis(), teaching=True)
    except InputError as error:  # no label at all
        st.info(plain(error), icon=":material/inbox:")
        return
    st.markdown(
        f"**{count(rows.n, 'labelled answer')}**, {int(rows.correct.sum()):,} of them correct, to "
        f"half of the questions teach{rows.left_out('; ')}. The other half calibrates: labels that have "
        "taught cannot."
    )
    if rows.n > MOST:
        st.info(
            f"At most {MOST:,} answers are learned from here; for more use the command "
            "`python -m core calibrate … --learn`.",
            icon=":material/terminal:",
        )
        return
    if not rows.n:
        return
    if st.button(
        "Learn weights and map", icon=":material/model_training:", type="primary", key="confidence_learn"
    ):
        with st.spinner("Learning from folds and resamples …"):
            session().kept["confidence_learned"] = session().run_key, learn(rows, run.found().weighting)
    kept = session().kept.get("confidence_learned")
    if kept is not None and kept[0] == session().run_key:
        _result(kept[1])


def _result(found: Learned) -> None:
    """Draw what was learned: to keep the weights in use or not, what others gain, and the maps."""
    weights = found.weights
    if weights.best is None:
        st.markdown(f"**Keep the weights in use:** {plain(weights.reason)}.")
    else:
        st.markdown(
            f"**Use the weights by {_METHODS[weights.best.method].lower()}:** AUROC "
            f"{number(weights.default_auroc)} → {number(weights.best.auroc)} on answers that they were not "
            f"learned from (gain {number(weights.best.gain)}, 97.5 % interval "
            f"{_interval(weights.best.gain_interval)}; n = {count(weights.n, 'answer')})."
        )
    if not weights.learned:
        return
    _weights(found)
    if found.proposed is not None:
        st.markdown(
            f"**In use and {_METHODS[found.proposed.method].lower()}**, on answers that neither was learned "
            "from"
        )
        whatif.table(found.compared, "In use", "Learned")
    _maps(found)
    _save(found)


def _weights(found: Learned) -> None:
    analysis, learned = run.found(), found.weights.learned
    names = [*learned[0].weights]
    table = {
        "signal": [analysis.used.titles[name] for name in names],
        "default": [analysis.weighting.weights[name] for name in names],
    }
    columns = {"signal": show.wide("Weight of", "medium"), "default": show.numeric("In use")}
    for one in learned:
        ends = f"{one.method} 95 %"
        table[one.method] = [one.weights[name] for name in names]
        table[ends] = [_interval(one.intervals[name]) for name in names]
        columns[one.method] = show.numeric(_METHODS[one.method])
        columns[ends] = show.wide("95 % interval", "small")
    show.table(pd.DataFrame(table), "Learned weights with their intervals", columns)
    gains = "; ".join(
        f"{_METHODS[one.method].lower()} {number(one.gain)} ({_interval(one.gain_interval)})"
        for one in learned
    )
    st.caption(
        f"Gain in AUROC ({number(found.weights.default_auroc)} in use; 0.50 by chance), cross-validated, "
        f"with the interval that two tries allow: {gains}."
    )


def _maps(found: Learned) -> None:
    st.markdown(f"**Map from confidence to probability:** {_MAPS[found.method.map.kind]}.")
    every = {"No map": found.maps["platt"].before}
    every |= {_MAPS[kind]: mapped.after for kind, mapped in found.maps.items()}
    frame = pd.DataFrame([{"map": title, **vars(one)} for title, one in every.items()])
    columns = {
        "map": show.wide("Map", "medium"),
        "ece": show.numeric("ECE", "%.3f", "Mean gap of confidence and accuracy; lower is better"),
        "mce": show.numeric("MCE", "%.3f", "Largest gap of a bin"),
        "brier": show.numeric("Brier score", "%.3f", "Lower is better; decides which map is kept"),
    }
    show.table(frame[[*columns]], "Calibration without and with a map, cross-validated", columns)


def _interval(ends: tuple[float, float]) -> str:
    return f"{number(ends[0])} to {number(ends[1])}"


def _save(found: Learned) -> None:
    """Draw what to do with what was learned: try the weights, or calibrate with weights and map."""
    if found.weights.best is not None:
        st.button(
            "Try these weights", icon=":material/check:", key="confidence_use_learned", on_click=run.use,
            args=(dict(found.method.weighting.weights),),
        )  # fmt: skip
    if (page := router.page_of(run.CALIBRATES)) is not None:
        sources.link(page, "Save weights and map in a calibration store")
