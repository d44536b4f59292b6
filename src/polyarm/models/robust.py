"""Mixtures whose components share a centre, in arms that share their scales."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from polyarm.errors import require, require_count, require_number, require_pair, require_positive
from polyarm.models.mixture import STICKS_LEFT, MixtureParams
from polyarm.renaming import renamed
from polyarm.types import Array, Rng

Pair = tuple[float, float]


class RobustParams(NamedTuple):
    """What the arms share, and the mixture of each arm.

    arm_var (2,) and part_var (2,) are lam2 and rho lam2 of slopes and intercept; centre_ratio is kappa; common_centre
    (features,).
    place_var is tau; places holds the m_k of every arm, (components, context_dim).
    """

    arm_var: Array
    part_var: Array
    centre_ratio: float
    common_centre: Array
    noise_scale: float
    concentration: float
    place_var: float
    arms: tuple[MixtureParams, ...]
    places: tuple[Array, ...]


@renamed(centre_var="wide")
@dataclass(frozen=True)
class RobustMixture:
    """Rewards of all arms in standard units: scale 1 and median 0.

    y ~ N(x'w_k, s2_k),  w_k ~ N(w0, rho L),  w0 ~ N(c, L),  c ~ N(0, kappa I),  L = diag(lam2),
    s2_k ~ IG(noise_shape, b), or with probability wild_share IG(wild_shape, b): outliers of any size
    with lam2 ~ IG(arm_shape, arm_scale), rho ~ IG(part_shape, part_scale) or fixed at part_ratio where part_shape is 0,
    kappa ~ IG(centre_shape, centre_scale lam2) with lam2 of the slopes, or fixed at centre_var where centre_shape is 0
    or arms have no centre w0; for the intercept, and as far as a column is far from 0 (its mean's share in its mean
    square), centre_var instead,
    b ~ Gamma(noise_rate_shape, noise_rate), concentration ~ Gamma(*concentration_prior) or fixed where that is None.
    A pair holds the value for the slopes and for the intercept, which is a trailing 1 in x.
    Weights depend on the context: where component k is in charge, contexts in standard units are N(m_k, I) with
    m_k ~ N(0, tau I), tau ~ IG(place_shape, place_scale), or fixed at place_scale where place_shape is 0.
    With tau = 0, and in a model without intercept, they do not.

    >>> RobustMixture(n_arms=3, context_dim=2).intercept
    True
    """

    n_arms: int
    context_dim: int
    intercept: bool = True
    arm_shape: Pair = (1.0, 0.5)
    arm_scale: Pair = (0.1, 0.005)
    part_ratio: Pair = (0.3, 0.1)
    part_shape: Pair = (1.0, 1.0)
    part_scale: Pair = (0.3, 0.1)
    centre_var: float = 3.0
    centre_shape: float = 0.5
    centre_scale: float = 0.5
    noise_shape: float = 1.0
    noise_rate_shape: float = 1.0
    noise_rate: float = 1.0
    wild_share: float = 0.1
    wild_shape: float = 0.25
    concentration: float = 0.5
    concentration_prior: Pair | None = None
    place_shape: float = 1.0
    place_scale: float = 0.03
    shared_centre: bool = True
    learned: bool = True
    added_settings: ClassVar = ("centre_shape", "centre_scale")

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        for name in ("arm_shape", "arm_scale", "part_ratio"):
            require_pair(getattr(self, name), name, "a finite number above 0", lambda v: v > 0)
        for name in ("part_shape", "part_scale"):
            require_pair(getattr(self, name), name, "a finite number of at least 0", lambda v: v >= 0)
        for shape, scale in zip(self.part_shape, self.part_scale, strict=True):
            require(shape == 0 or scale > 0, "part_scale", "above 0 where part_shape is", self.part_scale)
        for name in (
            "centre_var",
            "centre_scale",
            "noise_shape",
            "noise_rate_shape",
            "noise_rate",
            "wild_shape",
            "concentration",
        ):
            require_positive(getattr(self, name), name)
        require_number(self.wild_share, "wild_share", "a number from 0 to below 1", lambda v: 0 <= v < 1)
        for name in ("place_shape", "place_scale", "centre_shape"):
            require_number(getattr(self, name), name, "a finite number of at least 0", lambda v: v >= 0)
        if self.concentration_prior is not None:
            rule = "a finite number above 0"
            require_pair(self.concentration_prior, "concentration_prior", rule, lambda v: v > 0)

    @property
    def learns_centre_ratio(self) -> bool:
        """Whether kappa is learned."""
        return self.learned and self.shared_centre and self.centre_shape > 0

    @property
    def n_features(self) -> int:
        """Entries of a context with its intercept."""
        return self.context_dim + int(self.intercept)

    def features(self, context: Array) -> Array:
        """The context, with a one after it where there is an intercept."""
        return np.append(context, 1.0) if self.intercept else context

    def by_feature(self, pair: Array) -> Array:
        """A value for every feature from those of slopes and intercept."""
        values = np.full(self.n_features, pair[0])
        values[self.context_dim :] = pair[1]
        return values

    def sample_params(self, rng: Rng) -> RobustParams:
        """Parameters of all arms drawn from the prior."""
        arm_var = np.array(self.arm_scale) / rng.standard_gamma(self.arm_shape)
        ratio = np.array(self.part_ratio)
        for g in range(2):
            if self.part_shape[g] > 0:
                ratio[g] = self.part_scale[g] / rng.standard_gamma(self.part_shape[g])
        kappa = self.centre_var
        if self.learns_centre_ratio:
            kappa = self.centre_scale * float(arm_var[0]) / rng.standard_gamma(self.centre_shape)
        centre = np.sqrt(self.by_feature(np.array([kappa, self.centre_var]))) * rng.standard_normal(self.n_features)
        scale = rng.standard_gamma(self.noise_rate_shape) / self.noise_rate
        prior = self.concentration_prior
        concentration = rng.gamma(prior[0], 1 / prior[1]) if prior else self.concentration
        part_var = ratio * arm_var if self.shared_centre else arm_var
        arms = [self.sample_arm(arm_var, part_var, centre, scale, concentration, rng) for _ in range(self.n_arms)]
        tau = self.place_scale / rng.standard_gamma(self.place_shape) if self.place_shape > 0 else self.place_scale
        tau *= self.intercept
        places = [np.sqrt(tau) * rng.standard_normal((len(arm.weights), self.context_dim)) for arm in arms]
        return RobustParams(arm_var, part_var, kappa, centre, scale, concentration, tau, tuple(arms), tuple(places))

    def sample_arm(
        self, arm_var: Array, part_var: Array, centre: Array, scale: float, concentration: float, rng: Rng
    ) -> MixtureParams:
        """The mixture of one arm given what the arms share."""
        spread = np.sqrt(self.by_feature(arm_var)) if self.shared_centre else 0.0
        own = centre + spread * rng.standard_normal(self.n_features)
        weights: list[float] = []
        left = 1.0
        while left > STICKS_LEFT and len(weights) < 10_000:
            weights.append(left * rng.beta(1.0, concentration))
            left -= weights[-1]
        n = len(weights) + 1
        slopes = own + np.sqrt(self.by_feature(part_var)) * rng.standard_normal((n, self.n_features))
        shape = np.where(rng.random(n) < self.wild_share, self.wild_shape, self.noise_shape)
        return MixtureParams(np.append(weights, left), slopes, scale / rng.standard_gamma(shape))

    def weights_at(self, params: RobustParams, arm: int, context: Array) -> Array:
        """Weights of an arm's components in this context."""
        far = 0.5 * ((context - params.places[arm]) ** 2).sum(axis=1)
        weights = params.arms[arm].weights * np.exp(far.min() - far)
        return np.asarray(weights / weights.sum())

    def mean_reward(self, params: RobustParams, arm: int, context: Array) -> float:
        """Expected reward of an arm in this context."""
        return float(self.weights_at(params, arm, context) @ (params.arms[arm].coefficients @ self.features(context)))

    def sample_reward(self, params: RobustParams, arm: int, context: Array, rng: Rng) -> float:
        """One reward of an arm in this context."""
        mixture = params.arms[arm]
        k = int(rng.choice(len(mixture.weights), p=self.weights_at(params, arm, context)))
        mean = mixture.coefficients[k] @ self.features(context)
        return float(rng.normal(mean, np.sqrt(mixture.noise_var[k])))
