"""What the analysis takes from a run besides the answers: tokens, labels, claims, models."""

from __future__ import annotations

import pandas as pd
import pytest

from core.diagnosis import Diagnosis
from core.losses.ladder import ABSENT, DOUBTFUL, GROUNDED, READING, UNKNOWN
from core.run import Run
from tests.core.losses.losses_runs import (
    Asked,
    Reader,
    gold_text,
    losses_of,
    other_texts,
    reading,
    run_of,
    tried,
)
from tests.scripted import ScriptedLLM

QUESTION = "Who built bridge 1?"


def one(**more):
    return Asked([*other_texts(1, 2), ("g", gold_text(1))], ("g",), question=QUESTION, **more)


def model(name="scripted", **limits):
    return ScriptedLLM(reading({QUESTION: Reader(**limits)})._rule, name=name)


def test_the_tokens_of_a_fix_are_a_ratio_to_those_of_the_run():
    run = tried(run_of([one()], model()), model())
    arms = run["arms"].assign(prompt_tokens=None)
    arms.loc[arms["arm"].eq("gold_alone"), "prompt_tokens"] = 60
    arms.loc[arms["arm"].eq("reversed"), "prompt_tokens"] = 120
    losses = losses_of(run.derive(queries=run.queries.assign(prompt_tokens=120), arms=arms))
    ratios = {fix.arm: fix.tokens for fix in losses.fixes if fix.tokens is not None}
    assert ratios == {"gold_alone": 0.5, "reversed": 1.0}
    # Where the run's own were not counted there is nothing to compare with.
    unknown = losses_of(run.derive(queries=run.queries.assign(prompt_tokens=None), arms=arms))
    assert {fix.tokens for fix in unknown.fixes} == {None}


def test_only_another_model_than_the_runs_is_named():
    run = run_of([one()], model())
    own, other = tried(run, model()), tried(run, model("larger"))
    assert (losses_of(own).model, losses_of(other).model) == ("", "larger")
    # Without references the run is asked as it is of any model.
    no_references = run.queries.assign(reference_answers=None)
    again = own["arms"].assign(arm=own["arms"]["arm"].replace("again", "as_it_is"))
    assert losses_of(own.derive(queries=no_references, arms=again)).model == ""
    assert losses_of(other.derive(queries=no_references)).model == "larger"
    # Nothing of what it answered is left.
    assert losses_of(other.derive(arms=other["arms"].iloc[:0])).model == ""


def test_harmful_passages_are_compared_with_what_the_placebo_makes_correct():
    wrong = Asked(
        [*other_texts(1, 2), ("g", gold_text(1))], ("g",), question=QUESTION, answer="It was Parker."
    )
    run = run_of([wrong] * 4, model())
    run = run.derive(passages=run.passages.assign(ablated_answer=["Unwin", "Parker", "Parker"] * 4))

    def against(by):
        """The first is correct under the placebo, the second is not; of the others nobody knows."""
        filled = tried(run, by)
        arms, placebo = filled["arms"], filled["arms"]["arm"].eq("placebo")
        arms.loc[placebo, "answer"] = ["It was Unwin.", "It was Parker.", "It was Unwin.", None]
        arms.loc[placebo, "answer_status"] = ["answered", "answered", None, None]
        arms.loc[placebo, "prompt"] = ["changed", "changed", "unchanged", "none"]
        diagnosis = Diagnosis(run.derive({"steps": filled.manifest["steps"]}, arms=arms))
        return diagnosis["losses"].by_placebo().to_dict(), diagnosis["influence"].against_placebo

    said, found = against(model())
    assert said == {"q1": True, "q2": False}
    # Two of six tries, one of two placebos; at least one placebo fails unless both are among the three: 1 - 2/4 * 1/4.
    assert (found.n, found.by_placebo, found.tries, found.fixed) == (2, 1, 6, 2)
    assert found.p_value == pytest.approx(7 / 8)
    # Another model was asked to try the fixes: that says nothing of this one.
    assert against(model("larger"))[1].n == 0
    # Nothing was tried.
    assert Diagnosis(run)["influence"].against_placebo.n == 0


def test_what_trying_the_fixes_takes_is_told_by_the_questions_with_passages():
    asked = [one(), one(), Asked([], answer="It was Parker.")]
    # Seven calls for each of two questions; three calls of the run took six seconds.
    assert losses_of(run_of(asked, model())).to_try == (14, None)
    assert losses_of(run_of(asked, model(), cost={"calls": 3, "seconds": 6.0})).to_try == (14, 28.0)
    assert losses_of(run_of(asked, model(), cost={"calls": 0, "seconds": 6.0})).to_try == (14, None)


def test_a_prompt_that_was_sent_without_an_outcome_failed_and_an_unchanged_one_has_none():
    run = tried(run_of([one()], model()), model())
    losses = losses_of(run.derive(arms=run["arms"].assign(answer=None, answer_status=None)))
    states = losses.answers.set_index("arm")["state"]
    assert states.drop("gold_added").eq("failed").all() and pd.isna(states["gold_added"])


def claims(query_id="q1", label="Entailment"):
    return pd.DataFrame(
        {"query_id": [query_id], "claim_id": ["r1"], "text": ["Unwin built it."], "side": ["reference"], "counterpart": [label]}
    )  # fmt: skip


def test_an_answer_that_entails_the_reference_is_judged_wrong_perhaps_but_not_against_a_person():
    run = tried(run_of([one()], model(reads=False)), model(reads=False))
    assert losses_of(run.derive(claims=claims())).queries["stage"].iloc[0] == DOUBTFUL
    assert losses_of(run.derive(claims=claims(label="Contradiction"))).queries["stage"].iloc[0] == READING
    person = tried(run_of([one(correct=False)], model(reads=False)), model(reads=False))
    assert losses_of(person.derive(claims=claims())).queries["stage"].iloc[0] == READING


def test_claims_of_the_runs_own_answer_say_nothing_of_another_models():
    run = tried(run_of([one()], model()), model("larger", reads=False))
    assert losses_of(run.derive(claims=claims())).queries["stage"].iloc[0] == READING


def test_claims_of_an_answer_say_nothing_of_the_reference():
    run = tried(run_of([one()], model(reads=False)), model(reads=False))
    own = claims().assign(side="answer")
    assert losses_of(run.derive(claims=own)).queries["stage"].iloc[0] == READING


def test_a_wrong_answer_that_is_in_no_document_is_no_loss_of_retrieval_even_untried():
    losses = losses_of(run_of([Asked(other_texts(1, 2), n_gold=0, answer="It was Parker.")]))
    assert losses.queries["stage"].iloc[0] == ABSENT


def test_a_label_alone_is_enough_for_the_answer_itself():
    asked = Asked(other_texts(1, 2), ("o1",), references=None, correct=True)
    run = Run.create(
        {"source": "upload"}, queries=run_of([asked]).queries.assign(answer=None, answer_status=None)
    )
    losses = losses_of(run)
    assert losses.queries["state"].iloc[0] == "correct" and (losses.n, losses.n_lost) == (1, 0)


@pytest.mark.parametrize(("answer", "status"), [(None, "error"), (None, None)])
def test_an_answer_that_failed_is_in_no_stage(answer, status):
    run = run_of([one()])
    run = run.derive(queries=run.queries.assign(answer=answer, answer_status=status))
    losses = losses_of(run)
    assert losses.queries["state"].iloc[0] == "failed" and losses.n == 0
    assert losses.queries["stage"].isna().all()


def test_the_status_of_an_imported_answer_is_read_from_its_words():
    run = run_of([one(answer="I don't know."), one(answer="It was Unwin.")])
    losses = losses_of(run.derive(queries=run.queries.assign(answer_status=None)))
    assert losses.queries["state"].tolist() == ["abstained", "correct"]


def test_what_was_found_is_that_of_the_table_and_no_repeat_counts_twice():
    run = tried(run_of([one()], model()), model())
    twice = pd.concat([run["arms"], run["arms"].assign(repeat=2, answer="It was Parker.")])
    losses = losses_of(run.derive(arms=twice))
    assert losses.queries["stage"].iloc[0] == GROUNDED
    assert [fix.n for fix in losses.fixes] == [1] * len(losses.fixes)


def test_calls_are_those_whose_prompt_is_another_one():
    run = tried(run_of([one()], model()), model())
    losses = losses_of(run)
    # Gold first, alone, its sentences, fewer, reversed, the placebo, and as it is again; nothing is missing.
    assert losses.calls == 7 and losses.n_tried == 1


def test_where_an_arm_was_not_asked_of_some_questions_they_are_not_known():
    asked = [one(), one()]
    asked[1].question = "Who built bridge 2?"
    llm = reading({QUESTION: Reader(reads=False), "Who built bridge 2?": Reader(reads=False)})
    run = tried(run_of(asked, llm), llm)
    part = run.derive(arms=run["arms"][run["arms"]["query_id"].eq("q1")])
    losses = losses_of(part)
    assert losses.queries["stage"].tolist() == [READING, UNKNOWN]
    assert losses.fix("gold_alone").n == 1 and losses.n_tried == 1


def test_closed_book_answers_are_judged_like_all_others():
    for said, stage in (
        ("I don't know.", GROUNDED),
        ("By Unwin.", "without the passages too"),
        ("", GROUNDED),
    ):
        run = tried(run_of([one(closed_book=said)], model()), model())
        assert losses_of(run).queries["stage"].iloc[0] == stage
