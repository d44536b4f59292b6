"""What the exploration rule sees of every arm in one context.

The moments of predict.py are those given one state of the sampler: one seating, one draw of scales and noise variances.
Of an arm with few rewards the next state says something else, so the truth is further off than one state claims; on
scenarios of many kinds (benchmarks/one_state.py) about 1 + DOUBT / (n_a + DOUBT) times as far.  Of several chains
(inference.chains) each is as unsure: being surer cost whole runs on mixtures.

A reward far from the line that an arm is thought to have is noise to the model, or the arm is a stranger: far better or
worse than what the others have taught.  Of an arm most of whose rewards are far, m of them, two or more, and all about
as far, the second is taken to be true with probability w = 1 - 2^-(m - 1), and its mean is then that of its rewards:

mean    <- mean + w d,  variance <- variance + w (1 - w) d^2 + w v,   d = sum of the far residuals / n_a,
           v their variance / m

n_a    rewards of arm a, as many as its components hold
sd_a   standard deviation of its mean given the state, which the rule takes as so many times larger
noise  of its rewards, beside a typical arm's (noise.py)
"""

import math

import numpy as np

from polyarm.kernels._jit import inlined, kernel
from polyarm.kernels.mixture.means import n_held
from polyarm.kernels.mixture.records import K_USED
from polyarm.kernels.robust.component import COUNT, VAR
from polyarm.kernels.robust.evidence import OUTLYING, misses
from polyarm.kernels.robust.noise import relative_noise
from polyarm.kernels.robust.predict import moments
from polyarm.kernels.robust.records import Arms, Books, arms_of, n_features
from polyarm.types import Array, IntArray

DOUBT = 3.0
FEWEST = 2.0  # far rewards of a stranger: one is an outlier, as a tenth of the first rewards may be
ALIKE = 0.9  # share of their mean square that the square of their mean has at least: they are all about as far


@inlined
def widening(components: Array, sizes: IntArray, arm: int) -> float:
    """How many times further off an arm's mean is than one state claims."""
    return 1.0 + DOUBT / (n_held(components[arm], sizes[arm, K_USED]) + DOUBT)


@inlined
def strangeness(arms: Arms, arm: int, t: Array) -> tuple[float, float]:
    """What is added to mean and variance of an arm that may be a stranger."""
    T, D, S2 = arms.components[arm], n_features(arms), arms.shared.reward_square
    n, n_far, total, square = 0.0, 0.0, 0.0, 0.0
    for k in range(arms.sizes[arm, K_USED]):
        n += T[COUNT, k]
        if T[VAR, k] > S2:  # else its rewards are near its own line, which is no noise
            missed = misses(T, k, arms.centres[arm, :, D], t)
            if missed > OUTLYING * T[COUNT, k] * S2:
                n_far += T[COUNT, k]
                total += t[D - 1]
                square += missed
    alike = total * total >= ALIKE * n_far * square
    if 2.0 * n_far <= n or n_far < FEWEST or not alike or arms.prior.intercept == 0.0:
        return 0.0, 0.0
    w, d, mean = 1.0 - 0.5 ** (n_far - 1.0), total / n, total / n_far
    return w * d, w * (1.0 - w) * d * d + w * max(square / n_far - mean * mean, 0.0) / n_far


@inlined
def look(arms: Arms, arm: int, t: Array, out: Array) -> None:
    """Turn moments of an arm's mean, (n, 2, n_arms), into what the rule sees."""
    factor = widening(arms.components, arms.sizes, arm)
    shift, variance = strangeness(arms, arm, t)
    for i in range(out.shape[0]):
        out[i, 1, arm] *= factor
        if shift != 0.0:
            out[i, 0, arm] += shift
            out[i, 1, arm] = math.sqrt(out[i, 1, arm] * out[i, 1, arm] + variance)


@kernel
def widen(books: Books, out: Array) -> None:
    """Turn moments (n, 2, n_arms) into what the rule sees."""
    arms = arms_of(books)
    t = np.empty(n_features(arms))
    for arm in range(out.shape[2]):
        look(arms, arm, t, out)


@kernel
def outlook(books: Books, x: Array, out: Array, noise: Array) -> None:
    """Fill out (2, n_arms) with mean and widened sd of every arm's mean reward, and noise (n_arms,)."""
    moments(books, x, out)
    widen(books, out.reshape((1, 2, out.shape[1])))
    relative_noise(books.components, books.sizes, books.features.shape[1], noise)
