"""What a live run takes from its options, asks, resumes and says, without the parser of the command line."""

import json
from types import SimpleNamespace

import pandas as pd
import pytest

import core.cli.live
from core.cli.live import _kept, _step, begun, carried_out, opened_work, step_types
from core.cli.options import LiveOptions
from core.errors import Cancelled, InputError
from core.llm import CompletionCache
from core.run import Run
from tests.scripted import ScriptedLLM


@pytest.fixture
def work(tmp_path, monkeypatch):
    """One question with one passage, and a model that answers it."""
    path = tmp_path / "questions.jsonl"
    path.write_text(json.dumps({"id": "q", "question": "Who?", "passages": ["Ann."], "answers": ["Ann"]}))
    model = ScriptedLLM(lambda _: "Ann")
    monkeypatch.setattr(core.cli.live, "open_models", lambda steps, _: {one.name: model for one in steps})
    return opened_work(str(path), {"live": {}, "retrieval": {}})


def test_steps_run_once_each_in_the_order_they_need_with_their_own_options(work):
    given = {
        "live": {"steps": " claims,uncertainty, influence,claims", "llm": "ollama"},
        "retrieval": {"k": 3}, "uncertainty": {"samples": 4}, "influence": {"max_tokens": 7},
    }  # fmt: skip
    found = opened_work("x", given)
    assert [one.name for one in found.steps] == ["influence", "claims", "uncertainty"]
    assert (found.answering.name, found.answering.max_tokens, found.steps[2].samples) == ("influence", 7, 4)
    assert found.retrieval == {"k": 3}
    with pytest.raises(InputError, match=r"^--steps can name .*, got 'x'\.$"):
        opened_work("x", {"live": {"steps": "influence,x"}, "retrieval": {}})


@pytest.mark.parametrize(
    ("given", "llm", "most"), [({}, "embedded", 24), ({}, "ollama", 300), ({"max_tokens": 7}, "ollama", 7)]
)
def test_an_answer_is_as_long_as_its_back_end_has_it_unless_told(given, llm, most):
    assert _step(step_types()["influence"], given, LiveOptions(llm=llm)).max_tokens == most


def test_what_is_asked_is_said_once_and_a_finished_run_is_found_again(work, tmp_path, capsys):
    out = str(tmp_path / "run")
    with CompletionCache(tmp_path / "cache") as cache:
        first = carried_out(work, cache, out, "Mine", overwrite=False)
        # With the passage, without it, and the closed book.
        assert "3 calls to make, 0 answered before, 0 identical; about " in capsys.readouterr().err
        again = carried_out(work, cache, out, None, overwrite=False)
        said = capsys.readouterr().err
        assert f"{out} already holds this run; influence is already there." in said
        assert "calls to make" not in said
    assert again.run_id == first.run_id == Run.load(out).run_id and again.name == "Mine"


def test_a_run_in_the_folder_goes_on_unless_it_is_to_be_replaced(work, tmp_path):
    out = str(tmp_path / "run")
    begun(work, lambda: False, out, "Old", overwrite=False).save(out)
    for name, overwrite, expected in (
        (None, False, "Old"), ("New", False, "New"), (None, True, "questions, scripted"),
    ):  # fmt: skip
        assert begun(work, lambda: False, out, name, overwrite).name == expected


def run_of(n_done, complete, notes=()):
    facts = {"n_done": n_done, "complete": complete, "notes": [*notes]}
    queries = pd.DataFrame({"query_id": ["a", "b"], "question": "Who?"})
    return Run.create({"source": "live", "run_id": "r", "steps": {"s": facts}}, queries=queries)


def test_notes_of_a_step_are_logged_where_it_filled_something(tmp_path, capsys):
    out, step = str(tmp_path / "run"), SimpleNamespace(name="s")
    run = run_of(2, True, ["One.", "Two."])
    _kept(step, run, run, out, False)  # nothing was left to do, but the folder is empty
    assert capsys.readouterr().err == "One.\nTwo.\n" and len(Run.load(out).queries) == 2
    _kept(step, run_of(1, False), run, out, True)  # asked to stop after the last question
    assert capsys.readouterr().err == "One.\nTwo.\n"
    _kept(step, run, run, out, False)
    assert capsys.readouterr().err == f"{out} already holds this run; s is already there.\n"


def test_a_step_that_was_stopped_says_how_far_it_came(tmp_path):
    out, step, run = str(tmp_path / "run"), SimpleNamespace(name="s"), run_of(1, False)
    _kept(step, run_of(0, False), run, out, False)  # incomplete, but nobody asked to stop
    with pytest.raises(Cancelled, match=r"^Stopped on request; 1 of 2 questions are saved in .*/run: run "):
        _kept(step, run_of(0, False), run, out, True)
