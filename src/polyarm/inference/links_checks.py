"""What models of a link ask of a state, and how it changes its memory."""

from typing import TYPE_CHECKING

import numpy as np

from polyarm.errors import require
from polyarm.inference.links_grid import CELLS, MOST_MARKS, n_cells
from polyarm.inference.migration import fit_sums
from polyarm.inference.state_checks import SLACK, require_above, require_numbers, require_range, require_rewards
from polyarm.kernels import links as kernels
from polyarm.kernels.generalized import EDGE
from polyarm.kernels.links import ALIVE, FAMILIES, HIGHEST, LAM, LOWEST, MARKS, STATUS, STEP, VARIANCE
from polyarm.kernels.sticks import NONZERO, UNIT
from polyarm.types import Array

if TYPE_CHECKING:
    from polyarm.inference.links import LinkState

MOST_DISPERSED = 100.0
HIGH_LEVEL = 50.0  # of the logarithm of a typical count


def require_links(state: "LinkState") -> None:
    """Raise unless every reward has a row, and all numbers are finite and in their ranges."""
    links = state.models
    for name in ("sums", "kept", "fits", "guess", "cuts", "level", "grid", "columns"):
        require_numbers(getattr(links, name), f"state.links.{name}")
    require_shares(state.weights, "state.weights")
    require_shares(state.dispersions, "state.dispersions")
    families = links.fits.shape[1]
    widths = {links.sums.shape[1], links.kept.shape[1], families, len(links.guess)}
    require(widths in ({0}, {FAMILIES}), "state.links", f"of no or {FAMILIES} families", widths)
    require_above(links.columns[UNIT], 0.0, "state.links.columns")
    require(bool((links.columns[NONZERO] >= 0).all()), "state.links.columns", "counts of at least 0", links.columns)
    require(float(links.grid[STATUS]) in (0.0, 1.0), "state.links.grid", "on or off", links.grid[STATUS])
    for a, (rows, size) in enumerate(zip(state.data, links.sizes, strict=True)):
        require_range(size[:1], 0, len(rows), f"state.links.sizes[{a}, ROWS]")
        require_range(size[1:], 0, int(size[0]), f"state.links.sizes[{a}, NEXT]")
        require_rewards(rows[: size[0]], links.fits.shape[2] - 1, f"state.data.{a}")
    if families:
        require_models(state)
    else:
        require(float(state.weights[0]) == 1.0, "state.weights", "1 where there is one model", state.weights)


def require_models(state: "LinkState") -> None:
    """Raise unless grid, cut points and what the arms share can be those of counts and marks."""
    links = state.models
    low, high, step = (float(links.grid[i]) for i in (LOWEST, HIGHEST, STEP))
    require(links.grid[STATUS] == 0.0 and step > 0.0, "state.links.grid", "on with a step above 0", links.grid)
    require(0.0 <= (high - low) / step <= CELLS + 1, "cells of state.links.grid", f"0 to {CELLS}", (high - low) / step)
    flags = links.grid[ALIVE:]
    require(bool(np.isin(flags, (0.0, 1.0)).all()), "models alive in state.links.grid", "0 or 1 each", flags)
    alive = flags > 0
    require(bool((alive | (state.weights[1:] == 0)).all()), "state.weights", "0 where a model is none", state.weights)
    if alive[MARKS]:
        require(
            len(links.cuts) + 1 == n_cells(links.grid) <= MOST_MARKS, "state.links.cuts", "one per step", links.cuts
        )
        rising = bool((np.diff(links.cuts) > 0).all() and (np.abs(links.cuts) <= 2 * EDGE).all())
        require(rising, "state.links.cuts", "rising", links.cuts)
    if alive[kernels.COUNTS]:
        require(0.0 <= high / step <= CELLS + 1, "largest count", f"0 to {CELLS}", high / step)
    require_above(links.guess[:, (VARIANCE, LAM)], 0.0, "variances in state.links.guess")
    require_above(np.diagonal(links.fits[..., :-1], axis1=2, axis2=3), 0.0, "diagonals of state.links.fits")
    require(bool((links.sums[:, :, 0] >= 0).all()), "state.links.sums", "counts of at least 0", links.sums[:, :, 0])
    dispersion, level = (float(v) for v in links.level)
    require(0.0 <= dispersion <= MOST_DISPERSED, "dispersion", f"from 0 to {MOST_DISPERSED:g}", dispersion)
    require(abs(level) <= HIGH_LEVEL, "state.links.level", f"at most {HIGH_LEVEL:g} in size", level)


def require_shares(weights: Array, name: str) -> None:
    """Raise unless the numbers are probabilities that sum to one."""
    good = bool((weights >= 0).all()) and abs(float(weights.sum()) - 1.0) <= SLACK
    require(good, name, "probabilities that sum to 1", weights)


def migrated(state: "LinkState", memory: int | None) -> "LinkState":
    """The state for another memory, with sums of its own; rewards beyond the memory stay in the sums for good."""
    models, data = fit_sums(state.models, state.data, memory, kernels.recount)
    return state._replace(models=models, data=data)
