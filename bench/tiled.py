"""A run of any size: the recorded one again and again, with ids, words and numbers of each copy's own.

Every diagnostic has data, as in the recorded run. Rare words end on letters of the copy, in all texts of a
question alike, so that a wrong answer stays wrong and no two copies share a text that has such a word; their
length stays, and with it every place in a text. Signals and log-probabilities differ by up to 1 %.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from core.run import Run

RECORDED = Path("sample_data/recorded_run")
_TEXTS = ("question", "answer", "closed_book_answer", "reference_answers", "title", "text", "ablated_answer")
_NUMBERS = ("logprob_sum", "similarity", "lexical", "llm_score", "probability", "value")
_IDS = ("query_id", "passage_id", "second_passage_id")
_LONG_WORD = re.compile(r"\b[A-Za-z]{6,}\b")
_RARE = 0.02  # of the texts
_MARK = "\0\0\0"


def tiled(n_questions: int, seed: int = 0) -> Run:
    """Return a run with so many questions; its first copy is the recorded run itself."""
    run, rng = Run.load(RECORDED), np.random.default_rng(seed)
    rare = _rare_words(run)
    copies = -(-n_questions // len(run.queries))
    tables = {}
    for name in run:
        frame = run[name]
        if len(frame):
            tables[name] = _tiled(frame, copies, rare, rng)
    kept = set(tables["queries"]["query_id"].head(n_questions))
    tables = {name: frame[frame["query_id"].isin(kept)] for name, frame in tables.items()}
    facts = {key: value for key, value in run.manifest.items() if key not in ("run_id", "created")}
    return Run.create({**facts, "name": f"{n_questions:,} questions"}, **tables)


def _tiled(frame: pd.DataFrame, copies: int, rare: frozenset[str], rng: np.random.Generator) -> pd.DataFrame:
    n = len(frame)
    found = pd.DataFrame({name: frame[name].take(np.tile(np.arange(n), copies)) for name in frame})
    found = found.reset_index(drop=True)
    number = np.repeat(np.arange(copies), n)
    for name in frame:
        if name in _IDS:
            found[name] = found[name] + pd.Series(np.where(number, [f"-{i}" for i in number], "")).astype(
                "str"
            )
        elif name in _TEXTS:
            marked = [_each(value, lambda text: _marked(text, rare)) for value in frame[name]]
            originals = list(frame[name])
            found[name] = pd.Series(
                originals + [_each(one, _said(copy)) for copy in range(1, copies) for one in marked],
                dtype=frame[name].dtype,
            )
        elif name in _NUMBERS:
            factor = np.where(number, 1 - 0.01 * rng.random(len(found)), 1.0)
            found[name] = found[name] * factor
    return found


def _each(value: Any, change: Any) -> Any:
    """Change a text, or each text of a list; what is missing stays so."""
    if isinstance(value, str):
        return change(value)
    return [change(one) for one in value] if isinstance(value, (list, np.ndarray)) else value


def _said(copy: int) -> Any:
    letters = "".join(chr(ord("a") + copy // 26**place % 26) for place in range(3))
    return lambda text: text.replace(_MARK, letters)


def _marked(text: str, rare: frozenset[str]) -> str:
    return _LONG_WORD.sub(lambda word: word[0][:-3] + _MARK if word[0].casefold() in rare else word[0], text)


def _rare_words(run: Run) -> frozenset[str]:
    """Return the long words of few texts: names and things, not the words of a refusal."""
    found: Counter[str] = Counter()
    texts = [text for frame in run.tables.values() for name in _TEXTS if name in frame
             for text in frame[name] if isinstance(text, str)]  # fmt: skip
    for text in texts:
        found.update({word.casefold() for word in _LONG_WORD.findall(text)})
    return frozenset(word for word, n in found.items() if n <= _RARE * len(texts))
