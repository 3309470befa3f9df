"""How answers are validated, and what validators do not see."""

from __future__ import annotations

import streamlit as st

METHOD = """
1. **Validators.** Five checks without a model: citations, words of the answer in the passages, numbers and
   dates with their units, certainty without ground, and a function of your own. They read English,
   Vietnamese, simplified and traditional Chinese.
2. **Severity.** A warning leaves the answer as it is. A critical verdict replaces it by a fallback that
   shares no five words in a row with the answer.
3. **Context score.** 0.2, 0.5 or 0.8 for no, one or more passages; + 0.1 where all validators pass; less for
   an objection. A rule of thumb, mostly for having passages, not a probability and no trust.
4. **Against labels.** Where answers are known to be correct or incorrect, each validator's objections are
   compared with as many at random (Fisher's exact test, two-sided; findings are corrected for all tests of
   the run). Validation is no gate where it surely stops less than 25 percentage points more of the incorrect
   than of the correct answers.
5. **On against off.** The same labelled answers with and without the stops; interval of the paired
   difference.
"""

LIMITS = """
- **Form, not truth.** An answer can cite a passage, use its words and numbers, and still be wrong.
- **Citations need a prompt that asks for them.** Where the run's prompt does not, none is missed; an imported
  run has no prompt, so switch *Answers must cite* off where its model was never told to.
- **Overlap compares words.** A paraphrase has little in common with its passage. Where a passage is in
  another language than the answer, overlap does not apply.
- **A number in a passage may belong to something else.**
"""


def method() -> None:
    """Say how answers are validated and what that does not show."""
    st.markdown(METHOD)
    st.markdown("**Limits**")
    st.markdown(LIMITS)
