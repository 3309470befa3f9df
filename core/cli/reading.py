"""The commands that read saved runs: show, compare, check, report, export."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from core import reviews
from core.cli.options import Given, JsonOpt, OutOpt, OverwriteOpt, RunArg
from core.cli.output import free_file, print_json, print_text, save_run, write_file
from core.diagnosis import Diagnosis
from core.errors import InputError
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
from core.severity import SEVERITIES


def summary(run: RunArg, given: Given, as_json: JsonOpt = False) -> None:
    """Print the headline numbers of a saved run, each with its n."""
    show(Run.load(run), given, as_json)


def compare(
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


def signals(run: RunArg, given: Given, as_json: JsonOpt = False) -> None:
    """Correlate every signal of a saved run with every other: which agree, which find incorrect answers."""
    found = signal_agreement(Diagnosis(Run.load(run), given.get("settings")))
    print_json(signals_facts(found)) if as_json else print_text(signals_text(found))


def check(
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


def report(
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


def trend(
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


def labels(run: RunArg, out: OutOpt, overwrite: OverwriteOpt = False, as_json: JsonOpt = False) -> None:
    """Save a run in which answers are correct or not as most reviewers of RUN labelled them.

    Ties are left out. Confidence, conformal and the comparison of uncertainty measures then use these labels.
    """
    parent = Run.load(run)
    found = reviews.labelled(parent, reviews.read_all(Path(run).parent, parent.whole_id))
    save_run(found.run, out, overwrite)
    if as_json:
        facts = {"n_labelled": found.n_labelled, "n_tied": found.n_tied, "people": [*found.people]}
        print_json({"run_id": found.run.run_id, **facts})
    else:
        print_text(found.sentence)


def export(
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
    known = exporters(reviews.combined(reviews.read_all(Path(run).parent, diagnosis.run.whole_id)))
    facts = {"format": file_format, "run_id": diagnosis.run.run_id}
    _write(target, known[file_format].write(diagnosis), facts, as_json)


def show(run: Run, given: Given, as_json: bool) -> None:
    """Print the headline numbers of a run."""
    diagnosis = Diagnosis(run, given.get("settings"))
    print_json(summary_json(diagnosis)) if as_json else print_text(summary_text(diagnosis))
