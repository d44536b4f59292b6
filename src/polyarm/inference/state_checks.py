"""What a state must hold so that no kernel can leave its arrays or meet a number that is none.

Each check looks at one kind of bookkeeping and raises `state.<field> must be <rule>, got <value>`.  Places of a table
beyond those in use are scratch and may hold anything.
"""

from collections.abc import Sequence

import numpy as np

from polyarm.errors import CONTEXT_LIMIT, REWARD_LIMIT, InvalidArgument, require, shown
from polyarm.kernels.lanes import LANES
from polyarm.kernels.mixture.component import COEF, COUNT, LOO, SCALE
from polyarm.kernels.mixture.records import NEXT, ROWS
from polyarm.types import Array, IntArray

ROOT_LIMIT = 1e200  # a root grows by at most 1e100 per reward, so that below this it stays finite for good
DATA_LIMIT = 10 * REWARD_LIMIT  # rewards may be counted from one of the largest
SLACK = 1e-6  # rounding of soft counts and of weights


def require_range(values: IntArray, low: int, high: int, name: str) -> None:
    """Raise unless every entry is from low to high."""
    if values.size and (values.min() < low or values.max() > high):
        wrong = values[(values < low) | (values > high)]
        raise InvalidArgument(f"{name} must be from {low} to {high}, got {wrong.flat[0]}")


def require_numbers(values: Array, name: str, limit: float = np.inf) -> None:
    """Raise unless every entry is a finite number, at most `limit` in size."""
    good = np.isfinite(values) if limit == np.inf else np.abs(values) <= limit
    if not good.all():
        rule = "finite" if limit == np.inf else f"at most {limit:g} in size"
        raise InvalidArgument(f"{name} must be {rule}, got {values[~good].flat[0]}")


def require_rewards(rows: Array, n_columns: int, name: str) -> None:
    """Raise unless the first columns of kept rewards can be a context's and the others are of a reward's size."""
    require_numbers(rows[:, :n_columns], name, 10 * CONTEXT_LIMIT)
    require_numbers(rows[:, n_columns:], name, DATA_LIMIT)


def require_above(values: Array, low: float, name: str) -> None:
    """Raise unless every entry is a finite number above `low`."""
    good = np.isfinite(values) & (values > low)
    if not good.all():
        raise InvalidArgument(f"{name} must be finite and above {low:g}, got {values[~good].flat[0]}")


def require_permutation(labels: IntArray, places: IntArray, name: str) -> None:
    """Raise unless `labels` holds every place once and `places` is its inverse."""
    n = len(labels)
    require_range(labels, 0, n - 1, name)
    require(bool((places[labels] == np.arange(n)).all()), name, "a permutation and its inverse", labels)
    require_range(places, 0, n - 1, name)


def require_lanes(capacity: int, name: str) -> None:
    """Raise unless components can be scored LANES at a time."""
    require(capacity > 0 and capacity % LANES == 0, name, f"of a capacity that is a multiple of {LANES}", capacity)


def require_roots(roots: Array, name: str = "state.roots") -> None:
    """Raise unless every square-root information (..., d+1, d+1) is finite and its first d rows can be solved."""
    require_numbers(roots, name, ROOT_LIMIT)
    diagonal = np.diagonal(roots, axis1=-2, axis2=-1)[..., :-1]
    require(bool((diagonal != 0).all()), name, "without zeros on its diagonal", 0.0)


def require_components(table: Array, n_used: int, name: str) -> None:
    """Raise unless the components in use (kernels.mixture.component) are finite; no mass has minus infinity."""
    used = table[:, :n_used]
    require_above(used[SCALE], 0.0, f"{name}[SCALE]")
    logs = used[[COEF, LOO]]
    require(not bool((np.isnan(logs) | (logs == np.inf)).any()), f"{name}[COEF]", "numbers", logs)
    require_numbers(used[:COEF], name)
    require_numbers(used[LOO + 1 :], name)


def require_seating(
    tables: Array,
    labels: IntArray,
    sizes: IntArray,
    data: Sequence[Array],
    seats: Sequence[IntArray],
) -> None:
    """Raise unless every arm's rewards sit at components in use, which know how many they are."""
    n_arms, capacity = len(tables), tables.shape[2]
    require_lanes(capacity, "state.tables")
    require(labels.shape[2] == capacity, "state.labels", f"of {capacity} places as the tables", labels.shape)
    require_range(sizes, 0, np.iinfo(np.int64).max, "state.sizes")
    require_range(sizes[:, 0], 0, capacity, "state.sizes[:, 0]")
    for a in range(n_arms):
        K, n = int(sizes[a, 0]), int(sizes[a, ROWS])
        require(len(data[a]) == len(seats[a]) > 0, f"state.seats.{a}", f"of length {len(data[a])}", len(seats[a]))
        require_range(sizes[a, ROWS : ROWS + 1], 0, len(seats[a]), f"state.sizes[{a}, ROWS]")
        require_range(sizes[a, NEXT : NEXT + 1], 0, n, f"state.sizes[{a}, NEXT]")
        require_permutation(labels[a, 0], labels[a, 1], f"state.labels[{a}]")
        require_rewards(data[a][:n], data[a].shape[1] - 2, f"state.data.{a}")
        require_at_places(seats[a][:n], labels[a, 1], tables[a, COUNT, :K], f"state.seats.{a}")


def require_at_places(z: IntArray, place: IntArray, counts: Array, name: str) -> None:
    """Raise unless every label belongs to a component in use whose count has room for all that carry it."""
    require_range(z, 0, len(place) - 1, name)
    require_above(counts, 0.0, "count of a component")
    if len(z):
        require(len(counts) > 0, name, "empty where no component is in use", len(z))
        at = place[z]
        require_range(at, 0, len(counts) - 1, f"place of {name}")
        short = np.bincount(at, minlength=len(counts)) > counts + SLACK
        if short.any():
            raise InvalidArgument(f"count of a component must be that of its rewards, got {shown(counts[short][0])}")
