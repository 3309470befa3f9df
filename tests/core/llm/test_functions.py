import functools
from types import SimpleNamespace

import pytest

from core.errors import InputError, TransientError
from core.llm import CompletionCache
from core.llm.functions import FunctionLLM, answer_text, as_llm
from core.llm.prompts import FUNCTION_STYLE, STYLES, answer_messages, closed_book_messages, prompt_style
from core.llm.types import Completion, Message, Request
from core.pipeline.asking import Asker, RetryPolicy

PASSAGES = [(1, "", "one"), (2, "Title", "two"), (3, "", "drei ü 三")]


def request(question="q", passages=PASSAGES, seed=0):
    return Request(answer_messages(question, passages, FUNCTION_STYLE.name), seed=seed)


def test_the_style_keeps_passages_apart_and_is_not_offered_for_models():
    assert FUNCTION_STYLE.name not in STYLES
    assert prompt_style("function") is FUNCTION_STYLE
    messages = answer_messages("Wo?", PASSAGES, "function")
    assert [m.role for m in messages] == ["passage"] * 3 + ["user"]
    assert messages[1].content == '{"label": 2, "title": "Title", "text": "two"}'
    assert messages[-1].content == "Wo?"
    assert closed_book_messages("Wo?", "function") == messages[-1:]


def test_the_function_gets_the_question_and_the_very_objects():
    objects = [object(), object(), object()]
    seen = []
    llm = FunctionLLM(lambda question, passages: seen.append((question, passages)) or "a")
    llm.hand("q", PASSAGES, objects)
    [completion] = llm.generate([request(passages=PASSAGES[:1] + PASSAGES[2:])])
    assert seen[0][0] == "q"
    assert all(a is b for a, b in zip(seen[0][1], [objects[0], objects[2]], strict=True))
    assert (completion.text, completion.finish_reason, completion.prompt_tokens) == ("a", "stop", 0)


def test_passages_that_nobody_handed_over_are_texts():
    seen = []
    FunctionLLM(lambda question, passages: seen.extend(passages)).generate([request()])
    assert seen == ["one", "Title: two", "drei ü 三"]


def test_objects_belong_to_their_question():
    llm = FunctionLLM(lambda question, passages: passages[0])
    llm.hand("a", PASSAGES[:1], ["object of a"])
    llm.hand("b", PASSAGES[:1], ["object of b"])
    found = llm.generate([request("b", PASSAGES[:1]), request("a", PASSAGES[:1])])
    assert [c.text for c in found] == ["object of b", "object of a"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (" plain ", " plain "),
        (SimpleNamespace(content="of a message"), "of a message"),
        (SimpleNamespace(text="text first", content="x"), "text first"),
        (SimpleNamespace(text=lambda: "a method", content="of a message"), "of a message"),
        (SimpleNamespace(content=["a", {"type": "text", "text": "b"}, {"type": "image"}]), "ab"),
        (SimpleNamespace(response="of a response"), "of a response"),
        (SimpleNamespace(message=SimpleNamespace(content="inner")), "inner"),
        ({"answer": "of a chain"}, "of a chain"),
        (None, None),
        (5, None),
        ({"result": "of a chain", "source_documents": []}, "of a chain"),
        ({"replies": ["first", "second"]}, "first"),
        ({"replies": []}, None),
        ({"found": "x"}, None),
        (SimpleNamespace(content=[], response="of a response"), "of a response"),
        (SimpleNamespace(content=["a", 5, {"text": 6}, "b"]), "ab"),
        ({"replies": "no list", "message": "inner"}, "inner"),
        (SimpleNamespace(response=None), None),
    ],
)
def test_texts_of_answers(value, expected):
    assert answer_text(value) == expected


def test_a_message_that_holds_itself_has_no_text():
    odd = SimpleNamespace()
    odd.message = odd
    assert answer_text(odd) is None


def test_the_pieces_of_an_answer_are_joined_and_those_without_a_text_left_out():
    pieces = [{"text": "Pa"}, {"sources": []}, "ris"]
    llm = FunctionLLM(lambda question, passages: iter(pieces))
    stream = FunctionLLM(lambda question, passages: SimpleNamespace(response_gen=iter(pieces)))
    assert [one.generate([request()])[0].text for one in (llm, stream)] == ["Paris"] * 2
    assert (
        "got list_iterator"
        in FunctionLLM(lambda question, passages: iter([5])).generate([request()])[0].error
    )


def test_the_time_of_a_call_is_measured_where_the_answer_does_not_tell_it(monkeypatch):
    clock = iter([10.0, 12.5, 20.0, 20.25, 30.0, 31.0, 40.0, 44.0])
    monkeypatch.setattr("core.llm.functions.time", SimpleNamespace(perf_counter=clock.__next__))
    given = iter(["text", Completion("own", "stop", 7, 2, 0.0), Completion("own", "stop", 7, 2, 0.5), 5])
    found = FunctionLLM(lambda question, passages: next(given)).generate([request()] * 4)
    assert [one.latency for one in found] == [2.5, 0.25, 0.5, 4.0]
    assert [(one.prompt_tokens, one.completion_tokens) for one in found] == [(0, 0), (7, 2), (7, 2), (0, 0)]


def test_a_hundred_different_errors_are_kept_and_every_call_has_its_own():
    def answer(question, passages):
        raise ValueError(f"no. {question}")

    llm = FunctionLLM(answer)
    found = llm.generate([request(str(n), []) for n in range(102)])
    assert [one.error for one in found] == [f"answer raised ValueError: no. {n}" for n in range(102)]
    assert list(llm.errors) == [one.error for one in found[:100]]


def test_what_an_answer_may_be():
    given = iter(["  text ", None, Completion("own", "length", 7, 2, 0.5), 5, "a\ud800"])
    llm = FunctionLLM(lambda question, passages: next(given))
    found = llm.generate([request(seed=i) for i in range(5)])
    assert [c.text for c in found] == ["text", "", "own", "", "a\ufffd"]
    assert (found[2].finish_reason, found[2].prompt_tokens, found[2].latency) == ("length", 7, 0.5)
    assert found[1].error is None
    assert found[3].error == (
        "answer raised InputError: answer must return a text, got int; return the text that is in it."
    )


def test_what_it_raises_is_the_error_of_that_call_only():
    def answer(question, passages):
        if len(passages) == 2:
            raise ValueError("two are too few")
        return "fine"

    llm = FunctionLLM(answer)
    order = []
    found = llm.generate(
        [request(), request(passages=PASSAGES[:2]), request(passages=[])], lambda i, c: order.append(i)
    )
    assert [c.error for c in found] == [None, "answer raised ValueError: two are too few", None]
    assert found[1].finish_reason == "error"
    assert order == [0, 1, 2]
    assert isinstance(llm.errors["answer raised ValueError: two are too few"], ValueError)


def test_a_transient_error_is_tried_again_and_the_others_are_kept():
    tries = []

    def answer(question, passages):
        tries.append(len(passages))
        if len(passages) == 2 and tries.count(2) < 3:
            raise TransientError("busy", retry_after=0.0)
        return str(len(passages))

    asker = Asker(
        FunctionLLM(answer),
        CompletionCache(),
        RetryPolicy(first_wait=0.01, longest_wait=0.01),
        lambda: False,
        lambda n: None,
    )
    found = asker.ask([request(), request(passages=PASSAGES[:2]), request(passages=[])])
    assert [c.text for c in found] == ["3", "2", "0"]
    assert tries == [3, 2, 0, 2, 2]


def test_identity():
    def local(question, passages):
        return ""

    class Rag:
        def ask(self, question, passages):
            return ""

        def __call__(self, question, passages):
            return ""

    assert FunctionLLM(local).name.endswith("<locals>.local")
    assert FunctionLLM(Rag().ask).name.endswith("Rag.ask")
    assert FunctionLLM(Rag()).name.endswith("Rag")
    assert FunctionLLM(functools.partial(local, passages=[])).name.endswith("local")
    llm = FunctionLLM(local, name="my RAG")
    assert (llm.name, llm.kind, dict(llm.options)) == ("my RAG", "function", {"backend": "function"})
    assert llm.capabilities.parallel == 1
    assert llm.count_tokens(request().messages) > 0
    with pytest.raises(InputError, match="answer must be a function, got int"):
        FunctionLLM(5)


def test_a_transient_error_keeps_its_pause_and_no_secret():
    def answer(question, passages):
        raise TransientError("GET https://api.example/?key=1 is busy", retry_after=float(len(passages)))

    llm = FunctionLLM(answer)
    with pytest.raises(
        TransientError, match=r"answer raised TransientError: GET https://api.example/\?… is busy"
    ) as e:
        llm.generate([request(passages=[]), request(), request(passages=PASSAGES[:2])])
    assert e.value.retry_after == 3.0
    assert e.value.__cause__ in llm.errors.values()


@pytest.mark.parametrize("pauses", [(None, 0.5), (0.5, None)])
def test_a_pause_is_told_though_another_call_failed_without_one(pauses):
    given = iter(pauses)

    def answer(question, passages):
        raise TransientError("busy", retry_after=next(given))

    with pytest.raises(TransientError) as failed:
        FunctionLLM(answer).generate([request(), request()])
    assert failed.value.retry_after == 0.5


def test_what_stands_for_a_model():
    """`MCDropoutConfidence(ollama.Client())` and `ConformalRAG(print)` ended in an AttributeError."""
    import ollama

    llm = FunctionLLM(lambda question, passages: "")
    assert as_llm(llm) is llm
    here = as_llm(ollama.Client(host="http://127.0.0.1:1234"))
    assert (here.kind, here.name, here.address) == ("ollama", "llama3.2:3b", "http://127.0.0.1:1234")
    assert as_llm(ollama.AsyncClient(host="https://127.0.0.1:99")).address == "https://127.0.0.1:99"
    assert as_llm(ollama).kind == "ollama"
    assert (as_llm("llama3.2:1b").kind, as_llm("llama3.2:1b").name) == ("ollama", "llama3.2:1b")
    assert as_llm("ollama:qwen3:4b").name == "qwen3:4b"
    assert as_llm("embedded").kind == "embedded"


def test_functions_of_one_argument_and_of_two():
    prompt = Request((Message("user", "Context: a"), Message("assistant", "Answer:")))

    async def later(prompt):
        return f"later {prompt}"

    class Chat:
        def __call__(self, prompt, temperature=0.5):
            return str(temperature)

    assert as_llm(lambda prompt: f"<{prompt}>").generate([prompt])[0].text == "<Context: a>"
    assert as_llm(later).generate([prompt])[0].text == "later Context: a"
    assert as_llm(later).name.endswith("later")
    assert as_llm(lambda q, p: f"{q}|{p}").generate([prompt])[0].text == "Context: a|[]"
    assert as_llm(lambda *given: f"{len(given)}").generate([request()])[0].text == "2"
    whole = Request((Message("system", "Be brief."), *prompt.messages))
    assert as_llm(lambda prompt: prompt).generate([whole])[0].text == "Be brief.\n\nContext: a"


@pytest.mark.parametrize(
    ("function", "style"),
    [
        (lambda prompt: "", "short"),
        (lambda question, passages: "", "function"),
        (lambda prompt, temperature=0.5: "", "function"),
        (lambda question, passages, more: "", "function"),
        (lambda: "", "function"),
        (max, "function"),  # built in: it does not say what it takes
    ],
)
def test_only_a_function_that_takes_nothing_but_a_prompt_gets_the_prompt(function, style):
    assert as_llm(function).style == style


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (None, "None"),
        (5, "int"),
        ("", "''"),
        (" ", "' '"),
        (str, "type"),
        ({"model": "x"}, "dict"),
        (object(), "object"),
        (SimpleNamespace(chat=print), "SimpleNamespace"),
    ],
)
def test_what_is_no_model_is_refused_in_one_sentence(given, what):
    with pytest.raises(InputError, match=rf"^llm must be a language model.* got {what}; .*open_llm\(.*\)\.$"):
        as_llm(given, "llm")
