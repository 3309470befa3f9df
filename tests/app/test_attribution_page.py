"""The page Attribution, and its part of the workbench."""

import pytest

from core.run import Run
from tests.app.conftest import HOSTILE
from tests.core.charts.attribution_runs import attribution_run


@pytest.fixture
def opened(open_app, healthy, tmp_path):
    """Open a page of a run that lies where the recorded sample run is looked for."""

    def go(run, page="attribution", **params):
        run.save(tmp_path / "samples" / "recorded_run")
        return healthy(open_app(page, **params))

    return go


def raw(text):
    return text.replace("\\", "").replace("\u2060", "").replace("\u00a0", " ")


def unmeasured():
    run = attribution_run()
    return Run.create({"source": "live"}, queries=run.queries, passages=run.passages)


def figures(app):
    return [one.proto.id.rpartition("-")[2] for one in app.get("plotly_chart")]


def test_without_subsets_the_page_says_what_measuring_costs(opened, texts):
    app = opened(unmeasured())
    said = raw(texts(app))
    assert "6 questions" in said and "at most 107 calls per question (139 where it answers again)" in said
    assert {"Measure subsets", "Estimate cost"} <= {one.label for one in app.button}
    assert {"attribution_shapley", "attribution_place"} <= {one.key for one in app.checkbox}
    assert not figures(app)


def test_a_measured_run_shows_how_far_bars_can_be_read_pairs_places_and_claims(opened, texts):
    app = opened(attribution_run(place=True, shapley=True, claims=True, duplicates=(0, 1)))
    said = raw(texts(app))
    assert figures(app) == ["lds_histogram", "slot_effects"]
    assert "Undefined in 2 questions: nothing matters (1), no answer (1)." in said
    assert "In 2 of 5 questions there is such a pair; chance alone gives one in at most 5 %" in said
    (pairs,) = [one.value for one in app.dataframe if "interaction" in one.value]
    assert pairs[["query_id", "passages", "kind"]].to_numpy().tolist() == [
        ["either", "1, 2", "Either is enough"], ["both", "1, 2", "Needs both"],
    ]  # fmt: skip
    assert pairs["interaction"].tolist() == pytest.approx([6, -6])
    (groups,) = [one.value for one in app.dataframe if "each" in one.value]
    assert groups.loc[groups["query_id"] == "either", ["together", "each"]].to_numpy().tolist() == [
        [6.0, "0.00, 0.00"]
    ]
    assert "In 1 of 2 claims the passage that makes the claim likeliest does not support it" in said
    (claims,) = [one.value for one in app.dataframe if "by_support" in one.value]
    assert claims[["by_influence", "by_support"]].to_numpy().tolist() == [["1", "2"]]
    assert {"Share of the passages", "Share of the place"} <= {one.label for one in app.metric}


def test_what_was_not_measured_is_said(opened, texts):
    app = opened(attribution_run(games=("adds",)))
    said = raw(texts(app))
    assert figures(app) == ["lds_histogram"]
    assert "not measured in other orders" in said and "No claim was measured" in said
    assert "In none of 1 question do the effects of two passages fail to add up." in said


def test_by_generated_answers_the_unit_is_said(opened, texts):
    app = opened(attribution_run(games=("adds",), by="rouge"))
    assert "it answered again with each subset: scores are ROUGE-L F1" in raw(texts(app))


def test_the_workbench_tells_how_far_to_read_and_which_passages_belong_together(opened, texts):
    run = attribution_run(place=True, shapley=True, duplicates=(0, 1))
    app = opened(run, "workbench", question="adds")
    said = raw(texts(app))
    assert "tell the worse one in 100 % of cases (50 % by chance; n = 8 held-out subsets)" in said
    assert "Shapley values share the credit" in said and "passage_scores" in figures(app)
    assert any("Bars can be read]" in one.value and "badge" in one.value for one in app.markdown)
    said = raw(texts(opened(run, "workbench", question="either")))
    assert "tell the worse one in 100 % of cases" in said  # with its pair
    assert (
        "**Either of 1, 2 is enough:** without both the answer loses 6.00 nats more than without each alone, "
        "added up (the same in every subset)." in said
    )
    assert "places settled: 3 of the first 3." in said
    assert (
        "**Near-duplicates 1, 2:** without all of them the answer loses 6.00 nats, without one of them"
        in said
    )
    said = raw(texts(opened(run, "workbench", question="both")))
    assert "**Needs both 1 and 2:** without both the answer loses 6.00 nats less than" in said


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("constant", "**Attribution undefined:** The score of the answer is the same"),
        ("silent", "no answer to"),
    ],
)
def test_the_workbench_says_why_there_is_no_lds(question, said, opened, texts):
    assert said in raw(texts(opened(attribution_run(), "workbench", question=question)))


def test_hostile_texts_stay_texts(opened, texts):
    run = attribution_run(claims=True, duplicates=(0, 1), question=HOSTILE, title=HOSTILE)
    for page in ("attribution", "workbench"):
        assert "<script>alert" not in texts(opened(run, page))
