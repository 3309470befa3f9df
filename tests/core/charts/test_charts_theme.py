import html
import re

import numpy as np
import pandas as pd
import pytest

from core.charts.theme import (
    STYLES,
    alt_text,
    count_heatmap,
    empty_figure,
    error_bars,
    fade,
    name_rows,
    new_figure,
    plain_text,
    safe_text,
    two_sided,
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
    assert figure.layout.legend.orientation == "h"


def test_alt_text_of_a_foreign_figure_is_empty():
    import plotly.graph_objects as go

    assert alt_text(go.Figure()) == ""


def test_empty_figure_says_what_is_missing():
    figure = empty_figure("Nothing is here.")
    assert not figure.data
    (said,) = figure.layout.annotations
    assert said.text == "Nothing is here." == alt_text(figure)
    assert (said.font.size, figure.layout.font.size) == (14, 13)


def test_fade_ends_in_the_full_colour():
    assert fade("Aligned", 0.5) == [(0.0, "rgba(0,114,178,0.5)"), (1.0, "rgba(0,114,178,1)")]


def test_heat_map_leaves_empty_cells_clear_and_shows_true_counts():
    trace = count_heatmap(
        np.array([1.0, 2.0]), np.array([1.0]), np.array([[0.0, 100.0]]), "things", "at %{x}"
    )
    assert np.isnan(trace.z[0, 0]) and trace.z[0, 1] == 2
    assert trace.customdata[0, 1] == 100
    assert list(trace.colorbar.ticktext) == ["1", "10", "100"]


def test_error_bars_reach_the_bounds_and_unknown_bounds_have_none():
    bars = error_bars(pd.Series([0.5, 0.2]), pd.Series([0.25, np.nan]), pd.Series([1.0, np.nan]))
    assert (bars["array"].tolist(), bars["arrayminus"].tolist()) == ([0.5, 0], [0.25, 0])


def test_a_two_sided_scale_is_clear_in_the_middle():
    assert [at for at, _ in two_sided()] == [0, 0.5, 0.5, 1]
    assert [color[-3:] for _, color in two_sided()] == [",1)", ",0)", ",0)", ",1)"]


@pytest.mark.parametrize("n", [1, 60, 61, 500])
def test_rows_are_named_from_the_top_and_at_most_sixty_of_them(n):
    figure = new_figure("A sentence.", "", "")
    name_rows(figure, [f"P{i + 1}" for i in range(n)])
    axis = figure.layout.yaxis
    assert axis.range[0] > axis.range[1] and len(axis.tickvals) == len(axis.ticktext) <= 60
    assert list(axis.ticktext) == [f"P{at}" for at in axis.tickvals]
