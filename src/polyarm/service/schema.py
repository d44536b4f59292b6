"""The tables, once for SQLite and PostgreSQL.

The log (decisions, reward events, outcomes, changes) is the truth; snapshots and rollups can be made again from it.
Times are microseconds since 1970 by the server's clock.

apply_seq   the order in which the learner took outcomes and changes in: 1, 2, ... without a gap, per experiment
"""

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    text,
)

metadata = MetaData()
Identity = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows by itself only in INTEGER columns


def _experiment(**options: Any) -> Column[Any]:
    return Column("experiment", String(64), ForeignKey("experiments.name"), nullable=False, **options)


experiments = Table(
    "experiments",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("created_at", BigInteger, nullable=False),
    Column("status", String(8), nullable=False),  # active | paused
    Column("version", Integer, nullable=False),
)

experiment_versions = Table(
    "experiment_versions",
    metadata,
    _experiment(primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("created_at", BigInteger, nullable=False),
    Column("settings", JSON, nullable=False),
)

arms = Table(
    "arms",
    metadata,
    _experiment(primary_key=True),
    Column("arm", String(128), primary_key=True),
    Column("position", Integer, nullable=False),
    Column("status", String(8), nullable=False),  # active | paused | retired
    UniqueConstraint("experiment", "position"),
)

decisions = Table(
    "decisions",
    metadata,
    Column("id", String(36), primary_key=True),
    _experiment(),
    Column("version", Integer, nullable=False),
    Column("snapshot", Integer, nullable=False),
    Column("time", BigInteger, nullable=False),
    Column("client_time", String(64)),
    Column("unit", String(128)),
    Column("idempotency_key", String(140)),  # a batch numbers its decisions behind its key
    Column("request", String(64)),  # hash of what was asked under the key
    Column("context", String, nullable=False),  # JSON text: written and read as it is
    Column("eligible", String, nullable=False),  # JSON list of the arms that could be played
    Column("probabilities", String, nullable=False),  # JSON object arm -> probability
    Column("arm", String(128), nullable=False),
    Column("propensity", Float, nullable=False),
    Column("stream", String(8), nullable=False),  # bandit | holdout | shadow
    Column("closes_at", BigInteger, nullable=False),  # from then on a reward is late
    Column("closes_on_reward", Boolean, nullable=False),
    Column("closed", Boolean, nullable=False, server_default=text("false")),
    UniqueConstraint("experiment", "idempotency_key"),
    Index("decisions_time", "experiment", "time"),
    Index(
        "decisions_open",
        "experiment",
        "closes_at",
        "id",
        sqlite_where=text("closed = 0"),
        postgresql_where=text("NOT closed"),
    ),
)

reward_events = Table(
    "reward_events",
    metadata,
    Column("id", Identity, primary_key=True, autoincrement=True),
    Column("decision", String(36), nullable=False),
    Column("key", String(128), nullable=False),
    Column("value", Float, nullable=False),
    Column("time", BigInteger, nullable=False),
    Column("client_time", String(64)),
    Column("verdict", String(10), nullable=False),  # accepted | duplicate | conflict | late | unknown | parked
    Index(
        "reward_events_once",
        "decision",
        "key",
        unique=True,
        sqlite_where=text("verdict = 'accepted'"),
        postgresql_where=text("verdict = 'accepted'"),
    ),
    Index(
        "reward_events_parked",
        "time",
        sqlite_where=text("verdict = 'parked'"),
        postgresql_where=text("verdict = 'parked'"),
    ),
)

outcomes = Table(
    "outcomes",
    metadata,
    Column("decision", String(36), ForeignKey("decisions.id"), primary_key=True),
    _experiment(),
    Column("apply_seq", BigInteger, nullable=False),
    Column("value", Float),  # null: no reward came and there is no default
    Column("source", String(8), nullable=False),  # reported | default | none
    Column("time", BigInteger, nullable=False),
    UniqueConstraint("experiment", "apply_seq"),
)

changes = Table(
    "changes",
    metadata,
    Column("id", Identity, primary_key=True, autoincrement=True),
    _experiment(),
    Column("apply_seq", BigInteger),  # null until the learner has taken it in
    Column("kind", String(8), nullable=False),  # add-arm | rollback
    Column("subject", String(128), nullable=False),  # the arm, or the snapshot's version
    Column("time", BigInteger, nullable=False),
    UniqueConstraint("experiment", "apply_seq"),
)

snapshots = Table(
    "snapshots",
    metadata,
    _experiment(primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("apply_seq", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("time", BigInteger, nullable=False),
    Column("library", String(32), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("content", LargeBinary),  # null once it is old: `polyarm rebuild` makes it again
)

leases = Table(
    "leases",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("holder", String(64), nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)


def _sums() -> list[Column[Any]]:
    """Columns of what is summed over decisions.

    With w = 1 / propensity of each rewarded play, w to wwrr are the sums of w, w r, w^2, w^2 r and w^2 r^2.
    """
    counts = [Column(name, BigInteger, nullable=False) for name in ("plays", "rewards")]
    names = ("expected_plays", "play_variance", "total", "squares", "w", "wr", "ww", "wwr", "wwrr")
    sums = [Column(name, Float, nullable=False) for name in names]
    return [counts[0], *sums[:2], counts[1], *sums[2:]]


rollups = Table(
    "rollups",
    metadata,
    _experiment(primary_key=True),
    Column("minute", BigInteger, primary_key=True),
    Column("arm", String(128), primary_key=True),
    Column("stream", String(8), primary_key=True),
    *_sums(),
)

long_rollups = Table(  # the same over longer stretches, so that years are read as quickly as hours
    "long_rollups",
    metadata,
    _experiment(primary_key=True),
    Column("span", BigInteger, primary_key=True),  # minutes: an hour, or 0 for all time
    Column("minute", BigInteger, primary_key=True),  # the first of the stretch
    Column("arm", String(128), primary_key=True),
    Column("stream", String(8), primary_key=True),
    *_sums(),
)

reward_counts = Table(
    "reward_counts",
    metadata,
    Column("hour", BigInteger, primary_key=True),
    Column("verdict", String(10), primary_key=True),
    Column("events", BigInteger, nullable=False),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("name", String(64), nullable=False, unique=True),
    Column("scopes", String(64), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
)

audit_log = Table(
    "audit_log",
    metadata,
    Column("number", Identity, primary_key=True, autoincrement=False),
    Column("time", BigInteger, nullable=False),
    Column("actor", String(64), nullable=False),
    Column("action", String(64), nullable=False),
    Column("subject", String(200), nullable=False),
    Column("detail", String, nullable=False),
    Column("previous", String(64), nullable=False),
    Column("sha256", String(64), nullable=False),
)
