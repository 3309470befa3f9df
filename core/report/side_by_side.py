"""Two to four runs beside each other: headline numbers, set-ups, and the questions they share.

Nothing here knows one back end from another: a run is its manifest and its tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from core.charts.theme import number
from core.errors import InputError
from core.influence.analysis import InfluenceAnalysis
from core.report.summary import run_summary
from core.run import Run

LETTERS = "ABCD"
_NAME = 40
_VALUE = 200
_DASH = "—"


@dataclass(frozen=True, slots=True)
class Side:
    """One run of a comparison.

    Attributes
    ----------
    letter : str
        ``A`` to ``D``, in the order in which the runs were chosen.
    run, analysis : Run, InfluenceAnalysis
        The run, and what `analyse` made of it.
    numbers : Mapping
        Its headline numbers, as `run_summary` returns them.
    """

    letter: str
    run: Run
    analysis: InfluenceAnalysis
    numbers: Mapping[str, Any]

    @property
    def title(self) -> str:
        """Letter and name, short enough for the head of a column; still raw text."""
        name = " ".join(self.run.name.split())
        return f"{self.letter} · {name if len(name) <= _NAME else name[: _NAME - 1].rstrip() + '…'}"


def sides_of(runs: Sequence[tuple[Run, InfluenceAnalysis]]) -> tuple[Side, ...]:
    """Return the runs with a letter each, in this order; at most four."""
    if len(runs) > len(LETTERS):
        raise InputError(f"At most {len(LETTERS)} runs fit side by side, got {len(runs)}.")
    return tuple(
        Side(letter, run, analysis, run_summary(run, analysis))
        for letter, (run, analysis) in zip(LETTERS, runs, strict=False)
    )


def headline_table(sides: Sequence[Side]) -> pd.DataFrame:
    """Return one row per headline number: ``Number``, then one column of text per run.

    Numbers without a value are "—". Every share says of how many. Grounding and claim uncertainty have rows
    where claims were looked for in every run.
    """
    claims = _CLAIMS if sides and all(side.numbers["n_claims"] is not None for side in sides) else ()
    rows = (*_HEADLINES[:_BEFORE_CLAIMS], *claims, *_HEADLINES[_BEFORE_CLAIMS:])
    return _table("Number", {title: [write(side) for side in sides] for title, write in rows}, sides)


def setup_differences(sides: Sequence[Side]) -> pd.DataFrame:
    """Return what the manifests say differently: ``Setting``, then one column of text per run.

    Only rows in which at least two runs differ; "—" where a run does not say. Data set, model with all its
    options, prompt, retriever, settings and who found and judged the claims are compared, names, times and
    versions are not.
    """
    settings = [_settings(side) for side in sides]
    titles = dict.fromkeys(title for found in settings for title in found)
    rows = {title: [found.get(title, _DASH) for found in settings] for title in titles}
    return _table("Setting", {title: row for title, row in rows.items() if len(set(row)) > 1}, sides)


def shared_questions(sides: Sequence[Side]) -> pd.DataFrame:
    """Return the questions that all runs hold under the same id and with the same text.

    Returns
    -------
    DataFrame
        In the order of the first run: ``query_id, question``; for each run and its letter X ``answer_X,
        status_X, label_X, rho_X, correct_X``; ``labels_differ``, ``answers_differ``. White space does not
        make texts differ, and two answers that are both missing are the same.
    """
    if not sides:
        return pd.DataFrame(columns=["query_id", "question", "labels_differ", "answers_differ"])
    merged = _answers(sides[0])
    for side in sides[1:]:
        merged = merged.merge(_answers(side).drop(columns="question"), on=["query_id", "_text"])
    for what, column in (("labels", "label"), ("answers", "_said")):
        columns = merged[[f"{column}_{side.letter}" for side in sides]].fillna("")
        merged[f"{what}_differ"] = columns.nunique(axis=1) > 1
    return merged.drop(columns=[name for name in merged.columns if name.startswith("_")])


def _answers(side: Side) -> pd.DataFrame:
    """One row per question: what the comparison needs of one run, and texts without their white space."""
    raw, q = side.run.queries, side.analysis.queries
    own = {
        "answer": raw["answer"],
        "status": raw["answer_status"],
        "label": q["label"],
        "rho": q["rho"],
        "correct": q["correct"],
        "_said": _normal(raw["answer"]),
    }
    return pd.DataFrame(
        {
            "query_id": raw["query_id"],
            "question": raw["question"],
            "_text": _normal(raw["question"]),
            **{f"{name}_{side.letter}": values for name, values in own.items()},
        }
    )


def _normal(texts: pd.Series) -> pd.Series:
    known = [" ".join(text.split()) if isinstance(text, str) else None for text in texts]
    return pd.Series(known, index=texts.index, dtype="object")


def _table(first: str, rows: Mapping[str, Sequence[str]], sides: Sequence[Side]) -> pd.DataFrame:
    columns = [first, *(side.title for side in sides)]
    return pd.DataFrame([(title, *row) for title, row in rows.items()], columns=columns, dtype="str")


def _mean_rho(side: Side) -> str:
    interval = side.numbers["rho_ci"]
    band = f" ({number(interval[0])} to {number(interval[1])})" if interval else ""
    return _number("mean_rho")(side) + band


def _number(key: str) -> Callable[[Side], str]:
    return lambda side: _DASH if side.numbers[key] is None else number(side.numbers[key])


def _mean(key: str, n_key: str) -> Callable[[Side], str]:
    def write(side: Side) -> str:
        n = side.numbers[n_key]
        return f"{_number(key)(side)} ({n:,} question{'s' * (n != 1)})" if n else _DASH

    return write


def _count(key: str, of: str) -> Callable[[Side], str]:
    def write(side: Side) -> str:
        whole = side.numbers[of]
        return f"{side.numbers[key]:,} of {whole:,}" if whole else _DASH

    return write


def _supported(side: Side) -> str:
    supported, not_supported = (
        side.numbers[f"n_claims_{verdict}"] for verdict in ("supported", "not_supported")
    )
    judged = supported + not_supported
    return f"{supported:,} of {judged:,}" if judged else _DASH


def _cost(key: str, unit: str = "") -> Callable[[Side], str]:
    """Read a number of the manifest, which is a file and may hold anything."""

    def write(side: Side) -> str:
        costs = side.run.manifest.get("cost")
        value = costs.get(key) if isinstance(costs, Mapping) else None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return _DASH
        return f"{value:,}{unit}"

    return write


_HEADLINES: tuple[tuple[str, Callable[[Side], str]], ...] = (
    ("Questions", lambda side: f"{side.numbers['n_queries']:,}"),
    ("With a ρ", _count("n_defined", "n_queries")),
    ("Mean ρ (95 % interval)", _mean_rho),
    ("Divergent", _count("n_divergent", "n_defined")),
    ("Mean dominance", _mean("mean_dominance", "n_dominance")),
    ("Mean entropy (nats)", _mean("mean_entropy", "n_dominance")),
    ("Right answers", _count("n_correct", "n_judged")),
    ("Abstained", _count("n_abstained", "n_queries")),
    ("Empty answers", _count("n_empty_answers", "n_queries")),
    ("Failed", _count("n_errors", "n_queries")),
    ("Calls made", _cost("calls")),
    ("Calls answered from the cache", _cost("cached")),
    ("Time for the calls made", _cost("seconds", " s")),
    ("Prompt tokens", _cost("prompt_tokens")),
)
_BEFORE_CLAIMS = [title for title, _ in _HEADLINES].index("Right answers")
_CLAIMS: tuple[tuple[str, Callable[[Side], str]], ...] = (
    ("Mean grounding", _mean("mean_grounding", "n_grounding")),
    ("Mean claim uncertainty", _mean("mean_claim_uncertainty", "n_claim_uncertainty")),
    ("Claims supported, of those judged", _supported),
)


_TITLES: Mapping[str, str] = {
    "source": "Source",
    "dataset.name": "Data set",
    "dataset.digest": "Content of the data set",
    "dataset.n_questions": "Questions in the data set",
    "dataset.format": "File format",
    "model.name": "Model",
    "model.backend": "Back end",
    "prompt.style": "Prompt style",
    "prompt.instruction": "Instruction of the prompt",
    "prompt.max_tokens": "Answer tokens at most",
    "retriever.name": "Retriever",
    "retriever.k": "Passages k",
    "claims.decomposition": "Claims found by",
    "claims.judge": "Claims judged by",
}
_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "dataset": ("name", "digest", "n_questions", "format"),
    "model": (),
    "prompt": ("style", "instruction", "max_tokens"),
    "retriever": (),
    "options": (),
    "claims": ("decomposition",),
}
# What `options` repeats of other sections, under their names there.
_REPEATED: Mapping[str, str] = {
    "retriever": "retriever.name",
    "style": "prompt.style",
    "max_tokens": "prompt.max_tokens",
}


def _settings(side: Side) -> dict[str, str]:
    manifest = side.run.manifest
    # Of the claims of an imported file the manifest says nothing, but each judgement names its judge.
    found = {"source": manifest.get("source"), "claims.judge": side.numbers["claims_judge"]}
    for section, keys in _SECTIONS.items():
        values = manifest.get(section)
        if isinstance(values, Mapping):
            chosen = {key: values[key] for key in keys or values if key in values}
            found |= {f"{section}.{key}": value for key, value in chosen.items()}
    found = {path: value for path, value in found.items() if not _is_repeated(path, found)}
    options = found.pop("model.options", None)
    if isinstance(options, Mapping):
        found |= {f"model.{key}": value for key, value in options.items()}
    return {_setting_title(path): _said(value) for path, value in found.items() if value is not None}


def _is_repeated(path: str, found: Mapping[str, Any]) -> bool:
    section, _, key = path.partition(".")
    return section == "options" and _REPEATED.get(key, f"retriever.{key}") in found


def _setting_title(path: str) -> str:
    section, _, key = path.partition(".")
    own = key if section == "options" else f"{section} {key}"
    return _TITLES.get(path) or own.replace("_", " ").capitalize()


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    line = " ".join(text.split()) or _DASH
    return line if len(line) <= _VALUE else line[: _VALUE - 1] + "…"
