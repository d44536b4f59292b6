"""Full Gibbs sweeps against hand-written C++ (sweep.cpp): two columns, few components and many; needs a C++ compiler.

python benchmarks/sweep.py [--compiler g++] [--rounds 8]

Both start from the same seating of the same rewards and take turns; a round is the median of 60 sweeps, and the table
gives the median and the best of the rounds, in nanoseconds per reward and component in use.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from polyarm.experiments.bench import filled, mixture_world
from polyarm.inference import Budget, GibbsEngine
from polyarm.inference.gibbs import GibbsState
from polyarm.models import LinearMixture, NormalInverseGamma
from polyarm.types import Rng

SOURCE = Path(__file__).with_name("sweep.cpp")
N, WARM, SWEEPS, DIM = 1000, 20, 60, 2
CONCENTRATIONS = (0.1, 5.0)


def compiled(compiler: str, folder: Path) -> Path:
    """The yardstick as a program, with all that this processor can do."""
    if shutil.which(compiler) is None:
        sys.exit(f"compiler must be a C++ compiler that is installed, not {compiler!r}")
    program = folder / "sweep"
    subprocess.run([compiler, "-std=c++17", "-O3", "-march=native", str(SOURCE), "-o", str(program)], check=True)
    return program


def sweeps(engine: GibbsEngine, state: GibbsState, rng: Rng) -> tuple[GibbsState, float, float]:
    """State after a round; median nanoseconds per reward and component, mean number of components."""
    costs, sizes = [], []
    for _ in range(SWEEPS):
        before, start = engine.n_components(state)[0], time.thread_time()
        state = engine.sweep(state, 0, rng)
        elapsed, after = time.thread_time() - start, engine.n_components(state)[0]
        sizes.append(0.5 * (before + after))
        costs.append(1e9 * elapsed / N / sizes[-1])
    return state, float(np.median(costs)), float(np.mean(sizes))


def compare(program: Path, concentration: float, rounds: int) -> None:
    """Print a row for each of the two."""
    rng = np.random.default_rng(0)
    engine = GibbsEngine([LinearMixture(NormalInverseGamma(DIM), concentration)], Budget(8))
    state = filled(engine, N, rng)
    for _ in range(WARM):
        state = engine.sweep(state, 0, rng)
    world = mixture_world(N, 2, DIM, np.random.default_rng(0))  # what `filled` drew first
    rows = zip(world.contexts, world.rewards[:, 1], engine.assignments(state, 0), strict=True)
    given = "\n".join(f"{float(x[0])} {float(x[1])} {float(y)} {k}" for x, y, k in rows)
    ours, theirs = [], []
    for seed in range(rounds):
        state, cost, size = sweeps(engine, state, rng)
        ours.append((cost, size))
        head = f"{N} {seed} {WARM} {SWEEPS} 1 1 1 {concentration}"
        found = subprocess.run([program], input=f"{head}\n{given}\n", capture_output=True, text=True, check=True)
        theirs.append(tuple(float(word) for word in found.stdout.split()))
    a, b = np.array(ours), np.array(theirs)
    for name, part in (("polyarm", a), ("C++", b)):
        cost, size = part.T
        print(f"  {name:8s} {np.median(cost):6.1f} (best {cost.min():5.1f})   {size.mean():5.1f} components")
    ratio = np.median(a[:, 0] / b[:, 0])
    print(f"  ratio    {ratio:6.2f} (of the best {a[:, 0].min() / b[:, 0].min():.2f})", flush=True)


def main() -> None:
    """Compile the yardstick and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(options.compiler, Path(folder))
        for concentration in CONCENTRATIONS:
            print(f"concentration {concentration:g}: ns per reward and component", flush=True)
            compare(program, concentration, options.rounds)


if __name__ == "__main__":
    main()
