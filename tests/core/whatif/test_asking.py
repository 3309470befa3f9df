"""One question asked with a change: which calls are made, and what the sentences say of noise."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from core.errors import BackendError, InputError
from core.losses.fixes import Fix
from core.pipeline.asking import Asker
from core.pipeline.steps import model_facts
from core.run import Run
from core.whatif import versions
from core.whatif.asking import (
    Version,
    as_version,
    ask,
    by_any_change,
    cost,
    counted,
    is_supported,
    noise,
    passages_of,
)
from core.whatif.change import Added, Change, read_change
from tests.scripted import ScriptedLLM

FACTS = model_facts(ScriptedLLM(lambda request: ""))


def one_question(repeats=("1903", "1931", "1903"), model=FACTS, **columns):
    query = {
        "query_id": ["q1"], "question": ["When did it open?"], "answer": ["1903"], "answer_status": ["answered"],
        "reference_answers": [["1931"]], "prompt_tokens": [100], "latency": [2.0],
    } | {name: [value] for name, value in columns.items()}  # fmt: skip
    texts = ["Built in 1903.", "Opened in 1931.", "Painted in 1950."]
    passages = pd.DataFrame(
        {
            "query_id": "q1", "passage_id": ["a", "b", "c"], "title": ["A", "B", "C"], "text": texts,
            "retrieval_rank": [1.0, 2.0, 3.0], "slot": [3, 2, 1],
        }
    )  # fmt: skip
    asked = {"query_id": "q1", "repeat": range(1, len(repeats) + 1), "answer": list(repeats),
             "answer_status": "answered"}  # fmt: skip
    tables = {"repeats": pd.DataFrame(asked)} if repeats else {}
    manifest = {
        "source": "live",
        "model": model,
        "prompt": {"style": "short", "max_tokens": 7},
        "options": {"seed": 5},
    }
    return Run.create(manifest, queries=pd.DataFrame(query), passages=passages, **tables)


def sent(llm):
    return [(request.seed, request.temperature, request.messages[0].content) for request in llm.requests]


def test_the_prompt_has_the_passages_as_changed_and_the_runs_own_repeats_count():
    llm = ScriptedLLM(lambda request: "1931")
    change = Change(keep=("b", "x"), order=("x",), edits={"b": "It opened in 1931."}, added=(Added("x", "New."),),
                    question="When?", style="full", temperature=0.5)  # fmt: skip
    found = ask(one_question(), "q1", change, Asker(llm), repeats=2)
    # Three calls of the changed prompt, seeds from the run's own; none of the run's prompt: it has three repeats.
    assert [(seed, heat) for seed, heat, _ in sent(llm)] == [(5, 0.5), (6, 0.5), (7, 0.5)]
    prompt = sent(llm)[0][2]
    assert prompt.endswith("[1] New.\n\n[2] B: It opened in 1931.\n\nQuestion: When?")
    assert "full sentences" in prompt and llm.requests[0].stop == () and llm.requests[0].max_tokens == 7
    assert found.own == ("1903", "1903", "1931") and found.again == ("1931", "1931")
    assert (found.before, found.answer, found.state) == ("1903", "1931", "correct")
    assert found.own_states == ("incorrect", "incorrect", "correct")
    assert found.tokens == sum(len(turn.content.split()) for turn in llm.requests[0].messages)


def test_another_model_is_asked_the_runs_own_prompt_too():
    llm = ScriptedLLM(lambda request: "1903")
    found = ask(one_question(model={"backend": "", "name": "other", "options": {}}), "q1", Change(keep=()),
                Asker(llm), repeats=1)  # fmt: skip
    changed, own = sent(llm)[:2], sent(llm)[2:]
    assert [seed for seed, _, _ in changed] == [seed for seed, _, _ in own] == [5, 6]
    # Without passages it is the closed-book prompt; the run's own has them in the order of their slots.
    assert "passages" not in changed[0][2] and "[1] C: Painted in 1950.\n\n[2] B:" in own[0][2]
    assert (found.own == ("1903", "1903") and found.claims == ()) or found.claims[0][1] is None


@pytest.mark.parametrize(
    ("style", "words", "stop"),
    [("full", "in full sentences", ()), ("short", "the shortest exact answer", ("\n",)),
     ("function", "the shortest exact answer", ("\n",))],  # the prompt of a function is not known
)  # fmt: skip
def test_another_model_is_asked_in_the_style_of_the_run_and_its_own_prompt_without_heat(style, words, stop):
    llm = ScriptedLLM(lambda request: "I don't know.")
    run = one_question(model=None).derive({"prompt": {"style": style, "max_tokens": 7}})
    ask(run, "q1", Change(keep=("a",), temperature=0.7), Asker(llm), repeats=1)
    assert [heat for _, heat, _ in sent(llm)] == [0.7, 0.7, 0.0, 0.0]
    assert all(words in prompt for _, _, prompt in sent(llm))
    assert [one.stop for one in llm.requests] == [stop] * 4


def test_repeats_that_failed_do_not_count_and_the_others_do_in_their_order():
    run = one_question()
    repeats = run.repeats.assign(
        answer=["1903", None, "1950"], answer_status=["answered", "error", "answered"]
    )
    llm = ScriptedLLM(lambda request: "I don't know.")
    found = ask(run.derive(repeats=repeats[::-1]), "q1", Change(keep=("a",)), Asker(llm), repeats=2)
    assert found.own == ("1903", "1903", "1950") and llm.calls == 3


def test_missing_repeats_are_asked_for():
    llm = ScriptedLLM(lambda request: "1903")
    ask(one_question(repeats=("1931",)), "q1", Change(keep=("a",)), Asker(llm), repeats=3)
    own = [seed for seed, _, prompt in sent(llm) if "[3]" in prompt]
    assert own == [7, 8]


def test_cost_is_scaled_from_the_runs_own_prompt():
    run = one_question()
    same = cost(run, "q1", Change())
    # Four calls of a prompt of 100 tokens, which took two seconds; three repeats are there.
    assert (same.calls, same.tokens, same.seconds) == (4, 400, 8.0)
    assert cost(run, "q1", Change(keep=("a",))).tokens < 400
    assert cost(one_question(repeats=()), "q1", Change()).calls == 7
    other = cost(run, "q1", Change(), other=True)
    assert (other.calls, other.tokens, other.seconds) == (8, 800, None)


def test_cost_follows_the_length_of_the_prompts():
    run, llm = one_question(), ScriptedLLM(lambda request: "I don't know.")
    ask(one_question(model=None), "q1", Change(keep=("a",)), Asker(llm), repeats=0)
    new, own = ([turn.content for turn in request.messages] for request in llm.requests)
    ratio = sum(map(len, new)) / sum(map(len, own))
    changed = cost(run, "q1", Change(keep=("a",)))
    assert (changed.calls, changed.tokens) == (4, round(400 * ratio))
    assert changed.seconds == pytest.approx(8 * ratio)
    # Three of five repeats are there.
    more = cost(run, "q1", Change(keep=("a",)), repeats=5)
    assert (more.calls, more.tokens) == (8, round(600 * ratio + 200))
    # Where nobody counted the tokens of the prompt, there are 1.4 to a word.
    n_words = sum(len(text.split()) for text in own)
    unknown = cost(one_question(prompt_tokens=None, latency=None), "q1", Change())
    assert (unknown.tokens, unknown.seconds) == (round(4 * 1.4 * n_words), None)


def test_the_most_repeats_and_none_may_be_asked_for():
    llm = ScriptedLLM(lambda request: "I don't know.")
    most = ask(one_question(), "q1", Change(keep=("a",)), Asker(llm), repeats=20)
    assert (len(most.again), len(most.own)) == (20, 21)
    none = ask(one_question(), "q1", Change(keep=("b",)), Asker(llm), repeats=0)
    assert (none.again, none.own) == ((), ("1903",))


@pytest.mark.parametrize("repeats", [-1, True])
def test_what_is_no_number_of_repeats_is_said(repeats):
    with pytest.raises(InputError, match=f"repeats must be a whole number from 0 to 20, got {repeats}"):
        ask(one_question(), "q1", Change(), Asker(ScriptedLLM(lambda request: "")), repeats=repeats)


def test_what_cannot_be_asked_is_said():
    with pytest.raises(InputError, match="no question 'q9'"):
        ask(one_question(), "q9", Change(), Asker(ScriptedLLM(lambda request: "")))
    with pytest.raises(InputError, match="repeats must be a whole number from 0 to 20, got 21"):
        ask(one_question(), "q1", Change(), Asker(ScriptedLLM(lambda request: "")), repeats=21)
    with pytest.raises(BackendError):
        ask(one_question(), "q1", Change(keep=("a",)), Asker(ScriptedLLM(lambda request: "", down=True)))


def test_an_abstention_has_no_claims_and_an_answer_without_reference_is_judged_by_its_claims():
    silent = ask(
        one_question(), "q1", Change(), Asker(ScriptedLLM(lambda request: "I don't know.")), repeats=0
    )
    assert (silent.status, silent.state, silent.claims) == ("abstained", "abstained", ())
    unknown = one_question(reference_answers=None)
    quote = ask(
        unknown, "q1", Change(keep=("b",)), Asker(ScriptedLLM(lambda request: "Opened in 1931.")), repeats=0
    )
    assert quote.state == "correct" and quote.claims[0][1] > 0.5
    wrong = ask(
        unknown, "q1", Change(keep=("b",)), Asker(ScriptedLLM(lambda request: "Opened in 1888.")), repeats=0
    )
    assert wrong.state == "incorrect" and wrong.claims[0][1] < 0.5


@pytest.mark.parametrize(
    ("keep", "columns", "state"),
    [
        (("a",), {}, "incorrect"),  # the passage says so, the reference answer does not
        (("a",), {"correct": False, "reference_answers": None}, "incorrect"),
        ((), {"correct": True, "reference_answers": None}, "correct"),  # no passage says so, a person did
        ((), {"reference_answers": None}, "not judged"),
        (("a",), {"reference_answers": None}, "correct"),
    ],
)
def test_references_and_labels_go_before_the_passages(keep, columns, state):
    llm = ScriptedLLM(lambda request: "1903")
    assert ask(one_question(**columns), "q1", Change(keep=keep), Asker(llm), repeats=0).state == state


@pytest.mark.parametrize(("support", "is_one"), [(None, None), (0.5, True), (0.49, False), (1.0, True)])
def test_a_claim_is_supported_from_a_half_on(support, is_one):
    assert is_supported(support) is is_one


def version(answer="1931", again=("1931",) * 3, own=("1903",) * 4, **more):
    states = {"1931": "correct", "1903": "incorrect", None: "failed"}
    given = {
        "state": states[answer], "again": again, "again_states": tuple(states[one] for one in again), "own": own,
        "own_states": tuple(states[one] for one in own),
    }  # fmt: skip
    return Version("q1", Change(), "", "scripted", "1903", answer, "answered", **given | more)


@pytest.mark.parametrize(
    ("one", "own", "end"),
    [
        (version(), "0 of 3 repeats of the run's own prompt give", "larger than the noise"),
        (version(own=("1903", "1931", "1903", "1931")), "2 of 3 repeats of the run's own prompt give",
         "need not be the reason"),
        (version(own=("1903", "1903", "1931", "1903")), "1 of 3 repeats of the run's own prompt gives",
         "need not be the reason"),
        (version("1903", ("1903",) * 3), "3 of 3 repeats", "the one that the run's own prompt gives"),
        (version(again=("1931", "1903", "1931")), "0 of 3 repeats", "changes from call to call"),
        (version(again=(), own=("1903",)), "", "Without repeats of both prompts"),
    ],
)  # fmt: skip
def test_a_flip_is_not_taken_for_an_effect(one, own, end):
    said = noise(one)
    assert end in said[-1] and (not own or any(own in line for line in said))


AGAIN, OWN = "repeats of the changed prompt", "repeats of the run's own prompt"
NOT_ENOUGH = "Without repeats of both prompts nothing tells an effect of your change from noise."
LARGER = "No repeat of the run's own prompt gives it: the difference is larger than the noise."


@pytest.mark.parametrize(
    ("one", "sentences"),
    [
        (
            version(again=("1931",), own=("1903", "1903")),
            (
                "1 of 1 repeat of the changed prompt gives this answer again.",
                "0 of 1 repeat of the run's own prompt give this answer too.",
                LARGER,
            ),
        ),
        (
            version(again=("1931", "1903"), own=("1903", "1931", "1931")),
            (
                f"1 of 2 {AGAIN} gives this answer again.",
                f"2 of 2 {OWN} give this answer too.",
                "So your change need not be the reason: the run's own prompt can give this answer.",
            ),
        ),
        (version(again=()), (f"0 of 3 {OWN} give this answer too.", NOT_ENOUGH)),
        (version(own=()), (f"3 of 3 {AGAIN} give this answer again.", NOT_ENOUGH)),
        (version(own=("1903",)), (f"3 of 3 {AGAIN} give this answer again.", NOT_ENOUGH)),
        (
            version(again=("1931",) * 300, own=("1903",) * 3),
            (f"300 of 300 {AGAIN} give this answer again.", f"0 of 2 {OWN} give this answer too.", LARGER),
        ),
        (version(None), ()),
    ],
)
def test_what_is_said_of_noise(one, sentences):
    assert noise(one) == sentences


def test_correct_answers_are_counted_on_both_sides():
    assert counted(version(own=("1903", "1931", "1903", None))) == (
        "Correct: 4 of 4 answers to the changed prompt, 1 of 3 to the run's own."
    )
    assert counted(version(state="not judged", again_states=("not judged",) * 3)) == ""
    assert counted(version(again=())) == ""
    mixed = version(again=("1931", "1903", "1931"), own=("1931", None, "1931", "1903", "1903"))
    assert counted(mixed) == "Correct: 3 of 4 answers to the changed prompt, 2 of 4 to the run's own."


def placebo(asked, fixed, broken):
    nan = float("nan")
    return Fix("placebo", 10, asked, fixed, broken, nan, nan, nan, nan, nan, nan, None, None)


@pytest.mark.parametrize(
    ("losses", "turned"),
    [
        (None, None),
        (SimpleNamespace(placebo=None), None),
        (SimpleNamespace(placebo=placebo(0, 0, 0)), None),
        (SimpleNamespace(placebo=placebo(8, 1, 2)), "3 of 8 answers"),
        (SimpleNamespace(placebo=placebo(1, 0, 0)), "0 of 1 answer"),
    ],
)
def test_what_any_change_does_is_said_where_it_was_asked(losses, turned):
    said = (
        "A change that should not matter moves answers, too: the passages without the evidence in another order turn "
        f"{turned} of this run from correct to incorrect or back."
    )
    assert by_any_change(losses) == (said if turned else "")


def test_versions_are_kept_beside_the_run(tmp_path):
    first, second = (
        version(claims=(("It opened.", 0.5), ("It closed.", None))),
        version(answer=None, again=()),
    )
    assert versions.read(tmp_path, "run") == ()
    versions.add(tmp_path, "run", [first])
    versions.add(tmp_path, "run", [second])
    assert versions.read(tmp_path, "run") == (first, second)
    assert as_version(first.to_dict(), read_change(first.to_dict()["change"])) == first
    assert [path.parent.name for path in tmp_path.rglob("*.json")] == ["versions"]
    versions.delete(tmp_path, "run")
    assert versions.read(tmp_path, "run") == ()


def test_of_too_many_versions_the_oldest_ones_go(tmp_path, monkeypatch):
    assert versions.MOST == 1_000
    monkeypatch.setattr(versions, "MOST", 2)
    three = tuple(version(problem=name) for name in "abc")
    versions.add(tmp_path, "run", three[:2])
    assert versions.add(tmp_path, "run", three[2:]) == versions.read(tmp_path, "run") == three[1:]


@pytest.mark.parametrize(
    "wrong",
    [
        {"said": None}, {"problem": 1}, {"before": 1}, {"answer": ["1931"]}, {"again": [1]}, {"own": None},
        {"again_states": ["right"]}, {"own_states": [None]}, {"claims": [["It opened."]]}, {"tokens": "many"},
    ],
)  # fmt: skip
def test_what_is_no_version_is_refused(wrong):
    plain = version().to_dict()
    assert as_version(plain, Change()) == version() and plain["tokens"] == 0
    with pytest.raises((TypeError, ValueError)):
        as_version(plain | wrong, Change())


@pytest.mark.parametrize("content", ["", "[]", '{"run_id": "other", "versions": []}', '{"run_id": "run", "versions": [1]}',
                                     '{"run_id": "run", "versions": [{"change": {}}]}'])  # fmt: skip
def test_a_broken_file_of_versions_is_said_and_left(tmp_path, content):
    path = versions.path_of(tmp_path, "run")
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(InputError):
        versions.add(tmp_path, "run", [version()])
    assert path.read_text() == content


def test_passages_are_those_of_the_prompt_in_its_order():
    assert [one.passage_id for one in passages_of(one_question(), "q1")] == ["c", "b", "a"]
