"""One question: the influence of each passage, what is wrong with it, and how the two orders agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from core.influence import above_noise_by_chance
from core.influence.definitions import METRICS, MODES, ORDER_MODES, PER_PASSAGE
from core.influence.measures import Measure
from core.influence.metrics import influence_score
from core.influence.step import ABLATION, BASELINE, CLOSED_BOOK
from core.llm import Completion
from core.rows import rows_of
from core.run import Run
from core.text.display import count, number, p_text, percent
from ui import cached, headlines, questions, show
from ui.components.evidence.rows import named
from ui.plain import plain, shortened
from ui.sections import Part
from ui.state import session

_WAITING = "…"
_NAMED = 3  # passages named in one sentence
# What a sentence says of a passage, after its title and retrieval rank.
_SAID = {
    "ignored_top_hit": "is hardly used (influence rank {place} of {k})",
    "buried_evidence": "is used, at influence rank {place} of {k}",
    "harmful_passage": "makes the answer incorrect",
    "over_reliance": "carries {share} % of the influence",
    "inverted": "is used most",
}


def part(query_id: str) -> Part:
    """Return the influence of every passage beside the answer, and the failure modes with their passages."""
    run = session().the_run
    row, found = questions.row(query_id, "influence"), cached.diagnosis()["influence"].passages
    found = rows_of(found, query_id).sort_values("retrieval_order", kind="stable")
    found = found.merge(rows_of(run.passages, query_id)[["passage_id", "title"]], on="passage_id")
    found["supports"] = _supporting(query_id, found["passage_id"])
    shown = [name for name in _told() if row[name] and not (name == "inert" and row["redundant"])]
    return Part(
        rows={str(one["passage_id"]): _shown(one, row, found) for one in found.to_dict("records")},
        says=(*_warning(query_id), *(_mode(name, row, found) for name in shown)),
    )


def _measure() -> Measure:
    found: Measure = cached.diagnosis()["influence"].measure
    return found


def _warning(query_id: str) -> tuple[str, ...]:
    """Say that the bars are not to be read, where they predict no better than chance what removal does."""
    if (
        not _measure().is_predicted
        or show.yes_or_no(questions.row(query_id, "attribution")["readable"]) is not False
    ):
        return ()
    told = "they predict no better than chance what leaving passages out does to this answer."
    return (f"**Do not read these bars:** {told}",)


def _told() -> list[str]:
    """Return the failure modes that one question may be told to have.

    Chance shows those that depend on the order as well: they are named only where the run has them beyond it.
    """
    found = headlines.wrong_with("influence")
    return [name for name in MODES if name not in ORDER_MODES or name in found]


def _supporting(query_id: str, passage_ids: pd.Series) -> pd.Series:
    """Tell which passages support a claim of the answer; missing where no claim of it was verified."""
    unknown = pd.Series(pd.NA, index=passage_ids.index, dtype="boolean")
    if headlines.lacks("claims") is not None:
        return unknown
    claims = questions.row(query_id, "claims")
    if not claims["n_supported"] + claims["n_not_supported"]:
        return unknown
    of_passage = rows_of(cached.diagnosis()["claims"].passages, query_id).set_index("passage_id")[
        "n_supported"
    ]
    return passage_ids.map(of_passage).fillna(0).gt(0).astype("boolean")


def _shown(one: Any, row: Any, found: pd.DataFrame) -> dict[str, Any]:
    """Return what a row of the workbench shows of a passage's influence."""
    told = _told()
    flags = [MODES[name].title for name in PER_PASSAGE if name in told and show.yes_or_no(one[name])]
    value = _known(one["influence"])
    if value is None:
        return {"flags": flags}
    above = show.yes_or_no(one["above_noise"])
    noise = {True: " · above noise", False: " · within noise", None: ""}[above]
    rank, measure = _place(one, found), _measure()
    said = f"{measure.heading} {number(value)}{measure.in_unit}"
    return {
        "flags": flags,
        "bar": {
            "value": value,
            "low": _known(one["influence_low"]),
            "high": _known(one["influence_high"]),
            "noise": _known(row["noise_quantile"]),
            "within": above is False,
            "text": f"{said} · rank {rank} of {len(found)}{noise}",
        },
    }


def _place(one: Any, found: pd.DataFrame) -> str:
    """Return an influence rank; the ranks that equal influences share, as a range."""
    n = int((found["influence_rank"] == one["influence_rank"]).sum())
    first = number(one["influence_rank"] - (n - 1) / 2, "{:.0f}")
    return first if n == 1 else f"{first}–{number(one['influence_rank'] + (n - 1) / 2, '{:.0f}')} (tied)"


def _known(value: Any) -> float | None:
    return None if value != value else float(value)


def _mode(name: str, row: Any, found: pd.DataFrame) -> str:
    """Say what is wrong in one sentence that names its passages, and what to do about it."""
    if name == "redundant" and not found["supports"].isna().any():
        supported = questions.row(str(row["query_id"]), "claims")["n_supported"] > 0
        return _unmoved(int(found["supports"].sum()), supported)
    definition, whose = MODES[name], found.head(0)
    if name in PER_PASSAGE:
        whose = found[found[name].astype(bool)]
    elif name in _SAID:
        whose = found[found["influence"] == found["influence"].max()].head(1)
    said = [
        f"“{plain(named(one), one_line=True)}”, retrieval rank {number(one['retrieval_rank'], '{:g}')}, "
        + _SAID[name].format(
            place=_place(one, found), k=len(found), share=number(100 * one["influence_share"], "{:.0f}")
        )
        for one in whose.head(_NAMED).to_dict("records")
    ]
    more = f"; and {count(len(whose) - _NAMED, 'more passage')}" if len(whose) > _NAMED else ""
    sentence = f"{'; '.join(said)}{more}." if said else definition.meaning
    by_chance = ""
    if name in ORDER_MODES:
        share = number(100 * row[f"{name}_by_chance"], "{:.0f}")
        by_chance = f" Of random orders of these influences, {share} % show this too."
    advice = definition.advice
    evidence = whose[["is_gold", "supports"]]
    if (
        name == "buried_evidence"
        and evidence.notna().to_numpy().any()
        and not evidence.fillna(False).to_numpy().any()
    ):
        advice = "It is neither gold nor supports the answer: moving it up would not help."
    return f"**{definition.title}:** {sentence}{by_chance} {advice}"


def _unmoved(n_supporting: int, supported: bool) -> str:
    """Say why no single passage matters to an answer, by the passages that support its claims."""
    nothing = "leaving out any one passage changes nothing"
    if n_supporting > 1:
        return f"**Redundant:** {nothing}; {n_supporting} passages support this answer."
    if n_supporting:
        return f"**No passage mattered:** {nothing}, not even the only one that supports this answer."
    if supported:
        return f"**No passage mattered:** {nothing}; only several passages together support this answer."
    return f"**No passage mattered:** {nothing}, and none supports this answer: it is probably invented."


def draw(query_id: str) -> None:
    """Draw how the two orders agree, or say why there is no order to compare."""
    row = questions.row(query_id, "influence")
    if headlines.why("influence", row["reason"], "No ρ for this question."):
        return
    _agreement(row)
    st.markdown("**Retrieval rank and influence rank**")
    show.chart("influence", "rank_slope", query_id=query_id)


def _agreement(row: Any) -> None:
    low, high = number(row["chance_low"]), number(row["chance_high"])
    noise, repeats = "no repeats were run", int(row["n_repeats"])
    if repeats:
        beyond = percent(float(above_noise_by_chance(repeats)))
        noise = f"{count(repeats, 'repeat')}: a passage without effect is above it in {beyond} of cases"
    if _measure().is_signed:
        noise = _measure().noise
    values = {
        "rho": (number(row["rho"]), f"{_label(row)}; chance baseline {low} to {high}"),
        "influence_ndcg": (
            number(row["influence_ndcg"]),
            f"chance baseline {number(row['ndcg_by_chance'])}; {p_text(row['ndcg_p_value'])}, two-sided",
        ),
        "dominance": (number(row["dominance"]), "share of the strongest passage"),
        "entropy": (number(row["entropy"]), f"nats; {number(row['entropy_normalised'])} of the maximum"),
        "noise_quantile": (number(row["noise_quantile"]), noise),
    }
    show.cards([(METRICS[name].title, *value, METRICS[name].meaning) for name, value in values.items()])


def _label(row: Any) -> str:
    """Return a label, with the reason where there is none."""
    reason = row["label_reason"]
    why = f" ({headlines.reason(reason, 'influence').title.lower()})" if isinstance(reason, str) else ""
    return f"{str(row['label']).lower()}{why}"


def in_progress(run: Run, query_id: str, answers: Mapping[tuple[str, int], Completion]) -> None:
    """Draw what the model has answered so far to one question of a run."""
    query = rows_of(run.queries, query_id).iloc[0]
    passages = rows_of(run.passages, query_id).sort_values(["slot", "retrieval_rank"])
    st.markdown(f"**{plain(shortened(query['question'], 200))}**")
    baseline = answers.get((BASELINE, 1))
    if baseline is None:
        st.caption("Waiting for the baseline answer …")
        return
    st.markdown(f"Baseline answer: {plain(shortened(_said(baseline), 300))}")
    frame = pd.DataFrame(
        [
            _row(place, title or text, baseline, answers.get((ABLATION, place)))
            for place, (title, text) in enumerate(
                passages[["title", "text"]].fillna("").itertuples(index=False), start=1
            )
        ],
        columns=["rank", "passage", "answer", "influence"],
    )
    columns = {
        "rank": "Rank",
        "passage": show.wide("Passage", "medium"),
        "answer": show.wide("Answer without it"),
        "influence": show.numeric("Influence"),
    }
    st.dataframe(
        frame, hide_index=True, column_config=columns, alt="Answers without each passage", placeholder="—"
    )
    closed = answers.get((CLOSED_BOOK, 1))
    if closed is not None:
        st.caption(f"Without any passage: {plain(shortened(_said(closed), 200))}")


def _row(place: int, title: str, baseline: Completion, found: Completion | None) -> tuple[object, ...]:
    if found is None:
        return place, shortened(title, 60), _WAITING, None
    influence = influence_score(baseline.text, found.text) if baseline.text and not found.error else None
    return place, shortened(title, 60), shortened(_said(found), 200), influence


def _said(completion: Completion) -> str:
    return completion.text.strip() or (completion.error or "no text")
