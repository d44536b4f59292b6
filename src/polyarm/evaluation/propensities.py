"""Propensities for a log that has none: how likely each arm was, guessed from what was played where.

A softmax regression on the contexts and the time in the log, fitted to other folds than it is used on; then all its
scores are multiplied by one number and shifted by one per arm, chosen on held-out rows, so that what it calls 10 %
happens in 10 % of the rows (Guo et al. 2017).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from polyarm.evaluation.log import Rows
from polyarm.evaluation.reward_models import N_FOLDS, Scales, fold_of
from polyarm.evaluation.survey import Survey
from polyarm.types import Array, IntArray

SHRINKAGE = 1.0
FIT_ROWS = 4_000
FLOOR = 1e-4  # no arm is taken for less likely than this


class Softmax(NamedTuple):
    """Scores (1 + d + 1) x A: level, contexts, time."""

    slopes: Array
    scales: Scales
    n_rows: int

    def scores(self, contexts: Array, numbers: IntArray) -> Array:
        """Scores of every arm, (n, A)."""
        return np.asarray(self.scales.with_constant(timed(contexts, numbers, self.n_rows)) @ self.slopes)


class Calibration(NamedTuple):
    """Common factor and one shift per arm."""

    factor: float
    shifts: Array

    def probabilities(self, scores: Array) -> Array:
        """Probabilities (n, A), none below the floor."""
        p = special.softmax(self.factor * scores + self.shifts, axis=1)
        floor = min(FLOOR, 0.1 / p.shape[1])
        return np.asarray((1 - p.shape[1] * floor) * p + floor)


def timed(contexts: Array, numbers: IntArray, n_rows: int) -> Array:
    """Contexts with the place in the log, from 0 to 1, as a last entry."""
    return np.column_stack([contexts, numbers / max(n_rows - 1, 1)])


@dataclass(frozen=True)
class PropensityModel:
    """One regression per fold, fitted and calibrated on the other folds."""

    models: tuple[Softmax, ...]
    calibration: Calibration

    def probabilities(self, rows: Rows) -> Array:
        """Probability of every arm in every row, (n, A), by the model that has not seen the row."""
        folds = fold_of(rows.numbers)
        scores = np.empty((len(rows), len(self.calibration.shifts)))
        for fold in np.unique(folds):
            mine = folds == fold
            scores[mine] = self.models[fold].scores(rows.contexts[mine], rows.numbers[mine])
        return self.calibration.probabilities(scores)


def fit_propensities(survey: Survey) -> PropensityModel:
    """The model of which arms were played, from the survey's sample."""
    rows, n_arms = survey.sample, len(survey.log.arms)
    folds = fold_of(rows.numbers)
    models = []
    scores = np.empty((len(rows), n_arms))
    for fold in range(N_FOLDS):
        others = np.flatnonzero(folds != fold)[:FIT_ROWS]
        model = fit_softmax(rows.contexts[others], rows.numbers[others], rows.arms[others], n_arms, survey.n_rows)
        models.append(model)
        mine = folds == fold
        scores[mine] = model.scores(rows.contexts[mine], rows.numbers[mine])
    return PropensityModel(tuple(models), calibrate(scores, rows.arms))


def log_total_and_shares(scores: Array) -> tuple[float, Array]:
    """Sum over the rows of log sum exp, and softmax of each row, with one exponential for both."""
    top = scores.max(axis=1, keepdims=True)
    shares = np.exp(scores - top)
    totals = shares.sum(axis=1, keepdims=True)
    shares /= totals
    return float(top.sum() + np.log(totals).sum()), shares


def fit_softmax(contexts: Array, numbers: IntArray, arms: IntArray, n_arms: int, n_rows: int) -> Softmax:
    """Penalised maximum likelihood; the penalty leaves the levels free."""
    scales = Scales.of(timed(contexts, numbers, n_rows))
    x = scales.with_constant(timed(contexts, numbers, n_rows))
    played = np.eye(n_arms)[arms]
    penalty = np.full((x.shape[1], 1), SHRINKAGE)
    penalty[0] = 1e-3

    def loss(flat: Array) -> tuple[float, Array]:
        slopes = flat.reshape(x.shape[1], n_arms)
        scores = x @ slopes
        log_total, p = log_total_and_shares(scores)
        value = log_total - float((scores * played).sum()) + 0.5 * float((penalty * slopes**2).sum())
        slope = x.T @ (p - played) + penalty * slopes
        return value, slope.ravel()

    start = np.zeros((x.shape[1], n_arms))
    start[0] = np.log((played.sum(axis=0) + 0.5) / (len(x) + 0.5 * n_arms))
    found = optimize.minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 100})
    return Softmax(found.x.reshape(start.shape), scales, n_rows)


def calibrate(scores: Array, arms: IntArray) -> Calibration:
    """Factor and shifts that make held-out scores most likely."""
    n_arms = scores.shape[1]
    played = np.eye(n_arms)[arms]

    def loss(flat: Array) -> tuple[float, Array]:
        factor, shifts = flat[0], flat[1:]
        moved = factor * scores + shifts
        log_total, p = log_total_and_shares(moved)
        value = log_total - float((moved * played).sum()) + 0.5 * float((shifts**2).sum())
        error = p - played
        return value, np.concatenate([[(error * scores).sum()], error.sum(axis=0) + shifts])

    found = optimize.minimize(loss, np.concatenate([[1.0], np.zeros(n_arms)]), jac=True, method="L-BFGS-B")
    return Calibration(float(found.x[0]), found.x[1:])
