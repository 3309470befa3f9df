"""The claims of a whole run and the evidence for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from core.charts.claims.evidence_matrix import n_pages
from core.charts.theme import where_door
from core.claims import packaged_figures
from core.claims.definitions import METRICS, QUADRANTS
from core.claims.planted import CLEAN, ERRORS, planted_errors, wrong_verdict
from core.claims.quadrants import UNDEFINED
from core.claims.scores import step_facts
from core.conditions import where
from core.diagnosis import Diagnosis
from core.text.display import count, number
from ui import cached, doors, questions, show
from ui.plain import held, plain, shortened
from ui.state import session

_FIGURE = "ExpertQA all AUROC"


def judged_by() -> None:
    """Say who verified the claims, and how far that can be trusted."""
    found = cached.diagnosis()["claims"]
    st.markdown(_judge(found.judge) + _decomposed())
    if found.n_verdicts_changed or found.n_verdicts_from_file:
        kept = count(found.n_verdicts_from_file, "verdict is", "verdicts are")
        changed = count(found.n_verdicts_changed, "claim")
        st.caption(
            f"{kept} taken from the file, which has no result by passage there. For {changed} the file's "
            "verdict contradicts its own results by passage; the results by passage count here."
        )


def _judge(judge: str | None) -> str:
    if judge is None:
        return "**The claims are not verified against the passages**; verdicts are the file's, if it has any."
    if judge == "offline":
        weak = f"**weak on hard claims**{_auroc(packaged_figures('offline'))}"
        return f"Verified by the **offline verifier**, which is {weak}."
    kind, _, name = judge.partition(":")
    who = plain(shortened(name or judge, 100), one_line=True)
    if kind == "judge":
        return f"Verified by the language model **{who}**, claim by claim and passage by passage: an opinion."
    if kind == "gain":
        return (
            f"Verified by how much likelier each passage makes a claim to **{who}**: weak evidence"
            f"{_auroc(packaged_figures('gain'), ' with the packaged model')}."
        )
    if kind == "nli":
        return f"Verified by the NLI cross-encoder **{who}**: whether a passage entails a claim."
    source = "" if facts() else ", according to the file"
    return f"Verified by **{plain(shortened(judge, 100), one_line=True)}**{source}."


def _auroc(figures: Mapping[str, Mapping[str, float]], by: str = "") -> str:
    figure = figures.get(_FIGURE)
    if figure is None:
        return ""
    value, low, high = (number(figure[name]) for name in ("value", "low", "high"))
    return held(f" (AUROC {value}{by}, 95 % interval {low} to {high}, on ExpertQA; 0.5 is guessing)")


def _decomposed() -> str:
    made = facts()
    kind, _, name = str(made.get("decomposition", "")).partition(":")
    by_rules = made.get("n_by_rules") or 0
    note = f"; {count(by_rules, 'text')} by rules, since its reply could not be used" if by_rules else ""
    if kind == "model":
        who = plain(shortened(name, 100), one_line=True)
        return f" Claims were extracted by **{who}**, checked by rules{note}."
    return {
        "rules": " Claims were extracted by rules.",
        "composed": " The claims were composed with the answers.",
    }.get(kind, "")


def facts() -> Mapping[str, Any]:
    """Return what the step wrote down about the run's claims; empty for a file's own claims."""
    run = session().run
    return {} if run is None else step_facts(run) or {}


def matrix() -> None:
    """Draw the claims of all answers against their passages, page by page."""
    pages = cached.once("pages of claims", lambda diagnosis: n_pages(diagnosis["claims"]))
    page = 1
    if pages > 1:
        # Another run, or another order of its claims, begins anew.
        page = st.pagination(pages, key=f"claims_page_{hash(cached.key())}", persist_state="session")
    show.chart("claims", "evidence_matrix", page=page)


def f1() -> None:
    """Draw F1@K; with one claim an answer it says nothing that grounding does not."""
    if (cached.diagnosis()["claims"].queries["n_claims"] > 1).any():
        st.subheader("F1@K", anchor=False)
        show.chart("claims", "f1_at_k_chart")


def _unsupported(diagnosis: Diagnosis) -> pd.DataFrame:
    """Return the claims that nothing supports, with the title of the best passage."""
    titles = diagnosis.run.passages[["query_id", "passage_id", "title"]].rename(
        columns={"passage_id": "best_passage_id", "title": "best_title"}
    )
    found: pd.DataFrame = diagnosis["claims"].unsupported
    return found.merge(titles, on=["query_id", "best_passage_id"], how="left")


def unsupported() -> None:
    """Draw the claims that nothing supports as a table: those of the answers with most of them first."""
    frame = cached.once("unsupported claims", _unsupported)
    if frame.empty:
        return
    columns = {
        "text": show.wide("Claim"),
        "question": show.wide("Question", "medium"),
        "support_maximum": show.numeric("Best support"),
        "best_passage_id": "By passage",
        "best_title": show.wide("Its title", "medium"),
        "query_id": show.wide("Question id", "small"),
    }
    with show.more(f"Unsupported claims ({count(len(frame), 'claim')})"):
        questions.table(frame, "Unsupported claims; choosing one opens its answer", columns, "unsupported")


def influence_against_support() -> None:
    """Draw influence against support for every passage, where both are known of any."""
    if (cached.diagnosis()["claims"].quadrant != UNDEFINED).any():
        st.subheader("Influence vs support", anchor=False)
        show.chart("claims", "claims_quadrants")


def quadrants() -> None:
    """Say how many passages are in each quadrant of influence and support, and what each asks for.

    Nothing where no influence is known: what was not tried is not zero.
    """
    if (cached.diagnosis()["claims"].quadrant == UNDEFINED).all():
        return
    st.subheader("Passages by influence and support", anchor=False)
    found = next(dict(one.value) for one in cached.numbers("claims") if one.key == "quadrants")
    if not found[UNDEFINED]:
        del found[UNDEFINED]
    total = sum(found.values())
    with st.grid(2 if len(found) == 4 else 3, min_column_width=250):
        for name, n in found.items():
            quadrant = QUADRANTS[name]
            about = {"What to do": quadrant.advice}
            shown = f"{n:,} of {count(total, 'passage')}"
            condition = where("claims", "passages", quadrant=name)
            show.definition(quadrant.title, quadrant.meaning, about, shown, condition)


def ragchecker() -> None:
    """Draw the means of RAGChecker's metrics, where there are claims of reference answers to compare with."""
    frame = cached.once("ragchecker means", lambda diagnosis: diagnosis["claims"].ragchecker_means)
    against = ("precision", "recall", "claim_recall")  # need the claims of a reference answer
    if not frame.loc[frame["metric"].isin(against), "n"].any():
        return
    st.subheader("Against the reference answers", anchor=False)
    columns = {
        "title": show.wide("Metric", "medium"),
        "mean": show.numeric("Mean"),
        "n": show.numeric("n", "localized", "Questions"),
        "n_undefined": show.numeric("Undefined", "localized", "Questions without this metric"),
        "meaning": show.wide("Meaning"),
    }
    frame = frame.assign(
        title=[METRICS[name].title for name in frame["metric"]],
        meaning=[METRICS[name].meaning for name in frame["metric"]],
    )
    show.table(frame, "RAGChecker's metrics, means over questions", columns, height="content")


def planted() -> None:
    """Draw how many planted errors were found, by kind; nothing for a run without any."""
    found = cached.once("planted errors", lambda d: planted_errors(d["claims"]))
    if found is None:
        return
    st.subheader("Planted errors found", anchor=False)
    errors, clean = found.row(ERRORS), found.row(CLEAN)
    chance, alarms = (number(row["chance"], "{:.0f}") for row in (errors, clean))
    show.sentence(
        f"**{errors['n_found']:,} of {errors['n']:,} planted errors are flagged as unsupported** "
        f"(95 % interval {number(errors['low'])} to {number(errors['high'])}); as many flags at random would "
        f"hit {chance}. **{clean['n_found']:,} of {clean['n']:,} claims without an error are flagged, too**; "
        f"at random {alarms}."
    )
    columns = {
        "title": show.wide("Planted", "medium"),
        "n_found": show.numeric("Found", "%d", "Of claims without an error: false alarms"),
        "n": show.numeric("n", "%d", "Claims with a verdict"),
        "share": show.numeric("Share"),
        "low": show.numeric("95 % from"),
        "high": show.numeric("to"),
        "n_questions": show.numeric(
            "Questions", "%d", "With a claim of this kind that has the wrong verdict"
        ),
        "chance": show.numeric("By chance", "%.1f", "As many flags on claims at random"),
        "meaning": show.wide("Meaning"),
    }
    alt = "Planted errors found, by kind; choosing a row lists the questions with a wrong verdict"
    leads_to = [_planted_door(row) for row in found.table.itertuples()]
    doors.table(found.table, alt, columns, "planted_table", leads_to, height="content")
    st.caption(
        "Verify again with another verifier, above, to compare: the composed claims stay the same. Claims "
        "that two passages support together are found when they are called supported."
    )
    show.csv(
        "Download planted errors (CSV)", found.to_frame(), "planted-errors", "planted_csv", session().run
    )


def _planted_door(row: Any) -> str:
    """Return the door to the questions where the verifier is wrong about a kind of error."""
    kind = {"planted_error": True} if row.planted == ERRORS else {"planted": row.planted}
    condition = where("claims", "claims", **kind, verdict=wrong_verdict(row.planted))
    return where_door(condition) if row.n_questions else ""
