"""What is kept beside the runs, in files that people can read."""

import pytest

from core.beside import Beside
from core.errors import InputError


def test_a_file_is_json_with_a_line_for_each_entry_in_its_own_letters(tmp_path):
    notes = Beside("notes", dict)
    with notes.writing(tmp_path, "a") as write:
        write({"q1": "größer", "q2": "\ud800"})
    written = (tmp_path / "notes" / "a.json").read_text(encoding="utf-8")
    assert written == '{\n "run_id": "a",\n "notes": {\n  "q1": "größer",\n  "q2": "\ufffd"\n }\n}'
    assert notes.read(tmp_path, "a", dict) == {"q1": "größer", "q2": "\ufffd"}


def test_what_the_system_refuses_is_told_in_its_own_words(tmp_path):
    notes = Beside("notes", dict)
    file = notes.path_of(tmp_path, "a")
    file.mkdir(parents=True)
    with pytest.raises(InputError) as unread:
        notes.read(tmp_path, "a", dict)
    with pytest.raises(InputError) as unwritten, notes.writing(tmp_path, "a") as write:
        write({})
    with pytest.raises(InputError) as undeleted:
        notes.delete(tmp_path, "a")
    assert [str(one.value) for one in (unread, unwritten, undeleted)] == [
        f"The notes in {file} cannot be read: it is a folder.",
        f"The notes cannot be saved to {file}: Is a directory.",
        f"The notes in {file} cannot be deleted: Is a directory.",
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "holds no notes: it needs an object with run_id and notes."),
        ('{"run_id": "a", "notes": []}', "holds no notes: it needs an object with run_id and notes."),
        ('{"run_id": "b", "notes": {}}', "belong to the run b."),
        ("{", "cannot be read as JSON"),
    ],
)
def test_a_file_of_something_else_is_told(content, said, tmp_path):
    notes = Beside("notes", dict)
    file = notes.path_of(tmp_path, "a")
    file.parent.mkdir()
    file.write_text(content)
    with pytest.raises(InputError, match=said):
        notes.read(tmp_path, "a", dict)


def test_what_is_damaged_and_a_folder_that_is_kept_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr("core.beside._PATIENCE", 0)
    notes = Beside("notes", dict)
    with notes.writing(tmp_path, "a") as write:
        write({"q": 1})
        with (
            pytest.raises(InputError, match="Another process keeps the folder"),
            notes.writing(tmp_path, "b"),
        ):
            pass
    for error in (InputError("no."), KeyError("no."), TypeError("no."), ValueError("no.")):

        def parse(_, error=error):
            raise error

        with pytest.raises(InputError, match=r"a\.json are damaged: '?no\."):
            notes.read(tmp_path, "a", parse)
