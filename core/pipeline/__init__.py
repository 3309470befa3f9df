"""Plan the calls of a live run, time them, carry them out."""

from core.pipeline.asking import RetryPolicy
from core.pipeline.calibrate import calibrate
from core.pipeline.execute import execute
from core.pipeline.options import RunOptions
from core.pipeline.plan import Calibration, CallPlan, make_plan
from core.pipeline.progress import Progress, duration

__all__ = [
    "CallPlan",
    "Calibration",
    "Progress",
    "RetryPolicy",
    "RunOptions",
    "calibrate",
    "duration",
    "execute",
    "make_plan",
]
