"""What a keyboard, a link or a setting of the server can hold: no page breaks, and nothing of the server is told."""

from __future__ import annotations

import pytest

LONG = "n" * 300
ODD = f"a\0b ../../etc/passwd \u202e\x1b[2J {LONG}"


@pytest.mark.parametrize("page", ["overview", "workbench"])
def test_every_text_field_takes_everything(page, open_app, healthy, recorded):
    app = healthy(open_app(page))
    fields = [*app.text_input, *app.text_area]
    assert fields
    for field in fields:
        field.set_value(ODD)
    assert healthy(app.run()).title[0].value == page.capitalize()


@pytest.mark.parametrize("odd", [ODD, LONG, "\0"])
def test_every_part_of_a_link_takes_everything(odd, open_app, healthy, recorded):
    for name in ("run", "question", "sort", "finding", "influence_threshold", "sim", "all", "door"):
        assert healthy(open_app("workbench", **{name: odd})).title[0].value


@pytest.mark.parametrize("page", ["conformal", "validation"])
def test_a_folder_that_cannot_be_is_one_sentence(page, open_app, monkeypatch, tmp_path, recorded):
    monkeypatch.setenv("LEADLINE_RUNS", str(tmp_path / LONG))
    app = open_app(page)
    (said,) = [error.value for error in app.error]
    assert "could not use one of its files or folders (file name too long)" in said
    assert LONG not in said and str(tmp_path) not in said and not app.exception


@pytest.mark.parametrize("name", ["LEADLINE_RUNS", "LEADLINE_SAMPLES", "LEADLINE_CACHE"])
def test_a_folder_under_a_file_is_none(name, open_app, healthy, monkeypatch, tmp_path, recorded):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv(name, str(tmp_path / "file" / "runs"))
    assert healthy(open_app()).title[0].value == "Overview"
