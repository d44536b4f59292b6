"""What a long run of the Gibbs sampler leaves: the components of every kept draw, side by side."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polyarm.inference.gibbs import GibbsEngine, GibbsState
from polyarm.inference.predictive import student_mixture
from polyarm.kernels.mixture.component import COUNT, MEAN
from polyarm.models import LinearMixture, StudentMixture
from polyarm.types import Array, IntArray, Rng


@dataclass(frozen=True, eq=False)
class KeptDraws:
    """Draws of the seating of n_rewards rewards of one model, each by its components.

    columns (rows, sum of K + 1) holds the components of draw t at starts[t] to starts[t + 1] and, last, the prior; its
    rows are those of kernels.mixture.component.
    """

    model: LinearMixture
    n_rewards: int
    columns: Array
    starts: IntArray

    @cached_property
    def _engine(self) -> GibbsEngine:
        return GibbsEngine([self.model])

    @cached_property
    def _weights(self) -> Array:
        """Share of every column in the predictive distribution: its seating mass, averaged over the draws."""
        n_components = np.diff(self.starts)
        new = np.maximum(self.model.concentration + n_components * self.model.discount, 0.0).sum()
        mass = np.append(self.columns[COUNT, :-1] - self.model.discount, new)
        return np.asarray(mass / mass.sum())

    def predictive(self, context: Array) -> StudentMixture:
        """Posterior predictive distribution of a reward in this context, averaged over the draws."""
        return student_mixture(self.columns, self._weights, self.model.base.shape, context)

    @cached_property
    def coefficients(self) -> Array:
        """Posterior expectation of the coefficients, (dim,): the expected reward in context x is x'coefficients."""
        return np.asarray(self.columns[MEAN : MEAN + self.model.base.dim] @ self._weights)

    def states(self) -> Iterator[GibbsState]:
        """Every kept draw as a state of the engine, without its rewards."""
        for start, stop in zip(self.starts[:-1], self.starts[1:], strict=True):
            table = np.ascontiguousarray(self.columns[:, start:stop])[None]
            sizes = np.array([[stop - start, *[self.n_rewards] * 3]])
            state = GibbsState(table, np.zeros((1, 2, 0), np.int64), sizes, *self._engine.init()[3:5], (), ())
            self._engine._door.last = state  # made here without rewards, to be asked only
            yield state

    def draw_means(self, context: Array, rng: Rng) -> Array:
        """One posterior draw of the mean reward in this context per kept draw, (draws,)."""
        return np.concatenate([self._engine.draw_means(state, context, 1, rng)[0] for state in self.states()])

    def draw_densities(self, context: Array, grid: Array, rng: Rng) -> Array:
        """One posterior draw of the reward's density at the grid's points per kept draw, (draws, len(grid))."""
        return np.concatenate([self._engine.draw_densities(s, context, 0, grid, 1, rng) for s in self.states()])
