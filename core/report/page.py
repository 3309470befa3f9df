"""The report: one HTML file that asks for nothing, runs no script, and reads on a phone and on paper."""

from __future__ import annotations

import base64
import hashlib
import importlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from core.diagnosis import Diagnosis
from core.report.compare import setup_differences, setup_of, sides_of
from core.report.paired import METHOD, RunPair, answer, pairs_of, regressions
from core.report.svg import figure_html
from core.socket import BAD, UNTRIED, Diagnostic, Number
from core.text.display import DASH, count, visible
from core.text.strict import clean
from core.verdict import verdict
from core.worklist import columns_of, worklist

WORST = 20  # questions with their passages
_LONGEST = 3_000  # characters of a text that are printed
_HERE = Path(__file__).parent


def report_html(diagnosis: Diagnosis, other: Diagnosis | None = None) -> bytes:
    """Return a run as one HTML file; with ``other``, an earlier one, first what changed since then.

    Every text is escaped where it is put in; a strict policy in the file forbids scripts and requests.
    """
    run = diagnosis.run
    shown = [one for one in diagnosis.diagnostics if one.lacks(run) is None]
    sections = [_section(diagnosis, one) for one in shown]
    return _written(
        run=run,
        verdict=verdict(diagnosis),
        comparison=None if other is None else _comparison(diagnosis, other),
        first=[figure for one in sections for figure in one["first"]],
        sections=sections,
        lacking=[(one.title, one.lacks(run)) for one in diagnosis.diagnostics if one not in shown],
        questions=_worst(diagnosis),
        settings=[
            (one.title, _said(diagnosis.settings[one.name]), _said(one.default))
            for diagnostic in shown
            for one in diagnostic.settings
        ],
        setup=setup_of(diagnosis),
        facts=_facts(diagnosis),
    )


def _written(**parts: Any) -> bytes:
    from markupsafe import Markup

    css = (_HERE / "report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    page: str = _template().render(css=Markup(css), css_digest=digest, bad=BAD, **parts)
    return page.encode()


@cache
def _template() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def safe(value: Any) -> Any:
        """Return what is put in without characters that act or that no file can hold; Jinja escapes it."""
        return value if isinstance(value, (Markup, int)) else visible(clean(str(value)))

    found = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, finalize=safe,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return found.get_template("report.html")


def _figures(diagnosis: Diagnosis, diagnostic: Diagnostic) -> list[Any]:
    """Return the figures that a diagnostic names, without those that have nothing to show."""
    from markupsafe import Markup

    found = []
    for name in diagnostic.figures:
        draw = getattr(importlib.import_module(f"core.charts.{diagnostic.name}"), name)
        figure = draw(diagnosis[diagnostic.name])
        if figure.data:
            alt = figure.layout.meta["alt"]
            found.append({"drawn": Markup(figure_html(figure, f"{diagnostic.name}-{name}")), "alt": alt})
    return found


def _was_tried(diagnosis: Diagnosis, diagnostic: Diagnostic) -> bool:
    """Tell whether a diagnostic has tried fixes: its first figure then says where answers are lost."""
    outcomes = {one.outcome for one in diagnostic.tried(diagnosis[diagnostic.name]).values()}
    return bool(outcomes - {UNTRIED})


def _section(diagnosis: Diagnosis, diagnostic: Diagnostic) -> dict[str, Any]:
    figures, first = _figures(diagnosis, diagnostic), int(_was_tried(diagnosis, diagnostic))
    return {
        "first": figures[:first],  # drawn below the verdict
        "title": diagnostic.title,
        "question": diagnostic.question,
        "findings": diagnosis.findings_of(diagnostic.name),
        "figures": figures[first:],
        "numbers": [one for one in diagnosis.numbers(diagnostic.name) if _is_listed(one)],
    }


def _is_listed(one: Number) -> bool:
    return one.place in ("card", "row") and not isinstance(one.value, Mapping) and one.text != DASH


def _comparison(diagnosis: Diagnosis, other: Diagnosis) -> dict[str, Any]:
    sides = sides_of([other, diagnosis])  # so that what is said is what changed since the other
    (pair,) = pairs_of(sides)
    return {
        "sides": sides,
        "answer": answer(pair) or ("The runs have no number in common to compare.",),
        "pair": pair,
        "setups": setup_differences(sides),
        "worse": _worse(pair),
        "method": METHOD,
    }


def _worse(pair: RunPair) -> dict[str, Any]:
    one = pair.outcome
    if one is None:
        return {"said": "", "n": 0, "rows": []}
    rows = regressions(pair, one)
    return {"said": one.fixes_and_harms, "n": len(rows), "rows": rows.head(WORST).to_dict("records")}


def _worst(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """Return the questions most worth reading, each with what is known of it and its passages."""
    run, columns = diagnosis.run, columns_of(diagnosis)
    frame = worklist(diagnosis).sort_values("reading").head(WORST)
    queries = run.queries.set_index("query_id")
    passages = run.passages[run.passages["query_id"].isin(frame["query_id"])]
    by_question = dict(list(passages.sort_values("retrieval_rank", kind="stable").groupby("query_id")))
    found = []
    for row in frame.to_dict("records"):
        query, own = queries.loc[row["query_id"]], by_question.get(row["query_id"], passages.head(0))
        numbers = {columns[name].title: columns[name].text(row[name]) for name in columns}
        references = query["reference_answers"]
        found.append(
            {
                "id": row["query_id"],
                "question": _cut(row["question"]),
                "findings": row["findings"],
                "answer": _cut(query["answer"]),
                "references": [_cut(one) for one in references] if isinstance(references, list) else [],
                "numbers": {title: text for title, text in numbers.items() if text != DASH},
                "passages": [_passage(one) for one in own.to_dict("records")],
            }
        )
    return found


def _passage(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "title": _cut(row["title"]) if isinstance(row["title"], str) else _cut(row["passage_id"]),
        "rank": f"{row['retrieval_rank']:g}",
        "gold": row["is_gold"] is True,
        "text": _cut(row["text"]),
    }


def _cut(text: Any) -> str:
    if not isinstance(text, str):
        return DASH
    more = len(text) - _LONGEST
    return text if more <= 0 else f"{text[:_LONGEST]} … ({count(more, 'more character')})"


def _said(value: Any) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value) or DASH


def _facts(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    """Return how the run was made: when, on what, with which versions."""
    manifest = diagnosis.run.manifest
    environment = dict(manifest.get("environment") or {})
    packages = environment.pop("packages", None) or {}
    facts = {
        "Run": manifest["run_id"], "Parent run": manifest.get("parent"), "Created": manifest["created"],
        "Source": manifest["source"],
        **{name.capitalize(): value for name, value in environment.items()},
        **packages,
        **{f"Cost: {name.replace('_', ' ')}": value for name, value in (manifest.get("cost") or {}).items()},
    }  # fmt: skip
    return [
        (name, f"{value:,}" if isinstance(value, (int, float)) else str(value))
        for name, value in facts.items()
        if value is not None
    ]
