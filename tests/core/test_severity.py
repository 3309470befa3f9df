"""What is said of the policy by which findings are graded."""

from core.severity import policy


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
