"""A million decisions: arm frequencies against logged propensities, and every arm drawn again from its id.

python benchmarks/bandit_lottery.py [N]
"""

import sys

import numpy as np
from scipy import stats

from polyarm import Bandit
from polyarm.bandit.lottery import draw_arm

BATCH = 50_000
ARMS = ("a", "b", "c", "d")
LEAST = 5e-4


def main(n: int) -> None:
    rng = np.random.default_rng(0)
    bandit = Bandit(ARMS, 2, policy="linear", seed=11, min_propensity=LEAST)
    past = rng.normal(size=(400, 2))
    arms = rng.integers(4, size=400)
    bandit.learn_logged(past, [ARMS[a] for a in arms], past[:, 0] * (arms - 1) + rng.normal(size=400))
    bins = np.concatenate([[0], np.geomspace(2 * LEAST, 1, 12)])  # the first holds the arms at the least propensity
    expected, variance, played = np.zeros(len(bins)), np.zeros(len(bins)), np.zeros(len(bins))
    wrong = 0
    for start in range(0, n, BATCH):
        contexts = rng.normal(size=(min(BATCH, n - start), 2))
        found = bandit.choose_many(contexts, ids=[f"decision {start + i}" for i in range(len(contexts))])
        p = found.probabilities
        drawn = np.array([draw_arm(11, name, row) for name, row in zip(found.ids, p.tolist(), strict=True)])
        wrong += int((drawn != [ARMS.index(arm) for arm in found.arms]).sum())
        cell = np.searchsorted(bins, p, side="left").clip(0, len(bins) - 1)
        chosen = drawn[:, None] == np.arange(4)
        np.add.at(expected, cell, p)
        np.add.at(variance, cell, p * (1 - p))
        np.add.at(played, cell, chosen)
    used = variance > 0
    z = (played[used] - expected[used]) / np.sqrt(variance[used])
    rare = np.flatnonzero(used)[0]
    print(f"{n} decisions, {wrong} drawn otherwise from their id")
    print(f"arms at {LEAST:g}: expected {expected[rare]:.1f} plays, {played[rare]:.0f} were played")
    square = float((z**2).sum())
    print(
        f"chi-square {square:.1f} over {used.sum()} ranges of propensity, p = {stats.chi2.sf(square, used.sum()):.3f}"
    )
    assert wrong == 0
    assert stats.chi2.sf(square, used.sum()) > 1e-3


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
