"""What the workbench shows of an answer and its passages, as plain JSON values. Nothing is drawn here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import pandas as pd

from core.text.diff import shorten_same, word_diff
from core.text.display import number, visible
from core.text.occurrence import marked, origins, snippet, telling
from core.text.reading import content_stems
from ui.plain import held, shortened

AT_FIRST = 15
_TITLE = 80  # characters of a title


class Piece(NamedTuple):
    """A part of a text: which spans cover it, and whether one of the first of them begins here."""

    text: str
    covered_by: tuple[int, ...]
    begins: bool


def cut(text: str, spans: Sequence[Iterable[tuple[int, int]]]) -> list[Piece]:
    """Cut a text where marked spans begin and end; the pieces joined are the text.

    Parameters
    ----------
    text : str
        A text of the data.
    spans : sequence of (start, end) pairs
        For each thing that marks it, its ranges of characters; what lies outside the text is left out.

    Examples
    --------
    >>> [(piece.text, piece.covered_by) for piece in cut("in 1866", [[(3, 7)]])]
    [('in ', ()), ('1866', (0,))]
    """
    covering: list[tuple[int, ...]] = [()] * len(text)
    for mark, own in enumerate(spans):
        for start, end in own:
            for at in range(max(start, 0), min(end, len(text))):
                if mark not in covering[at]:
                    covering[at] += (mark,)
    begins = {(mark, start) for mark, own in enumerate(spans) for start, _ in own}
    result, at = [], 0
    for marks, run in groupby(covering):
        end = at + sum(1 for _ in run)
        result.append(Piece(text[at:end], marks, bool(marks) and (marks[0], at) in begins))
        at = end
    return result


def evidence(question: Mapping[str, Any], passages: pd.DataFrame, said: Sequence[Any]) -> dict[str, Any]:
    """Put together what is known of an answer and its passages.

    Parameters
    ----------
    question : Mapping
        The question's row of the table ``queries``.
    passages : DataFrame
        Rows of the table ``passages``, in retrieval order.
    said : sequence of ui.sections.Part
        What the diagnostics add.

    Returns
    -------
    dict
        ``answer``, with ``pieces``, ``notes``, ``legend`` and ``elsewhere`` (see
        `ui.sections.claims.pieces`) and ``absent``; ``beside``, pairs of a title and a text to be read with
        it, and ``origins``, in which passages the words of both occur; ``rows``, one per passage: ``rank,
        title, gold, flags, bar, facts, claims, change, snippet, text``, a part that is not known is None or
        empty, and so is ``text`` where the snippet is all of it; ``marked``, the kinds of words that are
        marked in them; ``at_first``, how many of them are shown before all are asked for.
    """
    text, asked = _text(question["answer"]), _text(question["question"])
    known = question["reference_answers"]
    references = [str(one) for one in known if str(one).strip()] if known is not None else []
    bare = {"pieces": [{"state": "", "claims": [], "first": False, "parts": [[visible(text), False]]}]}
    claims = next((part.claims for part in said if part.claims is not None), bare)
    added = [{str(i): row for i, row in part.rows.items()} for part in said]
    wanted = {
        "answer": telling(text, asked),
        "reference": frozenset(stem for one in references for stem in telling(one, asked)),
        "question": frozenset(content_stems(asked)),
    }
    rows = [
        _row(question, passage, [rows.get(str(passage["passage_id"]), {}) for rows in added], wanted)
        for passage in passages.to_dict("records")
    ]
    _scale([row["bar"] for row in rows if row["bar"]])
    answer = {
        "notes": [],
        "legend": [],
        "elsewhere": [],
        **claims,
        "absent": "" if text.strip() else "No answer.",
    }
    given = {row["rank"]: _text(one) for row, one in zip(rows, passages["text"], strict=True)}
    kinds = {kind for row in rows for kind, _ in (*row["snippet"], *row["text"])}
    return {
        "answer": answer,
        "beside": [[title, visible(one)] for part in said for title, one in part.beside],
        "origins": visible(origins(text, references, {k: v for k, v in given.items() if v}, asked)),
        "rows": rows,
        "marked": [kind for kind in wanted if kind in kinds],
        "at_first": AT_FIRST,
    }


def named(passage: Mapping[str, Any]) -> str:
    """Return a passage's title, or its id where it has none; raw."""
    title = passage["title"] if isinstance(passage["title"], str) else ""
    return shortened(title, _TITLE) or f"Passage {shortened(passage['passage_id'], 30)}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _row(
    question: Mapping[str, Any],
    passage: Mapping[str, Any],
    said: Iterable[Mapping[str, Any]],
    wanted: Mapping[str, frozenset[str]],
) -> Any:
    gold, text = passage["is_gold"], _text(passage["text"])
    shown, whole = snippet(text, wanted), marked(text, wanted)
    row: dict[str, Any] = {
        "rank": number(_known(passage["retrieval_rank"]), "{:g}"),
        "title": visible(named(passage)),
        "gold": gold is not pd.NA and bool(gold),
        "change": _change(question, passage),
        "snippet": _pieces(shown),
        "text": _pieces(whole) if shown != whole else [],
        "bar": None,
        "facts": [],
        "flags": [],
        "claims": [],
    }
    score = _known(passage["retrieval_score"])
    if score is not None:
        row["facts"].append(["Retrieval score", number(score)])
    for part in said:
        row["bar"] = part.get("bar") or row["bar"]
        for name in ("facts", "flags", "claims"):
            row[name] = [*row[name], *part.get(name, ())]
    row["facts"] = [[name, held(text)] for name, text in row["facts"]]
    return row


def _pieces(pieces: Iterable[tuple[str, str]]) -> list[list[str]]:
    return [[kind, visible(piece)] for kind, piece in pieces]


def _known(value: Any) -> float | None:
    return None if value is None or value is pd.NA or value != value else float(value)


def _change(question: Mapping[str, Any], passage: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return how the answer changes without a passage, None where that is not known."""
    before, after = question["answer"], passage["ablated_answer"]
    if passage["ablated_status"] is not pd.NA and passage["ablated_status"] == "error":
        return {"said": "The model call without this passage failed.", "parts": []}
    if not isinstance(after, str):
        return None
    if before == after:
        return {"said": "Without it: the same answer.", "parts": []}
    if not after.strip():
        return {"said": "Without it: an empty answer.", "parts": []}
    pieces = word_diff(before if isinstance(before, str) else "", after)
    return {
        "said": "Without it:",
        "parts": [[operation, visible(text)] for operation, text in shorten_same(pieces)],
    }


def _scale(bars: Sequence[dict[str, Any]]) -> None:
    """Add to every bar its places on one axis, in per cent: from 0 to 1, and further where a value is."""
    ends = [v for bar in bars for v in (bar["value"], bar["low"], bar["high"], bar["noise"]) if v is not None]
    low, high = min([0.0, *ends]), max([1.0, *ends])

    def at(value: float | None) -> float | None:
        return None if value is None else round(100 * (value - low) / (high - low), 2)

    for bar in bars:
        bar |= {f"{name}_at": at(bar[name]) for name in ("value", "low", "high", "noise")} | {
            "zero_at": at(0.0)
        }
