"""A seeded simulation: texts and observations whose truth is planted, for every diagnostic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from core.errors import InputError
from core.run import Run
from core.sources.simulation_attribution import MEASURED, either_enough, measured_subsets
from core.sources.simulation_losses import TRIED, counted_stages, draw_stages, tried_fixes
from core.sources.simulation_tables import Tables
from core.sources.simulation_truth import AUROC_OF_LEVEL, SAMPLES, TOGETHER, Truth, draw_truth

CASES = ("aligned", "divergent", "ties", "empty", "inert", "redundant", "parametric", "position")
SHOWN = 1_000  # questions that a page simulates; more are for the command line
_BLOCK = 2_000  # questions made at a time, which bounds the memory

_RANGES: dict[str, tuple[float, float]] = {
    "queries": (10, 100_000),
    "passages": (3, 15),
    "seed": (0, 2**32 - 1),
    "influential": (1, 15),
    "repeats": (0, 50),
}


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """What to simulate.

    Attributes
    ----------
    queries : int
        Questions, 10 to 100,000.
    passages : int
        Passages per question, 3 to 15.
    seed : int
        0 or more; the same options give the same run.
    influential : int
        Passages per ordinary question that carry influence, 1 to ``passages``. The others have none.
    share_divergent : float
        Share of the ordinary questions whose influential passages are placed at random; in the
        others they come first, strongest first. In [0, 1].
    noise : float
        Chance of each word to change in every ablated answer and every repeat. In [0, 1].
    share_ties, share_empty, share_inert, share_redundant, share_parametric, share_position : float
        Shares of all questions where: the influential passages are equally strong; the baseline is
        empty; nothing changes the answer; the same, since two passages hold the same evidence (the
        closed-book answer differs); the same, since the model knows it (the closed-book answer is
        equal); influence follows the place in the prompt, ends first. Together at most 1; what is
        left are the ordinary questions.
    repeats : int
        Unablated repeats per question, 0 to 50: what the noise floor is measured from.

    Raises
    ------
    InputError
        An option outside its range; the message says which.
    """

    queries: int = 50
    passages: int = 10
    seed: int = 42
    influential: int = 3
    share_divergent: float = 0.4
    noise: float = 0.0
    share_ties: float = 0.1
    share_empty: float = 0.06
    share_inert: float = 0.06
    share_redundant: float = 0.06
    share_parametric: float = 0.06
    share_position: float = 0.1
    repeats: int = 3

    def __post_init__(self) -> None:
        for option in fields(self):
            low, high = _RANGES.get(option.name, (0, 1))
            value = getattr(self, option.name)
            whole = option.name in _RANGES
            kind = (int, np.integer) if whole else (int, float, np.integer, np.floating)
            if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
                number = "a whole number" if whole else "a number"
                raise InputError(f"{option.name} must be {number} from {low} to {high}, got {value!r}.")
        if self.influential > self.passages:
            raise InputError(
                f"influential must be at most the number of passages ({self.passages}), "
                f"got {self.influential}."
            )
        if sum(self.special_shares.values()) > 1 + 1e-9:
            raise InputError(
                f"The shares {', '.join(f'share_{name}' for name in self.special_shares)} "
                f"must sum to at most 1, got {sum(self.special_shares.values()):g}."
            )

    @property
    def special_shares(self) -> dict[str, float]:
        """Share of all questions for each case that is not ordinary."""
        return {case: getattr(self, f"share_{case}") for case in CASES[2:]}


def simulate(options: SimulationOptions | None = None) -> Run:
    """Make a run whose truth is known, marked as simulated, with data for every diagnostic.

    Parameters
    ----------
    options : SimulationOptions, optional
        What to simulate; by default 50 questions with 10 passages each.

    Returns
    -------
    Run
        ``manifest["planted"]`` holds by diagnostic what its headline numbers should be; the columns
        ``planted_*`` hold it question by question.

    Notes
    -----
    Influence: every answer has 20 different words. Leaving out a passage of planted influence m / 20 replaces
    m of them by other words, so that 1 - ROUGE-L F1 is exactly that. ``planted_influence`` is NaN in
    questions with an empty baseline, where it has no meaning. The case ``divergent`` says how passages were
    placed: at random, which agrees with the order of retrieval now and then.

    The rest is drawn for each question: a level of confidence, uniform from 0.2 to 1, with exactly which
    probability its answer is correct; whether the gold passage was retrieved, and where; in the first 200
    questions, the stage at which an answer is lost; in the first 50, the answer's log-probability under
    random subsets of the passages; which passages support its two claims; the meanings of 10
    samples, the more often that of the answer the higher the level; drops of log-probability; verdicts that
    meet incorrect answers more often; and which half
    calibrates. No LLM calls; 0.1 s for 50 questions, about 20 s for 100,000.

    Examples
    --------
    >>> run = simulate(SimulationOptions(queries=10))
    >>> run.simulated, len(run.passages), sorted(run.manifest["planted"])[:2]
    (True, 100, ['answers', 'attribution'])
    """
    options = options or SimulationOptions()
    rng = np.random.default_rng(options.seed)
    cases = np.array(_cases(options, rng))
    calibrates = rng.permutation(options.queries) < options.queries // 2
    width = max(3, len(str(options.queries)))
    parts: dict[str, list[pd.DataFrame]] = {}
    planted = []
    for start in range(0, len(cases), _BLOCK):
        case = cases[start : start + _BLOCK]
        truth = draw_truth(case, int(options.passages), int(options.influential), rng)
        block = Tables(truth, start + 1, width, options.noise, rng)
        for name, frame in block.all(options.repeats).items():
            parts.setdefault(name, []).append(frame)
        if not start:
            parts["context_samples"] = [block.context_samples()]
        # From numbers of their own: what else is drawn stays as it is.
        stage = draw_stages(truth, 0 if start else TRIED, np.random.default_rng([int(options.seed), start]))
        if not start:
            added = tried_fixes(block, stage) | measured_subsets(block)
            parts |= {name: [frame] for name, frame in added.items()}
        either = either_enough(truth, 0 if start else MEASURED)
        planted.append({**_counted(truth), "losses": counted_stages(stage), "attribution": either})
    frames = {name: pd.concat(found, ignore_index=True) for name, found in parts.items()}
    del parts
    frames["queries"]["calibrates"] = calibrates
    return Run.create(
        {
            "source": "simulation",
            "name": f"Simulated: {options.queries:,} questions × {options.passages}, seed {options.seed}",
            # As JSON can hold them, also where numpy's numbers were given.
            "options": {n: v.item() if isinstance(v, np.generic) else v for n, v in asdict(options).items()},
            "notes": ["Simulated data: no model answered, and no document was searched."],
            "steps": _steps(options),
            "planted": _planted(planted),
        },
        **frames,
    )


def _steps(options: SimulationOptions) -> dict[str, Any]:
    """Return what the steps that fill such tables would say of themselves."""
    done = {"model": None, "n_done": int(options.queries), "n_left": 0, "n_calls": 0, "complete": True}
    facts: dict[str, dict[str, Any]] = {
        "influence": {"options": {"repeats": int(options.repeats), "closed_book": True}},
        "losses": {
            "n_done": min(TRIED, int(options.queries)),
            "n_left": max(0, int(options.queries) - TRIED),
        },
        "attribution": {
            "n_done": min(MEASURED, int(options.queries)),
            "n_left": max(0, int(options.queries) - MEASURED),
        },
        "likelihood": {},
        "claims": {"decomposition": "simulation", "verifier": "simulation"},
        "uncertainty": {"samples": SAMPLES},
        "conformal": {"options": {"seed": int(options.seed), "calibration": None}},
        "validation": {},
        "confidence": {"options": {"calibration": None}},
    }
    return {name: {"options": {}, **done, "notes": [], **own} for name, own in facts.items()}


def _counted(truth: Truth) -> dict[str, Any]:
    """Return by diagnostic and key of a `core.socket.Number` counts or means of each question.

    An average leaves NaN out; a single number holds for all.
    """
    every, gold = np.arange(len(truth.case)), truth.gold
    found, answered = gold >= 0, ~truth.empty
    wrong = answered & ~truth.correct
    moves = truth.replaced > 0
    others = truth.replaced.copy()
    others[every, gold] = -1.0
    leads = truth.replaced[every, gold] > others.max(axis=1)
    supports = truth.supports & truth.scored
    supported = supports.any(axis=2) | (truth.kinds == TOGETHER)
    known = supported | truth.scored.all(axis=2)
    evidence, unclear = supports.any(axis=1), ~truth.scored.all(axis=1)
    quadrants = {
        "used evidence": moves & evidence,
        "distractor": moves & ~evidence & ~unclear,
        "redundant or wasted": ~moves & evidence,
        "idle": ~moves & ~evidence & ~unclear,
        "undefined": ~evidence & unclear,
    }
    sizes = np.stack([(truth.meanings == number).sum(axis=1) for number in (1, 2, 3)], axis=1)
    by_answer = np.nan_to_num(truth.drop, nan=-9.0).argmax(axis=1) == gold
    return {
        "answers": {"n_correct": truth.correct, "n_empty_answers": truth.empty},
        "retrieval_quality": {
            **{f"hit_at_{depth}": (found & (gold < depth)).astype(float) for depth in (1, 3)},
            "mrr": np.where(found, 1 / np.maximum(gold + 1, 1), 0.0),
            "gold_most_influential": np.where(found & answered & moves.any(axis=1), leads, np.nan),
        },
        "likelihood": {
            "gold_by_answer": np.where(found & answered, by_answer, np.nan),
            "gold_by_reference": 1.0,
            "n_misleading": truth.misleading,
            "n_ignored": truth.ignored,
        },
        "claims": {
            "n_claims_supported": (supported & known).sum(axis=1)[answered],
            "n_claims_unscored": (~known).sum(axis=1)[answered],
            "n_cells_unscored": (~truth.scored).sum(axis=(1, 2))[answered],
            "quadrants": {name: cells.sum(axis=1)[answered] for name, cells in quadrants.items()},
        },
        "uncertainty": {
            "mean_meaning_share": sizes.max(axis=1) / SAMPLES,
            "n_baseline_disagrees": answered & (sizes[:, 0] < sizes.max(axis=1)),
        },
        "validation": {
            "incorrect_stopped": wrong & truth.stopped,
            "correct_stopped": truth.correct & truth.stopped,
            "flagged_by_EvidenceOverlap": wrong & truth.doubted,
        },
        "confidence": {
            "mean_confidence": np.where(answered, truth.level, np.nan),
            "confidence_gap": 0.0,
            "confidence_auroc": AUROC_OF_LEVEL,
        },
    }


def _planted(blocks: Sequence[Any]) -> Any:
    """Return what `_counted` gave of all blocks as one: sums of counts and means."""
    first = blocks[0]
    if isinstance(first, dict):
        found = {key: _planted([block[key] for block in blocks]) for key in first}
        return {key: value for key, value in found.items() if value == value}
    if isinstance(first, float):
        return first
    values = pd.Series(np.concatenate(blocks))
    return float(values.mean()) if values.dtype.kind == "f" else int(values.sum())


def _cases(options: SimulationOptions, rng: np.random.Generator) -> list[str]:
    """Assign the planted cases: shares rounded together, so that they never exceed the questions."""
    special = options.special_shares
    ends = np.rint(np.cumsum(list(special.values())) * options.queries).astype(int)
    ends = np.minimum(ends, options.queries)
    counts = np.diff(ends, prepend=0)
    cases = [case for case, count in zip(special, counts, strict=True) for _ in range(count)]
    ordinary = options.queries - len(cases)
    n_divergent = round(options.share_divergent * ordinary)
    cases += ["divergent"] * n_divergent + ["aligned"] * (ordinary - n_divergent)
    return [cases[i] for i in rng.permutation(len(cases))]


def write_options(options: SimulationOptions) -> str:
    """Write the options that differ from their defaults, e.g. ``queries:80,seed:7``."""
    parts = [
        f"{f.name}:{getattr(options, f.name)}"
        for f in fields(options)
        if getattr(options, f.name) != f.default
    ]
    return ",".join(parts) or "default"


def read_options(text: str) -> SimulationOptions:
    """Read what `write_options` wrote; InputError on anything else, and on more than `SHOWN` questions."""
    parts = [] if text == "default" else text.split(",")
    options = options_from_pairs((name, value) for name, _, value in (part.partition(":") for part in parts))
    if options.queries > SHOWN:
        raise InputError(
            f"At most {SHOWN:,} questions in a link, got {options.queries:,}; the command line takes more."
        )
    return options


def options_from_pairs(pairs: Iterable[tuple[str, str]]) -> SimulationOptions:
    """Build options from names and values, the others by default; InputError for a wrong one."""
    known = {f.name: f for f in fields(SimulationOptions)}
    values: dict[str, int | float] = {}
    for name, value in pairs:
        if name not in known:
            raise InputError(f"There is no simulation option {name[:30]!r}; options are {', '.join(known)}.")
        kind = int if isinstance(known[name].default, int) else float
        try:
            values[name] = kind(value)
        except ValueError as error:
            what = "a whole number" if kind is int else "a number"
            raise InputError(f"The simulation option {name} must be {what}, got {value[:30]!r}.") from error
    return SimulationOptions(**values)  # type: ignore[arg-type]  # each value has its field's type
