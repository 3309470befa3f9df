"""Who uses the dashboard and what they may do: the person who signed in, or the only one without sign-in.

Sign-in is Streamlit's own, on where its secrets have a table ``[auth]``; their table ``[roles]`` says who may
do what. Without sign-in there is one person, who may do everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAuthError

from core.errors import InputError
from core.reviews import READER
from core.text.display import shorten
from core.text.strict import clean
from ui.plain import plain

# Each may do what those before it may.
ROLES = ("reader", "reviewer", "runner")
_NEEDS = {"review": "reviewer", "run": "runner"}
_DOES = {
    "review": "upload, save, review and add to stores",
    "run": "start work or contact a model",
}
_LONGEST = 200
_acting: ContextVar[str | None] = ContextVar("acting", default=None)


@st.cache_resource(show_spinner=False)
def _is_on() -> bool:
    # Kept, so that a secrets file which disappears while the server runs lets nobody in.
    return bool(st.secrets.load_if_toml_exists()) and "auth" in st.secrets


def signs_in() -> bool:
    """Tell whether people sign in on this server; a change takes a restart."""
    return _is_on()


def name() -> str:
    """Return the name under which this session's reviews, notes and runs are kept; never empty.

    It is the e-mail address; the provider's ``sub`` where there is none or it is not verified. Other claims,
    such as ``preferred_username``, can be chosen freely at many providers, by someone else's name too.
    """
    if not signs_in():
        return READER
    acting = _acting.get()
    if acting is not None:
        return acting
    claims = st.user.to_dict()
    named = ("email", "sub") if claims.get("email_verified", True) in (True, "true") else ("sub",)
    texts = (clean(str(claims.get(claim) or "")).strip() for claim in named)
    found = _folded(next(filter(None, texts), "")[:_LONGEST])
    if not claims.get("is_logged_in") or not found:
        raise InputError("Nobody is signed in, or the provider gives neither e-mail nor sub: sign in again.")
    return found


@contextmanager
def acting_as(person: str) -> Iterator[None]:
    """Act for a person in a thread of their job, which belongs to no session."""
    token = _acting.set(person)
    try:
        yield
    finally:
        _acting.reset(token)


def role_of(person: str, table: Mapping[str, Any]) -> str | None:
    """Return the role of a person by the table: its own, that of its domain, else ``default``; None for none.

    >>> table = {"ada@example.org": "runner", "@example.org": "reviewer"}
    >>> [role_of(one, table) for one in ("ada@example.org", "bob@example.org", "eve@example.com")]
    ['runner', 'reviewer', None]
    """
    known = {_folded(str(key)): role for key, role in table.items()}
    domain = "@" + person.rpartition("@")[2] if "@" in person else person
    for key in (person, domain, "default"):
        if key in known:
            if known[key] not in ROLES:
                raise InputError(
                    f"The role of {shorten(key)} in [roles] must be one of {', '.join(ROLES)}, got "
                    f"{shorten(repr(known[key]))}."
                )
            return str(known[key])
    return None


def _folded(person: str) -> str:
    """Return an address in small letters; a ``sub`` as it is, since two may differ in nothing else."""
    return person.lower() if "@" in person else person


def role() -> str | None:
    """Return what the person is here; None may not enter."""
    if not signs_in():
        return ROLES[-1]
    table = st.secrets.get("roles", {})
    return role_of(name(), table if isinstance(table, Mapping) else {})


def why_not(action: str) -> str | None:
    """Return why the person may not ``review`` or ``run``, in one sentence; None where they may."""
    own, needed = role(), _NEEDS[action]
    if own is not None and ROLES.index(own) >= ROLES.index(needed):
        return None
    return f"Your role here is {own or 'none'}: only a {needed} may {_DOES[action]}."


def may(action: str) -> bool:
    """Tell whether the person may ``review`` or ``run``; who draws a widget for it disables it else."""
    return why_not(action) is None


def require(action: str) -> None:
    """Raise InputError where the person may not ``review`` or ``run``; who carries something out calls it."""
    if (reason := why_not(action)) is not None:
        raise InputError(reason)


def explain(action: str) -> None:
    """Draw why the person may not ``review`` or ``run``; nothing where they may."""
    if (reason := why_not(action)) is not None:
        st.caption(f":material/lock: {reason}")


def entered() -> bool:
    """Tell whether the person may see anything; else draw what they can do about it."""
    if not signs_in():
        return True
    if not st.user.to_dict().get("is_logged_in"):
        st.title("Leadline", anchor=False)
        st.markdown("Sign in to read runs." + (" Then open your link again." if st.query_params else ""))
        if st.button("Sign in", icon=":material/login:", type="primary", key="sign_in"):
            try:
                st.login()
            except StreamlitAuthError as error:
                st.error(plain(f"Sign-in is not set up on this server: {error}"), icon=":material/error:")
        return False
    try:
        if role() is not None:
            return True
        st.error(
            plain(f"{name()} has no role on this server: ask its administrator for one."),
            icon=":material/lock:",
        )
    except InputError as error:
        st.error(plain(error), icon=":material/error:")
    _sign_out()
    return False


def panel() -> None:
    """Draw who is signed in, and the button that ends it."""
    if signs_in():
        st.caption(plain(f"{name()} · {role()}", one_line=True))
        _sign_out()


def _sign_out() -> None:
    if st.button("Sign out", icon=":material/logout:", key="sign_out"):
        st.logout()
