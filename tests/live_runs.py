"""A whole live run, or its plan, in one call."""

from core.influence.step import InfluenceStep
from core.pipeline import RunOptions, begin, fill, plan_steps


def live_run(data, llm, cache=None, options=None, step=None, name=None, **more):
    step = step or InfluenceStep()
    return fill(
        begin(data, options or RunOptions(), llm, step, name=name), step, llm=llm, cache=cache, **more
    )


def live_plan(data, llm, cache=None, options=None, step=None):
    step = step or InfluenceStep()
    run = begin(data, options or RunOptions(), llm, step)
    return plan_steps(run, [step], {step.name: llm}, cache)


def answered(run):
    """How many questions have something in place of an answer."""
    return int(run.queries["answer_status"].notna().sum())
