"""The order of learning: closed decisions become outcomes, and the learner numbers them and the changes 1, 2, ...

Only the holder of the lease numbers; a reader that goes by number therefore never misses a row that commits late.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, false, func, select, update

from polyarm.service.clock import Micros
from polyarm.service.ledger import MINUTE, PLAYS, SUMS, Row, Sums, add_to_rollups, write_many
from polyarm.service.messages import ExperimentSettings
from polyarm.service.schema import changes, decisions, outcomes, reward_events

CLOSED_AT_ONCE = 1000


class Step(NamedTuple):
    """One thing that the model takes in: an outcome, or a change of the experiment."""

    apply_seq: int
    kind: str  # outcome | add-arm | rollback
    subject: str  # id of the decision, arm, or snapshot
    context: str = "{}"
    arm: str = ""
    value: float | None = None


def last_number(connection: Connection, experiment: str) -> int:
    """The highest number given in an experiment, 0 if none."""
    highest = [
        connection.execute(select(func.max(table.c.apply_seq)).where(table.c.experiment == experiment)).scalar()
        for table in (outcomes, changes)
    ]
    return max(value or 0 for value in highest)


def number_changes(connection: Connection, experiment: str) -> int:
    """Number the changes that were asked for since; returns how many."""
    waiting = (
        connection.execute(
            select(changes.c.id)
            .where(changes.c.experiment == experiment, changes.c.apply_seq.is_(None))
            .order_by(changes.c.id)
        )
        .scalars()
        .all()
    )
    number = last_number(connection, experiment)
    for change in waiting:
        number += 1
        connection.execute(update(changes).where(changes.c.id == change).values(apply_seq=number))
    return len(waiting)


def close_due(connection: Connection, settings: ExperimentSettings, time: Micros) -> int:
    """Close decisions whose time is up, and number their outcomes in the order of closing."""
    query = (  # `closed = 0` is what the index of open decisions says; SQLite would not use it for `closed IS 0`
        select(decisions.c.id)
        .where(decisions.c.experiment == settings.name, decisions.c.closed == false(), decisions.c.closes_at <= time)
        .order_by(decisions.c.closes_at, decisions.c.id)
        .limit(CLOSED_AT_ONCE)
    )
    due = connection.execute(query).scalars().all()
    if not due:
        return 0
    closed = {  # closing locks the rows: rewards that are being written come before this, later ones are late
        row["id"]: row
        for row in connection.execute(
            update(decisions)
            .where(decisions.c.id.in_(bindparam("ids", expanding=True)), decisions.c.closed == false())
            .values(closed=True)
            .returning(*(decisions.c[name] for name in ("id", "arm", "time", "stream", "propensity"))),
            {"ids": due},
        ).mappings()
    }
    reported = _reported(connection, due)
    number = last_number(connection, settings.name)
    rows: list[Row] = []
    sums: Sums = {}
    for decision in due:
        if decision not in closed:
            continue
        number += 1
        value, source = reported.get(decision), "reported"
        if value is None:
            value, source = settings.default_reward, "none" if settings.default_reward is None else "default"
        row = {"decision": decision, "experiment": settings.name, "apply_seq": number, "value": value}
        rows.append(row | {"source": source, "time": time})
        if value is not None:
            made = closed[decision]
            cell = (settings.name, made["time"] // MINUTE, made["arm"], made["stream"])
            entry = sums.setdefault(cell, [0] * len(SUMS))
            w = 1.0 / made["propensity"] if made["propensity"] > 0.0 and made["stream"] != "shadow" else 0.0
            added = (1, value, value**2, w, w * value, w**2, w**2 * value, (w * value) ** 2)
            for place, term in enumerate(added, len(PLAYS)):
                entry[place] += term
    write_many(connection, outcomes, rows)
    add_to_rollups(connection, sums)
    return len(rows)


def _reported(connection: Connection, ids: Sequence[str]) -> dict[str, float]:
    """Sum of the accepted rewards of each decision that has some."""
    query = (
        select(reward_events.c.decision, reward_events.c.value)
        .where(reward_events.c.verdict == "accepted", reward_events.c.decision.in_(bindparam("ids", expanding=True)))
        .order_by(reward_events.c.id)
    )
    sums: dict[str, float] = {}
    for row in connection.execute(query, {"ids": ids}):
        sums[row.decision] = sums.get(row.decision, 0.0) + row.value
    return sums


def steps(connection: Connection, experiment: str, after: int, until: int | None = None) -> Iterator[Step]:
    """What the model takes in after a number, in order."""
    upper = last_number(connection, experiment) if until is None else until
    while after < upper:
        top = min(after + CLOSED_AT_ONCE, upper)
        query = (
            select(outcomes.c.apply_seq, outcomes.c.value, decisions.c.id, decisions.c.context, decisions.c.arm)
            .join(decisions, decisions.c.id == outcomes.c.decision)
            .where(outcomes.c.experiment == experiment, outcomes.c.apply_seq > after, outcomes.c.apply_seq <= top)
        )
        found = [Step(r.apply_seq, "outcome", r.id, r.context, r.arm, r.value) for r in connection.execute(query)]
        query = select(changes.c.apply_seq, changes.c.kind, changes.c.subject).where(
            changes.c.experiment == experiment, changes.c.apply_seq > after, changes.c.apply_seq <= top
        )
        found += [Step(row.apply_seq, row.kind, row.subject) for row in connection.execute(query)]
        yield from sorted(found)
        after = top
