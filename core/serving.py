"""The dashboard, started from a command line or a notebook."""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import time
import urllib.request
import webbrowser
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlencode

from core.errors import InputError
from core.manifest import read_manifest
from core.run import Run

_PATIENCE = 90.0  # seconds until a started server must answer
_HERE = Path(__file__).resolve().parent


def app_folder() -> Path:
    """Return the folder of the dashboard: inside the installed package, or beside it in a checkout."""
    for folder in (_HERE / "app", _HERE.parent):
        if (folder / "dashboard.py").is_file():
            return folder
    raise InputError("The dashboard is not part of this installation; install the package leadline again.")


def command(port: int) -> list[str]:
    """Return the command that serves the dashboard on this machine."""
    script = str(app_folder() / "dashboard.py")
    return [sys.executable, "-m", "streamlit", "run", script, "--server.port", str(port)]


def environment(runs: str | os.PathLike[str] | None = None) -> Mapping[str, str]:
    """Return a server's environment: runs are in ``runs``, else ``LEADLINE_RUNS``, else ``./runs``."""
    kept = runs or os.environ.get("LEADLINE_RUNS") or "runs"
    return {**os.environ, "LEADLINE_RUNS": str(Path(kept).resolve())}


def address(port: int, run_id: str | None = None) -> str:
    """Return where the dashboard is, open on a run if one is given.

    >>> address(8501, "c1a7")
    'http://localhost:8501/?run=c1a7'
    """
    return f"http://localhost:{port}/" + (f"?{urlencode({'run': run_id})}" if run_id else "")


def serve(folder: str | os.PathLike[str] | None, port: int, said: Callable[[str], object]) -> NoReturn:
    """Become the server of the dashboard, so that whatever ends this process ends it.

    ``folder`` is a saved run to open; the runs beside it are listed, too. ``said`` is told the address.
    `RunFormatError` where the folder holds no run.
    """
    run_id = None if folder is None else str(read_manifest(folder)["run_id"])
    runs = None if folder is None else Path(folder).resolve().parent
    said(f"The dashboard is at {address(port, run_id)}")
    os.execve(sys.executable, command(port), environment(runs))


@dataclass(frozen=True, slots=True)
class Shown:
    """A dashboard that `show` started, as long as this process runs; in a notebook it is a link."""

    url: str
    server: subprocess.Popen[bytes] = field(repr=False)

    def stop(self) -> None:
        """End the server."""
        self.server.terminate()
        self.server.wait()

    def _repr_html_(self) -> str:
        return f'<a href="{self.url}" target="_blank">{self.url}</a>'


def show(run: Run, *, runs: str | os.PathLike[str] | None = None, browser: bool = True) -> Shown:
    """Open the dashboard on a run.

    The run is saved under its id in the runs folder first, so that the dashboard, a process of its own, finds
    it. The server is started by the first call, and ends with this process.

    Parameters
    ----------
    run : Run
        Any run, saved or not.
    runs : path, optional
        The runs folder: by default ``LEADLINE_RUNS``, else ``runs`` in the working directory.
    browser : bool
        Open a browser window.

    Raises
    ------
    InputError
        The run cannot be saved, or the server does not start.
    """
    kept = environment(runs)
    place = kept["LEADLINE_RUNS"]
    run.save(Path(place) / run.run_id)
    port, server = _STARTED.get(place, (0, None))
    if server is None or server.poll() is not None:
        port = _free_port()
        quiet = subprocess.DEVNULL
        server = subprocess.Popen(command(port), env=kept, stdout=quiet, stderr=quiet)
        atexit.register(_ended, server)
        _wait(server, port)
        _STARTED[place] = (port, server)
    url = address(port, run.run_id)
    if browser:
        webbrowser.open(url)
    return Shown(url, server)


_STARTED: dict[str, tuple[int, subprocess.Popen[bytes]]] = {}  # by runs folder


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _ended(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    server.wait()


def _wait(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not _answers(port):
        if server.poll() is not None or time.monotonic() > deadline:
            _ended(server)
            raise InputError("The dashboard did not start; leadline dashboard says why.")
        time.sleep(0.1)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://localhost:{port}/_stcore/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
