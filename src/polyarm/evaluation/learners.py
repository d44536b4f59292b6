"""Targets that learn: policies trained on other rows of the log, policies that learn as they go, saved bandits."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyarm.bandit import Bandit
from polyarm.errors import InvalidArgument, require
from polyarm.evaluation.log import Rows
from polyarm.evaluation.outlook import Outlook, whole_outlook
from polyarm.evaluation.reward_models import N_FOLDS, Scales, fold_of
from polyarm.evaluation.sources import pyarrow
from polyarm.evaluation.survey import Survey
from polyarm.policies import make_policy
from polyarm.types import Array, Rng

WITH_INTERCEPT = ("nonparametric", "linear-showdown")  # policies that append a one to the context themselves
TRAINING_ROWS = 4_000  # rows that one fold's policy learns from


@dataclass(frozen=True)
class Features:
    """A policy's contexts: the log's in standard units, with a one in front where the policy has no intercept."""

    scales: Scales
    with_constant: bool

    @property
    def width(self) -> int:
        """Entries of a context."""
        return max(len(self.scales.mean) + self.with_constant, 1)

    def of(self, contexts: Array) -> Array:
        """Contexts (n, width) for the policy."""
        if not contexts.shape[1]:
            return np.ones((len(contexts), 1))
        make = self.scales.with_constant if self.with_constant else self.scales.standard
        return np.ascontiguousarray(make(contexts))


def features_of(policy: str, survey: Survey) -> Features:
    """Contexts as the policy of that name wants them."""
    return Features(Scales.of(survey.sample.contexts), policy not in WITH_INTERCEPT)


@dataclass(frozen=True)
class CrossFittedPolicy:
    """A policy trained once for every fold, on the other folds; then it learns no more."""

    name: str
    policy: Any
    states: tuple[Any, ...]
    features: Features
    rng: Rng

    def outlook(self, rows: Rows) -> Outlook:
        """What the policy that has not seen these rows would do in them."""
        folds = fold_of(rows.numbers)
        contexts = self.features.of(rows.contexts)
        out: Array | None = None
        for fold in np.unique(folds):
            mine = folds == fold
            part = self.policy.probabilities_many(self.states[fold], np.ascontiguousarray(contexts[mine]), self.rng)
            out = np.empty((len(rows), part.shape[1])) if out is None else out
            out[mine] = part
        return whole_outlook(np.empty((0, 1)) if out is None else out, rows)


def cross_fitted(name: str, policy_name: str, survey: Survey, rng: Rng) -> CrossFittedPolicy:
    """The policy of that name, trained on a sample of the log."""
    features = features_of(policy_name, survey)
    policy = make_policy(policy_name, len(survey.log.arms), features.width)
    rows, folds = survey.sample, fold_of(survey.sample.numbers)
    contexts = features.of(rows.contexts)
    *streams, playing = rng.spawn(N_FOLDS + 1)
    states = []
    for fold, stream in enumerate(streams):
        others = np.flatnonzero(folds != fold)
        others = np.sort(stream.permutation(others)[:TRAINING_ROWS])  # a learner may care for the order
        state = policy.init()
        for i in others:
            state = policy.update(state, contexts[i], int(rows.arms[i]), float(rows.rewards[i]), stream)
        states.append(state)
    return CrossFittedPolicy(name, policy, tuple(states), features, playing)


@dataclass
class Replayed:
    """A policy that starts knowing nothing and learns from the rows it accepts.

    Row i is accepted with probability c w, c the smallest propensity: what the policy then has seen is distributed as
    if it had played itself (Li et al. 2011; Dudik et al. 2012), and its value is that of its first steps.
    """

    name: str
    policy: Any
    features: Features
    smallest: float
    rng: Rng
    state: Any = field(init=False)
    n_accepted: int = 0

    def __post_init__(self) -> None:
        self.state = self.policy.init()

    @staticmethod
    def of(name: str, policy_name: str, survey: Survey, rng: Rng) -> "Replayed":
        """The policy of that name, before any row."""
        features = features_of(policy_name, survey)
        policy = make_policy(policy_name, len(survey.log.arms), features.width)
        if not np.isfinite(survey.smallest_propensity):
            raise InvalidArgument(f"target {name} must be evaluated on a log with propensities, got one without")
        return Replayed(name, policy, features, survey.smallest_propensity, rng)

    def outlook(self, rows: Rows) -> Outlook:
        """Play through these rows, learning from those accepted."""
        contexts = self.features.of(rows.contexts)
        lots = self.rng.random(len(rows))
        kept = np.zeros(len(rows), bool)
        probabilities = []
        for i, (context, arm) in enumerate(zip(contexts, rows.arms.tolist(), strict=True)):
            p = self.policy.probabilities(self.state, context, self.rng)
            probabilities.append(p)
            if lots[i] < self.smallest * p[arm] / rows.propensities[i]:
                kept[i] = True
                self.state = self.policy.update(self.state, context, arm, float(rows.rewards[i]), self.rng)
        self.n_accepted += int(kept.sum())
        whole = whole_outlook(np.array(probabilities).reshape(len(rows), -1), rows)
        return whole._replace(kept=kept)


@dataclass(frozen=True)
class BanditTarget:
    """A bandit as it stands: it learns nothing from the log, and the log leaves no trace in it."""

    name: str
    saved: bytes
    columns: tuple[str, ...]
    arms: tuple[str, ...]

    @staticmethod
    def of(name: str, bandit: Bandit, survey: Survey) -> "BanditTarget":
        """The bandit, whose arms must be among the log's and whose context columns the log must have."""
        log = survey.log
        columns = tuple(bandit.settings.schema.names)
        for column in columns:
            rule = f"a bandit whose context columns the log has ({', '.join(log.wanted())})"
            require(column in log.wanted(), f"target {name}", rule, column)
        unknown = [arm for arm in bandit.arms if arm not in log.arms]
        require(not unknown, f"target {name}", f"a bandit over the arms {', '.join(log.arms[:20])}", unknown)
        return BanditTarget(name, bandit.to_bytes(), columns, log.arms)

    def outlook(self, rows: Rows) -> Outlook:
        """What it would have done in these rows."""
        out = np.zeros((len(rows), len(self.arms)))
        if len(rows):
            bandit = Bandit.from_bytes(self.saved)  # a copy of every batch's own: it notes all that it decides
            table = pyarrow().Table.from_batches([rows.batch])
            contexts = table.select(list(self.columns)) if self.columns else len(rows)
            ids = [f"evaluated row {number}" for number in rows.numbers]
            decisions = bandit.choose_many(contexts, ids=ids)
            for j, arm in enumerate(decisions[0].probabilities):
                if arm in self.arms:
                    out[:, self.arms.index(arm)] = decisions.probabilities[:, j]
        return whole_outlook(out, rows)
