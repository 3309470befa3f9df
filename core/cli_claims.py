"""The step that finds and checks claims, as options of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from core.cli_files import check_free, occupant
from core.cli_live import LiveSettings, option
from core.errors import Cancelled, InputError
from core.llm import BACKENDS, LLM, CompletionCache, backend, default_cache_path
from core.pipeline.claims import find_claims
from core.pipeline.claims_options import DECOMPOSERS, VERIFIERS, ClaimsOptions
from core.pipeline.claims_run import run_for_claims
from core.run import Run
from core.terminal import ProgressLine, say, stoppable

_DEFAULTS = ClaimsOptions()


@dataclass(frozen=True, slots=True)
class ClaimsSettings:
    """Who takes answers apart into claims, and who judges them, as the command line gives it."""

    verifier: Annotated[str, option("--verifier", text=f"Who judges claims: {', '.join(VERIFIERS)}.")] = (
        _DEFAULTS.verifier
    )
    verifier_model: Annotated[
        str | None, option("--verifier-model", text="The judge's model, or the NLI model's name or folder.")
    ] = None
    verifier_llm: Annotated[
        str | None,
        option("--verifier-llm", text=f"The judge's back end ({', '.join(BACKENDS)}); else that of --llm."),
    ] = None
    verifier_url: Annotated[
        str | None, option("--verifier-url", text="Address of the judge's server; else --base-url.")
    ] = None
    decompose: Annotated[
        str,
        option("--decompose", text=f"Who finds the claims: {', '.join(DECOMPOSERS)}; auto = as --verifier."),
    ] = _DEFAULTS.decompose
    judge_repeats: Annotated[int, option("--judge-repeats", text="Verdicts of a judge on each claim.")] = (
        _DEFAULTS.repeats
    )

    def options(self) -> ClaimsOptions:
        """Return the step's own settings."""
        nli = self.verifier == "nli"
        return ClaimsOptions(
            verifier=self.verifier,
            verifier_model=self.verifier_model if nli else None,
            decompose=self.decompose,
            repeats=self.judge_repeats,
        )

    def open(self, live: LiveSettings) -> LLM | None:
        """Open the model that judges or decomposes; None where no language model is needed."""
        if not self.options().needs_llm:
            return None
        kind = backend(self.verifier_llm or live.llm).kind
        # The settings of one back end mean nothing to another.
        same = kind == live.llm
        named = self.verifier_model if self.verifier == "judge" else None
        return replace(
            live,
            llm=kind,
            model=named or (live.model if same else None),
            base_url=self.verifier_url or (live.base_url if same else None),
        ).open()


def claims_source(folder: str, out: str, options: ClaimsOptions, judge: LLM | None, overwrite: bool) -> Run:
    """Return the saved run whose answers are to be checked, or what an earlier try made of it.

    In its own folder a run gains claims; in another one there is a new run that names it as its parent.

    Raises
    ------
    InputError
        ``folder`` holds no run, or ``out`` another one.
    """
    if not Path(folder).is_dir():
        raise InputError(
            f"--steps claims works on the answers of a saved run, and {folder} is none; "
            "use --steps influence,claims for questions."
        )
    run = Run.load(folder)
    if Path(folder).resolve() == Path(out).resolve():
        return run
    derived = run_for_claims(run, options, None if judge is None else judge.name)
    check_free(derived.run_id, out, overwrite)
    return derived if overwrite or occupant(out) is None else Run.load(out)


def add_claims(run: Run, out: str, options: ClaimsOptions, judge: LLM | None, cache: str | None) -> Run:
    """Find and check the claims of a run, keeping what is done in ``out``.

    Raises
    ------
    Cancelled
        On a signal; what was done is kept.
    """

    def keep(partial: Run) -> None:
        partial.save(out)

    line = ProgressLine(unit="answers")
    with CompletionCache(cache or default_cache_path()) as store, stoppable() as cancelled:
        found = find_claims(
            run,
            options,
            llm=judge,
            cache=store,
            progress=line,
            cancelled=cancelled,
            on_question=keep,
        )
        line.end()
        was_stopped = cancelled() and not found.manifest["claims"]["complete"]
    if found is run and (Path(out) / "run.json").exists():
        say("The claims of this run are already there.")
        return run
    found.save(out)
    _tell(found.manifest["claims"], out, stopped=was_stopped)
    return found


def _tell(facts: Mapping[str, Any], out: str, *, stopped: bool) -> None:
    """Say what is missing and why; running the same command again asks for exactly that."""
    if stopped:
        raise Cancelled(
            f"Stopped on request; what was done is saved in {out}: run the same command again to go on."
        )
    for n, what, reasons in (
        (facts["n_left"], "questions could not be taken apart into claims", facts["left_reasons"]),
        (
            facts["n_unscored"],
            f"of {facts['n_cells']:,} claims × passages could not be judged",
            facts["reasons"],
        ),
        (len(facts["joint_left"]), "questions have pairs of passages that could not be judged", {}),
    ):
        if n:
            why = f": {' '.join(reasons)}" if reasons else "."
            say(f"{n:,} {what}{why} Run the same command again to try them again.")
