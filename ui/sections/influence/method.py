"""How influence is measured, what chance gives, and what it cannot tell."""

from __future__ import annotations

import streamlit as st

from core.influence.chance import chance_band
from core.text.display import number
from ui.state import settings

METHOD = """
1. **Retrieve.** Documents are cut into passages of about 100 words; the retriever (BM25 by default) ranks
   them, and the first k go into the prompt in that order.
2. **Baseline.** The model answers with all k passages, at temperature 0.
3. **Leave one out.** For each passage the same question is asked again without it: k more answers.
4. **Compare.** Influence = 1 − ROUGE-L F1 of the baseline and that answer: 0 when nothing changes,
   1 when no word sequence is shared. By log-probability (a setting) influence is how many nats less likely
   the unchanged answer becomes; what is below 0 counts in ranks, and as 0 in shares.
5. **Rank.** Passages are ranked by influence; equal influences share their average rank.
6. **Agree?** Spearman's ρ compares that order with the retriever's. ρ at or above the threshold is
   *aligned*, below it *divergent*, and *undefined* where there is no order to compare or where
   ties keep every order below the threshold, with the reason.
7. **First?** nDCG by influence asks whether what the model uses comes first, and sees a single passage that
   carries the answer, which ρ cannot. Its chance level comes from random orders of the same influences.
8. **Noise.** Where the unablated question was asked several times, the 95th percentile of how far those
   answers differ is the noise floor: influence below it may be the model's own unsteadiness.
9. **Closed book.** The question is also asked with no passage; an answer that stays the same did
   not need them.
"""

LIMITS = """
- **One at a time.** Leaving out single passages cannot see evidence that is in two passages:
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
- **Imported files.** Where a file has only scores and no ablated answers, the scores are taken as
  they are.
"""


def method() -> None:
    """Say how influence is computed, what chance alone gives, and what influence cannot do."""
    st.markdown(METHOD)
    st.markdown("**Chance baseline**")
    _chance()
    st.markdown("**Limits**")
    st.markdown(LIMITS)


def _chance() -> None:
    """Draw where ρ falls for random orders, by number of passages."""
    tau = float(settings()["influence_threshold"])
    bands = [chance_band(k) for k in (3, 5, 8, 10, 15, 20)]
    rows = {
        "Passages k": [band.k for band in bands],
        "Middle 95 % of random ρ": [f"{number(b.low)} to {number(b.high)}" for b in bands],
        "Exceeded by 5 %": [number(b.q95) for b in bands],
        f"Below the threshold {number(tau)}": [number(100 * b.p_below(tau), "{:.1f} %") for b in bands],
        "Mean overlap (RBO) of random orders": [number(b.mean_rbo) for b in bands],
    }
    st.dataframe(
        rows, hide_index=True, alt="Spread of rank agreement for random orders, by number of passages"
    )
