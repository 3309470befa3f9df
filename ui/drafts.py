"""What is entered on the Live page, kept on the server so that a reload of the browser loses nothing.

The address names it by an id that cannot be guessed. Keys are never entered on a page; an address with a
login or a query in it is not kept.
"""

from __future__ import annotations

import secrets

import streamlit as st

from ui.jobs import Draft, registry
from ui.state import session

_PREFIX = "live_"  # of the keys of all inputs on the page, and of no button
_ID, _AT_FIRST = "draft_id", "draft_at_first"


def restore() -> None:
    """Fill the inputs of a new session with what the address names; call it before they are drawn."""
    asked = st.query_params.get("draft")
    if asked is None or asked == st.session_state.get(_ID):
        return
    draft = registry().draft(asked)
    if draft is None:
        del st.query_params["draft"]
        return
    st.session_state[_ID] = asked
    st.session_state.update(draft.inputs)
    session().live.update(draft.kept)


def keep() -> None:
    """Keep the inputs, once there are any; call it after they are drawn."""
    inputs = {str(key): value for key, value in st.session_state.items() if _is_input(str(key), value)}
    kept = session().live
    at_first = st.session_state.setdefault(_AT_FIRST, inputs)
    if _ID not in st.session_state and inputs == at_first and not kept.get("uploaded"):
        return
    asked = st.session_state.setdefault(_ID, secrets.token_urlsafe(18))
    registry().keep(asked, Draft(inputs, dict(kept)))
    if st.query_params.get("draft") != asked:
        st.query_params["draft"] = asked


def _is_input(key: str, value: object) -> bool:
    plain = value is None or isinstance(value, str | int | float | list)
    return key.startswith(_PREFIX) and plain and not ("_url_" in key and {"@", "?"} & set(str(value)))
