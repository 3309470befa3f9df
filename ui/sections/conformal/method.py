"""How calibration works, and what its promises do not say."""

from __future__ import annotations

import streamlit as st

METHOD = """
1. **Split.** Half of the questions with reference answers, chosen at random, calibrate. The other half tests.
2. **Score.** Every answer gets a score that needs no reference answer: 1 − the confidence of the page
   Confidence, high = less typical. It is the same function for calibrated and new answers; only then can
   they be compared.
3. **Threshold.** Of n calibration scores the ⌈(n + 1)(1 − α)⌉-th smallest: a new case of the same kind
   exceeds it with a probability of at most α. Where n is too small there is none, and nothing is promised.
4. **Flag.** The p-value of an answer is the share of correct calibration answers, itself among them, that
   are no more typical, in its own group where groups have enough labels. At p ≤ α it is flagged.
5. **Sets.** Meanings among the samples that are frequent enough form a set. It holds a correct answer with
   probability at least 1 − α; questions in which no sample is correct count as missed.
6. **Certify.** Exact binomial tests begin at a number of surest answers, chosen by power without the labels,
   and go on down a fixed grid. From the lowest confidence that passes on, at most α of the answers are wrong.
7. **Watch.** A bet against new scores looking like those of a calibration store raises an alarm when it wins
   too much. It sees a change of level, not of spread. Between random halves of one run nothing is watched:
   they differ by chance only.
8. **Use all labels.** What is certified for use comes from all labels; the half shows how it does on others.
   How many answers are flagged depends on the half; the range over random halves is shown with it.
"""

LIMITS = """
- **New questions like the old ones.** Every promise is about questions from the population that calibrates.
  Another model, prompt, retriever or kind of question voids it.
- **On average.** The promise holds over questions and calibrations, not for each question. One calibration
  may cover less: the exact band says how much.
- **Not flagged is not correct.** α limits how many *correct* answers are flagged. How many incorrect ones
  are depends on the score.
- **Groups.** Kinds or languages with enough correct labels have a threshold each; those with too few share
  one, whose promise is for them on average.
- **One choice of score.** Choosing the score that looks best on the test questions breaks the promise there.
"""


def method() -> None:
    """Say how calibration works and what it cannot promise."""
    st.markdown(METHOD)
    st.markdown("**Limits**")
    st.markdown(LIMITS)
