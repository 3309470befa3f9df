"""What figures are drawn with, at pixels worked out by hand."""

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import plotly.graph_objects as go
import pytest

from core.report.marks import (
    Axis,
    Patterns,
    bars,
    cells,
    color_of,
    lines_of,
    marks,
    numbers,
    on_scale,
    points,
    px,
    stroke,
    text_at,
    tick_text,
)


def axis(low, high, start=100.0, end=200.0, names=(), **layout):
    return Axis(go.layout.XAxis(layout), names, low, high, start, end)


# Ten pixels a unit: to the right, and upwards.
X, Y = axis(0.0, 10.0), axis(0.0, 10.0, 200.0, 100.0)


def elements(svg):
    return [*ET.fromstring(f"<svg>{svg}</svg>")]


@pytest.mark.parametrize(
    ("low", "high", "layout", "expected"),
    [
        # About five steps of 1, 2, 5 or 10 times a power of ten.
        (0, 10, {}, {100: "0", 120: "2", 140: "4", 160: "6", 180: "8", 200: "10"}),
        (0, 5, {}, {100: "0", 120: "1", 140: "2", 160: "3", 180: "4", 200: "5"}),
        (0, 25, {}, {100: "0", 120: "5", 140: "10", 160: "15", 180: "20", 200: "25"}),
        (0, 40, {}, {100: "0", 125: "10", 150: "20", 175: "30", 200: "40"}),
        (0, 5_000, {}, {100: "0", 120: "1,000", 140: "2,000", 160: "3,000", 180: "4,000", 200: "5,000"}),
        (-2, 2, {}, {100: "−2", 125: "−1", 150: "0", 175: "1", 200: "2"}),
        (10, 0, {}, {200: "0", 180: "2", 160: "4", 140: "6", 120: "8", 100: "10"}),
        # 0.3 / 0.1 is a little less than 3, 1.1 / 0.1 a little more than 11.
        (0, 0.3, {"dtick": 0.1}, {100: "0", 133.3: "0.1", 166.7: "0.2", 200: "0.3"}),
        (1.1, 1.2, {"dtick": 0.1}, {100: "1.1", 200: "1.2"}),
        (0, 10, {"dtick": 4, "tick0": 1}, {110: "1", 150: "5", 190: "9"}),
        (0.5, 10.5, {"dtick": 5}, {145: "5", 195: "10"}),
        # Counts have no halves.
        (0, 2, {"tickformat": ",d"}, {100: "0", 150: "1", 200: "2"}),
        (0, 10, {"tickformat": ",d", "dtick": 5}, {100: "0", 150: "5", 200: "10"}),
        (0, 10, {"tickvals": [0, 2.5]}, {100: "0", 125: "2.5"}),
        (0, 10, {"tickvals": [0, 2.5], "ticktext": ["never", "often"]}, {100: "never", 125: "often"}),
        (-0.5, 1.5, {"names": ("a", "b")}, {125: "a", 175: "b"}),
    ],
)  # fmt: skip
def test_ticks_lie_at_round_numbers(low, high, layout, expected):
    found = axis(low, high, **layout).ticks()
    assert {float(px(at)): text for at, text in found} == expected and len(found) == len(expected)


def test_a_text_on_an_axis_is_its_place_and_what_is_missing_nowhere():
    np.testing.assert_array_equal(
        numbers(["b", "a", None, "c", 0.5], ("a", "b")), [1, 0, np.nan, np.nan, 0.5]
    )
    np.testing.assert_array_equal(numbers([2, None], ()), [2, np.nan])
    np.testing.assert_array_equal(Y.at([0, 2.5, None]), [200, 175, np.nan])


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234.0, "1,234"), (-3.0, "−3"), (-0.5, "−0.5"), (0.1 + 0.2, "0.3"), (0.000123, "0.000123"), (1 - 1e-9, "1"), (12_345.0000003, "12,345")],
)  # fmt: skip
def test_the_text_of_a_tick(value, text):
    assert tick_text(value) == text


def test_the_little_html_of_plotly_becomes_lines():
    assert lines_of("<b>a</b> &lt;b&gt;<br>x<sub>2</sub>") == ["a <b>", "x2"]


def test_lines_of_a_text_stand_14_pixels_below_each_other():
    (text,) = elements(text_at(10, 20.06, "first &amp;<br>second<br>third", "end"))
    assert text.attrib == {"x": "10", "y": "20.1", "text-anchor": "end", "font-size": "12"}
    assert [(one.text, one.get("x"), one.get("dy")) for one in text] == [
        ("first &", "10", "0"), ("second", "10", "14"), ("third", "10", "14"),
    ]  # fmt: skip
    (text,) = elements(text_at(10, 20, ["<b>&amp;"], "start", ' transform="rotate(90)"', size=11))
    assert [one.text for one in text] == ["<b>&amp;"]  # a list is of plain lines
    assert (text.get("transform"), text.get("font-size")) == ("rotate(90)", "11")


@pytest.mark.parametrize(
    ("line", "fallback", "expected"),
    [
        ({"color": "red"}, None, {"stroke": "red", "stroke-width": "2"}),
        ({"width": 1.5, "dash": "dot"}, "blue", {"stroke": "blue", "stroke-width": "1.5", "stroke-dasharray": "2 4"}),
        ({"width": 0, "dash": "dash"}, None, {"stroke": "currentColor", "stroke-width": "0", "stroke-dasharray": "7 5"}),
        ({"color": "red", "dash": "solid"}, "blue", {"stroke": "red", "stroke-width": "2"}),
    ],
)  # fmt: skip
def test_a_line_is_two_pixels_wide_unless_it_says_otherwise(line, fallback, expected):
    (path,) = elements(f"<path {stroke(go.scatter.Line(line), fallback)}/>")
    assert path.attrib == {"fill": "none", **expected}


def test_a_colour_for_each_mark_is_that_of_the_page():
    assert color_of(["red", "blue"]) == color_of(None) == "currentColor" and color_of('"') == "&quot;"


def test_a_line_is_interrupted_where_a_value_is_missing():
    given = go.Scatter(x=[0, 1, 2, 3, 4], y=[0, 1, None, 3, 4], line={"color": "red"}, opacity=0.5)
    (path,) = elements(points(given, X, Y))
    assert path.get("d") == "M100 200L110 190M130 170L140 160"
    assert (path.get("stroke"), path.get("opacity")) == ("red", "0.5")


def test_a_band_is_filled_and_has_no_line():
    band = go.Scatter(x=[0, 1, 1], y=[0, 0, 1], mode="lines", fill="toself", fillcolor="gray")
    (path,) = elements(points(band, X, Y))
    assert path.attrib == {"d": "M100 200L110 200L110 190", "fill": "gray"}


def test_lines_and_marks_are_drawn_where_the_mode_says():
    data = {"x": [5], "y": [5], "marker": {"color": "red", "opacity": 0.5}}
    assert [p.get("fill") for p in elements(points(go.Scatter(data, mode="markers"), X, Y))] == ["red"]
    assert [p.get("fill") for p in elements(points(go.Scatter(data, mode="lines"), X, Y))] == ["none"]
    both = elements(points(go.Scatter(data, mode="lines+markers", opacity=0.25), X, Y))
    assert [(p.get("fill"), p.get("opacity")) for p in both] == [("none", "0.25"), ("red", "0.25")]
    unseen = go.Scatter(x=[5], y=[5], mode="markers", marker={"opacity": 0})
    assert points(unseen, X, Y) == ""
    pale = go.Scatter(x=[5], y=[5], mode="markers", marker={"opacity": 0.5})
    assert [p.get("opacity") for p in elements(points(pale, X, Y))] == ["0.5"]


def test_error_bars_end_at_their_limits():
    given = go.Scatter(
        x=[5, 2, None], y=[5, 1, 3], mode="markers", marker={"color": "red", "opacity": 0},
        error_x={"array": [1, 0.5, 1], "arrayminus": [2, 1, 1]},
        error_y={"array": [3, 2, 1], "arrayminus": [1, 0.5, 1], "color": "blue", "thickness": 1.5},
    )  # fmt: skip
    across, up = elements(points(given, X, Y))
    assert across.get("d") == "M130 150H160M110 190H125"
    assert up.get("d") == "M150 160V120M120 195V170"
    assert [(one.get("fill"), one.get("stroke"), one.get("stroke-width")) for one in (across, up)] == [
        ("none", "red", "2"), ("none", "blue", "1.5"),
    ]  # fmt: skip


def test_error_bars_of_names_begin_at_the_place_of_the_name():
    given = go.Scatter(
        x=[5], y=["b"], mode="markers", marker={"opacity": 0}, error_x={"array": [1], "arrayminus": [1]}
    )
    (path,) = elements(points(given, X, axis(-0.5, 1.5, 200, 100, ("a", "b"))))
    assert path.get("d") == "M140 125H160"


def mark(symbol="circle", size=None, at=((10.0, 20.0),), known=None):
    across, up = np.array(at, dtype=float).reshape(-1, 2).T
    there = np.ones(len(at), dtype=bool) if known is None else known
    return elements(marks(go.scatter.Marker(symbol=symbol, size=size), across, up, there, ""))


def test_a_circle_has_the_size_of_the_mark():
    # Two half circles, from the left end to the right one and back.
    assert mark(size=5)[0].get("d") == "M7.5 20a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0z"
    assert mark()[0].get("d") == "M7 20a3 3 0 1 0 6 0a3 3 0 1 0-6 0z"  # six pixels, as in plotly
    assert mark(None)[0].get("d") == mark()[0].get("d")
    assert mark("line-ns", 8)[0].get("d") == "M10 16V24"


def test_each_mark_has_its_own_size_also_after_a_missing_one():
    known = np.array([True, False, True])
    (path,) = mark("line-ns", [2, 100, 4], [(1, 10), (3, 10)], known)
    assert path.get("d") == "M1 9V11M3 8V12"


def test_marks_that_look_the_same_are_drawn_once():
    (path,) = mark("line-ns", [2, 2, 4], [(1, 10), (1, 10), (1, 10)])
    assert path.get("d") == "M1 9V11M1 8V12"
    assert mark(at=[]) == []


@pytest.mark.parametrize(
    ("marker", "expected"),
    [
        ({"color": "red"}, {"fill": "red"}),
        ({"color": "red", "line": {"color": "blue", "width": 1.5}},
         {"fill": "red", "stroke": "blue", "stroke-width": "1.5"}),
        ({"color": "red", "line": {"color": "blue", "width": 0}}, {"fill": "red"}),
        ({"symbol": "circle-open", "color": "red"}, {"fill": "none", "stroke": "red", "stroke-width": "2"}),
        ({"symbol": "circle-open", "color": "red", "line": {"color": "blue", "width": 3}},
         {"fill": "none", "stroke": "red", "stroke-width": "3"}),
        ({"symbol": "line-ns", "color": "red", "line": {"color": "blue"}},
         {"fill": "none", "stroke": "blue", "stroke-width": "2"}),
        ({"color": "red", "opacity": 0.5}, {"fill": "red", "opacity": "0.5"}),
    ],
)  # fmt: skip
def test_what_a_mark_is_painted_with(marker, expected):
    (path,) = elements(points(go.Scatter(x=[1], y=[1], mode="markers", marker=marker), X, Y))
    assert {name: value for name, value in path.attrib.items() if name != "d"} == expected


def corners(symbol):
    """The corners of a symbol of radius 1 around 0, y upwards."""
    (path,) = mark(symbol, 20_000, [(0.0, 0.0)])
    assert path.get("d").startswith("M") and path.get("d").endswith("z")
    found = re.findall(r"(-?[\d.]+(?:e\+\d+)?) (-?[\d.]+(?:e\+\d+)?)", path.get("d"))
    return [complex(float(x), -float(y)) / 10_000 for x, y in found]


def same_outline(one, other):
    """Whether two closed outlines have the same edges, whichever way round."""

    def edges(outline):
        ends = [(round(z.real, 3) + 0.0, round(z.imag, 3) + 0.0) for z in outline]
        return {frozenset(edge) for edge in zip(ends, [*ends[1:], ends[0]], strict=True)}

    return edges(one) == edges(other)


@pytest.mark.parametrize(
    ("symbol", "n", "turns"),
    [("square", 4, 4), ("diamond", 4, 4), ("triangle-up", 3, 1), ("triangle-down", 3, 1), ("star", 10, 5),
     ("cross", 12, 4), ("x", 12, 4)],
)  # fmt: skip
def test_a_symbol_is_even_and_about_as_large_as_a_circle(symbol, n, turns):
    found = corners(symbol)
    assert len({(round(z.real, 3), round(z.imag, 3)) for z in found}) == len(found) == n
    assert same_outline(found, [-z.conjugate() for z in found])  # left as right
    turn = complex(math.cos(2 * math.pi / turns), math.sin(2 * math.pi / turns))
    assert same_outline(found, [z * turn for z in found])
    # Gauss's area of a polygon; that of a circle is pi.
    area = abs(sum((a.conjugate() * b).imag for a, b in zip(found, [*found[1:], found[0]], strict=True))) / 2
    assert 0.65 * math.pi < area < 1.05 * math.pi
    assert all(0.5 <= abs(z) <= 1.4 for z in found)


def test_symbols_stand_upright():
    for symbol in ("star", "triangle-up"):
        (tip,) = [z for z in corners(symbol) if z.imag == max(one.imag for one in corners(symbol))]
        assert tip.real == 0
    assert same_outline(corners("triangle-down"), [z.conjugate() for z in corners("triangle-up")])
    # The corners nearest to the middle lie between the axes, or on them.
    for symbol, between in (("square", True), ("cross", True), ("diamond", False), ("x", False)):
        nearest = min(corners(symbol), key=abs)
        assert (abs(nearest.real) == abs(nearest.imag)) == between
    assert corners("square-open") == corners("square")


def drawn_bars(given, before=None, defs=None, x=X, y=Y):
    return elements(bars(go.Bar(given), x, y, before, defs or Patterns("k")))


def test_a_bar_is_as_long_as_its_value_and_as_wide_as_it_says():
    (path,) = drawn_bars({"x": [2], "y": [5], "width": 1, "marker": {"color": "red"}})
    assert path.attrib == {"d": "M115 200H125V150H115z", "fill": "red"}
    lying = {"x": [5, 3], "y": [2, 6], "width": [1, 2], "base": [1, 2], "orientation": "h"}
    (path,) = drawn_bars(lying)
    assert path.get("d") == "M110 185H160V175H110zM120 150H150V130H120z"
    (path,) = drawn_bars({"x": [2, 4], "y": [5, 3], "width": 1, "base": 1})
    assert path.get("d") == "M115 190H125V140H115zM135 190H145V160H135z"


def test_bars_leave_a_fifth_of_the_distance_between_them():
    (path,) = drawn_bars({"x": [2, 4, 8], "y": [5, 5, 5]})  # 2 apart at least: 1.6 wide
    assert path.get("d") == "M112 200H128V150H112zM132 200H148V150H132zM172 200H188V150H172z"
    (path,) = drawn_bars({"x": [2], "y": [5]})
    assert path.get("d") == "M116 200H124V150H116z"
    (path,) = drawn_bars({"x": ["b"], "y": [5]}, x=axis(-0.5, 1.5, names=("a", "b")))
    assert path.get("d") == "M155 200H195V150H155z"


def test_a_bar_without_value_or_place_is_not_drawn():
    (path,) = drawn_bars({"x": [2, None, 4], "y": [None, 5, 5], "width": 1})
    assert path.get("d") == "M135 200H145V150H135z"


def test_stacked_bars_grow_up_and_down_from_zero():
    before = {}
    y = axis(-10.0, 10.0, 300.0, 100.0)
    found = [
        drawn_bars({"x": [2, 4], "y": values, "width": 1}, before, y=y)[0].get("d")
        for values in ([1, 2], [-3, 1], [2, -1])
    ]
    assert found == [
        "M115 200H125V190H115zM135 200H145V180H135z",
        "M115 200H125V230H115zM135 180H145V170H135z",
        "M115 190H125V170H115zM135 200H145V210H135z",
    ]


@pytest.mark.parametrize(
    ("look", "expected"),
    [
        ({"marker": {"line": {"color": "blue", "width": 1.5}}}, {"stroke": "blue", "stroke-width": "1.5"}),
        ({"marker": {"line": {"color": "blue", "width": 0}}}, {}),
        ({"opacity": 0.5}, {"opacity": "0.5"}),
        ({"opacity": 0.5, "marker": {"opacity": 0.25}}, {"opacity": "0.25"}),
    ],
)
def test_the_edge_of_a_bar_and_how_pale_it_is(look, expected):
    (path,) = drawn_bars({"x": [2], "y": [5], **look})
    assert {name: value for name, value in path.attrib.items() if name not in ("d", "fill")} == expected


def test_a_hatch_lies_over_its_bar_and_is_defined_once():
    defs = Patterns("key")
    hatched = {"x": [2], "y": [5], "marker": {"color": "red", "pattern": {"shape": "/"}}}
    other = hatched | {"marker": {"pattern": {"shape": "x"}}}
    first, again, second = (drawn_bars(one, defs=defs) for one in (hatched, hatched, other))
    assert [one.get("fill") for one in first] == ["red", "url(#key-0)"]
    assert first[0].get("d") == first[1].get("d")
    assert [again[1].get("fill"), second[1].get("fill")] == ["url(#key-0)", "url(#key-1)"]
    (written,) = elements(defs.written())
    assert [one.get("id") for one in written] == ["key-0", "key-1"]
    assert defs.fill("") == defs.fill(None) == Patterns("k").written() == ""


BLACK_TO_RED = [[0, "#000000"], [1, "#ff0000"]]


def drawn_cells(z, x=(2, 4), y=(3, 7), **given):
    return elements(cells(go.Heatmap(z=z, x=x, y=y, colorscale=BLACK_TO_RED, **given), X, Y))


def test_cells_meet_halfway_and_have_the_colour_of_their_value():
    found = drawn_cells([[0, 2], [None, 4]])
    # Between 2 and 4 lies 3, between 3 and 7 lies 5; the outer cells are as wide as the inner ones.
    assert [one.get("d") for one in found] == [
        "M110 150H130V190H110z", "M130 150H150V190H130z", "M130 110H150V150H130z",
    ]  # fmt: skip
    assert [one.get("fill") for one in found] == ["rgba(0,0,0,1)", "rgba(128,0,0,1)", "rgba(255,0,0,1)"]
    uneven = drawn_cells([[0, 0, 0]], x=(1, 3, 7), y=(5,))
    assert [one.get("d") for one in uneven] == [
        "M100 145H120V155H100z", "M120 145H150V155H120z", "M150 145H190V155H150z",
    ]  # fmt: skip


def test_cells_may_be_given_by_their_edges_and_one_cell_is_one_unit_wide():
    (one,) = drawn_cells([[3]], x=(2, 5), y=(4, 6))
    assert (one.get("d"), one.get("fill")) == ("M120 140H150V160H120z", "rgba(0,0,0,1)")
    (one,) = drawn_cells([[3]], x=(2,), y=(5,))
    assert one.get("d") == "M115 145H125V155H115z"


def test_the_scale_of_cells_may_end_elsewhere():
    found = drawn_cells([[1, 2]], y=(5,), zmin=0, zmax=4)
    assert [one.get("fill") for one in found] == ["rgba(64,0,0,1)", "rgba(128,0,0,1)"]
    found = drawn_cells([[1, 2]], y=(5,), zmax=5)
    assert [one.get("fill") for one in found] == ["rgba(0,0,0,1)", "rgba(64,0,0,1)"]
    assert drawn_cells([[1, 2]], y=(5,), zmin=-2)[0].get("fill") == "rgba(191,0,0,1)"


def test_the_text_of_a_cell_stands_in_its_middle():
    text = [["0 %", ""], ["no", "100 %"]]
    found = drawn_cells([[0, 2], [None, 4]], text=text, texttemplate="%{text}")
    said = {
        one[0].text: (one.get("x"), one.get("y"), one.get("text-anchor"))
        for one in found
        if one.tag == "text"
    }
    # Four pixels below the middle, as a letter is eight high; without a value nothing is written.
    assert said == {"0 %": ("120", "174", "middle"), "100 %": ("140", "134", "middle")}
    assert {one.get("font-size") for one in found if one.tag == "text"} == {"11"}
    assert [one.tag for one in drawn_cells([[0, 2], [None, 4]], text=text)] == ["path"] * 3


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0, "rgba(0,16,32,1)"), (0.25, "rgba(64,16,48,0.75)"), (0.5, "rgba(128,16,64,0.5)"), (1, "rgba(255,254,253,1)")],
)  # fmt: skip
def test_a_colour_between_two_of_a_scale(share, expected):
    assert (
        on_scale([(0, "#001020"), (0.5, "rgba(128, 16, 64, .5)"), (1, "rgb(255, 254, 253)")], share)
        == expected
    )
