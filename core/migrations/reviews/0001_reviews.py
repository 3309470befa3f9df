"""What people noted: one row for each person and decision, never changed."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0001", None


def upgrade() -> None:
    """Make the table; the newest row of a person on a question is the one with the largest id."""
    op.create_table(
        "reviews",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("run_id", "query_id", "person", "status", "note")
        ),
        sa.Column("correct", sa.Integer),
        sa.Column("grounded", sa.Integer),
        sa.Column("created", sa.Text, nullable=False),
    )
    op.create_index("reviews_newest", "reviews", ["run_id", "query_id", "person", "id"])
