"""The measurements behind docs/explanation/default-policy.md: run them, then write the page's tables.

    python benchmarks/default_policy.py run   [--realizations 500] [--only mixture-a,linear] [--policies "final;linear"]
    python benchmarks/default_policy.py long  [--realizations 20]       T = 20 000
    python benchmarks/default_policy.py time                            against linear Thompson sampling in NumPy
    python benchmarks/default_policy.py tables                          prints the tables from the results so far

Results are kept, one row per run, in benchmarks/results/default_policy.csv: an interrupted study goes on.
"""

import argparse
import csv
import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.progress import track

from polyarm.environments.presets import make_scenario
from polyarm.experiments.bench import NumpyLinear
from polyarm.experiments.reporting.statistics import paired_difference
from polyarm.experiments.running.play import play, sample_world
from polyarm.experiments.running.seeds import policy_rng, world_rng
from polyarm.policies import make_policy
from polyarm.types import AnyPolicy, Array, Environment

RESULTS = Path(__file__).parent / "results" / "default_policy.csv"
SEED = 40_000  # never used while settings were chosen (that was 1000; 20 000 served an earlier version)
LONG = 20_000


MAIN = ("mixture-a", "mixture-b", "heavy-tailed", "exponential", "linear", "linear-noise", "linear-outliers")
OTHERS = (
    "sparse-linear",
    "student",
    "revenue",
    "nonlinear",
    "bimodal/best",
    "bimodal/both",
    "drift",
    "drift/abrupt",
)


def environments(names: tuple[str, ...] = MAIN) -> dict[str, tuple[Environment, int]]:
    """Every scenario of a table with its horizon."""
    return {name: (scenario.environment, scenario.horizon) for name in names for scenario in [make_scenario(name)]}


NOWHERE: dict[str, object] = {"place_shape": 0.0, "place_scale": 0.0}
LADDER: dict[str, tuple[str, dict[str, object]]] = {  # what each step of the ablation is
    "paper with prior mean 1": ("dirichlet", {"draws": "paper", "prior_mean": 1.0}),  # as published
    "paper": ("dirichlet", {"draws": "paper"}),
    "sampled weights": ("dirichlet", {"draws": "weights"}),
    "exact tail": ("dirichlet", {"draws": "exact"}),
    "learned scales": ("nonparametric", {"explore": "thompson", "shared_centre": False, **NOWHERE}),
    "shared centre": ("nonparametric", {"explore": "thompson", **NOWHERE}),
    "places": ("nonparametric", {"explore": "thompson"}),
    "optimism": ("nonparametric", {"explore": "optimistic"}),
    "final": ("nonparametric", {}),
    "final without places": ("nonparametric", NOWHERE),
    "linear": ("linear", {}),
    "final, forgetting": ("nonparametric", {"half_life": 60.0}),
}

BESIDE = ("paper with prior mean 1", "optimism", "final without places", "linear")  # rows that are no step of the way
FORGETTING = "final, forgetting"


class Row(NamedTuple):
    """One run."""

    scenario: str
    policy: str
    horizon: int
    realization: int
    regret: float
    regret_half: float
    late_best_share: float
    microseconds: float


def read() -> list[Row]:
    if not RESULTS.exists():
        return []
    with RESULTS.open() as file:
        rows = list(csv.reader(file))[1:]
    return [Row(r[0], r[1], int(r[2]), int(r[3]), *map(float, r[4:])) for r in rows]


def append(row: Row) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    new = not RESULTS.exists()
    with RESULTS.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(Row._fields)
        writer.writerow([*row[:4], *(f"{value:.5g}" for value in row[4:])])


def build(label: str, environment: Environment) -> AnyPolicy:
    name, options = LADDER[label]
    return make_policy(name, environment.n_arms, environment.context_dim, **options)


def run_one(scenario: str, label: str, horizon: int, realization: int) -> Row:
    environment = make_scenario(scenario).environment
    world = sample_world(environment, horizon, world_rng(SEED, realization))
    run = play(build(label, environment), world, policy_rng(SEED, realization, label))
    steps = np.arange(horizon)
    regret = np.cumsum(world.means.max(1) - world.means[steps, run.arms])
    late = slice(horizon - horizon // 10, horizon)
    share = float((run.arms[late] == world.means[late].argmax(1)).mean())
    per_step = run.seconds / horizon * 1e6
    return Row(scenario, label, horizon, realization, float(regret[-1]), float(regret[horizon // 2]), share, per_step)


def study(labels: list[str], scenarios: list[str], n: int, workers: int, horizon: int | None = None) -> None:
    """Play what is not in the results yet."""
    done = {row[:4] for row in read()}
    wanted = [
        (s, label, horizon or make_scenario(s).horizon, r) for s in scenarios for label in labels for r in range(n)
    ]
    jobs = [job for job in wanted if job not in done]
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        for row in track(pool.map(run_one, *zip(*jobs, strict=True), chunksize=4), total=len(jobs)):
            append(row)


# ---------------------------------------------------------------- time


def medians(rounds: Iterator[tuple[float, ...]]) -> Array:
    return np.asarray(np.median(np.array(list(rounds)), axis=0) * 1e6)


def time_against_numpy(n: int = 1500) -> None:
    """Interactions of both samplers taken in turn, so that a busy machine slows both."""
    world = make_scenario("linear-noise").environment.sample(n, np.random.default_rng(1))
    policy, plain = make_policy("nonparametric", 8, 10), NumpyLinear(8, 10)
    rng = np.random.default_rng(2)

    def rounds() -> Iterator[tuple[float, float]]:
        state = policy.init()
        for t in range(n):
            x = world.contexts[t]
            start = time.perf_counter()
            arm = policy.choose(state, x, rng).arm
            state = policy.update(state, x, arm, float(world.rewards[t, arm]), rng)
            middle = time.perf_counter()
            arm = plain.choose(None, x, rng).arm
            plain.update(None, x, arm, float(world.rewards[t, arm]), rng)
            end = time.perf_counter()
            if t > n // 3:
                yield middle - start, end - middle

    ours, numpys = medians(rounds())
    print(f"8 arms, d = 10: nonparametric {ours:.0f} us, NumPy linear TS {numpys:.0f} us, ratio {ours / numpys:.2f}")


def time_by_history(sizes: tuple[int, ...] = (1000, 1_000_000), n_timed: int = 300) -> None:
    """Interaction time after many rewards; the mean over a whole run counts the growth of arrays too."""
    world = make_scenario("mixture-a").environment.sample(max(sizes) + n_timed, np.random.default_rng(3))
    policy, rng = make_policy("nonparametric", 2, 2), np.random.default_rng(4)
    state, times = policy.init(), np.empty(max(sizes) + n_timed)
    for t in range(len(times)):
        start = time.perf_counter()
        arm = policy.choose(state, world.contexts[t], rng).arm
        state = policy.update(state, world.contexts[t], arm, float(world.rewards[t, arm]), rng)
        times[t] = time.perf_counter() - start
        if t in sizes:
            print(f"n = {t}: so far {1e6 * times[:t].mean():.0f} us per interaction", flush=True)
    for size in sizes:
        print(f"n = {size}: median {1e6 * np.median(times[size : size + n_timed]):.0f} us")


# ---------------------------------------------------------------- tables


def by_run(rows: list[Row], scenario: str, label: str, horizon: int) -> dict[int, Row]:
    return {r.realization: r for r in rows if (r.scenario, r.policy, r.horizon) == (scenario, label, horizon)}


def paired(ours: dict[int, Row], theirs: dict[int, Row]) -> str:
    both = sorted(ours.keys() & theirs.keys())
    if len(both) < 2:
        return "-"
    gap = paired_difference(np.array([ours[i].regret for i in both]), np.array([theirs[i].regret for i in both]))
    return f"{gap.mean:+.1f} ({gap.low:+.1f}, {gap.high:+.1f})"


def final_table(rows: list[Row]) -> None:
    heads = ("scenario", "R", "mean ± se", "median", "p95", "locked in", "linear, mean ± se", "linear, p95")
    print("| " + " | ".join(heads) + " | ours - linear (95 % CI) |")
    print("|---|---|---|---|---|---|---|---|---|")
    for scenario, (_, horizon) in environments(MAIN + OTHERS).items():
        ours, theirs = by_run(rows, scenario, "final", horizon), by_run(rows, scenario, "linear", horizon)
        if len(ours) < 2:
            continue
        regret = np.array([r.regret for r in ours.values()])
        locked = np.mean([r.late_best_share < 0.5 for r in ours.values()])
        other = np.array([r.regret for r in theirs.values()] or [np.nan, np.nan])
        print(
            f"| {scenario} | {len(ours)} | **{regret.mean():.1f} ± {regret.std() / len(regret) ** 0.5:.1f}** | "
            f"{np.median(regret):.1f} | {np.quantile(regret, 0.95):.0f} | {100 * locked:.1f} % | "
            f"{other.mean():.1f} ± {other.std() / len(other) ** 0.5:.1f} | {np.quantile(other, 0.95):.0f} | "
            f"{paired(ours, theirs)} |"
        )


def paper_table(rows: list[Row], n_resamples: int = 4000) -> None:
    """Means and tails beside the paper's policy in the same worlds; the tails' interval is from resampled worlds."""
    print("| scenario | R | ours | paper | ours - paper (95 % CI) | p95, ours | p95, paper | ours - paper (95 % CI) |")
    print("|---|---|---|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    for scenario, (_, horizon) in environments(("mixture-a", "mixture-b", "heavy-tailed", "exponential")).items():
        both = [by_run(rows, scenario, label, horizon) for label in ("final", "paper with prior mean 1")]
        common = sorted(both[0].keys() & both[1].keys())
        if len(common) < 2:
            continue
        regret = np.array([[runs[i].regret for i in common] for runs in both])
        picks = rng.integers(len(common), size=(n_resamples, len(common)))
        ours, paper = np.quantile(regret, 0.95, axis=1)
        tails = np.quantile(regret[:, picks], 0.95, axis=2)
        low, high = np.quantile(tails[0] - tails[1], (0.025, 0.975))
        means = [f"{each.mean():.1f} ± {each.std() / len(each) ** 0.5:.1f}" for each in regret]
        print(
            f"| {scenario} | {len(common)} | {means[0]} | {means[1]} | {paired(*both)} | {ours:.0f} | {paper:.0f} | "
            f"{ours - paper:+.0f} ({low:+.0f}, {high:+.0f}) |"
        )


def ladder_table(rows: list[Row]) -> None:
    names = environments()
    print("| step | " + " | ".join(names) + " |")
    print("|---|" + "---|" * len(names))
    for label in LADDER:
        if label == FORGETTING:
            continue
        cells = []
        for scenario, (_, horizon) in names.items():
            runs = [r.regret for r in by_run(rows, scenario, label, horizon).values()]
            cells.append(f"{np.mean(runs):.1f} ± {np.std(runs) / len(runs) ** 0.5:.1f}" if runs else "-")
        print(f"| {label} | " + " | ".join(cells) + " |")


def tail_table(rows: list[Row]) -> None:
    """95th percentiles."""
    names = environments()
    print("| 95th percentile | " + " | ".join(names) + " |")
    print("|---|" + "---|" * len(names))
    for label in LADDER:
        if label == FORGETTING:
            continue
        runs = [[r.regret for r in by_run(rows, s, label, h).values()] for s, (_, h) in names.items()]
        print(f"| {label} | " + " | ".join(f"{np.quantile(r, 0.95):.0f}" if r else "-" for r in runs) + " |")


def steps_table(rows: list[Row]) -> None:
    """What each step changes, paired with the step before it."""
    names, labels = environments(), [label for label in LADDER if label not in (*BESIDE, FORGETTING)]
    print("| step | " + " | ".join(names) + " |")
    print("|---|" + "---|" * len(names))
    for before, label in pairwise(labels):
        cells = [paired(by_run(rows, s, label, h), by_run(rows, s, before, h)) for s, (_, h) in names.items()]
        print(f"| {before} to {label} | " + " | ".join(cells) + " |")


def long_table(rows: list[Row]) -> None:
    print("| scenario | R | regret at 10 000 | at 20 000 | ratio (sqrt(2) = 1.41) | locked in |")
    print("|---|---|---|---|---|---|")
    for scenario in environments():
        runs = list(by_run(rows, scenario, "final", LONG).values())
        if runs:
            half, whole = np.mean([r.regret_half for r in runs]), np.mean([r.regret for r in runs])
            locked = np.mean([r.late_best_share < 0.5 for r in runs])
            print(
                f"| {scenario} | {len(runs)} | {half:.1f} | {whole:.1f} | {whole / half:.2f} | {100 * locked:.1f} % |"
            )


def places_table(rows: list[Row]) -> None:
    """What places buy where the mean is no line or the weights depend on the context."""
    print("| scenario | R | without places | with | paired difference (95 % CI) |")
    print("|---|---|---|---|---|")
    for scenario in ("mixture-a", "mixture-b", "heavy-tailed", "exponential", "nonlinear", "revenue"):
        horizon = make_scenario(scenario).horizon
        none, some = by_run(rows, scenario, "final without places", horizon), by_run(rows, scenario, "final", horizon)
        if none and some:
            means = [np.mean([row.regret for row in runs.values()]) for runs in (none, some)]
            print(f"| {scenario} | {len(none)} | {means[0]:.1f} | {means[1]:.1f} | {paired(some, none)} |")


def drift_table(rows: list[Row]) -> None:
    """Dynamic regret with forgetting and without."""
    print("| scenario | R | without forgetting | half_life = 60 | ratio | paired difference (95 % CI) |")
    print("|---|---|---|---|---|---|")
    for scenario in ("drift", "drift/abrupt"):
        horizon = make_scenario(scenario).horizon
        some, none = by_run(rows, scenario, FORGETTING, horizon), by_run(rows, scenario, "final", horizon)
        if some and none:
            means = [np.mean([row.regret for row in runs.values()]) for runs in (none, some)]
            print(
                f"| {scenario} | {len(some)} | {means[0]:.0f} | {means[1]:.0f} | {means[1] / means[0]:.2f} | "
                f"{paired(some, none)} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "long", "time", "tables"))
    parser.add_argument("--realizations", type=int, default=500)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default=",".join(environments()))
    parser.add_argument("--policies", default=";".join(LADDER))
    given = parser.parse_args()
    if given.what == "run":
        study(given.policies.split(";"), given.only.split(","), given.realizations, given.workers)
    elif given.what == "long":
        study(["final"], given.only.split(","), given.realizations, given.workers, LONG)
    elif given.what == "time":
        time_against_numpy()
        time_by_history()
    else:
        rows = read()
        for table in (
            final_table,
            paper_table,
            ladder_table,
            steps_table,
            tail_table,
            long_table,
            drift_table,
            places_table,
        ):
            table(rows)
            print()


if __name__ == "__main__":
    main()
