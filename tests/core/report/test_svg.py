"""Where a figure puts its parts, in pixels worked out by hand."""

import xml.etree.ElementTree as ET

import plotly.graph_objects as go
import pytest

from core.report.svg import figure_html

SCALE = [[0, "#000000"], [1, "#ff0000"]]


class Drawn:
    """A figure as SVG: its parts in the order of drawing."""

    def __init__(self, figure):
        root = ET.fromstring(f"<div>{figure_html(figure, 'k')}</div>")
        self.svg, *self.legends = root
        self.view = self.svg.get("viewBox")

    def paths(self, of="path"):
        """The paths that are no grid, or with ``of="grid"`` the grid."""
        return [p.get("d") for p in self.svg.iter("path") if (p.get("class") == "grid") == (of == "grid")]

    @property
    def texts(self):
        """Place and anchor by text; a text of several lines is joined by a bar."""
        found = [one for one in self.svg if one.tag == "text"]
        return {
            "|".join(span.text or "" for span in one): (float(one.get("x")), float(one.get("y")), one.get("text-anchor"))
            for one in found
        }  # fmt: skip

    @property
    def legend(self):
        """What the entries of the legend say."""
        return [entry[0].tail for each in self.legends for entry in each]

    def swatch(self, said):
        """The parts of the sign before an entry of the legend."""
        (found,) = [entry[0] for each in self.legends for entry in each if entry[0].tail == said]
        return [*found]


def plain(*traces, **layout):
    """A figure in which one unit is one pixel: x from 14 pixels on, y upwards from 176, as far as 386 and 10.

    It is 200 pixels high; 24 below are for the ticks, 14 on the left for the names of rows, which are none.
    """
    return go.Figure(traces, layout={
        "height": 240, "xaxis": {"range": [0, 372], "tickvals": [], **layout.pop("xaxis", {})},
        "yaxis": {"range": [0, 166], "tickvals": [], **layout.pop("yaxis", {})}, **layout,
    })  # fmt: skip


def bar(x, y, **more):
    return go.Bar(x=x, y=y, width=20, **more)


AT_100_50 = go.Scatter(x=[100, 100], y=[50, 60])


def test_a_figure_is_400_wide_and_as_high_as_it_says_without_the_title():
    assert Drawn(plain(AT_100_50)).view == "0 0 400 200"
    assert Drawn(go.Figure(AT_100_50)).view == "0 0 400 340"


def test_traces_and_grid_meet_at_their_values():
    ticks = {"xaxis": {"tickvals": [0, 100]}, "yaxis": {"tickvals": [0, 50], "ticktext": ["", ""]}}
    found = Drawn(plain(AT_100_50, bar([200], [40]), **ticks))
    assert found.paths("grid") == ["M14 176H386", "M14 126H386", "M14 10V176", "M114 10V176"]
    assert found.paths() == ["M114 126L114 116", "M204 176H224V136H204z"]
    assert found.texts["100"] == (114, 192, "middle")


def test_names_of_rows_stand_left_of_the_plot():
    found = Drawn(plain(AT_100_50, yaxis={"tickvals": [0, 166], "ticktext": ["three", "five5five5"]}))
    # The longest has ten letters of 6.6 pixels, with 14 beside them.
    assert found.texts == {"three": (74, 180, "end"), "five5five5": (74, 14, "end")}
    assert found.paths("grid") == ["M80 176H386", "M80 10H386"]


def test_long_names_of_rows_are_wrapped_at_22_letters():
    names = ["Ten lett and eleven 22 and", "Ten lett and eleven 23s and", "one<br>two<br>three"]
    found = Drawn(plain(AT_100_50, yaxis={"tickvals": [0, 100, 50], "ticktext": names}))
    # 14 + 22 letters of 6.6 pixels; the middle of the lines is level with the value.
    assert found.texts == {
        "Ten lett and eleven 22|and": (153.2, 173, "end"),
        "Ten lett and eleven|23s and": (153.2, 73, "end"),
        "one|two|three": (153.2, 116, "end"),
    }


def test_titles_of_axes_take_room():
    axes = {
        "yaxis": {"title": {"text": "Upwards"}},
        "xaxis": {"tickvals": [0], "title": {"text": "Sideways"}},
    }
    found = Drawn(plain(AT_100_50, bar([200], [0]), **axes))
    # 20 more on the left; 48 below instead of 24.
    assert found.paths("grid") == ["M34 10V152"]
    assert found.texts == {
        "Upwards": (12, 81, "middle"),
        "0": (34, 168, "middle"),
        "Sideways": (210, 196, "middle"),
    }
    turned = next(one for one in found.svg if one.tag == "text" and one[0].text == "Upwards")
    assert turned.get("transform") == "rotate(-90 12 81)"
    two = {
        "yaxis": {"title": {"text": "Up<br>wards"}},
        "xaxis": {"tickvals": [0], "title": {"text": "Side<br>ways"}},
    }
    found = Drawn(plain(AT_100_50, **two))
    assert found.paths("grid") == ["M54 10V138"]
    assert found.texts["Side|ways"] == (220, 182, "middle") and found.texts["Up|wards"] == (12, 74, "middle")


def test_an_axis_that_is_not_visible_takes_no_room():
    shown = {"tickvals": [0], "title": {"text": "Title"}, "visible": False}
    found = Drawn(plain(AT_100_50, xaxis=shown))
    assert found.texts == {} and found.paths("grid") == [] and found.paths() == ["M114 126L114 116"]
    found = Drawn(plain(go.Scatter(x=[0, 372], y=[0, 166]), yaxis=shown))
    assert found.texts == {} and found.paths() == ["M8 176L386 10"]


def test_there_is_no_grid_where_the_figure_wants_none_and_none_for_names():
    ticks = {"xaxis": {"tickvals": [100]}, "yaxis": {"tickvals": [50]}}
    assert len(Drawn(plain(AT_100_50, **ticks)).paths("grid")) == 2
    for axis, other in (("xaxis", "M"), ("yaxis", "V")):
        layout = {name: {**own, "showgrid": name != axis} for name, own in ticks.items()}
        found = Drawn(plain(AT_100_50, **layout))
        assert len(found.paths("grid")) == 1 and other in found.paths("grid")[0] and len(found.texts) == 2
    by_name = go.Scatter(x=["a", "b"], y=[50, 60])
    found = Drawn(plain(by_name, xaxis={"range": None, "tickvals": None}))
    # Two names share 372 pixels: their middles are a quarter from either end.
    assert found.paths("grid") == [] and found.paths() == ["M107 126L293 116"]
    assert found.texts == {"a": (107, 192, "middle"), "b": (293, 192, "middle")}


def test_names_may_be_in_an_order_of_their_own_and_an_axis_turned_round():
    by_name = go.Scatter(x=[0, 10], y=["a", "b"])
    names = {"range": None, "tickvals": None, "categoryarray": ["c", "b", "a"]}
    assert [(at[1], name) for name, at in Drawn(plain(by_name, yaxis=names)).texts.items()] == [
        (152.3, "c"), (97, "b"), (41.7, "a"),
    ]  # fmt: skip
    turned = plain(AT_100_50, xaxis={"range": [0, 372], "autorange": "reversed"})
    assert Drawn(turned).paths() == ["M286 126L286 116"]


def test_the_room_above_is_the_margin_without_six_and_ten_at_least():
    for margin, top in ((60, 54), (16, 10), (0, 10), (17, 11)):
        found = Drawn(plain(AT_100_50, xaxis={"tickvals": [0]}, margin={"t": margin}))
        assert found.paths("grid") == [f"M14 {top}V176"]


def test_two_plots_above_each_other_have_an_axis_each_and_names_below_once():
    lower, upper = go.Scatter(x=[0], y=[5]), go.Scatter(x=[0, 372], y=[0, 1], yaxis="y2")
    layout = {
        "xaxis": {"range": [0, 372], "tickvals": [0]},
        "yaxis": {"range": [0, 10], "tickvals": [], "domain": [0, 0.5]},
        "yaxis2": {"range": [0, 1], "tickvals": [], "domain": [0.75, 1]},
    }
    found = Drawn(go.Figure([upper, lower], layout={"height": 240, **layout}))
    # Of the 166 pixels the lower plot has 83, the upper 41.5.
    assert found.paths("grid") == ["M14 93V176", "M14 10V51.5"]
    assert found.paths() == ["M14 51.5L386 10", "M14 134.5"] and [*found.texts] == ["0"]
    below = {**layout, "xaxis": {**layout["xaxis"], "anchor": "y2"}}
    svg = Drawn(go.Figure([upper, lower], layout={"height": 240, **below})).svg
    assert [one[0].text for one in svg if one.tag == "text"] == ["0"]
    only = Drawn(go.Figure([upper], layout={"height": 240, **layout}))
    assert [*only.texts] == ["0"]  # the only plot has the names


def extent(*traces, way="yaxis", **axis):
    """The values at the two ends of the axis on which no range is set, from where 0 and 1 lie."""

    def place(value):
        own = {"range": None, "tickvals": [value], "ticktext": ["."], **axis}
        return Drawn(plain(*traces, yaxis2={"tickvals": []}, **{way: own})).texts["."]

    zero, one = place(0), place(1)
    if way == "xaxis":
        low = (14 - zero[0]) / (one[0] - zero[0])
        return low, low + 372 / (one[0] - zero[0])
    low = (180 - zero[1]) / (one[1] - zero[1])
    return low, low + 166 / (zero[1] - one[1])


ERRORS = {"array": [1, 3], "arrayminus": [2, 1]}


@pytest.mark.parametrize(
    ("trace", "axis", "low", "high"),
    [
        (go.Scatter(x=[5, 6], y=[1, 3]), {}, 0.9, 3.1),  # a twentieth of the span on both sides
        (go.Scatter(x=[5, 6], y=[1, 3]), {"rangemode": "tozero"}, 0, 3.1),
        (go.Scatter(x=[5, 6], y=[-1, 3]), {"rangemode": "tozero"}, -1.2, 3.2),
        (go.Scatter(x=[5, 6], y=[1, 3], error_y=ERRORS), {}, -1.35, 6.35),  # from 1 - 2 to 3 + 3
        (go.Scatter(x=[5, 6], y=[1, 3], error_x=ERRORS), {}, 0.9, 3.1),
        (go.Bar(x=[5, 6], y=[1, 2]), {}, 0, 2.1),
        (go.Bar(x=[5, 6], y=[-1, -2]), {}, -2.1, 0.1),
        (go.Bar(x=[5, 6], y=[-1, 1]), {}, -1.1, 1.1),
        (go.Scatter(x=[5, 6], y=[None, None]), {}, 0, 1),
        (go.Scatter(x=[5, 6, 7], y=[1, None, 3]), {}, 0.9, 3.1),
        (go.Scatter(x=[5, 6], y=[3, 3]), {}, 3, 4),
        (go.Heatmap(z=[[1, 2]] * 3, x=[5, 6], y=[1, 2, 3], colorscale=SCALE), {}, 0.5, 3.5),  # middles of cells
        (go.Heatmap(z=[[1, 2]] * 2, x=[5, 6], y=[1, 2, 3], colorscale=SCALE), {}, 1, 3),  # their edges
        (go.Scatter(x=[5, 6], y=[1, 3]), {"range": [0, 4]}, 0, 4),
    ],
)  # fmt: skip
def test_an_axis_without_range_holds_all_its_data(trace, axis, low, high):
    low_found, high_found = extent(trace, **axis)
    assert low_found == pytest.approx(low, abs=0.05) and high_found == pytest.approx(high, abs=0.05)


def test_both_ends_of_the_other_axis_come_from_its_own_data():
    cells = go.Heatmap(z=[[1, 2, 3]] * 2, x=[2, 3, 4], y=[5, 6], colorscale=SCALE)
    assert extent(cells, way="xaxis") == pytest.approx((1.5, 4.5), abs=0.02)
    errors = go.Scatter(x=[1, 3], y=[5, 6], error_x=ERRORS)
    assert extent(errors, way="xaxis") == pytest.approx((-1.35, 6.35), abs=0.05)
    # The second y axis does not stretch the first, both share x.
    far = go.Scatter(x=[9, 11], y=[900, 1000], yaxis="y2")
    near = go.Scatter(x=[1, 3], y=[1, 3])
    assert extent(near, far) == pytest.approx((0.9, 3.1), abs=0.05)
    assert extent(near, far, way="xaxis") == pytest.approx((0.5, 11.5), abs=0.05)


def test_stacked_bars_of_a_figure_lie_on_each_other():
    two = [bar([100], [30]), bar([100], [20])]
    assert Drawn(plain(*two, barmode="stack")).paths() == ["M104 176H124V146H104z", "M104 146H124V126H104z"]
    assert Drawn(plain(*two)).paths() == ["M104 176H124V146H104z", "M104 176H124V156H104z"]


def test_limits_are_lines_from_end_to_end():
    def line(**where):
        return Drawn(plain(AT_100_50, shapes=[{"type": "line", **where}])).paths()[0]

    assert line(x0=100, x1=100, y0=0, y1=1, yref="paper") == "M114 176L114 10"
    assert line(x0=0, x1=0.5, xref="x domain", y0=50, y1=60) == "M14 126L200 116"
    drawn = Drawn(
        plain(
            AT_100_50, shapes=[{"type": "line", "x0": 0, "x1": 1, "y0": 0, "y1": 0, "line": {"dash": "dash"}}]
        )
    )
    assert next(drawn.svg.iter("path")).get("stroke-dasharray") == "7 5"


def note(text="Note", size=None, **where):
    """Place, anchor and size of a note; at (100, 50) unless it says otherwise."""
    given = {"x": 100, "y": 50, "text": text, "font": {"size": size}, **where}
    found = Drawn(plain(AT_100_50, annotations=[given]))
    (drawn,) = [one for one in found.svg if one.tag == "text"]
    return *next(iter(found.texts.values())), drawn.get("font-size")


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({}, (114, 130, "middle", "12")),  # letters are eight pixels high: half of that below the value
        ({"text": "a<br>b"}, (114, 123, "middle", "12")),
        ({"yanchor": "bottom"}, (114, 122, "middle", "12")),
        ({"yanchor": "bottom", "text": "a<br>b"}, (114, 108, "middle", "12")),
        ({"yanchor": "top"}, (114, 138, "middle", "12")),
        ({"yanchor": "top", "text": "a<br>b"}, (114, 138, "middle", "12")),
        ({"xshift": 6, "size": 11.5}, (120, 130, "middle", "11")),
        ({"size": 30}, (114, 130, "middle", "12")),
        ({"xanchor": "left"}, (114, 130, "start", "12")),
        ({"xanchor": "right"}, (114, 130, "end", "12")),
        ({"x": 0.5, "xref": "paper", "y": 1, "yref": "paper"}, (200, 14, "middle", "12")),
        ({"x": 0.5, "xref": "x domain", "y": 0, "yref": "y domain"}, (200, 180, "middle", "12")),
        # Ten letters of 6.6 pixels would leave the picture: they end four pixels before its end, begin at its start.
        ({"text": "ten letter", "xanchor": "left", "x": 1, "xref": "paper"}, (330, 130, "start", "12")),
        ({"text": "ten letter", "xanchor": "left", "x": 1, "xref": "paper", "size": 10}, (341, 130, "start", "10")),
        ({"text": "ten letter", "xanchor": "right", "x": 0}, (66, 130, "end", "12")),
        ({"text": "x<br>ten letter", "xanchor": "right", "x": 0, "size": 6}, (33, 123, "end", "6")),
        ({"text": "ten letter", "x": 372}, (386, 130, "middle", "12")),
    ],
)  # fmt: skip
def test_a_note_stands_where_it_belongs_and_stays_in_the_picture(given, place):
    assert note(**given) == place


@pytest.mark.parametrize(
    ("given", "end"),
    [
        # A note of 20 letters is 132 pixels wide; four are left at the edge: 400 - 4 - 132.
        ({"x": 372, "text": "20 letters, 20 lette"}, 264),
        ({"x": 372, "text": "20 letters, 20 lette<br>fewer"}, 264),
        ({"x": 372, "text": "20 letters, 20 lette", "xshift": 6}, 258),
        # At half of the width there is room enough, at 9/10 the mark is 250 / 0.9 from the start.
        ({"x": 186, "text": "20 letters, 20 lette"}, 386),
        ({"x": 334.8, "text": "20 letters, 20 lette"}, 291.8),
        ({"x": 0, "text": "20 letters, 20 lette"}, 386),
        # Half of the plot is left at least.
        ({"x": 372, "text": "60 letters, " * 5}, 200),
        # Other notes need no room.
        ({"x": 372, "text": "20 letters, 20 lette", "xanchor": "center"}, 386),
        ({"x": 1, "xref": "paper", "text": "20 letters, 20 lette"}, 386),
        ({"x": 372, "text": ""}, 386),
    ],
)  # fmt: skip
def test_notes_right_of_their_marks_have_room(given, end):
    notes = [{"y": 50, "xanchor": "left", **given}]
    found = Drawn(plain(AT_100_50, yaxis={"tickvals": [0], "ticktext": [""]}, annotations=notes))
    assert found.paths("grid") == [f"M14 176H{end:g}"]


def test_the_plot_ends_where_the_widest_note_lets_it_and_its_title_stays_in_the_middle():
    notes = [
        {"x": 372, "y": 50, "xanchor": "left", "text": text}
        for text in ("ten letter", "20 letters, 20 lette")
    ]
    found = Drawn(plain(AT_100_50, xaxis={"title": {"text": "T"}}, annotations=notes))
    assert found.texts["T"] == (139, 196, "middle")  # between 14 and 264
    assert found.texts["ten letter"][0] == 264


NAMED = go.Scatter(x=[1], y=[1], name="lines", mode="lines", line={"color": "red"})


def test_the_legend_has_every_name_and_a_single_one_needs_none():
    marked = go.Scatter(x=[1], y=[1], name="a &lt; <b>b</b>", mode="markers", marker={"color": "blue"})
    hidden = go.Scatter(x=[1], y=[1], name="hidden", showlegend=False)
    found = Drawn(plain(NAMED, marked, hidden, go.Scatter(x=[1], y=[1])))
    assert found.legend == ["lines", "a < b"]
    assert Drawn(plain(bar([1], [1], name="bars"))).legends == []
    assert Drawn(plain(NAMED, hidden)).legends == [] == Drawn(plain(AT_100_50)).legends
    limit = {"type": "line", "x0": 0, "x1": 1, "y0": 0, "y1": 0, "name": "limit", "line": {"color": "green"}}
    found = Drawn(plain(NAMED, shapes=[{**limit, "showlegend": True}]))
    assert found.legend == ["lines", "limit"] and found.swatch("limit")[0].get("stroke") == "green"
    assert Drawn(plain(NAMED, shapes=[limit])).legends == []
    assert Drawn(plain(NAMED, shapes=[{**limit, "name": None, "showlegend": True}])).legends == []


def swatch(trace):
    return Drawn(plain(NAMED, trace)).swatch("it")


def test_the_sign_of_a_bar_has_its_hatch_and_is_as_pale():
    (solid,) = swatch(bar([1], [1], name="it", marker={"color": "blue"}))
    assert solid.get("fill") == "blue" and solid.get("opacity") is None
    pattern = {"color": "blue", "pattern": {"shape": "/"}}
    below, above = swatch(bar([1], [1], name="it", marker=pattern, opacity=0.5))
    assert (below.get("fill"), below.get("opacity"), above.get("fill")) == ("blue", "0.5", "url(#k-0)")
    assert below.get("d") == above.get("d")
    (pale,) = swatch(bar([1], [1], name="it", marker={"opacity": 0.25}, opacity=0.5))
    assert pale.get("opacity") == "0.25"


def test_the_sign_of_a_line_a_band_or_a_mark_looks_like_it():
    (line,) = swatch(go.Scatter(x=[1], y=[1], name="it", line={"color": "blue", "dash": "dot"}))
    assert (line.get("stroke"), line.get("stroke-dasharray")) == ("blue", "2 4")
    (band,) = swatch(go.Scatter(x=[1], y=[1], name="it", mode="lines", fill="toself", fillcolor="blue"))
    assert band.get("fill") == "blue" and band.get("stroke") is None
    (mark,) = swatch(
        go.Scatter(x=[1], y=[1], name="it", mode="markers", marker={"size": 30, "color": "blue"})
    )
    # Nine pixels wide whatever its size, in the middle of 20 by 14.
    assert mark.get("d") == "M5.5 7a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z" and mark.get("fill") == "blue"
    both = swatch(go.Scatter(x=[1], y=[1], name="it", mode="lines+markers"))
    assert len(both) == 2
    # Marks of one pixel are there for what is shown on hovering.
    assert swatch(go.Scatter(x=[1], y=[1], name="it", mode="markers", marker={"size": 1})) == []
    assert (
        len(swatch(go.Scatter(x=[1, 2], y=[1, 1], name="it", mode="markers", marker={"size": [1, 2]}))) == 1
    )


def test_the_sign_of_an_interval_is_a_line_with_its_mark():
    whiskers = {"array": [1], "arrayminus": [1]}
    own, _mark = swatch(
        go.Scatter(x=[1], y=[1], name="it", mode="markers", error_x={**whiskers, "color": "red"})
    )
    assert (own.get("stroke"), own.get("stroke-width")) == ("red", "2")
    taken, _ = swatch(
        go.Scatter(x=[1], y=[1], name="it", mode="markers", error_x=whiskers, marker={"color": "blue"})
    )
    assert taken.get("stroke") == "blue"
    assert len(swatch(go.Scatter(x=[1], y=[1], name="it", mode="markers", error_y=whiskers))) == 1


def scale(z, title="share", **given):
    bar = {"title": {"text": title}, **given.pop("colorbar", {})}
    return Drawn(plain(go.Heatmap(z=z, colorscale=SCALE, x=[10, 20], y=[10], colorbar=bar, **given)))


def test_a_scale_is_its_two_ends():
    found = scale([[-0.26, 12.34]])
    assert found.legend == ["−0.3 share", "12.3 share"]
    assert [found.swatch(said)[0].get("fill") for said in found.legend] == [
        "rgba(0,0,0,1)",
        "rgba(255,0,0,1)",
    ]
    assert scale([[1, 2]], zmin=0, zmax=10).legend == ["0 share", "10 share"]
    assert scale([[1, 2]], colorbar={"ticktext": ["never", "half", "always"]}).legend == [
        "never share",
        "always share",
    ]
    assert scale([[1, 2]], title=None).legends == [] == scale([[1, 2]], showscale=False).legends
    assert scale([[1, 2]], showscale=True).legend == ["1 share", "2 share"]


def test_hatches_of_the_legend_are_defined_with_those_of_the_plot():
    found = Drawn(plain(NAMED, bar([100], [50], name="it", marker={"pattern": {"shape": "x"}})))
    assert [one.get("id") for one in found.svg.iter("pattern")] == ["k-0"]
