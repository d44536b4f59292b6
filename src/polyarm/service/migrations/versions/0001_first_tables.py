"""The tables of the first version."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "api_keys",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("scopes", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("sha256"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "audit_log",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(length=64), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("detail", sa.String(), nullable=False),
        sa.Column("previous", sa.String(length=64), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_table(
        "experiments",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(length=8), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("holder", sa.String(length=64), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "reward_events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("decision", sa.String(length=36), nullable=False),
        sa.Column("key", sa.String(length=128), nullable=False),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("client_time", sa.String(length=64), nullable=True),
        sa.Column("verdict", sa.String(length=10), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("reward_events", schema=None) as batch_op:
        batch_op.create_index(
            "reward_events_once",
            ["decision", "key"],
            unique=True,
            sqlite_where=sa.text("verdict = 'accepted'"),
            postgresql_where=sa.text("verdict = 'accepted'"),
        )
        batch_op.create_index(
            "reward_events_parked",
            ["time"],
            unique=False,
            sqlite_where=sa.text("verdict = 'parked'"),
            postgresql_where=sa.text("verdict = 'parked'"),
        )

    op.create_table(
        "arms",
        sa.Column("experiment", sa.String(length=64), nullable=False),
        sa.Column("arm", sa.String(length=128), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=8), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.name"],
        ),
        sa.PrimaryKeyConstraint("experiment", "arm"),
        sa.UniqueConstraint("experiment", "position"),
    )
    op.create_table(
        "changes",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("experiment", sa.String(length=64), nullable=False),
        sa.Column("apply_seq", sa.BigInteger(), nullable=True),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("subject", sa.String(length=128), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.name"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("experiment", "apply_seq"),
    )
    op.create_table(
        "decisions",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("experiment", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("snapshot", sa.Integer(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("client_time", sa.String(length=64), nullable=True),
        sa.Column("unit", sa.String(length=128), nullable=True),
        sa.Column("idempotency_key", sa.String(length=140), nullable=True),
        sa.Column("request", sa.String(length=64), nullable=True),
        sa.Column("context", sa.String(), nullable=False),
        sa.Column("eligible", sa.String(), nullable=False),
        sa.Column("probabilities", sa.String(), nullable=False),
        sa.Column("arm", sa.String(length=128), nullable=False),
        sa.Column("propensity", sa.Float(), nullable=False),
        sa.Column("stream", sa.String(length=8), nullable=False),
        sa.Column("closes_at", sa.BigInteger(), nullable=False),
        sa.Column("closes_on_reward", sa.Boolean(), nullable=False),
        sa.Column("closed", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.name"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("experiment", "idempotency_key"),
    )
    with op.batch_alter_table("decisions", schema=None) as batch_op:
        batch_op.create_index(
            "decisions_open",
            ["experiment", "closes_at", "id"],
            unique=False,
            sqlite_where=sa.text("closed = 0"),
            postgresql_where=sa.text("NOT closed"),
        )
        batch_op.create_index("decisions_time", ["experiment", "time"], unique=False)

    op.create_table(
        "experiment_versions",
        sa.Column("experiment", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.name"],
        ),
        sa.PrimaryKeyConstraint("experiment", "version"),
    )
    op.create_table(
        "rollups",
        sa.Column("experiment", sa.String(length=64), nullable=False),
        sa.Column("minute", sa.BigInteger(), nullable=False),
        sa.Column("arm", sa.String(length=128), nullable=False),
        sa.Column("stream", sa.String(length=8), nullable=False),
        sa.Column("plays", sa.BigInteger(), nullable=False),
        sa.Column("expected_plays", sa.Float(), nullable=False),
        sa.Column("play_variance", sa.Float(), nullable=False),
        sa.Column("rewards", sa.BigInteger(), nullable=False),
        sa.Column("total", sa.Float(), nullable=False),
        sa.Column("squares", sa.Float(), nullable=False),
        sa.Column("w", sa.Float(), nullable=False),
        sa.Column("wr", sa.Float(), nullable=False),
        sa.Column("ww", sa.Float(), nullable=False),
        sa.Column("wwr", sa.Float(), nullable=False),
        sa.Column("wwrr", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.name"],
        ),
        sa.PrimaryKeyConstraint("experiment", "minute", "arm", "stream"),
    )
    op.create_table(
        "snapshots",
        sa.Column("experiment", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("apply_seq", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("library", sa.String(length=32), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.name"],
        ),
        sa.PrimaryKeyConstraint("experiment", "version"),
    )
    op.create_table(
        "outcomes",
        sa.Column("decision", sa.String(length=36), nullable=False),
        sa.Column("experiment", sa.String(length=64), nullable=False),
        sa.Column("apply_seq", sa.BigInteger(), nullable=False),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("source", sa.String(length=8), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["decision"],
            ["decisions.id"],
        ),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.name"],
        ),
        sa.PrimaryKeyConstraint("decision"),
        sa.UniqueConstraint("experiment", "apply_seq"),
    )


def downgrade() -> None:
    """Take back."""
    op.drop_table("outcomes")
    op.drop_table("snapshots")
    op.drop_table("rollups")
    op.drop_table("experiment_versions")
    with op.batch_alter_table("decisions", schema=None) as batch_op:
        batch_op.drop_index("decisions_time")
        batch_op.drop_index(
            "decisions_open", sqlite_where=sa.text("closed = 0"), postgresql_where=sa.text("NOT closed")
        )

    op.drop_table("decisions")
    op.drop_table("changes")
    op.drop_table("arms")
    with op.batch_alter_table("reward_events", schema=None) as batch_op:
        batch_op.drop_index(
            "reward_events_parked",
            sqlite_where=sa.text("verdict = 'parked'"),
            postgresql_where=sa.text("verdict = 'parked'"),
        )
        batch_op.drop_index(
            "reward_events_once",
            sqlite_where=sa.text("verdict = 'accepted'"),
            postgresql_where=sa.text("verdict = 'accepted'"),
        )

    op.drop_table("reward_events")
    op.drop_table("leases")
    op.drop_table("experiments")
    op.drop_table("audit_log")
    op.drop_table("api_keys")
