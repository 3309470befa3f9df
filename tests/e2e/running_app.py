"""The dashboard as a real server, and a real browser to drive it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Nothing moves: without a graphics card every frame costs processor time.
STILL = """new MutationObserver((_, seen) => {
  if (!document.head) return;
  seen.disconnect();
  const style = document.createElement("style");
  style.textContent = "* { animation: none !important; transition: none !important; }"
    + "[data-testid='stStatusWidget'] { display: none; }";
  document.head.append(style);
}).observe(document, { childList: true, subtree: true });"""
CHROMIUM_PATHS = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")


def find_chromium() -> str | None:
    """Return the path of an installed Chromium, or None."""
    return next((path for path in CHROMIUM_PATHS if os.path.exists(path)), None)


def still_context(browser, **options):
    """Return a new context of a browser, in whose pages nothing moves."""
    context = browser.new_context(**options)
    context.add_init_script(STILL)
    return context


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running_app(
    runs: Path,
    log: Path,
    *options: str,
    port: int | None = None,
    leadline: Path | None = None,
    **environment: str,
) -> Iterator[str]:
    """Start ``streamlit run dashboard.py`` on a free port, or what is installed; yield its address; stop it."""
    port = port or free_port()
    command = [sys.executable, "-m", "streamlit", "run", "dashboard.py",
               "--server.port", str(port), "--server.headless", "true", *options]  # fmt: skip
    if leadline is not None:
        command = [str(leadline), "dashboard", "--port", str(port), *options]
    with log.open("w") as output:
        server = subprocess.Popen(
            command,
            cwd=runs.parent if leadline else ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LEADLINE_RUNS": str(runs), **environment},
        )
        try:
            address = f"http://localhost:{port}"
            _wait_until_healthy(server, address, log)
            yield address
        finally:
            server.terminate()
            try:
                server.wait(15)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
            # The command line's server went on when its parent had ended.
            with socket.socket() as probe:
                assert probe.connect_ex(("127.0.0.1", port)), f"something still listens on port {port}"


def _wait_until_healthy(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"The dashboard did not start:\n{log.read_text()}")


def pages() -> dict[str, str]:
    """Return the address of every page by its name; Compare shows the recorded runs of the same questions."""
    names = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))
    manifests = (ROOT / "sample_data" / name / "run.json" for name in ("recorded_run", "recorded_run_short"))
    runs = [json.loads(one.read_text(encoding="utf-8"))["run_id"] for one in manifests]
    compare = "compare?" + "&".join(f"compare={run}" for run in runs)
    return {name: name for name in names} | {"overview": "", "compare": compare}


def settle(page, timeout: float = 60_000) -> None:
    """Wait until Streamlit has run the script and drawn what it sent, and does not begin again at once."""
    at_rest = "[data-testid='stApp'][data-test-script-state='notRunning']"
    deadline = time.monotonic() + timeout / 1000
    while True:
        page.wait_for_selector(at_rest, timeout=timeout)
        page.wait_for_function(
            "() => !document.querySelector(\"[data-testid='stSkeleton'], [data-testid='stAppSkeleton'], "
            "[data-testid='stSpinner'], [data-stale='true']\")",
            timeout=timeout,
        )
        page.wait_for_timeout(500)
        # Between two runs of a script that asked for another one it rests for a moment.
        if page.locator(at_rest).count() or time.monotonic() > deadline:
            return
