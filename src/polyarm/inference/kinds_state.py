"""What the engine of every kind of reward has learnt."""

from typing import NamedTuple

import numpy as np

from polyarm.inference.amounts import AmountState
from polyarm.inference.amounts import is_on as is_amounts_on
from polyarm.inference.bases import BASE, counted_from, has_bases
from polyarm.inference.chains import Chains
from polyarm.inference.kinds_checks import require_kinds
from polyarm.inference.kinds_found import CLICK, NONE, is_kind
from polyarm.inference.links import LinkState, Reward, is_on
from polyarm.inference.robust import RobustState
from polyarm.inference.windfalls import Limit, is_windfall
from polyarm.kernels import tally as tallies
from polyarm.kernels.sticks import Sticks
from polyarm.types import Array, packed


class KindsState(NamedTuple):
    """The rest's state, the sticks with every arm's rewards, and the values that rewards took.

    Sticks and data are laid out as in kernels.sticks, tally and seen as in kernels.tally; without kinds there are no
    sticks and the rest's state holds the rewards.  rest_is tells whether the rest is a mixture, unknown or a constant.
    links holds the models of counts and marks beside all of this, amounts the other model of the rest.
    other_chains are those that learn the rest beside the first one, as if nothing was learnt once that one is alone.
    Where a limit (side, at) parts windfalls from the bulk of the rewards (see windfalls), the only kind is the bulk:
    sticks tell the two apart, rest learns the bulk, amounts the windfalls, and values is the bulk's middle.
    Where arms have bases of their own (see bases), all of this is of rewards counted from their arm's base.
    """

    rest: RobustState
    sticks: Sticks
    data: tuple[Array, ...]
    values: Array
    rest_is: int
    constant: float
    tally: Array
    seen: Array
    n_rewards: int
    links: LinkState
    amounts: AmountState
    other_chains: Chains
    limit: Array
    bases: Array
    made_with: str = ""

    def after(self, rest: RobustState, n: int) -> "KindsState":
        """The state after n rewards, the last of which the rest has learnt: `_replace` takes ten times as long."""
        return packed(KindsState, (rest, *self[1:8], n, *self[9:]))

    def require_sound(self) -> None:
        """Raise unless every reward has a row and a kind, and all numbers are finite."""
        require_kinds(self)

    @staticmethod
    def growing_axes() -> dict[str, tuple[int, ...]]:
        """Axes that grow: rewards, and what depends on the number of kinds."""
        return {"data": (0, 1), "values": (0,), "bases": (1,)}

    @staticmethod
    def added_fields() -> dict[str, int]:
        """Fields that earlier layouts of states did not have."""
        return {"links": 1, "amounts": 2, "other_chains": 4, "limit": 6, "bases": 7}


def is_plain(state: KindsState) -> bool:
    """Whether the robust model is the only one, by however many chains."""
    return len(state.values) == 0 and not is_on(state.links) and not is_amounts_on(state.amounts)


def is_parted(state: KindsState) -> bool:
    """Whether windfalls are apart from the bulk of the rewards."""
    return bool(state.limit[0] != 0.0)


def is_known(values: Array, limit: Array | Limit, y: float) -> bool:
    """Whether a reward is of a kind: one of the values, or where a limit parts rewards, of the bulk."""
    return is_kind(values, y) if limit[0] == 0.0 else not is_windfall(limit, y)


def some_rewards(rest: RobustState) -> Array:
    """A sample of the rewards that the robust model has learnt: all of them while they are few."""
    return np.asarray(rest.reservoir[: rest.n_rewards] + rest.shared.origin)


def counts_seen(state: KindsState) -> Array:
    """Values that were seen and how often, (n, 2), as far as the tally has room for them."""
    return state.tally[: int(state.seen[tallies.USED])]


def values_seen(state: KindsState) -> Array:
    """Values that were seen, as far as the tally has room for them."""
    return counts_seen(state)[:, tallies.VALUE]


def are_clicks(state: KindsState) -> bool:
    """Whether nothing but 0 and 1 was seen."""
    return bool(state.seen[tallies.LOST] == 0 and np.isin(values_seen(state), (CLICK, NONE)).all())


def counted(state: KindsState, reward: Reward) -> Reward:
    """A reward counted from its arm's base."""
    if not has_bases(state.bases):
        return reward
    base = float(state.bases[BASE, reward.arm])
    return reward._replace(value=counted_from(base, reward.value, values_seen(state)))


def in_turn(rewards: list[tuple[Array, Array]]) -> list[Reward]:
    """Rewards of all arms, those of different arms taken in turn, oldest first."""
    dated: list[tuple[float, Reward]] = []
    for arm, (contexts, values) in enumerate(rewards):
        n = len(values)
        dated += [
            ((i + 0.5) / n, Reward(arm, x, float(y))) for i, (x, y) in enumerate(zip(contexts, values, strict=True))
        ]
    return [reward for _, reward in sorted(dated, key=lambda pair: pair[0])]
