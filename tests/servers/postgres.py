"""A real PostgreSQL server for tests: in a folder of its own, on a socket file, nothing forced to the disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_SETTINGS = "-c listen_addresses= -c fsync=off -c full_page_writes=off -c max_connections=60"


def binaries() -> Path | None:
    """Return the newest installed server's folder of programs: Debian keeps them off the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    return found[-1].parent if found else None


@dataclass(frozen=True)
class Postgres:
    """A server that runs; ``folder`` holds its data and its socket."""

    programs: Path
    folder: Path

    def url(self, database: str, password: str = "secret") -> str:
        return f"postgresql://postgres:{password}@/{database}?host={self.folder}"

    def create(self, database: str) -> str:
        """Make an empty database and return its URL."""
        self.sql("postgres", f'CREATE DATABASE "{database}"')
        return self.url(database)

    def sql(self, database: str, statement: str) -> str:
        """Run a statement and return what psql prints: values apart by |."""
        command = ["psql", "-h", str(self.folder), "-d", database, "-U", "postgres", "-XAtc", statement]
        return self._run(command)

    def control(self, action: str, *options: str) -> None:
        """Start, stop or restart the server, and wait until that is done."""
        command = ["pg_ctl", "-D", str(self.folder / "data"), "-w", "-s", *options, action]
        if action != "stop":
            command += ["-l", str(self.folder / "log"), "-o", f"{_SETTINGS} -k {self.folder}"]
        self._run(command)

    def _run(self, command: Sequence[str]) -> str:
        # The server refuses to run as root.
        user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        name, *rest = command
        done = subprocess.run(
            [*user, str(self.programs / name), *rest], capture_output=True, text=True, cwd="/"
        )
        if done.returncode:
            raise RuntimeError(f"{name}: {done.stderr or done.stdout}")
        return done.stdout.strip()


@contextmanager
def running(programs: Path) -> Iterator[Postgres]:
    """Run a new server until the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="leadline-pg-", dir="/tmp"))  # the path of a socket must be short
    server = Postgres(programs, folder)
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        server._run(
            [
                "initdb",
                "-D",
                str(folder / "data"),
                "-U",
                "postgres",
                "-A",
                "trust",
                "-N",
                "--locale=C.UTF-8",
                "-E",
                "UTF8",
            ]
        )
        server.control("start")
        yield server
        server.control("stop", "-m", "immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
