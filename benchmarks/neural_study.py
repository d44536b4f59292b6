"""The learned baselines of the paper's tables on a GPU, in pieces that can be stopped and resumed.

Plays exactly the worlds and seeds of `polyarm reproduce` and writes one file of played arms per scenario, from which
`neural_collect.py` makes the results of the runner.  Needs NumPy, SciPy, JAX and optax, but not Numba or PyArrow.

    python benchmarks/neural_study.py --out DIR --limit 540 neural-rms@mixture-a:0-500 multitask-gp@linear:0-50 ...

A job is policy@scenario:start-end, with the settings of the published table; policy:stated@... has those of the
paper's text, policy:option=value,...@... any others.
"""

import argparse
import ast
import hashlib
import importlib.util
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import polyarm
from polyarm.environments.presets import Scenario, make_scenario
from polyarm.neural.presets import LINEAR_SCENARIOS, NAMES, published_options, stated_options
from polyarm.neural.simulate import simulate
from polyarm.types import World


def load(name: str) -> Any:
    """A module of `polyarm.experiments` without its package, which wants PyArrow."""
    path = Path(polyarm.__file__).parent / "experiments" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"polyarm_{name}", path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sample_world = load("play").sample_world
policy_seed, world_rng = load("seeds").policy_seed, load("seeds").world_rng
SMALL = ("mixture-a", "heavy-tailed", "mixture-b", "exponential")  # neighbours share a shape, and so a compilation
NETWORKS = tuple(name for name in NAMES if name != "multitask-gp")
PLANS = {
    "probe": [f"{name}@mixture-a:0-500" for name in NETWORKS]
    + ["multitask-gp@mixture-a:0-50", "neural-rms@linear:0-500", "bnn-alpha@linear:0-100"],
    "small": [f"{name}@{scenario}:0-500" for name in NETWORKS for scenario in SMALL],
    "gp": [f"multitask-gp@{scenario}:0-50" for scenario in (*LINEAR_SCENARIOS, *SMALL)],
    "linear": [f"{name}@{scenario}:0-100" for name in NETWORKS for scenario in LINEAR_SCENARIOS],
    "more": [f"{name}@{scenario}:100-500" for scenario in LINEAR_SCENARIOS for name in NETWORKS],
    "oncology": [f"{name}@oncology:0-500" for name in NETWORKS] + ["multitask-gp@oncology:0-50"],
}


class Job(NamedTuple):
    """Some realisations of one policy on one scenario: its label in the results, its name and its options."""

    label: str
    policy: str
    options: dict[str, Any]
    scenario: str
    start: int
    end: int

    @property
    def key(self) -> str:
        """Name of the arms in the file."""
        return f"{self.label}|{self.start}-{self.end}"


def parse_job(text: str) -> Job:
    """Job from policy[:stated | :option=value,...]@scenario:start-end."""
    label, _, rest = text.partition("@")
    scenario, _, numbers = rest.partition(":")
    start, _, end = numbers.partition("-")
    policy, _, written = label.partition(":")
    if written == "stated":
        label, options = policy, stated_options(policy)
    elif written:
        keywords = ast.parse(f"f({written})", mode="eval").body.keywords  # type: ignore[attr-defined]
        options = stated_options(policy) | {word.arg: ast.literal_eval(word.value) for word in keywords}
    else:
        options = published_options(policy, scenario)
        if options != stated_options(policy):
            label = f"{policy}:" + ",".join(f"{key}={value}" for key, value in options.items())
    return Job(label, policy, options, scenario, int(start), int(end))


def worlds_of(scenario: Scenario, horizon: int, job: Job, seed: int) -> World:
    drawn = [
        sample_world(scenario.environment, scenario.horizon, world_rng(seed, number))
        for number in range(job.start, job.end)
    ]
    return World(*(np.stack(parts)[:, :horizon] for parts in zip(*drawn, strict=True)))


@contextmanager
def utilisation() -> Iterator[list[float]]:
    """Samples of the GPU's utilisation in percent, one a second, where nvidia-smi is there."""
    samples: list[float] = []
    stop = threading.Event()

    def watch() -> None:
        command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        while not stop.wait(1):
            try:
                samples.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
            except (OSError, ValueError, subprocess.CalledProcessError):
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()


def run_job(job: Job, settings: argparse.Namespace) -> dict[str, Any]:
    scenario = make_scenario(job.scenario, settings.data)
    horizon = min(settings.horizon or scenario.horizon, scenario.horizon)
    worlds = worlds_of(scenario, horizon, job, settings.seed)
    seeds = np.array([policy_seed(settings.seed, number, job.label) for number in range(job.start, job.end)])
    clock = time.perf_counter()
    with utilisation() as samples:
        arms, seconds = simulate(job.policy, worlds, seeds, device=settings.device, **job.options)
    whole = time.perf_counter() - clock
    received = np.take_along_axis(worlds.rewards, arms[..., None], axis=2)[..., 0]
    observed = (worlds.means.max(axis=2) - received).sum(axis=1)
    paid = np.take_along_axis(worlds.means, arms[..., None], axis=2)[..., 0]
    regret = (worlds.means.max(axis=2) - paid).sum(axis=1)
    n_steps = horizon * job.options["training_steps"] / job.options["training_freq"]
    print(
        f"{job.key:60s} {job.scenario:14s} T={horizon} {seconds:7.1f} s + {whole - seconds:5.1f} s compiling, "
        f"{1e6 * seconds / n_steps:7.1f} us a step, GPU {np.mean(samples or [0]):3.0f} %, "
        f"regret {regret.mean():8.1f} +- {regret.std() / len(regret) ** 0.5:.1f} (se), "
        f"observed std {observed.std():.1f}",
        flush=True,
    )
    digest = hashlib.sha256(worlds.rewards.tobytes()).hexdigest()
    return {f"{job.key}|arms": arms.astype(np.uint8), f"{job.key}|seconds": seconds, f"{job.key}|worlds": digest}


def save(folder: Path, scenario: str, found: dict[str, Any]) -> None:
    """Add to the scenario's file, whole or not at all."""
    path = folder / f"{scenario}.npz"
    if path.exists():
        with np.load(path) as old:
            found = {**{key: old[key] for key in old.files}, **found}
    draft = folder / f".{scenario}.npz"
    np.savez_compressed(draft, **found)
    draft.replace(path)


def held(folder: Path, job: Job) -> bool:
    path = folder / f"{job.scenario}.npz"
    if not path.exists():
        return False
    with np.load(path) as file:
        return f"{job.key}|arms" in file.files


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="+", help=f"policy@scenario:start-end, or a plan: {', '.join(PLANS)}")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=float, default=float("inf"), help="start no job after so many seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default=None, help="cpu or gpu")
    parser.add_argument("--data", default=None, help="the oncology table")
    parser.add_argument("--horizon", type=int, default=None, help="shorter runs, for timing")
    settings = parser.parse_args(arguments)
    settings.out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    for text in (part for job in settings.jobs for part in PLANS.get(job, [job])):
        job = parse_job(text)
        if held(settings.out, job):
            continue
        if time.monotonic() - start > settings.limit:
            print(f"not started: {text}", flush=True)
            continue
        try:
            save(settings.out, job.scenario, run_job(job, settings))
        except (RuntimeError, TypeError, ValueError, OSError, ImportError):  # the next job may do better
            traceback.print_exc()


if __name__ == "__main__":
    main(sys.argv[1:])
