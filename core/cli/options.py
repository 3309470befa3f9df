"""Command-line options made from dataclass fields and from settings of diagnostics."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_args, get_type_hints

import typer

from core.llm import BACKENDS
from core.pipeline import ModelChoice, Option
from core.presets import ABOUT, preset
from core.socket import Setting

# Given values by owner (a step, "settings" …) and name.
Given = Mapping[str, Mapping[str, Any]]
# What several commands take.
RunArg = Annotated[str, typer.Argument(help="Folder of a saved run.")]
OutOpt = Annotated[str, typer.Option("--out", help="Folder for the run.")]
JsonOpt = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
OverwriteOpt = Annotated[bool, typer.Option("--overwrite", help="Replace another run in --out.")]


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """Data and model of a live run.

    API keys come from environment variables: every process on the machine can read a command line.
    """

    llm: Annotated[str, Option("--llm", f"Back end: {', '.join(BACKENDS)}.")] = "embedded"
    model: Annotated[str | None, Option("--model", "Name or path; by default the back end's.")] = None
    base_url: Annotated[str | None, Option("--base-url", "Address of the model's server.")] = None
    limit: Annotated[int | None, Option("--limit", "Only the first N questions.")] = None
    corpus: Annotated[
        str | None, Option("--corpus", "Folder or JSONL of documents for questions without any.")
    ] = None
    cache: Annotated[str | None, Option("--cache", "File of finished calls.")] = None
    steps: str = "influence"

    @property
    def choice(self) -> ModelChoice:
        """The model that answers."""
        return ModelChoice(self.llm, self.model, self.base_url)


def field_options(owner: str, kind: type) -> list[inspect.Parameter]:
    """Return an option, by default None, for each field of a dataclass that has an `Option`."""
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for one in fields(kind):
        base, *extras = get_args(hints[one.name]) or (None,)
        option = next((extra for extra in extras if isinstance(extra, Option)), None)
        if option is not None:
            shown = str(one.default) if option.shows_default and one.default is not None else False
            name = _switch(option.name) if base is bool else option.name
            found.append(parameter(owner, one.name, base, name, option.help, shown))
    return found


def setting_options(settings: Sequence[Setting]) -> list[inspect.Parameter]:
    """Return an option for each setting of the diagnostics."""
    return [
        parameter("settings", one.name, bool, _switch(one.option), one.help, str(one.default))
        if one.is_switch
        else parameter("settings", one.name, str, one.option, one.help, str(one.default))
        if one.is_choice
        else parameter("settings", one.name, float, one.option, one.help, f"{one.default:g}")
        for one in settings
    ]


def with_options(
    options: Sequence[inspect.Parameter],
) -> Callable[[Callable[..., int | None]], Callable[..., int | None]]:
    """Add options to a command, which gets the given values in ``given`` if it has that parameter."""

    def wrap(command: Callable[..., int | None]) -> Callable[..., int | None]:
        own = inspect.signature(command, eval_str=True)
        kept = [one for one in own.parameters.values() if one.name != "given"]

        @functools.wraps(command)
        def wrapped(**values: Any) -> int | None:
            given: dict[str, dict[str, Any]] = {}
            for option in options:
                owner, _, name = option.name.partition("__")
                value = values.pop(option.name)
                given.setdefault(owner, {}).update({} if value is None else {name: value})
            _fill(given, options)
            return command(**values, **({"given": given} if "given" in own.parameters else {}))

        keywords = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in kept]
        wrapped.__signature__ = own.replace(  # type: ignore[attr-defined]
            parameters=[*keywords, *options]
        )
        return wrapped

    return wrap


def preset_option() -> inspect.Parameter:
    """Return the option that sets several others at once, where they are not given."""
    return parameter("preset", "name", str, "--preset", f"Reliability, {ABOUT}.", False)


def _fill(given: dict[str, dict[str, Any]], options: Sequence[inspect.Parameter]) -> None:
    """Put the values of the preset where none is given: into the settings and into the command's options."""
    name = given.pop("preset", {}).get("name")
    if name is None:
        return
    chosen = preset(name)
    # Also of a command without options for them: a summary of what was just done is printed with them.
    given["settings"] = {**chosen.settings, **given.get("settings", {})}
    for option in options:
        owner, _, field = option.name.partition("__")
        if owner != "settings" and field in chosen.options:
            given[owner].setdefault(field, chosen.options[field])


def _switch(name: str) -> str:
    return f"{name}/--no-{name.removeprefix('--')}"


def parameter(
    owner: str, name: str, base: Any, option: str, about: str, shown: str | bool
) -> inspect.Parameter:
    """Return one command-line option; `with_options` passes its value by owner and name."""
    annotation = Annotated[base | None, typer.Option(option, help=about, show_default=shown)]
    return inspect.Parameter(
        f"{owner}__{name}", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )
