"""The Ollama back end against a server with Ollama's API that generates through a real llama.cpp server."""

import base64
import json
import threading
import time
from dataclasses import replace

import pytest

from core.errors import BackendError, Cancelled, InputError, TransientError
from core.influence.step import InfluenceStep
from core.llm import BACKENDS, CompletionCache, Message, Request, open_llm, request_key
from core.llm.backends import PullProgress
from core.llm.ollama.server import Server, Unreadable, find_server, full_name, server_address
from core.llm.prompts import answer_messages
from core.llm.remote import Overloaded
from core.pipeline import RetryPolicy, RunOptions
from tests.live_runs import live_run
from tests.servers.fault_proxy import Fault, fault_proxy, reply, reset, scripted, truncate
from tests.servers.ollama_server import MODEL, Habits, Model, ollama_server

PASSAGES = [
    (1, "Eiffel Tower", "The Eiffel Tower in Paris was completed in 1889. It is 330 metres tall."),
    (2, "Tea", "Tea is made from the leaves of an evergreen shrub."),
]
SHORT = Request(answer_messages("When was the Eiffel Tower completed?", PASSAGES[:1]), stop=("\n",))
FREE = Request((Message("user", "Tell me about towers."),), max_tokens=8)
# About 150 tokens for the model, more than 4,096 for a server that counts each one 45 times.
FACTS = " ".join(
    f"In {1900 + i} a tall stone tower was finished near the old harbour of town {i}." for i in range(5)
)
FINE = 45
LONG = Request(
    (Message("user", f"The code word is zebra. {FACTS} Which tower is the oldest?"),), max_tokens=8
)
CHAT = "/api/chat"


@pytest.fixture(scope="module")
def server(llama):
    with ollama_server(llama) as server:
        yield server


@pytest.fixture(autouse=True)
def as_it_was(request):
    """Habits that a test gives the shared server end with it."""
    yield
    if "server" in request.fixturenames:
        server = request.getfixturevalue("server")
        server.habits, server.models = Habits(), {MODEL: Model(MODEL)}


@pytest.fixture
def llm(server):
    return open_llm("ollama", MODEL, base_url=server.address)


def ask(llm, request):
    return llm.generate([request])[0]


def with_habits(server, **habits):
    server.habits = Habits(**habits)


# ---- answers


def test_it_answers_in_a_few_words(server, llm):
    seen = []
    done = llm.generate([SHORT], lambda i, c: seen.append((i, c)))[0]
    assert seen == [(0, done)]
    assert "1889" in done.text
    assert "\n" not in done.text
    assert (done.finish_reason, done.error, done.logprobs) == ("stop", None, None)
    assert done.prompt_tokens == server.chats[-1].tokens
    assert 0 < done.completion_tokens <= SHORT.max_tokens
    assert 0 < done.latency < 60


def test_who_it_is(server, llm):
    assert llm.kind == "ollama"
    assert llm.name == MODEL
    assert dict(llm.options) == {"backend": "ollama", "digest": Model(MODEL).digest}
    can = llm.capabilities
    assert (can.token_logprobs, can.json_schema, can.seed, can.answer_logprob) == (True, True, True, False)
    assert (can.parallel, can.context_length) == (4, 8192)
    assert BACKENDS["ollama"].default_model == open_llm("ollama", base_url=server.address).name


def test_the_same_weights_on_another_host_share_the_cache_and_other_weights_do_not(llama, server, llm):
    with ollama_server(llama) as other, ollama_server(llama, models=(Model(MODEL, version=2),)) as newer:
        same = open_llm("ollama", MODEL, base_url=other.address)
        different = open_llm("ollama", MODEL, base_url=newer.address)
        assert request_key(same, SHORT) == request_key(llm, SHORT)
        assert request_key(different, SHORT) != request_key(llm, SHORT)


def test_the_same_seed_gives_the_same_sample_and_others_give_others(server, llm):
    with_habits(server, exact=True)
    requests = [replace(FREE, temperature=1.3, seed=seed) for seed in (1, 2, 3, 1)]
    first, second, third, again = (done.text for done in llm.generate(requests))
    assert first == again
    assert len({first, second, third}) > 1


def test_an_answer_follows_its_schema(llm):
    schema = {
        "type": "object",
        "properties": {"year": {"type": "integer"}},
        "required": ["year"],
        "additionalProperties": False,
    }
    done = ask(llm, replace(SHORT, schema=json.dumps(schema), stop=()))
    answer = json.loads(done.text)
    assert list(answer) == ["year"]
    assert type(answer["year"]) is int


def test_log_probabilities_are_those_of_the_answer_alone(server, llm):
    with_habits(server, exact=True)
    free = replace(SHORT, stop=(), logprobs=True, max_tokens=12)
    whole, short = llm.generate([free, replace(free, stop=(" ",))])
    assert len(whole.logprobs) == whole.completion_tokens
    assert all(value <= 0 for value in whole.logprobs)
    assert whole.text.startswith(short.text)
    assert 0 < len(short.logprobs) < len(whole.logprobs)
    assert whole.logprobs[: len(short.logprobs)] == pytest.approx(short.logprobs, abs=1e-3)
    assert llm.capabilities.token_logprobs


def test_a_server_without_log_probabilities_is_noticed(server, llm):
    with_habits(server, gives_logprobs=False)
    assert ask(llm, replace(SHORT, logprobs=True)).logprobs is None
    assert not llm.capabilities.token_logprobs


def test_half_a_character_does_not_sink_a_run(llm):
    assert ask(llm, replace(FREE, messages=(Message("user", "Say \ud800 hello"),))).error is None


# ---- models


def test_the_models_of_the_server(server):
    server.models = {m.name: m for m in (Model("qwen3:4b"), Model("nomic:latest"))}
    assert BACKENDS["ollama"].list_models(server.address) == ["qwen3:4b", "nomic:latest"]


def test_a_model_is_named_as_ollama_lists_it(server):
    server.models = {m.name: m for m in (Model("Nomic:latest"),)}
    assert (
        open_llm("ollama", "nomic", base_url=server.address).options["digest"] == Model("Nomic:latest").digest
    )
    assert full_name("llama3.2:3b") == "llama3.2:3b"
    assert full_name("registry:5000/me/model") == "registry:5000/me/model:latest"


def test_a_model_is_fetched_with_progress_and_then_answers(llama):
    new = Model("smollm2:latest")
    with ollama_server(llama, models=(), library=(new,)) as server:
        llm = open_llm("ollama", "smollm2", base_url=server.address)
        with pytest.raises(BackendError) as caught:
            llm.options  # noqa: B018
        assert str(caught.value) == (
            f"The model smollm2:latest is not on the Ollama server at {server.address}; fetch it with "
            "`ollama pull smollm2:latest`, or with the button on the Live page."
        )
        steps = list(BACKENDS["ollama"].pull("smollm2", server.address))
        assert steps[0] == PullProgress("pulling manifest")
        layer = f"pulling {new.digest[:12]}"
        assert [(s.done, s.total) for s in steps if s.what == layer] == [
            (n, 1_000_000) for n in range(0, 1_000_001, 100_000)
        ]
        assert [s.what for s in steps[-3:]] == ["verifying sha256 digest", "writing manifest", "success"]
        assert ask(llm, FREE).text


def test_a_model_that_does_not_exist_cannot_be_fetched(server):
    with pytest.raises(
        BackendError, match=r"cannot fetch no-such:1b \(pull model manifest: file does not"
    ) as caught:
        list(BACKENDS["ollama"].pull("no-such:1b", server.address))
    assert "check the name at ollama.com/library" in str(caught.value)


def test_who_stops_looking_stops_the_download(llama):
    with ollama_server(llama, models=(), library=(Model("big:7b"),)) as server:
        steps = BACKENDS["ollama"].pull("big:7b", server.address)
        while not next(steps).done:
            pass
        steps.close()
        deadline = time.monotonic() + 10
        while not server.pulls_stopped and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.pulls_stopped == ["big:7b"]
        assert BACKENDS["ollama"].list_models(server.address) == []


def test_a_download_that_ends_too_soon_is_no_success():
    cut_off = reply(200, b'{"status": "pulling manifest"}\n')
    broken = reply(200, b"<html>")
    with fault_proxy(None, scripted([cut_off, broken])) as proxy:
        with pytest.raises(BackendError, match="stopped before x:latest was fetched"):
            list(BACKENDS["ollama"].pull("x", proxy.address))
        with pytest.raises(BackendError, match="a reply that cannot be read; x:latest was not fetched"):
            list(BACKENDS["ollama"].pull("x", proxy.address))


def test_a_model_that_was_removed_meanwhile(server, llm):
    assert llm.options
    server.models = {}
    with pytest.raises(BackendError, match="is not on the Ollama server") as caught:
        ask(llm, FREE)
    assert not isinstance(caught.value, TransientError)


# ---- addresses and settings


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, "http://127.0.0.1:11434"),
        ("gpu-box", "http://gpu-box:11434"),
        ("gpu-box:8000", "http://gpu-box:8000"),
        ("http://gpu-box/", "http://gpu-box:80"),
        ("https://me:secret@gpu-box/ollama/", "https://gpu-box:443/ollama"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("[::1]:9", "http://[::1]:9"),
        ("[::]:9", "http://[::1]:9"),
        ("HTTPS://gpu-box", "https://gpu-box:443"),
    ],
)
def test_addresses(given, expected, monkeypatch):
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    assert server_address(given) == expected
    monkeypatch.setenv("OLLAMA_HOST", given or "")
    assert server_address() == expected
    assert BACKENDS["ollama"].address(given) == expected
    assert "secret" not in repr(find_server(given))


@pytest.mark.parametrize("given", ["http://a:b", "ftp://me:secret@host", "no host", "http://[::1"])
def test_no_address(given):
    with pytest.raises(InputError, match=r"must look like http://127\.0\.0\.1:11434") as caught:
        server_address(given)
    assert "secret" not in str(caught.value)


def test_a_password_in_the_address_is_sent_and_shown_nowhere(server):
    refusal = reply(401, {"error": "unauthorized"})
    with fault_proxy(server.address, scripted([], then=refusal, path=CHAT)) as proxy:
        url = proxy.address.replace("://", "://me:s%40cret@")
        llm = open_llm("ollama", MODEL, base_url=url)
        with pytest.raises(BackendError, match="denies access") as caught:
            ask(llm, FREE)
        sent = {e.headers.get("authorization") for e in proxy.log}
        shown = [str(caught.value), repr(llm.__dict__), json.dumps(dict(llm.options)), llm.address]
    assert sent == {"Basic " + base64.b64encode(b"me:s@cret").decode()}
    assert proxy.address in shown[0]
    assert not any("cret" in text for text in shown)


@pytest.mark.parametrize(
    "option", [{"timeout": 0}, {"parallel": 0}, {"context": 0}, {"context": -1}, {"colour": "red"}]
)
def test_settings_that_make_no_sense(option):
    with pytest.raises(InputError, match=next(iter(option))):
        open_llm("ollama", **option)
    open_llm("ollama", context=1, parallel=1, timeout=0.5)


def test_a_server_that_is_not_there():
    with fault_proxy() as proxy:
        proxy.down()
        llm = open_llm("ollama", MODEL, base_url=proxy.address)
        message = f"Ollama cannot be reached at {proxy.address}; start it with `ollama serve`."
        for action in (
            lambda: llm.options,
            lambda: ask(llm, FREE),
            lambda: BACKENDS["ollama"].list_models(proxy.address),
        ):
            with pytest.raises(BackendError) as caught:
                action()
            assert str(caught.value) == message
        assert llm.capabilities.context_length is None
        with pytest.raises(BackendError, match="start it with `ollama serve`; x:latest was not fetched"):
            list(BACKENDS["ollama"].pull("x", proxy.address))


@pytest.mark.parametrize(
    ("action", "seconds"),
    [
        (lambda backend: backend.list_models("gpu-box"), 60.0),
        (lambda backend: list(backend.pull("x", "gpu-box")), 600.0),  # a large model is checked for minutes
    ],
)
def test_how_long_a_server_may_take_to_list_its_models_and_to_fetch_one(action, seconds, monkeypatch):
    given = []

    def client(self, limit):
        given.append(limit)
        raise ConnectionError

    monkeypatch.setattr(Server, "client", client)
    with pytest.raises(BackendError, match="cannot be reached"):
        action(BACKENDS["ollama"])
    assert given == [seconds]


# ---- prompts that are longer than the context


@pytest.fixture(scope="module")
def whole_answer(server):
    """What the model says to the long prompt when it has read all of it."""
    with_habits(server, exact=True)
    return ask(open_llm("ollama", MODEL, base_url=server.address), LONG).text


KINDS_OF_OLLAMA = {
    "refuses": {},
    "leaves half": {"honours_truncate": False},
    "leaves all it can hold": {"honours_truncate": False, "overflow": "full"},
}


@pytest.mark.parametrize("habits", KINDS_OF_OLLAMA.values(), ids=KINDS_OF_OLLAMA)
def test_a_cut_prompt_is_asked_again_with_more_context(server, llm, whole_answer, habits):
    with_habits(server, token_weight=FINE, exact=True, **habits)
    server.loads.clear()
    done = ask(llm, LONG)
    first, *_, last = server.chats[-2:]
    assert first.num_ctx == 4096 < first.tokens
    assert first.read < first.tokens
    assert last.num_ctx == 8192
    assert (done.text, done.error) == (whole_answer, None)
    assert done.prompt_tokens == last.read == last.tokens
    # Small prompts that follow use the same context: the model is not loaded again.
    ask(llm, FREE)
    assert server.loads == [4096, 8192]
    # And it has learned: how many tokens this server makes of such texts.
    assert 0.5 < llm.count_tokens(LONG.messages) / done.prompt_tokens < 1.5


@pytest.mark.parametrize("habits", KINDS_OF_OLLAMA.values(), ids=KINDS_OF_OLLAMA)
def test_a_prompt_beyond_the_models_limit_is_never_answered(server, llm, habits):
    server.models = {MODEL: Model(MODEL, context_length=4096)}
    with_habits(server, token_weight=FINE, **habits)
    done = ask(llm, LONG)
    assert (done.text, done.finish_reason) == ("", "error")
    length = f"{server.chats[-1].tokens:,}" if not habits else "more than 4,088"
    assert done.error == (
        f"The prompt has {length} tokens and the answer may take 8, but the model reads 4,096 in all: "
        "use fewer or shorter passages."
    )
    assert ask(llm, FREE).error is None


def test_earlier_turns_that_were_left_out_are_noticed(server):
    with_habits(server, honours_truncate=False)
    llm = open_llm("ollama", MODEL, base_url=server.address, context=120)
    talk = (*LONG.messages, Message("assistant", "The first one."), Message("user", "What is the code word?"))
    done = ask(llm, replace(LONG, messages=talk))
    chat = server.chats[-1]
    assert chat.read < 100 < 120 < chat.tokens
    assert (done.text, done.finish_reason) == ("", "error")
    assert "more than 112 tokens" in done.error


def test_an_answer_that_pushes_its_prompt_out_of_the_context_is_refused(server, llm):
    tokens = ask(llm, LONG).prompt_tokens
    server.models = {MODEL: Model(MODEL, context_length=tokens + 7)}
    tight = open_llm("ollama", MODEL, base_url=server.address)
    assert "the answer may take 8" in ask(tight, LONG).error
    assert ask(tight, replace(LONG, max_tokens=7)).error is None


def test_memory_that_is_short(server):
    llm = open_llm("ollama", MODEL, base_url=server.address, context=4096)
    with_habits(server, token_weight=FINE)
    assert "this run lets the model read 4,096 in all" in ask(llm, LONG).error
    assert llm.capabilities.context_length == 4096
    llm = open_llm("ollama", MODEL, base_url=server.address)
    with_habits(server, token_weight=FINE, memory_for=4096)
    with pytest.raises(
        BackendError, match=r"too little memory for smollm2:135m \(model requires more"
    ) as caught:
        ask(llm, LONG)
    assert not isinstance(caught.value, TransientError)
    assert ask(llm, FREE).text


def test_a_server_that_does_not_count_what_it_remembers_is_not_believed(server, llm):
    with_habits(server, counts_cached=False)
    request = replace(FREE, messages=(Message("user", "Tell me about clocks."),))
    assert ask(llm, request).error is None
    again = ask(llm, request)
    assert (again.text, again.finish_reason) == ("", "error")
    assert "does not report how many prompt tokens it read" in again.error


# ---- models that think


def test_a_model_that_thinks_is_told_not_to(server, llm):
    server.models = {MODEL: Model(MODEL, capabilities=("completion", "thinking"))}
    done = ask(llm, SHORT)
    assert server.chats[-1].body["think"] is False
    assert "1889" in done.text


def test_thinking_that_leaves_no_room_for_an_answer_is_said(server, llm):
    server.models = {MODEL: Model(MODEL, capabilities=("completion", "thinking"))}
    with_habits(server, thinks_anyway=True, thought=8)
    thinking, answered = llm.generate([FREE, replace(FREE, max_tokens=16, logprobs=True)])
    assert (thinking.text, thinking.finish_reason, thinking.completion_tokens) == ("", "reasoning", 8)
    assert answered.text
    assert answered.finish_reason == "length"
    assert len(answered.logprobs) == 8


@pytest.mark.parametrize(
    ("said", "reason", "text", "expected"),
    [
        ("<think>In 1889,\n I think.</think>\n\nAnswer: 1889\nMore", "stop", "1889", "stop"),
        ("<think>In 1889, I", "length", "", "reasoning"),
        ("", "stop", "", "stop"),
        ("", "length", "", "length"),
    ],
)
def test_thoughts_are_no_part_of_an_answer(server, said, reason, text, expected):
    line = {
        "model": MODEL,
        "created_at": "2026-11-22T00:00:00Z",
        "message": {"role": "assistant", "content": said},
        "done": True,
        "done_reason": reason,
        "prompt_eval_count": 90,
        "eval_count": 9,
    }
    with fault_proxy(server.address, scripted([reply(200, line)], path=CHAT)) as proxy:
        done = ask(open_llm("ollama", MODEL, base_url=proxy.address), SHORT)
    assert (done.text, done.finish_reason) == (text, expected)


# ---- servers that fail


@pytest.mark.parametrize(
    ("habit", "message"),
    [
        ("break_off_after", "connection to Ollama at .* broke"),
        ("end_after", "stopped in the middle of an answer"),
        ("error_after", r"failed \(an error was encountered while running the model: unexpected EOF\)"),
        ("garbage_after", "sent a reply that cannot be read"),
    ],
)
def test_half_an_answer_is_none(server, llm, habit, message):
    with_habits(server, **{habit: 3})
    with pytest.raises(TransientError, match=message):
        ask(llm, FREE)
    with_habits(server)
    assert ask(llm, FREE).finish_reason == "length"


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        (truncate(0.5), TransientError, "broke"),
        (reset(0.5), TransientError, "broke"),
        (Fault("hang_up"), TransientError, "broke"),
        (reply(200, [1]), Unreadable, "cannot be read"),
        (reply(200, {"done": True}), Unreadable, "cannot be read"),
        (reply(500, {"error": "llama runner process has terminated"}), TransientError, "runner process"),
        (reply(502, b"<html>bad gateway"), TransientError, "bad gateway"),
        (reply(503, {"error": "server busy"}), Overloaded, r"is busy \(server busy\)"),
        (reply(429, {"error": "too many requests"}), Overloaded, "is busy"),
        (reply(401, {"error": "unauthorized"}), BackendError, r"denies access \(unauthorized\)"),
        (reply(404, b"404 page not found"), BackendError, "There is no Ollama server at"),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_what_a_failure_means(server, fault, kind, message):
    # What cannot be read as a stream is asked for once more without streaming.
    faults = [fault, fault] if kind is Unreadable else [fault]
    with fault_proxy(server.address, scripted(faults, path=CHAT)) as proxy:
        llm = open_llm("ollama", MODEL, base_url=proxy.address)
        with pytest.raises(BackendError, match=message) as caught:
            ask(llm, FREE)
        assert type(caught.value) is kind
        assert ask(llm, FREE).text


@pytest.mark.parametrize(
    "fault",
    [
        reply(400, {"error": "invalid options: " + 500 * "x"}),
        reply(200, {"error": "prediction aborted, token repeat limit reached"}),
    ],
)
def test_a_call_that_will_never_succeed_is_not_repeated(server, fault):
    with fault_proxy(server.address, scripted([fault], path=CHAT)) as proxy:
        done = ask(open_llm("ollama", MODEL, base_url=proxy.address), FREE)
    assert (done.text, done.finish_reason) == ("", "error")
    assert done.error.startswith("Ollama ")
    assert len(done.error) < 400


def test_a_full_queue_is_told_from_other_failures(server, llm):
    with_habits(server, queue=1)
    with pytest.raises(Overloaded, match="maximum pending requests exceeded"):
        llm.generate([FREE, replace(FREE, seed=1), replace(FREE, seed=2)])


def test_a_server_that_does_not_answer_in_time(server):
    with fault_proxy(server.address, scripted([Fault("delay", seconds=5)], path=CHAT)) as proxy:
        llm = open_llm("ollama", MODEL, base_url=proxy.address, timeout=0.3)
        with pytest.raises(Overloaded, match=r"in 0\.3 s"):
            ask(llm, FREE)


def test_a_cancel_ends_the_call_on_the_server_too(server, llm):
    long = replace(FREE, max_tokens=2000)
    started = threading.Event()
    server.chats.clear()

    def cancelled():
        if server.chats:
            started.set()
        return started.is_set()

    begin = time.monotonic()
    with pytest.raises(Cancelled):
        llm.generate([long], cancelled=cancelled)
    assert started.is_set()
    assert time.monotonic() - begin < 10
    deadline = time.monotonic() + 10
    while server.running and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.running == 0
    assert not server.chats[0].finished


# ---- whole runs


@pytest.fixture
def make_questions():
    from core.sources.dataset import read_dataset

    def make(n):
        rows = [
            {
                "id": f"q{i}",
                "question": f"Which year was tower {i} built?",
                "passages": [
                    {"id": "a", "title": f"Tower {i}", "text": f"Tower {i} was built in {1900 + i}."},
                    {"id": "b", "title": "Tea", "text": "Tea is made from leaves."},
                ],
                "answers": [str(1900 + i)],
            }
            for i in range(n)
        ]
        return read_dataset("\n".join(map(json.dumps, rows)).encode(), "towers.jsonl")

    return make


QUICK = RetryPolicy(attempts=5, first_wait=0.05, longest_wait=0.2, budget=60)


def test_five_questions_give_a_run_of_the_same_shape_as_over_the_openai_api(llama, llm, make_questions):
    dataset, step = make_questions(5), InfluenceStep(closed_book=False, max_tokens=3)
    other = open_llm("openai", "smollm2-135m", base_url=f"{llama}/v1", api_key="none")
    runs = [
        live_run(dataset, model, options=RunOptions(k=2), step=step, retry=QUICK) for model in (llm, other)
    ]
    ours, theirs = (
        {name: (list(table.columns), table.shape, list(table.index)) for name, table in run.tables.items()}
        for run in runs
    )
    assert ours == theirs
    assert set(runs[0].queries["answer_status"]) <= {"answered", "empty"}
    # The same weights read the same prompts.
    assert list(runs[0].queries["prompt_tokens"]) == list(runs[1].queries["prompt_tokens"])
    assert runs[0].manifest["model"] == {
        "backend": "ollama",
        "name": MODEL,
        "options": dict(llm.options),
    }


def test_a_restart_in_the_middle_of_a_run_loses_nothing(server, make_questions):
    dataset, cache = make_questions(2), CompletionCache()
    with fault_proxy(server.address) as proxy:
        llm = open_llm("ollama", MODEL, base_url=proxy.address)

        def restart():
            while len(cache) < 2:
                time.sleep(0.01)
            with proxy.outage():
                time.sleep(0.1)

        other = threading.Thread(target=restart)
        other.start()
        step = InfluenceStep(max_tokens=4)
        run = live_run(dataset, llm, cache, RunOptions(k=2), step, retry=QUICK)
        other.join()
        whole = [e for e in proxy.requests(CHAT) if e.delivered]
    assert list(run.queries["answer_status"]) == ["answered"] * 2
    # Nothing that was answered was asked again.
    assert len({e.body for e in whole}) == len(whole) == len(cache)
