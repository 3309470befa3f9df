"""Choosing a model: the back end, its server, a model of that server, and fetching one it lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.errors import Cancelled, LeadlineError
from core.llm import BACKENDS
from core.pipeline import ModelChoice, Progress
from ui import job_panel, people, servers, show
from ui.jobs import Job, registry
from ui.plain import plain, shortened
from ui.servers import Models
from ui.state import session


def choose(prefix: str = "live") -> ModelChoice | None:
    """Draw the choice of back end, address and model; None where the address is not one.

    ``prefix`` starts the widgets' keys: each use of a model remembers its own choice. Who may run nothing
    chooses nothing: each choice makes this server contact another.
    """
    if not people.may("run"):
        people.explain("run")
        return None
    left, right = st.columns(2)
    kind = left.selectbox(
        "Back end",
        list(BACKENDS),
        key=f"{prefix}_backend",
        format_func=lambda name: BACKENDS[name].title,
        persist_state="session",
    )
    backend = BACKENDS[kind]
    typed = None
    if backend.address is not None:
        typed = right.text_input(
            "Address of the server",
            key=f"{prefix}_url_{kind}",
            placeholder=_configured(kind),
            persist_state="session",
            help="Leave it empty for the configured server. A configured key is sent to that server only, "
            "never to an address typed here.",
        )
    choice = ModelChoice(kind, base_url=(typed or "").strip() or None)
    try:
        where = servers.address(choice)
    except LeadlineError as error:
        st.error(plain(error), icon=":material/link_off:")
        return None
    no_key = " A configured key is not sent there." if servers.without_key(choice) else ""
    st.caption(plain(backend.about) + (f" Address: {plain(where)}.{no_key}" if where else ""))
    choice = ModelChoice(kind, _model(choice, prefix), choice.base_url)
    if backend.pull is not None:
        _offer_to_fetch(choice, where)
    return choice


def _configured(kind: str) -> str:
    try:
        return servers.address(ModelChoice(kind))
    except LeadlineError:
        return "Address, like http://127.0.0.1:8080"


def _model(choice: ModelChoice, prefix: str) -> str | None:
    """Draw a menu of the server's models, or a text field where it cannot be asked."""
    backend = BACKENDS[choice.backend]
    found = servers.models(choice) if backend.list_models is not None else Models()
    default = backend.default_model or "the server's own choice"
    if backend.address is None:
        about = "Models that run on this machine."
        name = local("Model", f"{prefix}_model_menu_{choice.backend}", about, default=f"Default: {default}")
        return _remembered(f"{prefix}_model", choice.backend, name)
    if not found.names:
        name = _typed(f"{prefix}_model", choice.backend, f"Default: {default}")
        if found.problem:
            st.warning(plain(found.problem), icon=":material/cloud_off:")
            show.button("Ask again", "refresh", f"ask_{prefix}", servers.forget_models)
        return name
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = _listed(f"{prefix}_model", choice.backend, found.names, f"Default: {default}")
        about = "Ask the server for its models again"
        show.button("", "refresh", f"refresh_{prefix}", servers.forget_models, help=about)
    return name


def local(
    title: str, key: str, about: str, also: Mapping[str, str] | None = None, default: str = "None"
) -> str | None:
    """Draw the choice of a model that this process loads: one of the administrator's list, or of ``also``."""
    titles = {**(also or {}), **{name: name for name in servers.loadable()}}
    name = st.selectbox(
        title,
        list(titles),
        index=None,
        key=key,
        format_func=lambda one: titles.get(one, one),
        placeholder=default,
        persist_state="session",
        help=f"{about} The server's administrator lists further ones in `{servers.LISTED}`.",
    )
    servers.check_loadable(name, *(also or {}))
    return name


def _listed(prefix: str, kind: str, names: tuple[str, ...], default: str) -> str | None:
    """Draw the menu; a name that is not in it can be typed, and stays in it while it is chosen."""
    key = _same_text(prefix, kind, "menu")
    chosen = st.session_state.get(key)
    options = [*names, chosen] if chosen and chosen not in names else list(names)
    name = st.selectbox(
        "Model",
        options,
        index=None,
        key=key,
        placeholder=default,
        accept_new_options=True,
        persist_state="session",
        help="Models of the server; any other name can be typed.",
    )
    return _remembered(prefix, kind, name)


def _typed(prefix: str, kind: str, default: str) -> str | None:
    key = _same_text(prefix, kind, "text")
    return _remembered(
        prefix, kind, st.text_input("Model", None, key=key, placeholder=default, persist_state="session")
    )


def _same_text(prefix: str, kind: str, widget: str) -> str:
    """Return the widget's key; a name chosen in the other widget is carried over when it takes its place."""
    kept, key = session().live, f"{prefix}_{widget}_{kind}"
    if kept.get(f"{prefix}_widget_{kind}") != widget:
        kept[f"{prefix}_widget_{kind}"] = widget
        st.session_state[key] = kept.get(f"{prefix}_{kind}")
    return key


def _remembered(prefix: str, kind: str, name: Any) -> str | None:
    value = str(name).strip() or None if name is not None else None
    session().live[f"{prefix}_{kind}"] = value
    return value


def _offer_to_fetch(choice: ModelChoice, where: str) -> None:
    """Ask whether a model that the server does not have shall be fetched; show how far a fetch is."""
    job = registry().get(session().live.get("fetch"))
    if job is not None and job.active:
        _watch_fetch(job.id)
        return
    if job is not None and job.settings == choice:
        _tell(job)
    wanted = choice.model or BACKENDS[choice.backend].default_model
    found = servers.models(choice)
    if wanted is None or found.problem or {wanted, f"{wanted}:latest"} & set(found.names):
        return
    name = plain(shortened(wanted, 80), one_line=True)
    with st.container(border=True):
        st.markdown(
            f"**Fetch {name}?** The server at {plain(where)} does not have it. It is downloaded there, which "
            "can take minutes and gigabytes."
        )
        if st.button(f"Fetch {name}", icon=":material/download:", key="fetch_model"):
            _start_fetch(choice, wanted)
            st.rerun()


def _start_fetch(choice: ModelChoice, wanted: str) -> None:
    start = servers.pulling(choice, wanted)

    def work(job: Job) -> str:
        job.meter = Progress(unit="MB")
        parts = start()
        try:
            for part in parts:
                job.meter.update((part.done or 0) // 10**6, (part.total or 0) // 10**6, part.what)
                if job.cancelled():
                    raise Cancelled(f"Fetching {wanted} was cancelled; what was fetched is not lost.")
        finally:
            parts.close()
            servers.forget_models()
        return wanted

    job = Job("models", "fetch", f"Fetching {wanted}", choice)
    session().live["fetch"] = registry().start(job, work).id


def _tell(job: Job) -> None:
    """Say how a fetch ended."""
    if job.state == "finished":
        st.success(plain(f"{job.result} is on the server now."), icon=":material/check_circle:")
    elif job.state == "failed":
        st.error(plain(job.error), icon=":material/error:")
    else:
        st.info(plain(job.error), icon=":material/block:")


@st.fragment(run_every=1.0)
def _watch_fetch(job_id: str) -> None:
    job = registry().get(job_id)
    if job is None or not job.active:
        st.rerun()
    job_panel.progress(job, "fetch")
