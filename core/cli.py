"""The command line: the same steps as in the browser, for scripts and CI jobs."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from core.claims import ClaimsAnalysis, analyse_claims
from core.claims.known import DEFAULT_SUPPORT
from core.cli_claims import ClaimsSettings, add_claims, claims_source
from core.cli_files import (
    finished_run,
    free_file,
    open_dataset,
    option_pairs,
    save_run,
    tell,
    tell_changes,
    tell_possible,
    write_file,
)
from core.cli_live import LiveSettings, with_settings
from core.definitions import DEFAULT_THRESHOLD
from core.errors import Cancelled, InputError, LeadlineError
from core.influence import InfluenceAnalysis, analyse
from core.llm import LLM, CompletionCache, default_cache_path
from core.pipeline import CallPlan, calibrate, execute, make_plan
from core.pipeline.claims_run import calls_beyond
from core.report.summary import run_summary
from core.run import Run
from core.sources.formats import IMPORT_FORMATS, import_file
from core.terminal import ProgressLine, plan_text, put, put_json, say, stoppable, summary_text

STEPS = ("influence", "claims")
DOWNLOADS = ("nq",)

app = typer.Typer(
    help="Leadline: which retrieved passages an answer really rests on.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

DatasetArg = Annotated[str, typer.Argument(help="Questions, JSON Lines or CSV; or a saved run.")]
RunArg = Annotated[str, typer.Argument(help="Folder of a saved run.")]
OutOpt = Annotated[str, typer.Option("--out", help="Folder for the run.")]
JsonOpt = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
OverwriteOpt = Annotated[bool, typer.Option("--overwrite", help="Replace another run in --out.")]
NameOpt = Annotated[str | None, typer.Option("--name", help="Name of the run.")]
StepsOpt = Annotated[
    str, typer.Option("--steps", help=f"What to run, separated by commas: {', '.join(STEPS)}.")
]
SupportOpt = Annotated[float, typer.Option("--support", help="Probability from which a claim is supported.")]
ThresholdOpt = Annotated[float, typer.Option("--threshold", help="Rank agreement from which it is aligned.")]


@app.command("analyze")
@with_settings(settings=LiveSettings, claims=ClaimsSettings)
def analyze_command(
    dataset: DatasetArg,
    out: OutOpt,
    settings: LiveSettings,
    claims: ClaimsSettings,
    steps: StepsOpt = "influence",
    name: NameOpt = None,
    overwrite: OverwriteOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Ask a model every question, leave out passages one by one, and save the run.

    The folder of a saved run in place of a data set asks its questions again with the passages it has;
    with --steps claims its answers are checked as they are, and no question is asked. Started again after
    a stop, it goes on where it stopped and repeats no finished call.
    """
    wanted = _steps(steps)
    judge = claims.open(settings) if "claims" in wanted else None
    if "influence" in wanted:
        run = _influence(dataset, out, settings, name, overwrite)
    else:
        run = claims_source(dataset, out, claims.options(), judge, overwrite)
    if "claims" in wanted:
        run = add_claims(run, out, claims.options(), judge, settings.cache)
    _show(run, DEFAULT_THRESHOLD, DEFAULT_SUPPORT, as_json)


def _influence(dataset: str, out: str, settings: LiveSettings, name: str | None, overwrite: bool) -> Run:
    data = open_dataset(dataset, settings.limit, settings.corpus)
    options = settings.options(data, continued=Path(dataset).is_dir())
    llm = settings.open()
    with CompletionCache(settings.cache or default_cache_path()) as store:
        plan = make_plan(data, options, llm, store)
        run = finished_run(plan, out, overwrite) or _execute(plan, llm, store, out, name)
    if not run.manifest["complete"]:
        n = len(run.queries)
        raise Cancelled(
            f"Stopped on request; {n} of {len(data.questions)} questions are saved in {out}: "
            "run the same command again to go on."
        )
    return run


@app.command("plan")
@with_settings(settings=LiveSettings, claims=ClaimsSettings)
def plan_command(
    dataset: DatasetArg,
    settings: LiveSettings,
    claims: ClaimsSettings,
    steps: StepsOpt = "influence",
    timed: Annotated[bool, typer.Option("--calibrate", help="Make two calls to estimate the time.")] = False,
    as_json: JsonOpt = False,
) -> None:
    """Show calls, tokens, prompt and time of a run before anything is spent."""
    wanted = _steps(steps)
    data = open_dataset(dataset, settings.limit, settings.corpus)
    options = settings.options(data, continued=Path(dataset).is_dir())
    llm = settings.open()
    with CompletionCache(settings.cache or default_cache_path()) as store:
        plan = make_plan(data, options, llm, store)
        if timed:
            calibration = calibrate(llm, plan, store)
            plan = make_plan(data, options, llm, store).calibrated(calibration)
    judge = claims.open(settings) if "claims" in wanted else None
    about = calls_beyond(plan, claims.options(), judge) if "claims" in wanted else None
    put_json({**plan.to_dict(), "claims_calls_about": about}) if as_json else put(plan_text(plan, about))


@app.command("download")
def download_command(
    what: Annotated[str, typer.Argument(help=", ".join(DOWNLOADS))],
    out: Annotated[str, typer.Option("--out", help="File to write, JSON Lines.")],
    limit: Annotated[int, typer.Option("--limit", help="Questions.")] = 50,
    split: Annotated[str, typer.Option("--split", help="Part of the data set.")] = "validation",
    seed: Annotated[int | None, typer.Option("--seed", help="Shuffle; else the first ones.")] = None,
    source: Annotated[str | None, typer.Option("--source", help="Local files in its own schema.")] = None,
    overwrite: OverwriteOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Fetch questions of a public data set and keep them as a data set for `analyze`."""
    from core.sources.dataset import dataset_jsonl
    from core.sources.natural_questions import load_natural_questions

    if what not in DOWNLOADS:
        raise InputError(f"What to download must be one of {', '.join(DOWNLOADS)}, got {what!r}.")
    target = free_file(out, overwrite)
    data = load_natural_questions(limit, split=split, seed=seed, source=source)
    tell(data.report, what)
    content = dataset_jsonl(data)
    write_file(target, content)
    facts = {"file": str(target), "questions": len(data.questions), "bytes": len(content)}
    put_json(facts) if as_json else put(
        f"{target}: {len(data.questions):,} questions, {len(content):,} bytes."
    )


@app.command("simulate")
def simulate_command(
    out: OutOpt,
    queries: Annotated[int, typer.Option("--queries", help="Questions.")] = 50,
    passages: Annotated[int, typer.Option("--passages", help="Passages per question.")] = 10,
    seed: Annotated[int, typer.Option("--seed", help="Seed.")] = 42,
    knobs: Annotated[
        list[str] | None, typer.Option("--set", help="option=value, repeatable, e.g. noise=0.1.")
    ] = None,
    name: NameOpt = None,
    overwrite: OverwriteOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Make a run with planted truth; it is always labelled as simulated."""
    from core.sources.simulation import simulate
    from core.sources.simulation_text import options_from_pairs

    sizes = [("queries", str(queries)), ("passages", str(passages)), ("seed", str(seed))]
    run = simulate(options_from_pairs([*sizes, *option_pairs("--set", knobs or [])]))
    save_run(run.renamed(name) if name else run, out, overwrite)
    _show(Run.load(out), DEFAULT_THRESHOLD, DEFAULT_SUPPORT, as_json)


@app.command("import")
def import_command(
    file: Annotated[str, typer.Argument(help="File of another tool: CSV, JSON or JSON Lines, also gzipped.")],
    out: OutOpt,
    file_format: Annotated[str, typer.Option("--format", help=", ".join(IMPORT_FORMATS))] = "auto",
    mapping: Annotated[list[str] | None, typer.Option("--map", help="field=column, repeatable.")] = None,
    name: NameOpt = None,
    overwrite: OverwriteOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Read a file of another tool as a run; what cannot be used is listed on standard error."""
    path = Path(file)
    pairs = dict(option_pairs("--map", mapping or [])) or None
    imported = import_file(path, name or path.name, file_format, pairs)
    tell(imported.report, file)
    tell_possible(imported.report)
    save_run(imported.run.renamed(name) if name else imported.run, out, overwrite)
    tell_changes(imported.run)
    _show(Run.load(out), DEFAULT_THRESHOLD, DEFAULT_SUPPORT, as_json)


@app.command("summary")
def summary_command(
    run: RunArg,
    threshold: ThresholdOpt = DEFAULT_THRESHOLD,
    support: SupportOpt = DEFAULT_SUPPORT,
    as_json: JsonOpt = False,
) -> None:
    """Print the headline numbers of a saved run, with how many questions each rests on."""
    _show(Run.load(run), threshold, support, as_json)


@app.command("export")
def export_command(
    run: RunArg,
    out: Annotated[str, typer.Option("--out", help="File to write.")],
    file_format: Annotated[str, typer.Option("--format", help="Format of the file.")] = "csv",
    threshold: ThresholdOpt = DEFAULT_THRESHOLD,
    support: SupportOpt = DEFAULT_SUPPORT,
    overwrite: OverwriteOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Write a saved run as a file for other tools."""
    from core.report.exports import EXPORTERS

    if file_format not in EXPORTERS:
        raise InputError(f"--format must be one of {', '.join(EXPORTERS)}, got {file_format!r}.")
    target = free_file(out, overwrite)
    loaded = Run.load(run)
    influence = _analyse(loaded, threshold)
    content = EXPORTERS[file_format](loaded, influence, _claims(loaded, influence, support))
    write_file(target, content)
    facts = {"file": str(target), "format": file_format, "bytes": len(content), "run_id": loaded.run_id}
    if as_json:
        put_json(facts)
    else:
        put(f"{target}: {len(content):,} bytes.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Returns
    -------
    int
        Exit status: 0 done, 2 bad input, 3 back end unreachable, 130 cancelled, 1 anything else. A
        failure is one line on standard error, never a traceback unless ``LEADLINE_DEBUG`` is set.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character gets its escape, not a failure.
            stream.reconfigure(errors="backslashreplace")
    try:
        result = app(args=list(arguments) if arguments is not None else None, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except LeadlineError as error:
        return _fail(error, " ".join(str(error).split()), error.exit_status)
    except KeyboardInterrupt:
        say("Stopped; what was finished is kept.")
        return Cancelled.exit_status
    except BrokenPipeError:
        # The reader of our output has gone (``| head``): nothing left to say, to nobody.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        describe = getattr(error, "format_message", None)
        if describe is not None:  # a usage error of the command line parser
            return _fail(error, describe() or "See --help.", getattr(error, "exit_code", 2))
        text = f"{type(error).__name__}: {error}; run with LEADLINE_DEBUG=1 for the traceback"
        return _fail(error, " ".join(text.split()), 1)


def _fail(error: BaseException, line: str, status: int) -> int:
    if os.environ.get("LEADLINE_DEBUG"):
        say("".join(traceback.format_exception(error)))
    say(f"Error: {line}" if status != Cancelled.exit_status else line)
    return status


def _steps(steps: str) -> list[str]:
    wanted = [step.strip() for step in steps.split(",")]
    unknown = next((step for step in wanted if step not in STEPS), None)
    if unknown is not None:
        raise InputError(f"--steps can name {', '.join(STEPS)}, got {unknown!r}.")
    return wanted


def _execute(plan: CallPlan, llm: LLM, cache: CompletionCache, out: str, name: str | None) -> Run:
    say(
        f"{plan.n_to_ask:,} calls to make, {plan.n_cached:,} answered before, {plan.n_duplicates:,} "
        f"identical; about {plan.prompt_tokens:,} prompt tokens."
    )
    line = ProgressLine()

    def keep(partial: Run) -> None:
        partial.save(out)

    with stoppable() as cancelled:
        run = execute(
            plan,
            llm,
            cache,
            progress=line,
            cancelled=cancelled,
            name=name,
            on_question=keep,
        )
        line.end()
        run.save(out)
    for note in run.manifest["notes"]:
        say(note)
    return run


def _analyse(run: Run, threshold: float) -> InfluenceAnalysis:
    if not -1 <= threshold <= 1:
        raise InputError(f"--threshold must lie from -1 to 1, got {threshold:g}.")
    return analyse(run, threshold)


def _claims(run: Run, influence: InfluenceAnalysis, support: float) -> ClaimsAnalysis:
    if not 0 < support <= 1:
        raise InputError(f"--support must lie above 0 and not above 1, got {support:g}.")
    return analyse_claims(run, influence, support)


def _show(run: Run, threshold: float, support: float, as_json: bool) -> None:
    influence = _analyse(run, threshold)
    facts = run_summary(run, influence, _claims(run, influence, support))
    if as_json:
        put_json(facts)
    else:
        put(summary_text(facts))
