"""What the ladder and the fixes say: the stage that leads, and advice that follows what was tried."""

from __future__ import annotations

import itertools
import math

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
from core.socket import BAD, GOOD, UNCLEAR, Finding, QuestionColumn
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

NAN = math.nan
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
    doubtful, absent = (
        np.array([stage == one for stage in stages] + [False] * right) for one in (DOUBTFUL, ABSENT)
    )
    return made(base, arms, placebo, doubtful=doubtful, absent=absent)


def names(losses):
    return [one.stage for one in leading(losses)]


def lead(losses):
    return next(one for one in told(losses) if one.name == "losses")


@pytest.mark.parametrize(
    ("stage", "loses"),
    [
        (RETRIEVAL, "Retrieval loses"),
        (PLACE, "The order of the passages loses"),
        (DISTRACTED, "Distracting passages lose"),
        (BURIED, "Long passages lose"),
        (READING, "Reading loses"),
        (ABSENT, "Missing documents lose"),
        (DOUBTFUL, "The judging of answers loses"),
    ],
)
def test_the_stage_that_loses_most_leads(stage, loses):
    losses = lost({stage: 30, **{other: 2 for other in SPOKEN_STAGES if other != stage}})
    assert names(losses) == [stage]
    found = lead(losses)
    assert found.sentence.startswith(f"{loses} most: 30 of {losses.n_lost} answers that are not correct ")
    assert found.clause.startswith(f"{loses[0].lower()}{loses[1:]} most") and not found.clause.endswith(".")
    assert (found.n, found.of, found.label) == (30, losses.n_lost, stage.capitalize())
    assert found.advice.startswith(CAUSES[stage].advice.removesuffix("."))
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


def test_of_three_that_lead_all_are_named_and_the_first_two_advised():
    losses = lost({RETRIEVAL: 12, READING: 10, PLACE: 9})
    found = lead(losses)
    assert found.sentence.startswith(
        "Of 31 answers that are not correct, retrieval loses 12, reading loses 10 and the order of the passages "
        "loses 9; these data do not show which loses more. A perfect retriever"
    )
    assert found.label == "Not retrieved or not read or placed too late"
    assert CAUSES[READING].advice in found.advice and CAUSES[PLACE].advice not in found.advice
    # A stage with a single answer counts, too.
    assert names(lost({READING: 3, PLACE: 1})) == [READING, PLACE] and names(lost({PLACE: 1})) == [PLACE]


def test_what_chance_would_give_is_said_beside_the_count():
    # Gold is added to all 22, and the placebo turns 2 of 22.
    assert lead(lost({RETRIEVAL: 20, READING: 2}, placebo_fixes=2)).sentence.startswith(
        "Retrieval loses most: 20 of 22 answers that are not correct become correct once the missing gold passages "
        "are added; any change of the prompt would give about 2. A perfect retriever would make 20 more correct"
    )


def test_a_perfect_retriever_that_mends_nothing_is_said_so():
    said = lead(lost({READING: 30}, broken={"gold_added": 5})).sentence
    assert " A perfect retriever would make none more correct and 5 fewer (net " in said


@pytest.mark.parametrize(
    ("base", "known", "sentence"),
    [
        ([0.0], (0, 0), "Where 1 answer that is not correct is lost is not known."),
        ([0.0, 0.0, 1.0], (0, 0), "Where 2 answers that are not correct are lost is not known."),
        (
            [0.0] * 4 + [1.0],
            (1, 3),
            "Where 4 answers that are not correct are lost is not known. Retrieval can have lost at most 1 of 3: in "
            "the others the evidence was in the prompt.",
        ),
    ],
)
def test_before_anything_was_tried_the_labels_bound_what_retrieval_can_have_lost(base, known, sentence):
    at_most, n = known
    found = lead(made(base, {}, missed_at_most=at_most, n_known_evidence=n))
    assert found.sentence == sentence and found.advice.startswith("No fix was tried yet")


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


@pytest.mark.parametrize(("broken", "does"), [(0, True), (11, True), (12, False), (20, False)])
def test_a_stage_is_advised_on_as_long_as_its_fix_mends_more_than_it_breaks(broken, does):
    losses = lost({RETRIEVAL: 12}, broken={"gold_added": broken})
    assert names(losses) == [RETRIEVAL]
    if does:
        assert advice(losses) == CAUSES[RETRIEVAL].advice
    else:
        assert advice(losses).startswith(
            f"Gold added was tried on 32 questions: 12 became correct, {broken} stopped being so"
        )


@pytest.mark.parametrize("changed", [None, {"gold_added": np.full(10, False)}])
def test_where_no_gold_could_be_added_nothing_is_said_of_a_perfect_retriever(changed):
    base = [0.0] * 6 + [1.0] * 4
    arms = {} if changed is None else {"gold_added": base}
    losses = made(base, arms, changed=changed, absent=np.array([True] * 6 + [False] * 4))
    assert lead(losses).sentence == (
        "Missing documents lose most: 6 of 6 answers that are not correct have no gold passage in the documents."
    )


@pytest.mark.parametrize("placebo", [None, [0.0] + [NAN] * 9])
def test_a_placebo_that_was_not_asked_is_not_told(placebo):
    # Of the one question that the placebo was asked of, the answer of the run is not judged. Bonett and Price,
    # of 9: up 7/11, down 1/11, d = 6/11; sqrt((8/11 − d²)/11) = 0.198; 9 · (0.545 ± 0.387) = 1.4 to 8.4.
    base = [NAN] + [0.0] * 6 + [1.0] * 3
    losses = made(base, {"fewer": [NAN] + [1.0] * 9}, placebo)
    assert said_of(losses, losses.fix("fewer")) == (
        "Fewer passages was tried on 9 questions: 6 became correct, 0 stopped being so (net +1 to +8 of 9, 95 % interval)."
    )


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


def test_a_fix_is_told_in_the_words_of_a_gain_or_of_a_harm():
    base = np.array([0.0] * 20 + [1.0] * 20)
    better, worse = np.ones(40), np.zeros(40)
    found = {one.name: one for one in told(made(base, {"gold_added": better, "reversed": worse}, base))}
    gain, harm = found["gold_added"], found["reversed"]
    assert (gain.label, gain.reads) == ("Gold added fixes it", "that gold added fixes")
    assert gain.clause == "gold added makes 20 more correct and 0 fewer"
    assert (harm.label, harm.reads, harm.clause) == (
        "Reversed order breaks it",
        "that reversed order breaks",
        "",
    )
    assert (gain.tone, harm.tone) == (BAD, GOOD)
    assert gain.advice.startswith(CAUSES[RETRIEVAL].advice.removesuffix("."))
    # Two-sided: each of 20 changes goes one way.
    assert (gain.n, gain.of, gain.p_value) == (20, 40, pytest.approx(2 / 2**20))
    assert (harm.n, harm.of, harm.p_value) == (20, 40, pytest.approx(2 / 2**20))


def test_an_arm_of_ones_own_and_one_that_was_not_asked_are_no_findings():
    base, better = np.array([0.0] * 20 + [1.0] * 20), np.ones(40)
    losses = made(base, {"mine": better, "fewer": base}, base, changed={"fewer": np.full(40, False)})
    assert [one.name for one in LOSSES.findings(losses)] == ["losses"]


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
    # Better retrieval is told by what it did, and by what to do instead.
    assert said["other retrieval:improve"].startswith(
        "Gold added was tried on 52 questions: 2 became correct, 0 stopped being so"
    )
    assert said["other retrieval:improve"].endswith(f"would be needed to tell. {advice(losses)}")
    assert tried(losses)["retrieval:improve"].outcome == "cannot be told"


def test_where_the_order_of_passages_is_to_blame_and_no_gold_was_added_nothing_is_said_of_retrieval():
    losses = made([0.0] * 30 + [1.0] * 20, {"gold_added": [0.0] * 30 + [1.0] * 20}, changed={"gold_added": np.full(50, False)}, absent=np.array([True] * 30 + [False] * 20))  # fmt: skip
    assert {*tried(losses)} == {ADVICE, "reader:improve"}


# --- numbers ---


def test_the_headline_numbers_are_those_of_ladder_and_fixes():
    losses = lost({RETRIEVAL: 8, READING: 12, UNKNOWN: 1}, broken={"gold_first": 2})
    numbers = {one.key: one for one in LOSSES.numbers(losses)}
    assert (numbers["n_lost"].value, numbers["n_lost"].of) == (21, 41)
    assert (numbers["n_lost_not_retrieved"].value, numbers["n_lost_not_retrieved"].of) == (8, 21)
    assert (numbers["n_kept_grounded"].value, numbers["n_kept_grounded"].of) == (20, 20)
    assert (numbers["net_gold_first"].value, numbers["net_gold_first"].n) == (6, 40)
    assert numbers["net_gold_first"].note == "8 fixed, 2 broken"
    # Bonett and Price, of 40 pairs: up 9/42, down 3/42, d = 6/42; sqrt((12/42 − d²)/42) = 0.0795; times 40.
    assert numbers["net_gold_first"].interval == pytest.approx((-0.52, 11.95), abs=0.01)
    assert (numbers["net_fewer"].value, numbers["net_fewer"].n, numbers["net_fewer"].interval) == (None,) * 3
    assert sum(one.value for key, one in numbers.items() if key.startswith(("n_lost_", "n_kept_"))) == 41
    assert all(one.define in {d.name for d in DEFINITIONS} for one in numbers.values() if one.define)


def test_what_is_lost_in_retrieval_and_the_two_stages_that_lose_most_are_cards():
    losses = lost({RETRIEVAL: 3, PLACE: 5, BURIED: 9, READING: 7}, placebo_fixes=4)
    numbers = {one.key: one for one in LOSSES.numbers(losses)}
    cards = [key for key, one in numbers.items() if one.place == "card"]
    assert cards == ["n_lost_not_retrieved", "n_lost_buried_in_its_passage", "n_lost_not_read"]
    # Gold is added to all 24, and the placebo turns 4 of 24.
    assert numbers["n_lost_not_retrieved"].note == "about 4 by the placebo"
    assert numbers["n_lost_not_read"].note == "" and numbers["n_lost_distracted"].value == 0
    assert numbers["n_lost_judged_wrong"].cases == "queries.stage:judged%20wrong%3F"
    assert numbers["n_lost_placed_too_late"].title == "Placed too late"


def test_before_anything_was_tried_only_retrieval_is_a_card_and_no_stage_is_counted_as_empty():
    numbers = {one.key: one for one in LOSSES.numbers(made([0.0] * 6 + [1.0] * 4, {}))}
    assert [key for key, one in numbers.items() if one.place == "card"] == ["n_lost_not_retrieved"]
    assert (numbers["n_lost_not_retrieved"].value, numbers["n_lost_not_known"].value) == (None, 6)


def test_the_columns_of_questions():
    assert LOSSES.columns == (
        QuestionColumn("stage", "Lost or kept", needs_labels=True),
        QuestionColumn("n_fixing", "Fixes that make it right", "{:g}", None, "worse", needs_labels=True, is_secondary=True),
    )  # fmt: skip


def test_keys_do_not_depend_on_the_run():
    keys = [one.key for one in LOSSES.numbers(lost({READING: 3}))]
    assert keys == [one.key for one in LOSSES.numbers(made([], {}))] and len({*keys}) == len(keys)


def test_every_stage_and_arm_is_explained():
    explained = {one.name: one for one in DEFINITIONS}
    assert {*STAGES, *(arm.name for arm in ARMS), "losses", "net"} == {*explained}
    assert explained[RETRIEVAL].title == "Not retrieved" and explained["gold_first"].title == "Gold first"
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
