import html
import re

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from core import charts
from core.charts.bins import thinned
from core.charts.theme import (
    STYLES,
    add_band,
    alt_text,
    count_heatmap,
    count_rows,
    count_step,
    doors,
    empty_figure,
    error_bars,
    fade,
    has_doors,
    name_rows,
    new_figure,
    plain_text,
    question_door,
    safe_text,
    two_sided,
    where_door,
)
from core.text.display import count, number


def _luminance(color):
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("background", ["#ffffff", "#0e1117"])
@pytest.mark.parametrize("name", STYLES)
def test_every_colour_stands_out_on_light_and_dark_pages(name, background):
    pair = sorted((_luminance(STYLES[name].color), _luminance(background)))
    assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 3  # WCAG 2.2, 1.4.11


def test_labels_differ_by_symbol_and_by_hatch():
    labels = [STYLES[name] for name in ("Aligned", "Divergent", "Undefined")]
    assert (
        len({s.symbol for s in labels})
        == len({s.pattern for s in labels})
        == len({s.color for s in labels})
        == 3
    )


def test_markup_is_escaped():
    assert safe_text('<b>a</b> & "b"') == '&lt;b&gt;a&lt;/b&gt; &amp; "b"'


def test_dollar_signs_are_no_latex():
    assert safe_text("from $5 to $10") == "from &#36;5 to &#36;10"


def test_control_characters_and_line_breaks_go():
    assert safe_text("a\x00b\n\tc\u202ed\ud800e") == "a b cde"


def test_text_is_cut_before_it_is_escaped():
    text = safe_text("<" * 500)
    assert html.unescape(text.replace("<br>", "")) == "<" * 79 + "…"
    assert re.fullmatch(r"(&lt;|<br>|…)+", text)  # no half entity


def test_long_text_breaks_into_lines_of_forty():
    assert [len(line) for line in safe_text("x" * 80).split("<br>")] == [40, 40]


@pytest.mark.parametrize(
    ("value", "expected"), [(None, "—"), (float("nan"), "—"), ("", ""), (7, "7"), ("a" * 80, "a" * 80)]
)
def test_plain_text_of_other_values(value, expected):
    assert plain_text(value) == expected


def test_blanks_beyond_the_limit_still_count_as_cut():
    assert plain_text("word" + " " * 5_000 + "end", limit=10) == "word…"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.704, "0.70"), (-0.5, "−0.50"), (-0.001, "0.00"), (np.nan, "—")],
)
def test_numbers_for_people(value, expected):
    assert number(value) == expected


def test_counts_have_their_noun():
    assert (count(1, "case"), count(2_000, "case")) == ("1 case", "2,000 cases")


def test_common_layout():
    figure = new_figure("A sentence.", "across", "up")
    assert alt_text(figure) == "A sentence."
    assert figure.layout.title.text is None
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert figure.layout.font.color is None  # the page's theme decides
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("across", "up")
    legend, margin = figure.layout.legend, figure.layout.margin
    assert (legend.orientation, legend.x, legend.xanchor, legend.y, legend.yanchor) == (
        "h", 0.5, "center", 0, "bottom",
    )  # fmt: skip
    assert (figure.layout.font.size, legend.font.size, figure.layout.height) == (13, 12, 380)
    assert (margin.l, margin.r, margin.t, margin.b) == (8, 12, 16, 8)
    assert figure.layout.hoverlabel.namelength == -1  # names are never cut
    for axis in (figure.layout.xaxis, figure.layout.yaxis):
        # A phone scrolls past a figure whose axes are fixed.
        assert axis.automargin and axis.fixedrange and axis.zeroline is False and axis.title.standoff == 8
    assert figure.layout.dragmode is False


def test_alt_text_of_a_foreign_figure_is_empty():
    assert alt_text(go.Figure()) == ""


def test_empty_figure_says_what_is_missing():
    figure = empty_figure("Nothing is here.")
    assert not figure.data
    (said,) = figure.layout.annotations
    assert said.text == "Nothing is here." == alt_text(figure)
    assert (said.font.size, figure.layout.font.size) == (14, 13)
    assert (said.x, said.y, said.xref, said.yref, said.showarrow) == (0.5, 0.5, "paper", "paper", False)
    assert figure.layout.height == 200 and not (figure.layout.xaxis.visible or figure.layout.yaxis.visible)
    lines = empty_figure("word " * 16 + "end.").layout.annotations[0].text.split("<br>")
    assert list(map(len, lines)) == [39, 39, 4]  # at most forty characters, which a phone has room for


def test_fade_ends_in_the_full_colour():
    assert fade("Aligned", 0.5) == [(0.0, "rgba(0,114,178,0.5)"), (1.0, "rgba(0,114,178,1)")]
    assert fade("Aligned", 0.2, 0.6)[1] == (1.0, "rgba(0,114,178,0.6)")
    assert fade("Aligned")[0] == (0.0, "rgba(0,114,178,0.25)")


def test_heat_map_leaves_empty_cells_clear_and_shows_true_counts():
    trace = count_heatmap(
        np.array([1.0, 2.0]), np.array([1.0]), np.array([[0.0, 100.0]]), "things", "at %{x}"
    )
    assert np.isnan(trace.z[0, 0]) and trace.z[0, 1] == 2
    assert trace.customdata[0, 1] == 100
    assert list(trace.colorbar.ticktext) == ["1", "10", "100"] and trace.colorbar.tickvals == (0, 1, 2)
    assert (trace.zmin, trace.zmax, trace.xgap, trace.ygap) == (0, 2, 1, 1)
    assert (trace.colorbar.thickness, trace.colorbar.outlinewidth, trace.hoverongaps) == (10, 0, False)


@pytest.mark.parametrize(
    ("count", "top", "ticks"), [(0.0, 1, ["1"]), (5.0, 1, ["1"]), (10.0, 1, ["1", "10"])]
)
def test_a_heat_map_of_small_counts_has_a_scale_to_ten(count, top, ticks):
    trace = count_heatmap(np.array([1.0]), np.array([1.0]), np.array([[count]]), "things", "at %{x}")
    assert (trace.zmin, trace.zmax, list(trace.colorbar.ticktext)) == (0, top, ticks)


@pytest.mark.parametrize(("highest", "step"), [(1, 1), (8, 1), (8.1, None), (1_000, None)])
def test_every_count_has_a_tick_while_there_are_few(highest, step):
    assert count_step(highest) == step


def test_bars_of_counts_leave_room_for_their_texts():
    figure = new_figure("A sentence.", "", "")
    count_rows(figure, [2.0, 0.0], ["Two", "None"], ["2 (100 %)", "0"], 1.3)
    assert [(one.x, one.y, one.text, one.xshift) for one in figure.layout.annotations] == [
        (2, "Two", "2 (100 %)", 6), (0, "None", "0", 6),
    ]  # fmt: skip
    assert figure.layout.xaxis.range == (0, 2.6) and figure.layout.yaxis.autorange == "reversed"
    nothing = new_figure("A sentence.", "", "")
    count_rows(nothing, [0.0], ["None"], ["0"], 1.3)
    assert nothing.layout.xaxis.range == (0, 1.3)
    assert list(figure.layout.yaxis.categoryarray) == ["Two", "None"] and not figure.layout.yaxis.showgrid


def test_a_band_goes_there_along_the_upper_ends_and_back_along_the_lower():
    figure = new_figure("A sentence.", "", "")
    add_band(figure, "Band", [1, 2], np.array([0.0, 0.1]), np.array([1.0, 0.9]))
    (trace,) = figure.data
    assert (trace.x, trace.y) == ((1, 2, 2, 1), (1.0, 0.9, 0.1, 0.0))
    assert (trace.line.width, trace.hoverinfo, trace.fill) == (0, "skip", "toself")


def test_only_a_figure_whose_marks_lead_somewhere_says_so():
    figure = new_figure("A sentence.", "", "")
    assert not has_doors(figure) and not has_doors(go.Figure())
    assert doors(figure, ["", ""], ["one", "two"])["customdata"] == [("", "one"), ("", "two")]
    assert not has_doors(figure)
    data = doors(figure, [question_door("a b/c"), where_door("x.y.z:1")], ["one", "two"])["customdata"]
    assert data == [
        ("question=a%20b%2Fc", "one<br>Click to open it"),
        ("where=x.y.z%3A1", "two<br>Click to list these questions"),
    ]
    assert has_doors(figure) and alt_text(figure) == "A sentence."


@pytest.mark.parametrize(
    ("n", "most", "expected"), [(0, 400, []), (1, 400, [0]), (5, 3, [0, 2, 4]), (3, 3, [0, 1, 2])]
)
def test_some_places_of_many_are_evenly_spread(n, most, expected):
    assert thinned(n, most) == expected


def test_a_long_line_has_four_hundred_places():
    places = thinned(1_000)
    assert len(places) == 400 and (places[0], places[-1]) == (0, 999)
    assert thinned(400) == list(range(400))


def test_figures_are_found_by_the_name_of_their_module():
    assert charts.__getattr__("theme").STYLES is STYLES
    with pytest.raises(AttributeError, match=r"'core\.charts' has no attribute 'nothing'"):
        charts.__getattr__("nothing")
    assert {"compare", "influence", "theme"} <= {*charts.__all__} & {*dir(charts)}
    assert dir(charts) == sorted(dir(charts))


def test_error_bars_reach_the_bounds_and_unknown_bounds_have_none():
    bars = error_bars(pd.Series([0.5, 0.2]), pd.Series([0.25, np.nan]), pd.Series([1.0, np.nan]))
    assert (bars["array"].tolist(), bars["arrayminus"].tolist()) == ([0.5, 0], [0.25, 0])
    assert (bars["type"], bars["symmetric"], bars["thickness"], bars["width"]) == ("data", False, 2, 5)


def test_a_two_sided_scale_is_clear_in_the_middle():
    assert [at for at, _ in two_sided()] == [0, 0.5, 0.5, 1]
    assert [color[-3:] for _, color in two_sided()] == [",1)", ",0)", ",0)", ",1)"]


@pytest.mark.parametrize("n", [1, 60, 61, 500])
def test_rows_are_named_from_the_top_and_at_most_sixty_of_them(n):
    figure = new_figure("A sentence.", "", "")
    name_rows(figure, [f"P{i + 1}" for i in range(n)])
    axis = figure.layout.yaxis
    assert axis.range == (n + 0.6, 0.4) and len(axis.tickvals) == len(axis.ticktext) <= 60
    assert list(axis.ticktext) == [f"P{at}" for at in axis.tickvals]
