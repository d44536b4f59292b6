"""How much a Gibbs sampler moves after every reward."""

from dataclasses import dataclass

from polyarm.errors import require_count, require_number
from polyarm.renaming import renamed


@renamed(warmup_rewards="young")
@dataclass(frozen=True)
class Budget:
    """Seat the new reward, then make `moves` random single-site moves, at most 10 n: cost does not grow with n.

    An arm with n < `warmup_rewards` makes (warmup_rewards/n)^2 times as many: then a reward still changes the whole
    seating, and the chain would lag behind its posterior (docs/decisions/0022).
    `split_merge` proposals, whose cost grows with n, follow with probability min(1, moves/n).

    >>> from polyarm import make_policy
    >>> make_policy("dirichlet", 2, 2).engine.rule
    Budget(moves=64, split_merge=0, warmup_rewards=320)
    """

    moves: int = 64
    split_merge: int = 0
    warmup_rewards: int = 320

    def __post_init__(self) -> None:
        require_count(self.moves, "moves", at_least=0)
        require_count(self.split_merge, "split_merge", at_least=0)
        require_count(self.warmup_rewards, "warmup_rewards", at_least=0)

    def moves_at(self, n: int) -> int:
        """Moves after the n-th reward of an arm."""
        return max(self.moves, min(10 * n, self.moves * self.warmup_rewards**2 // n**2))


@dataclass(frozen=True)
class Sweeps:
    """Seat the new reward, then sweep until the log joint density changes by less than `tolerance`, relatively.

    The paper's Gibbs_max = G counts the seating as its first iteration: max_sweeps = G - 1.
    `split_merge` proposals follow each sweep; stopping on the joint density biases the chain a little, tolerance 0
    does not stop.

    >>> from polyarm import GibbsEngine, LinearMixture, NormalInverseGamma
    >>> arms = [LinearMixture(NormalInverseGamma(dim=2, mean=0.0, covariance=1.0, shape=1.0, scale=1.0))] * 2
    >>> GibbsEngine(arms, rule=Sweeps(max_sweeps=5)).n_arms
    2
    """

    max_sweeps: int = 9
    tolerance: float = 1e-4
    split_merge: int = 0

    def __post_init__(self) -> None:
        require_count(self.max_sweeps, "max_sweeps", at_least=0)
        require_number(self.tolerance, "tolerance", "a finite number of at least 0", lambda t: t >= 0)
        require_count(self.split_merge, "split_merge", at_least=0)
