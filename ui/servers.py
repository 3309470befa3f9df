"""Which server a visitor's choice means, what may be sent there, and what models it has.

A key comes from the environment or from Streamlit's secrets, never from a page. Any visitor may type
an address, so a key goes only to the address it was configured for: elsewhere none is sent. Keys are
read when a model is opened and handed on; no session, job or cache holds one.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.errors import InputError, LeadlineError
from core.llm import BACKENDS, LLM
from core.pipeline import ModelChoice
from core.text.display import shorten
from ui.jobs import registry

# How long a server's list of models is believed. Also how long one that does not answer is left alone:
# waiting for it again at every click would make the page unusable.
_SECONDS = 30.0


LISTED = "LEADLINE_MODELS"


@dataclass(frozen=True, slots=True)
class Models:
    """What a server answered when asked for its models: names, or why there are none."""

    names: tuple[str, ...] = ()
    problem: str | None = None


def loadable() -> tuple[str, ...]:
    """Return the models beside the packaged ones that a page may load into this process."""
    return tuple(filter(None, map(str.strip, os.environ.get(LISTED, "").split(","))))


def check_loadable(name: str | None, *others: str | None) -> None:
    """Raise InputError for a model that the administrator did not list and is none of the ``others``."""
    if name is not None and name not in (*others, *loadable()):
        raise InputError(
            f"This server does not load {shorten(name)}: a page may use the packaged model and those that "
            f"the administrator lists in {LISTED}."
        )


def address(choice: ModelChoice) -> str:
    """Return the address that texts are sent to; "" where the back end has no server."""
    chosen = BACKENDS[choice.backend]
    if chosen.address is None:
        return ""
    return chosen.address(choice.base_url or _secret(choice.backend, "base_url"))


def without_key(choice: ModelChoice) -> bool:
    """Tell whether no key goes along although the back end takes one: the address is a visitor's own."""
    return _key(choice) == {"api_key": ""}


def resolved(choice: ModelChoice) -> ModelChoice:
    """Return the same choice with its defaults spelt out: whose are the same share a model."""
    model = choice.model or BACKENDS[choice.backend].default_model
    return ModelChoice(choice.backend, model, address(choice) or None)


def opener(choice: ModelChoice) -> Callable[[], LLM]:
    """Return a function that opens the model, once for the whole server; for use within a job.

    Secrets are read here and now, because a job's thread belongs to no session.
    """
    chosen = BACKENDS[choice.backend]
    if chosen.address is None:
        check_loadable(choice.model, chosen.default_model)
    url, key = _url(choice), _key(choice)
    return lambda: registry().model(choice.backend, choice.model, url, key)


def models(choice: ModelChoice) -> Models:
    """Ask the server for its models; the answer, or its absence, is kept for a few seconds."""
    return _models(choice.backend, _url(choice), _key(choice))


def forget_models() -> None:
    """Ask anew next time."""
    _models.clear()


def pulling(choice: ModelChoice, model: str) -> Callable[[], Any]:
    """Return a function that starts fetching a model to the server, and gives its progress."""
    pull = BACKENDS[choice.backend].pull
    assert pull is not None, "asked only where models can be fetched"
    options = _accepted(pull, _url(choice) | _key(choice))
    return lambda: pull(model, **options)


@st.cache_data(ttl=_SECONDS, max_entries=50, show_spinner="Asking the server for its models …")
def _models(kind: str, url: dict[str, str], _secret_options: Mapping[str, str]) -> Models:
    ask = BACKENDS[kind].list_models
    if ask is None:
        return Models()
    try:
        return Models(tuple(ask(**_accepted(ask, url | dict(_secret_options)))))
    except LeadlineError as error:
        return Models(problem=str(error))


def _url(choice: ModelChoice) -> dict[str, str]:
    if BACKENDS[choice.backend].address is None:
        return {}
    url = _secret(choice.backend, "base_url") if _is_configured(choice) else choice.base_url
    return {"base_url": url} if url else {}


def _key(choice: ModelChoice) -> dict[str, str]:
    """Return the key as an option: "" is none at all; without the option the environment is looked at."""
    if "api_key" not in inspect.signature(BACKENDS[choice.backend].open).parameters:
        return {}
    if not _is_configured(choice):
        return {"api_key": ""}
    key = _secret(choice.backend, "api_key")
    return {"api_key": key} if key else {}


def _is_configured(choice: ModelChoice) -> bool:
    """Tell whether the choice means the configured server, and no login or query of the visitor's own."""
    typed = choice.base_url
    if not typed:
        return True
    return not {"@", "?"} & set(typed) and address(choice) == address(ModelChoice(choice.backend))


def _accepted(function: Callable[..., Any], options: Mapping[str, str]) -> dict[str, str]:
    names = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in names}


def _secret(kind: str, name: str) -> str | None:
    """Read ``[kind] name`` of Streamlit's secrets, where there are any."""
    if not st.secrets.load_if_toml_exists():
        return None
    section = st.secrets.get(kind)
    value = section.get(name) if isinstance(section, Mapping) else None
    return value.strip() or None if isinstance(value, str) else None
