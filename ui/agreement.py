"""How far people's reviews of the run agree, and the way from their labels to a run that has them."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.errors import LeadlineError
from core.reviews import DISPUTED, ByPerson, agreements, disputed, labelled
from core.text.display import count, part
from ui import library, people, reviews, show, sources, worklist
from ui.plain import plain
from ui.state import session

_WHAT = {"status": "Status", "correct": "Correct", "grounded": "Grounded"}


def draw() -> None:
    """Draw agreement where several people review, and what uses their labels where there are any."""
    noted, _ = reviews.of_everybody()
    has_labels = any(one.correct is not None for found in noted.values() for one in found.values())
    if len(noted) < 2 and not has_labels:
        return
    with show.more("Reviews by several people" if len(noted) > 1 else "Labels"):
        if len(noted) > 1:
            _agreement(noted)
        if has_labels:
            about = "Saves a run with the label that most people gave each answer; ties are left out."
            off = not people.may("review")
            show.button("Use these labels", "label", "labels_use", _use, help=about, disabled=off)
            people.explain("review")


def _agreement(noted: ByPerson) -> None:
    rows = [
        {
            "pair": f"{one.first} and {one.second}",
            "what": _WHAT[one.what],
            "kappa": one.kappa.value,
            "low": one.kappa.interval[0],
            "high": one.kappa.interval[1],
            "n": one.kappa.n,
            "agreed": one.kappa.agreed,
            "chance": one.kappa.by_chance,
            "reason": one.kappa.reason,
        }
        for one in agreements(noted)
    ]
    if rows:
        columns = {
            "pair": show.wide("Reviewers", "medium"),
            "what": show.wide("Judgement", "small"),
            "kappa": show.numeric("Cohen’s κ", about="1 = always agree, 0 = as often as by chance"),
            "low": show.numeric("95 % from"),
            "high": show.numeric("95 % to"),
            "n": show.numeric("n", "%d", "Questions that both judged"),
            "agreed": show.numeric("Agreed", about="Share of n"),
            "chance": show.numeric("By chance", about="Share of n in which random judgements would agree"),
            "reason": show.wide("Undefined because", "medium"),
        }
        show.table(pd.DataFrame(rows), "Agreement of each pair of reviewers", columns)
    apart = len(disputed(noted))
    if apart:
        st.caption(f"Reviewers disagree on {part(apart, worklist.total(), 'question')}.")
        label = f"List {count(apart, 'question')}"
        show.button(label, "filter_alt", "agreement_disputed", lambda: session().only(status=DISPUTED))


def _use() -> None:
    """Derive a run with the labels, save it and show it."""
    state = session()
    try:
        people.require("review")
        found = labelled(state.the_run, reviews.of_everybody()[0])
        run = library.owned(found.run)
        library.save(run)
    except LeadlineError as error:
        state.problem = str(error)
        return
    sources.show_run(run, "saved", saved=True)
    st.toast(plain(found.sentence), icon=":material/label:")
