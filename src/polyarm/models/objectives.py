"""What a reward is judged by: its mean, or another functional of its distribution.  More is better in all of them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from polyarm import special
from polyarm.errors import InvalidArgument, UnknownName, require_array, require_number, shown
from polyarm.kernels import objectives as kernels
from polyarm.kernels.objectives import Functional
from polyarm.types import Array


def number_of(value: float) -> str:
    """The number as short as it can be read back exactly."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


class Objective(ABC):
    """A functional of the distribution of an arm's reward; the arm of the highest value is the best.

    >>> from polyarm import Quantile
    >>> isinstance(Quantile(0.5), Objective)
    True
    """

    @property
    @abstractmethod
    def functional(self) -> Functional:
        """The objective as kernels take it."""

    def of_mixture(self, weights: ArrayLike, means: ArrayLike, variances: ArrayLike) -> Array:
        """Value of mixtures (..., components) of normal components, or of single values where the variance is 0."""
        parts = np.broadcast_arrays(*(require_array(p, "mixture") for p in (weights, means, variances)))
        rows = [np.ascontiguousarray(p.reshape(-1, p.shape[-1])) for p in parts]
        out = np.empty(len(rows[0]))
        kernels.worth_of_rows(rows[0], rows[1], rows[2], self.functional, out)
        return out.reshape(parts[0].shape[:-1])


@dataclass(frozen=True)
class Mean(Objective):
    """The expected reward."""

    @property
    def functional(self) -> Functional:
        """The objective as kernels take it."""
        return Functional(kernels.EXPECTATION, 0.0, 0.0)

    def __str__(self) -> str:
        return "mean"


@dataclass(frozen=True)
class Quantile(Objective):
    """The reward that a share p of all rewards does not exceed.

    >>> from polyarm import Bandit
    >>> Bandit(["red", "blue"], objective="quantile:0.1", seed=7).settings.objective == str(Quantile(0.1))
    True
    """

    p: float

    def __post_init__(self) -> None:
        require_number(self.p, "p", "a number between 0 and 1", lambda p: 0 < p < 1)

    @property
    def functional(self) -> Functional:
        """The objective as kernels take it."""
        return Functional(kernels.QUANTILE, float(self.p), float(special.ndtri(self.p)))

    def __str__(self) -> str:
        return f"quantile:{number_of(self.p)}"


@dataclass(frozen=True)
class ExpectedShortfall(Objective):
    """The mean of the worst share p of all rewards.

    >>> from polyarm import make_policy
    >>> make_policy("linear", 2, 2, objective=ExpectedShortfall(0.1)).objective
    ExpectedShortfall(p=0.1)
    """

    p: float

    def __post_init__(self) -> None:
        require_number(self.p, "p", "a number between 0 and 1", lambda p: 0 < p < 1)

    @property
    def functional(self) -> Functional:
        """The objective as kernels take it."""
        return Functional(kernels.SHORTFALL, float(self.p), float(special.ndtri(self.p)))

    def __str__(self) -> str:
        return f"shortfall:{number_of(self.p)}"


@dataclass(frozen=True)
class ProbabilityAbove(Objective):
    """The probability that a reward exceeds a value.

    >>> from polyarm import Bandit
    >>> Bandit(["red", "blue"], objective=ProbabilityAbove(5.0), seed=7).settings.objective
    'above:5.0'
    """

    value: float

    def __post_init__(self) -> None:
        require_number(self.value, "value", "a finite number")

    @property
    def functional(self) -> Functional:
        """The objective as kernels take it."""
        return Functional(kernels.ABOVE, float(self.value), 0.0)

    def __str__(self) -> str:
        return f"above:{number_of(self.value)}"


@dataclass(frozen=True)
class ExponentialUtility(Objective):
    """The sure reward that has the same utility -exp(-risk_aversion y) as the uncertain one (certainty equivalent).

    It tends to the mean as the aversion to risk tends to 0; a negative one seeks risk.

    >>> from polyarm import Bandit
    >>> Bandit(["red", "blue"], objective=ExponentialUtility(0.5), seed=7).settings.objective
    'utility:0.5'
    """

    risk_aversion: float

    def __post_init__(self) -> None:
        require_number(self.risk_aversion, "risk_aversion", "a finite number other than 0", lambda r: r != 0)

    @property
    def functional(self) -> Functional:
        """The objective as kernels take it."""
        return Functional(kernels.UTILITY, float(self.risk_aversion), 0.0)

    def __str__(self) -> str:
        return f"utility:{number_of(self.risk_aversion)}"


MEAN = Mean()
NAMED = {
    "quantile": Quantile,
    "shortfall": ExpectedShortfall,
    "above": ProbabilityAbove,
    "utility": ExponentialUtility,
}
ObjectiveLike: TypeAlias = str | Objective


def as_objective(objective: ObjectiveLike) -> Objective:
    """Objective from itself or from its name: mean, quantile:P, shortfall:P, above:VALUE, utility:RISK_AVERSION."""
    if isinstance(objective, Objective):
        return objective
    name, _, number = str(objective).partition(":")
    if objective == "mean":
        return MEAN
    if name not in NAMED:
        known = ", ".join(["mean", *(f"{known}:NUMBER" for known in NAMED)])
        raise UnknownName(f"objective must be one of {known}, got {shown(objective)}")
    try:
        value = float(number)
    except ValueError:
        raise InvalidArgument(f"objective must be {name}:NUMBER, got {shown(objective)}") from None
    return NAMED[name](value)  # type: ignore[abstract]
