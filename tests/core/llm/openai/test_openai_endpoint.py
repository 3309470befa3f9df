import asyncio
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
        ({"base_url": "http:///v1"}, "must look like .* got 'http:///v1'"),
        ({"base_url": "http://host/a b"}, "must look like .* got 'http://host/a b'"),
        ({"base_url": "x" * 150}, f"must look like .* got '{'x' * 100}'"),
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
    assert f"HTTP Request: POST http://{host}/v1/chat/completions " in caplog.text


@pytest.mark.parametrize(
    ("given", "url", "login"),
    [
        (" http://localhost:8000/v1/ ", "http://localhost:8000/v1", None),
        ("https://host", "https://host", None),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1", None),
        ("http://me@host/v1", "http://host/v1", "me:"),
        ("http://:p%40w@host/v1", "http://host/v1", ":p@w"),
    ],
)
def test_an_address_is_told_from_its_user(given, url, login):
    found = find_endpoint(given, "")
    assert (found.url, found.login, found.key, found.query) == (url, login, None, ())


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("gpu-box", True),
        ("gpu.local", True),
        ("gpu.internal", True),
        ("gpu.lan", True),
        ("api.openai.com", False),
        ("127.0.0.1", True),
        ("10.1.2.3", True),
        ("169.254.1.1", True),
        ("8.8.8.8", False),
        ("[::1]", True),
        ("[fe80::1]", True),
        ("[2001:4860:4860::8888]", False),
    ],
)
def test_which_servers_are_local(host, local):
    assert find_endpoint(f"http://{host}:8000/v1", "").local is local


def test_only_openai_itself_without_key_and_login_is_known_to_refuse():
    find_endpoint(None, "key").check_key()
    find_endpoint("https://me:pw@api.openai.com/v1", "").check_key()
    find_endpoint("https://host/v1", "").check_key()
    with pytest.raises(BackendError, match="asks for an API key and none was given"):
        find_endpoint("https://api.openai.com/v1", "").check_key()


@pytest.mark.parametrize(("seconds", "connect"), [(300.0, 20.0), (5.0, 5.0)])
def test_a_server_that_does_not_take_the_call_is_given_up_after_twenty_seconds(seconds, connect):
    client = find_endpoint("http://localhost:8000/v1", "").client(seconds)
    assert (client.timeout.read, client.timeout.connect) == (seconds, connect)
    assert client.max_retries == 0  # who asks does that, and tells it
    asyncio.run(client.close())


def test_what_is_too_short_for_a_secret_stays():
    assert find_endpoint("http://host/v1", "abcd").scrub("abcd is\nno key") == "… is no key"
    assert find_endpoint("http://host/v1", "abc").scrub("abc is no key") == "abc is no key"
    # In an answer the made-up key of a local server may be a word.
    assert find_endpoint("http://host/v1", "a" * 16).without_key(f"It is {'a' * 16}.") == "It is …."
    assert find_endpoint("http://host/v1", "a" * 15).without_key(f"It is {'a' * 15}.") == f"It is {'a' * 15}."


@pytest.mark.parametrize(("key", "login"), [("", ""), ("", "me:pw@"), (SECRET, "")])
def test_the_account_that_the_environment_names_goes_with_a_key_alone(key, login, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "our-organization")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "our-project")
    with chat_server() as server:
        address = server.address.replace("://", f"://{login}")
        OpenAICompatibleLLM("m", base_url=f"{address}/v1", api_key=key).generate([ask()])
        sent = server.requests("/chat/completions")[0].headers
    told = [sent.get(f"openai-{name}") for name in ("organization", "project")]
    assert told == (["our-organization", "our-project"] if key else [None, None])
    assert sent.get("authorization") == (f"Bearer {key}" if key else "Basic bWU6cHc=" if login else None)
