"""Four ways to bring questions to a live run: the sample, a file, a typed one, or those of a loaded run."""

from __future__ import annotations

import dataclasses

import streamlit as st

from core.errors import InputError
from core.run import Run
from core.sources.content import SUFFIXES
from core.sources.dataset import Dataset, dataset_of, load_dataset, read_dataset, single_question
from core.text.display import count
from ui import library, people, sources, uploads
from ui.plain import plain
from ui.state import session

WAYS = ("Sample questions", uploads.UPLOADED, "Type a question", sources.LOADED)
_SAMPLE = library.SAMPLES / "questions.jsonl"


@st.cache_resource(max_entries=2, show_spinner="Reading the sample questions …")
def _sample() -> Dataset:
    return load_dataset(_SAMPLE)


def choose() -> Dataset | None:
    """Draw the four ways to bring questions, bound to the address; return the chosen data set."""
    way = st.segmented_control(
        "Questions",
        _offered(),
        default=WAYS[0],
        required=True,
        key="questions",
        bind="query-params",
        wrap=True,
    )
    ways = dict(zip(WAYS, (_from_sample, _from_upload, _typed, _from_run), strict=True))
    dataset = ways.get(way, _from_sample)()
    if dataset is not None:
        given = all(q.passages is not None for q in dataset.questions)
        what = "with passages as given" if given else "with documents to retrieve from"
        st.caption(f"{plain(dataset.name)}: {count(len(dataset.questions), 'question')} {what}")
    return dataset


def _offered() -> list[str]:
    """Return the ways; a run without texts has nothing to be asked about."""
    run = session().run
    return [way for way in WAYS if way != sources.LOADED or run is None or uploads.has_texts(run)]


def _from_sample() -> Dataset | None:
    if not _SAMPLE.is_file():
        st.info("This copy of the app has no sample questions; upload or type some.", icon=":material/inbox:")
        return None
    everything = _sample()
    kinds = sorted({q.kind for q in everything.questions if q.kind})
    left, right = st.columns([2, 1])
    chosen = left.multiselect(
        "Kinds",
        kinds,
        key="live_kinds",
        placeholder="All kinds",
        persist_state="session",
        format_func=lambda kind: str(kind).replace("_", " "),
    )
    dataset = _of_kinds(everything, chosen)
    with right:
        return _first(dataset, 1)


def _first(dataset: Dataset, usual: int) -> Dataset:
    most = len(dataset.questions)
    if most == 1:
        return dataset
    n = whole_number("How many", f"live_n_{most}", 1, most, min(usual, most), "The first ones are taken.")
    return dataset.head(n)


def whole_number(label: str, key: str, low: int, high: int, default: int, about: str | None = None) -> int:
    """Draw a whole number that keeps its value on other pages, and may be set before it is drawn."""
    if key not in st.session_state:
        st.session_state[key] = default
    return int(st.number_input(label, low, high, key=key, help=about, persist_state="session"))


def _of_kinds(dataset: Dataset, kinds: list[str]) -> Dataset:
    if not kinds:
        return dataset
    questions = tuple(q for q in dataset.questions if q.kind in kinds)
    return dataclasses.replace(
        dataset, questions=questions, digest=f"{dataset.digest}-{'-'.join(sorted(kinds))}"
    )


def _from_upload() -> Dataset | None:
    file = st.file_uploader(
        "File of questions",
        type=SUFFIXES,
        key="live_file",
        disabled=not people.may("review"),
        help="One question a line: question, then documents (texts, split and retrieved from) or passages "
        "(in retrieval order); optionally id and answers. Or SQuAD, HotpotQA, or any file to import.",
    )
    kept = session().live
    if file is not None and kept.get("file_id") != file.file_id:
        people.require("review")
        kept.update(file_id=file.file_id, uploaded=None, problem=None)
        try:
            kept["uploaded"] = read_dataset(file.getvalue(), file.name)
        except InputError as error:
            kept["problem"] = str(error)
    if file is not None and kept.get("problem"):
        st.error(plain(kept["problem"]), icon=":material/error:")
    dataset: Dataset | None = kept.get("uploaded")
    if dataset is not None:
        uploads.report(dataset.report, "live")
        return _first(dataset, 10)
    return None


def _from_run() -> Dataset | None:
    state = session()
    if state.run is None:
        st.info(
            "No run is loaded: upload a file on the Data page, or open a saved run.", icon=":material/inbox:"
        )
        return None
    st.markdown(
        "**Continue live:** the model below answers the same questions with the same passages in the same "
        "order. The loaded run stays as it is."
    )
    try:
        dataset = _of_run(state.run_key, state.run)
    except InputError as error:
        st.error(plain(error), icon=":material/error:")
        return None
    if not state.saved:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption("The loaded run is not saved. Save it to compare it with the new one.")
            sources.save_button("save_loaded")
    if dataset.report.n_rejected or dataset.report.n_issues:
        uploads.report(dataset.report, "continue")
    return _first(dataset, 10)


@st.cache_resource(scope="session", max_entries=2, show_spinner=False)
def _of_run(run_key: str, _run: Run) -> Dataset:
    return dataset_of(_run)


def _typed() -> Dataset | None:
    question = st.text_input("Question", key="live_question", persist_state="session")
    documents = st.text_area(
        "Documents",
        key="live_documents",
        height=200,
        persist_state="session",
        placeholder="Paste one or more documents.\n---\nA line of three dashes starts the next document.",
    )
    references = st.text_input(
        "Reference answer (optional)",
        key="live_reference",
        persist_state="session",
        help="With it, answers are correct or incorrect, and harmful passages can be found.",
    )
    if not (question or "").strip() or not (documents or "").strip():
        st.caption("Type a question and paste at least one document.")
        return None
    try:
        return single_question(question, documents, reference_answers=[references] if references else [])
    except InputError as error:
        st.error(plain(error), icon=":material/error:")
        return None
