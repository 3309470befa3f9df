"""How mutants are tried: what is loaded gets their code, what only an import runs is told apart; what is kept is what
the documentation shows."""

import gc
import weakref
from pathlib import Path
from textwrap import dedent

import pytest

from tests.mutants import PAGE, ROOT, equivalents, never_run, page, put_in_place

BEFORE = dedent("""
    LIMIT = 3

    def outer(values):
        def double(value):
            return 2 * value
        return [double(value) for value in values if value < LIMIT]

    class Counter:
        step = 1

        @staticmethod
        def next(number):
            return number + 1

    ways = {"half": lambda number: number / 2}
""")


class Gone:
    """What a proxy stood for."""


@pytest.fixture
def loaded():
    gone = Gone()
    proxy = weakref.proxy(gone)  # it answers every question about its class with an error
    names = {"proxy": proxy}
    del gone
    exec(compile(BEFORE, "before.py", "exec"), names)
    gc.unfreeze()
    return names


@pytest.mark.parametrize(
    ("was", "became", "expected"),
    [
        ("value < LIMIT", "value <= LIMIT", ([2, 4, 6], 6, 2.0)),
        ("2 * value", "3 * value", ([3, 6], 6, 2.0)),
        ("number + 1", "number - 1", ([2, 4], 4, 2.0)),
        ("number / 2", "number * 2", ([2, 4], 6, 8)),
    ],
)
def test_a_changed_function_does_what_the_change_says(loaded, was, became, expected):
    assert put_in_place(BEFORE, BEFORE.replace(was, became))
    assert (loaded["outer"]([1, 2, 3]), loaded["Counter"].next(5), loaded["ways"]["half"](4)) == expected


@pytest.mark.parametrize(("was", "became"), [("LIMIT = 3", "LIMIT = 4"), ("step = 1", "step = 2")])
def test_what_an_import_runs_is_not_put_in_place(loaded, was, became):
    assert not put_in_place(BEFORE, BEFORE.replace(was, became))
    assert loaded["outer"]([1, 2, 3]) == [2, 4]


def test_annotations_decorators_and_what_zip_asserts_are_left_out(tmp_path):
    text = "@wraps(1)\ndef f(a: int) -> str:\n    return zip(a, 3, strict=True), zip2(strict=True)\n"
    (tmp_path / "m.py").write_text(text, encoding="utf-8")
    lines = text.splitlines()
    found = {lines[row - 1][column + 1 : end[1]] for (row, column), end in never_run(tmp_path / "m.py")}
    assert found == {"wraps(1)", "int", "str", "True"}
    assert len(never_run(tmp_path / "m.py")) == 4


def test_the_page_shows_what_was_kept():
    assert PAGE.read_text(encoding="utf-8") == page()


def test_what_is_said_to_have_no_effect_is_about_a_line_that_is_there():
    texts = {}
    for file, was, became in equivalents():
        lines = texts.setdefault(file, {line.strip() for line in Path(ROOT, file).read_text().splitlines()})
        assert was in lines and was != became, (file, was)
