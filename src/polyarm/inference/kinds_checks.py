"""What the engine of every kind of reward asks of a state, and how it changes its memory."""

from typing import TYPE_CHECKING

import numpy as np

from polyarm.errors import require
from polyarm.inference import amounts_checks, links_checks, migration
from polyarm.inference.bases import SPREAD, has_bases
from polyarm.inference.state_checks import require_numbers, require_range, require_rewards
from polyarm.kernels import sticks as kernels
from polyarm.kernels import tally as tallies
from polyarm.kernels.amounts import ON, STATUS

if TYPE_CHECKING:
    from polyarm.inference.kinds_state import KindsState

N_RESTS = 3  # what the rest can be: a mixture, unknown, a constant


def require_kinds(state: "KindsState") -> None:
    """Raise unless every reward has a row and a kind, and all numbers are finite."""
    for chain in (state.rest, *state.other_chains):
        chain.require_sound()
    m, sticks = len(state.values), state.sticks
    widths = {sticks.sums.shape[1], sticks.kept.shape[1], sticks.fits.shape[1], len(sticks.shared), len(sticks.guess)}
    require(widths == {m}, "state.sticks", f"one for each of {m} values", widths)
    for name in ("sums", "kept", "fits", "shared", "guess", "columns"):
        require_numbers(getattr(sticks, name), f"state.sticks.{name}")
    factors = np.diagonal(sticks.fits[..., :-2], axis1=2, axis2=3)
    empty = (sticks.sizes[:, kernels.ROWS] == 0) & (sticks.sums[:, :, 0].sum(axis=1) == 0)
    require(bool((factors[~empty] != 0).all()), "state.sticks.fits", "without zeros on the diagonals", 0.0)
    require_numbers(state.values, "state.values")
    require(len(np.unique(state.values)) == m, "state.values", "different", state.values)
    require(0 <= state.rest_is < N_RESTS, "state.rest_is", f"from 0 to {N_RESTS - 1}", state.rest_is)
    require(state.n_rewards >= 0, "state.n_rewards", "at least 0", state.n_rewards)
    require(bool(np.isfinite(state.constant)), "state.constant", "finite", state.constant)
    require_rows(state, m)
    require_tally(state)
    require_limit(state, m)
    require_bases(state)
    links_checks.require_links(state.links)
    amounts_checks.require_amounts(state.amounts)


def require_limit(state: "KindsState", m: int) -> None:
    """Raise unless a limit has the bulk as the only kind, and a model of what is beyond it."""
    require_numbers(state.limit, "state.limit")
    side = float(state.limit[0])
    require(side in (-1.0, 0.0, 1.0), "side of state.limit", "-1, 0 or 1", side)
    if side != 0.0:
        require(m == 1 and state.rest_is == 0, "state.values", "the middle of the bulk alone", state.values)
        status = float(state.amounts.model.level[STATUS])
        require(status == ON, "state.amounts", "on where there is a limit", status)


def require_bases(state: "KindsState") -> None:
    """Raise unless every arm has a base or none has, and no limit parts rewards that are counted from bases."""
    bases = state.bases
    require_numbers(bases, "state.bases")
    require(bases.shape[1] in (0, len(state.data)), "state.bases", f"of {len(state.data)} arms or none", bases.shape)
    require(bool((bases[SPREAD] >= 0.0).all()), "spreads of state.bases", "at least 0", bases[SPREAD])
    either = state.limit[0] == 0.0 or not has_bases(bases)
    require(bool(either), "state.bases", "none where a limit parts rewards", bases)


def require_rows(state: "KindsState", m: int) -> None:
    """Raise unless the rows of every arm are as wide as the kinds ask for, and no kind is out of range."""
    D = state.sticks.fits.shape[2]
    for a, (rows, size) in enumerate(zip(state.data, state.sticks.sizes, strict=True)):
        require(rows.shape[1] == D + 2 + 2 * m, f"state.data.{a}", f"of {D + 2 + 2 * m} columns", rows.shape)
        require_range(size[:1], 0, len(rows), f"state.sticks.sizes[{a}, ROWS]")
        require_range(size[1:], 0, int(size[0]), f"state.sticks.sizes[{a}, NEXT]")
        used = rows[: size[0]]
        require_rewards(used, D - 1, f"state.data.{a}")
        kinds = used[:, D + 1]
        whole = bool((kinds == np.floor(kinds)).all() and (kinds >= 0).all() and (kinds <= m).all())
        require(whole, f"kinds in state.data.{a}", f"whole numbers from 0 to {m}", kinds)


def require_tally(state: "KindsState") -> None:
    """Raise unless the slots in use are some of those that there are."""
    require_numbers(state.tally, "state.tally")
    require_numbers(state.seen, "state.seen")
    used = float(state.seen[tallies.USED])
    require(used.is_integer() and 0 <= used <= tallies.SLOTS, "slots in use", f"from 0 to {tallies.SLOTS}", used)
    require(bool((state.seen >= 0).all()), "state.seen", "at least 0", state.seen)


def rows_fit(state: "KindsState", memory: int | None) -> bool:
    """Whether the rows of every arm are laid out as with that memory."""
    if not migration.rows_fit(state.links.data, state.links.models.sizes, memory):
        return False
    if not migration.rows_fit(state.amounts.data, state.amounts.model.sizes, memory):
        return False
    return len(state.values) == 0 or migration.rows_fit(state.data, state.sticks.sizes, memory)


def migrated(state: "KindsState", memory: int | None) -> "KindsState":
    """The state for another memory, with sums of its own; rewards beyond the memory stay in the sums for good."""
    links, amounts = links_checks.migrated(state.links, memory), amounts_checks.migrated(state.amounts, memory)
    state = state._replace(links=links, amounts=amounts)
    if len(state.values) == 0:
        return state
    sticks, data = migration.fit_sums(state.sticks, state.data, memory, kernels.recount)
    return state._replace(sticks=sticks, data=data)
