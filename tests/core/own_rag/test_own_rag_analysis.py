"""`core.analyze` with plain functions: what they get, what comes out, what their failures cost."""

import io
import json
import subprocess
import sys
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import core
from core.claims.step import ClaimsStep
from core.diagnosis import Diagnosis
from core.errors import BackendError, InputError
from core.influence import analyse
from core.influence.step import InfluenceStep
from core.llm import BACKENDS, CompletionCache
from core.llm.types import Completion
from core.losses.arms import ARMS, Arm
from core.losses.step import LossesStep
from core.run import Run
from core.sources.dataset import load_dataset
from tests.scripted import ScriptedLLM

ROOT = Path(__file__).parents[3]
DOCS = ["a1", "b1 b2 b3", "c1 c2 c3 c4 c5 c6"]


def join(question, passages):
    return " ".join(passages)


def boom(*arguments):
    raise KeyError("user bug")


def test_influence_worked_out_by_hand():
    run = core.analyze(["Which?"], retrieve=lambda question: DOCS, answer=join)
    found = analyse(run)
    # Ten words; without a passage of n words ROUGE-L has precision 1 and recall (10 - n) / 10, so
    # influence = 1 - 2 (10 - n) / (20 - n) = n / (20 - n).
    expected = [float(Fraction(n, 20 - n)) for n in (1, 3, 6)]
    assert found.passages["influence"].tolist() == pytest.approx(expected)
    assert found.passages["influence_rank"].tolist() == [3.0, 2.0, 1.0]
    assert found.queries["rho"].tolist() == [-1.0]
    assert found.queries["dominance"][0] == pytest.approx(expected[2] / sum(expected))
    assert run.passages["text"].tolist() == DOCS
    assert run.passages["retrieval_rank"].tolist() == [1.0, 2.0, 3.0]
    assert run.queries["answer"].tolist() == ["a1 b1 b2 b3 c1 c2 c3 c4 c5 c6"]
    assert run.queries["closed_book_answer"].tolist() == [""]
    assert run.manifest["complete"]


def test_an_answer_from_one_passage_alone():
    run = core.analyze(["Which?"], retrieve=lambda q: DOCS, answer=lambda q, p: max(p, key=len, default=""))
    found = analyse(run).passages
    assert found["influence"].tolist() == [0.0, 0.0, 1.0]
    assert run.passages["ablated_answer"].tolist() == [DOCS[2], DOCS[2], DOCS[1]]


def test_calls_come_in_order_with_the_very_objects_in_the_callers_thread():
    class Chunk:
        def __init__(self, text):
            self.text = text

    chunks = [Chunk(text) for text in ("x", "y", "x")]
    calls, threads = [], set()

    def retrieve(question):
        calls.append(question)
        threads.add(threading.get_ident())
        return chunks

    def answer(question, passages):
        calls.append((question, [next(i for i, c in enumerate(chunks) if c is p) for p in passages]))
        threads.add(threading.get_ident())
        return "a"

    core.analyze(["one?", "two?"], retrieve=retrieve, answer=answer, repeats=2)
    subsets = [[0, 1, 2], [1, 2], [0, 2], [0, 1], [0, 1, 2], [0, 1, 2], []]
    asked = [(question, subset) for question in ("one?", "two?") for subset in subsets]
    assert calls == ["one?", "two?", *asked]
    assert threads == {threading.get_ident()}


@given(st.lists(st.text(max_size=8), min_size=1, max_size=4))
@settings(max_examples=25)
def test_any_texts_are_left_out_one_by_one(texts):
    seen = []
    run = core.analyze(
        ["q"], retrieve=lambda q: texts, answer=lambda q, p: seen.append(p) or "|".join(p), closed_book=False
    )
    assert seen == [texts] + [texts[:i] + texts[i + 1 :] for i in range(len(texts))]
    assert len(run.passages) == len(texts)
    assert run.queries["answer_status"][0] != "error"


def test_ids_fields_and_references_of_questions():
    run = core.analyze(
        [
            "first?",
            {"question": "second?", "id": "mine", "answers": ("a1",), "gold": ["b2 b3"], "passages": ["no"]},
            {"query": "third?", "documents": 5, "kind": "hard", "language": "en"},
        ],
        retrieve=lambda question: DOCS,
        answer=join,
    )
    assert run.queries["query_id"].tolist() == ["q0001", "mine", "q0003"]
    assert run.queries["question"].tolist() == ["first?", "second?", "third?"]
    assert list(run.queries["reference_answers"][1]) == ["a1"]
    assert run.queries["kind"].tolist()[2] == "hard"
    marks = run.passages.set_index("query_id")["is_gold"]
    assert marks["mine"].tolist() == [False, True, False]
    assert marks["q0001"].isna().all()


def test_gold_that_was_not_retrieved_is_missed_evidence_and_the_rest_is_unknown():
    run = core.analyze(
        [{"question": "found?", "gold": ["b2"]}, {"question": "missed?", "gold": ["z9"]}, "none?"],
        retrieve=lambda question: DOCS,
        answer=join,
    )
    # There is more gold than was retrieved only where none was; elsewhere nobody counted it.
    assert run.queries["n_gold"].tolist() == [pd.NA, 1, pd.NA]
    found = analyse(run)
    assert found.queries["missed_evidence"].tolist() == [False, True, False]
    assert found.testable["missed_evidence"] == 1


def test_what_the_manifest_says(tmp_path):
    def my_retriever(question):
        return DOCS

    run = core.analyze(["q"], retrieve=my_retriever, answer=join, k=2, seed=3)
    facts = run.manifest
    assert facts["source"] == "live"
    assert facts["model"] == {"backend": "function", "name": "join", "options": {"backend": "function"}}
    assert facts["retriever"]["name"] == facts["options"]["retriever"] == "function"
    assert facts["retriever"]["function"].endswith("my_retriever")
    assert (facts["name"], facts["retriever"]["k"], facts["options"]["seed"]) == ("Questions, join", 2, 3)
    assert facts["cost"]["calls"] == 4
    # A function does not say how many tokens its model read.
    assert facts["cost"]["prompt_tokens"] is None and facts["prompt"]["max_tokens"] is None
    assert run.queries[["prompt_tokens", "completion_tokens"]].isna().all(axis=None)
    assert core.analyze(["q"], retrieve=my_retriever, answer=join, name="Mine").name == "Mine"
    assert Run.load(run.save(tmp_path / "run")).queries.equals(run.queries)


def test_the_digest_covers_what_was_retrieved():
    def digest(passages):
        run = core.analyze(["q"], retrieve=lambda q: passages, answer=lambda q, p: "a")
        return run.manifest["dataset"]["digest"], run.run_id

    assert digest(DOCS) == digest(list(DOCS))
    assert len({digest(DOCS), digest(DOCS[:2]), digest(DOCS[::-1]), digest([(d, 1.0) for d in DOCS])}) == 4


def test_completions_keep_their_tokens():
    run = core.analyze(
        ["q"], retrieve=lambda q: DOCS, answer=lambda q, p: Completion("a", "stop", 12, 3, 0.5)
    )
    assert run.queries[["prompt_tokens", "completion_tokens", "latency"]].iloc[0].tolist() == [12, 3, 0.5]
    assert run.manifest["cost"]["prompt_tokens"] == 12 * 5


@pytest.mark.parametrize(
    "returned",
    [
        lambda: (text for text in DOCS),
        lambda: tuple(DOCS),
        lambda: dict.fromkeys(DOCS).keys(),
        lambda: iter([*DOCS, "and more"]),
        lambda: [(text, 1.0 / i) for i, text in enumerate(DOCS, start=1)],
        lambda: [{"text": text, "id": f"d{i}"} for i, text in enumerate(DOCS)],
    ],
)
def test_retrieve_may_return_anything_that_can_be_gone_through(returned):
    run = core.analyze(["q"], retrieve=lambda q: returned(), answer=lambda q, p: "a", k=3)
    assert run.passages["text"].tolist() == DOCS


def test_no_more_than_k_are_taken_even_of_an_endless_generator():
    def endless(question):
        n = 0
        while True:
            n += 1
            yield f"passage {n}"

    run = core.analyze(["q"], retrieve=endless, answer=join, k=2)
    assert run.passages["text"].tolist() == ["passage 1", "passage 2"]


def test_repeated_and_empty_passages_stay_what_they_are():
    run = core.analyze(["q"], retrieve=lambda q: ["x", "x", ""], answer=lambda q, p: f"{len(p)} of them")
    assert run.passages["text"].tolist() == ["x", "x", ""]
    assert run.passages["ablated_answer"].tolist() == ["2 of them"] * 3


def test_unicode_goes_through_unchanged():
    texts = ["Zürich liegt am See", "北京是首都", "không có gì", "👩‍👩‍👧 עברית"]
    run = core.analyze(["Où? 何処?"], retrieve=lambda q: texts, answer=lambda q, p: f"{q} {p[0]}" if p else q)
    assert run.passages["text"].tolist() == texts
    assert run.queries["answer"][0] == "Où? 何処? Zürich liegt am See"
    assert run.passages["ablated_answer"][0] == "Où? 何処? 北京是首都"


def test_equal_questions_are_asked_once():
    calls = []
    run = core.analyze(
        ["same?", "same?"], retrieve=lambda q: DOCS, answer=lambda q, p: calls.append(q) or join(q, p)
    )
    assert len(calls) == 5
    assert run.queries["answer"].tolist() == [" ".join(DOCS)] * 2


# Failures


def test_a_failure_of_retrieve_concerns_its_question_only():
    def retrieve(question):
        if question == "bad?":
            raise ConnectionError("index https://u:p@db.example/x?key=1 is gone")
        return [] if question == "empty?" else DOCS

    run = core.analyze(["bad?", "good?", "empty?"], retrieve=retrieve, answer=join)
    assert run.queries["answer_status"].tolist() == ["error", "answered", "error"]
    reasons = run.queries["status_reason"].tolist()
    assert reasons[0] == "retrieve raised ConnectionError: index https://…@db.example/x?… is gone"
    assert reasons[2] == "retrieve returned no passage."
    assert run.manifest["complete"]


@pytest.mark.parametrize(
    ("returned", "named"),
    [
        ("one text", "str"),
        (None, "NoneType"),
        ({"documents": []}, "dict"),
        (5, "int"),
        (pd.DataFrame(), "DataFrame"),
    ],
)
def test_what_is_no_list_of_passages_is_named(returned, named):
    results = iter([DOCS, returned])
    run = core.analyze(["good?", "bad?"], retrieve=lambda q: next(results), answer=join)
    assert f"retrieve must return a list of passages, got {named};" in run.queries["status_reason"][1]


def test_a_passage_without_text_is_named():
    results = iter([DOCS, ["a", 5]])
    run = core.analyze(["good?", "bad?"], retrieve=lambda q: next(results), answer=join)
    assert "Passage 2 is of the type int and holds no text" in run.queries["status_reason"][1]


@pytest.mark.parametrize("first", range(6))
def test_a_failure_of_the_first_call_of_any_kind_costs_that_call_only(first):
    # With three passages: call 0 is the baseline, 1 to 3 leave one out, 4 repeats, 5 is closed book.
    calls = []

    def answer(question, passages):
        calls.append(question)
        if question == "one?" and len(calls) == first + 1:
            raise ValueError("first time")
        return join(question, passages) or "nothing"

    run = core.analyze(["one?", "two?"], retrieve=lambda q: DOCS, answer=answer, repeats=1)
    one, two = run.queries.to_dict("records")
    assert two["answer_status"] == "answered"
    assert (one["answer_status"] == "error") == (first == 0)
    if first == 0:
        assert one["status_reason"] == "answer raised ValueError: first time"
    ablated = run.passages["ablated_status"].tolist()
    assert [i for i, status in enumerate(ablated) if status == "error"] == (
        [first - 1] if 1 <= first <= 3 else []
    )
    assert run.repeats["answer_status"].tolist() == ["error" if first == 4 else "answered", "answered"]
    assert pd.isna(one["closed_book_answer"]) == (first == 5)
    assert two["closed_book_answer"] == "nothing"


def test_an_answer_function_that_needs_passages_has_no_closed_book_answer():
    run = core.analyze(["q"], retrieve=lambda q: DOCS, answer=lambda q, p: p[0])
    assert run.queries["answer"].tolist() == ["a1"]
    assert run.queries["closed_book_answer"].isna().all()
    assert analyse(run).passages["influence"].tolist() == [1.0, 0.0, 0.0]


def test_where_every_question_fails_the_user_sees_the_own_exception():
    with pytest.raises(
        BackendError, match="retrieve failed on every question; first: retrieve raised KeyError"
    ) as e:
        core.analyze(["one?", "two?"], retrieve=boom, answer=join)
    assert isinstance(e.value.__cause__, KeyError)
    with pytest.raises(
        BackendError, match="answer failed on every question; first: answer raised KeyError"
    ) as e:
        core.analyze(["one?", "two?"], retrieve=lambda q: DOCS, answer=boom)
    assert isinstance(e.value.__cause__, KeyError)
    # The rest failed in retrieve: no baseline was answered.
    results = iter([DOCS])
    with pytest.raises(BackendError) as e:
        core.analyze(["one?", "two?"], retrieve=lambda q: next(results), answer=boom)
    assert isinstance(e.value.__cause__, KeyError)


def test_the_cause_is_that_of_a_baseline_not_of_a_closed_book_call():
    def answer(question, passages):
        raise (ValueError("baseline") if len(passages) == 3 else IndexError("other"))

    with pytest.raises(BackendError) as e:
        core.analyze(["q"], retrieve=lambda q: DOCS, answer=answer)
    assert isinstance(e.value.__cause__, ValueError)


def test_empty_answers_are_not_errors():
    run = core.analyze(["q"], retrieve=lambda q: DOCS, answer=lambda q, p: None)
    assert run.queries["answer_status"].tolist() == ["empty"]
    assert analyse(run).queries["reason"].tolist() == ["empty_baseline"]


# Where questions and passages come from


def test_passages_of_the_questions_themselves_are_texts():
    seen = []
    core.analyze(
        [{"question": "q", "passages": [{"title": "T", "text": "one"}, "two"]}],
        answer=lambda q, p: seen.append(p) or "a",
        closed_book=False,
    )
    assert seen == [["T: one", "two"], ["two"], ["T: one"]]


def test_documents_for_all_questions_are_searched():
    documents = ["The heron is blue.", {"title": "Crane", "text": "The crane is white."}, "Coffee is black."]
    run = core.analyze(["heron?", "crane?"], documents=documents, answer=lambda q, p: p[0] if p else "", k=1)
    assert run.queries["answer"].tolist() == ["The heron is blue.", "Crane: The crane is white."]
    assert run.manifest["retriever"]["name"] == "bm25"


def test_documents_fill_in_where_a_question_brings_nothing():
    questions = ["heron?", {"question": "own?", "passages": ["mine"]}]
    run = core.analyze(questions, documents=["The heron is blue."], answer=join)
    assert run.passages["text"].tolist() == ["The heron is blue.", "mine"]


def test_a_file_a_data_set_a_table_and_a_run_are_questions(tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_text("\n".join(json.dumps({"question": q, "answers": ["x"]}) for q in ("one?", "two?")))
    table = pd.DataFrame({"question": ["one?", "two?"], "answers": [["x"], None], "other": [1, 2]})
    first = core.analyze(str(path), retrieve=lambda q: DOCS, answer=join)
    assert first.name == "q, join"
    for questions in (path, table, first, first.save(tmp_path / "run"), str(tmp_path / "run")):
        run = core.analyze(questions, retrieve=lambda q: DOCS, answer=join)
        assert run.queries["question"].tolist() == ["one?", "two?"]
        assert list(run.queries["reference_answers"][0]) == ["x"]
    again = core.analyze(first, answer=join)
    assert again.passages["text"].tolist() == DOCS * 2
    data = load_dataset(ROOT / "sample_data/questions.jsonl").head(2)
    run = core.analyze(data, answer=lambda q, p: p[0] if p else "", k=3, closed_book=False)
    assert run.manifest["dataset"]["digest"] == data.digest
    assert run.queries["answer_status"].tolist() == ["answered"] * 2
    replaced = core.analyze(data, retrieve=lambda q: DOCS, answer=join)
    assert replaced.passages["text"].tolist() == DOCS * 2
    filled = core.analyze(path, documents=["one two"], answer=join)
    assert filled.passages["text"].tolist() == ["one two"] * 2


def test_a_language_model_answers_with_the_built_in_prompt():
    model = ScriptedLLM(lambda request: request.messages[0].content.split("[2] ")[-1][:2])
    run = core.analyze(["q"], retrieve=lambda q: DOCS, answer=model)
    assert run.queries["answer"].tolist() == ["b1"]
    assert "Question: q" in model.requests[0].messages[0].content
    assert run.manifest["model"]["name"] == "scripted"
    assert run.manifest["prompt"]["style"] == "short"
    assert run.manifest["retriever"]["name"] == "function"
    full = core.analyze(["q"], retrieve=lambda q: DOCS, answer=model, style="full", max_tokens=99)
    assert (full.manifest["prompt"]["style"], full.manifest["prompt"]["max_tokens"]) == ("full", 99)


def test_a_back_end_by_its_name(llama, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", f"{llama}/v1")
    run = core.analyze(
        ["Who wrote it?"],
        retrieve=lambda q: ["Ada wrote it."],
        answer="openai:smollm2-135m",
        closed_book=False,
    )
    assert run.manifest["model"]["name"] == "smollm2-135m"
    assert run.manifest["options"]["max_tokens"] == BACKENDS["openai"].max_tokens
    assert run.queries["answer_status"].isin(["answered", "abstained"]).all()
    assert run.queries["prompt_tokens"][0] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "answer is missing; give a function"),
        ({"answer": 5}, "answer must be a function, got int"),
        ({"answer": "gpt:oss:20b"}, "back end must be one of .*, got 'gpt'"),
        ({"answer": join}, "Question 1 brings no passages and no documents; give retrieve or documents"),
        ({"answer": join, "retrieve": "bm25"}, "retrieve must be a function, got str"),
        ({"answer": join, "retrieve": join, "documents": DOCS}, "Both retrieve and documents are given"),
        ({"answer": join, "documents": "a text"}, "documents must be a list of texts, got str"),
        ({"answer": join, "documents": []}, "documents is empty"),
        ({"answer": join, "documents": [5]}, "Passage 1 is of the type int"),
        ({"answer": join, "documents": DOCS, "k": 0}, "k must be a whole number from 1 to 100, got 0"),
        ({"answer": join, "documents": DOCS, "parallel": 0}, "parallel must be a whole number from 1, got 0"),
        ({"answer": join, "documents": DOCS, "parallel": True}, "parallel must be a whole number"),
        ({"answer": join, "documents": DOCS, "name": " "}, "name must be a text that is not empty"),
        ({"answer": join, "documents": DOCS, "retriever": "best"}, "retriever must be one of bm25"),
        ({"answer": join, "documents": DOCS, "style": "full"}, "style is for language models"),
        ({"answer": join, "documents": DOCS, "max_tokens": 5}, "max_tokens is for language models"),
        (
            {"answer": join, "documents": DOCS, "cache": "c.db"},
            "cache needs a name: a changed function looks like",
        ),
        (
            {"questions": "what is this?", "answer": join},
            "questions must be a list or the path of a file, got the text",
        ),
        ({"questions": "nowhere.jsonl", "answer": join}, "nowhere.jsonl"),
        ({"questions": [], "answer": join}, "questions is empty"),
        (
            {"questions": {"question": "q"}, "answer": join},
            "questions must be a list of texts or mappings.*got dict",
        ),
        ({"questions": 5, "answer": join}, "got int"),
        ({"questions": ["q", 5], "answer": join, "documents": DOCS}, "Question 2 is of the type int"),
        (
            {"questions": [" "], "answer": join, "documents": DOCS},
            "Question 1: question holds .*; expected a text that",
        ),
        (
            {"questions": [{"question": "q", "answers": 5}], "answer": join, "documents": DOCS},
            "Question 1: answers holds '5'; expected a text or a list",
        ),
        (
            {"questions": [{"question": "q", "corpus": "/etc"}], "answer": join},
            "only a file can name a corpus",
        ),
        (
            {
                "questions": [{"question": "a", "id": "x"}, {"question": "b", "id": "x"}],
                "answer": join,
                "documents": DOCS,
            },
            "id 'x' twice",
        ),
    ],
)
def test_arguments_that_cannot_be_used_are_named(arguments, message):
    arguments = {"questions": ["q"], **arguments}
    with pytest.raises(InputError, match=message):
        core.analyze(arguments.pop("questions"), **arguments)


def test_documents_that_nobody_would_search_are_refused():
    data = load_dataset(ROOT / "sample_data/questions.jsonl").head(1)
    with pytest.raises(InputError, match="every question brings passages or documents of its own"):
        core.analyze(data, documents=DOCS, answer=join)


# Progress, cache, folder


def test_progress_counts_questions_then_calls():
    seen = []
    core.analyze(
        ["one?", "two?"],
        retrieve=lambda q: DOCS,
        answer=join,
        progress=lambda done, total, what: seen.append((done, total, what)),
    )
    assert seen[:2] == [(1, 2, "retrieve"), (2, 2, "retrieve")]
    assert [(done, total) for done, total, _ in seen[2:]] == [(i, 10) for i in range(1, 11)]
    assert seen[-1][2] == "question 2 of 2"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "progress", "shown"),
    [(Terminal, None, True), (Terminal, False, False), (io.StringIO, None, False), (io.StringIO, True, True)],
)
def test_the_plain_progress_line(monkeypatch, stream, progress, shown):
    error = stream()
    monkeypatch.setattr(sys, "stderr", error)
    core.analyze(["one?"], retrieve=lambda q: DOCS, answer=join, progress=progress)
    assert ("5 calls in" in error.getvalue()) == shown
    assert bool(error.getvalue()) == shown


def test_without_a_cache_a_changed_function_is_asked_again():
    answers = iter("ab")
    runs = [
        core.analyze(["q"], retrieve=lambda q: DOCS, answer=lambda q, p, a=a: a, closed_book=False)
        for a in answers
    ]
    assert [run.queries["answer"][0] for run in runs] == ["a", "b"]


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_cache_keeps_answers_under_the_name(tmp_path, in_memory):
    cache = CompletionCache() if in_memory else tmp_path / "folder" / "c.db"

    def asked(name):
        calls = []
        run = core.analyze(
            ["q"],
            retrieve=lambda q: DOCS,
            answer=lambda q, p: calls.append(1) or join(q, p),
            cache=cache,
            name=name,
        )
        assert run.queries["answer"].tolist() == [" ".join(DOCS)]
        return len(calls)

    assert [asked("first"), asked("first"), asked("second")] == [5, 0, 5]


def test_a_saved_run_is_replaced_by_one_of_its_name_only(tmp_path):
    folder = tmp_path / "run"
    arguments = {"retrieve": lambda q: DOCS, "save": folder}
    run = core.analyze(["q"], answer=join, **arguments)
    assert Run.load(folder).run_id == run.run_id
    assert Run.load(folder).manifest["retriever"]["name"] == "function"
    core.analyze(["q"], answer=join, repeats=1, **arguments)
    assert len(Run.load(folder).repeats) == 1
    calls = []
    with pytest.raises(InputError, match="already holds another run, 'Questions, join'; give another folder"):
        core.analyze(["q"], answer=lambda q, p: calls.append(1), name="Other", **arguments)
    assert not calls
    assert len(Run.load(folder).repeats) == 1


@pytest.mark.parametrize("is_file", [True, False])
def test_what_is_no_run_is_never_replaced(tmp_path, is_file):
    target = tmp_path / "notes"
    if is_file:
        target.write_text("mine")
    else:
        target.mkdir()
        (target / "mine.txt").write_text("mine")
    calls = []
    message = (
        "notes is a file; a run is saved as a folder" if is_file else "notes is not empty and holds no run"
    )
    with pytest.raises(InputError, match=message):
        core.analyze(["q"], retrieve=lambda q: calls.append(1), answer=join, save=target)
    assert not calls


# The package


def test_importing_the_package_is_light_and_lists_what_it_offers():
    code = (
        "import sys, core; assert set(core.__all__) <= set(dir(core)) and 'analyze' in core.__all__; "
        "assert not {'pandas', 'numpy', 'torch'} & set(sys.modules); "
        "from core import analyze; import core.own_rag; assert core.analyze is analyze is core.analyze; "
        "assert not {'torch', 'transformers', 'streamlit', 'httpx', 'openai'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        core.nonsense  # noqa: B018


# Steps


def test_claims_are_verified_in_the_same_call(tmp_path):
    arguments = {"retrieve": lambda q: DOCS, "answer": join, "save": tmp_path / "run"}
    run = core.analyze(["one?", "two?"], **arguments, steps=("influence", "claims"))
    assert run.manifest["steps"].keys() == {"influence", "claims"}
    assert set(run["claims"]["query_id"]) == {"q0001", "q0002"}
    assert run.queries["prompt_tokens"].isna().all() and run.manifest["cost"]["prompt_tokens"] is None
    assert Run.load(tmp_path / "run")["support"].equals(run["support"])
    assert core.analyze(["one?"], retrieve=lambda q: DOCS, answer=join)["claims"].empty


def test_a_step_with_options_of_its_own():
    judge = ClaimsStep(own=lambda claims, passages: [[1.0] * len(passages) for _ in claims])
    run = core.analyze(["one?"], retrieve=lambda q: DOCS, answer=join, steps=["influence", judge])
    assert (run["support"]["probability"] == 1).all()
    mine = core.analyze(["one?"], retrieve=lambda q: DOCS, answer=join, steps=[InfluenceStep(repeats=2)])
    assert len(mine.repeats) == 2


def test_the_gain_of_the_model_that_answers():
    llm = ScriptedLLM(lambda request: "The lake is deep.")
    gain = ["influence", ClaimsStep("gain", joint=False)]
    with pytest.raises(InputError, match="gain needs a model that can score a given text; scripted cannot"):
        core.analyze(["one?"], retrieve=lambda q: DOCS, answer=llm, steps=gain)
    assert llm.calls == 0
    llm.capabilities = replace(llm.capabilities, answer_logprob=True)
    llm.score = lambda messages, answers: [(-1.0, -2.0)] * len(answers)
    run = core.analyze(["one?"], retrieve=lambda q: DOCS, answer=llm, steps=gain)
    assert set(run["support"]["judge"]) == {"gain:scripted"}
    assert run["support"]["probability"].between(0, 1).all()


def test_the_fixes_are_tried_on_a_function_with_its_own_objects():
    class Chunk:
        def __init__(self, text):
            self.text = text

    other, gold, last = (Chunk(text) for text in ("Long and wide.", "Opened in 1893. Busy.", "Coffee."))
    seen = []

    def answer(question, passages):
        seen.append(list(passages))
        return "1893" if passages and passages[0] is gold else "in 1900"

    reranker = Arm("mine", "My re-ranker", lambda case: (case.passages[1], case.passages[0]))
    chosen = tuple(arm for arm in ARMS if arm.name in ("gold_added", "gold_first", "gold_alone"))
    run = core.analyze(
        [{"question": "When?", "answers": ["1893"], "gold": ["in 1893"]}],
        retrieve=lambda question: [other, gold, last],
        answer=answer,
        closed_book=False,
        steps=("influence", LossesStep(arms=(*chosen, reranker))),
    )
    # Gold is there, so nothing is added and nothing asked; of the others each prompt is asked once.
    assert seen[4:] == [[gold, other, last], [gold], [gold, other]]
    rows = run["arms"].set_index("arm")
    assert rows["prompt"].to_dict() == dict.fromkeys(rows.index, "changed") | {"gold_added": "unchanged"}
    assert rows["answer"].dropna().tolist() == ["1893"] * 3
    found = Diagnosis(run)["losses"]
    assert found.queries["stage"].tolist() == ["placed too late"]
    assert (found.titles["mine"], found.fix("mine").fixed, found.fix("mine").broken) == ("My re-ranker", 1, 0)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (
            "influence",
            "steps must be a list of losses, attribution, influence, likelihood, claims, uncertainty, conformal, validation, confidence or of steps, got 'influence'",
        ),
        (["influence", "sampling"], "steps must be a list of .*, got 'sampling'"),
        (["claims"], r"The first of steps must ask the questions: influence; got \['claims'\]"),
        ([], "The first of steps must ask the questions"),
        (["influence", ClaimsStep("judge")], "The step claims needs a language model; answer is a function"),
    ],
)
def test_steps_that_cannot_be_done_are_named(steps, message):
    with pytest.raises(InputError, match=message):
        core.analyze(["one?"], retrieve=lambda q: DOCS, answer=join, steps=steps)
