"""Every step gives the same by workers of a cluster as here: Ray's part is played in threads."""

import pytest
from ray import cloudpickle

from core.attribution.step import AttributionStep
from core.claims.step import ClaimsStep
from core.confidence.step import ConfidenceStep
from core.errors import BackendError, InputError
from core.influence.step import InfluenceStep
from core.likelihood.step import LikelihoodStep
from core.llm import CompletionCache
from core.losses.step import LossesStep
from core.pipeline import RetryPolicy, RunOptions, begin, fill
from core.pipeline.cluster import Place, _in_workers, _opener
from core.uncertainty.step import UncertaintyStep
from core.validation.step import ValidationStep
from tests.cluster_runs import but_one, first_passage, questions
from tests.core.pipeline.test_fill import same_tables
from tests.scripted import ScriptedLLM
from tests.scripted_ray import ScriptedRay

N = 6
QUICK = RetryPolicy(attempts=2, first_wait=0.0, longest_wait=0.0, budget=5.0)


def on(n_workers):
    """An executor whose workers are threads of this process."""
    ray = ScriptedRay(n_workers)
    ray.cloudpickle = cloudpickle

    def work(job):
        return _in_workers(job, ray, Place("ray"), _opener(ray, job.asker.llm))

    return work


class Reading(ScriptedLLM):
    """Reads given answers, too: the longer one is the less likely."""

    def __init__(self):
        super().__init__(first_passage)
        self.capabilities = type(self.capabilities)(seed=True, answer_logprob=True, prefill=True)

    def score(self, messages, answers):
        return [
            tuple(-0.1 * (1 + len(turns[0].content) % 7) for _ in answer.split())
            for turns, answer in zip(messages, answers, strict=True)
        ]


def filled(step, llm, executor=None, run=None, **more):
    run = begin(questions(N), RunOptions(), llm, InfluenceStep()) if run is None else run
    return fill(run, step, llm=llm, retry=QUICK, **({} if executor is None else {"on": executor}), **more)


def facts(run, step):
    found = dict(run.manifest["steps"][step.name])
    found.pop("seconds")
    return found


@pytest.fixture(scope="module")
def answered():
    return filled(InfluenceStep(), ScriptedLLM(first_passage))


@pytest.mark.parametrize(
    ("step", "llm"),
    [
        (AttributionStep(masks=32), ScriptedLLM(first_passage)),
        (AttributionStep(masks=32), Reading()),
        (ClaimsStep(verifier="judge"), ScriptedLLM(lambda _: "no JSON")),
        (ConfidenceStep(), ScriptedLLM(lambda _: '{"confidence": 0.5}')),
        (ConfidenceStep(), ScriptedLLM(lambda _: "no number")),
        (LikelihoodStep(), Reading()),
        (LossesStep(alone=True), ScriptedLLM(first_passage)),
        (UncertaintyStep(samples=3, context_questions=3), ScriptedLLM(first_passage)),
        (UncertaintyStep(samples=3, entailment="judge"), ScriptedLLM(first_passage)),
        (ValidationStep(), None),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_every_step_gives_the_same_rows_and_facts(answered, step, llm):
    here, there = filled(step, llm, run=answered), filled(step, llm, on(3), run=answered)
    assert same_tables(here, there)
    assert facts(here, step) == facts(there, step)


def test_an_answer_that_one_worker_knows_costs_no_other_a_call(tmp_path):
    llm = ScriptedLLM(first_passage, log=tmp_path / "log")
    with CompletionCache(tmp_path / "c.db") as cache:
        first = filled(InfluenceStep(), llm, on(2), cache=cache)
        again = filled(InfluenceStep(), llm, on(3), cache=cache)
    assert same_tables(first, again)
    assert (
        first.manifest["cost"]["calls"]
        == again.manifest["cost"]["cached"]
        == len((tmp_path / "log").read_text().split())
    )
    assert again.manifest["cost"]["calls"] == 0


def test_a_question_that_fails_costs_one_row_with_its_reason():
    run = filled(InfluenceStep(), ScriptedLLM(but_one), on(3))
    status = dict(zip(run.queries["query_id"], run.queries["answer_status"], strict=True))
    assert [query_id for query_id, one in status.items() if one == "error"] == ["q3"]
    reason = run.queries.set_index("query_id").loc["q3", "status_reason"]
    assert "The model failed on this question" in reason
    assert run.manifest["complete"] and run.manifest["steps"]["influence"]["n_left"] == 1


def test_a_model_that_never_answers_ends_the_run():
    with pytest.raises(BackendError, match="is down"):
        filled(InfluenceStep(), ScriptedLLM(first_passage, down=True), on(2))


def test_a_cancel_keeps_what_is_finished_and_the_next_run_goes_on():
    seen = []
    llm = ScriptedLLM(first_passage, delay=0.01)
    with CompletionCache() as cache:
        part = filled(
            InfluenceStep(), llm, on(2), cache=cache, cancelled=lambda: len(seen) > 9,
            progress=lambda *told: seen.append(told),
        )  # fmt: skip
        n = len(cache)
        assert not part.manifest["complete"] and 9 <= n < N * 5
        whole = filled(InfluenceStep(), llm, on(2), cache=cache, run=part)
    assert (
        whole.manifest["complete"]
        and whole.manifest["cost"]["calls"] + part.manifest["cost"]["cached"] <= N * 5
    )
    assert same_tables(whole, filled(InfluenceStep(), ScriptedLLM(first_passage)))


def test_answered_calls_are_told_as_they_come():
    told, seen = [], []
    filled(
        InfluenceStep(),
        ScriptedLLM(first_passage),
        on(2),
        on_call=told.append,
        progress=lambda *t: seen.append(t),
    )
    # All passages, one without each of three, and none.
    assert sorted((one.query_id, one.kind, one.number) for one in told) == sorted(
        (f"q{i}", kind, number)
        for i in range(N)
        for kind, number in [("baseline", 1), ("closed book", 1), *(("ablation", j) for j in (1, 2, 3))]
    )
    assert seen[-1][:2] == (N * 5, N * 5)


def test_workers_with_another_model_are_refused():
    ray = ScriptedRay(2)
    ray.cloudpickle = cloudpickle
    other = ScriptedLLM(first_passage, name="another")
    with pytest.raises(BackendError, match="another model"):
        filled(
            InfluenceStep(), ScriptedLLM(first_passage),
            lambda job: _in_workers(job, ray, Place("ray"), _opener(ray, other)),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"on": "moon"}, "on must be here, ray or an address"),
        ({"on": "ray://"}, "on must be here, ray or an address"),
        ({"on": "ray", "workers": 0}, "workers must be a whole number from 1, got 0"),
        ({"on": "ray", "gpus_per_worker": -1}, "gpus_per_worker must be a number from 0"),
        ({"on": "ray", "workers": True}, "workers must be a whole number from 1, got True"),
        ({"on": "ray", "workers": 1.5}, "workers must be a whole number from 1, got 1.5"),
        ({"on": "ray", "gpus_per_worker": 64.5}, "must be a number from 0 to 64, got 64.5"),
        ({"on": "ray", "gpus_per_worker": True}, "must be a number from 0 to 64, got True"),
        ({"on": "ray", "gpus_per_worker": "1"}, "must be a number from 0 to 64, got '1'"),
        ({"workers": 2}, "for runs on a cluster"),
        ({"gpus_per_worker": 1}, "for runs on a cluster"),
    ],
)
def test_what_a_place_cannot_be_is_said(given, said):
    with pytest.raises(InputError, match=said):
        Place(**given)


def test_the_ends_of_what_a_place_can_be():
    assert (Place().on, Place().workers, Place().gpus_per_worker) == ("here", None, 0)
    assert Place("ray", 1, 64).gpus_per_worker == 64
    assert Place("ray://h:1", gpus_per_worker=0.25).workers is None


def test_a_model_that_cannot_be_sent_is_said():
    ray = ScriptedRay(1)
    ray.cloudpickle = cloudpickle
    llm = ScriptedLLM(first_passage)
    llm.more = (i for i in range(3))
    with pytest.raises(InputError, match="cannot be sent to other processes"):
        _opener(ray, llm)
