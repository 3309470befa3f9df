"""Answers composed by hand over articles, with planted errors: a run that no model answered."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from core.errors import InputError
from core.run import Run
from core.text.reading import content_stems
from core.text.sentences import sentence_spans
from core.text.words import words

NAME = "Worked answers with planted errors"
NOTE = (
    "Composed for demonstration, no model run: the answers, their errors, the alternative answers and "
    "llm_score were written; similarity and lexical are computed from the texts."
)
MOST_WORDS: Mapping[str, int] = {"zh": 160}  # of a passage, ideographs in Chinese
_MOST_WORDS = 100


def composed_run(lines: Sequence[Mapping[str, Any]], articles: Mapping[str, str]) -> Run:
    """Compose a run, marked as such, of answers whose claims, errors and alternatives are known.

    Each line is a question: ``id, question, language, references, correct, passages, gold, claims,
    alternatives, llm_score``. A passage names its article, by file name in ``articles``, and the words it
    begins with; ``gold`` and the passages of a claim are places in that list, from 1. The answer is the texts
    of its claims, one after the other; they are in the table ``planted_claims``, and nothing is verified yet.

    ``similarity`` is the cosine of the answer's and the passages' counts of content words; ``lexical`` is the
    percentage of the question's content words that a passage has. `InputError` for a passage whose first
    words are not in its article, or there more than once.
    """
    tables: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("queries", "passages", "samples", "planted_claims", "signals")
    }
    for line in lines:
        key = {"query_id": line["id"]}
        texts = [passage_text(articles, one, line["language"]) for one in line["passages"]]
        claims = list(_claims(line))
        answer = answer_of(line)
        tables["queries"].append(
            key
            | {
                "question": line["question"],
                "answer": answer,
                "answer_status": "answered",
                "reference_answers": line["references"],
                "language": line["language"],
                "n_gold": len(line["gold"]),
                "planted_correct": line["correct"],
            }
        )
        tables["passages"] += [
            key
            | {
                "passage_id": f"p{place}",
                "title": articles[one["article"]].splitlines()[0].removeprefix("# "),
                "text": text,
                "retrieval_rank": float(place),
                "slot": place,
                "is_gold": place in line["gold"],
            }
            for place, (one, text) in enumerate(zip(line["passages"], texts, strict=True), start=1)
        ]
        tables["planted_claims"] += [key | claim for claim in claims]
        tables["samples"] += [
            key | {"sample_id": f"s{place}", "answer": one["text"], "planted_meaning": one["meaning"]}
            for place, one in enumerate(line["alternatives"], start=1)
        ]
        tables["signals"].append(
            key | _signals(line["question"], answer, texts) | {"llm_score": line["llm_score"]}
        )
    frames = {name: pd.DataFrame(rows) for name, rows in tables.items()}
    return Run.create({"source": "composed", "name": NAME, "notes": [NOTE]}, **frames)


def answer_of(line: Mapping[str, Any]) -> str:
    """Return the answer: the texts of its claims, one after the other."""
    return ("" if line["language"] == "zh" else " ").join(claim["text"] for claim in line["claims"])


def passage_text(articles: Mapping[str, str], place: Mapping[str, str], language: str) -> str:
    """Return the passage of an article that begins with given words: whole sentences of one paragraph."""
    article, begins = articles[place["article"]], place["begins"]
    if (n := article.count(begins)) != 1:
        raise InputError(f"{place['article']} must hold {begins!r} once, and holds it {n} times.")
    text = article[article.index(begins) :].partition("\n")[0]
    most, end = MOST_WORDS.get(language, _MOST_WORDS), 0
    for _, stop in sentence_spans(text):
        if end and len(words(text[:stop])) > most:
            break
        end = stop
    return text[:end]


def _claims(line: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of ``planted_claims``: where each claim is in the answer, and what is planted in it."""
    start = 0
    for number, claim in enumerate(line["claims"], start=1):
        end = start + len(claim["text"])
        yield {
            "claim_id": f"a{number}",
            "text": claim["text"],
            "start": start,
            "end": end,
            "planted": claim["planted"],
            "passages": [f"p{place}" for place in claim["passages"]],
        }
        start = end + (line["language"] != "zh")


def _signals(question: str, answer: str, passages: Sequence[str]) -> dict[str, float]:
    said, asked = Counter(content_stems(answer)), set(content_stems(question))
    given = Counter(stem for text in passages for stem in content_stems(text))
    product = sum(n * given[stem] for stem, n in said.items())
    lengths = math.sqrt(sum(n * n for n in said.values()) * sum(n * n for n in given.values()))
    return {
        "similarity": round(product / lengths, 4),
        "lexical": round(100 * len(asked & set(given)) / len(asked), 1),
    }


def main(source: str, articles: str, out: str) -> None:
    """Read the composed answers and the articles, and save the run."""
    lines = [json.loads(line) for line in Path(source).read_text("utf-8").splitlines()]
    texts = {path.name: path.read_text("utf-8") for path in Path(articles).glob("*.md")}
    composed_run(lines, texts).save(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
