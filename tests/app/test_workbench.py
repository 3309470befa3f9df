"""The workbench: one question in every state that its data can be in."""

import json

import pandas as pd
import pytest

from core.run import Run
from tests.app.claims_runs import ANSWER, HOSTILE, claims_run
from tests.app.conftest import make_run


@pytest.fixture
def bench(open_app, healthy, tmp_path):
    """Open a question of a run in the workbench."""

    def opened(run, question="q1", **params):
        run.save(tmp_path / "samples" / "recorded_run")
        return healthy(open_app("workbench", question=question, **params))

    return opened


def one_question(k=4, **columns):
    """A question whose k passages have texts and influences that fall from 0.9."""
    passages = {
        "query_id": ["q1"] * k,
        "passage_id": [f"p{i}" for i in range(k)],
        "retrieval_rank": range(1, k + 1),
        "influence_score": [0.9 * (k - i) / k for i in range(k)],
        **columns.pop("passages", {}),
    }
    queries = {"query_id": ["q1"], "question": ["Which canal?"], "answer": ["Panama"]} | {
        name: [value] for name, value in columns.items()
    }
    return Run.create({"source": "live"}, queries=pd.DataFrame(queries), passages=pd.DataFrame(passages))


def repeated(run, n=40):
    """The same question n times: what one question shows by chance, as many do not."""
    ids = [f"q{i + 1}" for i in range(n)]
    queries, passages = (
        pd.concat([run[table].assign(query_id=id_) for id_ in ids], ignore_index=True)
        for table in ("queries", "passages")
    )
    return Run.create(run.manifest, queries=queries, passages=passages)


def drawn(app):
    """Return what the component was given to draw."""
    (element,) = app.get("bidi_component")
    return json.loads(element.proto.json)


def badges(app):
    return [element.value for element in app.markdown if "-badge[" in element.value]


def test_rows_hold_rank_influence_noise_flags_diff_and_text(bench, texts):
    app = bench(make_run())
    first, second, *_ = rows = drawn(app)["rows"]
    assert [row["rank"] for row in rows] == ["1", "2", "3", "4"]
    assert first["gold"] and first["flags"] == ["Harmful passage"] and not second["gold"]
    # Nothing of the answer is left without the first passage; one repeat gave the same answer.
    assert first["bar"]["value"] == 1.0 and first["bar"]["noise"] == 0.0 and not first["bar"]["within"]
    assert first["bar"]["text"] == "Influence 1.00 · rank 1 of 4 · above noise"
    assert (first["bar"]["zero_at"], first["bar"]["value_at"]) == (0.0, 100.0)
    assert rows[3]["bar"]["text"].endswith("rank 4 of 4 · within noise") and rows[3]["bar"]["within"]
    assert first["change"]["parts"] == [["removed", "Raymond Unwin in 1903"], ["added", "Barry Parker"]]
    assert rows[3]["change"] == {"said": "Without it: the same answer.", "parts": []}
    # The passage says "garden", "city" and "designed" of the question, and "1903" of the answer.
    assert [(kind, word) for kind, word in first["snippet"] if kind] == [
        ("question", "garden"), ("question", "city"), ("question", "designed"), ("answer", "1903"),
    ]  # fmt: skip
    given = drawn(app)
    assert given["marked"] == ["answer", "question"] and given["beside"] == [
        ["Reference answer", "Barry Parker"]
    ]
    assert given["origins"] == (
        "“Raymond Unwin” occurs in no passage; “1903” in passages 1, 2, 3 and 4; the reference “Barry Parker” in no "
        "passage."
    )
    said = texts(app).replace("\\", "").replace("\u2060", "")
    assert "**Harmful passage:** “<script>" in said and "retrieval rank 1, makes the answer incorrect" in said
    assert "Before you filter it, try the fixes" in said
    assert any("Incorrect" in badge for badge in badges(app))
    assert "Ebenezer Howard" in said and "Closed-book answer" in said
    assert "Noise floor" in {metric.label for metric in app.metric}


def test_findings_are_chips_and_what_is_in_order_is_none(bench):
    """Five paragraphs stood between the question and its answer."""
    app = bench(make_run())
    chips = [badge for badge in badges(app) if "Harmful passage" in badge]
    assert len(chips) == 1 and not any("In order" in badge for badge in badges(app))


def test_the_whole_passage_is_given_where_the_snippet_is_a_part_of_it(bench):
    texts = ["short", "The lock of the Panama canal was dug. " * 20, "", "Another canal " * 50]
    rows = drawn(bench(one_question(passages={"text": texts})))["rows"]
    assert [bool(row["text"]) for row in rows] == [False, True, False, True]
    assert [len("".join(word for _, word in row["snippet"])) <= 156 for row in rows] == [True] * 4
    assert ["answer", "Panama"] in rows[1]["snippet"]


def test_the_list_beside_shows_whole_questions(bench, recorded):
    """The list showed 'How much may' of each question."""
    long = "Which of the two locks that were dug in the same year was the deeper one when it opened, and by how much?"
    app = bench(one_question(question=long))
    (label,) = [button.label for button in app.button if button.key == "beside_q_q1"]
    assert long.rstrip("?") in label.replace("\\", "")


def test_an_order_mode_names_its_passage_and_says_what_chance_gives(bench, texts):
    # Influence grows with the rank: the last three of six are used first, the first three last.
    scores = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    titles = [f"Canal {i}" for i in range(1, 7)]
    one = one_question(6, passages={"influence_score": scores, "title": titles})
    # Nineteen of twenty random orders show the same in a single question, so nothing is said of it.
    assert [row["flags"] for row in drawn(bench(one))["rows"]] == [[]] * 6
    app = bench(repeated(one, 100))
    said = texts(app).replace("\\", "")
    assert "**Buried evidence:** “Canal 4”, retrieval rank 4, is used, at influence rank 3 of 6" in said
    assert "“Canal 1”, retrieval rank 1, is hardly used (influence rank 6 of 6)" in said
    # 1 - C(3, 3) / C(6, 3): only one of twenty choices of three misses them all.
    assert "Of random orders of these influences, 95 % show this too." in said
    assert "**Inverted order:** “Canal 6”, retrieval rank 6, is used most." in said
    assert [row["flags"] for row in drawn(app)["rows"]] == [["Ignored top hit"]] * 3 + [
        ["Buried evidence"]
    ] * 3


def test_equal_influences_share_their_ranks(bench):
    rows = drawn(bench(one_question(passages={"influence_score": [0.5, 0.2, 0.2, 0.0]})))["rows"]
    assert [row["bar"]["text"].split(" · ")[1] for row in rows] == [
        "rank 1 of 4", "rank 2–3 (tied) of 4", "rank 2–3 (tied) of 4", "rank 4 of 4",
    ]  # fmt: skip


def test_a_flat_row_is_a_sentence_and_no_figure(bench, texts):
    app = bench(make_run(), "q3")
    assert "**Inert:** No single removal changes the answer" in texts(app)
    assert "all influences are 0" in app.info[0].value and not app.get("plotly_chart")


def test_without_texts_the_rows_lack_them_and_a_sentence_says_so(bench, texts):
    app = bench(one_question())
    assert all(not row["text"] and not row["snippet"] and row["change"] is None for row in drawn(app)["rows"])
    said = texts(app)
    assert "The run has no texts of these passages." in said and "no difference to show" in said
    assert "Claims not extracted" in said and any("Not judged" in badge for badge in badges(app))


def test_one_passage_has_no_order(bench):
    app = bench(one_question(1))
    assert len(drawn(app)["rows"]) == 1 and "Fewer than three passages" in app.info[0].value


def test_many_passages_come_whole_and_the_first_are_shown(bench):
    given = drawn(bench(one_question(40)))
    assert len(given["rows"]) == 40 and given["at_first"] == 15


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        ("abstained", "The model declined to answer."),
        ("empty", "The answer is empty."),
        ("error", "The model call failed.** out of tokens"),
    ],
)
def test_an_answer_that_is_none_says_why(status, sentence, bench, texts):
    answer = {"abstained": "I don't know.", "empty": "", "error": None}[status]
    reason = "out of tokens" if status == "error" else None
    app = bench(one_question(answer=answer, answer_status=status, status_reason=reason))
    assert sentence in texts(app) and any("Not judged" in badge for badge in badges(app))
    assert drawn(app)["answer"]["absent"] == ("" if status == "abstained" else "No answer.")


def test_a_question_without_passages_says_so(bench, texts):
    run = make_run()
    app = bench(run.derive({}, passages=run.passages.head(0)))
    assert "No passages were retrieved" in texts(app) and drawn(app)["rows"] == []


def test_claims_are_marked_and_their_passages_known(bench):
    given = drawn(bench(claims_run()))
    answer, rows = given["answer"], given["rows"]
    text = "".join(part for piece in answer["pieces"] for part, _ in piece["parts"])
    assert text == ANSWER.replace("\u202e", "\ufffd").replace("\u202c", "\ufffd")
    assert [note["state"] for note in answer["notes"]] == [
        "well supported", "fragile", "unsupported", "unscored", "joint", "irrelevant",
    ]  # fmt: skip
    assert answer["elsewhere"] == [3, 4]
    # c0 by both; c1 by the first; c4 by the two together.
    assert rows[0]["claims"] == [[0, "0.90"], [1, "0.70"], [4, "0.80 with passage 2"]]
    assert rows[1]["claims"] == [[0, "0.80"], [4, "0.80 with passage 1"]]
    assert rows[0]["facts"] == [["", "Supports 3 of 5 claims"], ["", "Used evidence"]]
    assert rows[1]["facts"] == [["", "Supports 2 of 5 claims"], ["", "Redundant or wasted"]]


def test_threshold_of_support_drives_the_marks(bench):
    given = drawn(bench(claims_run(), support="0.85"))
    assert [note["state"] for note in given["answer"]["notes"]][:2] == ["fragile", "unsupported"]
    assert given["rows"][1]["claims"] == []
    assert given["rows"][1]["facts"][0] == ["", "Supports none of 5 claims: at most 0.80, claim 1"]


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("q2", "The model declined to answer"),
        ("q3", "The answer is empty, so it claims nothing"),
        ("q5", "No claim was found in the answer"),
        ("q4", "The verifier failed on every claim"),
    ],
)
def test_answers_without_grounding_say_why_and_show_no_share(question, sentence, bench):
    app = bench(claims_run(), question)
    (told,) = [element.value for element in app.info if "No grounding" in element.value]
    assert sentence in told.replace("\\", "")
    values = {metric.label: metric.value for metric in app.metric}
    if question == "q4":
        assert (values["Supported"], values["Mean U(c)"], values["Unscored cells"]) == ("—", "—", "2 of 2")
        assert drawn(app)["rows"][0]["facts"] == [["", "Support not verified"]]
    else:
        assert "Supported" not in values and not drawn(app)["answer"]["notes"]


def test_one_claim_is_no_heat_map(bench, texts):
    app = bench(claims_run(), "q4")
    assert "One claim or one passage" in texts(app) and not app.get("plotly_chart")
    assert len(bench(claims_run(), "q1").get("plotly_chart")) == 1


def test_hostile_text_is_text(bench, texts):
    app = bench(claims_run())
    assert "<img" not in texts(app).replace("\\<img", "") and "\u202e" not in texts(app)
    given = json.dumps(drawn(app), ensure_ascii=False)
    assert "<img src=x" in given and "\u202e" not in given  # the component makes no HTML of it
    for element in app.get("plotly_chart"):
        assert "<img" not in element.proto.spec
    assert any("no question" in warning.value for warning in bench(claims_run(), HOSTILE).warning)


def test_next_and_previous_walk_what_is_listed(open_app, healthy, texts, recorded):
    app = healthy(open_app("workbench", label="Undefined"))
    first = app.query_params["question"]
    assert "1 of 2 (filtered)" in texts(app) and app.button(key="workbench_previous").disabled
    app.button(key="workbench_next").click().run()
    assert {first, healthy(app).query_params["question"]} == {"q3", "q4"}
    assert "2 of 2 (filtered)" in texts(app) and app.button(key="workbench_next").disabled
    app.button(key="workbench_previous").click().run()
    assert healthy(app).query_params["question"] == first


def test_a_question_can_be_marked_where_it_is_read(bench, healthy):
    app = bench(make_run())
    app.segmented_control(key="review_status_q1").set_value("reviewed").run()
    assert healthy(app).segmented_control(key="review_status_q1").value == "reviewed"
