"""What is kept beside the runs, in files that people can read."""

from core.beside import Beside


def test_a_file_is_json_with_a_line_for_each_entry_in_its_own_letters(tmp_path):
    notes = Beside("notes", dict)
    with notes.writing(tmp_path, "a") as write:
        write({"q1": "größer", "q2": "\ud800"})
    written = (tmp_path / "notes" / "a.json").read_text(encoding="utf-8")
    assert written == '{\n "run_id": "a",\n "notes": {\n  "q1": "größer",\n  "q2": "\ufffd"\n }\n}'
    assert notes.read(tmp_path, "a", dict) == {"q1": "größer", "q2": "\ufffd"}
