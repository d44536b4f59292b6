"""A decision made again: its arm from the logged probabilities, and its probabilities from the snapshot."""

from typing import Any

import msgspec
from sqlalchemy import Connection, select

from polyarm.bandit import lottery
from polyarm.errors import UnknownName
from polyarm.service.messages import ExperimentSettings
from polyarm.service.model import Model
from polyarm.service.schema import arms, decisions, experiment_versions, outcomes, reward_events
from polyarm.service.snapshots import get_snapshot


class Explanation(msgspec.Struct):
    """What was decided, what comes out when it is made again, and what became of it."""

    decision: dict[str, Any]
    arm_again: str
    arm_agrees: bool
    probabilities_again: dict[str, float] | None
    probabilities_agree: bool | None
    rewards: list[dict[str, Any]]
    outcome: dict[str, Any] | None


def explain(connection: Connection, decision: str) -> Explanation:
    """Make a decision again and say whether it agrees with the log."""
    row = connection.execute(select(decisions).where(decisions.c.id == decision)).mappings().one_or_none()
    if row is None:
        raise UnknownName(f"decision must be one of the log, got {decision!r}")
    settings = msgspec.convert(
        connection.execute(
            select(experiment_versions.c.settings).where(
                experiment_versions.c.experiment == row["experiment"], experiment_versions.c.version == row["version"]
            )
        ).scalar_one(),
        ExperimentSettings,
        strict=False,
    )
    logged = msgspec.json.decode(row["probabilities"], type=dict[str, float])
    names = _in_order(connection, row["experiment"], logged)
    place = lottery.ticket(settings.seed, decision)
    again = names[lottery.arm_at(place, [logged[name] for name in names])]
    agrees = row["stream"] == "shadow" or again == row["arm"]
    snapshot = get_snapshot(connection, row["experiment"], row["snapshot"])
    probabilities = None
    if snapshot is not None:
        model = Model.from_bytes(snapshot.content)
        eligible = msgspec.json.decode(row["eligible"], type=list[str])
        probabilities = model.draw(decision, msgspec.json.decode(row["context"]), eligible, settings).probabilities
    events = connection.execute(
        select(reward_events).where(reward_events.c.decision == decision).order_by(reward_events.c.id)
    ).mappings()
    outcome = connection.execute(select(outcomes).where(outcomes.c.decision == decision)).mappings().one_or_none()
    return Explanation(
        dict(row),
        again,
        agrees,
        probabilities,
        None if probabilities is None else probabilities == logged,
        [dict(event) for event in events],
        dict(outcome) if outcome else None,
    )


def _in_order(connection: Connection, experiment: str, logged: dict[str, float]) -> list[str]:
    query = select(arms.c.arm).where(arms.c.experiment == experiment).order_by(arms.c.position)
    return [arm for arm in connection.execute(query).scalars() if arm in logged]
