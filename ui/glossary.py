"""The methods page, generated from the schema so that no definition is written twice."""

from __future__ import annotations

import streamlit as st

from core.definitions import (
    CAUSAL_LABELS,
    CLAIM_REASONS,
    CLAIM_STATES,
    CLAIM_VERDICTS,
    METRICS,
    MODES,
    QUADRANTS,
    UNDEFINED_REASONS,
)
from core.influence import chance_band
from core.schema import TABLES
from ui import show
from ui.state import threshold

METHOD = """
1. **Retrieve.** Documents are cut into passages of about 100 words; BM25 ranks them, and the first
   k go into the prompt in that order.
2. **Baseline.** The model answers with all k passages, at temperature 0.
3. **Leave one out.** For each passage the same question is asked again without it: k more answers.
4. **Compare.** Influence = 1 − ROUGE-L F1 of the baseline and that answer: 0 when nothing changes,
   1 when no word sequence is shared.
5. **Rank.** Passages are ranked by influence; equal influences share their average rank.
6. **Agree?** Spearman's ρ compares that order with the retriever's. ρ at or above the threshold is
   *aligned*, below it *divergent*, and *undefined* where there is no order to compare, with the
   reason.
7. **Noise.** Where the unablated question was asked several times, the 95 % point of how far those
   answers differ is the noise floor: influence below it may be the model's own unsteadiness.
8. **Closed book.** The question is also asked with no passage; an answer that stays the same did
   not need them.
"""

LIMITS = """
- **One at a time.** Leaving out single passages cannot see evidence that stands in two passages:
  removing either leaves the other, and both look unused. Such questions are marked *redundant*
  where a closed-book answer is known.
- **Words, not meaning.** ROUGE-L sees a rephrased answer as a changed one, and a changed date in a
  long answer as a small change. Influence is how much the *wording* moved.
- **Influence is not correctness.** A passage can move the answer away from the truth; only
  reference answers tell.
- **Few passages, little evidence.** With k = 10, random orders spread widely around 0 (see the
  table above). A single question's ρ is weak evidence; the mean over many questions is the number
  to trust, with its interval.
- **Order effects.** Leaving a passage out also moves the ones behind it forward. Part of what is
  measured may be position rather than content.
- **A model's own noise.** Even at temperature 0 some back ends answer differently from call to
  call. Without repeats the noise floor is unknown, and small influences cannot be told from it.
- **Imported files.** Where a file holds only scores and no ablated answers, the scores are taken as
  they are.
"""


def method() -> None:
    """Say how influence is computed."""
    st.subheader("How influence is measured", anchor=False)
    st.markdown(METHOD)


def metrics() -> None:
    """Draw every metric with its formula, range, direction and source."""
    with st.grid(2, min_column_width=280):
        for m in METRICS.values():
            facts = {
                "Computed as": m.formula,
                "Range": f"{m.range} {m.unit}".strip(),
                "Direction": m.direction,
                "Undefined when": m.undefined_when,
                "Source": m.source,
            }
            show.definition(m.title, m.meaning, facts)


def chance_table() -> None:
    """Draw where ρ falls for random orders, by number of passages."""
    tau = threshold()
    bands = [chance_band(k) for k in (3, 5, 8, 10, 15, 20)]
    rows = {
        "Passages k": [band.k for band in bands],
        "Middle 95 % of random ρ": [f"{show.number(b.low)} to {show.number(b.high)}" for b in bands],
        "Exceeded by 5 %": [show.number(b.q95) for b in bands],
        f"Below the threshold {show.number(tau)}": [
            show.number(100 * b.p_below(tau), "{:.1f} %") for b in bands
        ],
        "Mean overlap (RBO) of random orders": [show.number(b.mean_rbo) for b in bands],
    }
    st.dataframe(
        rows, hide_index=True, alt="Spread of rank agreement for random orders, by number of passages"
    )


def modes() -> None:
    """Draw every failure mode with its rule and what to try."""
    with st.grid(2, min_column_width=280):
        for mode in MODES.values():
            show.definition(mode.title, mode.advice, {"Rule": mode.rule})


def claims() -> None:
    """List what the words for claims and passages mean."""
    for title, words in (
        ("States of a claim", CLAIM_STATES),
        ("Verdicts on a claim", CLAIM_VERDICTS),
        ("What became of a claim without a passage", CAUSAL_LABELS),
        ("What a passage was good for", QUADRANTS),
    ):
        lines = (
            f"- **{w.name.replace('_', ' ')}** — {f'{w.meaning} {w.advice}'.strip()}" for w in words.values()
        )
        st.markdown(f"{title}:\n\n" + "\n".join(lines))


def reasons() -> None:
    """List the reasons why a number may be undefined."""
    for title, codes in (("Influence", UNDEFINED_REASONS), ("Claims and evidence", CLAIM_REASONS)):
        lines = (f"- **{r.name.replace('_', ' ').capitalize()}** — {r.meaning}" for r in codes.values())
        st.markdown(f"{title}:\n\n" + "\n".join(lines))


def limits() -> None:
    """Say honestly what the method cannot do."""
    st.markdown(LIMITS)


def tables() -> None:
    """Draw the columns of one chosen table of a run."""
    name = st.selectbox(
        "Table", list(TABLES), key="methods_table", format_func=lambda t: f"{t}: {TABLES[t].meaning}"
    )
    columns = TABLES[name].columns
    rows = {
        "Column": [c.name + (" (required)" if c.required else "") for c in columns],
        "Type": [f"{c.type}, {c.unit}" if c.unit else c.type for c in columns],
        "Meaning": [c.meaning for c in columns],
        "Also read from": [", ".join(c.aliases) for c in columns],
    }
    st.dataframe(rows, hide_index=True, alt=f"Columns of the table {name}")
