from dataclasses import fields
from pathlib import Path

import pytest

from core.errors import InputError
from core.influence.step import InfluenceStep
from core.pipeline import RunOptions, begin, plan_steps
from core.retrieval import RETRIEVERS
from core.run import Run
from core.sources.dataset import load_dataset
from tests.scripted import ScriptedLLM

SAMPLES = Path(__file__).parents[3] / "sample_data"


def test_defaults_are_valid_and_plain():
    settings = RunOptions().to_dict()
    # No embedding model, as in runs made before there was one.
    assert settings == {"k": 10, "passage_words": 100, "retriever": "bm25", "tokenizer": "words"}
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
        ({"k": 101}, "k must be a whole number from 1 to 100, got 101"),
        ({"passage_words": 9}, "passage_words must be a whole number from 10 to 5,000, got 9"),
        ({"passage_words": 5001}, "passage_words must be a whole number from 10 to 5,000, got 5001"),
        ({"retriever": "tfidf"}, "retriever must be one of bm25, bm25s, dense, hybrid, got 'tfidf'"),
        ({"tokenizer": "stem"}, "tokenizer must be one of words, split, got 'stem'"),
        ({"embedding_model": "m"}, "used by the retrievers dense and hybrid only, got 'm' for bm25"),
        ({"retriever": "dense", "embedding_model": " "}, "must be a name or a path, or None, got ' '"),
    ],
)
def test_wrong_settings_say_what_would_be_right(settings, message):
    with pytest.raises(InputError, match=message):
        RunOptions(**settings)


def test_the_ends_of_a_range_can_be_chosen():
    for k, words in ((1, 10), (100, 5000)):
        assert RunOptions(k=k, passage_words=words).to_dict()["k"] == k


def recorded_run(**changes):
    """The recorded run before anything was asked, with a model of the same name that is never asked."""
    manifest = Run.load(SAMPLES / "recorded_run").manifest
    llm = ScriptedLLM({}, name=manifest["model"]["name"], options=manifest["model"]["options"])
    data = load_dataset(SAMPLES / "questions.jsonl")
    chosen = {**manifest["options"], **changes}
    names = {one.name for one in fields(InfluenceStep)}
    step = InfluenceStep(**{name: value for name, value in chosen.items() if name in names})
    options = RunOptions(**{name: value for name, value in chosen.items() if name not in names})
    run = begin(data.head(3) if changes else data, options, llm, step)
    return manifest, run, plan_steps(run, [step], {"influence": llm})


def test_the_recorded_run_keeps_its_id():
    manifest, run, plan = recorded_run()
    assert run.run_id == manifest["run_id"]
    assert run.manifest["options"] == manifest["options"]
    assert run.manifest["prompt"] == manifest["prompt"]
    # Closed-book answers of the run with shorter passages, recorded before it, came from the cache.
    assert plan.n_calls == manifest["cost"]["calls"] + manifest["cost"]["cached"]


def test_another_retriever_is_another_run():
    found = [recorded_run(retriever=name, passage_words=100) for name in ("bm25", "bm25s")]
    assert len({run.run_id for _, run, _ in found}) == 2
    # Okapi BM25 by another index: the same passages, so not one call more or less.
    assert found[0][2].prompt_tokens == found[1][2].prompt_tokens


def test_the_manifest_names_the_embedding_model(make_dataset, make_llm):
    for options, model in (
        (RunOptions(), None),
        (RunOptions(retriever="hybrid"), "all-MiniLM-L6-v2"),
        (RunOptions(retriever="dense", embedding_model="some/model"), "some/model"),
    ):
        # The passages are given, so nothing is embedded.
        run = begin(make_dataset(), options, make_llm(), InfluenceStep())
        assert run.manifest["retriever"].get("embedding_model") == model
        assert run.manifest["retriever"]["name"] == options.retriever
        assert run.manifest["environment"]["packages"]["rank-bm25"]
