"""Exports of a run: by diagnostic, headline numbers, and formats of other tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from core.diagnosis import Diagnosis
from core.report.signals import signals_csv
from core.reviews import Review
from core.socket import Export
from core.sources.formats import FORMATS
from core.sources.formats.records import Format, Record, records_of
from core.sources.formats.writing import marked
from core.text.strict import clean, json_value
from core.verdict import verdict
from core.worklist import Filter, select, worklist, worklist_csv


def exporters(reviews: Mapping[str, Review] | None = None) -> Mapping[str, Export]:
    """Return every export by its name on the command line; ``reviews`` go with the worklist."""
    from core.diagnostics import DIAGNOSTICS

    def listed(diagnosis: Diagnosis) -> bytes:
        found, _ = select(diagnosis, worklist(diagnosis), Filter(), reviews or {})
        return worklist_csv(diagnosis, found)

    every = "One row per question, most worth reading first: findings, all columns, status and note."
    readable = "Verdict, figures, findings and the questions most worth reading, in a file for any browser."
    pairs = "One row per pair of signals: n, Spearman and Pearson with interval and adjusted p."
    facts = "The verdict, all headline numbers, and how the run was made."
    found = [
        Export("html", "Report", ".html", _report, readable),
        Export("worklist-csv", "Worklist", ".csv", listed, every),
        *(export for diagnostic in DIAGNOSTICS for export in diagnostic.exports),
        Export("signals-csv", "Signal agreement", ".csv", signals_csv, pairs),
        Export("json", "Headline numbers", ".json", summary_json, facts),
        *(_records_export(one, one.write) for one in FORMATS.values() if one.write is not None),
    ]
    return {export.name: export for export in found}


def _report(diagnosis: Diagnosis) -> bytes:
    from core.report.page import report_html  # figures take time to import

    return report_html(diagnosis)


def summary_json(diagnosis: Diagnosis) -> bytes:
    """Return ``{data_source, verdict, summary, manifest}`` as UTF-8 JSON; a number without value is null."""
    run = diagnosis.run
    content = {
        "data_source": run.data_source,
        "verdict": verdict(diagnosis).texts,
        "summary": diagnosis.summary(),
        "manifest": dict(run.manifest),
    }
    text = json.dumps(json_value(content), ensure_ascii=False, indent=2, allow_nan=False)
    return clean(text).encode()


def _records_export(file_format: Format, written: Callable[[Sequence[Record]], bytes]) -> Export:
    """Return the export of questions, passages and answers in another tool's format.

    ``file_format.losses`` names what that format cannot hold; files of a run with a mark have a field
    ``data_source``.
    """

    def write(diagnosis: Diagnosis) -> bytes:
        data, mark = written(records_of(diagnosis.run)), diagnosis.run.mark
        return marked(data, file_format.suffix, mark) if mark else data

    about = "Questions, passages and answers, as that tool reads them."
    return Export(file_format.name, file_format.title, file_format.suffix, write, about, file_format.losses)
