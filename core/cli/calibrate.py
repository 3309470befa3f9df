"""The command that calibrates: answers with known truth become a calibration in a store."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from core import diagnostics
from core.calibration.in_use import AUTO, COLUMNS, WEIGHTED, in_use, kept_method, read_weights
from core.calibration.in_use import provenance as provenance_in_use
from core.calibration.provenance import Provenance
from core.calibration.saved import Method, digest
from core.calibration.weighted import confidences, configured
from core.cli.files import log_report
from core.cli.learned import learned_facts, learned_text
from core.cli.live import Work, begun, opened_work, step_types
from core.cli.options import Given, LiveOptions, field_options, setting_options
from core.cli.output import log, print_json, print_text, stoppable
from core.confidence import Labelled, Learned, labelled_run
from core.confidence import labelled as labelled_rows
from core.confidence import learn as learn_from
from core.conformal import CalibrationStore, Case, ConformalRAG, cases_of, labels_needed
from core.conformal.definitions import DEFAULT_ALPHA
from core.conformal.rag import SCORE, statement, summary
from core.diagnosis import Diagnosis
from core.errors import Cancelled, InputError
from core.llm import CompletionCache, default_cache_path
from core.pipeline import ProgressLine, RunOptions
from core.pipeline.rows import questions_of
from core.pipeline.steps import asks_questions, options_of
from core.run import Run
from core.socket import settings_of
from core.sources.content import read_rows
from core.sources.continue_run import is_run
from core.sources.formats import import_file
from core.text.display import count, number

_SETTINGS = ("alpha", "weights")
_COLUMNS = ("query", "answer", "expected_answer", "is_correct", *COLUMNS)
# Of the step that answers and of the one that samples.
_ANSWER_OPTIONS, _SAMPLE_OPTIONS = ("style", "max_tokens"), ("samples", "seed")


def calibration_options() -> list[inspect.Parameter]:
    """Return the options beside the store: data, model, retrieval, prompt, samples, α and signals."""
    steps = step_types()
    answering = next(name for name, kind in steps.items() if asks_questions(kind))
    return [
        *field_options("live", LiveOptions),
        *field_options("retrieval", RunOptions),
        *_of_fields(answering, _ANSWER_OPTIONS),
        *_of_fields(_sampling(), _SAMPLE_OPTIONS),
        *setting_options([one for one in settings_of(diagnostics.DIAGNOSTICS) if one.name in _SETTINGS]),
    ]


def calibrate(
    labelled: Annotated[
        str,
        typer.Argument(
            help="Questions with reference answers, or answers with signals and labels, JSON Lines or CSV; "
            "or a saved run."
        ),
    ],
    given: Given,
    store: Annotated[str, typer.Option("--store", help="File of the calibration.")],
    learn: Annotated[
        bool,
        typer.Option(
            "--learn",
            help="Learn weights and a map to a probability from half of the questions; the others calibrate.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Calibrate on answers whose truth is known, so that new answers can be given or withheld with a promise.

    A question with reference answers is asked once, and again for each sample; a saved run, or a file of
    answers with their signals, is taken as it is. The same command resumes a stopped calibration.
    """
    settings = given.get("settings", {})
    alpha = float(settings.get("alpha", DEFAULT_ALPHA))
    run = Run.load(labelled) if is_run(labelled) else _imported(labelled)
    answers = None if run is not None else _answers(labelled)
    if run is None and answers is None and learn:
        raise InputError("--learn is for answers with their signals: a saved run, or a file that has them.")
    taught: Learned | None = None
    if run is not None:
        found, taught = _from_run(labelled, run, store, settings, alpha, learn)
    elif answers is not None:
        found, taught = _from_file(answers, store, settings, alpha, learn)
    else:
        found = _asked(labelled, store, given, alpha)
    facts = {"store": store, "alpha": alpha, **found, "labels_needed": labels_needed(alpha)}
    facts["statement"] = "" if facts["reason"] else statement(alpha)
    if taught is not None:
        facts["learned"] = learned_facts(taught)
    if as_json:
        print_json(facts)
    else:
        print_text("\n".join([*([] if taught is None else learned_text(taught)), _text(facts)]))


def _imported(source: str) -> Run | None:
    """Return a file of judged answers with a confidence as the run that an import makes; None for others."""
    if not Path(source).is_file():
        return None
    try:
        run = import_file(source).run
    except InputError:
        return None
    q = run.queries
    has_signals = len(run["signals"]) or len(run["confidences"])
    return run if has_signals and (q["correct"].notna() & q["answer"].notna()).any() else None


def _answers(source: str) -> Labelled | None:
    """Return the labelled answers of a file that has the signals of the confidence; None for questions."""
    if is_run(source) or not Path(source).is_file():
        return None
    table, report = read_rows(source, source, _COLUMNS)
    if not {*COLUMNS} & {*table}:
        return None
    log_report(report, source)
    rows = labelled_rows(table)
    if not rows.n:
        raise InputError(f"{source} has no answer with a label and all signals{rows.left_out(': ')}.")
    return rows


def _from_run(
    source: str, run: Run, path: str, settings: Any, alpha: float, learn: bool
) -> tuple[dict[str, Any], Learned | None]:
    diagnosis = Diagnosis(run, settings)
    taught = _taught(labelled_run(diagnosis, teaching=True), in_use(diagnosis).method) if learn else None
    used = in_use(diagnosis, None if taught is None else taught.method)
    cases, provenance = cases_of(diagnosis, used.method if taught is not None else None)
    if not cases:
        raise InputError(f"{source} has no labelled answer; nothing can be calibrated.")
    return _stored(path, cases, provenance, kept_method(used), alpha, used.score), taught


def _from_file(
    rows: Labelled, path: str, settings: Any, alpha: float, learn: bool
) -> tuple[dict[str, Any], Learned | None]:
    text = str(settings.get("weights", AUTO))
    start = Method(configured(None if text == AUTO else read_weights(text)))
    taught = _taught(rows.half(), start) if learn else None
    method = start if taught is None else taught.method
    confidence = method.map(confidences(rows.signals, method.weighting))
    cases = [
        Case(question, "", "", "", round(1 - value, 9), right == 1)
        for question, value, right in zip(rows.questions, confidence.tolist(), rows.correct, strict=True)
        if digest(question) not in method.learned_from
    ]
    provenance, kept = provenance_in_use({}, WEIGHTED, method), json.dumps(method.used().to_json())
    return _stored(path, cases, provenance, kept, alpha, None), taught


def _taught(rows: Labelled, start: Method) -> Learned:
    log(f"Learning from {count(rows.n, 'answer')}; thousands take minutes.")
    found = learn_from(rows, start.weighting)
    if found.proposed is None:
        raise InputError(f"Nothing can be learned: {found.weights.reason}.")
    return found


def _stored(
    path: str, cases: list[Case], provenance: Provenance, method: str | None, alpha: float, score: Any
) -> dict[str, Any]:
    with CalibrationStore(path, provenance) as store:
        new = store.add(cases, provenance, method=method)
        found = summary(store, alpha, score)
        return {**found, "new_calibrated": new, "skipped": len(cases) - new, "n_failed": 0, "failure": ""}


def _asked(source: str, path: str, given: Given, alpha: float) -> dict[str, Any]:
    if given.get("settings", {}).get("weights", AUTO) not in (AUTO, SCORE):
        raise InputError(f"Questions are calibrated by {SCORE}; --weights is for answers with signals.")
    work = opened_work(source, given)
    with stoppable() as cancelled, CompletionCache(work.live.cache or default_cache_path()) as cache:
        run = begun(work, cancelled)
        with _opened(work, run, path, given, alpha, cache) as conformal:
            question = questions_of(run)
            rows = [question(name) for name in run.queries["query_id"]]
            asked = [one for one in rows if one.query["reference_answers"] is not None]
            if not asked:
                raise InputError(f"No question of {source} has a reference answer; give one to calibrate on.")
            if len(asked) < len(rows):
                log(f"{count(len(rows) - len(asked), 'question')} without a reference answer left out.")
            line = ProgressLine("questions")
            try:
                found = conformal.calibrate(
                    [str(one.query["question"]) for one in asked],
                    [[(p["title"] or "", p["text"] or "") for p in one.passages] for one in asked],
                    [[*one.query["reference_answers"]] for one in asked],
                    kinds=[one.query["kind"] for one in asked],
                    progress=line,
                    cancelled=cancelled,
                )
            except Cancelled as error:
                line.clear()
                raise Cancelled(
                    f"Stopped on request; {count(len(conformal.store), 'answer')} in {path}: run the same "
                    "command again to go on."
                ) from error
            line.end()
            return found


def _opened(
    work: Work, run: Run, path: str, given: Given, alpha: float, cache: CompletionCache
) -> ConformalRAG:
    step = work.answering
    assert step is not None
    llm = work.llms[step.name]
    assert llm is not None
    samples = step_types()[_sampling()](**given.get(_sampling(), {}))
    chosen = options_of(step)
    return ConformalRAG(
        llm,
        path,
        alpha,
        n_samples=samples.samples,
        seed=samples.seed,
        style=chosen["style"],
        max_tokens=chosen["max_tokens"],
        retriever=run.manifest["retriever"],
        cache=cache,
    )


def _sampling() -> str:
    """Return the name of the step that samples answers."""
    return next(name for name, kind in step_types().items() if "samples" in kind.fills)


def _of_fields(step: str, names: tuple[str, ...]) -> list[inspect.Parameter]:
    every = field_options(step, step_types()[step])
    return [one for one in every if one.name.removeprefix(f"{step}__") in names]


def _text(facts: dict[str, Any]) -> str:
    n, labels = facts["n_correct"], facts["n_labels"]
    lines = [
        f"{facts['store']}: {count(facts['total_calibrated'], 'answer')}, {facts['new_calibrated']:,} new, "
        f"{facts['skipped']:,} there before.",
        f"{count(labels, 'label')}, {n:,} of them correct; those calibrate.",
    ]
    if facts["n_failed"]:
        lines.append(
            f"{count(facts['n_failed'], 'question')} failed and will be asked again next time: "
            f"{facts['failure']}"
        )
    if facts["reason"]:
        lines.append(f"No threshold: {facts['reason'][0].lower()}{facts['reason'][1:]}")
    else:
        lines.append(
            f"Threshold {number(facts['threshold'], '{:.3f}')} at α = {facts['alpha']:g}: flagged is what "
            f"scores more. {facts['statement']}"
        )
    if facts["certified_threshold"] is not None:
        lines.append(
            f"Certified at α = {facts['alpha']:g}: answer from a confidence of "
            f"{number(facts['certified_threshold'])} on, by all labels."
        )
    elif labels:
        lines.append(f"No confidence is certified: {facts['certified_missing']}.")
    return "\n".join(lines)
