"""What the options of the command line say of themselves."""

from dataclasses import dataclass
from typing import Annotated, get_args

from core.cli.options import field_options
from core.pipeline import Option


@dataclass
class _Fields:
    shown: Annotated[int, Option("--shown", "Shown.", shows_default=True)] = 3
    hidden: Annotated[int, Option("--hidden", "Hidden.", shows_default=False)] = 3
    unset: Annotated[str | None, Option("--unset", "Unset.", shows_default=True)] = None


def test_help_shows_a_default_where_there_is_one_and_it_is_wanted():
    found = field_options("owner", _Fields)
    assert [get_args(one.annotation)[1].show_default for one in found] == ["3", False, False]
