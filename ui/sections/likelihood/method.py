"""How fixed-answer scores are computed, and their limits."""

from __future__ import annotations

import streamlit as st

METHOD = """
1. **Read.** The model reads the given answer after the prompt with all passages, and after the same prompt
   without each passage. The sum over the answer's tokens is its log-probability. Nothing is generated.
2. **Drop.** The log-probability that the answer loses without a passage, in nats: 0.69 halves its
   probability; below 0 the passage makes the answer less likely.
3. **Reference.** The same for the first reference answer, if there is one.
4. **Compare.** A passage is *misleading* where it raises an incorrect answer most and lowers the correct one.
   Evidence is *ignored* where the passage that raises the correct answer most does not raise the given one.
5. **Chance.** Both counts are compared with the same drops dealt at random to the passages of each question.
"""

LIMITS = """
- **One at a time.** Of two passages with the same evidence neither drops much.
- **Only these words.** The same answer in other words has another probability; a long answer copied from a
  passage drops by far more than a short one.
- **A given answer.** The scores do not show what the model would have answered instead; ROUGE-L does.
"""


def method() -> None:
    """Say how the scores are measured, what chance is, and what the limits are."""
    st.markdown(METHOD)
    st.markdown("**Limits**")
    st.markdown(LIMITS)
