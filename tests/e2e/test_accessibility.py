"""Every page against the rules of axe-core: light and wide, dark and narrow.

axe-core comes as a file inside the package axe-playwright-python, so no npm is needed.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.e2e.driving import GROUND
from tests.e2e.running_app import pages, settle

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

PAGES = pages()
# What Streamlit draws and we cannot change: rule, test id around the element and its beginning, cause. As narrow
# as it can be; one that is no longer needed fails.
EXCEPTIONS: tuple[tuple[str, str, str], ...] = ()
# Two frames later a change of width is drawn.
PAINTED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
FIND = """async () => {
  const found = await axe.run(document, {resultTypes: ["violations"], elementRef: true});
  const part = node => node.element?.closest(":not(button *)[data-testid]")?.dataset.testid;
  return found.violations
    .filter(one => ["serious", "critical"].includes(one.impact))
    .flatMap(one => one.nodes.map(node => [one.id, `${part(node)} ${node.html}`, node.failureSummary]));
}"""


def axe() -> str:
    """Return the script of axe-core; importing its package would need no more than its folder."""
    package = importlib.util.find_spec("axe_playwright_python")
    return (Path(package.origin).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def violations(browser, app):
    """Return what breaks a rule: page, theme, width, rule, element, what would mend it."""
    found, script = [], axe()
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    for name, path in PAGES.items():
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(f"{app}/{path}")
        settle(page)
        page.evaluate(script)
        # Colours depend on the theme and places on the width, so two of the four forms hold both.
        for theme, width in (("light", 1280), ("dark", 390)):
            page.emulate_media(color_scheme=theme)
            page.set_viewport_size({"width": width, "height": 900})
            # A change of theme or width is drawn without a run of the script.
            page.wait_for_function(GROUND, arg=theme == "dark")
            page.evaluate(PAINTED)
            found += [(name, theme, width, *one) for one in page.evaluate(FIND)]
    page.context.close()
    return found


def is_exception(violation, exception) -> bool:
    _, _, _, rule, element, _ = violation
    return rule == exception[0] and element.startswith(exception[1])


@pytest.mark.parametrize("page", PAGES)
def test_no_page_breaks_a_serious_rule(page, violations):
    own = [one for one in violations if one[0] == page and not any(is_exception(one, e) for e in EXCEPTIONS)]
    assert not own


def test_every_exception_is_still_needed(violations):
    unneeded = [e for e in EXCEPTIONS if not any(is_exception(one, e) for one in violations)]
    assert not unneeded
