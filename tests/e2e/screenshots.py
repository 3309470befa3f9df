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

from core.pipeline.claims import find_claims  # noqa: E402
from core.pipeline.claims_options import ClaimsOptions  # noqa: E402
from core.pipeline.claims_run import run_for_claims  # noqa: E402
from core.run import Run  # noqa: E402
from core.sources.simulation import SimulationOptions, simulate  # noqa: E402
from tests.e2e.running_app import CHROMIUM_FLAGS, find_chromium, running_app, settle  # noqa: E402

IMAGES = ROOT / "docs" / "images"
PAGES = {
    "overview": "",
    "influence": "influence",
    "claims": "claims?run={3}",
    "inspector": "inspector",
    "side_by_side": "side_by_side?compare={0}&compare={1}&compare={2}",
    "live": "live",
    "data": "data",
    "methods": "methods",
}
README = {"influence": ("influence.png", 1020), "inspector": ("inspector.png", 1320)}
WIDTHS = (1280, 390)
TALLEST = 6000


def main(folder: Path) -> None:
    """Photograph every page in both themes and widths."""
    chromium = find_chromium()
    if chromium is None:
        sys.exit("No Chromium found: install your system's chromium package.")
    folder.mkdir(parents=True, exist_ok=True)
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        runs = [saved_simulation(Path(temporary), noise) for noise in (0.0, 0.1, 0.3)]
        runs.append(saved_claims(Path(temporary)))
        with running_app(Path(temporary), Path(temporary) / "server.log") as address:
            browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
            for theme in ("light", "dark"):
                for width in WIDTHS:
                    for name, path in PAGES.items():
                        shot = folder / f"{name}-{theme}-{width}.png"
                        photograph(browser, f"{address}/{path.format(*runs)}", theme, width, shot)
                        sys.stdout.write(f"{shot}\n")
            for name, (target, height) in README.items():
                photograph(browser, f"{address}/{PAGES[name]}", "light", 1280, IMAGES / target, height)
            browser.close()


def saved_simulation(folder: Path, noise: float) -> str:
    """Save a simulated run, for pages that need more than the recorded one; return its id."""
    run = simulate(SimulationOptions(queries=40, noise=noise)).renamed(f"Simulated, noise {noise:g}")
    run.save(folder / run.run_id)
    return run.run_id


def saved_claims(folder: Path) -> str:
    """Save the recorded run with claims, as the offline verifier sees them; return its id."""
    options = ClaimsOptions()
    run = find_claims(run_for_claims(Run.load(ROOT / "sample_data" / "recorded_run"), options), options)
    run.save(folder / run.run_id)
    return run.run_id


def photograph(
    browser, address: str, theme: str, width: int, target: Path, height: int | None = None
) -> None:
    """Save one page; without ``height`` the whole of it."""
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
