"""The commands, and their exit status."""

from __future__ import annotations

import inspect
import io
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from core import diagnostics, reviews
from core.cli.calibrate import calibrate, calibration_options
from core.cli.live import carried_out, opened_work, planned, step_types
from core.cli.options import (
    Given,
    LiveOptions,
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
from core.diagnosis import Diagnosis
from core.errors import Cancelled, InputError, LeadlineError
from core.llm import CompletionCache, default_cache_path
from core.pipeline import RunOptions
from core.pipeline.cluster import Place
from core.report.ci import cases_of, junit_xml
from core.report.ci import markdown as markdown_text
from core.report.compare import check_comparable, sides_of
from core.report.exports import exporters
from core.report.paired import comparison_facts, comparison_text, regressions_facts, regressions_text
from core.report.regression import Regression, regression
from core.report.signals import signal_agreement, signals_facts, signals_text
from core.report.text import Gate, gate, summary_json, summary_text
from core.report.trend import saved_in, trends
from core.run import Run
from core.serving import serve
from core.severity import SEVERITIES, policy
from core.socket import settings_of
from core.sources.formats import IMPORT_FORMATS, import_file
from core.sources.templates import TEMPLATES, template_csv

DOWNLOADS = ("nq",)
# A line of \b keeps the lines that follow as they are.
_SEVERITY = (
    "How grave a finding is: 'surely' means the lower end of the 95 % interval of its share.\n\n\b\n"
    + policy(markdown=False)
)

DatasetArg = Annotated[str, typer.Argument(help="Questions, JSON Lines or CSV; or a saved run.")]
RunArg = Annotated[str, typer.Argument(help="Folder of a saved run.")]
OutOpt = Annotated[str, typer.Option("--out", help="Folder for the run.")]
JsonOpt = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
OverwriteOpt = Annotated[bool, typer.Option("--overwrite", help="Replace another run in --out.")]
NameOpt = Annotated[str | None, typer.Option("--name", help="Name of the run.")]


def build_app() -> typer.Typer:
    """Return the commands, with the options of every diagnostic."""
    app = typer.Typer(
        help="Leadline: which retrieved passages an answer really uses.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
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
        ("summary", _summary, settings),
        ("compare", _compare, settings),
        ("signals", _signals, settings),
        ("check", _check, settings),
        ("report", _report, settings),
        ("trend", _trend, []),
        ("labels", _labels, []),
        ("export", _export, settings),
        ("dashboard", _dashboard, []),
    ):
        app.command(name, epilog=_SEVERITY if command is _check else None)(with_options(options)(command))
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
    _show(run, given, as_json)


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
        _show(Run.load(out), given, as_json)
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
    _show(Run.load(out), given, as_json)


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


def _summary(run: RunArg, given: Given, as_json: JsonOpt = False) -> None:
    """Print the headline numbers of a saved run, each with its n."""
    _show(Run.load(run), given, as_json)


def _compare(
    runs: Annotated[
        list[str],
        typer.Argument(help="Folders of two to four saved runs; the first is compared with each other one."),
    ],
    given: Given,
    only_worse: Annotated[
        bool,
        typer.Option("--regressions", help="Only the questions that became worse, the worst first."),
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Compare runs of the same questions: what differs, and whether chance explains it."""
    if len(runs) < 2:
        raise InputError("Give at least two runs to compare, got one.")
    opened = [Run.load(run) for run in runs]
    check_comparable(opened)
    sides = sides_of([Diagnosis(run, given.get("settings")) for run in opened])
    facts, text = (regressions_facts, regressions_text) if only_worse else (comparison_facts, comparison_text)
    print_json(facts(sides)) if as_json else print_text(text(sides))


def _signals(run: RunArg, given: Given, as_json: JsonOpt = False) -> None:
    """Correlate every signal of a saved run with every other: which agree, which find incorrect answers."""
    found = signal_agreement(Diagnosis(Run.load(run), given.get("settings")))
    print_json(signals_facts(found)) if as_json else print_text(signals_text(found))


def _check(
    run: RunArg,
    given: Given,
    severity: Annotated[
        str | None,
        typer.Option(
            "--severity",
            help=f"How grave a failure is at least: {', '.join(SEVERITIES)}. By default high; with --against "
            "findings are only checked where this is given.",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option("--against", help="Folder of the baseline: a saved run of the same questions."),
    ] = None,
    max_loss: Annotated[
        float,
        typer.Option("--max-loss", help="Share of the questions that may be lost against the baseline."),
    ] = 0.05,
    junit: Annotated[
        str | None, typer.Option("--junit", help="JUnit XML file to write; replaced if it exists.")
    ] = None,
    markdown: Annotated[
        str | None, typer.Option("--markdown", help="Markdown file to write; replaced if it exists.")
    ] = None,
    as_json: JsonOpt = False,
) -> int:
    """Check a saved run for scripts: exit status 1 where it fails.

    Without --against, it fails where a finding says that something is wrong. Findings depend on the settings:
    --alpha 0.05 asks for conformal promises that fail 1 time in 20 at most. With --against, it fails where
    fewer answers are correct than in the baseline, significantly and by more than --max-loss.
    """
    opened, chosen, found = Run.load(run), given.get("settings", {}), list[Gate | Regression]()
    if against is not None:
        found.append(regression(opened, Run.load(against), max_loss))
    if against is None or severity is not None:
        found.append(gate(Diagnosis(opened, chosen), severity or "high", chosen))
    for file, written in ((junit, junit_xml), (markdown, markdown_text)):
        if file is not None:
            write_file(Path(file), written([cases_of(one) for one in found]))
    facts = found[0].to_json() | ({"findings": found[1].to_json()} if found[1:] else {})
    passed = all(one.passed for one in found)
    print_json(facts | {"passed": passed}) if as_json else print_text(
        "\n".join(one.to_text() for one in found)
    )
    return 0 if passed else 1


def _report(
    runs: Annotated[
        list[str], typer.Argument(help="Folder of a saved run, and of an earlier one to compare it with.")
    ],
    out: Annotated[str, typer.Option("--out", help="HTML file to write.")],
    given: Given,
    overwrite: OverwriteOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Write a saved run as one HTML file that needs no network, to read, send or print."""
    from core.report.page import report_html  # figures take time to import

    if len(runs) > 2:
        raise InputError(f"Give one run, or two to compare, got {len(runs)}.")
    target, opened = free_file(out, overwrite), [Run.load(run) for run in runs]
    check_comparable(opened)
    content = report_html(*(Diagnosis(run, given.get("settings")) for run in opened))
    _write(target, content, {"run_id": opened[0].run_id}, as_json)


def _trend(
    folder: Annotated[str, typer.Argument(help="Folder of saved runs, each in a folder of its own.")],
    as_json: JsonOpt = False,
) -> None:
    """Show runs of the same data set over time: share of correct answers with interval, and what changed."""
    found = trends(saved_in(folder))
    print_json({"data_sets": [one.to_json() for one in found]}) if as_json else print_text(
        "\n\n".join(one.to_text() for one in found)
    )


def _write(target: Path, content: bytes, facts: Mapping[str, Any], as_json: bool) -> None:
    """Write a file, and say so."""
    write_file(target, content)
    facts = {"file": str(target), **facts, "bytes": len(content)}
    print_json(facts) if as_json else print_text(f"{target}: {len(content):,} bytes.")


def _labels(run: RunArg, out: OutOpt, overwrite: OverwriteOpt = False, as_json: JsonOpt = False) -> None:
    """Save a run in which answers are correct or not as most reviewers of RUN labelled them.

    Ties are left out. Confidence, conformal and the comparison of uncertainty measures then use these labels.
    """
    parent = Run.load(run)
    found = reviews.labelled(parent, reviews.read_all(Path(run).parent, parent.run_id))
    save_run(found.run, out, overwrite)
    if as_json:
        facts = {"n_labelled": found.n_labelled, "n_tied": found.n_tied, "people": [*found.people]}
        print_json({"run_id": found.run.run_id, **facts})
    else:
        print_text(found.sentence)


def _export(
    run: RunArg,
    out: Annotated[str, typer.Option("--out", help="File to write.")],
    given: Given,
    file_format: Annotated[str, typer.Option("--format", help="Format of the file.")] = "csv",
    overwrite: OverwriteOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Export a saved run as a file for other tools."""
    known = exporters()
    if file_format not in known:
        raise InputError(f"--format must be one of {', '.join(known)}, got {file_format!r}.")
    target = free_file(out, overwrite)
    diagnosis = Diagnosis(Run.load(run), given.get("settings"))
    known = exporters(reviews.combined(reviews.read_all(Path(run).parent, diagnosis.run.run_id)))
    facts = {"format": file_format, "run_id": diagnosis.run.run_id}
    _write(target, known[file_format].write(diagnosis), facts, as_json)


def _dashboard(
    run: Annotated[str | None, typer.Argument(help="Folder of a saved run to open.")] = None,
    port: Annotated[int, typer.Option("--port", help="Port of this machine.", min=1, max=65_535)] = 8501,
) -> int:
    """Serve the dashboard to this machine until Ctrl+C; the runs beside RUN are listed, too.

    Without RUN: those in LEADLINE_RUNS, else in the folder runs here.
    """
    return serve(run, port, log)


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
    try:
        result = build_app()(args=list(arguments) if arguments is not None else None, standalone_mode=False)
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


def _fail(error: BaseException, line: str, status: int) -> int:
    if os.environ.get("LEADLINE_DEBUG"):
        for debug_line in "".join(traceback.format_exception(error)).splitlines():
            log(debug_line)
    log(f"Error: {line}" if status != Cancelled.exit_status else line)
    return status


def _show(run: Run, given: Given, as_json: bool) -> None:
    diagnosis = Diagnosis(run, given.get("settings"))
    print_json(summary_json(diagnosis)) if as_json else print_text(summary_text(diagnosis))
