"""How a weighted confidence comes about: at most one row; some stores of earlier versions have the table."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0002", "0001"


def upgrade() -> None:
    """Make the table where there is none."""
    op.create_table("calibration_method", sa.Column("content", sa.Text, nullable=False), if_not_exists=True)
