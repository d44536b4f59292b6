"""Snapshots again from the log: learn every step in order and compare the hash at each snapshot that was published."""

from collections.abc import Callable
from importlib.metadata import version
from typing import NamedTuple

from sqlalchemy import Connection, select

from polyarm.service.catalog import first_settings, get_experiment
from polyarm.service.learner import take_in
from polyarm.service.model import Model
from polyarm.service.schema import snapshots
from polyarm.service.sequence import last_number, steps
from polyarm.service.snapshots import digest


class Verdict(NamedTuple):
    """How a rebuilt experiment compares with what was published."""

    experiment: str
    steps: int
    compared: int
    differing: tuple[int, ...]  # versions whose hash is another
    content: bytes


def rebuild(connection: Connection, experiment: str, watch: Callable[[int, int], None] = lambda i, n: None) -> Verdict:
    """Learn an experiment's log from its start; `watch` is told how far it has got.

    Hashes are compared with the snapshots that this version of the library published.
    """
    get_experiment(connection, experiment)
    published: dict[int, list[tuple[int, str]]] = {}
    query = select(snapshots.c.version, snapshots.c.apply_seq, snapshots.c.sha256)
    ours = (snapshots.c.experiment == experiment) & (snapshots.c.library == version("polyarm"))
    for row in connection.execute(query.where(ours).order_by(snapshots.c.version)):
        published.setdefault(row.apply_seq, []).append((row.version, row.sha256))
    model = Model.new(first_settings(connection, experiment))
    last = last_number(connection, experiment)
    compared = 0
    differing: list[int] = []

    def compare(number: int) -> int:
        found = digest(model.to_bytes()) if number in published else ""
        differing.extend(version for version, sha256 in published.get(number, ()) if sha256 != found)
        return len(published.get(number, ()))

    compared += compare(0)
    for step in steps(connection, experiment, 0, last):
        model = take_in(connection, experiment, model, step)
        compared += compare(step.apply_seq)
        watch(step.apply_seq, last)
    return Verdict(experiment, last, compared, tuple(differing), model.to_bytes())
