"""Paired realisations of a study, on any executor, kept on disk as they finish."""

import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import polyarm
from polyarm.environments.presets import Scenario
from polyarm.errors import require, require_count
from polyarm.experiments.running.content import readable
from polyarm.experiments.running.executors import Inline
from polyarm.experiments.running.play import Run, play, sample_world, shorten
from polyarm.experiments.running.policy_specs import PolicySpec
from polyarm.experiments.running.progress import Advance, silent
from polyarm.experiments.running.records import record
from polyarm.experiments.running.results import Results
from polyarm.experiments.running.seeds import policy_rng, policy_seed, world_rng
from polyarm.experiments.running.sources import WORLDS, polyarm_sources
from polyarm.experiments.running.store import Done, Store, runs_of
from polyarm.files import require_folder
from polyarm.types import World

PIECE = 5  # realisations between two writes: a crash loses at most these, and a write costs a few milliseconds
LARGEST = 2**31 - 1  # numbers of steps and realisations are kept as 32-bit integers
BATCH = 100  # the same for policies that play many worlds at once


@dataclass(frozen=True, slots=True)
class Study:
    """Policies that meet the same worlds of one scenario."""

    scenario: Scenario
    specs: tuple[PolicySpec, ...]
    realizations: tuple[int, ...]
    horizon: int
    seed: int = 0
    device: str | None = None  # of the policies that play many worlds at once

    def __post_init__(self) -> None:
        require_count(len(self.realizations), "realizations")
        require_count(max(self.realizations), "number of a realization", 0, LARGEST)
        require_count(self.horizon, "horizon", 1, LARGEST)
        require_count(self.seed, "seed", at_least=0)
        arms, dim = self.scenario.environment.n_arms, self.scenario.environment.context_dim
        size, room = 8 * self.horizon * (dim + 2 * arms), physical_memory()
        rule = f"short enough for a world of {arms} arms and {dim} columns to fit into {room / 2**30:.3g} GiB"
        require(size <= room, "horizon", rule, self.horizon)

    @property
    def identity(self) -> dict[str, Any]:
        """Settings that decide every number; realisations and policies may be added later."""
        return {
            "scenario": self.scenario.name,
            "environment": readable(self.scenario.environment),
            "horizon": self.horizon,
            "seed": self.seed,
            "polyarm": polyarm.__version__,
            "sources of the worlds": polyarm_sources(WORLDS),
        }

    @property
    def makings(self) -> dict[str, dict[str, str]]:
        """What each policy is made of, by label."""
        return {spec.label: spec.making(self.scenario) for spec in self.specs}

    @property
    def settings(self) -> dict[str, Any]:
        """Everything a reader of the results wants to know about them."""
        labels = [spec.label for spec in self.specs]
        return {**self.identity, "policies": labels, "realizations": len(self.realizations)}


class WorkItem(NamedTuple):
    """Some realisations of one policy: what a worker is handed."""

    study: Study
    spec: PolicySpec
    realizations: tuple[int, ...]


def open_store(study: Study, folder: str | Path) -> Store:
    """The folder of that study."""
    return Store(require_folder(folder), study.identity, study.makings)


def physical_memory() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    found = {
        "python": platform.python_version(),
        "polyarm": polyarm.__version__,
        "machine": platform.machine(),
    }
    for name in ("numpy", "scipy", "numba", "pyarrow", "jax"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def run_piece(piece: WorkItem) -> pa.Table:
    """Rows of some realisations of one policy, one world after the other."""
    study, spec, _ = piece
    tables: list[pa.Table] = []
    for realization in piece.realizations:
        world = _world(study, realization)
        policy = spec.build(study.scenario, world)
        if not tables:  # load compiled code before the clock runs
            play(policy, shorten(world, 2 * study.scenario.environment.n_arms + 2), policy_rng(0, 0, "warm up"))
        run = play(policy, world, policy_rng(study.seed, realization, spec.label))
        tables.append(record(spec.label, realization, world, run))
    return pa.concat_tables(tables)


def run_batch(piece: WorkItem, advance: Advance = silent) -> pa.Table:
    """The same rows for a policy that plays all its worlds at once, showing parts of realisations as they pass."""
    study, spec, numbers = piece
    worlds = [_world(study, number) for number in numbers]
    stacked = World(*(np.stack(parts) for parts in zip(*worlds, strict=True)))
    seeds = np.array([policy_seed(study.seed, number, spec.label) for number in numbers])
    module: Any = spec.simulator()
    options = spec.full_options(study.scenario)
    shown = 0.0

    def progress(done: int, total: int) -> None:
        nonlocal shown
        advance(len(numbers) * done / total - shown)
        shown = len(numbers) * done / total

    arms, seconds = module.simulate(spec.name, stacked, seeds, progress=progress, device=study.device, **options)
    advance(-shown)  # whoever keeps the rows counts them whole
    each = float(np.sum(seconds)) / len(numbers)
    runs = (Run(np.asarray(row, dtype=np.int64), each) for row in arms)
    rows = zip(numbers, worlds, runs, strict=True)
    return pa.concat_tables([record(spec.label, number, world, run) for number, world, run in rows])


def _world(study: Study, realization: int) -> World:
    return sample_world(study.scenario.environment, study.horizon, world_rng(study.seed, realization))


def _pieces(study: Study, done: Done, batched: bool) -> Iterator[WorkItem]:
    """What is left to do, the policies taking turns, so that the time left can be told."""
    queues = []
    for spec in study.specs:
        simulator = spec.simulator()
        if (simulator is not None) != batched:
            continue
        size = getattr(simulator, "REALIZATIONS_PER_CALL", BATCH) if batched else PIECE
        left = [number for number in study.realizations if (spec.label, number) not in done]
        queues.append([WorkItem(study, spec, tuple(left[i : i + size])) for i in range(0, len(left), size)])
    for turn in zip_longest(*queues):
        yield from (piece for piece in turn if piece is not None)


def _completed(
    executor: Executor, work: Callable[[WorkItem], pa.Table], pieces: Iterable[WorkItem], window: int
) -> Iterator[pa.Table]:
    """Tables of the pieces as they finish, with at most `window` of them under way."""
    waiting: set[Future[pa.Table]] = set()
    for piece in pieces:
        waiting.add(executor.submit(work, piece))
        while len(waiting) >= window:
            finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from (_copied(future.result()) for future in finished)
    while waiting:
        finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        yield from (_copied(future.result()) for future in finished)


def _copied(table: pa.Table) -> pa.Table:
    """The table in memory of its own: columns that came over a network begin anywhere, and Arrow warns of each."""
    return table.take(pa.array(np.arange(len(table))))


def count_missing(study: Study, store: Store) -> int:
    """Runs of the study that the store does not hold yet."""
    done = runs_of(store.load())
    return sum((c.label, number) not in done for c in study.specs for number in study.realizations)


def run_study(
    study: Study, store: Store, executor: Executor | None = None, advance: Advance = silent, window: int = 64
) -> Results:
    """Run what the store does not hold yet, then give the results of the whole study."""
    executor = executor or Inline()
    rows = [store.load()]
    done = runs_of(rows[0])
    start = time.time()
    about = {"settings": study.settings, "versions": versions()}
    inline = Inline()  # batched policies have the device to themselves
    streams = (
        _completed(executor, run_piece, _pieces(study, done, False), 1 if isinstance(executor, Inline) else window),
        _completed(inline, partial(run_batch, advance=advance), _pieces(study, done, True), 1),
    )
    for stream in streams:
        for table in stream:
            store.add(table, {**about, "timing": {"finished": time.time(), "since_start_s": time.time() - start}})
            rows.append(table)
            advance(len(runs_of(table)))
    table = pa.concat_tables(rows).sort_by(
        [("policy", "ascending"), ("realization", "ascending"), ("step", "ascending")]
    )
    if len(rows) > 1 or store.pieces.exists():
        store.finish(table, {**about, "timing": {"finished": time.time(), "since_start_s": time.time() - start}})
    return Results(_select(table, study), study.settings)


def _select(table: pa.Table, study: Study) -> pa.Table:
    labels = pa.array([spec.label for spec in study.specs])
    wanted = pc.is_in(table["policy"], labels)
    numbers = pc.is_in(table["realization"], pa.array(study.realizations, pa.int32()))
    return table.filter(pc.and_(wanted, numbers))
