"""The model picker of the Live page: servers that are there and are not, names, keys, fetching."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from core.llm import BACKENDS
from core.llm.backends import PullProgress
from core.pipeline import ModelChoice
from core.run import Run
from tests.app.polling import button, until
from tests.servers.ollama_server import MODEL, Model, ollama_server
from ui import jobs
from ui.state import Session

NOBODY = "http://127.0.0.1:9"
KEY = "sk-configured-0123456789abcdef"
SERVED = "smollm2-135m"


@pytest.fixture(autouse=True)
def _no_servers(monkeypatch):
    """Point every back end at a port where nobody listens, whatever the machine has."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{NOBODY}/v1")
    monkeypatch.setenv("OLLAMA_HOST", NOBODY)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def picker(open_app, healthy):
    """Open the Live page with a typed question, and choose a back end and its address."""

    def opened(kind, address=None, **secrets):
        app = open_app("live", questions="Type a question")
        app.secrets.update(secrets)
        app.text_input(key="live_question").set_value("Who designed Letchworth?")
        app.text_area(key="live_documents").set_value("Unwin designed Letchworth.\n---\nThe Thames is long.")
        return choose(healthy(app.run()), kind, address)

    return opened


def choose(app, kind, address=None):
    app.selectbox(key="live_backend").select(kind).run()
    if address is not None:
        app.text_input(key=f"live_url_{kind}").set_value(address).run()
    return app


@pytest.mark.parametrize("kind", [kind for kind, backend in BACKENDS.items() if backend.address])
def test_without_a_server_there_is_one_sentence_and_a_free_field(kind, picker, healthy, texts):
    app = healthy(picker(kind))
    assert len(app.warning) == 1 and "127" in app.warning[0].value
    app.text_input(key=f"live_model_text_{kind}").set_value("some-model").run()
    button(app, "Estimate cost").click().run()
    until(app, lambda a: a.error)
    assert len(healthy(app).error) == 1
    assert "127" in app.error[0].value and "Traceback" not in texts(app)
    # The settings stay.
    assert app.selectbox(key="live_backend").value == kind
    assert app.text_input(key=f"live_model_text_{kind}").value == "some-model"
    assert app.text_input(key="live_question").value == "Who designed Letchworth?"


@pytest.mark.parametrize("kind", list(BACKENDS))
def test_the_page_says_where_texts_are_sent(kind, picker, texts):
    said = texts(picker(kind)).replace("\\", "").replace("\u2060", "")
    assert BACKENDS[kind].about in said
    assert ("Address: http://127.0.0.1:9" in said) == bool(BACKENDS[kind].address)


@pytest.mark.parametrize("junk", ["nonsense", "ftp://x", "http://", "http://[", "http://a b", "<b>x</b>"])
def test_an_address_that_is_none_is_told_and_can_be_put_right(junk, picker, healthy):
    app = healthy(picker("openai", junk))
    assert len(app.error) == 1 and "http" in app.error[0].value
    assert not [b for b in app.button if b.label == "Estimate cost"]
    app.text_input(key="live_url_openai").set_value("").run()
    assert not healthy(app).error and button(app, "Estimate cost")


def test_models_of_the_server_are_listed_and_others_can_be_typed(llama, picker, healthy):
    app = healthy(picker("openai", f"{llama}/v1"))
    menu = app.selectbox(key="live_model_menu_openai")
    assert menu.options == [SERVED] and menu.value is None
    menu.select(SERVED).run()
    assert healthy(app).selectbox(key="live_model_menu_openai").value == SERVED


def test_a_plan_and_a_run_with_a_server(llama, picker, healthy, tmp_path):
    app = picker("openai", f"{llama}/v1")
    button(app, "Estimate cost").click().run()
    until(app, lambda a: any(b.label == "Run" for b in a.button))
    next(b for b in app.button if b.label == "Run").click().run()
    until(app, lambda a: a.success)
    run = Run.load(next((tmp_path / "runs").iterdir()))
    assert healthy(app).success[0].value.startswith("Finished and saved: 1 question")
    assert run.manifest["model"]["name"] == SERVED and run.queries["answer_status"][0] is not None


def test_what_is_typed_survives_other_back_ends_and_servers_that_come_and_go(llama, picker, healthy):
    app = picker("openai")
    app.text_input(key="live_model_text_openai").set_value("my-model").run()
    app.number_input(key="live_k").set_value(4).run()
    choose(app, "ollama", f"{NOBODY}0")
    choose(app, "embedded")
    choose(app, "openai")
    assert app.text_input(key="live_model_text_openai").value == "my-model"
    assert app.number_input(key="live_k").value == 4
    # A server that answers shows a menu instead of the field; the typed name stays chosen.
    app = choose(app, "openai", f"{llama}/v1")
    menu = healthy(app).selectbox(key="live_model_menu_openai")
    assert menu.value == "my-model" and menu.options == [SERVED, "my-model"]
    app = choose(app, "openai", "")
    assert app.text_input(key="live_model_text_openai").value == "my-model"
    assert choose(app, "ollama").text_input(key="live_url_ollama").value == f"{NOBODY}0"


def test_answer_tokens_follow_the_back_end_until_they_are_changed(picker):
    app = picker("embedded")
    assert app.number_input(key="live_max_tokens").value == BACKENDS["embedded"].max_tokens
    choose(app, "openai")
    assert app.number_input(key="live_max_tokens").value == BACKENDS["openai"].max_tokens
    app.number_input(key="live_max_tokens").set_value(77).run()
    assert choose(app, "embedded").number_input(key="live_max_tokens").value == 77


def test_retriever_is_asked_only_where_there_are_documents(picker, healthy, open_app):
    app = picker("embedded")
    app.selectbox(key="live_retriever").select("hybrid").run()
    assert healthy(app).selectbox(key="live_embedder").options == []
    app.selectbox(key="live_retriever").select("bm25").run()
    assert "live_embedder" not in {field.key for field in app.selectbox}
    given = open_app("live", questions="Upload questions")
    line = {"question": "a", "passages": ["b", "c"]}
    given.file_uploader(key="live_file").upload("given.jsonl", json.dumps(line).encode())
    assert "live_retriever" not in {field.key for field in healthy(given.run()).selectbox}


def test_options_reach_the_plan(picker, monkeypatch, healthy):
    from tests.scripted import ScriptedLLM

    asked = []
    monkeypatch.setattr(jobs, "open_llm", lambda kind, name, **options: asked.append((kind, name, options))
                        or ScriptedLLM(lambda request: "Unwin"))  # fmt: skip
    app = picker("openai", "http://127.0.0.1:9/other/")
    app.text_input(key="live_model_text_openai").set_value("m")
    app.selectbox(key="live_style").select("full")
    app.selectbox(key="live_retriever").select("bm25s")
    app.number_input(key="live_k").set_value(2).run()
    button(app, "Estimate cost").click().run()
    until(app, lambda a: any(b.label == "Run" for b in a.button))
    # No key is configured, and none may come from the environment: the address was typed.
    assert asked == [("openai", "m", {"base_url": "http://127.0.0.1:9/other/", "api_key": ""})]
    options = jobs.registry().get(app.query_params["job"]).result.run.manifest["options"]
    assert [options[name] for name in ("k", "style", "retriever", "max_tokens")] == [2, "full", "bm25s", 300]


# Keys


class Listening:
    """A server that lists one model and remembers what was sent along."""

    def __init__(self):
        self.authorizations, self.accounts, self.status, self.elsewhere = [], [], 200, None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.authorizations.append(self.headers.get("Authorization", ""))
                outer.accounts.append(self.headers.get("OpenAI-Organization"))
                body = b'{"object": "list", "data": [{"id": "one", "object": "model"}], "models": [{"model": "one"}]}'
                self.send_response(outer.status)
                if outer.elsewhere:
                    self.send_header("Location", outer.elsewhere + self.path)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.root = f"http://127.0.0.1:{self.http.server_port}"
        self.url = f"{self.root}/v1"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()


@pytest.fixture
def two_servers():
    servers = Listening(), Listening()
    yield servers
    for server in servers:
        server.http.shutdown()
        server.http.server_close()


VARIABLES = {"openai": ("OPENAI_BASE_URL", "OPENAI_API_KEY"), "ollama": ("OLLAMA_HOST", "OLLAMA_API_KEY")}


@pytest.mark.parametrize("kind", [kind for kind, backend in BACKENDS.items() if backend.address])
@pytest.mark.parametrize("where", ["environment", "secrets"])
def test_a_key_goes_to_the_address_it_was_configured_for_and_nowhere_else(
    where, kind, two_servers, picker, monkeypatch, healthy
):
    own, foreign = two_servers
    address, key = VARIABLES[kind]
    secrets = {kind: {"api_key": KEY, "base_url": own.url}} if where == "secrets" else {}
    if where == "environment":
        monkeypatch.setenv(address, own.url)
        monkeypatch.setenv(key, KEY)
    else:
        monkeypatch.setenv(key, "sk-environment-0123456789abcdef")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-ours")
    app = healthy(picker(kind, **secrets))
    assert own.authorizations == [f"Bearer {KEY}"]
    # The same address typed is the same server; anything else is not, however it is written.
    choose(app, kind, own.url + "/")
    choose(healthy(app), kind, foreign.url)
    choose(healthy(app), kind, foreign.url.upper().replace("HTTP", "http"))
    assert foreign.authorizations and {*foreign.authorizations, *foreign.accounts} == {"", None}
    login = own.url.replace("://", "://me:pw@")
    for typed in (login, own.url + "?a=b"):
        choose(healthy(app), kind, typed)
    assert not any("sk-" in sent for sent in own.authorizations[1:])


@pytest.mark.parametrize("kind", [kind for kind, backend in BACKENDS.items() if backend.address])
def test_a_server_that_sends_callers_on_does_not_pass_on_their_key(kind, two_servers):
    own, foreign = two_servers
    own.status, own.elsewhere = 307, foreign.root
    assert BACKENDS[kind].list_models(own.url, KEY) == ["one"]
    assert own.authorizations == [f"Bearer {KEY}"] and foreign.authorizations == [""]


def test_a_refused_key_is_one_sentence_and_asking_again_helps(two_servers, picker, healthy):
    own, _ = two_servers
    own.status = 401
    app = healthy(picker("openai", own.url))
    assert len(app.warning) == 1 and "key" in app.warning[0].value
    own.status = 200
    app.run()
    assert len(own.authorizations) == 1  # a server that failed is not asked again at every click
    button(app, "Ask again").click().run()
    assert healthy(app).selectbox(key="live_model_menu_openai").options == ["one"] and not app.warning


def test_a_typed_address_is_said_to_get_no_key(two_servers, picker, texts, monkeypatch):
    own, foreign = two_servers
    monkeypatch.setenv("OPENAI_BASE_URL", own.url)
    app = picker("openai", foreign.url)
    assert "A configured key is not sent there" in texts(app)
    assert "not sent there" not in texts(choose(app, "openai", own.url))


def test_a_key_is_held_nowhere(two_servers, picker, healthy, monkeypatch, caplog, tmp_path):
    own, _ = two_servers
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment-0123456789abcdef")
    app = healthy(picker("openai", openai={"api_key": KEY, "base_url": own.url}))
    button(app, "Estimate cost").click().run()
    until(app, lambda a: a.error)  # this server lists a model and cannot answer
    job = jobs.registry().get(app.query_params["job"])
    session = app.session_state["leadline"]
    shown = str(app.main) + str(app.sidebar)
    state = repr(dataclasses.asdict(dataclasses.replace(session, run=None)))
    models = repr(list(jobs.registry()._models))
    for place in (shown, state, repr(job), str(dict(app.query_params)), caplog.text, models):
        assert KEY not in place and "sk-environment" not in place
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes()


def test_another_key_opens_the_model_anew(monkeypatch):
    opened = []
    monkeypatch.setattr(jobs, "open_llm", lambda kind, name, **options: opened.append(options) or object())
    registry = jobs.Registry()
    first = registry.model("openai", "m", {"base_url": "u"}, {"api_key": "one"})
    assert registry.model("openai", "m", {"base_url": "u"}, {"api_key": "one"}) is first
    assert registry.model("openai", "m", {"base_url": "u"}, {"api_key": "two"}) is not first
    assert registry.model("openai", "m", {"base_url": "v"}, {"api_key": "one"}) is not first
    assert [options["api_key"] for options in opened] == ["one", "two", "one"]


# Fetching


@pytest.fixture
def ollama(llama):
    with ollama_server(llama, library=(Model("llama3.2:3b"), Model("wanted:1b"))) as server:
        yield server


def test_a_model_that_is_missing_is_fetched_only_when_asked(ollama, picker, healthy, texts):
    app = healthy(picker("ollama", ollama.address))
    assert app.selectbox(key="live_model_menu_ollama").options == [MODEL]
    # Nothing chosen means the default, and the server lacks it.
    assert "Fetch llama3" in texts(app)
    assert "llama3.2:3b" not in ollama.models
    app.selectbox(key="live_model_menu_ollama").select(MODEL).run()
    assert "Fetch " not in texts(healthy(app))
    app.selectbox(key="live_model_menu_ollama").select(None).run()
    button(app, "Fetch llama3").click().run()
    until(app, lambda a: a.success)
    assert "llama3.2:3b" in ollama.models
    assert "Fetch " not in [b.label[:6] for b in healthy(app).button]
    assert app.selectbox(key="live_model_menu_ollama").options == ["llama3.2:3b", MODEL]


def test_a_model_nobody_has_is_told_in_one_sentence(ollama, picker, healthy, monkeypatch):
    monkeypatch.setitem(BACKENDS, "ollama", dataclasses.replace(BACKENDS["ollama"], default_model="no:such"))
    app = picker("ollama", ollama.address)
    button(app, "Fetch no").click().run()
    until(app, lambda a: a.error)
    assert len(healthy(app).error) == 1 and "check the name" in app.error[0].value
    assert button(app, "Fetch no")


def test_a_fetch_shows_its_progress_and_can_be_cancelled(ollama, picker, healthy, monkeypatch):
    closed = threading.Event()

    def slow(model, base_url=None):
        try:
            for done in range(0, 3000, 10):
                yield PullProgress(f"pulling {model}", done * 1_000_000, 3_000_000_000)
                time.sleep(0.05)
        finally:
            closed.set()

    monkeypatch.setitem(BACKENDS, "ollama", dataclasses.replace(BACKENDS["ollama"], pull=slow))
    app = picker("ollama", ollama.address)
    button(app, "Fetch llama3").click().run()
    until(
        app,
        lambda a: any(
            "of 3,000 MB" in bar.proto.text.replace("\\", "").replace("\N{NO-BREAK SPACE}", " ")
            for bar in a.get("progress")
        ),
    )
    button(app, "Cancel").click().run()
    until(app, lambda a: a.info)
    assert "was cancelled" in healthy(app).info[0].value and closed.is_set()
    assert button(app, "Fetch llama3")


def test_choices_hold_no_key():
    assert {field.name for field in dataclasses.fields(ModelChoice)} == {"backend", "model", "base_url"}
    assert not [
        field.name for field in dataclasses.fields(Session) if "key" in field.name and "run" not in field.name
    ]
