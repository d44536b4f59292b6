"""Other libraries beside the default policy, in the same simulated worlds: regret and microseconds per interaction.

    python -m benchmarks.peers install            their own environment, in results/peers
    python -m benchmarks.peers run --realizations 20
    python -m benchmarks.peers table

Every library gets the same contexts with a one added (an intercept), the same table of rewards, and its own usual
settings for contextual bandits; no setting was tuned on these problems, ours neither.  Time is processor time of
deciding and learning, one decision at a time.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from polyarm.environments import make_scenario
from polyarm.policies import make_policy
from polyarm.tables import Table, to_markdown
from polyarm.types import World

FOLDER = Path("results/peers")
PACKAGES = ("vowpalwabbit==9.11.9", "bayesianbandits==1.5.0", "mabwiser==2.7.4", "river==0.26.1")
PROBLEMS = ("linear", "heavy-tailed", "mixture-b", "clicks", "purchases", "wine")
OURS = ("nonparametric", "linear")
PEERS = (
    "vw-squarecb",
    "vw-epsilon",
    "bayesianbandits-ts",
    "bayesianbandits-ids",
    "mabwiser-lints",
    "mabwiser-linucb",
    "river-linucb",
)
SEED, MOST_STEPS = 90_000, 1000


def world_of(problem: str, realization: int) -> World:
    """World of that number; it depends on nothing else."""
    scenario = make_scenario(problem)
    rng = np.random.default_rng([SEED, PROBLEMS.index(problem), realization])
    return scenario.environment.sample(min(scenario.horizon, MOST_STEPS), rng)


def play_ours(name: str, world: World, seed: int) -> tuple[float, float]:
    """Regret, and microseconds per interaction, of one of our policies; the default adds an intercept itself."""
    steps, n_arms = world.rewards.shape
    contexts = world.contexts if name == "nonparametric" else np.column_stack([world.contexts, np.ones(steps)])
    policy, rng = make_policy(name, n_arms, contexts.shape[1]), np.random.default_rng([seed, 1])
    state, arms = policy.init(), np.empty(steps, np.int64)
    begun = time.process_time()
    for t in range(steps):
        arms[t] = arm = policy.choose(state, contexts[t], rng).arm
        state = policy.update(state, contexts[t], arm, float(world.rewards[t, arm]), rng)
    return regret_of(world, arms), 1e6 * (time.process_time() - begun) / steps


def regret_of(world: World, arms: np.ndarray) -> float:
    """Sum of expected rewards lost."""
    return float((world.means.max(axis=1) - world.means[np.arange(len(arms)), arms]).sum())


def install() -> None:
    """Make an environment for the other libraries."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", str(FOLDER / "venv")], check=True)
    pip = [str(FOLDER / "venv/bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *PACKAGES], check=True)


def run(problems: list[str], realizations: int, python: Path) -> None:
    """Play what has not been played; results are kept one line each, so that a run can be continued."""
    kept = FOLDER / "results.jsonl"
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = kept.read_text().splitlines() if kept.exists() else []
    done = {(row["problem"], row["policy"], row["realization"]) for row in map(json.loads, lines)}
    player = Path(__file__).with_name("peers_player.py")
    with kept.open("a") as out:

        def note(problem: str, policy: str, realization: int, regret: float, microseconds: float) -> None:
            row = {"problem": problem, "policy": policy, "realization": realization}
            out.write(json.dumps({**row, "regret": regret, "microseconds": microseconds}) + "\n")
            out.flush()

        for problem in problems:
            for realization in range(realizations):
                world = world_of(problem, realization)
                for name in OURS:
                    if (problem, name, realization) not in done:
                        note(problem, name, realization, *play_ours(name, world, realization))
                wanted = [name for name in PEERS if (problem, name, realization) not in done]
                if not wanted:
                    continue
                path = FOLDER / "world.npz"
                np.savez(path, contexts=world.contexts, rewards=world.rewards)
                command = [str(python), str(player), str(path), str(realization), *wanted]
                for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
                    found = json.loads(line)
                    regret = regret_of(world, np.array(found["arms"]))
                    note(problem, found["policy"], realization, regret, found["microseconds"])
                print(f"{problem} {realization + 1}/{realizations}", file=sys.stderr)


def table() -> list[Table]:
    """Mean regret with its standard error, and the median of the microseconds."""
    rows = [json.loads(line) for line in (FOLDER / "results.jsonl").read_text().splitlines()]
    problems = [p for p in PROBLEMS if any(row["problem"] == p for row in rows)]
    regrets, times = [], []
    for policy in (*OURS, *PEERS):
        found, spent = [], []
        for problem in problems:
            mine = [row for row in rows if (row["problem"], row["policy"]) == (problem, policy)]
            values = np.array([row["regret"] for row in mine])
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            found.append(f"{values.mean():.0f} ± {error:.0f}" if len(values) else "-")
            spent.append(f"{np.median([row['microseconds'] for row in mine]):.0f}" if mine else "-")
        regrets.append((policy, *found))
        times.append((policy, *spent))
    counts = {p: len({row["realization"] for row in rows if row["problem"] == p}) for p in problems}
    heads = ("policy", *(f"{p} ({counts[p]})" for p in problems))
    title = f"Cumulative regret, mean and standard error; worlds in brackets; seed {SEED}"
    return [
        Table(title, heads, tuple(regrets)),
        Table("Microseconds of deciding and learning, median over the worlds", heads, tuple(times)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("install", "run", "table"))
    parser.add_argument("--realizations", type=int, default=20)
    parser.add_argument("--problem", choices=PROBLEMS, action="append")
    parser.add_argument(
        "--python", type=Path, default=FOLDER / "venv/bin/python", help="where the libraries are installed"
    )
    options = parser.parse_args()
    if options.what == "install":
        install()
    elif options.what == "run":
        run(options.problem or list(PROBLEMS), options.realizations, options.python)
    else:
        for each in table():
            print(f"\n{each.title}\n\n{to_markdown(each)}")


if __name__ == "__main__":
    main()
