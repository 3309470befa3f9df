"""The step that asks again: requests drawn alike for every question, samples kept, only the missing asked."""

import pandas as pd
import pytest

from core.errors import InputError
from core.llm.types import Completion
from core.pipeline.steps import fill
from core.run import Run
from core.uncertainty.step import TEMPERATURES, TOP_PS, UncertaintyStep
from tests.scripted import ScriptedLLM


@pytest.fixture
def run():
    """Two questions with a passage, and one without."""
    queries = pd.DataFrame(
        {
            "query_id": ["a", "b", "c"],
            "question": ["A?", "B?", "C?"],
            "answer": "x",
            "answer_status": "answered",
        }
    )
    passages = pd.DataFrame(
        {"query_id": ["a", "b"], "passage_id": "p", "title": "T", "text": "Text.", "retrieval_rank": 1.0}
    )
    return Run.create({"source": "upload"}, queries=queries, passages=passages)


def echo(request):
    return Completion(f"seed {request.seed}", "stop", 9, 2, 0.1, logprobs=(-0.5, -0.25))


def test_samples_are_drawn_alike_for_every_question_and_kept(run):
    llm = ScriptedLLM(echo)
    found = fill(run, UncertaintyStep(samples=5), llm=llm)["samples"]
    assert found["query_id"].to_list() == 5 * ["a"] + 5 * ["b"]
    a, b = (group.reset_index(drop=True).drop(columns="query_id") for _, group in found.groupby("query_id"))
    pd.testing.assert_frame_equal(a, b)
    assert a["sample_id"].to_list() == ["s1", "s2", "s3", "s4", "s5"]
    assert a["answer"].to_list() == [f"seed {i}" for i in range(1, 6)] and a["seed"].to_list() == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert a["temperature"].between(*TEMPERATURES).all() and a["temperature"].nunique() == 5
    assert a["top_p"].between(*TOP_PS).all() and a["top_p"].nunique() == 5
    assert (a["logprob_sum"] == -0.75).all() and (a["n_tokens"] == 2).all()
    # The same whatever else is asked.
    more = fill(run, UncertaintyStep(samples=20), llm=ScriptedLLM(echo))["samples"]
    pd.testing.assert_frame_equal(more[more["query_id"] == "a"].iloc[:5].drop(columns="query_id"), a)
    other = fill(run, UncertaintyStep(samples=5, seed=1), llm=ScriptedLLM(echo))["samples"]
    assert not other["temperature"].isin(a["temperature"]).any()


def test_the_prompt_is_that_of_the_run(run):
    llm = ScriptedLLM(echo)
    answered = run.derive({"prompt": {"style": "full", "max_tokens": 77}})
    fill(answered, UncertaintyStep(samples=2), llm=llm)
    full = UncertaintyStep(style="full", max_tokens=77)
    other = ScriptedLLM(echo)
    fill(run, UncertaintyStep(samples=2, style="full", max_tokens=77), llm=other)
    assert {request.max_tokens for request in llm.requests} == {full.max_tokens}
    assert llm.requests == other.requests


def test_more_samples_are_added_to_those_there(run):
    five = fill(run, UncertaintyStep(samples=5), llm=ScriptedLLM(echo))
    llm = ScriptedLLM(echo)
    ten = fill(five, UncertaintyStep(samples=10), llm=llm)
    assert llm.calls == 10 and len(ten["samples"]) == 20
    assert ten["samples"].equals(fill(run, UncertaintyStep(samples=10), llm=ScriptedLLM(echo))["samples"])
    # Fewer are there already; another seed begins anew.
    assert fill(ten, UncertaintyStep(samples=5), llm=llm) is ten
    assert len(fill(ten, UncertaintyStep(samples=5, seed=7), llm=llm)["samples"]) == 10


def test_a_failed_call_is_no_sample_and_is_asked_again(run):
    def third_fails(request):
        return Completion.failed("No.") if request.seed == 3 else echo(request)

    broken = fill(run, UncertaintyStep(samples=5), llm=ScriptedLLM(third_fails))
    assert len(broken["samples"]) == 8 and broken.manifest["steps"]["uncertainty"]["n_left"] == 2
    assert "2 questions have fewer than 5 samples." in broken.manifest["notes"]
    llm = ScriptedLLM(echo)
    whole = fill(broken, UncertaintyStep(samples=5), llm=llm)
    assert llm.calls == 2 and len(whole["samples"]) == 10 and not whole.manifest["notes"]


def test_samples_of_another_origin_make_room(run):
    samples = pd.DataFrame({"query_id": "a", "sample_id": ["1", "2"], "answer": "old", "planted_meaning": 1})
    found = fill(run.derive(samples=samples), UncertaintyStep(samples=2), llm=ScriptedLLM(echo))["samples"]
    assert found["sample_id"].to_list() == ["s1", "s2", "s1", "s2"] and "old" not in set(found["answer"])


@pytest.mark.parametrize("options", [{"samples": 1}, {"samples": 101}, {"samples": 2.5}, {"seed": -1}])
def test_wrong_options(options):
    with pytest.raises(InputError, match="must be a whole number from"):
        UncertaintyStep(**options)
