"""The calibration scores; stores of earlier versions have this table already, those of rag_uq an older one.

The first eight columns are those that rag_uq documents.
"""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0001", None
TABLE = "calibration_scores"
_FIRST = (
    "id", "query_hash", "question", "context", "prediction", "true_answer", "nonconformity_score", "timestamp"
)  # fmt: skip
# What fills them, from the table that rag_uq makes.
_MADE = {"context": "NULL", "prediction": "predicted_answer", "timestamp": "created_at"}
# Its scores need the true answer, so a new answer has none.
_PROVENANCE = ("1 − ROUGE-L to the true answer", "unknown", "unknown", "unknown")


def upgrade() -> None:
    """Make the table, with the rows of the one that is there."""
    db = op.get_bind()
    found = sa.inspect(db)
    columns = {one["name"] for one in found.get_columns(TABLE)} if found.has_table(TABLE) else set()
    if "score_name" in columns:
        return
    if columns:
        op.rename_table(TABLE, "old_scores")
    op.create_table(
        TABLE,
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("query_hash", sa.Text, unique=True),
        *(sa.Column(name, sa.Text) for name in _FIRST[2:6]),
        sa.Column("nonconformity_score", sa.Double),
        sa.Column("timestamp", sa.Text),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("score_name", "model", "prompt", "retriever")
        ),
        sa.Column("correct", sa.Integer),
        sa.Column("kind", sa.Text),
        sa.Column("excluded", sa.Text),
    )
    if columns:
        sources = [name if name in columns else _MADE[name] for name in _FIRST]
        db.exec_driver_sql(
            f"INSERT INTO {TABLE} ({', '.join(_FIRST)}, score_name, model, prompt, retriever) "
            f"SELECT {', '.join(sources)}, ?, ?, ?, ? FROM old_scores ORDER BY id",
            _PROVENANCE,
        )
        op.drop_table("old_scores")
