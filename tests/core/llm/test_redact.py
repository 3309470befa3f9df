import pytest

from core.llm.redact import error_text, one_line, without_secrets

KEY = "sk-proj-0123456789abcdefABCDEF"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Incorrect API key provided: " + KEY + ".", "Incorrect API key provided: …."),
        ("header Authorization: Bearer abc.def-123 refused", "header Authorization: Bearer … refused"),
        ("GET https://me:pw@api.example/v1 failed", "GET https://…@api.example/v1 failed"),
        ("GET https://api.example/v1?key=abc&x=1 failed", "GET https://api.example/v1?… failed"),
        ("for url 'https://api.example/?key=abc'", "for url 'https://api.example/?…'"),
        ("What is sk-learn? See https://api.example/v1", "What is sk-learn? See https://api.example/v1"),
    ],
)
def test_what_looks_like_a_key_is_taken_out(text, expected):
    assert without_secrets(text) == expected


def test_what_the_environment_calls_a_key_is_taken_out(monkeypatch):
    monkeypatch.setenv("MY_SERVICE_API_KEY", "correct horse battery")
    monkeypatch.setenv("OTHER_TOKEN", "short")
    assert without_secrets("tried 'correct horse battery', short") == "tried '…', short"


def test_a_secret_has_eight_characters_and_a_name_that_says_so(monkeypatch):
    for name, value in (
        ("SOME_KEY", "8charact"),
        ("SOME_TOKEN", "7letter"),
        ("SOME_PLACE", "somewhere else"),
    ):
        monkeypatch.setenv(name, value)
    assert without_secrets("8charact 7letter somewhere else") == "… 7letter somewhere else"


def test_a_message_has_at_most_300_characters_where_nothing_else_is_said():
    assert one_line("x" * 300) == "x" * 300
    assert one_line("x" * 301) == "x" * 299 + "…"
    assert one_line("word " * 3, 9) == "word wor…"


def test_an_exception_is_one_line_with_its_type():
    assert error_text(ValueError("first\n  second")) == "ValueError: first second"
    assert error_text(ValueError()) == "ValueError"
    assert error_text(KeyError("a")) == "KeyError: 'a'"
    assert error_text(ValueError("\ud800")) == "ValueError: \ufffd"
    assert len(error_text(ValueError("x" * 10_000))) == 500


def test_an_exception_that_cannot_be_written_out_still_has_its_type():
    class Odd(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    assert error_text(Odd()) == "Odd"
