"""What the exploration rule sees of every arm in one context.

The moments of predict.py are those given one state of the sampler: one seating, one draw of scales and noise variances.
Of an arm with few rewards the next state says something else, so the truth is further off than one state claims; on
scenarios of many kinds (benchmarks/one_state.py) about 1 + DOUBT / (n_a + DOUBT) times as far.  Of several chains
(inference.chains) each is as unsure: being surer cost whole runs on mixtures.

n_a    rewards of arm a, as many as its components hold
sd_a   standard deviation of its mean given the state, which the rule takes as so many times larger
noise  of its rewards, beside a typical arm's (noise.py)
"""

from polyarm.kernels._jit import inlined, kernel
from polyarm.kernels.mixture.means import n_held
from polyarm.kernels.mixture.records import K_USED
from polyarm.kernels.robust.noise import relative_noise
from polyarm.kernels.robust.predict import moments
from polyarm.kernels.robust.records import Books
from polyarm.types import Array, IntArray

DOUBT = 3.0


@inlined
def widening(components: Array, sizes: IntArray, arm: int) -> float:
    """How many times further off an arm's mean is than one state claims."""
    return 1.0 + DOUBT / (n_held(components[arm], sizes[arm, K_USED]) + DOUBT)


@kernel
def widen(components: Array, sizes: IntArray, out: Array) -> None:
    """Widen the standard deviations of moments (n, 2, n_arms)."""
    for arm in range(out.shape[2]):
        factor = widening(components, sizes, arm)
        for i in range(out.shape[0]):
            out[i, 1, arm] *= factor


@kernel
def outlook(books: Books, x: Array, out: Array, noise: Array) -> None:
    """Fill out (2, n_arms) with mean and widened sd of every arm's mean reward, and noise (n_arms,)."""
    moments(books, x, out)
    for arm in range(out.shape[1]):
        out[1, arm] *= widening(books.components, books.sizes, arm)
    relative_noise(books.components, books.sizes, books.features.shape[1], noise)
