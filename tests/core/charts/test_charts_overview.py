"""Counts against chance over all diagnostics, by hand."""

import pandas as pd
import pytest

from core.charts.overview import against_chance
from core.charts.theme import alt_text
from core.diagnosis import Diagnosis
from core.run import Run
from core.socket import Diagnostic, Number

RUN = Run.create(
    {"source": "upload"}, queries=pd.DataFrame({"query_id": ["q1"], "question": ["Who?"], "answer": ["Ada"]})
)


def figure_of(*numbers):
    one = Diagnostic("toy", "Toy", "?", lambda _: None, lambda _: numbers)
    return against_chance(Diagnosis(RUN, diagnostics=[one]))


def test_each_share_stands_beside_what_chance_gives():
    figure = figure_of(
        Number("many", "Many", 9, of=10, chance=1.0, place="card"),
        Number("passages", "Passages", 9, of=10, chance=1.0, place="card", noun="passage"),
        Number("few", "Few", 2, of=10, chance=1.0, place="row"),
        Number("mean", "Mean", 0.5, n=10, chance=0.4, place="card"),  # no share
        Number("data", "Data only", 9, of=10, chance=1.0),
        Number("alone", "Without chance", 9, of=10, place="card"),
    )
    beyond, by_chance, chance = figure.data
    assert (list(beyond.y), list(beyond.x)) == (["Many"], [90])
    # Wilson's interval of 2 of 10 is 5.7 to 51 %, which holds 10 %.
    assert (list(by_chance.y), list(by_chance.x)) == (["Few"], [20])
    assert by_chance.error_x.array[0] == pytest.approx(30.98, abs=0.01)
    assert (list(chance.y), list(chance.x)) == (["Many", "Few"], [10, 10])
    across, up = figure.layout.xaxis, figure.layout.yaxis
    assert (across.range, across.tick0, across.dtick) == ((-1, 101), 0, 20)
    assert (list(up.categoryarray), up.autorange, up.showgrid) == (["Many", "Few"], "reversed", False)
    assert all(trace.cliponaxis is False for trace in figure.data)  # a mark at 0 or 100 % is whole
    assert [trace.marker.size for trace in figure.data] == [11, 11, 18]
    assert figure.layout.height == 110 + 44 * 2
    assert alt_text(figure).startswith("Counts against chance: Many 90 % of 10 (10 % by chance); Few 20 %")


def test_what_neither_happened_nor_could_by_chance_has_no_row():
    nothing = Number("none", "None", 0, of=10, chance=0.0, place="card")
    less = Number("less", "Less", 0, of=10, chance=2.0, place="card")
    assert list(figure_of(nothing, less).data[-1].y) == ["Less"]
    assert not figure_of(nothing).data
