"""What travels over HTTP: requests checked on the way in, answers, and the settings of an experiment."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", description="lower-case letters, digits, . _ -")]
Label = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+$")]
Key = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[\x20-\x7e]+$")]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Seconds = Annotated[float, Meta(ge=0.0, le=31_622_400.0)]
Reward = Annotated[float, Meta(ge=-1e100, le=1e100)]
Context = dict[str, float | bool | str | None]


class Column(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One column of the context."""

    name: Label
    kind: Literal["number", "flag", "category", "cyclic"] = "number"
    categories: list[Label] = []
    period: Annotated[float, Meta(gt=0.0)] | None = None
    optional: bool = False


class ExperimentSettings(Struct, forbid_unknown_fields=True):
    """An experiment as it is asked for."""

    name: Name
    arms: Annotated[list[Label], Meta(min_length=1, max_length=1000)]
    context: Annotated[list[Column], Meta(max_length=500)] = []
    policy: Label = "nonparametric"
    options: dict[str, float | bool | str | None] = {}
    objective: Label = "mean"
    min_propensity: Share = 0.0
    seed: Annotated[int, Meta(ge=0, le=2**53 - 1)] = 0
    window: Seconds = 86_400.0
    learn: Literal["at-close", "on-arrival"] = "at-close"
    default_reward: Reward | None = None
    holdout: Share = 0.0
    control: Label | None = None


class ExperimentPatch(Struct, forbid_unknown_fields=True):
    """What may change while an experiment runs; decisions already made keep what they were made under."""

    min_propensity: Share | msgspec.UnsetType = msgspec.UNSET
    window: Seconds | msgspec.UnsetType = msgspec.UNSET
    default_reward: Reward | msgspec.UnsetType | None = msgspec.UNSET
    holdout: Share | msgspec.UnsetType = msgspec.UNSET
    control: Label | msgspec.UnsetType | None = msgspec.UNSET


class ArmRequest(Struct, forbid_unknown_fields=True):
    """A new arm."""

    arm: Label


class DecisionRequest(Struct, forbid_unknown_fields=True):
    """A request for a decision.  `played` logs what another system played: a shadow decision."""

    context: Context = {}
    eligible: Annotated[list[Label], Meta(min_length=1, max_length=1000)] | None = None
    unit: Label | None = None
    played: Label | None = None
    time: Label | None = None


class BatchRequest(Struct, forbid_unknown_fields=True):
    """Requests that all meet the same snapshot."""

    decisions: Annotated[list[DecisionRequest], Meta(min_length=1, max_length=1000)]


class DecisionAnswer(Struct):
    """A decision: the arm, and the distribution it was drawn from."""

    id: str
    arm: str
    propensity: float
    probabilities: dict[str, float]
    snapshot: int
    stream: str


class BatchAnswer(Struct):
    """Decisions in the order of the requests."""

    decisions: list[DecisionAnswer]


class RewardRequest(Struct, forbid_unknown_fields=True):
    """A reward of a decision; `key` names it where a decision may have several, which are added up."""

    decision: Annotated[str, Meta(min_length=1, max_length=36, pattern=r"^[0-9a-zA-Z_-]+$")]
    value: Reward
    key: Key = "reward"
    time: Label | None = None


class RewardAnswer(Struct):
    """What became of a reward."""

    decision: str
    verdict: Literal["accepted", "duplicate", "conflict", "late", "unknown", "parked"]


class RewardsAnswer(Struct):
    """What became of every reward, in order."""

    rewards: list[RewardAnswer]


Rewards = RewardRequest | Annotated[list[RewardRequest], Meta(min_length=1, max_length=1000)]


class RollbackRequest(Struct, forbid_unknown_fields=True):
    """The snapshot to return to."""

    snapshot: Annotated[int, Meta(ge=0)]


class StatusAnswer(Struct):
    """How things stand."""

    status: str
    detail: dict[str, Any] = {}


class ErrorAnswer(Struct):
    """What was wrong, in one sentence."""

    error: str
    field: str | None = None


def to_json(value: Any) -> bytes:
    """JSON text; the same value gives the same text."""
    return msgspec.json.encode(value, order="deterministic")
