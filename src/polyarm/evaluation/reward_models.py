"""What each arm would have paid in each context: reward models, fitted to rows that they are not used on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from polyarm.errors import InvalidArgument, require_name, shown
from polyarm.evaluation.log import Rows
from polyarm.evaluation.survey import Survey
from polyarm.types import Array, IntArray, Rng

N_FOLDS = 5
MODELS = ("auto", "ridge", "robust", "none")
RIDGES = (0.3, 3.0, 30.0, 300.0, 3000.0)  # prior rows that an arm's coefficients share with all arms
ROBUST_ROWS = 4_000  # rows that one fold's robust model learns from
ROBUST_LIMIT = 20_000  # a larger log is left to ridge regression, whose predictions cost nothing
N_STATES, REFRESHES = 5, 10


class RewardModel(Protocol):
    """Anything that knows the expected reward of every arm."""

    def predict(self, contexts: Array) -> Array:
        """Expected rewards (n, A) in contexts (n, d)."""
        ...


def fold_of(numbers: IntArray) -> IntArray:
    """Fold of each row by its place in the log: scattered, and the same in every reading."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(33)) % np.uint64(N_FOLDS)).astype(np.int64)


class Scales(NamedTuple):
    """Mean and standard deviation of every context entry; entries that do not vary are left alone."""

    mean: Array
    sd: Array

    @staticmethod
    def of(contexts: Array) -> "Scales":
        """Scales of the contexts (n, d)."""
        if not len(contexts):
            return Scales(np.zeros(contexts.shape[1]), np.ones(contexts.shape[1]))
        sd = contexts.std(axis=0)
        return Scales(contexts.mean(axis=0), np.where(sd > 0, sd, 1.0))

    def standard(self, contexts: Array) -> Array:
        """The contexts in standard units."""
        return np.asarray((contexts - self.mean) / self.sd)

    def with_constant(self, contexts: Array) -> Array:
        """A one, then the context in standard units."""
        return np.column_stack([np.ones(len(contexts)), self.standard(contexts)])


class Ridge(NamedTuple):
    """Linear regressions of all arms (A, 1 + d), each shrunk towards the one they share."""

    coefficients: Array
    scales: Scales

    def predict(self, contexts: Array) -> Array:
        """Expected rewards (n, A)."""
        slopes = self.coefficients[:, 1:] / self.scales.sd
        levels = self.coefficients[:, 0] - slopes @ self.scales.mean
        return np.asarray(contexts @ slopes.T + levels)


def fit_ridge(contexts: Array, arms: IntArray, rewards: Array, n_arms: int, rng: Rng) -> Ridge:
    """Ridge regressions whose strength of sharing is chosen on a fifth of the rows."""
    scales = Scales.of(contexts)
    x = scales.with_constant(contexts)
    held = rng.random(len(x)) < 0.2
    losses = []
    for strength in RIDGES:
        fitted = shared_ridge(x[~held], arms[~held], rewards[~held], n_arms, strength)
        losses.append(float(((rewards[held] - (x[held] * fitted[arms[held]]).sum(axis=1)) ** 2).sum()))
    best = RIDGES[int(np.argmin(losses))]
    return Ridge(shared_ridge(x, arms, rewards, n_arms, best), scales)


def shared_ridge(x: Array, arms: IntArray, rewards: Array, n_arms: int, strength: float) -> Array:
    """Coefficients (A, k): shared ones b from all rows, then those of each arm, drawn to b like `strength` rows."""
    eye = np.eye(x.shape[1])
    level = rewards.mean() if len(rewards) else 0.0
    shared = np.linalg.solve(x.T @ x + eye, x.T @ (rewards - level))
    shared[0] += level
    out = np.tile(shared, (n_arms, 1))
    for arm in np.unique(arms):
        own = x[arms == arm]
        left = rewards[arms == arm] - own @ shared
        out[arm] += np.linalg.solve(own.T @ own + strength * eye, own.T @ left)
    return out


class Robust(NamedTuple):
    """Posterior expectations under the default policy's model, averaged over several states of its sampler."""

    engine: Any
    states: list[Any]
    scales: Scales

    def predict(self, contexts: Array) -> Array:
        """Expected rewards (n, A)."""
        x = np.ascontiguousarray(self.scales.standard(contexts)) if contexts.shape[1] else np.ones((len(contexts), 1))
        unique, back = np.unique(x, axis=0, return_inverse=True)
        found = [[self.engine.expected_means(state, row) for row in unique] for state in self.states]
        return np.asarray(np.mean(found, axis=0).reshape(len(unique), -1)[back.ravel()])


def fit_robust(contexts: Array, arms: IntArray, rewards: Array, n_arms: int, rng: Rng) -> Robust:
    """The robust model on at most `ROBUST_ROWS` rows."""
    from polyarm.inference import RobustEngine
    from polyarm.models import RobustMixture

    scales = Scales.of(contexts)
    x = scales.standard(contexts) if contexts.shape[1] else np.ones((len(contexts), 1))
    engine = RobustEngine(RobustMixture(n_arms, x.shape[1]))
    state = engine.init()
    for i in rng.permutation(len(x))[:ROBUST_ROWS]:
        state = engine.update(state, np.ascontiguousarray(x[i]), int(arms[i]), float(rewards[i]), rng)
    states = []
    for _ in range(N_STATES):
        for _ in range(REFRESHES):
            state = engine.refresh(state, rng)
        states.append(copied(state))
    return Robust(engine, states, scales)


def copied(state: Any) -> Any:
    """The state with arrays of its own."""
    if isinstance(state, tuple):
        parts = [copied(part) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    return state.copy() if isinstance(state, np.ndarray) else state


FITS: dict[str, Callable[[Array, IntArray, Array, int, Rng], RewardModel]] = {"ridge": fit_ridge, "robust": fit_robust}


@dataclass(frozen=True)
class CrossFitted:
    """One model per fold, each fitted to the other folds."""

    name: str
    models: tuple[RewardModel, ...]

    def expected(self, rows: Rows) -> Array:
        """Expected rewards (n, A), each row's by the model that has not seen it."""
        folds = fold_of(rows.numbers)
        out: Array | None = None
        for fold in np.unique(folds):
            mine = folds == fold
            part = self.models[fold].predict(rows.contexts[mine])
            if out is None:
                out = np.empty((len(rows), part.shape[1]))
            out[mine] = part
        return np.empty((0, 0)) if out is None else out


@dataclass(frozen=True)
class Given:
    """A model that was fitted elsewhere, to other rows."""

    model: RewardModel
    n_arms: int
    name: str = "given"

    def expected(self, rows: Rows) -> Array:
        """Expected rewards (n, A)."""
        out = np.asarray(self.model.predict(rows.contexts), dtype=np.float64)
        if out.shape != (len(rows), self.n_arms) or not np.isfinite(out).all():
            raise InvalidArgument(
                f"model must be one whose predict gives finite numbers of shape {(len(rows), self.n_arms)}, "
                f"got shape {out.shape}"
            )
        return out


def make_model(model: Any, survey: Survey, rng: Rng) -> CrossFitted | Given | None:
    """The reward model that was asked for; None for none."""
    n_arms = len(survey.log.arms)
    if not isinstance(model, str):
        if not hasattr(model, "predict"):
            raise InvalidArgument(
                f"model must be one of {', '.join(MODELS)} or have a method predict, got {shown(model)}"
            )
        return Given(model, n_arms)
    name = require_name(model, MODELS, "model")
    if name == "none":
        return None
    if name == "auto":
        plain = survey.n_rows <= ROBUST_LIMIT and n_arms <= 20 and survey.log.encoder.width <= 20
        name = "robust" if plain and len(np.unique(survey.sample.rewards)) > 2 else "ridge"
    rows, folds = survey.sample, fold_of(survey.sample.numbers)
    fitted = []
    for fold, stream in enumerate(rng.spawn(N_FOLDS)):
        others = folds != fold
        fitted.append(FITS[name](rows.contexts[others], rows.arms[others], rows.rewards[others], n_arms, stream))
    return CrossFitted(name, tuple(fitted))
