"""Many realisations of a learned baseline at once: `vmap` over realisations inside one compiled loop over time."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyarm.errors import InvalidArgument, require
from polyarm.neural.data import Data, append, empty, observation
from polyarm.neural.learner import AnyLearner
from polyarm.neural.precision import numerics
from polyarm.neural.presets import make_learner
from polyarm.neural.stepping import DECISION, START, TRAINING, realisation_key, score, stage_key, visible, with_one
from polyarm.types import IntArray, World

Progress = Callable[[int, int], None]
ROUNDS_PER_CALL = 100  # rounds between two calls of the progress callback
REALIZATIONS_PER_CALL = 500  # what a study hands over at once
CPU_BYTES = 2**30  # a batch larger than this gains nothing on a processor


class Runs(NamedTuple):
    """Realisations under way: keys, models, data and the arms played so far, on a leading axis."""

    keys: jax.Array
    models: Any
    data: Data
    arms: jax.Array


def simulate(
    name: str,
    worlds: World,
    seeds: ArrayLike,
    *,
    progress: Progress | None = None,
    device: str | None = None,
    memory_gb: float | None = None,
    **options: object,
) -> tuple[IntArray, float]:
    """Arms played, (R, T), and the seconds it took without compilation.

    Worlds carry a leading axis of realisations; each follows from its own seed, whatever the batch it runs in.
    progress(done, total) is called as rounds of all realisations finish.
    """
    numbers = require_seeds(worlds, seeds)
    learner = make_learner(name, worlds.rewards.shape[2], worlds.contexts.shape[2], **options)
    place = find_device(device)
    batches = split(len(numbers), batch_size(learner, worlds, place, memory_gb))
    ticker = Ticker(progress, len(numbers) * worlds.contexts.shape[1])
    parts, seconds = [], 0.0
    with numerics(), jax.default_device(place):
        for batch in batches:
            arms, spent = run(learner, World(*(np.asarray(field)[batch] for field in worlds)), numbers[batch], ticker)
            parts.append(arms)
            seconds += spent
    return np.concatenate(parts)[: len(numbers)], seconds


def require_seeds(worlds: World, seeds: ArrayLike) -> NDArray[np.uint64]:
    """One seed per realisation."""
    numbers = np.asarray(seeds)
    require(worlds.rewards.ndim == 3, "worlds", "a World with a leading axis of realisations", worlds.rewards.shape)
    require(
        numbers.shape == (len(worlds.contexts),) and numbers.dtype.kind in "iu" and bool((numbers >= 0).all()),
        "seeds",
        "one non-negative integer per realisation",
        seeds,
    )
    return numbers.astype(np.uint64)


def find_device(device: str | None) -> jax.Device:
    """First device of that kind; JAX's own choice if none is named."""
    if device is None:
        return jax.devices()[0]
    try:
        return jax.devices(device)[0]
    except RuntimeError:
        known = ", ".join(sorted({d.platform for d in jax.devices()}))
        raise InvalidArgument(f"device must be one that JAX finds here ({known}), got {device!r}") from None


def batch_size(learner: AnyLearner, worlds: World, device: jax.Device, memory_gb: float | None) -> int:
    """Realisations that fit the memory at once."""
    _, horizon, n_arms = worlds.rewards.shape
    own = learner.workspace(horizon) + 16 * horizon * (worlds.contexts.shape[2] + n_arms + 4)
    return int(memory_bytes(device, memory_gb) // own)


def split(n: int, most: int) -> list[IntArray]:
    """Realisations of equal batches, the last one filled up with copies, so that one compilation serves them all.

    A batch holds at least two: XLA treats a batch of one as none and then rounds differently.
    """
    n_batches = -(-n // max(most, 2))
    size = max(-(-n // n_batches), 2)
    return list(np.minimum(np.arange(n_batches * size), n - 1).reshape(n_batches, size))


def memory_bytes(device: jax.Device, memory_gb: float | None) -> float:
    """Bytes a batch may take: as told, or 60 % of a GPU's memory, or a gibibyte on a processor."""
    if memory_gb is not None:
        return memory_gb * 2**30
    stats = device.memory_stats() if device.platform != "cpu" else None
    return 0.6 * stats["bytes_limit"] if stats else CPU_BYTES


class Ticker:
    """Counts finished rounds over all batches for a progress callback."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def add(self, rounds: int) -> None:
        """Tell that these rounds are done."""
        self.done = min(self.done + rounds, self.total)
        if self.progress is not None:
            self.progress(self.done, self.total)


def run(learner: AnyLearner, worlds: World, seeds: NDArray[np.uint64], ticker: Ticker) -> tuple[IntArray, float]:
    """Arms of one batch that fits the device, and the seconds spent."""
    horizon = worlds.contexts.shape[1]
    inputs = with_one(jnp.asarray(worlds.contexts), learner.dtype)
    rewards = jnp.asarray(worlds.rewards, learner.dtype)
    runs = start_runs(learner, jnp.asarray(seeds), horizon)
    seconds = 0.0
    compiled = set()
    for begin, end, window in stretches(learner, horizon):
        if window not in compiled:  # an empty stretch compiles and does nothing else
            runs = finished(advance(learner, window, runs, inputs, rewards, begin, begin))
            compiled.add(window)
        clock = time.perf_counter()
        runs = finished(advance(learner, window, runs, inputs, rewards, begin, end))
        seconds += time.perf_counter() - clock
        ticker.add((end - begin) * len(seeds))
    return np.asarray(runs.arms, np.int64), seconds


def finished(runs: Runs) -> Runs:
    """Realisations once the device has caught up."""
    runs.arms.block_until_ready()
    return runs


def stretches(learner: AnyLearner, horizon: int) -> Iterator[tuple[int, int, int | None]]:
    """Spans of rounds in which the learner's window stays the same, none longer than `ROUNDS_PER_CALL`."""
    begin = 0
    while begin < horizon:
        window = learner.window(begin)
        end = begin + 1
        while end < min(horizon, begin + ROUNDS_PER_CALL) and learner.window(end) == window:
            end += 1
        yield begin, end, window
        begin = end


@partial(jax.jit, static_argnames=("learner", "horizon"))
def start_runs(learner: AnyLearner, seeds: jax.Array, horizon: int) -> Runs:
    """Fresh realisations."""
    keys = jax.vmap(realisation_key)(seeds)
    models = jax.vmap(lambda key: learner.init(stage_key(key, START, 0)))(keys)
    blank = empty(horizon, learner.context_dim, learner.dtype)
    data = jax.tree.map(lambda buffer: jnp.broadcast_to(buffer, (len(seeds), *buffer.shape)), blank)
    return Runs(keys, models, data, jnp.zeros((len(seeds), horizon), jnp.int32))


@partial(jax.jit, static_argnames=("learner", "window"), donate_argnames="runs")
def advance(
    learner: AnyLearner,
    window: int | None,
    runs: Runs,
    inputs: jax.Array,
    rewards: jax.Array,
    begin: jax.Array,
    end: jax.Array,
) -> Runs:
    """Realisations after rounds begin, ..., end - 1: train on what came before, decide, observe."""

    def one(
        key: Any, model: Any, data: Data, x: jax.Array, pay: jax.Array, n: jax.Array
    ) -> tuple[Any, Data, jax.Array]:
        seen = visible(learner, data, window)
        model = jax.lax.cond(n > 0, lambda: learner.learn(model, seen, n, stage_key(key, TRAINING, n)), lambda: model)
        arm = jnp.argmax(score(learner, model, seen, n, x, stage_key(key, DECISION, n)))
        return model, append(data, n, observation(x, arm, pay[arm])), arm

    def round_(n: jax.Array, now: Runs) -> Runs:
        x, pay = inputs[:, n], rewards[:, n]
        models, data, arms = jax.vmap(one, in_axes=(0, 0, 0, 0, 0, None))(now.keys, now.models, now.data, x, pay, n)
        return Runs(now.keys, models, data, now.arms.at[:, n].set(arms.astype(jnp.int32)))

    return jax.lax.fori_loop(begin, end, round_, runs)
