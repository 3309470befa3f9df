"""The step of attribution, on models whose answers are a planted game of the passages in their prompt."""

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import core
from core.attribution import step as module
from core.attribution.analysis import analyse
from core.attribution.attribute import N_TEST
from core.attribution.step import AttributionStep
from core.errors import BackendError, InputError
from core.influence.step import InfluenceStep
from core.llm import CompletionCache
from core.llm.types import Capabilities, Completion
from core.pipeline import fill, plan_steps
from core.pipeline.asking import Asker
from core.run import Run
from tests.core.attribution.attribution_runs import (
    ANSWER,
    BASE,
    Reader,
    answer_with,
    asked_in,
    attribution_run,
    measured,
    rows_of,
    shown_in,
    written,
)
from tests.scripted import ScriptedLLM

CLAIMS = ("Raymond Unwin built it", "It was built in 1901")


def additive(shown, text=ANSWER):
    return 5.0 * (0 in shown) + 2.0 * (1 in shown)


def words(shown):
    return 3 * (0 in shown) + 2 * (1 in shown)


def facts_of(run):
    return run.manifest["steps"]["attribution"]


def planned(run, llm, **options):
    plan = plan_steps(run, [AttributionStep(**options)], {"attribution": llm})
    return plan.to_dict()["attribution_calls_about"]


# --- log-probabilities ---


def test_an_answer_is_read_under_every_subset_of_few_passages():
    model = Reader(additive)
    run = measured(attribution_run(3), model)
    rows = rows_of(run)
    assert {key: row["logprob"] for key, row in rows.items()} == {
        "000": -20, "001": -20, "010": -18, "011": -18, "100": -15, "101": -15, "110": -13, "111": -13,
    }  # fmt: skip
    assert {row["kept"] for row in rows.values()} == {*rows} and {
        row["n_tokens"] for row in rows.values()
    } == {2}
    assert run["ablations"]["answer"].isna().all() and not model.requests and not len(run["ablated_claims"])
    facts = facts_of(run)
    assert (facts["by"], facts["n_calls"], facts["n_done"], facts["n_left"], facts["notes"]) == (
        "logprob",
        8,
        1,
        0,
        [],
    )
    # What is known of all passages first, then all other subsets in one call.
    assert model.at_once == [1, 7]
    assert {text for _, text in model.read} == {ANSWER}


def test_labels_of_passages_are_places_and_a_gap_is_left():
    model = Reader(additive)
    measured(attribution_run(3), model)
    blocks = {shown_in(turns): re.findall(r"\[(\d)\]", turns[0].content) for turns, _ in model.read}
    assert blocks[0, 2] == ["1", "3"] and blocks[()] == [] and blocks[0, 1, 2] == ["1", "2", "3"]


def test_of_many_passages_only_so_many_subsets_are_read():
    model = Reader(additive)
    run = measured(attribution_run(10), model, masks=32)
    n = len(run["ablations"])
    assert n == len(model.read) == facts_of(run)["n_calls"] <= 32 + N_TEST + 10
    assert n <= planned(attribution_run(10), model, masks=32) <= n + 8
    found = analyse(run)
    assert found.queries["n_calls"].tolist() == [n] and found.queries["readable"].tolist() == [True]
    assert found.passages["score"].iloc[:2].tolist() == [pytest.approx(5, abs=0.1), pytest.approx(2, abs=0.1)]
    assert found.by == "logprob"


def test_other_orders_and_orders_of_arrival_are_read_where_they_are_asked_for():
    def game(shown, text):
        return 4.0 * bool(shown and shown[0] == 2) + additive(shown)

    model = Reader(game)
    run = measured(attribution_run(4), model, place=True, shapley=True)
    rows = rows_of(run)
    ordered = {key: row for key, row in rows.items() if ":" in key}
    assert len(rows) - len(ordered) == 16  # Shapley values need no others
    # 32 subsets in full Latin squares, and three swaps of neighbours.
    assert len(ordered) == len({*ordered}) <= 32 + 3
    for key, row in ordered.items():
        kept, order = key.split(":")
        assert row["kept"] == kept and row["order"] == [f"p{i}" for i in order.split(".")]
    sent = {shown_in(turns) for turns, _ in model.read}
    assert {
        tuple(int(i) for i in key.split(":")[1].split(".") if key[int(i)] == "1") for key in ordered
    } <= sent
    found = analyse(run)
    assert found.queries["swap"].notna().all() and found.queries["slot_share"].notna().all()
    assert found.passages["shapley"].notna().all() and len(found.slots) == 4
    assert planned(attribution_run(4), model, place=True, shapley=True) == 16 + 32 + 3


def test_the_prompt_is_that_of_the_answers():
    run = attribution_run(2, manifest={"prompt": {"style": "full", "max_tokens": 50}, "options": {"seed": 6}})
    model, asked = Reader(additive), ScriptedLLM(lambda request: ANSWER)
    measured(run, model)
    fill(run, InfluenceStep(closed_book=False, style="full"), llm=asked)
    assert {request.messages for request in asked.requests} <= {turns for turns, _ in model.read}
    generated = written(words)
    done = measured(run, generated)
    assert facts_of(done)["options"]["style"] == "full"
    assert {(one.max_tokens, one.seed, one.stop) for one in generated.requests} == {(50, 6, ()), (50, 7, ())}


# --- generated answers ---


def test_answers_are_generated_and_compared_where_no_answer_can_be_read():
    model = written(words)
    run = measured(attribution_run(3), model)
    rows = rows_of(run)
    assert rows["110"]["answer"] == answer_with(5) and rows["001"]["answer"] == answer_with(0)
    assert {row["answer_status"] for row in rows.values()} == {"answered"}
    assert run["ablations"][["logprob", "n_tokens"]].isna().all(axis=None)
    assert run["ablations"]["again"].tolist() == run["ablations"]["answer"].tolist()
    assert facts_of(run)["by"] == "rouge" and model.calls == 16 == planned(attribution_run(3), model)
    found = analyse(run)
    assert found.by == "rouge" and found.unit == "ROUGE-L F1"
    np.testing.assert_allclose(found.passages["score"], [3 / 7, 2 / 7, 0], atol=1e-9)


def test_held_out_answers_are_asked_once_more_under_another_seed():
    def rule(request):
        flaw = request.seed == 1 and 7 in shown_in(request.messages)  # another answer at the second time
        return answer_with(0 if flaw else words(shown_in(request.messages)))

    model = ScriptedLLM(rule)
    run = measured(attribution_run(8), model, masks=32)
    rows = rows_of(run)
    again = {key: row for key, row in rows.items() if row["again"] is not None}
    assert {request.seed for request in model.requests} == {0, 1}
    assert sum(request.seed == 1 for request in model.requests) == len(again) <= N_TEST
    for key, row in again.items():
        assert (row["again"] == row["answer"]) == (key[7] == "0" or row["answer"] == answer_with(0))
    assert model.calls == len(rows) + len(again) <= planned(attribution_run(8), model, masks=32)
    found = analyse(run).queries.iloc[0]
    assert found["n_test"] == len(again) and found["ceiling"] < 1
    steady = analyse(measured(attribution_run(8), written(words), masks=32)).queries.iloc[0]
    assert steady["ceiling"] == 1


def test_a_function_of_ones_own_is_measured_by_its_answers():
    documents = [f"It says fact-{i} here." for i in range(3)]
    seen = []

    def answer(question, passages):
        seen.append(tuple(passages))
        return answer_with(words([documents.index(one) for one in passages]) + 1)

    run = core.analyze(
        ["Who built bridge 1?"], retrieve=lambda _: documents, answer=answer, closed_book=False,
        steps=("influence", AttributionStep(place=True)),
    )  # fmt: skip
    assert facts_of(run)["by"] == "rouge" and facts_of(run)["options"]["style"] == "function"
    assert len(rows_of(run, "q0001")) >= 8 + 2
    # It gets the objects that it retrieved, those that are kept, in the order that is meant.
    assert {*seen} >= {(), tuple(documents), (documents[2],)}
    assert any(one[0] == documents[1] for one in seen if len(one) == 3)
    np.testing.assert_allclose(analyse(run).passages["score"].iloc[2], 0, atol=1e-9)


# --- few passages, duplicates ---


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("model", [Reader(additive), written(words)])
def test_one_or_two_passages(k, model):
    run = measured(attribution_run(k), model, shapley=True, place=True)
    plain = {key for key in rows_of(run) if ":" not in key}
    assert plain == ({"0", "1"} if k == 1 else {"00", "01", "10", "11"})
    assert (
        facts_of(run)["n_left"] == 0
        and fill(run, AttributionStep(shapley=True, place=True), llm=model) is run
    )
    found = analyse(run)
    assert found.queries["reason"].tolist() == ["too_few_masks"] and found.queries["readable"].isna().all()
    unit = 1 if found.by == "logprob" else 5 / 35
    wanted = [5, 2] if found.by == "logprob" else [3, 2]
    np.testing.assert_allclose(found.passages["shapley"], np.array(wanted[:k]) * unit)
    assert found.queries["n_either"].isna().all() and found.pairs.empty
    assert (len(found.slots) == 0) == (k == 1)


def test_near_duplicates_are_left_out_together_and_each_alone():
    texts = [
        "It says fact-0 and same-1.",
        "It says fact-1.",
        "It says fact-2 and same-1.",
        *(f"fact-{i}." for i in range(3, 10)),
    ]

    def game(shown, text):
        return 4.0 * (0 in shown or 2 in shown)

    model = Reader(game)
    run = measured(attribution_run(10, texts=texts), model, masks=48)
    rows = rows_of(run)
    marked = [key for key, row in rows.items() if row["near_duplicates"] is True]
    assert marked == ["0101111111"] and {"0111111111", "1101111111"} < {*rows}
    found = analyse(run)
    assert found.groups.to_dict("records") == [
        {"query_id": "q1", "slots": [1, 3], "near_duplicates": True, "together": 4.0, "alone": [0.0, 0.0]}
    ]
    assert found.queries["n_near_duplicates"].tolist() == [2]
    assert fill(run, AttributionStep(masks=48), llm=model) is run


def test_passages_of_the_same_support_are_left_out_together_and_are_no_duplicates():
    # The first and the third support the first claim, one of them just so; none supports the second.
    support = [(0.9, 0.1, 0.5), (0.2, 0.1, 0.49)]
    run = measured(attribution_run(3, claims=CLAIMS, support=support), Reader(additive))
    marked = {key: row["near_duplicates"] for key, row in rows_of(run).items()}
    assert {key for key, near in marked.items() if near is not None} == {"010"} and marked["010"] is False
    found = analyse(run)
    assert found.groups.to_dict("records") == [
        {"query_id": "q1", "slots": [1, 3], "near_duplicates": False, "together": 5.0, "alone": [5.0, 0.0]}
    ]
    assert found.queries["n_near_duplicates"].tolist() == [0]


def test_where_texts_cannot_be_embedded_near_duplicates_are_not_looked_for(monkeypatch):
    class Broken:
        def embed(self, texts):
            raise BackendError("The embedder is not there.")

    monkeypatch.setattr(module, "shared_embedder", Broken)
    run = measured(attribution_run(2), Reader(additive))
    assert facts_of(run)["notes"] == ["Near-duplicates were not looked for: The embedder is not there."]
    assert len(rows_of(run)) == 4


# --- what fails ---


def test_a_subset_that_cannot_be_read_is_kept_as_failed_and_read_again_alone():
    def game(shown, text):
        return None if shown == (0, 2) else additive(shown)

    base = attribution_run(3, 3)
    broken = measured(base, Reader(game))
    assert rows_of(broken)["101"]["answer_status"] == "error" and pd.isna(rows_of(broken)["101"]["logprob"])
    facts = facts_of(broken)
    assert facts["notes"] == ["2 subsets of passages could not be measured; run the step again."]
    assert (facts["n_done"], facts["n_left"]) == (0, 2)
    found = analyse(broken).queries
    assert found["reason"].tolist() == ["incomplete"] * 2 and found["n_failed"].tolist() == [1, 1]
    assert found["settled"].tolist() == [0, 0]
    model = Reader(additive)
    whole = measured(broken, model)
    assert [shown_in(turns) for turns, _ in model.read] == [(0, 2), (0, 2)]
    facts = facts_of(whole)
    assert facts["notes"] == [] == whole.manifest["notes"] and facts["n_done"] == 2
    expected = measured(base, Reader(additive))["ablations"]
    key = ["query_id", "ablation_id"]
    pd.testing.assert_frame_equal(
        whole["ablations"].sort_values(key, ignore_index=True), expected.sort_values(key, ignore_index=True)
    )


def test_an_answer_that_fails_is_kept_as_failed_and_asked_again_alone():
    def rule(request):
        if shown_in(request.messages) == (1,):
            return Completion("", "error", 0, 0, 0.0, error="The server refused this.")
        return answer_with(words(shown_in(request.messages)))

    broken = measured(attribution_run(2), ScriptedLLM(rule))
    assert rows_of(broken)["01"]["answer_status"] == "error" and rows_of(broken)["01"]["answer"] is None
    assert facts_of(broken)["notes"] == ["1 subset of passages could not be measured; run the step again."]
    model = written(words)
    whole = measured(broken, model)
    # The others had no second answer yet: it is only compared where no subset failed.
    assert [shown_in(request.messages) for request in model.requests] == [(1,), (), (1,), (0,), (0, 1)]
    assert rows_of(whole)["01"]["answer"] == answer_with(2) and facts_of(whole)["n_left"] == 0


def test_an_impossible_answer_has_no_score():
    def game(shown, text):
        return -math.inf if not shown else additive(shown)

    run = measured(attribution_run(3), Reader(game))
    assert rows_of(run)["000"]["answer_status"] == "error" and rows_of(run)["000"]["logprob"] is None
    assert rows_of(run)["111"]["logprob"] == BASE + 7


def test_a_certain_answer_has_a_score_of_0_at_most():
    def game(shown, text):
        return 20.5 if shown else 19.75  # 0.5, a rounding error, and -0.25

    rows = rows_of(measured(attribution_run(1), Reader(game)))
    assert (rows["1"]["logprob"], rows["0"]["logprob"]) == (0, -0.25)


def test_where_the_whole_cannot_be_read_the_penalty_is_that_of_one_token():
    """Only the last passage matters, by 0.03: a weight of 0.015 on the standardised column, above the 0.01.

    With two tokens it would be below it, all scores 0, and the first passage the one to leave out.
    """

    def game(shown, text):
        return None if len(shown) == 10 else 0.03 * (9 in shown)

    rows = rows_of(measured(attribution_run(10), Reader(game), masks=32))
    assert rows["1" * 10]["n_tokens"] is None and "1111111110" in rows


def test_a_model_that_is_down_ends_the_step_and_one_question_alone_does_not():
    with pytest.raises(BackendError):
        measured(attribution_run(2), ScriptedLLM({}, down=True))

    def rule(request):
        if asked_in(request.messages) == 1:
            raise ValueError("odd")
        return answer_with(words(shown_in(request.messages)))

    run = measured(attribution_run(2, 2), ScriptedLLM(rule))
    facts = facts_of(run)
    assert facts["n_left"] == 1 and len(facts["reasons"]) == 1 and not rows_of(run)
    assert len(rows_of(run, "q2")) == 4
    assert analyse(run).queries["reason"].tolist() == ["not_measured", "too_few_masks"]


@pytest.mark.parametrize(
    "given",
    [
        {"answer": None, "answer_status": "error"},
        {"answer": "", "answer_status": "empty"},
        {"answer": ANSWER, "texts": ["It says fact-0.", ""]},
    ],
)
def test_nothing_is_measured_without_answer_or_text(given):
    model = Reader(additive)
    run = measured(attribution_run(2, **given), model)
    assert not model.read and facts_of(run)["n_left"] == 0
    told = analyse(run).queries["reason"].tolist()
    assert told == (["no_answer"] if not given["answer"] else ["not_measured"])


def test_an_abstention_is_an_answer():
    run = measured(attribution_run(2, answer="I don't know.", answer_status="abstained"), Reader(additive))
    assert len(rows_of(run)) == 4


# --- claims ---


def test_claims_are_read_under_the_same_subsets():
    def game(shown, text):
        return 6.0 * (CLAIMS.index(text) in shown) if text in CLAIMS else additive(shown)

    model = Reader(game)
    run = measured(attribution_run(3, claims=CLAIMS), model)
    claims = run["ablated_claims"]
    assert len(claims) == 16 and {*claims["ablation_id"]} == {*rows_of(run)}
    read = claims.set_index(["claim_id", "ablation_id"])["logprob"]
    assert (read["c0", "100"], read["c0", "011"], read["c1", "010"], read["c1", "101"]) == (
        -14,
        -20,
        -14,
        -20,
    )
    # All texts after one prompt together: the answer and its claims.
    assert model.at_once == [3, 21] and planned(attribution_run(3, claims=CLAIMS), model) == 24
    assert [text for _, text in model.read[:3]] == [ANSWER, *CLAIMS]
    found = analyse(run).claims
    assert found[found["is_first"]]["passage_id"].tolist() == ["p0", "p1"]
    assert fill(run, AttributionStep(), llm=model) is run


def test_the_only_claim_is_the_answer_and_is_not_read():
    model = Reader(additive)
    run = measured(attribution_run(2, claims=CLAIMS[:1]), model)
    assert len(model.read) == 4 and not len(run["ablated_claims"]) and analyse(run).claims.empty


def test_claims_in_other_orders_and_of_references_are_not_read():
    base = attribution_run(2, claims=(*CLAIMS, "A reference says so"))
    base = base.derive(claims=base["claims"].assign(side=["baseline", "baseline", "reference"]))
    model = Reader(additive)
    run = measured(base, model, place=True)
    assert {*run["ablated_claims"]["claim_id"]} == {"c0", "c1"} and len(run["ablated_claims"]) == 8
    assert not any("reference" in text for _, text in model.read)
    assert not any(":" in one for one in run["ablated_claims"]["ablation_id"])
    # Four subsets of three texts, and in the other order three of the answer: without passages there is none.
    assert len(model.read) == 4 * 3 + 3 < planned(base, model, place=True)


def test_claims_that_are_extracted_later_are_read_later():
    first = measured(attribution_run(2), Reader(additive))
    later = attribution_run(2, claims=CLAIMS)["claims"]
    grown = Run.create(first.manifest, **{**first.tables, "claims": later})
    model = Reader(additive)
    run = measured(grown, model)
    assert len(run["ablated_claims"]) == 8 and facts_of(run)["n_left"] == 0
    more = Run.create(run.manifest, **{**run.tables, "claims": attribution_run(2, claims=(*CLAIMS, "A third"))["claims"]})  # fmt: skip
    assert len(measured(more, Reader(additive))["ablated_claims"]) == 12


def test_a_failed_subset_has_its_claims_read_again():
    def game(shown, text):
        return None if shown == (1,) else additive(shown)

    broken = measured(attribution_run(2, claims=CLAIMS), Reader(game))
    assert broken["ablated_claims"]["logprob"].isna().sum() == 2
    model = Reader(additive)
    whole = measured(broken, model)
    assert whole["ablated_claims"]["logprob"].notna().all() and len(whole["ablated_claims"]) == 8
    assert [text for _, text in model.read] == [ANSWER, *CLAIMS]


# --- plan, settings, going on ---


@pytest.mark.parametrize("options", [{}, {"masks": 32, "shapley": True, "place": True}])
@pytest.mark.parametrize("k", [1, 3, 7, 12])
def test_the_plan_is_never_exceeded(k, options):
    for model in (Reader(additive), written(words)):
        run = attribution_run(k, k)
        most = planned(run, model, **options)
        done = measured(run, model, **options)
        calls = facts_of(done)["n_calls"]
        assert calls <= most
        if 2**k <= options.get("masks", 64) and not options.get("place"):
            assert calls == most == 2 * 2**k * (1 if isinstance(model, Reader) else 2)
    notes = plan_steps(run, [AttributionStep(**options)], {"attribution": model}).steps[0].notes
    assert "at most" in notes[0] and "near-duplicates" in notes[0]


def test_all_subsets_are_planned_up_to_the_most():
    """Of 6 passages there are 64 subsets, as many as may be measured; each is generated twice, or read once."""
    assert planned(attribution_run(6), Reader(additive)) == 64
    assert planned(attribution_run(6), written(words)) == 128


@pytest.mark.parametrize(("model", "most", "times"), [(Reader(additive), 1, 1), (written(words), 64, 2)])
def test_two_whole_prompts_are_timed(model, most, times):
    run = attribution_run(3, 3, 3)
    ids = run.queries["query_id"].to_list()
    plan = AttributionStep().open(run, Asker(model)).plan(ids)
    assert [(call.kind, call.number) for call in plan.timed] == [("read", 1), ("read", 2)]
    requests = [call.request for call in plan.timed]
    assert [asked_in(request.messages) for request in requests] == [1, 2]
    assert {shown_in(request.messages) for request in requests} == {(0, 1, 2)}
    assert {request.max_tokens for request in requests} == {most}
    # Half of the passages are there on average, and a token has about four characters: an eighth of 8 prompts.
    characters = sum(len(turn.content) for turn in requests[0].messages)
    assert (plan.about, plan.about_tokens) == (3 * 8 * times, 3 * characters * times)


def test_what_the_step_needs_and_measures_by_default():
    step = AttributionStep()
    assert step.needs_llm is True and step == AttributionStep(masks=64, shapley=False, place=False, seed=0)


@pytest.mark.parametrize("options", [{"masks": 31}, {"masks": 1025}, {"seed": -1}, {"masks": 40.0}])
def test_options_have_ranges(options):
    with pytest.raises(InputError, match=r"must be a whole number from"):
        AttributionStep(**options)


def test_other_settings_clear_the_rows():
    run = measured(attribution_run(7), Reader(additive), masks=32)
    other = measured(run, Reader(additive), masks=32, seed=5)
    assert {*rows_of(other)} != {*rows_of(run)} and facts_of(other)["options"]["seed"] == 5
    assert {*rows_of(other)} == {*rows_of(measured(attribution_run(7), Reader(additive), masks=32, seed=5))}
    generated = measured(run, written(words), masks=32)
    assert generated["ablations"]["logprob"].isna().all() and generated["ablations"]["answer"].notna().all()
    # Answered again: what was measured of the earlier answer goes.
    again = fill(run, InfluenceStep(), llm=ScriptedLLM(lambda request: "Parker built it"))
    assert not len(again["ablations"])


def test_a_cache_keeps_every_reading_and_answer():
    for model in (Reader(additive), written(words)):
        cache = CompletionCache()
        run = attribution_run(7)
        first = fill(run, AttributionStep(masks=32), llm=model, cache=cache)
        made = len(model.requests) + len(getattr(model, "read", ()))
        again = fill(run, AttributionStep(masks=32), llm=model, cache=cache)
        assert len(model.requests) + len(getattr(model, "read", ())) == made
        pd.testing.assert_frame_equal(again["ablations"], first["ablations"])


def test_a_cancelled_step_goes_on_where_it_stopped():
    run = attribution_run(3, 3, 3)
    model = Reader(additive)
    part = fill(run, AttributionStep(), llm=model, cancelled=lambda: len(model.read) >= 8)
    facts = facts_of(part)
    assert not facts["complete"] and facts["n_left"] == 3 - len({*part["ablations"]["query_id"]})
    rest = Reader(additive)
    done = measured(part, rest)
    assert facts_of(done)["complete"] and len(done["ablations"]) == 24
    assert len(rest.read) == 8 * facts["n_left"]
    assert done["ablations"].equals(measured(run, Reader(additive))["ablations"])


def test_questions_in_parallel_are_the_same():
    one, many = written(words), written(words, parallel=4)
    run = attribution_run(3, 7, 2, 5)
    assert measured(run, many)["ablations"].equals(measured(run, one)["ablations"])
    assert many.capabilities == replace(one.capabilities, parallel=4) and isinstance(
        many.capabilities, Capabilities
    )


def test_intervals_hold_their_scores():
    """What passages do together leaves an error to every method."""

    def game(shown, text):
        return sum(i + 1 for i in shown) ** 2 / 100

    found = analyse(measured(attribution_run(7), Reader(game), masks=32, shapley=True)).passages
    for low, score, high in (("low", "score", "high"), ("shapley_low", "shapley", "shapley_high")):
        assert (found[low] <= found[score]).all() and (found[score] <= found[high]).all()
        assert (found[low] < found[high]).all()
