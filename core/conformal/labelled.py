"""Labelled answers as rows of a calibration store: from a run, and how contexts and references are stored."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from core.analyses import Analyses
from core.calibration.in_use import in_use, provenance
from core.calibration.provenance import Provenance
from core.calibration.saved import Method, digest
from core.calibration.store import CalibrationCase, query_hash
from core.errors import InputError
from core.llm.prompts import NumberedPassage, passage_block
from core.pipeline.rows import AskedQuestion, questions_of
from core.signals import nonconformity

# A text, or passages in the order of the prompt: texts, or pairs of title and text.
Context = str | Sequence[str | tuple[str, str]]


def numbered(context: Context) -> list[NumberedPassage]:
    """Return the passages of a context as a prompt has them; a text is one, an empty one is none.

    >>> numbered([("Ada", "She was first."), "Text."])
    [(1, 'Ada', 'She was first.'), (2, '', 'Text.')]
    """
    given = [context] if isinstance(context, str) else context
    pairs = [("", one) if isinstance(one, str) else one for one in given]
    kept = [(title, text) for title, text in pairs if title.strip() or text.strip()]
    return [(label, title, text) for label, (title, text) in enumerate(kept, start=1)]


def context_text(context: Context) -> str:
    r"""Return a context as one text, as it stands in the prompt.

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


def cases_of(diagnosis: Analyses, method: Method | None = None) -> tuple[list[CalibrationCase], Provenance]:
    """Return the labelled answers of a run that have a score, and what identifies the scores; no LLM calls.

    The setting ``weights`` chooses the score, or ``method``: the answers that this was learned from are left
    out. InputError where the run has no such score.
    """
    run, used = diagnosis.run, in_use(diagnosis, method)
    if used.score is None:
        there = ", ".join(one.key for one in used.choices)
        way_out = f"it has {there}" if there else "sample answers or verify claims first"
        raise InputError(f"The run {run.manifest['name']!r} has no such score to calibrate; {way_out}.")
    source = used.score.source
    # A score from fewer samples than the others is another function.
    asked = run.manifest.get("steps", {}).get(source, {}).get("samples")
    n = run["samples"]["query_id"].value_counts()
    question = questions_of(run)
    cases = []
    scores = nonconformity(used.score).tolist()
    for query_id, score, right in zip(run.queries["query_id"], scores, used.correct.tolist(), strict=True):
        found = question(query_id)
        references, answer = found.query["reference_answers"] or (), found.query["answer"]
        known = right == right or (len(references) > 0 and isinstance(answer, str))
        whole = asked is None or n.get(query_id, 0) == asked
        taught = digest(str(found.query["question"])) in used.method.learned_from
        if known and whole and not taught:
            cases.append(
                CalibrationCase(
                    str(found.query["question"]), _context(found), answer or "",
                    references_text([*references]), score,
                    None if math.isnan(right) else bool(right),
                    found.query["kind"],
                )
            )  # fmt: skip
    return cases, provenance(run.manifest, used.score.key, used.method)
