"""Labelled answers as rows of a calibration store: from a run, and how contexts and references are stored."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pandas as pd

from core.conformal.provenance import Provenance, provenance_of
from core.conformal.store import Case, query_hash
from core.diagnosis import Diagnosis
from core.errors import InputError
from core.llm.prompts import NumberedPassage, passage_block
from core.pipeline.rows import AskedQuestion, questions_of

# A text, or passages in the order of the prompt: texts, or pairs of title and text.
Context = str | Sequence[str | tuple[str, str]]


def numbered(context: Context) -> list[NumberedPassage]:
    """Return the passages of a context as a prompt has them; a text is one, an empty one is none.

    Examples
    --------
    >>> numbered("Ada was first.")
    [(1, '', 'Ada was first.')]
    >>> numbered([("Ada", "She was first."), "Text."])
    [(1, 'Ada', 'She was first.'), (2, '', 'Text.')]
    """
    given = [context] if isinstance(context, str) else context
    pairs = [("", one) if isinstance(one, str) else one for one in given]
    kept = [(title, text) for title, text in pairs if title.strip() or text.strip()]
    return [(label, title, text) for label, (title, text) in enumerate(kept, start=1)]


def context_text(context: Context) -> str:
    r"""Return a context as one text, as it stands in the prompt.

    Examples
    --------
    >>> context_text([("Ada", "She was first."), "Text."])
    '[1] Ada: She was first.\n\n[2] Text.'
    """
    return "\n\n".join(map(passage_block, numbered(context)))


def references_text(references: Sequence[str]) -> str:
    """Return reference answers as one text: the only one, or JSON; "" without any."""
    if len(references) < 2:
        return next(iter(references), "")
    return json.dumps([*references], ensure_ascii=False)


def hash_of(question: AskedQuestion) -> str:
    """Return what identifies a question of a run with its passages in a store."""
    return query_hash(str(question.query["question"]), _context(question))


def _context(question: AskedQuestion) -> str:
    return context_text([(one["title"] or "", one["text"] or "") for one in question.passages])


def cases_of(diagnosis: Diagnosis) -> tuple[list[Case], Provenance]:
    """Return the answers of a run that have a label and a score, and what identifies the scores.

    Parameters
    ----------
    diagnosis : Diagnosis
        Of the run; its setting ``score`` chooses the score. No LLM calls.

    Raises
    ------
    InputError
        The run has no such score.
    """
    run = diagnosis.run
    analysis = diagnosis["conformal"]
    if analysis.score is None:
        there = ", ".join(one.key for one in analysis.scores)
        way_out = f"it has {there}" if there else "sample answers or verify claims first"
        raise InputError(f"The run {run.manifest['name']!r} has no such score to calibrate; {way_out}.")
    source = analysis.score.source
    provenance = provenance_of(run.manifest, analysis.score.key, source)
    # A score from fewer samples than the others is another function.
    asked = run.manifest.get("steps", {}).get(source, {}).get("samples")
    n = run["samples"]["query_id"].value_counts()
    question = questions_of(run)
    cases = []
    for row in analysis.queries[["query_id", "score", "correct"]].itertuples(index=False):
        found = question(row.query_id)
        references, answer = found.query["reference_answers"] or (), found.query["answer"]
        known = len(references) > 0 or not pd.isna(row.correct)
        whole = asked is None or n.get(row.query_id, 0) == asked
        if known and isinstance(answer, str) and whole:
            cases.append(
                Case(
                    str(found.query["question"]), _context(found), answer,
                    references_text([*references]), float(row.score),
                    None if pd.isna(row.correct) else bool(row.correct),
                    found.query["kind"],
                )
            )  # fmt: skip
    return cases, provenance
