"""Which values are kinds: those that rewards take again and again."""

from typing import NamedTuple

from polyarm.inference.windfalls import NO_LIMIT, Limit
from polyarm.kernels import tally as tallies
from polyarm.types import Array

SHARE = 0.3  # of the rewards that a value holds at least to be a kind
SHARE_LEFT = 0.15  # below which it is no longer one
LEAST = 4  # rewards that it holds at least
CLICK, NONE = 1.0, 0.0  # while no other value was seen, rewards are one of these, from the first one on
FEW = 3  # where no more different values were seen, every value seen twice is a kind
MIXTURE, UNKNOWN, CONSTANT = 0, 1, 2  # what the rest is: the robust model, nothing yet, one value


class Found(NamedTuple):
    """The kinds among the rewards so far, most frequent first, and what the others are; or, where a limit parts
    windfalls from the bulk, the middle of the bulk.
    """

    values: tuple[float, ...]
    rest: int
    constant: float
    limit: Limit = NO_LIMIT


def is_kind(values: Array, y: float) -> bool:
    """Whether a reward is one of the values that are kinds."""
    return len(values) > 0 and bool((values == y).any())


def find_kinds(tally: Array, seen: Array, values: Array, may_be_clicks: bool = True) -> Found:
    """The kinds given how often each value was seen and which are kinds already."""
    n, lost, used = float(seen[tallies.N]), float(seen[tallies.LOST]), int(seen[tallies.USED])
    counts = sorted(((float(c), float(v)) for v, c in tally[:used]), key=lambda pair: -pair[0])
    few = lost == 0 and used <= FEW
    if may_be_clicks and few and counts and all(v in (CLICK, NONE) for _, v in counts):
        return Found((NONE,), CONSTANT, CLICK) if set(values) == {NONE} else Found((CLICK,), CONSTANT, NONE)
    if few:
        kinds = [v for c, v in counts if c >= 2][: max(used - 1, 1)]
        if used == 2:  # which of the two is the more frequent does not matter
            kinds = [v for _, v in counts if is_kind(values, v)][:1] or kinds
    else:
        kinds = [v for c, v in counts if c >= LEAST and c + lost >= n * (SHARE_LEFT if is_kind(values, v) else SHARE)]
    others = [v for _, v in counts if v not in kinds]
    if not kinds:
        return Found((), MIXTURE, 0.0)
    if lost > 0 or len(others) > 1:
        return Found(tuple(kinds), MIXTURE, 0.0)
    return Found(tuple(kinds), CONSTANT if others else UNKNOWN, others[0] if others else 0.0)
