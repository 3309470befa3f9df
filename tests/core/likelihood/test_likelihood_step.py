"""What each passage gives to a fixed answer, by a model whose log-probabilities are a table."""

import math
import re

import pytest

from core.cli import main
from core.errors import InputError
from core.influence.step import InfluenceStep
from core.likelihood.step import LikelihoodStep
from core.llm import CompletionCache
from core.llm.types import Message
from core.pipeline import fill, plan_steps, steps
from core.run import Run
from tests.core.likelihood.likelihood_runs import Reader, likelihood_run
from tests.scripted import ScriptedLLM

THREE = {"scarlet": True, "green": False, "blue": False}
GAINS = {
    "omega": {"scarlet": 1.0, "green": 2.5, "blue": -0.5},
    "alpha": {"scarlet": 6.0, "green": -3.0},
    "beta": {"blue": 9.0},
}


def drops(run, query_id="q1"):
    own = run.passages[run.passages["query_id"] == query_id]
    return own["logprob_drop"].to_list(), own["reference_logprob_drop"].to_list()


def labels(turns):
    return [int(n) for n in re.findall(r"^\[(\d+)\]", turns[0].content, re.MULTILINE)]


def test_a_drop_is_what_the_passage_gives_to_the_whole_answer():
    run = fill(likelihood_run(("omega", ["alpha", "beta"], THREE)), LikelihoodStep(), llm=Reader(GAINS))
    # The first reference, although the second is likelier with all passages: 9 against 6 - 3.
    assert drops(run) == ([1.0, 2.5, -0.5], [6.0, -3.0, 0.0])
    facts = run.manifest["steps"]["likelihood"]
    assert (facts["n_calls"], facts["complete"], facts["n_left"], facts["notes"]) == (8, True, 0, [])


def test_a_question_is_one_call_with_all_passages_first_and_then_in_their_order():
    model = Reader(GAINS)
    fill(likelihood_run(("omega", ["alpha"], THREE), ("omega", None, THREE)), LikelihoodStep(), llm=model)
    assert [[(labels(turns), answer) for turns, answer in call] for call in model.calls_of_score] == [
        [(shown, text) for shown in ([1, 2, 3], [2, 3], [1, 3], [1, 2]) for text in ("omega", "alpha")],
        [(shown, "omega") for shown in ([1, 2, 3], [2, 3], [1, 3], [1, 2])],
    ]


def test_many_passages_of_a_question_stay_one_call():
    texts = {f"passage number {i:02}": False for i in range(40)}
    model = Reader({})
    fill(likelihood_run(("omega", None, texts)), LikelihoodStep(), llm=model)
    assert [len(call) for call in model.calls_of_score] == [41]


def test_the_prompts_are_those_that_the_answers_had():
    run = likelihood_run(("omega", None, THREE), manifest={"prompt": {"style": "full"}})
    model, asked = Reader(GAINS), ScriptedLLM(lambda request: "omega")
    done = fill(run, LikelihoodStep(), llm=model)
    fill(run, InfluenceStep(closed_book=False, style="full"), llm=asked)
    assert [turns for turns, _ in model.calls_of_score[0]] == [request.messages for request in asked.requests]
    assert done.manifest["steps"]["likelihood"]["options"] == {"style": "full"}


def test_what_cannot_be_scored_has_no_value_and_is_tried_again():
    run = likelihood_run(("omega", ["alpha"], THREE), ("omega", None, THREE))
    broken = fill(run, LikelihoodStep(), llm=Reader(GAINS, never=["omega"], missing="green"))
    own, reference = drops(broken)
    # Without green the answer cannot be scored: only green's own drop is unknown.
    assert own[:1] + own[2:] == [1.0, -0.5] and math.isnan(own[1]) and reference == [6.0, -3.0, 0.0]
    facts = broken.manifest["steps"]["likelihood"]
    assert facts["n_left"] == 2 and "Log-probabilities of 2 questions are missing" in facts["notes"][0]
    model = Reader(GAINS)
    repaired = fill(broken, LikelihoodStep(), llm=model)
    assert drops(repaired)[0] == [1.0, 2.5, -0.5] and repaired.manifest["steps"]["likelihood"]["notes"] == []


def test_an_impossible_answer_has_no_drop():
    model = Reader({"omega": {"scarlet": math.inf}})
    run = fill(likelihood_run(("omega", None, THREE)), LikelihoodStep(), llm=model)
    assert all(map(math.isnan, drops(run)[0]))


@pytest.mark.parametrize(
    ("answer", "status", "texts"),
    [(None, "error", THREE), ("", "empty", THREE), ("omega", "answered", {"scarlet": False, "": False})],
)
def test_nothing_is_read_without_answer_or_text(answer, status, texts):
    model = Reader(GAINS)
    run = fill(likelihood_run((answer, None, texts, status)), LikelihoodStep(), llm=model)
    assert not model.calls_of_score and run.passages["logprob_drop"].isna().all()
    facts = run.manifest["steps"]["likelihood"]
    assert facts["n_left"] == 0 and facts["notes"] == [
        "The answers to 1 question cannot be scored: there is no answer, or a passage has no text."
    ]


def test_a_reference_is_read_where_the_answer_failed_and_an_abstention_is_an_answer():
    run = likelihood_run((None, ["alpha"], THREE, "error"), ("I don't know", [" "], THREE, "abstained"))
    done = fill(run, LikelihoodStep(), llm=Reader(GAINS | {"I don't know": {"blue": 2.0}}))
    own, reference = drops(done)
    assert all(map(math.isnan, own)) and reference == [6.0, -3.0, 0.0]
    own, reference = drops(done, "q2")
    assert own == [0.0, 0.0, 2.0] and all(map(math.isnan, reference))


def test_a_model_that_cannot_read_a_given_answer_is_refused_before_any_call():
    with pytest.raises(
        InputError, match="likelihood needs a model that gives the log-probability of a given"
    ):
        fill(likelihood_run(("omega", None, THREE)), LikelihoodStep(), llm=ScriptedLLM({}))


def test_a_cancelled_run_goes_on_where_it_stopped():
    run, cache = likelihood_run(*[("omega", ["alpha"], THREE)] * 3), CompletionCache()
    model = Reader(GAINS)
    part = fill(
        run, LikelihoodStep(), llm=model, cache=cache, cancelled=lambda: len(model.calls_of_score) > 1
    )
    assert part.manifest["steps"]["likelihood"]["complete"] is False
    done = fill(part, LikelihoodStep(), llm=model, cache=cache)
    # The questions differ, so each is read once.
    assert len(model.calls_of_score) == 3 and done.manifest["steps"]["likelihood"]["complete"]
    assert all(drops(done, f"q{i}") == ([1.0, 2.5, -0.5], [6.0, -3.0, 0.0]) for i in (1, 2, 3))
    assert fill(done, LikelihoodStep(), llm=model, cache=cache) is done


def test_another_model_clears_the_drops_and_other_columns_stay():
    run = likelihood_run(("omega", ["alpha"], THREE))
    run = run.derive({}, passages=run.passages.assign(ablated_answer="omega", ablated_status="answered"))
    first = fill(run, LikelihoodStep(), llm=Reader(GAINS))
    second = fill(first, LikelihoodStep(), llm=Reader({"omega": {"scarlet": 7.0}}, name="other"))
    assert drops(second) == ([7.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    assert second.passages["ablated_answer"].eq("omega").all()


def test_drops_go_when_the_question_is_answered_again():
    run = fill(likelihood_run(("omega", ["alpha"], THREE)), LikelihoodStep(), llm=Reader(GAINS))
    again = fill(run, InfluenceStep(), llm=ScriptedLLM(lambda request: "alpha"))
    assert again.passages[["logprob_drop", "reference_logprob_drop"]].isna().all(axis=None)
    # One question that is tried again loses its own only.
    both = likelihood_run(("omega", None, THREE), ("omega", None, THREE))
    both = fill(both, InfluenceStep(), llm=ScriptedLLM(lambda request: "omega"))
    both = fill(both, LikelihoodStep(), llm=Reader(GAINS))
    lost = both.passages.assign(ablated_status=["error"] + ["answered"] * 5)
    both = Run.create(both.manifest, **{**both.tables, "passages": lost})
    again = fill(both, InfluenceStep(), llm=ScriptedLLM(lambda request: "omega"))
    assert all(map(math.isnan, drops(again)[0])) and drops(again, "q2")[0] == [1.0, 2.5, -0.5]


def test_the_plan_counts_forward_passes_also_of_answers_to_come():
    run = likelihood_run(("omega", ["alpha"], THREE), ("omega", None, THREE), (None, None, THREE, "error"))
    plan = plan_steps(run, [LikelihoodStep()], {"likelihood": Reader(GAINS)})
    assert plan.to_dict()["likelihood_calls_about"] == 4 * 2 + 4
    later = run.queries.assign(answer=None, answer_status=None)
    later = Run.create(run.manifest, queries=later, passages=run.passages)
    plan = plan_steps(later, [LikelihoodStep()], {"likelihood": Reader(GAINS)})
    assert plan.to_dict()["likelihood_calls_about"] == 4 * 2 + 4 + 4


@pytest.mark.parametrize(
    ("answer", "references", "status", "costs"),
    [
        # Of 23 + 10 characters 8 tokens, and 6 of each prompt: 26 behind the last passage, in two texts.
        (
            "omega",
            ["alpha beta"],
            "answered",
            [(6, 100 + (20 + 26) + 26), (8, 256 + 100 + 46 + 26), (2, 100 + 3 * 2 * 26)],
        ),
        # An answer to come has no length yet: 5 and 18 tokens.
        (None, None, None, [(3, 100 + (20 + 23) + 23), (5, 169 + 100 + 43 + 23), (2, 100 + 3 * 23)]),
    ],
)
def test_the_plan_reckons_with_four_characters_a_token(monkeypatch, answer, references, status, costs):
    # 100, 90 and 80 tokens: what is left over is none.
    prompts = [(Message("user", "x" * size),) for size in (402, 363, 321)]
    monkeypatch.setattr("core.likelihood.step.leave_one_out", lambda *_: prompts)
    run = likelihood_run((answer, references, {"one": True, "two": False}, status))
    plan = plan_steps(run, [LikelihoodStep()], {"likelihood": Reader({})})
    choices = plan.to_dict()["likelihood_choices"]
    assert [(one["calls"], one["tokens"]) for one in choices] == costs
    assert (plan.to_dict()["likelihood_calls_about"], plan.prompt_tokens) == costs[0]
    timed = [(call.kind, call.number, call.request.messages) for call in plan.steps[0].first]
    assert timed == [("read", 1, prompts[0]), ("read", 2, prompts[1])]


def test_an_exactness_that_was_read_from_a_file_is_the_same():
    run = likelihood_run(("omega", None, THREE))
    for name, options in (
        ("exact", {"style": "short"}),
        ("screen", {"style": "short", "exactness": "screen"}),
    ):
        step = LikelihoodStep(exactness="".join(list(name)))
        done = fill(run, step, llm=Reader(GAINS))
        assert done.manifest["steps"]["likelihood"]["options"] == options
        chosen = [
            one.name
            for one in plan_steps(run, [step], {"likelihood": Reader({})}).steps[0].choices
            if one.chosen
        ]
        assert chosen == [name]


def test_the_step_needs_the_model_of_the_answers():
    live = object()
    assert LikelihoodStep().needs_llm is True and LikelihoodStep().model(live) is live


def test_on_the_command_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("LEADLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(steps, "open_llm", lambda kind, name=None, **_: Reader(GAINS))
    likelihood_run(("omega", ["alpha"], THREE)).save(tmp_path / "run")
    out = tmp_path / "scored"
    assert main(["analyze", str(tmp_path / "run"), "--steps", "likelihood", "--out", str(out)]) == 0
    assert drops(Run.load(out)) == ([1.0, 2.5, -0.5], [6.0, -3.0, 0.0])
    assert main(["plan", str(tmp_path / "run"), "--steps", "likelihood"]) == 0
    assert "forward passes" in capsys.readouterr().out
