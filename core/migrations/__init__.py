"""The tables of the stores, made and changed by Alembic: a folder of revisions for each store."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection

_HERE = Path(__file__).parent
_LOCK = threading.Lock()  # Alembic's operations are those of the process: two threads would mix theirs


def upgrade(connection: Connection, store: str) -> None:
    """Bring the tables of a store to their last revision, in the transaction that the connection is in."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_HERE).replace("%", "%%"))
    config.set_main_option("version_locations", str(_HERE / store).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    if not connection.in_transaction():
        connection.begin()  # else Alembic would commit the caller's transaction
    config.attributes |= {"connection": connection, "store": store}
    with _LOCK:
        command.upgrade(config, "head")
