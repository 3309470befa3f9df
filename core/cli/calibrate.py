"""The command that calibrates: answers with known truth become a calibration in a store."""

from __future__ import annotations

import inspect
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from core import diagnostics
from core.calibration.in_use import AUTO, in_use, kept_method
from core.calibration.saved import Method
from core.cli.live import Work, begun, opened_work, step_types
from core.cli.options import Given, LiveOptions, field_options, setting_options
from core.cli.output import log, log_report, print_json, print_text, stoppable
from core.confidence import Labelled, Learned, labelled_run
from core.confidence import learn as learn_from
from core.conformal import CalibrationStore, ConformalRAG, cases_of, labels_needed
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
from core.sources.dataset import is_run
from core.sources.formats import import_file
from core.stats import Interval
from core.text.display import count, number, p_text

_SETTINGS = ("alpha", "weights")
_MEASURES = {"accuracy": "accuracy", "brier": "Brier score", "auroc": "AUROC"}
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
    taught: Learned | None = None
    if run is not None:
        found, taught = _from_run(labelled, run, store, settings, alpha, learn)
    elif learn:
        raise InputError("--learn is for answers with their signals: a saved run, or a file that has them.")
    else:
        found = _asked(labelled, store, given, alpha)
    facts = {"store": store, "alpha": alpha, **found, "labels_needed": labels_needed(alpha)}
    facts["statement"] = "" if facts["reason"] else statement(alpha)
    if taught is not None:
        facts["learned"] = _learned_facts(taught)
    if as_json:
        print_json(facts)
    else:
        print_text("\n".join([*([] if taught is None else _learned_text(taught)), _text(facts)]))


def _imported(source: str) -> Run | None:
    """Return a file that says how sure its answers are as the run that an import makes; None for others."""
    if not Path(source).is_file():
        return None
    try:
        found = import_file(source)
    except InputError:  # questions to be asked are read in their own way
        return None
    if not len(found.run["signals"]) and not len(found.run["confidences"]):
        return None
    log_report(found.report, source)
    return found.run


def _from_run(
    source: str, run: Run, path: str, settings: Any, alpha: float, learn: bool
) -> tuple[dict[str, Any], Learned | None]:
    diagnosis = Diagnosis(run, settings)
    taught = _taught(labelled_run(diagnosis, teaching=True), in_use(diagnosis).method) if learn else None
    used = in_use(diagnosis, None if taught is None else taught.method)
    cases, provenance = cases_of(diagnosis, used.method if taught is not None else None)
    if not cases:
        raise InputError(f"{source} has no labelled answer; nothing can be calibrated.")
    with CalibrationStore(path, provenance) as store:
        new = store.add(cases, provenance, method=kept_method(used))
        found = summary(store, alpha, used.score)
    counts = {"new_calibrated": new, "skipped": len(cases) - new, "n_failed": 0, "failure": ""}
    return {**found, **counts}, taught


def _taught(rows: Labelled, start: Method) -> Learned:
    log(f"Learning from {count(rows.n, 'answer')}; thousands take minutes.")
    found = learn_from(rows, start.weighting)
    if found.proposed is None:
        raise InputError(f"Nothing can be learned: {found.weights.reason}.")
    return found


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


def _learned_facts(found: Learned) -> dict[str, Any]:
    """Return what was learned as plain values."""
    weights = found.weights
    return {
        **{name: value for name, value in vars(weights).items() if name != "best"},
        "learned": [
            {name: value for name, value in vars(one).items() if name != "confidences"}
            for one in weights.learned
        ],
        "keeps_default": weights.best is None,
        "weights": dict(found.method.weighting.weights),
        "compared_method": found.proposed.method if found.proposed else None,
        "compared": [one._asdict() for one in found.compared],
        "map": found.method.map.kind,
        "maps": {kind: asdict(one) for kind, one in found.maps.items()},
    }


def _learned_text(found: Learned) -> list[str]:
    """Return what was learned, line by line."""
    weights, kind = found.weights, found.method.map.kind
    chosen = _named(found.method.weighting.weights)
    if weights.best is None:
        lines = [f"Keep the default weights ({chosen}): {weights.reason}."]
    else:
        lines = [f"Use the weights learned by {weights.best.method}: {chosen}."]
    lines += [
        f"Learned from {count(weights.n, 'answer')} to {count(weights.n_questions, 'question')}, "
        f"{weights.n_correct:,} of them correct; these do not calibrate.",
        f"AUROC of the default {number(weights.default_auroc)} (0.50 by chance).",
    ]
    for one in weights.learned:
        each = (f"{name} {number(w)} {_interval(one.intervals[name])}" for name, w in one.weights.items())
        lines.append(
            f"  {one.method:<10}{', '.join(each)}; AUROC {number(one.auroc)}, "
            f"gain {number(one.gain)} {_interval(one.gain_interval)}"
        )
    if found.proposed is not None:
        lines.append(f"Default against {found.proposed.method}, on answers that neither was learned from:")
    for other in found.compared:
        lines.append(
            f"  {_MEASURES[other.measure]:<13}{number(other.a)} and {number(other.b)}, difference "
            f"{number(other.difference)} {_interval((other.low, other.high))}, {p_text(other.p_adjusted)}"
        )
    lines.append("Maps from confidence to probability, cross-validated, without and with:")
    for name, mapped in found.maps.items():
        before, after = mapped.before, mapped.after
        lines.append(
            f"  {name:<10}ECE {number(before.ece)} and {number(after.ece)}, "
            f"Brier score {number(before.brier, '{:.3f}')} and {number(after.brier, '{:.3f}')}"
        )
    with_map = "no map, since none lowers the Brier score" if kind == "none" else f"the map {kind}"
    held = "default" if weights.best is None else "learned"
    lines.append(f"Kept: the {held} weights and {with_map}.")
    lines.append("Intervals: 95 %, of both gains at once. p: adjusted for three measures (Holm).")
    return lines


def _named(weights: Any) -> str:
    return ", ".join(f"{name} {number(weight)}" for name, weight in weights.items())


def _interval(ends: Interval) -> str:
    return f"({number(ends[0])} to {number(ends[1])})"
