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
# File, address, heading that stands at the top (None is the page's own top), height.
README = (
    ("influence.png", "influence", None, 1020),
    ("workbench.png", "workbench", None, 1320),
    ("claims.png", "claims?question=q17", "One answer", 1240),
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
        for file, path, top, height in README:
            photograph(browser, f"{address}/{path}", "light", 1280, IMAGES / file, height, top)
        browser.close()


def photograph(
    browser,
    address: str,
    theme: str,
    width: int,
    target: Path,
    height: int | None = None,
    top: str | None = None,
) -> None:
    """Save one page: without ``height`` the whole of it, with ``top`` what begins with that heading."""
    whole = height is None or top is not None
    context = browser.new_context(
        viewport={"width": width, "height": 900 if whole else height}, color_scheme=theme
    )
    page = context.new_page()
    page.goto(address)
    settle(page)
    clip = None
    if whole:
        tall = page.evaluate("document.querySelector(\"[data-testid='stMain']\").scrollHeight")
        page.set_viewport_size({"width": width, "height": min(TALLEST, max(900, int(tall)))})
        settle(page)
    if top is not None:
        y = page.get_by_role("heading", name=top).bounding_box()["y"]
        clip = {"x": 0, "y": y - 12, "width": width, "height": height}
    page.screenshot(path=str(target), clip=clip)
    context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "screenshots")
