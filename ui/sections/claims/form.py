"""Who shall find the claims of the shown run, and who shall judge them: the form and its cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import streamlit as st

from core.errors import InputError
from core.pipeline.claims_options import AUTO, JUDGE, MODEL, NLI, OFFLINE, RULES, ClaimsOptions
from core.pipeline.claims_run import CLAIMS_EXPECTED, about_calls
from core.run import Run
from core.text.display import count, number
from ui import cached, claims_job, models
from ui.claims_job import ClaimsWork
from ui.plain import plain
from ui.sections.claims.run import facts
from ui.servers import Choice
from ui.state import session

_VERIFIERS = {
    OFFLINE: (
        "Offline (no model, weak on hard claims)",
        "Compares words and meanings on this machine; nothing is sent.",
    ),
    JUDGE: (
        "A language model as judge",
        "Reads each passage with the claims, and says which of them it supports.",
    ),
    NLI: (
        "An NLI cross-encoder (name or folder)",
        "A model trained to tell whether one text follows from another.",
    ),
}
_DECOMPOSERS = {
    AUTO: "As suits the verifier",
    RULES: "Rules (English, Vietnamese, Chinese)",
    MODEL: "A language model, checked by the rules",
}


class _Size(NamedTuple):
    """How much there is to be judged."""

    n_answers: int
    n_silent: int
    n_passages: float


def first() -> None:
    """Draw what is to be decided before a run has claims."""
    size = _size()
    with st.container(border=True):
        st.subheader("No claims were looked for in this run yet", anchor=False)
        st.markdown(
            "Each answer is taken apart into single statements, and each statement is held against every "
            "passage that the answer was given. The result is a new run beside this one; the answers stay as "
            "they are and no question is asked again."
        )
        silent = f"; {size.n_silent:,} without one (empty, abstained or failed)" if size.n_silent else ""
        st.markdown(
            f"**{count(size.n_answers, 'answer')}** to look at{silent}, with "
            f"{number(size.n_passages, '{:.1f}')} passages each on average."
        )
        _form("Find claims and check them", size)


def again() -> None:
    """Draw how many cells are unscored, and the form for another verifier."""
    made = facts()
    n = next(one.value for one in cached.numbers("claims") if one.key == "n_cells_unscored")
    partial = made.get("complete") is False
    if n or partial:
        _what_is_missing(n, partial, made)
    with st.expander("Judge again with another verifier", icon=":material/gavel:"):
        st.markdown("The result is a new run; this one stays as it is.")
        _form("Judge again", _size())


def _what_is_missing(n: int, partial: bool, made: Mapping[str, Any]) -> None:
    reasons = made.get("reasons")
    why = f" Why: {plain('; '.join(map(str, reasons)), one_line=True)}" if reasons else ""
    whole = "Not all answers were looked at. " if partial else ""
    st.warning(
        f"{whole}**{count(n, 'cell is', 'cells are')} unscored**: nobody could judge these claims "
        "against these passages. They are left out of every number and are not counted as unsupported."
        f"{why}",
        icon=":material/help:",
    )
    try:
        options = ClaimsOptions(**made["options"])
    except (KeyError, TypeError, InputError):
        return  # a file's own judgements: there is no verifier to go back to
    with st.container(border=True):
        choice = models.choose("claims_retry") if options.needs_llm else None
        ready = choice is not None or not options.needs_llm
        if choice is not None:
            st.caption(f"Choose the model that judged before: {plain(made.get('verifier'), one_line=True)}.")
        if st.button(
            "Go on from here" if partial else "Try the unscored cells again",
            icon=":material/resume:",
            key="claims_retry",
            disabled=not ready or claims_job.busy(),
        ):
            claims_job.start(ClaimsWork(_run(), options, choice, in_place=True))
            st.rerun()


def _form(label: str, size: _Size) -> None:
    verifier = st.radio(
        "Who judges whether a passage supports a claim",
        list(_VERIFIERS),
        key="claims_verifier",
        format_func=lambda name: _VERIFIERS[name][0],
        captions=[about for _, about in _VERIFIERS.values()],
        persist_state="session",
    )
    left, right = st.columns(2)
    decompose = left.selectbox(
        "Who finds the claims",
        list(_DECOMPOSERS),
        key="claims_decompose",
        format_func=lambda name: _DECOMPOSERS[name],
        persist_state="session",
        help="Rules come without a call. A language model writes claims that stand alone, and the rules mark "
        "what it adds or leaves out. What suits: the model where a model judges too, else rules.",
    )
    settings: dict[str, Any] = {"verifier": verifier, "decompose": decompose}
    if verifier == NLI:
        name = right.text_input(
            "NLI model",
            key="claims_nli",
            placeholder="cross-encoder/nli-deberta-v3-base, or a folder",
            persist_state="session",
            help="A cross-encoder that sentence-transformers can open; it runs on this machine.",
        )
        settings["verifier_model"] = (name or "").strip() or None
    if verifier == JUDGE:
        settings["repeats"] = int(
            right.number_input(
                "Verdicts on each claim and passage",
                1,
                20,
                1,
                key="claims_repeats",
                persist_state="session",
                help="With more than one, their agreement is known; each costs as many calls as the first.",
            )
        )
    options = ClaimsOptions(**settings)
    choice = models.choose("claims") if options.needs_llm else None
    _cost(options, size, choice)
    nothing = not size.n_answers or (verifier == NLI and options.verifier_model is None)
    ready = not nothing and (choice is not None or not options.needs_llm)
    if verifier == NLI and options.verifier_model is None:
        st.caption("Name the NLI model first.")
    if st.button(
        label,
        icon=":material/fact_check:",
        type="primary",
        key="claims_start",
        disabled=not ready or claims_job.busy(),
    ):
        claims_job.start(ClaimsWork(_run(), options, choice))
        st.rerun()


def _cost(options: ClaimsOptions, size: _Size, choice: Choice | None) -> None:
    """Say what it will cost, before it does."""
    if not size.n_answers:
        st.markdown("**Nothing to do:** no answer of this run states anything.")
        return
    calls = about_calls(size.n_answers, size.n_passages, options, None)
    parts = []
    if calls:
        parts.append(
            f"about **{calls:,} calls** of the language model, if an answer makes {CLAIMS_EXPECTED} claims; "
            "more for pairs of passages, for reference answers and for replies that have to be repaired. "
            "Calls made once are not repeated"
        )
    pairs = round(size.n_answers * size.n_passages * CLAIMS_EXPECTED)
    if options.verifier == JUDGE and choice is not None and choice.kind == "embedded":
        parts.append(
            f"the embedded model judges by about **{2 * pairs:,} short readings** instead: how likely either "
            "verdict is"
        )
    if options.verifier == NLI:
        parts.append(
            f"about **{pairs:,} readings** of the cross-encoder on this machine, more for pairs of passages"
        )
    if options.verifier == OFFLINE:
        parts.append(
            "on this machine's processor, usually well under **a second an answer**, without a call to judge"
        )
    st.markdown(f"**Cost:** {'; '.join(parts)}.")


def _size() -> _Size:
    run = _run()
    queries = cached.diagnosis()["claims"].queries
    silent = queries["reason"].isin(["error", "empty", "abstained"])
    said = run.queries["answer"].fillna("").str.strip().ne("").to_numpy(dtype=bool) & ~silent.to_numpy(
        dtype=bool
    )
    n = int(said.sum())
    return _Size(n, len(queries) - n, len(run.passages) / max(len(queries), 1))


def _run() -> Run:
    run = session().run
    assert run is not None
    return run
