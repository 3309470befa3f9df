"""Text cells that a spreadsheet would run as a formula: make them harmless, and undo it.

The rule, so that a round trip loses nothing: a text whose first character after white space is one
of ``= + - @`` (or a full-width form), or that starts with a tab or carriage return, gets one leading
apostrophe. So does a text that already looks like the result of this rule; taking one apostrophe
off what the rule marks therefore gives back every text exactly.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

# Spelt out because the two regular-expression engines behind pandas differ on what \s covers.
_SPACE = r"[\s\x0b\x1c-\x1f\x85\u00a0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u2060\u3000\ufeff]"
_START = rf"'*(?:[\t\r]|{_SPACE}*[=+\-@＝＋－＠])"
_CANDIDATE = rf"{_SPACE}|['=+\-@＝＋－＠]"
_FORMULA = f"^{_START}"
_MARKED = f"^'(?={_START})"


def neutralise(texts: pd.Series) -> pd.Series:
    """Put an apostrophe before every text that a spreadsheet could take for a formula.

    Parameters
    ----------
    texts : Series of str
        Missing values stay missing. Numbers are not texts: give only text columns.

    Examples
    --------
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


def restore(texts: pd.Series) -> pd.Series:
    """Undo `neutralise`: exactly for every text that went through it."""
    marked = np.array(texts.str.startswith("'").fillna(False), dtype=bool)
    if not marked.any():
        return texts
    marked[marked] = texts[marked].str.match(_MARKED).to_numpy(dtype=bool)
    return texts.mask(marked, texts.str.slice(1))
