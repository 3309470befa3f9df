"""Calibration and prediction with one score: values by hand, what is undefined, what is not paid for twice."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from core.conformal import (
    CalibrationStore,
    ConformalRAG,
    StoreError,
    cases_of,
    conformal_threshold,
    coverage_band,
)
from core.diagnosis import Diagnosis
from core.errors import BackendError, Cancelled, InputError
from core.influence.step import InfluenceStep
from core.llm import CompletionCache
from core.llm.types import Completion
from core.pipeline import RunOptions, begin, fill
from core.sources.dataset import read_dataset
from core.uncertainty.step import UncertaintyStep
from tests.scripted import ScriptedLLM

ROOT = Path(__file__).parents[3]


def question_of(request):
    return re.search(r"Question: (.*)", request.messages[0].content)[1]


def paris(request):
    """Answer "Paris" to "Q3 …?", and sample it 3 times; "Rome" otherwise: the score is 1 − 3/n."""
    agreeing = int(re.search(r"Q(\d+)", question_of(request))[1])
    return "Paris" if request.temperature == 0 or request.seed <= agreeing else "Rome"


def asked(agreeing):
    return [f"Q{k} no. {i}?" for i, k in enumerate(agreeing)]


@pytest.fixture
def rag(tmp_path):
    opened = []

    def make(rule=paris, alpha=0.4, path="c.db", **options):
        llm = ScriptedLLM(rule)
        found = ConformalRAG(llm, tmp_path / path, alpha, **{"n_samples": 10, **options})
        opened.append(found)
        return llm, found

    yield make
    for one in opened:
        one.close()


def calibrated(rag, agreeing, truths=None, **options):
    questions = asked(agreeing)
    return rag.calibrate(
        questions, ["Text."] * len(questions), truths or ["Paris"] * len(questions), **options
    )


def test_scores_threshold_and_p_values_by_hand(rag):
    llm, found = rag()
    stats = calibrated(
        found, [9, 7, 6, 2, 10], ["Paris", "Paris", ["Lyon", "Paris, France", "Paris"], "Paris", "Rome"]
    )
    frame = found.store.frame()
    assert frame["nonconformity_score"].tolist() == pytest.approx([0.1, 0.3, 0.4, 0.8, 0.0], abs=1e-12)
    assert frame["correct"].tolist() == [True, True, True, True, False]
    assert frame["prediction"].tolist() == ["Paris"] * 5 and frame["context"].tolist() == ["[1] Text."] * 5
    assert frame["true_answer"].tolist()[2:4] == ['["Lyon", "Paris, France", "Paris"]', "Paris"]
    threshold = conformal_threshold([0.1, 0.3, 0.4, 0.8], 0.4)
    assert stats == {
        "n_samples": 4, "mean_score": pytest.approx(0.4), "threshold": threshold, "total_calibrated": 5,
        "new_calibrated": 5, "skipped": 0, "n_failed": 0, "failure": "", "n_labels": 5, "n_correct": 4,
        "reason": "", "certified_threshold": None,
        "certified_missing": "too many are wrong to say how many labels it would take",
    }  # fmt: skip
    assert llm.calls == 5 * 11
    for agreeing, p_value, reliable in [
        (10, 1.0, True),
        (7, 0.8, True),
        (6, 0.6, True),
        (5, 0.4, False),
        (1, 0.2, False),
    ]:
        result = found.predict_with_coverage(f"Q{agreeing} new?", "Text.")
        assert (result.prediction, result.is_reliable, result.coverage_alpha) == ("Paris", reliable, 0.4)
        assert result.p_value == pytest.approx(p_value) and result.confidence == pytest.approx(agreeing / 10)
        assert result.metadata["score"] == pytest.approx(1 - agreeing / 10)
    assert result.metadata["n_calibration"] == 4 and result.metadata["threshold"] == threshold
    assert result.metadata["reason"] == "" and result.metadata["samples"] == ["Paris"] + ["Rome"] * 9
    assert result.metadata["statement"] == (
        "Of answers that are as good as the correct ones in calibration, at most 40 % are flagged."
    )


def test_statistics_by_hand(rag):
    _, found = rag()
    assert found.get_calibration_stats()["count"] == 0 and math.isnan(found.get_calibration_stats()["q75"])
    calibrated(found, [9, 7, 6, 2, 10], ["Paris"] * 4 + ["Rome"])
    # Of 0.1, 0.3, 0.4, 0.8: deviations from 0.4 squared are 0.09, 0.01, 0, 0.16.
    assert found.get_calibration_stats() == pytest.approx(
        {
            "count": 4, "mean": 0.4, "std": math.sqrt(0.26 / 4), "min": 0.1, "max": 0.8, "median": 0.35,
            "q25": 0.25, "q75": 0.5, "threshold": conformal_threshold([0.1, 0.3, 0.4, 0.8], 0.4),
            "alpha": 0.4,
        }
    )  # fmt: skip


def test_with_too_few_labels_nothing_is_called_reliable(rag):
    _, found = rag(alpha=0.1)
    empty = found.predict_with_coverage("Q10?", "Text.")
    assert not empty.is_reliable and math.isnan(empty.p_value) and empty.confidence == 1
    assert empty.metadata["reason"] == "0 correct answers cannot certify α = 0.1; you need at least 9."
    stats = calibrated(found, [5] * 8 + [10], ["Paris"] * 8 + ["Rome"])
    limit = conformal_threshold([0.5] * 8, 0.1)
    assert stats["threshold"] == limit and stats["reason"].startswith("8 correct answers cannot certify")
    few = found.predict_with_coverage("Q10?", "Text.")
    assert (few.is_reliable, few.p_value, few.metadata["threshold"]) == (False, 1.0, limit)
    assert calibrated(found, [5] * 9, ["Paris"] * 9)["new_calibrated"] == 1
    assert found.predict_with_coverage("Q5?", "Text.").is_reliable
    # One of ten as strange: p = 0.1, which is flagged.
    edge = found.predict_with_coverage("Q4?", "Text.")
    assert (edge.is_reliable, edge.p_value, edge.metadata["reason"]) == (False, 0.1, "")


def test_a_question_of_the_calibration_is_compared_with_the_others(rag):
    _, found = rag(alpha=0.5)
    calibrated(found, [9, 5, 1])
    own = found.predict_with_coverage("Q1 no. 2?", "Text.")
    assert own.metadata["n_calibration"] == 2 and own.p_value == pytest.approx(1 / 3)
    assert found.predict_with_coverage("Q1 no. 2?", "Another text.").metadata["n_calibration"] == 3


def test_excluded_scores_calibrate_nothing(rag):
    _, found = rag(alpha=0.5)
    calibrated(found, [9, 5, 1])
    found.store.exclude([3], "wrong reference answer")
    assert found.predict_with_coverage("Q1 new?", "Text.").metadata["n_calibration"] == 2
    assert calibrated(found, [9, 5, 1])["total_calibrated"] == 3
    assert found.get_calibration_stats()["max"] == 0.5


def test_an_answer_without_a_reference_calibrates_nothing(rag):
    _, found = rag(alpha=0.5)
    stats = calibrated(found, [9, 5, 0], ["Paris", "Paris", []])
    assert (stats["total_calibrated"], stats["n_labels"], stats["n_correct"]) == (3, 2, 2)
    assert found.predict_with_coverage("Q1 new?", "Text.").metadata["n_calibration"] == 2
    assert found.get_calibration_stats()["count"] == 2


@pytest.mark.parametrize(
    ("answer", "reason"),
    [("I don't know.", "The answer is a refusal: it claims nothing."), ("", "The answer holds no word.")],
)
def test_no_answer_has_neither_label_nor_score_and_is_not_asked_again(rag, answer, reason):
    llm, found = rag(lambda request: answer if request.temperature == 0 else "Paris")
    stats = found.calibrate(["Q?"], ["Text."], ["Paris"])
    assert (stats["new_calibrated"], stats["n_labels"], stats["total_calibrated"]) == (1, 0, 1)
    row = found.store.frame().iloc[0]
    assert row["prediction"] == answer and row.isna()[["correct", "nonconformity_score"]].all()
    assert found.calibrate(["Q?"], ["Text."], ["Paris"])["skipped"] == 1 and llm.calls == 11
    result = found.predict_with_coverage("Q?", "Text.")
    assert (result.prediction, result.is_reliable, result.metadata["reason"]) == (answer, False, reason)
    assert math.isnan(result.confidence) and math.isnan(result.p_value)


def test_without_a_sampled_answer_there_is_no_score(rag):
    _, found = rag(lambda request: "Paris" if request.temperature == 0 else "")
    stats = found.calibrate(["Q?"], ["Text."], ["Paris"])
    assert (stats["new_calibrated"], stats["n_labels"]) == (1, 0)
    assert "No sample is an answer" in found.predict_with_coverage("Q?", "Text.").metadata["reason"]


FAILURES = {
    "answer": (lambda request: request.temperature == 0, Completion.failed("Too long.")),
    "sample": (lambda request: request.seed == 4, Completion.failed("Too long.")),
    "withheld": (lambda request: request.seed == 4, Completion("", "content_filter", 1, 0, 0.0)),
}


@pytest.mark.parametrize("which", FAILURES)
def test_what_failed_is_counted_not_stored_and_asked_again(rag, which):
    fails, completion = FAILURES[which]
    broken = [True]
    _, found = rag(lambda request: completion if broken[0] and fails(request) else paris(request))
    stats = calibrated(found, [5])
    assert (stats["n_failed"], stats["new_calibrated"], stats["total_calibrated"]) == (1, 0, 0)
    result = found.predict_with_coverage("Q5 no. 0?", "Text.")
    assert not result.is_reliable and math.isnan(result.confidence)
    assert (
        result.metadata["reason"]
        == (
            {
                "answer": "Too long.",
                "sample": "1 of 10 samples failed or were withheld: Too long.",
                "withheld": "1 of 10 samples failed or were withheld.",
            }[which]
        )
    )
    assert stats["failure"] == result.metadata["reason"]
    assert stats["reason"] == f"1 question asked, all failed: {stats['failure']}"
    broken[0] = False
    _, again = rag()
    assert calibrated(again, [5])["new_calibrated"] == 1


def test_it_says_why_all_calls_failed(tmp_path):
    """Every call of a function with a typo raised; the result said "0 labels cannot certify α = 0.1"."""

    def broken(question, passages):
        raise KeyError("documents")

    with ConformalRAG(broken, tmp_path / "c.db") as found:
        stats = found.calibrate(["Who?", "When?"], ["Text."] * 2, ["Ada"] * 2)
    assert (stats["n_failed"], stats["failure"]) == (2, "answer raised KeyError: 'documents'")
    assert stats["reason"] == "2 questions asked, all failed: answer raised KeyError: 'documents'"


def test_it_says_why_most_calls_failed(rag):
    """Of several reasons that of most questions."""
    _, found = rag(
        lambda request: Completion.failed("Too long." if "Q1 " in question_of(request) else "Busy.")
    )
    stats = calibrated(found, [1, 2, 2])
    assert (stats["n_failed"], stats["failure"]) == (3, "Busy.")
    assert stats["reason"] == "3 questions asked, all failed: Busy."


@pytest.mark.parametrize("style", [None, "short", "full", "function"])
def test_a_function_is_a_model_in_every_style(tmp_path, style):
    """With the default style a function was asked the question "Answer:", without passages."""
    asked_for = []

    def answer(question, passages):
        asked_for.append((question, list(passages)))
        return "Ada"

    with ConformalRAG(answer, tmp_path / "c.db", n_samples=2, style=style) as found:
        assert found.calibrate(["Who was first?"], ["Ada was first."], ["Ada"])["n_correct"] == 1
    question, passages = asked_for[0]
    if style in (None, "function"):
        assert (question, passages) == ("Who was first?", ["Ada was first."])
    else:
        assert question.endswith("[1] Ada was first.\n\nQuestion: Who was first?") and passages == []


def test_a_function_of_one_argument_gets_the_whole_prompt(tmp_path):
    seen = []
    with ConformalRAG(lambda prompt: seen.append(prompt) or "Ada", tmp_path / "c.db", n_samples=2) as found:
        assert found.calibrate(["Who?"], ["Ada was first."], ["Ada"])["n_correct"] == 1
    assert seen[0].startswith("You answer questions from numbered passages.") and "[1] Ada" in seen[0]


def test_what_is_no_model_is_one_sentence(tmp_path):
    """An InputError that names `open_llm`, in place of an AttributeError of some attribute."""
    with pytest.raises(InputError, match=r"llm_client must be a language model.*, got dict; .*open_llm"):
        ConformalRAG({"model": "x"}, tmp_path / "c.db")


def test_a_question_without_passages_is_not_asked(rag):
    llm, found = rag()
    stats = found.calibrate(["Q1?", "Q2?", "Q3?"], ["", [], [("", " ")]], ["Paris"] * 3)
    assert (stats["n_failed"], stats["total_calibrated"], llm.calls) == (3, 0, 0)
    assert found.predict_with_coverage("Q1?", []).metadata["reason"] == "The question has no passage."


def test_one_question_that_fails_does_not_end_it_but_a_model_that_is_gone_does(rag):
    def failing(request):
        if "Q2" in question_of(request):
            raise BackendError("Not this one.")
        return paris(request)

    llm, found = rag(failing)
    assert calibrated(found, [1, 2, 3])["n_failed"] == 1 and len(found.store) == 2
    llm._down = True
    with pytest.raises(BackendError, match="is down"):
        calibrated(found, [1, 2, 3])
    with pytest.raises(BackendError, match="is down"):
        found.predict_with_coverage("Q4?", "Text.")


def test_finished_questions_are_skipped_or_replaced(rag):
    llm, found = rag()
    calibrated(found, [9, 5], ["Rome", "Paris"])
    stats = calibrated(found, [9, 5, 4], ["Paris"] * 3)
    assert (stats["skipped"], stats["new_calibrated"], stats["n_correct"], llm.calls) == (2, 1, 2, 3 * 11)
    stats = calibrated(found, [9, 5, 4], ["Paris"] * 3, skip_existing=False)
    assert (stats["skipped"], stats["new_calibrated"], stats["n_correct"]) == (0, 0, 3)
    assert stats["total_calibrated"] == 3 and llm.calls == 3 * 11  # answered from the cache


def test_groups_are_stored(rag):
    _, found = rag()
    calibrated(found, [1, 2], kinds=["who", None])
    assert found.store.frame()["kind"].tolist()[:1] == ["who"]
    assert found.store.frame()["kind"].isna().tolist() == [False, True]


def test_a_cancel_keeps_what_is_done(rag):
    llm, found = rag()
    progress = []
    with pytest.raises(Cancelled):
        calibrated(
            found, [1, 2, 3], cancelled=lambda: llm.calls > 22, progress=lambda *state: progress.append(state)
        )
    assert found.store.frame()["question"].tolist() == asked([1, 2, 3])[:2]
    assert progress == [(1, 3, "calibrate"), (2, 3, "calibrate")]
    before = llm.calls
    assert calibrated(found, [1, 2, 3])["skipped"] == 2
    assert llm.calls == 33 and before < 33


@pytest.mark.parametrize(
    ("part", "options"),
    [
        ("score", {"n_samples": 5}),
        ("score", {"seed": 1}),
        ("prompt", {"style": "full"}),
        ("prompt", {"max_tokens": 99}),
        ("retriever", {"retriever": {"name": "bm25", "k": 3}}),
    ],
)
def test_a_store_of_other_scores_is_refused(rag, part, options):
    _, found = rag()
    calibrated(found, [1])
    with pytest.raises(StoreError, match=f"calibrated with the {part} .* this one is"):
        rag(**options)


def test_a_store_of_another_model_is_refused(rag, tmp_path):
    _, found = rag()
    calibrated(found, [1])
    with pytest.raises(StoreError, match=r"with the model scripted · .*, this one is other · "):
        ConformalRAG(ScriptedLLM(paris, name="other"), tmp_path / "c.db")


def test_wrong_arguments_say_what_would_be_right(rag):
    _, found = rag()
    for ask in (
        lambda: found.calibrate(["Q1?"], ["T"], ["P"], model="other"),
        lambda: found.predict_with_coverage("Q1?", "T", model="other"),
    ):
        with pytest.raises(InputError, match="answers with scripted, not with other"):
            ask()
    assert found.predict_with_coverage("Q1?", "T", model="scripted").prediction == "Paris"
    with pytest.raises(InputError, match="questions and contexts must be of equal length, got 2 and 1"):
        found.calibrate(["Q1?", "Q2?"], ["T"], ["P", "P"])
    with pytest.raises(InputError, match="questions and true_answers must be of equal length"):
        found.calibrate(["Q1?"], ["T"], [])
    for wrong, said in [
        ({"alpha": 0}, "alpha must lie between 0 and 1"),
        ({"n_samples": 1}, "n_samples must lie"),
        ({"n_samples": 101}, "n_samples must lie"),
    ]:
        with pytest.raises(InputError, match=said):
            rag(**wrong)
    assert rag(n_samples=100, path="d.db")[1].calibrate([], [], [])["total_calibrated"] == 0


def test_ten_samples_are_drawn_for_an_error_rate_of_a_tenth_unless_told_otherwise(tmp_path):
    llm = ScriptedLLM(paris)
    with ConformalRAG(llm, tmp_path / "c.db") as found:
        assert found.calibrate(["Q9?"], ["Text."], ["Paris"])["reason"] == (
            "1 correct answer cannot certify α = 0.1; you need at least 9."
        )
        assert found.calibrate(["Q9?"], ["Text."], ["Rome"])["skipped"] == 1
        assert found.store.frame()["nonconformity_score"].tolist() == pytest.approx([0.1])
    assert [one.seed for one in llm.requests] == [*range(11)]
    assert {one.max_tokens for one in llm.requests} == {24}


def words(request):
    """Answers and samples of several words, some of them refusals, that depend on question, seed and nothing else."""
    rng = np.random.default_rng(
        [len(request.messages[0].content), request.seed, round(100 * request.temperature)]
    )
    text = " ".join(rng.choice(["Paris", "Rome", "in", "1858", "the"], size=rng.integers(1, 5)))
    return "I don't know" if rng.random() < 0.2 else text


def test_scores_are_those_of_a_run_with_the_same_prompts(tmp_path):
    rows = [
        {"id": f"q{i}", "question": "W" * i + "?", "passages": [{"title": "T" * (j % 2), "text": f"fact {i} {j}"} for j in range(3)],
         "answers": ["Paris", "1858"], "kind": "who"}
        for i in range(1, 9)
    ]  # fmt: skip
    data = read_dataset("\n".join(map(json.dumps, rows)).encode(), "t.jsonl")
    llm, cache = ScriptedLLM(words), CompletionCache()
    run = begin(data, RunOptions(), llm, InfluenceStep())
    for step in (InfluenceStep(), UncertaintyStep(samples=6)):
        run = fill(run, step, llm=llm, cache=cache)
    cases, provenance = cases_of(Diagnosis(run))
    n_calls = llm.calls
    facts = run.manifest["retriever"]
    with ConformalRAG(llm, tmp_path / "c.db", n_samples=6, retriever=facts, cache=cache) as found:
        assert found.provenance == provenance
        contexts = [[(p["title"], p["text"]) for p in row["passages"]] for row in rows]
        questions, truths = [row["question"] for row in rows], [row["answers"] for row in rows]
        stats = found.calibrate(questions, contexts, truths, kinds=["who"] * len(rows))
        frame = found.store.frame()
    assert llm.calls == n_calls and stats["new_calibrated"] == len(cases) == 8 and 0 < stats["n_labels"] < 8
    with CalibrationStore(tmp_path / "of_run.db", provenance) as store:
        assert store.add(cases, provenance) == 8
        of_run = store.frame()
    assert of_run["nonconformity_score"].nunique() > 3
    columns = frame.columns.drop("timestamp")
    assert of_run[columns].equals(frame[columns])


def test_a_run_without_all_samples_of_a_question_leaves_it_out(tmp_path):
    rows = [
        {"id": f"q{i}", "question": "W" * i + "?", "passages": ["x"], "answers": ["Paris"]} for i in (1, 2, 3)
    ]
    data = read_dataset("\n".join(map(json.dumps, rows)).encode(), "t.jsonl")

    def rule(request):
        lost = question_of(request) == "WW?" and request.seed == 2
        return Completion.failed("No.") if lost else "Paris"

    llm = ScriptedLLM(rule)
    run = begin(data, RunOptions(), llm, InfluenceStep())
    for step in (InfluenceStep(), UncertaintyStep(samples=4)):
        run = fill(run, step, llm=llm)
    assert [case.question for case in cases_of(Diagnosis(run))[0]] == ["W?", "WWW?"]
    with pytest.raises(
        InputError, match=r"has no such score to calibrate; it has .*uncertainty\.agreement_rouge_l"
    ):
        cases_of(Diagnosis(run, {"weights": "claims.mean_uncertainty"}))
    with pytest.raises(InputError, match="sample answers or verify claims first"):
        cases_of(Diagnosis(begin(data, RunOptions(), llm, InfluenceStep())))


KILLED = textwrap.dedent("""
    import sys
    from core.conformal import ConformalRAG
    from tests.scripted import ScriptedLLM
    folder = sys.argv[1]
    llm = ScriptedLLM(lambda request: "Paris", delay=0.002, log=f"{folder}/calls.log")
    with ConformalRAG(llm, f"{folder}/c.db", n_samples=4) as rag:
        rag.calibrate([f"Q{i}?" for i in range(12)], ["Text."] * 12, ["Paris"] * 12)
""")


@pytest.mark.slow
def test_killed_without_a_cache_and_started_again_it_repeats_no_finished_question(tmp_path):
    def start():
        return subprocess.Popen([sys.executable, "-c", KILLED, tmp_path], cwd=ROOT)

    def log():
        path = tmp_path / "calls.log"
        return path.read_text().split() if path.exists() else []

    process = start()
    while process.poll() is None and len(log()) < 23:
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(timeout=30) == -signal.SIGKILL
    before = log()
    with CalibrationStore(tmp_path / "c.db") as store:
        n_stored = len(store)
    # Of the questions whose calls have all been made at most the last one may lack its score.
    assert len(before) // 5 - 1 <= n_stored <= len(before) // 5 and n_stored >= 3
    assert start().wait(timeout=60) == 0
    repeated = len(log()) - 12 * 5
    assert 0 <= repeated <= len(before) - 5 * n_stored  # the calls of the question in progress
    assert set(log()[len(before) :]).isdisjoint(before[: 5 * n_stored])
    with CalibrationStore(tmp_path / "c.db") as store:
        assert store.frame()["question"].tolist() == [f"Q{i}?" for i in range(12)]


@pytest.mark.slow
def test_realised_coverage_lies_in_its_exact_band(rag):
    n, n_test, alpha = 150, 300, 0.1
    vocabulary = np.array([f"w{i}" for i in range(500)])

    def rule(request):
        number = int(re.search(r"Q(\d+)", question_of(request))[1])
        rng = np.random.default_rng(number)
        text, share, right = rng.choice(vocabulary, 30), rng.beta(4, 2), rng.random() < 0.7
        kept = np.random.default_rng([number, request.seed]).random(30) < share
        # Wrong answers are less consistent, which must not matter for the promise.
        kept &= right | (np.arange(30) % 3 > 0)
        return ("Paris " if right else "") + " ".join(text[kept] if request.temperature > 0 else text)

    _, found = rag(rule, alpha)
    stats = found.calibrate([f"Q{i}?" for i in range(n)], ["Text."] * n, ["Paris"] * n)
    assert stats["n_labels"] == n and 80 < stats["n_correct"] < 130
    results = [found.predict_with_coverage(f"Q{i}?", "Text.") for i in range(n, n + n_test)]
    reliable = np.array([one.is_reliable for one in results])
    right = np.array([one.prediction.startswith("Paris") for one in results])
    assert len({one.confidence for one in results}) > 0.95 * n_test  # hardly a tie
    low, high = coverage_band(stats["n_correct"], alpha, 0.999, n_test=int(right.sum()))
    assert low <= reliable[right].mean() <= high and high - low < 0.3
    assert reliable[~right].mean() < low  # what is not promised: here it finds wrong answers
