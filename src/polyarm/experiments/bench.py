"""Speed, as ratios measured in one run: machines differ and are noisy, ratios hold."""

import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import polyarm
from polyarm.choosing import PolicyDefaults, best_of
from polyarm.errors import require_writable_parent
from polyarm.experiments import bandit_bench
from polyarm.experiments.check_costs import check_costs
from polyarm.inference import Budget, GibbsEngine
from polyarm.inference.gibbs import GibbsState
from polyarm.models import LinearMixture, NormalInverseGamma
from polyarm.policies import make_policy
from polyarm.types import AnyPolicy, Array, Choice, Mask, Rng, World

DIMS, CONCENTRATIONS = (1, 2, 10, 27), (0.1, 5.0)
SIZES = (1_000, 10_000, 100_000)
BLOCK = 50  # interactions timed together; policies take turns block by block, so that noise hits all alike
WORLDS = 3


class NumpyLinear(PolicyDefaults[None]):
    """Linear Thompson sampling as one writes it in plain NumPy: the yardstick."""

    def __init__(self, n_arms: int, dim: int) -> None:
        self.V = np.stack([np.eye(dim)] * n_arms)
        self.U = np.zeros((n_arms, dim))
        self.a, self.b = np.ones(n_arms), np.ones(n_arms)

    def init(self) -> None:
        """No separate state: this is how people write it."""

    def choose(self, state: None, context: Array, rng: Rng, eligible: Mask | None = None) -> Choice:
        """Best arm under one draw of every arm's coefficients."""
        scores = np.empty(len(self.a))
        for arm in range(len(self.a)):
            noise_sd = np.sqrt(self.b[arm] / rng.standard_gamma(self.a[arm]))
            w = self.U[arm] + noise_sd * np.linalg.cholesky(self.V[arm]) @ rng.standard_normal(len(context))
            scores[arm] = context @ w
        return best_of(scores, eligible)

    def update(self, state: None, context: Array, arm: int, reward: float, rng: Rng) -> None:
        """Sherman-Morrison update of the played arm."""
        v = self.V[arm] @ context
        s = 1.0 + context @ v
        e = reward - context @ self.U[arm]
        self.U[arm] += v * (e / s)
        self.V[arm] -= np.outer(v, v) / s
        self.a[arm] += 0.5
        self.b[arm] += 0.5 * e * e / s


def mixture_world(horizon: int, n_arms: int, dim: int, rng: Rng) -> World:
    """Two-component rewards; with two arms and dimension two, the paper's scenario A."""
    x = rng.random((horizon, dim))
    level = 2 / dim * x.sum(axis=1, keepdims=True)
    low, high, share = np.linspace(1, 0, n_arms), np.linspace(2, 3, n_arms), np.linspace(0.5, 0.7, n_arms)
    slope = np.where(rng.random((horizon, n_arms)) < share, high, low)
    rewards = slope * level + rng.standard_normal((horizon, n_arms))
    return World(x, rewards, (share * high + (1 - share) * low) * level)


def filled(engine: GibbsEngine, n: int, rng: Rng) -> GibbsState:
    """State after n rewards of one arm."""
    world = mixture_world(n, 2, engine.context_dim, rng)
    state = engine.init()
    for x, reward in zip(world.contexts, world.rewards[:, 1], strict=True):
        state = engine.update(state, x, 0, float(reward), rng)
    return state


def sweep_cost(dim: int, concentration: float, n: int = 1000, sweeps: int = 60) -> dict[str, float]:
    """Nanoseconds per (reward, component in use) of full Gibbs sweeps."""
    rng = np.random.default_rng(0)
    engine = GibbsEngine([LinearMixture(NormalInverseGamma(dim), concentration)], Budget(8))
    state = filled(engine, n, rng)
    for _ in range(20):
        state = engine.sweep(state, 0, rng)
    costs, sizes = [], []
    for _ in range(sweeps):
        before = engine.n_components(state)[0]
        start = time.thread_time()
        state = engine.sweep(state, 0, rng)
        elapsed = time.thread_time() - start
        size = 0.5 * (before + engine.n_components(state)[0])
        costs.append(1e9 * elapsed / n / size)
        sizes.append(size)
    return {"ns": float(np.median(costs)), "components": float(np.mean(sizes))}


def interactions(policy: Any, world: World, rng: Rng) -> Iterator[float]:
    """Play a world; yield the microseconds per interaction of every block."""
    state = policy.init()
    for start in range(0, len(world.contexts), BLOCK):
        begun = time.thread_time()
        for t in range(start, start + BLOCK):
            x = world.contexts[t]
            arm = policy.choose(state, x, rng).arm
            state = policy.update(state, x, arm, float(world.rewards[t, arm]), rng)
        yield 1e6 * (time.thread_time() - begun) / BLOCK


def interaction_costs(n_arms: int, dim: int, horizon: int = 2000) -> dict[str, float]:
    """Median microseconds per interaction of each policy, taking turns on WORLDS worlds: what a step of the default
    costs depends on how often its arms were played.
    """
    worlds = [mixture_world(horizon, n_arms, dim, np.random.default_rng(seed)) for seed in range(1, WORLDS + 1)]
    policies: dict[str, Callable[[], Any]] = {
        "numpy-linear": lambda: NumpyLinear(n_arms, dim),
        "linear": lambda: make_policy("linear", n_arms, dim),
        "nonparametric": lambda: make_policy("nonparametric", n_arms, dim),
        "dirichlet": lambda: make_policy("dirichlet", n_arms, dim),
        "nonparametric-paper": lambda: make_policy("nonparametric-paper", n_arms, dim),
    }
    for build in policies.values():  # compile, or load from the cache
        list(interactions(build(), World(*(part[:BLOCK] for part in worlds[0])), np.random.default_rng(0)))
    times: dict[str, list[float]] = {name: [] for name in policies}
    for world in worlds:
        runs = {name: interactions(build(), world, np.random.default_rng(2)) for name, build in policies.items()}
        for _ in range(horizon // BLOCK):
            for name, run in runs.items():
                times[name].append(next(run))
    return {name: float(np.median(values)) for name, values in times.items()}


def update_costs(dim: int = 2, repeats: int = 400) -> dict[str, float]:
    """Median microseconds of one update under `budget` after n rewards of the arm."""
    engine = GibbsEngine([LinearMixture(NormalInverseGamma(dim), 0.1)])
    quick = GibbsEngine(engine.arms, Budget(4))
    costs = {}
    for n in SIZES:
        rng = np.random.default_rng(3)
        state = filled(quick, n, rng)
        state = engine.random_moves(state, 0, 20_000, rng)
        world = mixture_world(repeats, 2, dim, rng)
        times = []
        for x, reward in zip(world.contexts, world.rewards[:, 1], strict=True):
            start = time.thread_time()
            state = engine.update(state, x, 0, float(reward), rng)
            times.append(1e6 * (time.thread_time() - start))
        costs[str(n)] = float(np.median(times))
    return costs


def realization_cost(name: str, horizon: int = 1000) -> dict[str, float]:
    """CPU seconds of one realisation of scenario A."""
    world = mixture_world(horizon, 2, 2, np.random.default_rng(4))
    policy: AnyPolicy = make_policy(name, 2, 2)
    start = time.thread_time()
    blocks = list(interactions(policy, world, np.random.default_rng(5)))
    return {"cpu_seconds": time.thread_time() - start, "us_per_interaction": float(np.mean(blocks))}


def measure(say: Callable[[str], None]) -> dict[str, Any]:
    """Everything that `polyarm bench` reports."""
    say("(a) full Gibbs sweep, n = 1000, nanoseconds per (reward, component)")
    sweeps = {}
    for dim in DIMS:
        for concentration in CONCENTRATIONS:
            cost = sweeps[f"d={dim},concentration={concentration:g}"] = sweep_cost(dim, concentration)
            size = f"({cost['components']:.1f} components)"
            say(f"    d = {dim:2d}  concentration {concentration:3g}  {cost['ns']:6.1f} ns  {size}")
    say(
        "(b) one interaction (choose + update), microseconds, and as a multiple of plain NumPy linear Thompson sampling"
    )
    table = {}
    for n_arms, dim in ((2, 2), (8, 10)):
        costs = table[f"arms={n_arms},d={dim}"] = interaction_costs(n_arms, dim)
        for name, value in costs.items():
            say(f"    {n_arms} arms, d = {dim:2d}  {name:20s} {value:7.1f} us  x {value / costs['numpy-linear']:.2f}")
    checks = check_costs(mixture_world(300, 2, 2, np.random.default_rng(1)), table["arms=2,d=2"])
    say("    checks of states in one interaction of nonparametric, 2 arms, d = 2")
    spent, share = checks["token_ns"] + checks["numbers_ns"], 100 * checks["share_of_interaction"]
    say(f"    {spent:6.0f} ns, {share:.2f} %; once for a foreign state {1e-3 * checks['door_ns']:.0f} us")
    say("(c) one update under budget(64) after n rewards, microseconds")
    updates = update_costs()
    for size, value in updates.items():
        say(f"    n = {size:>7s}  {value:6.1f} us  x {value / updates[str(SIZES[0])]:.2f}")
    say("(d) one realisation of mixture-a, T = 1000, CPU seconds")
    runs = {name: realization_cost(name) for name in ("nonparametric", "dirichlet", "nonparametric-paper", "linear")}
    for name, run in runs.items():
        say(f"    {name:20s} {run['cpu_seconds']:6.3f} s  ({run['us_per_interaction']:.0f} us per interaction)")
    door = bandit_bench.measure(say)
    machine = {"python": platform.python_version(), "machine": platform.machine(), "polyarm": polyarm.__version__}
    return {
        "machine": machine,
        "sweep_ns": sweeps,
        "interaction_us": table,
        "checks": checks,
        "update_us": updates,
        "realization": runs,
        "bandit": door,
    }


def run_bench(json_path: Path | None) -> int:
    """Measure, print, and write JSON if asked to."""
    target = require_writable_parent(json_path, "json") if json_path else None
    report = measure(lambda line: print(line, flush=True))
    if target:
        target.write_text(json.dumps(report, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(run_bench(None))
