"""Uploads: good, in need of a mapping, broken; saving, and sessions that see only their own."""

import gzip
from pathlib import Path

import pytest

CSV = (Path(__file__).parent / "influence.csv").read_bytes()


def upload(app, content, name="file.csv"):
    app.file_uploader(key="data_upload").upload(name, content)
    return app.run()


def test_report_counts_rows_and_the_file_is_shown(open_app, healthy, texts):
    app = healthy(upload(open_app("data"), CSV))
    values = {metric.label: metric.value for metric in app.metric}
    assert (values["Rows in the file"], values["Used"], values["Left out"]) == ("9", "9", "0")
    assert "3 questions · 9 passages" in texts(app)
    assert "The file is loaded" in app.success[0].value


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
    app = healthy(upload(open_app("data"), content))
    app.switch_page("pages/inspector.py").run()
    said = texts(healthy(app))
    assert r"\=cmd" in said and r"\<script\>" in said


def test_nan_ranks_do_not_break_a_page(open_app, healthy):
    app = healthy(upload(open_app("data"), CSV.replace(b",1,9.5,", b",NaN,9.5,")))
    for page in ("overview", "influence", "inspector"):
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
    assert "Which column is which?" in texts(app)
    assert app.selectbox(key="data_map_answer").value == "baseline_answer"
    app.selectbox(key="data_map_question").select("Frage")
    app.selectbox(key="data_map_influence_score").select("Einfluss")
    next(b for b in app.button if b.label.startswith("Read the file")).click()
    app = healthy(app.run())
    assert "3 questions · 9 passages" in texts(app)
    assert "Which column is which?" not in texts(app)


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
    mine.slider(key="threshold").set_value(0.2).run()
    theirs.run()
    assert "3 questions" in texts(mine) and "No data loaded" in texts(healthy(theirs))
    assert theirs.slider(key="threshold").value == 0.7


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
