"""What the front door costs beside the bare policy, measured in one run."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from polyarm.bandit import Bandit
from polyarm.types import Array

BLOCK = 50
READINGS = 4  # of the clock in a step: before and after two calls of the policy
REWARDS_IN_FILE = 100_000


class Timed:
    """A policy that notes the processor time spent inside it."""

    def __init__(self, policy: Any) -> None:
        self._policy, self.spent = policy, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def judge(self, *arguments: Any) -> Any:
        """Probabilities and expected rewards."""
        begun = time.thread_time()
        found = self._policy.judge(*arguments)
        self.spent += time.thread_time() - begun
        return found

    def update(self, *arguments: Any) -> Any:
        """State after one reward."""
        begun = time.thread_time()
        state = self._policy.update(*arguments)
        self.spent += time.thread_time() - begun
        return state


def clock_cost(n: int = 1000) -> float:
    """Microseconds that one reading of the clock takes."""
    begun = time.thread_time()
    for _ in range(n):
        time.thread_time()
    return 1e6 * (time.thread_time() - begun) / n


def overhead(n_arms: int, dim: int, horizon: int = 1000) -> dict[str, float]:
    """Median microseconds of choose + learn of a Bandit, and how many of them its policy takes.

    What reading the clock costs is taken off.
    """
    rng = np.random.default_rng(0)
    contexts, noise = rng.random((horizon, dim)), rng.standard_normal((horizon, n_arms))
    bandit = Bandit([f"arm{i}" for i in range(n_arms)], dim, seed=1)
    policy: Any = Timed(bandit._learner.policy)
    bandit._learner.policy = policy
    names = {name: number for number, name in enumerate(bandit.arms)}
    reading = clock_cost()
    costs: dict[str, list[float]] = {"bandit": [], "policy": []}
    for start in range(0, horizon, BLOCK):
        begun, policy.spent = time.thread_time(), 0.0
        for t in range(start, start + BLOCK):
            decision = bandit.choose(contexts[t])
            bandit.learn(decision, float(contexts[t].sum() + noise[t, names[decision.arm]]))
        costs["bandit"].append(1e6 * (time.thread_time() - begun) / BLOCK - READINGS * reading)
        costs["policy"].append(1e6 * policy.spent / BLOCK - READINGS / 2 * reading)
    return {name: float(np.median(values[1:])) for name, values in costs.items()}


def door_alone(n_arms: int, dim: int, n: int = 2000) -> float:
    """Median microseconds of choose + learn where the policy costs next to nothing."""
    contexts = np.random.default_rng(0).random((n, dim))
    bandit = Bandit([f"arm{i}" for i in range(n_arms)], dim, policy="uniform", seed=1)
    costs = []
    for start in range(0, n, BLOCK):
        begun = time.thread_time()
        for x in contexts[start : start + BLOCK]:
            bandit.learn(bandit.choose(x), 1.0)
        costs.append(1e6 * (time.thread_time() - begun) / BLOCK)
    return float(np.median(costs))


def batches(n: int = 10_000, n_arms: int = 8, dim: int = 10, n_learnt: int = 1000) -> dict[str, float]:
    """Microseconds a context of choose_many, and of a loop of choose, after some rewards."""
    bandit, contexts = _taught(n_arms, dim, n_learnt, n)
    bandit.choose_many(contexts[:10])
    begun = time.thread_time()
    bandit.choose_many(contexts)
    many = 1e6 * (time.thread_time() - begun) / n
    some = contexts[: n // 10]
    begun = time.thread_time()
    for x in some:
        bandit.choose(x)
    return {"choose_many": many, "loop": 1e6 * (time.thread_time() - begun) / len(some)}


def files(n_rewards: int = REWARDS_IN_FILE) -> dict[str, float]:
    """Seconds to save and to load a bandit of so many rewards, and the file's size."""
    bandit = Bandit(["a", "b", "c"], 2, seed=1, options={"memory": 1000})
    rng = np.random.default_rng(0)
    contexts = rng.random((n_rewards, 2))
    decisions = bandit.choose_many(contexts)
    bandit.learn_many(decisions.ids, contexts.sum(axis=1) + rng.standard_normal(n_rewards))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bandit.polyarm"
        begun = time.perf_counter()
        bandit.save(path)
        between = time.perf_counter()
        Bandit.load(path)
        return {
            "save_s": between - begun,
            "load_s": time.perf_counter() - between,
            "megabytes": path.stat().st_size / 1e6,
        }


def _taught(n_arms: int, dim: int, n_learnt: int, n: int) -> tuple[Bandit, Array]:
    rng = np.random.default_rng(0)
    bandit = Bandit([f"arm{i}" for i in range(n_arms)], dim, seed=1)
    past = rng.random((n_learnt, dim))
    arms = rng.integers(n_arms, size=n_learnt)
    bandit.learn_logged(past, [bandit.arms[a] for a in arms], past.sum(axis=1) + arms + rng.standard_normal(n_learnt))
    return bandit, rng.random((n, dim))


def measure(say: Callable[[str], None]) -> dict[str, Any]:
    """What `polyarm bench` reports of the front door."""
    say("(e) the front door: choose + learn of a Bandit, and the policy inside it, microseconds")
    doors = {}
    for n_arms, dim in ((2, 2), (8, 10)):
        cost = doors[f"arms={n_arms},d={dim}"] = overhead(n_arms, dim)
        more = cost["bandit"] - cost["policy"]
        whole, inside = cost["bandit"], cost["policy"]
        say(f"    {n_arms} arms, d = {dim:2d}  policy {inside:5.1f}  bandit {whole:6.1f}  + {more:.1f} us")
    alone = door_alone(2, 2)
    say(f"    2 arms, d =  2  with the policy `uniform`  {alone:6.1f} us")
    many = batches()
    say(
        f"    8 arms, d = 10  choose_many of 10 000  {many['choose_many']:5.1f} us a context, "
        f"{many['loop'] / many['choose_many']:.1f} times faster than a loop"
    )
    kept = files()
    say(f"    {REWARDS_IN_FILE} rewards  saved in {kept['save_s']:.2f} s, loaded in {kept['load_s']:.2f} s")
    return {"interaction_us": doors, "uniform_us": alone, "batch_us": many, "file": kept}
