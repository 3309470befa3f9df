"""Entailment of the samples by a judge or an NLI cross-encoder, and what is measured from it."""

import json
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from core.diagnosis import Diagnosis
from core.errors import BackendError
from core.llm.types import Completion
from core.pipeline.plan import plan_steps
from core.pipeline.steps import fill
from core.run import Run
from core.uncertainty.relations import relations, wanted
from core.uncertainty.step import UncertaintyStep
from tests.core.claims.verifiers.test_nli import LABELS, logits, write
from tests.scripted import ScriptedLLM

ANSWERS = {1: "alpha", 2: "beta", 3: "gamma", 4: "delta"}
SAME = {"alpha", "beta"}  # entail each other; the others contradict both


class Scoring(ScriptedLLM):
    """A model that can score a given reply: True is three times as likely as False."""

    def __init__(self, rule):
        super().__init__(rule)
        self.capabilities = replace(self.capabilities, answer_logprob=True)
        self.scored = []

    def score(self, messages, answers):
        self.scored += messages
        return [(math.log({"True": 0.6, "False": 0.2}[answer]),) for answer in answers]


def run_of(answer="alpha"):
    """A question with a passage."""
    queries = pd.DataFrame(
        {"query_id": ["a"], "question": "Which?", "answer": answer, "answer_status": "answered"}
    )
    passages = pd.DataFrame(
        {"query_id": ["a"], "passage_id": "p", "title": "T", "text": "Text.", "retrieval_rank": 1.0}
    )
    return Run.create({"source": "upload"}, queries=queries, passages=passages)


def judge(request, same=SAME):
    """A sample by its seed, or the verdict on every statement of a prompt."""
    lines = request.messages[-1].content.split("\n\n")
    if not any(line.startswith("Statement 1: ") for line in lines):
        return Completion(ANSWERS[request.seed], "stop", 9, 1, 0.1)
    given = [line.partition(": ") for line in lines if line.startswith(("Answer: ", "Statement "))]
    read = {name: json.loads(text) for name, _, text in given}
    said = {
        name.removeprefix("Statement "): "ENTAILED" if {text, read["Answer"]} <= same else "CONTRADICTED"
        for name, text in read.items()
        if name.startswith("Statement ")
    }
    return Completion(json.dumps(said), "stop", 9, 9, 0.1)


def values(run):
    """Value and reason of every estimator for the first question."""
    scores = Diagnosis(run)["uncertainty"].scores
    return {name: one.values[0] for name, one in scores.items()}


def test_a_judge_fills_what_semantic_entropy_and_sum_eigen_need():
    """Two of three samples entail each other: entropy ln 3 − 2/3 ln 2; a graph of two islands: SumEigen 2."""
    llm = ScriptedLLM(judge)
    found = fill(run_of(), UncertaintyStep(samples=3, entailment="judge"), llm=llm)
    # Three samples, and one call for each of three different answers: the baseline is one of them.
    assert llm.calls == 6 and len(found["sample_checks"]) == 6
    assert set(found["sample_checks"]["judge"]) == {f"judge:{llm.name}"}
    assert found.manifest["steps"]["uncertainty"]["entailment"] == f"judge:{llm.name}"
    got = values(found)
    assert got["semantic_entropy_entailment"] == pytest.approx(math.log(3) - 2 / 3 * math.log(2))
    assert got["semantic_sets_entailment"] == 2
    assert got["sum_eigen_entailment"] == pytest.approx(2.0)
    # One of three samples contradicts the answer.
    assert got["contradiction_rate"] == pytest.approx(1 / 3)
    # This back end cannot score a given reply.
    assert "p_true" not in got
    # Nothing is asked again; words alone tell the three apart.
    assert fill(found, UncertaintyStep(samples=3, entailment="judge"), llm=llm) is found and llm.calls == 6
    assert got["semantic_sets_content"] == 3


def test_samples_that_are_there_are_only_compared():
    llm = ScriptedLLM(judge)
    sampled = fill(run_of(), UncertaintyStep(samples=3), llm=llm)
    assert "semantic_entropy_entailment" not in values(sampled)
    found = fill(sampled, UncertaintyStep(samples=3, entailment="judge"), llm=llm)
    assert llm.calls == 6 and found["samples"].equals(sampled["samples"])
    # A later step without the option keeps them; the plan names the judge's calls.
    assert fill(found, UncertaintyStep(samples=3), llm=llm)["sample_checks"].equals(found["sample_checks"])
    (plan,) = plan_steps(
        sampled, [UncertaintyStep(samples=3, entailment="judge")], {"uncertainty": llm}
    ).steps
    assert any("one more call for each different answer" in note for note in plan.notes)


def test_p_true_is_scored_where_the_back_end_can():
    """True 0.6, False 0.2: 0.6 / 0.8."""
    found = fill(run_of(), UncertaintyStep(samples=3, entailment="judge"), llm=Scoring(judge))
    assert values(found)["p_true"] == pytest.approx(0.75)


def test_whether_an_answer_is_true_is_asked_in_its_own_script():
    llm = Scoring(judge)
    fill(run_of("阿姆斯特丹"), UncertaintyStep(samples=2, entailment="judge"), llm=llm)
    ((system, user),) = {tuple(messages) for messages in llm.scored}
    assert user.content == 'Passage: "Text."\n\nQuestion: "Which?"\n\nPossible answer: "阿姆斯特丹"'
    assert (system.role, user.role) == ("system", "user")
    assert system.content.endswith("True or False? Reply with that word alone.")


def test_the_stated_confidence_is_that_of_the_signals():
    sampled = fill(run_of(), UncertaintyStep(samples=3), llm=ScriptedLLM(judge))
    assert "verbalised" not in values(sampled)
    signals = pd.DataFrame({"query_id": ["a"], "llm_score": [0.4]})
    assert values(sampled.derive(signals=signals))["verbalised"] == 0.4


def test_replies_that_cannot_be_used_stay_unknown_and_to_do():
    def broken(request):
        is_sample = request.seed in ANSWERS
        return judge(request) if is_sample else Completion("no idea", "stop", 9, 2, 0.1)

    found = fill(run_of(), UncertaintyStep(samples=3, entailment="judge"), llm=ScriptedLLM(broken))
    assert len(found["samples"]) == 3 and found["sample_checks"].empty
    assert "1 question has answers that were not compared." in found.manifest["notes"]
    assert found.manifest["steps"]["uncertainty"]["n_left"] == 1
    whole = fill(found, UncertaintyStep(samples=3, entailment="judge"), llm=ScriptedLLM(judge))
    assert len(whole["sample_checks"]) == 6 and not whole.manifest["notes"]


def test_another_judge_compares_anew(tmp_path):
    """A cross-encoder of random weights: what is stored is what it says of question and answer, by itself."""
    llm, folder = ScriptedLLM(judge), write(tmp_path / "model", LABELS)
    judged = fill(run_of(), UncertaintyStep(samples=3, entailment="judge"), llm=llm)
    found = fill(judged, UncertaintyStep(samples=3, entailment=folder), llm=llm)
    checks = found["sample_checks"]
    assert llm.calls == 6 and len(checks) == 6 and set(checks["judge"]) == {f"nli:{folder}"}
    texts = {"baseline": "alpha", "s2": "beta", "s3": "gamma"}
    for row in checks.itertuples():
        shares = np.exp(logits(folder, f"Which? {texts[row.premise]}", f"Which? {texts[row.hypothesis]}"))
        assert row.contradiction == pytest.approx(shares[0] / shares.sum(), abs=1e-5)
        assert row.entailment == pytest.approx(shares[1] / shares.sum(), abs=1e-5)


def test_the_same_judge_compares_only_new_samples_and_another_all():
    step, contrary = partial(UncertaintyStep, entailment="judge"), partial(judge, same=set())
    three = fill(run_of(), step(samples=3), llm=ScriptedLLM(judge))
    four = fill(three, step(samples=4), llm=ScriptedLLM(contrary))
    checks = four["sample_checks"].set_index(["premise", "hypothesis"])
    # Of four different answers, 12 ordered pairs; those with s4 are new.
    assert len(checks) == 12 and checks.index.is_unique
    alike = checks[checks["entailment"] == 1]
    assert {*alike.index} == {("baseline", "s2"), ("s2", "baseline")}
    for name in ("another", "third"):  # before and after the first by the alphabet
        anew = fill(four, step(samples=4), llm=ScriptedLLM(contrary, name=name))["sample_checks"]
        assert len(anew) == 12 and set(anew["judge"]) == {f"judge:{name}"} and not anew["entailment"].any()


def test_a_model_that_cannot_be_loaded_costs_no_sample(tmp_path):
    llm = ScriptedLLM(judge)
    with pytest.raises(BackendError, match="cannot be loaded"):
        fill(run_of(), UncertaintyStep(samples=3, entailment=str(tmp_path / "nothing")), llm=llm)
    assert llm.calls == 0


def test_every_sentence_of_the_answer_is_checked_and_refusals_are_not():
    """One of two samples contradicts the second of two sentences: 1 of 4 cells; the refusal is left out."""
    samples = {"s1": "It was built in 1914.", "s2": "It was built in 1920.", "s3": "I don't know."}
    answer = "It is a mill. It was built in 1914."
    pairs = wanted(answer, samples)
    assert set(pairs) == {
        ("baseline", "s1"), ("s1", "baseline"), ("baseline", "s2"), ("s2", "baseline"), ("s1", "s2"), ("s2", "s1"),
        ("s1", "sentence 1"), ("s1", "sentence 2"), ("s2", "sentence 1"), ("s2", "sentence 2"),
    }  # fmt: skip
    assert pairs["s2", "sentence 2"] == ("It was built in 1920.", "It was built in 1914.")
    known = {key: (0.5, 1.0 if key == ("s2", "sentence 2") else 0.0) for key in pairs}
    found = relations([answer, *samples.values()], ["baseline", *samples], known)
    np.testing.assert_array_equal(found.contradiction, [[0.0, 0.0, np.nan], [0.0, 1.0, np.nan]])
    assert found.entailment[3].tolist() == [0.0, 0.0, 0.0, 0.0] and found.entailment[0, 1] == 0.5


def test_every_text_needs_an_id():
    with pytest.raises(ValueError, match="shorter"):
        relations(["alpha", "beta"], ["baseline"], {})
