"""What a notebook shows of a result: a title and rows of text, everything escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def card(title: str, rows: Iterable[tuple[str, object]] = (), lines: Iterable[str] = ()) -> str:
    """Return HTML: a title, ``lines`` as paragraphs, then rows of a name and a value.

    >>> card("Run <1>", [("questions", 3)])
    '<div><strong>Run &lt;1&gt;</strong><table><tr><th>questions</th><td>3</td></tr></table></div>'
    """
    told = "".join(f"<p>{escape(line)}</p>" for line in lines)
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in rows)
    return f"<div><strong>{escape(title)}</strong>{told}{f'<table>{cells}</table>' if cells else ''}</div>"
