"""What an experiment has done so far, read from the rollups: its cost does not grow with the number of decisions."""

import math
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import BigInteger, Connection, Table, cast, func, select

from polyarm import special
from polyarm.service.clock import SECOND, now
from polyarm.service.ledger import HOUR, MINUTE
from polyarm.service.schema import (
    audit_log,
    changes,
    decisions,
    long_rollups,
    outcomes,
    reward_counts,
    rollups,
    snapshots,
)
from polyarm.service.sequence import last_number

SMALL = 5.0  # expected plays under which a chi-square test says nothing


class ArmReport(msgspec.Struct):
    """Plays and rewards of one arm; the interval is that of the mean, 95 %."""

    arm: str
    status: str
    plays: int
    rewards: int
    mean: float | None
    interval: tuple[float, float] | None
    lift: float | None


class Report(msgspec.Struct):
    """An experiment in numbers."""

    experiment: str
    status: str
    version: int
    snapshot: int
    snapshot_age: float
    decisions: int
    open_decisions: int
    learnt: int
    holdout_mean: float | None
    arms: list[ArmReport]
    rewards: dict[str, int]
    propensity_test: float | None


class Minute(msgspec.Struct):
    """One stretch of time in one arm."""

    time: int
    arm: str
    plays: int
    rewards: int
    total: float
    squares: float


def interval(n: int, total: float, squares: float) -> tuple[float | None, tuple[float, float] | None]:
    """Mean of n rewards from their sums, with its 95 % interval."""
    if n == 0:
        return None, None
    mean = total / n
    if n < 2:
        return mean, None
    spread = math.sqrt(max(squares - n * mean * mean, 0.0) / (n - 1) / n)
    half = float(special.stdtrit(n - 1, 0.975)) * spread
    return mean, (mean - half, mean + half)


class Sums(NamedTuple):
    """Sums over all time of one arm in one stream."""

    plays: int
    expected_plays: float
    play_variance: float
    rewards: int
    total: float
    squares: float


def whole(table: Table, name: str) -> Any:
    """Sum of a column of counts, as a whole number in every database."""
    return cast(func.sum(table.c[name]), BigInteger).label(name)


def arm_sums(connection: Connection, experiment: str) -> dict[tuple[str, str], Sums]:
    """Sums over all time by arm and stream."""
    table = long_rollups
    query = select(table.c.arm, table.c.stream, *(table.c[name] for name in Sums._fields)).where(
        table.c.experiment == experiment, table.c.span == 0
    )
    return {(row.arm, row.stream): Sums(*row[2:]) for row in connection.execute(query)}


def propensity_test(sums: dict[tuple[str, str], Sums]) -> float | None:
    """P-value of the played frequencies against the logged probabilities: the bandit's own draws only.

    Each arm's plays minus the sum of its probabilities has variance sum p (1 - p); the largest of the standardised
    differences is judged with Bonferroni's correction.
    """
    scores = [
        (row.plays - row.expected_plays) / math.sqrt(row.play_variance)
        for (_, stream), row in sums.items()
        if stream == "bandit" and row.play_variance > SMALL
    ]
    if not scores:
        return None
    worst = max(abs(score) for score in scores)
    return float(min(1.0, 2.0 * special.ndtr(-worst) * len(scores)))


def count_closed(connection: Connection, experiment: str) -> int:
    """Decisions whose window has closed: all numbers given, but for those of changes."""
    changed = (changes.c.experiment == experiment) & changes.c.apply_seq.is_not(None)
    n = connection.execute(select(func.count()).select_from(changes).where(changed)).scalar_one()
    return last_number(connection, experiment) - n


def verdict_counts(connection: Connection, since: int) -> dict[str, int]:
    """Reward events by verdict since the hour of a time."""
    total = cast(func.sum(reward_counts.c.events), BigInteger)
    query = select(reward_counts.c.verdict, total).where(reward_counts.c.hour >= since // MINUTE // HOUR)
    return {row[0]: row[1] for row in connection.execute(query.group_by(reward_counts.c.verdict)) if row[1]}


def make_report(connection: Connection, experiment: Any) -> Report:
    """The report of an experiment."""
    name = experiment.name
    sums = arm_sums(connection, name)
    held = [row for (_, stream), row in sums.items() if stream == "holdout"]
    held_mean, _ = interval(
        sum(row.rewards for row in held), sum(row.total for row in held), sum(row.squares for row in held)
    )
    arms = []
    for arm, status in experiment.arms.items():
        rows = [row for (other, _), row in sums.items() if other == arm]
        n = sum(row.rewards for row in rows)
        mean, bounds = interval(n, sum(row.total for row in rows), sum(row.squares for row in rows))
        lift = mean / held_mean - 1.0 if mean is not None and held_mean else None
        arms.append(ArmReport(arm, status, sum(row.plays for row in rows), n, mean, bounds, lift))
    newest = connection.execute(
        select(snapshots.c.version, snapshots.c.time)
        .where(snapshots.c.experiment == name)
        .order_by(snapshots.c.version.desc())
        .limit(1)
    ).one()
    learnt = connection.execute(select(func.max(outcomes.c.apply_seq)).where(outcomes.c.experiment == name)).scalar()
    plays = sum(row.plays for row in sums.values())
    return Report(
        experiment=name,
        status=experiment.status,
        version=experiment.version,
        snapshot=newest.version,
        snapshot_age=(now() - newest.time) / SECOND,
        decisions=plays,
        open_decisions=max(plays - count_closed(connection, name), 0),
        learnt=learnt or 0,
        holdout_mean=held_mean,
        arms=arms,
        rewards=verdict_counts(connection, now() - 86_400 * SECOND),
        propensity_test=propensity_test(sums),
    )


def history(connection: Connection, experiment: str, since: int = 0) -> list[Minute]:
    """Plays and rewards of every arm by minute, thinned to at most some hundred points a curve."""
    kept = (rollups.c.experiment == experiment) & (rollups.c.minute >= since // MINUTE)
    first, last = (  # each by itself is one look into the index
        connection.execute(select(end(rollups.c.minute)).where(kept)).scalar() for end in (func.min, func.max)
    )
    if first is None or last is None:
        return []
    width = max(1, -(-(last - first + 1) // 240))
    table = rollups if width < HOUR else long_rollups
    if table is long_rollups:
        width = -(-width // HOUR) * HOUR
    bucket = (table.c.minute - table.c.minute % width).label("bucket")
    counts = [whole(table, "plays"), whole(table, "rewards")]
    sums = [func.sum(table.c[name]).label(name) for name in ("total", "squares")]
    query = select(bucket, table.c.arm, *counts, *sums).where(
        table.c.experiment == experiment, table.c.minute >= since // MINUTE
    )
    if table is long_rollups:
        query = query.where(table.c.span == HOUR)
    query = query.group_by(bucket, table.c.arm).order_by(bucket)
    return [
        Minute(row.bucket * 60, row.arm, row.plays, row.rewards, row.total, row.squares)
        for row in connection.execute(query)
    ]


def recent_contexts(connection: Connection, experiment: str, n: int = 200) -> list[dict[str, Any]]:
    """Contexts of the newest decisions."""
    query = select(decisions.c.context).where(decisions.c.experiment == experiment)
    found = connection.execute(query.order_by(decisions.c.time.desc()).limit(n)).scalars()
    return [msgspec.json.decode(text) for text in found]


def audit_entries(connection: Connection, limit: int = 100) -> list[dict[str, Any]]:
    """The newest entries of the audit trail."""
    query = select(audit_log).order_by(audit_log.c.number.desc()).limit(limit)
    return [dict(row) for row in connection.execute(query).mappings()]


def snapshot_list(connection: Connection, experiment: str, limit: int = 50) -> list[dict[str, Any]]:
    """The newest snapshots, without their contents."""
    wanted = [snapshots.c[name] for name in ("version", "apply_seq", "epoch", "time", "library", "sha256")]
    kept = snapshots.c.content.is_not(None).label("kept")
    query = select(*wanted, kept).where(snapshots.c.experiment == experiment)
    return [dict(row) for row in connection.execute(query.order_by(snapshots.c.version.desc()).limit(limit)).mappings()]
