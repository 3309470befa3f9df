"""The command line: the dashboard's steps for scripts and CI jobs."""

from core.cli.app import main

__all__ = ["main"]
