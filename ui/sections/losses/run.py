"""Where the answers of a run are lost: how to find out, the ladder, and what each fix brings."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.losses.analysis import Losses
from core.losses.arms import BY_REFERENCE, LABELLED, SUFFICIENT
from core.losses.outcomes import BY_CLAIMS
from core.text.display import count
from ui import cached, headlines, questions, show, step_form
from ui.plain import plain
from ui.sections.losses.states import arms_of, by_question, looks
from ui.state import session

_GOLD = {
    LABELLED: "marked in the data",
    SUFFICIENT: "found by asking with each passage alone: one alone gives the right answer",
    BY_REFERENCE: "guessed, because a passage contains the reference answer",
}


def _found() -> Losses:
    found: Losses = cached.diagnosis()["losses"]
    return found


def lacking() -> None:
    """Say what the run needs before anything can be counted."""
    st.info(plain(headlines.lacks("losses")), icon=":material/inbox:")


def counted() -> bool:
    """Say what is counted, who answered, and how gold was found; tell whether any fix was tried."""
    found = _found()
    by_claims = found.outcome == BY_CLAIMS
    lines = [
        "An answer counts as **supported** when every claim in it has a passage of its prompt that supports "
        "it: this run has no reference answers."
        if by_claims
        else "An answer counts as **correct** when it states the reference answer or is labelled so."
    ]
    if found.model:
        lines.append(
            f"Another model answered the changed prompts: {plain(found.model, one_line=True)}. It answered "
            "the run's own prompts once more, and those answers are what every fix is compared with."
        )
    if found.n_tried:
        lines.append(
            f"Fixes were tried on {found.n_tried:,} of {count(len(found.queries), 'question')}, with "
            f"{count(found.calls, 'changed prompt')}. {_gold(found)}"
        )
    show.sentence(" ".join(lines))
    return bool(found.n_tried)


def _gold(found: Losses) -> str:
    counts = found.queries["gold_by"].value_counts()
    parts = [f"{_GOLD[by]} ({counts[by]:,})" for by in _GOLD if by in counts.index]
    none = len(found.queries) - int(counts.sum())
    if none:
        parts.append(f"not known ({none:,})")
    return f"Gold passages, by question: {'; '.join(parts)}."


def first() -> None:
    """Draw what trying the fixes does to a run that has not had it, and the form that starts it."""
    text = (
        "The model answers **{questions}** again, the way each fix would: with missing gold passages added, "
        "gold first, gold alone, its evidence sentences alone, fewer passages, and the reverse order. Two "
        "more prompts measure what any change does, and what none does. About 7 calls per question: a "
        "prompt that a fix does not change is not asked again. The result is a new run; this one stays as "
        "it is."
    )
    step_form.first("losses", "No fix was tried", text, "Try the fixes")


def again() -> None:
    """Draw the form that tries what is missing, or asks with each passage alone."""
    with step_form.folded("Try again, or with each passage alone"):
        step_form.on_loaded_run("losses", "Try the fixes")


def ladder() -> None:
    """Draw the ladder of the run."""
    found = _found()
    show.sentence(
        "Read from top to bottom: each stage takes the answers that its fix, and none before it, makes "
        f"{found.outcome.good}. Count with its 95 % interval; the tick is what the placebo, a change that "
        "fixes nothing, would put there."
    )
    show.chart("losses", "loss_ladder")


def fixes() -> None:
    """Draw what each fix makes correct and what it breaks."""
    show.sentence(
        "A fix helps only if its net gain is beyond chance and beyond the placebo. Pale rows fix nothing: "
        "they show what any change of the prompt does, and what asking again does."
    )
    show.chart("losses", "fix_balance")


def more() -> None:
    """Draw the questions under each arm, and the numbers of each fix."""
    found, run = _found(), session().the_run
    frame = cached.once("losses by question", lambda d: by_question(d["losses"]))
    st.markdown("**Each question under each fix**")
    legend = [plain(f"{look.sign} {look.word}", one_line=True) for look in looks(found).values()]
    st.caption(f"{' · '.join(legend)}. No entry: there was nothing to try.")
    arms = {f"arm {arm}": plain(found.titles.get(arm, arm), one_line=True) for arm in arms_of(found)}
    columns = {"query_id": "Id", "question": show.wide("Question", "medium"), "stage": "Lost or kept"} | {
        name: _pills(title, found) for name, title in {"as_it_is": "As it is", **arms}.items()
    }
    pills = frame.assign(**{name: _lists(frame[name]) for name in ("as_it_is", *arms)})
    alt = "What became of each answer under each fix; choosing a row opens its question"
    questions.table(pills, alt, columns, "losses_by_question")
    show.csv("Download", frame, f"leadline-{run.run_id}-losses", "losses_by_question_csv", run)
    with show.more("Numbers of each fix"):
        _numbers(found)


def _lists(values: Any) -> list[list[str] | None]:
    return [[value] if isinstance(value, str) else None for value in values]


def _pills(title: str, found: Losses) -> Any:
    shown = looks(found).values()
    longest = max(len(str(one)) for one in shown)
    return st.column_config.MultiselectColumn(
        title, options=[str(one) for one in shown], color=[one.colour for one in shown],
        width=8 + 8 * longest, disabled=True,
    )  # fmt: skip


def _numbers(found: Losses) -> None:
    good, run = found.outcome.good, session().the_run
    frame = found.to_frame()
    whole = ("localized",)
    columns = {
        "title": "Fix",
        "n": show.numeric("n", *whole),
        "asked": show.numeric("Prompts changed", *whole),
        "fixed": show.numeric(f"Become {good}", *whole),
        "broken": show.numeric(f"Stop being {good}", *whole),
        "net": show.numeric("Net", "%.0f"),
        "low": show.numeric("95 % from", "%.0f"),
        "high": show.numeric("to", "%.0f"),
        "p_value": show.numeric("p against the run", "%.3f"),
        "p_placebo": show.numeric("p against the placebo", "%.3f"),
        "p_adjusted": show.numeric("p corrected", "%.3f"),
        "verdict": "Verdict",
        "needed": show.numeric("Questions that would tell", *whole),
        "tokens": show.numeric("Prompt tokens, ratio"),
    }
    show.table(frame, "What each fix makes correct and what it breaks", columns, height="content")
    show.csv("Download", frame, f"leadline-{run.run_id}-fixes", "losses_fixes_csv", run)


def overview() -> bool:
    """Draw the ladder where fixes were tried and some answer is judged; tell whether it did."""
    n_tried, n = cached.once("losses on the overview", lambda own: (own["losses"].n_tried, own["losses"].n))
    if not (n_tried and n):
        return False
    st.subheader(f"Where {count(n, 'judged answer is', 'judged answers are')} lost", anchor=False)
    show.chart("losses", "loss_ladder")
    return True
