"""JSON under a schema through any back end: what a reply must be, and what becomes of one that is not."""

import json
import types
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from core.errors import TransientError
from core.llm import Completion, Message, open_llm
from core.llm.structured import JsonReply, canonical, generate_json_batch
from tests.scripted import ScriptedLLM

SCHEMA = {
    "type": "object",
    "properties": {"why": {"type": "string"}, "score": {"type": "integer", "minimum": 0, "maximum": 10}},
    "required": ["why", "score"],
    "additionalProperties": False,
}
GOOD = '{"why": "it says so", "score": 7}'
VALUE = {"why": "it says so", "score": 7}
ASKED = (Message("system", "You judge."), Message("user", "Is it so?"))


def scripted(*replies, keeps=False):
    """Return a model that gives these replies in order, however often it is asked."""
    left = iter(replies)
    llm = ScriptedLLM(lambda _: next(left))
    llm.capabilities = replace(llm.capabilities, json_schema=keeps)
    return llm


def generate_json(llm, messages, schema, **options):
    return generate_json_batch(llm, [messages], schema, **options)[0]


def ended(text, reason, error=None):
    return Completion(text, reason, 5, 5, 0.0, error=error)


@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"\ufeffSure, here you are:\n\n{GOOD}\n\nAnything else?",
        '{"why": "it says so", "score": 7,}',
        '{"score": 7, "why": "it says so"}',
        # The schema is repeated first, as small models do; it does not follow itself.
        f"{json.dumps(SCHEMA)}\n{GOOD}",
        ended(GOOD + " And I would add", "length"),
        ended(GOOD, "content_filter"),
        '{"score": 7} or rather {"why": "it says so", "score": 7}',
    ],
)
def test_a_reply_that_holds_the_value_takes_one_call(reply):
    llm = scripted(reply)
    raw = reply.text if isinstance(reply, Completion) else reply.strip()
    assert generate_json(llm, ASKED, SCHEMA) == JsonReply(VALUE, None, raw, 1)
    assert llm.calls == 1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("I cannot judge.", "it is not JSON: there is no JSON in it"),
        ("", "it is not JSON: the reply is empty"),
        ('{"why": "x", "score": "7"}', "it does not follow the schema at $.score: '7' is not of type 'integer'"),
        ('{"why": "x", "score": 11}', "it does not follow the schema at $.score: 11 is greater than the maximum of 10"),
        ('{"score": 7}', "it does not follow the schema at $: 'why' is a required property"),
        ('{"why": "x", "score": NaN}', "it is not JSON: NaN is not JSON"),
        ('{"why": "x", "score": 1, "score": 2}', "it is not JSON: the name 'score' comes twice in one object"),
        (ended('{"why": "x', "length"), "it was cut off by the token limit"),
        # Of several values that are wrong the first is told, also where what follows is broken.
        ('{"score": 7} or {"why": "x", "score": 11}', "it does not follow the schema at $: 'why' is a required property"),
        ('{"score": 7} or {"why": "x', "it does not follow the schema at $: 'why' is a required property"),
        ("[" * 5000, "it is not JSON: it is nested deeper than 32"),
        ("y" * 300_000, "it is not JSON: the reply has 300,000 characters, more than 200,000"),
    ],
)  # fmt: skip
def test_a_bad_reply_is_repaired_once_and_is_unscored_when_it_stays_bad(reply, reason):
    repaired = scripted(reply, GOOD)
    assert generate_json(repaired, ASKED, SCHEMA) == JsonReply(VALUE, None, GOOD, 2)

    stubborn = scripted("no", reply, GOOD)
    found = generate_json(stubborn, ASKED, SCHEMA)
    raw = reply.text if isinstance(reply, Completion) else reply
    assert (found.value, found.reason, found.raw, found.n_calls, found.ok) == (None, reason, raw, 2, False)
    assert stubborn.calls == 2


def test_the_repair_call_shows_the_reply_and_what_is_wrong():
    llm = scripted('{"why": "x", "score": 11}', GOOD)
    generate_json(llm, ASKED, SCHEMA, max_tokens=99, seed=4)
    first, second = llm.requests
    assert (first.max_tokens, first.seed, first.temperature, first.schema) == (99, 4, 0.0, None)
    assert first.messages[0] == ASKED[0]
    assert first.messages[1].content.startswith("Is it so?\n\n")
    assert canonical(SCHEMA) in first.messages[1].content
    assert second.messages[:2] == ASKED
    assert second.messages[2] == Message("assistant", '{"why": "x", "score": 11}')
    assert "at $.score: 11 is greater than the maximum of 10" in second.messages[3].content
    assert canonical(SCHEMA) in second.messages[3].content
    assert [m.role for m in second.messages] == ["system", "user", "assistant", "user"]


def test_a_reply_has_room_for_512_tokens_and_the_seed_0_where_nothing_else_is_said():
    llm = scripted(GOOD)
    generate_json(llm, ASKED, SCHEMA)
    assert (llm.requests[0].max_tokens, llm.requests[0].seed) == (512, 0)


def test_the_last_of_several_user_turns_asks_for_json():
    llm = scripted(GOOD)
    generate_json(llm, (*ASKED, Message("assistant", "Perhaps."), Message("user", "Be sure.")), SCHEMA)
    last = llm.requests[0].messages
    assert last[:3] == (*ASKED, Message("assistant", "Perhaps."))
    assert last[3].content.startswith("Be sure.\n\nAnswer with one JSON value") and len(last) == 4


def test_a_turn_that_was_begun_is_finished_in_the_repair():
    llm = scripted("no", GOOD)
    generate_json(llm, (*ASKED, Message("assistant", "Judgement:")), SCHEMA)
    first, second = llm.requests
    assert first.messages[-1] == Message("assistant", "Judgement:")
    assert canonical(SCHEMA) in first.messages[1].content
    assert second.messages[2] == Message("assistant", "Judgement: no")
    assert second.messages[3].role == "user"


def test_an_empty_or_endless_reply_is_shown_within_bounds():
    llm = scripted("", GOOD)
    generate_json(llm, ASKED, SCHEMA)
    assert llm.requests[1].messages[2].content == "(nothing)"
    llm = scripted("z" * 100_000, GOOD)
    generate_json(llm, ASKED, SCHEMA)
    assert llm.requests[1].messages[2].content == "z" * 2000
    llm = scripted(json.dumps({"why": ["z" * 50_000], "score": 1}), GOOD)
    generate_json(llm, ASKED, SCHEMA)
    assert len(llm.requests[1].messages[3].content) < 1_500


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a" * 173, "a" * 173),  # with the two quotation marks and the 25 characters behind them 200
        ("a" * 150 + "z" * 150, f"{'a' * 99} … {'z' * 74}"),  # 100 of the beginning, 100 of the end
    ],
)
def test_of_a_long_error_the_beginning_and_the_end_are_told(value, shown):
    reply = json.dumps({"why": "x", "score": value})
    found = generate_json(scripted(reply, reply), ASKED, SCHEMA)
    assert found.reason == f"it does not follow the schema at $.score: '{shown}' is not of type 'integer'"


def test_a_back_end_that_keeps_to_schemas_gets_the_schema_not_the_words():
    llm = scripted(GOOD, keeps=True)
    assert generate_json(llm, ASKED, SCHEMA).ok
    assert (llm.requests[0].schema, llm.requests[0].messages) == (canonical(SCHEMA), ASKED)


def test_a_back_end_that_claims_to_keep_to_schemas_is_checked():
    llm = scripted('{"why": "x", "score": 99}', "no", keeps=True)
    assert generate_json(llm, ASKED, SCHEMA) == JsonReply(
        None, "it is not JSON: there is no JSON in it", "no", 2
    )


def test_a_server_that_turns_out_to_refuse_schemas_is_asked_in_words():
    llm = ScriptedLLM(lambda request: answers.pop(0)(request))

    def refuses(_):
        llm.capabilities = replace(llm.capabilities, json_schema=False)
        return "I think it is so."

    answers = [refuses, lambda _: GOOD]
    llm.capabilities = replace(llm.capabilities, json_schema=True)
    assert generate_json(llm, ASKED, SCHEMA) == JsonReply(VALUE, None, GOOD, 2)
    assert [r.schema is None for r in llm.requests] == [False, True]
    assert canonical(SCHEMA) in llm.requests[1].messages[-1].content


@pytest.mark.parametrize(
    ("completion", "reason"),
    [
        (ended("", "error", "The prompt is too long."), "The prompt is too long."),
        (ended("", "content_filter"), "the server withheld the answer"),
        (ended("", "reasoning"), "the token limit was spent on reasoning before any answer"),
    ],
)
def test_what_asking_again_cannot_mend_is_not_asked_again(completion, reason):
    llm = scripted(completion)
    assert generate_json(llm, ASKED, SCHEMA) == JsonReply(None, reason, "", 1)


def test_a_repair_that_fails_keeps_the_first_reply_and_both_reasons():
    llm = scripted("no", ended("", "error", "The prompt is too long."))
    expected = "it is not JSON: there is no JSON in it; asked again: The prompt is too long."
    assert generate_json(llm, ASKED, SCHEMA) == JsonReply(None, expected, "no", 2)


def test_a_number_that_the_limit_ended_may_lack_digits():
    number = {"type": "integer"}
    assert generate_json(scripted("12"), ASKED, number).value == 12
    cut = generate_json(scripted(ended("12", "length"), ended("12", "length")), ASKED, number)
    assert (cut.value, cut.reason) == (None, "it was cut off by the token limit")
    assert generate_json(scripted(ended("true", "length")), ASKED, {"type": "boolean"}).value is True


def test_null_can_be_a_value():
    found = generate_json(scripted("null"), ASKED, {"type": ["null", "string"]})
    assert (found.value, found.ok, found.n_calls) == (None, True, 1)


def test_a_batch_asks_all_first_and_then_all_repairs():
    replies = {"a": [GOOD], "b": ["no", GOOD], "c": [ended("", "error", "Too long.")], "d": ["no", "never"]}
    llm = ScriptedLLM(lambda request: replies[request.messages[0].content[0]].pop(0))
    conversations = [[Message("user", f"{name}?")] for name in replies]
    found = generate_json_batch(llm, conversations, SCHEMA)
    assert llm.batches == [4, 2]
    assert [(r.value, r.n_calls) for r in found] == [(VALUE, 1), (VALUE, 2), (None, 1), (None, 2)]
    assert generate_json_batch(llm, [], SCHEMA) == []
    assert llm.batches == [4, 2]


def test_calls_go_through_the_asker_that_is_given():
    llm, seen = scripted("no", GOOD), []

    def ask(requests):
        seen.append(len(requests))
        return llm.generate(requests)

    assert generate_json(llm, ASKED, SCHEMA, ask=ask).ok
    assert seen == [1, 1]


def test_failures_that_may_pass_reach_the_caller():
    with pytest.raises(TransientError):
        generate_json(ScriptedLLM(lambda _: GOOD, transient_failures=1), ASKED, SCHEMA)


def test_a_conversation_without_a_user_turn_gets_one():
    llm = scripted(GOOD)
    generate_json(llm, [Message("system", "Judge.")], SCHEMA)
    assert [m.role for m in llm.requests[0].messages] == ["system", "user"]


@given(st.text(), st.text(), st.sampled_from(["stop", "length", "content_filter", "reasoning"]))
def test_any_reply_gives_a_reply_and_never_an_exception(first, second, reason):
    llm = scripted(ended(first, reason), ended(second, reason))
    found = generate_json(llm, ASKED, SCHEMA)
    assert isinstance(found, JsonReply)
    assert found.ok is (found.reason is None)
    assert llm.calls == found.n_calls <= 2


fragments = st.sampled_from(
    ['{"why":', '"x"', ",", '"score":', "7", "11", "}", "{", "[", "]", "null", "\n", "```", "so", GOOD, "<think>", "</think>"]
)  # fmt: skip


@given(st.lists(fragments, max_size=12).map("".join))
def test_a_value_always_follows_the_schema(reply):
    found = generate_json(scripted(reply, "no"), ASKED, SCHEMA)
    if found.ok:
        Draft202012Validator(SCHEMA).validate(found.value)
        assert found.n_calls == 1
    else:
        assert found.value is None


def test_canonical_text_is_the_same_for_the_same_schema():
    other = types.MappingProxyType(dict(reversed(SCHEMA.items())))
    assert canonical(other) == canonical(SCHEMA)
    assert canonical(json.loads(canonical(SCHEMA))) == canonical(SCHEMA)
    assert canonical({"required": ("a",), "type": "object"}) == '{"required":["a"],"type":"object"}'
    assert "é" in canonical({"const": "é"})
    with pytest.raises(ValueError):
        canonical({"const": float("nan")})


def test_the_order_of_properties_is_part_of_a_schema():
    turned = {**SCHEMA, "properties": dict(reversed(SCHEMA["properties"].items()))}
    assert canonical(turned) != canonical(SCHEMA)
    nested = {"properties": {"properties": {"type": "string", "minLength": 1}, "a": {}}}
    assert canonical(nested) == '{"properties":{"properties":{"minLength":1,"type":"string"},"a":{}}}'


def test_a_real_server_keeps_to_the_schema(llama):
    llm = open_llm("openai", "smollm2-135m", base_url=f"{llama}/v1")
    schema = {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "blue"]}, "sure": {"type": "boolean"}},
        "required": ["colour", "sure"],
        "additionalProperties": False,
    }
    questions = [[Message("user", f"Which colour has {what}?")] for what in ("the sky", "blood")]
    for reply in generate_json_batch(llm, questions, schema, max_tokens=60):
        assert (reply.reason, reply.n_calls) == (None, 1)
        Draft202012Validator(schema).validate(reply.value)


@pytest.mark.model
def test_the_embedded_model_keeps_to_the_schema():
    llm = open_llm("embedded")
    schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
    reply = generate_json(llm, [Message("user", "Is the sky blue?")], schema, max_tokens=30)
    assert (reply.reason, reply.n_calls, sorted(reply.value)) == (None, 1, ["sure"])
