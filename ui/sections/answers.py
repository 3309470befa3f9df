"""The answer to a question: whether it is correct, and what the model says without any passage."""

from __future__ import annotations

import streamlit as st

from core.answers.analysis import REFERENCE, UNKNOWN, Answers
from core.text.display import count
from ui import cached, questions, show
from ui.plain import plain, shortened
from ui.sections import Part
from ui.state import session

_BADGES = {
    True: ("Correct", ":material/check:", "green"),
    False: ("Incorrect", ":material/close:", "red"),
    None: ("Not judged", ":material/question_mark:", "gray"),
}
_STATUS = {
    "abstained": "The model declined to answer.",
    "empty": "The answer is empty.",
    "error": "The model call failed.",
}


def overview() -> bool:
    """Draw what was in the prompt of the incorrect answers, where any is; tell whether it did."""
    n, read, unknown = cached.once("incorrect answers", lambda own: _incorrect(own["answers"]))
    if not n or not session().the_run.has("passages"):
        return False
    st.subheader(f"Was the evidence in the prompt? {count(n, 'incorrect answer')}", anchor=False)
    show.chart("answers", "evidence_split")
    if unknown:
        st.caption("Mark gold passages (is_gold) to see whether retrieval or the model is at fault.")
    if read:
        st.caption(
            f"{count(read, 'answer has', 'answers have')} no known gold passage: evidence is a passage that "
            "contains the reference answer, which may be by accident."
        )
    return True


def _incorrect(answers: Answers) -> tuple[int, int, int]:
    """Count the incorrect answers, those with evidence by words, and those whose evidence is not known."""
    wrong = answers.incorrect
    by_words, unknown = wrong["evidence_by"].eq(REFERENCE), wrong["evidence"].eq(UNKNOWN)
    return len(wrong), int(by_words.sum()), int(unknown.sum())


def part(query_id: str) -> Part:
    """Return the badge of the answer with all passages, and the reference answers it was compared with."""
    raw, correct = questions.row(query_id), questions.row(query_id, "answers")["correct"]
    references = raw["reference_answers"]
    given = [] if references is None else [str(reference) for reference in references]
    title = "Reference answer" if len(given) == 1 else "Reference answers"
    status = _STATUS.get(str(raw["answer_status"]))
    because = raw["status_reason"]
    why = f" {plain(shortened(because, 300))}" if isinstance(because, str) else ""
    return Part(
        badge=_BADGES[show.yes_or_no(correct)],
        beside=((title, " / ".join(given)),) if given else (),
        says=(f"**{status}**{why}",) if status else (),
    )


def draw(query_id: str) -> None:
    """Draw the answer without any passage."""
    st.caption("Closed-book answer (no passages), not judged")
    show.quote(questions.row(query_id)["closed_book_answer"], "not asked")
