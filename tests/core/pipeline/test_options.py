from pathlib import Path

import pytest

from core.errors import InputError
from core.pipeline import RunOptions, execute, make_plan
from core.retrieval import RETRIEVERS
from core.run import Run
from core.sources.dataset import load_dataset
from tests.scripted import ScriptedLLM

SAMPLES = Path(__file__).parents[3] / "sample_data"


def test_defaults_are_valid_and_plain():
    settings = RunOptions().to_dict()
    assert settings["retriever"] == "bm25"
    assert "embedding_model" not in settings  # as in runs made before there was one
    assert RunOptions(**settings) == RunOptions()


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_every_retriever_is_an_option(retriever):
    assert RunOptions(retriever=retriever).to_dict()["retriever"] == retriever


def test_an_embedding_model_is_written_down_where_it_is_given():
    options = RunOptions(retriever="dense", embedding_model="some/model")
    assert options.to_dict()["embedding_model"] == "some/model"
    assert RunOptions(**options.to_dict()) == options


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 0}, "k must be a whole number from 1 to 100, got 0"),
        ({"k": True}, "k must be a whole number"),
        ({"retriever": "tfidf"}, "retriever must be one of bm25, bm25s, dense, hybrid, got 'tfidf'"),
        ({"tokenizer": "stem"}, "tokenizer must be one of words, split, got 'stem'"),
        ({"embedding_model": "m"}, "used by the retrievers dense and hybrid only, got 'm' for bm25"),
        ({"retriever": "dense", "embedding_model": " "}, "must be a name or a path, or None, got ' '"),
    ],
)
def test_wrong_settings_say_what_would_be_right(settings, message):
    with pytest.raises(InputError, match=message):
        RunOptions(**settings)


def recorded_plan(**changes):
    """The plan of the recorded run, with a model of the same name that is never asked."""
    manifest = Run.load(SAMPLES / "recorded_run").manifest
    llm = ScriptedLLM({}, name=manifest["model"]["name"], options=manifest["model"]["options"])
    data = (
        load_dataset(SAMPLES / "questions.jsonl").head(3)
        if changes
        else load_dataset(SAMPLES / "questions.jsonl")
    )
    return manifest, make_plan(data, RunOptions(**{**manifest["options"], **changes}), llm)


def test_the_recorded_run_keeps_its_id():
    manifest, plan = recorded_plan()
    assert plan.run_id == manifest["run_id"] == "4fb6f3baabb3"
    assert plan.options.to_dict() == manifest["options"]


def test_another_retriever_is_another_run():
    plans = [recorded_plan(retriever=name, passage_words=100)[1] for name in ("bm25", "bm25s")]
    assert len({plan.run_id for plan in plans}) == 2
    # Okapi BM25 by another index: the same passages, so not one call more or less.
    assert plans[0].prompt_tokens == plans[1].prompt_tokens


def test_the_manifest_names_the_embedding_model(make_dataset, make_llm):
    for options, model in (
        (RunOptions(), None),
        (RunOptions(retriever="hybrid"), "all-MiniLM-L6-v2"),
        (RunOptions(retriever="dense", embedding_model="some/model"), "some/model"),
    ):
        llm = make_llm()  # the passages are given, so nothing is embedded
        run = execute(make_plan(make_dataset(), options, llm), llm)
        assert run.manifest["retriever"].get("embedding_model") == model
        assert run.manifest["retriever"]["name"] == options.retriever
        assert run.manifest["environment"]["packages"]["bm25s"]
