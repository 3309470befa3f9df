"""The options of a step as widgets, and the form that starts a step on the loaded run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import streamlit as st

from core import diagnostics
from core.errors import InputError
from core.llm import BACKENDS
from core.pipeline import ModelChoice, Option, Step
from core.pipeline.steps import asks_questions
from core.socket import Diagnostic
from core.text.display import count
from ui import files, headlines, job_panel, models, people, sections, settings, show, uploads
from ui.plain import plain
from ui.state import session
from ui.work import Work, has_labels


def every_step(page: str, choice: ModelChoice, n_labelled: int) -> tuple[Step, ...] | None:
    """Draw the options of all steps, folded, None if one is wrong; who only looks at answers can be left out.

    ``n_labelled`` is the number of labelled questions.
    """
    found: list[Step | None] = []
    stepped = [one for one in diagnostics.DIAGNOSTICS if one.step is not None]
    for diagnostic in sorted(stepped, key=lambda one: not asks_questions(one.step)):  # answers come first
        title = plain(diagnostic.step.title)
        if not asks_questions(diagnostic.step):
            # What costs no call is done unless it is switched off, or has too few labels to say anything.
            usual = not diagnostic.step().needs_llm and has_labels(diagnostic.step, n_labelled)
            if not _switch(title, f"{page}_do_{diagnostic.name}", usual):
                continue
        with st.expander(f"Options: {title[:1].lower()}{title[1:]}"):
            found.append(options(diagnostic, page, choice))
    return None if None in found else tuple(step for step in found if step is not None)


def _switch(title: str, key: str, usual: bool) -> bool:
    """Draw a switch that has its usual value until a visitor changes it, also when that value changes."""
    _follow(key, usual)
    return bool(st.toggle(title, key=key, persist_state="session"))


def options(diagnostic: Diagnostic, page: str, choice: ModelChoice | None = None) -> Step | None:
    """Draw the options of one step, by its section where that has ``options``; None where one is wrong."""
    own = sections.of(diagnostic.name)
    try:
        if hasattr(own, "options"):
            found: Step | None = own.options(page)
            return found
        return diagnostic.step(**_widgets(diagnostic.step, page, choice))
    except InputError as error:
        st.error(plain(error), icon=":material/error:")
        return None


def opening(name: str, first: Callable[[], None]) -> bool:
    """Draw title, job, findings and numbers of a page; ``first`` where its step was not done yet."""
    headlines.heading(name)
    job_panel.draw(name)
    if not show.needs_run():
        return False
    if headlines.lacks(name):
        first()
        return False
    headlines.body(name)
    return True


def first(page: str, title: str, text: str, label: str, *, reads_passages: bool = True) -> None:
    """Draw what the step of a diagnostic does to a run that has not had it, and the form that starts it.

    ``{questions}`` in ``text`` stands for how many questions the run has.
    """
    run = session().the_run
    with st.container(border=True):
        st.subheader(title, anchor=False)
        st.markdown(text.format(questions=count(len(run.queries), "question")))
        on_loaded_run(page, label, reads_passages=reads_passages)


@contextmanager
def folded(title: str, icon: str = "refresh") -> Iterator[None]:
    """Fold away the form that starts a step again; the body draws it."""
    with st.expander(title, icon=f":material/{icon}:"):
        st.markdown("The result is a new run; this one stays as it is.")
        yield


def on_loaded_run(page: str, label: str, *, reads_passages: bool = True) -> None:
    """Draw the form that starts the step of a diagnostic on the loaded run; the result is a new run."""
    run, diagnostic = session().the_run, headlines.diagnostic_of(page)
    if reads_passages and not uploads.has_texts(run):
        st.info(uploads.NO_TEXTS, icon=":material/inbox:")
        return
    step = options(diagnostic, page)
    asks = step is not None and step.needs_llm
    choice = models.choose(page) if asks else None
    if not asks:
        people.explain("run")
    off = step is None or (asks and choice is None) or job_panel.busy(page)
    work = Work(() if step is None else (step,), choice, run)
    with st.container(horizontal=True):
        if st.button(label, icon=diagnostic.icon, type="primary", key=f"{page}_start", disabled=off):
            job_panel.start(page, work)
            st.rerun()
        if asks and st.button("Estimate cost", icon=":material/calculate:", key=f"{page}_plan", disabled=off):
            job_panel.estimate(page, work)
            st.rerun()


def _widgets(step: Any, page: str, choice: ModelChoice | None) -> dict[str, Any]:
    """Draw a widget for each field that has a title on screen; return the values."""
    hints, values, preset = get_type_hints(step, include_extras=True), {}, settings.preset()
    with st.grid(4, min_column_width=170):
        for one in fields(step):
            option = _option(hints[one.name])
            if option is not None and option.title and _applies(option, page):
                default = one.default if preset is None else preset.options.get(one.name, one.default)
                if one.name == "max_tokens" and choice is not None:
                    default = BACKENDS[choice.backend].max_tokens
                values[one.name] = _widget(option, f"{page}_{one.name}", default)
    return values


def _option(hint: Any) -> Option | None:
    extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((extra for extra in extras if isinstance(extra, Option)), None)


def _applies(option: Option, page: str) -> bool:
    """Tell whether an option means anything with the others of the form as they are."""
    name, value = option.where or ("", None)
    return st.session_state.get(f"{page}_{name}", value) == value


def _follow(key: str, default: Any) -> None:
    """Give a widget its default until a visitor changes it, also when the default changes."""
    kept = session().live
    if st.session_state.get(key, kept.get(key)) == kept.get(key):
        st.session_state[key] = kept[key] = default


def _widget(option: Option, key: str, default: Any) -> Any:
    """Draw one option; it has its default until a visitor changes it, also when the default changes."""
    _follow(key, default)
    shown: dict[str, Any] = {"key": key, "help": option.help, "persist_state": "session"}
    if isinstance(default, bool):
        return st.checkbox(option.title, **shown)
    if option.names == "models":
        return models.local(option.title, key, option.help, dict(option.choices))
    if option.choices:
        titles: dict[Any, str] = dict(option.choices)
        return st.selectbox(option.title, list(titles), format_func=titles.__getitem__, **shown)
    if isinstance(default, int):
        return int(st.number_input(option.title, step=1, **shown))
    path = files.choose(option.names, option.title, key, about=option.help)
    return None if path is None else str(path)
