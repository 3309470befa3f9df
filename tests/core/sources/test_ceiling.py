"""A small file that unpacks to very much: refused in one sentence, within a gigabyte of memory."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[3]
MOST = 1_000_000_000

# Reads files as the page does; says what came of each, and its own peak of memory and that of its children.
READ = """
import resource, sys
from core.errors import InputError
from core.sources.formats import import_file
for path in sys.argv[1:]:
    try:
        import_file(open(path, "rb").read(), path.rsplit("/")[-1])
        print("read")
    except InputError as error:
        print(str(error).replace("\\n", "|"))
# What getrusage says of a process itself includes its parent's memory before it was started.
own = open("/proc/self/status").read().split("VmHWM:")[1].split()[0]
print(1024 * int(own), 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def parquet(**columns):
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, compression="zstd")
    return sink.getvalue()


def arrow(**columns):
    table, sink = pa.table(columns), pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


LONG = "x" * 110_000_000
BOMBS = {
    "one-long-value.parquet": lambda: parquet(question=[LONG]),
    "one-value-many-rows.parquet": lambda: parquet(question=[LONG[:20_000_000]] * 64),
    "many-rows.parquet": lambda: parquet(question=pa.array(["a"] * 5_000_000)),
    "one-long-value.arrow": lambda: arrow(question=[LONG]),
    "one-value-many-rows.arrow": lambda: arrow(question=pa.DictionaryArray.from_arrays([0] * 3_000, [LONG[:9_000_000]])),
    "rows.csv.gz": lambda: gzip.compress(b"question,answer\n" + b"a,b\n" * 25_000_000, 1),
    "list.json.gz": lambda: gzip.compress(b'[{"question": "q", "contexts": [' + b"1," * 20_000_000 + b"1]}]", 1),
    "lines.jsonl.gz": lambda: gzip.compress(b'{"question": "q"}' + b"\n" * 100_000_000, 1),
}  # fmt: skip


def test_a_file_of_less_than_a_megabyte_takes_less_than_a_gigabyte(tmp_path):
    for name, made in BOMBS.items():
        (tmp_path / name).write_bytes(made())
        assert (tmp_path / name).stat().st_size < 1_000_000, name
    command = [sys.executable, "-c", READ, *(str(tmp_path / name) for name in BOMBS)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    *said, memory = found.stdout.splitlines()
    for name, sentence in zip(BOMBS, said, strict=True):
        assert sentence.startswith(name) and sentence.endswith(".") and "|" not in sentence
    assert max(map(int, memory.split())) < MOST
