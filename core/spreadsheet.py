"""CSV that a spreadsheet can open safely.

Every undefined number is an empty cell. Text cells that a spreadsheet could take for a formula get a leading
apostrophe, and `restore` takes it off again. Numbers are never touched.

The rule, so that a round trip loses nothing: a text whose first character after white space is one of
``= + - @`` (or a full-width form), or that starts with a tab or carriage return, gets one leading apostrophe.
So does a text that already looks like the result of this rule.
"""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd

from core.text.strict import clean, json_value

# Spelt out because the two regular-expression engines behind pandas differ on what \s covers.
_SPACE = r"[\s\x0b\x1c-\x1f\x85\u00a0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u2060\u3000\ufeff]"
_START = rf"'*(?:[\t\r]|{_SPACE}*[=+\-@＝＋－＠])"
_CANDIDATE = rf"{_SPACE}|['=+\-@＝＋－＠]"
_FORMULA = f"^{_START}"
# The writer puts every cell into quotation marks that has a character of what ends a row. So rows end with
# all that any program takes for the end of a line, and with a NUL, which no cell has.
_ROW_END = "\0\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_MARKED = f"^'(?={_START})"
SOURCE_COLUMN = "data_source"  # the last one of every table of a run


def neutralise(texts: pd.Series) -> pd.Series:
    """Put an apostrophe before every text that a spreadsheet could take for a formula.

    >>> neutralise(pd.Series(["=1+1", "plain", "-5", "'=1"])).to_list()
    ["'=1+1", 'plain', "'-5", "''=1"]
    """
    first = texts.str.slice(0, 1)
    # Most texts start with a letter or digit, which settles it without the regular expression.
    starts = [start for start in first.dropna().unique() if re.match(_CANDIDATE, start)]
    risky = np.array(first.isin(starts), dtype=bool)
    if not risky.any():
        return texts
    risky[risky] = texts[risky].str.match(_FORMULA).to_numpy(dtype=bool)
    return texts.mask(risky, "'" + texts)


def neutralise_text(text: str) -> str:
    """Return one text as `neutralise` would."""
    return f"'{text}" if re.match(_FORMULA, text) else text


def restored_text(text: str) -> str:
    """Undo `neutralise_text`."""
    return text[1:] if re.match(_MARKED, text) else text


def restore(texts: pd.Series) -> pd.Series:
    """Undo `neutralise`: exactly for every text that went through it."""
    if isinstance(texts.dtype, pd.CategoricalDtype):
        each = pd.Series(texts.cat.categories)
        # Two texts may become one, which categories cannot.
        return texts if restore(each).equals(each) else restore(texts.astype("str"))
    marked = np.array(texts.str.startswith("'").fillna(False), dtype=bool)
    if not marked.any():
        return texts
    marked[marked] = texts[marked].str.match(_MARKED).to_numpy(dtype=bool)
    return texts.mask(marked, texts.str.slice(1))


def csv_bytes(frame: pd.DataFrame, data_source: str | None = None) -> bytes:
    """Return a frame without its index as CSV in UTF-8, with a byte order mark for spreadsheets.

    Lists are written as JSON. Formulas in text cells and in column names are neutralised; what no text file
    can hold (NUL, half a surrogate pair) becomes U+FFFD. ``data_source`` (`core.run.Run.data_source`) fills a
    last column of that name.
    """
    safe = pd.DataFrame({i: _safe(frame.iloc[:, i]) for i in range(frame.shape[1])}, index=frame.index)
    safe.columns = [_safe_cell(str(name)) for name in frame.columns]
    if data_source is not None:
        safe[SOURCE_COLUMN] = data_source
    text: str = safe.to_csv(index=False, lineterminator=_ROW_END)
    return clean(text.replace(_ROW_END, "\n")).encode("utf-8-sig")


def _safe(values: pd.Series) -> pd.Series:
    """Neutralise the texts of one column; numbers, dates and truth values stay as they are."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype("object")
    if isinstance(values.dtype, pd.StringDtype):
        return neutralise(values.str.replace("\0", "\ufffd"))
    if values.dtype != object:
        return values
    # Object columns may hold anything; whatever is no number becomes text first.
    return pd.Series([_safe_cell(value) for value in values], index=values.index, dtype="object")


def _safe_cell(value: object) -> object:
    if value is None or value is pd.NA or isinstance(value, (bool, int, float, np.number, np.bool_)):
        return value
    if isinstance(value, (list, tuple, np.ndarray, dict)):
        value = json.dumps(json_value(value), ensure_ascii=False)
    return neutralise_text(clean(str(value)).replace("\0", "\ufffd"))
