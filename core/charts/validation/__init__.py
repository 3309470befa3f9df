"""Figures of validation, one module each."""

from core.charts.validation.flags import flag_rates
from core.charts.validation.reasons import objection_reasons
from core.charts.validation.trend import pass_rate_by_day
from core.charts.validation.verdicts import verdict_counts

__all__ = ["flag_rates", "objection_reasons", "pass_rate_by_day", "verdict_counts"]
