"""What is said of the policy by which findings are graded."""

import pytest

from core.severity import BROKEN, LOSS, NOTE, WRONG, graded, policy


@pytest.mark.parametrize(
    ("harm", "low", "severity"),
    [
        (WRONG, 0.251, "high"), (WRONG, 0.25, "medium"), (WRONG, 0.101, "medium"), (WRONG, 0.1, "low"),
        (LOSS, 1.0, "medium"), (LOSS, 0.251, "medium"), (LOSS, 0.25, "low"),
        (BROKEN, 0.0, "high"), (NOTE, 1.0, "low"),
    ],
)  # fmt: skip
def test_a_finding_is_as_grave_as_the_share_that_surely_shows_it(harm, low, severity):
    assert graded(harm, (low, 1.0)) == severity


def test_where_no_share_is_known_only_a_broken_promise_is_grave():
    assert [graded(one) for one in (WRONG, LOSS, BROKEN, NOTE)] == ["low", "low", "high", "low"]


def test_the_help_says_of_every_harm_how_grave_it_is_and_leaves_out_what_it_never_is():
    assert [line.split(". ")[0] for line in policy(markdown=False).splitlines()] == [
        "Wrong answer: high surely > 25 %, medium surely > 10 %, low otherwise",
        "Loss: medium surely > 25 %, low otherwise",
        "Broken promise: high always",
        "Note: low always",
    ]


def test_the_table_of_the_documentation_has_a_cell_for_each_severity():
    table = [line.split(" | ") for line in policy().splitlines()]
    assert [cells[1:] for cells in table[2:]] == [
        ["surely > 25 %", "surely > 10 %", "otherwise |"],
        ["—", "surely > 25 %", "otherwise |"],
        ["always", "—", "— |"],
        ["—", "—", "always |"],
    ]
    assert table[-1][0] == "| **Note.** Worth knowing; nothing has to change."
