import json
from datetime import UTC, datetime

import pytest

from core.errors import InputError
from core.sources.formats import jsonl, ragas
from core.sources.formats.messages import ANSWER_FIELDS, QUESTION_FIELDS, value_text
from core.sources.formats.openinference import FORMAT, _entries_of
from core.sources.formats.records import Record, RecordClaim, RecordPassage
from core.sources.formats.trace import time_of
from tests.core.sources.formats.roundtrip import (
    content_of,
    issues_of,
    lines,
    read_as,
    through_a_folder,
)

TRACE = "0af7651916cd43dd8448eb211c80319c"


def documents(*entries, prefix="retrieval.documents"):
    """Return flat attributes of documents given as (id, content, score, metadata), None for what is absent."""
    names = ("id", "content", "score", "metadata")
    return {
        f"{prefix}.{place}.document.{name}": value
        for place, entry in enumerate(entries)
        for name, value in zip(names, entry, strict=False)
        if value is not None
    }


def span(span_id, kind, attributes, parent=None, start=0, end=0, trace=TRACE, name=""):
    return {
        "name": name or kind.lower(),
        "context": {"trace_id": trace, "span_id": span_id},
        "span_kind": kind,
        "parent_id": parent,
        "start_time": f"2025-03-01T12:00:{start:02d}.250000+00:00",
        "end_time": f"2025-03-01T12:00:{end:02d}.750000+00:00",
        "status_code": "OK",
        "status_message": "",
        "attributes": {"openinference.span.kind": kind, **attributes},
        "events": [],
    }


def asked(text, mime="text/plain"):
    return {"input.value": text, "input.mime_type": mime}


def answered(text, mime="text/plain"):
    return {"output.value": text, "output.mime_type": mime}


CANAL = ("a", "The canal opened in 1914.", 0.9, '{"title": "Canal", "page": 3}')
LOCKS = (None, "It has <b>twelve</b> locks.", 0.5)
CHAIN = span("01", "CHAIN", {**asked("When did it open?"), **answered("In 1914.")}, start=1, end=4, name="qa")
RETRIEVER = span("02", "RETRIEVER", {**asked("open date"), **documents(CANAL, LOCKS)}, "01", start=1, end=1)
# As our own writer dates a retriever: at the start of its root.
RETRIEVER["end_time"] = RETRIEVER["start_time"]
LLM = span(
    "03", "LLM", {**answered("Other."), "llm.model_name": "m", "llm.token_count.prompt": 90}, "01", 3, 4
)
FILE = [CHAIN, RETRIEVER]


def one(*spans):
    """Return the only record of a trace."""
    read, _ = read_as(FORMAT, lines(spans))
    assert not read.rejected
    return read.records[0]


def texts(record):
    return [passage.text for passage in record.passages]


def test_a_file_of_two_spans_a_trace_comes_back_as_it_was(tmp_path):
    read, log = read_as(FORMAT, lines(FILE))
    records = through_a_folder(read.records, tmp_path / "run")
    assert records == list(read.records)
    assert [json.loads(line) for line in FORMAT.write(records).splitlines()] == FILE
    assert issues_of(log) == []
    assert (len(read.records), list(read.rejected)) == (1, [])


def test_question_answer_passages_and_time():
    record = one(*FILE)
    assert (record.record_id, record.question, record.answer) == (TRACE, "When did it open?", "In 1914.")
    assert record.passages == (
        RecordPassage("a", "The canal opened in 1914.", "Canal", 0.9),
        RecordPassage("d2", "It has <b>twelve</b> locks.", "", 0.5),
    )
    assert record.latency == 3.5


def test_a_quick_answer_has_its_time_and_a_clock_that_stands_none():
    quick = {**CHAIN, "end_time": CHAIN["start_time"].replace("250000", "750000")}
    assert one(quick, RETRIEVER).latency == 0.5
    assert one({**CHAIN, "end_time": CHAIN["start_time"]}, RETRIEVER).latency is None


def test_all_forms_of_a_span_are_read_alike():
    flat = {k: v for k, v in RETRIEVER["attributes"].items() if not k.startswith("retrieval")}
    pairs = [{"document.id": "a", "document.content": CANAL[1], "document.score": 0.9, "document.metadata": CANAL[3]},
             {"document.content": LOCKS[1], "document.score": 0.5}]  # fmt: skip
    nested = [{"document": {"id": "a", "content": CANAL[1], "score": 0.9, "metadata": {"title": "Canal"}}},
              {"document": {"content": LOCKS[1], "score": 0.5}}]  # fmt: skip
    kind = {"openinference": {"span": {"kind": "RETRIEVER"}}, "input": {"value": "open date"}}
    forms = [
        {**RETRIEVER, "attributes": {**flat, "retrieval.documents": pairs}},
        {**RETRIEVER, "attributes": {**flat, "retrieval.documents": json.dumps(pairs)}},
        {**RETRIEVER, "attributes": {**kind, "retrieval": {"documents": nested}}},
        {"attributes.openinference.span.kind": "RETRIEVER", "attributes.retrieval.documents": pairs,
         "context.trace_id": TRACE, "context.span_id": "02", "parent_id": "01", "start_time": 1740830401250},
        {**{k: v for k, v in RETRIEVER.items() if k != "context"}, "trace_id": TRACE, "span_id": "02"},
    ]  # fmt: skip
    wanted = one(*FILE)
    for form in forms:
        record = one(CHAIN, form)
        assert record.passages == wanted.passages
        assert (record.question, record.answer, record.latency) == (
            wanted.question,
            wanted.answer,
            wanted.latency,
        )


def otlp(value):
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [otlp(v) for v in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": k, "value": otlp(v)} for k, v in value.items()]}}
    return {"stringValue": value}


def test_otlp_is_read_as_a_document_and_as_lines():
    spans = [
        {
            "traceId": TRACE,
            "spanId": s["context"]["span_id"],
            **({"parentSpanId": s["parent_id"]} if s["parent_id"] else {}),
            "name": s["name"],
            "startTimeUnixNano": str(1740830401250000000),
            "endTimeUnixNano": 1740830404750000000,
            "attributes": [{"key": k, "value": otlp(v)} for k, v in s["attributes"].items()],
        }
        for s in (*FILE, LLM)
    ]
    whole = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": spans}]}]}
    split = [{"resourceSpans": [{"scopeSpans": [{"spans": [s]}]}]} for s in spans]
    for value in (whole, lines(split), [whole], {"data": spans, "next_cursor": None}):
        read, log = read_as(FORMAT, value)
        assert read.records[0].passages == one(*FILE).passages
        assert read.records[0].latency == 3.5
        assert read.records[0].reported["llm.token_count.prompt", ""] == 90
        assert issues_of(log) == []
    read, _ = read_as(FORMAT, {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": TRACE, "attributes": [
        {"key": "openinference.span.kind", "value": otlp("RETRIEVER")},
        {"key": "input.value", "value": otlp("Who?")},
        {"key": "retrieval.documents", "value": otlp([{"document.content": "Ann."}])},
        "odd", {"key": "x", "value": 5},
    ]}]}]}]})  # fmt: skip
    assert texts(read.records[0]) == ["Ann."]


def test_last_reranker_says_what_the_passages_are():
    first = span("04", "RERANKER", documents(LOCKS, prefix="reranker.output_documents"), "01", start=2)
    last = span("05", "RERANKER", documents(LOCKS, CANAL, prefix="reranker.output_documents"), "01", start=3)
    assert texts(one(last, first, *FILE)) == [LOCKS[1], CANAL[1]]
    empty = span("06", "RERANKER", documents(LOCKS, prefix="reranker.input_documents"), "01", start=4)
    assert texts(one(*FILE, last, empty)) == [LOCKS[1], CANAL[1]]


def test_several_retrievers_in_order_of_time_without_what_comes_again():
    later = span("04", "RETRIEVER", documents(
        ("b", CANAL[1]), ("a", "Another piece of a."), ("c", "New."), ("a", None)), "01", start=3)  # fmt: skip
    read, _ = read_as(FORMAT, lines([CHAIN, later, RETRIEVER]))
    record = read.records[0]
    assert [(p.passage_id, p.text) for p in record.passages] == [
        ("a", CANAL[1]),
        ("d2", LOCKS[1]),
        ("a (2)", "Another piece of a."),
        ("c", "New."),
    ]
    assert read.notes[1] == "2 passages left out that an earlier retriever had returned."


def test_what_one_retriever_brings_twice_stays():
    twice = span("02", "RETRIEVER", documents(CANAL, CANAL), "01", start=1)
    assert [p.passage_id for p in one(CHAIN, twice).passages] == ["a", "a (2)"]


def test_retriever_inside_another_one_only_serves_it():
    inner = span("04", "RETRIEVER", documents(("x", "Inner.")), "02", start=1)
    assert texts(one(*FILE, inner)) == [CANAL[1], LOCKS[1]]
    bare = span("02", "RETRIEVER", asked("open date"), "01", start=1)
    assert texts(one(CHAIN, bare, inner)) == ["Inner."]


def test_spans_that_are_their_own_ancestors_do_no_harm():
    loop = [span("01", "RETRIEVER", documents(CANAL), "02"), span("02", "CHAIN", asked("Who?"), "01")]
    assert texts(one(*loop)) == [CANAL[1]]


def test_answer_of_the_root_else_of_the_last_model_after_the_retrieval():
    silent = span("01", "CHAIN", asked("When?"), start=1, end=4)
    before = span("04", "LLM", answered("Rewritten."), "01", start=0)
    assert one(silent, RETRIEVER, before, LLM).answer == "Other."
    assert one(silent, RETRIEVER, before).answer is None
    messages = span("05", "LLM", {"llm.output_messages.0.message.content": "Said."}, "01", start=5)
    assert one(silent, RETRIEVER, LLM, messages).answer == "Said."
    assert one(CHAIN, RETRIEVER, LLM).answer == "In 1914."
    assert one(span("01", "CHAIN", {**asked("When?"), **answered("")}), RETRIEVER, LLM).answer == ""


def test_retriever_alone_is_a_question_without_an_answer():
    alone = span("02", "RETRIEVER", {**asked("When?"), **documents(CANAL), **answered("[documents]")})
    record = one(alone)
    assert (record.question, record.answer, texts(record)) == ("When?", None, [CANAL[1]])
    written = FORMAT.write([record])
    assert [s["span_kind"] for s in map(json.loads, written.splitlines())] == ["CHAIN", "RETRIEVER"]
    again = read_as(FORMAT, written)[0].records[0]
    assert (again.question, again.answer, again.passages) == ("When?", None, record.passages)


def test_question_of_the_retriever_where_the_root_has_none():
    silent = span("01", "AGENT", {"input.value": '{"a": 1, "b": 2}', "input.mime_type": "application/json"})
    assert one(silent, RETRIEVER).question == "open date"
    reranker = {"reranker.query": "rank", **documents(CANAL, prefix="reranker.output_documents")}
    assert one(span("04", "RERANKER", reranker)).question == "rank"


@pytest.mark.parametrize(
    ("value", "names", "wanted"),
    [
        ("plain", QUESTION_FIELDS, "plain"),
        ('"text"', QUESTION_FIELDS, "text"),
        ("not JSON {", QUESTION_FIELDS, "not JSON {"),
        ('{"query_str": "q"}', QUESTION_FIELDS, "q"),
        ('{"input": {"question": "q", "chat_history": []}}', QUESTION_FIELDS, "q"),
        ('{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]}', QUESTION_FIELDS, "q"),
        ('{"messages": [[{"kwargs": {"content": "q"}, "id": ["x"]}]]}', QUESTION_FIELDS, "q"),
        ('{"odd": "q"}', QUESTION_FIELDS, "q"),
        ('{"odd": "q", "other": "r"}', QUESTION_FIELDS, None),
        ('{"query": "", "text": "q"}', QUESTION_FIELDS, "q"),
        ("[]", QUESTION_FIELDS, None),
        ("7", QUESTION_FIELDS, None),
        ('{"context": ["c"], "answer": "a"}', ANSWER_FIELDS, "a"),
        ('{"choices": [{"message": {"role": "assistant", "content": "a"}}]}', ANSWER_FIELDS, "a"),
        ('{"generations": [[{"text": "a", "generation_info": {}}]]}', ANSWER_FIELDS, "a"),
        ('{"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}', ANSWER_FIELDS, "a\nb"),
        ({"response": {"text": "a"}, "n": 1}, ANSWER_FIELDS, "a"),
        (None, ANSWER_FIELDS, None),
        ("[" * 5000 + "]" * 5000, ANSWER_FIELDS, "[" * 5000 + "]" * 5000),
        ('{"input":' * 50 + '"q"' + "}" * 50, QUESTION_FIELDS, None),
    ],
)  # fmt: skip
def test_obvious_text_of_a_value(value, names, wanted):
    assert value_text(value, "application/json", names) == wanted


def test_plain_text_is_never_taken_for_json():
    assert value_text('{"query": "q"}', "text/plain", QUESTION_FIELDS) == '{"query": "q"}'
    assert value_text('{"query": "q"}', None, QUESTION_FIELDS) == '{"query": "q"}'


@pytest.mark.parametrize(
    ("value", "second"),
    [
        ("2025-03-01T12:00:01.250000+00:00", 1740830401.25),
        ("2025-03-01T12:00:01.250Z", 1740830401.25),
        ("2025-03-01 12:00:01.250", 1740830401.25),
        ("2025-03-01T13:00:01.250+01:00", 1740830401.25),
        (1740830401.25, 1740830401.25),
        (1740830401250, 1740830401.25),
        (1740830401250000, 1740830401.25),
        ("1740830401250000000", 1740830401.25),
        ("yesterday", None),
        (-5, None),
        (True, None),
        ({}, None),
        (10**21, None),
        ("9" * 30, None),
        (10**400, None),
    ],
)
def test_times(value, second):
    wanted = None if second is None else datetime.fromtimestamp(second, UTC)
    assert time_of(value) == wanted


def test_traces_and_spans_of_no_use_are_put_aside():
    other = "f" * 32
    spans = [
        *FILE,
        span("01", "CHAIN", asked("Chat"), trace=other),
        span("02", "LLM", {}, "01", trace=other),
        {**CHAIN, "context": {}},
        "no span",
        span("01", "RETRIEVER", documents(CANAL), trace="e" * 32),
    ]
    read, log = read_as(FORMAT, spans)
    assert len(read.records) == 1
    assert len(read.records) + len(read.rejected) == 5
    assert issues_of(log) == [
        (3, "openinference.span.kind", "error"),
        (5, "context.trace_id", "error"),
        (6, "span", "error"),
        (7, "input.value", "error"),
    ]
    by_row = {row: entry for row, _, entry in read.rejected}
    assert by_row[3] == {"trace_id": other, "spans": 2, "kinds": ["CHAIN", "LLM"]}
    assert read.notes == (
        "5 spans in 3 traces; a trace is a question.",
        "2 traces left out: nothing retrieved or nothing asked.",
    )


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"id": {}, "content": "x"}, "id"),
        ({"content": 7}, "content"),
        ({"content": "x", "score": "high"}, "score"),
    ],
)
def test_odd_values_are_noted_and_cost_only_themselves(document, field):
    attributes = {f"retrieval.documents.0.document.{name}": value for name, value in document.items()}
    if isinstance(document.get("id"), dict):
        attributes["retrieval.documents.0.document.id"] = [1]
    read, log = read_as(FORMAT, lines([CHAIN, span("02", "RETRIEVER", attributes, "01")]))
    assert len(read.records[0].passages) == 1
    assert issues_of(log) == [(2, f"retrieval.documents.0.document.{field}", "warning")]


def test_metadata_that_is_no_json_gives_no_title():
    for metadata in ("{'title': 'Canal'}", '{"title": 7}', '["title"]', 7, '{"title"'):
        assert (
            one(CHAIN, span("02", "RETRIEVER", documents(("a", "x", None, metadata)), "01")).passages[0].title
            == ""
        )


def test_records_of_other_sources():
    record = Record(
        "one",
        "Who?",
        "Ann.",
        (RecordPassage("a", "Ann did it.", "News", 0.5, True), RecordPassage("b", None)),
        ("Ann",),
        ("Bob.",),
        claims=(RecordClaim("Ann did it."),),
        reported={("faithfulness", ""): 0.5},
        latency=1.5,
    )
    written = FORMAT.write([record, Record("a" * 32, "What?")])
    chain, retriever, plain, empty = map(json.loads, written.splitlines())
    assert (
        chain["context"]["trace_id"]
        == "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"[:32]
    )
    assert chain["attributes"] == {
        "openinference.span.kind": "CHAIN",
        **asked("Who?"),
        **answered("Ann."),
        "leadline.record_id": "one",
    }
    assert (chain["start_time"], chain["end_time"]) == (
        "1970-01-01T00:00:00+00:00",
        "1970-01-01T00:00:01.500000+00:00",
    )
    assert retriever["parent_id"] == chain["context"]["span_id"]
    assert retriever["context"]["span_id"] != chain["context"]["span_id"]
    assert retriever["attributes"] == {
        "openinference.span.kind": "RETRIEVER",
        **asked("Who?"),
        **documents(("a", "Ann did it.", 0.5, '{"title": "News"}'), ("b",)),
    }
    assert plain["context"]["trace_id"] == "a" * 32
    assert "output.value" not in plain["attributes"]
    assert empty["attributes"] == {"openinference.span.kind": "RETRIEVER", **asked("What?")}
    again, log = read_as(FORMAT, written)
    assert issues_of(log) == []
    assert [(r.record_id, r.question, r.answer, r.latency) for r in again.records] == [
        ("one", "Who?", "Ann.", 1.5),
        ("a" * 32, "What?", None, None),
    ]
    assert again.records[0].passages == (
        RecordPassage("a", "Ann did it.", "News", 0.5),
        RecordPassage("b", None),
    )
    assert FORMAT.write([record]) == FORMAT.write([record])


def test_recognised_by_kinds_inputs_and_documents():
    assert FORMAT.recognise(content_of(lines(FILE))) == 6
    assert FORMAT.recognise(content_of({"data": FILE})) == 6
    assert ragas.FORMAT.recognise(content_of(lines(FILE))) == 0
    assert jsonl.FORMAT.recognise(content_of(lines(FILE))) == 0
    plain_otel = {"traceId": TRACE, "attributes": [{"key": "http.method", "value": {"stringValue": "GET"}}]}
    others = [
        [{"question": "q", "context": "c", "answer": "a"}],
        {"data": [{"question": "q"}]},
        [plain_otel],
        b"context.trace_id,attributes.openinference.span.kind\n1,LLM\n",
    ]
    assert [FORMAT.recognise(content_of(other)) for other in others] == [0] * len(others)


@pytest.mark.parametrize("value", [[], b"a,b\n1,2\n", {"resourceSpans": []}])
def test_other_files_are_refused(value):
    with pytest.raises(InputError, match="holds no spans"):
        read_as(FORMAT, value)


MANY = [*FILE, LLM, span("01", "RETRIEVER", {**asked('{"query": "Who?"}', "application/json"),
        "retrieval.documents": [{"document.content": "Ann.", "document.id": 1}]}, trace="b" * 32)]  # fmt: skip


def test_what_the_console_exporter_prints_is_read():
    """Indented objects one after another; its ids begin with 0x."""
    printed = []
    for entry in FILE:
        context = {name: f"0x{value}" for name, value in entry["context"].items()} | {"trace_state": "[]"}
        parent = entry["parent_id"] and f"0x{entry['parent_id']}"
        printed.append(
            json.dumps(
                {**entry, "context": context, "parent_id": parent, "kind": "SpanKind.INTERNAL"}, indent=4
            )
        )
    read, log = read_as(FORMAT, "\n".join(printed).encode() + b"\n")
    assert issues_of(log) == [] and read.records == [one(*FILE)]
    windows, _ = read_as(FORMAT, "\r\n\r\n".join(printed).replace("\n", "\r\n").encode())
    assert windows.records == read.records
    # An object that breaks off, or that something else was printed behind, costs only itself.
    content = content_of("\n".join([*printed, printed[1][:40]]).encode())
    assert [entry.number for entry in content.bad] == [len("\n".join(printed).split("\n")) + 1]
    assert FORMAT.read(content, log).records == read.records


def test_an_object_that_breaks_off_is_no_console_output():
    with pytest.raises(InputError, match=", line 4, is not valid JSON"):
        content_of(json.dumps(CHAIN, indent=4)[:60].encode())


HAYSTACK = [
    span("01", "CHAIN", {**asked('{"data": {"retriever": {"query": "When?"}}}', "application/json"),
                         **answered('{"model": {"replies": ["In 1914."], "meta": [{}]}}', "application/json")}, start=1, end=4),
    span("02", "RETRIEVER", {**asked('{"query": "When?"}', "application/json"), **documents(CANAL)}, "01", 1, 1),
    span("03", "LLM", {**asked("x"), **answered("The canal opened in 1914. When?"), "llm.prompt_template.template": "{{ documents }}"}, "01", 2, 2),
    span("04", "CHAIN", {**answered('{"replies": ["In 1914."]}', "application/json")}, "01", 3, 4),
]  # fmt: skip


def with_output(output):
    root = {**HAYSTACK[0], "attributes": {**HAYSTACK[0]["attributes"], "output.value": output}}
    return one(root, *HAYSTACK[1:]).answer


def test_a_prompt_of_haystack_is_no_answer():
    assert (one(*HAYSTACK).question, one(*HAYSTACK).answer) == ("When?", "In 1914.")
    printed = "ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[TextContent(text={!r})], _name=None, _meta={{}})"
    for text in ("In 1914.", "It's \n 1914", 'It\'s "1914" \\', "Năm 1914 – 一九一四", ""):
        assert with_output(json.dumps({"m": {"replies": ["no", text]}})) == text
        assert with_output(json.dumps({"m": {"replies": [printed.format(text)]}})) == text
    for nothing in (
        "{}",
        '{"m": {"replies": []}}',
        '{"m": {"replies": [5]}}',
        '{"m": {"replies": ["ChatMessage(_role"]}}',
        '["a"',
    ):
        assert with_output(nothing) != "The canal opened in 1914. When?"


def test_an_answer_is_taken_from_a_model_that_tells_its_template():
    template = {"llm.prompt_template.template": "{q}"}
    model = span("03", "LLM", {**answered("In 1914."), **template, "llm.model_name": "m"}, "01", 3, 4)
    root = {
        **CHAIN,
        "attributes": {k: v for k, v in CHAIN["attributes"].items() if not k.startswith("output")},
    }
    assert one(root, RETRIEVER, model).answer == "In 1914."


def test_a_key_of_otlp_that_is_no_text_costs_only_itself():
    attributes = [{"key": key, "value": otlp(value)} for key, value in RETRIEVER["attributes"].items()]
    odd = [{"key": key, "value": {"stringValue": "x"}} for key in (["a"], {"a": 1}, None, 5)]
    inner = {"key": "metadata", "value": {"kvlistValue": {"values": odd}}}
    assert one(CHAIN, {**RETRIEVER, "attributes": [*odd, *attributes, inner]}) == one(*FILE)


@pytest.mark.parametrize("whole", [True, False], ids=["one object", "lines"])
def test_spans_are_taken_out_of_five_envelopes_and_no_more(whole):
    def packed(times):
        value = {"data": [{"name": "x"}, {"name": "y"}]}
        for _ in range(times - 1):
            value = {"data": [value]}
        return content_of(value if whole else lines([value, {"name": "z"}]))

    assert [one for _, one in _entries_of(packed(5))][:2] == [{"name": "x"}, {"name": "y"}]
    assert _entries_of(packed(6))[0] == (1, {"data": [{"name": "x"}, {"name": "y"}]})
