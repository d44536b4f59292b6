"""How often the intervals of `polyarm evaluate` hold the truth: simulated logs of known value.

    python benchmarks/evaluation_coverage.py --logs 2000 --out coverage.json
    python benchmarks/evaluation_coverage.py --show coverage*.json

Four kinds of reward, three loggers, one target.  The truth is exact: contexts take eight values.
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from polyarm.evaluation.betting import ConfidenceSequence
from polyarm.evaluation.bounds import Limits, Quantity, interval_of
from polyarm.evaluation.estimators import functional, terms
from polyarm.evaluation.intervals import Interval
from polyarm.evaluation.moments import Blocks, Moments
from polyarm.evaluation.reward_models import N_FOLDS, fit_ridge, fold_of
from polyarm.policies import make_policy
from polyarm.tables import Cell, Table, to_markdown
from polyarm.types import Array, IntArray, Rng

N_ARMS, LEAST = 3, 0.1
CONTEXTS = np.array([[u, v] for u in (-1.5, -0.5, 0.5, 1.5) for v in (0.0, 1.0)])
SCORES = CONTEXTS @ np.array([[0.8, -0.6, 0.1], [0.2, 0.5, -0.7]]) + np.array([0.0, 0.3, 0.2])
ESTIMATORS = ("ips", "snips", "dr")
METHODS = ("normal", "bootstrap", "empirical-bernstein", "betting")
LEVEL = 0.95
EMPTY = Interval(math.inf, math.inf)  # bounds that crossed: they hold nothing, and are as long as nothing


def softmax(scores: Array) -> Array:
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


TARGET = softmax(1.5 * SCORES)
SHARES = 1 / (1 + np.exp(-SCORES))  # between 0 and 1


class Kind(NamedTuple):
    """Mean rewards (8, 3), how to draw rewards with given means, and the range they keep to."""

    means: Array
    draw: Callable[[Array, Rng], Array]
    limits: Interval | None


def heavy(means: Array, rng: Rng) -> Array:
    return np.asarray(means + rng.standard_t(3, len(means)))


def zero_inflated(means: Array, rng: Rng) -> Array:
    paid = rng.random(len(means)) < 0.25
    return np.asarray(np.where(paid, 10 * rng.beta(2 * means / 2.5, 2 * (1 - means / 2.5)), 0.0))


KINDS = {
    "continuous": Kind(SHARES, lambda m, rng: rng.beta(4 * m, 4 * (1 - m)), Interval(0, 1)),
    "heavy-tailed": Kind(SCORES, heavy, None),
    "zero-inflated": Kind(2.5 * SHARES, zero_inflated, Interval(0, 10)),
    "binary": Kind(0.5 * SHARES, lambda m, rng: (rng.random(len(m)) < m).astype(np.float64), Interval(0, 1)),
}


class Rows(NamedTuple):
    """A log: codes of the contexts (n,), arms (n,), rewards (n,) and propensities (n,)."""

    codes: IntArray
    arms: IntArray
    rewards: Array
    propensities: Array


def played(p: Array, rng: Rng) -> IntArray:
    return np.asarray((p.cumsum(axis=1) > rng.random((len(p), 1))).argmax(axis=1))


def fixed_log(kind: Kind, p: Array, codes: IntArray, rng: Rng) -> Rows:
    arms = played(p, rng)
    return Rows(codes, arms, kind.draw(kind.means[codes, arms], rng), p[np.arange(len(codes)), arms])


def uniform_log(kind: Kind, n_rows: int, rng: Rng) -> Rows:
    codes = rng.integers(len(CONTEXTS), size=n_rows)
    return fixed_log(kind, np.full((n_rows, N_ARMS), 1 / N_ARMS), codes, rng)


def drifting_log(kind: Kind, n_rows: int, rng: Rng) -> Rows:
    """A logger whose taste goes once round from the first row to the last."""
    codes = rng.integers(len(CONTEXTS), size=n_rows)
    angle = 2 * np.pi * np.arange(n_rows)[:, None] / n_rows + 2 * np.pi * np.arange(N_ARMS) / N_ARMS
    return fixed_log(kind, (1 - N_ARMS * LEAST) * softmax(SCORES[codes] + 2 * np.cos(angle)) + LEAST, codes, rng)


def default_log(kind: Kind, n_rows: int, rng: Rng, batch: int = 100) -> Rows:
    """Our default policy with min_propensity 0.1; it learns its rewards after every hundred decisions."""
    policy = make_policy("nonparametric", N_ARMS, CONTEXTS.shape[1])
    state = policy.init()
    parts = []
    for _ in range(n_rows // batch):
        q = policy.probabilities_many(state, CONTEXTS, rng)
        codes = rng.integers(len(CONTEXTS), size=batch)
        part = fixed_log(kind, ((1 - N_ARMS * LEAST) * q + LEAST)[codes], codes, rng)
        for code, arm, reward in zip(codes, part.arms, part.rewards, strict=True):
            state = policy.update(state, CONTEXTS[code], int(arm), float(reward), rng)
        parts.append(part)
    return Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


LOGGERS = {"uniform": uniform_log, "default": default_log, "drifting": drifting_log}


def expected_rewards(rows: Rows, rng: Rng) -> Array:
    """What the cross-fitted ridge regression expects of every arm, (n, A)."""
    contexts, folds = CONTEXTS[rows.codes], fold_of(np.arange(len(rows.codes)))
    out = np.empty((len(rows.codes), N_ARMS))
    for fold in range(N_FOLDS):
        own = folds == fold
        model = fit_ridge(contexts[~own], rows.arms[~own], rows.rewards[~own], N_ARMS, rng)
        out[own] = model.predict(contexts[own])
    return out


def ratio_bias(quantity: Quantity, moments: Moments) -> float:
    """Bias of order 1 / n that a quotient of two means has: (v var(w) - cov(w r, w)) / (n mean(w)^2), v its value."""
    above, below = quantity.functional
    if below is None:
        return 0.0
    covariance, value = moments.covariance(), quantity.value(moments.mean)
    return float((value * covariance[below, below] - covariance[above, below]) / (moments.n * moments.mean[below] ** 2))


class Found(NamedTuple):
    """Estimates (3,), what a quotient adds to each, and intervals by method and estimator."""

    values: dict[str, float]
    intervals: dict[tuple[str, str], Interval]


def evaluate_rows(rows: Rows, kind: Kind, methods: Sequence[str], rng: Rng) -> Found:
    """Everything that `evaluate` says of the target, by the same functions, without reading a log."""
    limits = Limits(kind.limits or Interval(-math.inf, math.inf), 1 / LEAST, math.inf)
    q = expected_rewards(rows, rng)
    if kind.limits is not None:
        q = np.clip(q, *kind.limits)
    pi, at = TARGET[rows.codes], np.arange(len(rows.codes))
    weights = pi[at, rows.arms] / rows.propensities
    kept = np.zeros(len(at))
    found = terms(weights, rows.rewards, (pi * q).sum(axis=1), q[at, rows.arms], kept, math.inf, math.inf)
    table = np.column_stack(list(found.values()))
    moments, blocks = Moments(table.shape[1]), Blocks(table.shape[1])
    moments.add(table)
    blocks.add(table)
    values, intervals = {}, {}
    for name in ESTIMATORS:
        quantity = Quantity(name, functional(name, list(found), ""))
        values[name] = quantity.value(moments.mean)
        values[name + " ratio"] = ratio_bias(quantity, moments)
        for method in methods:
            if method in ("empirical-bernstein", "betting") and kind.limits is None:
                continue
            if (method, name) == ("betting", "snips"):  # the same bounds as those of ips
                continue
            sequence = None
            if method == "betting" and kind.limits is not None:
                sequence = ConfidenceSequence(kind.limits, LEVEL, limits.largest_weight - 1 if name == "dr" else 0.0)
                if name == "dr":
                    sequence.add_values(found["dr"])
                else:
                    sequence.add_weighted(weights, rows.rewards)
            bounds, how = interval_of(quantity, moments, blocks, sequence, limits, method, LEVEL, rng)
            assert how in (method, "none")
            intervals[method, name] = bounds if how == method else EMPTY
    return Found(values, intervals)


class Tally:
    """Running sums over simulated logs, which can be written down and added up."""

    def __init__(self, kind: str, logger: str) -> None:
        self.kind, self.logger = kind, logger
        self.truth = float((TARGET * KINDS[kind].means).sum(axis=1).mean())
        self.n = 0
        self.sums: dict[str, float] = {}

    def add(self, found: Found) -> None:
        self.n += 1
        for name in ESTIMATORS:
            error = found.values[name] - self.truth
            self._count(f"error {name}", error)
            self._count(f"square {name}", error * error)
            self._count(f"ratio {name}", found.values[name + " ratio"])
        for (method, name), (low, high) in found.intervals.items():
            self._count(f"held {method} {name}", float(low <= self.truth <= high))
            self._count(f"width {method} {name}", 0.0 if low == high else high - low)

    def _count(self, name: str, amount: float) -> None:
        self.sums[name] = self.sums.get(name, 0.0) + amount

    def merge(self, n: int, sums: dict[str, float]) -> None:
        self.n += n
        for name, amount in sums.items():
            self._count(name, amount)

    def mean(self, name: str) -> float | None:
        return self.sums[name] / self.n if name in self.sums else None

    def bias_in_se(self, name: str, known: float = 0.0) -> float:
        mean, square = self.sums[f"error {name}"] / self.n, self.sums[f"square {name}"] / self.n
        return (mean - known) / math.sqrt((square - mean * mean) / (self.n - 1))


def study(kind: str, logger: str, logs: range, n_rows: int, methods: Sequence[str] = METHODS, seed: int = 0) -> Tally:
    """Coverage, bias and width over simulated logs, each of which follows from its number.

    The bounds of a confidence sequence never widen: they hold the truth at the end only if they did at all times.
    """
    tally = Tally(kind, logger)
    for i in logs:
        rng = np.random.default_rng([seed, list(KINDS).index(kind), list(LOGGERS).index(logger), i])
        tally.add(evaluate_rows(LOGGERS[logger](KINDS[kind], n_rows, rng), KINDS[kind], methods, rng))
    return tally


def tables(tallies: list[Tally]) -> list[Table]:
    """Coverage, bias and mean width, one row per kind of reward and logger."""
    columns = [(m, e) for m in METHODS for e in ESTIMATORS if any(f"held {m} {e}" in t.sums for t in tallies)]
    heads = ("rewards", "logger", "logs", *(f"{m}, {e}" for m, e in columns))
    shares: list[tuple[Cell, ...]] = []
    widths: list[tuple[Cell, ...]] = []
    biases: list[tuple[Cell, ...]] = []
    for t in tallies:
        held = [t.mean(f"held {m} {e}") for m, e in columns]
        shares.append((t.kind, t.logger, t.n, *(None if share is None else f"{100 * share:.1f}" for share in held)))
        widths.append((t.kind, t.logger, t.n, *(t.mean(f"width {m} {e}") for m, e in columns)))
        known = t.mean("ratio snips") or 0.0
        found = [*(t.bias_in_se(e) for e in ESTIMATORS), t.bias_in_se("snips", known)]
        biases.append((t.kind, t.logger, t.truth, *(f"{z:.2f}" for z in found), f"{known:.5f}"))
    return [
        Table("Coverage in per cent of nominal 95 % intervals", heads, tuple(shares)),
        Table("Mean width of the intervals", heads, tuple(widths)),
        Table(
            "Bias in standard errors over the logs",
            ("rewards", "logger", "truth", *ESTIMATORS, "snips less its ratio bias", "ratio bias"),
            tuple(biases),
        ),
    ]


def read(paths: list[Path]) -> list[Tally]:
    """Tallies of all files, added up."""
    found: dict[tuple[str, str], Tally] = {}
    for path in paths:
        for kind, logger, n, sums in json.loads(path.read_text()):
            found.setdefault((kind, logger), Tally(kind, logger)).merge(n, sums)
    order = [(kind, logger) for logger in LOGGERS for kind in KINDS]
    return [found[key] for key in order if key in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="number of the first log")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--method", choices=METHODS, action="append")
    parser.add_argument("--kind", choices=list(KINDS), action="append")
    parser.add_argument("--logger", choices=list(LOGGERS), action="append")
    parser.add_argument("--out", type=Path, help="file of sums, which --show adds up")
    parser.add_argument("--show", type=Path, nargs="+")
    options = parser.parse_args()
    tallies = read(options.show) if options.show else []
    for logger in [] if options.show else options.logger or LOGGERS:
        for kind in options.kind or KINDS:
            start = time.perf_counter()
            logs = range(options.first, options.first + options.logs)
            tallies.append(study(kind, logger, logs, options.rows, options.method or METHODS))
            print(f"{kind}, {logger}: {time.perf_counter() - start:.0f} s", flush=True)
            if options.out:
                options.out.write_text(json.dumps([(t.kind, t.logger, t.n, t.sums) for t in tallies]) + "\n")
    for table in tables(tallies):
        print(f"\n{table.title}\n\n{to_markdown(table)}")


if __name__ == "__main__":
    main()
