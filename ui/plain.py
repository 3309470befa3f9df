"""Turn text from data into Markdown that shows exactly that text, and nothing else.

Everything that comes from a file, a question, a document or a model passes through `plain` before
it reaches a Streamlit element that understands Markdown. Two layers are needed:

1. Every ASCII punctuation character gets a backslash, so that the Markdown parser sees plain
   characters: no headings, links, HTML, tables, LaTeX or colour directives.
2. Some replacements run *after* parsing, on the characters themselves (emoji and icon shortcodes,
   arrows and dashes, automatic links). An invisible word joiner inside such a sequence stops them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from core.text.display import visible

WORD_JOINER = "\u2060"
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
# What post-processing would turn into an emoji, an icon, a typographic sign, a link or an address.
_AFTER = [
    (re.compile(r":(?=\S)"), ":" + WORD_JOINER),
    (re.compile(r"@(?=\S)"), "@" + WORD_JOINER),
    (re.compile(r"(www)(?=\.)", re.IGNORECASE), r"\1" + WORD_JOINER),
    (re.compile(r"(?<=[<>~=-])(?=[<>=-])"), WORD_JOINER),
]
_SPACES = re.compile(r"^[ \t]+|[ \t]+$", re.MULTILINE)

Tinted = Iterable[tuple[str | None, str]]


def plain(text: object, *, one_line: bool = False) -> str:
    """Return Markdown that renders as exactly ``text``.

    Parameters
    ----------
    text : object
        Anything; its ``str`` is shown. None shows as nothing.
    one_line : bool
        Show line breaks as spaces (for labels of buttons, expanders and links).

    Returns
    -------
    str
        Line breaks stay line breaks; white space at the ends of lines is dropped; control
        characters show as the replacement character.
    """
    value = _SPACES.sub("", visible("" if text is None else str(text)))
    if one_line:
        value = " ".join(value.split("\n"))
    for pattern, replacement in _AFTER:
        value = pattern.sub(replacement, value)
    value = _PUNCTUATION.sub(r"\\\1", value)
    # A backslash at the end of a line is a hard break, also on a line of its own.
    return value.strip("\n").replace("\n", "\\\n")


def shortened(text: object, length: int = 90) -> str:
    """Return ``text`` in one line of at most ``length`` characters, still raw (not escaped)."""
    value = " ".join(str("" if text is None else text).split())
    return value if len(value) <= length else value[: length - 1].rstrip() + "…"


def tinted(pieces: Tinted) -> str:
    """Return Markdown of escaped pieces, some on a coloured ground.

    Parameters
    ----------
    pieces : iterable of (style, text)
        ``style`` is None, ``added`` (green, +), ``removed`` (red, −, struck out) or ``term``
        (a word of the question: blue ground and bold). The signs make colour redundant.
    """
    result = ""
    for style, text in pieces:
        piece = _tint(style, text)
        # Two colons in a row would keep a colour from being read; two colours in a row need a gap.
        if piece.startswith(":"):
            result += {":": WORD_JOINER, "]": " "}.get(result[-1:], "")
        result += piece
    # A break at the very end would show as a backslash.
    while result.endswith("\\\n"):
        result = result.removesuffix("\\\n").rstrip(" ")
    while result.startswith("\\\n"):
        result = result.removeprefix("\\\n").lstrip(" ")
    return result


def _tint(style: str | None, text: str) -> str:
    core = text.strip()
    if style is None or not core:
        return _with_spaces(text, plain(core))
    body = plain(core)
    marked = {
        "added": f":green-background[+ {body}]",
        "removed": f":red-background[− ~~{body}~~]",
        "term": f":blue-background[**{body}**]",
    }[style]
    return _with_spaces(text, marked)


def _with_spaces(original: str, body: str) -> str:
    """Put one space or line break where the original had white space, so that pieces do not fuse."""
    if not original.strip():
        return _gap(original)
    start = original[: len(original) - len(original.lstrip())]
    end = original[len(original.rstrip()) :]
    return _gap(start) + body + _gap(end)


def _gap(white: str) -> str:
    if not white:
        return ""
    return "\\\n" if "\n" in white or "\r" in white else " "
