"""Experiments: their settings, which never change under a version, and their arms."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, func, select, update

from polyarm.errors import InvalidArgument, PolyarmError, UnknownArm, UnknownName, require
from polyarm.service.audit import add_entry
from polyarm.service.clock import now
from polyarm.service.ledger import insert
from polyarm.service.messages import ExperimentPatch, ExperimentSettings
from polyarm.service.schema import arms, changes, experiment_versions, experiments, snapshots


class AlreadyThere(PolyarmError, ValueError):
    """The name is taken."""


class Experiment(NamedTuple):
    """An experiment as of one version of its settings."""

    name: str
    status: str
    version: int
    settings: ExperimentSettings
    arms: Mapping[str, str]  # arm -> active | paused | retired, in the order in which they came

    @property
    def active(self) -> tuple[str, ...]:
        """Arms that may be played."""
        return tuple(arm for arm, status in self.arms.items() if status == "active")


def check_settings(settings: ExperimentSettings) -> None:
    """Raise unless the settings fit together; what the model says of them comes after that."""
    require(len(set(settings.arms)) == len(settings.arms), "arms", "all different", settings.arms)
    names = [column.name for column in settings.context]
    require(len(set(names)) == len(names), "context", "columns with different names", names)
    if settings.control is not None:
        require(settings.control in settings.arms, "control", "one of the arms", settings.control)
    share = settings.min_propensity * len(settings.arms)
    require(share <= 1.0, "min_propensity", "at most 1 / number of arms", settings.min_propensity)


def add_experiment(connection: Connection, settings: ExperimentSettings, actor: str) -> None:
    """Add an experiment with its first version and its arms."""
    time = now()
    statement = insert(connection, experiments).values(name=settings.name, created_at=time, status="active", version=1)
    if connection.execute(statement.on_conflict_do_nothing().returning(experiments.c.name)).first() is None:
        raise AlreadyThere(f"name must be one that no experiment has, got {settings.name!r}")
    _add_version(connection, settings, 1)
    connection.execute(
        arms.insert(),
        [
            {"experiment": settings.name, "arm": arm, "position": position, "status": "active"}
            for position, arm in enumerate(settings.arms)
        ],
    )
    add_entry(connection, actor, "add experiment", settings.name, msgspec.to_builtins(settings))


def _add_version(connection: Connection, settings: ExperimentSettings, version: int) -> None:
    row = {"experiment": settings.name, "version": version, "created_at": now()}
    connection.execute(experiment_versions.insert().values(**row, settings=msgspec.to_builtins(settings)))


def get_experiment(connection: Connection, name: str, *, lock: bool = False) -> Experiment:
    """The experiment of that name; `lock` keeps others from changing it until the transaction ends."""
    query = select(experiments).where(experiments.c.name == name)
    row = connection.execute(query.with_for_update() if lock else query).mappings().one_or_none()
    if row is None:
        raise UnknownName(f"experiment must be one that exists, got {name!r}")
    settings = connection.execute(
        select(experiment_versions.c.settings).where(
            experiment_versions.c.experiment == name, experiment_versions.c.version == row["version"]
        )
    ).scalar_one()
    listed = connection.execute(
        select(arms.c.arm, arms.c.status).where(arms.c.experiment == name).order_by(arms.c.position)
    )
    return Experiment(
        name,
        row["status"],
        row["version"],
        msgspec.convert(settings, ExperimentSettings, strict=False),
        {arm.arm: arm.status for arm in listed},
    )


def first_settings(connection: Connection, experiment: str) -> ExperimentSettings:
    """The settings that the experiment began with."""
    query = select(experiment_versions.c.settings).where(
        experiment_versions.c.experiment == experiment, experiment_versions.c.version == 1
    )
    return msgspec.convert(connection.execute(query).scalar_one(), ExperimentSettings, strict=False)


def experiment_names(connection: Connection) -> list[str]:
    """Names of all experiments, the oldest first."""
    return list(connection.execute(select(experiments.c.name).order_by(experiments.c.created_at)).scalars())


def change_experiment(connection: Connection, name: str, patch: ExperimentPatch, actor: str) -> Experiment:
    """Give an experiment a new version of its settings."""
    experiment = get_experiment(connection, name, lock=True)
    asked: dict[str, Any] = {
        field: value for field, value in msgspec.structs.asdict(patch).items() if value is not msgspec.UNSET
    }
    require(bool(asked), "the change", "at least one setting", asked)
    settings = msgspec.structs.replace(experiment.settings, **asked)
    if settings.control is not None:
        require(settings.control in experiment.arms, "control", "one of the arms", settings.control)
    require(
        settings.min_propensity * len(experiment.arms) <= 1.0,
        "min_propensity",
        "at most 1 / number of arms",
        settings.min_propensity,
    )
    _add_version(connection, settings, experiment.version + 1)
    connection.execute(update(experiments).where(experiments.c.name == name).values(version=experiment.version + 1))
    add_entry(connection, actor, "change experiment", name, asked)
    return get_experiment(connection, name)


def set_status(connection: Connection, name: str, status: str, actor: str) -> None:
    """Pause an experiment or let it go on."""
    get_experiment(connection, name, lock=True)
    connection.execute(update(experiments).where(experiments.c.name == name).values(status=status))
    add_entry(connection, actor, "pause" if status == "paused" else "resume", name)


def add_arm(connection: Connection, name: str, arm: str, actor: str) -> None:
    """Ask for a new arm; it is played from the snapshot on in which the learner has taken it in."""
    experiment = get_experiment(connection, name, lock=True)
    if arm in experiment.arms:
        raise AlreadyThere(f"arm must be one that the experiment does not have, got {arm!r}")
    position = connection.execute(select(func.max(arms.c.position)).where(arms.c.experiment == name)).scalar_one() + 1
    connection.execute(arms.insert().values(experiment=name, arm=arm, position=position, status="active"))
    connection.execute(changes.insert().values(experiment=name, kind="add-arm", subject=arm, time=now()))
    add_entry(connection, actor, "add arm", name, arm)


def set_arm_status(connection: Connection, name: str, arm: str, status: str, actor: str) -> None:
    """Retire an arm for good, pause it, or let it be played again; its data stay."""
    experiment = get_experiment(connection, name, lock=True)
    if arm not in experiment.arms:
        raise UnknownArm(f"arm must be one of {', '.join(experiment.arms)}, got {arm!r}")
    if experiment.arms[arm] == "retired" and status != "retired":
        raise InvalidArgument(f"arm must be one that was not retired, got {arm!r}")
    left = [other for other in experiment.active if other != arm]
    require(status == "active" or bool(left), "arm", "one of several active arms", arm, "another must stay active")
    connection.execute(update(arms).where(arms.c.experiment == name, arms.c.arm == arm).values(status=status))
    add_entry(connection, actor, f"set arm {status}", name, arm)


def ask_rollback(connection: Connection, name: str, snapshot: int, actor: str) -> None:
    """Ask the learner to go on from an older snapshot, leaving out what was learnt after it."""
    get_experiment(connection, name, lock=True)
    row = connection.execute(
        select(snapshots.c.content).where(snapshots.c.experiment == name, snapshots.c.version == snapshot)
    ).one_or_none()
    if row is None or row.content is None:
        raise UnknownName(f"snapshot must be one that is still kept, got {snapshot}")
    connection.execute(changes.insert().values(experiment=name, kind="rollback", subject=str(snapshot), time=now()))
    add_entry(connection, actor, "roll back", name, snapshot)
