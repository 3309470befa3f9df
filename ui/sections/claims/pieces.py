"""The answer cut at its claims, and what each passage supports of them. Nothing is drawn here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.charts.theme import SIGNS
from core.claims.answer import AnswerClaims
from core.claims.causal import CHANGED, GONE, UNKNOWN
from core.claims.definitions import STATES
from core.text.display import count, number, visible
from core.text.occurrence import marked
from core.text.reading import stems
from ui.components.evidence.rows import cut
from ui.plain import shortened

_TITLE, _TEXT = 60, 400  # characters of a title, and of a claim or sentence, that a tooltip shows
_NAMED = 8  # passages named in one line


def pieces(answer: AnswerClaims) -> list[dict[str, Any]]:
    """Cut the text of an answer where claims begin and end.

    Parameters
    ----------
    answer : AnswerClaims
        An answer with the places of its claims.

    Returns
    -------
    list of dict
        In the order of the text. Each has ``state``, that of the first claim that covers the piece ("" where
        none does); ``claims``, all that cover it; ``first``, whether a place of the first one begins here;
        ``parts``, pairs of a text and whether its words are in none of the claims. All texts joined are the
        answer.
    """
    return [
        {
            "state": str(answer.states[claims[0]]) if claims else "",
            "claims": list(claims),
            "first": begins,
            "parts": _marked(text, [word for c in claims for word in answer.dropped[c]]),
        }
        for text, claims, begins in cut(answer.answer or "", answer.spans)
    ]


def notes(answer: AnswerClaims) -> list[dict[str, Any]]:
    """Return what there is to say of every claim: ``state, sign, title, claim, lines``.

    ``claim`` is its text in pairs of a text and whether its words are added, that is not in the answer there.
    """
    return [
        {
            "state": str(state),
            "sign": SIGNS[str(state)],
            "title": f"{str(state).capitalize()}. {STATES[str(state)].meaning}",
            "claim": _marked(shortened(answer.matrix.claims[claim], _TEXT), answer.added[claim]),
            "lines": [visible(line) for line in lines(answer, claim)],
        }
        for claim, state in enumerate(answer.states)
    ]


def legend(answer: AnswerClaims) -> list[dict[str, Any]]:
    """Return the states that occur: ``state, sign, label, n``."""
    found = [str(state) for state in answer.states]
    return [
        {"state": state, "sign": sign, "label": state.capitalize(), "n": found.count(state)}
        for state, sign in SIGNS.items()
        if state in found
    ]


def elsewhere(answer: AnswerClaims) -> list[int]:
    """Return the claims that the text cannot show."""
    return [claim for claim, spans in enumerate(answer.spans) if not spans]


def support(answer: AnswerClaims, passage: int) -> dict[str, Any]:
    """Return what a row of the workbench shows of a passage's support: ``claims`` and ``facts``.

    ``claims`` are those it supports by itself or with another passage, each with the probability as text; the
    fact says how many of how many that is, or how near it comes to supporting one.
    """
    m = answer.matrix
    of = int(m.relevant.sum())
    if not of:
        return {}
    column = np.where(m.relevant, m.probabilities[:, passage], np.nan)
    found = [[int(claim), number(column[claim])] for claim in np.flatnonzero(column >= m.threshold)]
    for claim, pair, p in answer.joint:
        if passage in pair:
            other = pair[0] if pair[1] == passage else pair[1]
            found.append([claim, f"{number(p)} with passage {other + 1}"])
    if found:
        said = f"Supports {len({claim for claim, _ in found}):,} of {count(of, 'claim')}"
    elif np.isnan(column).all():
        said = "Support not verified"
    else:
        best = int(np.nanargmax(column))
        said = f"Supports none of {count(of, 'claim')}: at most {number(column[best])}, claim {best + 1}"
    return {"claims": found, "facts": [["", said]]}


def lines(answer: AnswerClaims, claim: int) -> list[str]:
    """Return everything known of a claim, in sentences; texts from data are in them as they are."""
    m = answer.matrix
    best, u = m.support_maximum[claim], m.uncertainty[claim]
    verdict = str(answer.verdicts[claim]).replace("_", " ").lower()
    said = [f"Verdict {verdict} · U(c) {number(u)} · best support {number(best)}"]
    if best == best:
        passage = int(np.nanargmax(m.probabilities[claim]))
        sentence = str(answer.sentences[claim, passage])
        quoted = f": “{shortened(sentence, _TEXT)}”" if sentence.strip() else ""
        said.append(f"Closest passage {passage_name(answer, passage)}{quoted}")
    said += [
        f"Together: {passage_name(answer, i)} and {passage_name(answer, j)}, {number(p)}"
        for joint, (i, j), p in answer.joint
        if joint == claim
    ][:1]
    unscored = int(np.isnan(m.probabilities[claim]).sum())
    if unscored:
        said.append(f"{count(unscored, 'passage')} of {len(answer.passage_ids):,} not scored")
    said.append(_removals(answer, claim))
    for words, meaning in (
        (answer.added, "Not in that answer span"),
        (answer.dropped, "Left out of the claim"),
    ):
        if words[claim]:
            said.append(f"{meaning}: {shortened(', '.join(words[claim]), _TEXT)}")
    return said


def passage_name(answer: AnswerClaims, passage: int) -> str:
    """Return a passage's place in the retrieval order and its title, raw."""
    title = answer.titles[passage].strip() or answer.passage_ids[passage]
    return f"{passage + 1} ({shortened(title, _TITLE)})"


def _removals(answer: AnswerClaims, claim: int) -> str:
    labels = None if answer.causal is None else answer.causal[claim]
    if labels is None or (labels == UNKNOWN).all():
        return "Leave-one-out effect: unknown, no passage was left out"
    found = [f"{place + 1} ({label})" for place, label in enumerate(labels) if label in (CHANGED, GONE)]
    if not found:
        return "Leave-one-out effect: leaving out any single passage changes nothing"
    rest = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    return f"Leave-one-out effect: changes or disappears without passage {', '.join(found[:_NAMED])}{rest}"


def _marked(text: str, words: Sequence[str]) -> list[list[Any]]:
    return [[visible(part), bool(kind)] for kind, part in marked(text, {"word": stems(" ".join(words))})]
