"""Every kind of reward: the default beside specialists and linear models, in the same worlds.

    python benchmarks/rewards.py run    [--seed 140000] [--workers 2] [--minutes 35] [--scale 1] [--only clicks,counts]
    python benchmarks/rewards.py tables [--seed 140000] [--only ...]        prints Markdown for the default's page
    python benchmarks/rewards.py plan                                      what will be run, and in how many worlds

`run` is one command for the whole study.  It plays block after block of realisations over all scenarios, so that it
may be stopped at any time (Ctrl-C, or --minutes) and everything has about the same share of its worlds; started again,
it goes on.  Rows are kept in benchmarks/results/rewards.csv, one per run; those of other sources, seeds or horizons
never count.  --only takes names or beginnings of names of scenarios, --policies replaces the policies (separated by
";"), --scale multiplies the numbers of realisations, --realizations sets them, --tag keeps a run under another name:
with --tag before, in a checkout of an older commit, `nonparametric` becomes `nonparametric@before` and stands beside
today's, in the same worlds.

Seeds below 50 000 are for development; the published tables are from seed 140 000, run once.
"""

import argparse
import csv
import hashlib
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, as_completed
from functools import cache
from os import SEEK_END
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

import polyarm
from polyarm.environments.presets import Scenario, make_scenario
from polyarm.experiments.reporting.statistics import paired_difference
from polyarm.experiments.running.executors import local_processes
from polyarm.experiments.running.play import play, sample_world, shorten
from polyarm.experiments.running.policy_specs import parse_policy
from polyarm.experiments.running.seeds import policy_rng, world_rng
from polyarm.types import Array

RESULTS = Path(__file__).parent / "results" / "rewards.csv"
SEED = 140_000
BLOCK = 20  # realisations of every scenario before any scenario goes on
OURS = "nonparametric"
LINEAR = (
    "linear",
    "linear:intercept=True",
    "linear-ucb",
    "linear-ucb:intercept=True",
    "linear-information",
    "linear-information:intercept=True",
)
LINEAR_HEADS = tuple(
    f"{name}{', intercept' if options else ''}" for name, _, options in (label.partition(":") for label in LINEAR)
)


class Plan(NamedTuple):
    """Realisations of a scenario, and its specialists (as under Thompson sampling)."""

    realizations: int
    specialists: tuple[str, ...] = ()

    @property
    def informed(self) -> tuple[str, ...]:
        """The specialists under our rule."""
        return tuple(
            label.replace(name := label.partition(":")[0], f"{name}-information") for label in self.specialists
        )

    @property
    def policies(self) -> tuple[str, ...]:
        return (OURS, *self.specialists, *self.informed, *LINEAR)


AMOUNTS = ("hurdle", "hurdle:amounts='gamma'")
PLANS: dict[str, Plan] = {
    **dict.fromkeys(("rates/few", "rates/rare", "rates/common", "rates/wide"), Plan(500, ("beta",))),
    **dict.fromkeys(
        ("clicks", "clicks/correlated", "clicks/one-hot", "clicks/rare", "clicks/frequent"),
        Plan(500, ("logistic",)),
    ),
    **dict.fromkeys(("purchases", "purchases/gamma", "purchases/fee", "revenue"), Plan(500, AMOUNTS)),
    **dict.fromkeys(("durations", "durations/weibull", "durations/log-normal"), Plan(500, AMOUNTS)),
    **dict.fromkeys(("durations/exponential", "durations/erlang"), Plan(500, AMOUNTS)),
    "refunds": Plan(500, ("hurdle:amounts='normal'",)),
    **dict.fromkeys(("counts", "counts/overdispersed"), Plan(500, ("poisson",))),
    "ratings": Plan(500, ("ordinal",)),
    **dict.fromkeys(("laplace/6-arms", "laplace/20-arms", "unequal-noise"), Plan(500)),
    **dict.fromkeys(("windfalls", "windfalls/frequent", "windfalls/losses"), Plan(200)),
    **dict.fromkeys(("profits", "profits/price", "profits/control"), Plan(200)),
    **dict.fromkeys(("breast-cancer", "wine"), Plan(500, ("logistic",))),
    "digits/20": Plan(100, ("logistic",)),
    "digits/64": Plan(60, ("logistic",)),
}
DISGUISES: dict[str, tuple[str, ...]] = {  # each beside its clean case, the first
    "heavy-tailed": ("heavy-tailed", "heavy-tailed/rounded", "heavy-tailed/shifted", "heavy-tailed/wild-start"),
    "linear-noise": ("linear-noise", "linear-noise/rounded", "linear-noise/shifted", "linear-noise/wild-start"),
    "linear-outliers": ("linear-outliers", "linear-outliers/sd-30", "linear-outliers/sd-10000"),
}


class Row(NamedTuple):
    """One run."""

    scenario: str
    policy: str
    seed: int
    horizon: int
    realization: int
    regret: float
    late_best_share: float
    microseconds: float
    sources: str


class Job(NamedTuple):
    """One world and the policies that have not met it yet."""

    scenario: str
    seed: int
    realization: int
    policies: tuple[str, ...]
    tag: str
    sources: str


@cache
def scenario_of(name: str) -> Scenario:
    return make_scenario(name)


def sources() -> str:
    """Hash of the package, which every row carries."""
    digest = hashlib.sha256()
    for file in sorted(Path(polyarm.__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        lines = [line for line in csv.reader(file) if len(line) == len(Row._fields)][1:]  # a killed run cuts the last
    return [
        Row(r[0], r[1], int(r[2]), int(r[3]), int(r[4]), float(r[5]), float(r[6]), float(r[7]), r[8]) for r in lines
    ]


def last_byte(path: Path) -> bytes:
    """How a file ends; nothing where there is none."""
    if not path.exists() or not path.stat().st_size:
        return b""
    with path.open("rb") as file:
        file.seek(-1, SEEK_END)
        return file.read(1)


def append(path: Path, rows: Iterable[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    before = last_byte(path)
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if not before:
            writer.writerow(Row._fields)
        elif before != b"\n":  # a killed run left half a line
            file.write("\r\n")
        for row in rows:
            writer.writerow([*row[:5], *(f"{value:.6g}" for value in row[5:8]), row.sources])


def run_job(job: Job) -> list[Row]:
    """Every policy in one world."""
    scenario = scenario_of(job.scenario)
    horizon = scenario.horizon
    world = sample_world(scenario.environment, horizon, world_rng(job.seed, job.realization))
    best, steps = world.means.max(axis=1), np.arange(horizon)
    late = slice(horizon - max(horizon // 10, 1), horizon)
    rows = []
    for label in job.policies:
        spec = parse_policy(label)
        policy = spec.build(scenario)
        play(policy, shorten(world, 2 * scenario.environment.n_arms + 2), policy_rng(0, 0, "warm up"))
        run = play(policy, world, policy_rng(job.seed, job.realization, spec.label))
        played = world.means[steps, run.arms]
        share = float((played[late] >= best[late]).mean())
        regret, cost = float((best - played).sum()), run.seconds / horizon * 1e6
        name = f"{label}@{job.tag}" if job.tag else label
        rows.append(Row(job.scenario, name, job.seed, horizon, job.realization, regret, share, cost, job.sources))
    return rows


def chosen(only: str) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Realisations and policies of every scenario asked for."""
    found = {name: (plan.realizations, plan.policies) for name, plan in PLANS.items()}
    for names in DISGUISES.values():
        found.update({name: (200, (OURS,)) for name in names})
    beginnings = tuple(part.strip() for part in only.split(",") if part.strip())
    return {name: what for name, what in found.items() if not beginnings or name.startswith(beginnings)}


def jobs_of(given: argparse.Namespace) -> Iterator[Job]:
    """What is left to do, block by block."""
    version = sources()
    done = {row[:5] for row in read(given.results) if row.sources == version}
    numbers = {
        name: (given.realizations or max(2, round(given.scale * n)), policies)
        for name, (n, policies) in chosen(given.only).items()
    }
    for first in range(0, max((n for n, _ in numbers.values()), default=0), BLOCK):
        for name, (n, policies) in numbers.items():
            wanted = tuple(given.policies.split(";")) if given.policies else policies
            horizon = scenario_of(name).horizon
            for r in range(first, min(first + BLOCK, n)):
                suffix = f"@{given.tag}" if given.tag else ""
                missing = tuple(p for p in wanted if (name, p + suffix, given.seed, horizon, r) not in done)
                if missing:
                    yield Job(name, given.seed, r, missing, given.tag, version)


def run(given: argparse.Namespace) -> None:
    jobs, deadline = list(jobs_of(given)), time.monotonic() + 60 * given.minutes
    console = Console(stderr=True)
    columns = (TextColumn("worlds"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    executor = local_processes(given.workers)
    said = time.monotonic()
    try:
        futures: dict[Future[list[Row]], Job] = {executor.submit(run_job, job): job for job in jobs}
        with Progress(*columns, console=console, disable=not sys.stderr.isatty()) as bar:
            task = bar.add_task("worlds", total=len(jobs))
            for number, future in enumerate(as_completed(futures), start=1):
                error = future.exception()
                if isinstance(error, BrokenExecutor):
                    raise error
                if error is not None:  # one world that fails is told, and the others go on
                    print(f"FAILED {futures[future]}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                else:
                    append(given.results, future.result())
                bar.advance(task)
                if not sys.stderr.isatty() and time.monotonic() - said > 60:
                    said = time.monotonic()
                    print(f"{number} of {len(jobs)} worlds", file=sys.stderr, flush=True)
                if time.monotonic() > deadline:
                    print(f"time is up after {number} of {len(jobs)} worlds: run again to go on", file=sys.stderr)
                    break
    except KeyboardInterrupt:
        print("stopped: run again to go on", file=sys.stderr)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


# Tables


def short(value: float, sign: str = "") -> str:
    """The number with about three digits, never with an exponent."""
    return format(value, f"{sign}.{0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2}f")


class Runs(NamedTuple):
    """The runs of one policy on one scenario, by realisation."""

    regret: dict[int, float]
    late: dict[int, float]
    cost: float

    @property
    def values(self) -> Array:
        return np.array(list(self.regret.values()))

    @property
    def mean(self) -> str:
        values = self.values
        spread = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
        return f"{short(values.mean())} ± {short(spread)}"

    @property
    def locked(self) -> str:
        return f"{100 * float(np.mean([share < 0.5 for share in self.late.values()])):.1f} %"

    @property
    def tail(self) -> tuple[str, str, str]:
        """Median, 95th percentile and worst regret."""
        values = self.values
        return short(float(np.median(values))), short(float(np.quantile(values, 0.95))), short(float(values.max()))


def collect(rows: list[Row], seed: int) -> dict[str, dict[str, Runs]]:
    """Runs by scenario and policy: of the sources that were run last, and of every tag."""
    last = next((row.sources for row in reversed(rows) if "@" not in row.policy), "")
    found: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        if row.seed == seed and (row.sources == last or "@" in row.policy):
            found.setdefault(row.scenario, {}).setdefault(row.policy, []).append(row)
    return {
        name: {
            policy: Runs(
                {r.realization: r.regret for r in runs},
                {r.realization: r.late_best_share for r in runs},
                float(np.median([r.microseconds for r in runs])),
            )
            for policy, runs in policies.items()
        }
        for name, policies in found.items()
    }


def both(one: Runs, other: Runs) -> tuple[Array, Array]:
    """Regrets of the realisations that both have, in pairs."""
    common = sorted(one.regret.keys() & other.regret.keys())
    return np.array([one.regret[r] for r in common]), np.array([other.regret[r] for r in common])


def difference(one: Runs, other: Runs) -> str:
    """Mean paired difference with its 95 % interval, bold where the interval is above 0."""
    ours, theirs = both(one, other)
    if len(ours) < 2:
        return "-"
    gap = paired_difference(ours, theirs)
    text = f"{short(gap.mean, '+')} ({short(gap.low, '+')}, {short(gap.high, '+')})"
    return f"**{text}**" if gap.low > 0 else text


def ratio(one: Runs, other: Runs, n_resamples: int = 4000) -> str:
    """Ratio of mean regrets with a 95 % interval from resampled pairs."""
    ours, theirs = both(one, other)
    if len(ours) < 2:
        return "-"
    picks = np.random.default_rng(0).integers(len(ours), size=(n_resamples, len(ours)))
    low, high = np.quantile(ours[picks].mean(axis=1) / theirs[picks].mean(axis=1), [0.025, 0.975])
    return f"{ours.mean() / theirs.mean():.2f} ({low:.2f}, {high:.2f})"


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print Markdown."""
    heads = list(heads)
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def least(policies: dict[str, Runs], names: Iterable[str]) -> str | None:
    """The policy of the lowest mean regret among those that were run."""
    run = [name for name in names if name in policies]
    return min(run, key=lambda name: float(policies[name].values.mean())) if run else None


def told(runs: Runs, ours: Runs) -> str:
    """Mean regret, and the number of runs where it is another than ours: such a study was stopped on its way."""
    return runs.mean if len(runs.regret) == len(ours.regret) else f"{runs.mean} (R = {len(runs.regret)})"


def overview(found: dict[str, dict[str, Runs]]) -> None:
    """Means of every family: ours, the best specialist under each rule, linear models."""
    heads = ("scenario", "R", "ours", "specialist, Thompson", "specialist, information", "ratio to it (95 % CI)")
    rows = []
    for name, plan in PLANS.items():
        policies = found.get(name, {})
        if OURS not in policies:
            continue
        ours, cells = policies[OURS], []
        for family in (plan.specialists, plan.informed):
            best = least(policies, family)
            cells.append(f"{told(policies[best], ours)} (`{best}`)" if best else "-")
        rival = least(policies, plan.informed)
        cells.append(ratio(ours, policies[rival]) if rival else "-")
        cells += [told(policies[p], ours) if p in policies else "-" for p in LINEAR]
        rows.append((name, str(len(ours.regret)), f"**{ours.mean}**", *cells))
    print("### Mean regret ± standard error\n")
    table((*heads, *LINEAR_HEADS), rows)


def differences(found: dict[str, dict[str, Runs]]) -> None:
    """Ours minus every rival, paired."""
    rows = []
    for name, plan in PLANS.items():
        policies = found.get(name, {})
        if OURS in policies:
            rivals = [least(policies, plan.informed), *(p if p in policies else None for p in LINEAR)]
            rows.append((name, *(difference(policies[OURS], policies[p]) if p else "-" for p in rivals)))
    print("### Ours minus each rival, paired, with 95 % intervals (bold: worse beyond the interval)\n")
    table(("scenario", "best specialist, information", *LINEAR_HEADS), rows)


def tails(found: dict[str, dict[str, Runs]]) -> None:
    """Medians and bad runs: ours, and the best specialist's under the same rule."""

    def cells(runs: Runs | None) -> tuple[str, ...]:
        return ("-",) * 4 if runs is None else (*runs.tail, runs.locked)

    rows = []
    for name, plan in PLANS.items():
        policies = found.get(name, {})
        if OURS in policies:
            rival = least(policies, plan.informed)
            rows.append((name, *cells(policies[OURS]), *cells(policies[rival] if rival else None)))
    print("### Medians and bad runs\n")
    heads = ("median", "p95", "worst", "locked in")
    table(("scenario", *heads, *(f"specialist, {head}" for head in heads)), rows)


def details(found: dict[str, dict[str, Runs]]) -> None:
    """Every policy on every scenario."""
    heads = ("scenario", "policy", "R", "mean ± se", "median", "p95", "worst (run)", "locked in", "µs per step")
    rows = []
    for name, policies in found.items():
        for policy, runs in policies.items():
            median, high, top = runs.tail
            worst = max(runs.regret, key=lambda r: runs.regret[r])
            tail = median, high, f"{top} ({worst})", runs.locked
            rows.append((name, f"`{policy}`", str(len(runs.regret)), runs.mean, *tail, f"{runs.cost:.0f}"))
    print("### Every policy\n")
    table(heads, rows)


def disguises(found: dict[str, dict[str, Runs]]) -> None:
    """Ours in disguised worlds minus ours in the clean ones, paired."""
    rows = []
    for clean, names in DISGUISES.items():
        plain = found.get(clean, {}).get(OURS)
        for name in names:
            runs = found.get(name, {}).get(OURS)
            if plain and runs:
                _, high, top = runs.tail
                rows.append((name, str(len(runs.regret)), runs.mean, high, top, runs.locked, difference(runs, plain)))
    print("### Disguises\n")
    table(("scenario", "R", "mean ± se", "p95", "worst", "locked in", "minus the clean case (95 % CI)"), rows)


def tagged(found: dict[str, dict[str, Runs]]) -> None:
    """Ours today minus ours under each tag, paired."""
    rows = []
    for name, policies in found.items():
        for label, runs in policies.items():
            now = policies.get(label.partition("@")[0])
            if "@" in label and now:
                n = str(len(now.regret.keys() & runs.regret.keys()))
                locked = runs.locked, now.locked
                rows.append((name, f"`{label}`", n, runs.mean, now.mean, *locked, difference(now, runs)))
    if rows:
        print("### Before and now\n")
        heads = ("scenario", "policy", "R", "before", "now", "locked in before", "now", "now minus before (95 % CI)")
        table(heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "tables", "plan"))
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--realizations", type=int, default=None)
    parser.add_argument("--only", default="")
    parser.add_argument("--policies", default="")
    parser.add_argument("--tag", default="")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.what == "run":
        run(given)
    elif given.what == "plan":
        for name, (n, policies) in chosen(given.only).items():
            print(f"{name}: T = {scenario_of(name).horizon}, R = {n}: {', '.join(policies)}")
    else:
        names = chosen(given.only)
        found = {name: runs for name, runs in collect(read(given.results), given.seed).items() if name in names}
        for show in (overview, differences, tails, disguises, tagged, details):
            show(found)


if __name__ == "__main__":
    main()
