"""The claims of a run and the evidence for them: what the page says of the run as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.claims.quadrants import UNDEFINED
from core.claims.verifiers.offline import offline_figures
from core.definitions import CLAIM_REASONS, METRICS, QUADRANTS
from ui import cached, headlines, questions, show
from ui.plain import plain, shortened
from ui.state import session

_CARDS = 4  # unsupported claims with a box of their own
_FIGURE = "ExpertQA all AUROC"


def threshold() -> None:
    """Draw the slider of the probability from which on a passage supports a claim."""
    st.slider(
        "A passage supports a claim from probability",
        0.05,
        1.0,
        0.5,
        0.05,
        key="support",
        bind="query-params",
        persist_state="session",
        help="States, verdicts and means on this page follow from it; the probabilities themselves stay.",
    )


def numbers() -> None:
    """Draw the headline numbers, each with what it rests on."""
    s = cached.current_summary()
    judged = s["n_claims_supported"] + s["n_claims_not_supported"]
    show.cards(
        [
            (
                "Claims",
                f"{s['n_claims']:,}",
                f"in {show.count(s['n_with_claims'], 'answer')}; {s['n_claims_irrelevant']:,} irrelevant, "
                f"{s['n_claims_unscored']:,} unscored",
                "Irrelevant claims are refusals and talk about the answer itself; they enter no mean.",
            ),
            (
                "Supported claims",
                f"{s['n_claims_supported']:,} of {judged:,}" if judged else "—",
                "of the relevant ones that could be judged",
                "Relevant claims that a passage, or two together, support, of those that were judged.",
            ),
            *headlines.claim_cards(s),
            (
                "Unscored cells",
                f"{s['n_cells_unscored']:,}",
                "claims × passages that could not be judged",
                "Left out of every number; never read as not supported.",
            ),
            (
                "Joint claims",
                f"{s['n_claims_joint']:,}",
                "supported by two passages together only",
                "No single passage supports them, but a pair of passages does. They count as supported.",
            ),
        ]
    )
    reasons = s["claims_undefined_reasons"]
    if reasons:
        n = sum(reasons.values())
        with st.expander(f"Why {show.count(n, 'answer has', 'answers have')} no grounding"):
            lines = (f"- **{k:,} ×** {CLAIM_REASONS[name].meaning}" for name, k in reasons.items())
            st.markdown("\n".join(lines))


def judged_by() -> None:
    """Say who judged, and how far that can be trusted."""
    found = cached.claims()
    st.markdown(_judge(found.judge) + _decomposed())
    if found.n_verdicts_changed or found.n_verdicts_from_file:
        kept = show.count(found.n_verdicts_from_file, "verdict")
        changed = show.count(found.n_verdicts_changed, "claim")
        st.caption(
            f"{kept} of the file taken as it stands, where it has no judgement by passage. For {changed} its "
            "verdict is not what its own judgements give, and the judgements count here."
        )


def _judge(judge: str | None) -> str:
    if judge is None:
        return "**Nobody judged the claims against the passages**; verdicts are the file's, where it has any."
    if judge == "offline":
        return (
            "Judged by the **offline verifier**: no language model was asked and nothing left this machine. "
            f"It compares words and meanings and is **weak on hard claims**{_weakness()}. Where it matters, "
            "judge again with a language model or an NLI cross-encoder, below."
        )
    kind, _, name = judge.partition(":")
    who = plain(shortened(name or judge, 100), one_line=True)
    if kind == "judge":
        return f"Judged by the language model **{who}**, claim by claim and passage by passage: an opinion."
    if kind == "nli":
        return f"Judged by the NLI cross-encoder **{who}**: whether a passage entails a claim."
    source = "" if _facts() else ", as the file says"
    return f"Judged by **{plain(shortened(judge, 100), one_line=True)}**{source}."


def _weakness() -> str:
    figure = offline_figures().get(_FIGURE)
    if figure is None:
        return ""
    value, low, high = (show.number(figure[name]) for name in ("value", "low", "high"))
    return (
        f": on experts' questions (ExpertQA) it tells supported claims from others with an AUROC of {value} "
        f"(95 % interval {low} to {high}, cross-validated; 0.5 is guessing), and on other data less"
    )


def _decomposed() -> str:
    facts = _facts()
    if not facts:
        return ""
    kind, _, name = str(facts.get("decomposition", "")).partition(":")
    by_rules = facts.get("n_by_rules") or 0
    note = f"; {show.count(by_rules, 'text')} by rules, since its reply could not be used" if by_rules else ""
    if kind == "model":
        return (
            f" Claims were found by **{plain(shortened(name, 100), one_line=True)}**, checked by rules{note}."
        )
    return " Claims were found by rules." if kind == "rules" else ""


def _facts() -> Mapping[str, Any]:
    run = session().run
    facts = run.manifest.get("claims") if run is not None else None
    return facts if isinstance(facts, Mapping) else {}


def unsupported() -> None:
    """Draw the claims that nothing supports: those of the answers with most of them first."""
    run = session().run
    assert run is not None
    frame = cached.claims().unsupported
    if frame.empty:
        st.markdown("No claim was judged to be without support.")
        return
    titles = run.passages[["query_id", "passage_id", "title"]].rename(
        columns={"passage_id": "best_passage_id", "title": "best_title"}
    )
    frame = frame.merge(titles, on=["query_id", "best_passage_id"], how="left")
    with st.grid(2, min_column_width=300):
        for row in frame.head(_CARDS).itertuples():
            with st.container(border=True, gap="xxsmall", height="stretch"):
                st.markdown(f"**◆ {plain(shortened(row.text, 200), one_line=True)}**")
                asked = str(row.question or "")
                # A bare value has its question in front already.
                about = (
                    ""
                    if str(row.text).startswith(asked)
                    else f"{plain(shortened(asked, 120), one_line=True)} · "
                )
                st.caption(f"{about}best support {show.number(row.support_maximum)}")
                questions.claims_link(str(row.query_id), "Read the answer")
    columns = {
        "text": st.column_config.TextColumn("Claim", width="large"),
        "question": st.column_config.TextColumn("Question", width="medium"),
        "support_maximum": st.column_config.NumberColumn("Best support", format="%.2f"),
        "best_passage_id": "By passage",
        "best_title": st.column_config.TextColumn("Its title", width="medium"),
        "query_id": st.column_config.TextColumn("Question id", width="small"),
    }
    with st.expander(f"All of them ({show.count(len(frame), 'claim')})"):
        show.table(frame, "Unsupported claims", columns, column_order=list(columns))


def download() -> None:
    """Offer every claim × passage as a table."""
    run = session().run
    assert run is not None
    st.download_button(
        "Download claims × passages (CSV)",
        cached.export("claims-csv"),
        file_name="claims-simulated.csv" if run.simulated else "claims.csv",
        mime="text/csv",
        icon=":material/download:",
        on_click="ignore",
        key="claims_download",
    )


def quadrants() -> None:
    """Draw influence against support for every passage, and what each quadrant asks for."""
    show.figure(cached.claims_chart("claims_quadrants"), "claims_quadrants")
    counts = dict(cached.current_summary()["quadrants"])
    if not counts[UNDEFINED]:
        del counts[UNDEFINED]
    with st.grid(2 if len(counts) == 4 else 3, min_column_width=250):
        for name, n in counts.items():
            found = QUADRANTS[name]
            about = {"What to do": found.advice} if found.advice else {}
            show.definition(name.capitalize(), found.meaning, about, show.count(n, "passage"))


def f1() -> None:
    """Draw F1@K over K."""
    show.figure(cached.claims_chart("f1_at_k_chart"), "claims_f1")


def ragchecker() -> None:
    """Draw the means of RAGChecker's metrics, or say what they need."""
    frame = cached.claims().ragchecker_means
    against = ("precision", "recall", "claim_recall")  # cannot do without the claims of a reference answer
    if not frame.loc[frame["metric"].isin(against), "n"].any():
        st.caption(
            "Not available for this run: these metrics compare with the claims of reference answers. Give "
            "reference answers with the questions, then judge again."
        )
        return
    number = st.column_config.NumberColumn
    columns = {
        "title": st.column_config.TextColumn("Metric", width="medium"),
        "mean": number("Mean", format="%.2f"),
        "n": number("Rests on", format="localized", help="Questions"),
        "n_undefined": number("Undefined", format="localized", help="Questions without this metric"),
        "meaning": st.column_config.TextColumn("Meaning", width="large"),
    }
    frame = frame.assign(
        title=[METRICS[name].title for name in frame["metric"]],
        meaning=[METRICS[name].meaning for name in frame["metric"]],
    )
    show.table(
        frame,
        "RAGChecker's metrics, means over questions",
        columns,
        column_order=list(columns),
        height="content",
    )
