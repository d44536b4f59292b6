"""What a bandit was asked to be: fixed for its life, and written into its file."""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from polyarm.bandit.features import Schema
from polyarm.errors import require, require_count, require_number
from polyarm.policies import make_policy
from polyarm.types import AnyPolicy

WITHOUT_INTERCEPT = (
    "dirichlet",
    "nonparametric-paper",
    "pitman-yor",
    "hierarchical",
    "linear",
    "linear-information",
    "oracle-mixture",
    "linear-ucb",
    "linear-student-t",
    "linear-phe",
)  # their models go through the origin, so a bandit gives them a column of ones
PLAIN = (str, int, float, bool, type(None))


def require_arm_names(names: Iterable[str]) -> tuple[str, ...]:
    """Names of arms: different, printable, at least one."""
    rule = "different texts of printable characters, at least one"
    require(not isinstance(names, str) and hasattr(names, "__iter__"), "arms", rule, names)
    arms = tuple(names)
    good = all(isinstance(arm, str) and arm and arm.isprintable() for arm in arms)
    require(good and len(arms) > 0 and len(set(arms)) == len(arms), "arms", rule, names)
    return arms


def objective_name(objective: Any) -> str:
    """Name that an objective is known by, with every digit of its number: "mean", "quantile:0.1"."""
    kind, _, number = str(objective).partition(":")
    if isinstance(objective, str) or not number:
        return str(objective)
    (exact,) = vars(objective).values()
    return f"{kind}:{float(exact)!r}"


def is_plain(value: Any) -> bool:
    """Whether a value survives being written as JSON."""
    if isinstance(value, (list, tuple)):
        return all(is_plain(part) for part in value)
    return isinstance(value, PLAIN)


@dataclass(frozen=True)
class Settings:
    """Settings of a bandit.

    arms            names of the arms at the start
    schema          columns of the context
    policy          a name from `polyarm list policies`; `options` are its settings
    objective       what an arm is judged by
    min_propensity  every eligible arm is played with at least this probability
    max_pending     so many decisions may wait for their reward; the oldest beyond are dropped
    seed            one integer behind every random number
    """

    arms: tuple[str, ...]
    schema: Schema
    policy: str = "nonparametric"
    options: Mapping[str, Any] = field(default_factory=dict)
    objective: str = "mean"
    min_propensity: float = 0.0
    max_pending: int | None = None
    seed: int = 0

    @classmethod
    def checked(
        cls,
        arms: Iterable[str],
        context: Any,
        policy: str,
        options: Mapping[str, Any] | None,
        objective: Any,
        min_propensity: float,
        max_pending: int | None,
        seed: int | None,
    ) -> "Settings":
        """Settings as a caller gives them."""
        require(isinstance(policy, str), "policy", "the name of a policy", policy)
        for name, value in (options or {}).items():
            require(is_plain(value), f"options[{name!r}]", "a plain value, so that it can be saved", value)
        if max_pending is not None:
            require_count(max_pending, "max_pending")
        if seed is None:
            seed = secrets.randbits(63)
        require_count(seed, "seed", at_least=0)
        require(seed < 2**64, "seed", "below 2^64", seed)
        rule = "a number from 0 to 1"
        least = require_number(min_propensity, "min_propensity", rule, lambda v: 0 <= v <= 1)
        names = require_arm_names(arms)
        require_room_for(least, len(names))
        schema = Schema.of(context, constant=policy in WITHOUT_INTERCEPT and context is not None)
        return cls(names, schema, policy, dict(options or {}), objective_name(objective), least, max_pending, int(seed))

    def make_policy(self) -> AnyPolicy:
        """The policy for the arms at the start."""
        options = dict(self.options)
        if self.objective != "mean":
            options["objective"] = self.objective
        return make_policy(self.policy, len(self.arms), self.schema.n_features, **options)

    def to_json(self) -> dict[str, Any]:
        """Plain values that say all about the settings."""
        return {
            "arms": list(self.arms),
            "schema": self.schema.to_json(),
            "policy": self.policy,
            "options": dict(self.options),
            "objective": self.objective,
            "min_propensity": self.min_propensity,
            "max_pending": self.max_pending,
            "seed": self.seed,
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "Settings":
        """Settings as `to_json` wrote them."""
        return cls(
            tuple(given["arms"]),
            Schema.from_json(given["schema"]),
            given["policy"],
            dict(given["options"]),
            given["objective"],
            given["min_propensity"],
            given["max_pending"],
            given["seed"],
        )


def require_room_for(min_propensity: float, n_arms: int) -> None:
    """Raise unless so many arms can all have the least propensity."""
    rule = f"at most 1 / {n_arms} for {n_arms} arms"
    require(min_propensity * n_arms <= 1, "min_propensity", rule, min_propensity)
