"""What the robust engine asks of a state, how it mends one whose numbers failed, and how it changes its memory."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from polyarm.errors import require
from polyarm.inference.migration import fit_memory
from polyarm.inference.state_checks import require_above, require_numbers, require_seating
from polyarm.kernels._jit import plain
from polyarm.kernels.robust.component import VAR
from polyarm.kernels.robust.records import Books, Rewards, Shared, shared_of
from polyarm.kernels.robust.repair import freeze, is_finite, recount_arm
from polyarm.kernels.robust.update import rebuild
from polyarm.models.robust import RobustMixture
from polyarm.types import Array

if TYPE_CHECKING:
    from polyarm.inference.robust import RobustState

POSITIVE = ("arm_var", "part_ratio", "noise_scale", "concentration", "reward_square")
NOT_NEGATIVE = ("n_steps", "scaled", "location_var", "tied_sd", "n_seen")
DRAWN = ("arm_var", "part_ratio", "noise_scale", "concentration", "location_var")  # the rest is what rewards decide
MOST_STEPS = 2.0**53  # beyond which counting by ones stops


def require_robust(state: "RobustState") -> None:
    """Raise unless every reward sits at a component in use, and all numbers that are read are finite."""
    require_seating(state.tables, state.labels, state.sizes, state.data, state.seats)
    require(state.n_rewards >= 0, "state.n_rewards", "at least 0", state.n_rewards)
    for name in ("centres", "hyper", "columns", "reservoir", "centre_ratio"):
        require_numbers(getattr(state, name), f"state.{name}")
    for table, size in zip(state.tables, state.sizes, strict=True):
        used = table[:, : size[0]]
        require_numbers(used, "state.tables")
        require_above(used[VAR], 0.0, "state.tables[VAR]")
    factors = np.diagonal(state.centres[:, :, : state.columns.shape[1]], axis1=1, axis2=2)
    require(bool((factors != 0).all()), "state.centres", "without zeros on the diagonal of its factors", 0.0)
    shared, features = state.shared, state.features
    require_above(values_of(shared, POSITIVE), 0.0, "state.hyper")
    require_above(state.centre_ratio, 0.0, "state.centre_ratio")
    counted = values_of(shared, NOT_NEGATIVE)
    require(bool((counted >= 0).all()), "state.hyper", "at least 0", counted)
    steps = float(shared.n_steps)
    require(steps.is_integer() and steps < MOST_STEPS, "state.hyper[STEPS]", "a number of steps", steps)
    require_above(np.array([features.unit, features.arm_var, features.part_var]), 0.0, "state.columns")
    sums = np.array([features.square_sum, features.n_nonzero, features.precision, features.spread])
    require(bool((sums >= 0).all()), "state.columns", "at least 0 where squares are summed", sums)


def values_of(shared: Shared, names: Sequence[str]) -> Array:
    """The numbers of these names, pairs one after the other."""
    return np.hstack([getattr(shared, name) for name in names])


def require_hyper(state: "RobustState", fresh: Array, model: RobustMixture) -> None:
    """Raise unless the concentration and the spread of locations are the model's where they are not learned."""
    fixed = ["concentration"] if model.concentration_prior is None else []
    if not (model.learned and model.place_shape > 0):
        fixed.append("location_var")
    if fixed:
        ours, theirs = values_of(plain(shared_of)(fresh), fixed), values_of(state.shared, fixed)
        wanted = f"{ours}, as the model's, where nothing is learned"
        require(bool((ours == theirs).all()), "state.hyper", wanted, theirs)
    if not model.learns_centre_ratio:
        ratio = state.centre_ratio.item(0)
        require(ratio == model.centre_var, "state.centre_ratio", f"{model.centre_var}, as the model's", ratio)


def migrated(state: "RobustState", memory: int | None) -> "RobustState":
    """The state for another memory, with arrays of its own; rewards beyond the memory are kept in their components."""
    tables, sizes = state.tables.copy(), state.sizes.copy()

    def keep(arm: int, row: int) -> None:
        freeze(tables[arm], state.labels[arm, 1], Rewards(state.data[arm], state.seats[arm]), row)

    data, seats = fit_memory(state.data, state.seats, sizes, memory, keep)
    return state._replace(tables=tables, sizes=sizes, data=data, seats=seats)


def mended(state: "RobustState", fresh: "RobustState", books: Books) -> bool:
    """Compute all but the seating afresh from the rewards, in place; tell whether everything is finite now.

    What is drawn starts again from the middle of its prior, as in a fresh state, in the unit of the rewards.
    """
    shared, centre, square = state.shared, state.features.centre, float(state.shared.reward_square)
    for name in DRAWN:
        setattr(shared, name, getattr(fresh.shared, name))
    shared.arm_var *= square
    shared.noise_scale *= square
    shared.off_centre = 0.0
    state.centre_ratio[:] = fresh.centre_ratio
    centre[:] = 0.0
    centre[-1] = shared.median if len(centre) > 1 else 0.0
    for arm, (table, size) in enumerate(zip(state.tables, state.sizes, strict=True)):
        rewards = Rewards(state.data[arm], state.seats[arm])
        recount_arm(table, state.labels[arm], size, rewards, centre, square)
        state.centres[arm] = 0.0
        state.centres[arm, :, -1] = centre
    rebuild(books)
    return is_finite(books)
