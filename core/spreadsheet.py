"""CSV that a spreadsheet can open safely.

Every undefined number is an empty cell. Text cells that a spreadsheet could take for a formula get a leading
apostrophe; `core.sources.influence_csv.read_influence_csv` takes it off again, so that what is written here
comes back unchanged. Numbers are never touched.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from core.sources.formulas import neutralise, neutralise_text
from core.text.strict import clean, finite


def csv_bytes(frame: pd.DataFrame, data_source: str | None = None) -> bytes:
    """Return a frame as CSV for download.

    Parameters
    ----------
    frame : DataFrame
        Any frame; its index is left out. Lists are written as JSON lists.
    data_source : str, optional
        Fills a last column ``data_source``: ``simulated``, ``upload`` or ``live`` (see `core.run.Run`).

    Returns
    -------
    bytes
        UTF-8 with a byte order mark, so that spreadsheets read accents right; comma-separated.
        Formulas in text cells and in column names are neutralised.
    """
    safe = pd.DataFrame({i: _safe(frame.iloc[:, i]) for i in range(frame.shape[1])}, index=frame.index)
    safe.columns = neutralise(pd.Series([str(name) for name in frame.columns], dtype="str")).to_list()
    if data_source is not None:
        safe["data_source"] = data_source
    text: str = safe.to_csv(index=False, lineterminator="\n")
    return clean(text).encode("utf-8-sig")


def _safe(values: pd.Series) -> pd.Series:
    """Neutralise the texts of one column; numbers, dates and truth values stay as they are."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype("object")
    if isinstance(values.dtype, pd.StringDtype):
        return neutralise(values)
    if values.dtype != object:
        return values
    # Object columns may hold anything; whatever is no number becomes text first.
    return pd.Series([_safe_cell(value) for value in values], index=values.index, dtype="object")


def _safe_cell(value: object) -> object:
    if value is None or value is pd.NA or isinstance(value, (bool, int, float, np.number, np.bool_)):
        return value
    if isinstance(value, (list, tuple, np.ndarray, dict)):
        value = json.dumps(plain(value), ensure_ascii=False)
    return neutralise_text(clean(str(value)))


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it; numbers without a value are None."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return finite(value)
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
