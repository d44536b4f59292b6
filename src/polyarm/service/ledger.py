"""The log: decisions, reward events and their rollups, each written in one transaction with what depends on it."""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

import msgspec
from sqlalchemy import Connection, Table, bindparam, select, update
from sqlalchemy.dialects import postgresql, sqlite

from polyarm.errors import PolyarmError
from polyarm.service.clock import SECOND, Micros, now
from polyarm.service.schema import decisions, long_rollups, reward_counts, reward_events, rollups

Row: TypeAlias = dict[str, Any]
MINUTE = 60 * SECOND
PARKED_FOR = 60 * SECOND  # a reward may overtake its decision by so much
PLAYS = ("plays", "expected_plays", "play_variance")
REWARDS = ("rewards", "total", "squares", "w", "wr", "ww", "wwr", "wwrr")
SUMS = (*PLAYS, *REWARDS)
Sums: TypeAlias = dict[tuple[Any, ...], list[float]]  # (experiment, minute, arm, stream) -> one number for each of SUMS
AT_ONCE = 256  # rows in a statement: 17 columns of so many stay within SQLite's 32 766 places
HOUR = 60  # minutes


def _adding(table: Table, sums: Sequence[str]) -> str:
    """What to do with a row that is there: add to it."""
    key = ", ".join(column.name for column in table.primary_key)
    return f"ON CONFLICT ({key}) DO UPDATE SET {', '.join(f'{n} = {table.name}.{n} + excluded.{n}' for n in sums)}"


_ROLLUPS, _LONG, _COUNTS = (
    _adding(rollups, SUMS),
    _adding(long_rollups, SUMS),
    _adding(reward_counts, ("events",)),
)


class KeyConflict(PolyarmError, ValueError):
    """An idempotency key was used before, for another request."""


class RewardEvent(NamedTuple):
    """A reward as it arrived."""

    decision: str
    key: str
    value: float
    client_time: str | None = None


def insert(connection: Connection, table: Table) -> Any:
    """An INSERT of the connection's dialect, which knows ON CONFLICT."""
    return (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(table)


def write_many(connection: Connection, table: Table, rows: Sequence[Row], on_conflict: str = "") -> int:
    """Insert many rows through the driver itself, 1, 2, 4, ... in a statement; returns how many it inserted.

    The driver lets other threads run at each statement and then waits for its turn, so few statements are quick ones;
    and with few sizes, statements are prepared once.
    """
    columns = tuple(rows[0]) if rows else ()
    values = [tuple(row[column] for column in columns) for row in rows]
    start = inserted = 0
    while start < len(values):
        n = min(AT_ONCE, 1 << ((len(values) - start).bit_length() - 1))
        text = _insertion(connection.dialect.name, table.name, columns, n, on_conflict)
        parameters = tuple(itertools.chain.from_iterable(values[start : start + n]))
        inserted += connection.exec_driver_sql(text, parameters).rowcount
        start += n
    return inserted


@lru_cache
def _insertion(dialect: str, table: str, columns: tuple[str, ...], n: int, on_conflict: str) -> str:
    place = "?" if dialect == "sqlite" else "%s"
    one = f"({', '.join([place] * len(columns))})"
    names = ", ".join(f'"{column}"' for column in columns)
    return f"INSERT INTO {table} ({names}) VALUES {', '.join([one] * n)} {on_conflict}"


def add_decisions(connection: Connection, rows: Sequence[Row]) -> list[Row | KeyConflict]:
    """Write decisions; a key that was used before gives the decision that was made then."""
    n = write_many(connection, decisions, rows, "ON CONFLICT (experiment, idempotency_key) DO NOTHING")
    stored = _by_key(connection, [row for row in rows if row["idempotency_key"] is not None]) if n < len(rows) else {}
    results: list[Row | KeyConflict] = []
    fresh: list[Row] = []
    for row in rows:
        first = stored.get((row["experiment"], row["idempotency_key"]), row)
        if first["id"] == row["id"]:
            fresh.append(row)
        elif first["request"] != row["request"]:
            key = row["idempotency_key"]
            results.append(KeyConflict(f"Idempotency-Key must be used for one request only, got {key!r} for another"))
            continue
        results.append(first)
    add_to_rollups(connection, _plays(fresh))
    return results


def _by_key(connection: Connection, rows: Sequence[Row]) -> dict[tuple[str, str], Row]:
    found: dict[tuple[str, str], Row] = {}
    keys: dict[str, list[str]] = {}
    for row in rows:
        keys.setdefault(row["experiment"], []).append(row["idempotency_key"])
    for experiment, used in keys.items():
        query = select(decisions).where(
            decisions.c.experiment == experiment, decisions.c.idempotency_key.in_(bindparam("used", expanding=True))
        )
        for stored in connection.execute(query, {"used": used}).mappings():
            found[experiment, stored["idempotency_key"]] = dict(stored)
    return found


def _plays(rows: Iterable[Row]) -> Sums:
    sums: Sums = {}
    for row in rows:
        shares = msgspec.json.decode(row["probabilities"], type=dict[str, float])
        shares.setdefault(row["arm"], 0.0)  # another system may have played an arm that the model does not know yet
        for arm, share in shares.items():
            cell = (row["experiment"], row["time"] // MINUTE, arm, row["stream"])
            entry = sums.setdefault(cell, [0] * len(SUMS))
            entry[0] += arm == row["arm"]
            entry[1] += share
            entry[2] += share * (1.0 - share)
    return sums


def add_to_rollups(connection: Connection, sums: Sums) -> None:
    """Add to the sums by time and arm; in one order everywhere, so that two writers cannot wait for each other."""
    longer: Sums = {}
    for (experiment, minute, arm, stream), entry in sums.items():
        for span, first in ((0, 0), (HOUR, minute - minute % HOUR)):
            whole = longer.setdefault((experiment, span, first, arm, stream), [0] * len(SUMS))
            for place, term in enumerate(entry):
                whole[place] += term
    for table, cells, adding in ((rollups, sums, _ROLLUPS), (long_rollups, longer, _LONG)):
        keys = [column.name for column in table.primary_key]
        rows = [dict(zip((*keys, *SUMS), (*cell, *cells[cell]), strict=True)) for cell in sorted(cells)]
        write_many(connection, table, rows, adding)


def _count_verdicts(connection: Connection, counts: Counter[tuple[int, str]]) -> None:
    """Add to the number of events by hour and verdict."""
    rows = [{"hour": hour, "verdict": verdict, "events": n} for (hour, verdict), n in sorted(counts.items())]
    write_many(connection, reward_counts, rows, _COUNTS)


def add_rewards(connection: Connection, batches: Sequence[Sequence[RewardEvent]]) -> list[list[str]]:
    """Write reward events and say what became of each: accepted, duplicate, conflict, late, unknown or parked."""
    time = now()
    ids = sorted({event.decision for batch in batches for event in batch})
    closes, at_once = _open_until(connection, ids)
    accepted = _accepted(connection, ids)
    rows: list[Row] = []
    verdicts: list[list[str]] = []
    for batch in batches:
        verdicts.append([])
        for event in batch:
            verdict = judge(event, closes, accepted, time)
            if verdict == "accepted":
                accepted[event.decision, event.key] = event.value
                if event.decision in at_once:
                    closes[event.decision] = time
            rows.append(event._asdict() | {"time": time, "verdict": verdict})
            verdicts[-1].append(verdict)
    write_many(connection, reward_events, rows)
    _count_verdicts(connection, Counter((time // MINUTE // HOUR, row["verdict"]) for row in rows))
    _close_now(connection, [decision for decision in at_once if closes[decision] == time], time)
    return verdicts


def judge(event: RewardEvent, closes: dict[str, Micros], accepted: dict[tuple[str, str], float], time: Micros) -> str:
    """Verdict on one reward; `closes` has the time until which each known decision takes rewards."""
    known = accepted.get((event.decision, event.key))
    if known is not None:
        return "duplicate" if known == event.value else "conflict"
    if event.decision not in closes:
        made = made_at(event.decision)
        return "parked" if made is not None and abs(time - made) <= PARKED_FOR else "unknown"
    return "accepted" if time < closes[event.decision] else "late"


def made_at(decision: str) -> Micros | None:
    """Time in a decision's id, if it is one of ours."""
    try:
        value = UUID(decision)
    except ValueError:
        return None
    return (value.int >> 80) * 1000 if value.version == 7 else None


def _open_until(connection: Connection, ids: Sequence[str]) -> tuple[dict[str, Micros], set[str]]:
    """When each decision closes, 0 if it has, and which close with their first reward.

    The rows are locked, so that none closes before this transaction ends.
    """
    query = (
        select(decisions.c.id, decisions.c.closes_at, decisions.c.closed, decisions.c.closes_on_reward)
        .where(decisions.c.id.in_(bindparam("ids", expanding=True)))
        .order_by(decisions.c.id)
        .with_for_update()
    )
    rows = connection.execute(query, {"ids": ids}).all()
    closes = {row.id: 0 if row.closed else row.closes_at for row in rows}
    return closes, {row.id for row in rows if row.closes_on_reward}


def _close_now(connection: Connection, ids: Sequence[str], time: Micros) -> None:
    if ids:
        statement = update(decisions).where(decisions.c.id.in_(bindparam("ids", expanding=True)))
        connection.execute(statement.values(closes_at=time), {"ids": ids})


def _accepted(connection: Connection, ids: Sequence[str]) -> dict[tuple[str, str], float]:
    query = select(reward_events.c.decision, reward_events.c.key, reward_events.c.value).where(
        reward_events.c.verdict == "accepted", reward_events.c.decision.in_(bindparam("ids", expanding=True))
    )
    return {(row.decision, row.key): row.value for row in connection.execute(query, {"ids": ids})}


def settle_parked(connection: Connection) -> int:
    """Judge parked rewards again: their decision has come, or will not; returns how many were accepted."""
    time = now()
    query = select(reward_events).where(reward_events.c.verdict == "parked").order_by(reward_events.c.id).limit(1000)
    parked = connection.execute(query).mappings().all()
    if not parked:
        return 0
    ids = sorted({row["decision"] for row in parked})
    closes, at_once = _open_until(connection, ids)
    accepted = _accepted(connection, ids)
    count = 0
    moved: Counter[tuple[int, str]] = Counter()
    for row in parked:
        event = RewardEvent(row["decision"], row["key"], row["value"])
        verdict = judge(event, closes, accepted, row["time"])
        if verdict == "parked" and time - row["time"] > PARKED_FOR:
            verdict = "unknown"
        if verdict == "accepted":
            accepted[event.decision, event.key] = event.value
            count += 1
            if event.decision in at_once:
                closes[event.decision] = 0
                _close_now(connection, [event.decision], time)
        if verdict != "parked":
            connection.execute(update(reward_events).where(reward_events.c.id == row["id"]).values(verdict=verdict))
            hour = row["time"] // MINUTE // HOUR
            moved[hour, "parked"] -= 1
            moved[hour, verdict] += 1
    _count_verdicts(connection, moved)
    return count
