"""Three ways to bring questions to a live run: the sample, a file, or one typed question."""

from __future__ import annotations

import dataclasses

import streamlit as st

from core.errors import InputError
from core.sources.dataset import Dataset, load_dataset, read_dataset, single_question
from ui import library, show, uploads
from ui.plain import plain
from ui.state import session

WAYS = ("Sample questions", "Upload questions", "Type a question")
_SAMPLE = library.SAMPLES / "questions.jsonl"


@st.cache_resource(max_entries=2, show_spinner="Reading the sample questions …")
def _sample() -> Dataset:
    return load_dataset(_SAMPLE)


def choose() -> Dataset | None:
    """Draw the three ways to bring questions; return the chosen data set."""
    way = st.segmented_control(
        "Questions", WAYS, default=WAYS[0], required=True, key="live_way", persist_state="session"
    )
    dataset = {WAYS[0]: _from_sample, WAYS[1]: _from_upload, WAYS[2]: _typed}[way or WAYS[0]]()
    if dataset is not None:
        given = all(q.passages is not None for q in dataset.questions)
        what = "with passages as given" if given else "with documents to retrieve from"
        st.caption(f"{plain(dataset.name)}: {show.count(len(dataset.questions), 'question')} {what}")
    return dataset


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
    most = len(dataset.questions)
    n = right.number_input(
        "How many", 1, most, min(3, most), key=f"live_n_{most}", help="The first ones are taken."
    )
    return dataset.head(int(n))


def _of_kinds(dataset: Dataset, kinds: list[str]) -> Dataset:
    if not kinds:
        return dataset
    questions = tuple(q for q in dataset.questions if q.kind in kinds)
    return dataclasses.replace(
        dataset, questions=questions, digest=f"{dataset.digest}-{'-'.join(sorted(kinds))}"
    )


def _from_upload() -> Dataset | None:
    file = st.file_uploader(
        "Questions as JSON Lines or CSV",
        type=["jsonl", "json", "csv", "gz"],
        key="live_file",
        help="One question a line: question, then documents (texts, split and retrieved from) or passages "
        "(in retrieval order); optionally id and answers.",
    )
    kept = session().live
    if file is None:
        return kept.get("uploaded")
    if kept.get("file_id") != file.file_id:
        kept.update(file_id=file.file_id, uploaded=None, problem=None)
        try:
            kept["uploaded"] = read_dataset(file.getvalue(), file.name)
        except InputError as error:
            kept["problem"] = str(error)
    if kept.get("problem"):
        st.error(plain(kept["problem"]), icon=":material/error:")
    dataset: Dataset | None = kept["uploaded"]
    if dataset is not None:
        uploads.report(dataset.report, "live")
    return dataset


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
        "Right answer (optional)",
        key="live_reference",
        persist_state="session",
        help="With it, answers are judged and harmful passages can be found.",
    )
    if not (question or "").strip() or not (documents or "").strip():
        st.caption("Type a question and paste at least one document.")
        return None
    try:
        return single_question(question, documents, reference_answers=[references] if references else [])
    except InputError as error:
        st.error(plain(error), icon=":material/error:")
        return None
