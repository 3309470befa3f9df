"""The same questions through every back end: runs of one shape, compared by the same functions."""

from __future__ import annotations

import pytest

from core.diagnosis import Diagnosis
from core.influence.step import InfluenceStep
from core.llm import BACKENDS, open_llm
from core.pipeline import RunOptions
from core.report.compare import headline_table, setup_differences, shared_questions, sides_of
from core.run import Run
from core.schema import TABLES
from core.sources.dataset import read_dataset
from tests.live_runs import live_run

QUESTIONS = """\
{"id":"a","question":"When did the canal open?","answers":["1893"],"passages":["The canal opened in 1893.","It is 6 km long.","Ships wait in the bay."]}
{"id":"c","question":"Who painted the hall?","answers":["Ada Berg"],"passages":["Ada Berg painted the hall.","The hall has two doors.","A fire broke out in 1920."]}
{"id":"d","question":"What is the capital of Norland?","passages":["Norland lies in the north.","Its capital is Halvik.","Its flag is blue."]}
"""
DATA = read_dataset(QUESTIONS.encode(), "three.jsonl")
STEP = InfluenceStep(repeats=1, max_tokens=4)


@pytest.fixture(scope="module")
def runs(llama, ollama_server, tmp_path_factory):
    """One run for each back end that a user can choose."""
    opened = {
        "embedded": open_llm("embedded"),
        "openai": open_llm("openai", "smollm2-135m", base_url=f"{llama}/v1"),
        "ollama": open_llm("ollama", "smollm2:135m", base_url=ollama_server),
    }
    assert opened.keys() == BACKENDS.keys(), "a new back end belongs into this comparison"
    made = {}
    for kind, llm in opened.items():
        folder = tmp_path_factory.mktemp(kind)
        live_run(DATA, llm, options=RunOptions(k=3), step=STEP).save(folder)
        made[kind] = Run.load(folder)
    return made


@pytest.mark.model
def test_all_back_ends_give_runs_of_one_shape(runs):
    first = runs["embedded"]
    for run in runs.values():
        assert run.manifest.keys() == first.manifest.keys()
        assert run.manifest["complete"] is True
        assert run.manifest["notes"] == []
        assert set(run.queries["answer_status"]) <= {"answered", "abstained"}
        for table in TABLES:
            assert run[table].shape == first[table].shape, table
            assert list(run[table].dtypes) == list(first[table].dtypes), table
        for table, columns in (
            ("queries", ["query_id", "question", "reference_answers", "n_gold"]),
            ("passages", ["query_id", "passage_id", "text", "retrieval_rank", "slot"]),
        ):
            assert run[table][columns].equals(first[table][columns])
        assert run.passages["ablated_answer"].notna().all()
        assert (run.queries["prompt_tokens"] > 20).all()
        assert run.manifest["cost"]["calls"] == 3 * (1 + 3 + 1 + 1)


@pytest.mark.model
def test_they_stand_side_by_side_without_special_cases(runs):
    sides = sides_of([Diagnosis(run) for run in runs.values()])
    headlines = headline_table(sides)
    assert headlines.shape[1] == 1 + len(runs)
    assert len(shared_questions(sides)) == len(DATA.questions)
    differing = setup_differences(sides)
    assert {"embedded", "openai", "ollama"} <= set(differing.astype(str).to_numpy().ravel())
