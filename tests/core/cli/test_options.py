"""What the options of the command line say of themselves."""

from dataclasses import dataclass
from typing import Annotated, get_args

from core.cli.options import field_options, setting_options
from core.pipeline import Option
from core.socket import Setting


@dataclass
class _Fields:
    shown: Annotated[int, Option("--shown", "Shown.", shows_default=True)] = 3
    hidden: Annotated[int, Option("--hidden", "Hidden.", shows_default=False)] = 3
    unset: Annotated[str | None, Option("--unset", "Unset.", shows_default=True)] = None
    switch: Annotated[bool, Option("--switch", "Switch.", shows_default=True)] = True


def told(option):
    """Return the type, the name and the default in the help of an option: what stands first is the name."""
    kind, info = get_args(option.annotation)
    return get_args(kind)[0], info.default, info.show_default


def test_help_shows_a_default_where_there_is_one_and_it_is_wanted():
    assert [told(one) for one in field_options("owner", _Fields)] == [
        (int, "--shown", "3"),
        (int, "--hidden", False),
        (str, "--unset", False),
        (bool, "--switch/--no-switch", "True"),
    ]


def test_a_setting_is_an_option_of_the_type_of_its_default():
    settings = [
        Setting("deep_look", "", False, ""),
        Setting("way", "", "a", ""),
        Setting("share", "", 1.0, ""),
    ]
    assert [told(one) for one in setting_options(settings)] == [
        (bool, "--deep-look/--no-deep-look", "False"),
        (str, "--way", "a"),
        (float, "--share", "1"),
    ]
