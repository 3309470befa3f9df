"""The generated pages of the documentation: ``python -m core.report.reference docs``.

Each function takes the things that a page lists and returns the page. Tables, settings, commands, findings
and docstrings have one home, the code; here they are only set.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from core.report.docstrings import entry_markdown
from core.report.glossary import glossary_markdown
from core.schema import Column, Table
from core.socket import REASON, Definition, Diagnostic

_MADE = "\n\nMade from the code by `make glossary`."
_FINDINGS = (
    """# Act on each finding

A finding is *bad* (something is wrong), *good* (in order) or *unclear* (these data cannot tell). Here is
every finding there is, by diagnostic: what it means, and what to do. Where fixes were tried, the advice on
screen says what they did instead ([Where answers are lost](../explanation/losses.md)). How findings are
tested and graded: [The verdict and many tests](../explanation/many-tests.md)."""
    + _MADE
)
_UNDEFINED = "A number is undefined in a fifth of the questions or more, for one of these reasons:"
_TABLES = (
    """# Tables of a run

A saved run is a folder: `run.json`, which says how it was made, and one Parquet file for each table with
rows. Tables hold raw observations; whatever can be computed from them is computed when it is read."""
    + _MADE
)
_SETTINGS = (
    """# Settings

A setting changes how a run is read, never the run: it is a slider or switch of its page, an option of the
command line, a key of `Diagnosis(run, {…})` and a part of links."""
    + _MADE
)
_COMMANDS = (
    """# Command line

`python -m core COMMAND --help` prints the same. `--json` prints one JSON object on standard output; logs go
to standard error. Exit status: 0 done, 1 a check or an answer failed, 2 bad input, 3 model unreachable, 130
cancelled (what was done is kept).

One process at a time writes a folder of `--out`; a second one is refused before it makes any call. If the
process is killed, the lock is released. A killed `analyze` continues where it stopped when the same command
is given again: every finished call is on disk, so at most the calls under way are asked again."""
    + _MADE
)
_PYTHON = (
    """# Python

The names that programs and notebooks use. They take plain lists, arrays or tables and return frozen
results. Errors derive from `core.errors.LeadlineError`: one sentence that says what was given and what
would be right.

Figures are in `core.charts`, in a module per diagnostic: each takes the analysis of its diagnostic and
returns a plotly figure, as in `core.charts.influence.rho_histogram(diagnosis["influence"])`."""
    + _MADE
)


class Variable(NamedTuple):
    """An environment variable that a user may set."""

    name: str
    sets: str
    default: str


VARIABLES = (
    Variable("LEADLINE_RUNS", "Folder of the dashboard's saved runs.", "`runs/`"),
    Variable(
        "LEADLINE_CACHE",
        "Folder of finished model calls and of the converted packaged model.",
        "the user's cache folder",
    ),
    Variable(
        "LEADLINE_DATABASE",
        "URL of a PostgreSQL database for reviews, finished model calls and calibration.",
        "files",
    ),
    Variable(
        "LEADLINE_MODELS",
        "Further models that a page may load on the server, separated by commas.",
        "none",
    ),
    Variable("LEADLINE_RAY", "Offers a Ray cluster on the Live page: its address, or `local`.", "not set"),
    Variable(
        "RAY_ADDRESS", "Cluster that `--on ray` joins instead of starting Ray on this machine.", "not set"
    ),
    Variable("LEADLINE_SAMPLES", "Folder with the sample questions and the recorded runs.", "`sample_data/`"),
    Variable("LEADLINE_DEBUG", "Any value: show tracebacks on the command line.", "not set"),
    Variable(
        "ENABLE_VALIDATORS",
        "Whether `core.validation.validate` asks its validators: `true` or `false`.",
        "`true`",
    ),
    Variable(
        "VALIDATOR_EVIDENCE_THRESHOLD",
        "Share of an answer's content words that its best passage must have, 0 to 1.",
        "`0.01`",
    ),
    Variable("RAG_CONFIDENCE_THRESHOLD", "Confidence from which an answer passes, 0 to 1.", "`0.6`"),
    Variable("OLLAMA_HOST", "Address of the Ollama server.", "`http://127.0.0.1:11434`"),
    Variable(
        "OLLAMA_API_KEY",
        "Key that a proxy in front of the Ollama server asks for; also `[ollama]` in Streamlit's secrets.",
        "no key",
    ),
    Variable("OPENAI_BASE_URL", "Address of an OpenAI-compatible server.", "OpenAI's own address"),
    Variable(
        "OPENAI_API_KEY",
        "Its key; the dashboard also reads `[openai]` in Streamlit's secrets. It is written nowhere.",
        "no key",
    ),
    Variable(
        "OMP_WAIT_POLICY",
        "How threads of torch wait for each other; `ACTIVE` makes them spin: a tenth faster alone, half as "
        "fast next to a busy program.",
        "`PASSIVE`",
    ),
)

# The names that users import, by what they are for.
PUBLIC: Mapping[str, tuple[str, ...]] = {
    "Make and open runs": (
        "core.analyze",
        "core.run.Run",
        "core.pipeline.fill",
        "core.sources.formats.import_file",
        "core.sources.dataset.load_dataset",
        "core.sources.simulation.SimulationOptions",
        "core.sources.simulation.simulate",
        "core.llm.open_llm",
        "core.llm.CompletionCache",
    ),
    "Read a run": (
        "core.diagnosis.Diagnosis",
        "core.socket.Number",
        "core.socket.Finding",
        "core.verdict.verdict",
        "core.verdict.RunVerdict",
        "core.serving.show",
        "core.report.text.gate",
        "core.compare",
        "core.report.results.Comparison",
        "core.report.results.Report",
        "core.report.paired.comparison_text",
    ),
    "Influence and attribution": (
        "core.influence.influence_score",
        "core.influence.spearman",
        "core.influence.influence_ndcg",
        "core.influence.dominance_ratio",
        "core.attribution.Game",
        "core.attribution.attribute",
        "core.attribution.Attribution",
    ),
    "Try fixes": (
        "core.losses.arms.Arm",
        "core.losses.step.LossesStep",
        "core.whatif.every.RunChange",
        "core.whatif.every.run_of_arm",
    ),
    "Claims": (
        "core.claims.split_claims",
        "core.claims.default_verifier",
        "core.claims.claim_uncertainty",
        "core.claims.f1_at_k",
        "core.claims.step.ClaimsStep",
    ),
    "Uncertainty, confidence and promises": (
        "core.uncertainty.Samples",
        "core.uncertainty.score",
        "core.uncertainty.mc_dropout.MCDropoutConfidence",
        "core.confidence.calculate_confidence",
        "core.confidence.learn",
        "core.conformal.conformal_threshold",
        "core.conformal.certify_threshold",
        "core.conformal.CalibrationStore",
        "core.conformal.rag.ConformalRAG",
    ),
    "Validation": (
        "core.validation.validate",
        "core.validation.FallbackHandler",
        "core.validation.default_chain",
    ),
}


def findings_markdown(diagnostics: Sequence[Diagnostic]) -> str:
    """Return what every finding means and what to do about it, in the words of its definition."""
    lines = [_FINDINGS]
    for diagnostic in diagnostics:
        known = [_found(diagnostic, name) for name in diagnostic.finds]
        if known:
            lines += [f"## {diagnostic.title}", diagnostic.question]
        for one in (one for one in known if one.kind != REASON):
            lines += [f"### {one.title}", f"`{one.name}`: {one.meaning}"]
            lines += [f"**What to do:** {one.advice or 'Nothing: this is in order.'}"]
        if reasons := [one for one in known if one.kind == REASON]:
            lines += ["### Undefined in many questions", _UNDEFINED]
            lines += ["\n".join(_reason(one) for one in reasons)]
    return "\n\n".join(lines) + "\n"


def _found(diagnostic: Diagnostic, name: str) -> Definition:
    """Return the definition of a finding; a failure mode goes before a reason of the same name."""
    both = [one for one in diagnostic.definitions if one.name == name]
    return next((one for one in both if one.kind != REASON), both[0])


def _reason(one: Definition) -> str:
    return f"- **{one.title}** (`{one.name}`): {one.meaning} {one.advice}".rstrip()


def tables_markdown(tables: Mapping[str, Table]) -> str:
    """Return the tables of a run with all columns."""
    lines = [_TABLES]
    for table in tables.values():
        key = ", ".join(f"`{name}`" for name in table.key)
        rows = [f"| `{one.name}` | {one.type} | {_cell(_column(one))} |" for one in table.columns]
        lines += [f"## {table.name}", f"{table.meaning} Key: {key}.", _table("column | type | meaning", rows)]
    return "\n\n".join(lines) + "\n"


def _column(one: Column) -> str:
    more = (
        f"*Required.* {one.meaning}" if one.required else one.meaning,
        f"Unit: {one.unit}." if one.unit else "",
        f"Range: {_range(*one.range)}." if one.range else "",
        f"{one.direction[:1].upper()}{one.direction[1:]}." if one.direction else "",
        f"One of {', '.join(f'`{value}`' for value in one.values)}." if one.values else "",
        f"Also read as {', '.join(f'`{alias}`' for alias in one.aliases)}." if one.aliases else "",
    )
    return " ".join(filter(None, more))


def _range(low: float | None, high: float | None) -> str:
    if high is None:
        return f"from {low:g}"
    return f"up to {high:g}" if low is None else f"{low:g} to {high:g}"


def settings_markdown(diagnostics: Sequence[Diagnostic], variables: Iterable[Variable] = VARIABLES) -> str:
    """Return the settings of all diagnostics, and the environment variables."""
    lines = [_SETTINGS]
    for diagnostic in (one for one in diagnostics if one.settings):
        rows = [
            f"| `{one.option}` | `{one.name}` | `{one.default}` | **{one.title}.** {_cell(one.help)} |"
            for one in diagnostic.settings
        ]
        lines += [f"## {diagnostic.title}", _table("option | key | default | what it changes", rows)]
    rows = [f"| `{one.name}` | {_cell(one.sets)} | {one.default} |" for one in variables]
    lines += ["## Environment variables", _table("variable | what it sets | default", rows)]
    return "\n\n".join(lines) + "\n"


def commands_markdown(commands: Mapping[str, Any]) -> str:
    """Return every command with its arguments and options; ``commands`` are those of the parser, by name."""
    lines = [_COMMANDS]
    for name, command in commands.items():
        given = [one for one in command.params if one.param_type_name == "argument"]
        usage = " ".join(["python -m core", name, *(one.name.upper() for one in given)])
        rows = [f"| `{one.name.upper()}` | {_cell(one.help or '')} |" for one in given]
        rows += [_option(one) for one in command.params if one.param_type_name == "option"]
        about = inspect.cleandoc(command.help or "")
        lines += [f"## {name}", about, f"`{usage}`", _table("option | what it does", rows)]
    return "\n\n".join(lines) + "\n"


def _option(one: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts))
    # The parser of the command line leaves defaults to dataclasses and keeps what --help shows of them.
    shown = one.show_default if isinstance(one.show_default, str) else one.default
    default = "" if one.required or callable(shown) or shown in (None, False, ()) else f" Default: `{shown}`."
    return f"| {names} | {_cell(one.help or '')}{default}{' *Required.*' if one.required else ''} |"


def python_markdown(names: Mapping[str, Sequence[str]] = PUBLIC) -> str:
    """Return signature and docstring of each public name, by group."""
    lines = [_PYTHON]
    for group, paths in names.items():
        lines += [f"## {group}", *map(entry_markdown, paths)]
    return "\n\n".join(lines) + "\n"


def _table(head: str, rows: Sequence[str]) -> str:
    return "\n".join([f"| {head} |", "|---" * (head.count("|") + 1) + "|", *rows])


def _cell(text: str) -> str:
    """Return a text that fits a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def pages() -> dict[str, str]:
    """Return every generated page by its path inside ``docs/``."""
    import typer

    from core.cli.app import build_app
    from core.diagnostics import DIAGNOSTICS
    from core.schema import TABLES

    command: Any = typer.main.get_command(build_app())
    return {
        "glossary.md": glossary_markdown(DIAGNOSTICS),
        "how-to/act-on-findings.md": findings_markdown(DIAGNOSTICS),
        "reference/tables.md": tables_markdown(TABLES),
        "reference/settings.md": settings_markdown(DIAGNOSTICS),
        "reference/command-line.md": commands_markdown(command.commands),
        "reference/python.md": python_markdown(),
    }


def main(folder: str) -> None:
    """Write the generated pages into a folder."""
    for path, text in pages().items():
        (Path(folder) / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
