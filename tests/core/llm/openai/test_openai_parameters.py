import json

import pytest

from core.llm.openai.llm import Parameters
from core.llm.openai.replies import ServerError
from tests.servers.chat_server import SCHEMA, ask, chat, chat_server, one, opened, refusal, sent
from tests.servers.fault_proxy import reply


def picky(*names, message="Unsupported parameter: '{}' is not supported here.", status=400, **error):
    """A server that refuses these parameters one after the other."""

    def answer(body):
        for name in names:
            if name in body:
                return refusal(message.format(name), status, **error)
        return chat("Paris")

    return answer


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("seed",), "Unsupported parameter: '{}' is not supported with this model."),
        (("seed", "temperature"), "property {} : extra fields not permitted"),
        (("logprobs", "seed"), 'Unknown name "{}": cannot find field.'),
        (("top_logprobs",), "`{}` is deprecated"),
        (("max_tokens",), "'{}' is not supported with this model, use 'max_completion_tokens'."),
    ],
)
def test_a_parameter_that_is_refused_is_left_out_from_then_on(names, message):
    with chat_server(picky(*names, message=message)) as server:
        llm = opened(server)
        assert llm.generate([ask(logprobs=True)])[0].text == "Paris"
        assert len(sent(server)) == 1 + len(names)
        llm.generate([ask(logprobs=True, seed=7)])
        bodies = sent(server)
        assert len(bodies) == 2 + len(names)  # learned: no further refusal
        assert not set(names) & set(bodies[-1])
        assert 12 in (bodies[-1].get("max_tokens"), bodies[-1].get("max_completion_tokens"))
        can = llm.capabilities
        assert can.seed == ("seed" not in names)
        assert not can.token_logprobs  # refused, or not given
        assert llm.notes == (
            (f"The server does not accept {', '.join(sorted(set(names) & {'seed', 'temperature'}))}: "
             "its own setting was used instead.",)
            if set(names) & {"seed", "temperature"} else ()
        )  # fmt: skip


@pytest.mark.parametrize(
    ("refused", "left"),
    [("seed", {"logprobs", "top_logprobs"}), ("top_logprobs", {"logprobs"}), ("logprobs", set())],
)
def test_alternatives_are_asked_for_just_where_log_probabilities_are(refused, left):
    with chat_server(picky(refused)) as server:
        one(server, ask(logprobs=True))
        assert set(sent(server)[-1]) & {"logprobs", "top_logprobs"} == left


def test_calls_under_way_at_once_learn_the_same_thing():
    with chat_server(picky("max_tokens", "seed")) as server:
        answers = opened(server).generate([ask(seed=n) for n in range(8)])
        assert [a.text for a in answers] == ["Paris"] * 8
        assert sent(server)[-1]["max_completion_tokens"] == 12


def test_a_list_of_wrong_fields_is_read_as_well():
    def strict(body):
        if "seed" in body:
            fault = {
                "type": "extra_forbidden",
                "loc": ["body", "seed"],
                "msg": "Extra inputs are not permitted",
            }
            return reply(422, {"detail": [fault]})
        return chat("Paris")

    with chat_server(strict) as server:
        assert one(server).text == "Paris"


def test_a_value_out_of_range_is_no_refused_parameter():
    told = "'temperature' must be between 0 and 1 for the supported models"
    with chat_server(refusal(told), then=chat("Paris")) as server:
        llm = opened(server)
        wrong = llm.generate([ask(temperature=1.5)])[0]
        assert wrong.error == f"{server.address}/v1 refused this request (HTTP 400): {told}."
        assert len(sent(server)) == 1
        assert llm.generate([ask()])[0].text == "Paris"
        assert "temperature" in sent(server)[-1]


def test_a_server_that_takes_no_limit_by_any_name_is_told():
    with chat_server(picky("max_tokens", "max_completion_tokens")) as server:
        assert "max_completion_tokens" in one(server).error
        assert len(sent(server)) == 2


def test_schema_falls_back_to_json_and_then_to_nothing():
    def limited(body):
        kind = body.get("response_format", {}).get("type")
        if kind == "json_schema":
            return refusal("response_format of type json_schema is not supported")
        return refusal("json_object is not supported") if kind and everything else chat('{"city": "Paris"}')

    for everything in (False, True):
        with chat_server(limited) as server:
            llm = opened(server)
            assert llm.capabilities.json_schema
            assert json.loads(llm.generate([ask(schema=SCHEMA)])[0].text) == {"city": "Paris"}
            assert not llm.capabilities.json_schema
            assert len(sent(server)) == 2 + everything
            llm.generate([ask(schema=SCHEMA)])
            last = sent(server)[-1].get("response_format")
            assert last == (None if everything else {"type": "json_object"})


def learnt(parameters, request, message, status=400, **error):
    """What is left out after this refusal; None where it names nothing that was sent, so that nobody asks again."""
    sent = parameters.body(request)
    again = parameters.learn(ServerError(status, message, **error), sent, request)
    left = parameters.body(request)
    assert again or left == sent
    return set(sent) - set(left) if again else None


@pytest.mark.parametrize(
    ("message", "error", "refused"),
    [
        ("Unsupported value.", {"param": "seed"}, {"seed"}),
        ("Unsupported value.", {"param": "seed[0].value"}, {"seed"}),
        ("Unsupported value: 'temperature' must be 1.", {"code": "unsupported_value"}, {"temperature"}),
        ("'seed' must be 0 where not supported.", {"code": "invalid_value"}, None),  # the value is wrong
        ("Unsupported value.", {"param": "logprobs"}, None),  # it was not sent
        ("Unsupported value.", {"param": "model"}, None),
        ("The json_schema is not supported.", {}, None),
        ("The seed is wrong.", {"param": "seed"}, None),
    ],
)
def test_which_parameter_an_error_is_about(message, error, refused):
    assert learnt(Parameters(), ask(), message, **error) == refused


@pytest.mark.parametrize("status", [400, 422, 501])
def test_with_which_status_a_parameter_is_refused(status):
    assert learnt(Parameters(), ask(), "seed: not supported", status) == {"seed"}
    for other in (status - 1, status + 1):
        assert learnt(Parameters(), ask(), "seed: not supported", other) is None


def formats(parameters, *schemas):
    return [parameters.body(ask(schema=one)).get("response_format", {}).get("type") for one in schemas]


@pytest.mark.parametrize(
    "error", [{"message": "Not here.", "param": "response_format.type"}, {"message": "No JSON_SCHEMA."}]
)
def test_a_format_is_refused_by_the_name_of_its_parameter_or_in_words(error):
    parameters, other = Parameters(), '{"type":"string"}'
    seen = [formats(parameters, SCHEMA, other)]
    for _ in range(2):
        assert learnt(parameters, ask(schema=SCHEMA), **error) in (set(), {"response_format"})
        seen.append(formats(parameters, SCHEMA, other))
    assert seen == [["json_schema"] * 2, ["json_object"] * 2, [None] * 2]


def test_another_parameter_is_refused_while_the_schema_is_kept():
    parameters = Parameters()
    assert learnt(parameters, ask(schema=SCHEMA), "seed: not supported") == {"seed"}
    named = {"name": "answer", "strict": True, "schema": json.loads(SCHEMA)}
    body = parameters.body(ask(schema=SCHEMA))
    assert body["response_format"] == {"type": "json_schema", "json_schema": named}


def test_a_schema_that_the_server_cannot_read_is_left_out_alone():
    parameters, odd = Parameters(), '{"type":"objekt"}'
    # OpenAI refuses an object, too, where the prompt does not ask for one.
    for told, kind in (
        ("Invalid schema.", "json_object"),
        ("Messages must contain the word 'json_object'.", None),
    ):
        assert learnt(parameters, ask(schema=odd), told, param="response_format") is not None
        assert formats(parameters, odd, SCHEMA) == [kind, "json_schema"]
    assert parameters.json_schema


@pytest.mark.parametrize(("temperature", "top_p"), [(0.0, None), (0.3, 0.9)])
def test_a_share_of_the_probability_is_sent_where_there_is_a_choice(temperature, top_p):
    assert Parameters().body(ask(temperature=temperature, top_p=0.9)).get("top_p") == top_p
