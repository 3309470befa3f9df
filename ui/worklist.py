"""The worklist: all questions, filtered and sorted; what was noted of them; the way to each."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import pandas as pd
import streamlit as st

from core.diagnosis import Diagnosis
from core.errors import InputError
from core.reviews import DISPUTED, LABELS, LONGEST_NOTE, ChangedMeanwhile, Review, disputed
from core.text.display import count
from core.worklist import columns_of, key_of, labels, orders, select, title_of, worklist_csv
from ui import cached, doors, headlines, people, reviews, router, show, sources
from ui.plain import plain, shortened
from ui.state import FILTER, session

STATUSES = {"open": "Open", "reviewed": "Reviewed", "flagged": "Flagged"}
_FILTERS = {**STATUSES, DISPUTED: "Reviewers disagree"}
_ICONS = {
    "open": ":material/radio_button_unchecked:",
    "reviewed": ":material/check_circle:",
    "flagged": ":material/flag:",
}
_TITLES = {
    "finding": "Finding",
    "where": "Condition",
    "label": "Label",
    "kind": "Kind",
    "words": "Words",
    "status": "Review",
}
_BESIDE = 10  # rows of the list beside the workbench
_PAGE = 200  # rows of the table: all of a large run would have to be sent to the browser at every step
_LONGEST = 300  # characters of a question in a row


@dataclass(frozen=True)
class _Listed:
    """The questions that the filter lets through, and what it asked in vain."""

    frame: pd.DataFrame
    problems: tuple[str, ...]

    @cached_property
    def ids(self) -> tuple[str, ...]:
        return tuple(self.frame["query_id"])

    @cached_property
    def places(self) -> Mapping[str, int]:
        return {query_id: place for place, query_id in enumerate(self.ids)}

    @cached_property
    def digest(self) -> int:
        return _digest(self.ids)

    @cached_property
    def statuses(self) -> Mapping[str, int]:
        return self.frame["status"].value_counts().to_dict()


def ids() -> tuple[str, ...]:
    """Return the ids of the listed questions, in the order of the list."""
    return _selected().ids


def place(query_id: str | None) -> int | None:
    """Return the place of a question in the list, from 0; None where it is not listed."""
    return None if query_id is None else _selected().places.get(query_id)


def total() -> int:
    """Return the number of questions of the run."""
    return len(_frame())


def current() -> str | None:
    """Return the question that the workbench shows: the one last opened, else the first of the list."""
    state, known = session(), _frame()["query_id"]
    if state.question is not None and (known == state.question).any():
        return state.question
    if state.question is not None:
        st.warning(
            f"This run has no question {plain(shortened(state.question, 60))}; here is the first one listed.",
            icon=":material/link_off:",
        )
    state.question = next(iter((*ids(), *known)), None)
    sources.write_address()
    return state.question


def step(by: int) -> str | None:
    """Return the question so many places further in the list than the current one; None beyond its ends."""
    listed, at = ids(), place(session().question)
    if at is None:
        return listed[0] if listed and by > 0 else None
    return listed[at + by] if 0 <= at + by < len(listed) else None


def unreviewed() -> str | None:
    """Return the next listed question that this person has not reviewed; after the last comes the first."""
    frame, at = _selected().frame, place(session().question)
    after = -1 if at is None else at
    places = [row for row, status in enumerate(frame["status"]) if status == "open" and row != at]
    found = next((row for row in places if row > after), next(iter(places), None))
    return None if found is None else frame["query_id"].iloc[found]


def said() -> Mapping[str, str]:
    """Return every part of the filter that restricts the list, for people."""
    given = asdict(session().filter)
    return {
        part: f"{title}: {shortened(_value(part, given[part]), 80)}"
        for part, title in _TITLES.items()
        if given[part]
    }


def door(diagnostic: str) -> None:
    """Draw the ways to the workbench: to the questions of each finding of a diagnostic, and to all listed.

    A finding that counts every case would list them all, and has none.
    """
    st.subheader("Questions", anchor=False)
    found = _selected()
    _chips(diagnostic)
    with st.container(horizontal=True, gap="medium"):
        for one in cached.findings():
            if one.diagnostic == diagnostic and one.query_ids and one.n < one.of:
                to = {"finding": key_of(one), "question": one.query_ids[0]}
                label = plain(headlines.reading(one), one_line=True)
                sources.link(router.WORKBENCH, label, "search", plain(one.sentence), **to)
        if found.ids:
            what = "that match" if said() else "of the run"
            label = f"Read the {count(len(found.ids), 'question')} {what}"
            sources.link(router.WORKBENCH, label, question=found.ids[0])


def draw(key: str) -> None:
    """Draw filters, count and table; choosing a row opens its question in the workbench."""
    found = _selected()
    _filters(key)
    _chips(key)
    for problem in found.problems:
        st.warning(plain(problem), icon=":material/filter_alt_off:")
    _count(found)
    if not found.ids:
        st.info("No question matches; clear a filter.", icon=":material/search_off:")
    else:
        _table(found, key)
    _export(found.frame, key)


def narrow() -> None:
    """Draw the slim list beside the workbench: the part of it with the current question."""
    found = _selected()
    _chips("beside")
    for problem in found.problems:
        st.warning(plain(problem), icon=":material/filter_alt_off:")
    _menu("beside", "sort", _offered()[2])
    listed, question = found.ids, session().question
    if not listed:
        st.caption("No question matches; clear a filter.")
        return
    at = place(question)
    start = 0 if at is None else at - at % _BESIDE
    where = "not in the list" if at is None else f"question {at + 1:,}"
    st.caption(f"{where.capitalize()} of {len(listed):,}")
    part = found.frame.iloc[start : start + _BESIDE]
    for query_id, status, text in zip(
        part["query_id"], _marks(part["status"]), part["question"], strict=True
    ):
        said = plain(shortened(text, _LONGEST) or query_id, one_line=True)
        st.button(
            f"{status} **{said}**" if query_id == question else f"{status} {said}",
            key=f"beside_q_{query_id}",
            type="tertiary",
            wrap=True,
            on_click=session().open,
            args=(query_id,),
        )


def review(query_id: str) -> None:
    """Draw status, labels and note of a question; each is kept as soon as it changes."""
    noted = reviews.every()[0]
    state, stored = session(), noted.get(query_id, Review())
    shown = state.conflicts.get(query_id, stored)
    keys = {part: f"review_{part}_{query_id}" for part in ("status", "note", *LABELS)}
    for part, key in keys.items():
        st.session_state[key] = getattr(shown, part)
    off = not people.may("review")
    keep: Any = {"on_change": _put, "args": (query_id, keys, stored), "disabled": off}
    st.segmented_control(
        "Review",
        list(STATUSES),
        required=True,
        key=keys["status"],
        label_visibility="collapsed",
        format_func=lambda status: f"{_ICONS[status]} {STATUSES[status]}",
        **keep,
    )
    people.explain("review")
    given = bool(shown.note or shown.labels)
    with st.popover("Labels and note", icon=":material/edit_note:" if given else ":material/note_add:"):
        for name, words in LABELS.items():
            st.segmented_control(
                f"The answer is {' or '.join(words)}",
                [True, False],
                key=keys[name],
                label_visibility="collapsed",
                format_func=_titles(words),
                **keep,
            )
        st.text_area(
            "Note",
            key=keys["note"],
            max_chars=LONGEST_NOTE,
            height=120,
            placeholder="What is wrong here, and what to do about it",
            **keep,
        )


def _titles(words: tuple[str, str]) -> Callable[[bool], str]:
    return lambda value: words[not value].capitalize()


def others(query_id: str) -> None:
    """Draw what other people say of a question."""
    for person, found in reviews.of_everybody()[0].items():
        if person != people.name() and (one := found.get(query_id)) is not None:
            verdict = ", ".join((STATUSES[one.status], *one.labels))
            note = f": {shortened(one.note, _LONGEST)}" if one.note else ""
            st.caption(f"{_ICONS[one.status]} {plain(f'{person} · {verdict}{note}', one_line=True)}")


def unkept(query_id: str) -> None:
    """Draw what others say of a question, and why its review is not kept or differs in another tab."""
    others(query_id)
    noted, problem = reviews.every()
    if query_id in session().conflicts:
        _conflict(query_id, noted.get(query_id, Review()))
    _where_kept(problem)


def _put(query_id: str, keys: Mapping[str, str], seen: Review | None) -> None:
    state, given = session(), {part: st.session_state[key] for part, key in keys.items()}
    try:
        mine = Review(given.pop("status") or "open", given.pop("note") or "", **given)
        state.unwritten = None
        try:
            reviews.put(query_id, mine, seen)
            state.conflicts.pop(query_id, None)
        except ChangedMeanwhile:
            state.conflicts[query_id] = mine
    except InputError as error:
        state.unwritten = str(error)


def _conflict(query_id: str, stored: Review) -> None:
    mine = session().conflicts[query_id]
    st.warning(plain(str(ChangedMeanwhile(stored))), icon=":material/sync_problem:")
    with st.container(horizontal=True):
        st.button("Keep mine", key="review_mine", on_click=_settle, args=(query_id, mine))
        st.button("Use the other", key="review_other", on_click=_settle, args=(query_id, None))


def _settle(query_id: str, mine: Review | None) -> None:
    state = session()
    state.conflicts.pop(query_id, None)
    if mine is not None:
        try:
            reviews.put(query_id, mine, None)
        except InputError as error:
            state.unwritten = str(error)


def _where_kept(problem: str | None) -> None:
    """Say where reviews are when they are not on disk, and why."""
    reason = session().unwritten or problem
    if reason:
        st.warning(
            plain(
                f"{reason} New reviews are kept in this tab only: download the worklist before you close it."
            ),
            icon=":material/cloud_off:",
        )
    elif reviews.unsaved():
        st.caption("Reviews are kept in this tab until the run is saved.")


def _frame() -> pd.DataFrame:
    return cached.worklist()


def _selected() -> _Listed:
    """Return the listed questions; selected once for all pages, until filter, reviews or settings change."""
    state, everybody = session(), reviews.of_everybody()[0]
    key = (cached.key(), state.filter, everybody)
    if state.listed is None or state.listed[0] != key:
        noted, apart = everybody.get(people.name(), {}), disputed(everybody)
        state.listed = (key, _Listed(*select(cached.diagnosis(), _frame(), state.filter, noted, apart)))
    found: _Listed = state.listed[1]
    return found


def _value(part: str, value: str) -> str:
    return _FILTERS.get(value, value) if part == "status" else doors.meaning(part, value)


def _filters(key: str) -> None:
    diagnosis = cached.diagnosis()
    named = [one for one in cached.findings() if one.query_ids]
    kinds, texts, _ = _offered()
    with st.grid(3, min_column_width=150):
        _text(key)
        _menu(key, "finding", {key_of(one): title_of(diagnosis, one) for one in named})
        _menu(key, "label", {text: _said(text) for text in texts})
        _menu(key, "kind", {text: _said(text) for text in kinds})
        several = len(reviews.of_everybody()[0]) > 1 or session().filter.status == DISPUTED
        _menu(key, "status", _FILTERS if several else STATUSES)
        _menu(key, "sort", _offered()[2])


def _offered() -> tuple[Sequence[str], Sequence[str], Mapping[str, str]]:
    """Return the kinds, labels and orders that the list can be restricted to or sorted by."""
    frame = _frame()

    def found(diagnosis: Diagnosis) -> tuple[Sequence[str], Sequence[str], Mapping[str, str]]:
        return sorted(set(frame["kind"].dropna())), labels(frame), orders(diagnosis, frame)

    return cached.once("filters", found)


def _text(key: str) -> None:
    widget = f"{key}_words"
    st.session_state[widget] = session().filter.words
    st.text_input(
        "Find",
        key=widget,
        type="search",
        placeholder="Words of the question or answer",
        on_change=_set,
        args=("words", widget),
    )


def _menu(key: str, part: str, offered: Mapping[str, str]) -> None:
    if not offered:
        return
    widget, value = f"{key}_{part}", getattr(session().filter, part)
    st.session_state[widget] = value if value in offered else ""
    titles = {"": "Any", **offered}
    st.selectbox(
        _TITLES.get(part, "Order"),
        list(titles),
        key=widget,
        format_func=lambda name: shortened(titles.get(name, name), 60),
        on_change=_set,
        args=(part, widget),
    )


def _set(part: str, widget: str) -> None:
    session().narrow(**{part: (st.session_state[widget] or "").strip()})


def _clear(*parts: str) -> None:
    session().narrow(**dict.fromkeys(parts, ""))


def _chips(key: str) -> None:
    """Draw what restricts the list, each with a way to clear it."""
    active = said()
    if not active:
        return
    with st.container(horizontal=True, gap="xsmall"):
        for part, text in active.items():
            label, about = plain(text, one_line=True), "Clear this filter"
            show.button(label, "close", f"{key}_clear_{part}", _clear, part, help=about)
        if len(active) > 1:
            st.button("Clear all", key=f"{key}_clear", type="tertiary", on_click=_clear, args=FILTER[:-1])


def _count(found: _Listed) -> None:
    shares = [f"{found.statuses.get(name, 0):,} {name}" for name in ("reviewed", "flagged")]
    n, of = len(found.ids), total()
    st.markdown(f"**{n:,} of {count(of, 'question')}** · {' · '.join(shares)}")


def _table(listed: _Listed, key: str) -> None:
    own, found = columns_of(cached.diagnosis()), _page(listed, key)
    lists = [name for name, column in own.items() if column.is_list]
    columns: dict[str, Any] = {
        "status": st.column_config.TextColumn("Review", width=90),
        "question": st.column_config.TextColumn("Question", width=300),
        **dict.fromkeys(lists),  # their small charts say most at a glance
        "findings": st.column_config.ListColumn("Findings", width="medium"),
    }
    rows = found.assign(
        status=_marks(found["status"]) + " " + found["status"].map(STATUSES),
        question=_shortened(found["question"]),
        note=_shortened(found["note"]),
        kind=found["kind"].map(_said),
    )
    for name, column in own.items():
        if not (column.is_list or pd.api.types.is_numeric_dtype(rows[name])) or column.pattern == "bool":
            rows[name] = rows[name].map(_said)
        columns[name] = show.column(column, column.title, rows[name])
    columns["kind"] = st.column_config.TextColumn("Kind", width="small")
    columns["note"] = st.column_config.TextColumn("Note", width="medium")
    order = [name for name in columns if name == "question" or _has_values(rows[name])]
    chosen = st.dataframe(
        rows[order],
        hide_index=True,
        column_config={name: columns[name] for name in order},
        key=f"{key}_table_{_digest(found['query_id'])}",
        on_select="rerun",
        selection_mode=("single-row", "single-cell"),
        placeholder="—",
        alt="Questions, one a row; choosing one opens it",
    )
    row = _row(chosen)
    if doors.newly(f"{key}_table", None if row is None else found["query_id"].iloc[row]):
        doors.open_question(found["query_id"].iloc[row])


def _page(listed: _Listed, key: str) -> pd.DataFrame:
    """Return the rows of the page that is chosen, by default the first; another list begins anew."""
    n = len(listed.ids)
    if n <= _PAGE:
        return listed.frame
    with st.container(horizontal=True, vertical_alignment="center"):
        page = st.pagination(-(-n // _PAGE), key=f"{key}_page_{listed.digest}", persist_state="session")
        start = (page - 1) * _PAGE
        st.caption(f"{start + 1:,} to {min(start + _PAGE, n):,} of {n:,}", width="content")
    return listed.frame.iloc[start : start + _PAGE]


def _export(found: pd.DataFrame, key: str) -> None:
    if found.empty:
        return
    diagnosis = cached.diagnosis()
    run = diagnosis.run
    label = f"Download these {count(len(found), 'question')} with reviews (CSV)"
    file = f"leadline-{run.run_id}{'-simulated' if run.simulated else ''}-worklist.csv"
    show.download(label, lambda: worklist_csv(diagnosis, found), file, f"{key}_export")


def _row(chosen: Any) -> int | None:
    """Return the row that was chosen, itself or by one of its cells."""
    selection = chosen["selection"]
    rows = [*selection.get("rows", ()), *(cell[0] for cell in selection.get("cells", ()))]
    return rows[-1] if rows else None


def _said(value: Any) -> Any:
    """Return a label or a yes or no for people."""
    if isinstance(value, str):
        return value[:1].upper() + value[1:].replace("_", " ")
    known = show.yes_or_no(value)
    return None if known is None else {True: "Yes", False: "No"}[known]


def _marks(statuses: pd.Series) -> pd.Series:
    return statuses.map({"open": "○", "reviewed": "✓", "flagged": "⚑"})


def _shortened(texts: pd.Series) -> pd.Series:
    return texts.str.slice(0, _LONGEST)


def _has_values(values: pd.Series) -> bool:
    return any(bool(value) if isinstance(value, (str, list)) else value == value for value in values.dropna())


def _digest(query_ids: Sequence[str]) -> int:
    return zlib.crc32("\n".join(query_ids).encode())
