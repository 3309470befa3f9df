"""A data set as a file, so that what was downloaded or typed can be kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from core.errors import InputError
from core.sources.encoding import MAX_BYTES
from core.sources.question import MAX_DOCUMENTS_INLINE, PassageIn, Question

if TYPE_CHECKING:  # the module of Dataset gives this one's function to its users
    from core.sources.dataset import Dataset


def dataset_jsonl(dataset: Dataset) -> bytes:
    """Write a data set as JSON Lines in UTF-8, as `load_dataset` and `read_dataset` read them.

    Parameters
    ----------
    dataset : Dataset
        Any; a question's documents are written into its own line.

    Returns
    -------
    bytes
        One line a question. Reading it gives equal questions, and so the same digest.

    Raises
    ------
    InputError
        The file would be too large to be read again: questions that share a large corpus are better kept
        beside it.
    """
    lines: list[bytes] = []
    size = 0
    for question in dataset.questions:
        if len(question.documents) > MAX_DOCUMENTS_INLINE:
            raise _too_large(dataset)
        line = json.dumps(_record(question), ensure_ascii=False).encode()
        size += len(line) + 1
        if size > MAX_BYTES:
            raise _too_large(dataset)
        lines.append(line)
    return b"\n".join([*lines, b""])


def _record(question: Question) -> dict[str, Any]:
    record: dict[str, Any] = {"id": question.query_id, "question": question.question}
    if question.passages is not None:
        record["passages"] = [_passage(passage) for passage in question.passages]
    elif question.documents:
        record["documents"] = [{"title": d.title, "text": d.text} for d in question.documents]
    record |= {"answers": list(question.reference_answers), "gold": list(question.gold)}
    record |= {"kind": question.kind, "language": question.language}
    return {name: value for name, value in record.items() if value not in (None, [])}


def _passage(passage: PassageIn) -> dict[str, Any]:
    record = {"id": passage.passage_id, "title": passage.title, "text": passage.text}
    known = {"score": passage.score, "is_gold": passage.is_gold}
    return record | {name: value for name, value in known.items() if value is not None}


def _too_large(dataset: Dataset) -> InputError:
    return InputError(
        f"The data set {dataset.name} is too large for one file with all documents in every line; keep its "
        "questions as a list of prompts, and the documents as a corpus beside it."
    )
