"""What a comparison of runs says: the answer in words, and every number as text or as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.report.compare import Side, setup_differences
from core.report.paired import ALPHA, HIGHER, LOWER, Difference, RunPair, pairs_of
from core.text.display import count, percent

_NAMED_AT_MOST = 3
_CLOSE = 0.15  # ends of the interval of a difference within which two shares are called equal
_PARTS = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth", 10: "a tenth"}
METHOD = (
    "Differences are means over the questions that have the number in both runs, with a 95 % interval. p: "
    "sign-flip test within questions, adjusted (Holm) for all numbers compared."
)


def answer(pair: RunPair) -> tuple[str, ...]:
    """Return up to three sentences: whether the second run is better, at what cost, and what else differs.

    Empty where no number is known in both runs. Whatever chance explains is said to be explained by it.
    """
    first = next((one for one in pair.differences if one.column.pattern == "bool"), None)
    others = [one for one in pair.differences if one is not first]
    said = [_lead(pair, first), _yes_or_no(first)] if first else []
    return tuple(filter(None, [*said, _others(others, first is not None)]))


def _lead(pair: RunPair, first: Difference) -> str:
    """Say what one chooses by: how often correct, at how many tokens; "" where tokens are not known."""
    tokens = [_tokens(side, pair) for side in pair.sides]
    if None in tokens or not all(tokens):
        return ""
    a, b = first.letters
    what = first.column.title.lower()
    if not first.n_changed:
        said = f"exactly as often {what} as run {a}"
    elif first.is_clear:
        said = f"more often {what} than run {a}" if first.mean > 0 else f"less often {what} than run {a}"
    elif all(abs(end) <= _CLOSE for end in first.interval):
        said = f"equally often {what} as run {a} within chance"
    else:
        said = f"not demonstrably more or less often {what} than run {a}"
    used, instead = (round(value) for value in reversed(tokens))  # type: ignore[arg-type]
    return f"Run {b} is {said}, {_times(used / instead)} ({used:,} instead of {instead:,} for an answer)."


def _tokens(side: Side, pair: RunPair) -> float | None:
    """Return the mean tokens, prompt and answer, of the shared questions; None where one is unknown."""
    queries = side.run.queries
    shared = queries[queries["query_id"].isin(pair.shared["query_id"])]
    used = (shared["prompt_tokens"] + shared["completion_tokens"]).astype("Float64")
    return None if used.isna().any() or used.empty else float(used.mean())


def _times(ratio: float) -> str:
    """Say how many tokens there are for one of the other run's."""
    if 0.95 <= ratio <= 1.05:
        return "at the same number of tokens"
    parts = round(1 / ratio)
    if ratio < 1:
        simple = parts in _PARTS and abs(ratio * parts - 1) < 0.1
        return f"at {'about ' if simple else ''}{_PARTS[parts] if simple else percent(ratio)} of the tokens"
    return f"at {ratio:.1f} times the tokens"


def comparison_facts(sides: Sequence[Side]) -> dict[str, Any]:
    """Return a comparison as plain JSON values.

    ``runs`` (letter, id, name); ``setups`` (settings that differ, by letter); ``comparisons``, one for the
    first run and each other: ``a, b, n_shared, answer``, and ``numbers`` with means, mean difference b − a,
    interval, adjusted p-value, counts and the change of every question.
    """
    setups = setup_differences(sides)
    return {
        "runs": [{"letter": s.letter, "run_id": s.run.run_id, "name": s.run.name} for s in sides],
        "setups": {
            row[0]: dict(zip((s.letter for s in sides), row[1:], strict=True))
            for row in setups.itertuples(index=False, name=None)
        },
        "comparisons": [
            {
                "a": pair.sides[0].letter,
                "b": pair.sides[1].letter,
                "n_shared": len(pair.shared),
                "answer": list(answer(pair)),
                "numbers": [_facts(one) for one in pair.differences],
            }
            for pair in pairs_of(sides)
        ],
    }


def comparison_text(sides: Sequence[Side]) -> str:
    """Return a comparison as text, for a terminal: the answer, then every number with its n."""
    lines = [side.title for side in sides]
    for pair in pairs_of(sides):
        a, b = pair.sides
        lines += ["", *(f"  {sentence}" for sentence in answer(pair))]
        for one in pair.differences:
            changes = ", ".join(f"{n:,} {word}" for word, n in one.counts.items())
            lines.append(
                f"    {one.column.title:<30}{a.letter} {one.shown(one.means[0]):<8}{b.letter} "
                f"{one.shown(one.means[1]):<8}{one.shown(one.mean, True)} ({one.range_text}), {one.p_text}, "
                f"n = {one.n:,}: {changes}"
            )
    lines += ["", METHOD]
    return "\n".join(lines)


def _facts(one: Difference) -> dict[str, Any]:
    low, high = one.interval
    return {
        "diagnostic": one.diagnostic,
        "name": one.column.name,
        "title": one.column.title,
        "n": one.n,
        "mean_a": one.means[0],
        "mean_b": one.means[1],
        "difference": one.mean,
        "interval": None if low != low else [low, high],
        "p_value": one.p_value,
        "counts": one.counts,
        "depends_on_number_of_passages": one.moved_by_passages,
        "questions": one.rows[["query_id", "a", "b", "change"]].to_dict("records"),
    }


def _yes_or_no(one: Difference) -> str:
    """Say in how many more questions the second run is, for example, correct."""
    (a, b), what, counts = one.letters, one.column.title.lower(), one.counts
    in_a, in_b = int(one.rows["a"].sum()), int(one.rows["b"].sum())
    if not one.n_changed:
        return f"Runs {a} and {b} are {what} in the same {in_a:,} of {count(one.n, 'question')}."
    changes = f"{counts[one.words[0]]:,} {one.words[0]}, {counts[one.words[1]]:,} {one.words[1]}"
    if in_a == in_b:
        return (
            f"Runs {a} and {b} are {what} in equally many of {count(one.n, 'question')} ({in_a:,} each): "
            f"{changes} (difference {one.range_text} points)."
        )
    more = f"{abs(in_b - in_a):,} {'more' if in_b > in_a else 'fewer'}"
    return (
        f"Run {b} is {what} in {more} of {count(one.n, 'question')}: {changes} (difference "
        f"{one.shown(one.mean, True)} points, {one.range_text}, {one.p_text}): {_verdict(one)}."
    )


def _verdict(one: Difference) -> str:
    if one.is_clear:
        return "more than chance explains"
    # Even if all of them went one way, the test could not tell.
    few = 2.0 ** (1 - one.n_changed) >= ALPHA
    return "too few changes to tell" if few else "chance alone could explain it"


def _others(differences: Sequence[Difference], after: bool) -> str:
    """Name the other numbers that differ by more than chance, the clearest first."""
    tested = [one for one in differences if not one.moved_by_passages]
    if not tested:
        return ""
    what = count(len(tested), "other number" if after else "number")
    clear = sorted((one for one in tested if one.is_clear), key=_clearness)
    if not clear:
        return (
            f"None of the {what} differs by more than chance explains."
            if len(tested) > 1
            else _lone(tested[0])
        )
    named = "; ".join(_higher(one) for one in clear[:_NAMED_AT_MOST])
    more = len(clear) - _NAMED_AT_MOST
    rest = f"; and {count(more, 'number')} more" if more > 0 else ""
    return f"Of the {what}, these differ by more than chance explains: {named}{rest}."


def _clearness(one: Difference) -> tuple[float, float]:
    return one.p_value, -abs(one.mean) / max(1e-9, float(one.rows["difference"].std()))


def _lone(one: Difference) -> str:
    return (
        f"{_higher(one)}: {_verdict(one)}."
        if one.n_changed
        else f"{one.column.title} is the same in both runs."
    )


def _higher(one: Difference) -> str:
    way, word = (HIGHER, one.words[0]) if one.mean > 0 else (LOWER, one.words[1])
    judged = "" if word == way else f" ({word})"
    return (
        f"{one.column.title} is on average {one.shown(abs(one.mean))} {way}{judged} in run {one.letters[1]} "
        f"({one.range_text}, {one.p_text}, n = {one.n:,})"
    )
