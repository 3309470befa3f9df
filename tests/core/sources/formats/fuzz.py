"""Good files of every format that can be imported; `tests.mutated_files` damages them.

`EXAMPLES` has every file in tests/data/files, and a line here for each further one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from core.sources.templates import TEMPLATES, template_csv
from tests.core.sources.formats import (
    test_format_deepeval,
    test_format_inspectorraget,
    test_format_jsonl,
    test_format_openinference,
    test_format_rag_uncertainty,
    test_format_ragas,
    test_format_ragchecker,
)

FILES = Path(__file__).parents[3] / "data/files"


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _lines(values: list[Any]) -> bytes:
    return b"\n".join(map(_json, values))


EXAMPLES: dict[str, bytes] = {
    **{path.name: path.read_bytes() for path in sorted(FILES.iterdir()) if path.is_file()},
    **{f"{kind}.csv": template_csv(kind).encode() for kind in TEMPLATES},
    "deepeval.json": _json(test_format_deepeval.CASES),
    "inspectorraget.json": _json(test_format_inspectorraget.FILE),
    "inspectorraget-1.json": _json(test_format_inspectorraget.V1),
    "jsonl.jsonl": _lines(test_format_jsonl.RECORDS),
    "openinference.jsonl": _lines(test_format_openinference.FILE),
    "rag-uncertainty.json": _json(test_format_rag_uncertainty.FILE),
    "ragas.jsonl": _lines(test_format_ragas.SAMPLES),
    "ragchecker.json": _json(test_format_ragchecker.FILE),
}
