"""A change of one prompt: what it makes of the passages, and what of it no file can break."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.losses.arms import Shown
from core.whatif.change import MOST, Added, Change, read_change

SHOWN = tuple(Shown(name, name.upper(), f"Text {name}.", i) for i, name in enumerate("abcd", start=1))


def ids(change, shown=SHOWN):
    return "".join(one.passage_id for one in change.apply(shown))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Change(), "abcd"),
        (Change(keep=("d", "b")), "bd"),
        (Change(keep=()), ""),
        (Change(order=("c", "a")), "cabd"),
        (Change(order=("c", "a"), keep=("a", "c", "d")), "cad"),
        (Change(added=(Added("x", "New."),)), "abcdx"),
        (Change(added=(Added("x", "New."),), order=("x",)), "xabcd"),
        (Change(added=(Added("x", "New."),), keep=("a",)), "a"),
    ],
)
def test_passages_are_switched_off_moved_and_added(change, expected):
    assert ids(change) == expected


def test_an_edit_changes_the_text_alone():
    shown = Change(edits={"b": "Other."}).apply(SHOWN)
    assert shown[1] == Shown("b", "B", "Other.", 2)
    assert [one for one in shown if one.passage_id != "b"] == [SHOWN[0], SHOWN[2], SHOWN[3]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Change(), ""),
        (Change(order=("a", "b", "c", "d")), ""),
        (Change(keep=("a", "b", "c")), "1 passage switched off"),
        (Change(keep=("a", "d"), order=("d",)), "2 passages switched off, another order"),
        (Change(edits={"a": "Text a."}), ""),
        (
            Change(
                edits={"a": "No."},
                added=(Added("x", "New."),),
                question="Why?",
                style="full",
                temperature=0.7,
            ),
            "1 passage edited, 1 passage added, another question, prompt style full, temperature 0.7",
        ),
    ],
)
def test_a_change_in_words(change, said):
    assert change.words(SHOWN) == said


@pytest.mark.parametrize("change", [Change(keep=("z",)), Change(order=("z",)), Change(edits={"z": "Text."})])
def test_a_passage_that_is_not_there_is_named(change):
    with pytest.raises(InputError, match="names the passage z, which this question does not have"):
        change.apply(SHOWN)


def test_an_added_passage_takes_nobodys_place():
    with pytest.raises(InputError, match="adds a passage a, which"):
        Change(added=(Added("a", "New."),)).apply(SHOWN)


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(str.strip)
unique = st.lists(names, unique=True, max_size=5).map(tuple)
changes = st.builds(
    Change,
    keep=st.none() | unique,
    order=unique,
    edits=st.dictionaries(names, names, max_size=3),
    added=st.lists(st.builds(Added, names, names, names), max_size=3, unique_by=lambda one: one.id).map(
        tuple
    ),
    question=st.none() | names,
    style=st.sampled_from([None, "short", "full"]),
    temperature=st.floats(0, 2),
)


@given(changes)
@settings(max_examples=200, deadline=None)
def test_what_is_written_is_read_again(change):
    assert read_change(change.to_json()) == change
    assert read_change(json.loads(change.to_json())) == change


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
parts = st.sampled_from(["keep", "order", "edits", "added", "question", "style", "temperature", "other"])


@given(st.dictionaries(parts, values, max_size=4) | values)
@settings(max_examples=300, deadline=None)
def test_whatever_a_file_holds_is_a_change_or_one_sentence(value):
    try:
        change = read_change(value if not isinstance(value, str) else json.dumps(value))
    except InputError as error:
        assert "\n" not in str(error) and len(str(error)) < 400
    else:
        assert read_change(change.to_json()) == change


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read as the JSON of a change"),
        ("[" * 100_000, "cannot be read as the JSON of a change"),
        ("[]", "A change is a JSON object, not"),
        ('{"k": 3}', "A change has no 'k'; it may have keep, order"),
        ('{"keep": "ab"}', "keep must be a list"),
        ('{"keep": [1]}', "A passage id in keep must be a text, got 1"),
        ('{"order": ["a", "a"]}', "order names the passage a twice"),
        (json.dumps({"order": [str(i) for i in range(MOST + 1)]}), "order may name at most 200 passages, got 201"),
        ('{"edits": ["a"]}', "edits must be an object of texts"),
        ('{"edits": {"a": 1}}', "An edited passage must be a text, got 1"),
        (json.dumps({"edits": {"a": "x" * 20_001}}), "at most 20,000 characters, got 20,001"),
        ('{"added": [{"id": "x"}]}', "An added passage has id, text and title"),
        ('{"added": [{"id": "x", "text": " "}]}', "An added passage must not be empty"),
        ('{"question": " "}', "The question must not be empty"),
        ('{"style": "poem"}', "style must be one of short, full, got 'poem'"),
        ('{"temperature": 2.5}', "temperature must be a number from 0 to 2, got 2.5"),
        ('{"temperature": true}', "temperature must be a number from 0 to 2, got True"),
        ('{"temperature": 1e999}', "cannot be read as the JSON of a change"),
        ('{"keep": ["a"], "keep": ["b"]}', "cannot be read as the JSON of a change"),
        ("x" * 1_000_001, "has at most 1,000,000 characters, got 1,000,001"),
    ],
)  # fmt: skip
def test_what_is_no_change_is_said_in_a_sentence(text, said):
    with pytest.raises(InputError) as failed:
        read_change(text)
    assert said in str(failed.value)


@pytest.mark.parametrize(
    ("make", "most"),
    [
        (lambda text: Change(edits={"a": text}), 20_000),
        (lambda text: Added("a", text), 20_000),
        (lambda text: Change(question=text), 5_000),
        (lambda text: Added("a", "Text.", text), 500),
        (lambda text: Added(text, "Text."), 500),
        (lambda text: Change(keep=(text,)), 500),
        (lambda text: Change(order=(text,)), 500),
        (lambda text: read_change("{}" + " " * (len(text) - 2)), 1_000_000),
    ],
)
def test_a_text_may_be_so_long_and_not_longer(make, most):
    make("x" * most)
    with pytest.raises(InputError, match=f"at most {most:,} characters, got {most + 1:,}"):
        make("x" * (most + 1))


def test_as_many_passages_as_a_prompt_may_have_can_be_named():
    named = tuple(map(str, range(200)))
    assert Change(keep=named, order=named).keep == named
    with pytest.raises(InputError, match="keep may name at most 200 passages, got 201"):
        Change(keep=(*named, "x"))


@pytest.mark.parametrize("temperature", [0.0, 0.01, 2.0])
def test_a_call_may_be_cold_or_hot(temperature):
    assert Change(temperature=temperature).temperature == temperature


def test_what_is_not_changed_is_not_written():
    assert Change().to_json() == "{}"
    change = Change(keep=(), added=(Added("x", "New."), Added("y", "Old.", "Y")), temperature=0.5)
    assert change.to_dict() == {
        "keep": [],
        "added": [{"id": "x", "text": "New."}, {"id": "y", "text": "Old.", "title": "Y"}],
        "temperature": 0.5,
    }
