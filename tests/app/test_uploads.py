"""Uploads: good, in need of a mapping, broken; saving, and sessions that see only their own."""

import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.report.exports import exporters
from core.sources.formats import FORMATS, IMPORT_FORMATS, import_file
from tests.app.polling import button

CSV = (Path(__file__).parent / "influence.csv").read_bytes()


def link(app, label):
    return next(one.proto for one in app.get("page_link") if one.proto.label == label)


def upload(app, content, name="file.csv"):
    app.file_uploader(key="data_upload").upload(name, content)
    return app.run()


def test_report_counts_rows_and_the_file_is_shown(open_app, healthy, texts):
    app = healthy(upload(open_app("data"), CSV))
    values = {metric.label: metric.value for metric in app.metric}
    assert (values["Rows in the file"], values["Used"], values["Left out"]) == ("9", "9", "0")
    assert "3 questions · 9 passages" in texts(app)
    assert "The file is loaded" in texts(app)


def test_a_parquet_file_is_read(open_app, healthy, texts):
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"user_input": ["q"], "retrieved_contexts": [["c", "d"]], "response": ["r"]}), sink
    )
    app = healthy(upload(open_app("data"), sink.getvalue(), "samples.parquet"))
    assert "1 question · 2 passages" in texts(app)


def test_a_test_set_is_offered_as_a_data_set(open_app, healthy):
    app = healthy(upload(open_app("data"), b'{"user_input": "q", "reference": "r"}', "testset.jsonl"))
    assert "on the page Live run" in app.error[0].value and "core analyze testset" in app.error[0].value


LABELLED = "question,answer,confidence,correct\n" + "".join(
    f"What is fact {n}?,Fact {n}.,{n / 40},{int(n % 4 > 0 if n > 20 else n % 3 == 0)}\n" for n in range(40)
)


def test_labels_and_confidences_alone_are_calibrated_and_ask_for_no_passage(open_app, healthy, texts):
    app = healthy(upload(open_app("data"), LABELLED.encode(), "labelled.csv"))
    assert "All 40 rows were used" in app.success[0].value and "passage" not in "".join(
        one.value for one in app.markdown if "material/remove" in one.value
    )
    said = texts(healthy(app.switch_page("pages/confidence.py").run()))
    assert "Calibration error (ECE)" in said and "Measure signals" not in said
    app = healthy(app.switch_page("pages/conformal.py").run())
    assert "40 of 40 questions** with a label" in texts(app)
    said = texts(healthy(app.switch_page("pages/overview.py").run()))
    assert "answers are wrong" in said and "Was the evidence in the prompt" not in said


def test_a_file_of_unknown_columns_goes_to_the_mapper_with_a_guess(open_app, healthy, texts):
    content = b"prompt,rank,score_delta\nWho was first?,1,0.5\nWho was first?,2,0.25\n"
    app = healthy(upload(open_app("data"), content))
    assert "Which column is which?" in texts(app) and "questions only" not in texts(app)
    fields = ("question", "retrieval_rank", "influence_score")
    chosen = [app.selectbox(key=f"data_map_{field}").value for field in fields]
    assert chosen == ["prompt", "rank", "score_delta"]
    app = healthy(app.button(key="data_mapped").click().run())
    assert "1 question · 2 passages" in texts(app)


def test_answers_to_one_question_may_be_samples_and_unused_columns_are_in_amber(open_app, healthy, texts):
    app = healthy(upload(open_app("data"), b"question,answer,colour\nWho?,Ada,red\nWho?,Bo,red\n"))
    assert "1 column not used" in app.warning[0].value and not app.success
    app = healthy(app.button(key="data_samples").click().run())
    assert "1 question · 0 passages" in texts(app)


def test_gzip_is_read(open_app, healthy, texts):
    app = healthy(upload(open_app("data"), gzip.compress(CSV), "file.csv.gz"))
    assert "3 questions · 9 passages" in texts(app)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"", "empty.csv"),
        (b"\x00\x01\x02\xff" * 500, "binary.csv"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8, "picture.csv"),
        (b"only\none\ncolumn\n", "one.csv"),
        (b"query,doc_id\n", "header.csv"),
        (b"<script>alert(1)</script>,b\n1,2\n", "script.csv"),
        (b"not gzip at all", "file.csv.gz"),
    ],
)
def test_broken_files_are_told_in_one_sentence(content, name, open_app, healthy, texts):
    app = healthy(upload(open_app("data"), content, name))
    assert len(app.error) == 1 and not app.success
    assert "Traceback" not in texts(app)
    assert "No data loaded" in texts(app)


def test_ragged_and_impossible_rows_are_listed_and_kept_apart(open_app, healthy):
    content = CSV + b"too,short\nWhen did it open?,In 1931,1,0,0.5,1,False,7,,nan,9,0.2,7.5,1\n"
    app = healthy(upload(open_app("data"), content))
    values = {metric.label: metric.value for metric in app.metric}
    assert values["Rows in the file"] == "11" and values["Left out"] != "0"
    issues = app.dataframe[0].value
    assert {"row", "column", "value", "expected", "severity"} <= set(issues.columns)
    assert any(button.label == "Download the rows left out" for button in app.get("download_button"))


def test_formulas_and_markup_stay_text(open_app, healthy, texts):
    content = CSV.replace(b"When did it open?", b"\"=cmd|' /C calc'!A0 <script>x</script>\"")
    queries = import_file(content, "file.csv").run.queries
    app = healthy(upload(open_app("data"), content))
    app.switch_page("pages/workbench.py")
    app.query_params["question"] = queries["query_id"][queries["question"].str.startswith("=cmd")].iloc[0]
    said = texts(healthy(app.run()))
    assert r"\=cmd" in said and r"\<script\>" in said


def test_nan_ranks_do_not_break_a_page(open_app, healthy):
    app = healthy(upload(open_app("data"), CSV.replace(b",1,9.5,", b",NaN,9.5,")))
    for page in ("overview", "influence", "workbench"):
        app = healthy(app.switch_page(f"pages/{page}.py").run())
        assert not app.exception and not app.error


def test_unknown_columns_are_mapped_by_hand(open_app, healthy, texts):
    header = (
        b"query,baseline_answer,spearman_rho,spearman_pvalue,dominance_ratio,influence_entropy,is_divergent"
    )
    content = (
        CSV.replace(header, b"Frage,baseline_answer,a,b,c,d,e")
        .replace(b"influence_score,influence_rank", b"Einfluss,f")
        .replace(b"rouge_l", b"g")
    )
    app = healthy(upload(open_app("data"), content))
    said = texts(app)
    assert "Which column is which?" in said
    # One is told by its name, the others by their values, which stand below the choice.
    assert [app.selectbox(key=f"data_map_{field}").value for field in ("answer", "question")] == [
        "baseline_answer",
        "Frage",
    ]
    assert "guessed from its values\\: When did it open\\?" in said.replace("\u2060", "")
    # A wrong choice is told, and all choices stay.
    app.selectbox(key="data_map_question").select("— none —").run()
    button(app, "Read the file").click().run()
    assert "no column for the question" in healthy(app).error[0].value
    assert app.selectbox(key="data_map_question").value == "— none —"
    app.selectbox(key="data_map_question").select("Frage")
    app.selectbox(key="data_map_influence_score").select("Einfluss").run()
    app = healthy(button(app, "Read the file").click().run())
    assert "3 questions · 9 passages" in texts(app)
    assert "Which column is which?" not in texts(app) and not app.error


def test_the_report_stays_until_the_next_upload(open_app, healthy, texts, recorded):
    app = healthy(upload(open_app("data"), CSV))
    assert "rows were used" in texts(app)
    app.switch_page("pages/overview.py").run()
    assert "Imported file" in texts(healthy(app)) and link(app, "Import report")
    # Another run is opened, and the page comes without the browser's copy of the file.
    app.query_params["run"] = recorded.run_id
    app.switch_page("pages/data.py").run()
    assert "Another run is shown now" in app.info[0].value and app.metric[0].label == "Rows in the file"
    button(app, "Show this file again").click().run()
    assert "3 questions · 9 passages" in texts(healthy(app)) and not app.info
    healthy(upload(app, b"a,b\n1,x\n", "other.csv"))
    assert not app.metric and len(app.error) == 1


def test_verdicts_that_change_lead_the_report_and_the_overview(open_app, healthy, texts):
    rows = [f"q{q},{'' if q < 2 else 'an answer'},1.0,{d},{d},{0.5 if q < 2 else 0}" for q in range(5)
            for d in (1, 2, 3)]  # fmt: skip
    head = "query,baseline_answer,spearman_rho,doc_id,retrieval_rank,influence_score"
    app = healthy(upload(open_app("data"), "\n".join([head, *rows]).encode(), "claims.csv"))
    expected = "5 of 5 reported verdicts change when recomputed: 3 inert, 2 empty baselines."
    assert expected in app.warning[0].value.replace("\\", "")
    app.switch_page("pages/overview.py").run()
    assert expected in texts(healthy(app)).replace("\\", "")
    assert "finding=influence.reported_verdicts" in link(app, "Verdicts that change").query_string
    # From a saved run the sentence is made again.
    app.switch_page("pages/data.py").run()
    app.button(key="data_save").click().run()
    other = healthy(open_app(run=app.query_params["run"]))
    assert expected in texts(other).replace("\\", "")
    assert not [one for one in other.get("page_link") if one.proto.label == "Import report"]


def test_a_file_that_was_saved_before_is_not_badged_as_unsaved(open_app, healthy, texts, tmp_path):
    app = healthy(upload(open_app("data"), CSV))
    assert "Not saved" in texts(app) and not (tmp_path / "runs").exists()
    app.button(key="data_save").click().run()
    assert "Not saved" not in texts(app)
    again = healthy(upload(open_app("data"), CSV))
    assert "Not saved" not in texts(again) and not [b for b in again.button if b.key == "data_save"]


def test_mapping_without_a_question_is_told(open_app, healthy):
    app = healthy(upload(open_app("data"), b"a,b\n1,0.5\n2,0.4\n"))
    next(b for b in app.button if b.label.startswith("Read the file")).click()
    assert "question" in healthy(app.run()).error[0].value


def test_saved_upload_opens_by_its_link_elsewhere(open_app, healthy, texts, tmp_path):
    app = healthy(upload(open_app("data"), CSV))
    link = app.query_params["run"]
    assert "is not saved here" in open_app(run=link).warning[0].value
    app.button(key="data_save").click().run()
    assert len(list((tmp_path / "runs").iterdir())) == 1
    other = healthy(open_app(run=link))
    assert "3 questions · 9 passages" in texts(other) and not other.warning


def test_sessions_see_only_their_own(open_app, healthy, texts):
    mine, theirs = open_app("data"), open_app("data")
    upload(mine, CSV)
    mine.switch_page("pages/influence.py").run().slider(key="influence_threshold").set_value(0.2).run()
    theirs.switch_page("pages/influence.py").run()
    assert "3 questions" in texts(mine) and "No data loaded" in texts(healthy(theirs))
    assert theirs.slider(key="influence_threshold").value == 0.7


def test_saved_runs_are_opened_renamed_and_deleted(open_app, healthy, texts, small_run, tmp_path):
    small_run.save(tmp_path / "runs" / "one")
    app = healthy(open_app("data", door="Saved runs"))
    key = f"0_{small_run.run_id}"
    app.button(key=f"open_{key}").click().run()
    assert "4 questions · 16 passages" in texts(healthy(app))
    app.text_input(key=f"name_{key}").set_value("Another name")
    next(b for b in app.button if b.label == "Rename").click()
    assert "Another name" in texts(healthy(app.run()))
    app.button(key=f"delete_{key}").click().run()
    assert "No saved runs yet" in texts(healthy(app))
    assert list((tmp_path / "runs").iterdir()) == []


def test_runs_that_come_with_the_app_cannot_be_deleted(open_app, healthy, recorded):
    app = healthy(open_app("data", door="Saved runs"))
    assert [b.label for b in app.button if "elete" in b.label] == []
    assert any(b.label == "Open" for b in app.button)


def test_damaged_saved_run_is_left_out_of_the_list(open_app, healthy, texts, tmp_path):
    folder = tmp_path / "runs" / "bad"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text('{"tables": [], "schema_version": "x"}')
    assert "No saved runs yet" in texts(healthy(open_app("data", door="Saved runs")))


RAGAS = [
    {
        "user_input": f"When did bridge {i} open?",
        "retrieved_contexts": [f"Bridge {i} opened in 19{30 + i}.", "<b>The mill</b> burned down."],
        "response": f"In 19{30 + i}.",
        "reference": f"19{30 + i}",
        "faithfulness": 0.25 * i,
    }
    for i in range(3)
]
RAGAS_LINES = "\n".join(json.dumps(record) for record in RAGAS).encode()


def test_records_of_another_tool_are_recognised(open_app, healthy, texts):
    app = healthy(upload(open_app("data"), RAGAS_LINES, "ragas.jsonl"))
    assert "Read as ragas evaluation data" in texts(app)
    assert "3 questions · 6 passages" in texts(app)
    said = texts(app).replace("\\", "")
    assert "correct and incorrect answers" in said and "influence vs retrieval: needs answers" in said


def test_answers_that_can_be_checked_lead_to_the_check(open_app, healthy, texts):
    """A file with a refusal read 'Claims not extracted' on a page that nothing led to."""
    lines = b"\n".join(
        json.dumps(
            {"user_input": "Who planned it?", "response": said, "retrieved_contexts": ["Unwin planned it."]}
        ).encode()
        for said in ("I don't know.", "Unwin planned it.")
    )
    app = healthy(upload(open_app("data"), lines, "ragas.jsonl"))
    links = {link.proto.label: link.proto.page for link in app.main.get("page_link")}
    assert links["Extract and verify claims (no model needed)"] == "claims"
    assert not any("conformal" in label for label in links)  # nothing is labelled
    assert "1 answer declines to answer." in texts(app)


def test_the_format_can_be_overridden_and_changed_back(open_app, healthy, texts):
    lines = b'{"question": "Who?", "passages": ["a", "b"], "answer": "a"}\n'
    app = healthy(upload(open_app("data"), lines, "plain.jsonl"))
    assert "Read as Plain JSON Lines" in texts(app)
    app.selectbox(key="data_format").select("ragchecker").run()
    assert len(healthy(app).error) == 1 and not app.success
    app.selectbox(key="data_format").select("auto").run()
    assert "Read as Plain JSON Lines" in texts(healthy(app)) and not app.error


def test_every_format_can_be_chosen(open_app, healthy):
    app = healthy(open_app("data"))
    offered = app.selectbox(key="data_format")
    assert len(offered.options) == len(IMPORT_FORMATS) == len(set(offered.options))
    for name in IMPORT_FORMATS:
        offered.select(name).run()
        healthy(upload(app, b'{"nothing": "of use"}', f"{name}.json"))
        assert len(app.error) == 1, name
        offered = app.selectbox(key="data_format")


def test_records_under_names_of_their_own_are_mapped_by_hand(open_app, healthy, texts):
    content = b"Frage,Fundstellen,Antwort\nWer baute es?,\"['Unwin baute es.', 'b']\",Unwin\n"
    app = healthy(upload(open_app("data"), content))
    assert len(app.error) == 1
    app.selectbox(key="data_format").select("ragas").run()
    assert "Choose the columns of this file for ragas" in texts(healthy(app))
    app.selectbox(key="data_map_question").select("Frage")
    app.selectbox(key="data_map_passages").select("Fundstellen")
    app.selectbox(key="data_map_answer").select("Antwort")
    next(b for b in app.button if b.label.startswith("Read the file")).click()
    app = healthy(app.run())
    assert "1 question · 2 passages" in texts(app) and "Which column" not in texts(app)


def test_records_without_influence_lead_to_a_live_run_with_the_same_passages(open_app, healthy, texts):
    app = healthy(upload(open_app("data"), RAGAS_LINES, "ragas.jsonl"))
    offered = link(app, "Run live with these questions")
    assert offered.query_string == f"run={app.query_params['run']}&questions=Questions+of+the+loaded+run"
    app.switch_page("pages/live.py")
    app.query_params["questions"] = "Questions of the loaded run"
    app = healthy(app.run())
    assert "3 questions with passages as given" in texts(app)
    assert "live_retriever" not in {menu.key for menu in app.selectbox}
    app.number_input(key="live_n_3").set_value(2).run()
    assert "2 questions with passages as given" in texts(healthy(app))


def test_a_file_with_influence_is_not_sent_on(open_app, healthy):
    app = healthy(upload(open_app("data"), CSV))
    assert "Run live with these questions" not in [link.proto.label for link in app.get("page_link")]


def test_a_data_set_becomes_a_live_run_with_one_button(open_app, healthy, texts):
    lines = b'{"question": "Who?", "documents": ["Unwin.", "The mill."]}\n' * 2
    app = healthy(upload(open_app("data"), lines, "town.jsonl"))
    assert "is a data set" in app.success[0].value and not app.error
    app = healthy(button(app, "Run live with these questions").click().run())
    assert "2 questions with documents to retrieve from" in texts(app)


def test_nothing_that_needs_texts_is_offered_without_them(open_app, healthy, texts):
    content = b"query,doc_id,retrieval_rank,influence_score\na,1,1,0.5\na,2,2,0.4\n"
    upload(app := open_app("data"), content)
    assert texts(app).count("This file has no texts") == 1
    assert "Run live with these questions" not in [one.proto.label for one in app.get("page_link")]
    app.switch_page("pages/live.py").run()
    assert "Questions of the loaded run" not in healthy(app).segmented_control(key="questions").options
    app.switch_page("pages/claims.py").run()
    assert "This file has no texts" in healthy(app).info[0].value
    assert "Extract and verify claims" not in [one.label for one in app.button]
    app.switch_page("pages/data.py").run()
    app.segmented_control(key="door").set_value("Export").run()
    assert not {FORMATS[n].title for n in FORMATS} & set(healthy(app).selectbox(key="export_format").options)


def test_what_the_file_says_is_shown_and_used_for_nothing(open_app, healthy, texts):
    app = upload(open_app("data"), RAGAS_LINES, "ragas.jsonl")
    app.switch_page("pages/workbench.py")
    app.query_params["sort"] = "run"
    app.run()
    app.button(key="workbench_next").click().run()
    assert any(box.label == "Values from the file (1 value)" for box in healthy(app).expander)
    shown = next(frame.value for frame in app.dataframe if "by" in frame.value)
    assert list(shown["name"]) == ["faithfulness"] and list(shown["value"]) == [0.25]


def test_a_run_that_reports_nothing_has_no_such_box(open_app, healthy, recorded):
    app = healthy(open_app("workbench", question="q1"))
    assert not any("Values from the file" in box.label for box in app.expander)


def test_every_export_names_its_losses_before_it_is_downloaded(open_app, healthy, texts, recorded):
    app = healthy(open_app("data", door="Export"))
    menu = app.selectbox(key="export_format")
    assert len(menu.options) == len(set(menu.options)) == len(exporters())
    for name in exporters():
        menu.select(name).run()
        said = texts(healthy(app)).replace("\\", "").replace("\u2060", "")
        assert ("Not restored when" in said) == (name in FORMATS and bool(FORMATS[name].losses))
        assert all(loss in said for loss in getattr(FORMATS.get(name), "losses", ()))
        if name in FORMATS and FORMATS[name].write:
            kind = "" if FORMATS[name].suffix == f".{name}" else f"-{name}"
            assert f"{kind}{FORMATS[name].suffix}:" in said
        menu = app.selectbox(key="export_format")
