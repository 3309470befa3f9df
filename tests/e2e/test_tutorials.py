"""The tutorials that happen on screen, followed in a browser with what is installed from the wheel: what each says is
on a page is there.

Every row names words of the tutorial and words of the page: whichever changes alone fails.
"""

from __future__ import annotations

import os
import re
import subprocess
from typing import NamedTuple

import pytest

from tests.e2e.running_app import ROOT, running_app, still_context
from tests.e2e.test_losses import BAR
from tests.installed import python_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
# Without the signs that keep addresses from becoming links and lines whole.
SAYS = """text => document.querySelector("[data-testid='stMain']").innerText
  .replaceAll("\\u2060", "").replaceAll("\\u00a0", " ").includes(text)"""

HAS_FIGURES = """n => n === document.querySelector("[data-testid='stMain']")
  .querySelectorAll("[data-testid='stPlotlyChart']").length"""


class Section(NamedTuple):
    """A section of "Read your first run": its page, what it says of it, what the page says, the figure there, and how
    many figures the page has."""

    page: str
    told: str
    said: str
    figure: str
    n_figures: int


WRONG = "61 of 111 answers are wrong (95 % interval 46–64 %). In 58 the right passage was in the prompt"
SECTIONS = {
    "The verdict (Overview)": Section("Overview", WRONG, WRONG, "Where 111 judged answers", 1),
    "Where answers are lost": Section(
        "Where answers are lost",
        "*distracted* 30 and *not read* 29 of 61",
        "Of 61 answers that are not correct, reading loses 29 and distracting passages lose 30",
        "Where 111 judged answers", 2,
    ),
    "Influence vs retrieval": Section(
        "Influence vs retrieval",
        "0.85 with 0.81 by chance (p = 0.27 after correction)",
        "mean nDCG by influence 0.85, 0.81 by chance",
        "Influence rank against retrieval rank of", 2,
    ),
    "Retrieval quality": Section(
        "Retrieval quality",
        "89 % (95 % interval 82 to 94 %), 33 % by chance",
        "95 % interval 0.82 to 0.94; 0.33 by chance",
        "Retrieval of gold passages", 1,
    ),
    "Claims & evidence": Section(
        "Claims & evidence",
        "41 of 118 claims have no supporting passage (26 to 44 %)",
        "41 of 118 claims checked have no supporting passage",
        "Claims 1 to", 2,
    ),
    "Influence vs support": Section(
        "Claims & evidence", "*distractors*", "Influence vs support", "Best support against influence", 2,
    ),
    "Uncertainty": Section(
        "Uncertainty",
        "62 of 119 questions have no meaning that reaches half of the samples",
        "In 62 of 119 questions the answer changes with sampling: no meaning reaches half of the samples",
        "Semantic entropy against agreement", 2,
    ),
    "Confidence": Section(
        "Confidence", "AUROC is 0.45 (0.35 to 0.56)", "AUROC 0.45 (95 % interval 0.35 to 0.56", "Share of correct ones", 1,
    ),
    "Conformal prediction": Section(
        "Conformal",
        '"No confidence is high enough"',
        "No confidence is high enough to certify at most 10 % wrong",
        "Share of incorrect answers", 3,
    ),
    "Validation": Section(
        "Validation",
        "7 of 61 incorrect and 0 of 50 correct; as many stops at random would meet 3.8",
        "Validation stops 7 of 61 incorrect answers and none of 50 correct ones; as many stops at random would meet 3.8",
        "Incorrect and correct answers", 2,
    ),
    "One question (Workbench)": Section("Workbench", "its claims marked", "1 of 119", "", 0),
}  # fmt: skip


def tutorial(name: str) -> str:
    return (ROOT / f"docs/tutorials/{name}.md").read_text(encoding="utf-8")


def sections(text: str) -> dict[str, str]:
    """Return what is below each heading of the second level."""
    _, *parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return {title: " ".join(body.split()) for title, body in zip(parts[::2], parts[1::2], strict=True)}


def says(page, text: str) -> None:
    page.wait_for_function(SAYS, arg=text, polling=100, timeout=90_000)


def titled(page, title: str) -> None:
    page.get_by_test_id("stMain").get_by_role("heading", level=1, name=title, exact=True).wait_for()


def go(page, title: str) -> None:
    """Open a page by the menu, unless it is the open one."""
    if page.get_by_test_id("stMain").get_by_role("heading", level=1).inner_text() != title:
        page.get_by_test_id("stSidebar").get_by_role("link", name=title, exact=True).click()
        titled(page, title)


def shows(page, figure: str) -> None:
    chart = page.locator(f"[data-testid='stPlotlyChart'][aria-label^='{figure}']").first
    chart.wait_for(state="attached", timeout=60_000)


@pytest.fixture(scope="module")
def app(project, tmp_path_factory):
    """The dashboard of the wheel, in an environment and a folder that know nothing of the checkout."""
    folder, _ = project
    runs = tmp_path_factory.mktemp("tutorials") / "runs"
    with running_app(
        runs, runs.with_suffix(".log"), leadline=folder / "env/bin/leadline", PYTHONPATH=""
    ) as address:
        yield address


@pytest.fixture(scope="module")
def overview(app, browser):
    """The first page of a first run, where all tutorials begin."""
    context = still_context(browser, viewport={"width": 1280, "height": 900})
    page, errors = context.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{app}/")
    says(page, WRONG)
    yield page
    context.close()
    assert not errors


def test_what_a_first_run_reads_is_the_same_as_installed(project):
    told = tutorial("first-run")
    folder, run = project
    samples = next(folder.glob("env/lib/python*/site-packages/leadline/app/sample_data"))
    assert "python -m core summary runs/first" in told
    summary = run("leadline", "summary", str(samples / "recorded_run_facts"))
    assert WRONG in summary.stdout
    code = python_of(ROOT / "docs/tutorials/first-run.md").replace("sample_data", str(samples))
    result = run("python", "-W", "error", "-c", code)
    assert result.returncode == 0 and WRONG in result.stdout, result.stderr


def test_a_first_run_opens_with_the_verdict_that_two_tutorials_quote(overview):
    told = " ".join(tutorial("first-run").split())
    assert (
        "It says that 61 of 111 answers are wrong, that in 58 of them the right passage was in the prompt"
        in told
    )
    says(overview, re.search(r"> (61 of 111.*?) So", sections(tutorial("find-and-fix"))["1. The verdict"])[1])
    titled(overview, "Overview")
    # The tutorial's name for how to open a run of one's own.
    assert "*Saved runs*" in told
    overview.get_by_role("button", name="Change data").click()
    overview.get_by_test_id("stPopoverBody").get_by_text("Saved runs").first.wait_for()
    overview.keyboard.press("Escape")


def test_read_your_first_run_says_what_each_page_says(overview):
    told = sections(tutorial("read-your-first-run"))
    assert [*told] == [*SECTIONS]
    for title, one in SECTIONS.items():
        assert one.told in told[title], title
        go(overview, one.page)
        says(overview, one.said)
        if one.figure:
            shows(overview, one.figure)
        overview.wait_for_function(HAS_FIGURES, arg=one.n_figures, timeout=60_000)


def test_find_and_fix_leads_from_the_ladder_to_a_change_to_try(overview):
    told = sections(tutorial("find-and-fix"))
    assert "Open *Where answers are lost*" in told["2. The ladder"]
    go(overview, "Where answers are lost")
    assert "Click the bar *distracted* and open the first question" in told["3. Read one"]
    figure = overview.locator("[data-testid='stPlotlyChart'][aria-label^='Where ']")
    figure.locator(".ytick text").first.wait_for()
    figure.scroll_into_view_if_needed()
    at = figure.evaluate(BAR, "Distracted")
    overview.mouse.click(at["x"], at["y"])
    says(overview, "30 of 119 questions match")
    overview.get_by_role("link", name="Read them in the workbench").click()
    titled(overview, "Workbench")
    says(overview, "1 of 30 (filtered)")
    assert "unfold *Try a change*, choose *1* passage, press *Ask again*" in told["5. Try a fix of your own"]
    overview.locator("summary", has_text="Try a change").first.click()
    overview.get_by_role("button", name="Ask again").wait_for()


def test_a_run_of_the_notebook_is_shown_in_the_dashboard(project, new_page, tmp_path):
    """Its last step, with everything before it: `leadline.show` starts the server, which ends with the notebook."""
    folder, _ = project
    assert "`core.show(run)` starts the dashboard" in tutorial("notebook")
    code = (
        python_of(ROOT / "docs/tutorials/notebook.md")
        + """
shown = leadline.show(later, browser=False)
print("OPEN", shown.url, flush=True)
print(verdict(Diagnosis(later)).texts[0], flush=True)
input()
"""
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LEADLINE", "PYTHON"))}
    command = [folder / "env/bin/python", "-c", code]
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as notebook:
        url = next(line for line in notebook.stdout if line.startswith("OPEN ")).split()[1]
        sentence = notebook.stdout.readline().strip()
        page = new_page()
        page.goto(url)
        titled(page, "Overview")
        says(page, sentence)
        go(page, "Data")
        page.get_by_test_id("stMain").get_by_text("Saved runs").first.wait_for()
        notebook.communicate("\n", timeout=60)
    assert notebook.returncode == 0
