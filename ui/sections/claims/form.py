"""Who extracts the claims of a run, and who verifies them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.claims.step import AUTO, JUDGE, MODEL, NLI, RULES, VERIFIERS, ClaimsStep
from core.errors import InputError
from core.text.display import count
from ui import cached, job_panel, models, people, servers, step_form
from ui.plain import plain
from ui.sections.claims.run import facts
from ui.state import session
from ui.work import Work

_DECOMPOSERS = {
    AUTO: "Automatic",
    RULES: "Rules (English, Vietnamese, Chinese)",
    MODEL: "A language model, checked by the rules",
}


def first() -> None:
    """Draw what is to be decided before a run has claims."""
    run = session().the_run
    silent = run.queries["answer_status"].isin(["error", "empty", "abstained"])
    silent |= run.queries["answer"].fillna("").str.strip() == ""
    n_silent, n_passages = int(silent.sum()), len(run.passages) / max(len(run.queries), 1)
    without = f"; {n_silent:,} without one (empty, abstained or failed)" if n_silent else ""
    text = (
        "Each answer is split into single claims, and each claim is checked against every passage that "
        "the answer was given. The result is a new run beside this one; the answers stay as they are and "
        f"no question is asked again.\n\n**{count(len(run.queries) - n_silent, 'answer')}** to "
        f"check{without}, with {n_passages:.1f} passages each on average."
    )
    step_form.first("claims", "Claims not extracted", text, "Extract and verify claims")


def again() -> None:
    """Draw how many cells are unscored, and the form for another verifier."""
    made = facts()
    n = next(one.value for one in cached.numbers("claims") if one.key == "n_cells_unscored")
    if n or made.get("complete") is False:
        _what_is_missing(n, made)
    with step_form.folded("Verify again with another verifier", "gavel"):
        step_form.on_loaded_run("claims", "Verify again")


def _what_is_missing(n: int, made: Mapping[str, Any]) -> None:
    partial, reasons = made.get("complete") is False, made.get("unscored_reasons")
    why = f" Why: {plain('; '.join(map(str, reasons)), one_line=True)}" if reasons else ""
    whole = "Not all answers are done. " if partial else ""
    st.warning(
        f"{whole}**{count(n, 'cell is', 'cells are')} unscored**: these claims could not be verified against "
        f"these passages. They are left out of every number and do not count as unsupported.{why}",
        icon=":material/help:",
    )
    try:
        step = ClaimsStep(**made["options"])
        if step.verifier == NLI:  # the options are a file's
            servers.check_loadable(step.verifier_model)
    except (KeyError, TypeError, InputError):
        return  # a file's own verdicts: there is no verifier to go back to
    with st.container(border=True):
        choice = models.choose("claims_retry") if step.needs_llm else None
        if not step.needs_llm:
            people.explain("run")
        if choice is not None:
            st.caption(f"Choose the model used before: {plain(made.get('verifier'), one_line=True)}.")
        if st.button(
            "Continue" if partial else "Try the unscored cells again",
            icon=":material/resume:",
            key="claims_retry",
            disabled=(step.needs_llm and choice is None) or job_panel.busy("claims"),
        ):
            job_panel.start("claims", Work((step,), choice, session().run, in_place=True))
            st.rerun()


def options(page: str) -> ClaimsStep | None:
    """Draw the choice of who extracts and who verifies; None where a name is missing."""
    verifier = st.radio(
        "Who verifies claims",
        list(VERIFIERS),
        key=f"{page}_verifier",
        format_func=lambda name: VERIFIERS[name][0],
        captions=[about for _, about in VERIFIERS.values()],
        persist_state="session",
    )
    left, right = st.columns(2)
    decompose = left.selectbox(
        "Who extracts claims",
        list(_DECOMPOSERS),
        key=f"{page}_decompose",
        format_func=lambda name: _DECOMPOSERS[name],
        persist_state="session",
        help="Rules need no call. A language model writes claims that are complete by themselves, and the "
        "rules mark what it adds or leaves out. Automatic: the model where a model verifies too, else rules.",
    )
    if verifier == JUDGE:
        repeats = right.number_input(
            "Verdicts per claim and passage",
            1,
            20,
            1,
            key=f"{page}_judge_repeats",
            persist_state="session",
            help="With more than one, their agreement is known; each costs as many calls as the first.",
        )
        return ClaimsStep(verifier, decompose=decompose, repeats=int(repeats))
    if verifier == NLI:
        with right:
            about = "A cross-encoder such as cross-encoder/nli-deberta-v3-base; it runs on this machine."
            name = models.local("NLI model", f"{page}_nli", about)
        if name is None:
            listed = servers.loadable()
            first = "Choose" if listed else f"The administrator lists no model in {servers.LISTED}: list"
            st.caption(f"{first} the NLI model first.")
            return None
        return ClaimsStep(verifier, name, decompose=decompose)
    return ClaimsStep(verifier, decompose=decompose)
