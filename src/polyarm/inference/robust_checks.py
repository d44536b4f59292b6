"""What the robust engine asks of a state, how it mends one whose numbers failed, and how it changes its memory."""

from typing import TYPE_CHECKING

import numpy as np

from polyarm.errors import require
from polyarm.inference.migration import fit_memory
from polyarm.inference.state_checks import require_above, require_numbers, require_seating
from polyarm.kernels.finite import finite_robust
from polyarm.kernels.robust import rebuild_posteriors
from polyarm.kernels.robust_component import VAR
from polyarm.kernels.robust_places import PRECISION
from polyarm.kernels.robust_repair import freeze, recount_arm
from polyarm.kernels.robust_scales import (
    ARM_VAR,
    CENTRE,
    GAMMA,
    LAM,
    MEDIAN,
    NOISE,
    NONZERO,
    ORIGIN,
    PART_VAR,
    RHO,
    SCALED,
    SEEN,
    SPREAD,
    SQUARE,
    STEPS,
    SUM,
    TAU,
    TIED_SD,
    UNIT,
)
from polyarm.models.robust import RobustMixture
from polyarm.types import Array

if TYPE_CHECKING:
    from polyarm.inference.robust import RobustState

POSITIVE = [LAM, LAM + 1, RHO, RHO + 1, NOISE, GAMMA, SQUARE]
NOT_NEGATIVE = [STEPS, SCALED, TAU, TIED_SD, SEEN]
OBSERVED = [SQUARE, MEDIAN, ORIGIN, STEPS, SCALED, TIED_SD, SEEN]  # what rewards alone decide; the rest is drawn
MOST_STEPS = 2.0**53  # beyond which counting by ones stops


def require_robust(state: "RobustState") -> None:
    """Raise unless every reward sits at a component in use, and all numbers that are read are finite."""
    require_seating(state.tables, state.labels, state.sizes, state.data, state.seats)
    require(state.n_rewards >= 0, "state.n_rewards", "at least 0", state.n_rewards)
    for name in ("centres", "hyper", "columns", "reservoir"):
        require_numbers(getattr(state, name), f"state.{name}")
    for table, size in zip(state.tables, state.sizes, strict=True):
        used = table[:, : size[0]]
        require_numbers(used, "state.tables")
        require_above(used[VAR], 0.0, "state.tables[VAR]")
    factors = np.diagonal(state.centres[:, :, : state.columns.shape[1]], axis1=1, axis2=2)
    require(bool((factors != 0).all()), "state.centres", "without zeros on the diagonal of its factors", 0.0)
    require_above(state.hyper[POSITIVE], 0.0, "state.hyper")
    require(bool((state.hyper[NOT_NEGATIVE] >= 0).all()), "state.hyper", "at least 0", state.hyper[NOT_NEGATIVE])
    steps = float(state.hyper[STEPS])
    require(steps.is_integer() and steps < MOST_STEPS, "state.hyper[STEPS]", "a number of steps", steps)
    require_above(state.columns[[UNIT, ARM_VAR, PART_VAR]], 0.0, "state.columns")
    sums = state.columns[[SUM, NONZERO, PRECISION, SPREAD]]
    require(bool((sums >= 0).all()), "state.columns", "at least 0 where squares are summed", sums)


def require_hyper(state: "RobustState", fresh: Array, model: RobustMixture) -> None:
    """Raise unless the concentration and the spread of places are the model's where they are not learned."""
    fixed = [GAMMA] if model.concentration_prior is None else []
    if not (model.learned and model.place_shape > 0):
        fixed.append(TAU)
    same = bool((state.hyper[fixed] == fresh[fixed]).all())
    require(same, "state.hyper", f"{fresh[fixed]}, as the model's, where nothing is learned", state.hyper[fixed])


def migrated(state: "RobustState", memory: int | None) -> "RobustState":
    """The state for another memory, with arrays of its own; rewards beyond the memory are kept in their components."""
    tables, sizes = state.tables.copy(), state.sizes.copy()

    def keep(arm: int, row: int) -> None:
        freeze(tables[arm], state.labels[arm, 1], state.data[arm], state.seats[arm], row)

    data, seats = fit_memory(state.data, state.seats, sizes, memory, keep)
    return state._replace(tables=tables, sizes=sizes, data=data, seats=seats)


def mended(state: "RobustState", fresh: "RobustState", law: Array) -> bool:
    """Compute all but the seating afresh from the rewards, in place; tell whether everything is finite now.

    What is drawn starts again from the middle of its prior, as in a fresh state, in the unit of the rewards.
    """
    hyper, columns, square = state.hyper, state.columns, state.hyper[SQUARE]
    for place in range(len(hyper)):
        if place not in OBSERVED:
            hyper[place] = fresh.hyper[place]
    hyper[[LAM, LAM + 1, NOISE]] *= square
    columns[CENTRE] = 0.0
    columns[CENTRE, -1] = hyper[MEDIAN] if columns.shape[1] > 1 else 0.0
    for arm, (table, size) in enumerate(zip(state.tables, state.sizes, strict=True)):
        rows = (state.data[arm], state.seats[arm])
        recount_arm(table, state.labels[arm], size, *rows, columns[CENTRE], float(square))
        state.centres[arm] = 0.0
        state.centres[arm, :, -1] = columns[CENTRE]
    rebuild_posteriors(state.tables, state.sizes, state.centres, hyper, columns, law)
    return finite_robust(state.tables, state.sizes, state.centres, hyper, columns)
