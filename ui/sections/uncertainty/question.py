"""One question: what its samples say, whether they agree, and whether the answer agrees with them."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.rows import rows_of
from core.text.display import count, number
from core.uncertainty.definitions import FINDINGS, METRICS, UNSTABLE
from ui import cached, headlines, questions, show
from ui.sections import Part

_STATUS = {"answered": "", "abstained": "Refusal", "empty": "Empty", "error": "Failed call"}
_FEWEST = 3  # different answers that make a figure worth its room


def part(query_id: str) -> Part:
    """Return what is wrong with how the answer and its samples agree."""
    row = questions.row(query_id, "uncertainty")
    if row["stability"] == UNSTABLE:
        wrong = FINDINGS["unstable_answer"]
        return Part(says=(f"**{wrong.title}:** {said(row)} {wrong.advice}",))
    differs = row["n_samples"] > 1 and show.yes_or_no(row["baseline_in_largest"]) is False
    if differs and "baseline_disagrees" in headlines.wrong_with("uncertainty"):
        wrong, what = FINDINGS["baseline_disagrees"], _largest(row)
        return Part(says=(f"**{wrong.title}:** {what} say something else. {wrong.advice}",))
    return Part()


def said(row: Any) -> str:
    """Say how many samples there are, whether they agree, and whether the answer agrees with them."""
    n, meanings = int(row["n_samples"]), int(row["n_meanings"])
    if n < 2:
        return f"{count(n, 'sample')}: nothing can agree or differ."
    largest = _in_largest(row)
    if meanings == 1:
        alike = {"n_empty": "are empty", "n_refused": "refuse"}
        start = f"All {n} samples {next((how for of, how in alike.items() if row[of] == n), 'say the same')}"
    elif largest == 1:
        start = f"{n} samples, {n} meanings: each says something else"
    else:
        start = f"{n} samples, {count(meanings, 'meaning')}: {largest} say the same"
    refused = int(row["n_refused"])
    start += f" ({count(refused, 'refusal')})" if 0 < refused < n else ""
    return start + _of_answer(show.yes_or_no(row["baseline_in_largest"]), largest)


def _in_largest(row: Any) -> int:
    return round(row["meaning_share"] * row["n_samples"])


def _largest(row: Any) -> str:
    return f"{_in_largest(row)} of {count(int(row['n_samples']), 'sample')}"


def _of_answer(agrees: bool | None, largest: int) -> str:
    if agrees is None:
        return "; there is no answer to compare with them."
    if not agrees:
        return ". The answer says something else."
    return ". The answer says what one of them says." if largest == 1 else ", and so does the answer."


def draw(query_id: str) -> None:
    """Draw the sentence, the numbers, the samples by meaning, and the figures where they tell something."""
    row = questions.row(query_id, "uncertainty")
    headlines.why("uncertainty", row["reason"], "Uncertainty undefined.")
    if not row["n_samples"]:
        return
    st.markdown(said(row))
    _numbers(row)
    _samples(query_id, row)
    if row["n_distinct"] < _FEWEST:
        st.caption(
            f"{count(int(row['n_distinct']), 'different answer')}: too few for a figure of how they differ."
        )
        return
    embedded = cached.diagnosis()["uncertainty"].embedded
    alike = "closer embeddings (cosine)" if embedded else "more words in the same order (ROUGE-L)"
    st.markdown(f"**Samples near each other have {alike}**")
    show.chart("uncertainty", "answer_scatter", query_id=query_id)


def _numbers(row: Any) -> None:
    n = f"n = {count(int(row['n_samples']), 'sample')}"
    shown = {name: METRICS[name] for name in ("stability", "entropy", "agreement")}
    values = {
        "stability": (
            str(row["stability"]),
            f"largest meaning: {_largest(row)}" if row["n_samples"] > 1 else n,
        ),
        "entropy": (number(row["entropy"]), f"nats; {number(row['entropy_normalised'])} of the maximum; {n}"),
        "agreement": (number(row["agreement"]), n),
    }
    if row["embedding_variance"] == row["embedding_variance"]:
        shown["mc_confidence"] = METRICS["mc_confidence"]
        values["mc_confidence"] = (number(1 - row["embedding_variance"]), n)
    show.cards([(one.title, *values[name], one.meaning) for name, one in shown.items()])


def _samples(query_id: str, row: Any) -> None:
    frame = rows_of(cached.diagnosis()["uncertainty"].samples, query_id)
    frame = frame.sort_values("meaning", kind="stable")
    frame = frame.assign(
        typical=["★" if show.yes_or_no(one) else "" for one in frame["is_consensus"]],
        n_same=frame["n_same"].where(frame["n_same"] > 1),
        status=[_STATUS.get(str(one), str(one)) for one in frame["status"]],
    )
    columns = {
        "meaning": show.numeric("Meaning", "%d", "The largest is 1"),
        "typical": show.wide("★", "small", "The most typical answer of the largest meaning"),
        "answer": show.wide("Sampled answer"),
        "status": show.wide("Not an answer", "small"),
        "n_same": show.numeric("Same words", "%d", "Samples with the same words, this one among them"),
        "agreement": show.numeric("Agreement", about="Mean likeness to the other samples"),
        "temperature": show.numeric("Temperature", "%g"),
        "top_p": show.numeric("top_p", "%g"),
    }
    show.table(frame, "Samples of this question by meaning", columns)
    st.caption(cached.diagnosis()["uncertainty"].rule + _in_other_orders(row))


def _in_other_orders(row: Any) -> str:
    """Say between which numbers the meanings vary with the order of the samples, where they do."""
    low, high = int(row["meanings_low"]), int(row["meanings_high"])
    return "" if low == high else f" In other orders of these samples there are {low} to {high} meanings."
