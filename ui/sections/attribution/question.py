"""One question: how far its attribution can be read, its scores, and passages that do not add up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
import streamlit as st

from core.attribution.analysis import AttributionAnalysis
from core.attribution.definitions import METRICS
from core.attribution.settling import FIRST
from core.rows import rows_of
from core.text.display import count, number, percent
from ui import cached, headlines, questions, show
from ui.plain import plain
from ui.sections import Part
from ui.sections.attribution import claims

_CAN = ("Bars can be read", ":material/verified:", "green")
_CANNOT = ("Do not read these bars", ":material/visibility_off:", "orange")


def _found() -> AttributionAnalysis:
    found: AttributionAnalysis = cached.diagnosis()["attribution"]
    return found


def part(query_id: str) -> Part:
    """Return whether the attribution can be read, and the passages that do not add up."""
    row, found = questions.row(query_id, "attribution"), _found()
    readable = show.yes_or_no(row["readable"])
    badge = None if readable is None else _CAN if readable else _CANNOT
    return Part(badge=badge, says=(*_readable(row), *_pairs(found, query_id), *_groups(found, query_id)))


def _readable(row: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(row["reason"], str):
        if row["reason"] != "no_answer":
            meaning = headlines.reason(row["reason"], "attribution").meaning
            yield f"**Attribution undefined:** {plain(meaning)}"
        return
    n = f"n = {count(int(row['n_test']), 'held-out subset')}"
    readable = show.yes_or_no(row["readable"])
    right = percent(row["concordance"])
    if readable is None:
        yield (
            f"Of two removals, the attribution scores tell the worse one in {right} of cases (50 % by "
            f"chance), but {n} are too few to tell whether these bars can be read."
        )
        return
    if readable:
        yield (
            f"Of two removals, the attribution scores tell the worse one in {right} of cases (50 % by "
            f"chance; {n})."
        )
        return
    ends = f"95 % interval {number(row['lds_low'])} to {number(row['lds_high'])}"
    yield (
        "**Do not read these bars:** the attribution scores predict removals no better than chance (LDS "
        f"{number(row['lds'])}, {ends}, 0 by chance; {n})."
    )


def _pairs(found: AttributionAnalysis, query_id: str) -> Iterator[str]:
    for one in rows_of(found.pairs, query_id).to_dict("records"):
        first, second = one["first_slot"], one["second_slot"]
        value, low, high = one["interaction"], one["low"], one["high"]
        title, than = f"Either of {first}, {second} is enough", "more"
        if not one["either"]:
            value, low, high = -value, -high, -low
            title, than = f"Needs both {first} and {second}", "less"
        interval = f"95 % interval {number(low)} to {number(high)}, for all pairs of the question together"
        interval = interval if number(low) != number(high) else "the same in every subset"
        yield (
            f"**{title}:** without both the answer loses {number(value)} {found.unit} {than} than without "
            f"each alone, added up ({interval})."
        )


def _groups(found: AttributionAnalysis, query_id: str) -> Iterator[str]:
    for one in rows_of(found.groups, query_id).to_dict("records"):
        slots = ", ".join(map(str, one["slots"]))
        alone = ", ".join(number(value) for value in one["alone"])
        kind, advice = "Same claims supported by", ""
        if one["near_duplicates"]:
            kind, advice = "Near-duplicates", f" {METRICS['near_duplicates'].advice}"
        yield (
            f"**{kind} {slots}:** without all of them the answer loses {number(one['together'])} "
            f"{found.unit}, without one of them {alone}.{advice}"
        )


def draw(query_id: str) -> None:
    """Draw the scores beside how far they can be read, and each claim by influence and by support."""
    row, found = questions.row(query_id, "attribution"), _found()
    headlines.why("attribution", row["reason"], "No LDS for this question.")
    passages = rows_of(found.passages, query_id)
    if passages.empty:
        return
    show.cards(_cards(row, found.unit))
    shared, placed = (bool(passages[name].notna().any()) for name in ("shapley", "slot_effect"))
    show.sentence(_guide(found, row, shared, placed))
    show.chart("attribution", "passage_scores", query_id=query_id)
    _table(passages, found.unit)
    own = claims.by_claim(rows_of(found.claims, query_id))
    if not own.empty:
        st.markdown("**Claims by influence and by support**")
        show.sentence(claims.disagreeing(own))
        show.table(own, "The passages of each claim by influence and by support", claims.columns(found))


def _cards(row: Mapping[str, Any], unit: str) -> list[tuple[str, str, str, str]]:
    n = "" if pd.isna(row["n_test"]) else f"n = {count(int(row['n_test']), 'subset')}"
    ceiling = row["ceiling"]
    top = f"; ceiling {number(ceiling)}" if ceiling == ceiling else ""
    ends = f"95 % interval {number(row['lds_low'])} to {number(row['lds_high'])}"
    cards = [
        ("concordance", row["concordance"], percent(row["concordance"]), f"50 % by chance; {n}"),
        ("lds", row["lds"], number(row["lds"]), f"{ends}; 0 by chance{top}; {n}"),
        (
            "top_drop", row["drop_1"], number(row["drop_1"]),
            f"{unit}; without a random passage {number(row['drop_1_random'])}",
        ),
    ]  # fmt: skip
    return [
        (METRICS[name].title, value, basis, plain(METRICS[name].meaning))
        for name, known, value, basis in cards
        if not pd.isna(known)
    ]


def _guide(found: AttributionAnalysis, row: Mapping[str, Any], shared: bool, placed: bool) -> str:
    failed = f" ({int(row['n_failed']):,} failed)" if row["n_failed"] else ""
    settled = f"{int(row['settled'])} of the first {min(FIRST, int(row['k']))}"
    said = [
        f"{count(int(row['n_calls']), 'prompt')} measured{failed}; places settled: {settled}.",
        "Bars predict what leaving passages out does to the answer; below 0 a passage speaks against it.",
    ]
    if shared:
        said.append(
            "Shapley values share the credit for the answer among the passages. They are not meant to "
            "predict removals and are not judged by them."
        )
    if len(rows_of(found.pairs, row["query_id"])):
        said.append("An arc joins two passages whose effects do not add up.")
    if placed:
        said.append("The bars below are what each place does, whatever passage stands there.")
    return " ".join(said)


def _table(passages: pd.DataFrame, unit: str) -> None:
    columns = {
        "slot": show.numeric("Place", "%d"),
        "title": show.wide("Passage", "medium"),
        "score": show.numeric(f"Score ({unit})"),
        "low": show.numeric("95 % from"),
        "high": show.numeric("to"),
        "shapley": show.numeric("Shapley"),
        "shapley_low": show.numeric("95 % from "),
        "shapley_high": show.numeric("to "),
        "slot_effect": show.numeric("Effect of the place"),
    }
    named = passages.assign(title=passages["title"].fillna(passages["passage_id"]))
    for name in ("", "shapley_"):  # what is exact has no interval
        ends = [f"{name}low", f"{name}high"]
        named[ends] = named[ends].mask(named[f"{name}low"] == named[f"{name}high"])
    show.table(named, "Scores of the passages, in the order of the prompt", columns, height="content")
