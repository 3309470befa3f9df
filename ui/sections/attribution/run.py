"""Attribution of the whole run: how far the bars can be read, passages that belong together, and places."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from core.attribution.analysis import AttributionAnalysis
from core.attribution.measured import LOGPROB
from core.attribution.methods import WITH_PAIRS
from core.text.display import count, number, p_text
from ui import cached, headlines, questions, show, step_form
from ui.plain import plain
from ui.sections.attribution import claims
from ui.state import session

_SHARES = ("mean_passage_share", "mean_slot_share", "mean_swap")


def _found() -> AttributionAnalysis:
    found: AttributionAnalysis = cached.diagnosis()["attribution"]
    return found


def first() -> None:
    """Draw what measuring subsets does to a run that has none, and the form that starts it."""
    text = (
        "The answers to **{questions}** are measured with random subsets of their passages: by the "
        "log-probability of the given answer where the model can read it, else by answering again and "
        "ROUGE-L. 64 subsets take at most 107 calls per question (139 where it answers again), since 32 more "
        "only judge the scores; five passages have only 32 subsets in all. Shapley values cost as many "
        "again, places four for each passage. Measuring stops once the order of the first three "
        "passages is settled. The result is a new run; this one stays as it is."
    )
    step_form.first("attribution", "No subset was measured", text, "Measure subsets")


def again() -> None:
    """Draw the form that measures more."""
    with step_form.folded("Measure more: subsets, Shapley values, places"):
        step_form.on_loaded_run("attribution", "Measure subsets")


def readable() -> None:
    """Draw the LDS of the questions, and say what was measured and why others have none."""
    found = _found()
    q = found.queries
    by = (
        "Scores are nats of the log-probability of the given answer."
        if found.by == LOGPROB
        else "This model cannot read a given answer, so it answered again with each subset: scores are "
        "ROUGE-L F1 with the answer of the run."
    )
    top = ""
    if q["ceiling"].notna().any():
        top = " The held-out subsets were asked twice: the LDS of the second answers is the ceiling."
    show.sentence(
        f"{by} The LDS says how well they predict removals that they were not fitted to. Chance gives 0: "
        f"where the 95 % interval contains it, do not read the bars of that answer; of fewer than 16 "
        f"subsets that cannot be told.{top}"
    )
    show.chart("attribution", "lds_histogram")
    reasons = q["reason"].dropna().value_counts()
    if len(reasons):
        said = [
            f"{headlines.reason(name, 'attribution').title.lower()} ({n:,})" for name, n in reasons.items()
        ]
        st.caption(f"Undefined in {count(int(reasons.sum()), 'question')}: {plain(', '.join(said))}.")


def together() -> None:
    """Draw the pairs of passages that do not add up, and the near-duplicates."""
    found = _found()
    n = int(found.queries["n_either"].notna().sum())
    of = count(n, "question")
    if not n:
        st.caption(
            f"Pairs were not looked for: that takes about {WITH_PAIRS} subsets per question, or all of them."
        )
    elif found.pairs.empty:
        show.sentence(
            f"In none of {of} do the effects of two passages fail to add up. Chance alone gives a pair in at "
            "most 5 % of questions."
        )
    else:
        show.sentence(
            "*Either is enough*: leaving out both costs more than the sum of leaving out each. *Needs both*: "
            f"it costs less. In {found.pairs['query_id'].nunique():,} of {of} there is such a pair; chance "
            "alone gives one in at most 5 %. Intervals hold for all pairs of a question together. Passages "
            "are numbered by their place in the prompt."
        )
        alt = "Pairs of passages that do not add up; choosing a row opens its question"
        questions.table(_pairs(found), alt, _pair_columns(found.unit), "attribution_pairs")
    if not found.groups.empty:
        st.markdown("**Near-duplicates, and passages that support the same claims**")
        columns = {
            "question": show.wide("Question", "medium"),
            "passages": "Passages",
            "kind": "Kind",
            "together": show.numeric(f"Lost without all ({found.unit})"),
            "each": f"Lost without each ({found.unit})",
        }
        alt = "Passages left out together; choosing a row opens its question"
        questions.table(_groups(found), alt, columns, "attribution_groups")


def _pair_columns(unit: str) -> dict[str, Any]:
    return {
        "question": show.wide("Question", "medium"),
        "passages": "Passages",
        "kind": "Kind",
        "interaction": show.numeric(f"Beyond the sum ({unit})"),
        "low": show.numeric("95 % from"),
        "high": show.numeric("to"),
        "p": "p corrected",
    }


def _asked(frame: pd.DataFrame, found: AttributionAnalysis) -> pd.DataFrame:
    return frame.merge(found.queries[["query_id", "question"]], on="query_id", how="left")


def _pairs(found: AttributionAnalysis) -> pd.DataFrame:
    """Return the pairs for the table, the clearest first."""
    rows = _asked(found.pairs.sort_values("p_value", kind="stable"), found)
    either = rows["either"].astype(bool)
    return rows.assign(
        passages=[f"{a}, {b}" for a, b in zip(rows["first_slot"], rows["second_slot"], strict=True)],
        kind=either.map({True: "Either is enough", False: "Needs both"}),
        p=[p_text(value).removeprefix("p ") for value in rows["p_value"]],
    )


def _groups(found: AttributionAnalysis) -> pd.DataFrame:
    rows = _asked(found.groups, found)
    near = rows["near_duplicates"].astype(bool)
    return rows.assign(
        kind=near.map({True: "Near-duplicates", False: "Support the same claims"}),
        passages=[", ".join(map(str, one)) for one in rows["slots"]],
        each=[", ".join(number(value) for value in one) for one in rows["alone"]],
    )


def place() -> None:
    """Draw what places in the prompt do, and how much of the score depends on passage and on place."""
    found = _found()
    if not found.queries["slot_share"].notna().any():
        st.caption(
            "The passages were not measured in other orders: measure again with *Place in the prompt*."
        )
        return
    shown = {one.key: one for one in cached.numbers("attribution")}
    show.cards(
        [
            (one.title, one.text, plain(one.basis), plain(headlines.meaning("attribution", one.define)))
            for one in (shown[key] for key in _SHARES)
        ]
    )
    show.sentence(
        "The same passages in the orders of a Latin square: what a place does is told apart from what stands "
        "there. An effect inside the grey band is smaller than that of a swap of two neighbours, which gains "
        "and loses no evidence."
    )
    show.chart("attribution", "slot_effects")


def disagreeing() -> None:
    """Draw the claims whose first passage by influence does not support them, while another one does."""
    found = _found()
    if found.claims.empty:
        st.caption("No claim was measured: that takes extracted claims, two or more of an answer.")
        return
    own = claims.by_claim(found.claims)
    show.sentence(claims.disagreeing(own))
    chosen = own[own["disagrees"].eq(True)]
    if not chosen.empty:
        alt = "Claims where influence and support disagree; choosing a row opens its question"
        columns = {"query_id": "Id", **claims.columns(found)}
        questions.table(chosen, alt, columns, "attribution_claims")


def more() -> None:
    """Draw the numbers of every question."""
    found, run = _found(), session().the_run
    whole = ("localized",)
    columns = {
        "query_id": "Id",
        "question": show.wide("Question", "medium"),
        "readable": "Can be read",
        "concordance": show.numeric("Removals told apart"),
        "lds": show.numeric("LDS"),
        "lds_low": show.numeric("95 % from"),
        "lds_high": show.numeric("to"),
        "ceiling": show.numeric("Ceiling"),
        "n_test": show.numeric("n", *whole),
        "settled": show.numeric("Places settled", *whole),
        "n_calls": show.numeric("Subsets", *whole),
        "n_failed": show.numeric("Failed", *whole),
        "drop_1": show.numeric(f"Lost without the first ({found.unit})"),
        "drop_1_random": show.numeric("A random one"),
        "drop_3": show.numeric("Without three"),
        "drop_3_random": show.numeric("Three random ones"),
        "drop_5": show.numeric("Without five"),
        "drop_5_random": show.numeric("Five random ones"),
        "passage_share": show.numeric("Share of the passages"),
        "slot_share": show.numeric("Share of the place"),
        "slot_p_value": show.numeric("p of the place", "%.2g"),
        "swap": show.numeric("Swap of neighbours"),
    }
    with show.more("Numbers of each question"):
        alt = "Attribution of every question; choosing a row opens it"
        questions.table(found.queries, alt, columns, "attribution_queries")
        name = f"leadline-{run.run_id}-attribution"
        show.csv("Download", found.queries, name, "attribution_queries_csv", run)
