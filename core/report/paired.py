"""Two runs over the same questions: every number in pairs, tested against chance, and what that says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from core.report.compare import Side, question_columns, setup_differences, shared_questions
from core.report.text import named
from core.socket import QuestionColumn
from core.stats import holm, paired_interval, paired_permutation_test
from core.text.display import DASH, count, number, p_text, percent

ALPHA = 0.05
BETTER, WORSE, HIGHER, LOWER, SAME = "better", "worse", "higher", "lower", "same"
# A sign beside each word, so that no meaning hangs on colour; up is the better or the higher.
SIGNS = {BETTER: "▲", HIGHER: "▲", WORSE: "▼", LOWER: "▼", SAME: "="}
_SAME = 1e-9
_CLOSE = 0.15  # ends of the interval of a difference within which two shares are called equal
_PARTS = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth", 10: "a tenth"}
METHOD = (
    "Differences are means over the questions that have the number in both runs, with a 95 % interval. p: "
    "sign-flip test within questions, adjusted (Holm) for all numbers compared."
)


@dataclass(frozen=True, slots=True)
class Difference:
    """One number in two runs, over the shared questions that have it in both.

    ``letters`` are those of the two runs; differences are the second minus the first. ``rows`` has one row
    per question with a value in both: ``query_id, question, a, b, difference, change``. ``interval`` is the
    95 % interval of the mean difference, NaN where there is none; ``p_value`` that of the sign-flip test,
    adjusted (Holm) for all numbers compared, ``p_alone`` not adjusted. ``moved_by_passages``: the runs have
    different numbers of passages and that alone moves this number.
    """

    diagnostic: str
    column: QuestionColumn
    letters: tuple[str, str]
    rows: pd.DataFrame
    interval: tuple[float, float]
    p_value: float
    moved_by_passages: bool = False
    p_alone: float = float("nan")

    @property
    def key(self) -> str:
        """What tells it from the other numbers, in links too."""
        return f"{self.diagnostic}.{self.column.name}"

    @property
    def n(self) -> int:
        """Questions with the number in both runs."""
        return len(self.rows)

    @property
    def means(self) -> tuple[float, float]:
        """Mean in the first run and in the second, over the same questions."""
        return float(self.rows["a"].mean()), float(self.rows["b"].mean())

    @property
    def mean(self) -> float:
        """Mean difference."""
        return float(self.rows["difference"].mean())

    @property
    def words(self) -> tuple[str, str]:
        """What a change up and a change down is called: better or worse, where one of them is."""
        up_is = self.column.higher_is
        return {"better": (BETTER, WORSE), "worse": (WORSE, BETTER)}.get(up_is, (HIGHER, LOWER))

    @property
    def counts(self) -> dict[str, int]:
        """Number of questions by change, the three words always there."""
        found = self.rows["change"].value_counts()
        words = sorted(self.words, key=[BETTER, HIGHER, WORSE, LOWER].index)
        return {word: int(found.get(word, 0)) for word in (*words, SAME)}

    @property
    def n_changed(self) -> int:
        """Questions whose value differs."""
        return self.n - self.counts[SAME]

    def change_text(self, word: str) -> str:
        """Return what became of one question, for people: "▼ no longer correct"."""
        if self.column.pattern != "bool" or word == SAME:
            return f"{SIGNS[word]} {word}"
        return f"{SIGNS[word]} {'now' if word == self.words[0] else 'no longer'} {self.column.title.lower()}"

    @property
    def fixes_and_harms(self) -> str:
        """How many questions changed either way, with the test of that: "12 became correct, 3 …"."""
        (up, down), counts, what = self.words, self.counts, self.column.title.lower()
        is_share = self.column.pattern == "bool"
        test = f"{p_text(self.p_alone)}, {'exact McNemar' if is_share else 'sign-flip'} test, n = {self.n:,}"
        if self.p_text != p_text(self.p_alone):
            test += f"; {self.p_text} adjusted for all numbers"
        if is_share:
            became = f"{count(counts[up], 'question')} became {what}"
            return f"{became}, {counts[down]:,} stopped being {what} ({test})"
        ups = f"{self.column.title} is {up} in {count(counts[up], 'question')}"
        return f"{ups}, {down} in {counts[down]:,} ({test})"

    @property
    def is_clear(self) -> bool:
        """Whether chance alone is a poor explanation of the difference."""
        return self.p_value < ALPHA

    def shown(self, value: float, signed: bool = False) -> str:
        """Return a mean, or with ``signed`` a difference of means, for people."""
        pattern = self.column.pattern if "." in self.column.pattern else "{:.2f}"
        if self.column.pattern == "bool":
            value, pattern = 100 * value, "{:.0f}" if signed else "{:.0f} %"
        text = number(value, pattern.replace("{:", "{:+") if signed else pattern)
        return text if any(digit in text for digit in "123456789") else text.lstrip("+")

    @property
    def range_text(self) -> str:
        """The interval for people, or a dash."""
        low, high = self.interval
        return DASH if low != low else f"{self.shown(low, True)} to {self.shown(high, True)}"

    @property
    def p_text(self) -> str:
        """The p-value for people."""
        return p_text(self.p_value)


@dataclass(frozen=True, slots=True)
class RunPair:
    """The first run of a comparison and one of the others.

    ``shared`` is of `shared_questions`; ``differences`` has every number that some of them has in both runs.
    """

    sides: tuple[Side, Side]
    shared: pd.DataFrame
    differences: tuple[Difference, ...]

    @property
    def outcome(self) -> Difference | None:
        """What says whether an answer became worse: correctness; without labels, how far it is supported."""
        judged = [one for one in self.differences if BETTER in one.words]
        yes_or_no = (one for one in judged if one.column.pattern == "bool")
        return next(yes_or_no, next((one for one in judged if not one.column.needs_labels), None))


def pairs_of(sides: Sequence[Side]) -> tuple[RunPair, ...]:
    """Compare the first run with each of the others, question by question, in this order.

    p-values are adjusted for all numbers of all pairs together.
    """
    found = [(side, shared_questions([sides[0], side])) for side in sides[1:]]
    raw = [[one for one in _differences((sides[0], side), shared) if one.n] for side, shared in found]
    adjusted = iter(holm([one.p_value for each in raw for one in each]).tolist())
    return tuple(
        RunPair((sides[0], side), shared, tuple(replace(one, p_value=next(adjusted)) for one in each))
        for (side, shared), each in zip(found, raw, strict=True)
    )


def _differences(sides: tuple[Side, Side], shared: pd.DataFrame) -> list[Difference]:
    letters = (sides[0].letter, sides[1].letter)
    # Passages of a question, on average.
    unequal = len({len(side.run.passages) / max(1, len(side.run.queries)) for side in sides}) > 1
    silent = {d.name for side in sides for d in side.diagnosis.diagnostics if d.lacks(side.run) is not None}
    return [
        _difference(name, column, letters, shared, unequal and column.by_passages)
        for name, column in question_columns(sides)
        if name not in silent
        and not column.is_secondary
        and all(pd.api.types.is_numeric_dtype(shared[f"{column.name}_{letter}"]) for letter in letters)
    ]


def _difference(
    diagnostic: str, column: QuestionColumn, letters: tuple[str, str], shared: pd.DataFrame, moved: bool
) -> Difference:
    a, b = (shared[f"{column.name}_{letter}"].astype("Float64").astype("float64") for letter in letters)
    rows = shared[["query_id", "question"]].assign(a=a, b=b, difference=b - a)
    rows = rows[rows["difference"].notna()].reset_index(drop=True)
    found = Difference(diagnostic, column, letters, rows, (float("nan"),) * 2, float("nan"), moved)
    up, down = found.words
    rows["change"] = [SAME if abs(d) < _SAME else up if d > 0 else down for d in rows["difference"]]
    return replace(
        found,
        interval=paired_interval(rows["a"], rows["b"], share=column.pattern == "bool"),
        p_value=(p := paired_permutation_test(rows["a"], rows["b"])),
        p_alone=p,
    )


def regressions(pair: RunPair, one: Difference) -> pd.DataFrame:
    """Return the shared questions on which a number is worse in the second run, the worst first.

    Columns of `shared_questions`, ``difference, change`` and ``also``: the other numbers that are worse
    there, a list of texts with both values. Of equally large changes those with more of them come first.
    """
    own = one.rows.loc[one.rows["change"].eq(WORSE), ["query_id", "difference", "change"]]
    also: dict[str, list[str]] = {query_id: [] for query_id in own["query_id"]}
    for other in pair.differences:
        if other is not one and not other.moved_by_passages:
            for row in other.rows[other.rows["change"].eq(WORSE)].itertuples():
                if row.query_id in also:
                    values = (other.column.text(value) for value in (row.a, row.b))
                    also[row.query_id].append(f"{other.column.title}: {' → '.join(values)}")
    found = pair.shared.merge(own, on="query_id").assign(also=list(also.values()))
    order = sorted(range(len(found)), key=lambda i: (-abs(found["difference"][i]), -len(found["also"][i])))
    return found.iloc[order].reset_index(drop=True)


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
        said = f"{'more' if first.mean > 0 else 'less'} often {what} than run {a}"
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
    return _runs_and_setups(sides) | {
        "comparisons": [
            {
                "a": pair.sides[0].letter, "b": pair.sides[1].letter, "n_shared": len(pair.shared),
                "answer": list(answer(pair)), "numbers": [_facts(one) for one in pair.differences],
            }
            for pair in pairs_of(sides)
        ],
    }  # fmt: skip


def _runs_and_setups(sides: Sequence[Side]) -> dict[str, Any]:
    setups = setup_differences(sides)
    return {
        "runs": [{"letter": s.letter, "run_id": s.run.run_id, "name": s.run.name} for s in sides],
        "setups": {
            row[0]: dict(zip((s.letter for s in sides), row[1:], strict=True))
            for row in setups.itertuples(index=False, name=None)
        },
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
    return "\n".join([*lines, "", METHOD])


def regressions_facts(sides: Sequence[Side]) -> dict[str, Any]:
    """Return what became worse as plain JSON values.

    ``runs`` and ``setups`` as in `comparison_facts`; ``regressions``, one for the first run and each other:
    ``a, b``, the ``number`` that decides (null where none is known in both), ``n, n_better, n_worse,
    p_value`` of it alone, and ``questions``, the worst first.
    """
    return {**_runs_and_setups(sides), "regressions": [_regressed(pair) for pair in pairs_of(sides)]}


def _regressed(pair: RunPair) -> dict[str, Any]:
    one = pair.outcome
    facts: dict[str, Any] = {"a": pair.sides[0].letter, "b": pair.sides[1].letter, "number": None}
    if one is None:
        return facts
    rows = regressions(pair, one).rename(columns={"also": "also_worse"})
    columns = ["query_id", "question", *(f"answer_{letter}" for letter in one.letters), "also_worse"]
    return facts | {
        "number": one.column.title, "n": one.n, "n_better": one.counts[BETTER], "n_worse": one.counts[WORSE],
        "p_value": one.p_alone, "questions": rows[columns].to_dict("records"),
    }  # fmt: skip


def regressions_text(sides: Sequence[Side]) -> str:
    """Return what became worse as text, for a terminal: both answers of each question, and what differs."""
    lines = [side.title for side in sides]
    for title, values in _runs_and_setups(sides)["setups"].items():
        lines.append(f"  {title}: " + ", ".join(f"{letter} {said}" for letter, said in values.items()))
    for pair in pairs_of(sides):
        (a, b), one = (side.letter for side in pair.sides), pair.outcome
        if one is None:
            neither = "neither correctness nor support of the answers is known in both"
            lines += ["", f"Runs {a} and {b}: {neither}."]
            continue
        lines += ["", f"Run {b} against run {a}: {one.fixes_and_harms}."]
        for row in _regressed(pair)["questions"]:
            lines += ["", f"{row['query_id']}: {_line(row['question'])}"]
            lines += [f"  {letter}: {_line(row[f'answer_{letter}'])}" for letter in (a, b)]
            lines += [f"  Also worse: {'; '.join(row['also_worse'])}"] if row["also_worse"] else []
    return "\n".join(lines)


def _line(text: object) -> str:
    return " ".join(text.split()) or DASH if isinstance(text, str) else DASH


def _facts(one: Difference) -> dict[str, Any]:
    low, high = one.interval
    return {
        "diagnostic": one.diagnostic, "name": one.column.name, "title": one.column.title, "n": one.n,
        "mean_a": one.means[0], "mean_b": one.means[1], "difference": one.mean,
        "interval": None if low != low else [low, high], "p_value": one.p_value, "counts": one.counts,
        "depends_on_number_of_passages": one.moved_by_passages,
        "questions": one.rows[["query_id", "a", "b", "change"]].to_dict("records"),
    }  # fmt: skip


def _yes_or_no(one: Difference) -> str:
    """Say in how many more questions the second run is, for example, correct."""
    (a, b), what = one.letters, one.column.title.lower()
    in_a, in_b = int(one.rows["a"].sum()), int(one.rows["b"].sum())
    if not one.n_changed:
        return f"Runs {a} and {b} are {what} in the same {in_a:,} of {count(one.n, 'question')}."
    if in_a == in_b:
        return (
            f"Runs {a} and {b} are {what} in equally many of {count(one.n, 'question')} ({in_a:,} each): "
            f"{one.fixes_and_harms} (difference {one.range_text} points)."
        )
    more = f"{abs(in_b - in_a):,} {'more' if in_b > in_a else 'fewer'}"
    return (
        f"Run {b} is {what} in {more} of {count(one.n, 'question')} (difference {one.shown(one.mean, True)} "
        f"points, {one.range_text}): {one.fixes_and_harms}; {_verdict(one)}."
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
    # The clearest first; of equally clear ones that which differs most for its spread.
    clear = sorted(
        (one for one in tested if one.is_clear),
        key=lambda one: (one.p_value, -abs(one.mean) / max(1e-9, float(one.rows["difference"].std()))),
    )
    if not clear and len(tested) > 1:
        return f"None of the {what} differs by more than chance explains."
    if not clear:
        (one,) = tested
        same = f"{one.column.title} is the same in both runs."
        return f"{_higher(one)}: {_verdict(one)}." if one.n_changed else same
    found = named([_higher(one) for one in clear], "number")
    return f"Of the {what}, these differ by more than chance explains: {found}."


def _higher(one: Difference) -> str:
    if abs(one.mean) < _SAME:
        said = "the same in both runs"
    else:
        way, word = (HIGHER, one.words[0]) if one.mean > 0 else (LOWER, one.words[1])
        judged = "" if word == way else f" ({word})"
        said = f"{one.shown(abs(one.mean))} {way}{judged} in run {one.letters[1]}"
    return f"{one.column.title} is on average {said} ({one.range_text}, {one.p_text}, n = {one.n:,})"
