"""Learn weights and a map from labelled answers, of the run or of a file; load what was learned before."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd
import streamlit as st

from core.confidence import (
    Labelled,
    Learned,
    SavedCalibration,
    configured,
    from_json,
    labelled,
    labelled_run,
    learn,
    to_json,
)
from core.confidence.labelled import COLUMNS
from core.confidence.saved import MAX_BYTES
from core.errors import InputError
from core.sources.content import SUFFIXES
from core.sources.rows import read_rows
from core.text.display import count, number
from ui import cached, show
from ui.plain import plain
from ui.sections.confidence import measures, run
from ui.state import session

MOST = 5_000  # answers: about a minute
_MEGABYTES = 50
_OWN, _FILE = "This run", "Upload labelled answers"
_FIELDS = ("query", "answer", "expected_answer", "is_correct", *COLUMNS)
_METHODS = {"grid": "Grid search", "logistic": "Logistic regression"}
_MAPS = {"platt": "Platt scaling", "isotonic": "Isotonic regression", "none": "None"}
_TEMPLATE = pd.DataFrame(
    [
        ("Who wrote Emma?", 0.82, 41.5, 0.9, "true", "", ""),
        ("When was it published?", 0.64, 22.0, 0.7, "", "1816", "1815"),
    ],
    columns=pd.Index(["query", *COLUMNS, "is_correct", "answer", "expected_answer"]),
)


class _Source(NamedTuple):
    rows: Labelled
    key: str  # of what was learned from it
    left_out: str


def learned() -> Learned | None:
    """Return what was learned last in this session, of the run that is shown or of a file."""
    kept = session().kept.get("confidence_learned")
    return kept[1] if kept is not None and (of_run() or kept[0].startswith("file ")) else None


def of_run() -> bool:
    """Tell whether what was learned last was learned from the run that is shown."""
    kept = session().kept.get("confidence_learned")
    return kept is not None and kept[0] == f"run {session().run_key}"


def loaded() -> tuple[str, SavedCalibration] | None:
    """Return name and content of the calibration file that was uploaded last."""
    found: tuple[str, SavedCalibration] | None = session().kept.get("confidence_file")
    return found


def draw() -> None:
    """Draw where to learn from, what was learned, and a calibration file to load."""
    chosen = st.segmented_control(
        "Learn from",
        [_OWN, _FILE],
        default=_OWN,
        required=True,
        key="confidence_source",
        persist_state="session",
    )
    try:
        source = _run() if chosen == _OWN else _uploaded()
    except InputError as error:
        st.error(plain(error), icon=":material/error:")
        source = None
    if source is not None:
        _learn(source)
    with st.expander("Load a calibration file", icon=":material/upload_file:"):
        _load()


def _run() -> _Source | None:
    try:
        rows = cached.once("confidence labels", labelled_run)
    except InputError as error:  # no label at all
        st.info(plain(error), icon=":material/inbox:")
        return None
    if not rows.n:
        st.info(
            f"No answer of the run has a label and all three signals{rows.left_out(': ')}.",
            icon=":material/inbox:",
        )
        return None
    return _Source(rows, f"run {session().run_key}", rows.left_out("; "))


def _uploaded() -> _Source | None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        file = st.file_uploader(
            "Labelled answers",
            type=SUFFIXES,
            key="confidence_rows",
            max_upload_size=_MEGABYTES,
            help="An answer a row: query, similarity, lexical, llm_score, and is_correct, or answer and "
            "expected_answer.",
        )
        show.csv("Template", _TEMPLATE, "labelled-answers", "confidence_template")
    kept = session().kept
    if file is not None and kept.get("confidence_rows", ("",))[0] != file.file_id:
        table, report = read_rows(file.getvalue(), file.name, _FIELDS)
        kept["confidence_rows"] = file.file_id, file.name, labelled(table), report.n_rejected
    if "confidence_rows" not in kept:
        return None
    file_id, name, rows, rejected = kept["confidence_rows"]
    bad = f"; {count(rejected, 'row')} could not be read" if rejected else ""
    st.caption(f"Read: {plain(name, one_line=True)}.")
    if not rows.n:
        raise InputError(f"{name} has no answer with a label and all signals{rows.left_out(': ')}{bad}.")
    return _Source(rows, f"file {file_id}", f"{rows.left_out('; ')}{bad}")


def _learn(source: _Source) -> None:
    rows = source.rows
    st.markdown(
        f"**{count(rows.n, 'labelled answer')}**, {int(rows.correct.sum()):,} of them "
        f"correct{source.left_out}."
    )
    if rows.n > MOST:
        st.info(
            f"At most {MOST:,} answers are learned from here; for more use the command "
            "`python -m core calibrate … --weights weights.json`.",
            icon=":material/terminal:",
        )
        return
    if st.button(
        "Learn weights and map", icon=":material/model_training:", type="primary", key="confidence_learn"
    ):
        with st.spinner("Learning from folds and resamples …"):
            session().kept["confidence_learned"] = source.key, learn(rows, configured())
    kept = session().kept.get("confidence_learned")
    if kept is not None and kept[0] == source.key:
        _result(kept[1])


def _result(found: Learned) -> None:
    """Draw what was learned: to keep the default or not, the weights, what they gain, and the maps."""
    weights = found.weights
    if weights.best is None:
        st.markdown(f"**Keep the default weights:** {plain(weights.reason)}.")
    else:
        low, high = weights.best.gain_interval
        st.markdown(
            f"**Use the weights by {_METHODS[weights.best.method].lower()}:** AUROC "
            f"{number(weights.default_auroc)} → {number(weights.best.auroc)} on answers that they were not "
            f"learned from (gain {number(weights.best.gain)}, 97.5 % interval {number(low)} to "
            f"{number(high)}; "
            f"n = {count(weights.n, 'answer')})."
        )
    if not weights.learned:
        return
    _weights(found)
    if found.proposed is not None:
        st.markdown(
            f"**Default and {_METHODS[found.proposed.method].lower()}**, on answers that neither was learned "
            "from"
        )
        measures.table(found.compared, "Default", "Learned")
    _maps(found)
    with st.container(horizontal=True):
        st.download_button(
            "Download the calibration (JSON)", to_json(found.saved), "confidence-calibration.json",
            "application/json", icon=":material/download:", on_click="ignore", key="confidence_saved",
        )  # fmt: skip
        if weights.best is not None:
            _use("Use these weights", found.saved, "confidence_use_learned")
    st.caption(
        "*Use these weights* applies to every page at once, without the map. To use both, give the file to "
        "the step under *Measure again with other options*."
    )


def _use(label: str, saved: SavedCalibration, key: str) -> None:
    st.button(
        label, icon=":material/check:", key=key, on_click=run.use, args=(dict(saved.weighting.weights),)
    )


def _weights(found: Learned) -> None:
    default = configured().weights
    rows = [
        {
            "signal": run.title_of(name),
            "default": default.get(name, 0.0),
            **{
                f"{one.method}{part}": value
                for one in found.weights.learned
                for part, value in (("", one.weights[name]), (" 95 %", _interval(one.intervals[name])))
            },
        }
        for name in default
    ]
    columns = {"signal": show.wide("Weight of", "medium"), "default": show.numeric("Default")}
    for one in found.weights.learned:
        title = _METHODS[one.method]
        columns |= {
            one.method: show.numeric(title),
            f"{one.method} 95 %": show.wide("95 % interval", "small"),
        }
    show.table(pd.DataFrame(rows), "Learned weights with their intervals", columns)
    gains = "; ".join(
        f"{_METHODS[one.method].lower()} {number(one.gain)} ({_interval(one.gain_interval)})"
        for one in found.weights.learned
    )
    st.caption(
        f"Gain in AUROC over the default ({number(found.weights.default_auroc)}; 0.50 by chance), "
        f"cross-validated, with the interval that two tries allow: {gains}."
    )


def _maps(found: Learned) -> None:
    st.markdown(f"**Map from confidence to probability:** {_MAPS[found.saved.map.kind]}.")
    rows = [
        {"map": title, "ece": one.ece, "brier": one.brier, "mce": one.mce}
        for title, one in [
            *[("No map", found.maps["platt"].before)],
            *[(_MAPS[kind], mapped.after) for kind, mapped in found.maps.items()],
        ]
    ]
    columns = {
        "map": show.wide("Map", "medium"),
        "ece": show.numeric("ECE", "%.3f", "Mean gap of confidence and accuracy; lower is better"),
        "mce": show.numeric("MCE", "%.3f", "Largest gap of a bin"),
        "brier": show.numeric("Brier score", "%.3f", "Lower is better; decides which map is kept"),
    }
    show.table(pd.DataFrame(rows), "Calibration without and with a map, cross-validated", columns)


def _interval(ends: tuple[float, float]) -> str:
    return f"{number(ends[0])} to {number(ends[1])}"


def _load() -> None:
    """Draw the upload of a calibration file and what it holds."""
    file = st.file_uploader(
        "Calibration file", type=["json"], key="confidence_calibration_file", max_upload_size=1,
        help=f"As downloaded here or written by the command line; at most {MAX_BYTES / 1e6:g} MB.",
    )  # fmt: skip
    kept = session().kept
    if file is not None:
        try:
            kept["confidence_file"] = file.name, from_json(file.getvalue())
        except InputError as error:
            st.error(plain(error), icon=":material/error:")
            return
    if (there := loaded()) is None:
        return
    name, saved = there
    weights = ", ".join(
        f"{run.title_of(one)} {number(weight)}" for one, weight in saved.weighting.weights.items()
    )
    st.markdown(
        f"**{plain(name, one_line=True)}:** {plain(weights)}; threshold {number(saved.weighting.threshold)}; "
        f"map: {_MAPS[saved.map.kind]}; learned from {count(saved.n, 'answer')}, {saved.n_correct:,} "
        "correct."
    )
    _use("Use its weights", saved, "confidence_use_file")
