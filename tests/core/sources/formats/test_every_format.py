"""What holds for every format, whatever stands in a file: nothing is lost without a word, in a run or back."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.sources.formats import FORMATS, import_file
from core.sources.formats.records import Record, RecordClaim, RecordPassage, records_of
from core.sources.report import IssueLog
from tests.core.sources.formats import (
    test_format_deepeval,
    test_format_inspectorraget,
    test_format_jsonl,
    test_format_openinference,
    test_format_rag_uncertainty,
    test_format_ragas,
    test_format_ragchecker,
)
from tests.core.sources.formats.roundtrip import content_of, damaged, holds_together, in_csv, read_as

# Formats that keep what a run cannot hold, each with a file of it.
FILES = {
    "inspectorraget": test_format_inspectorraget.FILE,
    "inspectorraget, version 1": test_format_inspectorraget.V1,
    "openinference": test_format_openinference.MANY,
    "rag-uncertainty": test_format_rag_uncertainty.FILE,
    "ragchecker": test_format_ragchecker.FILE,
}
# What no format has kept so.
HOSTILE = [5, "x", [], {"new": 5, "gone": [], "in": "x"}, {"is": 5}, {"new": {"claims": 7, "task": 5}}, {"n": -1},
           {"in": {"0": {"new": {"context": 3, "attributes": []}}, "task": {"new": {"contexts": 1}}}},
           {"top": 5, "documents": [5, {"document_id": {}}], "rest": 3, "metrics": [], "n": {}}]  # fmt: skip


def format_of(name):
    return FORMATS[name.split(",")[0]]


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=80)
@given(data=st.data())
def test_nothing_is_lost_without_a_word(name, data):
    holds_together(format_of(name), data.draw(damaged(FILES[name])))


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=10)
@given(data=st.data())
def test_a_run_holds_whatever_was_read(name, data):
    holds_together(format_of(name), data.draw(damaged(FILES[name])), in_run=True)


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_not_changed_by_reading(name):
    content = content_of(FILES[name])
    before = copy.deepcopy(content.value)
    format_of(name).read(content, IssueLog())
    assert content.value == before


@pytest.mark.parametrize("odd", HOSTILE, ids=str)
@pytest.mark.parametrize("name", [name for name, one in FORMATS.items() if one.write is not None])
def test_a_run_of_hostile_values_is_written_all_the_same(name, odd):
    kept = {(f"{name}:{what}", ""): odd for what in ("record", "file")}
    record = Record("one", "Who?", "Ann.", (RecordPassage("a", "x"),), claims=(RecordClaim("c", support={"a": 1.0}),),
                    latency=1e300, reported={**kept, ("m", "a"): 1, ("model_id", ""): 3})  # fmt: skip
    back, _ = read_as(FORMATS[name], FORMATS[name].write([record]))
    assert [r.question for r in back.records] == ["Who?"] and not back.rejected
    assert [p.passage_id for p in back.records[0].passages] in (["a"], ["p1"])


# Formats of flat records: a good record, and names that matter.
FLAT = {
    "deepeval": (test_format_deepeval.CASES[0], [*test_format_deepeval.CAMEL.values(), "metrics_data", "metricsData",
                 "turns"]),
    "jsonl": (test_format_jsonl.RECORDS[0], ["query", "documents", "reference_answers", "gold", "corpus", "reported",
              "source"]),
    "ragas": (test_format_ragas.SAMPLES[0], ["question", "retrieved_context_ids", "reference_contexts", "rubrics",
              "reference_context_ids", "multi_responses", "reference", "ground_truths", "id"]),
}  # fmt: skip
KEYS = st.text(max_size=4) | st.sampled_from(
    ["text", "id", "score", "is_gold", "title", "name", "by", "value"]
)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["=1+1", "\ud800", "\x00", "a|b;c", "q" * 2_000]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


def records(name, values):
    """Return a strategy for records of a flat format."""
    good, more = FLAT[name]
    return st.dictionaries(st.sampled_from([*good, *more, "x", ""]), values, max_size=9)


@pytest.mark.parametrize("name", FLAT)
@given(data=st.data())
def test_any_records_are_read_or_named(name, data):
    values = ANY | st.lists(st.text(max_size=4), max_size=3)
    entries = [FLAT[name][0], *data.draw(st.lists(records(name, values) | ANY, max_size=5))]
    result, log = read_as(FORMATS[name], entries)
    assert len(result.records) + len(result.rejected) == len(entries)
    errors = [issue for issue in log.listed() if issue.severity == "error"]
    assert [issue.row for issue in errors] == [number for number, _, _ in result.rejected]
    assert all(issue.column for issue in errors)
    back = FORMATS[name].write(result.records)
    assert FORMATS[name].write(read_as(FORMATS[name], back)[0].records) == back


@pytest.mark.parametrize("name", FLAT)
@settings(max_examples=8)
@given(data=st.data())
def test_any_records_make_a_run_that_comes_back(name, data):
    values = ANY | st.lists(st.text(max_size=4), max_size=3)
    entries = [FLAT[name][0], *data.draw(st.lists(records(name, values), min_size=20, max_size=40))]
    imported = import_file(json.dumps(entries).encode(), "x.json", name)
    assert imported.report.n_kept + len(imported.report.rejected) == imported.report.n_rows == len(entries)
    back = FORMATS[name].write(records_of(imported.run))
    assert FORMATS[name].write(records_of(import_file(back, "x", name).run)) == back


@pytest.mark.parametrize("name", FLAT)
@given(data=st.data())
def test_any_table_is_read_or_named(name, data):
    cells = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
    cells |= st.lists(st.text(st.characters(codec="utf-8"), max_size=3), max_size=3).map(str)
    good = {key: value for key, value in FLAT[name][0].items() if isinstance(value, str)}
    rows = [good, *data.draw(st.lists(records(name, cells), min_size=1, max_size=4))]
    rows = [{key: cell for key, cell in row.items() if key} for row in rows]
    content = content_of(in_csv(rows), "x.csv")
    log = IssueLog()
    result = FORMATS[name].read(content, log)
    assert len(result.records) + len(result.rejected) == len(content.entries)
    assert all(issue.row and issue.column for issue in log.listed())
