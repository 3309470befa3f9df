"""The change itself: passages to switch off, move, edit and add; question, style, temperature and model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from core.errors import InputError
from core.llm.prompts import STYLES
from core.pipeline import ModelChoice
from core.whatif.asking import MOST_REPEATS, REPEATS, passages_of
from core.whatif.change import HOTTEST, Added, Change, read_change
from core.whatif.finding import Elsewhere
from ui import cached, models, questions, show
from ui.components import whatif as component
from ui.plain import plain, shortened
from ui.state import session
from ui.whatif import kept

_FOUND = 5


def draw(query_id: str, fits: bool) -> tuple[ModelChoice | None, int]:
    """Draw the bench; return the model that is chosen, and how often each prompt is asked again.

    ``fits`` says whether the address names the change.
    """
    st.markdown("Change what the model is shown, ask again, and see whether the answer moves beyond noise.")
    if (why := kept.problem(query_id)) is not None:
        st.error(plain(why), icon=":material/error:")
    _passages(query_id)
    _add(query_id)
    _prompt(query_id)
    choice = models.choose("whatif")
    repeats = st.number_input(
        "Repeats of each prompt", 0, MOST_REPEATS, REPEATS, key="whatif_repeats", persist_state="session",
        help="Further calls under other seeds, of the changed prompt and of the run's own. They show how far "
        "answers differ without any change.",
    )  # fmt: skip
    _share(query_id, fits)
    return choice, int(repeats)


def _passages(query_id: str) -> None:
    """Draw the passages of the new prompt as a list to arrange."""
    run, change = session().the_run, kept.change(query_id)
    try:
        arranged = change.arranged(passages_of(run, query_id))
    except InputError as error:
        st.error(plain(error), icon=":material/error:")
        return
    added = {one.id for one in change.added}
    rows = [
        {
            "id": one.passage_id,
            "title": one.title,
            "text": one.text,
            "on": on,
            "edited": one.passage_id in change.edits,
            "tags": [
                *(["added"] if one.passage_id in added else []),
                *(["edited"] if one.passage_id in change.edits else []),
            ],
        }
        for one, on in arranged
    ]

    def arrange(order: Sequence[str], keep: Sequence[str]) -> None:
        same = [one.passage_id for one in Change(added=change.added).apply(passages_of(run, query_id))]
        kept.put(
            query_id,
            lambda: replace(
                kept.change(query_id),
                order=() if order == same else tuple(order),
                keep=None if len(keep) == len(order) else tuple(keep),
            ),
        )

    def edit(passage_id: str, text: str | None) -> None:
        others = {name: old for name, old in kept.change(query_id).edits.items() if name != passage_id}
        edits = others if text is None else {**others, passage_id: text}
        kept.put(query_id, lambda: replace(kept.change(query_id), edits=edits))

    if rows:
        component.draw(rows, arrange, edit, "whatif_prompt")
    else:
        st.caption("No passages were retrieved for this question; you can add some.")


def _add(query_id: str) -> None:
    """Draw how a passage is added: found among those of the other questions, or typed."""
    with st.popover("Add a passage", icon=":material/add:"):
        found, typed = st.tabs(["Find in this run", "Type"])
        with found:
            wanted = st.text_input(
                "Words to find", str(questions.row(query_id)["question"]), key=kept.key("find", query_id)
            )
            _found(query_id, wanted)
        with typed:
            title = st.text_input("Title", key=kept.key("title", query_id))
            text = st.text_area("Text", key=kept.key("text", query_id))
            show.button("Add", "add", "whatif_add", _put_in, query_id, title, text, disabled=not text.strip())


def _found(query_id: str, wanted: str) -> None:
    run = session().the_run
    there = kept.change(query_id).added
    known = {one.text for one in passages_of(run, query_id)} | {one.text for one in there}
    elsewhere = cached.once("passages of other questions", lambda diagnosis: Elsewhere(diagnosis.run))
    passages = elsewhere.find(wanted, frozenset(known), _FOUND)
    if not passages:
        st.caption("No other passage of this run has any of these words.")
    for place, one in enumerate(passages):
        st.markdown(f"**{plain(shortened(one.title, 80))}** {plain(shortened(one.text, 240))}")
        show.button("Add", "add", f"whatif_found_{place}", _put_in, query_id, one.title, one.text)


def _put_in(query_id: str, title: str, text: str) -> None:
    def added() -> Change:
        change = kept.change(query_id)
        ids = {one.passage_id for one in passages_of(session().the_run, query_id)}
        taken = ids | {one.id for one in change.added}
        number = next(i for i in range(1, len(taken) + 2) if f"added {i}" not in taken)
        one = Added(f"added {number}", text, title)
        keep = None if change.keep is None else (*change.keep, one.id)
        return replace(change, added=(*change.added, one), keep=keep)

    kept.put(query_id, added)


def _prompt(query_id: str) -> None:
    """Draw question, style and temperature."""
    change, own = kept.change(query_id), str(questions.row(query_id)["question"])
    keys = {name: kept.key(name, query_id) for name in ("question", "style", "temperature")}

    def set_question() -> None:
        text = st.session_state[keys["question"]]
        kept.put(query_id, lambda: replace(kept.change(query_id), question=None if text == own else text))

    def set_style() -> None:
        style = st.session_state[keys["style"]]
        kept.put(query_id, lambda: replace(kept.change(query_id), style=style))

    def set_temperature() -> None:
        value = float(st.session_state[keys["temperature"]])
        kept.put(query_id, lambda: replace(kept.change(query_id), temperature=value))

    st.text_area(
        "Question", change.question or own, key=keys["question"], on_change=set_question, height="content"
    )
    left, right = st.columns(2)
    styles = [None, *STYLES]
    left.selectbox(
        "Prompt style", styles, styles.index(change.style), key=keys["style"], on_change=set_style,
        format_func=lambda style: "As in the run" if style is None else style.capitalize(),
    )  # fmt: skip
    right.number_input(
        "Temperature", 0.0, HOTTEST, float(change.temperature), 0.1, key=keys["temperature"],
        on_change=set_temperature, help="0: the most likely word every time.",
    )  # fmt: skip


def _share(query_id: str, fits: bool) -> None:
    """Draw how a change is kept as a file, loaded and taken back; the address names it where it fits."""
    change = kept.change(query_id)
    if not fits:
        st.caption(
            "This change is too long for the address, so a reload loses it: download it to keep or share it."
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        show.download(
            "Download the change", lambda: change.to_json().encode(), "leadline-change.json", "whatif_json"
        )
        with st.popover("Load a change", icon=":material/upload_file:"):
            file = st.file_uploader("A change as JSON", "json", key=kept.key("file", query_id))
            if file is not None:
                text = file.getvalue().decode(errors="replace")
                show.button("Use it", "check", "whatif_load", kept.put, query_id, lambda: read_change(text))
        show.button(
            "Undo all", "undo", "whatif_reset", kept.put, query_id, Change, disabled=change == Change()
        )
