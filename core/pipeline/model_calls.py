"""Old name of `core.pipeline.step_asker`, until the claims step has moved."""

from core.pipeline.step_asker import StepAsker as ModelCalls

__all__ = ["ModelCalls"]
