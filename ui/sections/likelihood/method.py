"""How fixed-answer scores come about, and what they cannot tell."""

from __future__ import annotations

import streamlit as st

METHOD = """
1. **Read.** The model reads the answer that was given behind the prompt with all passages, and behind the
   same prompt without each passage. The sum over its tokens is its log-probability. Nothing is generated.
2. **Drop.** What the answer loses without a passage, in nats: 0.69 halves its probability; below 0 the
   passage speaks against the answer.
3. **Reference.** The same for the first reference answer, where there is one.
4. **Beside each other.** The passage with the largest drop of the answer made it; the one with the largest
   drop of the reference would make the correct answer likelier. A passage *misleads* where the first speaks
   against the correct answer; evidence is *ignored* where the second does nothing for the answer given.
5. **Chance.** Both counts stand beside those of the same drops dealt at random to each question's passages.
"""

LIMITS = """
- **One at a time.** Of two passages that hold the same evidence neither drops much.
- **Only these words.** Another wording of the same answer has another probability; a long answer, copied from
  a passage, drops by far more than a short one.
- **A given answer.** What the model would have said instead is not seen; ROUGE-L sees that.
"""


def method() -> None:
    """Say how the scores are measured, what chance is, and what they cannot tell."""
    st.markdown(METHOD)
    st.markdown("**Limits**")
    st.markdown(LIMITS)
