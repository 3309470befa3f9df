"""How the confidence comes about, and what it does not say."""

from __future__ import annotations

import streamlit as st

METHOD = """
1. **Signals.** Similarity: mean cosine of the question with its 3 nearest passages. Lexical score: mean BM25
   of the 3 best, in per cent of the highest score that the question could have. Stated confidence: what the
   model says of its own answer.
2. **Unit.** Each signal is brought to 0–1 by its *declared* range and clamped. Values that contradict the
   range raise a warning.
3. **Weights.** The confidence is the weighted sum, by default 0.45, 0.35 and 0.20. If a signal with a weight
   is missing there is no confidence: a sum of the others would be another score.
4. **Decision.** Rounded half-up to two places, an answer passes from the threshold on.
5. **Calibration.** Half of the labelled questions teach weights, by a grid and by logistic regression, tested
   on answers they were not learned from. They replace those in use only if their gain is significant. Platt
   scaling or isotonic regression then turns the sum into a probability. The other half calibrates thresholds.
6. **Combined uncertainty.** 0.2 · retrieval + 0.4 · sampling + 0.4 · conformal prediction. Reliable means:
   the answer agrees with its samples by more than 0.7, and conformal prediction does not flag it.
"""

LIMITS = """
- **Not a probability.** Without calibration 0.7 does not mean that 7 of 10 answers are correct.
- **Good retrieval is not a good answer.** Similarity and lexical score look at the passages only.
- **These questions.** A calibration holds for questions, model and retriever like those it was learned from.
- **Tried weights.** Weights chosen by eye on labelled answers look better on these answers than on new ones.
"""


def method() -> None:
    """Say how the confidence comes about and what it does not say."""
    st.markdown(METHOD)
    st.markdown("**Limits**")
    st.markdown(LIMITS)
