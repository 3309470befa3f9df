"""The page Validation and its section of the workbench: not validated, validated, without labels, with a store."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from core.conditions import matching
from core.diagnosis import Diagnosis
from core.pipeline import fill
from core.run import Run
from core.validation import Observation
from core.validation.step import ValidationStep
from core.validation.store import MetricsStore
from tests.app.conftest import HOSTILE
from tests.app.polling import button, wait
from tests.core.validation.validation_runs import BRIDGE, CASES, run_of
from ui import library
from ui.components.evidence.rows import cut

HOSTILE_ANSWER = f"It was definitely Brunel in 1866. {HOSTILE}"
HARMFUL = {"evil": (HOSTILE_ANSWER, BRIDGE)}
SCRIPT = re.compile(r"(?<!\\)<script|(?<!\\)\]\(javascript")


def validated(run=None) -> Run:
    return fill(run_of() if run is None else run, ValidationStep(evidence_threshold=0.01))


@pytest.fixture(scope="module")
def seven():
    """Five validated answers: "sure" and "lost" are incorrect, "fine" and "bare" correct, "empty" unlabelled."""
    return validated()


@pytest.fixture
def opened(open_app, healthy, tmp_path, seven):
    """Open a page of a run that lies where the recorded sample run is looked for."""

    def go(page="validation", shown=None, **params):
        (seven if shown is None else shown).save(tmp_path / "samples" / "recorded_run")
        return healthy(open_app(page, **params))

    return go


@pytest.fixture
def file(tmp_path):
    """Return where the store of the page is."""
    return tmp_path / "runs" / "metrics" / "metrics.db"


def raw(text):
    return text.replace("\\", "").replace("\u2060", "").replace("\u00a0", " ")


def table(app, column):
    (frame,) = [one.value for one in app.dataframe if column in one.value]
    return frame


def marked(app):
    """What the last component of a page was given: the text of the answer, and its marked pieces."""
    answer = json.loads(app.get("bidi_component")[-1].proto.json)["answer"]
    pieces = [("".join(text for text, _ in one["parts"]), one["claims"]) for one in answer["pieces"]]
    return "".join(text for text, _ in pieces), [one for one in pieces if one[1]], answer["notes"]


def test_without_verdicts_the_page_offers_the_step_and_the_step_makes_a_run(opened, texts, healthy):
    app = opened(shown=run_of())
    said = raw(texts(app))
    assert "Not validated" in said and "**6 answers** of 7 questions to check" in said
    assert not app.get("plotly_chart") and not app.metric
    button(app, "Validate answers").click().run()
    wait(app, "Finished and saved")
    (made,) = [one for one in library.saved_runs() if one.own]
    assert healthy(app).query_params["run"] == made.run_id
    # The answer whose passages have no text is left.
    assert set(Run.load(made.folder)["verdicts"]["query_id"]) == {"fine", "sure", "empty", "bare", "lost"}


def test_answers_without_any_passage_can_be_validated(opened):
    assert not button(opened(shown=run_of({"sure": CASES["sure"]})), "Validate answers").disabled


def test_validators_that_are_switched_off_are_told(opened, monkeypatch):
    monkeypatch.setenv("ENABLE_VALIDATORS", "false")
    (told,) = [one.value for one in opened(shown=run_of()).warning]
    assert told == "ENABLE_VALIDATORS is off: nothing is validated."


def test_each_validator_is_compared_with_the_labels(opened, texts):
    app = opened()
    assert "Compared on 2 incorrect answers and 2 correct ones." in texts(app)
    frame = table(app, "noted").set_index("validator")
    assert frame["n_applied"].to_list() == [4, 3, 1, 5, 0]
    assert frame["n_critical"].to_list() == [1, 0, 0, 3, 0]
    # Of 2 incorrect and 2 correct ones; Wilson's intervals of 1, 2 and 0 of 2.
    assert frame["wrong"].to_list() == [
        "1 of 2 (9–91 %)", "1 of 2 (9–91 %)", "1 of 2 (9–91 %)", "2 of 2 (34–100 %)", "",
    ]  # fmt: skip
    assert (
        frame["right"].to_list()[0] == "1 of 2 (9–91 %)" and frame["right"].to_list()[3] == "0 of 2 (0–66 %)"
    )
    assert frame["by_chance"].to_list()[:4] == [1, 0.5, 0.5, 1] and frame["by_chance"].isna().to_list()[4]
    assert frame["p_value"].to_list()[:4] == pytest.approx([1, 1, 1, 1 / 3])
    # So few answers show nothing, and the table does not say so a second time: that is for the findings.
    assert frame["noted"].to_list() == [""] * 4 + ["never applies"]
    assert len(app.get("plotly_chart")) == 2
    assert {"export_validators-csv", "export_verdicts-csv"} <= {one.key for one in app.get("download_button")}


def test_validators_that_object_to_all_or_to_none_have_a_note(opened):
    cases = {f"bare{i}": ("Ada Unwin designed it.", BRIDGE) for i in range(8)}
    cases |= {f"sure{i}": ("Brunel definitely built the bridge.", ()) for i in range(8)}
    frame = table(opened(shown=validated(run_of(cases))), "noted").set_index("validator")
    assert frame["noted"].to_dict() == {
        "CitationRequired": "objects to all",
        "EvidenceOverlap": "no objection",
        "NumericUnits": "never applies",
        "ConfidenceValidator": "",
        "EthicsAdapter": "never applies",
    }
    # All 8 and none of 8, or the reverse: two of C(16, 8) = 12,870.
    assert frame["p_value"]["ConfidenceValidator"] == pytest.approx(2 / 12_870)


def test_reasons_are_in_words(opened):
    app = opened()
    frame = table(app, "meaning")
    assert frame["title"].to_list()[0] == "Missing citation" and frame["n"].to_list() == [2, 1, 1, 1, 1, 1]
    assert frame["meaning"].to_list()[0] == "The answer cites no source."
    assert not any("_" in title for title in frame["title"])


def test_what_changes_for_the_user_by_hand(opened, texts):
    said = raw(texts(opened()))
    # Of four answers two are incorrect, and both are stopped.
    assert (
        "**2 of 4 labelled answers are incorrect; with validators on 0 still reach the user:** −50 percentage "
        "points" in said
    )
    assert "2 of 2 incorrect answers stopped (95 % interval of the share 34 to 100 %)" in said
    # Two stops at random among two of four: both meet incorrect ones in one of six cases, none in another.
    assert "1.0 by chance (p = 0.33). Price: 0 of 2 correct answers lost" in said


def test_where_nothing_is_stopped_nothing_changes(opened, texts):
    said = raw(texts(opened(shown=validated(run_of({"fine": CASES["fine"], "bare": CASES["bare"]})))))
    assert "**0 of 2 labelled answers are incorrect.** Validation stops no labelled answer." in said


def test_without_labels_the_page_says_what_is_unknown(opened, texts):
    app = opened(shown=validated(run_of(references=())))
    said = raw(texts(app))
    assert "No validated answer is known to be correct or incorrect. Reference answers would tell." in said
    assert "How many incorrect answers validation keeps from the user is unknown" in said
    assert "Price" not in said
    # The verdicts and the reasons; no figure that needs labels.
    assert len(app.get("plotly_chart")) == 2
    assert table(app, "noted")["wrong"].to_list() == [""] * 5


def test_the_gravest_answer_is_shown_with_its_objections_and_its_fallback(opened, texts):
    app = opened()
    box = next(one for one in app.selectbox if one.label == "Answer")
    assert box.value == "lost" and [one.split(" · ")[0] for one in box.options] == [
        "1. Stopped", "2. Stopped", "3. Stopped", "4. Warning",
    ]  # fmt: skip
    assert box.options[0] == (
        "1. Stopped · low overlap, unsupported number, missing uncertainty · Who designed the lost bridge?"
    )
    text, spans, notes = marked(app)
    assert text == "Brunel built it in 1866 [1]."
    # The number is the second of three objections.
    assert spans == [("1866", [1])] and [one["sign"] for one in notes] == ["▲", "▲", "◆"]
    said = raw(texts(app))
    assert (
        "2. ▲ **Unsupported number** (warning, NumericUnits): 1 of 1 number is not in the passages." in said
    )
    assert "3. ◆ **Missing uncertainty** (critical, ConfidenceValidator): No passage supports" in said
    assert "The available sources do not support an answer to this question." in said
    assert "Check against a source: 1866" in said
    link = next(one for one in app.main.get("page_link") if one.proto.label == "Open in the workbench")
    assert "question=lost" in link.proto.query_string


def test_another_answer_is_chosen_and_a_warning_leaves_it_as_it_is(opened, texts, healthy):
    app = opened()
    next(one for one in app.selectbox if one.label == "Answer").set_value("bare").run()
    said = raw(texts(healthy(app)))
    assert marked(app)[0] == "Ada Unwin designed it." and "1. ▲ **Missing citation**" in said
    assert "The answer as it is: no verdict is critical." in said
    assert "The available sources do not support" not in said


def test_an_empty_answer_is_said_to_be_empty(opened, texts):
    app = opened()
    next(one for one in app.selectbox if one.label == "Answer").set_value("empty").run()
    answer = json.loads(app.get("bidi_component")[-1].proto.json)["answer"]
    assert answer["absent"] == "The answer is empty." and "No answer came back." in raw(texts(app))


def test_without_objections_there_is_nothing_to_choose(opened, texts):
    app = opened(shown=validated(run_of({"fine": CASES["fine"]})))
    assert "No validator objects to an answer." in texts(app)
    assert not [one for one in app.selectbox if one.label == "Answer"] and not app.get("bidi_component")


@pytest.mark.parametrize("page", ["validation", "workbench"])
def test_a_rejected_script_stays_text(page, opened, texts):
    app = opened(page, validated(run_of(HARMFUL)))
    text, spans, _ = marked(app)
    # It reaches the browser as data, which the component writes as text.
    assert text == HOSTILE_ANSWER and ("definitely", [3]) in spans
    assert not SCRIPT.search(texts(app))
    boxes = [raw(one.value) for one in app.markdown if "The available sources" in one.value]
    assert boxes and "script" not in boxes[0]
    assert "<script" not in json.dumps([one.proto.spec for one in app.get("plotly_chart")])


def test_validators_and_reasons_of_a_file_are_shown_as_they_are(opened, texts):
    verdicts = [
        {"query_id": "fine", "validator": HOSTILE, "passed": False, "severity": "critical", "reason": HOSTILE,
         "detail": HOSTILE, "spans": ["4:2", "100:200", "0:3", "x"]},
    ]  # fmt: skip
    run = validated(run_of({"fine": CASES["fine"]}, verdicts=verdicts))
    for page in ("validation", "workbench"):
        app = opened(page, run)
        text, spans, notes = marked(app)
        assert text == "Ada Unwin designed it [1]." and [piece for piece, _ in spans] == ["Ada"]
        assert any(one["lines"] == [HOSTILE] for one in notes)
        assert "◆ **Other** (critical, <script>alert(1)" in raw(texts(app)) and not SCRIPT.search(texts(app))
    assert HOSTILE in table(opened(shown=run), "noted")["validator"].to_list()


def test_looking_at_a_store_makes_no_file(opened, texts, file):
    for shown in (None, run_of()):
        app = opened(shown=shown)
        assert app.selectbox(key="validation_file").value == file.stem
        assert "There are no such metrics yet" in texts(app) and not file.parent.exists()


def test_answers_are_counted_once_and_shown_by_window(opened, texts, file):
    app = opened()
    button(app, "Add this run's answers (5)").click().run()
    assert "5 answers added, as of " in texts(app)
    frame = table(app, "window").set_index("window")
    # One of five passes, three have a fallback, none expresses uncertainty; 1.8 / 5 by the context scores.
    assert frame.index.to_list() == ["1 day", "7 days", "30 days"] and frame["n"].to_list() == [5] * 3
    assert frame["passed"].to_list()[0] == "20 % (4–62 %)"
    assert frame["fallback"].to_list()[0] == "60 % (23–88 %)"
    assert frame["uncertain"].to_list()[0] == "0 % (0–43 %)"
    assert frame["confidence"].to_list()[0].startswith("0.36 (0.")
    assert len(app.get("plotly_chart")) == 3
    button(app, "Add this run's answers (5)").click().run()
    assert "0 answers added, as of " in texts(app) and "5 answers were counted already." in texts(app)
    with MetricsStore(file) as store:
        assert len(store.between(datetime(2000, 1, 1, tzinfo=UTC), datetime.now(UTC))) == 5


def test_a_run_counts_on_the_day_on_which_it_was_made(opened, texts, seven):
    old = Run.create({**seven.manifest, "created": "2020-02-03T04:05:06+00:00"}, **seven.tables)
    app = opened(shown=old)
    button(app, "Add this run's answers (5)").click().run()
    assert "5 answers added, as of 2020-02-03." in texts(app)
    assert "No answer was counted in the last 30 days." in texts(app)


@pytest.mark.parametrize("created", ["yesterday", "2020-02-03T04:05:06", "0001-01-01T00:00:00+23:59"])
def test_a_run_that_was_made_at_no_time_is_counted_on_no_day(created, opened, texts, seven, file):
    app = opened(shown=Run.create({**seven.manifest, "created": created}, **seven.tables))
    button(app, "Add this run's answers (5)").click().run()
    assert "which is no time with its zone" in texts(app) and "error id" not in texts(app)
    assert not file.exists()


def test_the_counts_of_a_serving_program_are_shown_without_a_validated_run(opened, texts, file):
    file.parent.mkdir(parents=True)
    with MetricsStore(file) as store:
        at = datetime.now(UTC) - timedelta(days=3)
        store.add([Observation(at, True, False, 0.9, 0.5, False, True, ())])
    app = opened(shown=run_of())
    frame = table(app, "window")
    assert frame["n"].to_list() == [0, 1, 1] and frame["passed"].to_list()[0] == ""
    assert frame["confidence"].to_list()[1] == "0.90"  # one value has no interval
    assert not [one for one in app.button if one.label.startswith("Add this")]


def cards(app):
    return {one.label: one.value for one in app.metric}


def test_the_response_metadata_of_a_stopped_answer(opened, texts):
    app = opened("workbench", question="lost")
    said = raw(texts(app))
    shown = cards(app)
    assert (shown["Context score"], shown["Validation"], shown["Fallback"]) == ("0.10", "Stopped", "Used")
    assert "0.20 for no passage supports the answer" in said and "3 objections of 5 validators" in said
    # No passage vouches for it, so it counts as one without passages: 0.2, and 0.1 in all.
    assert "Context score 0.10: **+0.20** no passage supports the answer · **−0.10** and no" in said
    assert "1. ■ CitationRequired passed: Citations: 1." in said
    assert "3. ▲ **Unsupported number** (warning, NumericUnits)" in said
    assert "5. ■ EthicsAdapter does not apply: No guard is set." in said
    assert "**Stopped by validation:** No passage supports the answer, and it does not say" in said
    assert "The available sources do not support" in said and "Add sources that answer: Who designed" in said
    _, spans, notes = marked(app)
    assert spans == [("1866", [2])] and len(notes) == 5
    info = json.loads(app.json[-1].value)
    assert info == {
        "passed": False,
        "reasons": ["low_overlap", "unsupported_number", "missing_uncertainty"],
        "used_fallback": True,
        "confidence_score": 0.1,
        "context_docs_count": 2,
    }
    assert any("Stopped" in one.value for one in app.markdown if "-badge[" in one.value)


def test_the_response_metadata_of_an_answer_that_passes(opened, texts):
    app = opened("workbench", question="fine")
    shown = cards(app)
    assert (shown["Context score"], shown["Validation"], shown["Fallback"]) == (
        "0.90",
        "Passed",
        "Not used",
    )
    said = raw(texts(app))
    assert "**+0.80** 2 passages · **+0.10** validation passed" in said
    # Most of it is for having passages: no band makes trust of it.
    assert "0.80 for 2 passages" in said and "▲ high" not in said
    assert "no objection of 5 validators" in said and "What the user sees" not in said
    assert "Learning suggestions" not in said and "Stopped" not in said
    # No span to mark: the answer is not shown a second time.
    assert len(app.get("bidi_component")) == 1
    assert not any("Objections" in one.value for one in app.markdown if "-badge[" in one.value)


def test_an_answer_with_a_warning_has_a_badge_and_no_sentence_above(opened, texts):
    app = opened("workbench", question="bare")
    assert any("Objections" in one.value for one in app.markdown if "-badge[" in one.value)
    assert cards(app)["Validation"] == "Warning" and "Stopped by validation" not in texts(app)


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("error", "There is no answer to validate: the model call failed."),
        ("dark", "The run has no text of the passages to compare with."),
    ],
)
def test_an_answer_that_was_not_validated_says_why(question, why, opened):
    app = opened("workbench", question=question)
    assert why in [raw(one.value) for one in app.info] and "Response metadata" not in str(app.markdown)


def test_marks_of_the_figures_lead_to_questions(opened, seven):
    door = "validation.verdicts.validator:ConfidenceValidator,objects:True,correct:False"
    app = opened("workbench", where=door)
    assert matching(Diagnosis(seven), door) == ("sure", "lost")
    assert app.query_params["question"] in ("sure", "lost")


def test_methods_say_how_answers_are_validated(opened, texts):
    assert "**Form, not truth.**" in texts(opened("methods"))


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], [("abcdef", (), False)]),
        ([[(1, 3)]], [("a", (), False), ("bc", (0,), True), ("def", (), False)]),
        # Overlapping ones: the first of them gives its look, and begins once.
        ([[(0, 4)], [(2, 6)]], [("ab", (0,), True), ("cd", (0, 1), False), ("ef", (1,), False)]),
        # Beyond the text, the wrong way round, and twice the same.
        ([[(-5, 1), (4, 99), (3, 2), (4, 99)]], [("a", (0,), False), ("bcd", (), False), ("ef", (0,), True)]),
    ],
)
def test_a_text_is_cut_where_spans_begin_and_end(spans, expected):
    assert [tuple(one) for one in cut("abcdef", spans)] == expected


def test_nothing_is_cut_of_an_empty_text():
    assert cut("", [[(0, 3)]]) == []
