"""Windfalls: rewards far beyond all others on one side, and rare beside them, as a large order or a heavy loss.

To the robust mixture a few rewards far out are noise around the arm's line, whose mean is 0.  Where all of them are on
one side they are no noise but what decides.  So they are told apart by a limit: rewards beyond it are of a kind of
their own, with probabilities and amounts that depend on the context, and the mixture learns the others, the bulk.

e  residuals of rewards from their arm's main line, counted from their median in robust standard deviations; or from
   lines of least squares common to all arms, where these are nearer: a rare column may explain what is far

A distance c parts windfalls from the bulk where hardly any e is near it, and signs beyond it are not those of a fair
coin: their probability where one in fifty is on the other side is so many times that under a fair coin.  That ratio is
a test martingale: at one distance and on one side noise of both signs ever reaches EVIDENCE with probability
1 / EVIDENCE at most (Ville).
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm.inference.robust import RobustState
from polyarm.kernels.mixture.records import K_USED
from polyarm.kernels.robust.component import COUNT, MEAN
from polyarm.types import Array, IntArray, Mask

FEWEST = 8  # windfalls that are known before they are told apart
NEAREST = 5.0  # robust standard deviations: no distance below this parts them from the bulk
GAP = 1.25  # factor on both sides of a distance within which there are hardly any rewards
MISFITS = 8  # there is at most one reward in the gap, or on the wrong side of the limit, for so many windfalls
MOST = 0.6  # share of all rewards beyond which windfalls that were known are no longer rare
WORTH = 0.5  # robust standard deviations that windfalls add to the mean reward; once they are known 0.1 is enough
WORTH_LEFT = 0.1
OPPOSITE = 0.02  # share of windfalls' outliers on the other side
EVIDENCE = 200.0  # for signs that are not those of a fair coin: eight on one side
EVIDENCE_LEFT = 20.0  # below which what was taken for windfalls are outliers: eight on one side and one on the other
YOUNG = 64  # windfalls until which every reward far out on the other side asks whether they are any
LOOKS = frozenset(math.ceil(16 * 1.25**i) for i in range(150))  # numbers of rewards after which they are looked at
NEARER = 0.25  # the limit lies nearer to the bulk than to the windfalls: amounts vary more
ROBUST_SD = 1.4826  # standard deviation of a normal distribution over its median absolute deviation


class Limit(NamedTuple):
    """Rewards y with side * y > side * at are windfalls; without a side none are."""

    side: float
    at: float


NO_LIMIT = Limit(0.0, 0.0)


class Seen(NamedTuple):
    """Rewards of all arms, and their residuals from their arm's main line, counted from the arm's median: an arm that
    is far from all others has no windfalls; then the contexts and arms that they are from.
    """

    rewards: Array
    residuals: Array
    contexts: Array
    arms: IntArray


def is_windfall(limit: Array | Limit, reward: float) -> bool:
    """Whether a reward is beyond the limit."""
    side, at = limit
    return bool(side * reward > side * at)


def is_opposite(limit: Array | Limit, middle: float, reward: float) -> bool:
    """Whether a reward is as far from the middle of the bulk as windfalls are, on the other side."""
    return is_windfall(limit, 2.0 * middle - reward)


def are_windfalls(limit: Array | Limit, rewards: Array) -> Mask:
    """The same for many rewards."""
    side, at = limit
    return np.asarray(side * rewards > side * at)


def is_looked_at(n: int) -> bool:
    """Whether windfalls may be told apart, or no longer, at the n-th reward."""
    return n in LOOKS


def residuals_of(rest: RobustState, arm: int, contexts: Array, rewards: Array) -> Array:
    """How far an arm's rewards are from the line of its largest component; none without components."""
    K, D = int(rest.sizes[arm, K_USED]), rest.features.unit.shape[0]
    if K == 0 or len(rewards) == 0:
        return np.full(len(rewards), np.nan)
    table = rest.tables[arm]
    component = table[:, int(np.argmax(table[COUNT, :K]))]
    features = np.ones((len(contexts), D))
    d = contexts.shape[1]
    features[:, :d] = contexts - rest.features.base[:d]
    residuals = rewards - float(rest.shared.origin) - features @ component[MEAN : MEAN + D]
    return np.asarray(residuals - np.median(residuals))


def find_limit(seen: Seen) -> Limit:
    """The limit that parts windfalls from the bulk, if there are any."""
    known = np.isfinite(seen.residuals)
    if known.sum() < FEWEST or limit_of(seen.rewards[known], seen.residuals[known]) == NO_LIMIT:
        return NO_LIMIT
    some = Seen(seen.rewards[known], seen.residuals[known], seen.contexts[known], seen.arms[known])
    return limit_of(some.rewards, unexplained(some))


def limit_of(rewards: Array, residuals: Array) -> Limit:
    """The limit that parts rewards with these residuals."""
    e = in_robust_sds(residuals, residuals)
    found = [limit for side in (1.0, -1.0) if (limit := limit_on(side, rewards, e)) is not None]
    return found[0] if found else NO_LIMIT


def unexplained(seen: Seen) -> Array:
    """Residuals, or those from lines of least squares with slopes that are common to all arms, whichever are nearer."""
    x, y = seen.contexts.copy(), seen.rewards.copy()
    for arm in np.unique(seen.arms):
        of_arm = seen.arms == arm
        x[of_arm] -= x[of_arm].mean(axis=0)
        y[of_arm] -= y[of_arm].mean()
    with np.errstate(all="ignore"):
        plain = y - x @ np.linalg.lstsq(x, y, rcond=None)[0] if np.isfinite(x).all() and np.isfinite(y).all() else y
    plain -= np.median(plain)
    return np.where(np.abs(plain) < np.abs(seen.residuals), plain, seen.residuals)


def still_parts(limit: Limit, seen: Seen, n_rewards: int) -> bool:
    """Whether windfalls that are known are still apart from the bulk, on one side and worth it; that they are no longer
    seen says nothing where only some of all rewards can still move.
    """
    whole = len(seen.rewards) >= n_rewards
    far = are_windfalls(limit, seen.rewards)
    known = np.isfinite(seen.residuals)
    bulk, windfalls = seen.residuals[known & ~far], seen.residuals[known & far]
    if len(bulk) == 0 or len(windfalls) == 0:
        return bool(far.any()) or not whole  # no arm has both
    beyond = limit.side * in_robust_sds(windfalls, bulk)
    around = limit.side * in_robust_sds(bulk, bulk)
    distance = max(NEAREST, float(np.quantile(beyond, 0.1)))
    misfits = int((around > distance / GAP).sum())
    rare = far.sum() <= MOST * len(seen.rewards)
    worth_it = not whole or beyond.sum() >= WORTH_LEFT * len(seen.rewards)
    apart = 2 * misfits * MISFITS <= far.sum()
    told = evidence(int((beyond >= distance).sum()), int((around <= -distance).sum())) >= EVIDENCE_LEFT
    return bool(rare and worth_it and apart and told)


def in_robust_sds(residuals: Array, bulk: Array) -> Array:
    """Residuals, counted from the median of the bulk in its robust standard deviations; none is far without these."""
    middle = np.median(bulk)
    sd = ROBUST_SD * float(np.median(np.abs(bulk - middle)))
    with np.errstate(over="ignore"):
        return np.asarray((residuals - middle) / sd) if sd > 0.0 else np.zeros(len(residuals))


def limit_on(side: float, rewards: Array, e: Array) -> Limit | None:
    """The limit on one side."""
    beyond = np.sort(side * e)
    if not np.isfinite(beyond[-1]):
        return None
    steps = math.ceil(math.log(max(beyond[-1] / NEAREST, 1.0)) / math.log(GAP))
    distances = NEAREST * GAP ** np.arange(steps)
    behind, before = (len(beyond) - np.searchsorted(beyond, factor * distances, "right") for factor in (GAP, 1 / GAP))
    opposite = np.searchsorted(beyond, -distances, "left")
    for windfalls, inside, others, distance in zip(behind, before - behind, opposite, distances, strict=True):
        if windfalls < FEWEST:
            return None
        apart = inside * MISFITS <= windfalls and beyond[-windfalls:].sum() >= WORTH * len(beyond)
        if apart and evidence(int(windfalls), int(others)) >= EVIDENCE:
            return limit_between(side, rewards, side * e > distance)
    return None


def limit_between(side: float, rewards: Array, far: Mask) -> Limit | None:
    """The limit that parts rewards as their residuals are parted; none where rewards themselves lie too close."""
    order = np.argsort(side * rewards, kind="stable")
    sorted_rewards, is_far = rewards[order], far[order]
    wrong = np.concatenate([[0], np.cumsum(is_far)]) + np.concatenate([np.cumsum(~is_far[::-1])[::-1], [0]])
    first = int(np.argmin(wrong))  # rewards from here on are windfalls
    if not 0 < first < len(rewards) or wrong[first] * MISFITS > far.sum():
        return None
    low, high = float(sorted_rewards[first - 1]), float(sorted_rewards[first])
    return Limit(side, low + NEARER * (high - low))


def evidence(n: int, others: int) -> float:
    """Probability of the signs of windfalls, with n on one side and some on the other, over that under a fair coin."""
    log_ratio = n * math.log(2.0 - 2.0 * OPPOSITE) + others * math.log(2.0 * OPPOSITE)
    return math.exp(min(log_ratio, 700.0))
