"""Figures of *losses*: the ladder, and what each fix makes correct and breaks."""

from core.charts.losses.balance import fix_balance
from core.charts.losses.ladder import loss_ladder

__all__ = ["fix_balance", "loss_ladder"]
