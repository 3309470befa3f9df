"""The commands, and their exit status."""

from __future__ import annotations

import inspect
import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from core import diagnostics
from core.cli import reading
from core.cli.calibrate import calibrate, calibration_options
from core.cli.live import carried_out, opened_work, planned, step_types
from core.cli.options import (
    Given,
    JsonOpt,
    LiveOptions,
    OutOpt,
    OverwriteOpt,
    field_options,
    parameter,
    preset_option,
    setting_options,
    with_options,
)
from core.cli.output import (
    free_file,
    log,
    log_possible,
    log_report,
    option_pairs,
    plan_text,
    print_json,
    print_text,
    save_run,
    write_file,
)
from core.cli.validate import validate_answer
from core.errors import Cancelled, InputError, LeadlineError
from core.files import path_problem
from core.llm import CompletionCache, default_cache_path
from core.pipeline import RunOptions
from core.pipeline.cluster import Place
from core.run import Run
from core.serving import serve
from core.severity import policy
from core.socket import settings_of
from core.sources.formats import IMPORT_FORMATS, import_file
from core.sources.templates import TEMPLATES, template_csv
from core.text.display import shorten

DOWNLOADS = ("nq",)
# A line of \b keeps the lines that follow as they are.
_SEVERITY = (
    "How grave a finding is: 'surely' means the lower end of the 95 % interval of its share.\n\n\b\n"
    + policy(markdown=False)
)

DatasetArg = Annotated[str, typer.Argument(help="Questions, JSON Lines or CSV; or a saved run.")]
NameOpt = Annotated[str | None, typer.Option("--name", help="Name of the run.")]


def build_app() -> typer.Typer:
    """Return the commands, with the options of every diagnostic."""
    app = typer.Typer(
        help="Leadline: which retrieved passages an answer really uses.",
        add_completion=False,
        rich_markup_mode=None,
    )
    live = [*field_options("live", LiveOptions), *field_options("retrieval", RunOptions)]
    steps = step_types()
    about = f"Steps to run, separated by commas: {', '.join(steps)}."
    live.append(parameter("live", "steps", str, "--steps", about, LiveOptions().steps))
    live += [option for name, kind in steps.items() for option in field_options(name, kind)]
    preset = preset_option()
    settings = [preset, *setting_options(settings_of(diagnostics.DIAGNOSTICS))]
    live.append(preset)
    for name, command, options in (
        ("analyze", _analyze, [*live, *field_options("place", Place)]),
        ("plan", _plan, live),
        ("calibrate", calibrate, [*calibration_options(), preset]),
        ("validate", validate_answer, []),
        ("download", _download, []),
        ("simulate", _simulate, settings),
        ("import", _import, [_template_option(), *settings]),
        ("summary", reading.summary, settings),
        ("compare", reading.compare, settings),
        ("signals", reading.signals, settings),
        ("check", reading.check, settings),
        ("report", reading.report, settings),
        ("trend", reading.trend, []),
        ("labels", reading.labels, []),
        ("export", reading.export, settings),
        ("dashboard", _dashboard, []),
    ):
        app.command(name, epilog=_SEVERITY if command is reading.check else None)(
            with_options(options)(command)
        )
    return app


def _analyze(
    dataset: DatasetArg,
    out: OutOpt,
    given: Given,
    name: NameOpt = None,
    overwrite: OverwriteOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Answer every question with all passages and with each one left out, and save the run.

    Given the folder of a saved run, its questions are asked again with the same passages; with --steps
    claims its answers are checked as they are. The same command resumes a stopped run without repeating
    finished calls.
    """
    work = opened_work(dataset, given)
    with CompletionCache(work.live.cache or default_cache_path()) as cache:
        run = carried_out(work, cache, out, name, overwrite)
    reading.show(run, given, as_json)


def _plan(
    dataset: DatasetArg,
    given: Given,
    timed: Annotated[bool, typer.Option("--time", help="Make a few calls to estimate the time.")] = False,
    as_json: JsonOpt = False,
) -> None:
    """Estimate calls, tokens and time of a run, and show its prompt."""
    work = opened_work(dataset, given)
    with CompletionCache(work.live.cache or default_cache_path()) as cache:
        plan = planned(work, cache, timed=timed)
    if as_json:
        others = step_types().keys() - {step.name for step in work.steps}
        print_json({f"{name}_calls_about": None for name in others} | plan.to_dict())
    else:
        print_text(plan_text(plan))


def _download(
    what: Annotated[str, typer.Argument(help=", ".join(DOWNLOADS))],
    out: Annotated[str, typer.Option("--out", help="File to write, JSON Lines.")],
    limit: Annotated[int, typer.Option("--limit", help="Questions.")] = 50,
    split: Annotated[str, typer.Option("--split", help="Part of the data set.")] = "validation",
    seed: Annotated[int | None, typer.Option("--seed", help="Shuffle; else the first ones.")] = None,
    source: Annotated[str | None, typer.Option("--source", help="Local files in its own schema.")] = None,
    overwrite: OverwriteOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Download questions of a public data set as a data set for `analyze`."""
    from core.sources.dataset import dataset_jsonl
    from core.sources.natural_questions import load_natural_questions

    if what not in DOWNLOADS:
        raise InputError(f"What to download must be one of {', '.join(DOWNLOADS)}, got {what!r}.")
    target = free_file(out, overwrite)
    data = load_natural_questions(limit, split=split, seed=seed, source=source)
    log_report(data.report, what)
    content = dataset_jsonl(data)
    write_file(target, content)
    facts = {"file": str(target), "questions": len(data.questions), "bytes": len(content)}
    print_json(facts) if as_json else print_text(
        f"{target}: {len(data.questions):,} questions, {len(content):,} bytes."
    )


def _simulate(
    out: OutOpt,
    given: Given,
    queries: Annotated[int, typer.Option("--queries", help="Questions, 10 to 100,000.")] = 50,
    passages: Annotated[int, typer.Option("--passages", help="Passages per question.")] = 10,
    seed: Annotated[int, typer.Option("--seed", help="Seed.")] = 42,
    knobs: Annotated[
        list[str] | None, typer.Option("--set", help="option=value, repeatable, e.g. noise=0.1.")
    ] = None,
    name: NameOpt = None,
    overwrite: OverwriteOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Make a run with known ground truth; it is always labelled as simulated."""
    from core.sources.simulation import SHOWN, options_from_pairs, simulate

    sizes = [("queries", str(queries)), ("passages", str(passages)), ("seed", str(seed))]
    run = simulate(options_from_pairs([*sizes, *option_pairs("--set", knobs or [])]))
    run = run.renamed(name) if name else run
    save_run(run, out, overwrite)
    if queries <= SHOWN or as_json:
        reading.show(Run.load(out), given, as_json)
    else:  # measuring it takes longer than making it
        print_text(f"{run.name} (SIMULATED DATA, run {run.run_id}): in {out}; see `python -m core summary`.")


def _import(
    file: Annotated[
        str,
        typer.Argument(help="File of another tool (CSV, JSON, JSON Lines, Parquet), or a saved data set."),
    ],
    out: OutOpt,
    given: Given,
    file_format: Annotated[str, typer.Option("--format", help=", ".join(IMPORT_FORMATS))] = "auto",
    mapping: Annotated[list[str] | None, typer.Option("--map", help="field=column, repeatable.")] = None,
    name: NameOpt = None,
    overwrite: OverwriteOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Import a file of another tool as a run; problems are listed on standard error."""
    path = Path(file)
    pairs = dict(option_pairs("--map", mapping or [])) or None
    imported = import_file(path, name or path.name, file_format, pairs)
    log_report(imported.report, file)
    log_possible(imported.report)
    save_run(imported.run.renamed(name) if name else imported.run, out, overwrite)
    reading.show(Run.load(out), given, as_json)


def _template_option() -> inspect.Parameter:
    """Return the option that prints an example file in place of importing one."""

    def shown(kind: str | None) -> None:
        if kind is not None:
            print_text(template_csv(kind).removesuffix("\n"))
            raise typer.Exit

    about = f"Print an example file, and stop: {', '.join(TEMPLATES)}."
    option = typer.Option("--template", help=about, is_eager=True, callback=shown)
    annotation = Annotated[str | None, option]
    return inspect.Parameter(
        "template__kind", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def _dashboard(
    run: Annotated[str | None, typer.Argument(help="Folder of a saved run to open.")] = None,
    port: Annotated[int, typer.Option("--port", help="Port of this machine.", min=1, max=65_535)] = 8501,
) -> None:
    """Serve the dashboard to this machine until Ctrl+C; the runs beside RUN are listed, too.

    Without RUN: those in LEADLINE_RUNS, else in the folder runs here.
    """
    serve(run, port, log)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default with the arguments of the process.

    Returns the exit status: 0 done, 1 a check or an answer failed, or anything unforeseen, 2 bad input, 3
    model unreachable, 130 cancelled. A failure is one line on standard error, with a traceback only if
    ``LEADLINE_DEBUG`` is set.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A character that the terminal cannot show is escaped, not an error.
            stream.reconfigure(errors="backslashreplace")
    given = sys.argv[1:] if arguments is None else [*arguments]
    try:
        _check_texts(given)
        result = build_app()(args=given or ["--help"], standalone_mode=False)
        return result if isinstance(result, int) else 0
    except LeadlineError as error:
        return _fail(error, " ".join(str(error).split()), error.exit_status)
    except KeyboardInterrupt:
        log("Stopped; what was finished is kept.")
        return Cancelled.exit_status
    except BrokenPipeError:
        # Nobody reads the output any more (``| head``).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # Whatever path was given: no such folder, no right to read it, a name too long, a full disk.
        place = "" if error.filename is None else f"{error.filename}: "
        return _fail(error, f"{place}{error.strerror or error}.", InputError.exit_status)
    except Exception as error:
        describe = getattr(error, "format_message", None)
        if describe is not None:  # a usage error of the command line parser
            return _fail(error, describe() or "See --help.", getattr(error, "exit_code", 2))
        text = f"{type(error).__name__}: {error}; run with LEADLINE_DEBUG=1 for the traceback"
        return _fail(error, " ".join(text.split()), 1)


def _check_texts(arguments: Sequence[str]) -> None:
    """Raise InputError for text that the system can neither take for a path nor hand over as an argument."""
    for number, text in enumerate(arguments, start=1):
        if (wrong := path_problem(text)) is not None:
            raise InputError(f"Argument {number} {wrong}: {shorten(text)!a}; give it without.")


def _fail(error: BaseException, line: str, status: int) -> int:
    if os.environ.get("LEADLINE_DEBUG"):
        for debug_line in "".join(traceback.format_exception(error)).splitlines():
            log(debug_line)
    log(f"Error: {line}" if status != Cancelled.exit_status else line)
    return status
