"""A run before anything is asked: questions and passages, no answers."""

import json
import os
import platform
from dataclasses import replace
from importlib import import_module

import pytest

from core.errors import Cancelled
from core.influence.step import InfluenceStep
from core.pipeline import RunOptions, begin, fill, run_id_of
from core.pipeline.begin import PassageFinder
from core.run import Run
from core.sources.dataset import read_dataset


def test_it_holds_every_question_and_passage_and_no_answer(make_dataset, make_llm, tmp_path):
    data, llm, step, seen = make_dataset(3, k=4), make_llm(), InfluenceStep(), []
    run = begin(data, RunOptions(k=2), llm, step, name="mine", progress=lambda *state: seen.append(state))
    assert run.run_id == run_id_of(data, RunOptions(k=2), llm, step)
    assert (run.name, run.manifest["complete"], run.manifest["steps"]) == ("mine", False, {})
    assert run.queries["query_id"].to_list() == ["q0", "q1", "q2"]
    assert run.queries[["answer", "answer_status", "status_reason"]].isna().all(axis=None)
    assert len(run.passages) == 6
    assert run.passages["ablated_status"].isna().all()
    assert seen == [(1, 3, "retrieve"), (2, 3, "retrieve"), (3, 3, "retrieve")]
    assert llm.calls == 0
    # It can be saved and filled later.
    filled = fill(Run.load(run.save(tmp_path / "r")), step, llm=llm)
    assert (filled.run_id, filled.manifest["complete"]) == (run.run_id, True)
    assert filled.queries["answer"].to_list() == ["fact 0 1", "fact 1 1", "fact 2 1"]


def test_a_cancel_while_passages_are_retrieved(make_dataset, make_llm):
    seen = []
    with pytest.raises(Cancelled, match="while passages were retrieved"):
        begin(
            make_dataset(5),
            RunOptions(),
            make_llm(),
            InfluenceStep(),
            progress=lambda *state: seen.append(state),
            cancelled=lambda: len(seen) == 2,
        )
    assert len(seen) == 2


def test_a_retriever_that_fails_on_one_question_costs_that_question(make_dataset, make_llm, monkeypatch):
    find = PassageFinder.find

    def odd(self, question):
        if question.query_id == "q1":
            raise ValueError("no vectors")
        return find(self, question)

    monkeypatch.setattr(PassageFinder, "find", odd)
    llm, step = make_llm(), InfluenceStep()
    run = fill(begin(make_dataset(3), RunOptions(), llm, step), step, llm=llm)
    assert run.queries["answer_status"].to_list() == ["answered", "error", "answered"]
    assert "The retriever failed on this question" in run.queries["status_reason"][1]


def test_a_data_set_without_any_passage(make_dataset, make_llm):
    data = make_dataset(1)
    data = replace(data, questions=(replace(data.questions[0], passages=None),))
    llm, step = make_llm(), InfluenceStep()
    run = fill(begin(data, RunOptions(), llm, step), step, llm=llm)
    assert run.queries["answer_status"].to_list() == ["error"]
    assert run.manifest["complete"] and llm.calls == 0


def test_gold_is_kept_with_the_text_that_no_passage_of_the_prompt_has(make_llm):
    record = {
        "question": "Where is the heron?",
        "passages": ["The heron is here.", "A crane.", "A heron nests there."],
        "gold": ["heron is here", "heron nests", "It is blue."],
    }
    data = read_dataset(json.dumps({"id": "q", **record}).encode(), "t.jsonl")
    run = begin(data, RunOptions(k=1), make_llm(), InfluenceStep())
    assert run.passages["passage_id"].to_list() == ["p1"]
    gold = run["gold"].astype("object")
    rows = {row.passage_id: (row.text, list(row.evidence)) for row in gold.itertuples()}
    assert rows.pop("p1")[1] == ["heron is here"] and gold.set_index("passage_id")["text"].isna()["p1"]
    assert rows == {
        "p3": ("A heron nests there.", ["heron nests"]),
        "gold 1": ("It is blue.", ["It is blue."]),
    }
    assert run.queries["n_gold"].to_list() == [2]


def test_passages_marked_gold_without_a_fragment_have_no_evidence(make_llm):
    passages = [{"text": "one", "is_gold": True, "score": 0.5}, {"text": "two", "is_gold": False}]
    data = read_dataset(json.dumps({"question": "What?", "passages": passages}).encode(), "t.jsonl")
    run = begin(data, RunOptions(), make_llm(), InfluenceStep())
    assert run["gold"]["passage_id"].to_list() == ["p1"]
    assert run["gold"][["text", "evidence"]].isna().all(axis=None)
    assert run.passages["is_gold"].to_list() == [True, False]
    assert run.passages["retrieval_score"].fillna(-1).to_list() == [0.5, -1]
    assert run.queries["reference_answers"].isna().all()


def test_the_manifest_names_data_model_prompt_retriever_and_machine(make_dataset, make_llm):
    data, llm = make_dataset(2), make_llm(name="small", options={"dtype": "x"})
    run = begin(data, RunOptions(k=3, passage_words=50), llm, InfluenceStep(max_tokens=9, style="full"))
    said = run.manifest
    assert (run.name, said["source"], said["notes"]) == (f"{data.name}, small", "live", [])
    assert said["dataset"] == {"name": data.name, "digest": data.digest, "n_questions": 2}
    assert said["model"] == {"backend": "", "name": "small", "options": {"dtype": "x"}}
    assert said["retriever"] == {"name": "bm25", "tokenizer": "words", "k": 3, "passage_words": 50}
    assert (said["prompt"]["style"], said["prompt"]["max_tokens"]) == ("full", 9)
    assert "full sentences" in said["prompt"]["instruction"]
    assert said["options"]["k"] == 3 and said["options"]["max_tokens"] == 9
    machine = said["environment"]
    assert (machine["python"], machine["processors"]) == (platform.python_version(), os.cpu_count())
    assert machine["platform"] == f"{platform.system()} {platform.machine()}"
    assert len(run.run_id) == 12


def test_a_package_that_is_not_there_is_not_named(make_dataset, make_llm, monkeypatch):
    module = import_module("core.pipeline.begin")  # the package's `begin` is the function
    monkeypatch.setattr(module, "_PACKAGES", ("numpy", "no-such-package"))
    run = begin(make_dataset(), RunOptions(), make_llm(), InfluenceStep())
    assert list(run.manifest["environment"]["packages"]) == ["numpy"]
