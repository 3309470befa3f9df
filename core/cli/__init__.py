"""The command line: the same steps as in the browser, for scripts and CI jobs."""

from core.cli.app import main

__all__ = ["main"]
