"""What a run of one question shows of how it was asked for: names, folders, caches, documents, models."""

from dataclasses import replace

import pytest

import core
from core.errors import BackendError, InputError
from core.llm import CompletionCache
from core.llm.types import Completion
from core.own_rag import analysis
from core.run import Run
from core.sources.question import as_passage
from tests.scripted import ScriptedLLM


def retrieve(question):
    return ["alpha", "beta gamma"]


def answer(question, passages):
    return " ".join(passages)


def run(questions=("q?",), **more):
    return core.analyze([*questions], **({"retrieve": retrieve, "answer": answer} | more))


def test_a_function_has_a_name_and_a_seed_but_no_tokens():
    own, named = run(), run(name="mine", parallel=1)
    assert (own.name, named.name) == ("Questions, answer", "mine")
    assert own.manifest["options"] | {"seed": 0, "closed_book": True, "repeats": 0} == own.manifest["options"]
    assert own.manifest["prompt"]["max_tokens"] is None
    tokens = [own.manifest["cost"][name] for name in ("calls", "prompt_tokens", "completion_tokens")]
    assert tokens == [4, None, None]


def test_a_model_has_a_prompt_and_tokens():
    found = run(answer=ScriptedLLM(lambda request: "alpha"))
    assert (found.name, found.manifest["prompt"]["style"]) == ("Questions, scripted", "short")
    assert found.manifest["prompt"]["max_tokens"] == 24
    assert found.manifest["cost"]["completion_tokens"] == 4
    full = run(answer=ScriptedLLM(lambda request: "alpha"), style="full", max_tokens=7)
    assert (full.manifest["prompt"]["style"], full.manifest["prompt"]["max_tokens"]) == ("full", 7)
    # A function that fails everywhere is the user's to mend; what a model says of each question is a result.
    failed = run(answer=ScriptedLLM(lambda request: Completion.failed("No.")))
    assert failed.queries["answer_status"].to_list() == ["error"]
    with pytest.raises(BackendError, match="answer raised ZeroDivisionError: division by zero"):
        run(answer=lambda question, passages: 1 / 0)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": 7}, "name must be a text that is not empty, got 7"),
        ({"name": " "}, "name must be a text that is not empty, got ' '"),
        ({"parallel": 0}, "parallel must be a whole number from 1, got 0"),
        ({"parallel": True}, "parallel must be a whole number from 1, got True"),
        ({"on": "ray"}, "on='ray' needs a language model; answer is a function"),
        ({"on": "ray://there:1"}, "on='ray://there:1' needs a language model"),
        ({"max_tokens": 5}, "max_tokens is for language models"),
        ({"cache": ":memory:"}, "cache needs a name"),
        ({"steps": "answers"}, "steps must be a list of"),
        ({"steps": ["claims"]}, "The first of steps must ask the questions"),
        ({"answer": None}, "answer is missing"),
    ],
)
def test_what_cannot_be_is_said_before_any_call(wrong, said):
    with pytest.raises(InputError) as error:
        run(**wrong)
    assert said in str(error.value)


def test_a_text_of_several_words_is_no_path():
    with pytest.raises(InputError, match="There is no file word"):
        core.analyze("word", answer=answer)
    with pytest.raises(InputError, match="got the text 'two words'"):
        core.analyze("two words", answer=answer)


def test_a_folder_takes_the_run_of_its_name_only(tmp_path):
    folder = tmp_path / "run"
    made = run(name="mine", save=folder)
    assert Run.load(folder).run_id == made.run_id
    assert run(name="mine", save=folder).run_id == made.run_id
    with pytest.raises(InputError, match="already holds another run, 'mine'"):
        run(name="other", save=folder)


def test_what_is_done_is_saved_before_the_run_has_ended(tmp_path):
    calls, found = [], []

    def looking(question, passages):
        calls.append(question)
        if len(calls) == 8:  # the last of the second question
            found.append(Run.load(tmp_path / "run").queries["answer"].to_list())
        return "alpha"

    run(["a?", "b?"], answer=looking, save=tmp_path / "run")
    assert len(found) == 1 and found[0][0] == "alpha" and found[0][1] != "alpha"


def test_calls_are_kept_where_they_are_asked_to_be(tmp_path):
    calls = []

    def counted(question, passages):
        calls.append(question)
        return "alpha"

    with CompletionCache(None) as cache:
        for _ in range(2):
            run(answer=counted, name="mine", cache=cache)
        assert len(cache) == len(calls) == 4
        assert run(answer=counted, name="another", cache=cache).manifest["cost"]["cached"] == 0
    for _ in range(2):
        run(answer=counted, name="mine", cache=tmp_path / "c.db")
    assert len(calls) == 12


def test_a_model_is_opened_by_its_name(monkeypatch):
    asked = []

    def opened(kind, model=None, **more):
        asked.append((kind, model))
        return ScriptedLLM(lambda request: "alpha")

    monkeypatch.setattr(analysis, "open_llm", opened)
    run(answer="ollama:llama3.2:3b")
    run(answer="ollama")
    assert asked == [("ollama", "llama3.2:3b"), ("ollama", None)]


def test_shared_documents_are_for_questions_without_evidence():
    own = {"question": "own?", "passages": ["mine"]}
    found = core.analyze(["bare?", own], documents=["shared text"], answer=answer)
    texts = found.passages.groupby("query_id", sort=False)["text"].agg(list)
    assert texts.to_list() == [["shared text"], ["mine"]]
    (bare,) = analysis.read_questions(["a?"], None, retrieved_elsewhere=True).questions
    given = replace(bare, query_id="given", passages=(as_passage("mine", 1),))
    again = core.analyze([bare, given], documents=["shared text"], answer=answer)
    assert again.passages["text"].to_list() == ["shared text", "mine"]


def test_where_nothing_is_retrieved_the_first_reason_is_given():
    def failing(question):
        raise ValueError(question)

    with pytest.raises(BackendError, match="first: retrieve raised ValueError: a"):
        run(["a?", "b?"], retrieve=failing)
