"""The step that finds claims: tables, failures, resuming, cancelling; judges that are scripts, and a real one."""

import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.claims.step import ClaimsStep
from core.claims.verifiers.judge import JudgeVerifier
from core.claims.verifiers.offline import OfflineVerifier
from core.errors import BackendError, InputError, TransientError
from core.llm import Capabilities, CompletionCache, open_llm
from core.llm.cache import request_key
from core.pipeline import RetryPolicy
from core.pipeline.asking import Asker
from core.pipeline.steps import ModelChoice, fill
from core.run import Run
from core.text import words
from tests.core.claims.claim_runs import WordByWord
from tests.scripted import ScriptedLLM
from tests.servers.fault_proxy import OK, fault_proxy, garbage, server_error

ONCE = RetryPolicy(attempts=1, first_wait=0.0, longest_wait=0.0, budget=1.0)
PLAIN = ClaimsStep(joint=False, references=False)
JUDGE = ClaimsStep(verifier="judge", joint=False, references=False)
GAIN = ClaimsStep(verifier="gain", joint=False, references=False)
BY_RULES = ClaimsStep(verifier="judge", decompose="rules", joint=False, references=False)
TEXTS = ("The red mill is old. It burned.", "A lake is near the mill.")


def make_run(*answers, texts=TEXTS, references=None, questions=None, **manifest):
    """Return a run of one question for each answer; an answer may be (answer, status)."""
    pairs = [answer if isinstance(answer, tuple) else (answer, "answered") for answer in answers]
    queries = [
        {
            "query_id": f"q{i}",
            "question": questions[i] if questions else f"What is number {i}?",
            "answer": answer,
            "answer_status": status,
            "reference_answers": references[i] if references else None,
        }
        for i, (answer, status) in enumerate(pairs)
    ]
    passages = [
        {"query_id": q["query_id"], "passage_id": f"p{j}", "text": text, "retrieval_rank": j}
        for q in queries
        for j, text in enumerate(texts, start=1)
    ]
    tables = {"queries": pd.DataFrame(queries)} | ({"passages": pd.DataFrame(passages)} if passages else {})
    return Run.create({"source": "upload", "name": "mills", **manifest}, **tables)


def shared(claim, passage):
    """Share of the claim's words that the passage has."""
    wanted = set(words(claim))
    return len(wanted & set(words(passage))) / len(wanted)


class WordVerifier:
    """Judges by shared words, breaks as told, and writes down every cell that it is asked about."""

    name = "words"

    def __init__(self, broken=lambda claims, passages: None):
        self.broken = broken
        self.cells = Counter()

    def support(self, claims, passages):
        self.cells.update((c, p) for c in claims for p in passages)
        found = self.broken(claims, passages)
        return np.array([[shared(c, p) for p in passages] for c in claims]) if found is None else found


def find_claims(run, step=None, *, verifier=None, **arguments):
    """Fill the run's claims, by a verifier of one's own if there is one."""
    step = step or ClaimsStep()
    return fill(run, step if verifier is None else replace(step, own=verifier), **arguments)


def matrix(run, query_id="q0"):
    rows = run["support"][run["support"]["query_id"] == query_id]
    return {
        (c, p): probability
        for c, p, probability in zip(rows["claim_id"], rows["passage_id"], rows["probability"], strict=True)
    }


def facts(run):
    return run.manifest["steps"]["claims"]


def test_the_tables_of_a_small_run():
    run = make_run("The mill is old. The lake burned! I hope this helps!", run_id="abc", notes=["kept"])
    found = find_claims(run, PLAIN, verifier=WordVerifier())
    claims = found["claims"]
    assert claims["claim_id"].to_list() == ["a1", "a2", "a3"]
    assert claims["text"].to_list() == ["The mill is old.", "The lake burned!", "I hope this helps!"]
    assert claims["spans"].to_list() == [["0:16"], ["17:33"], ["34:52"]]
    assert claims["relevance"].to_list() == ["RELEVANT", "RELEVANT", "IRRELEVANT"]
    assert claims["verdict"].fillna("").to_list() == ["SUPPORTED", "SUPPORTED", ""]
    assert claims["scored"].to_list() == [True, True, False]
    expected = {("a1", "p1"): 1.0, ("a1", "p2"): 0.75, ("a2", "p1"): 2 / 3, ("a2", "p2"): 2 / 3}
    # "The mill is old": p2 has "the", "mill", "is" of four; "The lake burned": each has two of three.
    assert matrix(found) == expected
    assert set(found["support"]["judge"]) == {"words"}
    assert (found.run_id, found.name, found.manifest["notes"]) == ("abc", "mills", ["kept"])
    assert facts(found) | {"seconds": 0} == {
        "options": {
            "verifier": "words",
            "decompose": "auto",
            "repeats": 1,
            "claims_per_call": 5,
            "joint": False,
            "references": False,
        },
        "model": None,
        "n_done": 1,
        "n_left": 0,
        "reasons": {},
        "notes": [],
        "decomposition": "rules",
        "verifier": "words",
        "n_questions": 1,
        "n_claims": 3,
        "n_reference_claims": 0,
        "n_cells": 4,
        "n_unscored": 0,
        "unscored_reasons": {},
        "n_counterparts_unscored": 0,
        "n_by_rules": 0,
        "decomposition_reasons": {},
        "n_not_extracted": 0,
        "joint_left": [],
        "n_calls": 0,
        "seconds": 0,
        "tries": 1,
        "complete": True,
    }
    json.dumps(facts(found), allow_nan=False)


@pytest.mark.parametrize(
    ("answer", "status", "claims", "cells"),
    [
        ("I don't know.", "abstained", [("I don't know.", "IRRELEVANT")], 0),
        ("I don't know.", None, [("I don't know.", "IRRELEVANT")], 0),
        ("I don't know, but the mill is old. It burned.", "abstained", None, 0),
        ("", "empty", [], 0),
        ("…", None, [], 0),
        (None, "error", [], 0),
        (None, None, [], 0),
        ("1866", "answered", [("What is number 0? 1866", "RELEVANT")], 2),
        ("1866", None, [("What is number 0? 1866", "RELEVANT")], 2),
        ("Hello!", "answered", [("Hello!", "IRRELEVANT")], 0),
    ],
)
def test_answers_that_state_little_or_nothing(answer, status, claims, cells):
    verifier = WordVerifier()
    found = find_claims(make_run((answer, status)), PLAIN, verifier=verifier)
    listed = list(zip(found["claims"]["text"], found["claims"]["relevance"], strict=True))
    assert listed == claims if claims is not None else {r for _, r in listed} == {"IRRELEVANT"}
    assert len(found["support"]) == cells == sum(verifier.cells.values())
    assert facts(found)["complete"] and facts(found)["n_unscored"] == 0
    assert find_claims(found, PLAIN, verifier=verifier) is found


def test_passages_without_text_are_not_judged():
    verifier = WordVerifier()
    run = make_run("The mill is old.", texts=(None, " — ", "The mill is old."))
    found = find_claims(run, PLAIN, verifier=verifier)
    assert matrix(found) == {("a1", "p3"): 1.0}
    assert find_claims(found, PLAIN, verifier=verifier) is found
    nothing = find_claims(make_run("The mill is old.", texts=()), PLAIN, verifier=verifier)
    assert nothing["claims"][["scored", "verdict"]].isna().to_numpy().tolist() == [[False, True]]
    assert not nothing["claims"]["scored"].any() and facts(nothing)["complete"]


def test_passages_are_in_retrieval_order():
    run = make_run("The mill is old.")
    run = run.derive(passages=run.passages.iloc[::-1])
    found = find_claims(run, PLAIN, verifier=WordVerifier())
    assert found["support"]["passage_id"].to_list() == ["p1", "p2"]


# --- failures


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (TimeoutError("too slow"), "The verifier failed (TimeoutError: too slow)."),
        (TransientError("The server is busy."), "The server is busy."),
        ([[0.5]], "The verifier gave the shape (1, 1), where (1, 2) is right."),
        ([["high", "low"]], "The verifier gave something that is no matrix of numbers."),
        ([[7.0, np.nan]], "The verifier gave 7, which is no probability."),
        ([[np.nan, np.nan]], "The verifier gave no probability and no reason."),
        (None, "The verifier gave the shape (), where (1, 2) is right."),
    ],
)
def test_what_a_verifier_cannot_judge_is_unscored_and_asked_again(fault, reason):
    answers = "The mill is old.", "The lake is red.", "It burned."

    def broken(claims, _):
        if "lake" in claims[0]:
            if isinstance(fault, Exception):
                raise fault
            return np.float64(0.5) if fault is None else fault
        return None

    verifier = WordVerifier(broken)
    first = find_claims(make_run(*answers), PLAIN, verifier=verifier)
    assert (facts(first)["n_unscored"], facts(first)["unscored_reasons"]) == (2, {reason: 2})
    assert facts(first)["complete"]
    lake = first["claims"].iloc[1]
    assert not lake["scored"] and pd.isna(lake["verdict"])
    assert first["claims"]["scored"].sum() == 2
    asked = verifier.cells.copy()

    again = find_claims(first, PLAIN, verifier=verifier)
    assert verifier.cells - asked == Counter({("The lake is red.", text): 1 for text in TEXTS})
    assert facts(again)["n_unscored"] == 2

    verifier.broken = lambda *_: None
    healed = find_claims(again, PLAIN, verifier=verifier)
    assert facts(healed)["n_unscored"] == 0 and facts(healed)["unscored_reasons"] == {}
    whole = find_claims(make_run(*answers), PLAIN, verifier=WordVerifier())
    for name in ("claims", "support", "joint_support"):
        pd.testing.assert_frame_equal(healed[name], whole[name])
    assert find_claims(healed, PLAIN, verifier=verifier) is healed


def test_single_cells_are_asked_again(tmp_path):
    gaps = np.array([[0.4, np.nan], [0.6, 0.7], [np.nan, np.nan]])
    verifier = WordVerifier(lambda claims, _: gaps if len(claims) == 3 else None)
    run = make_run("The mill is old. The lake is red. It burned in May.")
    first = find_claims(run, PLAIN, verifier=verifier)
    assert facts(first)["n_unscored"] == 3
    # No passage supports the first claim, but one of them is unknown.
    assert first["claims"]["verdict"].fillna("").to_list() == ["", "SUPPORTED", ""]
    verifier.cells.clear()
    saved = Run.load(first.save(tmp_path / "run"))
    second = find_claims(saved, PLAIN, verifier=verifier)
    mill, burned = "The mill is old.", "It burned in May."
    assert verifier.cells == Counter([(burned, TEXTS[0]), (mill, TEXTS[1]), (burned, TEXTS[1])])
    assert matrix(second) == {
        ("a1", "p1"): 0.4,
        ("a1", "p2"): 0.75,
        ("a2", "p1"): 0.6,
        ("a2", "p2"): 0.7,
        ("a3", "p1"): 0.5,
        ("a3", "p2"): 0.0,
    }
    assert find_claims(Run.load(second.save(tmp_path / "run")), PLAIN, verifier=verifier).manifest == (
        Run.load(tmp_path / "run").manifest
    )


def test_a_failure_of_many_questions_at_once_is_looked_for_one_by_one():
    class Many(WordVerifier):
        def support_many(self, groups):
            return [self.support(*group) for group in groups]

    def broken(claims, _):
        if claims[0] == "It burned.":
            raise ValueError("sk-aaaaaaaaaaaaaaaaaaaaaaaa is no claim")
        return None

    found = find_claims(make_run("The mill is old.", "It burned."), PLAIN, verifier=Many(broken))
    assert facts(found)["unscored_reasons"] == {"The verifier failed (ValueError: … is no claim).": 2}
    assert matrix(found)["a1", "p1"] == 1.0


def test_a_verifier_that_never_reaches_its_model_raises():
    def broken(*_):
        raise BackendError("There is no server.")

    with pytest.raises(BackendError, match=r"There is no server\."):
        find_claims(make_run("The mill is old.", "It burned."), PLAIN, verifier=WordVerifier(broken))


def test_a_function_will_do_as_a_verifier():
    def half(claims, passages):
        return [[0.5] * len(passages)] * len(claims)

    found = find_claims(make_run("The mill is old."), PLAIN, verifier=half)
    assert set(found["support"]["judge"]) == {"half"}
    assert set(found["support"]["probability"]) == {0.5}
    with pytest.raises(InputError, match="verifier must be a Verifier or a function"):
        find_claims(found, PLAIN, verifier="offline")


# --- what is kept and what is replaced


def test_other_settings_and_imported_claims_are_replaced():
    run = make_run("The mill is old.")
    imported = pd.DataFrame(
        [{"query_id": "q0", "claim_id": "c1", "text": "Imported.", "verdict": "SUPPORTED"}]
    )
    support = pd.DataFrame([{"query_id": "q0", "claim_id": "c1", "passage_id": "p1", "probability": 1.0}])
    first = find_claims(run.derive(claims=imported, support=support), PLAIN, verifier=WordVerifier())
    assert first["claims"]["text"].to_list() == ["The mill is old."]
    assert first["support"]["claim_id"].to_list() == ["a1", "a1"]

    class Other(WordVerifier):
        name = "other"

    second = find_claims(first, PLAIN, verifier=Other(lambda *_: np.zeros((1, 2))))
    assert set(second["support"]["judge"]) == {"other"}
    assert second["claims"]["verdict"].to_list() == ["NOT_SUPPORTED"]
    third = find_claims(second, ClaimsStep(references=False), verifier=(judge := Other()))
    assert judge.cells.total() == 2 and set(third["support"]["probability"]) == {0.75, 1.0}


def test_questions_that_came_later_are_found():
    first = find_claims(make_run("The mill is old."), PLAIN, verifier=WordVerifier())
    longer = make_run("The mill is old.", "It burned.", steps={"claims": facts(first)})
    longer = Run.create(
        longer.manifest, **{**longer.tables, "claims": first["claims"], "support": first["support"]}
    )
    verifier = WordVerifier()
    found = find_claims(longer, PLAIN, verifier=verifier)
    assert found["claims"]["query_id"].to_list() == ["q0", "q1"]
    assert {claim for claim, _ in verifier.cells} == {"It burned."}


@settings(max_examples=25)
@given(
    st.lists(
        st.lists(
            st.sampled_from(["The mill is old.", "It burned.", "Hello!", "I don't know.", "A lake", "…"]),
            max_size=4,
        ),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.sampled_from(["a mill", "", "…", None]), max_size=3),
    st.integers(0, 5),
)
def test_every_relevant_claim_has_a_cell_for_every_passage_with_a_word(answers, texts, n_broken):
    left = iter(range(n_broken))

    def broken(claims, passages):
        if next(left, None) is not None:
            raise RuntimeError
        return None

    run = make_run(*((" ".join(sentences), None) for sentences in answers), texts=texts)
    found = find_claims(run, PLAIN, verifier=WordVerifier(broken))
    n_texts = sum(text == "a mill" for text in texts)
    assert len(found["support"]) == (found["claims"]["relevance"] == "RELEVANT").sum() * n_texts
    n_missing = int(found["support"]["probability"].isna().sum())
    assert facts(found)["n_unscored"] == n_missing == sum(facts(found)["unscored_reasons"].values())
    assert (found["claims"]["verdict"].notna() <= found["claims"]["scored"]).all()
    assert facts(find_claims(found, PLAIN, verifier=WordVerifier()))["n_unscored"] == 0


# --- references


def test_reference_claims_and_counterparts():
    run = make_run(
        "The red mill is old. It sank.",
        ("I don't know.", "abstained"),
        references=[["The old mill burned.", "The mill is red and old."], ["A lake is near."]],
    )
    options = ClaimsStep(joint=False)
    verifier = WordVerifier()
    found = find_claims(run, options, verifier=verifier)
    claims = found["claims"].set_index(["query_id", "claim_id"])
    assert claims["side"].to_list() == ["answer", "answer", "reference", "answer", "reference"]
    assert claims.loc[("q0", "r1"), "text"] == "The old mill burned."
    assert claims.loc[("q0", "r1"), "verdict"] == "SUPPORTED"
    assert pd.isna(claims.loc[("q0", "r1"), "start"])
    # "The red mill is old." shares 3 of 5 words with the first reference and all with the second; "It sank."
    # none with either; "The old mill burned." shares 3 of 4 with the answer.
    assert claims["counterpart"].fillna("").to_list() == ["Entailment", "Neutral", "Entailment", "", ""]
    assert matrix(found, "q1")[("r1", "p2")] == 1.0
    assert find_claims(found, options, verifier=verifier) is found
    without = find_claims(run, ClaimsStep(joint=False, references=False), verifier=verifier)
    assert set(without["claims"]["side"]) == {"answer"}
    assert without["claims"]["counterpart"].isna().all()


def test_bare_values_are_compared_as_words():
    questions = ["In which year did the mill burn?"] * 3
    run = make_run("1866", "The mill burned in 1866.", "1901", references=[["1866"]] * 3, questions=questions)
    verifier = WordVerifier(lambda claims, passages: np.zeros((len(claims), len(passages))))
    found = find_claims(run, ClaimsStep(joint=False), verifier=verifier)
    assert (facts(found)["n_claims"], facts(found)["n_reference_claims"]) == (3, 3)
    claims = found["claims"].set_index(["query_id", "side"])
    assert claims.loc[("q0", "answer"), "text"] == f"{questions[0]} 1866"
    assert claims.loc[("q1", "reference"), "text"] == f"{questions[0]} 1866"
    assert claims["counterpart"].to_list() == ["Entailment"] * 2 + ["Neutral", "Entailment"] + ["Neutral"] * 2
    # The verifier was asked where words do not settle it, with the question in front on both sides.
    value = f"{questions[0]} 1866"
    compared = {cell for cell in verifier.cells if cell[1] not in TEXTS}
    assert compared == {
        ("The mill burned in 1866.", value),
        (f"{questions[0]} 1901", value),
        (value, f"{questions[0]} 1901"),
    }


def test_a_comparison_that_fails_is_asked_again():
    def broken(claims, passages):
        return [[np.nan]] if passages[0] not in TEXTS else None

    run = make_run("The mill is old.", references=[["The mill burned."]])
    options = ClaimsStep(joint=False)
    first = find_claims(run, options, verifier=WordVerifier(broken))
    assert first["claims"]["counterpart"].isna().all()
    assert (facts(first)["n_counterparts_unscored"], facts(first)["n_unscored"]) == (2, 0)
    verifier = WordVerifier()
    second = find_claims(first, options, verifier=verifier)
    assert second["claims"]["counterpart"].to_list() == ["Entailment"] * 2
    assert verifier.cells.total() == 2 and facts(second)["n_counterparts_unscored"] == 0


# --- pairs of passages


def test_two_passages_together():
    run = make_run("The red mill burned.", texts=("red burned", "the mill", "a lake"))

    def strict(claims, passages):
        return [[float(shared(c, p) == 1) for p in passages] for c in claims]

    options = ClaimsStep(references=False)
    verifier = WordVerifier(strict)
    found = find_claims(run, options, verifier=verifier)
    assert found["joint_support"].to_numpy().tolist() == [["q0", "a1", "p1", "p2", 1.0, "words"]]
    assert found["claims"]["verdict"].to_list() == ["SUPPORTED"]
    assert set(found["support"]["probability"]) == {0.0}
    assert verifier.cells.total() == 6  # three cells, three pairs
    assert find_claims(found, options, verifier=verifier) is found
    assert len(find_claims(run, PLAIN, verifier=verifier)["joint_support"]) == 0


def test_pairs_that_could_not_be_judged_are_asked_again():
    def no_pairs(claims, passages):
        if "\n\n" in passages[0]:
            raise TimeoutError
        return np.zeros((len(claims), len(passages)))

    options = ClaimsStep(references=False)
    run = make_run("The mill burned.", "The lake burned.")
    first = find_claims(run, options, verifier=WordVerifier(no_pairs))
    assert facts(first)["joint_left"] == ["q0", "q1"] and facts(first)["n_unscored"] == 0
    assert first["claims"]["verdict"].to_list() == ["NOT_SUPPORTED"] * 2
    assert facts(first)["notes"] == [
        "Pairs of passages of 2 questions were not verified. Run the step again to try them again."
    ]
    verifier = WordVerifier()
    second = find_claims(first, options, verifier=verifier)
    assert verifier.cells.total() == 2
    assert len(second["joint_support"]) == 2 and facts(second)["joint_left"] == []


# --- a language model


def read(request):
    """Return the passage and the claims that a judge is asked about."""
    lines = request.messages[1].content.split("\n\n")
    passage = json.loads(lines[0].removeprefix("Passage: "))
    return passage, [json.loads(line.split(": ", 1)[1]) for line in lines if line.startswith("Claim ")]


def script(request):
    """Break up by sentence, in small letters; support by words."""
    content = request.messages[1].content
    if not content.startswith("Passage: "):
        found = re.findall(r"^(\d+)\. (.*)$", content, re.MULTILINE)
        return json.dumps({"claims": [{"sentence": int(n), "claim": text.lower()} for n, text in found]})
    passage, claims = read(request)
    verdicts = ["SUPPORTED" if shared(claim, passage) == 1 else "NOT_SUPPORTED" for claim in claims]
    return json.dumps({str(n): verdict for n, verdict in enumerate(verdicts, start=1)})


def is_judging(request):
    return request.messages[1].content.startswith("Passage: ")


def test_a_model_that_breaks_up_and_judges():
    llm = ScriptedLLM(script)
    run = make_run("The mill is old. It burned.", "1866", ("I don't know.", "abstained"))
    found = find_claims(run, JUDGE, llm=llm)
    assert found["claims"]["text"].to_list()[:2] == ["the mill is old.", "it burned."]
    assert found["claims"]["text"].to_list()[2:] == ["What is number 1? 1866", "I don't know."]
    assert matrix(found) == {("a1", "p1"): 1, ("a1", "p2"): 0, ("a2", "p1"): 1, ("a2", "p2"): 0}
    assert set(found["support"]["judge"]) == {"judge:scripted"}
    assert found["support"]["agreement"].isna().all()
    # One call for the longer answer; two passages for each of two answers.
    assert facts(found)["n_calls"] == llm.calls == 5
    assert facts(found)["decomposition"] == "model:scripted"
    assert find_claims(found, JUDGE, llm=llm) is found
    rules = find_claims(found, BY_RULES, llm=llm)
    assert rules["claims"]["text"][0] == "The mill is old." and facts(rules)["decomposition"] == "rules"


def test_repeated_verdicts_agree_or_not():
    options = ClaimsStep(verifier="judge", decompose="rules", repeats=3, joint=False, references=False)
    llm = ScriptedLLM(lambda r: json.dumps({"1": "SUPPORTED" if r.seed else "NOT_SUPPORTED"}))
    found = find_claims(make_run("The mill is old."), options, llm=llm)
    np.testing.assert_allclose(found["support"]["probability"], 2 / 3)
    np.testing.assert_allclose(found["support"]["agreement"], 2 / 3)
    assert llm.calls == 6


def test_a_model_that_breaks_up_badly_is_replaced_by_the_rules():
    llm = ScriptedLLM(lambda request: script(request) if is_judging(request) else "no")
    found = find_claims(make_run("The mill is old."), JUDGE, llm=llm)
    assert found["claims"]["text"].to_list() == ["The mill is old."]
    assert facts(found)["n_by_rules"] == sum(facts(found)["decomposition_reasons"].values()) == 1


def test_a_model_that_cannot_be_reached_raises_and_asks_nothing_else():
    for options in (JUDGE, BY_RULES):
        llm = ScriptedLLM(script, down=True)
        with pytest.raises(BackendError, match="down"):
            find_claims(make_run("The mill is old.", "It burned."), options, llm=llm, retry=ONCE)
        assert llm.calls == 1


def test_a_model_that_fails_in_the_middle_loses_nothing():
    def failing(request):
        if is_judging(request) and "lake" in read(request)[0]:
            raise TransientError("The model is busy.")
        return script(request)

    cache = CompletionCache()
    run = make_run("The mill is old.", "It burned down.")
    first = find_claims(run, JUDGE, llm=ScriptedLLM(failing), cache=cache, retry=ONCE)
    assert facts(first)["complete"]
    assert facts(first)["unscored_reasons"] == {"The model is busy.": facts(first)["n_unscored"]}
    assert first["support"]["probability"].notna().sum() >= 1
    llm = ScriptedLLM(script)
    second = find_claims(first, JUDGE, llm=llm, cache=cache)
    assert facts(second)["n_unscored"] == 0
    assert llm.calls == facts(first)["n_unscored"]
    whole = find_claims(run, JUDGE, llm=ScriptedLLM(script))
    for name in ("claims", "support"):
        pd.testing.assert_frame_equal(second[name], whole[name])


def test_a_model_that_has_gone_when_cells_are_asked_again():
    llm = ScriptedLLM(lambda request: script(request) if "lake" not in read(request)[0] else "no")
    first = find_claims(make_run("The mill is old."), BY_RULES, llm=llm)
    assert facts(first)["n_unscored"] == 1
    second = find_claims(first, BY_RULES, llm=ScriptedLLM(script, down=True), retry=ONCE)
    assert facts(second)["unscored_reasons"] == {"The scripted model is down.": 1}
    pd.testing.assert_frame_equal(second["support"], first["support"])


def test_an_nli_model_that_is_not_there(tmp_path):
    options = ClaimsStep(verifier="nli", verifier_model=str(tmp_path / "absent"))
    with pytest.raises(BackendError, match="cannot be loaded"):
        find_claims(make_run("The mill is old."), options)


def test_a_question_that_cannot_be_broken_up_is_left_for_the_next_time():
    answers = ["The mill is old now.", "The lake burned down."]

    def failing(request):
        if not is_judging(request) and "lake" in request.messages[1].content:
            raise ValueError("odd model")
        return script(request)

    first = find_claims(make_run(*answers), JUDGE, llm=ScriptedLLM(failing))
    assert first["claims"]["query_id"].to_list() == ["q0"]
    assert (facts(first)["n_not_extracted"], facts(first)["n_left"]) == (1, 1)
    assert facts(first)["reasons"] == {"The model failed on this question (ValueError: odd model).": 1}
    assert facts(first)["notes"] == [
        "Claims of 1 question were not extracted. Run the step again to try them again."
    ]
    llm = ScriptedLLM(script)
    second = find_claims(first, JUDGE, llm=llm)
    assert second["claims"]["query_id"].to_list() == ["q0", "q1"] and facts(second)["n_left"] == 0
    assert facts(second)["notes"] == second.manifest["notes"] == []
    assert llm.calls == 3


def test_a_reply_that_cannot_be_used_is_asked_for_again_although_it_is_in_the_cache():
    good = []

    def sulking(request):
        return script(request) if good or not is_judging(request) else "I would rather not."

    llm, cache = ScriptedLLM(sulking), CompletionCache()
    run = make_run("The mill is old.")
    first = find_claims(run, BY_RULES, llm=llm, cache=cache)
    assert facts(first)["n_unscored"] == 2 and llm.calls == 4
    assert facts(first)["tries"] == 1 and {request.seed for request in llm.requests} == {0}
    again = find_claims(first, BY_RULES, llm=llm, cache=cache)
    assert facts(again)["n_unscored"] == 2 and llm.calls == 8
    # More than the greatest number of repeats lies between two tries.
    assert facts(again)["tries"] == 2 and {request.seed for request in llm.requests[4:]} == {1000}
    good.append(True)
    assert facts(find_claims(again, BY_RULES, llm=llm, cache=cache))["n_unscored"] == 0
    assert llm.calls == 10


@pytest.mark.parametrize("stop_at", [1, 4, 9, 17])
def test_no_call_is_made_twice_after_a_cancel(stop_at, tmp_path):
    answers = [f"The mill number {i} is old. It burned in {1800 + i}." for i in range(9)]
    run = make_run(*answers, references=[[f"It burned in {1800 + i}."] for i in range(9)])
    options = ClaimsStep(verifier="judge")
    log = []

    def logged(request):
        log.append(request_key(llm, request))
        return script(request)

    llm, cache = ScriptedLLM(logged), CompletionCache(tmp_path / "calls.db")
    partial = find_claims(run, options, llm=llm, cache=cache, cancelled=lambda: len(log) >= stop_at)
    assert not facts(partial)["complete"] and facts(partial)["n_left"] > 0
    assert facts(partial)["n_calls"] == len(log)
    whole = find_claims(Run.load(partial.save(tmp_path / "run")), options, llm=llm, cache=cache)
    assert facts(whole)["complete"] and facts(whole)["n_unscored"] == 0
    assert set(Counter(log).values()) == {1}
    assert facts(whole)["n_calls"] == len(log)
    fresh = find_claims(run, options, llm=ScriptedLLM(script))
    for name in ("claims", "support", "joint_support"):
        pd.testing.assert_frame_equal(whole[name], fresh[name])
    assert facts(fresh)["n_calls"] == len(log)


def test_a_step_that_is_cancelled_before_it_starts():
    verifier = WordVerifier()
    run = make_run("The mill is old.")
    found = find_claims(run, PLAIN, verifier=verifier, cancelled=lambda: True)
    assert not verifier.cells and len(found["claims"]) == 0
    assert (facts(found)["complete"], facts(found)["n_left"]) == (False, 1)
    assert len(find_claims(found, PLAIN, verifier=verifier)["support"]) == 2


def test_a_second_try_that_is_stopped_counts_for_nothing():
    def broken(*_):
        raise TimeoutError("too slow")

    first = find_claims(make_run("The mill is old.", "It burned."), PLAIN, verifier=WordVerifier(broken))
    stopped = find_claims(first, PLAIN, verifier=WordVerifier(), cancelled=lambda: True)
    assert (facts(first)["tries"], facts(stopped)["tries"]) == (1, 1)
    assert facts(first)["unscored_reasons"] == {"The verifier failed (TimeoutError: too slow).": 4}
    assert facts(stopped)["unscored_reasons"] == {"Not tried again yet.": 4}
    assert len(facts(first)["notes"]) == 1 and facts(stopped)["notes"] == []


@pytest.mark.parametrize(
    ("step", "apart", "batch"),
    [
        (PLAIN, "rows", 16),
        (JUDGE, "rows", 4),
        (GAIN, "rows", 4),
        (ClaimsStep(verifier="nli", verifier_model="m"), "run", 16),
        (replace(PLAIN, own=WordVerifier()), "run", 16),
    ],
)
def test_how_many_questions_at_once_and_where(step, apart, batch):
    work = step.open(make_run("It burned."), Asker(GainLLM()))
    assert (work.apart, work.batch) == (apart, batch)


def test_what_another_process_did_counts_as_if_done_here():
    def broken(claims, passages):
        if "\n\n" in passages[0]:
            raise TimeoutError
        return np.full((len(claims), len(passages)), np.nan if "lake" in claims[0] else 0.0)

    def muttering(request):
        return "no" if not is_judging(request) else script(request)

    run = make_run("The mill is very old.", "The lake is red.", ("…", "answered"))
    step = ClaimsStep(decompose="model", references=False, own=WordVerifier(broken))
    here, there = (step.open(run, Asker(ScriptedLLM(muttering))) for _ in range(2))
    assert here.todo(run) == there.todo(run) == ["q0", "q1", "q2"]
    both = run
    for ids in (["q0", "q2"], ["q1"]):
        rows = there.work(ids)
        told = there.tell(ids)
        here.hear(ids, told)
        new = {name: pd.concat([both[name], pd.DataFrame(listed)]) for name, listed in rows.items() if listed}
        both = both.derive(**new)
    assert here.facts(both) == there.facts(both)
    assert here.facts(both)["n_by_rules"] == 2 and here.facts(both)["joint_left"] == ["q0"]
    assert here.facts(both)["n_unscored"] == here.facts(both)["unscored_reasons"].popitem()[1] == 2
    assert (here.facts(both)["n_not_extracted"], here.facts(both)["tries"]) == (0, 1)
    assert here.facts(both)["notes"]


def test_progress_and_partial_runs():
    seen, partial = [], []
    run = make_run(*(f"The mill number {i} is old." for i in range(40)))
    find_claims(
        run,
        PLAIN,
        verifier=WordVerifier(),
        progress=lambda *told: seen.append(told),
        on_part=partial.append,
    )
    assert seen[:2] == [(0, 40, "question 1 of 40"), (16, 40, "question 17 of 40")]
    assert [done for done, *_ in seen] == [0, 16, 32, 40]
    assert len(partial) >= 1
    assert not facts(partial[0])["complete"]
    assert len(partial[0]["claims"]) == 16 and facts(partial[0])["n_left"] == 24
    assert partial[0].run_id == run.run_id
    calls = []
    llm = ScriptedLLM(script)
    find_claims(make_run("The mill is old."), JUDGE, llm=llm, progress=lambda *told: calls.append(told))
    assert calls == [(0, 1, "question 1 of 1")] + [
        (0, 1, f"question 1 of 1, {said} answered") for said in ("1 call", "2 calls", "3 calls")
    ] + [(1, 1, "question 1 of 1, 3 calls answered")]


class ScoringLLM(ScriptedLLM):
    """Says how likely given answers are: the verdict that words suggest gets most."""

    def __init__(self):
        super().__init__(script)
        self.capabilities = Capabilities(answer_logprob=True)
        self.readings = []

    def score(self, messages, answers):
        found = []
        for turns, answer in zip(messages, answers, strict=True):
            passage = json.loads(turns[1].content.split("\n\n")[0].removeprefix("Passage: "))
            claim = json.loads(turns[1].content.split("\n\n")[1].removeprefix("Claim 1: "))
            self.readings.append((claim, passage, answer))
            likely = (shared(claim, passage) == 1) == (answer == "SUPPORTED")
            found.append((-0.25, 0.0) if likely else (-1.0, -0.25))
        return found


def test_log_probabilities_are_read_once_and_can_be_cancelled():
    answers = [f"The mill is old. It burned in {1800 + i}." for i in range(8)]
    run, llm, cache = make_run(*answers), ScoringLLM(), CompletionCache()
    partial = find_claims(run, BY_RULES, llm=llm, cache=cache, cancelled=lambda: len(llm.readings) >= 16)
    assert not facts(partial)["complete"] and len(llm.readings) == 16
    found = find_claims(partial, BY_RULES, llm=llm, cache=cache)
    assert facts(found)["complete"]
    # Two labels of two claims and two passages; "The mill is old." is asked about once.
    assert len(llm.readings) == len(set(llm.readings)) == facts(found)["n_calls"] == 2 * 2 * (1 + 8)
    assert llm.calls == 0
    assert matrix(found)["a1", "p1"] == pytest.approx(1 / (1 + np.exp(-1.0)))
    assert matrix(found)["a1", "p2"] == pytest.approx(1 / (1 + np.exp(1.0)))


class GainLLM(ScriptedLLM):
    """Gives words of the prompt a log-probability of -1, others -4; notes what it reads."""

    def __init__(self):
        super().__init__(script)
        self.capabilities = Capabilities(answer_logprob=True)
        self.readings = []

    def score(self, messages, answers):
        pairs = [(turns[-1].content, answer) for turns, answer in zip(messages, answers, strict=True)]
        self.readings += pairs
        return [tuple(-1.0 if w in words(prompt) else -4.0 for w in words(text)) for prompt, text in pairs]


def test_gains_are_read_once_kept_and_resumed():
    answers = [f"The mill is old. It burned in {1800 + i}." for i in range(16)]
    run, llm, cache = make_run(*answers), GainLLM(), CompletionCache()
    partial = find_claims(run, GAIN, llm=llm, cache=cache, cancelled=lambda: len(llm.readings) >= 16)
    assert not facts(partial)["complete"] and 16 <= len(llm.readings) < 51
    found = find_claims(partial, GAIN, llm=llm, cache=cache)
    assert facts(found)["complete"] and facts(found)["verifier"] == "gain:scripted"
    assert facts(found)["decomposition"] == "rules"
    # 17 claims behind two passages and behind none; "The mill is old." is read once for all questions.
    assert len(llm.readings) == len(set(llm.readings)) == facts(found)["n_calls"] == (2 + 1) * (1 + 16)
    assert llm.calls == 0
    cells = matrix(found)
    # "mill is old" are the words that only the first passage has, "mill is" those of the second.
    assert cells["a1", "p1"] > cells["a1", "p2"] > 0
    again = find_claims(run, GAIN, llm=GainLLM(), cache=cache)
    assert again["support"].equals(found["support"]) and facts(again)["n_calls"] == 0


def test_gain_reads_pairs_of_passages_and_references_too():
    run = make_run("Nobody knows why.", references=[["It burned down."]])
    llm = GainLLM()
    find_claims(run, ClaimsStep(verifier="gain"), llm=llm)
    prompts = " ".join(prompt for prompt, _ in llm.readings)
    assert "It burned.\n\nA lake" in prompts and "What is number 0?\nIt burned down." in prompts


def test_a_back_end_that_cannot_score_is_refused_before_any_call():
    llm = ScriptedLLM(script)
    with pytest.raises(InputError, match="gain needs a model that can score a given text; scripted cannot"):
        find_claims(make_run("The mill is old."), GAIN, llm=llm)
    with pytest.raises(InputError, match="gain needs a model"):
        planned(make_run("The mill is old."), GAIN, llm)
    assert llm.calls == 0


def test_a_judge_of_ones_own():
    llm = ScriptedLLM(script)
    found = find_claims(make_run("The mill is old."), PLAIN, verifier=JudgeVerifier(llm), llm=llm)
    assert facts(found)["decomposition"] == "model:scripted"
    assert facts(found)["verifier"] == "judge:scripted" == facts(found)["options"]["verifier"]
    assert matrix(found) == {("a1", "p1"): 1, ("a1", "p2"): 0}


# --- the offline verifier


class CountingEmbedder(WordByWord):
    """Unit vectors of letters; counts how often it reads a text."""

    def __init__(self):
        self.read = Counter()

    def embed(self, texts):
        self.read.update(texts)
        found = np.array([[text.casefold().count(c) + 0.1 for c in "abcdefghijklmnop"] for text in texts])
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def test_the_offline_verifier_reads_every_text_once_and_finds_the_sentence():
    embedder = CountingEmbedder()
    answers = [f"The red mill is old. It burned in {1800 + i}." for i in range(20)]
    found = find_claims(make_run(*answers), PLAIN, verifier=OfflineVerifier(embedder))
    assert set(embedder.read.values()) == {1}
    assert len(found["support"]) == 80 and facts(found)["n_unscored"] == 0
    rows = found["support"].merge(found.passages, on=["query_id", "passage_id"]).iloc[:2]
    sentences = [text[a:b] for text, a, b in zip(rows["text"], rows["start"], rows["end"], strict=True)]
    assert sentences == ["The red mill is old.", "A lake is near the mill."]


def test_the_default_needs_nothing_and_other_judges_get_its_sentences():
    found = find_claims(make_run("The red mill is old."))
    assert facts(found)["verifier"] == "offline"
    assert matrix(found)["a1", "p1"] > 0.5
    judged = find_claims(make_run("The red mill is old."), PLAIN, verifier=WordVerifier())
    assert judged["support"][["start", "end"]].equals(found["support"][["start", "end"]])
    assert judged["support"][["start", "end"]].to_numpy().tolist() == [[0, 20], [0, 24]]


# --- settings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"verifier": "gpt"}, "verifier must be one of offline, judge, gain, nli, got 'gpt'."),
        ({"decompose": "magic"}, "decompose must be one of auto, rules, model, got 'magic'."),
        ({"repeats": 0}, "repeats must be a whole number from 1 to 100, got 0."),
        ({"repeats": True}, "repeats must be a whole number from 1 to 100, got True."),
        ({"claims_per_call": 2.5}, "claims_per_call must be a whole number from 1 to 50, got 2.5."),
        (
            {"verifier_model": "m"},
            "verifier_model is for the verifiers judge, gain and nli, got 'm' for offline.",
        ),
        ({"own": "offline"}, "verifier must be a Verifier or a function"),
    ],
)
def test_settings_that_cannot_be(options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        ClaimsStep(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (ClaimsStep(verifier="judge"), "claims needs llm"),
        (ClaimsStep(verifier="gain"), "claims needs llm"),
        (ClaimsStep(verifier="nli"), "The verifier nli needs verifier_model"),
        (ClaimsStep(decompose="model"), "claims needs llm"),
    ],
)
def test_settings_that_lack_a_model(options, message):
    with pytest.raises(InputError, match=message):
        find_claims(make_run("The mill is old."), options)


@pytest.mark.parametrize(
    ("options", "decomposer", "needs"),
    [
        (ClaimsStep(), "rules", False),
        (ClaimsStep(decompose="model"), "model", True),
        (ClaimsStep(verifier="judge"), "model", True),
        (ClaimsStep(verifier="judge", decompose="rules"), "rules", True),
        (ClaimsStep(verifier="gain"), "rules", True),
        (ClaimsStep(verifier="nli", verifier_model="m"), "rules", False),
    ],
)
def test_who_decomposes_and_whether_a_model_is_needed(options, decomposer, needs):
    assert (options.decomposer, options.needs_llm) == (decomposer, needs)


def test_the_options_of_a_run_make_the_same_step_again():
    step = ClaimsStep(verifier="nli", verifier_model="m", joint=False)
    assert ClaimsStep(**step.settings) == step
    judge = ClaimsStep(
        verifier="judge", verifier_model="large", verifier_llm="ollama", verifier_url="http://x"
    )
    # The model is written down beside the options; its address may change.
    assert ClaimsStep(**judge.settings) == ClaimsStep(verifier="judge")
    found = find_claims(make_run("The mill is old."), PLAIN, verifier=WordVerifier())
    with pytest.raises(InputError, match="got 'words'"):
        ClaimsStep(**facts(found)["options"])


def test_which_model_judges():
    live = ModelChoice("ollama", "small", "http://here")
    assert ClaimsStep().model(live) is None
    assert ClaimsStep(verifier="judge").model(live) == live
    for who in ("judge", "gain"):
        named = ClaimsStep(verifier=who, verifier_model="large", verifier_url="http://there")
        assert named.model(live) == ModelChoice("ollama", "large", "http://there")
    # Model and address of one back end mean nothing to another.
    other = ClaimsStep(verifier="judge", verifier_llm="openai")
    assert other.model(live) == ModelChoice("openai")
    assert ClaimsStep(decompose="model").model(live) == live


def planned(run, step, llm=None):
    asker = Asker(llm)
    return step.open(run, asker).plan(run.queries["query_id"].to_list())


def test_what_it_will_cost_before_it_does():
    run = make_run("The mill is old.", ("", "empty"), (None, None))
    assert planned(run, ClaimsStep()).about == 0
    llm = ScriptedLLM(script)
    # The empty answer states nothing; the one that is not there yet will.
    assert planned(run, JUDGE, llm).about == 2 * (1 + 2)
    assert planned(run, BY_RULES, llm).about == 2 * 2
    assert planned(run, replace(BY_RULES, repeats=3, claims_per_call=2), llm).about == 2 * 2 * 6
    assert planned(run, ClaimsStep(decompose="model"), llm).about == 2
    assert planned(run, BY_RULES, ScoringLLM()).about == 2 * 2 * 6
    # Three claims of each of two answers, with two passages and without.
    gain = planned(run, GAIN, GainLLM())
    assert gain.about == 2 * 3 * (2 + 1)
    # 30 tokens a claim each time, and each passage once, its characters over four.
    texts = run["passages"].groupby("query_id")["text"].get_group("q1")
    assert gain.about_tokens == 30 * gain.about + 2 * sum(len(text) // 4 for text in texts)
    plan = planned(run, JUDGE, llm)
    # 200 tokens of instructions a call, and a quarter of the characters of the answer or passage.
    broken_up = sum(200 + len(answer) // 4 for answer in ("The mill is old.", ""))
    judged = 2 * sum(200 + len(text) // 4 for text in texts)
    assert plan.about_tokens == broken_up + judged and "3 claims an answer" in plan.notes[0]
    twice = planned(run, replace(BY_RULES, repeats=2), llm)
    assert twice.about_tokens == 2 * judged


def test_a_verifier_that_is_known_to_work_may_lose_its_model_and_nothing_is_lost():
    left = iter(range(16))

    def broken(*_):
        if next(left, None) is None:
            raise BackendError("The server has gone.")

    run = make_run(*(f"The mill number {i} is old." for i in range(20)))
    found = find_claims(run, PLAIN, verifier=WordVerifier(broken))
    assert facts(found)["unscored_reasons"] == {"The server has gone.": 8}
    assert facts(found)["reasons"] == {"The server has gone.": 4} and facts(found)["n_left"] == 4
    assert facts(found)["notes"] == [
        "8 of 40 pairs of claim and passage have no score: The server has gone. "
        "Run the step again to try them again."
    ]


# --- a real server

TOWNS = ("Ulm is a city on the Danube in Germany.", "The Danube flows into the Black Sea.")


@pytest.fixture
def no_key(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def real_run():
    return make_run("Ulm lies on the Danube.", "The Danube flows into the Black Sea.", texts=TOWNS)


def opened(server):
    return open_llm("openai", "smollm2-135m", base_url=f"{server}/v1", timeout=60.0)


def test_a_real_model_breaks_up_and_judges(llama, no_key):
    llm = opened(llama)
    found = find_claims(real_run(), JUDGE, llm=llm, cache=CompletionCache())
    assert facts(found)["complete"] and facts(found)["decomposition"] == f"model:{llm.name}"
    assert set(found["claims"]["query_id"]) == {"q0", "q1"}
    relevant = found["claims"]["relevance"].eq("RELEVANT").sum()
    assert len(found["support"]) == 2 * relevant > 0
    scored = found["support"]["probability"].dropna()
    assert len(scored) and set(scored) <= {0.0, 1.0}
    assert facts(found)["n_unscored"] == found["support"]["probability"].isna().sum()


def test_cells_that_a_real_server_failed_on_are_filled_and_no_others_asked(llama, no_key):
    def spoil(exchange):
        asked = exchange.path.endswith("/chat/completions") and exchange.json()["messages"][1]["content"]
        if not asked or "flows into the Black Sea" not in asked.split("\n\n")[0]:
            return OK
        return server_error(500) if 'Claim 1: "Ulm' in asked else garbage()

    cache = CompletionCache()
    with fault_proxy(llama, spoil) as proxy:
        llm = opened(proxy.address)
        first = find_claims(real_run(), BY_RULES, llm=llm, cache=cache, retry=ONCE)
        p = first["support"].set_index(["query_id", "passage_id"])["probability"]
        assert p.isna().to_dict() == {
            ("q0", "p1"): False,
            ("q0", "p2"): True,
            ("q1", "p1"): False,
            ("q1", "p2"): True,
        }
        assert facts(first)["n_unscored"] == sum(facts(first)["unscored_reasons"].values()) == 2
        assert first["claims"]["scored"].all()
        n_before = len(proxy.requests("/chat/completions"))
        proxy.schedule = lambda _: OK
        second = find_claims(first, BY_RULES, llm=llm, cache=cache)
        asked = [e.json()["messages"][1]["content"] for e in proxy.requests("/chat/completions")[n_before:]]
    filled = second["support"].set_index(["query_id", "passage_id"])["probability"]
    assert facts(second)["n_unscored"] == 0 and filled.notna().all()
    assert (filled[p.notna()] == p.dropna()).all()
    assert {text.split("\n\n")[0] for text in asked} == {f"Passage: {json.dumps(TOWNS[1])}"}
    assert len(asked) == 2


def test_a_passage_is_judged_with_the_title_in_front_of_it():
    shown = []

    def judge(claims, passages):
        shown.append(list(passages))
        return np.zeros((len(claims), len(passages)))

    text = "Ships wait for the tide. It was opened in 1914 by the governor."
    run = Run.create(
        {"source": "live"},
        queries=pd.DataFrame(
            {
                "query_id": ["q"],
                "question": ["When was it?"],
                "answer": ["The Panama Canal was opened in 1914."],
                "answer_status": ["answered"],
            }
        ),
        passages=pd.DataFrame(
            {
                "query_id": ["q"] * 3,
                "passage_id": ["a", "b", "c"],
                "title": ["Panama Canal", None, "Empty"],
                "text": [text, "Coffee grows here.", ""],
                "retrieval_rank": [1, 2, 3],
            }
        ),
    )
    found = find_claims(run, verifier=judge)
    assert shown[0] == [f"Panama Canal: {text}", "Coffee grows here."]
    # A title is no text: the passage without a word stays one that cannot be judged.
    assert list(found["support"]["passage_id"]) == ["a", "b"]
    start, end = found["support"].loc[0, ["start", "end"]]
    assert text[start:end].strip() == "It was opened in 1914 by the governor."


def test_a_verifier_of_ones_own_is_not_shown():
    class Keyed(WordVerifier):
        def __repr__(self):
            return "Keyed('sk-secret')"

    assert "secret" not in repr(replace(PLAIN, own=Keyed()))
