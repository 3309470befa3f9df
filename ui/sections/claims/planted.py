"""What the verifier found of the errors planted in a composed run."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.charts.theme import where_door
from core.claims.planted import CLEAN, ERRORS, planted_errors, wrong_verdict
from core.conditions import where
from core.text.display import number
from ui import cached, doors, show
from ui.state import session


def draw() -> None:
    """Draw how many planted errors were found, by kind; nothing for a run without any."""
    found = cached.once("planted errors", lambda d: planted_errors(d["claims"]))
    if found is None:
        return
    st.subheader("Planted errors found", anchor=False)
    errors, clean = found.row(ERRORS), found.row(CLEAN)
    chance, alarms = (number(row["chance"], "{:.0f}") for row in (errors, clean))
    show.sentence(
        f"**{errors['n_found']:,} of {errors['n']:,} planted errors are flagged as unsupported** "
        f"(95 % interval {number(errors['low'])} to {number(errors['high'])}); as many flags at random would "
        f"hit {chance}. **{clean['n_found']:,} of {clean['n']:,} claims without an error are flagged, too**; "
        f"at random {alarms}."
    )
    columns = {
        "title": show.wide("Planted", "medium"),
        "n_found": show.numeric("Found", "%d", "Of claims without an error: false alarms"),
        "n": show.numeric("n", "%d", "Claims with a verdict"),
        "share": show.numeric("Share"),
        "low": show.numeric("95 % from"),
        "high": show.numeric("to"),
        "n_questions": show.numeric(
            "Questions", "%d", "With a claim of this kind that has the wrong verdict"
        ),
        "chance": show.numeric("By chance", "%.1f", "As many flags on claims at random"),
        "meaning": show.wide("Meaning"),
    }
    alt = "Planted errors found, by kind; choosing a row lists the questions with a wrong verdict"
    leads_to = [_door(row) for row in found.table.itertuples()]
    doors.table(found.table, alt, columns, "planted_table", leads_to, height="content")
    st.caption(
        "Verify again with another verifier, above, to compare: the composed claims stay the same. Claims "
        "that two passages support together are found when they are called supported."
    )
    show.csv(
        "Download planted errors (CSV)", found.to_frame(), "planted-errors", "planted_csv", session().run
    )


def _door(row: Any) -> str:
    """Return the door to the questions where the verifier is wrong about a kind of error."""
    kind = {"planted_error": True} if row.planted == ERRORS else {"planted": row.planted}
    condition = where("claims", "claims", **kind, verdict=wrong_verdict(row.planted))
    return where_door(condition) if row.n_questions else ""
