"""The model behind an experiment: a Bandit without its book, because here the database keeps the book.

What it learns depends on its settings and on the steps in their order alone; what it decides, on that and on the
decision's id.  As bytes it is the file of a Bandit that has not decided yet, so `Bandit.load` reads any snapshot.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from polyarm.bandit import file, lottery
from polyarm.bandit.bandit import first_origins
from polyarm.bandit.features import KINDS, Schema
from polyarm.bandit.learner import Learner
from polyarm.bandit.ledger import Ledger
from polyarm.bandit.settings import Settings
from polyarm.errors import InvalidArgument, UnknownArm, require
from polyarm.service.messages import Column, ExperimentSettings
from polyarm.types import Array

HOLDOUT_BYTES = slice(40, 48)  # of a decision's digest: the draw uses the bytes before


class Draw(NamedTuple):
    """An arm, and the distribution that it was drawn from."""

    arm: str
    propensity: float
    probabilities: dict[str, float]
    stream: str


def schema_of(columns: Sequence[Column]) -> Schema | None:
    """Columns as a Bandit takes them."""
    found: dict[str, Any] = {}
    for column in columns:
        options: dict[str, Any] = {"optional": column.optional}
        if column.kind == "category":
            options["levels"] = tuple(column.categories)
        elif column.kind == "cyclic":
            require(column.period is not None, f"context.{column.name}.period", "given for a cyclic column", None)
            options["period"] = column.period
        found[column.name] = KINDS[column.kind](**options)
    return Schema(found) if found else None


class Model:
    """A policy with its state, the arms by name, and what turns a context into numbers."""

    def __init__(self, settings: Settings, arms: Sequence[str], learner: Learner, origins: Array) -> None:
        self.settings, self.learner, self.origins = settings, learner, origins
        self.arms = tuple(arms)
        self._since: tuple[int, ...] = (0,) * len(settings.arms)
        self._digest, self._stream = lottery.Digest(settings.seed), lottery.KeyedStream()

    @classmethod
    def new(cls, asked: ExperimentSettings) -> "Model":
        """The model of a new experiment; an error says what of the settings it cannot take."""
        schema = schema_of(asked.context)
        settings = Settings.checked(
            asked.arms, schema, asked.policy, asked.options, asked.objective, 0.0, None, asked.seed
        )
        policy = settings.make_policy()
        learner = Learner(policy, policy.init(), settings.seed, n_arms=len(settings.arms))
        return cls(settings, settings.arms, learner, first_origins(settings.schema))

    @classmethod
    def from_bytes(cls, content: bytes) -> "Model":
        """The model in a snapshot."""
        contents = file.unpacked(content, "snapshot")
        with file.refusing("snapshot"):
            model = cls(
                contents.settings, [arm[0] for arm in contents.arms], file.learner_of(contents), contents.origins
            )
            model._since = tuple(arm[1] for arm in contents.arms)
        return model

    def to_bytes(self) -> bytes:
        """The model as a Bandit's file; the same model gives the same bytes."""
        arms = [(name, since, 0, True) for name, since in zip(self.arms, self._since, strict=True)]
        empty = Ledger(len(self.settings.schema.names), len(self.arms)).columns()
        state = self.learner.state
        return file.packed(file.Contents(self.settings, arms, self.origins, self.n_learnt, [], empty, state))

    @property
    def n_learnt(self) -> int:
        """Number of rewards learnt."""
        return self.learner.n_learnt

    def features(self, context: Mapping[str, Any]) -> Array:
        """What the policy sees of a context; an error names the column at fault."""
        schema = self.settings.schema
        codes = schema.codes(context if schema.names or context else None)
        return schema.features(codes, schema.origins_after(self.origins, codes[None]))

    def draw(
        self, decision: str, context: Mapping[str, Any], eligible: Sequence[str], settings: ExperimentSettings
    ) -> Draw:
        """An arm for a decision: a function of the model, the context, the settings and the decision's id."""
        bits = self._digest.of(decision)
        may = [arm in eligible for arm in self.arms]
        if int.from_bytes(bits[HOLDOUT_BYTES], "little") < settings.holdout * 2**64:
            shares, least, stream = np.array(self._held_out(may, settings.control)), 0.0, "holdout"
        else:
            x = self.features(context)
            mask = None if all(may) else np.array(may)
            shares = self.learner.policy.probabilities(self.learner.state, x, self._stream.at(bits), mask)
            least, stream = float(settings.min_propensity), "bandit"
        q, place = np.ascontiguousarray(shares, np.float64), lottery.ticket_in(bits)
        p, arm = lottery.drawn(q, np.array(may), least, place)
        exact: list[float] = p.tolist()
        return Draw(self.arms[arm], exact[arm], dict(zip(self.arms, exact, strict=True)), stream)

    def _held_out(self, may: Sequence[bool], control: str | None) -> list[float]:
        if control in self.arms and may[self.arms.index(str(control))]:
            return [float(arm == control) for arm in self.arms]
        return [ok / sum(may) for ok in may]

    def warm(self) -> None:
        """Run what a decision runs, so that nobody waits for kernels to be loaded."""
        x = np.zeros(self.settings.schema.n_features)
        self.learner.policy.probabilities(self.learner.state, x, self._stream.at(bytes(64)), None)

    def learn(self, decision: str, context: str, arm: str, value: float) -> None:
        """Take in the outcome of a decision."""
        if arm not in self.arms:
            raise UnknownArm(f"arm of decision {decision} must be one of the model's, got {arm!r}")
        schema = self.settings.schema
        given = msgspec.json.decode(context)
        codes = schema.codes(given if schema.names or given else None)
        origins = schema.origins_after(self.origins, codes[None])
        self.learner.learn([(schema.features(codes, origins), self.arms.index(arm), value)])
        self.origins = origins

    def add_arm(self, arm: str) -> None:
        """Take in a new arm, which starts from what the arms share."""
        if arm in self.arms:
            raise InvalidArgument(f"arm must be new, got {arm!r}")
        self.learner.add_arm()
        self.arms = (*self.arms, arm)
        self._since = (*self._since, self.n_learnt)
