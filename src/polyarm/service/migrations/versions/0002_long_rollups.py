"""Sums over hours and over all time, and counts of rewards by verdict, so that no page reads what grows."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

SUMS = (
    "plays",
    "expected_plays",
    "play_variance",
    "rewards",
    "total",
    "squares",
    "w",
    "wr",
    "ww",
    "wwr",
    "wwrr",
)
COUNTS = ("plays", "rewards")


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "long_rollups",
        sa.Column("experiment", sa.String(length=64), nullable=False),
        sa.Column("span", sa.BigInteger(), nullable=False),
        sa.Column("minute", sa.BigInteger(), nullable=False),
        sa.Column("arm", sa.String(length=128), nullable=False),
        sa.Column("stream", sa.String(length=8), nullable=False),
        *(sa.Column(name, sa.BigInteger() if name in COUNTS else sa.Float(), nullable=False) for name in SUMS),
        sa.ForeignKeyConstraint(["experiment"], ["experiments.name"]),
        sa.PrimaryKeyConstraint("experiment", "span", "minute", "arm", "stream"),
    )
    op.create_table(
        "reward_counts",
        sa.Column("hour", sa.BigInteger(), nullable=False),
        sa.Column("verdict", sa.String(length=10), nullable=False),
        sa.Column("events", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hour", "verdict"),
    )
    added = ", ".join(f"sum({name})" for name in SUMS)
    for span, minute in (("60", "minute - minute % 60"), ("0", "0 * minute")):
        op.execute(
            f"INSERT INTO long_rollups (experiment, span, minute, arm, stream, {', '.join(SUMS)}) "
            f"SELECT experiment, {span}, {minute} AS first, arm, stream, {added} "
            "FROM rollups GROUP BY experiment, first, arm, stream"
        )
    op.execute(
        "INSERT INTO reward_counts (hour, verdict, events) "
        "SELECT time / 3600000000 AS hour, verdict, count(*) FROM reward_events GROUP BY hour, verdict"
    )


def downgrade() -> None:
    """Take back."""
    op.drop_table("reward_counts")
    op.drop_table("long_rollups")
