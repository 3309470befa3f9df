"""The command that calibrates: answers with known truth become scores in a store, or weights in a file."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer

from core import diagnostics
from core.cli.live import Work, begun, opened_work, step_types
from core.cli.options import Given, LiveOptions, field_options, setting_options
from core.cli.output import log, print_json, print_text, stoppable
from core.cli.weights import learned_weights
from core.conformal import CalibrationStore, ConformalRAG, cases_of, labels_needed
from core.conformal.definitions import DEFAULT_ALPHA
from core.conformal.rag import SCORE, statement, summary
from core.conformal.scores import AUTO
from core.diagnosis import Diagnosis, settings_of
from core.errors import Cancelled, InputError
from core.llm import CompletionCache, default_cache_path
from core.pipeline import ProgressLine, RunOptions
from core.pipeline.rows import questions_of
from core.pipeline.steps import asks_questions, options_of
from core.run import Run
from core.sources.continue_run import is_run
from core.text.display import count, number

_SETTINGS = ("alpha", "score")
# Of the step that answers and of the one that samples.
_ANSWER_OPTIONS, _SAMPLE_OPTIONS = ("style", "max_tokens"), ("samples", "seed")


def calibration_options() -> list[inspect.Parameter]:
    """Return the options beside the store: data, model, retrieval, prompt, samples, α and score."""
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
            help="Questions with reference answers, JSON Lines or CSV; for --weights, answers with their "
            "signals and labels; or a saved run."
        ),
    ],
    given: Given,
    store: Annotated[str | None, typer.Option("--store", help="File of the calibration scores.")] = None,
    weights: Annotated[
        str | None, typer.Option("--weights", help="File of the weights and the map to be learned.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file of --weights.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Calibrate on answers whose truth is known, so that new answers can be flagged with a promise.

    A question with reference answers is asked once, and again for each sample; a saved run is taken as it is.
    The same command resumes a stopped calibration. With --weights, the weights of the confidence signals are
    learned from answers that are there; no model is asked.
    """
    if weights is not None and store is None:
        learned, text = learned_weights(labelled, weights, overwrite)
        print_json(learned) if as_json else print_text(text)
        return
    if store is None or weights is not None:
        raise InputError(
            "Give either --store (scores of conformal prediction) or --weights (weights of the confidence)."
        )
    settings = given.get("settings", {})
    alpha = float(settings.get("alpha", DEFAULT_ALPHA))
    saved = is_run(labelled)
    found = _from_run(labelled, store, settings, alpha) if saved else _asked(labelled, store, given, alpha)
    facts = {"store": store, "alpha": alpha, **found, "labels_needed": labels_needed(alpha)}
    facts["statement"] = "" if facts["reason"] else statement(alpha)
    if as_json:
        print_json(facts)
    else:
        print_text(_text(facts))


def _from_run(folder: str, path: str, settings: Any, alpha: float) -> dict[str, Any]:
    diagnosis = Diagnosis(Run.load(folder), settings)
    cases, provenance = cases_of(diagnosis)
    if not cases:
        raise InputError(
            f"The run {folder} has no answer with a label or a reference answer; nothing can be calibrated."
        )
    with CalibrationStore(path, provenance) as store:
        new = store.add(cases, provenance)
        found = summary(store, alpha, diagnosis["conformal"].score)
        skipped = len(cases) - new
        return {**found, "new_calibrated": new, "skipped": skipped, "n_failed": 0, "failure": ""}


def _asked(source: str, path: str, given: Given, alpha: float) -> dict[str, Any]:
    if given.get("settings", {}).get("score", AUTO) not in (AUTO, SCORE):
        raise InputError(f"Questions are calibrated by {SCORE}; --score is for saved runs.")
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
        lines.append("Only correct answers count as labels here.")
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
