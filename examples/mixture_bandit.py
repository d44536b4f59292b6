"""A bandit on the paper's scenario A, end to end: what did it learn about each arm's rewards?"""

from typing import Any

import numpy as np

import polyarm as pa

rng = np.random.default_rng(7)
policy: Any = pa.make_policy("nonparametric", n_arms=2, context_dim=2)
state = policy.init()
regret = 0.0
for _ in range(1000):
    x = rng.random(2)
    slopes = (1.0 if rng.random() < 0.5 else 2.0, 0.0 if rng.random() < 0.3 else 3.0)
    arm = policy.choose(state, x, rng).arm
    state = policy.update(state, x, arm, slopes[arm] * x.sum() + rng.standard_normal(), rng)
    regret += (2.1 - (1.5, 2.1)[arm]) * x.sum()

x = np.array([0.8, 0.8])
print(f"cumulative expected regret after 1000 rewards: {regret:.1f} (always the worse arm: 600)")
best = pa.probability_best(policy.engine, state, x, 10_000, rng)
for arm in range(2):
    learnt = policy.engine.predictive(state, x, arm)
    low, middle, high = learnt.quantile([0.05, 0.5, 0.95])
    print(f"\narm {arm} in context {x}: mean {learnt.mean():.2f}, 90 % of rewards in [{low:.2f}, {high:.2f}]")
    print(f"  best with probability {best.probability[arm]:.3f} (standard error {best.standard_error[arm]:.3f})")
    for k in np.argsort(-learnt.weights)[:4]:
        print(f"  {learnt.weights[k]:5.1%} around {learnt.location[k]:6.2f}, scale {learnt.scale[k]:.2f}")
    grid = np.linspace(-4, 10, 57)
    for y, density in zip(grid[::3], learnt.pdf(grid[::3]), strict=True):
        print(f"  {y:6.2f} {'#' * round(150 * density)}")
