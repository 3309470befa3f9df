import logging

import pytest

from core.errors import BackendError, InputError
from core.llm import BACKENDS, open_llm, request_key
from core.llm.openai.endpoint import find_endpoint
from core.llm.openai.llm import OpenAICompatibleLLM
from tests.servers.chat_server import ask, chat, chat_server, opened, raised, refusal
from tests.servers.fault_proxy import garbage

SECRET = "sk-proj-Tr0ub4dor-and-3-horses-stapled"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"base_url": "localhost:8000"},
            "base_url must look like http://localhost:8000/v1, got 'localhost:8000'",
        ),
        ({"base_url": f"ftp://me:{SECRET}@host/v1"}, "must look like .* got 'host/v1'"),
        ({"base_url": "http://[::1"}, "must look like"),
        ({"base_url": "http://host:99999/v1"}, "must look like"),
        ({"api_key": f"{SECRET}\nX: y"}, "The API key contains a blank"),
        ({"api_key": "ключ"}, "The API key contains"),
        ({"api_key": f"{SECRET}\nX"}, "The API key contains"),
        ({"api_key": f"Bearer {SECRET}"}, "The API key contains a blank"),
        ({"timeout": 0}, "timeout must be above 0, got 0"),
        ({"parallel": 0}, "parallel must be above 0, got 0"),
    ],
)
def test_wrong_options_are_named_and_show_no_secret(options, words):
    with pytest.raises(InputError, match=words) as failed:
        OpenAICompatibleLLM("m", **options)
    assert SECRET not in str(failed.value)


def test_openai_itself_needs_a_key():
    with pytest.raises(BackendError, match=r"api\.openai\.com/v1 asks for an API key .* set OPENAI_API_KEY"):
        OpenAICompatibleLLM("m").generate([ask()])
    with pytest.raises(BackendError, match="OPENAI_API_KEY"):
        OpenAICompatibleLLM()


def test_settings_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with chat_server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.address}/v1/")
        llm = open_llm("openai", "m")
        assert llm.options["base_url"] == f"{server.address}/v1" == BACKENDS["openai"].address()
        llm.generate([ask()])
        open_llm("openai", "m", api_key="").generate([ask()])
        first, second = server.requests("/chat/completions")
        assert first.headers["authorization"] == f"Bearer {SECRET}"
        assert "authorization" not in second.headers


def test_a_key_that_the_server_repeats_is_told_nowhere(caplog):
    caplog.set_level(logging.DEBUG)
    echo = f"Incorrect API key provided: {SECRET}. Bearer {SECRET}"
    texts = []
    for answer in (
        refusal(echo, 401),
        refusal(echo, 403),
        refusal(echo, 500),
        refusal(echo, 404),
        garbage(echo.encode()),
    ):
        error = raised(answer, key=SECRET)
        texts += [str(error), repr(error), repr(error.__cause__), repr(error.__context__)]
    with chat_server(refusal(echo, 400), chat(f"Your key is {SECRET}!")) as server:
        llm = opened(server, api_key=SECRET)
        texts.append(llm.generate([ask()])[0].error)
        assert llm.generate([ask()])[0].text == "Your key is …!"
        texts += [repr(llm), str(dict(llm.options)), repr(llm._server), request_key(llm, ask())]
    assert "refused the API key (HTTP 401); set OPENAI_API_KEY" in texts[0]
    assert not [text for text in [*texts, caplog.text] if SECRET in text or SECRET[:12] in text]
    assert "HTTP Request" in caplog.text  # the log was really on


def test_a_query_is_kept_as_it_is_given_also_where_a_value_is_blank():
    found = find_endpoint("https://host/v1/?api-version=1&preview=&q=a%20b", "")
    assert (found.url, found.query) == (
        "https://host/v1",
        (("api-version", "1"), ("preview", ""), ("q", "a b")),
    )


def test_an_address_with_a_password_and_a_query_is_used_but_not_shown(caplog):
    caplog.set_level(logging.DEBUG)
    with chat_server(
        chat("Paris"), refusal("no such thing as p%40ss-w0rd or p@ss-w0rd or qu3ry-s3cret", 400)
    ) as server:
        host = server.address.removeprefix("http://")
        llm = OpenAICompatibleLLM("m", base_url=f"http://me:p%40ss-w0rd@{host}/v1?code=qu3ry-s3cret#x")
        answers = [llm.generate([ask()])[0] for _ in range(2)]
        asked = server.requests("/chat/completions")[0]
        assert asked.headers["authorization"] == "Basic bWU6cEBzcy13MHJk"  # me:p@ss-w0rd
        assert asked.path == "/v1/chat/completions?code=qu3ry-s3cret"
    assert answers[0].text == "Paris"
    shown = [answers[1].error, repr(llm), str(llm.options), repr(llm._server), caplog.text]
    assert llm.options["base_url"] == f"http://{host}/v1"
    assert not [text for text in shown if "w0rd" in text or "s3cret" in text or "bWU6" in text]
    assert "HTTP Request" in caplog.text
