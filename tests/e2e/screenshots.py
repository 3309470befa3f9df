"""Pictures of every page, from the running app: light and dark, wide and narrow.

``python tests/e2e/screenshots.py [folder]``: all pictures go to ``build/screenshots``, the README's to
``docs/images``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from playwright.sync_api import sync_playwright  # noqa: E402

from tests.e2e.running_app import CHROMIUM_FLAGS, find_chromium, pages, running_app, settle  # noqa: E402

IMAGES = ROOT / "docs" / "images"
# File, address, height.
README = (
    ("overview.png", "", 1250),
    ("workbench.png", "workbench", 1320),
    ("compare.png", pages()["compare"], 1150),
)
WIDTHS = (1280, 390)
TALLEST = 6000


def main(folder: Path) -> None:
    """Photograph every page in both themes and widths."""
    chromium = find_chromium()
    if chromium is None:
        sys.exit("No Chromium found: install your system's chromium package.")
    folder.mkdir(parents=True, exist_ok=True)
    IMAGES.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as temporary,
        sync_playwright() as playwright,
        running_app(Path(temporary), Path(temporary) / "server.log") as address,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        for theme in ("light", "dark"):
            for width in WIDTHS:
                for name, path in pages().items():
                    shot = folder / f"{name}-{theme}-{width}.png"
                    photograph(browser, f"{address}/{path}", theme, width, shot)
                    sys.stdout.write(f"{shot}\n")
        for file, path, height in README:
            photograph(browser, f"{address}/{path}", "light", 1280, IMAGES / file, height)
        browser.close()


def photograph(
    browser,
    address: str,
    theme: str,
    width: int,
    target: Path,
    height: int | None = None,
) -> None:
    """Save the upper part of a page: without ``height`` the whole of it."""
    context = browser.new_context(viewport={"width": width, "height": height or 900}, color_scheme=theme)
    page = context.new_page()
    page.goto(address)
    settle(page)
    if height is None:
        tall = page.evaluate("document.querySelector(\"[data-testid='stMain']\").scrollHeight")
        page.set_viewport_size({"width": width, "height": min(TALLEST, max(900, int(tall)))})
        settle(page)
    page.screenshot(path=str(target))
    context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "screenshots")
