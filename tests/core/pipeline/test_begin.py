"""A run before anything is asked: questions and passages, no answers."""

from dataclasses import replace

import pytest

from core.errors import Cancelled
from core.influence.step import InfluenceStep
from core.pipeline import RunOptions, begin, fill, run_id_of
from core.pipeline.begin import PassageFinder
from core.run import Run


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
