import pytest

from core.errors import BackendError
from core.llm.openai.llm import list_models
from core.llm.types import Message
from tests.servers.chat_server import ask, chat, opened
from tests.servers.fault_proxy import fault_proxy, reply


def test_a_server_that_lists_nothing_can_still_be_asked():
    with fault_proxy(
        None, lambda e: chat() if e.path.endswith("completions") else reply(404, b"no")
    ) as server:
        llm = opened(server)
        assert llm.capabilities.context_length is None
        assert llm.generate([ask()])[0].text == "Paris"
        assert llm.count_tokens((Message("user", "abcdefgh"),)) == 6
        with pytest.raises(BackendError, match="HTTP 404"):
            list_models(f"{server.address}/v1")


@pytest.mark.parametrize(
    "body", [b"<html>", b"null", b'{"data": 5}', b'{"data": [1, {"id": 7}, {"id": ""}]}', b"[["]
)
def test_an_odd_list_of_models_is_survived(body):
    with fault_proxy(None, lambda _: reply(200, body)) as server:
        assert opened(server).capabilities.context_length is None
        try:
            assert list_models(f"{server.address}/v1") == []
        except BackendError as error:
            assert "list its models" in str(error)


def test_facts_of_other_servers_are_understood():
    def vllm(exchange):
        if exchange.path == "/tokenize":
            return reply(
                200, {"count": 3 * len(exchange.json()["messages"]), "max_model_len": 512, "tokens": [1]}
            )
        return reply(200, {"data": [{"id": "m", "max_model_len": 512}]})

    with fault_proxy(None, vllm) as server:
        llm = opened(server)
        assert llm.capabilities.context_length == 512
        assert llm.count_tokens((Message("user", "a"), Message("system", "b"))) == 6
    with fault_proxy(None, lambda _: reply(200, {"data": [{"id": "m", "context_length": 99}]})) as server:
        assert opened(server).capabilities.context_length == 99
