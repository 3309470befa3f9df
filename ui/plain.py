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

from core.text.display import visible

WORD_JOINER, NO_BREAK = "\u2060", "\u00a0"
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
# What post-processing would turn into an emoji, an icon, a typographic sign, a link or an address.
_AFTER = [
    (re.compile(r":(?=\S)"), ":" + WORD_JOINER),
    (re.compile(r"@(?=\S)"), "@" + WORD_JOINER),
    (re.compile(r"(www)(?=\.)", re.IGNORECASE), r"\1" + WORD_JOINER),
    (re.compile(r"(?<=[<>~=-])(?=[<>=-])"), WORD_JOINER),
]
# A number stays on the line of its unit, and of what it is a value of.
_UNITS = re.compile(r"(?<=\d) (?=(?:%|nats?|points?|s|ms|min|h|GB|MB|tokens?)(?!\w))")
_EQUALS = re.compile(r"\b([A-Za-zαδρτ]) ([=<]) (?=[\d−])")
_SPACES = re.compile(r"^[ \t]+|[ \t]+$", re.MULTILINE)


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
        characters show as the replacement character. Between a number and its unit no line breaks.
    """
    value = _SPACES.sub("", visible("" if text is None else str(text)))
    if one_line:
        value = " ".join(value.split("\n"))
    value = held(value)
    for pattern, replacement in _AFTER:
        value = pattern.sub(replacement, value)
    value = _PUNCTUATION.sub(r"\\\1", value)
    # A backslash at the end of a line is a hard break, also on a line of its own.
    return value.strip("\n").replace("\n", "\\\n")


def held(text: str) -> str:
    """Return ``text`` so that no line breaks between a number and its unit."""
    return _EQUALS.sub(f"\\1{NO_BREAK}\\2{NO_BREAK}", _UNITS.sub(NO_BREAK, text))


def shortened(text: object, length: int = 90) -> str:
    """Return ``text`` in one line of at most ``length`` characters, still raw (not escaped)."""
    value = " ".join(str("" if text is None else text).split())
    return value if len(value) <= length else value[: length - 1].rstrip() + "…"
