"""The completions, by the digest of their request; caches of earlier versions have this table already."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0001", None


def upgrade() -> None:
    """Make the table where there is none."""
    op.create_table(
        "completions",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("finish_reason", sa.Text, nullable=False),
        sa.Column("prompt_tokens", sa.Integer, nullable=False),
        sa.Column("completion_tokens", sa.Integer, nullable=False),
        sa.Column("latency", sa.Double, nullable=False),
        sa.Column("logprobs", sa.Text),
        sa.Column("created", sa.Double, nullable=False),
        sqlite_with_rowid=False,
        if_not_exists=True,
    )
