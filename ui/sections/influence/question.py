"""One question: agreement of the two orders, and each passage with its leave-one-out effect."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.influence.definitions import METRICS, MODES, PER_PASSAGE
from core.text.diff import mark_words, word_diff
from core.text.display import count, number
from core.text.stop_words import ENGLISH
from ui import cached, headlines, questions, show
from ui.plain import plain, shortened, tinted
from ui.state import session

AT_FIRST = 15  # passages drawn before "show all"
_STYLE = {"same": None, "removed": "removed", "added": "added"}


def draw(query_id: str) -> None:
    """Draw the numbers of a question or why they are undefined, its failure modes, and its passages."""
    row = questions.row(query_id, "influence")
    _agreement(row)
    for name, definition in MODES.items():
        if row[name]:
            st.markdown(f"- **{definition.title}** — {definition.meaning} {definition.advice}")
    left, right = st.columns(2)
    with left:
        st.markdown("**Retrieval and influence**")
        show.chart("influence", "passage_bars", query_id=query_id)
    with right:
        st.markdown("**Retrieval rank and influence rank**")
        show.chart("influence", "rank_slope", query_id=query_id)
    st.markdown("**Passages**")
    _passages(query_id)


def _agreement(row: Any) -> None:
    if isinstance(row["reason"], str):
        reason = headlines.reason(row["reason"]).meaning
        st.info(f"**No ρ for this question.** {reason}", icon=":material/do_not_disturb_on:")
        return
    low, high = number(row["chance_low"]), number(row["chance_high"])
    noise = f"on {count(int(row['n_repeats']), 'repeat')}" if row["n_repeats"] else "no repeats were run"
    show.cards(
        [
            (
                "Rank agreement ρ",
                number(row["rho"]),
                f"{_label(row)}; chance baseline {low} to {high}",
                "The baseline holds 95 % of random orders of this question's influences.",
            ),
            (
                "nDCG by influence",
                number(row["influence_ndcg"]),
                f"chance baseline {number(row['ndcg_by_chance'])}; p = {number(row['ndcg_p_value'])}",
                METRICS["influence_ndcg"].meaning,
            ),
            (
                "Dominance",
                number(row["dominance"]),
                "share of the strongest passage",
                METRICS["dominance"].meaning,
            ),
            (
                "Entropy",
                number(row["entropy"]),
                f"nats; {number(row['entropy_normalised'])} of the maximum",
                METRICS["entropy"].meaning,
            ),
            ("Noise floor", number(row["noise_quantile"]), noise, METRICS["noise_quantile"].meaning),
        ]
    )


def _label(row: Any) -> str:
    """Return a label, with the reason where there is none."""
    reason = row["label_reason"]
    why = f" ({headlines.reason(reason).title.lower()})" if isinstance(reason, str) else ""
    return f"{str(row['label']).lower()}{why}"


def _passages(query_id: str) -> None:
    """Draw the table of passages and, one by one, their text and what leaving them out changed."""
    run = session().run
    assert run is not None
    analysed = cached.diagnosis()["influence"].passages
    analysed = analysed[analysed["query_id"] == query_id].set_index("passage_id", drop=False)
    raw = run.passages
    raw = raw[raw["query_id"] == query_id].set_index("passage_id", drop=False)
    if analysed.empty:
        st.info("No passages were retrieved for this question.", icon=":material/inbox:")
        return
    _table(analysed, raw)
    order = st.segmented_control(
        "Order",
        ["By retrieval", "By influence"],
        default="By retrieval",
        key="workbench_order",
        persist_state="session",
    )
    column = "influence_rank" if order == "By influence" else "retrieval_order"
    ids = list(analysed.sort_values(column, kind="stable")["passage_id"])
    if len(ids) > AT_FIRST and not st.toggle(f"Show all {len(ids)} passages", key="workbench_all"):
        ids = ids[:AT_FIRST]
    question = questions.row(query_id)
    for position, passage_id in enumerate(ids):
        _passage(question, raw.loc[passage_id], analysed.loc[passage_id], opened=position == 0)


def _table(analysed: Any, raw: Any) -> None:
    flags = [", ".join(_flags(row)) for _, row in analysed.iterrows()]
    frame = analysed.assign(title=raw["title"], flags=flags).sort_values("retrieval_order", kind="stable")
    columns = {
        "retrieval_rank": show.numeric("Retrieval rank", "%g"),
        "passage_id": "Id",
        "title": show.wide("Title", "medium"),
        "retrieval_score": show.numeric("Score"),
        "influence": show.numeric("Influence", "%.3f"),
        "influence_low": show.numeric("from", "%.3f", "Smallest over the repeated baselines"),
        "influence_high": show.numeric("to", "%.3f", "Largest over the repeated baselines"),
        "influence_rank": show.numeric("Influence rank", "%g"),
        "rank_shift": show.numeric("Shift", "%+g", "Retrieval rank minus influence rank"),
        "above_noise": "Above noise",
        "is_gold": "Gold",
        "flags": "Failure modes",
    }
    show.table(frame, "Passages of this question", columns)


def _passage(question: Any, raw: Any, row: Any, *, opened: bool) -> None:
    marks = [*(["gold"] if show.yes_or_no(row["is_gold"]) else []), *_flags(row)]
    own = show.text(raw["title"])
    title = shortened(own, 50) if own else f"passage {shortened(raw['passage_id'], 30)}"
    rank, influence = number(row["retrieval_rank"], "{:g}"), number(row["influence"])
    label = f"Rank {rank} · influence {influence} · {plain(title)}"
    with st.expander(label + (f" · **{', '.join(marks)}**" if marks else ""), expanded=opened):
        st.caption(_placing(row))
        text, diff = st.columns(2)
        with text:
            st.caption("Passage, with the question's words marked")
            body = show.text(raw["text"])
            if body:
                pieces = mark_words(body, show.text(question["question"]), ENGLISH)
                st.markdown(tinted(("term" if hit else None, piece) for hit, piece in pieces))
            else:
                st.markdown("*No text available.*")
        with diff:
            st.caption("Leave-one-out effect: the answer without this passage (− removed, + added)")
            _difference(question, raw)


def _difference(question: Any, raw: Any) -> None:
    before, after = question["answer"], raw["ablated_answer"]
    if not isinstance(after, str):
        st.markdown("*No answer without this passage is known.*")
    elif not isinstance(before, str):
        st.markdown(plain(after))
    elif before == after:
        st.markdown("*Unchanged.*")
    else:
        st.markdown(tinted((_STYLE[operation], text) for operation, text in word_diff(before, after)))


def _placing(row: Any) -> str:
    low, high = row["influence_low"], row["influence_high"]
    interval = f" ({number(low)} to {number(high)} over repeats)" if low == low else ""
    known = {True: "above the noise floor", False: "within the noise band", None: "noise floor unknown"}
    noise = known[show.yes_or_no(row["above_noise"])]
    return (
        f"Score {number(row['retrieval_score'])} · influence rank "
        f"{number(row['influence_rank'], '{:g}')} · "
        f"influence {number(row['influence'], '{:.3f}')}{interval}, {noise}"
    )


def _flags(row: Any) -> list[str]:
    return [MODES[name].title for name in PER_PASSAGE if show.yes_or_no(row[name])]
