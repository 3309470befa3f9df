"""The page Where answers are lost, its part of the workbench and of the Overview."""

import pandas as pd
import pytest

from core.run import Run
from tests.app.conftest import HOSTILE
from tests.core.charts.losses_runs import PLAN, losses_run


@pytest.fixture
def opened(open_app, healthy, tmp_path):
    """Open a page of a run that lies where the recorded sample run is looked for."""

    def go(run, page="losses", **params):
        run.save(tmp_path / "samples" / "recorded_run")
        return healthy(open_app(page, **params))

    return go


def raw(text):
    return text.replace("\\", "").replace("\u2060", "").replace("\u00a0", " ")


def untried(**options):
    run = losses_run(**options)
    tables = {name: run[name] for name in ("queries", "passages", "claims")}
    return Run.create(run.manifest, **tables)


def labels(app):
    return [one.label for one in app.button]


def test_without_arms_the_page_offers_to_try_the_fixes_and_draws_nothing(opened, texts):
    app = opened(untried())
    said = raw(texts(app))
    assert "Where 6 answers that are not correct are lost is not known" in said
    assert "8 questions" in said and "About 7 calls per question" in said
    assert {"Try the fixes", "Estimate cost"} <= {*labels(app)}
    assert "losses_alone" in {one.key for one in app.checkbox}
    assert not app.get("plotly_chart")
    # No stage is counted before a fix was tried: 0 of 6 would say that none is lost there.
    assert not [one for one in app.metric if one.value.startswith("0 of")]


def test_with_arms_the_page_shows_ladder_balance_and_every_question(opened, texts):
    app = opened(losses_run())
    said = raw(texts(app))
    assert "counts as **correct** when it states the reference answer" in said
    assert "tried on 8 of 8 questions" in said and "marked in the data (8)" in said
    assert [one.proto.id.rpartition("-")[2] for one in app.get("plotly_chart")] == [
        "loss_ladder",
        "fix_balance",
    ]
    (frame,) = [one.value for one in app.dataframe if "as_it_is" in one.value]
    assert frame["query_id"].tolist() == list(PLAN)
    assert frame["stage"].tolist() == [
        "Not retrieved", "Not retrieved", "Placed too late", "Distracted", "Buried in its passage", "Not read",
        "Grounded", "By luck",
    ]  # fmt: skip
    assert [one[0] for one in frame["as_it_is"]] == ["✗ incorrect"] * 6 + ["✓ correct"] * 2
    assert [one[0] for one in frame["arm gold_added"]] == ["✓ correct"] * 2 + ["= same prompt"] * 6
    (fixes,) = [one.value for one in app.dataframe if "p_adjusted" in one.value]
    assert fixes[["fixed", "broken", "net"]].to_numpy().tolist() == [
        [2, 0, 2], [1, 0, 1], [4, 1, 3], [5, 0, 5], [1, 1, 0],
    ]  # fmt: skip
    assert len(app.get("download_button")) >= 2
    folded = [one.label for one in app.expander]
    assert "Try again, or with each passage alone" in folded


def test_by_claims_every_word_is_supported(opened, texts):
    app = opened(losses_run(by_claims=True))
    shown = [raw(texts(app)), *(one.label for one in app.metric), *(one.help for one in app.metric)]
    shown += [one.proto.label for one in app.get("page_link") if one not in app.sidebar.get("page_link")]
    shown += [one.label for one in app.expander]
    for frame in (one.value for one in app.dataframe):
        shown += [*map(str, frame.columns), frame.astype(str).to_csv()]
    wrong = [text for text in shown if "correct" in text.lower().replace("corrected for", "")]
    # A p-value is corrected, whatever is counted.
    assert not wrong, wrong
    assert "counts as **supported** when every claim in it" in shown[0]


def test_a_run_that_can_judge_no_answer_says_what_it_needs(opened, texts):
    run = untried()
    bare = Run.create(run.manifest, queries=run.queries.assign(reference_answers=None), passages=run.passages)
    app = opened(bare)
    assert "Give reference answers or labels" in raw(texts(app))
    assert "Try the fixes" not in labels(app) and not app.get("plotly_chart")


def test_another_model_that_answered_is_named(opened, texts):
    run = losses_run(manifest={"steps": {"losses": {"model": {"name": f"other {HOSTILE}"}}}})
    own = run["arms"][run["arms"]["arm"] == "placebo"].assign(arm="as_it_is", answer="alpha")
    tables = {name: run[name] for name in ("queries", "passages")}
    other = Run.create(run.manifest, arms=pd.concat([run["arms"], own], ignore_index=True), **tables)
    said = texts(opened(other))
    assert "Another model answered the changed prompts: other" in said
    assert "<script>alert" not in said


def test_the_workbench_says_the_stage_and_shows_each_answer(opened, texts):
    app = opened(losses_run(), "workbench", question="retrieval")
    said = raw(texts(app))
    assert "**Not retrieved.** A gold passage was not retrieved; adding it" in said
    assert any("Not retrieved]" in one.value and "badge" in one.value for one in app.markdown)


def test_the_workbench_of_a_run_without_arms_says_so(opened, texts):
    app = opened(untried(), "workbench", question="retrieval")
    said = raw(texts(app))
    assert "**Not known.**" in said and "No fix was tried on this question." in said
    assert not any("badge" in one.value and "Not known" in one.value for one in app.markdown)


def test_the_overview_leads_with_the_ladder_where_fixes_were_tried(opened):
    app = opened(losses_run(), "overview")
    figures = [one.proto.id.rpartition("-")[2] for one in app.get("plotly_chart")]
    assert figures[0] == "loss_ladder" and "evidence_split" not in figures
    assert "Try the fixes" not in [one.proto.label for one in app.get("page_link")]


def test_the_overview_offers_to_try_where_no_fix_was_tried(opened):
    app = opened(untried(), "overview")
    figures = [one.proto.id.rpartition("-")[2] for one in app.get("plotly_chart")]
    assert "loss_ladder" not in figures and figures[0] == "evidence_split"
    (link,) = [one.proto for one in app.get("page_link") if one.proto.label == "Try the fixes"]
    assert link.page == "losses"


def test_hostile_texts_stay_texts(opened, texts):
    app = opened(losses_run({HOSTILE: PLAN["retrieval"]}, question=HOSTILE, title=HOSTILE))
    assert "<script>alert" not in texts(app)
    app = opened(losses_run({HOSTILE: PLAN["retrieval"]}, question=HOSTILE, title=HOSTILE), "workbench")
    assert "<script>alert" not in texts(app)
