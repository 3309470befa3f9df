"""The ladder and the outcomes under it: every judged answer is in one stage, and the bars add up."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.losses.ladder import (
    ABSENT,
    BURIED,
    DISTRACTED,
    DOUBTFUL,
    GROUNDED,
    KEPT,
    LOST,
    LUCK,
    PIPELINE,
    PLACE,
    READING,
    RETRIEVAL,
    STAGES,
    UNKNOWN,
    UNSPLIT,
    WITHOUT,
    Step,
    ladder,
    stages,
    to_frame,
)
from core.losses.outcomes import STATES, Judge, state_by_claims, success

NAN = math.nan
ARMS = tuple(PIPELINE)


def one_stage(base, outcomes=(), prompts=None, doubtful=False, absent=False, closed_book=NAN, placebo=NAN):
    """The stage of one answer; outcomes of the arms in order."""
    prompts = prompts or ["changed"] * len(outcomes)
    return stages(
        np.array([base]),
        {arm: np.array([value]) for arm, value in zip(ARMS, outcomes, strict=False)},
        {arm: np.array([prompt], dtype=object) for arm, prompt in zip(ARMS, prompts, strict=False)},
        np.array([doubtful]),
        np.array([absent]),
        np.array([closed_book]),
        np.array([placebo]),
    )[0]


@pytest.mark.parametrize(
    ("outcomes", "stage"),
    [
        ((1.0, 0.0, 0.0, 0.0), RETRIEVAL),
        ((1.0, 1.0, 1.0, 1.0), RETRIEVAL),
        ((0.0, 1.0, 0.0, 0.0), PLACE),
        ((0.0, 0.0, 1.0, 0.0), DISTRACTED),
        ((0.0, 0.0, 0.0, 1.0), BURIED),
        ((0.0, 0.0, 0.0, 0.0), READING),
        ((NAN, 1.0, 1.0, 1.0), UNKNOWN),
        ((0.0, NAN, 1.0, 1.0), UNKNOWN),
        ((0.0, 0.0, 0.0, NAN), UNKNOWN),
        ((1.0, NAN, NAN, NAN), RETRIEVAL),
        ((0.0, 0.0, 1.0), DISTRACTED),
        ((0.0, 0.0, 0.0), UNKNOWN),  # the last arm was never asked
        ((), UNKNOWN),
    ],
)
def test_the_first_fix_that_helps_is_the_stage(outcomes, stage):
    assert one_stage(0.0, outcomes) == stage


def test_what_a_fix_does_not_change_it_cannot_mend():
    # As the analysis has it: an unchanged prompt has the outcome of the run, or none.
    assert one_stage(0.0, (NAN, 0.0, NAN, 1.0), ["unchanged", "unchanged", "unchanged", "changed"]) == BURIED
    assert one_stage(0.0, (1.0, 0.0, 0.0, 0.0), ["unchanged", "changed", "changed", "changed"]) == READING
    assert one_stage(0.0, (NAN, 1.0, 1.0, 1.0), ["none", "changed", "changed", "changed"]) == UNKNOWN


@pytest.mark.parametrize(
    ("doubtful", "absent", "stage"),
    [(True, False, DOUBTFUL), (True, True, DOUBTFUL), (False, True, ABSENT)],
)
def test_what_was_judged_wrongly_or_is_in_no_document_is_lost_before_any_fix(doubtful, absent, stage):
    assert one_stage(0.0, (1.0, 1.0, 1.0, 1.0), doubtful=doubtful, absent=absent) == stage


@pytest.mark.parametrize(
    ("closed_book", "placebo", "stage"),
    [
        (0.0, 1.0, GROUNDED),
        (NAN, 1.0, GROUNDED),
        (0.0, 0.0, LUCK),
        (NAN, 0.0, LUCK),
        (0.0, NAN, UNSPLIT),
        (NAN, NAN, UNSPLIT),
        (1.0, 1.0, WITHOUT),
        (1.0, 0.0, WITHOUT),
        (1.0, NAN, WITHOUT),
    ],
)
def test_a_correct_answer_is_split_by_closed_book_and_placebo(closed_book, placebo, stage):
    # Whatever the fixes do to it.
    assert one_stage(1.0, (0.0,) * 4, closed_book=closed_book, placebo=placebo) == stage
    assert (
        one_stage(1.0, (1.0,) * 4, doubtful=True, absent=True, closed_book=closed_book, placebo=placebo)
        == stage
    )


def test_an_answer_that_nobody_judged_has_no_stage():
    assert one_stage(NAN, (1.0,) * 4, doubtful=True, absent=True, closed_book=1.0, placebo=1.0) == ""


OUTCOMES = st.sampled_from([0.0, 1.0, NAN])


@st.composite
def runs(draw):
    """Any arrays that the analysis may hand over, and more: outcomes, prompts, some arms missing."""
    n = draw(st.integers(0, 12))

    def column(values):
        return draw(st.lists(values, min_size=n, max_size=n))

    arms = [arm for arm in ARMS if draw(st.booleans())]
    return {
        "base": np.array(column(OUTCOMES), dtype=float),
        "arms": {arm: np.array(column(OUTCOMES), dtype=float) for arm in arms},
        "prompts": {
            arm: np.array(column(st.sampled_from(["changed", "unchanged", "none", ""])), dtype=object)
            for arm in arms
        },
        "doubtful": np.array(column(st.booleans()), dtype=bool),
        "absent": np.array(column(st.booleans()), dtype=bool),
        "closed_book": np.array(column(OUTCOMES), dtype=float),
        "placebo": np.array(column(OUTCOMES), dtype=float),
    }


@given(runs())
def test_every_judged_answer_is_in_exactly_one_stage_and_the_bars_add_up(run):
    found = stages(**run)
    base = run["base"]
    assert [stage in LOST for stage in found] == (base == 0).tolist()
    assert [stage in KEPT for stage in found] == (base == 1).tolist()
    assert [stage == "" for stage in found] == np.isnan(base).tolist()
    steps = ladder(found, base, run["prompts"], run["placebo"])
    judged = int((~np.isnan(base)).sum())
    assert [one.stage for one in steps] == [*STAGES] and {one.of for one in steps} == {judged}
    assert sum(one.n for one in steps) == judged
    assert sum(one.n for one in steps if one.stage in LOST) == int((base == 0).sum())
    for one in steps:
        assert one.n == sum(stage == one.stage for stage in found)
        assert one.expected is None or 0 <= one.expected <= judged
        assert 0 <= one.net <= one.n
        assert not judged or (one.low <= one.n + 1e-9 and one.n - 1e-9 <= one.high <= judged + 1e-9)


@given(runs())
def test_what_happens_to_a_question_depends_on_no_other(run):
    found = stages(**run)
    for i in range(len(found)):
        alone = {
            key: {name: column[i : i + 1] for name, column in value.items()}
            if isinstance(value, dict)
            else value[i : i + 1]
            for key, value in run.items()
        }
        assert stages(**alone).tolist() == [found[i]]


def test_what_the_placebo_would_assign_by_hand():
    # Eight incorrect answers and two correct ones; the placebo turns two of the eight: a rate of a quarter.
    base = np.array([0.0] * 8 + [1.0] * 2)
    placebo = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    stage = np.array([RETRIEVAL] * 3 + [PLACE] + [READING] * 3 + [ABSENT] + [GROUNDED, LUCK], dtype=object)
    changed, unchanged = ["changed"], ["unchanged"]
    prompts = {
        # Gold is added to four of the seven that come so far, and to one correct one, which does not count.
        "gold_added": np.array(changed * 4 + unchanged * 3 + ["none"] + changed + unchanged, dtype=object),
        # Four are left after it: gold moves in two of them.
        "gold_first": np.array(changed * 5 + unchanged * 5, dtype=object),
        # Three are left: all changed.
        "gold_alone": np.array(changed * 10, dtype=object),
    }
    steps = {one.stage: one for one in ladder(stage, base, prompts, placebo)}
    assert steps[RETRIEVAL].expected == pytest.approx(1.0)
    assert steps[PLACE].expected == pytest.approx(0.5)
    assert steps[DISTRACTED].expected == pytest.approx(0.75)
    # Never asked; and what no fix assigns has no chance.
    assert [steps[one].expected for one in (BURIED, READING, ABSENT, UNKNOWN, GROUNDED)] == [None] * 5
    assert (steps[RETRIEVAL].net, steps[PLACE].net, steps[DISTRACTED].net) == (2.0, 0.5, 0.0)
    assert steps[READING].net == 3.0


def test_without_a_placebo_nothing_is_said_of_chance():
    base = np.array([0.0, 0.0, 1.0])
    prompts = {"gold_added": np.array(["changed"] * 3, dtype=object)}
    stage = np.array([RETRIEVAL, UNKNOWN, UNSPLIT], dtype=object)
    # Asked of the correct answer only: that tells nothing of incorrect ones.
    for placebo in ([NAN] * 3, [NAN, NAN, 1.0]):
        steps = ladder(stage, base, prompts, np.array(placebo))
        assert {one.expected for one in steps} == {None}


def test_a_bar_has_the_interval_of_its_count():
    # Wilson 1927 by hand, 3 of 10: 0.1078 to 0.6032.
    base = np.array([0.0] * 3 + [1.0] * 7 + [NAN] * 5)
    stage = np.array([READING] * 3 + [GROUNDED] * 7 + [""] * 5, dtype=object)
    steps = {one.stage: one for one in ladder(stage, base, {}, np.full(15, NAN))}
    assert (steps[READING].low, steps[READING].high) == pytest.approx((1.078, 6.032), abs=0.001)
    assert steps[READING].of == 10


def test_without_judged_answers_the_bars_are_empty_and_without_an_interval():
    steps = ladder(np.array(["", ""], dtype=object), np.array([NAN, NAN]), {}, np.array([NAN, NAN]))
    assert {(one.n, one.of) for one in steps} == {(0, 0)}
    assert all(math.isnan(one.low) and math.isnan(one.high) for one in steps)


def test_the_frame_has_a_row_for_each_bar():
    frame = to_frame((Step(RETRIEVAL, 3, 10, 1.0, 6.0, 0.5), Step(READING, 1, 10, 0.1, 4.0, None)))
    assert [*frame.columns] == ["stage", "n", "of", "low", "high", "expected", "net"]
    assert frame["net"].tolist() == [2.5, 1.0] and frame["expected"].isna().tolist() == [False, True]


# --- outcomes ---


@pytest.mark.parametrize(
    ("answer", "status", "state"),
    [
        ("It was Unwin.", "answered", "correct"),
        ("It was Parker.", "answered", "incorrect"),
        ("I don't know.", "abstained", "abstained"),
        ("", "empty", "empty"),
        (None, "error", "failed"),
        (None, None, "failed"),
        ("It was Unwin.", "error", "failed"),
        (None, "answered", "failed"),
    ],
)
def test_a_judge_names_what_became_of_an_answer(answer, status, state):
    assert Judge("Who built it?", ("Unwin",)).state(answer, status) == state


def test_of_two_that_a_question_offers_the_one_that_is_chosen_counts():
    judge = Judge("Which is older, the mill or the dam?", ("the mill",))
    assert judge.state("The mill was built after the dam.", "answered") == "incorrect"
    assert judge.state("The dam was built after the mill.", "answered") == "correct"


def test_without_references_an_answer_is_not_judged():
    assert Judge("Who built it?", ()).state("It was Unwin.", "answered") == "not judged"


@pytest.mark.parametrize(
    ("labelled", "label", "answer", "state"),
    [
        # The label is of this answer, and of one in the same words.
        ("It was Parker.", True, "It was Parker.", "correct"),
        ("It was Parker.", True, "it was  parker", "correct"),
        ("It was Unwin.", False, "It was Unwin!", "incorrect"),
        # It contradicts the references: others are not judged.
        ("It was Parker.", True, "It was Unwin.", "not judged"),
        ("It was Unwin.", False, "By Unwin himself.", "not judged"),
        # It agrees with them: others are judged by them.
        ("It was Unwin.", True, "By Unwin himself.", "correct"),
        ("It was Parker.", False, "By Unwin himself.", "correct"),
        ("It was Parker.", False, "By Smith.", "incorrect"),
        # An abstention says no reference.
        ("I don't know.", False, "By Unwin himself.", "correct"),
        ("I don't know.", True, "By Unwin himself.", "not judged"),
        # A label alone, or an answer without one, is no comparison.
        (None, True, "It was Unwin.", "correct"),
        ("It was Parker.", None, "It was Parker.", "incorrect"),
    ],
)
def test_a_persons_label_goes_before_the_references(labelled, label, answer, state):
    assert Judge("Who built it?", ("Unwin",), labelled, label).state(answer, "answered") == state


@pytest.mark.parametrize(
    ("status", "support", "state"),
    [
        ("answered", 0.5, "correct"),
        ("answered", 0.4999, "incorrect"),
        ("answered", 1.0, "correct"),
        ("answered", None, "not judged"),
        ("answered", NAN, "not judged"),
        ("abstained", 0.9, "abstained"),
        ("empty", None, "empty"),
        ("error", 0.9, "failed"),
        (None, 0.9, "failed"),
    ],
)
def test_without_references_the_weakest_claim_decides(status, support, state):
    assert state_by_claims(status, support) == state


def test_success_counts_what_is_not_said_as_not_correct_and_leaves_out_what_is_not_known():
    found = success([*STATES, None, NAN])
    np.testing.assert_array_equal(found, [1.0, 0.0, 0.0, 0.0, NAN, NAN, NAN, NAN])
