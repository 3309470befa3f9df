"""A real llama.cpp server on a free port, with the packaged model: speaks the OpenAI API.

Run as a script it prints its address on one line and serves until its standard input closes.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONTEXT = 4096  # tokens of one slot
SLOTS = 2


@contextlib.contextmanager
def llama_server(context: int = CONTEXT, slots: int = SLOTS, threads: int = 1) -> Iterator[str]:
    """Start the server as a process of its own; yield its address, like ``http://127.0.0.1:45678``."""
    command = [sys.executable, __file__, str(context), str(slots), str(threads)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            address = server.stdout.readline().strip()
            assert address.startswith("http"), f"the llama.cpp server did not start: {address!r}"
            yield address
        finally:
            server.kill()


def main() -> None:
    sys.path.insert(0, str(ROOT))
    import socket

    import xllamacpp

    from core.llm.packaged import packaged_gguf

    context, slots, threads = map(int, sys.argv[1:])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    params = xllamacpp.CommonParams()
    params.model.path = str(packaged_gguf())
    params.model_alias = {"smollm2-135m"}
    params.n_ctx, params.n_parallel = context * slots, slots
    params.hostnames, params.port = ["127.0.0.1"], port
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.verbosity = 0
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
