"""Bases: what an arm pays when nothing comes of it, as the cost of an offer that nobody took.

Profit is what was paid less what the action cost.  Each arm then takes one value again and again, and for each arm it
is another one.  No value is frequent among all rewards, and the sum of a purchase and a cost is no purchase any more.
So where arms have bases of their own, rewards are counted from their arm's base: then they are 0 again and again, and
what is beyond it has kinds, amounts and all else as other rewards have.

bases (2, n_arms)  every arm's base, and the standard deviation of what is not known of it, 0 once the arm has paid it;
                   (2, 0) where rewards of all arms are counted from 0
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from polyarm.inference import windfalls
from polyarm.inference.rounding import SAME, shortest, snapped
from polyarm.types import Array, IntArray, Mask, Rng

SHARE, SHARE_LEFT = 0.3, 0.15  # of an arm's rewards that one value holds at least, to have a base and to keep it
TIED = 0.05  # of an arm's rewards that a value holds at least to be its base
FOREIGN = 0.02  # share of rewards that may be the base of another arm
EVIDENCE = 8.0  # that arms have different bases, whichever of them is taken for the common one
LOOKS = windfalls.LOOKS | frozenset(range(2, 16))  # numbers of rewards after which bases are looked for
HEARD = 8  # rewards of an arm that has a base from which it may be another, or none
YOUNG = 16  # rewards of an arm until which one beyond its base asks whether that is the base
LONGEST = 4096  # rewards, the latest, that are counted anew when bases change
UNSEEN = 10.0  # a reward beyond the base that nobody has seen yet, in ranges of the bases
BASE, SPREAD = 0, 1
NO_BASES = np.zeros((2, 0))


class Tied(NamedTuple):
    """Values that an arm's rewards take again and again, ascending, and how often each; how many rewards there are."""

    values: Array
    counts: IntArray
    n: int


def has_bases(bases: Array) -> bool:
    """Whether arms have bases of their own."""
    return bool(bases.shape[1] > 0)


def tied_values(rewards: Array) -> Tied:
    """The values that hold at least TIED of the rewards, and two of them."""
    values, counts = np.unique(rewards, return_counts=True)
    tied = counts >= max(2.0, TIED * len(rewards))
    return Tied(values[tied], counts[tied], len(rewards))


def find_bases(rewards: Sequence[Array], before: Array = NO_BASES) -> Array:
    """The bases of arms with these rewards, and with those that they had before.

    An arm of which few rewards are left, as where the past fades, keeps its base, or takes one further out.
    """
    ties, known = [tied_values(values) for values in rewards], has_bases(before)
    share = SHARE_LEFT if known else SHARE
    own = np.array([bool((tied.counts >= share * tied.n).any()) for tied in ties])
    heard = np.array([tied.n >= (HEARD if known else 2) for tied in ties])
    if 2 * own[heard].sum() < heard.sum() or not (known or own.any()):
        return NO_BASES
    side = side_of(rewards, ties, own)
    values, counts = outermost(ties, own, side)
    if known:
        had = (before[SPREAD] == 0.0) & ~heard & ~(own & (side * values < side * before[BASE]))
        values[had], own = before[BASE, had], own | had
    if len(np.unique(values[own])) < 2 or not are_apart(rewards, values, own):
        return NO_BASES
    if not known and evidence(counts, values, own) < math.log(EVIDENCE):
        return NO_BASES
    return with_guesses(rewards, values, own, side)


def outermost(ties: Sequence[Tied], own: Mask, side: float) -> tuple[Array, Array]:
    """The lowest tied value of every arm that has one of its own, or the highest, and how often it is there."""
    values, counts = np.zeros(len(ties)), np.zeros(len(ties))
    for a in np.flatnonzero(own).tolist():
        at = 0 if side > 0.0 else -1
        values[a], counts[a] = ties[a].values[at], ties[a].counts[at]
    return values, counts


def side_of(rewards: Sequence[Array], ties: Sequence[Tied], own: Mask) -> float:
    """On which side of the lowest of its tied values most of an arm's other rewards are: 1 above, as what was paid is
    above a cost, or -1.
    """
    sides = [np.sign(rewards[a] - ties[a].values[0]).sum() for a in np.flatnonzero(own).tolist()]
    return -1.0 if sum(sides) < 0.0 else 1.0


def are_apart(rewards: Sequence[Array], values: Array, own: Mask) -> bool:
    """Whether hardly any reward is the base of another arm."""
    foreign, total = 0, 0
    for a in np.flatnonzero(own).tolist():
        others = values[own & (values != values[a])]
        foreign += int(np.isin(rewards[a], others).sum())
        total += len(rewards[a])
    return foreign <= FOREIGN * total


def evidence(counts: Array | IntArray, values: Array, own: Mask) -> float:
    """Log of how improbable it is that arms of which all but one group took one value k times each, and none of them
    that of another group, share their values: 1 / (k + 1) for an arm of which nothing is known.
    """
    each = np.log1p(counts) * own
    return float(each.sum() - max(each[own & (values == value)].sum() for value in values[own]))


def with_guesses(rewards: Sequence[Array], values: Array, own: Mask, side: float) -> Array:
    """Bases of all arms: one without tied values has the outermost of those rewards that are not further from the
    others' bases than twice what these are apart, or else a guess.
    """
    middle, apart = float(np.median(values[own])), float(np.ptp(values[own]))
    bases = np.array([values, np.zeros(len(values))])
    for a in np.flatnonzero(~own).tolist():
        near = rewards[a][np.abs(rewards[a] - middle) <= 2.0 * apart]
        if len(near) > 0:
            bases[BASE, a] = side * np.min(side * near)
        else:
            bases[:, a] = middle, values[own].std()
    return bases


def with_one_more(bases: Array) -> Array:
    """Bases with that of an arm without rewards."""
    if not has_bases(bases):
        return bases
    known = bases[BASE, bases[SPREAD] == 0.0]
    return np.column_stack([bases, [np.median(known), known.std()]])


def same_bases(bases: Array, others: Array, counted: Mask) -> bool:
    """Whether arms of which rewards were counted have the same bases."""
    return bases.shape == others.shape and bool((bases[BASE] == others[BASE])[counted[: bases.shape[1]]].all())


def counted_from(base: float, reward: float, known: Array) -> float:
    """A reward counted from a base: one of the known values, where only rounding tells it from that."""
    counted = reward - base
    near = known[np.abs(known - counted) <= SAME * (abs(reward) + abs(base))]
    return float(near[0]) if len(near) > 0 else counted


def restored(counted: Array, base: float, bases: Array) -> Array:
    """Rewards that were counted from a base, as they were: arms that share a value must share it to the last digit."""
    rewards = counted + base
    sizes = np.abs(rewards) + abs(base)
    return snapped(shortest(rewards, sizes), bases[BASE], SAME * sizes)


def unseen(bases: Array) -> float:
    """Standard deviation of rewards beyond the bases while nobody has seen one."""
    return UNSEEN * float(np.ptp(bases[BASE]))


def add_to_moments(bases: Array, out: Array) -> None:
    """Turn moments (..., 2, n_arms) of rewards counted from the bases into those of the rewards."""
    if has_bases(bases):
        out[..., 0, :] += bases[BASE]
        out[..., 1, :] = np.hypot(out[..., 1, :], bases[SPREAD])


def drawn_bases(bases: Array, n_draws: int, rng: Rng) -> Array:
    """Draws of the bases, (n_draws, n_arms)."""
    return np.asarray(bases[BASE] + bases[SPREAD] * rng.standard_normal((n_draws, bases.shape[1])))
