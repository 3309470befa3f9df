"""Live runs: begin one, estimate the cost of its steps, run them."""

from core.pipeline.asking import RetryPolicy
from core.pipeline.begin import RunOptions, begin, run_id_of
from core.pipeline.per_question import PerQuestion
from core.pipeline.plan import CallPlan, Speed, measure_speed, plan_steps
from core.pipeline.progress import ModelTurns, Progress, ProgressLine, Turn
from core.pipeline.steps import (
    Answered,
    Call,
    ModelChoice,
    Option,
    Step,
    StepPlan,
    StepWork,
    another_run,
    fill,
)

__all__ = [
    "Answered",
    "Call",
    "CallPlan",
    "ModelChoice",
    "ModelTurns",
    "Option",
    "PerQuestion",
    "Progress",
    "ProgressLine",
    "RetryPolicy",
    "RunOptions",
    "Speed",
    "Step",
    "StepPlan",
    "StepWork",
    "Turn",
    "another_run",
    "begin",
    "fill",
    "measure_speed",
    "plan_steps",
    "run_id_of",
]
