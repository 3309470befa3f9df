"""Generated pages of a diagnostic made up for it; those of the program are compared with the files in `docs/`."""

from core.report import reference
from core.report.glossary import glossary_markdown
from core.schema import Column, Table
from core.socket import MODE, REASON, Definition, Diagnostic, Setting

LONG = Definition("long", "Long answer", "It goes on.", MODE, source="By hand.", advice="Ask for less.")
LENGTH = Definition(
    "length",
    "Length",
    "Words of it.",
    unit="words",
    formula="n",
    range="0 on",
    direction="none",
    undefined_when="no answer",
)
SILENT = Definition("silent", "No words", "There is no answer.", REASON, advice="Read why.")
FINE = Definition("fine", "Brief answers", "They are brief.", MODE)
LONG_FROM = Setting("long_from", "Long from", 9.0, "Words from which an answer | is long.")


def toy(name="toy", definitions=(LENGTH, LONG, SILENT, FINE), **given):
    return Diagnostic(
        name,
        f"{name.capitalize()} title",
        "How long?",
        lambda d: d,
        lambda a: (),
        definitions=definitions,
        **given,
    )


def test_the_glossary_has_settings_and_definitions_by_kind():
    head, first, second = glossary_markdown([toy(settings=(LONG_FROM,)), toy("bare", (LENGTH,))]).split(
        "\n## "
    )
    assert head.startswith("# Glossary\n\nMade from the definitions in the code")
    assert first == (
        "Toy title\n\nHow long?\n\n"
        "### Settings\n\n- **Long from** (`--long-from`, default 9.0): Words from which an answer | is long.\n\n"
        "### Metrics\n\n- **Length** (`length`): Words of it. *Computed as:* n. *Range:* 0 on. *Unit:* words. "
        "*Direction:* none. *Undefined when:* no answer.\n\n"
        "### Failure modes\n\n- **Long answer** (`long`): It goes on. *Source:* By hand. *What to do:* Ask for less.\n"
        "- **Brief answers** (`fine`): They are brief.\n\n"
        "### Undefined because\n\n- **No words** (`silent`): There is no answer. *What to do:* Read why.\n"
    )
    assert "Settings" not in second


def test_every_finding_says_what_to_do_and_reasons_stand_together():
    page = reference.findings_markdown([toy(finds=("long", "fine", "silent")), toy("bare")])
    assert page.startswith("# Act on each finding\n\n") and "Bare title" not in page
    assert page.split("Made from the code by `make glossary`.\n\n")[1] == (
        "## Toy title\n\nHow long?\n\n"
        "### Long answer\n\n`long`: It goes on.\n\n**What to do:** Ask for less.\n\n"
        "### Brief answers\n\n`fine`: They are brief.\n\n**What to do:** Nothing: this is in order.\n\n"
        "### Undefined in many questions\n\n"
        "A number is undefined in a fifth of the questions or more, for one of these reasons:\n\n"
        "- **No words** (`silent`): There is no answer. Read why.\n"
    )


def test_of_a_failure_mode_and_a_reason_of_one_name_the_mode_is_the_finding():
    both = (Definition("silent", "Reason", "Why.", REASON), Definition("silent", "Mode", "What.", MODE))
    page = reference.findings_markdown([toy(definitions=both, finds=("silent",))])
    assert "### Mode\n\n`silent`: What." in page and "Reason" not in page


def test_settings_and_variables_are_rows_of_tables():
    page = reference.settings_markdown(
        [toy(settings=(LONG_FROM,)), toy("bare")], [reference.Variable("A", "What | it does.", "`x`")]
    )
    assert page.startswith("# Settings\n\n") and "Bare title" not in page
    assert (
        "## Toy title\n\n| option | key | default | what it changes |\n|---|---|---|---|\n"
        "| `--long-from` | `long_from` | `9.0` | **Long from.** Words from which an answer \\| is long. |\n\n"
        "## Environment variables\n\n| variable | what it sets | default |\n|---|---|---|\n| `A` | What \\| it does. | `x` |\n"
    ) in page


def test_every_page_is_written_into_the_folder(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    monkeypatch.setattr(reference, "pages", lambda: {"a.md": "A\n", "sub/ü.md": "Ü\n"})
    reference.main(str(tmp_path))
    assert (tmp_path / "a.md").read_bytes() == b"A\n" and (tmp_path / "sub/ü.md").read_text("utf-8") == "Ü\n"


def test_a_column_says_all_that_is_known_of_it():
    bare = Column("id", "str", "Its | name.", required=True)
    full = Column(
        "p",
        "float",
        "A share.",
        unit="share",
        range=(0, 1),
        direction="higher is better",
        values=("a", "b"),
        aliases=("q", "r"),
    )
    open_ended = [Column("n", "int", "A count.", range=ends) for ends in ((1, None), (None, 2.5))]
    page = reference.tables_markdown(
        {"things": Table("things", "One row a thing.", ("id", "p"), (bare, full, *open_ended))}
    )
    assert page.startswith("# Tables of a run\n\n")
    assert page.split("Made from the code by `make glossary`.\n\n")[1] == (
        "## things\n\nOne row a thing. Key: `id`, `p`.\n\n| column | type | meaning |\n|---|---|---|\n"
        "| `id` | str | *Required.* Its \\| name. |\n"
        "| `p` | float | A share. Unit: share. Range: 0 to 1. Higher is better. One of `a`, `b`. Also read as `q`, `r`. |\n"
        "| `n` | int | A count. Range: from 1. |\n"
        "| `n` | int | A count. Range: up to 2.5. |\n"
    )


def test_a_command_is_shown_with_its_arguments_and_options():
    import typer

    app = typer.Typer(add_completion=False)

    @app.command()
    def do(
        run: str = typer.Argument(help="The | run."),
        out: str = typer.Option(..., help="A file."),
        k: int = typer.Option(5, "--k", "-k", help="How many."),
        fast: bool = typer.Option(False, "--fast/--slow", help="Hurry."),
        style: str = typer.Option("x", help="Its style.", show_default="that of the run"),
        name: str = typer.Option(None, help="A name."),
    ) -> None:
        """Do it.

        And more.
        """

    page = reference.commands_markdown({"do": typer.main.get_command(app)})
    assert page.startswith("# Command line\n\n")
    assert page.split("Made from the code by `make glossary`.\n\n")[1].split("| `--help`")[0] == (
        "## do\n\nDo it.\n\nAnd more.\n\n`python -m core do RUN`\n\n| option | what it does |\n|---|---|\n"
        "| `RUN` | The \\| run. |\n"
        "| `--out` | A file. *Required.* |\n"
        "| `--k`, `-k` | How many. Default: `5`. |\n"
        "| `--fast`, `--slow` | Hurry. |\n"
        "| `--style` | Its style. Default: `that of the run`. |\n"
        "| `--name` | A name. |\n"
    )


def test_a_public_name_has_its_import_signature_and_docstring():
    page = reference.python_markdown({"Tools": ("tests.core.report.test_glossary.example",)})
    assert page.startswith("# Python\n\n")
    assert page.split("Made from the code by `make glossary`.\n\n")[1] == (
        "## Tools\n\n### example\n\n"
        "```text\nfrom tests.core.report.test_glossary import example\nexample(a, b=2, *, by=…)\n```\n\n"
        "Return `a`.\n\nIn more words.\n\n"
        "**Parameters**\n\n- `a : int`: A number, of two lines.\n- `b, by`\n\n"
        "**Notes**\n\nPlain.\n\n```text\n>>> example(1)\n1\n```\n"
    )


def example(a: int, b: int = 2, *, by: object = len) -> int:
    """Return ``a``.

    In more words.

    Parameters
    ----------
    a : int
        A number,
        of two lines.
    b, by

    Notes
    -----
    Plain.

    >>> example(1)
    1
    """
    return a
