"""A run of any size: the recorded one again and again, with ids, words and numbers of each copy's own.

Every diagnostic has data, as in the recorded run. Rare words have another ending in every copy, in all texts
of a question alike, so that a wrong answer stays wrong, and copies share no text of two such words; each word
has 200 endings, so that the number of different words is that of real answers. Length and place of every word
stay. Signals and log-probabilities differ by up to 1 %.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from core.manifest import MANIFEST_FILE
from core.run import Run

RECORDED = Path("sample_data/recorded_run")
_TEXTS = ("question", "answer", "closed_book_answer", "reference_answers", "title", "text", "ablated_answer")
_NUMBERS = ("logprob_sum", "similarity", "lexical", "llm_score", "probability", "value")
_IDS = ("query_id", "passage_id", "second_passage_id")
_LONG_WORD = re.compile(r"\b[A-Za-z]{6,}\b")
_RARE = 0.02  # of the texts
_ENDINGS = 200  # of a word
_BLOCK = 10_000  # questions with texts of their own in a run that is written in blocks


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


def save_tiled(n_questions: int, folder: Path) -> str:
    """Save a run of so many questions, and return its id; a large one is written in blocks, as it comes.

    Blocks have the same texts and ids of their own, so ``n_questions`` is a multiple of `_BLOCK` then.
    """
    run = tiled(min(n_questions, _BLOCK))
    if n_questions <= _BLOCK:
        run.save(folder)
        return run.run_id
    folder.mkdir(parents=True)
    tables = {}
    for name, frame in run.tables.items():
        path, schema = folder / name, pa.Schema.from_pandas(frame, preserve_index=False)
        with pq.ParquetWriter(path, schema, compression="zstd") as file:
            for block in range(n_questions // _BLOCK):
                own = {one: frame[one] + f"-b{block}" for one in _IDS if one in frame}
                file.write_table(pa.Table.from_pandas(frame.assign(**own), schema, preserve_index=False))
        with path.open("rb") as written:
            digest = hashlib.file_digest(written, "sha256").hexdigest()
        file_name = path.rename(folder / f"{name}-{digest[:12]}.parquet").name
        tables[name] = {"file": file_name, "sha256": digest, "rows": len(frame) * n_questions // _BLOCK}
    run_id = f"tiled-{n_questions}"
    facts = {**run.manifest, "run_id": run_id, "name": f"{n_questions:,} questions", "tables": tables}
    (folder / MANIFEST_FILE).write_text(json.dumps(facts), encoding="utf-8")
    return run_id


def _tiled(frame: pd.DataFrame, copies: int, rare: frozenset[str], rng: np.random.Generator) -> pd.DataFrame:
    n = len(frame)
    found = pd.DataFrame({name: frame[name].take(np.tile(np.arange(n), copies)) for name in frame})
    found = found.reset_index(drop=True)
    number = np.repeat(np.arange(copies), n)
    for name in frame:
        if name in _IDS:
            suffix = [f"-{copy}" if copy else "" for copy in number]
            found[name] = found[name] + pd.Series(suffix, dtype="str")
        elif name in _TEXTS:
            cut = [_each(value, lambda text: _cut(text, rare)) for value in frame[name]]
            new = [
                _each(one, lambda parts, copy=copy: _said(parts, copy))
                for copy in range(1, copies)
                for one in cut
            ]
            found[name] = pd.Series([*frame[name], *new], dtype=frame[name].dtype)
        elif name in _NUMBERS:
            factor = np.where(number, 1 - 0.01 * rng.random(len(found)), 1.0)
            found[name] = found[name] * factor
    return found


def _each(value: Any, change: Any) -> Any:
    """Change a text, or each text of a list; what is missing stays so."""
    if isinstance(value, list):
        return [change(one) for one in value]
    return change(value) if isinstance(value, (str, tuple)) else value


def _cut(text: str, rare: frozenset[str]) -> tuple[str, ...]:
    """Cut a text into what stays and, at every second place, the ends of its rare words."""
    parts, last = [], 0
    for word in _LONG_WORD.finditer(text):
        if word[0].casefold() in rare:
            parts += [text[last : word.end() - 3], word[0].casefold()]
            last = word.end()
    return (*parts, text[last:])


def _said(parts: tuple[str, ...], copy: int) -> str:
    found = list(parts)
    found[1::2] = [_ending(word, copy) for word in parts[1::2]]
    return "".join(found)


@cache
def _ending(word: str, copy: int) -> str:
    """Return a word's last letters in a copy: one of so many, which differ from word to word."""
    number = zlib.crc32(f"{word} {copy}".encode()) % _ENDINGS
    return "".join(chr(ord("a") + number // 26**place % 26) for place in range(3))


def _rare_words(run: Run) -> frozenset[str]:
    """Return the long words of few texts: names and things, not the words of a refusal."""
    found: Counter[str] = Counter()
    texts = [text for frame in run.tables.values() for name in _TEXTS if name in frame
             for text in frame[name] if isinstance(text, str)]  # fmt: skip
    for text in texts:
        found.update({word.casefold() for word in _LONG_WORD.findall(text)})
    return frozenset(word for word, n in found.items() if n <= _RARE * len(texts))
