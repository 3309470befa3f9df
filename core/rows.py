"""What is looked up in a table again and again: computed once for each table, and gone with it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from core.arrays import Bools, Ints

_KEPT: dict[int, tuple[weakref.ref[pd.DataFrame], dict[str, Any]]] = {}
_NOWHERE: Ints = np.empty(0, dtype=np.int64)


def once_for(frame: pd.DataFrame, name: str, compute: Callable[[pd.DataFrame], Any]) -> Any:
    """Return ``compute(frame)``, once for a table that nobody changes; ``name`` tells results apart."""
    key = id(frame)
    kept = _KEPT.get(key)
    if kept is None or kept[0]() is not frame:

        def forget(gone: weakref.ref[pd.DataFrame], every: dict[int, Any] = _KEPT) -> None:
            # Another table may have the number by now. An argument: modules have no names when Python ends.
            if key in every and every[key][0] is gone:
                del every[key]

        kept = _KEPT[key] = (weakref.ref(frame, forget), {})
    if name not in kept[1]:
        kept[1][name] = compute(frame)
    return kept[1][name]


def is_kept_for(frame: pd.DataFrame, name: str) -> bool:
    """Tell whether `once_for` has computed something of this name for a table."""
    kept = _KEPT.get(id(frame))
    return kept is not None and kept[0]() is frame and name in kept[1]


def places_of(frame: pd.DataFrame, query_id: str) -> Ints:
    """Return the places of a question's rows in a table with a column ``query_id``, in order.

    The first call reads the whole table (a second for a million rows), the others look the question up.

    >>> places_of(pd.DataFrame({"query_id": ["a", "b", "a"]}), "a").tolist()
    [0, 2]
    """
    places: Mapping[Any, Ints] = once_for(frame, "places", _places)
    return places.get(query_id, _NOWHERE)


def rows_of(frame: pd.DataFrame, query_id: str) -> pd.DataFrame:
    """Return the rows of a question in a table with a column ``query_id``, in order; see `places_of`."""
    places = places_of(frame, query_id)
    if places.size and places[-1] - places[0] == places.size - 1:
        # As most tables have them: a slice copies nothing, picked rows first join all texts of a column.
        return frame.iloc[places[0] : places[-1] + 1]
    return frame.iloc[places]


def is_among(texts: pd.Series, others: pd.Series | Sequence[str]) -> Bools:
    """Return which texts are among others; a missing one is not.

    What `pandas.Series.isin` returns, without a Python object for each text.
    """
    values = pa.array(others, pa.large_string())
    return np.asarray(pc.is_in(pa.array(texts, pa.large_string()), values, skip_nulls=True), dtype=bool)


def dicts_of(frame: pd.DataFrame) -> Callable[[str], tuple[Mapping[str, Any], ...]]:
    """Return a function that looks up the rows of a question as dicts, in order; missing values are None."""
    if frame.empty:  # as most tables of a run are
        return lambda _: ()
    values = frame.astype("object")
    columns = {name: values[name].where(values[name].notna(), None).to_list() for name in frame.columns}
    places = _places(frame.reset_index(drop=True))
    return lambda query_id: tuple(
        {name: column[row] for name, column in columns.items()} for row in places.get(query_id, ())
    )


def _places(frame: pd.DataFrame) -> Mapping[Any, Ints]:
    found: Mapping[Any, Ints] = frame.groupby("query_id", sort=False).indices
    return found
