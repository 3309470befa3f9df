"""How far bars can be read, the scores of one answer, and places, of runs that are worked out on paper."""

import re
from dataclasses import replace
from urllib.parse import parse_qsl

import numpy as np
import pandas as pd
import pytest

from core.attribution.analysis import READABLE, UNREADABLE
from core.charts.attribution import lds_histogram, passage_scores, slot_effects
from core.charts.theme import alt_text, has_doors
from core.conditions import describe, matching
from tests.core.charts.attribution_runs import attribution_of
from tests.core.charts.chart_runs import HOSTILE, shown_strings


@pytest.fixture(scope="module")
def found():
    return attribution_of(place=True, shapley=True)


def with_lds(analysis, *rows):
    """The analysis with other questions: (id, LDS, can be read, ceiling)."""
    q = pd.DataFrame(rows, columns=["query_id", "lds", "readable", "ceiling"])
    blank = analysis.queries.head(0).reindex(range(len(q)))
    reading = q["readable"].map({True: READABLE, False: UNREADABLE})
    return replace(analysis, queries=blank.assign(**{name: q[name] for name in q}, reading=reading))


def doors(figure):
    """Every door of a figure with what it says and how long its bar or mark is."""
    for trace in figure.data:
        for y, data in zip(trace.y, trace.customdata if trace.customdata is not None else (), strict=False):
            if not isinstance(data, str) and data[0]:
                yield data[0], data[1], y


def test_each_bar_counts_the_questions_of_its_range(found):
    """An LDS on an edge belongs to the bin that begins there, 1 to the last."""
    rows = [
        ("a", 0.3, True, 0.9),
        ("b", 0.35, True, 0.7),
        ("c", 0.31, False, np.nan),
        ("d", 1.0, True, np.nan),
    ]
    figure = lds_histogram(with_lds(found[1], *rows))
    counts = {
        trace.name: {round(x, 2): int(y) for x, y in zip(trace.x, trace.y, strict=True) if y}
        for trace in figure.data
        if trace.type == "bar"
    }
    assert counts == {"Do not read (1)": {0.35: 1}, "Can be read (3)": {0.35: 2, 0.95: 1}}
    (ceiling,) = [trace for trace in figure.data if trace.type == "scatter"]
    assert ceiling.name == "Mean ceiling 0.80 (2 questions)" and list(ceiling.x) == pytest.approx([0.8, 0.8])
    assert "over 4 questions, mean 0.49 (0 by chance): the bars of 3 can be read, those of 1 cannot" in (
        alt_text(figure)
    )


@pytest.mark.parametrize("draw", [lds_histogram, slot_effects])
def test_every_mark_leads_to_the_questions_it_counts(draw, found):
    diagnosis, analysis = found
    figure = draw(analysis)
    assert has_doors(figure)
    told = list(doors(figure))
    assert told
    for door, hover, _ in told:
        ((kind, condition),) = parse_qsl(door, strict_parsing=True)
        n = len(matching(diagnosis, condition))
        assert kind == "where" and n and str(n) in re.findall(r"\d+", hover)
        assert not re.search(r"_|%", describe(diagnosis, condition))


def test_of_five_games_three_can_be_read(found):
    """What adds up is predicted, so are pairs; parity is not; a constant game and no answer are undefined."""
    assert "the bars of 3 can be read, those of 1 cannot, 0 cannot be told, 2 undefined" in alt_text(
        lds_histogram(found[1])
    )


def test_scores_of_either_are_half_the_gain(found):
    """Six for either of the first two: each is worth 3 where the other is there in half of the subsets."""
    figure = passage_scores(found[1], "either")
    traces = {trace.name: trace for trace in figure.data}
    assert list(traces["Score (exact)"].y) == pytest.approx([3, 3, 1])
    assert list(traces["Shapley value (exact)"].y) == pytest.approx([3, 3, 1])
    arc = traces["Either is enough"]
    assert (arc.x[0], arc.x[-2]) == (1, 2) and arc.x[-1] is None and max(arc.y[:-1]) == 1
    assert "1 and 2<br>together +6.00 nats beyond the sum" in arc.customdata[0]
    assert "either is enough 1, needed both 0" in alt_text(figure)
    assert traces["Score (exact)"].error_y.array is None


def test_needs_both_has_an_arc_of_its_own(found):
    names = [trace.name for trace in passage_scores(found[1], "both").data]
    assert "Needs both" in names and "Either is enough" not in names


def test_a_place_is_told_apart_from_the_passage(found):
    """Passages gain 4, 2, 1 wherever they stand, the first place 1 more, the last 1 less."""
    traces = {trace.name: trace for trace in passage_scores(found[1], "adds").data}
    assert list(traces["Score (exact)"].y) == pytest.approx([5, 2, 0])
    assert list(traces["Effect of the place"].y) == pytest.approx([1, 0, -1], abs=1e-9)


def test_intervals_are_drawn_where_subsets_were_drawn(found):
    analysis = found[1]
    p = analysis.passages
    figure = passage_scores(
        replace(analysis, passages=p.assign(low=p["score"] - 1, high=p["score"] + 2)), "adds"
    )
    bars = next(trace for trace in figure.data if trace.name == "Score, 95 % interval")
    assert list(bars.error_y.arrayminus) == pytest.approx([1] * 3)
    assert list(bars.error_y.array) == pytest.approx([2] * 3)
    assert "score 5.00 (4.00 to 7.00) nats" in bars.customdata[0]


def test_without_places_and_shapley_there_are_bars_only():
    _, analysis = attribution_of(games=("adds",))
    figure = passage_scores(analysis, "adds")
    assert [trace.name for trace in figure.data] == ["Score (exact)"]
    (line,) = {text.count("<br>") for text in figure.data[0].customdata}
    assert line == 1 and "Shapley" not in figure.data[0].customdata[0]  # its name and its score
    assert figure.layout.height == 300 and figure.layout.yaxis.domain == (0, 1)
    empty = slot_effects(analysis)
    assert not empty.data and "not measured in other orders" in alt_text(empty)


def test_the_mean_of_each_place_has_its_n_and_the_placebo():
    """One game with places, twice: effects 1, 0, -1; a swap changes nothing where all passages are there."""
    _, analysis = attribution_of(games=("adds",), place=True)
    figure = slot_effects(analysis)
    marks = figure.data[-1]
    assert marks.name == "Mean, 95 % interval (1 question)"
    assert list(marks.y) == pytest.approx([1, 0, -1], abs=1e-9)
    assert figure.data[0].name == "± swap of neighbours (1 question)"


@pytest.mark.parametrize(("query_id", "said"), [("silent", "no answer"), ("gone", "no such question")])
def test_without_scores_the_figure_says_why(query_id, said, found):
    figure = passage_scores(found[1], query_id)
    assert not figure.data and said in alt_text(figure)


def test_no_lds_is_a_labelled_empty_figure():
    figure = lds_histogram(attribution_of(games=("constant",))[1])
    assert not figure.data and figure.layout.annotations[0].text.replace("<br>", " ") == alt_text(figure)


def test_hostile_text_arrives_escaped():
    _, analysis = attribution_of(games=("either",), place=True, title=HOSTILE, question=HOSTILE)
    for figure in (lds_histogram(analysis), slot_effects(analysis), passage_scores(analysis, "either")):
        shown = shown_strings(figure)
        assert not any("<script>" in text or "$" in text for _, text in shown)
