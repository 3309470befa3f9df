"""What the ladder and the fixes say: the stage that leads, and advice that follows what was tried."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from core.losses.arms import ARMS
from core.losses.definitions import CAUSES, DEFINITIONS
from core.losses.diagnostic import LOSSES
from core.losses.findings import ADVICE, advice, cost, leading, said_of, tried
from core.losses.ladder import (
    ABSENT,
    BURIED,
    DISTRACTED,
    DOUBTFUL,
    GROUNDED,
    LOST,
    PIPELINE,
    PLACE,
    READING,
    RETRIEVAL,
    STAGES,
    UNKNOWN,
    UNSPLIT,
)
from core.socket import GOOD, UNCLEAR, Finding
from tests.core.losses.losses_runs import (
    Asked,
    Reader,
    losses_of,
    made,
    other_texts,
    reading,
    run_of,
    told,
)
from tests.core.losses.losses_runs import (
    tried as asked_again,
)

PLACED = list(PIPELINE)
SPOKEN_STAGES = {RETRIEVAL: 0, PLACE: 1, DISTRACTED: 2, BURIED: 3, READING: 4}


def lost(counts, right=20, broken=None, placebo_fixes=0):
    """So many answers lost at each stage, ``right`` correct ones, and what each arm breaks of them."""
    stages = [stage for stage, n in counts.items() for _ in range(n)]
    base = np.array([0.0] * len(stages) + [1.0] * right)
    arms = {}
    for place, arm in enumerate(PLACED):
        after = base.copy()
        for i, stage in enumerate(stages):
            after[i] = np.nan if stage == UNKNOWN else float(SPOKEN_STAGES.get(stage, 9) <= place)
        after[len(stages) : len(stages) + (broken or {}).get(arm, 0)] = 0.0
        arms[arm] = after
    placebo = base.copy()
    placebo[:placebo_fixes] = 1.0
    absent = np.array([stage == ABSENT for stage in stages] + [False] * right)
    return made(base, arms, placebo, absent=absent)


def names(losses):
    return [one.stage for one in leading(losses)]


def lead(losses):
    return next(one for one in told(losses) if one.name == "losses")


@pytest.mark.parametrize("stage", [RETRIEVAL, PLACE, DISTRACTED, BURIED, READING, ABSENT])
def test_the_stage_that_loses_most_leads(stage):
    losses = lost({stage: 30, **{other: 2 for other in SPOKEN_STAGES if other != stage}})
    assert names(losses) == [stage]
    found = lead(losses)
    cause = CAUSES[stage]
    verb = "lose" if cause.plural else "loses"
    assert found.sentence.lower().startswith(
        f"{cause.who} {verb} most: 30 of {losses.n_lost} answers that are not correct"
    )
    assert (found.n, found.of, found.label) == (30, losses.n_lost, stage.capitalize())
    assert found.advice.startswith(cause.advice.removesuffix("."))
    assert set(found.query_ids) == {f"q{i}" for i in range(30)}


def test_the_words_of_the_verdict():
    # 41 of 57 stay incorrect; gold added makes 8 of 77 more correct and none fewer: Bonett-Price 2.0 to 13.6.
    losses = lost({RETRIEVAL: 8, DISTRACTED: 4, BURIED: 4, READING: 41})
    found = lead(losses)
    assert found.sentence == (
        "Reading loses most: 41 of 57 answers that are not correct stay so even with the evidence sentences alone. "
        "A perfect retriever would make 8 more correct and none fewer (net +2 to +14 of 77, 95 % interval)."
    )
    assert found.advice == (
        "Try a larger model or another prompt before you touch retrieval. Neither was tried here: Try a change, "
        "in the workbench, does so with one call a question."
    )


def test_stages_that_cannot_be_told_apart_lead_together():
    # Sign test of 12 to 8: p = 0.50; of 12 to 2: p = 0.013.
    losses = lost({RETRIEVAL: 12, READING: 8, PLACE: 2})
    assert names(losses) == [RETRIEVAL, READING]
    found = lead(losses)
    assert found.sentence.startswith(
        "Of 22 answers that are not correct, retrieval loses 12 and reading loses 8;"
    )
    assert found.n == 20 and len(found.query_ids) == 20
    # Both are advised, the larger first.
    assert found.advice.index(CAUSES[RETRIEVAL].advice) < found.advice.index(CAUSES[READING].advice)


@pytest.mark.parametrize(("smaller", "together"), [(4, True), (3, False)])
def test_the_border_of_a_tie(smaller, together):
    # Two-sided sign test of 13: 4 to 13 has p = 0.0490, 4 to 12 p = 0.0768, 3 to 12 p = 0.0352.
    assert (names(lost({READING: 12, PLACE: smaller})) == [READING, PLACE]) is together


def test_a_stage_counts_only_beyond_what_the_placebo_gives():
    # The placebo turns 10 of 30, so that of 30 asked anew ten would be assigned to retrieval by chance.
    losses = lost({RETRIEVAL: 12, READING: 18}, placebo_fixes=10)
    assert losses.step(RETRIEVAL).expected == pytest.approx(10.0)
    assert names(losses) == [READING]


def test_what_is_lost_by_no_stage_beyond_chance_is_said_so():
    losses = lost({RETRIEVAL: 3}, placebo_fixes=3)
    assert names(losses) == []
    assert lead(losses).sentence == "No stage loses more of 3 answers that are not correct than any change of the prompt would give."  # fmt: skip
    assert lead(losses).advice == "" and lead(losses).tone == UNCLEAR


@pytest.mark.parametrize(("unknown", "known"), [(10, False), (9, True)])
def test_where_half_of_the_losses_are_not_known_nothing_leads(unknown, known):
    losses = lost({UNKNOWN: unknown, READING: 10})
    assert bool(names(losses)) is known
    if not known:
        found = lead(losses)
        assert found.sentence == "Where 10 of 20 answers that are not correct are lost is not known."
        # The fixes were tried: what lacks is the evidence.
        assert "No fix was tried" not in found.advice and "gold passages" in found.advice
        assert found.tone == UNCLEAR and found.severity == "low" and len(found.query_ids) == 10


def test_where_nothing_is_lost_nothing_leads():
    losses = lost({}, right=12)
    assert names(losses) == [] and told(losses) == () and advice(losses) == ""


def test_every_fix_that_helps_beyond_chance_is_told_and_every_harm():
    losses = lost({RETRIEVAL: 20, READING: 10}, right=40, broken={"gold_first": 0, "gold_alone": 40})
    found = {one.name: one for one in told(losses)}
    # Gold alone fixes 20 and breaks 40: p = 0.013, the largest of the four, so that it is not multiplied.
    assert {*found} == {"losses", "gold_added", "gold_first", "gold_alone", "gold_sentences"}
    assert "20 became correct, 40 stopped being so" in found["gold_alone"].sentence
    assert found["gold_added"].sentence.startswith(
        "Gold added was tried on 70 questions: 20 became correct, 0 stopped being so"
    )
    assert "the placebo, on 70: 0 and 0" in found["gold_added"].sentence
    assert found["gold_added"].query_ids == tuple(f"q{i}" for i in range(20))


def test_a_harm_names_the_questions_that_it_breaks():
    base = np.array([1.0] * 30 + [0.0] * 10)
    after = base.copy()
    after[:25] = 0.0
    losses = made(base, {"reversed": after}, base)
    found = next(one for one in told(losses) if one.name == "reversed")
    assert found.sentence.startswith(
        "Reversed order was tried on 40 questions: 0 became correct, 25 stopped being so"
    )
    assert found.query_ids == tuple(f"q{i}" for i in range(25)) and found.n == 25
    assert (found.tone, found.advice) == (GOOD, "")
    assert tried(losses)["order:reverse"].outcome == "harms"


def test_a_fix_that_cannot_be_told_says_how_many_questions_would_tell_it():
    base = np.array([0.0] * 50 + [1.0] * 50)
    after = base.copy()
    after[:5] = 1.0
    losses = made(base, {"fewer": after}, base)
    assert not [one for one in told(losses) if one.name == "fewer"]
    # mean 0.05, sd 0.219 of 100: 151, rounded up to two figures.
    assert said_of(losses, losses.fix("fewer")) == (
        "Fewer passages was tried on 100 questions: 5 became correct, 0 stopped being so (net 0 to +10 of 100, 95 % interval); "
        "the placebo, on 100: 0 and 0. This is no more than chance would do; about 160 questions would be needed to tell."
    )
    assert tried(losses)["passages:fewer"].outcome == "cannot be told"


def test_before_anything_was_tried_every_fix_says_what_trying_costs():
    losses = made([0.0] * 6 + [1.0] * 4, {}, to_try=(70, 240.0))
    said = tried(losses)
    assert {*said} == {ADVICE, "reader:improve", *(arm.fix for arm in ARMS if arm.fix)}
    assert {one.outcome for one in said.values()} == {"untried"}
    [sentence] = {one.sentence for one in said.values()}
    assert "70 calls" in sentence and "4 min" in sentence
    assert lead(losses).advice == sentence == cost(losses).sentence
    assert "min" not in cost(made([0.0], {}, to_try=(7, None))).sentence
    assert tried(made([], {})) == {}


# Whatever names these fixes, in any diagnostic.
FIXES = (ADVICE, "reader:improve", *(arm.fix for arm in ARMS if arm.fix))
RECOMMENDS = {
    "retrieval:improve": CAUSES[RETRIEVAL].advice,
    "order:gold-first": CAUSES[PLACE].advice,
    "passages:filter": CAUSES[DISTRACTED].advice,
    "chunks:shorter": CAUSES[BURIED].advice,
}
ELSEWHERE = tuple(
    Finding(f"other {fix}", "Something is wrong.", 1, 1, advice=f"Do {fix} first.", fix=fix) for fix in FIXES
)


@pytest.mark.parametrize("broken", [0, 4, 15])
@pytest.mark.parametrize("placebo_fixes", [0, 6])
def test_no_advice_recommends_what_was_shown_not_to_help(broken, placebo_fixes):
    """Of every mixture of stages, with arms that break nothing, some, or much of what is correct."""
    n_hard = 0
    for mixture in itertools.product((0, 12), repeat=5):
        counts = dict(zip(SPOKEN_STAGES, mixture, strict=True))
        losses = lost(counts, 20, dict.fromkeys(PLACED, broken), min(placebo_fixes, sum(mixture)))
        useless = [
            arm.fix
            for arm in ARMS
            if (fix := losses.fix(arm.name)) and (fix.verdict == "harms" or fix.net <= 0)
        ]
        for one in told(losses, ELSEWHERE):
            for fix in useless:
                n_hard += 1
                assert f"Do {fix} first." not in one.advice
                assert RECOMMENDS.get(fix, "–") not in one.advice, (counts, fix, one)
            # What was said before anything was tried yields where the ladder leads.
            if leading(losses) and ADVICE in one.name:
                assert one.advice == advice(losses)
    assert n_hard


def test_advice_elsewhere_keeps_its_words_where_the_fix_helps():
    losses = lost({RETRIEVAL: 30})
    other = next(one for one in told(losses, ELSEWHERE) if "retrieval:improve" in one.name)
    assert other.advice.startswith(
        "Do retrieval:improve first. Gold added was tried on 50 questions: 30 became correct"
    )


def test_advice_elsewhere_says_what_trying_costs_where_nothing_was_tried():
    losses = made([0.0] * 6 + [1.0] * 4, {}, to_try=(70, None))
    for one in told(losses, ELSEWHERE):
        if one.diagnostic == "other":
            assert one.advice.startswith(
                f"Do {one.name.split()[1]} first. No fix was tried yet: trying them takes about 70 calls"
            )


def test_a_reader_that_is_to_blame_is_what_is_advised_elsewhere():
    losses = lost({READING: 30, RETRIEVAL: 2})
    said = {one.name: one.advice for one in told(losses, ELSEWHERE)}
    assert said[f"other {ADVICE}"] == (
        "Try a larger model or another prompt before you touch retrieval. Neither was tried here: Try a change, "
        "in the workbench, does so with one call a question."
    )
    # The sentence of the ladder has the count; advice does not say it twice.
    assert said["other reader:improve"] == said[f"other {ADVICE}"]
    assert "Do retrieval:improve first" not in said["other retrieval:improve"]


# --- numbers ---


def test_the_headline_numbers_are_those_of_ladder_and_fixes():
    losses = lost({RETRIEVAL: 8, READING: 12, UNKNOWN: 1}, broken={"gold_first": 2})
    numbers = {one.key: one for one in LOSSES.numbers(losses)}
    assert (numbers["n_lost"].value, numbers["n_lost"].of) == (21, 41)
    assert (numbers["n_lost_not_retrieved"].value, numbers["n_lost_not_retrieved"].of) == (8, 21)
    assert (numbers["n_kept_grounded"].value, numbers["n_kept_grounded"].of) == (20, 20)
    assert (numbers["net_gold_first"].value, numbers["net_gold_first"].n) == (6, 40)
    assert numbers["net_gold_first"].note == "8 fixed, 2 broken"
    assert numbers["net_fewer"].value is None
    assert sum(one.value for key, one in numbers.items() if key.startswith(("n_lost_", "n_kept_"))) == 41
    assert all(one.define in {d.name for d in DEFINITIONS} for one in numbers.values() if one.define)


def test_keys_do_not_depend_on_the_run():
    keys = [one.key for one in LOSSES.numbers(lost({READING: 3}))]
    assert keys == [one.key for one in LOSSES.numbers(made([], {}))] and len({*keys}) == len(keys)


def test_every_stage_and_arm_is_explained():
    explained = {one.name: one for one in DEFINITIONS}
    assert {*STAGES, *(arm.name for arm in ARMS), "losses", "net"} == {*explained}
    assert {*CAUSES} == {*LOST} - {UNKNOWN}
    assert all(explained[stage].advice for stage in LOST)
    assert DOUBTFUL in CAUSES and GROUNDED not in CAUSES and UNSPLIT not in CAUSES


def test_what_each_arm_does_to_each_answer_stands_beside_it():
    asked = [
        Asked(
            [*other_texts(i, 2), ("g", f"Unwin built bridge {i} in 1901.")],
            ("g",),
            question=f"Who built bridge {i}?",
        )
        for i in (1, 2)
    ]
    asked.append(Asked(other_texts(3, 2), references=None, question="Who built bridge 3?"))
    llm = reading({"Who built bridge 1?": Reader(reach=1), "Who built bridge 2?": Reader(order=tuple(text for _, text in other_texts(2, 2))), "Who built bridge 3?": Reader()})  # fmt: skip
    queries = losses_of(asked_again(run_of(asked, llm), llm)).queries
    assert queries["gold_first"].tolist()[:2] == ["fixed", "the same"]
    assert queries["placebo"].tolist()[:2] == ["the same", "broken"]
    assert queries["again"].tolist()[:2] == ["the same", "the same"]
    assert queries.iloc[2][["gold_first", "placebo", "again", "stage"]].isna().all()
    # Gold alone, its sentence alone, first, the order reversed: gold added changes nothing, and half of three is two.
    assert queries["n_fixing"][0] == 4
    # Nothing is to be fixed where the answer is correct, or where nobody knows: that is not 0.
    assert queries["n_fixing"].isna().tolist() == [False, True, True]


def test_one_question_has_no_interval_and_is_told_without():
    base, after = np.array([0.0]), np.array([1.0])
    losses = made(base, {"gold_added": after}, base)
    assert "(net" not in said_of(losses, losses.fix("gold_added"))
    assert "A perfect retriever would make 1 more correct and none fewer." in lead(losses).sentence
