"""Measurements: of speed (``python -m bench``, kept in docs/benchmarks.md) and of quality (scripts)."""
