"""Tables that this program exports: what a run holds of them is read back, all else is computed again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from core.errors import InputError
from core.schema import SIGNALS
from core.sources.content import Content, content_of
from core.sources.report import shorten
from core.spreadsheet import SOURCE_COLUMN


def _same(names: str) -> dict[str, str]:
    return {name: name for name in names.split()}


_HELD = _same("query_id question kind correct") | {name: name for name in SIGNALS.names[1:]}
# Tables with questions: the columns that tell them, and what they have beside `_HELD` of the schema, with its
# name there.
READ: Mapping[str, tuple[set[str], Mapping[str, str]]] = {
    "worklist-csv": (
        {"findings", "answers.answer_status"},
        {"answers.correct": "correct", **{f"confidence.{name}": name for name in SIGNALS.names[1:]}},
    ),
    "queries-csv": ({"influence_ndcg", "attainable_rho"}, {}),
    "uncertainty-csv": ({"n_meanings", "consensus_id"}, {}),
    "conformal-csv": ({"role", "set_covers"}, {"role": "calibrates", "confidence": "confidence"}),
    "confidence-csv": ({"raw_confidence", "judged_confidence"}, {}),
    "samples-csv": ({"sample_id", "n_same"}, _same("sample_id answer temperature top_p")),
    "claims-csv": (
        {"claim_id", "support_maximum"},
        _same(
            "claim_id claim verdict passage_id retrieval_rank title probability agreement judge influence "
            "second_passage_id joint_probability joint_judge"
        ),
    ),
}
_CONFIDENCE = "signal.answers."  # stands before the name that an imported file gave a confidence
# Tables without questions: the columns that tell them, and what they hold.
SUMMARIES: Mapping[str, tuple[set[str], str]] = {
    "risk-csv": ({"threshold", "n_answered", "certified"}, "thresholds tested, one row per confidence"),
    "reliability-csv": ({"number", "accuracy", "accuracy_low"}, "a reliability diagram, one row per bin"),
    "context-csv": ({"condition", "n_rising", "outcome"}, "a context test, one row per estimator"),
    "validators-csv": ({"validator", "n_applied", "recall"}, "counts, one row per validator"),
    "signals-csv": ({"first", "second", "spearman"}, "correlations, one row per pair of signals"),
    "attribution-csv": ({"lds", "score", "slot_effect"}, "attribution scores, one row per passage"),
    "attribution-pairs-csv": ({"interaction", "either"}, "pairs of passages that do not add up"),
    "json": ({"verdict", "summary", "manifest"}, "the headline numbers of a run"),
}


def check_questions(names: Iterable[str], file: str) -> None:
    """Raise InputError where a file has the columns, or the keys, of a table of ours without questions."""
    present = {*names}
    for name, (tells, what) in SUMMARIES.items():
        if tells <= present:
            raise InputError(
                f"{file} is the export {name} of this program ({what}): it holds no questions, so it cannot "
                "be opened as a run."
            )


def held(content: Content) -> Content:
    """Return a file without those columns of ours that no run holds; any other file as it is.

    Columns behind the mark that ends a table of ours are somebody else's, and stay. InputError as
    `check_questions` raises it.
    """
    names = content.names() | set(content.keys())
    check_questions(names, content.name)
    called = next((called for tells, called in READ.values() if tells | {"question"} <= names), None)
    if called is None:
        return content
    own, columns = {**_HELD, **called}, list(content.columns or names)
    end = columns.index(SOURCE_COLUMN) if SOURCE_COLUMN in columns else len(columns)
    computed = [name for name in columns[:end] if name not in own and not name.startswith(_CONFIDENCE)]
    fields = {name: own.get(name, name.removeprefix(_CONFIDENCE)) for name in columns if name not in computed}
    left = ", ".join(map(shorten, computed))
    note = f"Not held by a run, so computed again where its data allow it: {left}."
    table = content.as_table()
    frame = table.frame[list(fields)].rename(columns=fields)
    kept = content_of(replace(table, frame=frame, notes=(*content.notes, note)), content.name)
    return replace(kept, digest=content.digest)
