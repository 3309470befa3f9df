"""The ladder and the balance of each fix, of a run that is worked out on paper."""

import re
from dataclasses import replace
from urllib.parse import parse_qsl

import pytest

from core.charts.losses import fix_balance, loss_ladder
from core.charts.theme import alt_text, has_doors
from core.conditions import describe, matching
from core.diagnosis import Diagnosis
from core.run import Run
from tests.core.charts.chart_runs import HOSTILE, shown_strings
from tests.core.charts.losses_runs import PLAN, losses_of, losses_run


@pytest.fixture(scope="module")
def found():
    return losses_of()


def bars(figure):
    """By row: where its bar begins, its length, and what leads on from it."""
    return {
        row: (base, x, data[0])
        for trace in figure.data
        if trace.type == "bar"
        for row, base, x, data in zip(
            trace.y, [0] * len(trace.y) if trace.base is None else trace.base, trace.x, trace.customdata,
            strict=True,
        )
    }  # fmt: skip


def test_each_bar_begins_where_the_one_above_ends(found):
    """Six of eight answers are lost, two at the retriever; the placebo mends one of the six: 1/6 of a changed prompt."""
    _, losses = found
    figure = loss_ladder(losses)
    assert {row: (start, n) for row, (start, n, _) in bars(figure).items()} == {
        "Not retrieved": (0, 2),
        "Placed too late": (2, 1),
        "Distracted": (3, 1),
        "Buried in its passage": (4, 1),
        "Not read": (5, 1),
        "Grounded": (6, 1),
        "By luck": (7, 1),
    }
    ticks = next(trace for trace in figure.data if trace.name == "By the placebo")
    # Two prompts changed of the retriever's, one more by order, all of the three and two that are left.
    assert dict(zip(ticks.y, ticks.x, strict=True)) == pytest.approx(
        {
            "Not retrieved": 2 / 6,
            "Placed too late": 2 + 1 / 6,
            "Distracted": 3 + 3 / 6,
            "Buried in its passage": 4 + 2 / 6,
        }
    )
    assert ticks.cliponaxis is False and next(iter(figure.layout.yaxis.categoryarray)) == "Not retrieved"
    assert "8 judged answers" in alt_text(figure) and "Not retrieved 2 (fewer than 1 by" in alt_text(figure)


def test_the_interval_is_that_of_the_count(found):
    """Wilson (1927) of 2 in 8: 0.0715 to 0.5907, times 8."""
    figure = loss_ladder(found[1])
    marks = next(trace for trace in figure.data if "interval" in (trace.name or ""))
    at = list(marks.y).index("Not retrieved")
    low, high = (getattr(marks.error_x, side)[at] for side in ("arrayminus", "array"))
    assert (2 - low, 2 + high) == pytest.approx((0.572, 4.726), abs=0.001)
    assert next(a.text for a in figure.layout.annotations if a.y == "Not retrieved") == "2 (1 to 5)"


def test_counts_stand_behind_their_bar_or_in_its_right_half_before_it(found):
    figure = loss_ladder(found[1])
    texts = {one.y: (one.x, one.xanchor, one.xshift) for one in figure.layout.annotations}
    # Wilson's upper ends of 1 and 2 in 8, times 8: 3.767 and 4.726.
    assert texts == {
        "Not retrieved": (pytest.approx(4.726, abs=0.001), "left", 6),
        "Placed too late": (pytest.approx(5.767, abs=0.001), "left", 6),
        "Distracted": (pytest.approx(6.767, abs=0.001), "left", 6),
        "Buried in its passage": (pytest.approx(7.767, abs=0.001), "left", 6),
        "Not read": (5, "right", -6),
        "Grounded": (6, "right", -6),
        "By luck": (7, "right", -6),
    }
    across, up = figure.layout.xaxis, figure.layout.yaxis
    # The last interval ends farthest to the right.
    assert across.range == pytest.approx((0, 1.02 * 10.767), abs=0.001)
    assert up.autorange == "reversed" and not up.showgrid and up.categoryarray == tuple(texts)


@pytest.mark.parametrize("draw", [loss_ladder, fix_balance])
def test_every_bar_leads_to_as_many_questions_as_it_counts(draw, found):
    diagnosis, losses = found
    figure = draw(losses)
    assert has_doors(figure)
    doors = [
        (x, data)
        for trace in figure.data
        if trace.type == "bar"
        for x, data in zip(trace.x, trace.customdata, strict=True)
    ]
    assert any(data[0] for _, data in doors)
    for x, (door, hover) in doors:
        assert bool(door) == bool(x)
        if door:
            ((kind, condition),) = parse_qsl(door, strict_parsing=True)
            assert kind == "where" and len(matching(diagnosis, condition)) == abs(x)
            assert str(abs(x)) in re.findall(r"\d+", hover)
            assert not re.search(r"_|%", describe(diagnosis, condition))


def test_the_door_of_a_stage_is_its_questions(found):
    diagnosis, losses = found
    _, _, door = bars(loss_ladder(losses))["Not retrieved"]
    assert matching(diagnosis, parse_qsl(door)[0][1]) == ("retrieval", "retrieval2")


def test_fixed_stand_right_and_broken_left(found):
    """Gold alone mends both of the retriever, the order and the distracted one, and breaks the lucky one."""
    figure = fix_balance(found[1])
    sides = {
        trace.name: dict(zip(trace.y, trace.x, strict=True))
        for trace in figure.data
        if trace.type == "bar" and trace.opacity != 0.3
    }
    assert sides == {
        "Becomes correct": {"Gold added": 2, "Gold first": 1, "Gold alone": 4, "Gold sentences alone": 5},
        "Stops being correct": {
            "Gold added": 0,
            "Gold first": 0,
            "Gold alone": -1,
            "Gold sentences alone": 0,
        },
    }
    muted = [trace for trace in figure.data if trace.type == "bar" and trace.opacity == 0.3]
    assert [(list(trace.y), list(trace.x)) for trace in muted] == [(["Placebo"], [1]), (["Placebo"], [-1])]
    assert not any(trace.showlegend for trace in muted)
    nets = [trace for trace in figure.data if trace.name == "Net, 95 % interval"]
    assert [list(trace.x) for trace in nets] == [[2, 1, 3, 5], [0]]
    assert all(trace.cliponaxis is False for trace in nets)
    across, up = figure.layout.xaxis, figure.layout.yaxis
    # The interval of the last fix ends farthest from 0, which stands in the middle.
    farthest = nets[0].x[3] + nets[0].error_x.array[3]
    assert 5 < farthest < 8 and across.range == pytest.approx((-1.08 * farthest, 1.08 * farthest))
    assert up.autorange == "reversed" and not up.showgrid and up.categoryarray[-1] == "Placebo"
    assert (figure.layout.shapes[0].x0, figure.layout.height) == (0, 120 + 40 * 5)
    hover = nets[0].customdata[2][1]
    # Exact McNemar of 4 against 1: 2 · (1 + 5) / 32; of the larger of both p-values, times four fixes, at most 1.
    assert "4 become correct, 1 stop being so" in hover and "net +3" in hover and "of 8 answers" in hover
    assert "p = 1" in hover and "corrected for 4 fixes: cannot be told" in hover


def test_by_claims_no_word_says_correct():
    _, losses = losses_of(by_claims=True)
    for figure in (loss_ladder(losses), fix_balance(losses)):
        said = " ".join(text for key, text in shown_strings(figure) if not text.startswith("where="))
        said = (said + alt_text(figure)).lower().replace("corrected for", "")  # a p-value
        assert "supported" in said and "correct" not in said


def test_what_no_fix_was_tried_on_is_one_grey_bar():
    """Without the arms the six incorrect answers are lost somewhere, the two correct ones are not split."""
    run = losses_run()
    losses = Diagnosis(Run.create(run.manifest, queries=run.queries, passages=run.passages))["losses"]
    figure = loss_ladder(losses)
    assert {row: (start, n) for row, (start, n, _) in bars(figure).items()} == {
        "Not known": (0, 6),
        "Correct, not split": (6, 2),
    }
    assert [trace.name for trace in figure.data if trace.type == "bar"] == ["Not known", "Correct"]
    empty = fix_balance(losses)
    assert not empty.data and empty.layout.annotations[0].text.replace("<br>", " ") == alt_text(empty)


def test_nothing_judged_is_a_labelled_empty_figure():
    run = losses_run({"one": PLAN["reading"]})
    bare = Run.create(run.manifest, queries=run.queries.assign(reference_answers=None), passages=run.passages)
    figure = loss_ladder(Diagnosis(bare)["losses"])
    assert not figure.data and figure.layout.annotations[0].text.replace("<br>", " ") == alt_text(figure)


def test_one_question_has_no_interval():
    _, losses = losses_of(plan={"retrieval": PLAN["retrieval"]})
    figure = fix_balance(losses)
    hover = next(trace for trace in figure.data if trace.name == "Net, 95 % interval").customdata[0][1]
    assert "net +1 (— to —), of 1 answer" in hover
    assert bars(loss_ladder(losses)).keys() == {"Not retrieved"}


def test_the_title_of_a_users_own_arm_is_data(found):
    _, losses = found
    figure = fix_balance(replace(losses, titles={**losses.titles, "gold_alone": HOSTILE}))
    shown = shown_strings(figure)
    assert any("&lt;script&gt;" in text for _, text in shown)
    assert not any("<script>" in text or "$" in text for _, text in shown)
    assert "<script>" not in alt_text(figure)
