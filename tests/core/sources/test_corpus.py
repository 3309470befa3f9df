import pytest

from core.errors import InputError
from core.sources.question import Document, document_from_text, load_corpus, split_texts


def test_folder_of_articles(tmp_path):
    (tmp_path / "b.md").write_text("# Bees\n\nThey hum.\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("No heading here.", encoding="utf-16")
    (tmp_path / "README.md").write_text("# About", encoding="utf-8")
    (tmp_path / "c.png").write_bytes(b"\x89PNG")
    assert load_corpus(tmp_path) == (Document("a", "No heading here."), Document("Bees", "They hum."))


def test_json_lines(tmp_path):
    file = tmp_path / "c.jsonl"
    file.write_text(
        '{"title": "T", "text": "one"}\n\n"two"\n{"text": "three", "title": null}\n', encoding="utf-8"
    )
    assert load_corpus(file) == (Document("T", "one"), Document("", "two"), Document("", "three"))


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "5",
        '{"text": ""}',
        '{"text": 3}',
        '{"text": "a", "title": 1}',
        '{"text": "\\ud800"}',
        "[" * 100_000,
    ],
)
def test_a_bad_line_is_named(tmp_path, line):
    file = tmp_path / "c.jsonl"
    file.write_text('{"text": "fine"}\n' + line, encoding="utf-8")
    with pytest.raises(InputError, match="line 2"):
        load_corpus(file)


def test_an_empty_folder(tmp_path):
    with pytest.raises(InputError, match="holds no document"):
        load_corpus(tmp_path)


def test_titles_of_pasted_text():
    assert document_from_text("# T\nbody") == Document("T", "body")
    assert document_from_text("# only a heading") == Document("", "# only a heading")
    assert split_texts("a\n---\n\n---\nb --- c\n --- \nd") == ["a", "b --- c", "d"]
