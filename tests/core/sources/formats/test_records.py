import math

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from core.run import Run
from core.sources.formats.records import (
    CONTRADICTION,
    ENTAILMENT,
    NEUTRAL,
    Record,
    RecordClaim,
    RecordPassage,
    records_of,
    restored,
    run_of,
    stored,
)
from core.sources.simulation import SimulationOptions, simulate

FULL = Record(
    "one",
    "When did the canal open?",
    "In 1914.",
    (RecordPassage("a", "It opened in 1914.", "Canal", 7.5, True), RecordPassage("b", None, "", None, False)),
    ("1914", "in 1914"),
    ("1914.", "", "I don't know."),
    3,
    (
        RecordClaim("The canal opened in 1914.", "answer", {"a": ENTAILMENT, "b": 0.25}, ENTAILMENT, "RELEVANT", "SUPPORTED"),
        RecordClaim("It is long.", "reference", {"a": CONTRADICTION}),
        RecordClaim("Nobody judged this."),
    ),
    {("score", "judge"): 0.5, ("score", ""): 1, ("tags", ""): ["x", {"y": None}], ("code", ""): "007", ("text", ""): "a b", ("ok", ""): True},
    "single",
    "en",
    1.25,
    "some judge",
)  # fmt: skip
BARE = Record("two", "Who?")
EMPTY = Record("three", "What?", "")


def test_records_come_back_from_a_run_and_from_disk(tmp_path):
    run = run_of([FULL, BARE, EMPTY], {"source": "upload"})
    assert records_of(run) == [FULL, BARE, EMPTY]
    run.save(tmp_path / "run")
    assert records_of(Run.load(tmp_path / "run")) == [FULL, BARE, EMPTY]


def test_the_tables_hold_what_the_records_say():
    run = run_of([FULL, BARE, EMPTY], {"source": "upload"})
    assert run.queries["answer_status"].fillna("none").to_list() == ["answered", "none", "empty"]
    assert run.passages["retrieval_rank"].to_list() == [1, 2] and run.passages["slot"].to_list() == [1, 2]
    assert run["claims"]["scored"].to_list() == [True, True, False]
    support = run["support"]
    assert support["probability"].to_list() == [1, 0.25, 0]
    assert support["label"].fillna("").to_list() == [ENTAILMENT, "", CONTRADICTION]
    assert set(support["judge"]) == {"some judge"}
    assert run["samples"]["sample_id"].to_list() == ["s1", "s2", "s3"]


def test_passages_come_in_the_order_of_their_ranks():
    queries = pd.DataFrame({"query_id": ["x", "y"], "question": ["X?", "Y?"]})
    passages = pd.DataFrame(
        {"query_id": ["x", "y", "x"], "passage_id": ["late", "only", "first"], "retrieval_rank": [2.0, 1.0, 1.0], "text": ["l", "o", "f"]}
    )  # fmt: skip
    records = records_of(Run.create({"source": "live"}, queries=queries, passages=passages))
    assert [[p.passage_id for p in r.passages] for r in records] == [["first", "late"], ["only"]]


def test_a_simulated_run_has_records():
    run = simulate(SimulationOptions(queries=10, passages=4))
    records = records_of(run)
    assert [r.question for r in records] == run.queries["question"].to_list()
    assert all(len(r.passages) == 4 for r in records)


JSON = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(st.characters(codec="utf-8"), max_size=9)),
    lambda inner: st.lists(inner | st.none(), max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(JSON)
def test_any_reported_value_comes_back(value):
    columns = stored(value)
    back = restored(columns["value"], columns["text"])
    assert back == value and isinstance(back, bool) == isinstance(value, bool)


def test_texts_that_spell_json_stay_texts():
    for text in ("12", "null", "[1]", '"x"', "NaN", "{", "1e5", "true"):
        assert restored(**stored(text)) == text
    assert stored(2**53 + 1) == {"value": None, "text": "9007199254740993"}
    assert stored(10**400)["text"] == "1" + "0" * 400
    assert stored(math.inf)["value"] is None


def test_reported_values_come_back_from_disk(tmp_path):
    values = {("a", ""): "12", ("b", "x"): [1, None], ("c", ""): 2**70, ("d", ""): 0.1, ("e", ""): False}
    run_of([Record("q", "Q?", reported=values)], {"source": "upload"}).save(tmp_path / "r")
    assert records_of(Run.load(tmp_path / "r"))[0].reported == values


def test_a_judge_of_another_vocabulary_is_read_by_its_probability():
    rows = {
        "queries": [{"query_id": "q", "question": "Q?"}],
        "passages": [{"query_id": "q", "passage_id": p, "retrieval_rank": 1.0} for p in "abc"],
        "claims": [{"query_id": "q", "claim_id": "c", "text": "C."}],
        "support": [
            {"query_id": "q", "claim_id": "c", "passage_id": "a", "probability": 0.7, "label": "SUPPORTED"},
            {"query_id": "q", "claim_id": "c", "passage_id": "b", "probability": 0.4, "label": CONTRADICTION},
            {"query_id": "q", "claim_id": "c", "passage_id": "c", "probability": None, "label": "no idea"},
        ],
    }
    run = Run.create({"source": "live"}, **{name: pd.DataFrame(table) for name, table in rows.items()})
    assert records_of(run)[0].claims[0].support == {"a": 0.7, "b": CONTRADICTION, "c": "no idea"}


def test_each_word_of_a_judge_is_a_probability_and_back():
    words = {"a": ENTAILMENT, "b": NEUTRAL, "c": CONTRADICTION}
    passages = tuple(RecordPassage(one, "Text.") for one in words)
    record = Record("one", "Who?", "Ada.", passages, claims=(RecordClaim("Ada.", "answer", words),))
    run = run_of([record], {"source": "upload"})
    assert run["support"]["probability"].to_list() == [1.0, 0.0, 0.0]
    assert records_of(run)[0].claims[0].support == words


def test_a_label_without_a_column_of_its_own_is_reported_with_who_gave_it():
    labelled = [
        Record("one", "Who?", "Ada.", correct=True, correct_by="Ben"),
        Record("two", "Who?", "Ada.", correct=False),
    ]
    first, second = records_of(run_of(labelled, {"source": "upload"}))
    assert first.reported == {("correct", "Ben"): True} and second.reported == {("correct", ""): False}
