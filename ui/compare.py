"""Two to four runs beside each other: which ones, whether one is better, and on which questions."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pandas as pd
import streamlit as st

from core.charts.compare import ROWS_AT_MOST, compare_figure
from core.errors import InputError, LeadlineError
from core.manifest import read_manifest
from core.report.compare import LETTERS, Side, check_comparable, nearest, question_columns, questions_of
from core.report.paired import METHOD, SAME, WORSE, Difference, RunPair, regressions
from core.report.paired import answer as answer_of
from core.run import MANY, Run
from core.text.display import count
from ui import cached, library, router, show, sources
from ui.cached import Comparison
from ui.plain import plain, shortened
from ui.state import session

_SETTINGS, _SETTINGS_HEIGHT = 8, 320  # rows that are all shown; pixels of more
CHOICES = 500  # a longer menu is slow in the browser
_KEY, _FILTER, _WHY = "side_runs", "side_filter", "side_why"
ONLY_WORSE, CHANGED, OTHER_ANSWERS, EVERY = "Only what became worse", "Changed", "Answers differ", "All"


def choose() -> Comparison | None:
    """Draw the choice of runs, bound to the address; None where fewer than two are chosen."""
    offered = _offered()
    _follow_link(offered)
    chosen = st.multiselect(
        "Runs",
        list(offered),
        key=_KEY,
        format_func=lambda run_id: offered[run_id],
        max_selections=len(LETTERS),
        placeholder="Choose two to four runs",
    )
    session().compared = list(chosen)
    picked, why = st.session_state.get(_WHY, ([], ""))
    if picked == list(chosen):
        st.caption(why)
    if list(chosen) != st.query_params.get_all("compare"):
        st.query_params["compare"] = list(chosen)
    runs = _comparable([opened for run_id in chosen if (opened := _open(run_id)) is not None])
    if len(runs) >= 2:
        return cached.comparison_of(runs)
    if len(chosen) >= 2:
        return None  # what was chosen stays, and above it says why that cannot be compared
    _what_to_do(offered)
    return None


def _offered() -> dict[str, str]:
    """Return the runs that can be chosen, by id: the loaded one, the saved ones, the ones of the app."""
    run = session().run
    names = {} if run is None else {run.run_id: f"{shortened(run.name, 60)} (loaded)"}
    for saved in library.saved_runs():
        when = saved.created[:16].replace("T", " ")
        names.setdefault(saved.run_id, f"{shortened(saved.name, 60)} · {when}")
    return names


def _follow_link(offered: dict[str, str]) -> None:
    """Put what the address names into the menu, if it is new; else what was chosen before."""
    state, asked = session(), st.query_params.get_all("compare")
    wanted = st.session_state.get(_KEY)
    if asked and asked != state.compared:
        wanted = asked
        missing = [run_id for run_id in asked if run_id not in offered]
        if missing:
            st.warning(
                f"The run {plain(shortened(missing[0], 40))} is not saved here, so it is left out: it was "
                "deleted, belongs to another machine, or was never saved.",
                icon=":material/link_off:",
            )
    elif wanted is None:
        wanted = _at_first(offered) if state.compared is None else state.compared
    valid = [run_id for run_id in dict.fromkeys(wanted) if run_id in offered]
    st.session_state[_KEY] = valid[: len(LETTERS)]


def _at_first(offered: dict[str, str]) -> list[str]:
    """Return the loaded run and its nearest relative among the saved ones, and keep why it was chosen."""
    run, first = session().run, list(offered)[:1]
    if run is None:
        return first
    saved = {one.run_id: one for one in library.saved_runs()}
    found = nearest(run, _manifests(tuple(saved.values())), lambda run_id: _asked(saved[run_id]))
    if found is None:
        return first
    chosen = [run.run_id, found[0]]
    name = plain(shortened(saved[found[0]].name, 60))
    st.session_state[_WHY] = (
        chosen,
        f"B, “{name}”, was chosen for you: {found[1]}. Choose other runs above.",
    )
    return chosen


def _manifests(saved: tuple[library.SavedRun, ...]) -> list[dict[str, Any]]:
    """Return the manifests of saved runs that can still be read."""
    found = []
    for one in saved:
        with suppress(LeadlineError, OSError):
            found.append(read_manifest(one.folder))
    return found


def _asked(saved: library.SavedRun) -> Any:
    with suppress(LeadlineError, OSError):
        return questions_of(Run.sample(saved.folder, MANY))
    return frozenset()


def _open(run_id: str) -> tuple[str, Run] | None:
    state = session()
    if state.run is not None and state.run.run_id == run_id:
        return state.run_key, state.run
    saved = library.find(run_id)
    try:
        if saved is not None:
            return cached.open_saved(saved)
    except (LeadlineError, OSError) as error:
        st.error(plain(error), icon=":material/error:")
    return None


def _comparable(runs: list[tuple[str, Run]]) -> list[tuple[str, Run]]:
    """Return the first run and those that share questions with it; say why each other one is refused."""
    kept = runs[:1]
    for key, run in runs[1:]:
        try:
            check_comparable([kept[0][1], run])
            kept.append((key, run))
        except InputError as error:
            st.error(plain(error), icon=":material/join_inner:")
    return kept


def _what_to_do(offered: dict[str, str]) -> None:
    with st.container(border=True):
        st.markdown(
            "Choose at least two runs."
            if len(offered) > 1
            else "There is no second run yet. Ask another model the same questions, or load another run."
        )
        with st.container(horizontal=True):
            if session().run is not None:
                sources.continue_live("Ask the same questions of another model")
            sources.link(router.DATA, "Saved runs", "folder_open", door="Saved runs")


def answer(comparison: Comparison) -> None:
    """Say whether the runs differ, the first against each other one, before anything is shown."""
    for mark, about in show.MARKS.items():
        marked = [side.letter for side in comparison.sides if side.run.mark == mark]
        if marked:
            st.info(f"**{', '.join(marked)}** · {about}", icon=":material/science:")
    with st.container(border=True):
        for pair in comparison.pairs:
            first, *rest = answer_of(pair) or ("The runs have no number in common to compare.",)
            st.markdown(f"**{plain(first)}**" + "".join(f"\n\n{plain(sentence)}" for sentence in rest))
        st.caption("\\\n".join(plain(side.title, one_line=True) for side in comparison.sides))


def choose_number(comparison: Comparison) -> tuple[RunPair, Difference | None]:
    """Draw the choice of the pair, where there are several, and of the number."""
    pairs = {f"{pair.sides[0].letter} and {pair.sides[1].letter}": pair for pair in comparison.pairs}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = next(iter(pairs))
        if len(pairs) > 1:
            chosen = show.choice("Runs shown", {name: name for name in pairs}, "side_pair")
        pair = pairs[chosen]
        first = [one for one in (pair.outcome,) if one is not None]
        offered = {one.key: one for one in (*first, *pair.differences)}
        if not offered:
            return pair, None
        titles = {key: one.column.title for key, one in offered.items()}
        number = show.menu("Number", titles, "side_number")
    return pair, offered[number]


def figure(pair: RunPair, difference: Difference | None) -> Any:
    """Draw the chosen number of the questions that changed, or of others; return these questions."""
    st.caption(_held(pair))
    is_worse = difference is not None and difference.counts.get(WORSE)
    offered = [*([ONLY_WORSE] if is_worse else []), CHANGED, OTHER_ANSWERS, EVERY]
    if st.session_state.get(_FILTER, CHANGED) not in offered:
        del st.session_state[_FILTER]
    which = show.choice("Questions", {one: one for one in offered}, _FILTER)
    found = _rows(pair, difference, which)
    if found.empty:
        st.info(_nothing(difference, which), icon=":material/check_circle:")
    elif difference is not None:
        drawn = difference.rows[difference.rows["query_id"].isin(found["query_id"])]
        fig = compare_figure(drawn, difference.column, difference.letters)
        # Marks open the loaded run; where that is neither of the two, the table and the links lead on.
        fig.layout.meta = {**fig.layout.meta, "doors": _is_loaded(pair.sides)}
        show.figure(fig, "compare")
        if len(drawn) > ROWS_AT_MOST:
            st.caption(
                f"Drawn are the {ROWS_AT_MOST} that change most, of {len(drawn):,}; the table has all."
            )
    return found


def _held(pair: RunPair) -> str:
    held = ", ".join(f"{side.letter} has {len(side.run.queries):,}" for side in pair.sides)
    return (
        f"{count(len(pair.shared), 'question')} with the same id and text in both runs; {held}. "
        f"Answers differ in {int(pair.shared['answers_differ'].sum()):,}."
    )


def _rows(pair: RunPair, difference: Difference | None, which: str) -> Any:
    """Return the shared questions with the change of the chosen number, those that changed most on top."""
    frame = pair.shared
    if difference is not None and which == ONLY_WORSE:
        return regressions(pair, difference)
    if difference is not None:
        own = difference.rows[["query_id", "difference", "change"]]
        frame = frame.merge(own, how="left", on="query_id")
        order = frame["difference"].abs().sort_values(ascending=False, kind="stable").index
        frame = frame.loc[order]
        if which == CHANGED:
            return frame[frame["change"].notna() & (frame["change"] != SAME)]
    return frame if which == EVERY else frame[frame["answers_differ"]]


def _nothing(difference: Difference | None, which: str) -> str:
    if which == CHANGED and difference is not None:
        return f"{difference.column.title} is the same in all {count(difference.n, 'question')}."
    return "No answer differs."


def questions(found: Any, pair: RunPair, difference: Difference | None) -> None:
    """Draw the questions of the figure in a table, whose rows lead to the workbench, and one by one."""
    if found.empty:
        st.markdown("No question is left; show others above.")
        return
    frame = found
    if difference is not None:
        said = [difference.change_text(one) if isinstance(one, str) else None for one in found["change"]]
        frame = found.assign(change=said)
    event = show.table(
        frame,
        "Shared questions: what changed, and the answers and numbers of both runs",
        _columns(pair.sides, frame, difference),
        on_select="rerun",
        selection_mode="single-row",
        key="side_table",
    )
    if event.selection.rows:
        query_id = str(frame["query_id"].iloc[event.selection.rows[0]])
        st.switch_page(router.WORKBENCH, query_params=_door(pair.sides, query_id))
    _one_question(found, pair.sides)


def _columns(sides: tuple[Side, ...], shared: Any, difference: Difference | None) -> dict[str, Any]:
    letters = [side.letter for side in sides]
    columns: dict[str, Any] = {"question": show.wide("Question")}
    chosen = [] if difference is None else [difference.column]
    if difference is not None:
        columns["change"] = show.wide(difference.column.title, "small", "In the second run.")
    columns |= {f"answer_{x}": show.wide(f"Answer {x}", "medium") for x in letters}
    if "also" in shared:
        columns["also"] = st.column_config.ListColumn("Also worse", width="medium")
    for one in dict.fromkeys([*chosen, *(column for _, column in question_columns(sides))]):
        for letter in letters:
            name = f"{one.name}_{letter}"
            columns[name] = show.column(one, f"{one.title} {letter}", shared[name])
    return columns


def numbers(pair: RunPair) -> None:
    """Draw every number of the pair: means, difference, test."""
    a, b = (side.letter for side in pair.sides)
    rows = [
        {
            "Number": one.column.title,
            f"Mean {a}": one.shown(one.means[0]),
            f"Mean {b}": one.shown(one.means[1]),
            f"{b} − {a}": one.shown(one.mean, True),
            "95 % interval": one.range_text,
            "p": one.p_text,
            "n": one.n,
            "Questions": ", ".join(f"{n:,} {word}" for word, n in one.counts.items()),
        }
        for one in pair.differences
    ]
    show.table(pd.DataFrame(rows), f"Every number in runs {a} and {b}, with its test", height="content")
    moved = [one.column.title for one in pair.differences if one.moved_by_passages]
    note = METHOD + " Yes-or-no numbers are in percent, their differences in points."
    if moved:
        note += f" The runs differ in passages per question, which alone moves {', '.join(moved)}."
    st.caption(plain(note))


def headlines(comparison: Comparison) -> None:
    """Draw the headline numbers, one column a run."""
    show.table(comparison.headlines, "Headline numbers, one column for each run", height="content")
    st.caption("Each run over all of its own questions; *All numbers compared* is about the shared ones.")


def setups(comparison: Comparison) -> None:
    """Draw the settings in which the runs differ."""
    if comparison.setups.empty:
        st.markdown("No differences in data, model, prompt and retriever.")
    else:
        # What became worse follows: a long table scrolls.
        height = "content" if len(comparison.setups) <= _SETTINGS else _SETTINGS_HEIGHT
        show.table(comparison.setups, "Settings that differ, one column for each run", height=height)


def _one_question(found: Any, sides: tuple[Side, ...]) -> None:
    labels = {
        str(query_id): shortened(text, 110) or str(query_id)
        for query_id, text in zip(found["query_id"].head(CHOICES), found["question"], strict=False)
    }
    if len(found) > CHOICES:
        st.caption(f"The menu lists the first {CHOICES:,} of {len(found):,} questions.")
    query_id = show.menu("Question", labels, "side_question")
    row = found[found["query_id"] == query_id].iloc[0]
    st.markdown(f"**{plain(row['question'])}**")
    with st.grid(2, min_column_width=260):
        for side in sides:
            with st.container(border=True, gap="xsmall", height="stretch"):
                _answer(side, row, str(query_id))


def _answer(side: Side, row: Any, query_id: str) -> None:
    letter = side.letter
    st.caption(f"**{plain(side.title, one_line=True)}**")
    show.quote(row[f"answer_{letter}"])
    own = [f"{one.title}: {one.text(row[f'{one.name}_{letter}'])}" for _, one in question_columns([side])]
    with st.expander(f"All numbers ({len(own)})"):
        st.caption(plain(" · ".join(own)))
    label, icon, to = f"Open {letter} in the workbench", ":material/arrow_forward:", _door((side,), query_id)
    st.page_link(router.WORKBENCH, label=label, icon=icon, query_params=to)


def _door(sides: tuple[Side, ...], query_id: str) -> dict[str, str]:
    """Return the way to a question in the workbench: in the run that is loaded, else in the first."""
    link = session().link if _is_loaded(sides) else {"run": sides[0].run.whole_id}
    return {**link, "question": query_id}


def _is_loaded(sides: tuple[Side, ...]) -> bool:
    run = session().run
    return run is not None and any(side.run.run_id == run.run_id for side in sides)
