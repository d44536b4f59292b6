"""What was asked of an evaluation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from polyarm.errors import require, require_name, require_number
from polyarm.evaluation.estimators import MEANS
from polyarm.evaluation.intervals import INTERVALS, Interval

TAILS = ("quantile", "shortfall")
DEFAULT_SHARE = 0.1


class Tail(NamedTuple):
    """An estimator that looks at the lower tail: its kind and the share of rewards it is about."""

    kind: str
    share: float

    @property
    def name(self) -> str:
        """As it was asked for."""
        return f"{self.kind}:{self.share:g}"


@dataclass(frozen=True)
class Settings:
    """Estimators, intervals and limits, checked."""

    means: tuple[str, ...]
    tails: tuple[Tail, ...]
    interval: str
    level: float
    clip: float | None
    switch: float | None
    reward_range: Interval | None
    min_propensity: float | None
    seed: int

    @staticmethod
    def of(
        estimators: Sequence[str] | str,
        interval: str,
        level: float,
        clip: float | None,
        switch: float | None,
        reward_range: Sequence[float] | None,
        min_propensity: float | None,
        seed: int,
    ) -> "Settings":
        """Settings from what a caller wrote."""
        asked = [estimators] if isinstance(estimators, str) else list(estimators)
        require(bool(asked), "estimators", f"at least one of {', '.join((*MEANS, *TAILS))}", estimators)
        tails = tuple(dict.fromkeys(make_tail(name) for name in asked if name.partition(":")[0] in TAILS))
        means = [name for name in asked if name.partition(":")[0] not in TAILS]
        for name in means:
            require_name(name, (*MEANS, *TAILS), "estimator")
        return Settings(
            tuple(dict.fromkeys(means)),
            tails,
            require_name(interval, INTERVALS, "interval"),
            require_number(level, "level", "a number between 0 and 1", lambda v: 0 < v < 1),
            None if clip is None else require_number(clip, "clip", "a number above 0", lambda v: v > 0),
            None if switch is None else require_number(switch, "switch", "a number of at least 0", lambda v: v >= 0),
            make_range(reward_range),
            None
            if min_propensity is None
            else require_number(min_propensity, "min_propensity", "above 0 and at most 1", lambda v: 0 < v <= 1),
            seed,
        )


def make_tail(name: str) -> Tail:
    """The estimator `quantile:0.1` or `shortfall:0.1`; without a share, a tenth."""
    kind, _, share = name.partition(":")
    rule = "a share between 0 and 1"
    return Tail(kind, require_number(share or DEFAULT_SHARE, name, rule, lambda v: 0 < v < 1))  # type: ignore[arg-type]


def make_range(reward_range: Any) -> Interval | None:
    """The range that rewards are known to keep to."""
    if reward_range is None:
        return None
    rule = "two finite numbers, the lower first"
    require(isinstance(reward_range, Sequence) and len(reward_range) == 2, "reward_range", rule, reward_range)
    low, high = (require_number(value, "reward_range", rule) for value in reward_range)
    require(low < high and math.isfinite(high - low), "reward_range", rule, reward_range)
    return Interval(low, high)
