"""What is known of a question, and ways to open it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from core.rows import rows_of
from ui import cached, doors, router, show, sources
from ui.plain import plain, shortened
from ui.state import session


def row(query_id: str, diagnostic: str | None = None) -> Any:
    """Return what a diagnostic says of a question, by default the question's row in the run."""
    frame = session().the_run.queries if diagnostic is None else cached.diagnosis()[diagnostic].queries
    return rows_of(frame, query_id).iloc[0]


def title(query_id: str, length: int = 90) -> str:
    """Return a question in one line for labels, safe to show; its id where it has no text."""
    found = rows_of(session().the_run.queries, query_id)["question"]
    return plain((shortened(found.iloc[0], length) if len(found) else "") or query_id, one_line=True)


def open_link(query_id: str, label: str = "Open in the workbench") -> None:
    """Draw a link to a question in the workbench."""
    sources.link(router.WORKBENCH, label, question=query_id)


def table(frame: pd.DataFrame, alt: str, columns: Mapping[str, Any], key: str) -> None:
    """Draw a table with a column ``query_id``; choosing a row opens its question in the workbench."""
    chosen = show.table(frame, alt, columns, key=key, on_select="rerun", selection_mode="single-row")
    query_id = next((frame["query_id"].iloc[row] for row in chosen["selection"]["rows"]), None)
    if doors.newly(key, query_id) and query_id is not None:
        doors.open_question(query_id)
