"""Do a million choices follow the distributions that the policies give?  Prints a chi-square p-value per policy.

python benchmarks/propensities.py [N]
"""

import sys
import time

import numpy as np
from scipy import stats

from polyarm import make_policy
from polyarm.types import AnyPolicy, Array, Mask

POLICIES = ("nonparametric", "linear", "uniform", "rb-sda", "gaussian", "dirichlet")
DIM, N_ARMS, N_REWARDS = 2, 4, 30
MASKS: tuple[Mask | None, ...] = (None, np.array([True, False, True, True]))


def p_value(policy: AnyPolicy, n: int, eligible: Mask | None, seed: int) -> tuple[Array, float]:
    """Played shares of the arms, and how well they fit the mean of the given distributions."""
    rng = np.random.default_rng(seed)
    state, x = policy.init(), np.array([0.5, -0.2])
    for t in range(N_REWARDS):
        context = rng.standard_normal(DIM)
        state = policy.update(state, context, t % N_ARMS, float(0.3 * (t % N_ARMS) + rng.standard_normal()), rng)
    played = np.bincount([policy.choose(state, x, rng, eligible).arm for _ in range(n)], minlength=N_ARMS)
    if hasattr(policy, "n_rounds"):
        given = policy.probabilities_many(state, np.tile(x, (n, 1)), rng, eligible).mean(axis=0)
    else:  # calls of 1000 draws each; contexts of one batch would share them
        given = np.mean([policy.probabilities(state, x, rng, eligible) for _ in range(max(1, n // 1000))], axis=0)
    table = np.array([played, n * given])[:, (played > 0) | (given > 0)]
    return played / n, float(stats.chi2_contingency(table).pvalue) if table.shape[1] > 1 else 1.0


if __name__ == "__main__":
    n_choices = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for number, name in enumerate(sys.argv[2:] or POLICIES):
        for eligible in MASKS:
            start = time.perf_counter()
            shares, p = p_value(make_policy(name, N_ARMS, DIM), n_choices, eligible, number)
            print(f"{name:15} {np.round(shares, 5)} p = {p:.3f}  ({time.perf_counter() - start:.0f} s)", flush=True)
