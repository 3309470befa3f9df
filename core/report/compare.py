"""Two to four runs side by side: headline numbers, set-ups, and shared questions.

Nothing here depends on a back end: a run is its manifest and its tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import pandas as pd

from core.diagnosis import Diagnosis
from core.errors import InputError
from core.run import MARKS, Run
from core.socket import Number, QuestionColumn
from core.text.display import DASH, count, number

LETTERS = "ABCD"
_NAME = 80
_VALUE = 200
_LOOKED_AT = 8  # saved runs that are opened to count the questions in common

Questions = AbstractSet[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Side:
    """One run of a comparison: its letter, ``A`` to ``D`` in the order chosen, and its diagnosis."""

    letter: str
    diagnosis: Diagnosis

    @property
    def run(self) -> Run:
        """The run."""
        return self.diagnosis.run

    @property
    def title(self) -> str:
        """Letter and name as raw text, short enough for a column header."""
        return f"{self.letter} · {_name(self.run)}"


def sides_of(diagnoses: Sequence[Diagnosis]) -> tuple[Side, ...]:
    """Return the runs with a letter each, in this order; at most four."""
    if len(diagnoses) > len(LETTERS):
        raise InputError(f"At most {len(LETTERS)} runs fit side by side, got {len(diagnoses)}.")
    return tuple(Side(*pair) for pair in zip(LETTERS, diagnoses, strict=False))


def headline_table(sides: Sequence[Side]) -> pd.DataFrame:
    """Return one row per headline number: ``Number``, then one column of text per run.

    Numbers without a value are "—"; every other one says its n or of how many it is. A diagnostic has rows
    where every run has the data it needs.
    """
    rows: dict[str, list[str]] = {}
    for diagnostic in sides[0].diagnosis.diagnostics if sides else ():
        if any(diagnostic.lacks(side.run) is not None for side in sides):
            continue
        for numbers in zip(*(side.diagnosis.numbers(diagnostic.name) for side in sides), strict=True):
            by_name = any(isinstance(one.value, Mapping) for one in numbers)  # counts of several things
            if numbers[0].place in ("card", "row") and not by_name:
                rows[numbers[0].title] = [_shown(one) for one in numbers]
    rows |= {title: [_cost(side, *entry) for side in sides] for title, entry in _COSTS.items()}
    return _table("Number", rows, sides)


def _shown(one: Number) -> str:
    """Return a value with its interval, its n and what else belongs to it, for one cell of the table."""
    if one.text == DASH:
        return DASH
    interval = ""
    if one.interval is not None:
        low, high = (number(end, one.pattern) for end in one.interval)
        interval = f" ({low} to {high})"
    n = "" if one.n is None else f", n = {one.n:,}"
    return "; ".join(filter(None, [f"{one.text}{interval}{n}", one.context]))


def setup_differences(sides: Sequence[Side]) -> pd.DataFrame:
    """Return the settings in which runs differ: ``Setting``, then one column of text per run.

    "—" where a run has no such setting. Data set, model with its options, prompt, retriever and the options
    of every step are compared; names, times and versions are not.
    """
    settings = [setup_of(side.diagnosis) for side in sides]
    titles = dict.fromkeys(title for found in settings for title in found)
    rows = {title: [found.get(title, DASH) for found in settings] for title in titles}
    return _table("Setting", {title: row for title, row in rows.items() if len(set(row)) > 1}, sides)


def question_columns(sides: Sequence[Side]) -> tuple[tuple[str, QuestionColumn], ...]:
    """Return the columns that are compared per question, as pairs of diagnostic and column."""
    diagnostics = sides[0].diagnosis.diagnostics if sides else ()
    return tuple((d.name, column) for d in diagnostics for column in d.columns if not column.is_list)


def shared_questions(sides: Sequence[Side]) -> pd.DataFrame:
    """Return the questions that all runs have under the same id and with the same text, in the first's order.

    Columns: ``query_id, question``; for each run and its letter X ``answer_X`` and every column of
    `question_columns` as ``name_X``; ``answers_differ``. White space does not make texts differ, and two
    answers that are both missing are the same.
    """
    if not sides:
        return pd.DataFrame(columns=["query_id", "question", "answers_differ"])
    merged = _answers(sides[0])
    for side in sides[1:]:
        merged = merged.merge(_answers(side).drop(columns="question"), on=["query_id", "_text"])
    said = merged[[f"_said_{side.letter}" for side in sides]].astype("object").fillna("")
    merged["answers_differ"] = said.nunique(axis=1) > 1
    return merged.drop(columns=[name for name in merged.columns if name.startswith("_")])


def check_comparable(runs: Sequence[Run]) -> None:
    """Raise InputError, which names the run, where one has no question in common with the first.

    A question is the same under the same id and with the same text.
    """
    asked = [questions_of(run) for run in runs]
    for run, questions in zip(runs[1:], asked[1:], strict=True):
        if not asked[0] & questions:
            raise InputError(
                f"“{_name(run)}” has no question in common with “{_name(runs[0])}” (same id and same "
                "text), so the two cannot be compared; choose runs of the same questions."
            )


def questions_of(run: Run) -> Questions:
    """Return the ids of a run's questions, each with its text without white space around its words."""
    return frozenset(zip(run.queries["query_id"], normal(run.queries["question"]), strict=True))


def nearest(
    run: Run, manifests: Sequence[Mapping[str, Any]], asked: Callable[[str], Questions]
) -> tuple[str, str] | None:
    """Return the id of the saved run that one is best compared with, and why, as the end of a sentence.

    That is a run made from it, or from which it was made; else that with most questions in common, of several
    that of the same data set, then the latest. None where no run has a question in common. ``manifests`` are
    of saved runs; ``asked`` gives the questions of one (see `questions_of`), for eight of them at most: those
    of the same data set first, then the latest.
    """
    own, parent = questions_of(run), run.manifest.get("parent")
    others = [one for one in manifests if one["run_id"] != run.run_id and is_like(one, run.manifest)]
    for one in others:
        is_parent = one["run_id"] == parent
        if (is_parent or one.get("parent") == run.run_id) and own & asked(one["run_id"]):
            made = "the loaded run was made from it" if is_parent else "it was made from the loaded run"
            return one["run_id"], made
    others.sort(key=lambda one: str(one.get("created", "")), reverse=True)
    others.sort(key=lambda one: not same_data(one, run.manifest))
    shared = [len(own & asked(one["run_id"])) for one in others[:_LOOKED_AT]]
    if not any(shared):
        return None
    chosen = others[shared.index(max(shared))]
    part = "all" if max(shared) == len(own) else f"{max(shared):,} of the"
    said = f"it asks {part} {count(len(own), 'question')} of the loaded run"
    return chosen["run_id"], f"{said}, from the same data set" if same_data(chosen, run.manifest) else said


def is_like(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell by their manifests whether both runs are of a model, both simulated, or both composed."""
    return MARKS.get(str(one.get("source"))) == MARKS.get(str(other.get("source")))


def same_data(*manifests: Mapping[str, Any]) -> bool:
    """Tell whether the data sets of two runs have the same digest or name."""
    a, b = (manifest.get("dataset") or {} for manifest in manifests)
    return any(a.get(name) is not None and a.get(name) == b.get(name) for name in ("digest", "name"))


def _answers(side: Side) -> pd.DataFrame:
    """One row per question: what the comparison needs of one run, and texts without their white space."""
    raw = side.run.queries
    own = {"answer": raw["answer"], "_said": normal(raw["answer"])}
    for diagnostic, column in question_columns([side]):
        own[column.name] = side.diagnosis[diagnostic].queries[column.name]
    return pd.DataFrame(
        {
            "query_id": raw["query_id"],
            "question": raw["question"],
            "_text": normal(raw["question"]),
            **{f"{name}_{side.letter}": values for name, values in own.items()},
        }
    )


def _name(run: Run) -> str:
    return _cut(run.name, _NAME)


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def normal(texts: pd.Series) -> pd.Series:
    """Return texts without white space around their words; None for what is no text."""
    known = [" ".join(text.split()) if isinstance(text, str) else None for text in texts]
    return pd.Series(known, index=texts.index, dtype="object")


def _table(first: str, rows: Mapping[str, Sequence[str]], sides: Sequence[Side]) -> pd.DataFrame:
    columns = [first, *(side.title for side in sides)]
    return pd.DataFrame([(title, *row) for title, row in rows.items()], columns=columns, dtype="str")


def _cost(side: Side, key: str, unit: str) -> str:
    value = (side.run.manifest.get("cost") or {}).get(key)
    return DASH if value is None else f"{value:,}{unit}"


# Title -> entry of the manifest's costs, and its unit.
_COSTS: Mapping[str, tuple[str, str]] = {
    "Calls made": ("calls", ""),
    "Calls answered from the cache": ("cached", ""),
    "Time for the calls made": ("seconds", " s"),
    "Prompt tokens": ("prompt_tokens", ""),
}
# Settings, by their place in the manifest; of data set and prompt only these, of the other sections all.
_TITLES: Mapping[str, str] = {
    "source": "Source",
    "dataset.name": "Data set",
    "dataset.digest": "Data set digest",
    "dataset.n_questions": "Questions in the data set",
    "dataset.format": "File format",
    "model.name": "Model",
    "model.backend": "Back end",
    "prompt.style": "Prompt style",
    "prompt.instruction": "Prompt instruction",
    "prompt.max_tokens": "Max answer tokens",
    "retriever.name": "Retriever",
    "retriever.k": "Passages k",
}
_WHOLE = ("model", "retriever", "options")
# Entries of `options` that repeat other sections, by their names there; any other may repeat the retriever's.
_REPEATED = {"retriever": "retriever.name", "style": "prompt.style", "max_tokens": "prompt.max_tokens"}


def setup_of(diagnosis: Diagnosis) -> dict[str, str]:
    """Return how a run was made, title by title: its data set, model, prompt, retriever and options."""
    said = setup_in(diagnosis.run.manifest)
    for diagnostic in diagnosis.diagnostics:
        numbers = diagnosis.numbers(diagnostic.name)
        said |= {one.title: one.text for one in numbers if one.place == "setup" and one.value is not None}
    return said


def setup_in(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return what `setup_of` reads in the manifest."""
    found: dict[str, Any] = {"source": manifest.get("source")}
    for section in ("dataset", "model", "prompt", "retriever", "options"):
        values = manifest.get(section) or {}
        paths = {f"{section}.{key}": value for key, value in values.items()}
        found |= {path: value for path, value in paths.items() if section in _WHOLE or path in _TITLES}
    for name, facts in manifest.get("steps", {}).items():
        options = facts.get("options") or {}
        found |= {f"{name}.{key}": value for key, value in options.items() if f"options.{key}" not in found}
    for key in manifest.get("options") or {}:
        if _REPEATED.get(key, f"retriever.{key}") in found:
            del found[f"options.{key}"]
    options = found.pop("model.options", None)
    if isinstance(options, Mapping):
        found |= {f"model.{key}": value for key, value in options.items()}
    return {_setting_title(path): _said(value) for path, value in found.items() if value is not None}


def _setting_title(path: str) -> str:
    section, _, key = path.partition(".")
    own = key if section == "options" else f"{section} {key}"
    return _TITLES.get(path) or own.replace("_", " ").capitalize()


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _cut(text, _VALUE) or DASH
