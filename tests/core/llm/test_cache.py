import hashlib
import sqlite3
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.llm.cache import CacheError, CompletionCache, default_cache_path, request_key, row_of
from core.llm.prompts import answer_messages
from core.llm.types import Completion, Message, Request
from tests.scripted import ScriptedLLM

ROOT = Path(__file__).parents[3]
BASE = Request(
    answer_messages("Who?", [(1, "A", "first"), (2, "B", "second")]),
    temperature=0.5,
    top_p=0.9,
    seed=1,
    max_tokens=8,
    stop=("\n",),
)


def llm(**options):
    return ScriptedLLM(lambda _: "x", name=options.pop("name", "m"), options=options)


CHANGED = {
    "question": replace(BASE, messages=answer_messages("What?", [(1, "A", "first"), (2, "B", "second")])),
    "order of passages": replace(
        BASE, messages=answer_messages("Who?", [(2, "B", "second"), (1, "A", "first")])
    ),
    "label": replace(BASE, messages=answer_messages("Who?", [(1, "A", "first"), (3, "B", "second")])),
    "left out": replace(BASE, messages=answer_messages("Who?", [(2, "B", "second")])),
    "order of turns": replace(BASE, messages=BASE.messages[::-1]),
    "role": replace(BASE, messages=(Message("system", BASE.messages[0].content), *BASE.messages[1:])),
    "temperature": replace(BASE, temperature=0.6),
    "top_p": replace(BASE, top_p=0.91),
    "seed": replace(BASE, seed=2),
    "max_tokens": replace(BASE, max_tokens=9),
    "stop": replace(BASE, stop=("\n", ".")),
    "schema": replace(BASE, schema='{"type":"object"}'),
    "another schema": replace(BASE, schema='{"type":"array"}'),
    "logprobs": replace(BASE, logprobs=True),
}


@pytest.mark.parametrize("part", CHANGED)
def test_key_changes_with_every_part_of_the_request(part):
    assert request_key(llm(), CHANGED[part]) != request_key(llm(), BASE)


def test_no_two_different_requests_share_a_key():
    keys = {request_key(llm(), request) for request in (BASE, *CHANGED.values())}
    assert len(keys) == len(CHANGED) + 1


def test_key_changes_with_model_and_options_but_not_with_their_order():
    key = request_key(llm(dtype="bfloat16", device="cpu"), BASE)
    assert request_key(llm(device="cpu", dtype="bfloat16"), BASE) == key
    assert request_key(llm(device="cpu", dtype="float32"), BASE) != key
    assert request_key(llm(name="other", device="cpu", dtype="bfloat16"), BASE) != key


def test_the_key_stays_the_same_so_that_no_kept_answer_is_paid_for_again():
    asked = Request(
        (Message("user", "Đó là gì?"),), temperature=0.5, top_p=0.9, seed=1, max_tokens=8, stop=("\n",)
    )
    written = (
        '{"max_tokens":8,"messages":[["user","Đó là gì?"]],"model":"m","options":{"device":"cpu"},"seed":1,'
        '"stop":["\\n"],"temperature":0.5,"top_p":0.9,"version":1}'
    )
    assert request_key(llm(device="cpu"), asked) == hashlib.sha256(written.encode()).hexdigest()


@given(st.text(), st.text())
def test_messages_do_not_run_into_each_other(a, b):
    split = Request((Message("user", a), Message("user", b)))
    joined = Request((Message("user", a + b),))
    assert request_key(llm(), split) != request_key(llm(), joined)


def test_completions_come_back_as_they_were(tmp_path):
    whole = Completion("Đồng bằng 大运河 \x00", "stop", 12, 3, 0.25, (-0.5, -1.25))
    plain = Completion("", "length", 5, 0, 0.0)
    with CompletionCache(tmp_path / "new" / "c.db") as cache:
        cache.put("a", whole, "m")
        cache.put("b", plain, "m")
    with CompletionCache(tmp_path / "new" / "c.db") as again:
        assert again.get_many(["b", "a", "a", "missing"]) == {"a": whole, "b": plain}


def test_errors_are_never_kept_and_the_first_writer_wins(tmp_path):
    cache = CompletionCache(tmp_path / "c.db")
    cache.put("k", Completion("", "error", 0, 0, 0.0, error="too long"))
    assert len(cache) == 0
    cache.put("k", Completion("first", "stop", 1, 1, 0.1))
    cache.put("k", Completion("second", "stop", 1, 1, 0.1))
    assert cache.get_many(["k"])["k"].text == "first"


def test_many_keys_at_once():
    cache = CompletionCache()
    for i in range(1201):
        cache.put(f"k{i}", Completion(str(i), "stop", 1, 1, 0.0))
    found = cache.get_many(f"k{i}" for i in range(0, 2000, 2))
    assert len(found) == 601
    assert found["k1200"].text == "1200"


def test_threads_share_one_cache(tmp_path):
    cache = CompletionCache(tmp_path / "c.db")

    def write(start):
        for i in range(start, start + 50):
            cache.put(f"k{i % 120}", Completion(str(i % 120), "stop", 1, 1, 0.0))

    threads = [threading.Thread(target=write, args=(25 * n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache) == 120
    assert all(c.text == key[1:] for key, c in cache.get_many(f"k{i}" for i in range(120)).items())


def test_processes_share_one_file(tmp_path):
    script = textwrap.dedent("""
        import sys
        from core.llm.cache import CompletionCache
        from core.llm.types import Completion
        cache = CompletionCache(sys.argv[1])
        for i in range(60):
            cache.put(f"{sys.argv[2]}-{i}", Completion("x", "stop", 1, 1, 0.0))
            cache.put(f"shared-{i}", Completion("x", "stop", 1, 1, 0.0))
    """)
    path = tmp_path / "c.db"
    workers = [
        subprocess.Popen([sys.executable, "-c", script, str(path), str(n)], cwd=ROOT, stderr=subprocess.PIPE)
        for n in range(3)
    ]
    errors = [worker.communicate()[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0], errors
    assert len(CompletionCache(path)) == 4 * 60


def test_only_the_default_file_gives_way_to_the_database_that_is_shared(tmp_path, monkeypatch):
    monkeypatch.setenv("LEADLINE_CACHE", str(tmp_path))
    monkeypatch.setattr("core.llm.cache.shared", lambda: tmp_path / "shared.db")  # a file, for a server
    done = Completion("x", "stop", 1, 1, 0.0)
    for path, key in ((default_cache_path(), "default"), (tmp_path / "own.db", "own"), (None, "memory")):
        with CompletionCache(path) as cache:
            cache.put(key, done)
            assert cache.get_many(["default", "own", "memory"]) == {key: done}
    assert sorted(path.name for path in tmp_path.glob("*.db")) == ["own.db", "shared.db"]


def test_a_damaged_file_is_named_with_what_to_do(tmp_path):
    path = tmp_path / "c.db"
    path.write_bytes(b"this is no database" * 300)
    with pytest.raises(CacheError, match=r"c\.db is damaged or is not a completion cache; delete that file"):
        CompletionCache(path)


def test_a_file_damaged_inside_is_named(tmp_path):
    path = tmp_path / "c.db"
    with CompletionCache(path) as cache:
        for i in range(200):
            cache.put(f"k{i}", Completion("x" * 200, "stop", 1, 1, 0.0))
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xff" * (len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(CacheError, match="damaged; delete that file"):
        CompletionCache(path).get_many([f"k{i}" for i in range(200)])


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("logprobs", "nonsense"),
        ("logprobs", "7"),
        ("logprobs", '["a"]'),
        ("logprobs", b"\xff"),
        ("text", b"bytes"),
        ("finish_reason", "whatever"),
        ("prompt_tokens", "many"),
        ("completion_tokens", "many"),
        ("logprobs", f"[1{'0' * 400}]"),
        ("logprobs", "[" * 100_000),
        ("latency", "long"),
    ],
)
def test_a_row_that_cannot_be_read_counts_as_missing_and_is_replaced(tmp_path, column, value):
    done = Completion("x", "stop", 1, 1, 0.5, (-0.5,))
    path = tmp_path / "c.db"
    with CompletionCache(path) as cache:
        cache.put("bad", done)
        cache.put("good", done)
        cache._db.execute(f"UPDATE completions SET {column} = ? WHERE key = 'bad'", (value,))
    with CompletionCache(path) as cache:
        assert cache.get_many(["bad", "good"]) == {"good": done}
        assert cache.notes == ()  # nothing was asked yet
        cache.put("bad", replace(done, text="new"))
        cache.put("bad", replace(done, text="newer"))
        assert cache.get_many(["bad"])["bad"].text == "new"
        assert cache.notes == ("1 row of the completion cache could not be read; asked again and replaced.",)


def test_many_rows_are_written_together_and_those_that_could_not_be_read_replaced():
    done = Completion("old", "stop", 1, 1, 0.5)
    with CompletionCache() as cache:
        cache.put_rows([row_of(f"k{i}", done, "m") for i in range(250)])
        cache._db.execute("UPDATE completions SET latency = 'long' WHERE key IN ('k1', 'k2')")
        assert len(cache.get_many(f"k{i}" for i in range(250))) == 248
        new = replace(done, text="new")
        cache.put_rows([row_of(f"k{i}", new, "m") for i in range(230, -1, -1)])
        texts = {key: one.text for key, one in cache.get_many(f"k{i}" for i in range(250)).items()}
        assert texts == {f"k{i}": "new" if i in (1, 2) else "old" for i in range(250)}
        assert cache.notes == ("2 rows of the completion cache could not be read; asked again and replaced.",)


def test_a_foreign_database_is_refused(tmp_path):
    path = tmp_path / "c.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE completions (id INTEGER)")
    db.close()
    with pytest.raises(CacheError, match=r"cannot be used .*delete that file"):
        CompletionCache(path)


def test_a_locked_file_is_an_error_not_a_hang(tmp_path, monkeypatch):
    monkeypatch.setattr("core.llm.cache._BUSY_SECONDS", 0.1)
    path = tmp_path / "c.db"
    cache = CompletionCache(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(CacheError, match="locked by another program"):
        cache.put("k", Completion("x", "stop", 1, 1, 0.0))
    other.close()
    cache.put("k", Completion("x", "stop", 1, 1, 0.0))
    assert len(cache) == 1


def test_a_full_disk_is_said_so(tmp_path):
    cache = CompletionCache(tmp_path / "c.db")
    # SQLite itself raises "full" when the file may not grow: the same error as on a full disk.
    cache._db.execute("PRAGMA max_page_count = 3")
    with pytest.raises(InputError, match="disk is full"):
        for i in range(100):
            cache.put(f"k{i}", Completion("x" * 3000, "stop", 1, 1, 0.0))


def test_a_folder_in_the_way_is_said_so(tmp_path):
    with pytest.raises(CacheError, match="cannot be opened"):
        CompletionCache(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(CacheError, match="cannot be made"):
        CompletionCache(tmp_path / "file" / "c.db")


def test_threads_that_open_caches_at_once_do_not_disturb_each_other(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda n: CompletionCache(tmp_path / f"{n}.db"), range(24)))
    assert [len(cache) for cache in opened] == [0] * 24
    for cache in opened:
        cache.close()
